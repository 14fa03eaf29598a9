//! Placeholders in a statement's text: finding and replacing them.
//!
//! Scripts write `?` for every database. A `Template` finds those outside quotes and comments once, when a statement is
//! prepared; later they become `$1`, `$2`, … or quoted values. SQL is parsed only as far as needed to skip quotes and
//! comments. Operators that contain a `?` (PostgreSQL's jsonb `?|`) count as placeholders: use the function instead
//! (`jsonb_exists_any`).

use std::io::Write;

use assay_seam::{Class, StatementError, Value, write_decimal};

/// Whose lexical rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `'…'`, `E'…'`, `"…"`, `$tag$…$tag$`, `--`, nested `/* */`. Source: PostgreSQL manual, 4.1.
    Postgres {
        /// `standard_conforming_strings`: a backslash in `'…'` is an ordinary character.
        standard_strings: bool,
    },
    /// `'…'`, `"…"`, `` `…` ``, `#`, `-- `, `/* */`; `/*! … */` is code. Source: MySQL manual, 9.1 and 9.7.
    MySql {
        /// False under `NO_BACKSLASH_ESCAPES`.
        backslash_escapes: bool,
    },
}

/// A statement's text and its placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    sql: Box<[u8]>,
    /// Offsets of `?` in `sql`, ascending.
    places: Box<[usize]>,
}

impl Template {
    /// Looks for the placeholders. Cost: one pass over `sql`.
    pub fn new(sql: &[u8], dialect: Dialect) -> Template {
        let mut places = Vec::new();
        let mut at = 0;
        while at < sql.len() {
            if sql[at] == b'?' {
                places.push(at);
            }
            at = after_token(sql, at, dialect);
        }
        Template { sql: sql.into(), places: places.into() }
    }

    /// The original text.
    pub fn sql(&self) -> &[u8] {
        &self.sql
    }

    /// The number of placeholders.
    pub fn placeholders(&self) -> usize {
        self.places.len()
    }

    /// Appends the text with `$1`, `$2`, … for its placeholders.
    pub fn write_numbered(&self, out: &mut Vec<u8>) {
        for (i, piece) in self.pieces().enumerate() {
            if i > 0 {
                out.push(b'$');
                write_decimal(i as i64, out);
            }
            out.extend_from_slice(piece);
        }
    }

    /// Appends the text with quoted `parameters` for its placeholders. Allocates nothing if `out` has room.
    ///
    /// Fails, leaving an incomplete text in `out`, if the numbers of parameters and placeholders differ, or a value has
    /// no literal (a NUL in PostgreSQL's text, MySQL's infinity).
    pub fn write_substituted(
        &self,
        parameters: &[Value<'_>],
        dialect: Dialect,
        out: &mut Vec<u8>,
    ) -> Result<(), StatementError> {
        if parameters.len() != self.places.len() {
            return Err(wrong_count(self.places.len(), parameters.len()));
        }
        for (i, piece) in self.pieces().enumerate() {
            if i > 0 {
                // A literal must not merge with its neighbors: `-?` with −1 would start a comment.
                if !matches!(out.last(), Some(b' ' | b'\t' | b'\n' | b'\r' | b'(' | b',' | b'=')) {
                    out.push(b' ');
                }
                write_literal(&parameters[i - 1], dialect, out)?;
                if !matches!(piece.first(), None | Some(b' ' | b'\t' | b'\n' | b'\r' | b')' | b',' | b';')) {
                    out.push(b' ');
                }
            }
            out.extend_from_slice(piece);
        }
        Ok(())
    }

    /// The text between the placeholders: always one piece more than there are placeholders.
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.places.iter().map(|place| place + 1));
        let ends = self.places.iter().copied().chain(std::iter::once(self.sql.len()));
        starts.zip(ends).map(|(start, end)| &self.sql[start..end])
    }
}

/// The error for a wrong number of parameters.
pub fn wrong_count(placeholders: usize, parameters: usize) -> StatementError {
    let message = format!("the statement has {placeholders} placeholders, {parameters} parameters were given");
    StatementError::client(Class::Syntax, message)
}

