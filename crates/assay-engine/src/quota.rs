//! Which arrivals of a worker belong to a run that is limited to a number of transactions.
//!
//! The run consists of the first ones of all workers. Each worker finds its part of them from the schedule alone: if
//! workers took transactions from a common account, a worker that is held up for long enough would find it empty, and
//! the others would have done its work with their own random numbers. Workers share nothing here, so agents of a fleet
//! find the same parts as workers of one process.

use assay_seam::Nanos;

use crate::schedule::Schedule;

/// One worker's part of the first arrivals of a stage.
#[derive(Debug)]
pub(crate) struct Quota(Part);

#[derive(Debug)]
enum Part {
    Known(u64),
    /// Found on the way.
    Counted(Count),
}

/// Arrivals of workers that are independent of each other, counted a little ahead of the worker's own. This draws the
/// arrivals of the others again: some 20 ns each.
#[derive(Debug)]
struct Count {
    /// Of every worker that has sessions: what is not counted yet.
    schedules: Vec<Schedule>,
    own: usize,
    /// counted <= limit
    limit: u64,
    counted: u64,
    /// counted_own <= counted
    counted_own: u64,
    /// All arrivals before this are counted.
    until: Nanos,
    /// The arrivals of a step: when, and whose.
    step: Vec<(Nanos, usize)>,
}

/// How far counting goes at a time.
const STEP: Nanos = Nanos::from_millis(10);

impl Quota {
    /// This many arrivals.
    pub(crate) fn of(part: u64) -> Quota {
        Quota(Part::Known(part))
    }

    /// The worker's part of the first `limit` arrivals at or after `from`; `schedules`: of every worker that has
    /// sessions, its own at `own`.
    pub(crate) fn among(mut schedules: Vec<Schedule>, own: usize, limit: u64, from: Nanos) -> Quota {
        for schedule in &mut schedules {
            schedule.skip_before(from);
        }
        Quota(Part::Counted(Count { schedules, own, limit, counted: 0, counted_own: 0, until: from, step: Vec::new() }))
    }

    /// The number of arrivals; `None`: not known yet, and every one before `instant` is among them.
    pub(crate) fn part(&mut self, instant: Nanos) -> Option<u64> {
        loop {
            let count = match &mut self.0 {
                Part::Known(part) => return Some(*part),
                Part::Counted(count) => count,
            };
            if count.until >= instant {
                return None;
            }
            if let Some(part) = count.advance() {
                self.0 = Part::Known(part);
            }
        }
    }
}

