//! Loading rows: the statements, and their order, which makes a batch atomic.
//!
//! A small batch is one INSERT, which is atomic. A large one is sent as the parameters of a prepared INSERT, many rows
//! in a packet (COM_STMT_BULK_EXECUTE), if the server is a MariaDB that supports it: it means the same as INSERTs, and
//! the server need not parse numbers and strings. Columns that are the same in all rows of the batch are literals in
//! the INSERT itself: six of ten columns of TPC-C's order lines. Columns without a single type are loaded, if files are
//! allowed, by LOAD DATA LOCAL INFILE, as on MySQL; the server reads a file faster than the text of an INSERT. For
//! 500,000 sbtest rows in batches of 5,000, MariaDB 10.11 needs 1.0–1.8 s of CPU with parameters; with a file 2.1 s
//! with latin1 columns, 2.9 s with utf8mb4. A whole `prepare` of four tables of 200,000 rows by two sessions on two
//! cores: 2.6 s instead of 3.2 s with latin1 columns (median of two), 2.3 s instead of 4.0 s with utf8mb4 (once).
//!
//! LOCAL turns errors of an INSERT (duplicate keys, values that do not fit) into warnings. So after any warning, or an
//! unexpected row count, the batch is undone and inserted instead, which yields the true error. Values whose text means
//! something other than the number (`Column::reads_numbers_from_text`) are not sent as a file. Bytes that are not UTF-8
//! are inserted from the start.
//!
//! A file of pure ASCII is declared as latin1: it is stored as the same characters, but the server need not find where
//! each one ends (the figures above; declared as utf8mb4, 3.3 s and 3.0 s). For the same reason a bulk of pure ASCII is
//! sent as latin1 to a table that stores latin1: four tables of 250,000 rows without indexes then need 2.3 s of CPU in
//! MariaDB 10.11 instead of 3.4 s (medians of three); for other character sets nothing changes.

use std::io::Write;

use assay_seam::{Cell, Rows, StatementError, write_decimal};
use assay_wire::placeholders::write_escaped;

use super::packet::{begin_packet, end_packet, write_lenenc};
use super::result::{DOUBLE, LONGLONG, NULL, VAR_STRING};

const COM_STMT_BULK_EXECUTE: u8 = 0xFA;
/// Undoes `Load::write_latin1`.
const SPEAK_AS_BEFORE: &[u8] = b"SET character_set_client=@assay_client,collation_connection=@assay_collation;";
const SEND_TYPES: u16 = 128;

/// Size at which an INSERT or a packet of a file ends, if the server accepts that much.
const PACKET_BYTES: usize = 1 << 20;
/// Size at which a bulk ends: a loader's batch is sent as one, if the server accepts that much.
const BULK_BYTES: usize = 4 << 20;
/// Size of an INSERT before the server's max_allowed_packet is known: a quarter of the smallest default.
pub(super) const UNASKED_BYTES: usize = 256 << 10;
/// Left free of the server's limit, for what it counts in addition to the text.
const PACKET_MARGIN: usize = 256;
/// Smaller batches are not worth the extra round trips of anything but an INSERT.
const LARGE_BYTES_MIN: usize = 64 << 10;
/// The file we allow the server to ask for.
pub(super) const FILE: &[u8] = b"assay";

/// A batch in progress. Its rows are a copy: the caller's are gone when the server asks for them.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) table: LoadTable,
    rows: Rows,
    /// The INSERT to prepare, if the rows may go in bulk.
    bulk: Option<Bulk>,
    /// Whether all its text is ASCII.
    ascii: bool,
    /// Rows before this one have been inserted. 0 <= next <= rows.len(0)
    next: usize,
    /// Most bytes of a packet with more than one row: the server's max_allowed_packet. `None`: it must be queried.
    packet_max: Option<usize>,
    /// Whether the transaction is ours; otherwise a savepoint in the caller's.
    own: bool,
    /// Whether the session uses latin1.
    latin1: bool,
    pub(super) step: LoadStep,
    /// The error of the batch, while it is being undone.
    pub(super) error: Option<Box<StatementError>>,
}

/// Where rows go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoadTable {
    pub(super) name: Box<[u8]>,
    pub(super) columns: Box<[u8]>,
}

/// An INSERT whose parameters are the columns that differ from row to row. The others are literals: the server need not
/// parse, store and convert them for each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bulk {
    pub(super) text: Box<[u8]>,
    /// Each column's type as a parameter; `None` for a literal.
    kinds: Box<[Option<u8>]>,
}

