//! Many rows as documents of an `insert`, in as few messages as the server accepts.
//!
//! Column names are field names; a NULL omits its field. Documents travel in a section of their own, not within the
//! command. Not atomic: MongoDB keeps the documents before the one that it refuses.

use std::time::UNIX_EPOCH;

use assay_seam::{Cell, Class, Rows, StatementError, Value};

use crate::protocol::additions::Additions;
use crate::protocol::body::write_value;
use crate::protocol::bson;
use crate::protocol::json::Gap;
use crate::protocol::login::Limits;
use crate::protocol::message;
use crate::protocol::shown;
use crate::protocol::template::Template;

/// More bytes than this are not sent in one message: the server would only begin when all have arrived.
const MESSAGE_BYTES: usize = 16 << 20;

/// The command before the documents of a table, and their fields.
#[derive(Debug)]
pub(super) struct Head {
    table: Box<[u8]>,
    columns: Box<[u8]>,
    names: Vec<(Box<str>, Gap)>,
    template: Template,
}

/// A field as the script names it: `amount`, `amount:double`, `since:date`.
fn field(text: &str) -> Result<(Box<str>, Gap), StatementError> {
    let (name, gap) = match text.split_once(':') {
        None => (text, Gap::Plain),
        Some((name, "double")) => (name, Gap::Double),
        Some((name, "date")) => (name, Gap::Date),
        Some((_, other)) => {
            return Err(wrong(&format!("a field has no type, or `double` or `date`, and not `{other}`")));
        }
    };
    if name.is_empty() || name.contains('\0') {
        return Err(wrong("the names of fields are separated by commas, and none is empty"));
    }
    Ok((name.into(), gap))
}

/// A text as the value of a field with a type: what a loader for SQL would take. Other texts are refused when written.
fn of_type(text: &[u8], gap: Gap) -> Option<Value<'_>> {
    let text = std::str::from_utf8(text).ok()?;
    match gap {
        Gap::Double => text.parse().ok().map(Value::Double),
        Gap::Date => {
            let since = humantime::parse_rfc3339_weak(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some(Value::Int(since.as_millis() as i64))
        }
        _ => None,
    }
}

impl Head {
    pub(super) fn new(table: &[u8], columns: &[u8], additions: &Additions) -> Result<Head, StatementError> {
        let text = std::str::from_utf8(columns).map_err(|_| wrong("the names of fields are not UTF-8 text"))?;
        let names = text.split(',').map(|name| field(name.trim())).collect::<Result<Vec<_>, _>>()?;
        let mut command = b"{\"insert\": ".to_vec();
        shown::quoted(table, &mut command);
        command.extend_from_slice(b", \"ordered\": true}");
        let template = Template::new(&command, additions)?;
        Ok(Head { table: table.into(), columns: columns.into(), names, template })
    }

    /// Whether it is for these.
    pub(super) fn is_for(&self, table: &[u8], columns: &[u8]) -> bool {
        *self.table == *table && *self.columns == *columns
    }
}

fn wrong(message: &str) -> StatementError {
    StatementError::client(Class::Syntax, message)
}

/// Appends a message with rows from `first` on; returns the first that is not in it. Fails, leaving nothing in `out`,
/// if a value cannot be sent. `transaction`: the elements that travel with the command.
pub(super) fn write(
    head: &Head,
    (rows, first): (&Rows, usize),
    limits: Limits,
    (request, transaction): (u32, Option<&[u8]>),
    out: &mut Vec<u8>,
) -> Result<usize, StatementError> {
    let start = message::begin(request, out);
    let written = sections(head, (rows, first), limits, (start, transaction), out);
    match written {
        Ok(_) => message::end(start, &mut out[..]),
        Err(_) => out.truncate(start),
    }
    written
}

fn sections(
    head: &Head,
    (rows, first): (&Rows, usize),
    limits: Limits,
    (start, transaction): (usize, Option<&[u8]>),
    out: &mut Vec<u8>,
) -> Result<usize, StatementError> {
    head.template.write_within(transaction, &[], &mut Vec::new(), out)?;
    let section = message::begin_sequence("documents", out);
    let most = limits.message.min(MESSAGE_BYTES);
    let mut cells = rows.cells_from(0, first);
    let mut next = first;
    while next < rows.len(0) && next - first < limits.batch {
        let before = out.len();
        let document = bson::begin(out);
        for ((name, gap), cell) in head.names.iter().zip(cells.by_ref()) {
            let value = match cell {
                Cell::Null => continue,
                Cell::Int(value) => Value::Int(value),
                Cell::Double(value) => Value::Double(value),
                Cell::Text(text) => of_type(text, *gap).unwrap_or(Value::Text(text)),
            };
            write_value(value, *gap, name.as_bytes(), out)?;
        }
        bson::end(document, out);
        if out.len() - start > most && next > first {
            out.truncate(before);
            break;
        }
        next += 1;
    }
    message::end_sequence(section, out);
    Ok(next)
}

impl Head {
    /// How many values a row must have.
    pub(super) fn width(&self) -> usize {
        self.names.len()
    }
}

/// A load in progress.
#[derive(Debug)]
pub(super) struct Load {
    /// Those that are not sent yet, and perhaps others before them.
    pub(super) rest: Option<Box<Rows>>,
    /// Rows before this one have been sent.
    pub(super) next: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_may_have_a_type() {
        let of = |text: &str| field(text).map(|(name, gap)| format!("{name} {gap:?}")).map_err(|error| error.message);
        assert_eq!(of("a"), Ok("a Plain".into()));
        assert_eq!(of("a:double"), Ok("a Double".into()));
        assert_eq!(of("a:date"), Ok("a Date".into()));
        assert_eq!(of("a:int"), Err("a field has no type, or `double` or `date`, and not `int`".into()));
        assert_eq!(of(":date"), Err("the names of fields are separated by commas, and none is empty".into()));
        assert_eq!(of_type(b"12.50", Gap::Double), Some(Value::Double(12.5)));
        assert_eq!(of_type(b"1970-01-01 00:00:01", Gap::Date), Some(Value::Int(1000)));
        assert_eq!(of_type(b"1970-01-01T00:00:01.5Z", Gap::Date), Some(Value::Int(1500)));
        assert_eq!(of_type(b"yesterday", Gap::Date), None);
        assert_eq!(of_type(b"12", Gap::Plain), None);
    }
}
