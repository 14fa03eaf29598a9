//! One connection, driven until it has answered: for queries outside the load, such as settings, telemetry, and the
//! administration of a server.
//!
//! The connections are those of the measured path; here one thread waits for one of them. Errors are returned as text:
//! a run needs none of these answers.

#![forbid(unsafe_code)]

mod guard;
mod waiting;

use assay_io::clock::Clock;
use assay_io::readiness::Readiness;
use assay_io::{Address, Closed, Io, IoEvent, NeededEndpoints, SocketId, Target, Unresolved};
use assay_seam::{
    Cell, Class, Code, ConnectOptions, Connection, Driver, Endpoint, Exchange, Nanos, NoSurroundings, Operation,
    Outlet, Progress, Rows, RowsPool, RowsWanted, ServerFacts, ServerReads, StatementError, StatementId,
};
use core::net::SocketAddr;

use guard::Guard;

pub use waiting::Waiting;

/// A connection that is logged in.
pub struct Client {
    io: Readiness,
    connection: Box<dyn Connection>,
    socket: Option<SocketId>,
    target: Target,
    /// Which address of the target.
    place: usize,
    is_lost: bool,
    /// How the connection was lost, if the network said so.
    closed: Option<Closed>,
    out: Vec<u8>,
    pool: RowsPool,
    /// Whoever waits for its answers.
    waiting: Option<&'static dyn Waiting>,
    /// Limit for the answers to `rows`, `run` and `value`.
    patience: Nanos,
    /// Name of the server in messages.
    name: String,
    /// Length of the wait at the last line about it.
    told: Nanos,
    sent: Sent,
    clock: Clock,
    /// For an embedded database that somebody waits for.
    guard: Option<Guard>,
}

/// One row, each value as text; `None`: NULL.
pub type Row = Vec<Option<String>>;

/// Operations sent to a server so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Statements that were executed.
    pub statements: u64,
    /// Statements that were prepared.
    pub prepared: u64,
}

impl std::ops::Add for Sent {
    type Output = Sent;

    fn add(self, other: Sent) -> Sent {
        Sent { statements: self.statements + other.statements, prepared: self.prepared + other.prepared }
    }
}

impl Client {
    /// Logs in as the sessions of a run do, with the statements that run on every new connection.
    ///
    /// `waiting`: may end every wait, and hears of long ones.
    pub fn open_as_session(
        target: &Target,
        clock: Clock,
        patience: Nanos,
        waiting: Option<&'static dyn Waiting>,
    ) -> Result<Client, Box<StatementError>> {
        Client::open_with(target, clock, patience, waiting, || target.database.connection())
    }

    /// Logs in at a URL, with nothing but what the URL says: for administration. `patience` limits every single wait
    /// for the server, here and later.
    pub fn open_url(driver: &Driver, url: &str, patience: Nanos) -> Result<Client, String> {
        let options = ConnectOptions { prepared: false, ..ConnectOptions::default() };
        let database = (driver.open)(url, &options, &NoSurroundings).map_err(|error| error.to_string())?;
        let target = Target::resolve(database, NeededEndpoints::All, Address::resolve);
        let target = target.map_err(|unresolved| match unresolved {
            Unresolved::Tls(error) | Unresolved::Address(_, error) => error.message,
        })?;
        Client::open(&target, Clock::start(), patience).map_err(|error| words_of(&error))
    }

    /// Logs in at the first address that accepts, each within `patience`. Instants are those of `clock`.
    pub fn open(target: &Target, clock: Clock, patience: Nanos) -> Result<Client, Box<StatementError>> {
        Client::open_with(target, clock, patience, None, || target.database.connection_beside())
    }

    fn open_with(
        target: &Target,
        clock: Clock,
        patience: Nanos,
        waiting: Option<&'static dyn Waiting>,
        connection: impl Fn() -> Box<dyn Connection>,
    ) -> Result<Client, Box<StatementError>> {
        // An embedded database has no address.
        let last = target.addresses.len().saturating_sub(1);
        for place in 0..last {
            if let Ok(client) = Client::open_at((target, place), clock, patience, waiting, connection()) {
                return Ok(client);
            }
        }
        Client::open_at((target, last), clock, patience, waiting, connection())
    }

    /// Servers that may be used instead of those that the URL names, with these, as the first one that knows of others
    /// lists them. Each has `patience` to answer.
    pub fn members(
        target: &Target,
        clock: Clock,
        patience: Nanos,
        waiting: Option<&'static dyn Waiting>,
    ) -> Vec<Endpoint> {
        for place in 0..target.addresses.len() {
            let Some(scout) = target.database.scout() else { break };
            let listed = Client::open_at((target, place), clock, patience, waiting, scout);
            let listed = listed.map_or(Vec::new(), |client| client.connection.members());
            if !listed.is_empty() {
                return listed;
            }
        }
        Vec::new()
    }

