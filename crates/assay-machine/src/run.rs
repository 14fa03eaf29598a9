//! Runs a test: threads, limits, rate, reports.
//!
//! Each worker is a thread of the operating system. It writes its counts and the durations of its events into numbers
//! of its own (`measure`); the calling thread sleeps until there is something to report, and passes it to a function of
//! the caller. A latency is that of the event alone, without preparing the next request. At a rate, requests are due at
//! random instants, independent of how fast they are executed, and a latency starts at the instant at which the event
//! was due; nothing is dropped.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::measure::{Base, LatencyScale, WorkerSlot};
use crate::random::WorkerRandom;
use crate::{Counts, MachineFault, Snapshot};

/// Something to measure.
pub trait MachineTest: Send + Sync + 'static {
    /// What each thread has of its own.
    type Worker: TestThread;

    /// The part of thread `id`, made in that thread before the clock starts.
    fn worker(self: &Arc<Self>, id: u32) -> Result<Self::Worker, MachineFault>;
}

/// A thread's part of a test.
pub trait TestThread {
    /// What the next event is to do.
    type Request;

    /// The next request. `None`: there is nothing left for this thread. Not part of the latency.
    fn next(&mut self) -> Option<Self::Request>;

    /// Does it.
    fn execute(&mut self, request: Self::Request, counts: &Counts) -> Result<(), MachineFault>;

    /// After the last event, within the time used for rates.
    fn finish(&mut self, _: &Counts) -> Result<(), MachineFault> {
        Ok(())
    }
}

/// How to run a test.
#[derive(Clone, Debug)]
pub struct MachinePlan {
    /// At least 1.
    pub threads: u32,
    /// Events over all threads that begin after the warm-up. Those in flight at its end count too.
    pub events: Option<u64>,
    /// After the warm-up. Events begun before the end are finished.
    pub time: Option<Duration>,
    /// Before anything is counted.
    pub warmup: Duration,
    /// Events due per second, over all threads.
    pub rate: Option<u64>,
    /// Between intermediate reports.
    pub interval: Option<Duration>,
    /// When a whole report is made and counting restarts. Ascending.
    pub checkpoints: Vec<Duration>,
    /// When the run is given up, even with events in flight.
    pub give_up: Option<Duration>,
    /// Seed of the random due times.
    pub seed: u64,
    /// Called every tenth of a second: whether to end the run early. Events that continue for longer than a moment
    /// after that are given up.
    pub stop: fn() -> bool,
}

impl MachinePlan {
    /// A run that ends when the test has nothing left to do.
    pub fn new(threads: u32) -> MachinePlan {
        MachinePlan {
            threads,
            events: None,
            time: None,
            warmup: Duration::ZERO,
            rate: None,
            interval: None,
            checkpoints: Vec::new(),
            give_up: None,
            seed: 0,
            stop: || false,
        }
    }
}

/// Output while a test runs.
#[derive(Debug)]
pub enum TestMoment {
    /// This thread is ready.
    Ready(u32),
    /// All are, and begin.
    Started,
    /// The counting begins after the warm-up.
    Warm,
    /// A thread met a limit.
    Limit(TestLimit),
    /// An intermediate report.
    Interval(Snapshot),
    /// A whole report.
    Checkpoint(Snapshot),
    /// All threads are done.
    Done,
}

/// What ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestLimit {
    /// As many events as were wanted.
    Events,
    /// As much time as was wanted.
    Time,
}

/// How a run ended.
#[derive(Debug)]
pub struct MachineOutcome {
    /// Since the last checkpoint. `total` is the time until the last event was done; `interval` also includes the rest,
    /// and is used for rates.
    pub snapshot: Snapshot,
    /// The run was aborted while this many threads were in an event.
    pub unfinished: Option<u32>,
}

/// What all threads share.
struct SharedByThreads {
    stop: AtomicBool,
    /// Events taken, and how many may be.
    taken: AtomicU64,
    limit: Option<u64>,
    /// Events that end while it is true do not count.
    warming: AtomicBool,
    epoch: AtomicU32,
    busy: AtomicU32,
    arrivals: Option<EventArrivals>,
}

/// The events of a rate: when they are due.
struct EventArrivals {
    due: Mutex<DueEvent>,
    changed: Condvar,
    /// Between two of them, in seconds.
    mean: f64,
    seed: u64,
}