impl Count {
    /// Counts the arrivals of a step. Returns how many of the first ones are the worker's own, once all are counted.
    fn advance(&mut self) -> Option<u64> {
        let next = self.schedules.iter().map(Schedule::next_due).min().unwrap_or(Nanos::MAX);
        if next == Nanos::MAX {
            return Some(self.counted_own);
        }
        self.until = self.until.max(next) + STEP;
        self.step.clear();
        for (worker, schedule) in self.schedules.iter_mut().enumerate() {
            while schedule.next_due() < self.until {
                self.step.push((schedule.take(), worker));
            }
        }
        let left = (self.limit - self.counted) as usize;
        let is_last = self.step.len() >= left;
        if is_last {
            // Workers in order of their numbers, should two arrivals be due at the same nanosecond.
            self.step.sort_unstable();
            self.step.truncate(left);
        }
        self.counted += self.step.len() as u64;
        self.counted_own += self.step.iter().filter(|(_, worker)| *worker == self.own).count() as u64;
        is_last.then_some(self.counted_own)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::arrivals::{ArrivalTally, Arrivals};
    use crate::plan::Arrival;
    use crate::rate::{Rate, RatePoint};
    use crate::schedule::SessionShare;

    const START: Nanos = Nanos::from_secs(1);
    const SECOND: Nanos = Nanos::from_secs(1);
    /// A limit of time that is not reached.
    const END: Nanos = Nanos::from_secs(3600);

    /// When transactions are due, in every way there is.
    #[derive(Clone, Debug)]
    enum Kind {
        Rate(Arrival, Rate),
        Trace(Arc<[Nanos]>),
    }

    fn kinds() -> Vec<Kind> {
        let ramp = [(0, 50.0), (2, 400.0), (2, 0.0), (5, 0.0), (5, 100.0)];
        let points = ramp.map(|(at, per_s)| RatePoint { at: Nanos::from_secs(at), per_s });
        let ramp = Rate::new(&points).unwrap();
        let trace = (0..1000).map(|i: u64| Nanos::from_micros(i * i)).collect();
        let mut kinds = vec![Kind::Trace(trace)];
        for arrival in [Arrival::Constant, Arrival::Poisson] {
            kinds.extend([Rate::from(100.0), Rate::from(9000.0), ramp.clone()].map(|rate| Kind::Rate(arrival, rate)));
        }
        kinds
    }

    fn schedule(kind: &Kind, share: SessionShare) -> Option<Schedule> {
        match kind {
            Kind::Rate(arrival, rate) => Schedule::new(START, rate.clone(), *arrival, share, 7),
            Kind::Trace(instants) => Schedule::of_trace(START, instants.clone(), share),
        }
    }

    /// All workers with sessions.
    fn shares(workers: u32, sessions: u32) -> Vec<SessionShare> {
        (0..workers.min(sessions)).map(|worker| SessionShare { worker, workers, sessions }).collect()
    }

    fn quota(kind: &Kind, share: SessionShare, limit: u64, from: Nanos) -> Quota {
        let own = schedule(kind, share).unwrap();
        own.part_of_first(limit, from).map_or_else(
            || {
                let all = shares(share.workers, share.sessions).into_iter().filter_map(|one| schedule(kind, one));
                Quota::among(all.collect(), share.worker as usize, limit, from)
            },
            Quota::of,
        )
    }

    /// How many of the first `limit` arrivals from `from` on each worker has, by merging all of them.
    fn parts(kind: &Kind, shares: &[SessionShare], limit: u64, from: Nanos) -> Vec<u64> {
        let mut all = Vec::new();
        for (worker, share) in shares.iter().enumerate() {
            let mut schedule = schedule(kind, *share).unwrap();
            schedule.skip_before(from);
            // More than there can be of one.
            for _ in 0..limit {
                all.extend(Some((schedule.take(), worker)).filter(|(due, _)| *due < Nanos::MAX));
            }
        }
        all.sort_unstable();
        all.truncate(limit as usize);
        let of = |worker| all.iter().filter(|(_, of)| *of == worker).count() as u64;
        (0..shares.len()).map(of).collect()
    }

    #[derive(Default)]
    struct Counts {
        admitted: u64,
        dropped: u64,
        from: Nanos,
    }

    impl ArrivalTally for Counts {
        fn admit(&mut self, count: u64, due: Nanos) {
            self.admitted += if due >= self.from { count } else { 0 };
        }

        fn drop_due(&mut self, due: Nanos) {
            self.dropped += u64::from(due >= self.from);
        }
    }

    /// What a worker admits that looks every millisecond, but not for `held` from the first arrival on, and whose
    /// sessions take one transaction each time it looks.
    fn admitted(arrivals: &mut Arrivals, from: Nanos, held: Nanos) -> Counts {
        let mut counts = Counts { from, ..Counts::default() };
        let mut now = START + held;
        while !arrivals.is_exhausted() && now < START + Nanos::from_secs(1000) {
            arrivals.arrive(now, 0, &mut counts);
            arrivals.take();
            now += Nanos::from_millis(1);
        }
        counts
    }

    #[test]
    fn every_worker_does_its_part_of_the_first_transactions_however_long_it_is_held_up() {
        let held = [0, 9, 300, 100_000].map(Nanos::from_millis);
        for kind in kinds() {
            for (workers, sessions) in [(1, 1), (3, 3), (2, 7), (8, 3)] {
                for (limit, from) in [(1, START), (60, START), (60, START + Nanos::from_millis(500)), (400, START)] {
                    let shares = shares(workers, sessions);
                    let wanted = parts(&kind, &shares, limit, from);
                    for held in held {
                        for max in [None, Some(u64::MAX)] {
                            let found: Vec<u64> = shares
                                .iter()
                                .map(|share| {
                                    let quota = Some(quota(&kind, *share, limit, from));
                                    let own = schedule(&kind, *share).unwrap();
                                    let mut arrivals = Arrivals::new(own, from, END, max, quota);
                                    admitted(&mut arrivals, from, held).admitted
                                })
                                .collect();
                            assert_eq!(found, wanted, "{kind:?} {workers} {sessions} {limit} {from} {held} {max:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_dropped_is_replaced_by_later_transactions_of_the_same_worker() {
        for arrival in [Arrival::Constant, Arrival::Poisson] {
            let kind = Kind::Rate(arrival, Rate::from(2000.0));
            let shares = shares(3, 3);
            let wanted = parts(&kind, &shares, 300, START);
            for held in [0, 10, 40, 300].map(Nanos::from_millis) {
                let counts: Vec<Counts> = shares
                    .iter()
                    .map(|share| {
                        let own = schedule(&kind, *share).unwrap();
                        let quota = Some(quota(&kind, *share, 300, START));
                        let mut arrivals = Arrivals::new(own, START, Nanos::MAX, Some(2), quota);
                        admitted(&mut arrivals, START, held)
                    })
                    .collect();
                let admitted: Vec<u64> = counts.iter().map(|counts| counts.admitted).collect();
                assert_eq!(admitted, wanted, "{arrival:?} {held}");
                assert!(held < Nanos::from_millis(40) || counts.iter().all(|counts| counts.dropped > 10));
            }
        }
    }

    #[test]
    fn a_limit_above_all_arrivals_is_exhausted_with_the_last_of_them() {
        let trace = Kind::Trace([3, 5, 8].map(Nanos::from_millis).into());
        let end = [(0, 100.0), (1, 100.0), (1, 0.0)];
        let points = end.map(|(at, per_s)| RatePoint { at: Nanos::from_secs(at), per_s });
        let falls = Kind::Rate(Arrival::Constant, Rate::new(&points).unwrap());
        for (kind, all) in [(trace, 3), (falls, 100)] {
            let share = SessionShare { worker: 0, workers: 1, sessions: 1 };
            let quota = Some(quota(&kind, share, 1000, START));
            let mut arrivals = Arrivals::new(schedule(&kind, share).unwrap(), START, Nanos::MAX, None, quota);
            assert_eq!(admitted(&mut arrivals, START, SECOND).admitted, all, "{kind:?}");
            assert!(arrivals.is_exhausted());
        }
    }
}
