//! What is counted, and as what: one test for each rule of `worker/recorder.rs`, and for each step of
//! `worker/recovery.rs`.

use assay_engine::{End, Limit, Outcome, RunError, Stage};
use assay_measure::{StatementClass, Tally};
use assay_seam::Nanos;

use crate::world::{POINT, World, ms};

const UPDATE: &str = r#"
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("BEGIN") con:query("UPDATE") con:query("COMMIT") end
"#;

fn world(text: &str, warmup: u64, limit: Limit, service: u64) -> World {
    let mut world = World::new(text);
    (world.plan.warmup, world.plan.limit) = (ms(warmup), limit);
    world.server.borrow_mut().service = ms(service);
    world
}

fn a_second() -> Limit {
    Limit { time: Some(ms(1000)), transactions: None }
}

fn transactions(count: u64) -> Limit {
    Limit { time: None, transactions: Some(count) }
}

fn done(tally: &Tally) -> u64 {
    tally.transactions.iter().map(|transaction| transaction.count).sum()
}

fn statements(tally: &Tally) -> [u64; 3] {
    StatementClass::ALL.map(|class| tally.statements[class].count)
}

/// Statements outside of transactions: read, write, other.
fn outside(outcome: &Outcome) -> [u64; 3] {
    let intervals = outcome.stages.iter().flat_map(|stage| &stage.intervals).map(|interval| interval.outside);
    let all = intervals.chain([outcome.outside, outcome.before]);
    all.fold([0; 3], |sum, one| {
        [sum[0] + one.statements.read, sum[1] + one.statements.write, sum[2] + one.statements.other]
    })
}

#[test]
fn a_closed_loop_measures_what_ends_after_the_warm_up() {
    // They end at 400.2, 800.4, 1200.6, 1600.8 and 2001.0 ms; the last one started before the end.
    let outcome = world(POINT, 1000, a_second(), 400).run();
    let stage = &outcome.stages[0];
    let total = &stage.total;
    assert_eq!((done(total), total.due, statements(total)), (3, 3, [3, 0, 0]));
    let round_trip = Nanos::from_micros(400_200);
    assert_eq!(Nanos(total.transactions[0].response.max_ns), round_trip);
    assert_eq!(Nanos(total.statements.read.service.max_ns), round_trip);
    let of_session = stage.by_session[0];
    assert_eq!(
        (of_session.transactions, of_session.response_min, of_session.response_max),
        (3, round_trip, round_trip)
    );
}

#[test]
fn with_a_limit_what_was_sent_in_the_warm_up_is_not_measured_though_it_ends_later() {
    let mut world = world(POINT, 1000, transactions(2), 400);
    let outcome = world.run();
    let total = &outcome.stages[0].total;
    assert_eq!((done(total), total.due, statements(total)), (2, 2, [2, 0, 0]));
    assert_eq!(world.server.borrow().statements.len(), 5);
}

#[test]
fn statements_errors_and_retries_count_as_their_transaction_does() {
    // The first transaction was sent during warm-up, its deadlock comes after it.
    let mut of_warmup = world(UPDATE, 500, transactions(1), 400);
    of_warmup.server.borrow_mut().errors = vec!["ok 0", "error 1213 40001"];
    let total = &of_warmup.run().stages[0].total;
    assert_eq!((done(total), statements(total), total.errors.len()), (1, [0, 1, 2], 0));
    assert_eq!(total.transactions[0].retries, 0);

    let mut measured = world(UPDATE, 0, transactions(1), 400);
    measured.server.borrow_mut().errors = vec!["ok 0", "error 1213 40001"];
    let total = &measured.run().stages[0].total;
    assert_eq!((done(total), statements(total), total.errors.len()), (1, [0, 1, 3], 1));
    assert_eq!(total.transactions[0].retries, 1);
}

