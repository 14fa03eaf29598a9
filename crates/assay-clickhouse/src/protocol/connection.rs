//! One connection to ClickHouse: login, operations, and what survives a reconnect.
//!
//! The server executes one query at a time and knows no transactions. A prepared statement is a text here, into which
//! parameters are written. Rows of an INSERT are sent as a block once the server has described the table's columns.

use std::sync::Arc;

use assay_seam::{
    Class, Connection, Effect, Exchange, InFlight, Operation, Progress, Reply, Rows, ServerFacts, ServerReads,
    StatementError, TlsFacts, TlsMode,
};
use assay_wire::templates::Templates;

use super::block::{Block, Wanted};
use super::insert::write_rows;
use super::packet::{
    REVISION_MIN, Read, Reader, Unread, broken, violation, write_block_head, write_hello, write_query,
};
use super::refusal;
use super::server::ClickHouseServer;
use super::statements::{self, Session, Statements};
use super::values;

/// Packets of the server.
mod code {
    pub(super) const HELLO: u64 = 0;
    pub(super) const DATA: u64 = 1;
    pub(super) const EXCEPTION: u64 = 2;
    pub(super) const PROGRESS: u64 = 3;
    pub(super) const PONG: u64 = 4;
    pub(super) const END: u64 = 5;
    pub(super) const PROFILE: u64 = 6;
    pub(super) const TOTALS: u64 = 7;
    pub(super) const EXTREMES: u64 = 8;
}

/// The packet that ends the query in flight.
const CANCEL: u8 = 3;
/// The packet that the server answers with PONG.
const PING: u8 = 4;

/// Bytes before the login is done: names, versions, or an error.
const LOGIN_MAX: usize = 1 << 20;
/// A buffer that grew beyond this is not kept.
const KEEP_MAX: usize = 1 << 16;
/// Exceptions that caused each other.
const NESTED_MAX: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not connected.
    Closed,
    /// The TLS handshake is next.
    Securing,
    /// The server's name and version are next.
    Hello,
    /// Nothing is in flight.
    Idle,
    /// A query was sent.
    Busy,
}

/// What a query is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// The session statement of this index.
    Setup(usize),
    /// Rows go to the script, with the names of their columns or without. `inserts`: it is an INSERT, whose rows were
    /// not in its text.
    Query { labels: bool, inserts: bool },
    /// `load` waits for the table's columns.
    Insert,
    /// All rows were sent.
    Inserted,
    /// The server refused something and was asked whether it listens: older versions do not read what follows a query
    /// with a wrong syntax, and take it for the next one.
    Check,
}

/// A client connection.
#[derive(Debug)]
pub(super) struct ClickHouseConnection {
    server: Arc<ClickHouseServer>,
    phase: Phase,
    job: Job,
    in_flight: InFlight,
    /// What has arrived and was not read to its end: one packet.
    buffer: Vec<u8>,
    /// How far that packet was read, if it has a block.
    block: Option<u64>,
    parts: Block,
    /// The server's time zone.
    zone: String,
    version: String,
    cipher: Option<String>,
    statements: Statements,
    /// Rows of an INSERT.
    load: Rows,
    /// The reply as far as it has arrived.
    reply: Reply,
    /// Whether the rows of the operation in flight are only counted.
    counts: bool,
    /// What the server has read for it, as far as it has said so.
    reads: ServerReads,
}

impl ClickHouseConnection {
    pub(super) fn new(server: Arc<ClickHouseServer>) -> ClickHouseConnection {
        ClickHouseConnection {
            server,
            phase: Phase::Closed,
            job: Job::Query { labels: false, inserts: false },
            in_flight: InFlight::default(),
            buffer: Vec::new(),
            block: None,
            parts: Block::default(),
            zone: String::new(),
            version: String::new(),
            cipher: None,
            statements: Statements::default(),
            load: Rows::default(),
            reply: Reply::default(),
            counts: false,
            reads: ServerReads::default(),
        }
    }

    fn greet(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        self.phase = Phase::Hello;
        write_hello(&self.server.database, &self.server.user, &self.server.password, exchange.out);
        Progress::Pending
    }

    /// Sends the next statement for new connections, or reports that all were executed.
    fn set_up(&mut self, next: usize, exchange: &mut Exchange<'_>) -> Progress {
        let Some(sql) = self.server.session_sql.get(next) else {
            self.phase = Phase::Idle;
            return Progress::Ready;
        };
        self.job = Job::Setup(next);
        self.phase = Phase::Busy;
        write_query(sql.as_bytes(), exchange.out);
        Progress::Pending
    }

    /// Sends an INSERT for the rows in `load`.
    fn insert(&mut self, sql: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        (self.phase, self.job) = (Phase::Busy, Job::Insert);
        write_query(sql, exchange.out);
        Progress::Pending
    }

