//! Decides what counts, and as what.
//!
//! The recorder owns the tallies of a worker, and it alone decides what enters them. Sessions tell it what happened and
//! when; they never look at the boundaries of the measured part. Each rule is in one place:
//!
//! * *The measured part.* A transaction that becomes due on its own (open loop, terminals) is measured if it was due in
//!   the measured part; in a closed loop with a limit of transactions, if it was sent in it, unless the plan says
//!   otherwise (`carried_over_count`); otherwise, if it ends in it. Its statements, errors and retries count as it
//!   does.
//! * *Intervals.* What happens at an instant belongs to the interval of that instant. A worker whose script computes,
//!   or whose database is embedded, may learn of it long before it can send the intervals until then: see `Portion`.
//! * *Ends.* A transaction ends once, as one `Ending`: `Recorder::end` consumes the value that `begin` returned. So
//!   every due transaction is found again as done, rolled back, failed, stopped, dropped, unstarted or unfinished.
//! * *Retries* are counted separately from their transaction. One is in doubt if the answer to a commit was lost before
//!   it; so is a failed transaction that is not retried after that.
//! * *Unfinished* is what did not end within the grace period. Its late end counts for nothing.
//! * *Work* is everything that transactions did, measured or not, to be compared with the tables. An attempt is unknown
//!   if the server may or may not have committed it.
//! * *Outside transactions*, statements count from the first one if there is no warm-up, otherwise from its end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use assay_isolation as isolation;
use assay_measure::{StatementClass, Tally, Work};
use assay_script::Marks;
use assay_seam::{Nanos, Origin, StatementError};

use crate::arrivals;
use crate::messages::IntervalPart;
use crate::outcome::{Line, Outside, SessionTally};
use crate::plan::{Load, Plan};
use crate::shared::Shared;

/// See the module. Instants are those of the worker's `Io`.
pub(super) struct Recorder {
    shared: Arc<Shared>,
    membership: Membership,
    is_closed: bool,
    has_warmup: bool,
    /// The limit of a closed loop, for all workers of this process.
    transactions_max: Option<u64>,
    /// Whether errors outside transactions count with those of the script, as in sysbench.
    errors_are_outside: bool,

    /// The stage being prepared or running.
    stage: usize,
    /// Start of the measured part. Before the stage starts: `MAX` if it has a warm-up, otherwise zero.
    measured_from: Nanos,
    /// Between the start of the stage and its end.
    is_running: bool,

    /// When the present interval ends.
    next_cut: Nanos,
    interval: Nanos,
    /// The last end of an interval for which the backlog is known.
    passed_end: Nanos,
    present: Portion,
    /// Intervals after the present one in which something has happened, and when they end; ascending.
    later: VecDeque<(Nanos, Portion)>,
    spare: Vec<Vec<Tally>>,
    /// Since the last cut.
    outside: Outside,
    /// Measured transactions of the stage, by session of the worker.
    completed: Vec<u64>,
    /// In the whole run.
    work: Work,
    /// For the journal, not sent yet.
    lines: Vec<Line>,
    /// For the history, not sent yet.
    history: Vec<u64>,

    in_flight: u32,
    /// Started before the measured part, and not ended yet; they belong to it if they end in it.
    carried: u64,
    last_done: Nanos,
    usage: LoopUsage,
}

/// What puts a transaction into the measured part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Membership {
    Due,
    Sent,
    Done,
}

/// What happened in one interval.
#[derive(Debug, Default)]
struct Portion {
    /// By target.
    tallies: Vec<Tally>,
    /// By session of the worker.
    by_session: Vec<SessionTally>,
    due: u64,
    dropped: u64,
    backlog_max: u64,
    /// The backlog at its end, if that was passed before the interval could be sent.
    backlog: Option<u64>,
    /// Transactions of the stage that began in it, and that ended in it, measured or not.
    begun: u64,
    ended: u64,
}

/// A worker's load at an instant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PresentLoad {
    /// Transactions that are due and wait for a session.
    pub(super) waiting: u64,
    /// Transactions in progress.
    pub(super) in_flight: u64,
    /// Sessions with usable connections.
    pub(super) served: u32,
}

