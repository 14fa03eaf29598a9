//! One connection to ClickHouse over HTTP: requests one after the other on a socket that is kept as long as the server
//! keeps it.
//!
//! What a session has set lives in a session on the server, named in each request; so a socket that the server closed
//! while nothing was in flight is replaced without an error, when the next operation needs one. If the server has
//! forgotten the session, the connection is lost, and the engine logs in again.
//!
//! Results arrive as blocks (`FORMAT Native`) and are read as they come. The status says nothing about a query that
//! fails after its first rows: a result is whole if the response ends where HTTP says and its last block is complete;
//! anything else is an error. Waiting for the end on the server (`wait_end_of_query`) would give a proper status, but
//! the server then keeps the result in memory or on its disk, which is not what is to be measured: an option of the
//! URL, off by default.
//!
//! Refuses to repeat what may have changed data: only a query that reads is sent again, and only if the server closed
//! an old socket without a single byte as answer.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use assay_seam::url::encoded;
use assay_seam::{
    Cell, Class, Connection, Effect, Exchange, InFlight, Nanos, Operation, Origin, Progress, Reply, Retry, Rows,
    ServerFacts, ServerReads, StatementError, TlsFacts, TlsMode,
};
use assay_wire::templates::Templates;

use super::coding::Coding;
use super::exception;
use super::response::{Content, Event, Response};
use crate::protocol::block::{Block, Wanted};
use crate::protocol::insert::write_rows;
use crate::protocol::packet::{Unread, violation, write_bare_head, write_string};
use crate::protocol::server::{ClickHouseServer, Http};
use crate::protocol::statements::{self, Session, Statements};
use crate::protocol::values;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not logged in.
    Closed,
    /// Nothing is in flight. There may be no socket.
    Idle,
    /// A request was sent, or will be as soon as there is a socket.
    Busy,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// Is the user known, and what is the server?
    Login,
    /// The session statement of this index.
    Setup(usize),
    /// Rows go to the script, with the names of their columns or without.
    Query { labels: bool },
    /// The columns of a table, for `load`.
    Describe,
    /// Rows were sent.
    Insert,
}

/// How a body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Blocks,
    Text,
}

/// A client connection.
#[derive(Debug)]
pub(in crate::protocol) struct HttpConnection {
    server: Arc<ClickHouseServer>,
    /// Executed after the login instead of the statements for new connections.
    errand: Option<String>,
    phase: Phase,
    job: Job,
    in_flight: InFlight,
    /// Whether there is a socket.
    is_open: bool,
    /// We asked for another socket, and this one is about to be closed.
    is_changing: bool,
    /// A response has arrived on this socket: it was not refused.
    has_answered: bool,
    /// Something has arrived of the response to the request in flight.
    is_heard: bool,
    /// The request in flight changes nothing.
    may_repeat: bool,
    /// The server closes this socket.
    closes: bool,
    /// When the last response ended, and how long the server keeps the socket after that, if it says so.
    idle_since: Nanos,
    keeps: Option<Nanos>,
    /// Number of the session on the server, whether that exists, and its queries so far.
    session: u64,
    has_session: bool,
    queries: u64,
    /// The body of the request, until it need not be sent again, and how it is compressed.
    body: Vec<u8>,
    coding: Coding,
    response: Response,
    reads: Body,
    /// What has arrived of a block, or of a text.
    buffer: Vec<u8>,
    parts: Block,
    /// The server's time zone.
    zone: String,
    version: String,
    cipher: Option<String>,
    statements: Statements,
    /// Rows of an INSERT, and how its statement begins.
    load: Rows,
    insert: Vec<u8>,
    /// The reply as far as it has arrived.
    reply: Reply,
    /// Whether the rows of the operation in flight are only counted.
    counts: bool,
}

const LOGIN: &[u8] = b"SELECT version(), timezone()";
/// A buffer that grew beyond this is not kept.
const KEEP_MAX: usize = 1 << 16;
/// Bytes of a text that are kept: its last ones.
const TEXT_MAX: usize = 1 << 18;
/// How much of a response is quoted, in letters, if it is not one of ClickHouse's errors.
const SHOWN_MAX: usize = 200;
/// A socket is not used in the last second before the server closes it, nor in the second half of a shorter time.
const MARGIN: Nanos = Nanos::from_secs(1);
/// SESSION_NOT_FOUND.
const NO_SESSION: u32 = 372;

