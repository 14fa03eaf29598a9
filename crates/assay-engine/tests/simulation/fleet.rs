//! A run shared by agents: together they do what one process would do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use assay_engine::{Agent, Arrival, Fleet, Gate, Limit, Load, Outcome};
use assay_seam::Nanos;

use super::world::{POINT, World, ms};
use super::{assert_complete, count};

/// A counter that all agents share. Agents run one after the other here, so none waits for another.
#[derive(Clone, Default)]
struct Counters(Arc<Mutex<HashMap<Vec<u8>, u64>>>);

struct Alongside {
    agent: Agent,
    counters: Counters,
}

/// When stages begin, however long connecting took.
const STAGES: [Nanos; 3] = [Nanos::from_millis(500), Nanos::from_millis(4000), Nanos::from_millis(8000)];

impl Fleet for Alongside {
    fn agent(&self) -> Agent {
        self.agent
    }

    fn claim(&self, name: &[u8], granted: Box<dyn FnOnce(u64) + Send>) {
        let mut counters = self.counters.0.lock().unwrap();
        let next = counters.entry(name.to_vec()).or_default();
        *next += 1;
        granted(*next - 1);
    }

    fn arrive(&self, _: u64, _: Box<dyn FnOnce() + Send>) {
        unreachable!("these scripts have no barriers");
    }

    fn leave(&self) {}

    fn passes(&self, gate: Gate, now: Nanos) -> Option<Nanos> {
        match gate {
            Gate::Stage(stage) => Some(STAGES[stage]),
            Gate::Sessions | Gate::Done => Some(now),
        }
    }
}

/// Every statement that the server received, with its time, and the outcome of each agent.
fn run(agents: u32, world: impl Fn() -> World) -> (Vec<(Nanos, String)>, Vec<Outcome>) {
    let counters = Counters::default();
    let mut statements = Vec::new();
    let mut outcomes = Vec::new();
    for number in 0..agents {
        let agent = Agent { number, agents };
        let mut world = world();
        world.plan.fleet = Some(Arc::new(Alongside { agent, counters: counters.clone() }));
        outcomes.push(world.run());
        assert_complete(outcomes.last().unwrap());
        statements.append(&mut world.server.borrow_mut().statements);
    }
    statements.sort();
    (statements, outcomes)
}

fn sum(outcomes: &[Outcome], stage: usize) -> u64 {
    outcomes.iter().map(|outcome| count(&outcome.stages[stage].total)).sum()
}

/// Draws random numbers and reports which session drew them.
const RANDOM: &str = r#"
function thread_init() con = sysbench.sql.driver():connect() end
function event()
  con:query("SELECT " .. sysbench.tid .. " " .. sysbench.rand.uniform(1, 1000000))
  con:query("UPDATE " .. sysbench.rand.special(1, 1000))
end
"#;

#[test]
fn agents_together_send_the_statements_of_one_process_at_the_same_instants() {
    let world = || {
        let world = World::new(RANDOM).sessions(&[5, 17, 3]);
        world.server.borrow_mut().service = ms(7);
        world
    };
    let (alone, of_one) = run(1, world);
    for agents in [2, 3, 5] {
        let (together, of_all) = run(agents, world);
        assert_eq!(alone.len(), together.len());
        assert_eq!(alone, together, "{agents} agents");
        for stage in 0..3 {
            assert_eq!(sum(&of_one, stage), sum(&of_all, stage));
        }
    }
}

#[test]
fn agents_together_keep_one_rate() {
    let world = || {
        let mut world = World::new(
            "function thread_init() con = sysbench.sql.driver():connect() end \
            function event() con:query('SELECT') end",
        )
        .sessions(&[12]);
        world.plan.load = Load::Open { rate: 300.0.into(), arrival: Arrival::Constant, backlog_max: Some(100) };
        world.server.borrow_mut().service = ms(2);
        world
    };
    let (alone, _) = run(1, world);
    assert_eq!(alone.len(), 300);
    for agents in [2, 3, 5] {
        assert_eq!(run(agents, world).0, alone, "{agents} agents");
    }
}

