//! When transactions are due in an open loop.
//!
//! A schedule turns a rate into a sequence of due instants. It knows no session, socket or clock: the worker asks for
//! `next_due` and keeps the promise, or records how late it was. Due instants never move because the server was slow
//! (coordinated omission, docs/methodology.md). A closed loop has no schedule: there, a transaction is due when the
//! previous one is done.
//!
//! Each worker has its own part of the arrivals, determined only by the numbers of its sessions, so that no worker
//! waits for another. Constant arrivals are dealt to sessions in turn, which keeps them evenly spaced over the whole
//! run; Poisson arrivals are independent streams with a share of the rate each, whose sum is a Poisson stream of the
//! whole rate.

use std::sync::Arc;

use assay_random::Random;
use assay_seam::Nanos;

use crate::plan::Arrival;
use crate::rate::Rate;

/// One worker's part of the arrivals of one stage.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: Nanos,
    next: Nanos,
    kind: ScheduleKind,
}

#[derive(Clone, Debug)]
enum ScheduleKind {
    /// Arrival number `index` (of all workers) is the next.
    Constant { rate: Rate, share: SessionShare, index: u64 },
    /// `elapsed`: distance of the next one from the start, in arrivals of all workers.
    Poisson { rate: Rate, random: Random, elapsed: f64, part: f64 },
    /// Arrival number `index` (of all workers) is the next.
    Trace { arrivals: Arc<[Nanos]>, share: SessionShare, index: u64 },
}

/// Which part of the sessions a worker drives: those whose number is `worker` modulo `workers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionShare {
    /// Counted from 0.
    pub worker: u32,
    /// All workers. 1 <= workers.
    pub workers: u32,
    /// All sessions of the stage. 1 <= sessions.
    pub sessions: u32,
}

impl SessionShare {
    /// The number of these sessions.
    pub fn own_sessions(&self) -> u32 {
        self.sessions / self.workers + u32::from(self.worker < self.sessions % self.workers)
    }

    /// This worker's part of `total` things dealt to the sessions in turn; the parts of all workers add up.
    pub fn part_of(&self, total: u64) -> u64 {
        let (rounds, rest) = (total / u64::from(self.sessions), total % u64::from(self.sessions));
        let (workers, worker) = (u64::from(self.workers), u64::from(self.worker));
        rounds * u64::from(self.own_sessions()) + rest / workers + u64::from(worker < rest % workers)
    }

    /// Whether session `number` is one of them.
    pub fn owns(&self, number: u32) -> bool {
        number % self.workers == self.worker
    }
}

impl Schedule {
    /// Arrivals from `start` on, at `rate` over all sessions; `None` if this worker has no session.
    pub fn new(start: Nanos, rate: Rate, arrival: Arrival, share: SessionShare, seed: u64) -> Option<Schedule> {
        Schedule::of_kind(
            start,
            share,
            match arrival {
                Arrival::Constant => ScheduleKind::Constant { rate, share, index: 0 },
                Arrival::Poisson => ScheduleKind::Poisson {
                    rate,
                    random: Random::of_stream(seed, u64::from(share.worker) + 1),
                    elapsed: 0.0,
                    part: f64::from(share.own_sessions()) / f64::from(share.sessions),
                },
            },
        )
    }

    /// Arrivals at these instants after `start`; `None` if this worker has no session.
    pub fn of_trace(start: Nanos, arrivals: Arc<[Nanos]>, share: SessionShare) -> Option<Schedule> {
        Schedule::of_kind(start, share, ScheduleKind::Trace { arrivals, share, index: 0 })
    }

    fn of_kind(start: Nanos, share: SessionShare, kind: ScheduleKind) -> Option<Schedule> {
        if share.own_sessions() == 0 {
            return None;
        }
        let mut schedule = Schedule { start, next: start, kind };
        let is_first = match &schedule.kind {
            ScheduleKind::Constant { .. } | ScheduleKind::Trace { .. } => share.owns(0),
            ScheduleKind::Poisson { .. } => false,
        };
        if is_first {
            schedule.next = schedule.due()
        } else {
            schedule.advance()
        }
        Some(schedule)
    }

    /// The earliest instant not taken yet; `MAX` if there is none.
    pub fn next_due(&self) -> Nanos {
        self.next
    }

    /// Takes it.
    pub fn take(&mut self) -> Nanos {
        let due = self.next;
        self.advance();
        due
    }

