//! The engine in a virtual world: the expected results are known to the nanosecond, and every run repeats exactly.

mod capacity;
mod counting;
mod fleet;
mod rules;
mod terminals;
mod world;

use assay_engine::{Arrival, End, Ignore, Limit, Load, OnError, Outcome, RunError, Warning};
use assay_io::sim::NetworkSettings;
use assay_measure::{StatementClass, Tally};
use assay_options::OptionValue;
use assay_seam::Nanos;

use world::{POINT, World, ms};

/// Successful transactions of all types.
fn count(tally: &Tally) -> u64 {
    tally.transactions.iter().map(|transaction| transaction.count).sum()
}

fn assert_complete(outcome: &Outcome) {
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    assert!(outcome.success);
}

#[test]
fn a_closed_loop_measures_the_round_trip_and_nothing_else() {
    let mut world = World::new(POINT).sessions(&[4]);
    world.server.borrow_mut().service = ms(1);
    let outcome = world.run();
    assert_complete(&outcome);
    let stage = &outcome.stages[0];
    // 1.2 ms per transaction: 833 complete ones per session; the 834th would end 0.8 ms too late.
    assert_eq!(count(&stage.total), 4 * 834);
    assert_eq!(stage.measured, Nanos::from_micros(1200 * 834));
    let response = &stage.total.transactions[0].response;
    assert_eq!((Nanos(response.min_ns), Nanos(response.max_ns)), (Nanos::from_micros(1200), Nanos::from_micros(1200)));
    assert_eq!(stage.total.statements.read.count, 4 * 834);
    assert_eq!(stage.session_transactions, (834, 834));
    assert_eq!(Nanos(stage.total.lag.max_ns), Nanos::ZERO);
    assert_eq!(outcome.servers[0].product, "Line");
}

#[test]
fn a_stalled_server_shows_in_every_transaction_that_was_due_in_the_stall() {
    let mut world = World::new(POINT).sessions(&[10]);
    world.plan.load = Load::Open { rate: 1000.0.into(), arrival: Arrival::Constant, backlog_max: None };
    world.plan.limit.time = Some(ms(5000));
    world.server.borrow_mut().service = ms(1);
    world.server.borrow_mut().stall = Some((ms(2000), ms(1000)));
    let outcome = world.run();
    assert_complete(&outcome);
    let stage = &outcome.stages[0];
    assert_eq!(stage.total.due, 5000);
    assert_eq!(count(&stage.total), 5000);
    let response = &stage.total.transactions[0].response;
    // About 1,000 became due while the server was stalled, and waited for up to 1 s; the backlog was then worked off at
    // 10 sessions / 1.2 ms = 8.3 per ms against 1 arriving per ms: within 136 ms.
    let in_time = response.buckets().into_iter().filter(|bucket| Nanos(bucket.highest_ns) < ms(3));
    let late = 5000 - in_time.map(|bucket| bucket.count).sum::<u64>();
    assert!((1100..1140).contains(&late), "{late}");
    assert!(Nanos(response.quantile_ns(0.99)) > ms(900), "{}", Nanos(response.quantile_ns(0.99)));
    assert!(Nanos(response.max_ns) >= ms(1000) && Nanos(response.max_ns) < ms(1010), "{}", Nanos(response.max_ns));
    // Only the ten in flight had a long service time; none of it was lag of ours.
    let service = &stage.total.transactions[0].service;
    assert!(Nanos(service.quantile_ns(0.99)) < ms(2), "{}", Nanos(service.quantile_ns(0.99)));
    assert_eq!(Nanos(stage.total.lag.max_ns), Nanos::ZERO);
    // The backlog shows for as long as it lasts.
    assert!(stage.intervals.iter().any(|interval| interval.measured.backlog > 500), "{:?}", stage.intervals);
}

