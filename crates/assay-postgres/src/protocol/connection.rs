//! The state machine for one connection to PostgreSQL: login, statements, COPY.
//!
//! Messages are parsed where they arrived; only a message that a read left incomplete is copied. Every operation ends
//! with exactly one ReadyForQuery, so after any error the rest is read up to there and the connection stays usable. If
//! the server no longer has a prepared statement, or its result has changed, the statement is prepared again, before
//! its next execution and in the same packet.

mod opening;
mod results;
mod statements;

use crate::protocol::load;
use crate::protocol::login::Login;
use crate::protocol::message::{self, LENGTH_MAX, broken};
use crate::protocol::notifications::Unasked;
use crate::protocol::server::PostgresServer;
use assay_seam::{
    Class, Connection, Effect, Exchange, Executed, InFlight, Nanos, Operation, Progress, Reply, Rows, ServerFacts,
    StatementError, StatementId, TlsFacts, TlsMode,
};
use assay_wire::deferral::Deferral;
use assay_wire::placeholders::{Dialect, Template};
use std::sync::Arc;

/// A connection, over all the sockets of its lifetime.
pub(super) struct PostgresConnection {
    server: Arc<PostgresServer>,
    phase: Phase,
    /// The beginning of an incomplete message.
    tail: Vec<u8>,
    /// Whether a transaction is open, failed or not.
    transaction: bool,
    standard_strings: bool,
    /// Whether login is being tried the other way (sslmode allow, prefer).
    second_try: bool,
    /// Whether `Reconnect` was returned and the socket is not closed yet.
    reconnecting: bool,
    /// The server's error for the first attempt.
    first_refusal: Option<Box<StatementError>>,
    login: Login,
    tls: Option<Box<TlsFacts>>,
    version: Box<str>,
    /// In hex, part of the names of prepared statements: the server's own identification of its client.
    key: [u8; 16],
    /// Ascending by id.
    statements: Vec<Statement>,
    flight: Flight,
    in_flight: InFlight,
    deferral: Deferral,
    loaded: load::Tables,
    /// The messages of the next load while one is in flight.
    next_load: Vec<u8>,
    /// Most servers say nothing.
    unasked: Option<Box<Unasked>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No socket, or one that must not be used any more.
    Closed,
    /// SSLRequest is sent.
    SslAnswer,
    Handshake,
    Login,
    /// Nothing in flight.
    Ready,
    Busy,
    /// Nothing in flight: waiting for a notification.
    Listening,
}

/// A prepared statement, or the text that replaces one.
struct Statement {
    id: u32,
    template: Arc<Template>,
    effect: Effect,
    form: Form,
}

#[derive(Clone, Copy)]
enum Form {
    /// Substituted on our side, sent in the simple protocol.
    Text,
    /// Parsed again for each execution.
    Unnamed,
    Server {
        /// The server has it under our name, as described here.
        prepared: bool,
        parameters: u16,
        /// `None` if it returns no row description.
        columns: Option<u16>,
    },
}

/// The operation in flight, and its results so far.
#[derive(Default)]
struct Flight {
    job: Job,
    /// Whether the extended protocol is used: after a failed COPY another Sync is needed.
    extended: bool,
    /// Whether Parse and Describe are sent but not answered.
    describing: bool,
    /// Whether the server cannot prepare this text; it may still run it.
    unpreparable: bool,
    /// Whether the query for a table's types must be answered before the load.
    asking: bool,
    /// Whether rows are only counted.
    counts: bool,
    rows: Option<Box<Rows>>,
    affected: u64,
    error: Option<Box<StatementError>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Job {
    /// An initial statement of the session, by index.
    Setup(usize),
    #[default]
    Query,
    Prepare(StatementId),
    Execute(StatementId),
    Close,
    Load,
    Flush,
}

/// A tail's buffer that grew beyond this is freed.
const TAIL_KEPT_MAX: usize = 4096;
/// Longest message before login; a peer that is not PostgreSQL is detected early.
const LOGIN_LENGTH_MAX: usize = 64 * 1024;

impl Connection for PostgresConnection {
    fn in_transaction(&self) -> bool {
        self.transaction
    }

    fn server(&self) -> ServerFacts {
        ServerFacts {
            product: "PostgreSQL".into(),
            version: self.version.to_string(),
            tls: self.tls.as_ref().map(|tls| tls.cipher.clone()),
            // The first half of the key is the process.
            process: str::from_utf8(&self.key[..8]).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok()),
        }
    }

    fn effect(&self) -> Effect {
        let of = |statement| self.find(statement).map_or(Effect::Other, |at| self.statements[at].effect);
        self.in_flight.effect(of)
    }

