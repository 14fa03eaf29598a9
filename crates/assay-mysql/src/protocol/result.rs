//! Result sets: columns, and rows of the text and the binary protocol.
//!
//! Rows go straight from the packet into `Rows`. Binary dates and times become the text that the text protocol
//! would have sent; binary integers and doubles stay numbers.
//! Source: MySQL internals, "Text Resultset", "Binary Protocol Resultset".

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use assay_seam::{Class, Rows, StatementError};

use super::packet::{Reader, violation};

/// What is needed of a column to decode a binary row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    kind: u8,
    flags: u16,
    /// Digits after the decimal point; 31 when not fixed.
    decimals: u8,
}

const UNSIGNED: u16 = 32;
const ENUM: u16 = 256;
const SET: u16 = 2048;

// Column types. Source: include/field_types.h
const DECIMAL: u8 = 0;
const TINY: u8 = 1;
const SHORT: u8 = 2;
const LONG: u8 = 3;
const FLOAT: u8 = 4;
pub(super) const DOUBLE: u8 = 5;
pub(super) const NULL: u8 = 6;
const TIMESTAMP: u8 = 7;
pub(super) const LONGLONG: u8 = 8;
const INT24: u8 = 9;
const DATE: u8 = 10;
const TIME: u8 = 11;
const DATETIME: u8 = 12;
const YEAR: u8 = 13;
const NEWDATE: u8 = 14;
const VARCHAR: u8 = 15;
const BIT: u8 = 16;
/// VECTOR, JSON, NEWDECIMAL, ENUM, SET, the BLOBs, VAR_STRING, STRING, GEOMETRY: all strings.
const STRINGS: std::ops::RangeInclusive<u8> = 242..=255;
pub(super) const BLOB: u8 = 252;
pub(super) const VAR_STRING: u8 = 253;
const GEOMETRY: u8 = 255;

impl Column {
    /// Reads a column definition: what decoding needs, and the column's name.
    pub(super) fn read(payload: &[u8]) -> Result<(Column, &[u8]), Box<StatementError>> {
        let read = || {
            let mut reader = Reader(payload);
            // Catalog, schema, table, original table.
            for _ in 0..4 {
                reader.lenenc_bytes()?;
            }
            let name = reader.lenenc_bytes()?;
            // Original name.
            reader.lenenc_bytes()?;
            let mut fixed = Reader(reader.lenenc_bytes()?);
            // Character set and length.
            fixed.bytes(6)?;
            Some((Column { kind: fixed.u8()?, flags: fixed.u16()?, decimals: fixed.u8()? }, name))
        };
        read().ok_or_else(|| violation("sent a column definition that is cut short"))
    }

    /// Whether a number loaded as text means the same as the number itself. Not for BIT (text is its bytes), YEAR (`0`
    /// is 0000, `'0'` is 2000), ENUM and SET (index or name), GEOMETRY.
    pub(super) fn reads_numbers_from_text(&self) -> bool {
        self.flags & (ENUM | SET) == 0 && !matches!(self.kind, BIT | YEAR | GEOMETRY)
    }
}

/// The columns of prepared statements' results, kept once for all connections whose statements have the same.
#[derive(Debug, Default)]
pub(super) struct KnownColumns(Mutex<Vec<Arc<Vec<Column>>>>);

impl KnownColumns {
    /// A workload has few results that differ; what a generated one has beyond that is not shared.
    const MAX: usize = 256;

    pub(super) fn shared(&self, columns: &[Column]) -> Arc<Vec<Column>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| ***known == *columns) {
            return Arc::clone(known);
        }
        let new = Arc::new(columns.to_vec());
        if all.len() < KnownColumns::MAX {
            all.push(Arc::clone(&new));
        }
        new
    }
}

