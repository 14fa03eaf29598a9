//! Redacts output that changes from run to run: numbers, times and paths become placeholders of the same width.
//!
//! A test then compares every word, every heading and where each column ends, but no numbers.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Redacts times of day and dates, then numbers.
///
/// A number becomes one `#` at its right end and takes the blanks before it along, so that `  9.8` and ` 12.3`
/// (a right-aligned column) come out the same, width and all. After a single blank, as in a sentence, it
/// becomes `#`. Numbers that are part of a word (`p99`, `sbtest1`) stay.
pub fn redact(text: &str) -> String {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\d{4}-\d\d-\d\d([T _-]\d\d:?\d\d:?\d\d(\.\d+)?Z?)?|\b\d\d:\d\d:\d\d\b")
            .expect("a valid expression")
    });
    static NUMBER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?m)(^|[^\w.#\-])(-?\d+(?:[,.]\d+)*)").expect("a valid expression"));
    static COLUMN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r" {2,}\x00+").expect("a valid expression"));

    let times = TIME.replace_all(text, |found: &Captures| found[0].replace(|c: char| c.is_ascii_digit(), "#"));
    // First one sign per character, to preserve the width of a column.
    let numbers =
        NUMBER.replace_all(&times, |found: &Captures| format!("{}{}", &found[1], "\0".repeat(found[2].len())));
    let columns = COLUMN.replace_all(&numbers, |found: &Captures| format!("{:>1$}", "#", found[0].len()));
    static REST: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\x00+").expect("a valid expression"));
    REST.replace_all(&columns, "#").into_owned()
}

/// Replaces a known text by a name, such as a temporary folder by `[FOLDER]`, where it is a whole word: `/tmp/x1` is
/// not in `/tmp/x10`.
pub fn replace(text: &str, known: &[(&str, &str)]) -> String {
    known.iter().fold(text.to_owned(), |text, (what, name)| {
        let mut pieces = text.split(what).peekable();
        let mut replaced = String::new();
        while let Some(piece) = pieces.next() {
            replaced += piece;
            if let Some(next) = pieces.peek() {
                replaced += if next.starts_with(|c: char| c.is_ascii_digit()) { what } else { name };
            }
        }
        replaced
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, expected: &str) {
        assert_eq!(redact(one), expected);
        assert_eq!(redact(other), expected);
    }

    #[test]
    fn columns_keep_their_width_whatever_the_numbers() {
        check("p99    12.31   1,998 ms", "p99     9.80      77 ms", "p99        #       # ms");
    }

    #[test]
    fn sentences_do_not_depend_on_the_number_of_digits() {
        check("ran 10 s, 3 errors (0.1%)", "ran 9 s, 12 errors (12.0%)", "ran # s, # errors (#%)");
        check("[-5, +6]", "[-15, +16]", "[#, +#]");
    }

    #[test]
    fn times_keep_their_shape() {
        check("at 2025-11-21T20:45:01Z", "at 2031-01-02T03:04:05Z", "at ####-##-##T##:##:##Z");
    }

    #[test]
    fn numbers_in_words_and_words_themselves_stay() {
        check("sbtest1 p99.9 utf8mb4", "sbtest1 p99.9 utf8mb4", "sbtest1 p99.9 utf8mb4");
        assert_ne!(redact("p50 1"), redact("p95 1"));
        assert_ne!(redact("1 error"), redact("1 errors"));
    }

    #[test]
    fn known_paths_get_a_name() {
        let known = [("/tmp/x1", "[FOLDER]")];
        assert_eq!(replace("wrote /tmp/x1/a.json", &known), "wrote [FOLDER]/a.json");
        assert_eq!(replace("/tmp/x1, /tmp/x10, /tmp/x1", &known), "[FOLDER], /tmp/x10, [FOLDER]");
    }
}
