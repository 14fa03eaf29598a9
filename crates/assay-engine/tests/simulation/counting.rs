//! What is counted, and as what: one test for each rule of the recorder.
//!
//! `World::run` asserts after every run of this crate's simulations that nothing that became due is lost.

use assay_engine::{Arrival, End, Ignore, Limit, Load, OnError, Outcome, RunError};
use assay_measure::Tally;
use assay_seam::Nanos;

use crate::count;
use crate::world::{POINT, World, ms};

fn failed(tally: &Tally) -> u64 {
    tally.transactions.iter().map(|transaction| transaction.failed).sum()
}

fn open(rate: f64, backlog_max: Option<u64>) -> Load {
    Load::Open { rate: rate.into(), arrival: Arrival::Constant, backlog_max }
}

/// The largest number of transactions that waited at the same time.
fn backlog_max(outcome: &Outcome) -> u64 {
    outcome.stages[0].intervals.iter().map(|interval| interval.measured.backlog_max).max().unwrap().unwrap()
}

#[test]
fn transactions_lost_with_their_connections_count_as_failed() {
    for load in [Load::Closed, open(300.0, None), Load::Terminals { terminals: 40, think_scale: 1.0 }] {
        for ignore in [Ignore::Codes(Vec::new()), Ignore::All] {
            for login_refused in [false, true] {
                let mut world = World::new(POINT).sessions(&[16]);
                world.plan.load = load.clone();
                world.plan.policy.ignore = ignore.clone();
                world.plan.policy.reconnect = ms(500);
                world.plan.limit.time = Some(ms(6000));
                world.server.borrow_mut().service = ms(20);
                let address = world.address.clone();
                world.network.kill(&address, ms(1500));
                if login_refused {
                    world.network.restart(&address, ms(1600));
                    world.server.borrow_mut().closed_from = Some(ms(1500));
                }
                let outcome = world.run();
                assert!(matches!(outcome.end, End::Failed(RunError::Connect { .. })), "{:?}", outcome.end);
                let total = &outcome.stages[0].total;
                assert!(count(total) > 100 && failed(total) > 0, "{load:?}");
            }
        }
    }
}

#[test]
fn a_transaction_whose_script_or_statement_fails_for_good_counts_as_failed() {
    let broken = "function event() n = (n or 0) + 1 if n == 3 then error('no') end end";
    let refused = "function thread_init() con = sysbench.sql.driver():connect() end
                   function event() n = (n or 0) + 1 con:query(n == 3 and 'WRONG' or 'SELECT') end";
    for text in [broken, refused] {
        let mut world = World::new(text);
        world.server.borrow_mut().answers = vec![("WRONG", "error 1064 42000")];
        let outcome = world.run();
        assert!(matches!(outcome.end, End::Failed(_)), "{:?}", outcome.end);
        let total = &outcome.stages[0].total;
        assert_eq!((count(total), failed(total), total.due), (2, 1, 3));
    }
}

#[test]
fn a_transaction_that_its_script_stops_at_is_counted_as_stopped_and_nothing_else() {
    for load in [Load::Closed, open(1000.0, None)] {
        let mut world = World::new("function event() n = (n or 0) + 1 assay.sleep(0.001) return n == 5 end");
        world.plan.load = load.clone();
        let outcome = world.run();
        let total = &outcome.stages[0].total;
        assert_eq!((count(total), failed(total), total.stopped), (4, 0, 1));
    }
}

