//! Users at terminals that share connections: how long they wait, how often they come, and whose turn it is.

use std::collections::BTreeMap;

use assay_engine::{End, Limit, Load, Outcome};
use assay_seam::Nanos;

use super::world::{World, ms};

/// Each transaction sends its terminal's number and a random number; half a second of think time follows.
const USERS: &str = r#"
function thread_init() con = sysbench.sql.driver():connect() end
function event()
  local terminal = assay.terminal()
  terminal.count = (terminal.count or 0) + 1
  assay.think(0.5)
  con:query(("SELECT %d %d %d"):format(terminal.number, terminal.count, sysbench.rand.uniform(1, 1000000)))
end
"#;

/// A script whose first arrivals are spread over one think time.
const SPREAD: &str = r#"
function terminal_init() assay.think(0.5 * sysbench.rand.uniform(0, 999) / 1000) end
"#;

fn users(text: &str, terminals: u32, connections: u32) -> World {
    let mut world = World::new(text).sessions(&[connections]);
    world.plan.load = Load::Terminals { terminals, think_scale: 1.0 };
    world.server.borrow_mut().service = ms(1);
    world
}

fn run(world: &mut World) -> Outcome {
    let outcome = world.run();
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    outcome
}

/// What each terminal sent, in order: terminal, count, number drawn.
fn sent(world: &World) -> Vec<[u32; 3]> {
    let numbers = |text: &str| -> Vec<u32> { text.split(' ').skip(1).map(|word| word.parse().unwrap()).collect() };
    world.server.borrow().statements.iter().map(|(_, text)| numbers(text).try_into().unwrap()).collect()
}

#[test]
fn waiting_for_a_connection_is_part_of_the_response_time_and_shown_apart() {
    // Ten users want something at the same time, and there is one connection: 1.2 ms each.
    let mut world = users(USERS, 10, 1);
    let outcome = run(&mut world);
    let total = &outcome.stages[0].total;
    let transaction = &total.transactions[0];
    assert_eq!(
        (Nanos(transaction.service.min_ns), Nanos(transaction.service.max_ns)),
        (Nanos::from_micros(1200), Nanos::from_micros(1200))
    );
    assert_eq!((Nanos(total.wait.min_ns), Nanos(total.wait.max_ns)), (Nanos::ZERO, Nanos::from_micros(9 * 1200)));
    assert_eq!(
        (Nanos(transaction.response.min_ns), Nanos(transaction.response.max_ns)),
        (Nanos::from_micros(1200), Nanos::from_micros(12_000))
    );
    assert_eq!(total.wait.count, transaction.count);
    assert_eq!(Nanos(total.lag.max_ns), Nanos::ZERO);
    // Two rounds of think time fit into a second; the third is due after its end.
    assert_eq!((transaction.count, total.due, total.unstarted), (20, 20, 0));
}

#[test]
fn terminals_are_served_in_the_order_in_which_they_want_something() {
    let mut world = users(USERS, 50, 1);
    run(&mut world);
    let order: Vec<u32> = sent(&world).iter().map(|[terminal, ..]| *terminal).collect();
    let round: Vec<u32> = (0..50).collect();
    assert_eq!(order, [round.clone(), round].concat());
}

#[test]
fn throughput_is_what_the_times_to_think_allow() {
    for scale in [1.0, 0.5, 4.0] {
        let mut world = users(&format!("{USERS}{SPREAD}"), 200, 8);
        world.plan.load = Load::Terminals { terminals: 200, think_scale: scale };
        world.plan.limit.time = Some(ms(20_000));
        let outcome = run(&mut world);
        let stage = &outcome.stages[0];
        // Little's law: each user does one transaction per think time plus service time.
        let round = 0.5 * scale
            + stage.total.transactions[0].response.sum_ns as f64 / 1e9 / stage.total.transactions[0].count as f64;
        let wanted = 200.0 * 20.0 / round;
        let count = stage.total.transactions[0].count as f64;
        assert!((count - wanted).abs() < 0.02 * wanted + 200.0 * 0.25, "{count} of {wanted} at {scale}");
        assert!(Nanos(stage.total.wait.quantile_ns(0.5)) < ms(1), "{}", Nanos(stage.total.wait.quantile_ns(0.5)));
    }
}