impl HttpConnection {
    /// `server`: with its `http`.
    pub(in crate::protocol) fn new(server: Arc<ClickHouseServer>) -> HttpConnection {
        HttpConnection {
            server,
            errand: None,
            phase: Phase::Closed,
            job: Job::Login,
            in_flight: InFlight::default(),
            is_open: false,
            is_changing: false,
            has_answered: false,
            is_heard: false,
            may_repeat: false,
            closes: false,
            idle_since: Nanos::ZERO,
            keeps: None,
            session: 0,
            has_session: false,
            queries: 0,
            body: Vec::new(),
            coding: Coding::Identity,
            response: Response::default(),
            reads: Body::Text,
            buffer: Vec::new(),
            parts: Block::bare(),
            zone: String::new(),
            version: String::new(),
            cipher: None,
            statements: Statements::default(),
            load: Rows::default(),
            insert: Vec::new(),
            reply: Reply::default(),
            counts: false,
        }
    }

    /// It executes this statement once it is logged in, and nothing else before it is ready.
    pub(in crate::protocol) fn with_errand(self, sql: String) -> HttpConnection {
        HttpConnection { errand: Some(sql), ..self }
    }

    fn http(&self) -> &Http {
        self.server.http.as_ref().expect("such a connection is made for HTTP only")
    }

    /// Sends `body`; on another socket, if this one may be closed by now.
    fn request(&mut self, job: Job, exchange: &mut Exchange<'_>) -> Progress {
        (self.phase, self.job) = (Phase::Busy, job);
        let idle = exchange.now - self.idle_since;
        let is_old = self.keeps.is_some_and(|keeps| idle + MARGIN.min(Nanos(keeps.0 / 2)) >= keeps);
        if self.is_open && !self.closes && !is_old {
            return self.send(exchange);
        }
        self.is_changing = self.is_open;
        Progress::Reconnect
    }

    fn send(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        self.response.begin();
        (self.is_heard, self.reads) = (false, Body::Text);
        self.buffer.clear();
        self.parts.begin(0);
        self.write_head(exchange.out);
        exchange.out.extend_from_slice(&self.body);
        self.queries += 1;
        if !self.may_repeat {
            self.drop_body();
        }
        Progress::Pending
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        let (http, server) = (self.http(), &*self.server);
        let prefix = &http.run.prefix;
        let mut head = Head(out);
        head.put(format_args!("POST /?database={}&default_format=Native", encoded(&server.database)));
        head.put(format_args!("&session_id={prefix}-{}&session_timeout={}", self.session, http.session_timeout));
        head.put(format_args!("&query_id={prefix}-{}-{}", self.session, self.queries));
        if self.has_session {
            head.put(format_args!("&session_check=1"));
        }
        if http.waits {
            head.put(format_args!("&wait_end_of_query=1"));
        }
        if http.coding != Coding::Identity {
            head.put(format_args!("&enable_http_compression=1"));
        }
        head.put(format_args!(" HTTP/1.1\r\nHost: {}\r\nX-ClickHouse-User: {}\r\n", http.host, server.user));
        if !server.password.is_empty() {
            head.put(format_args!("X-ClickHouse-Key: {}\r\n", server.password));
        }
        if http.coding != Coding::Identity {
            head.put(format_args!("Accept-Encoding: {}\r\n", http.coding.name()));
        }
        if self.coding != Coding::Identity {
            head.put(format_args!("Content-Encoding: {}\r\n", self.coding.name()));
        }
        head.put(format_args!("User-Agent: assay\r\nContent-Length: {}\r\n\r\n", self.body.len()));
    }

    fn drop_body(&mut self) {
        self.body.clear();
        self.body.shrink_to(KEEP_MAX);
    }

    /// The next request is this statement.
    fn set_body(&mut self, sql: &[u8], may_repeat: bool) {
        self.body.clear();
        self.body.extend_from_slice(sql);
        (self.may_repeat, self.coding) = (may_repeat, Coding::Identity);
    }

    /// Sends the next statement for new connections, or reports that all were executed.
    fn set_up(&mut self, next: usize, exchange: &mut Exchange<'_>) -> Progress {
        let server = Arc::clone(&self.server);
        let errand = self.errand.take();
        let Some(sql) = errand.as_ref().or_else(|| server.session_sql.get(next)) else {
            return Progress::Ready;
        };
        self.set_body(sql.as_bytes(), false);
        self.request(Job::Setup(next), exchange)
    }

    /// Asks for the names and types of a table's columns, to send the rows in `load`.
    fn describe(&mut self, table: &[u8], columns: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        let named = if columns == b"*" { Vec::new() } else { [b" (", columns, b")"].concat() };
        self.insert = [b"INSERT INTO ", table, &named, b" FORMAT Native\n"].concat();
        let describe = [b"DESCRIBE TABLE (SELECT ", columns, b" FROM ", table, b")"].concat();
        self.set_body(&describe, true);
        self.request(Job::Describe, exchange)
    }