    /// Reads one packet at the front of the buffer. Returns its length, and what it leads to.
    fn packet(&mut self, exchange: &mut Exchange<'_>) -> Read<(usize, Progress)> {
        if let Some(kind) = self.block {
            let end = self.parts.read(&self.buffer, &self.zone)?;
            self.block = None;
            return Ok((end, self.on_block(kind, exchange)?));
        }
        let mut reader = Reader::new(&self.buffer, 0);
        let kind = reader.number()?;
        let progress = match (self.phase, kind) {
            (Phase::Hello, code::HELLO) => {
                let name = reader.text()?;
                let (major, minor, revision) = (reader.number()?, reader.number()?, reader.number()?);
                if revision < REVISION_MIN {
                    let protocol =
                        format!("its protocol has revision {revision}, and this driver needs {REVISION_MIN}");
                    let message = format!("{name} {major}.{minor} is too old: {protocol}");
                    return Err(Unread::Broken(Box::new(StatementError::client(Class::Protocol, message))));
                }
                let (zone, _) = (reader.text()?, reader.string()?);
                let patch = reader.number()?;
                let end = reader.at;
                (self.zone, self.version) = (zone, format!("{major}.{minor}.{patch}"));
                return Ok((end, self.set_up(0, exchange)));
            }
            (Phase::Hello | Phase::Busy | Phase::Idle, code::EXCEPTION) => {
                let error = exception(&mut reader)?;
                let end = reader.at;
                return Ok((end, self.on_exception(error, exchange)));
            }
            (Phase::Busy, code::DATA | code::TOTALS | code::EXTREMES) => {
                let at = reader.at;
                self.parts.begin(at);
                self.block = Some(kind);
                return self.packet(exchange);
            }
            (Phase::Busy, code::PROGRESS) => {
                // Since the last one: rows and bytes; and rows in all, as far as they are known.
                let (rows, bytes, _) = (reader.number()?, reader.number()?, reader.number()?);
                self.reads.rows = self.reads.rows.saturating_add(rows);
                self.reads.bytes = self.reads.bytes.saturating_add(bytes);
                Progress::Pending
            }
            (Phase::Busy, code::PROFILE) => {
                // Rows, blocks, bytes; whether a limit was applied; rows before it; whether these were calculated.
                for _ in 0..3 {
                    reader.number()?;
                }
                reader.byte()?;
                reader.number()?;
                reader.byte()?;
                Progress::Pending
            }
            (Phase::Busy, code::PONG) if self.job == Job::Check => {
                self.phase = Phase::Idle;
                Progress::Reply(std::mem::take(&mut self.reply))
            }
            (Phase::Busy, code::END) if self.job != Job::Check => {
                let end = reader.at;
                return Ok((end, self.on_end(exchange)));
            }
            _ => return broken(&format!("sent packet {kind} when none was expected")),
        };
        Ok((reader.at, progress))
    }

    fn on_block(&mut self, kind: u64, exchange: &mut Exchange<'_>) -> Read<Progress> {
        // Totals and extremes are no rows of the result. The block that ends a result has no columns.
        if kind != code::DATA || self.parts.columns().is_empty() {
            return Ok(Progress::Pending);
        }
        match self.job {
            Job::Setup(_) | Job::Inserted | Job::Check => {}
            Job::Insert => {
                match write_rows(&self.parts, &self.buffer, &self.load, write_block_head, exchange.out) {
                    Ok(()) => self.reply.affected = self.load.len(0) as u64,
                    Err(error) => self.reply.error = Some(error),
                }
                // The end of the rows: without any before, nothing is inserted.
                write_block_head(0, 0, exchange.out);
                self.job = Job::Inserted;
                self.load.clear();
            }
            Job::Query { inserts: true, .. } => {
                let mut error =
                    StatementError::client(Class::Syntax, "an INSERT without rows: the server waits for them");
                error.hint = Some("write INSERT INTO … VALUES (…), or INSERT INTO … SELECT …".to_owned());
                self.reply.error = Some(Box::new(error));
                write_block_head(0, 0, exchange.out);
                self.job = Job::Inserted;
            }
            Job::Query { labels, .. } => {
                let wanted = Wanted { labels, counts: self.counts };
                self.parts.answer(&self.buffer, wanted, &mut self.reply, exchange.pool)?;
            }
        }
        Ok(Progress::Pending)
    }

    fn on_exception(&mut self, error: StatementError, exchange: &mut Exchange<'_>) -> Progress {
        match (self.phase, self.job) {
            (Phase::Busy, Job::Query { .. } | Job::Insert) => {
                self.reply.error = Some(Box::new(error));
                self.job = Job::Check;
                exchange.out.push(PING);
                Progress::Pending
            }
            (Phase::Busy, Job::Check) => {
                let first = self.reply.error.take().unwrap_or_else(|| Box::new(error));
                self.fail(first, exchange)
            }
            // The login or a session statement was refused; or rows are still on their way, which the server could take
            // for something else.
            _ => self.fail(Box::new(error), exchange),
        }
    }

    fn on_end(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        if let Job::Setup(done) = self.job {
            return self.set_up(done + 1, exchange);
        }
        self.phase = Phase::Idle;
        Progress::Reply(std::mem::take(&mut self.reply))
    }

