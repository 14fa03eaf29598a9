//! A world to run the engine in: a virtual network, a scripted server and the line protocol it speaks.
//!
//! The protocol is the smallest one with everything that matters: a greeting, one line per statement, one line per
//! reply (`rows`, `ok AFFECTED`, `error ERRNO SQLSTATE`).

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use assay_engine::{
    Connects, Control, Deal, EventLoop, Ignore, Interval, Limit, Line, Load, Notice, Observer, OnError, Outcome, Plan,
    Policy, Stage, StageOutcome, Target, Warning, run_inline,
};
use assay_io::sim::{Network, NetworkSettings, PeerId, ScriptedServer, ServerOut};
use assay_io::{Address, Backend};
use assay_measure::TransactionTally;
use assay_random::Random;
use assay_script::{Distribution, Entry, Library, Program, Setup, TopLevel};
use assay_seam::{
    Class, Code, Connection, Database, Dialect, Effect, Endpoint, Exchange, Executed, InFlight, Nanos, Operation,
    Origin, Progress, Reply, Retry, ServerFacts, StatementError, StatementId, TlsFacts, TlsSettings,
};

/// The script that most tests run: one statement per transaction.
pub(crate) const POINT: &str = r#"
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT") end
"#;

pub(crate) fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// How the server behaves, and what it has received.
#[derive(Default)]
pub(crate) struct Script {
    /// Service time of each statement; statements are served in parallel.
    pub(crate) service: Nanos,
    /// At the first statement after this time the server hangs for this long.
    pub(crate) stall: Option<(Nanos, Nanos)>,
    /// Answers to statements by text; for other statements the first word decides: SELECT → rows, others → ok.
    pub(crate) answers: Vec<(&'static str, &'static str)>,
    /// The first statements, this many, fail.
    pub(crate) errors: Vec<&'static str>,
    /// Number of statements that are answered; later ones never are.
    pub(crate) hang_after: Option<usize>,
    /// Logins are refused, because this server is not the primary.
    pub(crate) is_secondary: bool,
    /// Logins are refused from this time on.
    pub(crate) closed_from: Option<Nanos>,
    pub(crate) statements: Vec<(Nanos, String)>,
    /// Statements are served by this queue, one after the other, instead of in parallel.
    pub(crate) queue: Option<Queue>,
}

/// A single server that serves statements in the order of arrival.
pub(crate) struct Queue {
    /// Service time of each, or its mean.
    pub(crate) service: Nanos,
    /// If set, service times are exponentially distributed, drawn from this.
    pub(crate) random: Option<Random>,
    /// With this many in the queue or more, each takes this long.
    pub(crate) slow_from: Option<(usize, Nanos)>,
    /// At the first statement after this time it stalls for this long.
    pub(crate) stall: Option<(Nanos, Nanos)>,
    /// When each statement in the queue will be done.
    pub(crate) done: VecDeque<Nanos>,
}

impl Queue {
    pub(crate) fn constant(service: Nanos) -> Queue {
        Queue { service, random: None, slow_from: None, stall: None, done: VecDeque::new() }
    }

    pub(crate) fn exponential(mean: Nanos, seed: u64) -> Queue {
        Queue { random: Some(Random::of_stream(seed, 1)), ..Queue::constant(mean) }
    }

    /// How long the statement that arrives now stays in the system.
    fn enter(&mut self, now: Nanos) -> Nanos {
        while self.done.front().is_some_and(|done| *done <= now) {
            self.done.pop_front();
        }
        let mean = self.slow_from.filter(|(from, _)| self.done.len() >= *from).map_or(self.service, |(_, slow)| slow);
        let service = match &mut self.random {
            None => mean,
            Some(random) => Nanos((-random.unit().ln() * mean.0 as f64) as u64),
        };
        let mut begin = self.done.back().copied().unwrap_or(now).max(now);
        if let Some((_, time)) = self.stall.take_if(|(at, _)| now >= *at) {
            begin += time;
        }
        self.done.push_back(begin + service);
        begin + service - now
    }
}

struct LineServer(Rc<RefCell<Script>>);

impl ScriptedServer for LineServer {
    fn connected(&mut self, now: Nanos, _peer: PeerId, out: &mut ServerOut) {
        let closed = self.0.borrow().closed_from.is_some_and(|from| now >= from);
        let greeting = match (self.0.borrow().is_secondary, closed) {
            (true, _) => "not the primary\n",
            (false, true) => "go away\n",
            (false, false) => "hello\n",
        };
        out.reply(greeting.as_bytes());
    }

