//! Reads and writes BSON. Source: bsonspec.org, version 1.1.
//!
//! A `Document` is a view of bytes whose outer length was checked; what is inside is checked while it is read. Nothing
//! is copied.

pub(super) const DOUBLE: u8 = 0x01;
pub(super) const TEXT: u8 = 0x02;
pub(super) const DOCUMENT: u8 = 0x03;
pub(super) const ARRAY: u8 = 0x04;
pub(super) const BINARY: u8 = 0x05;
const UNDEFINED: u8 = 0x06;
pub(super) const OBJECT_ID: u8 = 0x07;
pub(super) const BOOL: u8 = 0x08;
pub(super) const DATE: u8 = 0x09;
pub(super) const NULL: u8 = 0x0A;
pub(super) const REGEX: u8 = 0x0B;
const DB_POINTER: u8 = 0x0C;
const CODE: u8 = 0x0D;
const SYMBOL: u8 = 0x0E;
const CODE_WITH_SCOPE: u8 = 0x0F;
pub(super) const INT32: u8 = 0x10;
pub(super) const TIMESTAMP: u8 = 0x11;
pub(super) const INT64: u8 = 0x12;
const DECIMAL: u8 = 0x13;
pub(super) const MAX_KEY: u8 = 0x7F;
pub(super) const MIN_KEY: u8 = 0xFF;

/// Documents within documents are read to this depth. Servers allow 100, and a few more in their replies.
pub(super) const DEPTH_MAX: usize = 200;

/// Bytes that are not BSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The elements of a document or an array, without the length before and the zero after them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Document<'a>(&'a [u8]);

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bson<'a> {
    Double(f64),
    /// Should be UTF-8.
    Text(&'a [u8]),
    Document(Document<'a>),
    /// Its elements are named `0`, `1`, ….
    Array(Document<'a>),
    Binary {
        subtype: u8,
        bytes: &'a [u8],
    },
    ObjectId([u8; 12]),
    Bool(bool),
    /// Milliseconds since 1970.
    Date(i64),
    Null,
    Regex {
        pattern: &'a [u8],
        options: &'a [u8],
    },
    Code(&'a [u8]),
    Int32(i32),
    /// Increment in the lower half, seconds since 1970 in the upper.
    Timestamp(u64),
    Int64(i64),
    /// IEEE 754-2008 decimal128 in its binary integer form.
    Decimal(u128),
    MinKey,
    MaxKey,
    /// A type that servers no longer create: undefined, pointers, symbols, code with a scope.
    Obsolete,
}

impl<'a> Document<'a> {
    /// The document at the start of `bytes`, and what follows it.
    pub(super) fn read(bytes: &'a [u8]) -> Result<(Document<'a>, &'a [u8]), Malformed> {
        let length = bytes.first_chunk::<4>().map(|length| i32::from_le_bytes(*length)).ok_or(Malformed)?;
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        if length < 5 || length > bytes.len() || bytes[length - 1] != 0 {
            return Err(Malformed);
        }
        Ok((Document(&bytes[4..length - 1]), &bytes[length..]))
    }

    /// Without elements.
    pub(super) const EMPTY: Document<'static> = Document(&[]);

    /// Bytes of its elements.
    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    /// Its elements in order; ends after the first that is malformed.
    pub(super) fn elements(self) -> Elements<'a> {
        Elements(self.0)
    }

    /// The first element with this name. Cost: a walk over those before it.
    pub(super) fn get(self, name: &str) -> Result<Option<Bson<'a>>, Malformed> {
        self.elements().seek(name.as_bytes())
    }

    /// A document or array by its name; an empty one if it is something else or missing.
    pub(super) fn inner(self, name: &str) -> Result<Document<'a>, Malformed> {
        Ok(match self.get(name)? {
            Some(Bson::Document(inner) | Bson::Array(inner)) => inner,
            _ => Document::EMPTY,
        })
    }

    /// An integer by its name, whatever its type.
    pub(super) fn integer(self, name: &str) -> Result<Option<i64>, Malformed> {
        Ok(self.get(name)?.and_then(Bson::integer))
    }

    /// A text by its name.
    pub(super) fn text(self, name: &str) -> Result<Option<&'a [u8]>, Malformed> {
        Ok(match self.get(name)? {
            Some(Bson::Text(text)) => Some(text),
            _ => None,
        })
    }

    /// Whether an element with this name is true, or a number other than 0.
    pub(super) fn is_true(self, name: &str) -> Result<bool, Malformed> {
        Ok(self.get(name)?.is_some_and(Bson::is_true))
    }
}

impl Bson<'_> {
    fn integer(self) -> Option<i64> {
        match self {
            Bson::Int32(value) => Some(value.into()),
            Bson::Int64(value) => Some(value),
            Bson::Double(value) if value.is_finite() => Some(value as i64),
            _ => None,
        }
    }

    /// As servers read their own flags, such as `ok: 1.0`.
    pub(super) fn is_true(self) -> bool {
        match self {
            Bson::Bool(value) => value,
            Bson::Double(value) => value != 0.0,
            other => other.integer().is_some_and(|value| value != 0),
        }
    }
}

