//! What a statement does to the data, judged by its first words. Not a parser: in doubt, `Other`.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Opens a transaction.
    Begins,
    /// Changes rows, returns none, and does not end the transaction.
    ChangesRows,
    /// Makes a transaction's changes permanent.
    Commits,
    /// Returns rows or undoes changes: if its answer is lost, nothing has become permanent.
    Reads,
    /// Something else, or unknown.
    Other,
}

impl Effect {
    /// Judged by the first words of a statement's text, and by a COMMIT after others. Its result is not considered.
    pub fn of(sql: &[u8]) -> Effect {
        let word = |word: &&[u8]| !word.is_empty();
        let mut words = sql.split(|byte| !byte.is_ascii_alphabetic()).filter(word).map(<[u8]>::to_ascii_lowercase);
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let starts = sql.trim_ascii_start().first().is_some_and(u8::is_ascii_alphabetic);
        match (&first[..], &second[..]) {
            // Another statement may follow in the text, or a comment that hides it.
            _ if sql.contains(&b';') && (second == b"commit" || words.any(|word| word == b"commit")) => Effect::Commits,
            (b"commit", _) if starts => Effect::Commits,
            _ if !starts || sql.contains(&b';') => Effect::Other,
            (b"begin", b"" | b"work" | b"transaction" | b"isolation" | b"read") => Effect::Begins,
            (b"start", b"transaction") => Effect::Begins,
            (b"insert" | b"update" | b"delete" | b"replace", _) => Effect::ChangesRows,
            (b"select" | b"show" | b"values" | b"table" | b"rollback", _) => Effect::Reads,
            _ => Effect::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_of_a_statement_tell_what_it_does() {
        for (sql, effect) in [
            ("BEGIN", Effect::Begins),
            (" begin isolation level repeatable read", Effect::Begins),
            ("START TRANSACTION READ ONLY", Effect::Begins),
            ("BEGIN NOT ATOMIC SELECT 1 END", Effect::Other),
            ("BEGIN; DELETE FROM t", Effect::Other),
            ("UPDATE t SET a = ? WHERE b = ?", Effect::ChangesRows),
            ("insert into t values (?)", Effect::ChangesRows),
            ("DELETE FROM t", Effect::ChangesRows),
            ("SELECT 1", Effect::Reads),
            ("ROLLBACK", Effect::Reads),
            ("SELECT 1; SELECT f()", Effect::Other),
            ("COMMIT", Effect::Commits),
            ("commit;", Effect::Commits),
            ("UPDATE t SET a = 1; COMMIT", Effect::Commits),
            ("CALL p()", Effect::Other),
            ("WITH a AS (DELETE FROM t RETURNING b) SELECT b FROM a", Effect::Other),
            ("-- update\nSELECT 1", Effect::Other),
            ("-- commit\nSELECT 1", Effect::Other),
            ("", Effect::Other),
        ] {
            assert_eq!(Effect::of(sql.as_bytes()), effect, "{sql}");
        }
    }
}
