//! What links report, and how scripts learn of it.

use std::sync::atomic::Ordering;

use assay_io::Io;
use assay_measure::StatementClass;
use assay_script::{Answer, Verdict};
use assay_seam::{Executed, Nanos, Reply, StatementError};

use super::Sessions;
use crate::messages::Message;
use crate::observer::Warning;
use crate::retry;
use crate::worker::links::Heard;

impl<I: Io> Sessions<I> {
    /// The immediate result of a command: the session that gave it is not resumed within its own request.
    pub(super) fn on_heard_inline(&mut self, heard: Option<Heard>) {
        // Usually it must wait, and then it needs no instant.
        if let Some(heard) = heard {
            self.on_heard(heard, self.links.io.now(), true);
        }
    }

    /// Something happened to a link at `at`. `inline`: while its session is in the middle of a request.
    pub(super) fn on_heard(&mut self, heard: Heard, at: Nanos, inline: bool) {
        match heard {
            Heard::Answered { link, reply } => self.on_answered(link, reply, at, inline),
            Heard::Lost { link, error, may_have_committed } => {
                let session = self.links[link].session;
                if let Some(transaction) = &mut self.all[session].transaction {
                    transaction.lose_answer(may_have_committed);
                }
                let Some(reply) = self.links[link].answered(Reply { error: Some(error), ..Reply::default() }) else {
                    return;
                };
                let answer = self.judge(session, reply, true);
                if inline { self.queue(session, answer, at) } else { self.advance(session, answer, at) }
            }
            Heard::RowsSent { link } => {
                let session = self.links[link].session;
                self.queue(session, Answer::Proceed(true), self.links.io.now());
            }
            Heard::RolledBack { link } => self.recover(self.links[link].session, at),
            Heard::Ready { link, again } => {
                let (session, target) = (self.links[link].session, self.links[link].target);
                if again {
                    self.recorder.reconnected(target, at);
                    if std::mem::take(&mut self.outages[target]) {
                        self.send(Message::Warning(Warning::Recovered { target }));
                    }
                }
                if self.all[session].recovery.is_some() {
                    self.recover(session, at);
                } else {
                    self.all[session].connect_error = None;
                    self.queue(session, Answer::Done, at);
                }
            }
            Heard::Left { link } => {
                let session = self.links[link].session;
                if let Some(slot) = self.all[session].links.iter_mut().find(|slot| **slot == Some(link)) {
                    *slot = None;
                }
                self.links.close(link);
                self.queue(session, Answer::Done, at);
            }
            Heard::Refused { link, error } => self.on_refused(link, error),
        }
    }

    /// An operation of the script is answered. `at`: when the answer arrived.
    pub(super) fn on_answered(&mut self, link: usize, reply: Reply, at: Nanos, inline: bool) {
        let of_link = &mut self.links[link];
        let (session, sent) = (of_link.session, of_link.sent);
        let (load, executing) = (of_link.is_loading(), of_link.is_executing());
        let answered_deferred = of_link.finish();
        let (was_open, is_open) = (of_link.was_in_transaction, of_link.machine.in_transaction());
        let footprint = &mut self.all[session].footprint;
        // Statements are deferred only inside a transaction.
        footprint.begun += u32::from(!was_open && (is_open || answered_deferred));
        if reply.error.is_none() && executing {
            footprint.statements += 1;
            footprint.outside += u32::from(!was_open && !is_open && !answered_deferred);
        }
        let executed = if answered_deferred { of_link.machine.take_executed() } else { Executed::default() };
        footprint.statements += executed.reads + executed.writes + executed.others;
        let transaction = self.all[session].transaction.as_ref();
        if answered_deferred {
            for (class, count) in [
                (StatementClass::Read, executed.reads),
                (StatementClass::Write, executed.writes),
                (StatementClass::Other, executed.others),
            ] {
                self.recorder.statements(transaction, class, count, sent, at);
            }
        }
        if reply.error.is_none() {
            if load {
                self.shared.loaded.fetch_add(reply.affected, Ordering::Relaxed);
            }
            let class = match (&reply.rows, reply.affected) {
                (Some(_), _) => StatementClass::Read,
                (None, 1..) => StatementClass::Write,
                (None, 0) => StatementClass::Other,
            };
            if executing {
                self.recorder.statements(transaction, class, 1, sent, at);
            }
        }
        if load && reply.error.is_none() && self.links[link].goes_on_loading(at) {
            return self.queue(session, Answer::Proceed(true), at);
        }
        let Some(reply) = self.links[link].answered(reply) else { return };
        let answer = self.judge(session, reply, executing || load || self.plan.policy.failed_prepares_count);
        if inline { self.queue(session, answer, at) } else { self.advance(session, answer, at) }
    }

    /// Records a reply and decides how the script learns of it. `counts`: whether its error counts in the run.
    #[inline]
    pub(super) fn judge(&mut self, session: usize, reply: Reply, counts: bool) -> Answer {
        let verdict = if let Some(error) = &reply.error {
            self.judge_error(session, error, counts)
        } else {
            self.all[session].last_error = None;
            Verdict::Fatal
        };
        Answer::Reply(reply, verdict)
    }

    #[cold]
    pub(super) fn judge_error(&mut self, session: usize, error: &StatementError, counts: bool) -> Verdict {
        let this = &mut self.all[session];
        this.last_error = Some(Box::new(error.clone()));
        if counts {
            self.recorder.error(this.transaction.as_ref(), this.target, error, self.links.io.now());
        }
        if this.transaction.is_some() { retry::verdict(&self.plan.policy, error) } else { Verdict::Fatal }
    }
}
