//! Tables as Parquet files (format 2.12.0, apache/parquet-format).
//!
//! The plainest form that every reader knows: columns without nesting, one data page per column and row group, values
//! as they are, compressed by zstd. A crate would bring ten others and more code than the rest of assay, to write what
//! follows; pandas, Polars and DuckDB check it.

use crate::findings::report::Report;
use crate::leb128;
use crate::output::data::{DataColumn, DataTable, DataValues};

/// The file of a table. Every part of the table is a row group.
pub fn parquet(report: &Report, table: DataTable) -> Vec<u8> {
    let mut file = ParquetFile { bytes: MAGIC.to_vec(), rows: 0, groups: Vec::new() };
    let mut schema = Vec::new();
    table.each_part(report, &mut |columns| {
        if schema.is_empty() {
            schema = elements(table.name(), &columns);
        }
        file.group(&columns);
    });
    let mut footer = Struct::new();
    footer.int32(1, 2);
    footer.list(2, schema);
    footer.int(3, file.rows);
    footer.list(4, file.groups);
    footer.text(6, concat!("assay version ", env!("CARGO_PKG_VERSION")));
    let footer = footer.finish();
    file.bytes.extend_from_slice(&footer);
    file.bytes.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    file.bytes.extend_from_slice(MAGIC);
    file.bytes
}

const MAGIC: &[u8] = b"PAR1";
const LEVEL: i32 = 3;

// Numbers of the format's enumerations.
const INT64: i64 = 2;
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;
const OPTIONAL: i64 = 1;
const DATA_PAGE: i64 = 0;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const ZSTD: i64 = 6;

struct ParquetFile {
    bytes: Vec<u8>,
    rows: i64,
    /// Their descriptions.
    groups: Vec<Vec<u8>>,
}

impl ParquetFile {
    fn group(&mut self, columns: &[DataColumn]) {
        let rows = columns.first().map_or(0, |column| column.values.len());
        if rows == 0 {
            return;
        }
        let from = self.bytes.len();
        let chunks: Vec<Vec<u8>> = columns.iter().map(|column| self.chunk(column, rows)).collect();
        let mut group = Struct::new();
        group.list(1, chunks);
        group.int(2, (self.bytes.len() - from) as i64);
        group.int(3, rows as i64);
        self.groups.push(group.finish());
        self.rows += rows as i64;
    }

    /// Writes a column of a row group, and returns its description.
    fn chunk(&mut self, column: &DataColumn, rows: usize) -> Vec<u8> {
        let (levels, values) = column.values.encoded();
        let mut page = (levels.len() as u32).to_le_bytes().to_vec();
        page.extend(levels);
        page.extend(values);
        let packed = zstd::encode_all(page.as_slice(), LEVEL).expect("memory can be written");
        let mut of_data = Struct::new();
        of_data.int32(1, rows as i64);
        of_data.int32(2, PLAIN);
        of_data.int32(3, RLE);
        of_data.int32(4, RLE);
        let mut header = Struct::new();
        header.int32(1, DATA_PAGE);
        header.int32(2, page.len() as i64);
        header.int32(3, packed.len() as i64);
        header.nested(5, of_data);
        let header = header.finish();
        let at = self.bytes.len() as i64;
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(&packed);
        let mut of_column = Struct::new();
        of_column.int32(1, column.values.physical());
        of_column.ints(2, &[PLAIN, RLE]);
        of_column.texts(3, &[&column.name]);
        of_column.int32(4, ZSTD);
        of_column.int(5, rows as i64);
        of_column.int(6, (header.len() + page.len()) as i64);
        of_column.int(7, (header.len() + packed.len()) as i64);
        of_column.int(9, at);
        let mut chunk = Struct::new();
        chunk.int(2, at);
        chunk.nested(3, of_column);
        chunk.finish()
    }
}