    fn on_connected(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        self.reconnecting = false;
        let encrypt = match self.server.tls.mode {
            TlsMode::Disable => false,
            TlsMode::Allow => self.second_try,
            TlsMode::Prefer => !self.second_try,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => true,
        };
        if encrypt {
            message::write_ssl_request(exchange.out);
            self.phase = Phase::SslAnswer;
        } else {
            self.start(exchange.out);
        }
        Progress::Pending
    }

    fn on_bytes(&mut self, bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        if bytes.is_empty() {
            return Progress::Pending;
        }
        match self.phase {
            Phase::SslAnswer => self.on_ssl_answer(bytes, exchange),
            // Closed: bytes that were in flight when we gave up.
            Phase::Closed => Progress::Pending,
            Phase::Handshake => self.fail(broken("data arrived in the clear where TLS begins").into()),
            Phase::Login | Phase::Ready | Phase::Busy | Phase::Listening => self.on_messages(bytes, exchange),
        }
    }

    fn on_secured(&mut self, tls: &TlsFacts, exchange: &mut Exchange<'_>) -> Progress {
        self.tls = Some(Box::new(tls.clone()));
        self.start(exchange.out);
        Progress::Pending
    }

    fn on_closed(&mut self) -> bool {
        let handshake_failed = self.phase == Phase::Handshake && self.server.tls.mode == TlsMode::Prefer;
        let again = self.reconnecting || (handshake_failed && !self.second_try);
        self.second_try = again;
        self.reconnecting = false;
        if !again {
            self.first_refusal = None;
        }
        self.phase = Phase::Closed;
        self.tail = Vec::new();
        self.transaction = false;
        self.login = Login::default();
        self.tls = None;
        self.flight = Flight::default();
        self.deferral.forget();
        self.loaded.forget();
        self.next_load = Vec::new();
        self.unasked = None;
        for statement in &mut self.statements {
            if let Form::Server { prepared, .. } = &mut statement.form {
                *prepared = false;
            }
        }
        again
    }

    fn on_timeout(&mut self, _: &mut Exchange<'_>) -> Progress {
        if self.phase != Phase::Listening {
            return Progress::Pending;
        }
        self.phase = Phase::Ready;
        Progress::Reply(Reply::default())
    }

    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress {
        self.in_flight = InFlight::of(operation);
        if self.phase != Phase::Ready {
            return self.gone();
        }
        let start = exchange.out.len();
        if !matches!(operation, Operation::Execute { .. }) {
            self.deferral.forget();
        }
        if !matches!(operation, Operation::Load { .. }) {
            self.loaded.forget();
        }
        let sent = match *operation {
            Operation::Query { text: sql, .. } => self.query(Job::Query, sql, exchange.out),
            Operation::Prepare { statement, text: sql } => self.prepare(statement, sql, exchange.out),
            Operation::Execute { statement, parameters, .. } => {
                self.execute_prepared(statement, parameters, exchange.out)
            }
            Operation::Close { statement } => Ok(self.close_statement(statement, exchange.out)),
            Operation::RollBack => self.query(Job::Query, b"ROLLBACK", exchange.out),
            Operation::Load { table, columns, rows, frozen } => self.load((table, columns), rows, frozen, exchange.out),
        };
        match sent {
            Ok(Sent::Nothing) => Progress::Reply(Reply::default()),
            Ok(Sent::Messages) if exchange.out.len() - start < LENGTH_MAX => {
                self.flight.counts = operation.counts_rows();
                self.phase = Phase::Busy;
                Progress::Pending
            }
            // The limit is per message; a batch of rows has many, but the difference does not matter.
            Ok(Sent::Messages) => {
                exchange.out.truncate(start);
                self.deferral.forget();
                let message = "the statement or batch is larger than PostgreSQL's limit of 1 GiB";
                Progress::Reply(Reply::failed(StatementError::client(Class::Limit, message)))
            }
            Err(error) => {
                exchange.out.truncate(start);
                Progress::Reply(Reply::failed(error))
            }
        }
    }

    fn has_sent_rows(&self) -> bool {
        self.flight.job == Job::Load
    }

    fn load_ahead(&mut self, operation: &Operation<'_>) -> bool {
        let Operation::Load { table, columns, rows, frozen } = *operation else { return false };
        // Until a table's types are known, its rows would be sent as text.
        let may_wait = self.phase == Phase::Busy && self.has_sent_rows() && !self.flight.asking;
        if !may_wait || !self.next_load.is_empty() || rows.sets() != 1 || !self.loaded.knows(table, columns) {
            return false;
        }
        self.loaded.write_copy((table, columns), rows, frozen, &mut self.next_load);
        if self.next_load.len() >= LENGTH_MAX {
            self.next_load = Vec::new();
        }
        !self.next_load.is_empty()
    }