    /// Sends the rows in `load`, now that the names and types of its columns have arrived.
    fn insert(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        let described = self.reply.rows.take().unwrap_or_default();
        let rows = described.len(0);
        let cell = |row, column| match described.cell(0, row, column) {
            Some(Cell::Text(text)) => Some(text),
            _ => None,
        };
        let cells = || (0..rows).flat_map(|row| (0..2).map(move |column| cell(row, column)));
        let mut sample = Vec::new();
        write_bare_head(rows, 0, &mut sample);
        cells().flatten().for_each(|text| write_string(text, &mut sample));
        let mut columns = Block::bare();
        columns.begin(0);
        let mut body = std::mem::take(&mut self.insert);
        let read = if cells().all(|text| text.is_some()) {
            columns.read(&sample, &self.zone)
        } else {
            Err(Unread::Incomplete)
        };
        let written = match read {
            Ok(_) => write_rows(&columns, &sample, &self.load, write_bare_head, &mut body),
            Err(Unread::Broken(error)) => Err(error),
            Err(Unread::Incomplete) => {
                let texts: Vec<_> = cells().flatten().map(String::from_utf8_lossy).collect();
                let texts: String = texts.join(", ").chars().take(SHOWN_MAX).collect();
                let arrived = format!("rows: {rows}, columns: {}, texts: {texts}", described.columns(0));
                Err(violation(&format!("answered DESCRIBE TABLE in a form that assay does not know ({arrived})")))
            }
        };
        exchange.pool.put(described);
        if let Err(error) = written {
            self.load.clear();
            return Progress::Reply(Reply { error: Some(error), ..Reply::default() });
        }
        let coding = self.http().coding;
        let coded = coding.encode(&body);
        self.coding = if coded.is_some() { coding } else { Coding::Identity };
        (self.body, self.may_repeat) = (coded.unwrap_or(body), false);
        self.reply.affected = self.load.len(0) as u64;
        self.load.clear();
        self.request(Job::Insert, exchange)
    }

    fn on_head(&mut self) {
        let head = self.response.head();
        let is_result = head.status == 200 && head.exception == 0 && head.content == Content::Native;
        self.reads = if is_result { Body::Blocks } else { Body::Text };
        self.drop_body();
    }

    /// Reads what has arrived of a body.
    fn on_body(&mut self, exchange: &mut Exchange<'_>) -> Result<(), Box<StatementError>> {
        while self.reads == Body::Blocks && !self.buffer.is_empty() {
            match self.parts.read(&self.buffer, &self.zone) {
                Ok(end) => {
                    let broken = self.on_block(exchange);
                    if let Err(Unread::Broken(error)) = broken {
                        return Err(error);
                    }
                    self.buffer.drain(..end);
                    self.parts.begin(0);
                }
                Err(Unread::Incomplete) => break,
                Err(Unread::Broken(_)) if exception::begins(&self.buffer) => self.reads = Body::Text,
                Err(Unread::Broken(error)) => return Err(error),
            }
        }
        if self.reads == Body::Text && self.buffer.len() > 2 * TEXT_MAX {
            self.buffer.drain(..self.buffer.len() - TEXT_MAX);
        }
        Ok(())
    }

    fn on_block(&mut self, exchange: &mut Exchange<'_>) -> Result<(), Unread> {
        let wanted = match self.job {
            _ if self.parts.columns().is_empty() => return Ok(()),
            Job::Setup(_) | Job::Insert => return Ok(()),
            Job::Login | Job::Describe => Wanted { labels: false, counts: false },
            Job::Query { labels } => Wanted { labels, counts: self.counts },
        };
        self.parts.answer(&self.buffer, wanted, &mut self.reply, exchange.pool)
    }

