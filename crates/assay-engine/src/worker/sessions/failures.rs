//! What happens to a session whose transaction, connection or script failed.

use assay_io::Io;
use assay_isolation as isolation;
use assay_script::{Answer, ConnectionNumber, Decision, Failure, Footprint, ScriptError, Verdict};
use assay_seam::{Code, Nanos, Reply, StatementError};

use super::{Sessions, Want};
use crate::messages::Message;
use crate::observer::Warning;
use crate::outcome::RunError;
use crate::plan::Load;
use crate::retry::{self, Remedy};
use crate::worker::recorder::Ending;
use crate::worker::recovery::{Recovery, RecoveryStep};
use crate::worker::session::SessionPhase;

impl<I: Io> Sessions<I> {
    /// An operation cannot be executed: the session gets the reason.
    pub(super) fn queue_broken(&mut self, session: usize, connection: ConnectionNumber) {
        let broken = self.all[session].link(connection.0).and_then(|link| self.links[link].broken.take());
        let error = broken.map_or_else(|| StatementError::network("the connection is closed"), |error| *error);
        let at = self.links.io.now();
        let answer = self.judge(session, Reply::failed(error), true);
        self.queue(session, answer, at);
    }

    /// The transaction failed: decide, and restore the connections before telling the script.
    pub(super) fn on_failed(&mut self, session: usize, failure: Failure, at: Nanos) {
        self.clear_marks(session);
        let ended = self.done_at(session, at);
        if self.states[self.all[session].state].state.has_history() {
            let transaction = self.all[session].transaction.as_ref();
            let is_unknown = transaction.is_some_and(|transaction| transaction.is_in_doubt());
            let outcome = if is_unknown { isolation::Outcome::Unknown } else { isolation::Outcome::Failed };
            self.note_history(session, outcome, ended);
        }
        let this = &mut self.all[session];
        (this.footprint, this.attempt) = (Footprint::default(), ended);
        let error = if failure.statement { this.last_error.take() } else { None };
        if error.is_none() && !failure.restart {
            return self.end_run(session, RunError::Script(ScriptError::from(&failure)), at);
        }
        // A restart after an error for which the policy does not restart: the script's hook asked for it.
        let policy = &self.plan.policy;
        let asked_for = |error: &&StatementError| failure.restart && retry::verdict(policy, error) == Verdict::Fatal;
        let judged = error.as_deref().filter(|error| !asked_for(error));
        let (kind, retries) =
            this.transaction.as_ref().map_or((0, 0), |transaction| (transaction.kind, transaction.retries));
        let target = this.target;
        let (decision, pause) = match retry::remedy(policy, judged, retries, &mut this.random) {
            Remedy::Again(pause) => {
                if let Some(transaction) = &mut this.transaction {
                    self.recorder.retry(transaction, at);
                }
                if matches!(self.plan.load, Load::Terminals { .. }) {
                    self.states[this.state].state.run_again(this.slot);
                }
                (Decision::Retry, pause)
            }
            Remedy::GiveUp => {
                self.leave_transaction(session, Ending::Failed, at);
                (Decision::Skip, Nanos::ZERO)
            }
            Remedy::EndRun => {
                let transaction = self.shared.types()[kind].clone();
                let error = match error {
                    Some(error) => RunError::Statement { target, transaction, retries, error, failure },
                    None => RunError::Script(ScriptError::from(&failure)),
                };
                return self.end_run(session, error, at);
            }
        };
        if let Some(error) = &error {
            self.advise(target, error);
        }
        for link in self.all[session].links.iter().flatten() {
            self.links[*link].begin_recovery();
        }
        let answer = Answer::Decision(decision);
        self.all[session].recovery = Some(Recovery::new(answer, self.plan.policy.rollback, pause, at));
        self.recover(session, at);
    }

    /// The session cannot continue, and the run ends.
    pub(super) fn end_run(&mut self, session: usize, error: RunError, at: Nanos) {
        self.shared.break_barrier();
        self.leave_transaction(session, Ending::Failed, at);
        self.wants.push_back(Want::End(Box::new(error)));
        self.drop(session);
    }

