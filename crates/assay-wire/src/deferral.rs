//! Statements that are sent together with the next one.
//!
//! A script that does not need a statement's answer before it goes on may have it wait (`Connection::defer`): its bytes
//! are held here, and travel in front of those of the next execution, in one send. Nothing of what the statements mean may
//! change by that, so only those wait that change rows inside a transaction, and the statement that begins it: the first
//! that fails keeps all after it from being executed, and the whole transaction is given up.

use crate::error::StatementError;

/// What waits on a connection, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Deferral {
    /// In the protocol's form, ready to be sent.
    pub(crate) held: Vec<u8>,
    /// How many statements `held` holds.
    pub(crate) waiting: u32,
    /// Sent and not answered.
    pub(crate) unanswered: u32,
    /// Answered well since the engine last asked.
    pub(crate) executed: Executed,
}

/// Deferred statements that were executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Those that changed rows.
    pub writes: u32,
    /// The others.
    pub others: u32,
}

/// More bytes than this do not wait: the statement that would add to them is sent, with them in front.
const HELD_MAX: usize = 64 * 1024;

impl Deferral {
    /// Whether a statement may wait that does this, on a connection that is in a transaction or not.
    pub(crate) fn takes(&self, effect: Effect, in_transaction: bool) -> bool {
        let opened = in_transaction || self.waiting > 0;
        let may = match effect {
            Effect::Begins => !opened,
            Effect::ChangesRows => opened,
            Effect::Other => false,
        };
        may && self.held.len() < HELD_MAX
    }

    /// Writes what waits in front of what is sent next.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.held);
        self.held.clear();
        self.unanswered = std::mem::take(&mut self.waiting);
    }

    /// One of those sent was executed.
    pub(crate) fn answered(&mut self, affected: u64) {
        self.unanswered -= 1;
        if affected > 0 {
            self.executed.writes += 1;
        } else {
            self.executed.others += 1;
        }
    }

    /// The statement refused is one of those, not the one that was waited for.
    pub(crate) fn blame(&self, error: &mut StatementError) {
        let place = format!("refused was a deferred statement, {} before the one in this line", self.unanswered);
        error.hint = Some(match error.hint.take() {
            Some(hint) => format!("{place}; {hint}"),
            None => place,
        });
    }

    /// Nothing waits any more, and no answer is to come.
    pub(crate) fn forget(&mut self) {
        self.held.clear();
        (self.waiting, self.unanswered) = (0, 0);
    }
}

/// What a statement does, as far as waiting is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Opens a transaction.
    Begins,
    /// Changes rows, and neither returns any nor ends the transaction.
    ChangesRows,
    /// Something else, or perhaps something else: it is not worth a parser.
    Other,
}

impl Effect {
    /// By the first words of a statement's text. What it returns is not looked at.
    pub(crate) fn of(sql: &[u8]) -> Effect {
        let word = |word: &&[u8]| !word.is_empty();
        let mut words = sql.split(|byte| !byte.is_ascii_alphabetic()).filter(word).map(<[u8]>::to_ascii_lowercase);
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let starts = sql.trim_ascii_start().first().is_some_and(u8::is_ascii_alphabetic);
        match (&first[..], &second[..]) {
            // Another statement may follow in the text, or a comment that hides it.
            _ if !starts || sql.contains(&b';') => Effect::Other,
            (b"begin", b"" | b"work" | b"transaction" | b"isolation" | b"read") => Effect::Begins,
            (b"start", b"transaction") => Effect::Begins,
            (b"insert" | b"update" | b"delete" | b"replace", _) => Effect::ChangesRows,
            _ => Effect::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_opens_a_transaction_or_changes_rows_may_wait() {
        for (sql, effect) in [
            ("BEGIN", Effect::Begins),
            (" begin isolation level repeatable read", Effect::Begins),
            ("START TRANSACTION READ ONLY", Effect::Begins),
            ("BEGIN NOT ATOMIC SELECT 1 END", Effect::Other),
            ("BEGIN; DELETE FROM t", Effect::Other),
            ("UPDATE t SET a = ? WHERE b = ?", Effect::ChangesRows),
            ("insert into t values (?)", Effect::ChangesRows),
            ("DELETE FROM t", Effect::ChangesRows),
            ("SELECT 1", Effect::Other),
            ("COMMIT", Effect::Other),
            ("CALL p()", Effect::Other),
            ("-- update\nSELECT 1", Effect::Other),
            ("", Effect::Other),
        ] {
            assert_eq!(Effect::of(sql.as_bytes()), effect, "{sql}");
        }
        let mut deferral = Deferral::default();
        assert!(!deferral.takes(Effect::ChangesRows, false), "outside of a transaction");
        assert!(deferral.takes(Effect::ChangesRows, true) && deferral.takes(Effect::Begins, false));
        deferral.waiting = 1;
        assert!(deferral.takes(Effect::ChangesRows, false), "behind the statement that begins it");
        assert!(!deferral.takes(Effect::Begins, false) && !deferral.takes(Effect::Other, true));
        deferral.held = vec![0; HELD_MAX];
        assert!(!deferral.takes(Effect::ChangesRows, true), "what waits has a bound");
    }
}