    /// The response is complete.
    fn on_end(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        let head = self.response.head();
        (self.phase, self.idle_since, self.keeps) = (Phase::Idle, exchange.now, head.keeps);
        (self.has_answered, self.has_session) = (true, true);
        self.closes |= head.closes || self.response.is_open_ended();
        let error = self.error();
        self.buffer.clear();
        self.buffer.shrink_to(KEEP_MAX);
        if let Some(error) = error {
            let is_lost = matches!(error.class, Class::Protocol | Class::Connection);
            if is_lost || matches!(self.job, Job::Login | Job::Setup(_)) {
                return self.fail(error, exchange);
            }
            self.load.clear();
            let mut reply = std::mem::take(&mut self.reply);
            (reply.affected, reply.error) = (0, Some(error));
            return Progress::Reply(reply);
        }
        let head = self.response.head();
        match self.job {
            Job::Login => self.on_login(exchange),
            Job::Setup(done) => self.set_up(done + 1, exchange),
            Job::Describe => self.insert(exchange),
            Job::Insert => {
                self.reply.affected = head.written_rows.filter(|rows| *rows > 0).unwrap_or(self.reply.affected);
                Progress::Reply(std::mem::take(&mut self.reply))
            }
            Job::Query { .. } => {
                if head.content == Content::Native {
                    // A result without rows has no block, and so no columns.
                    let empty = || {
                        let mut rows = exchange.pool.take();
                        rows.begin_set(0);
                        rows
                    };
                    self.reply.rows.get_or_insert_with(empty);
                } else if let Some(rows) = head.written_rows.filter(|rows| *rows > 0) {
                    self.reply.affected = rows;
                }
                Progress::Reply(std::mem::take(&mut self.reply))
            }
        }
    }

    /// The error that the response reports, if it is not a success.
    fn error(&self) -> Option<Box<StatementError>> {
        let head = self.response.head();
        if head.status != 200 || head.exception != 0 {
            let found = exception::find(&self.buffer, head.exception);
            let mut error = found.unwrap_or_else(|| self.foreign_error());
            if error.code.number == NO_SESSION {
                // What it has set is gone.
                (error.class, error.retry) = (Class::Connection, Retry::Reconnect);
            }
            return Some(Box::new(error));
        }
        if let Content::Other(kind) = &head.content {
            let message = format!("the answer is {kind}, and not rows that can be read");
            let mut error = StatementError::client(Class::Syntax, message);
            error.hint = Some("the statement must not end with a FORMAT of its own".to_owned());
            return Some(Box::new(error));
        }
        if self.buffer.is_empty() {
            return None;
        }
        let found = exception::find(&self.buffer, 0).map(Box::new);
        match head.content {
            Content::Native => Some(found.unwrap_or_else(|| violation("ended a result inside a block"))),
            // A text about a success.
            _ => found,
        }
    }

    /// The error of somebody who is not ClickHouse, such as a proxy, or of a port where ClickHouse speaks something
    /// else.
    fn foreign_error(&self) -> StatementError {
        let head = self.response.head();
        let text = String::from_utf8_lossy(&self.buffer);
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN_MAX).collect();
        let message = format!("HTTP status {} {}: {text}", head.status, head.reason);
        let message = message.trim_end_matches([' ', ':']).to_owned();
        match head.status {
            429 => StatementError {
                retry: Retry::AfterBackoff,
                origin: Origin::Server,
                ..StatementError::client(Class::Limit, message)
            },
            502..=504 => StatementError { origin: Origin::Server, ..StatementError::network(message) },
            _ => StatementError::client(Class::Protocol, message),
        }
    }

    fn on_login(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        let rows = self.reply.rows.take().unwrap_or_default();
        let text = |column| match rows.cell(0, 0, column) {
            Some(Cell::Text(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        };
        let known = text(0).zip(text(1));
        exchange.pool.put(rows);
        let Some((version, zone)) = known else {
            return self.fail(violation("did not say which version it is"), exchange);
        };
        (self.version, self.zone) = (version, zone);
        self.set_up(0, exchange)
    }

    /// Gives up the connection.
    fn fail(&mut self, error: Box<StatementError>, exchange: &mut Exchange<'_>) -> Progress {
        self.leave();
        if let Some(rows) = std::mem::take(&mut self.reply).rows {
            exchange.pool.put(rows);
        }
        self.forget();
        Progress::Failed(error)
    }

    /// Closing the socket does not end a query on the server.
    fn leave(&self) {
        if self.phase == Phase::Busy && !matches!(self.job, Job::Login | Job::Setup(_)) {
            let run = &self.http().run;
            let query = format!("{}-{}-{}", run.prefix, self.session, self.queries.saturating_sub(1));
            run.left.lock().expect("nobody panics with it").push(query);
        }
    }

    /// Forgets the session.
    fn forget(&mut self) {
        (self.phase, self.counts, self.cipher) = (Phase::Closed, false, None);
        (self.is_open, self.is_changing, self.has_session) = (false, false, false);
        (self.buffer, self.body, self.reply) = (Vec::new(), Vec::new(), Reply::default());
        self.response = Response::default();
        self.load.clear();
    }
}

/// Writes the head of a request.
struct Head<'a>(&'a mut Vec<u8>);

