//! Replies become rows.
//!
//! A document is a row: of the fields that the statement names, or else of a single cell with the whole document as
//! text. A reply without documents becomes rows of a name and a value, with the names of inner documents before theirs:
//! `opcounters.insert`. That is how statistics and settings are read.

use assay_seam::Rows;

use crate::protocol::bson::{Bson, DEPTH_MAX, Document, Malformed};
use crate::protocol::shown;
use crate::protocol::template::Template;

/// Why a reply does not become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed,
    /// The rows would need more memory than there may be.
    TooLarge,
}

impl From<Malformed> for Fault {
    fn from(_: Malformed) -> Fault {
        Fault::Malformed
    }
}

impl From<assay_seam::rows::TooLarge> for Fault {
    fn from(_: assay_seam::rows::TooLarge) -> Fault {
        Fault::TooLarge
    }
}

/// Where documents go.
pub(super) struct Sheet<'a> {
    pub(super) rows: &'a mut Rows,
    /// For text in the making.
    pub(super) scratch: &'a mut Vec<u8>,
    /// Rows are only counted.
    pub(super) counts: bool,
}

impl Sheet<'_> {
    /// Begins the only set. `labels`: columns have names.
    pub(super) fn begin(&mut self, template: &Template, labels: bool) {
        if self.counts {
            return self.rows.begin_set(0);
        }
        self.rows.begin_set(template.columns.len().max(1));
        if labels {
            match &*template.columns {
                [] => self.rows.push_label(b"document"),
                columns => columns.iter().for_each(|name| self.rows.push_label(name.as_bytes())),
            }
        }
    }

    /// Appends each document of a batch.
    pub(super) fn batch(&mut self, batch: Document<'_>, columns: &[Box<str>]) -> Result<(), Fault> {
        for element in batch.elements() {
            match element? {
                (_, Bson::Document(document)) if !self.counts => self.document(document, columns)?,
                (_, Bson::Document(_)) => self.rows.push_bare_row(),
                _ => return Err(Fault::Malformed),
            }
        }
        Ok(())
    }

    /// Appends a row. Fast if the fields are in the order of the columns.
    pub(super) fn document(&mut self, document: Document<'_>, columns: &[Box<str>]) -> Result<(), Fault> {
        if self.counts {
            self.rows.push_bare_row();
            return Ok(());
        }
        if columns.is_empty() {
            return self.text(|out| shown::document(document, out));
        }
        let mut after = document.elements();
        for column in columns {
            let mut ahead = after;
            match ahead.seek(column.as_bytes())? {
                Some(value) => {
                    after = ahead;
                    self.cell(value)?;
                }
                None => match document.elements().seek(column.as_bytes())? {
                    Some(value) => self.cell(value)?,
                    None => self.nested(document, column)?,
                },
            }
        }
        Ok(())
    }

    /// A field of an inner document, such as `a.b`; NULL if there is none.
    fn nested(&mut self, document: Document<'_>, path: &str) -> Result<(), Fault> {
        let mut within = document;
        let mut parts = path.split('.').peekable();
        while let Some(part) = parts.next() {
            match (within.get(part)?, parts.peek()) {
                (Some(Bson::Document(inner)), Some(_)) => within = inner,
                (Some(value), None) => return self.cell(value),
                _ => break,
            }
        }
        self.rows.push_null();
        Ok(())
    }

    /// Appends a value as a row of one cell.
    pub(super) fn value(&mut self, value: Bson<'_>) -> Result<(), Fault> {
        if self.counts {
            self.rows.push_bare_row();
            return Ok(());
        }
        self.cell(value)
    }

    /// Appends a cell.
    fn cell(&mut self, value: Bson<'_>) -> Result<(), Fault> {
        match value {
            Bson::Int32(value) => self.rows.push_int(value.into()),
            Bson::Int64(value) => self.rows.push_int(value),
            Bson::Double(value) => self.rows.push_double(value),
            Bson::Text(text) | Bson::Binary { bytes: text, .. } | Bson::Code(text) => self.rows.push_text(text)?,
            Bson::Null | Bson::Obsolete => self.rows.push_null(),
            Bson::Bool(value) => self.rows.push_text(if value { b"true" } else { b"false" })?,
            Bson::ObjectId(id) => self.text(|out| {
                shown::hexadecimal(&id, out);
                Ok(())
            })?,
            Bson::Date(millis) if (0..=shown::LAST_DATE).contains(&millis) => self.text(|out| {
                shown::date(millis, out);
                Ok(())
            })?,
            Bson::Decimal(bits) => self.text(|out| {
                shown::decimal(bits, out);
                Ok(())
            })?,
            value => self.text(|out| shown::value(value, out))?,
        }
        Ok(())
    }

    fn text(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Malformed>) -> Result<(), Fault> {
        self.scratch.clear();
        write(self.scratch)?;
        self.rows.push_text(self.scratch)?;
        self.scratch.shrink_to(SCRATCH_KEEP_MAX);
        Ok(())
    }

    /// Begins a set of names and values, and fills it from a reply.
    pub(super) fn fields(&mut self, reply: Document<'_>, labels: bool) -> Result<(), Fault> {
        self.rows.begin_set(if self.counts { 0 } else { 2 });
        if labels && !self.counts {
            self.rows.push_label(b"name");
            self.rows.push_label(b"value");
        }
        // Long names are repeated for each value within them.
        let most = self.rows.size() + GROWTH_MAX * reply.len() + (64 << 10);
        self.inner_fields(reply, &mut Vec::new(), 0, most)
    }

    fn inner_fields(
        &mut self,
        document: Document<'_>,
        path: &mut Vec<u8>,
        depth: usize,
        most: usize,
    ) -> Result<(), Fault> {
        for element in document.elements() {
            let (name, value) = element?;
            if depth == 0 && matches!(name, b"ok" | b"$clusterTime" | b"operationTime") {
                continue;
            }
            let above = path.len();
            if above > 0 {
                path.push(b'.');
            }
            path.extend_from_slice(name);
            match value {
                Bson::Document(inner) | Bson::Array(inner) if depth < DEPTH_MAX && path.len() < PATH_MAX => {
                    self.inner_fields(inner, path, depth + 1, most)?;
                }
                _ if self.counts => self.rows.push_bare_row(),
                value => {
                    self.rows.push_text(path)?;
                    self.cell(value)?;
                    if self.rows.size() > most {
                        return Err(Fault::TooLarge);
                    }
                }
            }
            path.truncate(above);
        }
        Ok(())
    }
}