    fn received(&mut self, now: Nanos, _peer: PeerId, bytes: &[u8], out: &mut ServerOut) {
        let mut script = self.0.borrow_mut();
        if let Some((_, time)) = script.stall.filter(|(at, _)| now >= *at) {
            script.stall = None;
            out.stall(time);
        }
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line = String::from_utf8_lossy(line).into_owned();
            let answer = if line != "ROLLBACK" && !script.errors.is_empty() {
                script.errors.remove(0).to_owned()
            } else {
                match script.answers.iter().find(|(statement, _)| *statement == line) {
                    Some((_, answer)) => (*answer).to_owned(),
                    None if line.starts_with("SELECT") => "rows".to_owned(),
                    None if line.starts_with("UPDATE") => "ok 1".to_owned(),
                    None => "ok 0".to_owned(),
                }
            };
            script.statements.push((now, line));
            if script.hang_after.is_some_and(|most| script.statements.len() > most) {
                continue;
            }
            let service = match &mut script.queue {
                Some(queue) => queue.enter(now),
                None => script.service,
            };
            out.after(service).reply(format!("{answer}\n").as_bytes());
        }
    }
}

/// The client's side of the line protocol. Prepared statements have no parameters and are sent as text.
#[derive(Default)]
struct LineClient {
    partial: Vec<u8>,
    ready: bool,
    in_transaction: bool,
    statements: HashMap<StatementId, Vec<u8>>,
    /// Texts of deferred statements.
    waiting: Vec<Vec<u8>>,
    /// Lines still expected before the reply to the statement itself.
    ahead: usize,
    executed: Executed,
    /// The statement in flight ends the transaction if it succeeds.
    ends: bool,
    in_flight: InFlight,
}

impl LineClient {
    fn send(&mut self, text: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        self.in_transaction |= text == b"BEGIN";
        self.ends = [&b"COMMIT"[..], b"ROLLBACK"].contains(&text);
        self.ahead = self.waiting.len();
        for line in self.waiting.drain(..).chain([text.to_vec()]) {
            exchange.out.extend_from_slice(&line);
            exchange.out.push(b'\n');
        }
        Progress::Pending
    }

    fn on_line(&mut self, line: &str, exchange: &mut Exchange<'_>) -> Progress {
        if !std::mem::replace(&mut self.ready, true) {
            return match line {
                "hello" => Progress::Ready,
                "not the primary" => {
                    let error = StatementError { origin: Origin::Server, ..StatementError::network(line) };
                    Progress::Failed(Box::new(error))
                }
                _ => Progress::Failed(Box::new(StatementError::client(Class::Authentication, line))),
            };
        }
        if self.ahead > 0 {
            self.ahead -= 1;
            *if line == "ok 0" { &mut self.executed.others } else { &mut self.executed.writes } += 1;
            return Progress::Pending;
        }
        let words: Vec<&str> = line.split(' ').collect();
        self.in_transaction &= words[0] == "error" || !self.ends;
        Progress::Reply(match words[..] {
            ["rows"] => {
                let mut rows = exchange.pool.take();
                rows.begin_set(1);
                rows.push_int(1);
                Reply { rows: Some(rows), ..Reply::default() }
            }
            ["ok", affected] => Reply { affected: affected.parse().unwrap(), ..Reply::default() },
            ["error", number, state] => Reply::failed(StatementError {
                origin: Origin::Server,
                class: if number == "1213" { Class::Deadlock } else { Class::Other },
                code: Code { number: number.parse().unwrap(), state: state.into() },
                retry: if number == "1213" { Retry::AfterBackoff } else { Retry::Never },
                message: "refused by the script".into(),
                position: 0,
                hint: None,
                details: String::new(),
            }),
            _ => return Progress::Failed(Box::new(StatementError::client(Class::Protocol, line))),
        })
    }
}

impl Connection for LineClient {
    fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    fn server(&self) -> ServerFacts {
        ServerFacts { product: "Line".into(), version: "1".into(), ..ServerFacts::default() }
    }