/// Appends a finite number in the shortest form that reads back as the same double: `1`, `0.1`, `1e300`. Allocates
/// nothing if `out` has room.
pub fn write_double(value: f64, out: &mut Vec<u8>) {
    let plain = value == 0.0 || (1e-5..1e16).contains(&value.abs());
    let done = if plain { write!(out, "{value}") } else { write!(out, "{value:e}") };
    done.expect("writing to a Vec cannot fail");
}

/// Appends a value as a literal of the dialect.
///
/// PostgreSQL gets every value quoted, including numbers: an untyped literal takes its type from its context, as a
/// parameter of a prepared statement does. MySQL gets bare numbers (it refuses `LIMIT '1'`), and doubles with an
/// exponent, because without one they would be decimals.
fn write_literal(value: &Value<'_>, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), StatementError> {
    match (*value, dialect) {
        (Value::Null, _) => out.extend_from_slice(b"NULL"),
        (Value::Int(value), Dialect::MySql { .. }) => write_decimal(value, out),
        (Value::Int(value), Dialect::Postgres { .. }) => {
            out.push(b'\'');
            write_decimal(value, out);
            out.push(b'\'');
        }
        (Value::Double(value), Dialect::MySql { .. }) => {
            if !value.is_finite() {
                return Err(StatementError::client(
                    Class::Other,
                    format!("there is no literal for the number {value}"),
                ));
            }
            write!(out, "{value:e}").expect("writing to a Vec cannot fail");
        }
        (Value::Double(value), Dialect::Postgres { .. }) => {
            out.push(b'\'');
            write_postgres_double(value, out);
            out.push(b'\'');
        }
        (Value::Bytes(bytes), Dialect::MySql { .. }) => {
            out.extend_from_slice(b"x'");
            write_hex(bytes, out);
            out.push(b'\'');
        }
        (Value::Bytes(bytes), Dialect::Postgres { .. }) => {
            // With a backslash, `E'…'` means the same whatever standard_conforming_strings says.
            out.extend_from_slice(b"E'\\");
            write_bytea(bytes, out);
            out.push(b'\'');
        }
        (Value::Text(text), Dialect::MySql { backslash_escapes }) => {
            out.push(b'\'');
            write_escaped(text, backslash_escapes, out);
            out.push(b'\'');
        }
        (Value::Text(text), Dialect::Postgres { .. }) => {
            if text.contains(&0) {
                let message = "a text parameter holds a NUL byte, which PostgreSQL cannot store";
                return Err(StatementError::client(Class::Other, message));
            }
            // `E'…'` means the same whatever standard_conforming_strings says.
            let backslash = text.contains(&b'\\');
            out.extend_from_slice(if backslash { b"E'" } else { b"'" });
            write_escaped(text, backslash, out);
            out.push(b'\'');
        }
    }
    Ok(())
}

/// Appends bytes as PostgreSQL's `bytea` reads them: `\x` and hexadecimal digits.
pub fn write_bytea(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\x");
    write_hex(bytes, out);
}

fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15].map(|half| DIGITS[usize::from(half)])));
}

/// Appends a double as PostgreSQL reads it, not-a-number and infinities included.
pub fn write_postgres_double(value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        write_double(value, out);
    } else if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
    }
}

/// Appends text with quotes doubled, and backslashes too if they are escapes.
pub fn write_escaped(text: &[u8], backslash: bool, out: &mut Vec<u8>) {
    out.reserve(text.len());
    for piece in text.split_inclusive(|&byte| byte == b'\'' || (backslash && byte == b'\\')) {
        out.extend_from_slice(piece);
        if let Some(&(last @ b'\'' | last @ b'\\')) = piece.last()
            && (last == b'\'' || backslash)
        {
            out.push(last);
        }
    }
}

