//! Where one statement of a text ends and the next begins.
//!
//! SQLite prepares one statement at a time; if the second statement of a text meets a lock, execution must resume
//! there, without running the first one twice. This is the rule of `sqlite3_complete`
//! (https://sqlite.org/c3ref/complete.html): a `;` ends a statement unless it is quoted, in a comment, or inside
//! `CREATE TRIGGER … END`. Nothing else about the text is checked.

/// Length of the first statement in `sql`, including its `;`; `sql.len()` if there is none.
pub(crate) fn statement_end(sql: &str) -> usize {
    let bytes = sql.as_bytes();
    let (mut words, mut trigger, mut ended_by) = (0, false, None);
    let mut created = false;
    let mut i = 0;
    while i < bytes.len() {
        let start = i;
        i = token_end(bytes, i);
        match &bytes[start..i] {
            b";" if !trigger || ended_by == Some(TriggerEnd::End) => return i,
            b";" => ended_by = Some(TriggerEnd::Semicolon),
            [b'-', b'-', ..] | [b'/', b'*', ..] => {}
            [first, ..] if first.is_ascii_whitespace() => {}
            token => {
                words += 1;
                let is = |word: &str| token.eq_ignore_ascii_case(word.as_bytes());
                match words {
                    1 => created = is("create"),
                    2 | 3 if created => trigger |= is("trigger"),
                    _ => {}
                }
                ended_by = (ended_by == Some(TriggerEnd::Semicolon) && is("end")).then_some(TriggerEnd::End);
            }
        }
    }
    bytes.len()
}

/// How far a trigger's closing `; END ;` has been seen.
#[derive(PartialEq)]
enum TriggerEnd {
    Semicolon,
    End,
}

/// End of the token that begins at `i < bytes.len()`: a quoted thing, a comment, a word, or a single byte.
fn token_end(bytes: &[u8], i: usize) -> usize {
    let after = |from: usize, pattern: &[u8]| {
        let found = bytes[from..].windows(pattern.len()).position(|window| window == pattern);
        found.map_or(bytes.len(), |at| from + at + pattern.len())
    };
    match bytes[i] {
        quote @ (b'\'' | b'"' | b'`') => after(i + 1, &[quote]),
        b'[' => after(i + 1, b"]"),
        b'-' if bytes[i..].starts_with(b"--") => after(i + 2, b"\n"),
        b'/' if bytes[i..].starts_with(b"/*") => after(i + 2, b"*/"),
        first if word_byte(first) => i + bytes[i..].iter().take_while(|byte| word_byte(**byte)).count(),
        _ => i + 1,
    }
}

fn word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sql: &str, expected: &[&str]) {
        let (mut rest, mut pieces) = (sql, Vec::new());
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(statement_end(rest));
            pieces.push(piece);
            rest = tail;
        }
        assert_eq!(pieces, expected);
    }

    #[test]
    fn statements_end_at_semicolons_outside_quotes_and_comments() {
        check("", &[]);
        check("SELECT 1", &["SELECT 1"]);
        check("BEGIN; COMMIT ;", &["BEGIN;", " COMMIT ;"]);
        check("SELECT ';', \"a;b\", `;`, [;] ; x", &["SELECT ';', \"a;b\", `;`, [;] ;", " x"]);
        check("SELECT 'it''s;' -- ; not here\n; y", &["SELECT 'it''s;' -- ; not here\n;", " y"]);
        check("/* ; */ SELECT 1 /* open ;", &["/* ; */ SELECT 1 /* open ;"]);
        check("SELECT 'ä;ö';;", &["SELECT 'ä;ö';", ";"]);
        check("SELECT 5-3;SELECT 6/2;", &["SELECT 5-3;", "SELECT 6/2;"]);
    }

    #[test]
    fn a_trigger_ends_after_its_end() {
        let trigger = "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN \
                       UPDATE b SET x = CASE WHEN 1 THEN 2 END; DELETE FROM c; END;";
        check(&format!("{trigger} SELECT 1;"), &[trigger, " SELECT 1;"]);
        check("CREATE TABLE trigger_log(x); SELECT 1", &["CREATE TABLE trigger_log(x);", " SELECT 1"]);
    }
}