/// Appends a row of the text protocol.
pub(super) fn read_text_row(payload: &[u8], columns: u32, rows: &mut Rows) -> Result<(), Box<StatementError>> {
    let mut reader = Reader(payload);
    for _ in 0..columns {
        if let [0xFB, rest @ ..] = reader.0 {
            reader.0 = rest;
            rows.push_null();
        } else {
            let text = reader.lenenc_bytes().ok_or_else(|| violation("sent a row that is cut short"))?;
            push_text(rows, text)?;
        }
    }
    finished(reader)
}

/// Appends a row of the binary protocol.
pub(super) fn read_binary_row(payload: &[u8], columns: &[Column], rows: &mut Rows) -> Result<(), Box<StatementError>> {
    let mut reader = Reader(payload);
    let header = reader.u8();
    let (Some(0), Some(nulls)) = (header, reader.bytes((columns.len() + 9) / 8)) else {
        return Err(violation("sent a row that is cut short"));
    };
    for (i, column) in columns.iter().enumerate() {
        if nulls[(i + 2) / 8] >> ((i + 2) % 8) & 1 == 1 {
            rows.push_null();
        } else {
            read_value(&mut reader, column, rows)?;
        }
    }
    finished(reader)
}

fn finished(reader: Reader<'_>) -> Result<(), Box<StatementError>> {
    if reader.0.is_empty() { Ok(()) } else { Err(violation("sent a row with too many bytes")) }
}

fn push_text(rows: &mut Rows, text: &[u8]) -> Result<(), Box<StatementError>> {
    rows.push_text(text).map_err(|_| Box::new(StatementError::client(Class::Limit, "the result is larger than 4 GiB")))
}

fn read_value(reader: &mut Reader<'_>, column: &Column, rows: &mut Rows) -> Result<(), Box<StatementError>> {
    let cut_short = || violation("sent a row that is cut short");
    let signed = column.flags & UNSIGNED == 0;
    let integer = match column.kind {
        TINY => reader.u8().map(|value| if signed { i64::from(value as i8) } else { value.into() }),
        SHORT | YEAR => reader.u16().map(|value| if signed { i64::from(value as i16) } else { value.into() }),
        LONG | INT24 => reader.u32().map(|value| if signed { i64::from(value as i32) } else { value.into() }),
        LONGLONG => {
            let value = reader.u64().ok_or_else(cut_short)?;
            if !signed && i64::try_from(value).is_err() {
                return push_formatted(rows, format_args!("{value}"));
            }
            Some(value as i64)
        }
        DOUBLE => {
            rows.push_double(reader.array().map(f64::from_le_bytes).ok_or_else(cut_short)?);
            return Ok(());
        }
        FLOAT => {
            let value = reader.array().map(f32::from_le_bytes).ok_or_else(cut_short)?;
            let plain = value == 0.0 || (1e-5..1e15).contains(&value.abs());
            return match plain {
                true => push_formatted(rows, format_args!("{value}")),
                false => push_formatted(rows, format_args!("{value:e}")),
            };
        }
        NULL => {
            rows.push_null();
            return Ok(());
        }
        DATE | NEWDATE | DATETIME | TIMESTAMP => return read_date(reader, column, rows),
        TIME => return read_time(reader, column, rows),
        kind if kind == DECIMAL || kind == VARCHAR || kind == BIT || STRINGS.contains(&kind) => {
            return push_text(rows, reader.lenenc_bytes().ok_or_else(cut_short)?);
        }
        kind => return Err(violation(&format!("sent a column of the unknown type {kind}"))),
    };
    rows.push_int(integer.ok_or_else(cut_short)?);
    Ok(())
}

/// Appends what fits into 64 bytes, without allocating.
fn push_formatted(rows: &mut Rows, text: std::fmt::Arguments<'_>) -> Result<(), Box<StatementError>> {
    let mut buffer = [0; 64];
    let mut rest = &mut buffer[..];
    rest.write_fmt(text).expect("numbers, dates and times are shorter");
    let used = 64 - rest.len();
    push_text(rows, &buffer[..used])
}

