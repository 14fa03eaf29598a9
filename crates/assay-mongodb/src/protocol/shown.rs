//! Documents as text: MongoDB's extended JSON, relaxed form.
//!
//! What a server sends may be anything: text that is not UTF-8 is shown with replacement characters, and the depth is
//! limited.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::protocol::bson::{Bson, DEPTH_MAX, Document, Malformed};

/// Appends a document.
pub(super) fn document(document: Document<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
    within(document, true, 0, out)
}

/// Appends a value as it stands within a document.
pub(super) fn value(value: Bson<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
    nested(value, 0, out)
}

fn within(document: Document<'_>, has_names: bool, depth: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    if depth > DEPTH_MAX {
        return Err(Malformed);
    }
    out.push(if has_names { b'{' } else { b'[' });
    for (place, element) in document.elements().enumerate() {
        let (name, value) = element?;
        if place > 0 {
            out.push(b',');
        }
        if has_names {
            quoted(name, out);
            out.push(b':');
        }
        nested(value, depth, out)?;
    }
    out.push(if has_names { b'}' } else { b']' });
    Ok(())
}

fn nested(value: Bson<'_>, depth: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    match value {
        Bson::Document(inner) => return within(inner, true, depth + 1, out),
        Bson::Array(inner) => return within(inner, false, depth + 1, out),
        Bson::Double(value) if value.is_finite() => write(out, format_args!("{value:?}")),
        Bson::Double(value) => {
            let name = match value {
                _ if value.is_nan() => "NaN",
                _ if value > 0.0 => "Infinity",
                _ => "-Infinity",
            };
            write(out, format_args!("{{\"$numberDouble\":\"{name}\"}}"));
        }
        Bson::Text(text) => quoted(text, out),
        Bson::Binary { subtype, bytes } => {
            let text = STANDARD.encode(bytes);
            write(out, format_args!("{{\"$binary\":{{\"base64\":\"{text}\",\"subType\":\"{subtype:02x}\"}}}}"));
        }
        Bson::ObjectId(id) => {
            out.extend_from_slice(b"{\"$oid\":\"");
            hexadecimal(&id, out);
            out.extend_from_slice(b"\"}");
        }
        Bson::Bool(value) => write(out, format_args!("{value}")),
        Bson::Date(millis) => {
            out.extend_from_slice(b"{\"$date\":");
            if (0..=LAST_DATE).contains(&millis) {
                out.push(b'"');
                date(millis, out);
                out.extend_from_slice(b"\"}");
            } else {
                write(out, format_args!("{{\"$numberLong\":\"{millis}\"}}}}"));
            }
        }
        Bson::Null | Bson::Obsolete => out.extend_from_slice(b"null"),
        Bson::Regex { pattern, options } => {
            out.extend_from_slice(b"{\"$regularExpression\":{\"pattern\":");
            quoted(pattern, out);
            out.extend_from_slice(b",\"options\":");
            quoted(options, out);
            out.extend_from_slice(b"}}");
        }
        Bson::Code(text) => {
            out.extend_from_slice(b"{\"$code\":");
            quoted(text, out);
            out.push(b'}');
        }
        Bson::Int32(value) => write(out, format_args!("{value}")),
        Bson::Int64(value) => write(out, format_args!("{value}")),
        Bson::Timestamp(value) => {
            write(out, format_args!("{{\"$timestamp\":{{\"t\":{},\"i\":{}}}}}", value >> 32, value as u32));
        }
        Bson::Decimal(value) => {
            out.extend_from_slice(b"{\"$numberDecimal\":\"");
            decimal(value, out);
            out.extend_from_slice(b"\"}");
        }
        Bson::MinKey => out.extend_from_slice(b"{\"$minKey\":1}"),
        Bson::MaxKey => out.extend_from_slice(b"{\"$maxKey\":1}"),
    }
    Ok(())
}

/// The end of the year 9999, in milliseconds since 1970.
pub(super) const LAST_DATE: i64 = 253_402_300_799_999;

/// Appends a date of 1970 to 9999, such as `2026-01-31T10:00:00.000Z`.
pub(super) fn date(millis: i64, out: &mut Vec<u8>) {
    let since = Duration::from_millis(millis.clamp(0, LAST_DATE) as u64);
    write(out, format_args!("{}", humantime::format_rfc3339_millis(UNIX_EPOCH + since)));
}

/// Appends bytes as hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15].map(|half| DIGITS[usize::from(half)])));
}

