//! DuckDB's values as cells: how each type is stored in a vector, and its text.
//!
//! Numbers stay numbers; decimals, days and times become the text that DuckDB itself writes. Source: DuckDB's C API,
//! "Types" and "Vectors".

use std::io::Write as _;

use assay_seam::{Class, Rows, StatementError, date_of};

use crate::library::{Functions, Handle};

/// A column of a result.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    kind: Kind,
}

/// How its values are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Bool,
    /// Of this many bytes.
    Signed(u8),
    Unsigned(u8),
    Huge,
    Float,
    Double,
    Text,
    /// Digits after the point, and bytes.
    Decimal(u8, u8),
    /// Days since 1970.
    Date,
    /// Microseconds since midnight.
    Time,
    /// Units per second since 1970.
    Timestamp(i64),
    /// The same in microseconds, with its zone: UTC.
    TimestampTz,
    Uuid,
}

impl Column {
    /// `logical`: its type, which is destroyed.
    ///
    /// # Safety
    ///
    /// The type comes from these functions.
    pub(crate) unsafe fn new(
        functions: &Functions,
        mut logical: Handle,
        name: String,
    ) -> Result<Column, StatementError> {
        // SAFETY: the caller's.
        let (kind, id) = unsafe {
            let id = (functions.get_type_id)(logical);
            let kind = kind(id, || {
                let width = width((functions.decimal_internal_type)(logical));
                Some(Kind::Decimal((functions.decimal_scale)(logical), width?))
            });
            (functions.destroy_logical_type)(&mut logical);
            (kind, id)
        };
        let Some(kind) = kind else {
            return Err(StatementError {
                hint: Some(format!("write CAST({name} AS VARCHAR)")),
                ..StatementError::client(
                    Class::Other,
                    format!("column {name} has a type that is not read here (number {id} of duckdb_type)"),
                )
            });
        };
        Ok(Column { name, kind })
    }
}

/// Bytes of a signed integer with this number in `duckdb_type`.
fn width(id: i32) -> Option<u8> {
    Some(match id {
        2 => 1,
        3 => 2,
        4 => 4,
        5 => 8,
        16 => 16,
        _ => return None,
    })
}

/// Of `duckdb_type`.
fn kind(id: i32, decimal: impl FnOnce() -> Option<Kind>) -> Option<Kind> {
    Some(match id {
        1 => Kind::Bool,
        2..=5 => Kind::Signed(width(id)?),
        6 => Kind::Unsigned(1),
        7 => Kind::Unsigned(2),
        8 => Kind::Unsigned(4),
        9 => Kind::Unsigned(8),
        10 => Kind::Float,
        11 => Kind::Double,
        12 => Kind::Timestamp(1_000_000),
        13 => Kind::Date,
        14 => Kind::Time,
        16 => Kind::Huge,
        // VARCHAR and BLOB are stored alike.
        17 | 18 => Kind::Text,
        19 => decimal()?,
        20 => Kind::Timestamp(1),
        21 => Kind::Timestamp(1000),
        22 => Kind::Timestamp(1_000_000_000),
        27 => Kind::Uuid,
        31 => Kind::TimestampTz,
        // The type of a bare NULL.
        36 => Kind::Signed(4),
        _ => return None,
    })
}

/// The values of a column in some rows.
pub(crate) struct Values {
    kind: Kind,
    data: *const u8,
    validity: *const u64,
}

impl Values {
    /// # Safety
    ///
    /// The pointers are those of a vector of this column, which outlives what is returned.
    pub(crate) unsafe fn new(column: &Column, (data, validity): (*const u8, *const u64)) -> Values {
        Values { kind: column.kind, data, validity }
    }

    /// Appends the value of a row. `scratch`: for texts.
    ///
    /// # Safety
    ///
    /// The vector has such a row.
    pub(crate) unsafe fn push(&self, row: usize, scratch: &mut Vec<u8>, rows: &mut Rows) -> Result<(), StatementError> {
        // SAFETY: the caller's: the validity has a bit per row.
        let is_null = !self.validity.is_null() && unsafe { *self.validity.add(row / 64) } & (1 << (row % 64)) == 0;
        if is_null {
            rows.push_null();
            return Ok(());
        }
        scratch.clear();
        // SAFETY: the caller's: a value of this kind is there.
        let value = unsafe { self.read(row) };
        match value {
            Stored::Int(value) => match i64::try_from(value) {
                Ok(value) => {
                    rows.push_int(value);
                    return Ok(());
                }
                Err(_) => written(scratch, format_args!("{value}")),
            },
            Stored::Double(value) => {
                rows.push_double(value);
                return Ok(());
            }
            Stored::Bytes(bytes) => return rows.push_text(bytes).map_err(|_| too_large()),
            Stored::Decimal(value, scale) => write_decimal(value, scale, scratch),
            Stored::Word(word) => scratch.extend_from_slice(word.as_bytes()),
            Stored::Date(days) => write_date(days, scratch),
            Stored::Time(micros) => write_time(micros, 1_000_000, scratch),
            Stored::Timestamp(ticks, per_second, zone) => {
                let day = 86_400 * per_second;
                write_date(ticks.div_euclid(day), scratch);
                scratch.push(b' ');
                write_time(ticks.rem_euclid(day), per_second, scratch);
                scratch.extend_from_slice(zone.as_bytes());
            }
            Stored::Uuid(value) => {
                let hex = format!("{value:032x}");
                let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
                scratch.extend_from_slice(parts.join("-").as_bytes());
            }
        }
        rows.push_text(scratch).map_err(|_| too_large())
    }