/// `YYYY-MM-DD` or `YYYY-MM-DD hh:mm:ss[.ffffff]`. Parts that are zero at the end are not sent.
fn read_date(reader: &mut Reader<'_>, column: &Column, rows: &mut Rows) -> Result<(), Box<StatementError>> {
    let (year, month, day, time) = read_parts(reader, [0, 4, 7, 11], |reader| {
        let date = if reader.0.is_empty() { (0, 0, 0) } else { (reader.u16()?, reader.u8()?, reader.u8()?) };
        Some((date.0, date.1, date.2, read_clock(reader)?))
    })?;
    if matches!(column.kind, DATE | NEWDATE) {
        return push_formatted(rows, format_args!("{year:04}-{month:02}-{day:02}"));
    }
    let ([hour, minute, second], micros) = time;
    let fraction = Fraction { micros, decimals: column.decimals };
    push_formatted(rows, format_args!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}"))
}

/// `[-]hh:mm:ss[.ffffff]`, with as many digits of hours as needed.
fn read_time(reader: &mut Reader<'_>, column: &Column, rows: &mut Rows) -> Result<(), Box<StatementError>> {
    let (negative, days, time) = read_parts(reader, [0, 8, 12, 12], |reader| {
        let (negative, days) = if reader.0.is_empty() { (0, 0) } else { (reader.u8()?, reader.u32()?) };
        Some((negative, days, read_clock(reader)?))
    })?;
    let ([hour, minute, second], micros) = time;
    let sign = if negative == 0 { "" } else { "-" };
    let hours = u64::from(days) * 24 + u64::from(hour);
    let fraction = Fraction { micros, decimals: column.decimals };
    push_formatted(rows, format_args!("{sign}{hours:02}:{minute:02}:{second:02}{fraction}"))
}