    /// Logs in at the address of this place.
    fn open_at(
        (target, place): (&Target, usize),
        clock: Clock,
        patience: Nanos,
        waiting: Option<&'static dyn Waiting>,
        connection: Box<dyn Connection>,
    ) -> Result<Client, Box<StatementError>> {
        let io = Readiness::new(clock, 1).map_err(|error| lost(error.to_string()))?;
        let deadline = io.now() + patience;
        let mut client = Client {
            io,
            connection,
            socket: None,
            target: target.clone(),
            place,
            is_lost: false,
            closed: None,
            out: Vec::new(),
            pool: RowsPool::default(),
            waiting,
            patience,
            name: target.database.display(),
            told: Nanos::ZERO,
            sent: Sent::default(),
            clock,
            guard: None,
        };
        client.log_in(deadline)?;
        client.watch_over();
        Ok(client)
    }

    /// What the server reported about itself at login.
    pub fn server(&self) -> ServerFacts {
        self.connection.server()
    }

    /// What was sent since the login.
    pub fn sent(&self) -> Sent {
        self.sent
    }

    /// The present instant.
    pub fn now(&self) -> Nanos {
        self.io.now()
    }

    /// The rows of a query, or why there are none within `patience`. After a timeout or a broken connection, every
    /// further query is refused.
    pub fn ask(&mut self, sql: &str, patience: Nanos) -> Result<Box<Rows>, String> {
        self.operate(&Operation::Query { text: sql.as_bytes(), rows: RowsWanted::Keep }, patience)
            .map_err(Refused::message)
    }

    /// The same with the server's whole error.
    pub fn attempt(&mut self, sql: &str, patience: Nanos) -> Result<Box<Rows>, Refused> {
        self.operate(&Operation::Query { text: sql.as_bytes(), rows: RowsWanted::Keep }, patience)
    }

    /// The same for a result of any size: rows are handed to `outlet` while they arrive, and the last ones returned.
    pub fn attempt_large(&mut self, sql: &str, patience: Nanos, outlet: Outlet) -> Result<Box<Rows>, Refused> {
        self.pool.set_outlet(Some(outlet));
        let answer = self.attempt(sql, patience);
        self.pool.set_outlet(None);
        answer
    }