/// The statement of a load whose answer comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadStep {
    /// An empty SELECT, to learn the columns' types.
    Probe,
    /// The transaction or savepoint is opened.
    Begin(Way),
    /// The INSERT to be executed in bulk is prepared.
    Prepare,
    /// LOAD DATA.
    Infile,
    /// COM_STMT_BULK_EXECUTE of this statement.
    Bulk(u32),
    /// LOAD DATA or the bulk is undone; INSERTs follow.
    Undo,
    /// INSERT.
    Insert,
    /// The end.
    Commit,
    /// The end, after an error.
    Abort,
}

/// How the rows are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By LOAD DATA.
    Infile,
    /// As parameters of a prepared INSERT.
    Bulk,
    /// As the text of INSERTs.
    Insert,
}

impl Load {
    /// `bulk`: how the rows are sent in bulk, if they are. `own`: no transaction is open.
    pub(super) fn new(table: LoadTable, rows: &Rows, bulk: Option<Bulk>, own: bool, packet_max: Option<usize>) -> Load {
        Load {
            packet_max,
            ascii: rows.is_ascii() && table.name.is_ascii() && table.columns.is_ascii(),
            table,
            rows: rows.clone(),
            bulk,
            next: 0,
            own,
            latin1: false,
            step: LoadStep::Probe,
            error: None,
        }
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len(0)
    }

    /// The number of columns.
    pub(super) fn width(&self) -> usize {
        self.rows.columns(0)
    }

    /// The INSERT to prepare.
    ///
    /// # Panics
    /// If the rows are not sent in bulk.
    pub(super) fn bulk(&self) -> &Bulk {
        self.bulk.as_ref().expect("rows go in bulk with a statement for it")
    }

    /// Some rows are still to be inserted.
    pub(super) fn unfinished(&self) -> bool {
        self.next < self.len()
    }

    /// All rows are in flight.
    pub(super) fn is_sent(&self) -> bool {
        matches!(self.step, LoadStep::Bulk(_)) && !self.unfinished()
    }

    /// The answer to the beginning: the server's max_allowed_packet, or nothing. Returns the limit from now on.
    pub(super) fn learn_packet_max(&mut self, rows: Option<&Rows>) -> Option<usize> {
        let first = |rows: &Rows| match (0..rows.sets()).find_map(|set| rows.cell(set, 0, 0))? {
            Cell::Int(value) => usize::try_from(value).ok(),
            Cell::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        };
        let asked = || rows.and_then(first).map_or(usize::MAX, |max| max.saturating_sub(PACKET_MARGIN));
        Some(*self.packet_max.get_or_insert_with(asked))
    }

    /// The server does not report its limit. False: it was not asked.
    pub(super) fn ask_no_more(&mut self) -> bool {
        self.packet_max.replace(usize::MAX).is_none()
    }

    /// All rows are still to be inserted.
    pub(super) fn restart(&mut self) {
        self.next = 0;
    }

    /// Appends the payload of an execution of the prepared statement with rows from `self.next` on, about `BULK_BYTES`.
    /// Source: MariaDB knowledge base, "COM_STMT_BULK_EXECUTE".
    pub(super) fn write_bulk(&mut self, statement: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(COM_STMT_BULK_EXECUTE);
        out.extend_from_slice(&statement.to_le_bytes());
        out.extend_from_slice(&SEND_TYPES.to_le_bytes());
        let kinds = &self.bulk.as_ref().expect("rows go in bulk with a statement for it").kinds;
        for kind in kinds.iter().flatten() {
            out.extend_from_slice(&[*kind, 0]);
        }
        let mut cells = self.rows.cells_from(0, self.next);
        let (first, packet_max) = (self.next, self.packet_max.unwrap_or(usize::MAX));
        while self.next < self.rows.len(0) && out.len() - start < BULK_BYTES {
            let before = out.len();
            for (kind, cell) in kinds.iter().zip(cells.by_ref()) {
                if kind.is_none() {
                    continue;
                }
                // The first byte says whether a value follows.
                match cell {
                    Cell::Null => out.push(1),
                    Cell::Int(value) => {
                        out.push(0);
                        out.extend_from_slice(&value.to_le_bytes());
                    }
                    Cell::Double(value) => {
                        out.push(0);
                        out.extend_from_slice(&value.to_le_bytes());
                    }
                    Cell::Text(text) => {
                        out.push(0);
                        write_lenenc(text.len(), out);
                        out.extend_from_slice(text);
                    }
                }
            }
            if out.len() - start > packet_max && self.next > first {
                out.truncate(before);
                break;
            }
            self.next += 1;
        }
    }

