//! Types of columns: how their values are stored in a block, and how they become cells and back.
//!
//! What a script cannot write as a number or a text (arrays, maps, tuples, states of aggregates) is not supported, and
//! neither are instants in another time zone than UTC: servers send seconds, and this driver has no rules of time
//! zones.

use std::io::Write;

use assay_seam::{Cell, Rows, StatementError, date_of};
use assay_seam::{Class, rows::TooLarge};

/// Type of the values in a column, without `Nullable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// Signed, of so many bytes.
    Int(u8),
    /// Unsigned, of so many bytes.
    UInt(u8),
    /// Of 4 or 8 bytes.
    Float(u8),
    /// Of any length.
    Text,
    /// Of exactly so many bytes.
    FixedText(u32),
    /// Days since 1970, of 2 or 4 bytes (`Date`, `Date32`).
    Date(u8),
    /// Seconds since 1970.
    Seconds,
    /// Units of 10^-digits seconds since 1970.
    Ticks {
        /// 0 ..= 9
        digits: u8,
    },
    /// An integer of so many bytes, which has to be divided by 10^scale.
    Decimal {
        /// 4, 8 or 16.
        width: u8,
        /// 0 ..= 38
        scale: u8,
    },
    /// A number of 1 or 2 bytes, for a name in the type's text.
    Enum(u8),
    /// NULL without a type.
    Nothing,
}

/// Largest length of a `FixedString` that we read.
const FIXED_MAX: u32 = 1 << 24;

/// The type with this name, and whether values may be NULL; `zone`: the server's time zone.
pub(super) fn parse(name: &[u8], zone: &str) -> Option<(Type, bool)> {
    let name = std::str::from_utf8(name).ok()?;
    match inner(name, "Nullable") {
        Some(inner) => Some((plain(inner, zone)?, true)),
        None => Some((plain(name, zone)?, false)),
    }
}

fn plain(name: &str, zone: &str) -> Option<Type> {
    let (word, arguments) = name.split_once('(').map_or((name, ""), |(word, rest)| (word, rest.trim_end_matches(')')));
    let numbers = || arguments.split(',').map(|text| text.trim().parse::<u32>().ok());
    let is_utc =
        |zone: &str| zone.trim().trim_matches('\'').is_empty() || UTC.contains(&zone.trim().trim_matches('\''));
    Some(match word {
        "Int8" | "Int16" | "Int32" | "Int64" => Type::Int(bytes_of(&word[3..])?),
        "UInt8" | "UInt16" | "UInt32" | "UInt64" => Type::UInt(bytes_of(&word[4..])?),
        "Bool" => Type::UInt(1),
        "Float32" => Type::Float(4),
        "Float64" => Type::Float(8),
        "String" => Type::Text,
        "FixedString" => Type::FixedText(numbers().next()?.filter(|length| (1..=FIXED_MAX).contains(length))?),
        "Date" => Type::Date(2),
        "Date32" => Type::Date(4),
        "DateTime" if is_utc(if arguments.is_empty() { zone } else { arguments }) => Type::Seconds,
        "DateTime64" => {
            let (digits, own) = arguments.split_once(',').unwrap_or((arguments, zone));
            let digits = digits.trim().parse().ok().filter(|digits| *digits <= 9)?;
            is_utc(own).then_some(Type::Ticks { digits })?
        }
        "Decimal" => {
            let [precision, scale] = [numbers().next()??, numbers().nth(1)??];
            let width = match precision {
                1..=9 => 4,
                10..=18 => 8,
                19..=38 => 16,
                _ => return None,
            };
            Type::Decimal { width, scale: u8::try_from(scale).ok().filter(|_| scale <= precision)? }
        }
        "Enum8" => Type::Enum(1),
        "Enum16" => Type::Enum(2),
        "Nothing" => Type::Nothing,
        _ => return None,
    })
}

/// Names of the time zone in which a day has no offset.
const UTC: [&str; 7] = ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Universal", "Zulu"];

fn bytes_of(bits: &str) -> Option<u8> {
    Some(bits.parse::<u8>().ok()? / 8)
}

fn inner<'a>(name: &'a str, word: &str) -> Option<&'a str> {
    name.strip_prefix(word)?.strip_prefix('(')?.strip_suffix(')')
}

impl Type {
    /// Bytes of a value; `None`: each has its own length.
    pub(super) fn width(self) -> Option<usize> {
        Some(match self {
            Type::Int(width) | Type::UInt(width) | Type::Float(width) | Type::Date(width) | Type::Enum(width) => {
                usize::from(width)
            }
            Type::Decimal { width, .. } => usize::from(width),
            Type::Seconds => 4,
            Type::Ticks { .. } => 8,
            Type::FixedText(length) => length as usize,
            Type::Nothing => 1,
            Type::Text => return None,
        })
    }

