//! Totals of a stage: the workers' measurements combined into intervals, and the resources used by the process.
//!
//! Workers send their intervals independently. The parts of one interval meet here, and become an `Interval` of the
//! `StageOutcome` when the coordinator says that all have arrived.

use std::collections::VecDeque;

use assay_io::process::{Turns, Usage};
use assay_measure::{Generator, Latencies, Tally, TargetInterval, TransactionTally};
use assay_seam::{Nanos, Origin};

use crate::messages::{IntervalPart, WorkerStageSummary};
use crate::outcome::{Interval, Outside, StageOutcome};

/// Room for so many intervals is made at a time.
const INTERVALS_MORE: usize = 256;

/// See the module. Instants are those of the run's clock.
pub(crate) struct StageSums {
    interval: Nanos,
    measured_from: Nanos,
    /// At the start of the measured part, once it has started; and at the last reported interval.
    consumed_from: Option<Consumption>,
    consumed_told: Consumption,
    /// By interval, not reported yet; the first has index `told`.
    slots: VecDeque<IntervalSlot>,
    told: usize,
}

/// Resources the program has used since its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consumption {
    /// Usage of the whole process.
    pub(crate) process: Usage,
    /// Turns of each worker; empty if the kernel does not report them.
    pub(crate) workers: Vec<Turns>,
}

/// One interval of all workers.
#[derive(Default)]
struct IntervalSlot {
    tallies: Vec<Tally>,
    /// The worker they came from.
    worker: usize,
    due: u64,
    dropped: u64,
    backlog: u64,
    backlog_max: u64,
    sessions: u32,
    outside: Outside,
    in_flight: u64,
    carried: u64,
}

impl StageSums {
    pub(crate) fn new(measured_from: Nanos, interval: Nanos) -> StageSums {
        StageSums {
            interval,
            measured_from,
            consumed_from: None,
            consumed_told: Consumption::default(),
            slots: VecDeque::new(),
            told: 0,
        }
    }

    /// Start of the measured part.
    pub(crate) fn measured_from(&self) -> Nanos {
        self.measured_from
    }

    /// Whether the measured part has not started yet (`start`).
    pub(crate) fn awaits_start(&self) -> bool {
        self.consumed_from.is_none()
    }

    /// The measured part starts.
    pub(crate) fn start(&mut self, consumed: Consumption) {
        self.consumed_told = consumed.clone();
        self.consumed_from = Some(consumed);
    }

    /// Number of intervals reported so far.
    pub(crate) fn told(&self) -> usize {
        self.told
    }

    /// Whether no part of the next interval has arrived.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// A worker's part of interval `index`. Returns cleared tallies for reuse, if it has any.
    pub(crate) fn add(&mut self, index: usize, worker: usize, part: IntervalPart) -> Option<Vec<Tally>> {
        let offset = index.checked_sub(self.told)?;
        if self.slots.len() <= offset {
            self.slots.resize_with(offset + 1, IntervalSlot::default);
        }
        let slot = &mut self.slots[offset];
        slot.due += part.due;
        slot.dropped += part.dropped;
        slot.backlog += part.backlog;
        slot.backlog_max += part.backlog_max;
        slot.sessions += part.sessions;
        slot.in_flight += part.in_flight;
        slot.carried += part.carried;
        slot.outside.add(&part.outside);
        if slot.tallies.is_empty() {
            (slot.tallies, slot.worker) = (part.tallies, worker);
            return None;
        }
        let mut tallies = part.tallies;
        for (ours, theirs) in slot.tallies.iter_mut().zip(&mut tallies) {
            ours.add(theirs);
            theirs.clear();
        }
        Some(tallies)
    }

