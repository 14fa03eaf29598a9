//! Runs a workload as the engine would, but without it: sessions in turn on one thread, statements answered inline.
//!
//! Another session gets its turn only where one waits for others: at a barrier, between transactions, or, with SQLite,
//! at a lock. On servers no session ever holds a lock while another runs, so blocking reads cannot deadlock.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use assay_options::OptionValue;
use assay_script::{
    Answer, Decision, Distribution, Entry, Footprint, Library, LuaState, Program, Request, Setup, Slot, TopLevel,
    Verdict,
};
use assay_seam::{
    Cell, Class, ConnectOptions, Connection, Database, Driver, Endpoint, Exchange, Nanos, NoSurroundings, Operation,
    Progress, Reply, Retry, RowsPool, RowsWanted, StatementError,
};

const SEED: u64 = 42;

/// What to run, and on which database.
pub(crate) struct Run<'a> {
    pub(crate) database: &'a dyn Database,
    pub(crate) workload: &'a str,
    /// `--name=value`, without the dashes.
    pub(crate) options: &'a [&'a str],
    pub(crate) sessions: u32,
}

/// The result.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Statements since the sessions were ready, by sysbench's classes.
    pub(crate) read: u64,
    pub(crate) write: u64,
    pub(crate) other: u64,
    /// Successful transactions, and retries.
    pub(crate) transactions: u64,
    pub(crate) restarts: u64,
    /// Rows announced and rows loaded.
    pub(crate) expected: u64,
    pub(crate) loaded: u64,
    pub(crate) log: Vec<String>,
    /// Statements once the sessions were ready: prepared ones with their values.
    pub(crate) executed: Vec<String>,
    /// Sessions that ended with an error, or returned `false` ("failed").
    pub(crate) failures: Vec<String>,
}

/// The world of all sessions.
#[derive(Default)]
struct World {
    outcome: Outcome,
    claims: HashMap<Vec<u8>, u64>,
    transactions_left: u64,
    /// Every so many statements, one is answered with a deadlock; 0: none.
    deadlock_every: usize,
    pool: RowsPool,
    now: Nanos,
}

struct Session {
    slot: Slot,
    links: Vec<Link>,
    ready: bool,
    in_event: bool,
}

/// The next thing that a session does.
enum Turn {
    Resume(Answer),
    /// On the connection of this number.
    Retry(usize),
    AtBarrier,
}

/// The result of a request.
enum Outward {
    Answered(Answer),
    Yields(Turn),
    Ended,
}

impl Run<'_> {
    /// `assay NAME COMMAND`.
    pub(crate) fn command(&self, command: &str) -> Outcome {
        let parallel = self.program(command).commands().iter().any(|known| known.name == command && known.parallel);
        let sessions = if parallel { self.sessions } else { 1 };
        self.go(command, Entry::Function(command.into()), sessions, World::default())
    }

    /// `assay run NAME`, until this many transactions have begun.
    pub(crate) fn transactions(&self, count: u64) -> Outcome {
        self.transactions_with_deadlocks(count, 0)
    }

    /// The same; of every so many statements, one is answered with a deadlock.
    pub(crate) fn transactions_with_deadlocks(&self, count: u64, every: usize) -> Outcome {
        let world = World { transactions_left: count, deadlock_every: every, ..World::default() };
        self.go("run", Entry::Thread, self.sessions, world)
    }

    fn program(&self, command: &str) -> Program {
        let modules = assay_workloads::builtin().iter().map(|workload| (workload.name, workload.text)).collect();
        let library = Library { modules, path: Some("/nonexistent/?.lua".into()), ..Library::default() };
        let top = TopLevel {
            command: Some(command.into()),
            argv: vec!["assay".into()],
            driver: self.database.dialect(),
            front: None,
            may_use_database: false,
        };
        if self.workload.contains('\n') {
            return Program::from_text(&Arc::new(library), "custom.lua", self.workload, &top).unwrap();
        }
        Program::load(&Arc::new(library), self.workload, &top).unwrap()
    }

    fn go(&self, command: &str, entry: Entry, sessions: u32, mut world: World) -> Outcome {
        let program = self.program(command);
        let mut options = vec![
            ("threads".to_owned(), OptionValue::Number(self.sessions.into())),
            ("rand_seed".to_owned(), OptionValue::Number(SEED as f64)),
        ];
        if self.options.contains(&"db_ps_mode=disable") {
            options.push(("db_ps_mode".to_owned(), OptionValue::Text("disable".to_owned())));
        }
        for declared in program.options() {
            let given = self.options.iter().find_map(|option| option.strip_prefix(&declared.key())?.strip_prefix('='));
            let value = given.map_or(Ok(declared.default.clone()), |text| declared.kind.parse(Some(text)));
            options.push((declared.key(), value.unwrap()));
        }
        let setup = Setup {
            command: command.into(),
            entry,
            options,
            driver: self.database.dialect(),
            seed: SEED,
            sessions,
            distribution: Distribution::default(),
            argv: vec!["assay".into()],
            front: None,
        };
        let mut state = LuaState::new(&program, &setup).unwrap();
        let mut queue = VecDeque::new();
        for number in 0..sessions {
            let slot = state.add_session(number).unwrap();
            let session = Session { slot, links: Vec::new(), ready: false, in_event: false };
            queue.push_back((session, Turn::Resume(Answer::Done)));
        }
        while let Some((mut session, turn)) = queue.pop_front() {
            let mut answer = match turn {
                Turn::Resume(answer) => answer,
                Turn::Retry(link) => match session.retry(link, &mut world) {
                    Outward::Answered(answer) => answer,
                    Outward::Yields(turn) => {
                        queue.push_back((session, turn));
                        continue;
                    }
                    Outward::Ended => unreachable!("a retried statement does not end a session"),
                },
                Turn::AtBarrier if queue.iter().all(|(_, turn)| matches!(turn, Turn::AtBarrier)) => {
                    queue.iter_mut().for_each(|(_, turn)| *turn = Turn::Resume(Answer::Done));
                    Answer::Done
                }
                Turn::AtBarrier => {
                    queue.push_back((session, turn));
                    continue;
                }
            };
            loop {
                let slot = session.slot;
                let mut pool = std::mem::take(&mut world.pool);
                let request = state.resume(slot, answer, &mut pool);
                world.pool = pool;
                match session.serve(request, self.database, &mut world) {
                    Outward::Answered(next) => answer = next,
                    Outward::Yields(turn) => {
                        queue.push_back((session, turn));
                        break;
                    }
                    Outward::Ended => break,
                }
            }
        }
        world.outcome
    }
}

