//! Shows the user's arguments: without passwords, and quoted for a shell.

use assay_record::masked as text_masked;

/// A database URL without its password.
pub fn masked(url: &str) -> String {
    text_masked(url)
}

/// Arguments as one line that a POSIX shell splits into the same arguments.
pub fn shell_line(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    words.into_iter().map(|word| shell_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Splits a line into arguments as a POSIX shell would, without expanding anything. The error is a lowercase fragment.
pub fn shell_words(line: &str) -> Result<Vec<String>, String> {
    shlex::split(line).ok_or_else(|| "unclosed quote, or a backslash at the end".to_owned())
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
