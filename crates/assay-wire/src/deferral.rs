//! Statements that are sent together with the next one.
//!
//! If a script does not need a statement's answer before it continues, the statement can wait (`Connection::defer`):
//! its bytes are held here and sent before those of the next execution, in one packet. This must not change what the
//! statements mean. So only statements that change rows inside a transaction wait, and the one that starts the
//! transaction: the first that fails keeps all later ones from being executed, and the whole transaction is given up.

use assay_seam::{Effect, Executed, StatementError};

/// What waits on a connection, and its results.
#[derive(Debug, Default)]
pub struct Deferral {
    /// In the protocol's form, ready to be sent.
    pub held: Vec<u8>,
    /// How many statements `held` contains.
    pub waiting: u32,
    /// Sent and not answered.
    pub unanswered: u32,
    /// Synchronization points within `held`, and those sent and not answered, not counting the last one.
    syncs: u32,
    unsynced: u32,
    /// Answered without error since the engine last asked.
    pub executed: Executed,
}

/// More bytes than this do not wait: the statement that would exceed it is sent, with them before it.
const HELD_MAX: usize = 64 * 1024;

impl Deferral {
    /// Whether a statement with this effect may wait, on a connection that is in a transaction or not.
    pub fn takes(&self, effect: Effect, in_transaction: bool) -> bool {
        let opened = in_transaction || self.waiting > 0;
        let may = match effect {
            Effect::Begins => !opened,
            Effect::ChangesRows => opened,
            Effect::Commits | Effect::Reads | Effect::Other => false,
        };
        may && self.held.len() < HELD_MAX
    }

    /// Writes what waits before what is sent next.
    pub fn send(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.held);
        self.held.clear();
        self.unanswered = std::mem::take(&mut self.waiting);
        self.unsynced = std::mem::take(&mut self.syncs);
    }

    /// Adds a synchronization point, with these bytes of the protocol.
    pub fn synchronize(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.waiting > 0 {
            write(&mut self.held);
            self.syncs += 1;
        }
    }

    /// A synchronization point was answered. True: more will come.
    pub fn goes_on(&mut self) -> bool {
        let goes_on = self.unsynced > 0;
        self.unsynced -= u32::from(goes_on);
        goes_on
    }

    /// One of those sent was executed.
    pub fn answered(&mut self, affected: u64, is_read: bool) {
        self.unanswered -= 1;
        if is_read {
            self.executed.reads += 1;
        } else if affected > 0 {
            self.executed.writes += 1;
        } else {
            self.executed.others += 1;
        }
    }

    /// The refused statement is one of those, not the one that the session waits for.
    pub fn blame(&self, error: &mut StatementError) {
        let place =
            format!("the refused statement was deferred: it is {} before the one on this line", self.unanswered);
        error.hint = Some(match error.hint.take() {
            Some(hint) => format!("{place}; {hint}"),
            None => place,
        });
    }

    /// Nothing waits any more, and no answer will come.
    pub fn forget(&mut self) {
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
