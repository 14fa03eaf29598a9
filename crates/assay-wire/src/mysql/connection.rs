//! One connection to MySQL or MariaDB: login, operations, and what survives a reconnect.
//!
//! The phase determines what the next packet must be, the job what the packets are for. A job may take several round
//! trips (a statement that must be prepared again first, a batch in several steps); the engine sees one reply.

use std::sync::Arc;

use crate::deferral::Deferral;
use crate::placeholders::{Dialect, wrong_count};
use assay_seam::{
    Class, Code, Connection, Effect, Endpoint, Exchange, Executed, Operation, Progress, Reply, Rows, ServerFacts,
    StatementError, StatementId, TlsFacts, TlsMode, Value,
};

use super::load::{self, Load, Step, Table, Way};
use super::login::{self, Channel, DEPRECATE_EOF, Greeting, LOCAL_FILES, Login, Turn};
use super::packet::{FRAME_MAX, Inbound, PACKET_MAX, Reader, violation, write_packet};
use super::refusal::{self, read_error};
use super::result::{Column, read_binary_row, read_text_row};
use super::server::Server;
use super::statement::{Form, Statement, UNSENT, attach_types, name_statement, write_execute};

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_CLOSE: u8 = 0x19;

// Status flags. Source: include/mysql_com.h
const IN_TRANSACTION: u16 = 1;
const MORE_RESULTS: u16 = 8;
const NO_BACKSLASH_ESCAPES: u16 = 512;

/// Between statements of one text. A trailing comment ends with its line.
const SEPARATOR: &[u8] = b"\n;";

/// Bytes of an execution's payload kept from one to the next.
const PENDING_KEEP_MAX: usize = 4096;
/// Columns kept from one result to the next.
const COLUMNS_KEEP_MAX: usize = 128;

/// What the next packet must be.
#[derive(Debug)]
enum Phase {
    /// None: there is no usable socket.
    Closed,
    /// The server's greeting.
    Greeting,
    /// None before TLS is established; the greeting waits.
    Securing(Box<Greeting>),
    /// Part of the login.
    Login(Box<Login>),
    /// None, unless the server gives up.
    Idle,
    /// The beginning of a result: OK, error, number of columns, or request for a file.
    Result,
    /// That many column definitions.
    Columns(u32),
    /// The EOF after the column definitions.
    ColumnsEnd,
    /// A row, or the end of the result set.
    Row,
    /// The answer to a Prepare.
    Prepared,
    /// That many packets about parameters and columns of a prepared statement, which we ignore.
    Definitions(u32),
}

/// What the packets are for.
#[derive(Debug)]
enum Job {
    None,
    /// The session statement of this index (`ConnectOptions::session_sql`).
    Setup(usize),
    Query,
    Prepare(Statement),
    Execute {
        statement: StatementId,
        /// It was prepared again already.
        again: bool,
    },
    Load(Box<Load>),
    Flush,
}

/// What is known about loading a table from a file.
#[derive(Debug)]
enum Infile {
    Untried,
    /// The server refuses files.
    Refused,
    /// The table last probed, and whether a file means the same as an INSERT.
    Known(Box<Table>, bool),
}

/// What is known about loading a table by parameters.
#[derive(Debug)]
enum Bulk {
    /// The server cannot, or must not.
    Unavailable,
    Untried,
    /// The INSERT last prepared, and the server's id for it; `None` if it cannot be prepared.
    Known(Box<[u8]>, Option<u32>),
}

/// A client connection.
#[derive(Debug)]
pub(super) struct MySqlConnection {
    server: Arc<Server>,
    inbound: Inbound,
    phase: Phase,
    job: Job,
    capabilities: u32,
    status: u16,
    /// Whether TLS failed last time and is only preferred: log in without.
    skip_tls: bool,
    version: Box<str>,
    cipher: Option<Box<str>>,
    /// Ordered by id.
    statements: Vec<Statement>,
    deferral: Deferral,
    infile: Infile,
    bulk: Bulk,
    /// The server's max_allowed_packet, once a load asked for it.
    packet_max: Option<usize>,
    /// The server's goodbye, which arrived together with the answer before it.
    farewell: Option<Box<StatementError>>,
    /// The reply as far as it has arrived.
    reply: Reply,
    /// Warnings of the last result.
    warnings: u16,
    /// The result set that is arriving.
    width: u32,
    /// columns.len() <= width
    columns: Vec<Column>,
    binary: bool,
    /// Payload of the execution in flight, kept in case the statement must be prepared again.
    pending: Vec<u8>,
}