/// Where the next token, quoted text or comment begins after the one at `at`; `at < result <= sql.len()`.
fn after_token(sql: &[u8], at: usize, dialect: Dialect) -> usize {
    let rest = &sql[at..];
    let next = rest.get(1).copied();
    let inside_word = at > 0 && is_word(sql[at - 1]);
    let length = match (rest[0], dialect) {
        (b'\'', Dialect::Postgres { standard_strings }) => quoted(rest, !standard_strings),
        (b'E' | b'e', Dialect::Postgres { .. }) if next == Some(b'\'') && !inside_word => 1 + quoted(&rest[1..], true),
        (b'"', Dialect::Postgres { .. }) => quoted(rest, false),
        (b'$', Dialect::Postgres { .. }) if !inside_word => dollar_quoted(rest),
        (b'\'' | b'"', Dialect::MySql { backslash_escapes }) => quoted(rest, backslash_escapes),
        (b'`', Dialect::MySql { .. }) => quoted(rest, false),
        (b'#', Dialect::MySql { .. }) => line(rest),
        (b'-', Dialect::Postgres { .. }) if next == Some(b'-') => line(rest),
        (b'-', Dialect::MySql { .. }) if next == Some(b'-') && rest.get(2).is_none_or(|&byte| byte <= b' ') => {
            line(rest)
        }
        (b'/', _) if next == Some(b'*') => comment(rest, dialect),
        _ => 1,
    };
    at + length
}