    /// Appends the text of the statement of `self.step`.
    pub(super) fn write_statement(&mut self, backslash_escapes: bool, out: &mut Vec<u8>) {
        match self.step {
            LoadStep::Begin(Way::Bulk) => self.latin1 = self.ascii && self.write_latin1(out),
            LoadStep::Undo | LoadStep::Commit | LoadStep::Abort if std::mem::take(&mut self.latin1) => {
                out.extend_from_slice(SPEAK_AS_BEFORE);
            }
            _ => {}
        }
        if matches!(self.step, LoadStep::Begin(_)) && self.packet_max.is_none() {
            out.extend_from_slice(b"SELECT @@max_allowed_packet;");
        }
        let LoadTable { name, columns } = &self.table;
        let pieces: &[&[u8]] = match (self.step, self.own) {
            (LoadStep::Probe, _) => &[b"SELECT ", columns, b" FROM ", name, b" LIMIT 0"],
            (LoadStep::Begin(_), true) => &[b"START TRANSACTION"],
            (LoadStep::Begin(_), false) => &[b"SAVEPOINT assay_load"],
            // Numbers for characters: the meaning of a backslash in quotes depends on sql_mode.
            (LoadStep::Infile, _) => &[
                b"LOAD DATA LOCAL INFILE '",
                FILE,
                b"' INTO TABLE ",
                name,
                b" CHARACTER SET ",
                if self.ascii { b"latin1" } else { b"utf8mb4" },
                b" FIELDS TERMINATED BY 0x09 ESCAPED BY 0x5C LINES TERMINATED BY 0x0A (",
                columns,
                b")",
            ],
            (LoadStep::Undo | LoadStep::Abort, true) => &[b"ROLLBACK"],
            (LoadStep::Undo | LoadStep::Abort, false) => &[b"ROLLBACK TO SAVEPOINT assay_load"],
            (LoadStep::Commit, true) => &[b"COMMIT"],
            (LoadStep::Commit, false) => &[b"RELEASE SAVEPOINT assay_load"],
            (LoadStep::Prepare, _) => &[&self.bulk().text],
            (LoadStep::Bulk(_), _) => unreachable!("a bulk has no text"),
            (LoadStep::Insert, _) => {
                let most = self.packet_max.unwrap_or(usize::MAX);
                self.next = write_insert(name, columns, (&self.rows, self.next), backslash_escapes, most, out);
                return;
            }
        };
        pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    }

    /// Before a bulk of ASCII: all text is latin1 from the start, if the longest varying column stores latin1, and
    /// needs no conversion. False: there is no such text.
    fn write_latin1(&self, out: &mut Vec<u8>) -> bool {
        let texts = self.bulk().kinds.iter().zip(self.rows.cells_from(0, 0)).enumerate().filter_map(|it| match it {
            (column, (Some(_), Cell::Text(text))) => Some((text.len(), column)),
            _ => None,
        });
        let Some(column) = texts.max().and_then(|(_, at)| self.table.columns.split(|byte| *byte == b',').nth(at))
        else {
            return false;
        };
        for piece in [
            &b"SET @assay_client=@@character_set_client,@assay_collation=@@collation_connection,\
               collation_connection=IF(COLLATION((SELECT "[..],
            column,
            b" FROM ",
            &self.table.name,
            b" LIMIT 0))LIKE'latin1%','latin1_bin',@@collation_connection);",
            b"SET character_set_client=IF(@@collation_connection='latin1_bin','latin1',@@character_set_client);",
        ] {
            out.extend_from_slice(piece);
        }
        true
    }

    /// A user who may insert may not be allowed to query: without `write_latin1`, then. False: it was without.
    pub(super) fn speak_as_ever(&mut self) -> bool {
        self.ascii = false;
        std::mem::take(&mut self.latin1)
    }