impl Session {
    fn serve(&mut self, request: Request<'_>, database: &dyn Database, world: &mut World) -> Outward {
        Outward::Answered(match request {
            Request::Connect(..) => {
                self.links.push(Link::open(database, world));
                Answer::Done
            }
            Request::Disconnect(number) | Request::Leave(number) => {
                self.links[number.0 as usize].close(world);
                Answer::Done
            }
            Request::Reconnect(number) => {
                self.links[number.0 as usize].close(world);
                self.links[number.0 as usize].connect(database, world);
                Answer::Done
            }
            Request::Operation(number, operation)
            | Request::Defer(number, operation)
            | Request::Pipe(number, operation) => {
                let link = number.0 as usize;
                let mut progress = self.links[link].begin(&operation, world);
                let executed = match operation {
                    Operation::Execute { statement, parameters, .. } => Some(format!("{} {parameters:?}", statement.0)),
                    Operation::Query { text, .. } => Some(String::from_utf8_lossy(text).into_owned()),
                    _ => None,
                };
                if let Some(executed) = executed
                    && self.ready
                {
                    world.outcome.executed.push(executed);
                    let is_due = world.outcome.executed.len().checked_rem(world.deadlock_every) == Some(0);
                    if let (Progress::Reply(reply), true) = (&mut progress, is_due) {
                        let error = StatementError::client(Class::Deadlock, "deadlock");
                        *reply = Reply::failed(StatementError { retry: Retry::Now, ..error });
                    }
                }
                return self.progress(link, progress, world);
            }
            Request::Flush(_) | Request::Synchronize(_) => Answer::Done,
            Request::InTransaction(_) => Answer::Proceed(false),
            Request::Notification(..) => Answer::Reply(Reply::default(), Verdict::Fatal),
            Request::Ready => {
                self.ready = true;
                return Outward::Yields(Turn::Resume(Answer::Done));
            }
            Request::Next => {
                world.outcome.transactions += u64::from(self.in_event);
                self.in_event = world.transactions_left > 0;
                world.transactions_left -= u64::from(self.in_event);
                let answer = if self.in_event { Answer::Begin(Nanos::ZERO) } else { Answer::Proceed(false) };
                return Outward::Yields(Turn::Resume(answer));
            }
            Request::Failed(failure) => {
                assert!(failure.restart, "{failure:?}");
                world.outcome.restarts += 1;
                for link in &mut self.links {
                    if link.connection.in_transaction() {
                        link.begin(&Operation::RollBack, world);
                    }
                }
                return Outward::Yields(Turn::Resume(Answer::Decision(Decision::Retry)));
            }
            Request::Claim(name) => {
                let counter = world.claims.entry(name.to_vec()).or_default();
                *counter += 1;
                Answer::Number(*counter - 1)
            }
            Request::Executed => Answer::Executed(Footprint::default()),
            Request::Barrier => return Outward::Yields(Turn::AtBarrier),
            Request::Expect(rows) => {
                world.outcome.expected += rows;
                Answer::Done
            }
            Request::Log(text) => {
                world.outcome.log.push(String::from_utf8_lossy(text).into_owned());
                Answer::Done
            }
            Request::Type(_) | Request::Sleep(_) | Request::Stop | Request::Declare(_) => Answer::Done,
            Request::Finished { success } => {
                if !success {
                    world.outcome.failures.push("failed".into());
                }
                return Outward::Ended;
            }
            Request::Died(failure) => {
                world.outcome.failures.push(failure.message);
                return Outward::Ended;
            }
        })
    }