struct DueEvent {
    /// The first that is not due yet; `None` before the start.
    next: Option<EventArrival>,
    /// The first one that has not started: behind the one above by the number of those waiting. At a rate that the
    /// threads cannot keep, ever more events wait, so they are counted, and generated a second time when their turn
    /// comes.
    first: Option<EventArrival>,
    waiting: u64,
}

/// One of the sequence of arrivals.
#[derive(Clone, Debug)]
struct EventArrival {
    at: Instant,
    random: WorkerRandom,
}

impl EventArrival {
    /// Continues with the next one. Gaps between independent arrivals are exponential. `mean` in seconds.
    fn advance(&mut self, mean: f64) {
        self.at += Duration::from_secs_f64(-mean * (1.0 - self.random.unit()).ln());
    }
}

impl DueEvent {
    /// Adds what is due by now.
    fn arrive(&mut self, now: Instant, mean: f64) {
        let Some(next) = &mut self.next else { return };
        while next.at <= now {
            next.advance(mean);
            self.waiting += 1;
        }
    }

    /// Takes the one that has waited longest.
    fn take(&mut self, mean: f64) -> Option<Instant> {
        let first = self.first.as_mut().filter(|_| self.waiting > 0)?;
        let due = first.at;
        first.advance(mean);
        self.waiting -= 1;
        Some(due)
    }
}

impl EventArrivals {
    fn new(rate: u64, seed: u64) -> EventArrivals {
        let due = DueEvent { next: None, first: None, waiting: 0 };
        EventArrivals { due: Mutex::new(due), changed: Condvar::new(), mean: 1.0 / rate as f64, seed }
    }