    /// Appends a value that was sent as `bytes`, exactly as many as it has. `name`: the type's text.
    pub(super) fn push(self, bytes: &[u8], name: &[u8], rows: &mut Rows) -> Result<(), TooLarge> {
        match self {
            Type::Int(_) => rows.push_int(signed(bytes) as i64),
            Type::UInt(_) => match i64::try_from(unsigned(bytes)) {
                Ok(number) => rows.push_int(number),
                Err(_) => return written(rows, |out| write!(out, "{}", unsigned(bytes))),
            },
            Type::Float(4) => rows.push_double(f64::from(f32::from_bits(unsigned(bytes) as u32))),
            Type::Float(_) => rows.push_double(f64::from_bits(unsigned(bytes) as u64)),
            Type::Text => return rows.push_text(bytes),
            // Shorter texts are filled up with zeros.
            Type::FixedText(_) => {
                let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                return rows.push_text(&bytes[..length]);
            }
            Type::Date(2) => return written(rows, |out| write_date(unsigned(bytes) as i64, out)),
            Type::Date(_) => return written(rows, |out| write_date(signed(bytes) as i64, out)),
            Type::Seconds => return written(rows, |out| write_instant(unsigned(bytes) as i64, out)),
            Type::Ticks { digits } => {
                let (ticks, unit) = (signed(bytes) as i64, 10i64.pow(u32::from(digits)));
                return written(rows, |out| {
                    write_instant(ticks.div_euclid(unit), out)?;
                    match digits {
                        0 => Ok(()),
                        digits => write!(out, ".{:0width$}", ticks.rem_euclid(unit), width = usize::from(digits)),
                    }
                });
            }
            Type::Decimal { scale: 0, .. } => return written(rows, |out| write!(out, "{}", signed(bytes))),
            Type::Decimal { scale, .. } => {
                let (number, scale) = (signed(bytes), usize::from(scale));
                let unit = 10u128.pow(scale as u32);
                let (whole, part) = (number.unsigned_abs() / unit, number.unsigned_abs() % unit);
                let sign = if number < 0 { "-" } else { "" };
                return written(rows, |out| write!(out, "{sign}{whole}.{part:0scale$}"));
            }
            Type::Enum(_) => {
                let number = signed(bytes) as i64;
                return match names(name).find(|(_, value)| *value == number) {
                    Some((name, _)) => rows.push_text(name),
                    None => written(rows, |out| write!(out, "{number}")),
                };
            }
            Type::Nothing => rows.push_null(),
        }
        Ok(())
    }

    /// Appends a cell as this type stores it; `None`: it cannot.
    pub(super) fn write(self, cell: Cell<'_>, name: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let text = match cell {
            Cell::Null => {
                out.resize(out.len() + self.width().unwrap_or(1), 0);
                return Some(());
            }
            Cell::Text(text) => Some(text),
            Cell::Int(_) | Cell::Double(_) => None,
        };
        let integer = || match cell {
            Cell::Int(number) => Some(i128::from(number)),
            Cell::Double(number) => (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i128),
            Cell::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            Cell::Null => None,
        };
        match self {
            Type::Int(width) => {
                let (number, bits) = (integer()?, 8 * u32::from(width));
                let most = (1i128 << (bits - 1)) - 1;
                (-most - 1..=most).contains(&number).then(|| put(number, width, out))
            }
            Type::UInt(width) => {
                let (number, bits) = (integer()?, 8 * u32::from(width));
                (0..1i128 << bits).contains(&number).then(|| put(number, width, out))
            }
            Type::Float(width) => {
                let number = match cell {
                    Cell::Int(number) => number as f64,
                    Cell::Double(number) => number,
                    _ => std::str::from_utf8(text?).ok()?.parse().ok()?,
                };
                match width {
                    4 => out.extend_from_slice(&(number as f32).to_le_bytes()),
                    _ => out.extend_from_slice(&number.to_le_bytes()),
                }
                Some(())
            }
            Type::Text => {
                match cell {
                    Cell::Int(number) => super::packet::write_string(number.to_string().as_bytes(), out),
                    Cell::Double(number) => super::packet::write_string(number.to_string().as_bytes(), out),
                    _ => super::packet::write_string(text?, out),
                }
                Some(())
            }
            Type::FixedText(length) => {
                let (text, length) = (text?, length as usize);
                (text.len() <= length).then(|| {
                    out.extend_from_slice(text);
                    out.resize(out.len() + length - text.len(), 0);
                })
            }
            Type::Date(width) => {
                let days = read_date(std::str::from_utf8(text?).ok()?)?;
                let is_in_range = width == 4 || (0..=i64::from(u16::MAX)).contains(&days);
                is_in_range.then(|| put(i128::from(days), width, out))
            }
            Type::Seconds => {
                let seconds = match text {
                    Some(text) => read_instant(std::str::from_utf8(text).ok()?)?,
                    None => i64::try_from(integer()?).ok()?,
                };
                u32::try_from(seconds).ok().map(|seconds| put(i128::from(seconds), 4, out))
            }
            Type::Decimal { width, scale } => {
                let written;
                let text = match cell {
                    Cell::Int(number) => {
                        written = number.to_string();
                        &written
                    }
                    Cell::Double(number) => {
                        written = format!("{number:.*}", usize::from(scale));
                        &written
                    }
                    _ => std::str::from_utf8(text?).ok()?,
                };
                let number = read_decimal(text, scale)?;
                let most = if width == 16 { i128::MAX } else { (1i128 << (8 * u32::from(width) - 1)) - 1 };
                (-most..=most).contains(&number).then(|| put(number, width, out))
            }
            Type::Enum(width) => {
                let text = text?;
                let (_, number) = names(name).find(|(known, _)| *known == text)?;
                put(i128::from(number), width, out);
                Some(())
            }
            Type::Ticks { .. } | Type::Nothing => None,
        }
    }
}