/// Length of the quoted text at the start of `text`, including the closing quote; a doubled quote does not close.
/// Unterminated text extends to the end.
fn quoted(text: &[u8], backslash: bool) -> usize {
    let quote = text[0];
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' if backslash => at += 2,
            byte if byte == quote && text.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// Length of `$tag$…$tag$` at the start of `text`; 1 if there is none.
fn dollar_quoted(text: &[u8]) -> usize {
    let tag = 1 + text[1..].iter().take_while(|&&byte| is_word(byte) && byte != b'$').count();
    if text.get(tag) != Some(&b'$') || text[1].is_ascii_digit() {
        return 1;
    }
    let (open, body) = text.split_at(tag + 1);
    body.windows(open.len()).position(|window| window == open).map_or(text.len(), |found| found + 2 * open.len())
}

/// Length of the comment at the start of `text` up to the end of its line.
fn line(text: &[u8]) -> usize {
    text.iter().position(|&byte| byte == b'\n').map_or(text.len(), |end| end + 1)
}

/// Length of the `/* … */` at the start of `text`. PostgreSQL's nest. Of MySQL's `/*! … */` and MariaDB's `/*M! … */`
/// only the opening counts: the rest is code (the version number is not checked).
fn comment(text: &[u8], dialect: Dialect) -> usize {
    let nests = matches!(dialect, Dialect::Postgres { .. });
    if !nests && (text.starts_with(b"/*!") || text.starts_with(b"/*M!")) {
        return 3;
    }
    let mut depth = 1;
    let mut at = 2;
    while at < text.len() {
        match &text[at..] {
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            [b'/', b'*', ..] if nests => (depth, at) = (depth + 1, at + 2),
            _ => at += 1,
        }
    }
    text.len()
}

/// A byte that may continue an identifier, in every dialect.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    const PG: Dialect = Dialect::Postgres { standard_strings: true };
    const MYSQL: Dialect = Dialect::MySql { backslash_escapes: true };

    fn numbered(sql: &str, dialect: Dialect) -> String {
        let mut out = Vec::new();
        Template::new(sql.as_bytes(), dialect).write_numbered(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn substituted(sql: &str, parameters: &[Value<'_>], dialect: Dialect) -> String {
        let mut out = Vec::new();
        Template::new(sql.as_bytes(), dialect).write_substituted(parameters, dialect, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn placeholders_are_numbered_outside_quotes_and_comments() {
        for (sql, expected) in [
            ("", ""),
            ("?", "$1"),
            ("SELECT ?, ?::int WHERE a=?", "SELECT $1, $2::int WHERE a=$3"),
            ("'?' ? 'it''s ?' ?", "'?' $1 'it''s ?' $2"),
            (r"'\' ? '?'", r"'\' $1 '?'"),
            (r"E'\' ? ' ? e'?\\' ?", r"E'\' ? ' $1 e'?\\' $2"),
            (r"type'\' ?", r"type'\' $1"),
            ("\"a?\" ? \"\"\"?\" ?", "\"a?\" $1 \"\"\"?\" $2"),
            ("$$ ? $$ ? $a$ ? $b$ ? $$ $a$ ?", "$$ ? $$ $1 $a$ ? $b$ ? $$ $a$ $2"),
            ("a$b$ ? $1 ? $9$ ? $9$", "a$b$ $1 $1 $2 $9$ $3 $9$"),
            ("? -- ?\n? --?", "$1 -- ?\n$2 --?"),
            ("/* ? /* ? */ ? */ ? / ? /* ?", "/* ? /* ? */ ? */ $1 / $2 /* ?"),
            ("? 'unterminated ?", "$1 'unterminated ?"),
            ("? $a$ unterminated ?", "$1 $a$ unterminated ?"),
            ("`?` # ?", "`$1` # $2"),
            ("?????????? ?", "$1$2$3$4$5$6$7$8$9$10 $11"),
        ] {
            assert_eq!(numbered(sql, PG), expected, "{sql}");
        }
        let old = Dialect::Postgres { standard_strings: false };
        assert_eq!(numbered(r"'\' ? ' ? '", old), r"'\' ? ' $1 '");
    }

    #[test]
    fn mysql_has_its_own_quotes_and_comments() {
        for (sql, expected) in [
            (r"'\' ?' ? '\\' ?", r"'\' ?' $1 '\\' $2"),
            (r#""\" ?" ? `a?\` ?"#, r#""\" ?" $1 `a?\` $2"#),
            ("? # ?\n? -- ?\n?--? --\n?", "$1 # ?\n$2 -- ?\n$3--$4 --\n$5"),
            ("/* /* ? */ ? /*! ? */ ? /*M!100100 ? */", "/* /* ? */ $1 /*! $2 */ $3 /*M!100100 $4 */"),
            ("$$ ? $$", "$$ $1 $$"),
        ] {
            assert_eq!(numbered(sql, MYSQL), expected, "{sql}");
        }
        assert_eq!(numbered(r"'\' ? '?'", Dialect::MySql { backslash_escapes: false }), r"'\' $1 '?'");
    }

    #[test]
    fn values_are_quoted_so_that_they_stay_values() {
        let values = [Value::Null, Value::Int(-7), Value::Double(0.5), Value::Text(b"it's a \\ \0".as_slice())];
        assert_eq!(
            substituted("f(?,?,?,?)", &values, MYSQL),
            "f(NULL,-7,5e-1,'it''s a \\\\ \0')",
            "backslashes double where they escape"
        );
        let plain = Dialect::MySql { backslash_escapes: false };
        assert_eq!(substituted("f(?,?,?,?)", &values, plain), "f(NULL,-7,5e-1,'it''s a \\ \0')");
        assert_eq!(
            substituted(
                "f(?,?,?,?,?)",
                &[values[0], values[1], values[2], Value::Text(b"it's"), Value::Text(b"\\'")],
                PG
            ),
            r"f(NULL,'-7','0.5','it''s',E'\\''')"
        );
        assert_eq!(substituted("1-?-?x?", &[Value::Int(-1), Value::Int(-2), Value::Int(3)], MYSQL), "1- -1 - -2 x 3");
        assert_eq!(substituted("?", &[Value::Bytes(b"\0'\xff")], PG), r" E'\\x0027ff'");
        assert_eq!(substituted("?", &[Value::Bytes(b"\0'\xff")], MYSQL), " x'0027ff'");
        assert_eq!(substituted("e?'?'", &[Value::Text(b"a")], PG), "e 'a' '?'");
        assert_eq!(substituted("?", &[Value::Double(f64::NEG_INFINITY)], PG), " '-Infinity'");
    }

    #[test]
    fn what_has_no_literal_is_refused() {
        let refuse = |parameters: &[Value<'_>], dialect| {
            let template = Template::new(b"?", dialect);
            template.write_substituted(parameters, dialect, &mut Vec::new()).unwrap_err().message
        };
        assert_eq!(refuse(&[], PG), "the statement has 1 placeholders, 0 parameters were given");
        assert_eq!(
            refuse(&[Value::Text(b"a\0")], PG),
            "a text parameter holds a NUL byte, which PostgreSQL cannot store"
        );
        assert_eq!(refuse(&[Value::Double(f64::NAN)], MYSQL), "there is no literal for the number NaN");
    }

    #[test]
    fn numbers_read_back_as_themselves() {
        for (value, expected) in
            [(5.0, "5"), (-0.0, "-0"), (0.1, "0.1"), (1e300, "1e300"), (-1.5e-7, "-1.5e-7"), (1e15, "1000000000000000")]
        {
            let mut out = Vec::new();
            write_double(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert_eq!(expected.parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
    }
}