/// Usage of the event loop in the measured part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoopUsage {
    pub(super) turns: u64,
    pub(super) events: u64,
    /// Time asleep.
    pub(super) asleep: Nanos,
    /// The part of it in which the event loop polled instead.
    pub(super) polled: Nanos,
}

/// A transaction in progress: returned by `Recorder::begin`, consumed by `Recorder::end`.
#[derive(Debug)]
pub(super) struct Transaction {
    /// Its stage; `None` once it was given up as unfinished.
    stage: Option<usize>,
    /// The worker's session that runs it, and the target for which it counts.
    session: usize,
    target: usize,
    /// due <= sent, free <= sent
    due: Nanos,
    /// When the session became free to start it.
    free: Nanos,
    sent: Nanos,
    /// Index of the transaction type over the run.
    pub(super) kind: usize,
    /// Number of retries.
    pub(super) retries: u32,
    /// Whether the server may have committed this attempt: an answer was lost that may have been that to its commit.
    in_doubt: bool,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Given up after an error.
    Failed,
    /// Its session ended in the middle of it.
    Cut,
    /// The script does not want it counted, and its session ends.
    Stopped,
}

/// Words of a history after which they are sent.
const HISTORY_MAX: usize = 1 << 17;

/// Most lines of the journal sent together.
const LINES_MAX: usize = 1024;

impl Transaction {
    /// When it was begun.
    pub(super) fn sent(&self) -> Nanos {
        self.sent
    }

    /// Whether the server may have committed this attempt.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// A connection was lost while it waited for an answer. `may_be_commit`: the request may have been the commit.
    pub(super) fn lose_answer(&mut self, may_be_commit: bool) {
        self.in_doubt |= may_be_commit;
    }
}

impl Recorder {
    pub(super) fn new(plan: &Plan, shared: Arc<Shared>) -> Recorder {
        let has_warmup = plan.warmup > Nanos::ZERO;
        Recorder {
            shared,
            membership: match (&plan.load, plan.limit.transactions) {
                (Load::Open { .. } | Load::Trace { .. } | Load::Terminals { .. }, _) => Membership::Due,
                (Load::Closed, Some(_)) if !plan.policy.carried_over_count => Membership::Sent,
                (Load::Closed, _) => Membership::Done,
            },
            is_closed: plan.load == Load::Closed,
            has_warmup,
            transactions_max: match plan.load {
                Load::Closed => plan.limit.transactions.map(|all| plan.agent().part_of(all)),
                Load::Open { .. } | Load::Trace { .. } | Load::Terminals { .. } => None,
            },
            errors_are_outside: plan.policy.errors_outside_apart,
            stage: 0,
            measured_from: if has_warmup { Nanos::MAX } else { Nanos::ZERO },
            is_running: false,
            next_cut: Nanos::MAX,
            interval: plan.interval,
            passed_end: Nanos::ZERO,
            present: Portion { tallies: vec![Tally::default(); plan.targets.len()], ..Portion::default() },
            later: VecDeque::new(),
            spare: Vec::new(),
            outside: Outside::default(),
            completed: Vec::new(),
            lines: Vec::new(),
            history: Vec::new(),
            work: Work::default(),
            in_flight: 0,
            carried: 0,
            last_done: Nanos::ZERO,
            usage: LoopUsage::default(),
        }
    }

    /// Whether something that happens at `at` belongs to the measured part of the stage.
    pub(super) fn is_measuring(&self, at: Nanos) -> bool {
        self.is_running && at >= self.measured_from
    }

    /// When the present interval ends.
    pub(super) fn next_cut(&self) -> Nanos {
        self.next_cut
    }

    /// The end of the first interval by which what was due is not counted yet.
    pub(super) fn next_end(&self) -> Nanos {
        self.next_cut.max(self.passed_end + self.interval)
    }

    /// The interval of an instant; between stages, the present one.
    #[inline]
    fn portion(&mut self, at: Nanos) -> &mut Portion {
        if at < self.next_cut || !self.is_running { &mut self.present } else { self.later_portion(at) }
    }

