//! Messages of protocol 3.0 as bytes: framing, writing, and careful parsing.
//!
//! A message is a tag, a length that counts itself but not the tag, and a body. There is no state, and nothing is
//! allocated for a length that was only announced. Source: PostgreSQL manual, 55.7 (message formats).

use assay_seam::{Value, write_decimal};
use assay_wire::placeholders::{write_bytea, write_postgres_double};

/// The largest length a server or client may announce: the most that PostgreSQL itself can hold in one piece.
pub(super) const LENGTH_MAX: usize = 1 << 30;

/// Only rows, their descriptions and texts are longer.
const SHORT_MAX: usize = 1 << 16;

/// The server broke the protocol; says how.
#[derive(Debug)]
pub(super) struct Broken(pub(super) String);

pub(super) fn broken(what: impl Into<String>) -> Broken {
    Broken(what.into())
}

/// Length of the whole message at the start of `bytes`, including its tag; `None` if its header is incomplete.
#[inline]
pub(super) fn length(bytes: &[u8], length_max: usize) -> Result<Option<usize>, Broken> {
    let Some(&[_, a, b, c, d]) = bytes.first_chunk() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length < 4 || length > SHORT_MAX && !(length <= length_max && may_be_long(bytes[0])) {
        return Err(misannounced(bytes[0], length));
    }
    Ok(Some(length + 1))
}

/// Whether messages of this type can exceed `SHORT_MAX`. Nobody should wait for the rest of another: something else
/// than the server wrote its header.
fn may_be_long(tag: u8) -> bool {
    matches!(tag, b'A' | b'D' | b'E' | b'N' | b'S' | b'T' | b'V' | b'd' | b't')
}

#[cold]
fn misannounced(tag: u8, length: usize) -> Broken {
    broken(format!("a message of type {} announced {length} bytes", shown(tag)))
}

/// A readable name of a tag.
pub(super) fn shown(tag: u8) -> String {
    if tag.is_ascii_graphic() { format!("`{}`", tag as char) } else { format!("0x{tag:02x}") }
}

/// The rest of a message's body.
pub(super) struct Body<'a>(pub(super) &'a [u8]);

impl<'a> Body<'a> {
    #[inline]
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| broken("a message ended too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        Ok(self.bytes(N)?.try_into().expect("as many bytes were taken"))
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Broken> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, Broken> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    #[inline]
    pub(super) fn i32(&mut self) -> Result<i32, Broken> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// Text up to its NUL, which is consumed.
    pub(super) fn text(&mut self) -> Result<&'a [u8], Broken> {
        let end = self.0.iter().position(|&byte| byte == 0).ok_or_else(|| broken("a text in a message has no end"))?;
        let text = self.bytes(end)?;
        self.0 = &self.0[1..];
        Ok(text)
    }
}

/// Rows changed, from the tag of CommandComplete: `INSERT 0 5`, `UPDATE 5`; a `SELECT 5` changes nothing.
pub(super) fn affected(tag: &[u8]) -> u64 {
    // The most frequent by far.
    if tag.starts_with(b"SELECT") {
        return 0;
    }
    let mut words = tag.split(|&byte| byte == b' ');
    match words.next() {
        Some(b"INSERT" | b"UPDATE" | b"DELETE" | b"MERGE" | b"COPY") => {
            words.next_back().and_then(|word| str::from_utf8(word).ok()?.parse().ok()).unwrap_or(0)
        }
        _ => 0,
    }
}

/// Appends a message; `body` appends its body. The caller ensures that no body exceeds `LENGTH_MAX`.
pub(super) fn write(tag: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    write_sized(4, out, body);
}

/// Appends what `body` appends, preceded by its length plus `extra` in four bytes.
fn write_sized(extra: usize, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - at - 4 + extra) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

pub(super) fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    out.push(0);
}

pub(super) fn write_startup<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>, out: &mut Vec<u8>) {
    write_sized(4, out, |out| {
        out.extend_from_slice(&0x0003_0000_u32.to_be_bytes());
        for (name, value) in parameters {
            write_text(name.as_bytes(), out);
            write_text(value.as_bytes(), out);
        }
        out.push(0);
    });
}

/// SSLRequest: its length and its code, 80877103. What to ask a server that waits for its client to speak first.
pub const GREETING: &[u8] = &[0, 0, 0, 8, 4, 210, 22, 47];

/// Whether these bytes are the complete answer of a PostgreSQL server, or of a pooler, to `GREETING`.
pub fn is_greeting(answer: &[u8]) -> bool {
    matches!(answer, [b'S' | b'N'])
}

pub(super) fn write_ssl_request(out: &mut Vec<u8>) {
    out.extend_from_slice(GREETING);
}

pub(super) fn write_sasl_initial(mechanism: &str, data: &[u8], out: &mut Vec<u8>) {
    write(b'p', out, |out| {
        write_text(mechanism.as_bytes(), out);
        write_sized(0, out, |out| out.extend_from_slice(data));
    });
}

pub(super) fn write_query(sql: &[u8], out: &mut Vec<u8>) {
    write(b'Q', out, |out| write_text(sql, out));
}

pub(super) fn write_sync(out: &mut Vec<u8>) {
    out.extend_from_slice(b"S\0\0\0\x04");
}

/// Bind to the unnamed portal and Execute; parameters and results in text form.
pub(super) fn write_bind_and_execute(name: &[u8], parameters: &[Value<'_>], out: &mut Vec<u8>) {
    write_bind(name, parameters, out);
    write_execute(out);
}

/// Execute the unnamed portal, all of it.
pub(super) fn write_execute(out: &mut Vec<u8>) {
    out.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0");
}

/// Bind to the unnamed portal.
pub(super) fn write_bind(name: &[u8], parameters: &[Value<'_>], out: &mut Vec<u8>) {
    write(b'B', out, |out| {
        out.push(0);
        write_text(name, out);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        for parameter in parameters {
            match *parameter {
                Value::Null => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                Value::Int(value) => write_sized(0, out, |out| write_decimal(value, out)),
                Value::Double(value) => write_sized(0, out, |out| write_postgres_double(value, out)),
                Value::Text(text) => write_sized(0, out, |out| out.extend_from_slice(text)),
                Value::Bytes(bytes) => write_sized(0, out, |out| write_bytea(bytes, out)),
            }
        }
        out.extend_from_slice(&[0, 0]);
    });
}
