//! The rows in the text of `INSERT INTO t VALUES (…), (…)`.
//!
//! ClickHouse's server does not read them: its clients do, and send a block. Literals are understood, expressions are
//! not. Over HTTP it does read them, and is strict about literals (no text for a number): there, only rows with
//! expressions are left to it.

use assay_seam::Rows;

/// Where the rows of a statement begin, after the word VALUES; `None`: not an INSERT, or one that inserts what it
/// selects.
pub(super) fn start(sql: &[u8]) -> Option<usize> {
    let mut scanner = Scanner { sql, at: 0 };
    if !scanner.next_word()?.eq_ignore_ascii_case(b"insert") {
        return None;
    }
    loop {
        let word = scanner.next_word()?;
        if word.eq_ignore_ascii_case(b"values") {
            return Some(scanner.at);
        }
        if [&b"select"[..], b"with", b"format"].iter().any(|other| word.eq_ignore_ascii_case(other)) {
            return None;
        }
    }
}

/// The table of an INSERT whose rows begin at `start`, and its columns, `*` if it names none; `None`: it is written in
/// a way that is not understood.
pub(super) fn table(sql: &[u8], start: usize) -> Option<(&[u8], &[u8])> {
    let mut scanner = Scanner { sql, at: 0 };
    let mut is_next = |word: &[u8]| scanner.next_word().is_some_and(|found| found.eq_ignore_ascii_case(word));
    if !is_next(b"insert") || !is_next(b"into") {
        return None;
    }
    let begin = scanner.at;
    let head = sql[begin..start - b"values".len()].trim_ascii();
    let mut quote = None;
    let open = head.iter().position(|byte| {
        match (quote, *byte) {
            (None, b'`' | b'"') => quote = Some(*byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
        quote.is_none() && *byte == b'('
    });
    let (table, columns) = match open {
        None => (head, &b"*"[..]),
        Some(open) => (head[..open].trim_ascii_end(), head[open + 1..].strip_suffix(b")")?),
    };
    // A single name, and not INTO TABLE or INTO FUNCTION.
    (!table.is_empty() && !table.iter().any(u8::is_ascii_whitespace)).then_some((table, columns))
}

/// Reads the rows from there on. The error fits after "the rows of an INSERT: ".
pub(super) fn read(sql: &[u8], start: usize) -> Result<Rows, String> {
    let mut scanner = Scanner { sql, at: start };
    let mut rows = Rows::default();
    let mut width = None;
    loop {
        scanner.skip_space();
        match scanner.peek() {
            None if width.is_some() => return Ok(rows),
            Some(b';') if width.is_some() => {
                scanner.at += 1;
                scanner.skip_space();
                return match scanner.peek() {
                    None => Ok(rows),
                    Some(_) => Err("another statement follows; ClickHouse takes one at a time".to_owned()),
                };
            }
            Some(b',') if width.is_some() => {
                scanner.at += 1;
                scanner.skip_space();
            }
            _ => {}
        }
        scanner.expect(b'(')?;
        let columns = scanner.row(&mut rows, width)?;
        if *width.get_or_insert(columns) != columns {
            return Err("they have different numbers of values".to_owned());
        }
    }
}

struct Scanner<'a> {
    sql: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.sql.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn expect(&mut self, wanted: u8) -> Result<(), String> {
        self.skip_space();
        match self.peek() {
            Some(byte) if byte == wanted => {
                self.at += 1;
                Ok(())
            }
            _ => Err(format!("`{}` expected at {}", wanted as char, self.near())),
        }
    }

    /// What comes next, for messages.
    fn near(&self) -> String {
        let rest = String::from_utf8_lossy(&self.sql[self.at.min(self.sql.len())..]);
        match rest.chars().take(20).collect::<String>() {
            text if text.is_empty() => "the end".to_owned(),
            text => format!("`{text}`"),
        }
    }

    /// The next word outside of parentheses, quotes and comments.
    fn next_word(&mut self) -> Option<&'a [u8]> {
        let mut depth = 0;
        loop {
            let byte = self.peek()?;
            match byte {
                b'(' => (depth, self.at) = (depth + 1, self.at + 1),
                b')' => (depth, self.at) = (depth - 1, self.at + 1),
                b'\'' | b'"' | b'`' => self.at = after_quoted(self.sql, self.at),
                b'-' if self.sql[self.at..].starts_with(b"--") => {
                    self.at += self.sql[self.at..].iter().position(|byte| *byte == b'\n')?;
                }
                b'/' if self.sql[self.at..].starts_with(b"/*") => {
                    self.at += 4 + self.sql[self.at + 2..].windows(2).position(|two| two == b"*/")?;
                }
                byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                    let length =
                        self.sql[self.at..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
                    let word = &self.sql[self.at..][..length.count()];
                    self.at += word.len();
                    if depth == 0 {
                        return Some(word);
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// The values of a row behind its `(`, and their number. `width`: as many as the rows before it.
    fn row(&mut self, rows: &mut Rows, width: Option<usize>) -> Result<usize, String> {
        let mut cells = Vec::new();
        loop {
            self.skip_space();
            cells.push(self.literal()?);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b')') => break,
                _ => {
                    return Err(format!(
                        "a number, a text or NULL expected, and not an expression, at {}",
                        self.near()
                    ));
                }
            }
        }
        self.at += 1;
        if width.is_none() {
            rows.begin_set(cells.len());
        }
        for cell in &cells {
            match cell {
                Some(text) => rows.push_text(text).map_err(|_| "they are larger than 4 GiB".to_owned())?,
                None => rows.push_null(),
            }
        }
        Ok(cells.len())
    }

    /// The text of a literal; `None`: NULL.
    fn literal(&mut self) -> Result<Option<Vec<u8>>, String> {
        if self.peek() == Some(b'\'') {
            let end = after_quoted(self.sql, self.at);
            let quoted = &self.sql[self.at..end];
            if quoted.len() < 2 || !quoted.ends_with(b"'") {
                return Err("a text is not closed".to_owned());
            }
            self.at = end;
            return Ok(Some(unquoted(&quoted[1..quoted.len() - 1])));
        }
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
        let word = &self.sql[self.at..][..self.sql[self.at..].iter().take_while(is_part).count()];
        let is_number = std::str::from_utf8(word).is_ok_and(|text| text.parse::<f64>().is_ok_and(f64::is_finite));
        let literal = match word {
            _ if is_number => Some(word.to_vec()),
            _ if word.eq_ignore_ascii_case(b"null") => None,
            _ if word.eq_ignore_ascii_case(b"true") => Some(b"1".to_vec()),
            _ if word.eq_ignore_ascii_case(b"false") => Some(b"0".to_vec()),
            _ => return Err(format!("a number, a text or NULL expected, and not an expression, at {}", self.near())),
        };
        self.at += word.len();
        Ok(literal)
    }
}

/// The place behind the quoted text at `at`. A doubled quote, or one behind a backslash, does not close it.
fn after_quoted(sql: &[u8], at: usize) -> usize {
    let quote = sql[at];
    let mut end = at + 1;
    while let Some(byte) = sql.get(end) {
        match byte {
            b'\\' => end += 2,
            byte if *byte == quote && sql.get(end + 1) == Some(&quote) => end += 2,
            byte if *byte == quote => return end + 1,
            _ => end += 1,
        }
    }
    sql.len()
}

/// Source: ClickHouse's documentation, "Syntax", "String".
fn unquoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => out.extend(rest.next().map(|escaped| match escaped {
                b'b' => 8,
                b'f' => 12,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'0' => 0,
                b'a' => 7,
                b'v' => 11,
                other => other,
            })),
            b'\'' => {
                // The second of two.
                rest.next();
                out.push(b'\'');
            }
            byte => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use assay_seam::Cell;

    use super::*;

    fn shown(sql: &str) -> Result<String, String> {
        let rows = read(sql.as_bytes(), start(sql.as_bytes()).expect("it has rows"))?;
        let cell = |cell| match cell {
            Cell::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => format!("{other:?}"),
        };
        let row = |row| (0..rows.columns(0)).map(|column| cell(rows.cell(0, row, column).unwrap())).collect::<Vec<_>>();
        Ok((0..rows.len(0)).map(|at| row(at).join("|")).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn rows_of_literals_are_read() {
        for (sql, expected) in [
            ("INSERT INTO t VALUES (1, 'a')", "1|a"),
            (
                "insert into `values` (a, \"select\") values(-1.5e3,NULL),\n ( 'it''s', 'a\\'\\n\\\\' ) ; ",
                "-1.5e3|Null\nit's|a'\n\\",
            ),
            ("INSERT INTO t /* select */ VALUES (true)(false)", "1\n0"),
            ("INSERT INTO t -- select\n VALUES ('');", ""),
        ] {
            assert_eq!(shown(sql).as_deref(), Ok(expected), "{sql}");
        }
    }

    #[test]
    fn expressions_are_refused() {
        for (sql, expected) in [
            ("INSERT INTO t VALUES (now())", "a number, a text or NULL expected, and not an expression, at `now())`"),
            ("INSERT INTO t VALUES (1 + 2)", "a number, a text or NULL expected, and not an expression, at `+ 2)`"),
            ("INSERT INTO t VALUES (1), (2, 3)", "they have different numbers of values"),
            ("INSERT INTO t VALUES", "`(` expected at the end"),
            ("INSERT INTO t VALUES (1,", "a number, a text or NULL expected, and not an expression, at the end"),
            ("INSERT INTO t VALUES ('a", "a text is not closed"),
            ("INSERT INTO t VALUES (1) x", "`(` expected at `x`"),
            ("INSERT INTO t VALUES (1); SELECT 1", "another statement follows; ClickHouse takes one at a time"),
        ] {
            assert_eq!(shown(sql).unwrap_err(), expected, "{sql}");
        }
    }

    #[test]
    fn the_table_of_an_insert_is_found() {
        let found = |sql: &str| {
            let (table, columns) = table(sql.as_bytes(), start(sql.as_bytes()).unwrap())?;
            Some(format!("{} {}", String::from_utf8_lossy(table), String::from_utf8_lossy(columns)))
        };
        for (sql, wanted) in [
            ("INSERT INTO t VALUES (1)", Some("t *")),
            ("insert into a.t(b, c)values(1)", Some("a.t b, c")),
            ("INSERT INTO `a(b` (`c(`) VALUES (1)", Some("`a(b` `c(`")),
            ("INSERT INTO TABLE t VALUES (1)", None),
            ("INSERT INTO FUNCTION remote('h', t) VALUES (1)", None),
        ] {
            assert_eq!(found(sql).as_deref(), wanted, "{sql}");
        }
    }

    #[test]
    fn what_is_selected_is_not_taken_for_rows() {
        for sql in [
            "INSERT INTO t SELECT 'VALUES (1)'",
            "INSERT INTO t SELECT * FROM VALUES('a Int8', 1)",
            "SELECT 1 AS values",
            "INSERT INTO t FORMAT TSV",
            "INSERT INTO t WITH 1 AS values SELECT values",
            "INSERT INTO t",
            "",
        ] {
            assert_eq!(start(sql.as_bytes()), None, "{sql}");
        }
    }
}