    /// Takes all that are due before `limit`, and returns their number. At a constant rate the cost does not depend on
    /// it.
    pub fn skip_before(&mut self, limit: Nanos) -> u64 {
        if self.next >= limit {
            return 0;
        }
        if let ScheduleKind::Constant { rate, share, index } = &mut self.kind {
            let first = count_before(rate, self.start, limit);
            let skipped = share.part_of(first) - share.part_of(*index);
            *index = first - 1;
            self.advance();
            return skipped;
        }
        let mut skipped = 0;
        while self.next < limit {
            self.advance();
            skipped += 1;
        }
        skipped
    }

    /// How many of the first `count` arrivals at or after `from`, of all workers, are this worker's; `None`: arrivals
    /// of workers are independent, so it takes all of their schedules to know.
    pub(crate) fn part_of_first(&self, count: u64, from: Nanos) -> Option<u64> {
        let (share, before) = match &self.kind {
            ScheduleKind::Constant { rate, share, .. } => (share, count_before(rate, self.start, from)),
            ScheduleKind::Trace { arrivals, share, .. } => {
                (share, arrivals.partition_point(|at| self.start + *at < from) as u64)
            }
            ScheduleKind::Poisson { .. } => return None,
        };
        Some(share.part_of(before.saturating_add(count)) - share.part_of(before))
    }

    fn advance(&mut self) {
        match &mut self.kind {
            ScheduleKind::Constant { share, index, .. } | ScheduleKind::Trace { share, index, .. } => loop {
                *index += 1;
                if share.owns((*index % u64::from(share.sessions)) as u32) {
                    break;
                }
            },
            ScheduleKind::Poisson { random, elapsed, part, .. } => *elapsed -= random.unit().ln() / *part,
        }
        self.next = self.due();
    }

    /// When the next one is due.
    fn due(&self) -> Nanos {
        match &self.kind {
            ScheduleKind::Constant { rate, index, .. } => instant(self.start, rate.due(*index as f64)),
            ScheduleKind::Poisson { rate, elapsed, .. } => instant(self.start, rate.due(*elapsed)),
            ScheduleKind::Trace { arrivals, index, .. } => {
                let at = usize::try_from(*index).ok().and_then(|index| arrivals.get(index));
                at.map_or(Nanos::MAX, |at| self.start + *at)
            }
        }
    }
}

/// How many arrivals at a constant rate come before `limit`, of all workers.
fn count_before(rate: &Rate, start: Nanos, limit: Nanos) -> u64 {
    if limit <= start {
        return 0;
    }
    let due = |index: u64| instant(start, rate.due(index as f64));
    // Rounding may be off by a few.
    let mut count = rate.count_until((limit - start).as_secs_f64()) as u64;
    while count > 0 && due(count - 1) >= limit {
        count -= 1;
    }
    while due(count) < limit {
        count += 1;
    }
    count
}