#[test]
fn a_limit_of_transactions_is_one_of_those_that_become_due() {
    for arrival in [Arrival::Constant, Arrival::Poisson] {
        for (warmup, stall) in [(Nanos::ZERO, None), (ms(50), None), (ms(50), Some((ms(200), ms(700))))] {
            let mut world = World::new(POINT).sessions(&[8]);
            world.plan.load = Load::Open { rate: 1000.0.into(), arrival, backlog_max: None };
            world.plan.limit = Limit { time: None, transactions: Some(800) };
            world.plan.warmup = warmup;
            world.server.borrow_mut().service = ms(1);
            world.server.borrow_mut().stall = stall;
            let outcome = world.run();
            assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
            let total = &outcome.stages[0].total;
            assert_eq!((total.due, count(total), total.unstarted), (800, 800, 0), "{arrival:?} {warmup} {stall:?}");
        }
    }
    // Dropped transactions do not use up the limit.
    let mut world = World::new(POINT);
    world.plan.load = open(1000.0, Some(5));
    world.plan.limit = Limit { time: None, transactions: Some(50) };
    world.server.borrow_mut().service = ms(10);
    let outcome = world.run();
    let total = &outcome.stages[0].total;
    assert!(total.dropped > 100, "{}", total.dropped);
    assert_eq!((total.due, count(total)), (50 + total.dropped, 50));

    let mut world = World::new(POINT).sessions(&[2]);
    world.plan.load = Load::Terminals { terminals: 20, think_scale: 1.0 };
    world.plan.limit = Limit { time: None, transactions: Some(500) };
    world.server.borrow_mut().service = ms(1);
    let outcome = world.run();
    let total = &outcome.stages[0].total;
    assert_eq!((total.due, count(total), total.unstarted), (500, 500, 0));
}

#[test]
fn the_largest_backlog_is_the_same_however_long_intervals_are() {
    let run = |interval| {
        let mut world = World::new(POINT).sessions(&[10]);
        world.plan.load = open(1000.0, None);
        world.plan.limit.time = Some(ms(4000));
        world.plan.interval = interval;
        world.server.borrow_mut().service = ms(1);
        // Ends before the first one-second interval does.
        world.server.borrow_mut().stall = Some((ms(2200), ms(500)));
        backlog_max(&world.run())
    };
    // The ten that were started do not wait.
    assert_eq!(run(ms(1000)), run(ms(100)));
    assert!((485..=495).contains(&run(ms(1000))), "{}", run(ms(1000)));
}

/// What waits when no more transactions are started waited then, though none waits any more.
#[test]
fn the_last_interval_has_the_backlog_that_was_left_at_the_end() {
    for load in [open(1000.0, None), open(1000.0, Some(50)), Load::Terminals { terminals: 60, think_scale: 0.01 }] {
        let mut world = World::new(POINT).sessions(&[2]);
        world.plan.load = load.clone();
        world.plan.limit.time = Some(ms(2000));
        world.server.borrow_mut().service = ms(100);
        let outcome = world.run();
        let stage = &outcome.stages[0];
        let [.., last] = &stage.intervals[..] else { panic!("no intervals") };
        assert_eq!((last.measured.backlog, last.in_flight), (stage.total.unstarted, 2), "{load:?}");
        assert!(stage.total.unstarted > 40, "{load:?}");
    }
}

#[test]
fn what_is_due_in_the_warm_up_is_not_measured_though_it_ends_later() {
    for load in [open(100.0, None), Load::Terminals { terminals: 10, think_scale: 1.0 }] {
        let mut world = World::new(POINT).sessions(&[2]);
        world.plan.load = load.clone();
        world.plan.warmup = ms(1000);
        world.server.borrow_mut().service = ms(10);
        world.server.borrow_mut().stall = Some((ms(500), ms(1000)));
        let outcome = world.run();
        let total = &outcome.stages[0].total;
        // Those due in the second half of the stall waited for its end and for the transactions before them.
        assert!(count(total) >= 40, "{}", count(total));
        assert!(
            Nanos(total.transactions[0].response.max_ns) < ms(1000),
            "{}",
            Nanos(total.transactions[0].response.max_ns)
        );
    }
}

#[test]
fn a_run_interrupted_in_its_warm_up_measures_nothing() {
    for load in [Load::Closed, open(500.0, None)] {
        let mut world = World::new(
            "function thread_init() con = sysbench.sql.driver():connect() end
             function event() n = (n or 0) + 1 if n == 20 then assay.log('enough') end con:query('SELECT') end",
        );
        world = world.sessions(&[3]);
        world.stop_on_log = true;
        world.plan.load = load.clone();
        world.plan.warmup = ms(1000);
        world.server.borrow_mut().service = ms(5);
        let outcome = world.run();
        assert!(matches!(outcome.end, End::Interrupted), "{:?}", outcome.end);
        let total = &outcome.stages[0].total;
        assert_eq!((total.due, count(total), total.unstarted, total.unfinished), (0, 0, 0, 0));
    }
}