/// The root, then a description of each column.
fn elements(name: &str, columns: &[DataColumn]) -> Vec<Vec<u8>> {
    let mut root = Struct::new();
    root.text(4, name);
    root.int32(5, columns.len() as i64);
    let mut all = vec![root.finish()];
    all.extend(columns.iter().map(|column| {
        let mut element = Struct::new();
        element.int32(1, column.values.physical());
        element.int32(3, OPTIONAL);
        element.text(4, &column.name);
        // As older readers know the type, and newer ones.
        let mut logical = Struct::new();
        match column.values {
            DataValues::Text(_) => {
                element.int32(6, 0);
                logical.nested(1, Struct::new());
            }
            DataValues::Time(_) => {
                element.int32(6, 9);
                let (mut time, mut unit) = (Struct::new(), Struct::new());
                unit.nested(1, Struct::new());
                time.bool(1, true);
                time.nested(2, unit);
                logical.nested(8, time);
            }
            DataValues::Count(_) => {
                element.int32(6, 14);
                let mut integer = Struct::new();
                integer.byte(1, 64);
                integer.bool(2, false);
                logical.nested(10, integer);
            }
            DataValues::Number(_) => return element.finish(),
        }
        element.nested(10, logical);
        element.finish()
    }));
    all
}

impl DataValues {
    fn physical(&self) -> i64 {
        match self {
            DataValues::Text(_) => BYTE_ARRAY,
            DataValues::Count(_) | DataValues::Time(_) => INT64,
            DataValues::Number(_) => DOUBLE,
        }
    }

    /// Which values are there, and these.
    fn encoded(&self) -> (Vec<u8>, Vec<u8>) {
        match self {
            DataValues::Text(values) => encoded(values, |text, out| {
                out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }),
            DataValues::Count(values) => encoded(values, |value, out| out.extend_from_slice(&value.to_le_bytes())),
            DataValues::Number(values) => encoded(values, |value, out| out.extend_from_slice(&value.to_le_bytes())),
            DataValues::Time(values) => encoded(values, |value, out| out.extend_from_slice(&value.to_le_bytes())),
        }
    }
}

/// Levels as runs of equal ones: twice the length of the run, then its level.
fn encoded<V>(values: &[Option<V>], put: impl Fn(&V, &mut Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    let (mut levels, mut out) = (Vec::new(), Vec::new());
    for run in values.chunk_by(|one, next| one.is_some() == next.is_some()) {
        leb128::write((run.len() as u64) << 1, &mut levels);
        levels.push(u8::from(run[0].is_some()));
    }
    values.iter().flatten().for_each(|value| put(value, &mut out));
    (levels, out)
}

/// A struct of Thrift's compact protocol (apache/thrift, doc/specs/thrift-compact-protocol.md). Fields ascend.
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    fn new() -> Struct {
        Struct { bytes: Vec::new(), last: 0 }
    }

    /// 1 true, 2 false, 3 i8, 5 i32, 6 i64, 8 binary, 9 list, 12 struct.
    fn field(&mut self, id: u8, kind: u8) {
        self.bytes.push((id - self.last) << 4 | kind);
        self.last = id;
    }

    fn bool(&mut self, id: u8, value: bool) {
        self.field(id, if value { 1 } else { 2 });
    }

    fn byte(&mut self, id: u8, value: u8) {
        self.field(id, 3);
        self.bytes.push(value);
    }

    fn int32(&mut self, id: u8, value: i64) {
        self.field(id, 5);
        zigzag(value, &mut self.bytes);
    }

    fn int(&mut self, id: u8, value: i64) {
        self.field(id, 6);
        zigzag(value, &mut self.bytes);
    }

    fn text(&mut self, id: u8, value: &str) {
        self.field(id, 8);
        binary(value, &mut self.bytes);
    }

    fn nested(&mut self, id: u8, value: Struct) {
        self.field(id, 12);
        self.bytes.extend(value.finish());
    }

    fn list(&mut self, id: u8, values: Vec<Vec<u8>>) {
        self.list_of(id, 12, values.len());
        values.into_iter().for_each(|value| self.bytes.extend(value));
    }

    fn ints(&mut self, id: u8, values: &[i64]) {
        self.list_of(id, 5, values.len());
        values.iter().for_each(|value| zigzag(*value, &mut self.bytes));
    }

    fn texts(&mut self, id: u8, values: &[&str]) {
        self.list_of(id, 8, values.len());
        values.iter().for_each(|value| binary(value, &mut self.bytes));
    }

    fn list_of(&mut self, id: u8, kind: u8, length: usize) {
        self.field(id, 9);
        match u8::try_from(length) {
            Ok(length @ 0..15) => self.bytes.push(length << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                leb128::write(length as u64, &mut self.bytes);
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn binary(text: &str, out: &mut Vec<u8>) {
    leb128::write(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn zigzag(value: i64, out: &mut Vec<u8>) {
    leb128::write(((value << 1) ^ (value >> 63)).cast_unsigned(), out);
}