    unsafe fn read(&self, row: usize) -> Stored<'_> {
        // SAFETY: the caller's; vectors are aligned for their type, and a text is stored in its 12 bytes or where they
        // point.
        unsafe {
            let int = |bytes: u8| match bytes {
                1 => i128::from(*self.data.cast::<i8>().add(row)),
                2 => i128::from(*self.data.cast::<i16>().add(row)),
                4 => i128::from(*self.data.cast::<i32>().add(row)),
                8 => i128::from(*self.data.cast::<i64>().add(row)),
                _ => {
                    let [low, high] = *self.data.cast::<[u64; 2]>().add(row);
                    (i128::from(high as i64) << 64) | i128::from(low)
                }
            };
            match self.kind {
                Kind::Bool => Stored::Word(if *self.data.add(row) == 0 { "false" } else { "true" }),
                Kind::Signed(bytes) => Stored::Int(int(bytes)),
                Kind::Unsigned(bytes) => Stored::Int(match bytes {
                    1 => i128::from(*self.data.add(row)),
                    2 => i128::from(*self.data.cast::<u16>().add(row)),
                    4 => i128::from(*self.data.cast::<u32>().add(row)),
                    _ => i128::from(*self.data.cast::<u64>().add(row)),
                }),
                Kind::Huge => Stored::Int(int(16)),
                Kind::Float => {
                    let value = *self.data.cast::<f32>().add(row);
                    // As it is written, not as it is stored: 0.1.
                    Stored::Double(value.to_string().parse().unwrap_or(f64::from(value)))
                }
                Kind::Double => Stored::Double(*self.data.cast::<f64>().add(row)),
                Kind::Text => {
                    let place = self.data.add(16 * row);
                    let len = *place.cast::<u32>() as usize;
                    let bytes = if len <= 12 { place.add(4) } else { *place.add(8).cast::<*const u8>() };
                    Stored::Bytes(std::slice::from_raw_parts(bytes, len))
                }
                Kind::Decimal(scale, bytes) => Stored::Decimal(int(bytes), scale),
                Kind::Date => match int(4) as i64 {
                    days if days == i64::from(i32::MAX) => Stored::Word("infinity"),
                    days if days == -i64::from(i32::MAX) => Stored::Word("-infinity"),
                    days => Stored::Date(days),
                },
                Kind::Time => Stored::Time(int(8) as i64),
                Kind::Timestamp(_) | Kind::TimestampTz => match int(8) as i64 {
                    i64::MAX => Stored::Word("infinity"),
                    ticks if ticks == -i64::MAX => Stored::Word("-infinity"),
                    ticks => match self.kind {
                        Kind::Timestamp(per_second) => Stored::Timestamp(ticks, per_second, ""),
                        _ => Stored::Timestamp(ticks, 1_000_000, "+00"),
                    },
                },
                // The first bit is stored inverted, so that they sort as signed integers.
                Kind::Uuid => Stored::Uuid(int(16) as u128 ^ (1 << 127)),
            }
        }
    }
}

/// A value of a vector.
enum Stored<'a> {
    Int(i128),
    Double(f64),
    Bytes(&'a [u8]),
    Word(&'static str),
    Decimal(i128, u8),
    Date(i64),
    Time(i64),
    Timestamp(i64, i64, &'static str),
    Uuid(u128),
}

fn too_large() -> StatementError {
    StatementError::client(Class::Limit, "the result is larger than 4 GiB")
}

fn written(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory succeeds");
}

fn write_decimal(value: i128, scale: u8, out: &mut Vec<u8>) {
    let (sign, digits) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
    if scale == 0 {
        return written(out, format_args!("{value}"));
    }
    let one = 10_u128.pow(scale.into());
    written(out, format_args!("{sign}{}.{:02$}", digits / one, digits % one, scale.into()));
}

fn write_date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = date_of(days);
    written(out, format_args!("{year:04}-{month:02}-{day:02}"));
}

/// `per_second`: a power of ten. Zeros at the end of a fraction are left out.
fn write_time(ticks: i64, per_second: i64, out: &mut Vec<u8>) {
    let (seconds, fraction) = (ticks / per_second, ticks % per_second);
    written(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    if fraction != 0 {
        let digits = per_second.ilog10() as usize;
        written(out, format_args!(".{fraction:0digits$}"));
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_have_all_their_digits() {
        for (value, scale, expected) in [
            (0, 2, "0.00"),
            (5, 2, "0.05"),
            (-5, 2, "-0.05"),
            (12_345, 2, "123.45"),
            (-7, 0, "-7"),
            (1, 18, "0.000000000000000001"),
        ] {
            assert_eq!(text(|out| write_decimal(value, scale, out)), expected);
        }
        assert_eq!(text(|out| write_decimal(i128::MIN, 38, out)).len(), "-1.".len() + 38);
    }

    #[test]
    fn times_leave_out_zeros_at_their_end() {
        assert_eq!(text(|out| write_time(0, 1_000_000, out)), "00:00:00");
        assert_eq!(text(|out| write_time(86_399_999_999, 1_000_000, out)), "23:59:59.999999");
        assert_eq!(text(|out| write_time(1_500_000, 1_000_000, out)), "00:00:01.5");
        assert_eq!(text(|out| write_time(1_050, 1_000, out)), "00:00:01.05");
    }
}