    fn on_connected(&mut self, _exchange: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn on_bytes(&mut self, bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        self.partial.extend_from_slice(bytes);
        if self.partial.last() != Some(&b'\n') {
            return Progress::Pending;
        }
        let lines = String::from_utf8_lossy(&std::mem::take(&mut self.partial)).into_owned();
        lines.lines().map(|line| self.on_line(line, exchange)).last().unwrap_or(Progress::Pending)
    }

    fn on_secured(&mut self, _tls: &TlsFacts, _exchange: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn on_closed(&mut self) -> bool {
        *self = LineClient { statements: std::mem::take(&mut self.statements), ..LineClient::default() };
        false
    }

    fn on_timeout(&mut self, _exchange: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn effect(&self) -> Effect {
        self.in_flight.effect(|_| Effect::Other)
    }

    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress {
        self.in_flight = InFlight::of(operation);
        match operation {
            Operation::Query { text: sql, .. } => self.send(sql, exchange),
            Operation::Prepare { statement, text: sql } => {
                self.statements.insert(*statement, sql.to_vec());
                Progress::Reply(Reply::default())
            }
            Operation::Execute { statement, .. } => self.send(&self.statements[statement].clone(), exchange),
            Operation::RollBack => self.send(b"ROLLBACK", exchange),
            _ => Progress::Reply(Reply::failed(StatementError::client(Class::Other, "not in the line protocol"))),
        }
    }

    fn defer(&mut self, operation: &Operation<'_>) -> bool {
        let Operation::Execute { statement, .. } = operation else { return false };
        self.waiting.push(self.statements[statement].clone());
        true
    }

    fn take_executed(&mut self) -> Executed {
        std::mem::take(&mut self.executed)
    }

    fn forget_deferred(&mut self) {
        self.waiting.clear();
    }

    fn close(&mut self, _exchange: &mut Exchange<'_>) {}
}

struct LineDatabase;

impl Database for LineDatabase {
    fn dialect(&self) -> Dialect {
        Dialect::plain("mysql")
    }

    fn display(&self) -> String {
        "line://server".into()
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        Vec::new()
    }

    fn tls(&self) -> TlsSettings {
        TlsSettings::default()
    }

    fn connection(&self) -> Box<dyn Connection> {
        Box::new(LineClient::default())
    }
}

/// A run in the virtual world.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) network: Network,
    pub(crate) address: Address,
    pub(crate) server: Rc<RefCell<Script>>,
    pub(crate) warnings: Vec<Warning>,
    /// Columns of the journal, and its lines.
    pub(crate) journal: (Vec<String>, Vec<Line>),
    pub(crate) stop_after_intervals: Option<usize>,
    /// Interrupts the run when the script reports something.
    pub(crate) stop_on_log: bool,
    /// Decides on further stages.
    pub(crate) next_stage: Option<NextStage>,
}

type NextStage = Box<dyn FnMut(&[StageOutcome]) -> Option<Stage>>;

struct Watcher<'a> {
    warnings: &'a mut Vec<Warning>,
    journal: &'a mut (Vec<String>, Vec<Line>),
    control: &'a Control,
    stop_after_intervals: Option<usize>,
    stop_on_log: bool,
    next_stage: Option<NextStage>,
}

impl Observer for Watcher<'_> {
    fn next_stage(&mut self, so_far: &Outcome) -> Option<Stage> {
        self.next_stage.as_mut()?(&so_far.stages)
    }

    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::Warning(warning) => self.warnings.push(warning),
            Notice::Log { .. } if self.stop_on_log => self.control.stop(),
            Notice::Journal { columns, lines, .. } => {
                self.journal.0 = columns.to_vec();
                self.journal.1.extend_from_slice(lines);
            }
            Notice::Interval { so_far, .. } => {
                let told: usize = so_far.stages.iter().map(|stage| stage.intervals.len()).sum();
                if Some(told) == self.stop_after_intervals {
                    self.control.stop();
                }
            }
            _ => {}
        }
    }
}

impl World {
    /// One session, closed loop, one second, a server 100 µs away.
    pub(crate) fn new(text: &str) -> World {
        World::with(text, NetworkSettings::default())
    }

