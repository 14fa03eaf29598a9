//! libpq connection strings, which sysbench and pgbench accept in place of a database name.
//!
//! Source: PostgreSQL manual, 34.1.1.1.

/// Whether libpq parses a database's name as a connection string: keywords with values.
pub fn is_one(text: &str) -> bool {
    text.contains('=')
}

/// Its parameters, in their order; or, in libpq's words, what is wrong with it. Keywords are not checked.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut parameters = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let missing = || format!("missing \"=\" after \"{key}\" in connection info string");
        let after = after.trim_start().strip_prefix('=').ok_or_else(missing)?.trim_start();
        let (value, after) = value(after)?;
        parameters.push((key.to_owned(), value));
        rest = after.trim_start();
    }
    Ok(parameters)
}

/// The value at the start of a text, and the rest. Blanks and quotes must be quoted or follow a backslash.
fn value(text: &str) -> Result<(String, &str), String> {
    let quoted = text.starts_with('\'');
    let mut letters = text[usize::from(quoted)..].char_indices();
    let mut value = String::new();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' if quoted => return Ok((value, &text[at + 2..])),
            letter if !quoted && letter.is_whitespace() => return Ok((value, &text[at..])),
            '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
            letter => value.push(letter),
        }
    }
    if quoted { Err("unterminated quoted string in connection info string".to_owned()) } else { Ok((value, "")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_have_values_with_quotes_and_escapes() {
        let parsed = parse(r" host = h  options='-c a=\'b c\' \\ ' password=p\ w user='' dbname=d").unwrap();
        let shown: Vec<String> = parsed.iter().map(|(key, value)| format!("{key}:{value}")).collect();
        assert_eq!(shown, ["host:h", r"options:-c a='b c' \ ", "password:p w", "user:", "dbname:d"]);
    }

    #[test]
    fn what_is_wrong_is_said_as_libpq_says_it() {
        assert_eq!(parse("dbname=x y").unwrap_err(), "missing \"=\" after \"y\" in connection info string");
        assert_eq!(parse("dbname='x").unwrap_err(), "unterminated quoted string in connection info string");
    }
}