/// Reads a value preceded by its length, which must be one of `lengths`.
fn read_parts<T>(
    reader: &mut Reader<'_>,
    lengths: [u8; 4],
    read: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<T, Box<StatementError>> {
    let length = reader.u8().filter(|length| lengths.contains(length));
    let bytes = length.and_then(|length| reader.bytes(length.into()));
    bytes.and_then(|bytes| read(&mut Reader(bytes))).ok_or_else(|| violation("sent a date or time that is malformed"))
}

fn read_clock(reader: &mut Reader<'_>) -> Option<([u8; 3], u32)> {
    let clock = if reader.0.is_empty() { [0; 3] } else { reader.array()? };
    let micros = if reader.0.is_empty() { 0 } else { reader.u32()? };
    Some((clock, micros))
}

/// The digits after the seconds: as many as the column has; without a fixed number, all six or none.
struct Fraction {
    micros: u32,
    decimals: u8,
}

impl std::fmt::Display for Fraction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = match self.decimals {
            0 => return Ok(()),
            digits @ 1..=6 => u32::from(digits),
            _ if self.micros == 0 => return Ok(()),
            _ => 6,
        };
        write!(f, ".{:0width$}", self.micros % 1_000_000 / 10u32.pow(6 - digits), width = digits as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_seam::Cell;

    /// Decodes a row of one column and shows its cell.
    fn check(kind: u8, flags: u16, decimals: u8, value: &[u8], expected: &str) {
        let mut rows = Rows::default();
        rows.begin_set(1);
        let payload = [&[0, 0][..], value].concat();
        let found = match read_binary_row(&payload, &[Column { kind, flags, decimals }], &mut rows) {
            Err(error) => error.message,
            Ok(()) => match rows.cell(0, 0, 0).unwrap() {
                Cell::Text(text) => format!("text {}", String::from_utf8_lossy(text)),
                Cell::Int(value) => format!("int {value}"),
                Cell::Double(value) => format!("double {value}"),
                Cell::Null => "null".into(),
            },
        };
        assert_eq!(found, expected, "type {kind} value {value:?}");
    }

    #[test]
    fn binary_numbers_keep_their_sign_and_size() {
        check(TINY, 0, 0, &[0xFF], "int -1");
        check(TINY, UNSIGNED, 0, &[0xFF], "int 255");
        check(SHORT, 0, 0, &[0, 0x80], "int -32768");
        check(YEAR, UNSIGNED, 0, &[0xEA, 7], "int 2026");
        check(LONG, 0, 0, &[0xFE, 0xFF, 0xFF, 0xFF], "int -2");
        check(INT24, UNSIGNED, 0, &[0xFE, 0xFF, 0xFF, 0], "int 16777214");
        check(LONGLONG, 0, 0, &[0xFF; 8], "int -1");
        check(LONGLONG, UNSIGNED, 0, &[0xFF; 8], "text 18446744073709551615");
        check(LONGLONG, UNSIGNED, 0, &[1, 0, 0, 0, 0, 0, 0, 0], "int 1");
        check(DOUBLE, 0, 31, &0.1f64.to_le_bytes(), "double 0.1");
        check(FLOAT, 0, 31, &0.1f32.to_le_bytes(), "text 0.1");
        check(FLOAT, 0, 31, &3.4e38f32.to_le_bytes(), "text 3.4e38");
        check(FLOAT, 0, 31, &(-1e-30f32).to_le_bytes(), "text -1e-30");
        check(246, 0, 2, b"\x051.250", "text 1.250");
        check(NULL, 0, 0, b"", "null");
    }

    #[test]
    fn binary_dates_and_times_read_as_in_the_text_protocol() {
        check(DATE, 0, 0, &[4, 0xEA, 7, 11, 21], "text 2026-11-21");
        check(DATE, 0, 0, &[0], "text 0000-00-00");
        check(DATETIME, 0, 0, &[0], "text 0000-00-00 00:00:00");
        check(DATETIME, 0, 0, &[4, 0xEA, 7, 11, 21], "text 2026-11-21 00:00:00");
        check(DATETIME, 0, 3, &[4, 0xEA, 7, 11, 21], "text 2026-11-21 00:00:00.000");
        check(TIMESTAMP, 0, 0, &[7, 0xEA, 7, 1, 2, 3, 4, 5], "text 2026-01-02 03:04:05");
        check(TIMESTAMP, 0, 6, &[11, 0xEA, 7, 1, 2, 3, 4, 5, 7, 0, 0, 0], "text 2026-01-02 03:04:05.000007");
        check(DATETIME, 0, 2, &[11, 0xEA, 7, 1, 2, 3, 4, 5, 0x20, 0xA1, 7, 0], "text 2026-01-02 03:04:05.50");
        check(DATETIME, 0, 31, &[11, 0xEA, 7, 1, 2, 3, 4, 5, 0x20, 0xA1, 7, 0], "text 2026-01-02 03:04:05.500000");
        check(DATETIME, 0, 31, &[7, 0xEA, 7, 1, 2, 3, 4, 5], "text 2026-01-02 03:04:05");
        check(TIME, 0, 0, &[0], "text 00:00:00");
        check(TIME, 0, 1, &[0], "text 00:00:00.0");
        check(TIME, 0, 0, &[8, 1, 34, 0, 0, 0, 22, 59, 59], "text -838:59:59");
        check(TIME, 0, 6, &[12, 0, 0, 0, 0, 0, 1, 2, 3, 1, 0, 0, 0], "text 01:02:03.000001");
    }

    #[test]
    fn malformed_values_are_refused() {
        let date = "the server broke the MySQL protocol: it sent a date or time that is malformed";
        check(DATE, 0, 0, &[5, 1, 2, 3, 4, 5], date);
        check(DATE, 0, 0, &[4, 1, 2], date);
        check(TIME, 0, 0, &[255], date);
        let short = "the server broke the MySQL protocol: it sent a row that is cut short";
        check(LONG, 0, 0, &[1, 2], short);
        check(VAR_STRING, 0, 0, &[0xFE, 255, 255, 255, 255, 255, 255, 255, 255], short);
        check(77, 0, 0, &[1], "the server broke the MySQL protocol: it sent a column of the unknown type 77");
        check(TINY, 0, 0, &[1, 2], "the server broke the MySQL protocol: it sent a row with too many bytes");
    }
}