    #[cold]
    fn later_portion(&mut self, at: Nanos) -> &mut Portion {
        let missed = (at - self.next_cut).0 / self.interval.0.max(1);
        let end = self.next_cut + Nanos((missed + 1).saturating_mul(self.interval.0.max(1)));
        let place = match self.later.binary_search_by_key(&end, |(end, _)| *end) {
            Ok(place) => place,
            Err(place) => {
                let portion = self.empty_portion();
                self.later.insert(place, (end, portion));
                place
            }
        };
        &mut self.later[place].1
    }

    fn empty_portion(&mut self) -> Portion {
        let targets = self.present.tallies.len();
        Portion {
            tallies: self.spare.pop().unwrap_or_else(|| vec![Tally::default(); targets]),
            by_session: vec![SessionTally::default(); self.completed.len()],
            ..Portion::default()
        }
    }

    /// Transactions of the stage in progress.
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// When the last measured transaction ended; never before the measured part.
    pub(super) fn last_done(&self) -> Nanos {
        self.last_done
    }

    /// Usage of the event loop since the measured part began.
    pub(super) fn usage(&self) -> LoopUsage {
        self.usage
    }

    /// Measured transactions per session in the stage.
    pub(super) fn completed(&self) -> &[u64] {
        &self.completed
    }

    /// Whether every transaction of a closed loop's limit has started.
    pub(super) fn is_exhausted(&self) -> bool {
        self.transactions_max.is_some_and(|max| self.shared.begun.load(Ordering::Relaxed) >= max)
    }

    /// The next stage: this worker drives this many of its sessions.
    pub(super) fn prepare_stage(&mut self, stage: usize, sessions: usize) {
        (self.stage, self.is_running) = (stage, false);
        self.measured_from = if self.has_warmup { Nanos::MAX } else { Nanos::ZERO };
        self.present.by_session = vec![SessionTally::default(); sessions];
        self.completed = vec![0; sessions];
        (self.in_flight, self.carried, self.usage) = (0, 0, LoopUsage::default());
    }

    /// The stage starts; what happens from `measured_from` on is measured, and its first interval ends at `next_cut`.
    pub(super) fn begin_stage(&mut self, measured_from: Nanos, next_cut: Nanos) {
        (self.next_cut, self.passed_end) = (next_cut, Nanos::ZERO);
        (self.is_running, self.measured_from, self.last_done) = (true, measured_from, measured_from);
    }

    /// No more transactions are started. `measured` of those waiting were due in the measured part; the others were due
    /// at `others`. Returns how many of these would have been measured and are unstarted. A stage that ends in its
    /// warm-up measures nothing.
    pub(super) fn end_arrivals(&mut self, at: Nanos, measured: u64, others: impl Iterator<Item = Nanos>) -> u64 {
        if at < self.measured_from {
            self.measured_from = Nanos::MAX;
        }
        measured + others.filter(|due| self.is_measuring(*due)).count() as u64
    }

    /// Nothing of the stage is in progress any more: the last part can be cut.
    pub(super) fn end_stage(&mut self) {
        self.present.due += std::mem::take(&mut self.carried);
        debug_assert!(self.later.is_empty(), "the end is after everything that happened");
        self.is_running = false;
    }

    /// This many were due and waited for a session at `now`.
    pub(super) fn note_backlog(&mut self, waiting: u64, now: Nanos) {
        if self.is_measuring(now) {
            let portion = self.portion_due(now);
            portion.backlog_max = portion.backlog_max.max(waiting);
        }
    }

    /// This many waited at the end of an interval, which could not be sent then.
    pub(super) fn note_backlog_at_end(&mut self, waiting: u64, end: Nanos) {
        self.portion_due(end).backlog = Some(waiting);
        self.passed_end = end;
    }

    /// The interval in which something becomes due: at the border of two, the first.
    fn portion_due(&mut self, due: Nanos) -> &mut Portion {
        self.portion(due - Nanos(1))
    }

