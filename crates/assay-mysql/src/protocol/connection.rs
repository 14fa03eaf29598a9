//! One connection to MySQL or MariaDB: login, operations, and what survives a reconnect.
//!
//! The phase determines what the next packet must be, the job what the packets are for. A job may take several round
//! trips (a statement that must be prepared again first, a batch in several steps); the engine sees one reply.

mod loading;
mod opening;
mod results;
mod statements;

use crate::protocol::load::{Load, LoadTable};
use crate::protocol::login::{Greeting, Login};
use crate::protocol::packet::{Inbound, PACKET_MAX, violation, write_packet};
use crate::protocol::result::Column;
use crate::protocol::server::MySqlServer;
use crate::protocol::statement::{Form, Statement, UNSENT};
use assay_seam::{
    Class, Connection, Effect, Exchange, Executed, InFlight, Operation, Progress, Reply, ServerFacts, StatementError,
    StatementId, TlsFacts, TlsMode,
};
use assay_wire::deferral::Deferral;
use assay_wire::placeholders::Dialect;
use std::sync::Arc;

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
    /// Not connected.
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
    /// That many packets about parameters of a prepared statement, then about its columns.
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
    Known(Box<LoadTable>, bool),
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
    server: Arc<MySqlServer>,
    inbound: Inbound,
    phase: Phase,
    job: Job,
    in_flight: InFlight,
    capabilities: u32,
    /// Whether the server describes the columns of a prepared statement's results once.
    caches_metadata: bool,
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
    /// Whether the rows of the operation in flight are only counted.
    counts: bool,
    /// Payload of the execution in flight, kept in case the statement must be prepared again.
    pending: Vec<u8>,
}

impl MySqlConnection {
    pub(super) fn new(server: Arc<MySqlServer>) -> MySqlConnection {
        MySqlConnection {
            server,
            inbound: Inbound::default(),
            phase: Phase::Closed,
            job: Job::None,
            in_flight: InFlight::default(),
            capabilities: 0,
            caches_metadata: false,
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
            counts: false,
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
        position(&self.statements, id)
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
        self.counts = false;
        self.phase = Phase::Closed;
        Progress::Failed(error)
    }
}

/// Where a statement is, or would be.
fn position(statements: &[Statement], id: StatementId) -> Result<usize, usize> {
    statements.binary_search_by_key(&id.0, |statement| statement.id.0)
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
        ServerFacts { product: product.into(), version: self.version.to_string(), tls, process: None }
    }

    fn effect(&self) -> Effect {
        let of = |statement| self.find(statement).map_or(Effect::Other, |at| self.statements[at].effect);
        self.in_flight.effect(of)
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
                Ok(None) => {
                    if let Some(rows) = &mut self.reply.rows {
                        exchange.pool.relieve(rows);
                    }
                    return progress;
                }
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
            if let Form::Binary { server, types, columns, .. } = &mut statement.form {
                (*server, *columns) = (None, None);
                types.fill(UNSENT);
            }
        }
        self.skip_tls
    }

    fn on_timeout(&mut self, _exchange: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress {
        self.in_flight = InFlight::of(operation);
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
        self.counts = operation.counts_rows();
        match *operation {
            Operation::Query { text: sql, .. } | Operation::Prepare { text: sql, .. } if sql.len() >= PACKET_MAX => {
                too_large()
            }
            Operation::Query { text: sql, .. } => {
                self.job = Job::Query;
                self.query(exchange.out, &[sql])
            }
            Operation::RollBack => {
                self.job = Job::Query;
                self.query(exchange.out, &[b"ROLLBACK"])
            }
            Operation::Prepare { statement, text: sql } => self.prepare(statement, sql, exchange),
            Operation::Execute { statement, parameters, .. } => self.run_statement(statement, parameters, exchange),
            Operation::Close { statement } => {
                self.close_statement(statement, exchange);
                Progress::Reply(Reply::default())
            }
            Operation::Load { table, columns, rows, .. } => self.load(table, columns, rows, exchange),
        }
    }

    fn defer(&mut self, operation: &Operation<'_>) -> bool {
        let Operation::Execute { statement, parameters, .. } = *operation else { return false };
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
