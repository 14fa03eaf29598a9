//! The transactions of an open loop: which are due, and which of those wait for a session.
//!
//! At a rate that the server cannot keep, the number of waiting transactions grows without limit. So they are counted,
//! not stored: a second reader of the same schedule follows the first at a distance and reads their due instants again,
//! to the nanosecond. If the plan limits the backlog, dropped transactions leave gaps in the sequence; then the few
//! that wait are stored.

use std::collections::VecDeque;

use assay_seam::Nanos;

use crate::quota::Quota;
use crate::schedule::Schedule;

/// One worker's part of the arrivals of one stage.
#[derive(Debug)]
pub(crate) struct Arrivals {
    ahead: Schedule,
    waiting: Waiting,
    /// Transactions due before this are not measured.
    measured_from: Nanos,
    /// None is due at or after this.
    end: Nanos,
    /// The number of waiting transactions that were due before `measured_from`; they come first.
    early: u64,
    /// How many measured ones there are at most.
    quota: Option<Quota>,
    /// Measured ones that became due and were not dropped.
    admitted: u64,
    /// The quota is used up.
    is_over: bool,
}

#[derive(Debug)]
enum Waiting {
    /// What `Arrivals::ahead` has read and `behind` has not.
    Counted { behind: Schedule, count: u64 },
    /// At most `max`, plus one for every session that is free to take it immediately.
    Kept { dues: VecDeque<Nanos>, max: u64 },
}

/// Counts arrivals; only measured ones count.
pub(crate) trait ArrivalTally {
    /// `count` transactions become due, the last one at `due`: all of them in the measured part, or none.
    fn admit(&mut self, count: u64, due: Nanos);

    /// One became due and is turned away because too many wait.
    fn drop_due(&mut self, due: Nanos);
}

impl Arrivals {
    /// `max`: how many may wait; `None`: no limit. `quota`: how many measured ones there are; one that is dropped is
    /// replaced by a later one.
    pub(crate) fn new(
        schedule: Schedule,
        measured_from: Nanos,
        end: Nanos,
        max: Option<u64>,
        quota: Option<Quota>,
    ) -> Arrivals {
        let waiting = match max {
            None => Waiting::Counted { behind: schedule.clone(), count: 0 },
            Some(max) => Waiting::Kept { dues: VecDeque::new(), max },
        };
        Arrivals { ahead: schedule, waiting, measured_from, end, early: 0, quota, admitted: 0, is_over: false }
    }

    /// When the next transaction becomes due; `MAX` if none will.
    pub(crate) fn next_due(&self) -> Nanos {
        let next = self.ahead.next_due();
        if next < self.end && !self.is_over { next } else { Nanos::MAX }
    }

    /// The number of waiting transactions.
    pub(crate) fn waiting(&self) -> u64 {
        match &self.waiting {
            Waiting::Counted { count, .. } => *count,
            Waiting::Kept { dues, .. } => dues.len() as u64,
        }
    }

    /// The number of waiting transactions that were due in the measured part.
    pub(crate) fn waiting_measured(&self) -> u64 {
        self.waiting() - self.early
    }