    /// The rows of a statement's first result set, if it has one. The error contains the server's code.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>, String> {
        let operation = Operation::Query { text: sql.as_bytes(), rows: RowsWanted::Keep };
        let rows = self.operate(&operation, self.patience).map_err(|refused| match refused {
            Refused::Server(error) => words_of(&StatementError { hint: None, ..*error }),
            Refused::Lost(reason) => reason,
        })?;
        let row = |row| (0..rows.columns(0)).map(|column| text(&rows, row, column)).collect();
        let all = (0..rows.len(0)).map(row).collect();
        self.reuse(rows);
        Ok(all)
    }

    /// Runs statements one by one, each in a transaction of its own.
    pub fn run(&mut self, statements: &[&str]) -> Result<(), String> {
        statements.iter().try_for_each(|sql| self.rows(sql).map(drop).map_err(|error| format!("{sql}: {error}")))
    }

    /// The only value of the only row.
    pub fn value(&mut self, sql: &str) -> Result<String, String> {
        let mut rows = self.rows(sql)?;
        let value = rows.pop().and_then(|mut row| if row.is_empty() { None } else { row.swap_remove(0) });
        value.ok_or_else(|| format!("{sql}: no value"))
    }

    /// Prepares a statement, if the user permits that; see `execute`.
    pub fn prepare(&mut self, statement: StatementId, sql: &str, patience: Nanos) -> Result<(), String> {
        self.operate(&Operation::Prepare { statement, text: sql.as_bytes() }, patience)
            .map(drop)
            .map_err(Refused::message)
    }

    /// The rows of a prepared statement.
    pub fn execute(&mut self, statement: StatementId, patience: Nanos) -> Result<Box<Rows>, String> {
        self.operate(&Operation::Execute { statement, parameters: &[], rows: RowsWanted::Keep }, patience)
            .map_err(Refused::message)
    }

    /// What the server read for the last statement; `None`: it does not say so.
    pub fn reads(&self) -> Option<ServerReads> {
        self.connection.reads()
    }

    /// Returns rows for reuse by the next answer.
    pub fn reuse(&mut self, rows: Box<Rows>) {
        self.pool.put(rows);
    }

    /// The server's address; `None`: an embedded database, or a unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.target.addresses.get(self.place) {
            Some(Address::Tcp(address)) => Some(*address),
            _ => None,
        }
    }

    /// Whether it can be queried.
    pub fn is_open(&self) -> bool {
        !self.is_lost
    }

    /// Says goodbye.
    pub fn close(self) {}

    fn log_in(&mut self, deadline: Nanos) -> Result<(), Box<StatementError>> {
        let asked = self.io.now();
        let mut progress = self.connect().map_err(lost)?;
        loop {
            self.send();
            progress = match progress {
                Progress::Ready => return Ok(()),
                Progress::Reply(_) => return Err(lost("the server answered before it was asked".to_owned())),
                Progress::Failed(error) => {
                    self.lose(String::new());
                    return Err(error);
                }
                Progress::Reconnect => self.connect().map_err(lost)?,
                progress => match self.follow(progress, asked, deadline) {
                    Ok(progress) => progress,
                    Err(words) => {
                        let is_late = words == LATE;
                        let mut error = lost(words);
                        if let Some(closed) = self.closed.take() {
                            error.hint = closed.hint;
                            error.class = if closed.tls { Class::Encryption } else { error.class };
                        }
                        error.class = if is_late { Class::Timeout } else { error.class };
                        return Err(error);
                    }
                },
            };
        }
    }

    fn operate(&mut self, operation: &Operation<'_>, patience: Nanos) -> Result<Box<Rows>, Refused> {
        if self.is_lost {
            return Err(Refused::Lost(LOST.to_owned()));
        }
        match operation {
            Operation::Prepare { .. } => self.sent.prepared += 1,
            _ => self.sent.statements += 1,
        }
        let asked = self.io.now();
        let deadline = asked + patience;
        if let Some(guard) = &self.guard {
            guard.begin(deadline);
        }
        let answer = self.answer(operation, asked, deadline);
        if let Some(guard) = &self.guard {
            guard.end();
        }
        answer
    }

    fn answer(&mut self, operation: &Operation<'_>, asked: Nanos, deadline: Nanos) -> Result<Box<Rows>, Refused> {
        let mut progress = self.step(|connection, exchange| connection.execute(operation, exchange));
        loop {
            self.send();
            progress = match progress {
                Progress::Reply(reply) => {
                    return match (reply.error, reply.rows) {
                        (Some(error), rows) => {
                            rows.into_iter().for_each(|rows| self.pool.put(rows));
                            Err(Refused::Server(error))
                        }
                        (None, rows) => Ok(rows.unwrap_or_default()),
                    };
                }
                Progress::Ready => return Err(Refused::Lost(self.lose(LOST.to_owned()))),
                Progress::Reconnect => self.connect().map_err(Refused::Lost)?,
                Progress::Failed(error) => {
                    self.lose(String::new());
                    return Err(Refused::Server(error));
                }
                progress => self.follow(progress, asked, deadline).map_err(Refused::Lost)?,
            };
        }
    }

    /// Lets another thread end what an embedded database executes, if somebody waits for that.
    fn watch_over(&mut self) {
        self.guard = None;
        if let (Some(waiting), Some(interrupter)) = (self.waiting, self.connection.interrupter()) {
            self.guard = Guard::start(interrupter, self.clock, Some(waiting), TURN);
        }
    }

    /// Does what the connection asked for, before the deadline.
    fn follow(&mut self, progress: Progress, asked: Nanos, deadline: Nanos) -> Result<Progress, String> {
        match progress {
            Progress::StartTls => {
                if let Some(socket) = self.socket {
                    self.io.start_tls(socket);
                }
                self.next(asked, deadline)
            }
            Progress::Wait(pause) => {
                let until = self.io.now() + pause;
                while self.io.now() < until.min(deadline) {
                    self.io.wait(Some(until)).map_err(|error| error.to_string())?;
                }
                if self.waiting.is_some_and(Waiting::is_over) {
                    return Err(self.lose("interrupted".to_owned()));
                }
                if self.io.now() >= deadline {
                    return Err(self.lose(LATE.to_owned()));
                }
                Ok(self.step(|connection, exchange| connection.on_timeout(exchange)))
            }
            _ => self.next(asked, deadline),
        }
    }

    fn step(&mut self, act: impl FnOnce(&mut dyn Connection, &mut Exchange<'_>) -> Progress) -> Progress {
        let now = self.io.now();
        act(&mut *self.connection, &mut Exchange { out: &mut self.out, pool: &mut self.pool, now })
    }

    fn connect(&mut self) -> Result<Progress, String> {
        if self.socket.is_some() {
            self.drop_socket();
            self.connection.on_closed();
        }
        let Some(address) = self.target.addresses.get(self.place) else {
            return Ok(self.step(|connection, exchange| connection.on_connected(exchange)));
        };
        match self.io.connect(address, self.target.tls(self.place)) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => return Err(self.lose(error.to_string())),
        }
        Ok(Progress::Pending)
    }

    fn send(&mut self) {
        if let Some(socket) = self.socket {
            self.io.send(socket, &self.out);
        }
        self.out.clear();
    }

    /// What the next event leads to.
    fn next(&mut self, asked: Nanos, deadline: Nanos) -> Result<Progress, String> {
        loop {
            match self.io.next_event() {
                Some(IoEvent::Connected(_)) => {
                    return Ok(self.step(|connection, exchange| connection.on_connected(exchange)));
                }
                Some(IoEvent::Received(_)) => {
                    let bytes = self.io.received().to_vec();
                    return Ok(self.step(|connection, exchange| connection.on_bytes(&bytes, exchange)));
                }
                Some(IoEvent::Secured(_, facts)) => {
                    return Ok(self.step(|connection, exchange| connection.on_secured(&facts, exchange)));
                }
                Some(IoEvent::Closed(_, closed)) => {
                    self.socket = None;
                    if self.connection.on_closed() {
                        return Ok(Progress::Reconnect);
                    }
                    self.is_lost = true;
                    let message = closed.message.clone();
                    self.closed = Some(closed);
                    return Err(message);
                }
                None if self.io.now() >= deadline => return Err(self.lose(LATE.to_owned())),
                None if self.waiting.is_some_and(|waiting| waiting.is_over()) => {
                    return Err(self.lose("interrupted".to_owned()));
                }
                None => {
                    self.tell_of_wait(asked);
                    let turn = self.waiting.map_or(deadline, |_| deadline.min(self.io.now() + TURN));
                    self.io.wait(Some(turn)).map_err(|error| error.to_string())?;
                }
            }
        }
    }

    /// A line for the user who waits, and could end it.
    fn tell_of_wait(&mut self, asked: Nanos) {
        let waited = self.io.now() - asked;
        if waited < self.told {
            self.told = Nanos::ZERO;
        }
        let Some(waiting) = self.waiting else { return };
        if waited >= TOLD && waited >= Nanos(2 * self.told.0) {
            self.told = waited;
            waiting.waited(&self.name, waited);
        }
    }

    /// A late answer would be mistaken for that of the next query.
    fn lose(&mut self, reason: String) -> String {
        self.is_lost = !self.target.addresses.is_empty();
        self.drop_socket();
        self.connection.on_closed();
        reason
    }

    fn drop_socket(&mut self) {
        if let Some(socket) = self.socket.take() {
            self.io.close(socket);
        }
    }
}