/// The elements that are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    /// The next element with this name; those before it are skipped.
    pub(super) fn seek(&mut self, name: &[u8]) -> Result<Option<Bson<'a>>, Malformed> {
        for element in self {
            let (found, value) = element?;
            if found == name {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn element(&mut self) -> Result<(&'a [u8], Bson<'a>), Malformed> {
        let kind = self.array::<1>()?[0];
        let name = self.zero_ended()?;
        let value = match kind {
            DOUBLE => Bson::Double(f64::from_le_bytes(self.array()?)),
            TEXT => Bson::Text(self.counted()?),
            DOCUMENT => Bson::Document(self.document()?),
            ARRAY => Bson::Array(self.document()?),
            BINARY => {
                let length = self.length()?;
                let subtype = self.array::<1>()?[0];
                Bson::Binary { subtype, bytes: self.take(length)? }
            }
            OBJECT_ID => Bson::ObjectId(self.array()?),
            BOOL => Bson::Bool(self.array::<1>()?[0] != 0),
            DATE => Bson::Date(i64::from_le_bytes(self.array()?)),
            NULL => Bson::Null,
            REGEX => Bson::Regex { pattern: self.zero_ended()?, options: self.zero_ended()? },
            CODE => Bson::Code(self.counted()?),
            INT32 => Bson::Int32(i32::from_le_bytes(self.array()?)),
            TIMESTAMP => Bson::Timestamp(u64::from_le_bytes(self.array()?)),
            INT64 => Bson::Int64(i64::from_le_bytes(self.array()?)),
            DECIMAL => Bson::Decimal(u128::from_le_bytes(self.array()?)),
            MIN_KEY => Bson::MinKey,
            MAX_KEY => Bson::MaxKey,
            UNDEFINED => Bson::Obsolete,
            SYMBOL => {
                self.counted()?;
                Bson::Obsolete
            }
            DB_POINTER => {
                self.counted()?;
                self.array::<12>()?;
                Bson::Obsolete
            }
            CODE_WITH_SCOPE => {
                // Its length includes itself.
                let length = self.length()?.checked_sub(4).ok_or(Malformed)?;
                self.take(length)?;
                Bson::Obsolete
            }
            _ => return Err(Malformed),
        };
        Ok((name, value))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn length(&mut self) -> Result<usize, Malformed> {
        usize::try_from(i32::from_le_bytes(self.array()?)).map_err(|_| Malformed)
    }

    fn zero_ended(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(Malformed)?;
        let text = self.take(end)?;
        self.take(1)?;
        Ok(text)
    }

    /// A text with its length, which includes the zero after it.
    fn counted(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.length()?;
        match self.take(length)?.split_last() {
            Some((0, text)) => Ok(text),
            _ => Err(Malformed),
        }
    }

    fn document(&mut self) -> Result<Document<'a>, Malformed> {
        let (document, rest) = Document::read(self.0)?;
        self.0 = rest;
        Ok(document)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<(&'a [u8], Bson<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let element = self.element();
        if element.is_err() {
            self.0 = &[];
        }
        Some(element)
    }
}

/// Begins a document: returns the place of its length, for `end`.
pub(super) fn begin(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len() - 4
}

/// Ends the document that begins at `start`.
pub(super) fn end(start: usize, out: &mut Vec<u8>) {
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends elements to the document that begins at `start` and ends where `out` ends.
pub(super) fn extend(start: usize, elements: &[u8], out: &mut Vec<u8>) {
    out.pop();
    out.extend_from_slice(elements);
    end(start, out);
}

/// Type and name of the next element. `name` has no zero.
pub(super) fn name(kind: u8, name: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(name);
    out.push(0);
}

/// The value of a text.
pub(super) fn text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    out.extend_from_slice(text);
    out.push(0);
}

/// The value of binary data.
pub(super) fn binary(subtype: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.push(subtype);
    out.extend_from_slice(bytes);
}

/// An element with a text.
pub(super) fn text_element(key: &str, value: &[u8], out: &mut Vec<u8>) {
    name(TEXT, key.as_bytes(), out);
    text(value, out);
}

/// An element with a number of 32 bits.
pub(super) fn int_element(key: &str, value: i32, out: &mut Vec<u8>) {
    name(INT32, key.as_bytes(), out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// An element with a document, which `write` fills.
pub(super) fn document_element(key: &str, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    name(DOCUMENT, key.as_bytes(), out);
    let start = begin(out);
    write(out);
    end(start, out);
}

/// An element with a boolean.
pub(super) fn bool_element(key: &str, value: bool, out: &mut Vec<u8>) {
    name(BOOL, key.as_bytes(), out);
    out.push(value.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        let start = begin(&mut out);
        int_element("a", -3, &mut out);
        text_element("b", b"text", &mut out);
        document_element("c", &mut out, |out| bool_element("d", true, out));
        name(BINARY, b"e", &mut out);
        binary(0, b"\0\x01", &mut out);
        end(start, &mut out);
        out
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = sample();
        let (document, rest) = Document::read(&bytes).unwrap();
        assert!(rest.is_empty());
        assert_eq!(document.integer("a"), Ok(Some(-3)));
        assert_eq!(document.text("b"), Ok(Some(&b"text"[..])));
        assert_eq!(document.inner("c").unwrap().is_true("d"), Ok(true));
        assert_eq!(document.get("e"), Ok(Some(Bson::Binary { subtype: 0, bytes: b"\0\x01" })));
        assert_eq!(document.get("f"), Ok(None));
    }

    #[test]
    fn a_document_cut_anywhere_is_malformed() {
        let bytes = sample();
        for cut in 0..bytes.len() {
            assert_eq!(Document::read(&bytes[..cut]).map(|_| ()), Err(Malformed), "{cut}");
        }
    }

    #[test]
    fn a_wrong_byte_is_never_read_beyond_the_end() {
        let bytes = sample();
        for at in 0..bytes.len() {
            for wrong in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut bytes = bytes.clone();
                bytes[at] = wrong;
                if let Ok((document, _)) = Document::read(&bytes) {
                    assert!(document.elements().count() <= bytes.len());
                }
            }
        }
    }
}