#[test]
fn what_is_rolled_back_by_design_is_in_the_latencies_and_not_in_the_throughput() {
    let text = r#"
        function thread_init() con = sysbench.sql.driver():connect() end
        function event()
          n = (n or 0) + 1
          con:query("UPDATE")
          if n == 2 then assay.rolled_back() end
        end"#;
    let total = &world(text, 0, transactions(3), 1).run().stages[0].total;
    let of_type = &total.transactions[0];
    assert_eq!((of_type.count, of_type.rolled_back, of_type.response.count), (2, 1, 3));
}

#[test]
fn what_is_given_up_counts_as_failed_and_is_in_no_latency() {
    let mut world = world(UPDATE, 0, transactions(2), 1);
    world.plan.policy.retries = 1;
    world.plan.policy.on_error = assay_engine::OnError::Continue;
    world.server.borrow_mut().errors = vec!["ok 0", "error 1213 40001", "ok 0", "error 1213 40001"];
    let total = &world.run().stages[0].total;
    let of_type = &total.transactions[0];
    assert_eq!((of_type.count, of_type.failed, of_type.retries, of_type.response.count), (1, 1, 1, 1));
}

#[test]
fn what_ends_after_it_was_given_up_as_unfinished_belongs_to_nothing() {
    let mut world = world(POINT, 0, a_second(), 0);
    world.plan.stages = vec![Stage::of(1), Stage::of(1)];
    world.plan.grace = ms(100);
    world.server.borrow_mut().stall = Some((ms(900), ms(700)));
    let outcome = world.run();
    let [first, second] = &outcome.stages[..] else { panic!("{:?}", outcome.stages) };
    assert_eq!((first.total.unfinished, second.total.unfinished), (1, 0));
    assert_eq!(Nanos(second.total.transactions[0].response.max_ns), Nanos::from_micros(200));
}

#[test]
fn deferred_statements_count_when_the_one_that_takes_them_along_is_answered() {
    let text = r#"
        function thread_init()
          con = sysbench.sql.driver():connect()
          update, other, commit = con:prepare("UPDATE"), con:prepare("SET"), con:prepare("COMMIT")
        end
        function event()
          con:query("BEGIN")
          update:defer() update:defer() other:defer()
          commit:execute()
        end"#;
    let mut plain = world(text, 0, transactions(2), 1);
    let total = &plain.run().stages[0].total;
    assert_eq!((done(total), statements(total)), (2, [0, 4, 6]));

    // A COMMIT that fails undoes the statements sent with it, but they were executed all the same.
    let mut refused = world(text, 0, transactions(1), 1);
    refused.server.borrow_mut().errors = vec!["ok 0", "ok 1", "ok 1", "ok 0", "error 1213 40001"];
    let total = &refused.run().stages[0].total;
    assert_eq!((done(total), statements(total), total.transactions[0].retries), (1, [0, 4, 5], 1));
}

#[test]
fn statements_outside_of_transactions_count_from_the_end_of_the_warm_up() {
    let text = r#"
        function thread_init() con = sysbench.sql.driver():connect() con:query("UPDATE") end
        function event() con:query("SELECT") end
        function thread_done() con:query("UPDATE") end"#;
    assert_eq!(outside(&world(text, 0, a_second(), 1).run()), [0, 2, 0]);
    assert_eq!(outside(&world(text, 100, a_second(), 1).run()), [0, 1, 0]);
}

#[test]
fn errors_outside_of_transactions_count_apart_where_the_policy_says_so() {
    let text = r#"
        function thread_init() con = sysbench.sql.driver():connect() pcall(con.query, con, "WRONG") end
        function event() con:query("SELECT") end"#;
    for (apart, expected) in [(true, (1, 0)), (false, (0, 1))] {
        let mut world = world(text, 0, transactions(2), 1);
        world.plan.policy.errors_outside_apart = apart;
        world.server.borrow_mut().answers = vec![("WRONG", "error 1064 42000")];
        let outcome = world.run();
        let stage = &outcome.stages[0];
        let outside: u64 = stage.intervals.iter().map(|interval| interval.outside.errors).sum();
        let counted: u64 = stage.total.errors.iter().map(|error| error.count).sum();
        assert_eq!((outside + outcome.outside.errors, counted), expected);
    }
}