impl Drop for Client {
    /// Says goodbye.
    fn drop(&mut self) {
        self.guard = None;
        if !self.is_lost {
            let now = self.io.now();
            self.connection.close(&mut Exchange { out: &mut self.out, pool: &mut self.pool, now });
            self.send();
            self.drop_socket();
        }
        end_what_is_left(&self.target, self.place);
    }
}

/// Limit for ending what is left on a server.
const FAREWELL: Nanos = Nanos::from_secs(5);

/// Ends what connections that are closed have left running on a server, at the address of this place. It may fail: the
/// server may be gone.
pub fn end_what_is_left(target: &Target, place: usize) {
    if let Some(connection) = target.database.farewell() {
        let _ = Client::open_at((target, place), Clock::start(), FAREWELL, None, connection);
    }
}

/// The server took longer than it may.
const LATE: &str = "no answer in time";

/// The connection could not be made, or was lost.
fn lost(words: String) -> Box<StatementError> {
    Box::new(StatementError::network(words))
}

/// An error without its origin and class: what happened, the server's code if there is one, and, of a file, what to do.
pub fn words_of(error: &StatementError) -> String {
    let code = if error.code == Code::default() { String::new() } else { format!(" ({})", error.code) };
    format!("{}{code}{}", error.message, error.hint_words())
}

/// Why there is no answer.
pub enum Refused {
    /// The server's error.
    Server(Box<StatementError>),
    /// The connection was lost, or is no longer waited for.
    Lost(String),
}

impl Refused {
    fn message(self) -> String {
        match self {
            Refused::Server(error) => error.message,
            Refused::Lost(reason) => reason,
        }
    }
}

/// How long an interrupt may go unnoticed.
const TURN: Nanos = Nanos::from_millis(100);
/// Length of a wait before the first line about it; doubled for each further line.
const TOLD: Nanos = Nanos::from_secs(30);
const LOST: &str = "the connection is lost";

/// A cell as text; `None` for NULL, and for a missing cell.
pub fn text(rows: &Rows, row: usize, column: usize) -> Option<String> {
    match rows.cell(0, row, column)? {
        Cell::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        Cell::Int(number) => Some(number.to_string()),
        Cell::Double(number) => Some(number.to_string()),
        Cell::Null => None,
    }
}