    /// Whether all that a limit of transactions leaves to this worker have become due, or nothing else ever will.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.is_over || (self.quota.is_some() && self.end == Nanos::MAX && self.ahead.next_due() == Nanos::MAX)
    }

    /// Adds what is due by `now` while `idle` sessions are free. `tally` counts it.
    pub(crate) fn arrive(&mut self, now: Nanos, idle: usize, tally: &mut impl ArrivalTally) {
        let limit = self.end.min(now + Nanos(1));
        self.look_ahead();
        match &mut self.waiting {
            _ if self.is_over => {}
            Waiting::Counted { count, .. } => {
                let early = self.ahead.skip_before(limit.min(self.measured_from));
                let due = self.ahead.skip_before(limit);
                let part = self.quota.as_mut().and_then(|quota| quota.part(limit));
                let admitted = part.map_or(due, |part| due.min(part - self.admitted));
                tally.admit(admitted, now.max(self.measured_from));
                *count += early + admitted;
                self.early += early;
                self.admitted += admitted;
                self.look_ahead();
            }
            Waiting::Kept { .. } => self.arrive_one_by_one(limit, idle, tally),
        }
    }

    fn arrive_one_by_one(&mut self, limit: Nanos, idle: usize, tally: &mut impl ArrivalTally) {
        while self.ahead.next_due() < limit && !self.is_over {
            let Waiting::Kept { dues, max } = &mut self.waiting else { return };
            let due = self.ahead.take();
            // Free sessions take theirs immediately: only the rest wait, and only they are limited.
            if (dues.len() as u64) < max.saturating_add(idle as u64) {
                tally.admit(1, due);
                dues.push_back(due);
                let is_early = due < self.measured_from;
                self.early += u64::from(is_early);
                self.admitted += u64::from(!is_early);
            } else {
                tally.drop_due(due);
            }
            self.look_ahead();
        }
    }

    /// Notices that the next arrival does not belong to the run.
    fn look_ahead(&mut self) {
        let (next, admitted) = (self.ahead.next_due(), self.admitted);
        if let Some(quota) = &mut self.quota
            && next >= self.measured_from
        {
            self.is_over = quota.part(next + Nanos(1)).is_some_and(|part| admitted >= part);
        }
    }

    /// Takes the transaction that has waited longest.
    pub(crate) fn take(&mut self) -> Option<Nanos> {
        let due = match &mut self.waiting {
            Waiting::Counted { count: 0, .. } => None,
            Waiting::Counted { behind, count } => {
                *count -= 1;
                Some(behind.take())
            }
            Waiting::Kept { dues, .. } => dues.pop_front(),
        }?;
        self.early = self.early.saturating_sub(1);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Arrival;
    use crate::schedule::SessionShare;

    const SECOND: Nanos = Nanos::from_secs(1);

    fn schedule(arrival: Arrival, rate: f64) -> Schedule {
        Schedule::new(SECOND, rate.into(), arrival, SessionShare { worker: 1, workers: 2, sessions: 7 }, 42).unwrap()
    }

    /// `tally` that measures everything from an instant on.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Arrived {
        from: Nanos,
        due: u64,
        dropped: u64,
    }

    impl ArrivalTally for Arrived {
        fn admit(&mut self, count: u64, due: Nanos) {
            self.due += if due >= self.from { count } else { 0 };
        }

        fn drop_due(&mut self, due: Nanos) {
            let measured = u64::from(due >= self.from);
            (self.due, self.dropped) = (self.due + measured, self.dropped + measured);
        }
    }

    /// Taking arrivals in bursts, with pauses in between, must yield exactly the schedule.
    fn check(arrival: Arrival, rate: f64, max: Option<u64>) -> Vec<Nanos> {
        let (measured_from, end) = (Nanos::from_millis(1500), Nanos::from_secs(3));
        let mut arrivals = Arrivals::new(schedule(arrival, rate), measured_from, end, max, None);
        let (mut taken, mut sum) = (Vec::new(), Arrived { from: measured_from, ..Arrived::default() });
        for step in 0..=400u64 {
            let now = SECOND + Nanos::from_millis(step * 7);
            arrivals.arrive(now, 0, &mut sum);
            for _ in 0..step % 5 * 3 {
                taken.extend(arrivals.take());
            }
        }
        let measured = taken.iter().filter(|due| **due >= measured_from).count() as u64;
        assert_eq!(sum.due, measured + sum.dropped + arrivals.waiting_measured());
        while let Some(due) = arrivals.take() {
            taken.push(due);
        }
        assert_eq!((arrivals.waiting(), arrivals.waiting_measured()), (0, 0));
        taken
    }

    #[test]
    fn what_waits_keeps_its_due_time_though_it_is_only_counted() {
        for arrival in [Arrival::Constant, Arrival::Poisson] {
            for rate in [3.0, 1000.0, 5000.0] {
                let mut schedule = schedule(arrival, rate);
                let planned: Vec<Nanos> =
                    std::iter::repeat_with(|| schedule.take()).take_while(|due| *due < Nanos::from_secs(3)).collect();
                assert_eq!(check(arrival, rate, None), planned, "{arrival:?} {rate}");
                assert_eq!(check(arrival, rate, Some(u64::MAX)), planned, "{arrival:?} {rate}");
            }
        }
    }

    #[test]
    fn a_bound_drops_the_newest() {
        let schedule = schedule(Arrival::Constant, 1000.0);
        let mut arrivals = Arrivals::new(schedule, SECOND, Nanos::MAX, Some(2), None);
        let mut arrived = Arrived::default();
        arrivals.arrive(SECOND + Nanos::from_millis(13), 1, &mut arrived);
        assert_eq!((arrived.due, arrived.dropped), (6, 3), "3 of every 7 are this worker's");
        let millis = |due: Nanos| (due - SECOND).0 / 1_000_000;
        let taken: Vec<u64> = std::iter::from_fn(|| arrivals.take()).map(millis).collect();
        assert_eq!(taken, [1, 3, 5]);
    }

    #[test]
    fn any_number_of_constant_arrivals_is_counted_at_once() {
        let share = SessionShare { worker: 0, workers: 1, sessions: 1 };
        for rate in [0.3, 1e7, 1e9, 3e9] {
            let schedule = Schedule::new(SECOND, rate.into(), Arrival::Constant, share, 1).unwrap();
            let mut arrivals = Arrivals::new(schedule, SECOND, Nanos::from_secs(1001), None, None);
            let mut arrived = Arrived::default();
            arrivals.arrive(Nanos::MAX, 0, &mut arrived);
            assert_eq!(arrived.due, (rate * 1000.0) as u64, "{rate}");
        }
    }
}