/// Bytes kept for text in the making.
const SCRATCH_KEEP_MAX: usize = 16 << 10;
/// Names and values of a reply have at most so many times its bytes.
const GROWTH_MAX: usize = 16;
/// Documents below a longer name are shown as text.
const PATH_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::additions::Additions;
    use assay_seam::Cell;

    fn bytes(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let template = Template::new(text.as_bytes(), &Additions::default()).unwrap();
        template.write(&[], &mut Vec::new(), &mut out).unwrap();
        out
    }

    fn filled(fill: impl FnOnce(&mut Sheet<'_>) -> Result<(), Fault>) -> String {
        let (mut rows, mut scratch) = (Rows::default(), Vec::new());
        fill(&mut Sheet { rows: &mut rows, scratch: &mut scratch, counts: false }).unwrap();
        let cells: Vec<String> = rows
            .cells_from(0, 0)
            .map(|cell| match cell {
                Cell::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            })
            .collect();
        cells.join(" ")
    }

    #[test]
    fn named_fields_are_cells_in_the_order_of_the_columns() {
        let document = bytes(
            r#"{"a": 1, "b": 2.5, "c": {"d": "x"}, "e": [1], "f": true, "g": null, "h": {"$oid": "0123456789abcdef01234567"}}"#,
        );
        let document = Document::read(&document).unwrap().0;
        let row = |columns: &[&str]| {
            let columns: Vec<Box<str>> = columns.iter().map(|name| (*name).into()).collect();
            filled(|sheet| {
                sheet.rows.begin_set(columns.len());
                sheet.document(document, &columns)
            })
        };
        assert_eq!(row(&["b", "a"]), "Double(2.5) Int(1)");
        assert_eq!(row(&["a", "c.d", "z", "c.z", "e"]), "Int(1) x Null Null [1]");
        assert_eq!(row(&["f", "g", "h", "c"]), r#"true Null 0123456789abcdef01234567 {"d":"x"}"#);
    }

    #[test]
    fn replies_without_documents_are_names_and_values() {
        let reply = bytes(r#"{"a": {"b": {"c": 1}, "d": [5, {"e": "x"}]}, "ok": 1.0}"#);
        let shown = filled(|sheet| sheet.fields(Document::read(&reply).unwrap().0, false));
        assert_eq!(shown, "a.b.c Int(1) a.d.0 Int(5) a.d.1.e x $db ");
    }

    #[test]
    fn a_reply_does_not_grow_without_bound() {
        let inner = format!("\"{}\": [{}]", "x".repeat(1000), ["null"; 10_000].join(","));
        let reply = bytes(&format!("{{{inner}}}"));
        let (mut rows, mut scratch) = (Rows::default(), Vec::new());
        let mut sheet = Sheet { rows: &mut rows, scratch: &mut scratch, counts: false };
        assert_eq!(sheet.fields(Document::read(&reply).unwrap().0, false), Err(Fault::TooLarge));
    }
}
