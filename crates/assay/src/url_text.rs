//! Showing what the user typed: without passwords, and so that a shell reads it back.

use assay_record::without_secrets;

/// A database URL without its password.
pub fn masked(url: &str) -> String {
    without_secrets([url]).concat()
}

/// Words as one line that a POSIX shell splits into the same words.
pub fn shell_line(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    words.into_iter().map(|word| shell_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// The words of a line as a POSIX shell would split it, without expanding anything. A lowercase fragment says what is
/// wrong with one that it would not take.
pub fn shell_words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next().ok_or_else(|| format!("a quote {c} is not closed"))? {
                        end if end == c => break,
                        '\\' if c == '"' => match rest.next() {
                            Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                            Some(other) => word.extend(['\\', other]),
                            None => return Err(format!("a quote {c} is not closed")),
                        },
                        inside => word.push(inside),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next().ok_or("nothing follows the last backslash")?),
            blank if blank.is_whitespace() => words.extend(word.take()),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}

fn shell_word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@,+%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_a_shell_would() {
        let split = |line: &str| shell_words(line);
        let words = ["--db=sqlite:a.db", "it's", "a b", "", "x?y=1", "say \"no\" \\ $1"];
        assert_eq!(split(&shell_line(words)).unwrap(), words);
        assert_eq!(split(r#" a  "b \" \c" d\ e'f' "#).unwrap(), ["a", r#"b " \c"#, "d ef"]);
        assert_eq!(split("").unwrap(), [""; 0]);
        for wrong in ["'a", "\"a", "\"a\\", "a\\"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_with_blanks_and_quotes_are_quoted() {
        let words = ["--db=sqlite:a.db", "it's", "a b", "", "x?y=1"];
        assert_eq!(shell_line(words), r"--db=sqlite:a.db 'it'\''s' 'a b' '' 'x?y=1'");
    }
}