    /// Adds the next interval, of this length, to `stage`. `consumed`: until now. Returns cleared tallies to reuse, and
    /// the worker they came from.
    pub(crate) fn tell(
        &mut self,
        length: Nanos,
        consumed: Consumption,
        stage: &mut StageOutcome,
    ) -> (usize, Vec<Tally>) {
        let slot = self.slots.pop_front().expect("there is a next interval");
        let start = Nanos(self.interval.0 * self.told as u64);
        self.told += 1;
        let cpu = consumed.process.cpu() - self.consumed_told.process.cpu();
        let cpu_wait = waited(&turns_between(&self.consumed_told, &consumed));
        self.consumed_told = consumed;

        let mut tallies = slot.tallies;
        let mut sum = Tally::default();
        for tally in &tallies {
            sum.add(tally);
        }
        (sum.due, sum.dropped) = (slot.due, slot.dropped);
        let mut response = Latencies::default();
        for transaction in &sum.transactions {
            response.add(&transaction.response);
        }
        stage.total.add(&sum);
        for (ours, theirs) in stage.targets.iter_mut().zip(&tallies) {
            ours.add(theirs);
        }
        stage.measured = start + length;
        let of_types = |of: fn(&TransactionTally) -> u64| sum.transactions.iter().map(of).collect::<Vec<u64>>();
        let done = |tally: &Tally| tally.done_ns.map(|ends| ends.map(|at| (Nanos(at) - self.measured_from).0));
        let of_target = |tally: &Tally| TargetInterval {
            transactions: tally.transactions.iter().map(|transaction| transaction.count).sum(),
            first_done_ns: done(tally).map(|[first, _]| first),
            last_done_ns: done(tally).map(|[_, last]| last),
            errors_by_class: tally.errors_by_class(),
        };
        let lost = sum.errors.iter().filter(|error| error.origin == Origin::Network.name());
        // Doubling would hold twice of what a long run needs.
        if stage.intervals.len() == stage.intervals.capacity() {
            stage.intervals.reserve_exact(INTERVALS_MORE);
        }
        stage.intervals.push(Interval {
            measured: assay_measure::Interval {
                start_ns: start.0,
                length_ns: length.0,
                transactions: of_types(|transaction| transaction.count),
                statements: sum.statements.map(|class| class.count),
                errors: sum.errors.iter().map(|error| error.count).sum(),
                retries: of_types(|transaction| transaction.retries).iter().sum(),
                failed: of_types(|transaction| transaction.failed).iter().sum(),
                reconnects: sum.reconnects,
                due: Some(slot.due),
                backlog: slot.backlog,
                backlog_max: Some(slot.backlog_max),
                first_done_ns: done(&sum).map(|[first, _]| first),
                last_done_ns: done(&sum).map(|[_, last]| last),
                errors_by_class: sum.errors_by_class(),
                targets: if tallies.len() > 1 { tallies.iter().map(of_target).collect() } else { Vec::new() },
                sessions: slot.sessions,
                cpu_ns: cpu.0,
                cpu_wait_ns: cpu_wait.map(|wait| wait.0),
                response: response.at_rest(),
            },
            lost: lost.map(|error| error.count).sum(),
            outside: slot.outside,
            in_flight: slot.in_flight,
            carried: slot.carried,
        });
        for tally in &mut tallies {
            tally.clear();
        }
        (slot.worker, tallies)
    }

    /// The stage is over, and its measured part ended at `end`: returns its length. What came later (waiting for
    /// transactions that did not finish) belongs to its last interval, unless that was already reported.
    pub(crate) fn settle(&mut self, end: Nanos) -> Nanos {
        let measured = (end - self.measured_from).max(self.start_of(0));
        while self.slots.len() > 1 && self.start_of(self.slots.len() - 1) >= measured {
            self.merge_last();
        }
        // An interval shorter than half the usual length would show a meaningless rate: it is merged into the previous
        // one, unless that was already reported.
        let last = self.slots.len().saturating_sub(1);
        if last > 0 && measured - self.start_of(last) < Nanos(self.interval.0 / 2) {
            self.merge_last();
        }
        measured
    }

    /// How long the next interval of a settled stage is; `None` when all are reported.
    pub(crate) fn next_length(&self, measured: Nanos) -> Option<Nanos> {
        let next = self.slots.front()?;
        let length = if self.slots.len() > 1 { self.interval } else { measured - self.start_of(0) };
        let is_nothing = length == Nanos::ZERO && self.told > 0 && next.is_empty();
        (!is_nothing).then_some(length)
    }

    /// How long the next interval of a stage is if it is reported now; `None` if all are reported.
    pub(crate) fn length_until(&self, now: Nanos) -> Option<Nanos> {
        match self.slots.len() {
            0 => None,
            1 => Some(now - self.measured_from - self.start_of(0)),
            _ => Some(self.interval),
        }
    }