/// Appends a decimal128: `-1.50`, `1E+6144`, `NaN`. Source: General Decimal Arithmetic, "to-scientific-string".
pub(super) fn decimal(bits: u128, out: &mut Vec<u8>) {
    if bits >> 127 != 0 {
        out.push(b'-');
    }
    // The exponent stands after the sign, or two bits later; then the coefficient would be too large, and counts as 0.
    let (exponent, coefficient) = match (bits >> 122) & 31 {
        31 => return out.extend_from_slice(b"NaN"),
        30 => return out.extend_from_slice(b"Infinity"),
        24..=29 => ((bits >> 111) & 0x3FFF, 0),
        _ => ((bits >> 113) & 0x3FFF, bits & ((1 << 113) - 1)),
    };
    const COEFFICIENT_MAX: u128 = 10_u128.pow(34) - 1;
    let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
    let exponent = exponent as i64 - 6176;
    let digits = coefficient.to_string();
    let adjusted = exponent + digits.len() as i64 - 1;
    if exponent > 0 || adjusted < -6 {
        out.push(digits.as_bytes()[0]);
        if digits.len() > 1 {
            write(out, format_args!(".{}", &digits[1..]));
        }
        write(out, format_args!("E{adjusted:+}"));
        return;
    }
    let fraction = (-exponent) as usize;
    match digits.len().checked_sub(fraction) {
        Some(whole) if fraction == 0 => write(out, format_args!("{}", &digits[..whole])),
        Some(whole @ 1..) => write(out, format_args!("{}.{}", &digits[..whole], &digits[whole..])),
        _ => write(out, format_args!("0.{}{digits}", "0".repeat(fraction - digits.len()))),
    }
}

fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a Vec cannot fail");
}

/// Appends a text in double quotes, escaped as JSON wants it.
pub(super) fn quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        for piece in chunk.valid().split_inclusive(|c: char| matches!(c, '"' | '\\' | '\0'..='\x1F')) {
            let last = piece.len() - 1;
            match piece.as_bytes()[last] {
                b'"' => write(out, format_args!("{}\\\"", &piece[..last])),
                b'\\' => write(out, format_args!("{}\\\\", &piece[..last])),
                b'\n' => write(out, format_args!("{}\\n", &piece[..last])),
                b'\t' => write(out, format_args!("{}\\t", &piece[..last])),
                byte @ 0..=0x1F => write(out, format_args!("{}\\u{byte:04x}", &piece[..last])),
                _ => out.extend_from_slice(piece.as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{FFFD}".as_bytes());
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bson: Bson<'_>, expected: &str) {
        let mut out = Vec::new();
        value(bson, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn values_are_shown_in_relaxed_extended_json() {
        check(Bson::Double(1.0), "1.0");
        check(Bson::Double(f64::NAN), r#"{"$numberDouble":"NaN"}"#);
        check(Bson::Text("a\"\\\n\u{1}é".as_bytes()), r#""a\"\\\n\u0001é""#);
        check(Bson::Text(b"a\xff"), "\"a\u{FFFD}\"");
        check(Bson::Binary { subtype: 4, bytes: &[1, 2] }, r#"{"$binary":{"base64":"AQI=","subType":"04"}}"#);
        check(Bson::ObjectId([0xAB; 12]), r#"{"$oid":"abababababababababababab"}"#);
        check(Bson::Date(1_500), r#"{"$date":"1970-01-01T00:00:01.500Z"}"#);
        check(Bson::Date(LAST_DATE), r#"{"$date":"9999-12-31T23:59:59.999Z"}"#);
        check(Bson::Date(-1), r#"{"$date":{"$numberLong":"-1"}}"#);
        check(Bson::Timestamp((7 << 32) | 9), r#"{"$timestamp":{"t":7,"i":9}}"#);
        check(Bson::Regex { pattern: b"^a", options: b"i" }, {
            r#"{"$regularExpression":{"pattern":"^a","options":"i"}}"#
        });
        check(Bson::MinKey, r#"{"$minKey":1}"#);
        check(Bson::Array(Document::EMPTY), "[]");
    }

    #[test]
    fn decimals_are_shown_as_numbers() {
        let check = |coefficient: u128, exponent: i64, expected: &str| {
            let mut out = Vec::new();
            decimal((((exponent + 6176) as u128) << 113) | coefficient, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(0, 0, "0");
        check(150, -2, "1.50");
        check(5, -3, "0.005");
        check(123, -3, "0.123");
        check(5, -7, "5E-7");
        check(123, 2, "1.23E+4");
        check(10_u128.pow(34) - 1, 6111, "9.999999999999999999999999999999999E+6144");
        let mut out = Vec::new();
        decimal(31 << 122, &mut out);
        decimal((1 << 127) | (30 << 122), &mut out);
        assert_eq!(out, b"NaN-Infinity");
    }
}