#[test]
fn a_transaction_that_is_still_open_after_its_rollback_loses_its_connection() {
    let mut world = world(UPDATE, 0, transactions(2), 1);
    world.server.borrow_mut().errors = vec!["ok 0", "error 1213 40001"];
    world.server.borrow_mut().answers = vec![("ROLLBACK", "error 2 HY000")];
    let total = &world.run().stages[0].total;
    assert_eq!((done(total), total.reconnects, total.transactions[0].retries), (2, 1, 1));
    let sent: Vec<String> = world.server.borrow().statements.iter().map(|(_, text)| text.clone()).collect();
    assert_eq!(sent[..4], ["BEGIN", "UPDATE", "ROLLBACK", "BEGIN"]);
}

#[test]
fn nothing_is_rolled_back_where_the_policy_leaves_it_open() {
    let mut world = world(UPDATE, 0, transactions(1), 1);
    world.plan.policy.rollback = false;
    world.server.borrow_mut().errors = vec!["ok 0", "error 1213 40001"];
    world.run();
    assert!(world.server.borrow().statements.iter().all(|(_, text)| text != "ROLLBACK"));
}

#[test]
fn a_connection_lost_in_a_transaction_is_made_again_before_the_transaction_is() {
    let mut world = world(UPDATE, 0, transactions(2), 100);
    let address = world.address.clone();
    world.network.kill(&address, ms(150));
    world.network.restart(&address, ms(400));
    let outcome = world.run();
    let total = &outcome.stages[0].total;
    assert_eq!((done(total), total.reconnects, total.transactions[0].retries), (2, 1, 1));
    let begins = world.server.borrow().statements.iter().filter(|(_, text)| text == "BEGIN").count();
    assert_eq!(begins, 3);
}

/// Events that end in this way, by what they say of it.
#[track_caller]
fn check_left_open(event: &str, errors: Vec<&'static str>, failed: u64, words: &str) {
    let text =
        format!("function thread_init() con = sysbench.sql.driver():connect() end\nfunction event()\n{event}\nend\n");
    let mut world = world(&text, 0, transactions(20), 1).sessions(&[2]);
    world.server.borrow_mut().errors = errors;
    let outcome = world.run();
    let total = &outcome.stages[0].total;
    let of_kind = &total.transactions[0];
    let ended = match &outcome.end {
        End::Failed(RunError::Script(error)) => error.to_string(),
        other => format!("{other:?}"),
    };
    let lost: u64 = total.errors.iter().filter(|error| error.class == "incomplete").map(|error| error.count).sum();
    assert_eq!((ended.as_str(), of_kind.failed, lost), (words, failed, failed), "{event}");
    if failed > 0 {
        assert_eq!(of_kind.count, 0, "{event}");
    }
}

#[test]
fn a_transaction_that_ends_inside_a_database_transaction_is_lost_and_ends_the_run() {
    let words = "test.lua:4: event() ended inside a database transaction, whose changes are lost";
    check_left_open("con:query('BEGIN') con:query('UPDATE')", Vec::new(), 2, words);
    // Its last statement fails, and it goes on.
    let caught = "con:query('BEGIN') pcall(con.query, con, 'UPDATE')";
    check_left_open(caught, vec!["ok 0", "ok 0", "error 1062 23000", "error 1062 23000"], 2, words);
    check_left_open("con:query('BEGIN') con:query('UPDATE') con:query('COMMIT')", Vec::new(), 0, "Complete");
    check_left_open("con:query('BEGIN') con:query('UPDATE') con:query('ROLLBACK')", Vec::new(), 0, "Complete");
}

#[test]
fn what_a_script_leaves_open_is_its_own_affair_where_the_policy_says_so() {
    let mut world = world(
        "function thread_init() con = sysbench.sql.driver():connect() end\n\
         function event() con:query('BEGIN') con:query('UPDATE') end\n",
        0,
        transactions(5),
        1,
    );
    world.plan.policy.must_complete = false;
    assert_eq!(done(&world.run().stages[0].total), 5);
}