    /// Appends the file as packets, and the empty packet that ends it.
    pub(super) fn write_file(&self, out: &mut Vec<u8>, sequence: &mut u8) {
        let mut cells = self.rows.cells_from(0, 0);
        // Packets of a file may end anywhere: half the limit leaves room for one more row.
        let most = PACKET_BYTES.min(self.packet_max.unwrap_or(usize::MAX) / 2);
        let mut start = begin_packet(out);
        for _ in 0..self.len() {
            for (column, cell) in cells.by_ref().take(self.width()).enumerate() {
                if column > 0 {
                    out.push(b'\t');
                }
                write_field(cell, out);
            }
            out.push(b'\n');
            if out.len() - start >= most {
                end_packet(out, start, sequence);
                start = begin_packet(out);
            }
        }
        if out.len() > start + 4 {
            end_packet(out, start, sequence);
            start = begin_packet(out);
        }
        end_packet(out, start, sequence);
    }
}

impl Bulk {
    /// Of a large batch; `None` if a column has values of several types.
    pub(super) fn new(table: &LoadTable, rows: &Rows, backslash_escapes: bool) -> Option<Bulk> {
        let columns = rows.columns(0);
        let first: Vec<Cell<'_>> = rows.cells_from(0, 0).take(columns).collect();
        // Values that cannot be ASCII remain parameters, and so does one value of each row.
        let mut kinds: Vec<(u8, bool)> = first.iter().map(|cell| (NULL, is_ascii(*cell))).collect();
        let mut cells = rows.cells_from(0, 0);
        for _ in 0..rows.len(0) {
            for (((known, constant), first), cell) in kinds.iter_mut().zip(&first).zip(cells.by_ref()) {
                *constant = *constant && cell == *first;
                let kind = match cell {
                    Cell::Null => continue,
                    Cell::Int(_) => LONGLONG,
                    Cell::Double(_) => DOUBLE,
                    Cell::Text(_) => VAR_STRING,
                };
                if *known != kind && std::mem::replace(known, kind) != NULL {
                    return None;
                }
            }
        }
        if kinds.iter().all(|(_, constant)| *constant) {
            kinds.iter_mut().take(1).for_each(|(_, constant)| *constant = false);
        }
        let mut text = Vec::new();
        for piece in [&b"INSERT INTO "[..], &table.name, b"(", &table.columns, b") VALUES "] {
            text.extend_from_slice(piece);
        }
        for (column, ((_, constant), cell)) in kinds.iter().zip(&first).enumerate() {
            text.push(if column == 0 { b'(' } else { b',' });
            if *constant {
                write_literal(*cell, backslash_escapes, &mut text);
            } else {
                text.push(b'?');
            }
        }
        text.push(b')');
        let kind = |(kind, constant): (u8, bool)| (!constant).then_some(if kind == NULL { VAR_STRING } else { kind });
        Some(Bulk { text: text.into(), kinds: kinds.into_iter().map(kind).collect() })
    }

    /// The number of parameters.
    pub(super) fn parameters(&self) -> usize {
        self.kinds.iter().flatten().count()
    }
}

fn is_ascii(cell: Cell<'_>) -> bool {
    !matches!(cell, Cell::Text(text) if !text.is_ascii())
}

/// Whether the batch may be sent as a file: it is large, and all its text is UTF-8.
pub(super) fn suits_file(rows: &Rows) -> bool {
    let not_utf8 = |cell| matches!(cell, Cell::Text(text) if std::str::from_utf8(text).is_err());
    rows.size() >= LARGE_BYTES_MIN && (rows.is_ascii() || !rows.cells_from(0, 0).any(not_utf8))
}

/// A number in the batch that MySQL has no literal for.
pub(super) fn unwritable(rows: &Rows) -> Option<f64> {
    rows.doubles().find(|value| !value.is_finite())
}

/// Appends an INSERT of rows from the given one on, as many as make a statement of about `PACKET_BYTES`, and at most
/// `most` bytes if there are several. Returns the row after the last one.
pub(super) fn write_insert(
    table: &[u8],
    columns: &[u8],
    (rows, first): (&Rows, usize),
    backslash_escapes: bool,
    most: usize,
    out: &mut Vec<u8>,
) -> usize {
    let start = out.len();
    for piece in [&b"INSERT INTO "[..], table, b"(", columns, b") VALUES "] {
        out.extend_from_slice(piece);
    }
    for row in first..rows.len(0) {
        let before = out.len();
        out.push(if row == first { b'(' } else { b',' });
        if row > first {
            out.push(b'(');
        }
        for column in 0..rows.columns(0) {
            if column > 0 {
                out.push(b',');
            }
            write_literal(rows.cell(0, row, column).unwrap_or(Cell::Null), backslash_escapes, out);
        }
        out.push(b')');
        if out.len() - start > most && row > first {
            out.truncate(before);
            return row;
        }
        if out.len() - start >= PACKET_BYTES {
            return row + 1;
        }
    }
    rows.len(0)
}