impl Head<'_> {
    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        self.write_fmt(text).expect("memory takes everything");
    }
}

impl std::fmt::Write for Head<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl Session for HttpConnection {
    fn statements(&mut self) -> (&mut Statements, &Templates) {
        (&mut self.statements, &self.server.templates)
    }

    fn query(&mut self, sql: &[u8], labels: bool, exchange: &mut Exchange<'_>) -> Progress {
        let sql = sql.trim_ascii_end();
        let sql = sql.strip_suffix(b";").unwrap_or(sql);
        // The server reads expressions, but takes a text for a number only from a block.
        if let Some(start) = values::start(sql)
            && let Some((table, columns)) = values::table(sql, start)
            && let Ok(rows) = values::read(sql, start)
        {
            self.load = rows;
            return self.describe(table, columns, exchange);
        }
        self.set_body(sql, Effect::of(sql) == Effect::Reads);
        self.request(Job::Query { labels }, exchange)
    }

    fn load(&mut self, table: &[u8], columns: &[u8], rows: &Rows, exchange: &mut Exchange<'_>) -> Progress {
        self.load.clone_from(rows);
        self.describe(table, columns, exchange)
    }
}

impl Connection for HttpConnection {
    fn in_transaction(&self) -> bool {
        false
    }

    fn server(&self) -> ServerFacts {
        ServerFacts {
            product: "ClickHouse".into(),
            version: self.version.clone(),
            tls: self.cipher.clone(),
            process: None,
        }
    }

    fn effect(&self) -> Effect {
        self.statements.effect(&self.in_flight)
    }

    fn on_connected(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        if self.phase != Phase::Busy {
            self.forget();
            self.session = self.http().run.sessions.fetch_add(1, Ordering::Relaxed);
            self.queries = 0;
            (self.phase, self.job) = (Phase::Busy, Job::Login);
            self.set_body(LOGIN, false);
        }
        (self.is_open, self.has_answered, self.closes, self.keeps) = (true, false, false, None);
        if self.server.tls.mode == TlsMode::Disable {
            return self.send(exchange);
        }
        Progress::StartTls
    }

    fn on_bytes(&mut self, mut bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        match self.phase {
            Phase::Closed => return Progress::Pending,
            // A proxy that closes an idle connection may say so first.
            Phase::Idle => {
                self.closes = true;
                return Progress::Pending;
            }
            Phase::Busy => self.is_heard = true,
        }
        loop {
            match self.response.read(&mut bytes, &mut self.buffer) {
                Ok(Event::Incomplete) => break,
                Ok(Event::Head) => self.on_head(),
                Ok(Event::Body) => {
                    if let Err(error) = self.on_body(exchange) {
                        return self.fail(error, exchange);
                    }
                }
                Ok(Event::End) => {
                    // What nobody asked for cannot be told from the next response.
                    self.closes |= !bytes.is_empty();
                    return self.on_end(exchange);
                }
                Err(why) => {
                    let found = exception::find(&self.buffer, 0);
                    return self.fail(found.map_or_else(|| violation(&why), Box::new), exchange);
                }
            }
        }
        // Who sends an error without its length closes the connection after it.
        if self.response.is_open_ended() && self.reads == Body::Text && !self.buffer.is_empty() {
            return self.on_end(exchange);
        }
        Progress::Pending
    }

    fn on_secured(&mut self, tls: &TlsFacts, exchange: &mut Exchange<'_>) -> Progress {
        self.cipher = Some(tls.cipher.clone());
        self.send(exchange)
    }

    fn on_closed(&mut self) -> bool {
        let was_open = std::mem::take(&mut self.is_open);
        let is_changing = std::mem::take(&mut self.is_changing);
        let repeats = was_open && self.has_answered && !self.is_heard && self.may_repeat;
        match self.phase {
            Phase::Idle if was_open => true,
            Phase::Busy if is_changing || repeats => true,
            _ => {
                self.leave();
                self.forget();
                false
            }
        }
    }

    fn on_timeout(&mut self, _: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress {
        self.in_flight = InFlight::of(operation);
        if self.phase != Phase::Idle {
            return self.fail(Box::new(StatementError::network("the connection is not open")), exchange);
        }
        self.counts = operation.counts_rows();
        statements::execute(self, operation, exchange)
    }

    /// The summary is at the head of the response: it is complete only if the server has waited for the end.
    fn reads(&self) -> Option<ServerReads> {
        self.response.head().reads.filter(|_| self.http().waits)
    }

    fn close(&mut self, _: &mut Exchange<'_>) {
        self.leave();
        self.forget();
    }
}
