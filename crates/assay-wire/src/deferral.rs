//! Statements that are sent together with the next one.
//!
//! A script that does not need a statement's answer before it goes on may have it wait (`Connection::defer`): its bytes
//! are held here, and travel in front of those of the next execution, in one send. Nothing of what the statements mean
//! may change by that, so only those wait that change rows inside a transaction, and the statement that begins it: the
//! first that fails keeps all after it from being executed, and the whole transaction is given up.

use assay_seam::{Effect, Executed, StatementError};

/// What waits on a connection, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Deferral {
    /// In the protocol's form, ready to be sent.
    pub(crate) held: Vec<u8>,
    /// How many statements `held` holds.
    pub(crate) waiting: u32,
    /// Sent and not answered.
    pub(crate) unanswered: u32,
    /// Synchronisations within `held`, and those sent and not answered, but for the last of all.
    syncs: u32,
    unsynced: u32,
    /// Answered well since the engine last asked.
    pub(crate) executed: Executed,
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
            Effect::Commits | Effect::Reads | Effect::Other => false,
        };
        may && self.held.len() < HELD_MAX
    }

    /// Writes what waits in front of what is sent next.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.held);
        self.held.clear();
        self.unanswered = std::mem::take(&mut self.waiting);
        self.unsynced = std::mem::take(&mut self.syncs);
    }

    /// What waits so far is synchronised by these bytes of the protocol.
    pub(crate) fn synchronise(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.waiting > 0 {
            write(&mut self.held);
            self.syncs += 1;
        }
    }

    /// A synchronisation was answered. True: more is to come.
    pub(crate) fn goes_on(&mut self) -> bool {
        let goes_on = self.unsynced > 0;
        self.unsynced -= u32::from(goes_on);
        goes_on
    }

    /// One of those sent was executed.
    pub(crate) fn answered(&mut self, affected: u64, is_read: bool) {
        self.unanswered -= 1;
        if is_read {
            self.executed.reads += 1;
        } else if affected > 0 {
            self.executed.writes += 1;
        } else {
            self.executed.others += 1;
        }
    }

    /// The statement refused is one of those, not the one that was waited for.
    pub(crate) fn blame(&self, error: &mut StatementError) {
        let place =
            format!("the refused statement was deferred: it is {} before the one on this line", self.unanswered);
        error.hint = Some(match error.hint.take() {
            Some(hint) => format!("{place}; {hint}"),
            None => place,
        });
    }

    /// Nothing waits any more, and no answer is to come.
    pub(crate) fn forget(&mut self) {
        self.held.clear();
        (self.waiting, self.unanswered, self.syncs, self.unsynced) = (0, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_opens_a_transaction_or_changes_rows_may_wait() {
        let mut deferral = Deferral::default();
        assert!(!deferral.takes(Effect::ChangesRows, false), "outside of a transaction");
        assert!(deferral.takes(Effect::ChangesRows, true) && deferral.takes(Effect::Begins, false));
        deferral.waiting = 1;
        assert!(deferral.takes(Effect::ChangesRows, false), "behind the statement that begins it");
        assert!(!deferral.takes(Effect::Begins, false) && !deferral.takes(Effect::Other, true));
        assert!(!deferral.takes(Effect::Commits, true) && !deferral.takes(Effect::Reads, true));
        deferral.held = vec![0; HELD_MAX];
        assert!(!deferral.takes(Effect::ChangesRows, true), "what waits has a bound");
    }
}
