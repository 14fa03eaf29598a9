//! Loading rows: the data of COPY, as text or in binary form.
//!
//! Binary data saves the server the search for separators and the parsing of numbers, but needs the exact type of each
//! column: four bytes for an `integer`, eight for a `bigint`. So the types are queried with the first large batch, by
//! describing an INSERT that never runs (which needs no right to read the table). That batch is still sent as text;
//! later batches are binary if each of their values has its column's type. Otherwise they are sent as text, which the
//! server converts or refuses itself. For 500,000 sbtest rows PostgreSQL 15 needs 1.1 to 2.0 s with binary data, 1.7 to
//! 2.3 s with text (three alternating runs each).

use crate::protocol::message::{self, Body, Broken};
use assay_seam::{Cell, Rows, write_decimal};
use assay_wire::placeholders::write_postgres_double;

/// CopyData messages end after the row that exceeds this.
const PIECE_BYTES: usize = 64 * 1024;
/// Smaller batches are not worth the query for the types.
const LARGE_BYTES_MIN: usize = 64 * 1024;

/// Tables that this connection loads, with their types as last described. Any other statement may change them: then
/// they are all dropped.
#[derive(Debug, Default)]
pub(super) struct Tables(Vec<LoadTable>);

#[derive(Debug)]
struct LoadTable {
    name: Box<[u8]>,
    columns: Box<[u8]>,
    /// `None`: not known, or one of them has a type that we send as text only.
    types: Option<Box<[Type]>>,
}

/// How a column's values look in binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Int2,
    Int4,
    Int8,
    Double,
    /// The characters, whatever the length allowed and the padding.
    Text,
}

impl Type {
    /// Source: `pg_type.dat`.
    fn of(oid: i32) -> Option<Type> {
        match oid {
            21 => Some(Type::Int2),
            23 => Some(Type::Int4),
            20 => Some(Type::Int8),
            701 => Some(Type::Double),
            25 | 1042 | 1043 => Some(Type::Text),
            _ => None,
        }
    }
}

impl Tables {
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Appends the query for the types, if they are worth knowing and not known. True: its answer comes before that of
    /// the load, and is for `learn`.
    pub(super) fn ask(&mut self, name: &[u8], columns: &[u8], rows: &Rows, out: &mut Vec<u8>) -> bool {
        if rows.size() < LARGE_BYTES_MIN || self.find(name, columns).is_some() {
            return false;
        }
        message::write(b'P', out, |out| {
            out.push(0);
            for piece in [b"INSERT INTO ", name, b" (", columns, b") VALUES ("] {
                out.extend_from_slice(piece);
            }
            for column in 1..=rows.columns(0) {
                out.extend_from_slice(if column == 1 { b"$" } else { b",$" });
                write_decimal(column as i64, out);
            }
            out.extend_from_slice(b")\0\0\0");
        });
        message::write(b'D', out, |out| out.extend_from_slice(b"S\0"));
        message::write_sync(out);
        self.0.push(LoadTable { name: name.into(), columns: columns.into(), types: None });
        true
    }

    /// The body of the ParameterDescription that answers the last query.
    pub(super) fn learn(&mut self, mut body: Body<'_>) -> Result<(), Broken> {
        let count = body.u16()?;
        let oids: Vec<i32> = (0..count).map(|_| body.i32()).collect::<Result<_, _>>()?;
        if let Some(table) = self.0.last_mut() {
            table.types = oids.into_iter().map(Type::of).collect();
        }
        Ok(())
    }

    /// Whether its types were queried, and so its name and columns are texts for a message.
    pub(super) fn knows(&self, name: &[u8], columns: &[u8]) -> bool {
        self.find(name, columns).is_some()
    }

    fn find(&self, name: &[u8], columns: &[u8]) -> Option<&LoadTable> {
        self.0.iter().find(|table| *table.name == *name && *table.columns == *columns)
    }

    /// Appends COPY with all its data right behind it: if the server refuses it, it skips the data.
    pub(super) fn write_copy(&self, (name, columns): (&[u8], &[u8]), rows: &Rows, frozen: bool, out: &mut Vec<u8>) {
        let start = out.len();
        let types = self.find(name, columns).and_then(|table| table.types.as_deref());
        if let Some(types) = types.filter(|types| types.len() == rows.columns(0)) {
            let format: &[u8] = if frozen { b" (FORMAT binary, FREEZE)" } else { b" (FORMAT binary)" };
            write_command(name, columns, format, out);
            if write_binary(types, rows, out).is_some() {
                message::write(b'c', out, |_| {});
                return;
            }
            out.truncate(start);
        }
        write_command(name, columns, if frozen { b" (FREEZE)" } else { b"" }, out);
        write_text(rows, out);
        message::write(b'c', out, |_| {});
    }
}