#[test]
fn agents_together_play_back_one_trace() {
    let instants: Arc<[Nanos]> = [0, 1, 1, 2, 2, 2, 300, 301, 650, 999].map(ms).into();
    let world = || {
        let mut world = World::new(POINT).sessions(&[12]);
        world.plan.load = Load::Trace { arrivals: instants.clone(), backlog_max: None };
        world.server.borrow_mut().service = ms(2);
        world
    };
    let (alone, _) = run(1, world);
    assert_eq!(alone.len(), instants.len());
    for agents in [2, 3, 5] {
        assert_eq!(run(agents, world).0, alone, "{agents} agents");
    }
}

/// What a terminal's user does, and when, depends on nobody else.
#[test]
fn terminals_want_the_same_at_the_same_instants_whichever_agent_serves_them() {
    let users = r#"
        function terminal_init() assay.think(sysbench.rand.uniform(0, 999) / 1000) end
        function thread_init() con = sysbench.sql.driver():connect() end
        function event()
          assay.think(sysbench.rand.uniform(100, 400) / 1000)
          con:query(("SELECT %d %d"):format(assay.terminal().number, sysbench.rand.uniform(1, 1000000)))
        end
    "#;
    let world = || {
        // Nobody has to wait for a connection: who would have depends on who shares it.
        let mut world = World::new(users).sessions(&[40]);
        world.plan.load = Load::Terminals { terminals: 40, think_scale: 1.0 };
        world.plan.limit.time = Some(ms(3000));
        world.server.borrow_mut().service = ms(2);
        world
    };
    let (alone, _) = run(1, world);
    assert!(alone.len() > 300, "{}", alone.len());
    for agents in [2, 3, 5] {
        assert_eq!(run(agents, world).0, alone, "{agents} agents");
    }
}

/// Each worker draws arrivals of its own, so agents are compared with the workers of one process by their sums here,
/// and statement by statement with real servers.
#[test]
fn poisson_arrivals_of_agents_are_independent_and_keep_one_rate() {
    let world = || {
        let mut world = World::new(POINT).sessions(&[60]);
        world.plan.load = Load::Open { rate: 300.0.into(), arrival: Arrival::Poisson, backlog_max: None };
        world.plan.limit.time = Some(ms(10_000));
        world
    };
    for agents in [2, 3, 5] {
        let (statements, _) = run(agents, world);
        // The standard deviation is √3000 = 55: four of them.
        assert!(statements.len().abs_diff(3000) < 220, "{agents} agents: {}", statements.len());
        let mut instants: Vec<Nanos> = statements.into_iter().map(|(at, _)| at).collect();
        let all = instants.len();
        instants.dedup();
        assert!(all - instants.len() < 3, "{agents} agents draw the same arrivals");
    }
}

#[test]
fn agents_share_a_number_of_transactions() {
    let world = || {
        let mut world = World::new(RANDOM).sessions(&[7]);
        world.plan.limit = Limit { time: None, transactions: Some(1001) };
        world
    };
    for agents in [1, 2, 3] {
        assert_eq!(sum(&run(agents, world).1, 0), 1001);
    }
}

/// The ways in which transactions become due on their own.
fn loads() -> Vec<Load> {
    let open = |arrival, backlog_max| Load::Open { rate: 300.0.into(), arrival, backlog_max };
    let instants: Arc<[Nanos]> = (0..500).map(|i| ms(i * i / 100)).collect();
    vec![
        open(Arrival::Constant, None),
        open(Arrival::Constant, Some(1_000_000)),
        open(Arrival::Poisson, None),
        open(Arrival::Poisson, Some(1_000_000)),
        Load::Trace { arrivals: instants, backlog_max: None },
        Load::Terminals { terminals: 14, think_scale: 1.0 },
    ]
}