/// The server receives what the schedule promises.
#[test]
fn poisson_arrivals_reach_the_server_at_the_rate_and_in_exponential_gaps() {
    let mut world = World::new(POINT).sessions(&[1000]);
    world.plan.load = Load::Open { rate: 5000.0.into(), arrival: Arrival::Poisson, backlog_max: None };
    world.plan.limit.time = Some(ms(10_000));
    world.server.borrow_mut().service = ms(5);
    let outcome = world.run();
    assert_complete(&outcome);
    let total = &outcome.stages[0].total;
    assert_eq!((Nanos(total.lag.max_ns), total.unstarted, total.dropped), (Nanos::ZERO, 0, 0));
    let server = world.server.borrow();
    let arrivals: Vec<f64> = server.statements.iter().map(|(at, _)| at.as_secs_f64()).collect();
    assert_eq!(arrivals.len() as u64, total.due);
    // The standard deviation of the count is √50,000 = 224: allow four of them.
    assert!((49_100..50_900).contains(&arrivals.len()), "{}", arrivals.len());
    let mut gaps: Vec<f64> = arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(f64::total_cmp);
    let (n, mean) = (gaps.len() as f64, gaps.iter().sum::<f64>() / gaps.len() as f64);
    // Kolmogorov–Smirnov distance from the exponential distribution; 1.63/√n is the 1 % bound.
    let distance = (0..).zip(&gaps).map(|(i, gap)| (1.0 - (-gap / mean).exp() - f64::from(i) / n).abs());
    let distance = distance.fold(0.0, f64::max);
    assert!(distance < 1.63 / n.sqrt(), "{distance}");
}

#[test]
fn an_open_loop_keeps_its_rate_and_reports_what_it_did_not_begin() {
    let mut world = World::new(POINT).sessions(&[1]);
    world.plan.load = Load::Open { rate: 1000.0.into(), arrival: Arrival::Poisson, backlog_max: None };
    world.server.borrow_mut().service = ms(10);
    let outcome = world.run();
    assert_complete(&outcome);
    let total = &outcome.stages[0].total;
    assert_eq!(count(total), 98, "one session does 97 of 10.2 ms in a second and finishes the 98th");
    assert!((850..1150).contains(&total.due), "{}", total.due);
    assert_eq!(total.unstarted, total.due - 98);
    assert_eq!(total.dropped, 0);
}

#[test]
fn a_bounded_backlog_drops_what_does_not_fit_and_counts_it() {
    let mut world = World::new(POINT).sessions(&[1]);
    world.plan.load = Load::Open { rate: 1000.0.into(), arrival: Arrival::Constant, backlog_max: Some(5) };
    world.server.borrow_mut().service = ms(10);
    let outcome = world.run();
    assert_complete(&outcome);
    let total = &outcome.stages[0].total;
    assert_eq!(total.due, 1000);
    assert!(total.dropped > 850, "{}", total.dropped);
    assert!(Nanos(outcome.stages[0].intervals[0].measured.response.max_ns) < ms(70));
}