    fn begin(&self, now: Instant) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let mut first = EventArrival { at: now, random: WorkerRandom::new(self.seed, u64::MAX) };
        first.advance(self.mean);
        (due.next, due.first) = (Some(first.clone()), Some(first));
    }

    /// How many events wait.
    fn waiting(&self) -> u64 {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.arrive(Instant::now(), self.mean);
        due.waiting
    }

    /// Waits for the next event. `None`: none before the end.
    fn take(&self, end: Option<Instant>, stop: &AtomicBool) -> Option<Instant> {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            if stop.load(Relaxed) || end.is_some_and(|end| end <= now) {
                return None;
            }
            due.arrive(now, self.mean);
            if let Some(instant) = due.take(self.mean) {
                return Some(instant);
            }
            let next = due.next.as_ref().expect("set before any worker begins").at;
            let wait = (next.min(end.unwrap_or(next)) - now).min(STOP_ASKED);
            due = self.changed.wait_timeout(due, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// How long to wait for events in flight when the run ends early.
const STOP_GRACE: Duration = Duration::from_millis(300);
/// Between questions whether to stop.
const STOP_ASKED: Duration = Duration::from_millis(100);

/// What a thread tells the one that reports.
enum News {
    Ready(u32),
    Failed(MachineFault),
    Limit(TestLimit),
    /// Its last event was done at this instant.
    Done(Instant, Result<(), MachineFault>),
}

/// Where threads wait for the start: `None` until it is known, `Some(None)` if there will be none.
type StartGate = (Mutex<Option<Option<Instant>>>, Condvar);

/// Runs `test` by `plan`. `tell` is called in this thread. Fails if a worker does; the others are then stopped. When
/// the run is given up, threads are left behind: the caller should end the process.
pub fn run<T: MachineTest>(
    test: &Arc<T>,
    plan: &MachinePlan,
    mut tell: impl FnMut(TestMoment),
) -> Result<MachineOutcome, MachineFault> {
    let shared = Arc::new(SharedByThreads {
        stop: AtomicBool::new(false),
        taken: AtomicU64::new(0),
        limit: plan.events,
        warming: AtomicBool::new(!plan.warmup.is_zero()),
        epoch: AtomicU32::new(0),
        busy: AtomicU32::new(0),
        arrivals: plan.rate.map(|rate| EventArrivals::new(rate, plan.seed)),
    });
    let slots: Vec<Arc<WorkerSlot>> = (0..plan.threads).map(|_| Arc::new(WorkerSlot::new())).collect();
    let gate: Arc<StartGate> = Arc::new((Mutex::new(None), Condvar::new()));
    let (sender, news) = channel();
    for (id, slot) in (0..plan.threads).zip(&slots) {
        let (test, shared, slot, start) = (test.clone(), shared.clone(), slot.clone(), gate.clone());
        let (own, time) = (sender.clone(), plan.time.map(|time| time + plan.warmup));
        let spawned = thread::Builder::new().spawn(move || {
            let mut worker = match test.worker(id) {
                Ok(worker) => worker,
                Err(fault) => return drop(own.send(News::Failed(fault))),
            };
            drop(own.send(News::Ready(id)));
            let Some(start) = wait(&start) else { return };
            let result = work(&mut worker, &shared, &slot, time.map(|time| start + time), &own);
            let last = Instant::now();
            let result = result.and_then(|()| worker.finish(&slot.counts));
            drop(own.send(News::Done(last, result)));
        });
        if let Err(error) = spawned {
            open(&gate, None);
            return Err(MachineFault::system(format!("cannot start thread #{id}"), &error));
        }
    }
    drop(sender);
    if let Err(fault) = get_ready(&news, plan.threads, &mut tell) {
        open(&gate, None);
        return Err(fault);
    }
    let begin = Instant::now();
    if let Some(arrivals) = &shared.arrivals {
        arrivals.begin(begin);
    }
    open(&gate, Some(begin));
    tell(TestMoment::Started);
    report(plan, &shared, &slots, &news, begin + plan.warmup, tell)
}

fn wait(gate: &StartGate) -> Option<Instant> {
    let mut start = gate.0.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match *start {
            Some(start) => return start,
            None => start = gate.1.wait(start).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

fn open(gate: &StartGate, start: Option<Instant>) {
    *gate.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(start);
    gate.1.notify_all();
}

fn get_ready(news: &Receiver<News>, threads: u32, tell: &mut impl FnMut(TestMoment)) -> Result<(), MachineFault> {
    for _ in 0..threads {
        match news.recv() {
            Ok(News::Ready(id)) => tell(TestMoment::Ready(id)),
            Ok(News::Failed(fault)) => return Err(fault),
            Ok(News::Limit(_) | News::Done(..)) | Err(_) => unreachable!("no thread has begun, and none ends unsaid"),
        }
    }
    Ok(())
}

/// One thread's events.
fn work<W: TestThread>(
    worker: &mut W,
    shared: &SharedByThreads,
    slot: &WorkerSlot,
    end: Option<Instant>,
    news: &Sender<News>,
) -> Result<(), MachineFault> {
    let scale = LatencyScale::new();
    loop {
        if shared.stop.load(Relaxed) {
            return Ok(());
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            drop(news.send(News::Limit(TestLimit::Time)));
            return Ok(());
        }
        let counted = !shared.warming.load(Relaxed);
        if let Some(limit) = shared.limit
            && counted
            && shared.taken.fetch_add(1, Relaxed) >= limit
        {
            drop(news.send(News::Limit(TestLimit::Events)));
            return Ok(());
        }
        let due = match &shared.arrivals {
            None => None,
            Some(arrivals) => match arrivals.take(end, &shared.stop) {
                Some(due) => Some(due),
                None => return Ok(()),
            },
        };
        let Some(request) = worker.next() else { return Ok(()) };
        if due.is_some() {
            shared.busy.fetch_add(1, Relaxed);
        }
        let begin = due.unwrap_or_else(Instant::now);
        worker.execute(request, if counted { &slot.counts } else { &slot.uncounted })?;
        let nanos = begin.elapsed().as_nanos() as u64;
        // One that began in the warm-up and ended after it counts, beyond the limit, as in sysbench.
        let counts = counted || !shared.warming.load(Relaxed);
        if !counted {
            slot.uncounted.take(counts.then_some(&slot.counts));
        }
        if counts {
            slot.record(scale, shared.epoch.load(Relaxed), nanos);
        }
        if due.is_some() {
            shared.busy.fetch_sub(1, Relaxed);
        }
    }
}

/// Makes the reports until all threads are done. `start`: when counting begins.
fn report(
    plan: &MachinePlan,
    shared: &SharedByThreads,
    slots: &[Arc<WorkerSlot>],
    news: &Receiver<News>,
    start: Instant,
    mut tell: impl FnMut(TestMoment),
) -> Result<MachineOutcome, MachineFault> {
    let mut running = plan.threads;
    let (mut of_intervals, mut of_checkpoints) = (Base::new(slots.len()), Base::new(slots.len()));
    let mut next_interval = plan.interval.map(|interval| start + interval);
    let mut checkpoints = plan.checkpoints.iter().map(|checkpoint| start + *checkpoint).peekable();
    let mut give_up = plan.give_up.map(|after| start + after);
    let (mut last, mut failed) = (start, None);
    let begin_epoch = || shared.epoch.fetch_add(1, Relaxed);
    loop {
        let now = Instant::now();
        let due = |instant: Option<Instant>| instant.is_some_and(|instant| instant <= now);
        let warming = shared.warming.load(Relaxed);
        let epoch = shared.epoch.load(Relaxed);
        if warming && start <= now {
            shared.warming.store(false, Relaxed);
            tell(TestMoment::Warm);
            continue;
        }
        if failed.is_none() && due(next_interval) {
            let mut snapshot = of_intervals.advance(slots, epoch, now - start);
            snapshot.running = running;
            snapshot.waiting = shared.arrivals.as_ref().map_or(0, EventArrivals::waiting);
            snapshot.busy = shared.busy.load(Relaxed);
            tell(TestMoment::Interval(snapshot));
            let interval = plan.interval.expect("an interval was due");
            next_interval = next_interval.map(|next| next + interval);
        }
        if failed.is_none() && due(checkpoints.peek().copied()) {
            checkpoints.next();
            let mut snapshot = of_checkpoints.advance(slots, epoch, now - start);
            begin_epoch();
            snapshot.running = running;
            tell(TestMoment::Checkpoint(snapshot));
        }
        if due(give_up) {
            let snapshot = of_checkpoints.advance(slots, epoch, now - start);
            return Ok(MachineOutcome { snapshot, unfinished: Some(running) });
        }
        if running == 0 {
            break;
        }
        if (plan.stop)() && !shared.stop.swap(true, Relaxed) {
            let limit = now + STOP_GRACE;
            give_up = Some(give_up.map_or(limit, |end| end.min(limit)));
        }
        let warm = warming.then_some(start);
        let next = [next_interval, checkpoints.peek().copied(), give_up, warm].into_iter().flatten().min();
        let wait = next.map_or(STOP_ASKED, |next| next.saturating_duration_since(Instant::now()).min(STOP_ASKED));
        match news.recv_timeout(wait) {
            Ok(News::Limit(limit)) => tell(TestMoment::Limit(limit)),
            Ok(News::Done(instant, result)) => {
                running -= 1;
                last = last.max(instant);
                if let Err(fault) = result {
                    shared.stop.store(true, Relaxed);
                    failed.get_or_insert(fault);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(News::Ready(_) | News::Failed(_)) | Err(RecvTimeoutError::Disconnected) => {
                unreachable!("threads got ready before, and say when they are done")
            }
        }
    }
    tell(TestMoment::Done);
    if let Some(fault) = failed {
        return Err(fault);
    }
    let mut snapshot = of_checkpoints.advance(slots, shared.epoch.load(Relaxed), start.elapsed());
    snapshot.total = last - start;
    Ok(MachineOutcome { snapshot, unfinished: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events that count, may fail, and may wait until they are let go.
    #[derive(Default)]
    struct Scripted {
        fails_at: Option<u64>,
        quota: Option<u64>,
        hangs: Option<Arc<StartGate>>,
        executed: AtomicU64,
    }

    struct Hand {
        test: Arc<Scripted>,
        done: u64,
    }

    impl MachineTest for Scripted {
        type Worker = Hand;

        fn worker(self: &Arc<Self>, id: u32) -> Result<Hand, MachineFault> {
            match self.fails_at {
                Some(0) if id == 1 => Err(MachineFault::new("no hands")),
                _ => Ok(Hand { test: self.clone(), done: 0 }),
            }
        }
    }

    impl TestThread for Hand {
        type Request = u64;

        fn next(&mut self) -> Option<u64> {
            self.done += 1;
            self.test.quota.is_none_or(|quota| self.done <= quota).then_some(self.done)
        }

        fn execute(&mut self, request: u64, counts: &Counts) -> Result<(), MachineFault> {
            if let Some(gate) = &self.test.hangs {
                wait(gate);
            }
            self.test.executed.fetch_add(1, Relaxed);
            counts.written(10);
            if self.test.fails_at == Some(request) { Err(MachineFault::new("broken")) } else { Ok(()) }
        }

        fn finish(&mut self, counts: &Counts) -> Result<(), MachineFault> {
            counts.synced();
            Ok(())
        }
    }

    #[test]
    fn as_many_events_run_as_are_allowed_over_all_threads() {
        let mut limits = 0;
        let plan = MachinePlan { events: Some(1000), ..MachinePlan::new(3) };
        let outcome = run(&Arc::new(Scripted::default()), &plan, |moment| {
            limits += u32::from(matches!(moment, TestMoment::Limit(TestLimit::Events)));
        });
        let snapshot = outcome.unwrap().snapshot;
        assert_eq!((snapshot.events, snapshot.writes, snapshot.bytes_written, snapshot.syncs), (1000, 1000, 10_000, 3));
        assert_eq!(snapshot.latencies.buckets.iter().sum::<u64>(), 1000);
        assert_eq!(snapshot.shares.iter().map(|share| share.events).sum::<u64>(), 1000);
        assert_eq!(limits, 3);
        assert!(snapshot.total <= snapshot.interval);
    }

    #[test]
    fn a_test_may_have_less_to_do_than_is_allowed() {
        let test = Scripted { quota: Some(5), ..Scripted::default() };
        let outcome = run(&Arc::new(test), &MachinePlan { events: Some(1000), ..MachinePlan::new(2) }, |_| ()).unwrap();
        assert_eq!(outcome.snapshot.events, 10);
    }

    #[test]
    fn time_ends_a_run_and_says_so_for_every_thread() {
        let mut limits = Vec::new();
        let plan = MachinePlan { time: Some(Duration::from_millis(20)), ..MachinePlan::new(2) };
        let outcome = run(&Arc::new(Scripted::default()), &plan, |moment| {
            if let TestMoment::Limit(limit) = moment {
                limits.push(limit);
            }
        });
        assert!(outcome.unwrap().snapshot.total >= Duration::from_millis(20));
        assert_eq!(limits, [TestLimit::Time; 2]);
    }

    #[test]
    fn reports_part_a_run_without_a_loss() {
        static ENOUGH: AtomicBool = AtomicBool::new(false);
        let (mut intervals, mut checkpoints) = (Vec::new(), Vec::new());
        let plan = MachinePlan {
            interval: Some(Duration::from_millis(2)),
            checkpoints: vec![Duration::from_millis(3)],
            stop: || ENOUGH.load(Relaxed),
            ..MachinePlan::new(2)
        };
        let test = Arc::new(Scripted::default());
        let outcome = run(&test, &plan, |moment| {
            match moment {
                TestMoment::Interval(snapshot) => intervals.push(snapshot),
                TestMoment::Checkpoint(snapshot) => checkpoints.push(snapshot),
                _ => (),
            }
            ENOUGH.store(intervals.len() >= 3 && !checkpoints.is_empty(), Relaxed);
        });
        let last = outcome.unwrap().snapshot;
        let [checkpoint] = &checkpoints[..] else { panic!("{} checkpoints", checkpoints.len()) };
        let executed = test.executed.load(Relaxed);
        assert_eq!((checkpoint.events + last.events, checkpoint.writes + last.writes), (executed, executed));
        for snapshot in [checkpoint, &last] {
            assert_eq!(snapshot.events, snapshot.shares.iter().map(|share| share.events).sum::<u64>());
            assert!(snapshot.latencies.min <= snapshot.latencies.max);
        }
        assert!(intervals.iter().map(|snapshot| snapshot.events).sum::<u64>() <= executed);
        assert_eq!(checkpoint.total, checkpoint.interval);
        assert!(last.total <= checkpoint.interval + last.interval);
    }

    #[test]
    fn nothing_of_the_warm_up_is_counted_and_the_limit_waits_for_its_end() {
        let mut warm = false;
        let plan = MachinePlan { events: Some(50), warmup: Duration::from_millis(20), ..MachinePlan::new(2) };
        let outcome = run(&Arc::new(Scripted::default()), &plan, |moment| warm |= matches!(moment, TestMoment::Warm));
        let snapshot = outcome.unwrap().snapshot;
        assert!(warm);
        // Each thread may have carried an event over the end of the warm-up.
        assert!((50..=52).contains(&snapshot.events), "{}", snapshot.events);
        assert_eq!(snapshot.events, snapshot.writes);
    }

    #[test]
    fn a_rate_is_kept_however_fast_events_are() {
        let plan = MachinePlan { rate: Some(10_000), events: Some(300), seed: 3, ..MachinePlan::new(2) };
        let outcome = run(&Arc::new(Scripted::default()), &plan, |_| ()).unwrap();
        assert_eq!(outcome.snapshot.events, 300);
        // 300 events at 10,000/s last 30 ms on average, however fast each is.
        assert!(outcome.snapshot.total >= Duration::from_millis(20), "{:?}", outcome.snapshot.total);
    }

    #[test]
    fn a_latency_runs_from_the_instant_at_which_the_event_was_due() {
        // The one thread is held in its first event until the second has been due for a while.
        const HELD: Duration = Duration::from_millis(20);
        let gate: Arc<StartGate> = Arc::new((Mutex::new(None), Condvar::new()));
        let test = Scripted { hangs: Some(gate.clone()), ..Scripted::default() };
        let interval = Some(Duration::from_millis(1));
        let plan = MachinePlan { rate: Some(1000), events: Some(2), interval, seed: 3, ..MachinePlan::new(1) };
        let mut due = None;
        let outcome = run(&Arc::new(test), &plan, |moment| {
            if let TestMoment::Interval(snapshot) = moment
                && snapshot.busy == 1
                && snapshot.waiting > 0
            {
                let due = due.get_or_insert_with(Instant::now);
                if due.elapsed() >= HELD {
                    open(&gate, None);
                }
            }
        });
        let snapshot = outcome.unwrap().snapshot;
        assert_eq!(snapshot.events, 2);
        assert!(snapshot.latencies.min >= HELD, "{:?}", snapshot.latencies.min);
    }

    #[test]
    fn events_come_due_at_the_rate_whether_they_are_begun_or_not() {
        let arrivals = EventArrivals::new(1000, 1);
        let long_ago = Instant::now() - Duration::from_secs(10);
        arrivals.begin(long_ago);
        let waiting = arrivals.waiting() as f64;
        let expected = 1000.0 * long_ago.elapsed().as_secs_f64();
        assert!((0.95..1.05).contains(&(waiting / expected)), "{waiting} of {expected}");
        let due = arrivals.take(None, &AtomicBool::new(false)).unwrap();
        assert!(due < long_ago + Duration::from_secs(1));
        assert_eq!(arrivals.take(Some(Instant::now()), &AtomicBool::new(false)), None);
    }

    #[test]
    fn a_fault_of_one_thread_stops_all() {
        for fails_at in [0, 7] {
            let test = Scripted { fails_at: Some(fails_at), ..Scripted::default() };
            let fault = run(&Arc::new(test), &MachinePlan::new(4), |_| ()).unwrap_err();
            assert_eq!(fault.lines, [if fails_at == 0 { "no hands" } else { "broken" }]);
        }
    }

    #[test]
    fn a_run_that_is_told_to_stop_ends_with_its_report() {
        let outcome =
            run(&Arc::new(Scripted::default()), &MachinePlan { stop: || true, ..MachinePlan::new(2) }, |_| ()).unwrap();
        assert_eq!(outcome.snapshot.events, outcome.snapshot.writes);
        assert_eq!(outcome.unfinished, None);
    }

    #[test]
    fn a_run_whose_events_do_not_end_is_given_up() {
        let gate = Arc::new((Mutex::new(None), Condvar::new()));
        let test = Scripted { hangs: Some(gate.clone()), ..Scripted::default() };
        let plan = MachinePlan { give_up: Some(Duration::from_millis(20)), ..MachinePlan::new(2) };
        let outcome = run(&Arc::new(test), &plan, |_| ()).unwrap();
        assert_eq!((outcome.unfinished, outcome.snapshot.events), (Some(2), 0));
        open(&gate, None);
    }
}
