//! The ends of a session's transactions, and what the recorder learns from each.

use assay_io::Io;
use assay_isolation::Outcome;
use assay_script::Failure;
use assay_seam::Nanos;

use super::{Sessions, Want, not_done};
use crate::plan::Load;
use crate::worker::link::Batch;
use crate::worker::recorder::Ending;
use crate::worker::session::{Session, SessionPhase};

impl<I: Io> Sessions<I> {
    /// The session's transaction is over, and it asks for the next.
    pub(super) fn on_next(&mut self, session: usize, at: Nanos) {
        let at = self.done_at(session, at);
        if self.has_deferred(session) {
            let message = "the transaction ended before its deferred statements were sent: \
                           execute another statement after them, such as COMMIT";
            let failure = Failure { message: message.to_owned(), ..Failure::default() };
            return self.on_failed(session, failure, at);
        }
        if self.is_ahead(session) {
            return self.on_died(session, &not_done());
        }
        self.complete(session, at);
        let this = &mut self.all[session];
        (this.doing, this.free) = (SessionPhase::Parked, at);
        self.wants.push_back(Want::Transaction { session, at });
    }

    /// When a session's transaction that ends now was done: when its last answer arrived. One that waited for nothing
    /// has worked inside the script until now.
    pub(super) fn done_at(&self, session: usize, at: Nanos) -> Nanos {
        let worked = self.all[session].transaction.as_ref().is_some_and(|transaction| transaction.sent() >= at);
        if worked { self.links.io.now() } else { at }
    }

    /// The session's transaction, if there is one, has succeeded.
    pub(super) fn complete(&mut self, session: usize, at: Nanos) {
        let this = &mut self.all[session];
        let Some(transaction) = this.transaction.take() else { return };
        let entry = &mut self.states[this.state];
        if entry.state.has_history() {
            let marks = entry.state.marks(this.slot);
            let has_failed = marks.rolled_back || marks.failed || marks.dropped;
            let outcome = match (transaction.is_in_doubt(), has_failed) {
                (true, _) => Outcome::Unknown,
                (false, true) => Outcome::Failed,
                (false, false) => Outcome::Ok,
            };
            self.note_history(session, outcome, at);
        }
        let this = &mut self.all[session];
        let entry = &mut self.states[this.state];
        if entry.state.has_marks() {
            entry.learn_counters(&self.shared);
            let marks = entry.state.marks(this.slot);
            self.recorder.complete(transaction, Some(marks), &entry.counters, at);
            if self.recorder.has_many_lines() {
                self.send_lines();
            }
        } else {
            self.recorder.complete(transaction, None, &[], at);
        }
        self.leave_terminal(session, at);
    }

    /// Moves the operations that the session has noted to the history.
    pub(super) fn note_history(&mut self, session: usize, outcome: Outcome, at: Nanos) {
        let Session { state, slot, number, attempt, .. } = self.all[session];
        let operations = self.states[state].state.history(slot);
        if operations.is_empty() {
            return;
        }
        let done = if outcome == Outcome::Unknown { Nanos::MAX } else { at };
        self.recorder.note_history(number, outcome, attempt, done, operations);
        operations.clear();
        if self.recorder.has_much_history() {
            self.send_history();
        }
    }

    /// What an attempt noted that is retried, or never counted.
    pub(super) fn clear_marks(&mut self, session: usize) {
        let Session { state, slot, .. } = self.all[session];
        let state = &mut self.states[state].state;
        if state.has_marks() {
            state.marks(slot).clear();
        }
    }

    /// The session's transaction, if there is one, ends in another way.
    pub(super) fn leave_transaction(&mut self, session: usize, ending: Ending, at: Nanos) {
        if let Some(transaction) = self.all[session].transaction.take() {
            if self.states[self.all[session].state].state.has_history() {
                let is_unknown = transaction.is_in_doubt() || ending != Ending::Failed;
                self.note_history(session, if is_unknown { Outcome::Unknown } else { Outcome::Failed }, at);
            }
            self.recorder.end(transaction, ending, at);
            self.leave_terminal(session, at);
        }
    }

    /// The user of the session's terminal starts to think.
    pub(super) fn leave_terminal(&mut self, session: usize, at: Nanos) {
        if let Load::Terminals { .. } = self.plan.load {
            let Session { state, slot, .. } = self.all[session];
            if let Some(terminal) = self.states[state].state.leave_terminal(slot) {
                self.wants.push_back(Want::Think { terminal, at });
            }
        }
    }

    /// Rows are in flight whose answer the script has not asked for.
    pub(super) fn is_ahead(&self, session: usize) -> bool {
        self.all[session].links.iter().flatten().any(|link| !matches!(self.links[*link].batch, Batch::Awaited))
    }

    pub(super) fn has_deferred(&self, session: usize) -> bool {
        self.all[session].links.iter().flatten().any(|link| self.links[*link].deferred)
    }
}