fn write_command(name: &[u8], columns: &[u8], format: &[u8], out: &mut Vec<u8>) {
    message::write(b'Q', out, |out| {
        for piece in [b"COPY ", name, b" (", columns, b") FROM STDIN", format, b"\0"] {
            out.extend_from_slice(piece);
        }
    });
}

/// Appends CopyData messages, each of whole rows, which `row` appends one by one. `None` as soon as it gives up.
fn write_pieces(
    rows: &Rows,
    first: &[u8],
    last: &[u8],
    out: &mut Vec<u8>,
    mut row: impl FnMut(&mut Vec<u8>) -> Option<()>,
) -> Option<()> {
    let (mut next, mut done) = (0, Some(()));
    loop {
        message::write(b'd', out, |out| {
            let full = out.len() + PIECE_BYTES;
            if next == 0 {
                out.extend_from_slice(first);
            }
            while done.is_some() && next < rows.len(0) && out.len() < full {
                done = row(out);
                next += 1;
            }
            if next == rows.len(0) {
                out.extend_from_slice(last);
            }
        });
        if done.is_none() || next >= rows.len(0) {
            return done;
        }
    }
}

/// Source: PostgreSQL manual, COPY, "Binary Format". `None`: a value is not one of its column's type.
fn write_binary(types: &[Type], rows: &Rows, out: &mut Vec<u8>) -> Option<()> {
    // Signature, flags, length of the header's extension; and the end.
    let (first, last) = (b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", (-1_i16).to_be_bytes());
    let width = (types.len() as u16).to_be_bytes();
    let mut cells = rows.cells_from(0, 0);
    write_pieces(rows, first, &last, out, |out| {
        out.extend_from_slice(&width);
        for (kind, cell) in types.iter().zip(cells.by_ref().take(types.len())) {
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            match (kind, cell) {
                (_, Cell::Null) => {
                    out[at..].copy_from_slice(&(-1_i32).to_be_bytes());
                    continue;
                }
                (Type::Int2, Cell::Int(value)) => out.extend_from_slice(&i16::try_from(value).ok()?.to_be_bytes()),
                (Type::Int4, Cell::Int(value)) => out.extend_from_slice(&i32::try_from(value).ok()?.to_be_bytes()),
                (Type::Int8, Cell::Int(value)) => out.extend_from_slice(&value.to_be_bytes()),
                (Type::Double, Cell::Double(value)) => out.extend_from_slice(&value.to_be_bytes()),
                (Type::Text, Cell::Text(text)) => out.extend_from_slice(text),
                (Type::Text, Cell::Int(value)) => write_decimal(value, out),
                (Type::Text, Cell::Double(value)) => write_postgres_double(value, out),
                _ => return None,
            }
            let length = i32::try_from(out.len() - at - 4).ok()?;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        Some(())
    })
}

/// Source: PostgreSQL manual, COPY, "Text Format".
fn write_text(rows: &Rows, out: &mut Vec<u8>) {
    if rows.len(0) == 0 {
        return;
    }
    let mut cells = rows.cells_from(0, 0);
    write_pieces(rows, b"", b"", out, |out| {
        for (column, cell) in cells.by_ref().take(rows.columns(0)).enumerate() {
            if column > 0 {
                out.push(b'\t');
            }
            write_field(cell, out);
        }
        out.push(b'\n');
        Some(())
    })
    .expect("text can hold every value");
}

fn write_field(cell: Cell<'_>, out: &mut Vec<u8>) {
    match cell {
        Cell::Null => out.extend_from_slice(b"\\N"),
        Cell::Int(value) => write_decimal(value, out),
        Cell::Double(value) => write_postgres_double(value, out),
        Cell::Text(text) => {
            let special = |&byte: &u8| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r');
            let mut rest = text;
            while let Some(at) = rest.iter().position(special) {
                out.extend_from_slice(&rest[..at]);
                out.push(b'\\');
                out.push(match rest[at] {
                    b'\t' => b't',
                    b'\n' => b'n',
                    b'\r' => b'r',
                    other => other,
                });
                rest = &rest[at + 1..];
            }
            out.extend_from_slice(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(types: &[i32]) -> Tables {
        let mut tables = Tables(vec![LoadTable { name: b"t"[..].into(), columns: b"a"[..].into(), types: None }]);
        let mut body = (types.len() as u16).to_be_bytes().to_vec();
        types.iter().for_each(|oid| body.extend_from_slice(&oid.to_be_bytes()));
        tables.learn(Body(&body)).unwrap();
        tables
    }

    /// What is sent for one row of these cells.
    fn sent(types: &[i32], cells: &[Cell<'_>]) -> Vec<u8> {
        let mut rows = Rows::default();
        rows.begin_set(cells.len());
        for cell in cells {
            match *cell {
                Cell::Null => rows.push_null(),
                Cell::Int(value) => rows.push_int(value),
                Cell::Double(value) => rows.push_double(value),
                Cell::Text(text) => rows.push_text(text).unwrap(),
            }
        }
        let mut out = Vec::new();
        table(types).write_copy((b"t", b"a"), &rows, false, &mut out);
        out
    }

    #[test]
    fn values_of_their_columns_types_go_as_these_are_stored() {
        let cells = [
            Cell::Int(-2),
            Cell::Int(-2),
            Cell::Int(-2),
            Cell::Double(0.5),
            Cell::Text("ä\t".as_bytes()),
            Cell::Int(7),
            Cell::Double(0.5),
            Cell::Null,
        ];
        let sent = sent(&[21, 23, 20, 701, 25, 1042, 1043, 23], &cells);
        let command = b"Q\0\0\0\x2aCOPY t (a) FROM STDIN (FORMAT binary)\0";
        let header = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
        let row = [
            &b"\0\x08"[..],
            b"\0\0\0\x02\xff\xfe",
            b"\0\0\0\x04\xff\xff\xff\xfe",
            b"\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xfe",
            b"\0\0\0\x08\x3f\xe0\0\0\0\0\0\0",
            b"\0\0\0\x03\xc3\xa4\t",
            b"\0\0\0\x017",
            b"\0\0\0\x030.5",
            b"\xff\xff\xff\xff",
        ]
        .concat();
        let data = [&header[..], &row, b"\xff\xff"].concat();
        let length = (data.len() as u32 + 4).to_be_bytes();
        assert_eq!(sent, [&command[..], b"d", &length, &data, b"c\0\0\0\x04"].concat());
    }

    #[test]
    fn a_value_that_is_none_of_its_columns_type_makes_the_batch_text() {
        for (oid, cell) in [
            (21, Cell::Int(32_768)),
            (23, Cell::Int(1 << 31)),
            (23, Cell::Double(1.0)),
            (23, Cell::Text(b"1")),
            (701, Cell::Int(1)),
            (1700, Cell::Int(1)),
        ] {
            let sent = sent(&[oid], &[cell]);
            assert!(sent.starts_with(b"Q\0\0\0\x1aCOPY t (a) FROM STDIN\0d"), "{oid} {cell:?}: {sent:?}");
        }
    }

    /// What is sent for 3,000 rows of 99 characters: tags and bodies of the messages.
    fn sent_in_pieces(oid: i32) -> Vec<(u8, Vec<u8>)> {
        let mut rows = Rows::default();
        rows.begin_set(1);
        for _ in 0..3_000 {
            rows.push_text(&[b'x'; 99]).unwrap();
        }
        let mut out = Vec::new();
        table(&[oid]).write_copy((b"t", b"a"), &rows, false, &mut out);
        let (mut rest, mut pieces) = (out.as_slice(), Vec::new());
        while !rest.is_empty() {
            let (message, after) = rest.split_at(message::length(rest, message::LENGTH_MAX).unwrap().unwrap());
            pieces.push((message[0], message[5..].to_vec()));
            rest = after;
        }
        pieces
    }

    #[test]
    fn a_large_batch_is_cut_into_pieces_between_rows() {
        // No type that we send in binary.
        let pieces: Vec<(u8, usize)> = sent_in_pieces(1700).iter().map(|(tag, body)| (*tag, body.len())).collect();
        assert_eq!(pieces[0], (b'Q', 22));
        assert_eq!(
            pieces[1..],
            [(b'd', 65_600), (b'd', 65_600), (b'd', 65_600), (b'd', 65_600), (b'd', 37_600), (b'c', 0)]
        );
    }

    #[test]
    fn what_is_sent_in_many_pieces_has_one_beginning_and_one_end() {
        let pieces = sent_in_pieces(25);
        let data: Vec<&[u8]> = pieces.iter().filter(|(tag, _)| *tag == b'd').map(|(_, body)| &body[..]).collect();
        assert_eq!((data.len(), data.concat().len()), (5, 19 + 3_000 * (2 + 4 + 99) + 2));
        assert!(data[0].starts_with(b"PGCOPY") && data[4].ends_with(b"x\xff\xff"));
    }
}