#[test]
fn the_same_seed_gives_the_same_outcome_to_the_last_digit() {
    let run = |seed| {
        let settings = NetworkSettings {
            seed: 5,
            jitter: ms(1),
            split_max: 3,
            event_cost: Nanos(700),
            ..NetworkSettings::default()
        };
        let text = r#"
            function thread_init() con = sysbench.sql.driver():connect() end
            function event() con:query("SELECT " .. sysbench.rand.uniform(1, 1000)) con:query("UPDATE") end"#;
        let mut world = World::with(text, settings).sessions(&[3, 7]);
        world.plan.setup.seed = seed;
        world.plan.load = Load::Open { rate: 2000.0.into(), arrival: Arrival::Poisson, backlog_max: None };
        let outcome = world.run();
        assert_complete(&outcome);
        (format!("{outcome:?}"), world.server.take().statements)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}

#[test]
fn sessions_whose_server_is_not_the_primary_log_in_at_the_next_endpoint() {
    let mut world = World::new(POINT).sessions(&[3]);
    world.add_secondary();
    let outcome = world.run();
    assert_complete(&outcome);
    let total = &outcome.stages[0].total;
    assert!(count(total) > 1000 && total.errors.is_empty(), "{total:?}");
}

#[test]
fn a_killed_server_is_reconnected_to_and_the_outage_is_in_the_intervals() {
    let mut world = World::new(POINT).sessions(&[5]);
    world.plan.limit.time = Some(ms(6000));
    world.server.borrow_mut().service = ms(1);
    let address = world.address.clone();
    world.network.kill(&address, ms(1500));
    world.network.restart(&address, ms(4500));
    let outcome = world.run();
    assert_complete(&outcome);
    let stage = &outcome.stages[0];
    assert_eq!(stage.total.reconnects, 5);
    assert_eq!(stage.total.errors.iter().map(|error| error.count).sum::<u64>(), 5);
    assert_eq!(stage.total.transactions[0].retries, 5);
    let done: Vec<u64> = stage.intervals.iter().map(|interval| interval.measured.transactions.iter().sum()).collect();
    assert!(done[0] > 4000 && done[2] == 0 && done[3] == 0 && done[5] > 4000, "{done:?}");
    let sessions: Vec<u32> = stage.intervals.iter().map(|interval| interval.measured.sessions).collect();
    assert_eq!(sessions[..4], [5, 0, 0, 0]);
    assert_eq!(sessions[5], 5, "the last pause before reconnecting is under a second");
    assert!(matches!(world.warnings[..], [Warning::Outage { target: 0, .. }, Warning::Recovered { target: 0 }]));
    // The outage shows in the response times of the transactions that lived through it.
    assert!(Nanos(stage.total.transactions[0].response.max_ns) > ms(3000));
}

#[test]
fn a_server_that_stays_away_ends_the_run() {
    let mut world = World::new(POINT);
    world.plan.policy.reconnect = ms(500);
    world.plan.limit.time = Some(ms(6000));
    let address = world.address.clone();
    world.network.kill(&address, ms(100));
    let outcome = world.run();
    assert!(matches!(outcome.end, End::Failed(RunError::Connect { target: 0, .. })), "{:?}", outcome.end);
    assert!(count(&outcome.stages[0].total) > 0);
}

#[test]
fn a_host_that_vanishes_is_noticed_when_it_has_been_silent_for_too_long() {
    // Some in the middle of a statement, some between transactions.
    let idle = Load::Open { rate: 0.1.into(), arrival: Arrival::Constant, backlog_max: None };
    for load in [Load::Closed, idle] {
        let mut world = World::new(POINT).sessions(&[3]);
        world.plan.load = load.clone();
        world.plan.connects.silence_max = Some(ms(2000));
        world.plan.connects.timeout = ms(500);
        world.plan.policy.reconnect = ms(1000);
        world.plan.limit.time = Some(ms(60_000));
        world.plan.interval = ms(100);
        let address = world.address.clone();
        world.network.vanish(&address, ms(1000));
        let outcome = world.run();
        assert!(matches!(outcome.end, End::Failed(RunError::Connect { .. })), "{:?}", outcome.end);
        let intervals = &outcome.stages[0].intervals;
        let lost =
            intervals.iter().find(|interval| interval.measured.sessions == 0).expect("the connections were lost");
        // Timeouts are checked eight times within the limit.
        assert!((ms(2900)..=ms(3300)).contains(&Nanos(lost.measured.start_ns)), "{load:?}: {lost:?}");
    }
}

#[test]
fn an_interrupt_ends_within_the_grace_period_when_nothing_answers() {
    let mut world = World::new(
        r#"
        function thread_init() con = sysbench.sql.driver():connect() end
        function event() con:query("SELECT") end
        function thread_done() con:query("SELECT") end"#,
    );
    // Two transactions are in flight at the interrupt; the third session is idle.
    world = world.sessions(&[3]);
    world.plan.load = Load::Open { rate: 1.0.into(), arrival: Arrival::Constant, backlog_max: None };
    world.plan.limit.time = Some(ms(60_000));
    world.plan.grace = ms(500);
    world.stop_after_intervals = Some(2);
    let address = world.address.clone();
    world.network.vanish(&address, ms(500));
    let outcome = world.run();
    assert!(matches!(outcome.end, End::Interrupted), "{:?}", outcome.end);
    assert!(outcome.elapsed >= ms(2500) && outcome.elapsed < ms(2600), "{}", outcome.elapsed);
    assert_eq!(outcome.stages[0].total.unfinished, 2);
}

#[test]
fn a_server_that_is_not_there_fails_the_run_before_it_begins() {
    let mut world = World::new(POINT);
    let address = world.address.clone();
    world.network.kill(&address, Nanos::ZERO);
    let outcome = world.run();
    assert!(matches!(outcome.end, End::Failed(RunError::Connect { connected: 0, .. })), "{:?}", outcome.end);
    assert!(outcome.stages.is_empty());
}

#[test]
fn a_limit_on_transactions_is_exact() {
    for warmup in [Nanos::ZERO, ms(50)] {
        let mut world = World::new(POINT).sessions(&[7]);
        world.plan.limit = Limit { time: None, transactions: Some(1000) };
        world.plan.warmup = warmup;
        world.server.borrow_mut().service = ms(1);
        let outcome = world.run();
        assert_complete(&outcome);
        assert_eq!(count(&outcome.stages[0].total), 1000);
    }
}

#[test]
fn transactions_due_in_the_warm_up_take_nothing_of_the_limit_though_they_begin_after_it() {
    let mut world = World::new(POINT).sessions(&[7]);
    world.plan.load = Load::Open { rate: 20_000.0.into(), arrival: Arrival::Constant, backlog_max: None };
    world.plan.limit = Limit { time: None, transactions: Some(1000) };
    world.plan.warmup = ms(50);
    world.server.borrow_mut().service = ms(1);
    let outcome = world.run();
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    assert_eq!(count(&outcome.stages[0].total), 1000);
}

#[test]
fn a_ladder_runs_its_stages_in_one_go() {
    let mut world = World::new(POINT).sessions(&[1, 2, 8, 4]);
    world.server.borrow_mut().service = ms(1);
    let outcome = world.run();
    assert_complete(&outcome);
    let counts: Vec<u64> = outcome.stages.iter().map(|stage| count(&stage.total)).collect();
    assert_eq!(counts, [834, 2 * 834, 8 * 834, 4 * 834]);
}

#[test]
fn a_warm_up_is_run_and_not_measured() {
    let mut world = World::new(POINT);
    world.plan.warmup = ms(1000);
    world.server.borrow_mut().stall = Some((ms(300), ms(200)));
    let outcome = world.run();
    assert_complete(&outcome);
    let stage = &outcome.stages[0];
    assert_eq!(Nanos(stage.total.transactions[0].response.max_ns), Nanos::from_micros(200));
    assert!(world.server.borrow().statements.len() as u64 > count(&stage.total) + 3000);
}

const UPDATE: &str = r#"
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("BEGIN") con:query("UPDATE") con:query("COMMIT") end
"#;

#[test]
fn a_deadlock_is_rolled_back_retried_and_counted() {
    let mut world = World::new(UPDATE);
    world.plan.limit = Limit { time: None, transactions: Some(5) };
    world.server.borrow_mut().errors = vec!["ok 0", "error 1213 40001", "ok 0", "error 1213 40001"];
    let outcome = world.run();
    assert_complete(&outcome);
    let total = &outcome.stages[0].total;
    assert_eq!((count(total), total.transactions[0].retries, total.transactions[0].failed), (5, 2, 0));
    assert_eq!(StatementClass::ALL.map(|class| total.statements[class].count), [0, 5, 12]);
    let statements: Vec<String> =
        world.server.borrow().statements.iter().map(|(_, text)| text.clone()).take(8).collect();
    assert_eq!(statements, ["BEGIN", "UPDATE", "ROLLBACK", "BEGIN", "UPDATE", "ROLLBACK", "BEGIN", "UPDATE"]);
}

#[test]
fn retries_end_and_the_policy_decides_what_follows() {
    let run = |on_error, ignore: Ignore| {
        let mut world = World::new(POINT);
        world.plan.policy.on_error = on_error;
        world.plan.policy.ignore = ignore;
        world.plan.limit = Limit { time: None, transactions: Some(3) };
        world.server.borrow_mut().errors = vec!["error 1213 40001"; 4];
        world.run()
    };
    let none = Ignore::Codes(Vec::new());
    let outcome = run(OnError::Stop, none.clone());
    let End::Failed(RunError::Statement { retries: 3, error, .. }) = &outcome.end else { panic!("{:?}", outcome.end) };
    assert_eq!(error.code.number, 1213);

    let outcome = run(OnError::Continue, none);
    let transaction = &outcome.stages[0].total.transactions[0];
    assert_eq!((transaction.count, transaction.failed, transaction.retries), (2, 1, 3));

    // What may be retried is retried before it is ignored.
    let outcome = run(OnError::Stop, Ignore::All);
    let transaction = &outcome.stages[0].total.transactions[0];
    assert_eq!((transaction.count, transaction.failed, transaction.retries), (2, 1, 3));
}

#[test]
fn an_error_that_is_not_ignored_ends_the_run_with_the_server_s_words() {
    let mut world = World::new(POINT);
    world.server.borrow_mut().errors = vec!["rows", "error 1146 42S02"];
    let outcome = world.run();
    let End::Failed(RunError::Statement { error, failure, .. }) = &outcome.end else { panic!("{:?}", outcome.end) };
    assert_eq!((error.code.number, error.message.as_str()), (1146, "refused by the script"));
    assert!(failure.message.contains("test.lua:3"), "{failure:?}");
    assert_eq!(count(&outcome.stages[0].total), 1);
}

#[test]
fn a_script_error_ends_the_run_and_names_its_line() {
    let mut world = World::new("function event()\n  local x = nil\n  return x.y\nend");
    let outcome = world.run();
    let End::Failed(RunError::Script(error)) = &outcome.end else { panic!("{:?}", outcome.end) };
    assert_eq!((error.file.as_deref(), error.line), (Some("test.lua"), Some(3)));
}

#[test]
fn transactions_are_told_apart_by_type() {
    let text = r#"
        function thread_init() con = sysbench.sql.driver():connect() end
        local read = assay.transaction("read", function() con:query("SELECT") end)
        local write = assay.transaction("write", function() con:query("UPDATE") end)
        local n = 0
        function event() n = n + 1 if n % 4 == 0 then write() else read() end end"#;
    let mut world = World::new(text);
    world.plan.limit = Limit { time: None, transactions: Some(100) };
    let outcome = world.run();
    assert_complete(&outcome);
    let counts: Vec<(&str, u64)> = outcome
        .types
        .iter()
        .map(String::as_str)
        .zip(outcome.stages[0].total.transactions.iter().map(|transaction| transaction.count))
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(counts, [("read", 75), ("write", 25)]);
}

/// One transaction of two statements; counts, and every fifth is rolled back.
const COUNTING: &str = r#"
    function thread_init() con = sysbench.sql.driver():connect() end
    local order = assay.transaction("order", function(n)
      assay.audit{ name = "remote", part = "remote", whole = "lines", high = 0.5 }
      assay.count("lines", 10)
      if n % 2 == 0 then assay.count("remote") end
      con:query("BEGIN") con:query("UPDATE")
      if n % 5 == 0 then con:query("ROLLBACK") assay.rolled_back() else con:query("COMMIT") end
    end)
    local n = 0
    function event() n = n + 1 order(n) end"#;

#[test]
fn what_a_script_counts_is_kept_of_transactions_that_end_well_and_of_nothing_else() {
    let mut world = World::new(COUNTING).sessions(&[1]);
    world.plan.limit = Limit { time: None, transactions: Some(100) };
    // The first transaction is retried, and a later one is given up: neither attempt counts.
    world.server.borrow_mut().errors =
        vec!["ok 0", "error 1213 40001", "ok 0", "ok 1", "ok 0", "ok 0", "error 1 42000"];
    world.plan.policy.ignore = Ignore::Codes(vec!["42000".into()]);
    let outcome = world.run();
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    let total = &outcome.stages[0].total;
    let order = &total.transactions[1];
    // `event` was called 101 times: the retried attempt had a number of its own.
    assert_eq!((order.count, order.rolled_back, order.failed, order.retries), (79, 20, 1, 1));
    assert_eq!(order.response.count, 99);
    assert_eq!(outcome.counters, ["lines", "remote"]);
    let [lines, remote] = &total.counters[..] else { panic!("{:?}", total.counters) };
    assert_eq!((lines.transactions, lines.sum, lines.squares), (99, 990, 9900));
    assert_eq!((remote.transactions, remote.sum), (50, 50), "numbers 1 and 3 were no good, every even one was");
    assert_eq!(outcome.declarations.len(), 1, "however often it is said");
}

#[test]
fn the_journal_has_a_line_for_every_transaction_that_ends_well() {
    let mut world = World::new(
        r#"
        local note = assay.journal{ "number", "half" }
        function thread_init() con = sysbench.sql.driver():connect() end
        local n = 0
        function event()
          n = n + 1
          con:query("BEGIN") con:query("UPDATE")
          note{ n, n % 2 == 0 and n / 2 or nil }
          con:query("COMMIT")
        end"#,
    );
    world.plan.limit = Limit { time: None, transactions: Some(100) };
    world.plan.warmup = ms(5);
    world.plan.setup.options.push(("journal".into(), OptionValue::Bool(true)));
    // The first is retried after it wrote its line, and the third is given up: neither line is in the journal.
    world.server.borrow_mut().errors =
        vec!["ok 0", "ok 1", "error 1213 40001", "ok 0", "ok 0", "ok 1", "ok 0", "ok 0", "error 1 42000"];
    world.plan.policy.ignore = Ignore::Codes(vec!["42000".into()]);
    let outcome = world.run();
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    let (columns, lines) = &world.journal;
    assert_eq!(columns[..], ["number", "half"]);
    let total = &outcome.stages[0].total.transactions[0];
    assert!(lines.len() as u64 > total.count, "the warm-up is there too");
    let numbers: Vec<f64> = lines.iter().map(|line| line.values[0]).collect();
    assert_eq!(numbers[..3], [2.0, 4.0, 5.0]);
    assert!(numbers[3..].iter().zip(6..).all(|(number, wanted)| *number == f64::from(wanted)), "{numbers:?}");
    for (line, next) in lines.iter().zip(&lines[1..]) {
        let [number, half] = line.values[..] else { panic!("{line:?}") };
        assert!(if number % 2.0 == 0.0 { half == number / 2.0 } else { half.is_nan() }, "{line:?}");
        assert!(line.due <= line.sent && line.sent < line.done && line.done <= next.due, "{line:?}, {next:?}");
        assert!(next.done <= outcome.elapsed, "{next:?}");
    }
    // No journal unless one is requested.
    world = World::new("local note = assay.journal{ 'n' } function event() assay.sleep(0.1) note{ 1 } end");
    world.run();
    assert_eq!(world.journal, (vec!["n".to_owned()], Vec::new()));
}

#[test]
fn what_is_counted_in_the_warm_up_is_not_kept() {
    let mut world = World::new(COUNTING).sessions(&[3, 6]);
    world.plan.warmup = ms(500);
    world.server.borrow_mut().service = ms(1);
    let outcome = world.run();
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    for stage in &outcome.stages {
        let order = &stage.total.transactions[1];
        assert_eq!(stage.total.counters[0].sum, 10 * (order.count + order.rolled_back));
        let intervals: u64 = stage.intervals.iter().map(|interval| interval.measured.response.count).sum();
        assert_eq!(intervals, order.count + order.rolled_back);
    }
}

#[test]
fn an_interrupted_run_finishes_what_is_in_flight_and_reports() {
    let mut world = World::new(POINT).sessions(&[3]);
    world.plan.limit.time = None;
    world.stop_after_intervals = Some(2);
    world.server.borrow_mut().service = ms(1);
    let outcome = world.run();
    assert!(matches!(outcome.end, End::Interrupted), "{:?}", outcome.end);
    assert!(outcome.stages[0].measured >= ms(2000) && outcome.stages[0].measured < ms(2010));
    assert_eq!(count(&outcome.stages[0].total), world.server.borrow().statements.len() as u64);
}

#[test]
fn an_interrupted_run_lasts_until_the_interrupt_even_when_nothing_was_done_for_long() {
    let mut world = World::new(POINT);
    world.plan.limit = Limit { time: None, transactions: Some(1_000_000) };
    world.plan.grace = ms(100);
    world.stop_after_intervals = Some(5);
    world.server.borrow_mut().stall = Some((ms(500), ms(60_000)));
    let outcome = world.run();
    assert!(matches!(outcome.end, End::Interrupted), "{:?}", outcome.end);
    assert!(outcome.stages[0].measured >= ms(5000), "{}", outcome.stages[0].measured);
}

#[test]
fn what_is_still_in_flight_after_the_grace_period_is_counted_as_unfinished() {
    let mut world = World::new(POINT).sessions(&[3]);
    world.plan.grace = ms(500);
    world.server.borrow_mut().stall = Some((ms(900), ms(60_000)));
    let outcome = world.run();
    assert_eq!(outcome.stages[0].total.unfinished, 3);
}

#[test]
fn a_command_runs_once_per_session_and_may_fail() {
    let text = r#"
        function prepare()
          local con = sysbench.sql.driver():connect()
          con:query("UPDATE " .. assay.claim("work"))
          assay.barrier()
          con:query("SELECT")
          return sysbench.tid ~= 1
        end"#;
    let mut world = World::new(text).sessions(&[3]);
    world.plan.setup.entry = assay_script::Entry::Function("prepare".into());
    let outcome = world.run();
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    assert!(!outcome.success);
    let statements: Vec<String> = world.server.borrow().statements.iter().map(|(_, text)| text.clone()).collect();
    assert_eq!(statements[3..], ["SELECT", "SELECT", "SELECT"]);
    let mut claimed = statements[..3].to_vec();
    claimed.sort();
    assert_eq!(claimed, ["UPDATE 0", "UPDATE 1", "UPDATE 2"]);
}