    pub(crate) fn with(text: &str, settings: NetworkSettings) -> World {
        let library = Arc::new(Library::default());
        let program = Program::from_text(&library, "test.lua", text, &TopLevel::default()).unwrap();
        let address = Address::Tcp("10.0.0.1:1".parse().unwrap());
        let server = Rc::new(RefCell::new(Script::default()));
        let mut network = Network::new(settings);
        network.listen(address.clone(), Box::new(LineServer(server.clone())));
        let target = Target { database: Arc::new(LineDatabase), addresses: vec![address.clone()], tls: Vec::new() };
        let plan = Plan {
            program: Arc::new(program),
            setup: Setup {
                command: "run".into(),
                entry: Entry::Thread,
                options: Vec::new(),
                driver: Dialect::plain("mysql"),
                seed: 42,
                sessions: 1,
                distribution: Distribution::default(),
                argv: Vec::new(),
                front: None,
            },
            targets: vec![target],
            stages: vec![Stage::of(1)],
            load: Load::Closed,
            limit: Limit { time: Some(ms(1000)), transactions: None },
            warmup: Nanos::ZERO,
            interval: ms(1000),
            policy: Policy {
                ignore: Ignore::Codes(Vec::new()),
                retries: 3,
                restart_ignored: false,
                on_error: OnError::Stop,
                rollback: true,
                errors_outside_apart: false,
                carried_over_count: false,
                must_complete: true,
                failed_prepares_count: true,
                failures_are_alone: false,
                sessions_leave_alone: false,
                grace_bounds_leaving: true,
                reconnect: ms(60_000),
            },
            connects: Connects {
                pending_max: 64,
                rate: None,
                timeout: ms(10_000),
                silence_max: None,
                deal: Deal::BySession,
            },
            workers: 1,
            fleet: None,
            event_loop: EventLoop { batch_max: 1, ..EventLoop::of(Backend::Epoll) },
            sessions_per_state: 256,
            grace: ms(10_000),
            grace_interrupted: ms(10_000),
            hold_max: ms(10_000),
        };
        World {
            plan,
            network,
            address,
            server,
            warnings: Vec::new(),
            journal: Default::default(),
            stop_after_intervals: None,
            stop_on_log: false,
            next_stage: None,
        }
    }

    pub(crate) fn sessions(mut self, ladder: &[u32]) -> World {
        self.plan.stages = ladder.iter().map(|sessions| Stage::of(*sessions)).collect();
        self.plan.setup.sessions = *ladder.iter().max().unwrap();
        self
    }

    /// Adds a server that is not the primary, before the others in the list of addresses.
    pub(crate) fn add_secondary(&mut self) {
        let address = Address::Tcp("10.0.0.2:1".parse().unwrap());
        let script = Script { is_secondary: true, ..Script::default() };
        self.network.listen(address.clone(), Box::new(LineServer(Rc::new(RefCell::new(script)))));
        self.plan.targets[0].addresses.insert(0, address);
    }

    /// Runs it; what the server received and the warnings stay in `self`.
    pub(crate) fn run(&mut self) -> Outcome {
        let network = std::mem::replace(&mut self.network, Network::new(NetworkSettings::default()));
        let control = Control::default();
        let mut watcher = Watcher {
            warnings: &mut self.warnings,
            journal: &mut self.journal,
            control: &control,
            stop_after_intervals: self.stop_after_intervals,
            stop_on_log: self.stop_on_log,
            next_stage: self.next_stage.take(),
        };
        let outcome = run_inline(self.plan.clone(), network, &control, &mut watcher);
        assert_nothing_is_lost(&outcome);
        outcome
    }
}

/// Whatever happened: every transaction that became due is accounted for, and the intervals add up to the stage.
fn assert_nothing_is_lost(outcome: &Outcome) {
    for stage in &outcome.stages {
        let total = &stage.total;
        let of_types = |of: fn(&TransactionTally) -> u64| total.transactions.iter().map(of).sum::<u64>();
        let done = of_types(|transaction| transaction.count);
        let rolled_back = of_types(|transaction| transaction.rolled_back);
        let failed = of_types(|transaction| transaction.failed);
        let gone = total.stopped + total.dropped + total.unstarted + total.unfinished;
        assert_eq!(total.due, done + rolled_back + failed + gone);
        assert_eq!(of_types(|transaction| transaction.response.count), done + rolled_back);

        let sum = |of: &dyn Fn(&Interval) -> u64| stage.intervals.iter().map(of).sum::<u64>();
        assert_eq!(sum(&|interval| interval.measured.transactions.iter().sum()), done);
        assert_eq!(sum(&|interval| interval.measured.response.count), done + rolled_back);
        assert_eq!(sum(&|interval| interval.measured.failed), failed);
        assert_eq!(
            sum(&|interval| interval.measured.statements.iter().sum()),
            total.statements.iter().map(|class| class.count).sum::<u64>()
        );
        assert_eq!(
            sum(&|interval| interval.measured.errors),
            total.errors.iter().map(|error| error.count).sum::<u64>()
        );
        assert_eq!(Nanos(sum(&|interval| interval.measured.length_ns)), stage.measured);
        for interval in &stage.intervals {
            assert!(Some(interval.measured.backlog) <= interval.measured.backlog_max);
            assert_eq!(interval.measured.first_done_ns.is_some(), interval.measured.response.count > 0);
            let done = interval.measured.first_done_ns.zip(interval.measured.last_done_ns);
            assert!(done.is_none_or(|(first, last)| first <= last));
        }
    }
}
