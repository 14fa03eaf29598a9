//! What an operation does to the data, and how drivers of SQL databases judge that: by the first words of a statement.
//! Not a parser: in doubt, `Other`.

use crate::operation::{Operation, StatementId};

/// What an operation does to the data.
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

/// As much of the operation in flight as a SQL driver needs to answer `Connection::effect`.
#[derive(Clone, Copy, Debug, Default)]
pub enum InFlight {
    /// Something that changes no data.
    #[default]
    Harmless,
    /// The beginning and the end of its text: enough for `START TRANSACTION` and `; COMMIT`.
    Text {
        /// Padded with spaces.
        head: [u8; 20],
        /// Padded with spaces.
        tail: [u8; 8],
    },
    /// An execution of a prepared statement.
    Statement(StatementId),
    /// Rows to append.
    Load,
}

impl InFlight {
    /// Allocates nothing. Inlined: it is called for every operation, and almost all are executions.
    #[inline]
    pub fn of(operation: &Operation<'_>) -> InFlight {
        match operation {
            Operation::Query { text, .. } => InFlight::of_text(text),
            Operation::Execute { statement, .. } => InFlight::Statement(*statement),
            Operation::Load { .. } => InFlight::Load,
            Operation::Prepare { .. } | Operation::Close { .. } | Operation::RollBack => InFlight::Harmless,
        }
    }

    #[inline(never)]
    fn of_text(text: &[u8]) -> InFlight {
        let (mut head, mut tail) = ([b' '; 20], [b' '; 8]);
        let length = text.len().min(head.len());
        head[..length].copy_from_slice(&text[..length]);
        let length = text.len().min(tail.len());
        tail[..length].copy_from_slice(&text[text.len() - length..]);
        InFlight::Text { head, tail }
    }

    /// `of_statement`: the effect of a prepared statement.
    pub fn effect(&self, of_statement: impl FnOnce(StatementId) -> Effect) -> Effect {
        match self {
            InFlight::Text { tail, .. } if ends_with_commit(tail) => Effect::Commits,
            InFlight::Text { head, .. } => Effect::of(head),
            InFlight::Statement(statement) => of_statement(*statement),
            InFlight::Load => Effect::ChangesRows,
            InFlight::Harmless => Effect::Reads,
        }
    }
}

fn ends_with_commit(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let text = text.strip_suffix(b";").unwrap_or(text).trim_ascii_end();
    text.len() >= 6 && text[text.len() - 6..].eq_ignore_ascii_case(b"commit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::RowsWanted;

    #[test]
    fn beginning_and_end_of_a_text_tell_what_it_does() {
        let effect = |sql: &str| {
            InFlight::of(&Operation::Query { text: sql.as_bytes(), rows: RowsWanted::Keep }).effect(|_| Effect::Other)
        };
        assert_eq!(effect("START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT"), Effect::Begins);
        assert_eq!(effect("UPDATE a_table_with_a_long_name SET a = 1; COMMIT;"), Effect::Commits);
        assert_eq!(effect("UPDATE a_table_with_a_long_name SET a = 1"), Effect::ChangesRows);
        assert_eq!(effect("x"), Effect::Other);
        assert_eq!(InFlight::of(&Operation::RollBack).effect(|_| Effect::Other), Effect::Reads);
    }

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