/// Appends a cell as SQL. An exponent makes a number a double rather than a decimal.
fn write_literal(cell: Cell<'_>, backslash_escapes: bool, out: &mut Vec<u8>) {
    match cell {
        Cell::Null => out.extend_from_slice(b"NULL"),
        Cell::Int(value) => write_decimal(value, out),
        Cell::Double(value) => write!(out, "{value:e}").expect("writing to a Vec cannot fail"),
        Cell::Text(text) => {
            if std::str::from_utf8(text).is_err() {
                out.extend_from_slice(b"_binary");
            }
            out.push(b'\'');
            write_escaped(text, backslash_escapes, out);
            out.push(b'\'');
        }
    }
}

/// Appends a cell as a field of the file.
fn write_field(cell: Cell<'_>, out: &mut Vec<u8>) {
    match cell {
        Cell::Null => out.extend_from_slice(b"\\N"),
        Cell::Int(value) => write_decimal(value, out),
        Cell::Double(value) => write!(out, "{value:e}").expect("writing to a Vec cannot fail"),
        Cell::Text(text) => {
            let special = |byte: &u8| matches!(byte, b'\\' | b'\t' | b'\n' | 0);
            for piece in text.split_inclusive(special) {
                let (last, before) = piece.split_last().expect("pieces are never empty");
                let escape: &[u8] = match last {
                    b'\\' => b"\\\\",
                    b'\t' => b"\\t",
                    b'\n' => b"\\n",
                    0 => b"\\0",
                    _ => std::slice::from_ref(last),
                };
                out.extend_from_slice(before);
                out.extend_from_slice(escape);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Rows {
        let mut rows = Rows::default();
        rows.begin_set(2);
        for text in [&b"it's"[..], b"a\\b\tc\nd\0", b"\xff'"] {
            rows.push_int(-1);
            rows.push_text(text).unwrap();
        }
        rows.push_double(0.25);
        rows.push_null();
        rows
    }

    fn load(columns: &[u8], rows: &Rows) -> Load {
        let table = LoadTable { name: b"t"[..].into(), columns: columns.into() };
        let bulk = Bulk::new(&table, rows, true);
        Load::new(table, rows, bulk, true, Some(usize::MAX))
    }

    fn insert(backslash_escapes: bool) -> Vec<u8> {
        let mut out = Vec::new();
        assert_eq!(write_insert(b"`t`", b"a,b", (&sample(), 0), backslash_escapes, usize::MAX, &mut out), 4);
        out
    }

    #[test]
    fn inserts_quote_every_byte_that_needs_it() {
        assert_eq!(
            insert(true),
            b"INSERT INTO `t`(a,b) VALUES (-1,'it''s'),(-1,'a\\\\b\tc\nd\0'),(-1,_binary'\xff'''),(2.5e-1,NULL)"
        );
        assert_eq!(
            insert(false),
            b"INSERT INTO `t`(a,b) VALUES (-1,'it''s'),(-1,'a\\b\tc\nd\0'),(-1,_binary'\xff'''),(2.5e-1,NULL)"
        );
    }

    #[test]
    fn a_file_escapes_its_separators() {
        let load = load(b"a,b", &sample());
        let (mut out, mut sequence) = (Vec::new(), 2);
        load.write_file(&mut out, &mut sequence);
        let text = b"-1\tit's\n-1\ta\\\\b\\tc\\nd\\0\n-1\t\xff'\n2.5e-1\t\\N\n";
        assert_eq!(out, [&[text.len() as u8, 0, 0, 2][..], text, &[0, 0, 0, 3]].concat());
        assert_eq!(sequence, 4);
    }

    #[test]
    fn a_bulk_has_types_then_rows_of_values_and_nulls() {
        let mut rows = Rows::default();
        rows.begin_set(4);
        rows.push_int(-2);
        rows.push_text(b"it's").unwrap();
        rows.push_null();
        rows.push_double(0.5);
        rows.push_int(-3);
        rows.push_text(b"").unwrap();
        rows.push_text(b"y").unwrap();
        rows.push_null();
        let mut load = load(b"a,b,c,d", &rows);
        assert_eq!(
            (&*load.bulk().text, load.bulk().parameters()),
            (&b"INSERT INTO t(a,b,c,d) VALUES (?,?,?,?)"[..], 4)
        );
        let mut out = Vec::new();
        load.write_bulk(0x0102, &mut out);
        assert!(!load.unfinished());
        let head = [0xFA, 2, 1, 0, 0, 128, 0, LONGLONG, 0, VAR_STRING, 0, VAR_STRING, 0, DOUBLE, 0];
        let first = [&[0][..], &(-2_i64).to_le_bytes(), b"\0\x04it's", &[1, 0], &0.5_f64.to_le_bytes()].concat();
        let second = [&[0][..], &(-3_i64).to_le_bytes(), b"\0\0", b"\0\x01y", &[1]].concat();
        assert_eq!(out, [&head[..], &first, &second].concat());
    }

    #[test]
    fn what_is_the_same_in_all_rows_of_a_bulk_stands_in_its_statement() {
        let mut rows = Rows::default();
        rows.begin_set(6);
        for i in 0..2 {
            rows.push_int(7);
            rows.push_text(br"it's\").unwrap();
            rows.push_null();
            rows.push_double(0.5);
            rows.push_text("ä".as_bytes()).unwrap(); // not ASCII: whether it fits is for the server to say, row by row
            rows.push_int(i);
        }
        let mut wide = load(b"a,b,c,d,e,f", &rows);
        let text = br"INSERT INTO t(a,b,c,d,e,f) VALUES (7,'it''s\\',NULL,5e-1,?,?)";
        assert_eq!((&*wide.bulk().text, wide.bulk().parameters()), (&text[..], 2));
        let mut out = Vec::new();
        wide.write_bulk(1, &mut out);
        let row = |i: i64| [&b"\0\x02\xc3\xa4\0"[..], &i.to_le_bytes()].concat();
        assert_eq!(out[7..], [&[VAR_STRING, 0, LONGLONG, 0][..], &row(0), &row(1)].concat());

        // Something must be sent for each row.
        let mut rows = Rows::default();
        rows.begin_set(2);
        for _ in 0..4 {
            rows.push_int(7);
        }
        assert_eq!(&*load(b"a,b", &rows).bulk().text, b"INSERT INTO t(a,b) VALUES (?,7)");
    }

    #[test]
    fn a_column_of_numbers_and_text_does_not_go_in_bulk() {
        let mut rows = Rows::default();
        rows.begin_set(1);
        rows.push_text(b"x").unwrap();
        rows.push_null();
        assert!(load(b"a", &rows).bulk.is_some());
        rows.push_int(1);
        assert!(load(b"a", &rows).bulk.is_none());
    }

    #[test]
    fn only_a_file_of_ascii_is_called_latin1() {
        for (text, name) in [("it's", "latin1"), ("ä", "utf8mb4")] {
            let mut rows = Rows::default();
            rows.begin_set(2);
            rows.push_text(b"plain").unwrap();
            rows.push_text(text.as_bytes()).unwrap();
            let mut load = load(b"a,b", &rows);
            load.step = LoadStep::Infile;
            let mut out = Vec::new();
            load.write_statement(true, &mut out);
            let statement = String::from_utf8(out).unwrap();
            assert!(statement.contains(&format!("INTO TABLE t CHARACTER SET {name} FIELDS")), "{statement}");
        }
    }

    #[test]
    fn long_batches_become_several_statements_and_packets() {
        let mut rows = Rows::default();
        rows.begin_set(1);
        for _ in 0..3000 {
            rows.push_text(&[b'x'; 1000]).unwrap();
        }
        assert!(suits_file(&rows));
        let mut load = load(b"a", &rows);
        load.step = LoadStep::Insert;
        let mut statements = 0;
        while load.unfinished() {
            let mut out = Vec::new();
            load.write_statement(true, &mut out);
            assert!(out.len() < PACKET_BYTES + 2000);
            statements += 1;
        }
        assert_eq!(statements, 3);
        let (mut out, mut sequence) = (Vec::new(), 0);
        load.write_file(&mut out, &mut sequence);
        assert_eq!(sequence as usize, 3_003_000usize.div_ceil(PACKET_BYTES) + 1);
    }

    #[test]
    fn bytes_that_are_not_utf8_do_not_go_by_file() {
        let mut rows = Rows::default();
        rows.begin_set(1);
        rows.push_text(&[b'x'; LARGE_BYTES_MIN]).unwrap();
        assert!(suits_file(&rows));
        rows.push_text(b"\xff").unwrap();
        assert!(!suits_file(&rows));
        rows.push_double(f64::INFINITY);
        assert_eq!(unwritable(&rows), Some(f64::INFINITY));
    }
}
