//! The ends of a session's transactions, and what the recorder learns from each.

use assay_io::Io;
use assay_isolation::Outcome;
use assay_script::Failure;
use assay_seam::{Class, Nanos, Origin, StatementError};

use super::{Sessions, Want, not_done};
use crate::outcome::RunError;
use crate::plan::Load;
use crate::worker::link::Unfinished;
use crate::worker::recorder::Ending;
use crate::worker::session::{Session, SessionPhase};

impl<I: Io> Sessions<I> {
    /// The session's transaction is over, and it asks for the next.
    pub(super) fn on_next(&mut self, session: usize, at: Nanos) {
        let at = self.done_at(session, at);
        match self.unfinished(session) {
            None => {}
            Some(Unfinished::Deferred) => {
                let message = "the transaction ended before its deferred statements were sent: \
                               execute another statement after them, such as COMMIT";
                let failure = Failure { message: message.to_owned(), ..Failure::default() };
                return self.on_failed(session, failure, at);
            }
            Some(Unfinished::Load) => return self.on_died(session, &not_done()),
            Some(Unfinished::Transaction) if self.all[session].transaction.is_none() => {}
            Some(Unfinished::Transaction) if !self.plan.policy.must_complete => {}
            Some(Unfinished::Transaction) => return self.on_left_open(session, at),
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

    /// The session's transaction, or its command, ended inside a database transaction. Its connections are closed, so
    /// that no server stores what was done there.
    #[cold]
    pub(super) fn on_left_open(&mut self, session: usize, at: Nanos) {
        let this = &self.all[session];
        let error = self.plan.program.left_open(&self.plan.setup);
        let counted =
            StatementError { origin: Origin::Script, ..StatementError::client(Class::Incomplete, &*error.message) };
        self.recorder.error(this.transaction.as_ref(), this.target, &counted, at);
        self.clear_marks(session);
        self.end_run(session, RunError::Script(error), at);
    }

    /// What the script has left undone on any of its connections.
    pub(super) fn unfinished(&self, session: usize) -> Option<Unfinished> {
        self.all[session].links.iter().flatten().filter_map(|link| self.links[*link].unfinished()).max()
    }
}