#[test]
fn a_terminal_keeps_its_table_and_draws_its_own_numbers_whoever_serves_it() {
    let by_terminal = |connections| {
        let mut world = users(&format!("{USERS}{SPREAD}"), 20, connections);
        world.plan.limit.time = Some(ms(5000));
        run(&mut world);
        let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for [terminal, count, drawn] in sent(&world) {
            let drawn_before = all.entry(terminal).or_default();
            drawn_before.push(drawn);
            assert_eq!(drawn_before.len() as u32, count, "terminal {terminal} remembers how often it was served");
        }
        all.values_mut().for_each(|drawn| drawn.truncate(8));
        all
    };
    let with_three = by_terminal(3);
    assert_eq!(with_three.len(), 20);
    assert!(with_three.values().all(|drawn| drawn.len() == 8));
    assert_eq!(with_three, by_terminal(7));
}

/// What users do is decided by the seed: who serves them, and how fast, is not.
#[test]
fn every_user_does_an_equal_part_of_a_number_of_transactions() {
    let run = |connections, stall: u64, limit| {
        let mut world = users(&format!("{USERS}{SPREAD}"), 20, connections);
        world.plan.limit = Limit { time: None, transactions: Some(limit) };
        world.server.borrow_mut().stall = Some((ms(1200), ms(stall)));
        let outcome = run(&mut world);
        let total = &outcome.stages[0].total;
        assert_eq!((total.due, total.transactions[0].count, total.unstarted), (limit, limit, 0));
        let mut all = sent(&world);
        all.sort_unstable();
        all
    };
    let undisturbed = run(20, 0, 130);
    let of = |terminal: u32| undisturbed.iter().filter(|[of, ..]| *of == terminal).count();
    assert!((0..20).all(|terminal| (6..=7).contains(&of(terminal))), "{undisturbed:?}");
    for connections in [1, 3, 20] {
        for stall in [1, 100, 1000, 10_000] {
            assert_eq!(run(connections, stall, 130), undisturbed, "{connections} connections, {stall} ms");
        }
    }
    // Fewer transactions than users.
    assert_eq!(run(3, 0, 7).len(), 7);
}

#[test]
fn a_transaction_that_is_run_again_lets_its_user_think_once() {
    // Whether it is reported for every run, or for the first only.
    let first_only = USERS
        .replace("event()", "event(_, attempt)")
        .replace("assay.think(0.5)", "if attempt == 0 then assay.think(0.5) end");
    for text in [USERS, &first_only] {
        let mut world = users(text, 1, 1);
        world.plan.limit = Limit { time: None, transactions: Some(2) };
        world.server.borrow_mut().errors = vec!["error 1213 40001", "error 1213 40001"];
        let outcome = run(&mut world);
        assert_eq!(outcome.stages[0].total.transactions[0].retries, 2);
        let statements = &world.server.borrow().statements;
        let [(_, _), (_, _), (third, _), (fourth, _)] = &statements[..] else { panic!("{statements:?}") };
        assert_eq!(*fourth - *third, ms(500) + Nanos::from_micros(1200));
    }
}

#[test]
fn ten_thousand_terminals_share_sixty_four_connections() {
    let mut world = users(&format!("{USERS}{SPREAD}"), 10_000, 64);
    world.plan.load = Load::Terminals { terminals: 10_000, think_scale: 1.0 };
    let outcome = run(&mut world);
    let total = &outcome.stages[0].total;
    // 64 connections at 1.2 ms each can do 53 per ms; 20 per ms are requested.
    assert!((19_000..21_000).contains(&total.transactions[0].count), "{}", total.transactions[0].count);
    assert!(Nanos(total.wait.max_ns) < ms(20), "{}", Nanos(total.wait.max_ns));
    let served: std::collections::BTreeSet<u32> = sent(&world).iter().map(|[terminal, ..]| *terminal).collect();
    assert_eq!(served.len(), 10_000);
}