/// `MAX` for never.
fn instant(start: Nanos, seconds: Option<f64>) -> Nanos {
    seconds.map_or(Nanos::MAX, |seconds| start + Nanos::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::RatePoint;

    fn arrivals(arrival: Arrival, rate: f64, share: SessionShare, until: Nanos) -> Vec<Nanos> {
        let mut schedule = Schedule::new(Nanos::from_secs(1), rate.into(), arrival, share, 42).unwrap();
        let mut dues = Vec::new();
        while schedule.next_due() < until {
            dues.push(schedule.take());
        }
        dues
    }

    fn of_all_workers(arrival: Arrival, rate: f64, workers: u32, sessions: u32, until: Nanos) -> Vec<Nanos> {
        let mut all: Vec<Nanos> = (0..workers.min(sessions))
            .flat_map(|worker| arrivals(arrival, rate, SessionShare { worker, workers, sessions }, until))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn constant_arrivals_of_all_workers_together_are_evenly_spaced() {
        for (workers, sessions) in [(1, 1), (2, 1), (2, 3), (3, 7), (4, 64)] {
            let all = of_all_workers(Arrival::Constant, 1000.0, workers, sessions, Nanos::from_secs(2));
            let wanted: Vec<Nanos> = (0..1000).map(|i| Nanos(1_000_000_000 + i * 1_000_000)).collect();
            assert_eq!(all, wanted, "{workers} workers, {sessions} sessions");
        }
    }

    #[test]
    fn constant_arrivals_do_not_drift_over_an_hour() {
        let share = SessionShare { worker: 0, workers: 1, sessions: 1 };
        let mut schedule = Schedule::new(Nanos::ZERO, 3.0.into(), Arrival::Constant, share, 1).unwrap();
        let mut last = Nanos::ZERO;
        for _ in 0..=3 * 3600 {
            last = schedule.take();
        }
        assert_eq!(last, Nanos::from_secs(3600));
    }

    #[test]
    fn poisson_arrivals_keep_the_rate_and_have_exponential_gaps() {
        let all = of_all_workers(Arrival::Poisson, 10_000.0, 2, 5, Nanos::from_secs(11));
        let rate = all.len() as f64 / 10.0;
        // Standard deviation of the count is √100,000 = 316: five of them.
        assert!((rate - 10_000.0).abs() < 160.0, "{rate}");
        let gaps: Vec<f64> = all.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // Kolmogorov–Smirnov distance from the exponential distribution; 1.63/√n is the 1 % bound.
        let mut sorted = gaps.clone();
        sorted.sort_by(f64::total_cmp);
        let distance = sorted
            .iter()
            .enumerate()
            .map(|(i, gap)| ((1.0 - (-gap / mean).exp()) - i as f64 / sorted.len() as f64).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.63 / (gaps.len() as f64).sqrt(), "{distance}");
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals() {
        let run = |seed| {
            let share = SessionShare { worker: 0, workers: 1, sessions: 1 };
            let mut schedule = Schedule::new(Nanos::ZERO, 100.0.into(), Arrival::Poisson, share, seed).unwrap();
            (0..100).map(|_| schedule.take()).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn parts_of_all_workers_add_up() {
        for (workers, sessions, total) in [(1, 1, 7), (2, 8, 50), (2, 3, 50), (3, 2, 5), (4, 7, 0), (4, 9, 3)] {
            let part = |worker| SessionShare { worker, workers, sessions }.part_of(total);
            assert_eq!((0..workers).map(part).sum::<u64>(), total, "{workers} {sessions} {total}");
        }
    }

    #[test]
    fn a_worker_without_sessions_has_no_schedule() {
        let share = SessionShare { worker: 1, workers: 2, sessions: 1 };
        assert!(Schedule::new(Nanos::ZERO, 1.0.into(), Arrival::Constant, share, 1).is_none());
    }

    #[test]
    fn a_ramp_has_as_many_arrivals_as_its_area_however_they_are_spaced_and_shared() {
        let ramp = Rate::new(&[
            RatePoint { at: Nanos::ZERO, per_s: 0.0 },
            RatePoint { at: Nanos::from_secs(10), per_s: 2000.0 },
            RatePoint { at: Nanos::from_secs(10), per_s: 0.0 },
        ]);
        for (arrival, tolerance) in [(Arrival::Constant, 1), (Arrival::Poisson, 500)] {
            for (workers, sessions) in [(1, 1), (2, 5), (3, 64)] {
                let count = |until: u64| -> u64 {
                    let part = |worker: u32| {
                        let share = SessionShare { worker, workers, sessions };
                        let schedule = Schedule::new(Nanos::from_secs(1), ramp.clone().unwrap(), arrival, share, 7);
                        schedule.map_or(0, |mut schedule| schedule.skip_before(Nanos::from_secs(1 + until)))
                    };
                    (0..workers).map(part).sum()
                };
                for (until, due) in [(5u64, 2500u64), (10, 10_000), (100, 10_000)] {
                    let found = count(until);
                    assert!(found.abs_diff(due) <= tolerance, "{arrival:?}, {workers} workers, {until} s: {found}");
                }
            }
        }
    }

    #[test]
    fn a_trace_is_dealt_to_sessions_in_turn_and_ends() {
        let instants: Arc<[Nanos]> = [0, 5, 5, 9, 20].map(Nanos::from_millis).into();
        let of = |worker| {
            let share = SessionShare { worker, workers: 2, sessions: 3 };
            let mut schedule = Schedule::of_trace(Nanos::from_secs(1), instants.clone(), share).unwrap();
            std::iter::from_fn(|| Some(schedule.take()).filter(|due| *due < Nanos::MAX)).collect::<Vec<_>>()
        };
        let at = |millis: &[u64]| -> Vec<Nanos> { millis.iter().map(|ms| Nanos::from_millis(1000 + ms)).collect() };
        assert_eq!((of(0), of(1)), (at(&[0, 5, 9]), at(&[5, 20])));
    }
}
