//! The current stage: its times, and which transactions are due in it.
//!
//! Pure: the worker passes the time and asks what to start.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

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
    /// What a limit of transactions leaves to the terminals.
    terminals: Option<TerminalQuotas>,
    /// Sessions free to take a due transaction, longest free first.
    idle: VecDeque<usize>,
    pub(super) unstarted: u64,
}

/// How many measured transactions are still to become due, of each terminal and of all of this worker's.
struct TerminalQuotas {
    left: HashMap<u32, u64>,
    left_of_all: u64,
    measured_from: Nanos,
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
            terminals: None,
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

    /// Whether every transaction that becomes due on its own and that the limit leaves to this worker has become due.
    pub(super) fn is_exhausted(&self) -> bool {
        let terminals = || self.terminals.as_ref().is_some_and(|terminals| terminals.left_of_all == 0);
        self.arrivals.as_ref().map_or_else(terminals, Arrivals::is_exhausted)
    }

    /// Each terminal has a part of `limit` transactions that are due from `measured_from` on. `terminals`: all of them,
    /// of which `own` are this worker's.
    pub(super) fn limit_terminals(&mut self, limit: u64, terminals: u32, own: &[u32], measured_from: Nanos) {
        let left: HashMap<u32, u64> =
            own.iter().map(|terminal| (*terminal, part_of_terminal(limit, *terminal, terminals))).collect();
        self.terminals = Some(TerminalQuotas { left_of_all: left.values().sum(), left, measured_from });
    }

    /// What becomes due of an open loop.
    pub(super) fn expect(&mut self, arrivals: Option<Arrivals>) {
        self.arrivals = arrivals;
    }

    /// A terminal's transaction will be due, unless the terminal has done its part.
    pub(super) fn expect_of(&mut self, terminal: u32, at: Nanos) {
        if let Some(terminals) = &mut self.terminals
            && at >= terminals.measured_from
        {
            let Some(left) = terminals.left.get_mut(&terminal).filter(|left| **left > 0) else { return };
            *left -= 1;
        }
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
            recorder.admit(1, due.at);
            self.thought.push_back(due);
            if let Some(terminals) = &mut self.terminals
                && due.at >= terminals.measured_from
            {
                terminals.left_of_all -= 1;
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
    /// and has not started: what has become due by `at` has arrived.
    pub(super) fn end(&mut self, at: Nanos, grace: Nanos, recorder: &mut Recorder) {
        let ended = at.min(self.end);
        (self.ended, self.give_up) = (Some(ended), ended + grace);
        let arrived = self.arrivals.as_ref().map_or(0, Arrivals::waiting_measured);
        self.unstarted = recorder.end_arrivals(at, arrived, self.thought.drain(..).map(|due| due.at));
        self.idle.clear();
    }
}

/// How many of `limit` transactions a terminal does. Those who do one more than the others are spread over all numbers.
fn part_of_terminal(limit: u64, terminal: u32, terminals: u32) -> u64 {
    let before = |terminal: u64| (u128::from(limit) * u128::from(terminal) / u128::from(terminals)) as u64;
    before(u64::from(terminal) + 1) - before(terminal.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_share_a_limit_evenly() {
        let parts = |limit, terminals| -> Vec<u64> {
            (0..terminals).map(|terminal| part_of_terminal(limit, terminal, terminals)).collect()
        };
        assert_eq!(parts(60, 3), [20, 20, 20]);
        assert_eq!(parts(3, 6), [0, 1, 0, 1, 0, 1]);
        for (limit, terminals) in [(0, 1), (1, 7), (1000, 7), (7, 1000), (u64::MAX, 3)] {
            let parts = parts(limit, terminals);
            assert_eq!(parts.iter().sum::<u64>(), limit, "{limit} {terminals}");
            assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1, "{parts:?}");
        }
    }
}