impl MySqlConnection {
    pub(super) fn new(server: Arc<Server>) -> MySqlConnection {
        MySqlConnection {
            server,
            inbound: Inbound::default(),
            phase: Phase::Closed,
            job: Job::None,
            capabilities: 0,
            status: 0,
            skip_tls: false,
            version: Box::default(),
            cipher: None,
            statements: Vec::new(),
            deferral: Deferral::default(),
            infile: Infile::Untried,
            bulk: Bulk::Unavailable,
            packet_max: None,
            farewell: None,
            reply: Reply::default(),
            warnings: 0,
            width: 0,
            columns: Vec::new(),
            binary: false,
            pending: Vec::new(),
        }
    }

    fn dialect(&self) -> Dialect {
        Dialect::MySql { backslash_escapes: self.status & NO_BACKSLASH_ESCAPES == 0 }
    }

    fn backslash_escapes(&self) -> bool {
        self.status & NO_BACKSLASH_ESCAPES == 0
    }

    fn find(&self, id: StatementId) -> Result<usize, usize> {
        self.statements.binary_search_by_key(&id.0, |statement| statement.id.0)
    }

    /// Appends a command packet. `write` appends its payload.
    fn command(&mut self, out: &mut Vec<u8>, phase: Phase, write: impl FnOnce(&mut Vec<u8>)) -> Progress {
        self.inbound.sequence = 0;
        write_packet(out, &mut self.inbound.sequence, write);
        self.phase = phase;
        Progress::Pending
    }

    fn query(&mut self, out: &mut Vec<u8>, sql: &[&[u8]]) -> Progress {
        self.binary = false;
        self.command(out, Phase::Result, |out| {
            out.push(COM_QUERY);
            sql.iter().for_each(|piece| out.extend_from_slice(piece));
        })
    }

    /// Gives up the connection.
    fn fail(&mut self, error: Box<StatementError>, exchange: &mut Exchange<'_>) -> Progress {
        if let Some(rows) = std::mem::take(&mut self.reply).rows {
            exchange.pool.put(rows);
        }
        self.job = Job::None;
        self.phase = Phase::Closed;
        Progress::Failed(error)
    }

    // The login.

    fn channel(&self) -> Channel {
        Channel { tls: self.cipher.is_some(), local: matches!(self.server.endpoint, Endpoint::Unix(_)) }
    }

    fn on_greeting(&mut self, payload: &[u8], exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        let greeting = Box::new(Greeting::read(payload)?);
        self.version = greeting.version.clone();
        let mode = self.server.tls.mode;
        if greeting.capabilities & login::SSL != 0 && mode != TlsMode::Disable && !self.skip_tls {
            let capabilities = greeting.agreed(&self.server, true);
            write_packet(exchange.out, &mut self.inbound.sequence, |out| greeting.write_preamble(capabilities, out));
            self.phase = Phase::Securing(greeting);
            return Ok(Progress::StartTls);
        }
        if mode >= TlsMode::Require {
            let message = format!("the server ({}) does not offer TLS", greeting.version);
            let mut error = StatementError::client(Class::Encryption, message);
            error.hint = Some("give the server a certificate (ssl_cert, ssl_key), or use `sslmode=prefer`".into());
            return Err(Box::new(error));
        }
        self.start_login(&greeting, exchange)
    }

    fn start_login(
        &mut self,
        greeting: &Greeting,
        exchange: &mut Exchange<'_>,
    ) -> Result<Progress, Box<StatementError>> {
        let channel = self.channel();
        self.capabilities = greeting.agreed(&self.server, channel.tls);
        let bulk = greeting.bulk() && self.server.connect.prepared;
        self.bulk = if bulk { Bulk::Untried } else { Bulk::Unavailable };
        let mut login = Ok(None);
        write_packet(exchange.out, &mut self.inbound.sequence, |out| {
            login = Login::start(greeting, &self.server, channel, out).map(Some);
        });
        self.phase = Phase::Login(Box::new(login?.expect("the closure ran")));
        Ok(Progress::Pending)
    }

    fn on_login(
        &mut self,
        payload: &[u8],
        mut login: Box<Login>,
        exchange: &mut Exchange<'_>,
    ) -> Result<Progress, Box<StatementError>> {
        match login.on_packet(payload, &self.server)? {
            Turn::Answer(answer) => {
                write_packet(exchange.out, &mut self.inbound.sequence, |out| out.extend_from_slice(&answer));
            }
            Turn::Wait => {}
            Turn::Done => {
                self.read_ok(payload)?;
                return Ok(self.set_up(0, exchange));
            }
        }
        self.phase = Phase::Login(login);
        Ok(Progress::Pending)
    }

    /// Sends the session statement of this index; after the last one the connection is ready.
    fn set_up(&mut self, index: usize, exchange: &mut Exchange<'_>) -> Progress {
        let server = Arc::clone(&self.server);
        match server.connect.session_sql.get(index) {
            Some(sql) => {
                self.job = Job::Setup(index);
                self.query(exchange.out, &[sql.as_bytes()])
            }
            None => {
                self.phase = Phase::Idle;
                Progress::Ready
            }
        }
    }