/// Each session has a worker of its own here.
#[test]
fn a_limit_of_transactions_leaves_every_worker_its_own_however_long_it_is_held_up() {
    for load in loads() {
        for (warmup, retries) in [(0, 0), (50, 0), (0, 3)] {
            // The transactions of each worker.
            let run = |slow: u32, stall: u64| {
                let by_worker = (0..3).map(|number| {
                    let mut world = World::new(RANDOM).sessions(&[3]);
                    world.plan.load = load.clone();
                    world.plan.warmup = ms(warmup);
                    world.plan.limit = Limit { time: None, transactions: Some(61) };
                    let agent = Agent { number, agents: 3 };
                    world.plan.fleet = Some(Arc::new(Alongside { agent, counters: Counters::default() }));
                    if number == slow {
                        world.server.borrow_mut().stall = Some((STAGES[0] + ms(warmup) + ms(20), ms(stall)));
                        world.server.borrow_mut().errors = vec!["error 1213 40001"; retries];
                    }
                    let outcome = world.run();
                    assert_complete(&outcome);
                    let total = &outcome.stages[0].total;
                    assert_eq!((count(total), total.unstarted), (total.due, 0));
                    total.due
                });
                by_worker.collect::<Vec<u64>>()
            };
            let undisturbed = run(3, 0);
            assert_eq!(undisturbed.iter().sum::<u64>(), 61, "{load:?}");
            for (slow, stall) in [(0, 1000), (1, 1), (1, 30), (1, 300), (1, 10_000), (2, 1000)] {
                assert_eq!(run(slow, stall), undisturbed, "{load:?}, {warmup} {retries}: {slow} for {stall} ms");
            }
        }
    }
}

/// As many as one process, of the same users, even if agents have different numbers of sessions.
#[test]
fn agents_share_a_number_of_due_transactions_as_workers_of_one_process_do() {
    for load in loads() {
        let world = || {
            let mut world = World::new(POINT).sessions(&[7]);
            world.plan.load = load.clone();
            world.plan.limit = Limit { time: None, transactions: Some(100) };
            world
        };
        for agents in [1, 2, 3] {
            assert_eq!(sum(&run(agents, world).1, 0), 100, "{load:?}, {agents} agents");
        }
    }
    let constant = || {
        let mut world = World::new(POINT).sessions(&[7]);
        world.plan.load = Load::Open { rate: 300.0.into(), arrival: Arrival::Constant, backlog_max: None };
        world.plan.limit = Limit { time: None, transactions: Some(100) };
        world
    };
    let (alone, _) = run(1, constant);
    for agents in [2, 3, 5] {
        assert_eq!(run(agents, constant).0, alone, "{agents} agents");
    }
}

#[test]
fn every_stage_has_its_own_number_of_due_transactions() {
    let world = || {
        let mut world = World::new(RANDOM).sessions(&[2, 6, 3]);
        world.plan.load = Load::Open { rate: 300.0.into(), arrival: Arrival::Poisson, backlog_max: None };
        world.plan.limit = Limit { time: None, transactions: Some(100) };
        world
    };
    for agents in [1, 2, 3] {
        let (_, outcomes) = run(agents, world);
        assert_eq!((0..3).map(|stage| sum(&outcomes, stage)).collect::<Vec<_>>(), [100, 100, 100]);
    }
}

#[test]
fn numbers_are_claimed_once_over_all_agents() {
    let claiming = r#"
        function thread_init() con = sysbench.sql.driver():connect() end
        function event() con:query("SELECT " .. assay.claim("piece")) end
    "#;
    let world = || {
        let mut world = World::new(claiming).sessions(&[6]);
        world.plan.limit = Limit { time: None, transactions: Some(60) };
        world
    };
    let (statements, _) = run(3, world);
    let mut numbers: Vec<u64> =
        statements.iter().map(|(_, text)| text.strip_prefix("SELECT ").unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..60).collect::<Vec<_>>());
}

#[test]
fn an_agent_without_a_session_of_a_stage_waits_for_the_next() {
    let world = || World::new(RANDOM).sessions(&[1, 4]);
    let (_, outcomes) = run(3, world);
    assert_eq!(outcomes[2].stages.len(), 2);
    assert_eq!(count(&outcomes[2].stages[0].total), 0);
    assert!(count(&outcomes[2].stages[1].total) > 0);
}