    fn retry(&mut self, link: usize, world: &mut World) -> Outward {
        let progress = self.links[link].connection.on_timeout(&mut world.exchange(&mut Vec::new()));
        self.progress(link, progress, world)
    }

    fn progress(&mut self, link: usize, progress: Progress, world: &mut World) -> Outward {
        match progress {
            Progress::Wait(pause) => {
                world.now += pause;
                Outward::Yields(Turn::Retry(link))
            }
            Progress::Reply(reply) => {
                if let Some(error) = &reply.error {
                    let restart = self.in_event && error.retry != Retry::Never;
                    let verdict = if restart { Verdict::Restart } else { Verdict::Fatal };
                    return Outward::Answered(Answer::Reply(reply, verdict));
                }
                self.count(link, &reply, world);
                Outward::Answered(Answer::Reply(reply, Verdict::Fatal))
            }
            other => panic!("{other:?}"),
        }
    }

    fn count(&mut self, link: usize, reply: &Reply, world: &mut World) {
        match self.links[link].kind {
            Kind::Load => world.outcome.loaded += reply.affected,
            Kind::Statement if !self.ready => {}
            Kind::Statement if reply.rows.is_some() => world.outcome.read += 1,
            Kind::Statement if reply.affected > 0 => world.outcome.write += 1,
            Kind::Statement => world.outcome.other += 1,
            Kind::Uncounted => {}
        }
    }
}

impl World {
    fn exchange<'a>(&'a mut self, out: &'a mut Vec<u8>) -> Exchange<'a> {
        Exchange { out, pool: &mut self.pool, now: self.now }
    }
}

/// A connection, and its socket if it has one.
struct Link {
    connection: Box<dyn Connection>,
    socket: Option<TcpStream>,
    /// The operation in flight.
    kind: Kind,
}

enum Kind {
    Statement,
    Load,
    Uncounted,
}

impl Link {
    fn open(database: &dyn Database, world: &mut World) -> Link {
        let mut link = Link { connection: database.connection(), socket: None, kind: Kind::Uncounted };
        link.connect(database, world);
        link
    }

    fn connect(&mut self, database: &dyn Database, world: &mut World) {
        if let Endpoint::Tcp { host, port } = &database.endpoints()[0] {
            let socket = TcpStream::connect((host.as_str(), *port)).unwrap();
            socket.set_nodelay(true).unwrap();
            self.socket = Some(socket);
        }
        let mut out = Vec::new();
        let mut progress = self.connection.on_connected(&mut world.exchange(&mut out));
        loop {
            progress = match self.drive(progress, &mut out, world) {
                Progress::Ready => return,
                Progress::Wait(_) => self.connection.on_timeout(&mut world.exchange(&mut out)),
                other => panic!("{other:?}"),
            }
        }
    }

    fn close(&mut self, world: &mut World) {
        let mut out = Vec::new();
        self.connection.close(&mut world.exchange(&mut out));
        if let Some(mut socket) = self.socket.take() {
            socket.write_all(&out).unwrap();
        }
        self.connection.on_closed();
    }

    fn begin(&mut self, operation: &Operation<'_>, world: &mut World) -> Progress {
        self.kind = match operation {
            Operation::Query { .. } | Operation::Execute { .. } | Operation::RollBack => Kind::Statement,
            Operation::Load { .. } => Kind::Load,
            Operation::Prepare { .. } | Operation::Close { .. } => Kind::Uncounted,
        };
        let mut out = Vec::new();
        let progress = self.connection.execute(operation, &mut world.exchange(&mut out));
        self.drive(progress, &mut out, world)
    }

    /// Sends and receives until there is an event to handle.
    fn drive(&mut self, mut progress: Progress, out: &mut Vec<u8>, world: &mut World) -> Progress {
        let mut buffer = [0; 65536];
        loop {
            if let Some(socket) = &mut self.socket {
                socket.write_all(out).unwrap();
            }
            out.clear();
            if !matches!(progress, Progress::Pending) {
                return progress;
            }
            let received = self.socket.as_mut().expect("only sockets are waited for").read(&mut buffer).unwrap();
            assert!(received > 0, "the server closed the connection");
            progress = self.connection.on_bytes(&buffer[..received], &mut world.exchange(out));
        }
    }
}

/// Opens `url` with a driver, without reading variables or files.
pub(crate) fn open(driver: &Driver, url: &str) -> Box<dyn Database> {
    (driver.open)(url, &ConnectOptions::default(), &NoSurroundings).unwrap()
}

/// Runs statements on a connection of their own and returns the first cell of the last result.
pub(crate) fn sql(database: &dyn Database, text: &str) -> String {
    let mut world = World::default();
    let mut link = Link::open(database, &mut world);
    let reply = match link.begin(&Operation::Query { text: text.as_bytes(), rows: RowsWanted::Keep }, &mut world) {
        Progress::Reply(reply) => reply,
        other => panic!("{other:?}"),
    };
    link.close(&mut world);
    let Reply { rows, error: None, .. } = reply else { panic!("{text}: {:?}", reply.error) };
    let rows = rows.unwrap_or_default();
    match rows.cell(rows.sets().saturating_sub(1), 0, 0) {
        Some(Cell::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        Some(Cell::Int(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}