    /// A session starts a transaction that was due at `due`. `None`: the limit of a closed loop is reached.
    pub(super) fn begin(
        &mut self,
        session: usize,
        target: usize,
        due: Nanos,
        free: Nanos,
        sent: Nanos,
    ) -> Option<Transaction> {
        if self.is_closed {
            if !self.is_measuring(sent) {
                self.carried += u64::from(self.membership == Membership::Done);
            } else if self.transactions_max.is_none_or(|max| self.shared.claim_one_of(max)) {
                self.portion(sent).due += 1;
            } else {
                return None;
            }
        }
        self.in_flight += 1;
        self.portion(sent).begun += 1;
        let stage = Some(self.stage);
        Some(Transaction { stage, session, target, due, free, sent, kind: 0, retries: 0, in_doubt: false })
    }

    /// Whether what happens to the transaction at `at` counts.
    #[inline]
    fn counts(&self, transaction: &Transaction, at: Nanos) -> bool {
        let instant = match self.membership {
            Membership::Due => transaction.due,
            Membership::Sent => transaction.sent,
            // A step that waited for nothing gets the time of what came before it.
            Membership::Done => at.max(transaction.sent),
        };
        transaction.stage == Some(self.stage) && self.is_measuring(instant)
    }

    /// Nothing done outside transactions at `at` counts: the warm-up is not over.
    fn is_before(&self, at: Nanos) -> bool {
        self.has_warmup && at < self.measured_from
    }

    /// `count` statements of a class, sent together at `sent`, were answered at `at`.
    #[inline]
    pub(super) fn statements(
        &mut self,
        transaction: Option<&Transaction>,
        class: StatementClass,
        count: u32,
        sent: Nanos,
        at: Nanos,
    ) {
        match transaction {
            None => self.outside.statements[class] += if self.is_before(at) { 0 } else { count.into() },
            Some(transaction) if self.counts(transaction, at) => {
                let tally = &mut self.portion(at).tallies[transaction.target].statements[class];
                tally.count += u64::from(count);
                (0..count).for_each(|_| tally.service.record((at - sent).0));
            }
            Some(_) => {}
        }
    }

    /// Counts an error. `target`: the one of its session.
    pub(super) fn error(
        &mut self,
        transaction: Option<&Transaction>,
        target: usize,
        error: &StatementError,
        at: Nanos,
    ) {
        match transaction {
            Some(transaction) => {
                if self.counts(transaction, at) {
                    count_error(&mut self.portion(at).tallies[target], error);
                }
            }
            // sysbench's report comes after `thread_done`, so it includes errors there, and statements.
            None if self.errors_are_outside => {
                self.outside.errors += u64::from(!self.is_before(at) && error.origin != Origin::Network);
            }
            None => count_error(&mut self.portion(at).tallies[target], error),
        }
    }

    /// A lost connection to `target` was reopened.
    pub(super) fn reconnected(&mut self, target: usize, at: Nanos) {
        if self.is_measuring(at) {
            self.portion(at).tallies[target].reconnects += 1;
        }
    }

    /// The transaction is retried.
    pub(super) fn retry(&mut self, transaction: &mut Transaction, at: Nanos) {
        let in_doubt = std::mem::take(&mut transaction.in_doubt);
        transaction.retries += 1;
        self.note_unknown(transaction, in_doubt);
        if self.counts(transaction, at) {
            let tally = self.portion(at).tallies[transaction.target].transaction(transaction.kind);
            tally.retries += 1;
            tally.retries_in_doubt += u64::from(in_doubt);
        }
    }