fn put(number: i128, width: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_le_bytes()[..usize::from(width)]);
}

fn unsigned(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

fn signed(bytes: &[u8]) -> i128 {
    let unused = 128 - 8 * bytes.len() as u32;
    (unsigned(bytes) << unused) as i128 >> unused
}

/// Text that is made in place.
fn written(rows: &mut Rows, write: impl FnOnce(&mut &mut [u8]) -> std::io::Result<()>) -> Result<(), TooLarge> {
    const MOST: usize = 64;
    rows.push_made(MOST, |space| {
        let mut rest = space;
        let length = rest.len();
        write(&mut rest).expect("numbers and instants are shorter");
        length - rest.len()
    })
}

fn write_instant(seconds: i64, out: &mut impl Write) -> std::io::Result<()> {
    write_date(seconds.div_euclid(86400), out)?;
    let second = seconds.rem_euclid(86400);
    write!(out, " {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

fn write_date(days: i64, out: &mut impl Write) -> std::io::Result<()> {
    let (year, month, day) = date_of(days);
    write!(out, "{year:04}-{month:02}-{day:02}")
}

/// The number of the day `1998-09-02`, counted from 1970. Source: Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
fn read_date(text: &str) -> Option<i64> {
    let mut parts = text.split('-').map(|part| part.parse::<u32>().ok().map(i64::from));
    let (Some(Some(year)), Some(Some(month)), Some(Some(day)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    Some(era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468)
}

fn read_instant(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let mut parts = time.split(':').map(|part| part.parse::<u32>().ok().map(i64::from));
    let (Some(Some(hour)), Some(Some(minute)), Some(Some(second)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    (hour < 24 && minute < 60 && second < 60).then_some(read_date(date)? * 86400 + hour * 3600 + minute * 60 + second)
}

/// `12.5` with a scale of 2 is 1250. Digits beyond the scale must be zeros.
fn read_decimal(text: &str, scale: u8) -> Option<i128> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let kept = part.len().min(usize::from(scale));
    let is_number = !whole.is_empty() && (whole.bytes().chain(part.bytes())).all(|byte| byte.is_ascii_digit());
    if !is_number || part[kept..].bytes().any(|byte| byte != b'0') {
        return None;
    }
    let mut number: i128 = 0;
    let zeros = std::iter::repeat_n(b'0', usize::from(scale) - kept);
    for digit in whole.bytes().chain(part[..kept].bytes()).chain(zeros) {
        number = number.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    Some(if is_negative { -number } else { number })
}

/// Names and numbers of `Enum8('a' = 1, 'b' = 2)`. Names with a quote or a backslash are returned as they are written.
fn names(name: &[u8]) -> impl Iterator<Item = (&[u8], i64)> {
    let mut rest = name.iter().position(|byte| *byte == b'\'').map_or(&b""[..], |quote| &name[quote..]);
    std::iter::from_fn(move || {
        let body = rest.strip_prefix(b"'")?;
        let mut end = 0;
        while *body.get(end)? != b'\'' {
            end += if body[end] == b'\\' { 2 } else { 1 };
        }
        let (name, after) = body.split_at(end);
        let next = after[1..].iter().position(|byte| *byte == b'\'').map_or(after.len(), |quote| quote + 1);
        let number = std::str::from_utf8(&after[1..next]).ok()?;
        rest = &after[next..];
        let number = number.trim_matches(|letter: char| !letter.is_ascii_digit() && letter != '-');
        Some((name, number.parse().ok()?))
    })
}

/// The error for a column that cannot be read.
pub(super) fn unsupported(column: &[u8], name: &[u8], zone: &str) -> Box<StatementError> {
    let [column, name] = [column, name].map(String::from_utf8_lossy);
    let of_zone = if name.contains("DateTime") {
        format!(", in the server's time zone {zone} if it names none")
    } else {
        String::new()
    };
    let mut error = StatementError::client(
        Class::Other,
        format!("column {column} has a type that is not supported: {name}{of_zone}"),
    );
    error.hint = Some(format!("select it as a text: toString({column})"));
    Box::new(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a cell as this type, and reads it back.
    fn back(name: &str, cell: Cell<'_>) -> Option<String> {
        let (kind, _) = parse(name.as_bytes(), "UTC").unwrap_or_else(|| panic!("{name}"));
        let mut out = Vec::new();
        kind.write(cell, name.as_bytes(), &mut out)?;
        let bytes = if kind == Type::Text { &out[1..] } else { &out[..] };
        let mut rows = Rows::default();
        rows.begin_set(1);
        kind.push(bytes, name.as_bytes(), &mut rows).unwrap();
        Some(match rows.cell(0, 0, 0)? {
            Cell::Null => "NULL".to_owned(),
            Cell::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
            Cell::Int(number) => number.to_string(),
            Cell::Double(number) => format!("{number:?}"),
        })
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        let text = |text: &'static str| Cell::Text(text.as_bytes());
        for (name, cell, expected) in [
            ("Int8", Cell::Int(-128), Some("-128")),
            ("Int8", Cell::Int(128), None),
            ("Int16", text("-7"), Some("-7")),
            ("Int32", Cell::Double(3.0), Some("3")),
            ("Int32", Cell::Double(3.5), None),
            ("Int64", Cell::Int(i64::MIN), Some("-9223372036854775808")),
            ("UInt8", Cell::Int(-1), None),
            ("UInt8", Cell::Int(255), Some("255")),
            ("UInt64", text("18446744073709551615"), Some("'18446744073709551615'")),
            ("Float32", Cell::Double(0.5), Some("0.5")),
            ("Float64", Cell::Int(2), Some("2.0")),
            ("Float64", text("x"), None),
            ("String", text("a'b"), Some("'a'b'")),
            ("String", Cell::Int(12), Some("'12'")),
            ("FixedString(3)", text("ab"), Some("'ab'")),
            ("FixedString(3)", text("abcd"), None),
            ("Date", text("1998-09-02"), Some("'1998-09-02'")),
            ("Date", text("2000-02-29"), Some("'2000-02-29'")),
            ("Date", text("1969-12-31"), None),
            ("Date", text("1998-9"), None),
            ("Date32", text("1900-03-01"), Some("'1900-03-01'")),
            ("DateTime", text("2024-12-31 23:59:58"), Some("'2024-12-31 23:59:58'")),
            ("DateTime('UTC')", Cell::Int(86400), Some("'1970-01-02 00:00:00'")),
            ("Decimal(9, 2)", text("-12.5"), Some("'-12.50'")),
            ("Decimal(9, 2)", text("0.001"), None),
            ("Decimal(18,2)", Cell::Double(0.07), Some("'0.07'")),
            ("Decimal(38, 0)", Cell::Int(7), Some("'7'")),
            ("Enum8('a' = 1, 'b\\'c' = -2)", text("b\\'c"), Some("'b\\'c'")),
            ("Enum16('a' = 300)", text("b"), None),
        ] {
            assert_eq!(back(name, cell).as_deref(), expected, "{name} {cell:?}");
        }
    }

    #[test]
    fn types_that_cannot_be_read_are_not_taken_for_others() {
        let utc = |name: &str| parse(name.as_bytes(), "UTC");
        assert_eq!(utc("Nullable(UInt16)"), Some((Type::UInt(2), true)));
        assert_eq!(utc("DateTime64(3)"), Some((Type::Ticks { digits: 3 }, false)));
        for name in [
            "Array(UInt8)",
            "Nullable(Array(UInt8))",
            "Map(String, String)",
            "Int128",
            "DateTime('Asia/Tokyo')",
            "DateTime64(3, 'Asia/Tokyo')",
            "Decimal(76, 2)",
            "Decimal(3, 4)",
            "FixedString(0)",
            "Tuple(Int8)",
            "",
        ] {
            assert_eq!(utc(name), None, "{name}");
        }
        assert_eq!(parse(b"DateTime", "Europe/Berlin"), None);
    }

    #[test]
    fn parts_of_seconds_have_their_digits() {
        let mut rows = Rows::default();
        rows.begin_set(1);
        Type::Ticks { digits: 3 }.push(&(-1i64).to_le_bytes(), b"", &mut rows).unwrap();
        assert_eq!(rows.cell(0, 0, 0), Some(Cell::Text(b"1969-12-31 23:59:59.999")));
    }
}
