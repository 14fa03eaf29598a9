//! Searches for capacity against queues whose capacity is known.

use assay_engine::{Arrival, Load, Rate, RatePoint, Stage, StageOutcome};
use assay_seam::Nanos;
use assay_stats::{Bracket, Look, NextLook, SearchPlan};

use crate::world::{POINT, Queue, World, ms};

/// Searches for the highest rate with a p99 below `limit_ms`, in open-loop stages of this many seconds.
fn search(queue: Queue, arrival: Arrival, limit_ms: u64, seconds: u64) -> Bracket {
    let search =
        SearchPlan { start: 50.0, min: 1.0, max: 1e5, growth: 4.0, precision: 0.05, whole: false, looks_max: 50 };
    let kept = move |stage: &StageOutcome| {
        let response = &stage.total.transactions[0].response;
        let undone = stage.total.unstarted + stage.total.unfinished;
        let over = response.count == 0 || Nanos(response.quantile_ns(0.99)) >= ms(limit_ms);
        !over && undone * 100 <= stage.total.due
    };
    let mut world = World::new(POINT).sessions(&[100]);
    world.server.borrow_mut().queue = Some(queue);
    world.plan.load = Load::Open { rate: 1.0.into(), arrival, backlog_max: None };
    world.plan.limit.time = Some(ms(1000 * seconds));
    world.plan.grace = ms(100_000);
    world.plan.stages = vec![Stage { sessions: 100, rate: Some(50.0) }];
    let looks_of = move |stages: &[StageOutcome]| -> Vec<Look> {
        stages.iter().map(|stage| Look { at: stage.rate.unwrap(), kept: kept(stage), reached: None }).collect()
    };
    world.next_stage = Some(Box::new(move |stages| match search.next(&looks_of(stages)) {
        NextLook::Look(rate) => Some(Stage { sessions: 100, rate: Some(rate) }),
        NextLook::Done(_) => None,
    }));
    let outcome = world.run();
    assert!(outcome.is_success());
    let looks: Vec<Look> = looks_of(&outcome.stages);
    match search.next(&looks) {
        NextLook::Done(bracket) => bracket,
        NextLook::Look(rate) => panic!("the run ended before the search looked at {rate}"),
    }
}

#[track_caller]
fn assert_finds(bracket: Bracket, capacity: std::ops::RangeInclusive<f64>) {
    let (low, high) = (bracket.low.unwrap(), bracket.high.unwrap());
    assert!(bracket.complete && high <= low * 1.06, "{bracket:?}");
    assert!(*capacity.start() <= low && high <= *capacity.end(), "{bracket:?} is not within {capacity:?}");
}

#[test]
fn the_capacity_of_a_queue_with_exponential_service_is_found() {
    // M/M/1: the time in the system is exponential with rate µ − λ, so p99 = ln 100 / (µ − λ). With µ = 1000 and 50 ms:
    // λ = 1000 − 92.1 = 907.9. The percentile of an 8 s stage is uncertain by at least 10 % of µ − λ.
    let queue = Queue::exponential(ms(1), 3);
    assert_finds(search(queue, Arrival::Poisson, 50, 8), 850.0..=960.0);
}

#[test]
fn the_capacity_of_a_queue_with_constant_service_is_found() {
    // In M/D/1 the wait is half that of M/M/1 at the same load: with µ = 1000 and 50 ms the answer is near 953.
    assert_finds(search(Queue::constant(ms(1)), Arrival::Poisson, 50, 8), 905.0..=995.0);
    // D/D/1: nothing waits below 1000 per second, everything above.
    assert_finds(search(Queue::constant(ms(1)), Arrival::Constant, 50, 8), 950.0..=1060.0);
}

#[test]
fn a_stall_in_one_stage_does_not_decide() {
    // The server stalls for a second in the middle of one of the first stages.
    let queue = Queue { stall: Some((ms(25_000), ms(1000))), ..Queue::constant(ms(1)) };
    assert_finds(search(queue, Arrival::Constant, 50, 10), 950.0..=1060.0);
}

#[test]
fn a_knee_below_the_end_of_throughput_is_where_the_promise_breaks() {
    // With 10 or more in the queue, each takes 20 ms: the capacity is 500 per second, and beyond it latency grows at
    // once.
    let queue = Queue { slow_from: Some((10, ms(20))), ..Queue::exponential(ms(2), 5) };
    let bracket = search(queue, Arrival::Poisson, 50, 8);
    let (low, high) = (bracket.low.unwrap(), bracket.high.unwrap());
    assert!(bracket.complete && low > 150.0 && high < 450.0, "{bracket:?}");
}

#[test]
fn a_rate_that_changes_reaches_the_server_as_it_was_drawn() {
    let point = |seconds: u64, per_s| RatePoint { at: ms(1000 * seconds), per_s };
    let rate = Rate::new(&[point(0, 100.0), point(4, 500.0), point(4, 50.0)]).unwrap();
    let mut world = World::new(POINT).sessions(&[8]);
    world.plan.load = Load::Open { rate, arrival: Arrival::Constant, backlog_max: None };
    world.plan.limit.time = Some(ms(6000));
    world.plan.warmup = ms(2000);
    let outcome = world.run();
    let due: Vec<u64> = outcome.stages[0].intervals.iter().map(|interval| interval.measured.due.unwrap()).collect();
    // 150, 250, 350 and 450 per second at the middle of each second of the ramp.
    for (found, wanted) in due.iter().zip([150, 250, 350, 450, 50, 50]) {
        assert!(found.abs_diff(wanted) <= 1, "{due:?}");
    }
    assert_eq!((due.len(), outcome.stages[0].total.due), (6, 1300));
    // The warm-up runs at the rate with which the measured part starts.
    let warm = world.server.borrow().statements.len() - 1300;
    assert!(warm.abs_diff(200) <= 1, "{warm}");
}

#[test]
fn a_trace_is_played_back_to_the_nanosecond_whatever_the_server_does() {
    let instants = [0, 1, 1, 2, 700, 701, 1500].map(ms);
    let mut world = World::new(POINT).sessions(&[2]);
    world.server.borrow_mut().service = ms(10);
    world.plan.load = Load::Trace { arrivals: instants.into(), backlog_max: None };
    world.plan.limit.time = Some(ms(2000));
    let outcome = world.run();
    let total = &outcome.stages[0].total;
    assert_eq!((total.due, total.transactions[0].count), (7, 7));
    // Two sessions, 10.2 ms per transaction: the third, due at 1 ms, starts at 10.2 ms.
    assert_eq!(Nanos(total.transactions[0].response.max_ns), Nanos(19_400_000));
    assert_eq!(
        outcome.stages[0].intervals.iter().map(|interval| interval.measured.due.unwrap()).collect::<Vec<_>>(),
        [6, 1]
    );
    // A transaction due at the end of the stage or later is not counted as due.
    let mut world = World::new(POINT).sessions(&[2]);
    world.plan.load = Load::Trace { arrivals: instants.into(), backlog_max: None };
    world.plan.limit.time = Some(ms(700));
    assert_eq!(world.run().stages[0].total.due, 4);
}
