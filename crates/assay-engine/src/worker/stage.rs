//! The current stage: its times, and which transactions are due in it.
//!
//! Pure: the worker passes the time and asks what to start.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use assay_seam::Nanos;

use super::recorder::Recorder;
use crate::arrivals::{ArrivalTally as _, Arrivals};
use crate::schedule::SessionShare;

/// See the module. Instants are those of the worker's `Io`.
pub(super) struct WorkerStage {
    pub(super) index: usize,
    /// Sessions of the whole stage; this worker drives those it owns.
    pub(super) share: SessionShare,
    /// Nothing becomes due on its own: a session's next transaction is due when the previous one is done.
    is_closed: bool,
    pub(super) begin: Nanos,
    /// No transaction starts at or after this; `MAX` without a time limit.
    pub(super) end: Nanos,
    /// No more transactions have been started since this instant.
    pub(super) ended: Option<Nanos>,
    /// When to stop waiting for those in flight. ended <= give_up
    pub(super) give_up: Nanos,
    /// Its sessions have been released.
    pub(super) released: bool,
    /// Arrivals of an open loop.
    arrivals: Option<Arrivals>,
    /// When thinking terminals will be due, and which ones.
    thinking: BinaryHeap<Reverse<DueTransaction>>,
    /// Transactions of terminals that are due and not started, ordered by due instant.
    thought: VecDeque<DueTransaction>,
    /// Sessions free to take a due transaction, longest free first.
    idle: VecDeque<usize>,
    pub(super) unstarted: u64,
}

/// A transaction to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DueTransaction {
    pub(super) at: Nanos,
    /// Its terminal.
    pub(super) terminal: Option<u32>,
}

impl WorkerStage {
    pub(super) fn new(index: usize, share: SessionShare, is_closed: bool) -> WorkerStage {
        WorkerStage {
            index,
            share,
            is_closed,
            begin: Nanos::ZERO,
            end: Nanos::MAX,
            ended: None,
            give_up: Nanos::MAX,
            released: false,
            arrivals: None,
            thinking: BinaryHeap::new(),
            thought: VecDeque::new(),
            idle: VecDeque::new(),
            unstarted: 0,
        }
    }

    /// Sessions of this worker that take part.
    pub(super) fn own_sessions(&self) -> usize {
        self.share.own_sessions() as usize
    }

    /// Whether transactions may start now.
    pub(super) fn is_open(&self) -> bool {
        self.released && self.ended.is_none()
    }

    /// When the stage needs attention, whatever happens on the sockets.
    pub(super) fn deadline(&self) -> Nanos {
        let mut until = if self.ended.is_some() { self.give_up } else { self.end };
        if !self.released {
            until = until.min(self.begin);
        }
        if !self.idle.is_empty() {
            until = until.min(self.next_due());
        }
        until
    }

    /// When the next transaction becomes due on its own; `MAX` if none will.
    fn next_due(&self) -> Nanos {
        let thought = self.thinking.peek().map_or(Nanos::MAX, |Reverse(due)| due.at);
        self.arrivals.as_ref().map_or(thought, |arrivals| arrivals.next_due().min(thought))
    }

    /// How many transactions are due and not started.
    pub(super) fn waiting(&self) -> u64 {
        self.thought.len() as u64 + self.arrivals.as_ref().map_or(0, Arrivals::waiting)
    }

    /// What becomes due of an open loop.
    pub(super) fn expect(&mut self, arrivals: Option<Arrivals>) {
        self.arrivals = arrivals;
    }

    /// A terminal's transaction will be due.
    pub(super) fn expect_of(&mut self, terminal: u32, at: Nanos) {
        self.thinking.push(Reverse(DueTransaction { at, terminal: Some(terminal) }));
    }

    /// Adds what has become due by now.
    pub(super) fn arrive(&mut self, now: Nanos, recorder: &mut Recorder) {
        if self.is_closed {
            return;
        }
        while let Some(Reverse(due)) = self.thinking.peek().copied()
            && due.at <= now
            && due.at < self.end
        {
            self.thinking.pop();
            if recorder.admit(1, due.at) == 1 {
                self.thought.push_back(due);
            }
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.arrive(now, self.idle.len(), recorder);
        }
        recorder.note_backlog(self.waiting().saturating_sub(self.idle.len() as u64), now);
    }

    /// The transaction that has waited longest.
    pub(super) fn take_due(&mut self) -> Option<DueTransaction> {
        let arrived = || self.arrivals.as_mut()?.take().map(|at| DueTransaction { at, terminal: None });
        self.thought.pop_front().or_else(arrived)
    }

    /// A session has nothing to do.
    pub(super) fn park(&mut self, session: usize) {
        self.idle.push_back(session);
    }

    /// The session that has been free longest, and what it should start; `None` if either is missing.
    pub(super) fn match_up(&mut self) -> Option<(usize, DueTransaction)> {
        if self.ended.is_some() || self.idle.is_empty() {
            return None;
        }
        let due = self.take_due()?;
        self.idle.pop_front().map(|session| (session, due))
    }

    /// Starts no more transactions from `at` on; those in flight have until `grace` later. Counts what was due before
    /// and has not started.
    pub(super) fn end(&mut self, at: Nanos, grace: Nanos, recorder: &mut Recorder) {
        self.arrive(at, recorder);
        let ended = at.min(self.end);
        (self.ended, self.give_up) = (Some(ended), ended + grace);
        let arrived = self.arrivals.take().map_or(0, |arrivals| arrivals.waiting_measured());
        self.unstarted = recorder.end_arrivals(at, arrived, self.thought.drain(..).map(|due| due.at));
        self.idle.clear();
    }
}