    /// The script itself asked for a new connection.
    pub(super) fn reconnect(&mut self, session: usize, connection: ConnectionNumber, at: Nanos) {
        let Some(link) = self.all[session].link(connection.0) else {
            let at = self.links.io.now();
            return self.queue(session, Answer::Done, at);
        };
        self.links.sever(link, StatementError::network("closed by the script to reconnect"));
        self.all[session].recovery = Some(Recovery::new(Answer::Done, false, Nanos::ZERO, at));
        self.recover(session, at);
    }

    /// Takes the next step of a recovery.
    pub(super) fn recover(&mut self, session: usize, at: Nanos) {
        loop {
            let this = &mut self.all[session];
            this.doing = SessionPhase::Recovering;
            let Some(recovery) = &mut this.recovery else { return };
            let links = this.links.iter().flatten().map(|link| (*link, &self.links[*link]));
            match recovery.next(links) {
                RecoveryStep::Sever(link) => {
                    self.links.sever(link, StatementError::network("still in a transaction after ROLLBACK"));
                }
                RecoveryStep::RollBack(link) => {
                    let heard = self.links.roll_back(link);
                    return self.on_heard_inline(heard);
                }
                RecoveryStep::Connect(link) => return self.links.connect(link),
                RecoveryStep::Wait => return,
                RecoveryStep::Pause(pause) => return self.wake_after(session, pause),
                RecoveryStep::GoOn(answer) => {
                    this.recovery = None;
                    this.attempt = this.attempt.max(at);
                    return self.queue(session, answer, at);
                }
            }
        }
    }

    /// A link could not be connected: if it is the script's first connect, the script gets the error; lost connections
    /// are retried for a while.
    pub(super) fn on_refused(&mut self, link: usize, error: Box<StatementError>) {
        let (session, target) = (self.links[link].session, self.links[link].target);
        let Some(recovery) = &mut self.all[session].recovery else {
            return self.refuse_connect(session, target, error);
        };
        let now = self.links.io.now();
        if !retry::may_come_back(&error) || now - recovery.started >= self.plan.policy.reconnect {
            let connected = self.served(self.all.len());
            let (wanted, failure) = (self.plan.setup.sessions, Failure::default());
            return self.end_run(session, RunError::Connect { target, connected, wanted, error, failure }, now);
        }
        recovery.attempts += 1;
        let pause = retry::reconnect_pause(recovery.attempts - 1, &mut self.random);
        self.links.connect_after(link, pause);
        if !std::mem::replace(&mut self.outages[target], true) {
            self.send(Message::Warning(Warning::Outage { target, message: error.message.clone() }));
        }
    }

    /// An error that nothing in the script caught, outside a transaction.
    pub(super) fn on_died(&mut self, session: usize, failure: &Failure) {
        let this = &mut self.all[session];
        this.success = false;
        let (target, failure) = (this.target, failure.clone());
        let connect_error = this.connect_error.take();
        let last_error = this.last_error.take().filter(|_| failure.statement);
        let error = if let Some(error) = connect_error {
            let (connected, wanted) = (self.served(self.all.len()), self.plan.setup.sessions);
            RunError::Connect { target, connected, wanted, error, failure }
        } else if let Some(error) = last_error {
            let transaction = self.plan.setup.command.clone();
            RunError::Statement { target, transaction, retries: 0, error, failure }
        } else {
            RunError::Script(ScriptError::from(&failure))
        };
        self.end_run(session, error, self.links.io.now());
    }

    /// A connection that the script asked for could not be opened.
    pub(super) fn refuse_connect(&mut self, session: usize, target: usize, error: Box<StatementError>) {
        self.all[session].connect_error = Some(error.clone());
        let at = self.links.io.now();
        let first = self.plan.first_like(target);
        self.queue(session, Answer::Error(error, target - first), at);
    }

    /// The run survives this error; the observer may act on it.
    pub(super) fn advise(&mut self, target: usize, error: &StatementError) {
        let known = |(of, code): &(usize, Code)| *of == target && *code == error.code;
        let Some(hint) = retry::advice(error).filter(|_| !self.advised.iter().any(known)) else { return };
        self.advised.push((target, error.code.clone()));
        let (error, hint) = (Box::new(error.clone()), hint.clone());
        self.send(Message::Warning(Warning::Advice { target, error, hint }));
    }
}