    /// The transaction is done: it succeeded, or was rolled back on purpose. `marks`: values that its script noted;
    /// `counters`: run-wide indices of what it counted.
    pub(super) fn complete(
        &mut self,
        transaction: Transaction,
        marks: Option<&mut Marks>,
        counters: &[usize],
        at: Nanos,
    ) {
        let counted = self.counts(&transaction, at);
        // One that was given up is unknown already.
        let is_awaited = transaction.stage.is_some();
        let Transaction { session, target, due, free, sent, kind, in_doubt, .. } = transaction;
        let (mut rolled_back, mut failed, mut dropped) = (false, false, false);
        if let Some(marks) = marks {
            (rolled_back, failed, dropped) = (marks.rolled_back, marks.failed, marks.dropped);
            let succeeded = is_awaited && !failed && !dropped;
            if counted || succeeded {
                for (amount, counter) in marks.counts.iter().zip(counters).filter(|(amount, _)| **amount > 0) {
                    if counted {
                        self.portion(at).tallies[target].counted(*counter, *amount);
                    }
                    if succeeded {
                        self.work.count(*counter, *amount);
                    }
                }
            }
            if !marks.line.is_empty() {
                self.lines.push(Line { due, sent, done: at, values: std::mem::take(&mut marks.line) });
            }
        }
        if failed {
            self.note_unknown(&transaction, in_doubt);
        } else if is_awaited && !dropped {
            let of_kind = self.work.transaction(kind);
            of_kind.count += u64::from(!rolled_back);
            of_kind.rolled_back += u64::from(rolled_back);
        }
        if counted && dropped {
            self.portion(at).dropped += 1;
        } else if counted && failed {
            let of_kind = self.portion(at).tallies[target].transaction(kind);
            of_kind.failed += 1;
            of_kind.failed_in_doubt += u64::from(in_doubt);
            self.last_done = self.last_done.max(at);
        } else if counted {
            self.completed[session] += 1;
            let is_closed = self.is_closed;
            let portion = self.portion(at);
            portion.by_session[session].record(at - due);
            let tally = &mut portion.tallies[target];
            let of_kind = tally.transaction(kind);
            of_kind.count += u64::from(!rolled_back);
            of_kind.rolled_back += u64::from(rolled_back);
            of_kind.response.record((at - due).0);
            of_kind.service.record((at - sent).0);
            // Waiting for a session that was still busy is the server's doing, not our lateness.
            let could_begin = due.max(free);
            tally.lag.record((sent - could_begin).0);
            if !is_closed {
                tally.wait.record((could_begin - due).0);
            }
            tally.note_done(at.0, at.0);
            self.last_done = self.last_done.max(at);
        }
        self.leave(&transaction, counted, at);
    }

    /// The transaction ends in another way.
    pub(super) fn end(&mut self, transaction: Transaction, ending: Ending, at: Nanos) {
        self.note_unknown(&transaction, transaction.in_doubt || ending != Ending::Failed);
        let counted = self.counts(&transaction, at);
        if counted {
            let tally = &mut self.portion(at).tallies[transaction.target];
            match ending {
                Ending::Failed | Ending::Cut => {
                    let of_kind = tally.transaction(transaction.kind);
                    of_kind.failed += 1;
                    of_kind.failed_in_doubt += u64::from(transaction.in_doubt);
                }
                Ending::Stopped => tally.stopped += 1,
            }
            self.last_done = self.last_done.max(at);
        }
        self.leave(&transaction, counted, at);
    }

    /// The grace period was over at `at`: the transaction is not waited for any longer.
    pub(super) fn give_up(&mut self, transaction: &mut Transaction, at: Nanos) {
        let counted = self.counts(transaction, at);
        self.portion(at).tallies[transaction.target].unfinished += u64::from(counted);
        self.note_unknown(transaction, true);
        self.leave(transaction, counted, at);
        transaction.stage = None;
    }

    /// The server may have committed an attempt of a transaction, if `is_unknown`. One that was given up counts once.
    fn note_unknown(&mut self, transaction: &Transaction, is_unknown: bool) {
        if is_unknown && transaction.stage.is_some() {
            self.work.transaction(transaction.kind).unknown += 1;
        }
    }

    fn leave(&mut self, transaction: &Transaction, counted: bool, at: Nanos) {
        if transaction.stage == Some(self.stage) {
            self.in_flight -= 1;
            self.portion(at).ended += 1;
            self.carried -= u64::from(!counted && self.membership == Membership::Done);
        }
    }

    /// The event loop slept from `asleep_from` to `at`, or polled for `polled` of that.
    pub(super) fn slept(&mut self, asleep_from: Nanos, at: Nanos, polled: Nanos) {
        if self.is_measuring(at) {
            self.usage.turns += 1;
            self.usage.asleep += at - asleep_from.max(self.measured_from);
            self.usage.polled += polled;
        }
    }

    /// It received an event at `at`.
    pub(super) fn event(&mut self, at: Nanos) {
        self.usage.events += u64::from(self.is_measuring(at));
    }