#[test]
fn waiting_for_what_does_not_finish_is_part_of_the_last_interval() {
    for limit in [Limit { time: Some(ms(2500)), transactions: None }, Limit { time: None, transactions: Some(60) }] {
        let mut world = World::new(POINT).sessions(&[3]);
        world.plan.limit = limit;
        world.plan.interval = ms(200);
        world.plan.grace = ms(1100);
        world.server.borrow_mut().service = ms(50);
        // Two sessions hang; the third requests one transaction more than there are.
        world.server.borrow_mut().hang_after = Some(58);
        let outcome = world.run();
        let total = &outcome.stages[0].total;
        assert!(total.unfinished > 0);
    }
}

/// Transactions of three statements, of one statement that changes something, and of one that does not.
#[test]
fn retries_after_a_lost_answer_to_a_commit_count_apart() {
    let transaction = "con:query('BEGIN') con:query('UPDATE') con:query('COMMIT')";
    for (body, killed_in, in_doubt) in [
        (transaction, 1, 0),
        (transaction, 2, 0),
        (transaction, 3, 1),
        ("con:query('UPDATE')", 1, 1),
        ("con:query('SELECT')", 1, 0),
        ("con:query('UPDATE t SET a = 1; COMMIT')", 1, 1),
    ] {
        let mut world = World::new(&format!(
            "function thread_init() con = sysbench.sql.driver():connect() end function event() {body} end"
        ));
        world.plan.limit = Limit { time: None, transactions: Some(2) };
        world.server.borrow_mut().service = ms(100);
        let address = world.address.clone();
        world.network.kill(&address, ms(100 * killed_in - 40));
        world.network.restart(&address, ms(100 * killed_in - 30));
        let outcome = world.run();
        assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
        let of_type = &outcome.stages[0].total.transactions[0];
        let counted = (of_type.count, of_type.retries, of_type.retries_in_doubt);
        assert_eq!(counted, (2, 1, in_doubt), "{body}, killed in statement {killed_in}");
    }
}

#[test]
fn a_commit_in_doubt_that_is_given_up_is_counted() {
    for (body, in_doubt) in [("con:query('UPDATE')", 1), ("con:query('SELECT')", 0)] {
        let mut world = World::new(&format!(
            "function thread_init() con = sysbench.sql.driver():connect() end function event() {body} end"
        ));
        world.plan.limit = Limit { time: None, transactions: Some(2) };
        world.plan.policy.retries = 0;
        world.plan.policy.on_error = OnError::Continue;
        world.server.borrow_mut().service = ms(100);
        let address = world.address.clone();
        world.network.kill(&address, ms(60));
        world.network.restart(&address, ms(70));
        let outcome = world.run();
        let of_type = &outcome.stages[0].total.transactions[0];
        assert_eq!((of_type.failed, of_type.retries, of_type.failed_in_doubt), (1, 0, in_doubt), "{body}");
    }
}

#[test]
fn an_error_that_is_passed_over_leaves_nothing_uncounted() {
    for load in [Load::Closed, open(200.0, None), Load::Terminals { terminals: 5, think_scale: 1.0 }] {
        let mut world = World::new(POINT).sessions(&[3]);
        world.plan.load = load.clone();
        world.plan.policy.on_error = OnError::Continue;
        world.plan.policy.retries = 1;
        world.plan.warmup = ms(20);
        world.server.borrow_mut().service = ms(2);
        world.server.borrow_mut().errors = ["error 1213 40001", "error 1146 42S02", "rows"].repeat(20);
        let outcome = world.run();
        assert!(failed(&outcome.stages[0].total) > 10, "{load:?}");
    }
}