    // Results.

    fn on_packet(
        &mut self,
        payload: &[u8],
        in_order: bool,
        exchange: &mut Exchange<'_>,
    ) -> Result<Progress, Box<StatementError>> {
        if !in_order {
            return Err(match payload.first() {
                // The server gives up without waiting for its turn.
                Some(0xFF) => read_error(payload),
                _ => violation("numbered its packets wrongly"),
            });
        }
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Closed | Phase::Securing(_) => Err(violation("sent something nobody asked for")),
            Phase::Idle if payload.first() == Some(&0xFF) => Err(read_error(payload)),
            Phase::Idle => Err(violation("sent something nobody asked for")),
            Phase::Greeting => self.on_greeting(payload, exchange),
            Phase::Login(login) => self.on_login(payload, login, exchange),
            Phase::Result => self.on_result(payload, exchange),
            Phase::Columns(left) => self.on_column(payload, left),
            Phase::ColumnsEnd => {
                self.phase = Phase::Row;
                if payload.first() == Some(&0xFE) { Ok(Progress::Pending) } else { Err(violation("left out an EOF")) }
            }
            Phase::Row => self.on_row(payload, exchange),
            Phase::Prepared => self.on_prepared(payload, exchange),
            Phase::Definitions(left) => self.on_definition(left, exchange),
        }
    }

    fn on_result(&mut self, payload: &[u8], exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        match payload.first() {
            Some(0x00) => {
                let affected = self.read_ok(payload)?;
                self.reply.affected = self.reply.affected.saturating_add(affected);
                self.end_of_result(exchange)
            }
            Some(0xFF) => self.on_error(payload, exchange),
            Some(0xFB) => Ok(self.on_file_request(&payload[1..], exchange)),
            _ => {
                let mut reader = Reader(payload);
                let width = reader.lenenc().filter(|width| (1..=65_535).contains(width) && reader.0.is_empty());
                self.width = width.ok_or_else(|| violation("sent a result that makes no sense"))? as u32;
                self.columns.clear();
                let rows = self.reply.rows.get_or_insert_with(|| exchange.pool.take());
                rows.begin_set(self.width as usize);
                self.phase = Phase::Columns(self.width);
                Ok(Progress::Pending)
            }
        }
    }

    fn on_column(&mut self, payload: &[u8], left: u32) -> Result<Progress, Box<StatementError>> {
        let (column, name) = Column::read(payload)?;
        self.columns.push(column);
        if let (Job::Query, Some(rows)) = (&self.job, &mut self.reply.rows) {
            rows.push_label(name);
        }
        self.phase = match left {
            1 if self.capabilities & DEPRECATE_EOF != 0 => Phase::Row,
            1 => Phase::ColumnsEnd,
            _ => Phase::Columns(left - 1),
        };
        Ok(Progress::Pending)
    }

    fn on_row(&mut self, payload: &[u8], exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        match payload.first() {
            Some(0xFF) => return self.on_error(payload, exchange),
            // A row that starts like this has a first cell of at least 16 MiB.
            Some(0xFE) if payload.len() < FRAME_MAX => {
                if self.capabilities & DEPRECATE_EOF != 0 {
                    self.read_ok(payload)?;
                } else {
                    self.read_eof(payload)?;
                }
                return self.end_of_result(exchange);
            }
            _ => {}
        }
        let Some(rows) = &mut self.reply.rows else { return Err(violation("sent a row without columns")) };
        match self.binary {
            true => read_binary_row(payload, &self.columns, rows)?,
            false => read_text_row(payload, self.width, rows)?,
        }
        self.phase = Phase::Row;
        Ok(Progress::Pending)
    }

    /// Reads an OK packet (0x00, or 0xFE at the end of rows); returns the number of rows changed.
    fn read_ok(&mut self, payload: &[u8]) -> Result<u64, Box<StatementError>> {
        let mut read = || {
            let mut reader = Reader(payload);
            reader.u8()?;
            let affected = reader.lenenc()?;
            // The id last inserted.
            reader.lenenc()?;
            self.status = reader.u16()?;
            self.warnings = reader.u16()?;
            Some(affected)
        };
        read().ok_or_else(|| violation("sent an OK packet that is cut short"))
    }

    fn read_eof(&mut self, payload: &[u8]) -> Result<(), Box<StatementError>> {
        let mut reader = Reader(payload);
        let (Some(_), Some(warnings), Some(status)) = (reader.u8(), reader.u16(), reader.u16()) else {
            return Err(violation("sent an EOF packet that is cut short"));
        };
        (self.warnings, self.status) = (warnings, status);
        Ok(())
    }

    fn on_error(&mut self, payload: &[u8], exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        let mut error = read_error(payload);
        if error.class == Class::Protocol {
            return Err(error);
        }
        if self.deferral.unanswered > 0 {
            self.deferral.blame(&mut error);
            self.deferral.unanswered = 0;
        }
        if error.code.number == refusal::DEADLOCK {
            self.status &= !IN_TRANSACTION;
        }
        self.status &= !MORE_RESULTS;
        self.reply.error.get_or_insert(error);
        self.end_of_result(exchange)
    }

    /// The server asks for a file. Only the one we offered is allowed, and only while loading.
    fn on_file_request(&mut self, name: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        self.phase = Phase::Result;
        if let Job::Load(load) = &self.job
            && load.step == Step::Infile
            && name == load::FILE
        {
            load.write_file(exchange.out, &mut self.inbound.sequence);
            return Progress::Pending;
        }
        let name = String::from_utf8_lossy(name);
        let message = format!("the server asked for the local file `{name}`, which it did not get");
        // The number that MySQL's client library uses for it.
        let code = Code { number: 2068, state: "HY000".to_owned() };
        self.reply.error =
            Some(Box::new(StatementError { code, ..StatementError::client(Class::Permission, message) }));
        write_packet(exchange.out, &mut self.inbound.sequence, |_| ());
        Progress::Pending
    }

    /// A result is complete: others follow, or the job continues, or it is done.
    fn end_of_result(&mut self, exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        let more = self.status & MORE_RESULTS != 0;
        if self.deferral.unanswered > 0 {
            self.deferral.answered(std::mem::take(&mut self.reply.affected), false);
            if !more && (self.deferral.unanswered > 0 || !matches!(self.job, Job::Flush)) {
                return Err(violation("answered fewer statements than it was sent"));
            }
        }
        if more {
            self.phase = Phase::Result;
            return Ok(Progress::Pending);
        }
        match std::mem::replace(&mut self.job, Job::None) {
            Job::None => Err(violation("answered a question nobody asked")),
            Job::Setup(index) => {
                let reply = std::mem::take(&mut self.reply);
                if let Some(rows) = reply.rows {
                    exchange.pool.put(rows);
                }
                match reply.error {
                    Some(error) => Err(error),
                    None => Ok(self.set_up(index + 1, exchange)),
                }
            }
            Job::Execute { statement, again: false } if self.failed_with(&[refusal::UNKNOWN_STATEMENT]) => {
                let Ok(at) = self.find(statement) else { return Ok(self.answer()) };
                let Form::Binary { types, .. } = &self.statements[at].form else { return Ok(self.answer()) };
                attach_types(&mut self.pending, types);
                self.reply.error = None;
                Ok(self.prepare_again(at, exchange))
            }
            Job::Query | Job::Prepare(_) | Job::Execute { .. } | Job::Flush => Ok(self.answer()),
            Job::Load(load) => Ok(self.on_load_step(load, exchange)),
        }
    }

    fn failed_with(&self, numbers: &[u32]) -> bool {
        self.reply.error.as_ref().is_some_and(|error| numbers.contains(&error.code.number))
    }

    fn answer(&mut self) -> Progress {
        self.phase = Phase::Idle;
        if self.pending.capacity() > PENDING_KEEP_MAX {
            self.pending = Vec::new();
        }
        if self.columns.capacity() > COLUMNS_KEEP_MAX {
            self.columns = Vec::new();
        }
        Progress::Reply(std::mem::take(&mut self.reply))
    }

    // Prepared statements.

    fn prepare(&mut self, id: StatementId, sql: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        // The caller may have forgotten to close one with the same name.
        self.close_statement(id, exchange);
        if !self.server.connect.prepared {
            let template = self.server.templates.get(sql, self.dialect());
            self.keep(Statement { id, effect: Effect::of(sql), form: Form::Text(template) });
            return Progress::Reply(Reply::default());
        }
        let template = self.server.templates.get(sql, self.dialect());
        let form = Form::Binary { template, server: None, types: Box::default() };
        self.job = Job::Prepare(Statement { id, effect: Effect::of(sql), form });
        self.send_prepare(sql, exchange)
    }

    fn send_prepare(&mut self, sql: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        self.command(exchange.out, Phase::Prepared, |out| {
            out.push(COM_STMT_PREPARE);
            out.extend_from_slice(sql);
        })
    }

    /// Prepares the statement at index `at` for the execution in `pending`.
    fn prepare_again(&mut self, at: usize, exchange: &mut Exchange<'_>) -> Progress {
        let Statement { id, form: Form::Binary { template, server, .. }, .. } = &mut self.statements[at] else {
            unreachable!("only statements of the binary protocol are executed by it")
        };
        *server = None;
        self.job = Job::Execute { statement: *id, again: true };
        let template = Arc::clone(template);
        self.send_prepare(template.sql(), exchange)
    }

    fn keep(&mut self, statement: Statement) {
        match self.find(statement.id) {
            Ok(at) => self.statements[at] = statement,
            Err(at) => self.statements.insert(at, statement),
        }
    }

    fn on_prepared(&mut self, payload: &[u8], exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        if payload.first() == Some(&0xFF) {
            let error = read_error(payload);
            if error.class == Class::Protocol {
                return Err(error);
            }
            match std::mem::replace(&mut self.job, Job::None) {
                Job::Prepare(Statement { id, effect, form: Form::Binary { template, .. } })
                    if error.code.number == refusal::NOT_PREPARABLE =>
                {
                    self.keep(Statement { id, effect, form: Form::Text(template) });
                }
                Job::Load(mut load) => {
                    // INSERTs succeed, or fail with the true error.
                    self.bulk = Bulk::Known(load.bulk().text.clone(), None);
                    load.step = Step::Undo;
                    return Ok(self.send_load(load, exchange));
                }
                _ => self.reply.error = Some(error),
            }
            return Ok(self.answer());
        }
        let read = || {
            let mut reader = Reader(payload);
            let (header, id, columns, parameters) = (reader.u8()?, reader.u32()?, reader.u16()?, reader.u16()?);
            (header == 0).then_some((id, columns, parameters))
        };
        let (number, columns, parameters) =
            read().ok_or_else(|| violation("answered a Prepare with something that makes no sense"))?;
        match &mut self.job {
            Job::Prepare(Statement { effect, form: Form::Binary { server, types, .. }, .. }) => {
                if columns > 0 && *effect != Effect::Reads {
                    *effect = Effect::Other;
                }
                *server = Some(number);
                *types = vec![UNSENT; parameters.into()].into();
            }
            Job::Execute { statement, .. } => {
                let id = *statement;
                let Ok(at) = self.find(id) else { return Err(violation("prepared a statement that is gone")) };
                let Form::Binary { server, types, .. } = &mut self.statements[at].form else {
                    return Err(violation("prepared a statement it cannot prepare"));
                };
                if types.len() != usize::from(parameters) {
                    return Err(violation("counted the placeholders of a statement in two ways"));
                }
                *server = Some(number);
                name_statement(&mut self.pending, number);
            }
            Job::Load(load) => {
                if load.bulk().parameters() != usize::from(parameters) {
                    return Err(violation("counted the placeholders of a statement in two ways"));
                }
                self.bulk = Bulk::Known(load.bulk().text.clone(), Some(number));
                load.step = Step::Bulk(number);
            }
            _ => return Err(violation("prepared a statement nobody asked for")),
        }
        let eof = u32::from(self.capabilities & DEPRECATE_EOF == 0);
        let packets = |count: u16| if count == 0 { 0 } else { u32::from(count) + eof };
        match packets(columns) + packets(parameters) {
            0 => Ok(self.after_prepare(exchange)),
            left => {
                self.phase = Phase::Definitions(left);
                Ok(Progress::Pending)
            }
        }
    }

    fn on_definition(&mut self, left: u32, exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        if left == 1 {
            return Ok(self.after_prepare(exchange));
        }
        self.phase = Phase::Definitions(left - 1);
        Ok(Progress::Pending)
    }

    fn after_prepare(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        match std::mem::replace(&mut self.job, Job::None) {
            Job::Prepare(statement) => {
                self.keep(statement);
                self.answer()
            }
            Job::Load(load) => self.send_load(load, exchange),
            job => {
                self.job = job;
                self.send_pending(exchange)
            }
        }
    }

    fn run_statement(&mut self, id: StatementId, parameters: &[Value<'_>], exchange: &mut Exchange<'_>) -> Progress {
        let Ok(at) = self.find(id) else {
            return refuse(Class::Other, format!("there is no prepared statement {}", id.0));
        };
        let dialect = self.dialect();
        let statement = &mut self.statements[at];
        match &mut statement.form {
            // Together with others, in one text: the server executes nothing after an error. If commands were sent
            // without waiting, it would execute the later ones, and after a deadlock outside any transaction.
            form if self.deferral.waiting > 0 || matches!(form, Form::Text(_)) => {
                let start = exchange.out.len();
                let mut written = Ok(());
                self.inbound.sequence = 0;
                write_packet(exchange.out, &mut self.inbound.sequence, |out| {
                    out.push(COM_QUERY);
                    self.deferral.send(out);
                    written = statement.text().write_substituted(parameters, dialect, out);
                });
                if let Err(error) = written {
                    exchange.out.truncate(start);
                    self.deferral.forget();
                    return Progress::Reply(Reply::failed(error));
                }
                self.binary = false;
                self.job = Job::Query;
                self.phase = Phase::Result;
                Progress::Pending
            }
            Form::Text(_) => unreachable!("sent above"),
            Form::Binary { server, types, .. } => {
                if parameters.len() != types.len() {
                    return Progress::Reply(Reply::failed(wrong_count(types.len(), parameters.len())));
                }
                self.pending.clear();
                write_execute(types, parameters, &mut self.pending);
                if self.pending.len() > PACKET_MAX {
                    return too_large();
                }
                match *server {
                    Some(server) => {
                        self.job = Job::Execute { statement: id, again: false };
                        name_statement(&mut self.pending, server);
                        self.send_pending(exchange)
                    }
                    None => self.prepare_again(at, exchange),
                }
            }
        }
    }

    fn send_pending(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        self.binary = true;
        let pending = std::mem::take(&mut self.pending);
        let progress = self.command(exchange.out, Phase::Result, |out| out.extend_from_slice(&pending));
        self.pending = pending;
        progress
    }

    fn close_statement(&mut self, id: StatementId, exchange: &mut Exchange<'_>) {
        let Ok(at) = self.find(id) else { return };
        if let Form::Binary { server: Some(server), .. } = self.statements.remove(at).form {
            self.send_close(server, exchange);
        }
    }

    fn send_close(&mut self, server: u32, exchange: &mut Exchange<'_>) {
        // The only command without an answer.
        self.command(exchange.out, Phase::Idle, |out| {
            out.push(COM_STMT_CLOSE);
            out.extend_from_slice(&server.to_le_bytes());
        });
    }

    // Loading.

    fn load(&mut self, table: &[u8], columns: &[u8], rows: &Rows, exchange: &mut Exchange<'_>) -> Progress {
        if rows.len(0) == 0 {
            return Progress::Reply(Reply::default());
        }
        if let Some(number) = load::unwritable(rows) {
            return refuse(Class::Other, format!("there is no literal for the number {number}"));
        }
        let large = load::suits_file(rows);
        let infile = large && self.capabilities & LOCAL_FILES != 0;
        let goal = Table { name: table.into(), columns: columns.into() };
        let backslash_escapes = self.backslash_escapes();
        let bulk = if large && !matches!(self.bulk, Bulk::Unavailable) {
            load::Bulk::new(&goal, rows, backslash_escapes)
        } else {
            None
        };
        let step = match (&self.bulk, &bulk, &self.infile) {
            (Bulk::Known(known, None), Some(bulk), _) if *known == bulk.text => None,
            (_, Some(_), _) => Some(Step::Begin(Way::Bulk)),
            _ if !infile => None,
            (_, _, Infile::Refused) => None,
            (_, _, Infile::Known(known, suits)) if **known == goal => suits.then_some(Step::Begin(Way::Infile)),
            _ => Some(Step::Probe),
        };
        if step.is_none() {
            let start = exchange.out.len();
            let mut next = 0;
            self.binary = false;
            let most = self.packet_max.unwrap_or(load::UNASKED_BYTES);
            self.command(exchange.out, Phase::Result, |out| {
                out.push(COM_QUERY);
                next = load::write_insert(table, columns, (rows, 0), backslash_escapes, most, out);
            });
            if next == rows.len(0) {
                self.job = Job::Query;
                return Progress::Pending;
            }
            exchange.out.truncate(start);
        }
        let mut load = Box::new(Load::new(goal, rows, bulk, !self.in_transaction(), self.packet_max));
        load.step = step.unwrap_or(Step::Begin(Way::Insert));
        self.send_load(load, exchange)
    }

    fn send_load(&mut self, mut load: Box<Load>, exchange: &mut Exchange<'_>) -> Progress {
        let backslash_escapes = self.backslash_escapes();
        self.binary = false;
        let phase = if load.step == Step::Prepare { Phase::Prepared } else { Phase::Result };
        let progress = self.command(exchange.out, phase, |out| match load.step {
            Step::Bulk(statement) => load.write_bulk(statement, out),
            step => {
                out.push(if step == Step::Prepare { COM_STMT_PREPARE } else { COM_QUERY });
                load.write_statement(backslash_escapes, out);
            }
        });
        self.job = Job::Load(load);
        progress
    }

    /// The statement of `load.step` is answered.
    fn on_load_step(&mut self, mut load: Box<Load>, exchange: &mut Exchange<'_>) -> Progress {
        let Reply { rows, affected, error } = std::mem::take(&mut self.reply);
        if matches!(load.step, Step::Begin(_)) && error.is_none() {
            self.packet_max = load.learn_packet_max(rows.as_deref());
        }
        if let Some(rows) = rows {
            exchange.pool.put(rows);
        }
        load.step = match (load.step, error) {
            (Step::Probe, error) => {
                // A user who may insert may not be allowed to read.
                let suits = error.is_none() && self.columns.iter().all(Column::reads_numbers_from_text);
                self.infile = Infile::Known(Box::new(load.table.clone()), suits);
                Step::Begin(if suits { Way::Infile } else { Way::Insert })
            }
            (Step::Prepare, _) => unreachable!("a Prepare is not answered by a result"),
            (Step::Begin(Way::Infile), None) => Step::Infile,
            (Step::Begin(Way::Bulk), None) => match self.bulk {
                Bulk::Known(ref known, Some(statement)) if *known == load.bulk().text => Step::Bulk(statement),
                _ => {
                    if let Bulk::Known(_, Some(statement)) = std::mem::replace(&mut self.bulk, Bulk::Untried) {
                        self.send_close(statement, exchange);
                    }
                    Step::Prepare
                }
            },
            (Step::Begin(Way::Bulk), Some(_)) if load.speak_as_ever() => Step::Begin(Way::Bulk),
            (Step::Begin(way), Some(_)) if load.ask_no_more() => Step::Begin(way),
            (Step::Begin(Way::Insert), None) => Step::Insert,
            (Step::Bulk(statement), None) if load.unfinished() => Step::Bulk(statement),
            (Step::Bulk(_), None) => Step::Commit,
            (Step::Bulk(_), Some(error)) if refusal::BULK_REFUSED.contains(&error.code.number) => {
                self.bulk = Bulk::Unavailable;
                load.restart();
                Step::Undo
            }
            (Step::Infile, None) if affected == load.len() as u64 && self.warnings == 0 => Step::Commit,
            (Step::Infile, None) => {
                self.infile = Infile::Known(Box::new(load.table.clone()), false);
                Step::Undo
            }
            (Step::Infile, Some(error)) if refusal::INFILE_REFUSED.contains(&error.code.number) => {
                self.infile = Infile::Refused;
                Step::Insert
            }
            (Step::Undo, None) if self.warnings > 0 => {
                let message = "rows were refused, and the table's storage engine could not undo the others";
                load.error = Some(Box::new(StatementError::client(Class::Other, message)));
                Step::Abort
            }
            // A rollback ended the transaction; otherwise the savepoint still exists.
            (Step::Undo, None) if !self.in_transaction() => Step::Begin(Way::Insert),
            (Step::Undo, None) => Step::Insert,
            (Step::Insert, None) if load.unfinished() => Step::Insert,
            (Step::Insert, None) => Step::Commit,
            (Step::Commit, None) => {
                self.reply.affected = load.len() as u64;
                return self.answer();
            }
            (Step::Abort, _) => {
                self.reply.error = load.error;
                return self.answer();
            }
            (Step::Begin(_) | Step::Commit | Step::Undo, Some(error)) => {
                self.reply.error = Some(error);
                return self.answer();
            }
            (Step::Infile | Step::Bulk(_) | Step::Insert, Some(error)) => {
                load.error = Some(error);
                Step::Abort
            }
        };
        self.send_load(load, exchange)
    }
}