    /// Gives up the connection.
    fn fail(&mut self, error: Box<StatementError>, exchange: &mut Exchange<'_>) -> Progress {
        if let Some(rows) = std::mem::take(&mut self.reply).rows {
            exchange.pool.put(rows);
        }
        self.forget();
        Progress::Failed(error)
    }

    /// Forgets what is tied to the socket.
    fn forget(&mut self) {
        (self.phase, self.block, self.counts, self.cipher) = (Phase::Closed, None, false, None);
        (self.buffer, self.reply) = (Vec::new(), Reply::default());
        self.load.clear();
    }
}

/// The first of the errors that caused each other.
fn exception(reader: &mut Reader<'_>) -> Read<StatementError> {
    let mut first = None;
    for _ in 0..NESTED_MAX {
        let code = reader.int32()?;
        // Its name says nothing more, and the stack is the server's own.
        let (_, message, _) = (reader.string()?, reader.text()?, reader.string()?);
        let is_last = reader.byte()? == 0;
        first.get_or_insert_with(|| refusal::error(code, &message));
        if is_last {
            return Ok(first.expect("there was one"));
        }
    }
    broken("sent too many errors at once")
}

impl Session for ClickHouseConnection {
    fn statements(&mut self) -> (&mut Statements, &Templates) {
        (&mut self.statements, &self.server.templates)
    }

    /// Rows in its text are taken out of it.
    fn query(&mut self, sql: &[u8], labels: bool, exchange: &mut Exchange<'_>) -> Progress {
        let sql = sql.trim_ascii_end();
        if let Some(start) = values::start(sql) {
            return match values::read(sql, start) {
                Ok(rows) => {
                    self.load = rows;
                    self.insert(&sql[..start], exchange)
                }
                Err(why) => {
                    let mut error = StatementError::client(Class::Syntax, format!("the rows of an INSERT: {why}"));
                    error.hint = Some("for anything but numbers, texts and NULL: INSERT INTO … SELECT …".to_owned());
                    Progress::Reply(Reply::failed(error))
                }
            };
        }
        let inserts = sql.trim_ascii_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case(b"insert"));
        (self.phase, self.job) = (Phase::Busy, Job::Query { labels, inserts });
        write_query(sql.strip_suffix(b";").unwrap_or(sql), exchange.out);
        Progress::Pending
    }

    fn load(&mut self, table: &[u8], columns: &[u8], rows: &Rows, exchange: &mut Exchange<'_>) -> Progress {
        self.load.clone_from(rows);
        self.insert(&[b"INSERT INTO ", table, b" (", columns, b") VALUES"].concat(), exchange)
    }
}

impl Connection for ClickHouseConnection {
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
        self.forget();
        if self.server.tls.mode == TlsMode::Disable {
            return self.greet(exchange);
        }
        self.phase = Phase::Securing;
        Progress::StartTls
    }

    fn on_bytes(&mut self, bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        if self.phase == Phase::Closed {
            return Progress::Pending;
        }
        self.buffer.extend_from_slice(bytes);
        let mut answer = Progress::Pending;
        // What comes after an answer is looked at before the next operation.
        while !self.buffer.is_empty() && matches!(answer, Progress::Pending) {
            match self.packet(exchange) {
                Ok((_, failed @ Progress::Failed(_))) => return failed,
                Ok((end, progress)) => {
                    self.buffer.drain(..end);
                    answer = progress;
                }
                Err(Unread::Incomplete) => break,
                Err(Unread::Broken(error)) => return self.fail(error, exchange),
            }
        }
        if matches!(self.phase, Phase::Hello) && self.buffer.len() > LOGIN_MAX {
            return self.fail(violation("sent more than 1 MiB before the login"), exchange);
        }
        if self.buffer.is_empty() {
            self.buffer.shrink_to(KEEP_MAX);
        }
        answer
    }

    fn on_secured(&mut self, tls: &TlsFacts, exchange: &mut Exchange<'_>) -> Progress {
        self.cipher = Some(tls.cipher.clone());
        self.greet(exchange)
    }

    fn on_closed(&mut self) -> bool {
        self.forget();
        false
    }

    fn on_timeout(&mut self, _: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress {
        self.in_flight = InFlight::of(operation);
        if self.phase != Phase::Idle {
            return self.fail(Box::new(StatementError::network("the connection is not open")), exchange);
        }
        if !self.buffer.is_empty() {
            return match self.packet(exchange) {
                Ok((_, failed @ Progress::Failed(_))) => failed,
                Err(Unread::Broken(error)) => self.fail(error, exchange),
                _ => self.fail(violation("sent something that nobody asked for"), exchange),
            };
        }
        (self.counts, self.reads) = (operation.counts_rows(), ServerReads::default());
        statements::execute(self, operation, exchange)
    }

    fn reads(&self) -> Option<ServerReads> {
        Some(self.reads)
    }

    fn close(&mut self, exchange: &mut Exchange<'_>) {
        // The protocol has no goodbye, and closing the socket does not end a query: 18.16 executes it to its end.
        if self.phase == Phase::Busy {
            exchange.out.push(CANCEL);
        }
        self.forget();
    }
}