    /// Resources used by the program over the measured part, which has lasted until `now`.
    pub(crate) fn generator(&self, workers: &[WorkerStageSummary], consumed: &Consumption, now: Nanos) -> Generator {
        let consumed_from = self.consumed_from.as_ref().unwrap_or(consumed);
        let lasted = now - self.measured_from;
        let turns = turns_between(consumed_from, consumed);
        let largest_share = |times: &mut dyn Iterator<Item = Nanos>| {
            times.map(|time| time.as_secs_f64() / lasted.as_secs_f64()).fold(0.0, f64::max).clamp(0.0, 1.0)
        };
        let served = workers.iter().filter(|worker| worker.sessions > 0);
        // A call that may sleep also does work in the kernel while awake: only the scheduler can tell the two apart.
        let busiest_worker = match turns.is_empty() {
            false => largest_share(
                &mut turns.iter().zip(workers).map(|(turns, worker)| turns.ran + turns.waited - worker.polled),
            ),
            true => largest_share(&mut served.map(|worker| lasted - worker.asleep)),
        };
        let used = consumed.process - consumed_from.process;
        let ppm = |share: f64| (share * 1e6) as u32;
        Generator {
            cpu_user_ns: used.user.0,
            cpu_system_ns: used.system.0,
            switches_involuntary: used.switches_involuntary,
            switches_voluntary: used.switches_voluntary,
            turns: workers.iter().map(|worker| worker.turns).sum(),
            events: workers.iter().map(|worker| worker.events).sum(),
            cpu_wait_ns: waited(&turns).map(|wait| wait.0),
            longest_wait_ppm: (!turns.is_empty())
                .then(|| ppm(largest_share(&mut turns.iter().map(|turns| turns.waited)))),
            busiest_worker_ppm: ppm(busiest_worker),
            workers: workers.len() as u32,
            memory_max_bytes: used.resident_bytes_max,
        }
    }

    /// The interval `offset` after the next, since the start of the measured part.
    fn start_of(&self, offset: usize) -> Nanos {
        Nanos(self.interval.0 * (self.told + offset) as u64)
    }

    /// Merges the last interval into the previous one.
    fn merge_last(&mut self) {
        let last = self.slots.pop_back().expect("there are two");
        let slot = self.slots.back_mut().expect("there are two");
        if slot.tallies.is_empty() {
            (slot.tallies, slot.worker) = (last.tallies, last.worker);
        } else {
            for (ours, theirs) in slot.tallies.iter_mut().zip(&last.tallies) {
                ours.add(theirs);
            }
        }
        slot.due += last.due;
        slot.dropped += last.dropped;
        slot.backlog_max = slot.backlog_max.max(last.backlog_max);
        slot.outside.add(&last.outside);
        (slot.backlog, slot.in_flight, slot.sessions) = (last.backlog, last.in_flight, last.sessions);
        slot.carried = last.carried;
    }
}

impl IntervalSlot {
    fn is_empty(&self) -> bool {
        self.due == 0
            && self.outside == Outside::default()
            && self.tallies.iter().all(|tally| {
                tally.errors.is_empty()
                    && (tally.unfinished, tally.stopped, tally.reconnects) == (0, 0, 0)
                    && tally.statements.iter().all(|statement| statement.count == 0)
                    && tally.transactions.iter().all(TransactionTally::is_empty)
            })
    }
}

/// Turns of each worker between two instants; empty if the kernel does not report them.
fn turns_between(earlier: &Consumption, later: &Consumption) -> Vec<Turns> {
    earlier.workers.iter().zip(&later.workers).map(|(earlier, later)| *later - *earlier).collect()
}

/// The sum over all workers.
fn waited(turns: &[Turns]) -> Option<Nanos> {
    (!turns.is_empty()).then(|| turns.iter().fold(Nanos::ZERO, |sum, turns| sum + turns.waited))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker that got no tallies back would make new ones for each interval, and another would collect them.
    #[test]
    fn every_worker_gets_its_tallies_back() {
        let mut sums = StageSums::new(Nanos::ZERO, Nanos(1_000));
        sums.start(Consumption::default());
        let mut stage = StageOutcome::default();
        let part = || IntervalPart { tallies: vec![Tally::default()], ..IntervalPart::default() };
        for (index, [first, second]) in [[0, 1], [1, 0], [1, 0]].into_iter().enumerate() {
            assert!(sums.add(index, first, part()).is_none());
            assert_eq!(sums.add(index, second, part()).map(|tallies| tallies.len()), Some(1));
            let (worker, tallies) = sums.tell(Nanos(1_000), Consumption::default(), &mut stage);
            assert_eq!((worker, tallies.len()), (first, 1));
        }
    }
}