fn refuse(class: Class, message: String) -> Progress {
    Progress::Reply(Reply::failed(StatementError::client(class, message)))
}

fn too_large() -> Progress {
    refuse(Class::Limit, "the statement is larger than 1 GiB, the most MySQL's protocol takes".into())
}

impl Connection for MySqlConnection {
    fn in_transaction(&self) -> bool {
        self.status & IN_TRANSACTION != 0
    }

    fn server(&self) -> ServerFacts {
        let product = if self.version.contains("MariaDB") { "MariaDB" } else { "MySQL" };
        let tls = self.cipher.as_deref().map(str::to_string);
        ServerFacts { product: product.into(), version: self.version.to_string(), tls }
    }

    fn effect(&self, statement: StatementId) -> Effect {
        self.find(statement).map_or(Effect::Other, |at| self.statements[at].effect)
    }

    fn on_connected(&mut self, _exchange: &mut Exchange<'_>) -> Progress {
        self.inbound = Inbound::default();
        self.phase = Phase::Greeting;
        Progress::Pending
    }

    fn on_bytes(&mut self, mut bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        let mut progress = Progress::Pending;
        loop {
            let result = match self.inbound.next(&mut bytes) {
                Ok(None) => return progress,
                Ok(Some(packet)) => {
                    let result = self.on_packet(&packet.payload, packet.in_order, exchange);
                    self.inbound.recycle(packet.payload);
                    result
                }
                Err(error) => Err(error),
            };
            match result {
                Ok(Progress::Pending) => {}
                // Somebody between us and the server could have written these.
                Ok(Progress::StartTls) if !bytes.is_empty() => {
                    return self.fail(violation("sent unencrypted bytes before TLS"), exchange);
                }
                Ok(next) => progress = next,
                Err(error) if matches!(progress, Progress::Pending) => return self.fail(error, exchange),
                // The previous answer is valid; this is for the next operation.
                Err(error) => {
                    self.farewell = Some(error);
                    return progress;
                }
            }
        }
    }