    fn defer(&mut self, operation: &Operation<'_>) -> bool {
        let Operation::Execute { statement: id, parameters, .. } = *operation else { return false };
        let Ok(at) = self.find(id) else { return false };
        let Statement { effect, form, .. } = &self.statements[at];
        // A statement that returns rows, or must be prepared again, is answered in more than one way.
        let Form::Server { prepared: true, parameters: count, columns: None } = *form else { return false };
        if self.phase != Phase::Ready
            || parameters.len() != usize::from(count)
            || !self.deferral.takes(*effect, self.transaction)
        {
            return false;
        }
        let name = self.name(id.0);
        message::write_bind_and_execute(&name, parameters, &mut self.deferral.held);
        self.deferral.waiting += 1;
        true
    }

    fn pipe(&mut self, operation: &Operation<'_>) -> bool {
        let Operation::Execute { statement: id, parameters, .. } = *operation else { return false };
        let (Ok(at), Phase::Ready) = (self.find(id), self.phase) else { return false };
        match self.statements[at].form {
            Form::Server { prepared: true, parameters: count, .. } if parameters.len() == usize::from(count) => {
                let name = self.name(id.0);
                message::write_bind_and_execute(&name, parameters, &mut self.deferral.held);
            }
            Form::Unnamed => {
                let held = &mut self.deferral.held;
                write_parse_unnamed(&self.statements[at].template, held);
                message::write_bind_and_execute(b"", parameters, held);
            }
            Form::Server { .. } | Form::Text => return false,
        }
        self.deferral.waiting += 1;
        true
    }

    fn synchronize(&mut self) {
        self.deferral.synchronize(message::write_sync);
    }

    fn flush(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        if self.deferral.waiting == 0 {
            return Progress::Reply(Reply::default());
        }
        self.deferral.send(exchange.out);
        message::write_sync(exchange.out);
        self.flight = Flight { job: Job::Flush, extended: true, ..Flight::default() };
        self.phase = Phase::Busy;
        Progress::Pending
    }

    fn notification(&mut self, limit: Nanos, exchange: &mut Exchange<'_>) -> Progress {
        self.in_flight = InFlight::Harmless;
        if self.phase != Phase::Ready {
            return self.gone();
        }
        match self.unasked.as_mut().and_then(|said| said.notifications.take(exchange.pool)) {
            Some(reply) => Progress::Reply(reply),
            None => {
                self.phase = Phase::Listening;
                Progress::Wait(limit)
            }
        }
    }

    fn take_executed(&mut self) -> Executed {
        std::mem::take(&mut self.deferral.executed)
    }

    fn forget_deferred(&mut self) {
        self.deferral.forget();
    }

    fn close(&mut self, exchange: &mut Exchange<'_>) {
        if matches!(self.phase, Phase::Login | Phase::Ready | Phase::Busy | Phase::Listening) {
            message::write(b'X', exchange.out, |_| {});
        }
        self.phase = Phase::Closed;
    }
}

/// Parse as the unnamed statement.
fn write_parse_unnamed(template: &Template, out: &mut Vec<u8>) {
    message::write(b'P', out, |out| {
        out.push(0);
        template.write_numbered(out);
        out.extend_from_slice(&[0, 0, 0]);
    });
}

/// Whether an operation needs the server.
enum Sent {
    Messages,
    Nothing,
}

impl PostgresConnection {
    pub(super) fn new(server: Arc<PostgresServer>) -> PostgresConnection {
        PostgresConnection {
            server,
            phase: Phase::Closed,
            tail: Vec::new(),
            transaction: false,
            standard_strings: true,
            second_try: false,
            reconnecting: false,
            first_refusal: None,
            login: Login::default(),
            tls: None,
            version: "".into(),
            key: [b'0'; 16],
            statements: Vec::new(),
            flight: Flight::default(),
            in_flight: InFlight::default(),
            deferral: Deferral::default(),
            loaded: load::Tables::default(),
            next_load: Vec::new(),
            unasked: None,
        }
    }
}

impl PostgresConnection {
    /// An operation is requested of a connection that ended.
    fn gone(&mut self) -> Progress {
        let gone = || Box::new(StatementError::network("the connection to the server is closed"));
        Progress::Failed(self.unasked.as_mut().and_then(|said| said.goodbye.take()).unwrap_or_else(gone))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres { standard_strings: self.standard_strings }
    }

    fn find(&self, id: StatementId) -> Result<usize, usize> {
        self.statements.binary_search_by_key(&id.0, |statement| statement.id)
    }
}