    /// What was done outside transactions since the last call.
    pub(super) fn take_outside(&mut self) -> Outside {
        std::mem::take(&mut self.outside)
    }

    /// What all transactions did, measured or not, since the last call.
    pub(super) fn take_work(&mut self) -> Work {
        std::mem::take(&mut self.work)
    }

    /// Whether there are enough journal lines to send them.
    pub(super) fn has_many_lines(&self) -> bool {
        self.lines.len() >= LINES_MAX
    }

    /// Lines of the journal since the last call.
    pub(super) fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    /// Adds a transaction of a session to the history: when it was begun and done, and its operations.
    pub(super) fn note_history(
        &mut self,
        session: u32,
        outcome: isolation::Outcome,
        begun: Nanos,
        done: Nanos,
        operations: &[u64],
    ) {
        isolation::log::transaction(&mut self.history, session, outcome, begun.0, done.0, operations);
    }

    /// Whether there is enough of the history to send it.
    pub(super) fn has_much_history(&self) -> bool {
        self.history.len() >= HISTORY_MAX
    }

    /// What was added to the history since the last call.
    pub(super) fn take_history(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.history)
    }

    /// Cleared tallies for reuse.
    pub(super) fn recycle(&mut self, tallies: Vec<Tally>) {
        self.spare.push(tallies);
    }

    /// Everything in the present interval. `outside` is what the worker's sessions did outside transactions; `load`: at
    /// the end of the interval, or now.
    pub(super) fn cut(&mut self, outside: Outside, load: PresentLoad) -> IntervalPart {
        let next = self.empty_portion();
        let Portion { tallies, by_session, due, dropped, backlog_max, backlog: known, .. } =
            std::mem::replace(&mut self.present, next);
        let PresentLoad { waiting, in_flight, served: sessions } = load;
        let backlog = known.unwrap_or(waiting);
        self.present.backlog_max = backlog;
        // At the end of the interval, those that ended later had not ended, and those that began later had not begun.
        let sum = |of: fn(&Portion) -> u64| self.later.iter().map(|(_, portion)| of(portion)).sum::<u64>();
        let in_flight = in_flight + sum(|portion| portion.ended);
        IntervalPart {
            outside,
            in_flight: in_flight.saturating_sub(sum(|portion| portion.begun)),
            carried: self.carried,
            by_session,
            tallies,
            due,
            dropped,
            backlog,
            backlog_max: backlog_max.max(backlog),
            sessions,
        }
    }

    /// The interval that was cut is over: the next one is the present one.
    pub(super) fn next_interval(&mut self) {
        self.next_cut += self.interval;
        if self.later.front().is_some_and(|(end, _)| *end == self.next_cut)
            && let Some((_, portion)) = self.later.pop_front()
        {
            let begin = std::mem::replace(&mut self.present, portion);
            self.present.backlog_max = self.present.backlog_max.max(begin.backlog_max);
            self.spare.push(begin.tallies);
        }
    }
}

/// Bytes of the message that stands for all errors of a kind: a server may answer with megabytes.
const MESSAGE_BYTES_MAX: usize = 4000;

fn count_error(tally: &mut Tally, error: &StatementError) {
    let kind = (error.origin.name(), error.class.name(), error.code.number, error.code.state.as_str());
    let tally = tally.error(kind);
    tally.count += 1;
    if tally.message.is_empty() {
        let end = error.message.floor_char_boundary(MESSAGE_BYTES_MAX);
        error.message[..end].clone_into(&mut tally.message);
    }
}

impl arrivals::ArrivalTally for Recorder {
    /// `count` transactions become due on their own, the last of them at `due`; all of them in the measured part, or
    /// none.
    fn admit(&mut self, count: u64, due: Nanos) {
        if self.is_measuring(due) {
            self.portion_due(due).due += count;
        }
    }

    /// One that became due was turned away.
    fn drop_due(&mut self, due: Nanos) {
        let measured = u64::from(self.is_measuring(due));
        let portion = self.portion_due(due);
        portion.due += measured;
        portion.dropped += measured;
    }
}