    fn on_secured(&mut self, tls: &TlsFacts, exchange: &mut Exchange<'_>) -> Progress {
        let Phase::Securing(greeting) = std::mem::replace(&mut self.phase, Phase::Closed) else {
            return self.fail(violation("finished a TLS handshake nobody began"), exchange);
        };
        self.cipher = Some(tls.cipher.as_str().into());
        self.start_login(&greeting, exchange).unwrap_or_else(|error| self.fail(error, exchange))
    }

    fn on_closed(&mut self) -> bool {
        let securing = matches!(self.phase, Phase::Securing(_));
        self.skip_tls = securing && self.server.tls.mode == TlsMode::Prefer;
        self.inbound = Inbound::default();
        self.phase = Phase::Closed;
        self.job = Job::None;
        self.status = 0;
        self.cipher = None;
        self.infile = Infile::Untried;
        self.bulk = Bulk::Unavailable;
        self.packet_max = None;
        self.farewell = None;
        self.deferral.forget();
        self.reply = Reply::default();
        self.pending = Vec::new();
        for statement in &mut self.statements {
            if let Form::Binary { server, types, .. } = &mut statement.form {
                *server = None;
                types.fill(UNSENT);
            }
        }
        self.skip_tls
    }

    fn on_timeout(&mut self, _exchange: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress {
        if let Some(error) = self.farewell.take() {
            return self.fail(error, exchange);
        }
        if !matches!(self.phase, Phase::Idle) {
            let error = StatementError::network("the connection is not open");
            return self.fail(Box::new(error), exchange);
        }
        if !matches!(operation, Operation::Execute { .. }) {
            self.deferral.forget();
        }
        match *operation {
            Operation::Query { sql } | Operation::Prepare { sql, .. } if sql.len() >= PACKET_MAX => too_large(),
            Operation::Query { sql } => {
                self.job = Job::Query;
                self.query(exchange.out, &[sql])
            }
            Operation::Prepare { statement, sql } => self.prepare(statement, sql, exchange),
            Operation::Execute { statement, parameters } => self.run_statement(statement, parameters, exchange),
            Operation::Close { statement } => {
                self.close_statement(statement, exchange);
                Progress::Reply(Reply::default())
            }
            Operation::Load { table, columns, rows, .. } => self.load(table, columns, rows, exchange),
        }
    }

    fn defer(&mut self, operation: &Operation<'_>) -> bool {
        let Operation::Execute { statement, parameters } = *operation else { return false };
        let Ok(at) = self.find(statement) else { return false };
        let (dialect, in_transaction) = (self.dialect(), self.in_transaction());
        let (statement, deferral) = (&mut self.statements[at], &mut self.deferral);
        // A user who disables prepared statements may have a proxy that accepts one statement at a time.
        let may = self.server.connect.prepared && deferral.takes(statement.effect, in_transaction);
        if !matches!(self.phase, Phase::Idle) || !may {
            return false;
        }
        let start = deferral.held.len();
        if statement.text().write_substituted(parameters, dialect, &mut deferral.held).is_err() {
            deferral.held.truncate(start);
            return false;
        }
        deferral.held.extend_from_slice(SEPARATOR);
        deferral.waiting += 1;
        true
    }

    fn has_sent_rows(&self) -> bool {
        matches!(&self.job, Job::Load(load) if load.is_sent())
    }

    fn flush(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        if self.deferral.waiting == 0 || !matches!(self.phase, Phase::Idle) {
            return Progress::Reply(Reply::default());
        }
        let text = self.deferral.held.len() - SEPARATOR.len();
        self.deferral.held.truncate(text);
        self.job = Job::Flush;
        self.binary = false;
        self.inbound.sequence = 0;
        write_packet(exchange.out, &mut self.inbound.sequence, |out| {
            out.push(COM_QUERY);
            self.deferral.send(out);
        });
        self.phase = Phase::Result;
        Progress::Pending
    }

    fn take_executed(&mut self) -> Executed {
        std::mem::take(&mut self.deferral.executed)
    }

    fn forget_deferred(&mut self) {
        self.deferral.forget();
    }

    fn close(&mut self, exchange: &mut Exchange<'_>) {
        if !matches!(self.phase, Phase::Closed | Phase::Greeting | Phase::Securing(_)) {
            self.command(exchange.out, Phase::Closed, |out| out.push(COM_QUIT));
        }
    }
}
