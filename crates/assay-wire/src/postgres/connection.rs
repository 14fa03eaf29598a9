//! The state machine for one connection to PostgreSQL: login, statements, COPY.
//!
//! Messages are parsed where they arrived; only a message that a read left incomplete is copied. Every operation ends
//! with exactly one ReadyForQuery, so after any error the rest is read up to there and the connection stays usable. If
//! the server no longer has a prepared statement, or its result has changed, the statement is prepared again, before
//! its next execution and in the same packet.

use std::sync::Arc;

use crate::deferral::Deferral;
use crate::placeholders::{self, Dialect, Template};
use crate::postgres::load;
use crate::postgres::login::{ChannelBinding, Login};
use crate::postgres::message::{self, Body, Broken, LENGTH_MAX, broken, shown};
use crate::postgres::refusal::{self, Refusal};
use crate::postgres::server::Server;
use assay_seam::{
    Class, Connection, Effect, Exchange, Executed, Operation, Progress, Reply, Retry, Rows, RowsPool, ServerFacts,
    StatementError, StatementId, TlsFacts, TlsMode, Value,
};

/// A connection, over all the sockets of its lifetime.
pub(super) struct PostgresConnection {
    server: Arc<Server>,
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
    deferral: Deferral,
    loaded: load::Tables,
    /// The server said goodbye while nothing was in flight, or after a reply.
    goodbye: Option<Box<StatementError>>,
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
        }
    }

    fn effect(&self, statement: StatementId) -> Effect {
        self.find(statement).map_or(Effect::Other, |at| self.statements[at].effect)
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
            Phase::Login | Phase::Ready | Phase::Busy => self.on_messages(bytes, exchange),
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
        self.goodbye = None;
        for statement in &mut self.statements {
            if let Form::Server { prepared, .. } = &mut statement.form {
                *prepared = false;
            }
        }
        again
    }

    fn on_timeout(&mut self, _: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress {
        if self.phase != Phase::Ready {
            let gone = || Box::new(StatementError::network("the connection to the server is closed"));
            return Progress::Failed(self.goodbye.take().unwrap_or_else(gone));
        }
        let start = exchange.out.len();
        if !matches!(operation, Operation::Execute { .. }) {
            self.deferral.forget();
        }
        if !matches!(operation, Operation::Load { .. }) {
            self.loaded.forget();
        }
        let sent = match *operation {
            Operation::Query { sql } => self.query(Job::Query, sql, exchange.out),
            Operation::Prepare { statement, sql } => self.prepare(statement, sql, exchange.out),
            Operation::Execute { statement, parameters } => self.execute_prepared(statement, parameters, exchange.out),
            Operation::Close { statement } => Ok(self.close_statement(statement, exchange.out)),
            Operation::Load { table, columns, rows, frozen } => self.load((table, columns), rows, frozen, exchange.out),
        };
        match sent {
            Ok(Sent::Nothing) => Progress::Reply(Reply::default()),
            Ok(Sent::Messages) if exchange.out.len() - start < LENGTH_MAX => {
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

    fn defer(&mut self, operation: &Operation<'_>) -> bool {
        let Operation::Execute { statement: id, parameters } = *operation else { return false };
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
        let Operation::Execute { statement: id, parameters } = *operation else { return false };
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

    fn synchronise(&mut self) {
        self.deferral.synchronise(message::write_sync);
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

    fn take_executed(&mut self) -> Executed {
        std::mem::take(&mut self.deferral.executed)
    }

    fn forget_deferred(&mut self) {
        self.deferral.forget();
    }

    fn close(&mut self, exchange: &mut Exchange<'_>) {
        if matches!(self.phase, Phase::Login | Phase::Ready | Phase::Busy) {
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

/// Login.
impl PostgresConnection {
    pub(super) fn new(server: Arc<Server>) -> PostgresConnection {
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
            deferral: Deferral::default(),
            loaded: load::Tables::default(),
            goodbye: None,
        }
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        let server = &self.server;
        let always = [
            ("user", server.credentials.user.as_str()),
            ("database", &server.database),
            ("application_name", &server.application_name),
            ("client_encoding", &server.client_encoding),
            ("options", &server.options),
        ];
        let of_session = server.session.iter().map(|(name, value)| (*name, value.as_str()));
        let parameters = always.into_iter().chain(of_session).filter(|(_, value)| !value.is_empty());
        message::write_startup(parameters, out);
        self.phase = Phase::Login;
    }

    fn on_ssl_answer(&mut self, bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        let mode = self.server.tls.mode;
        match bytes {
            [b'S'] => {
                self.phase = Phase::Handshake;
                Progress::StartTls
            }
            // A man in the middle could have put text before the encrypted answer (CVE-2021-23222).
            [b'S' | b'N', ..] if bytes.len() > 1 => {
                self.fail(broken("data in the clear followed the answer to the request for TLS").into())
            }
            [b'N'] if mode >= TlsMode::Require => {
                let mut error = StatementError::client(Class::Encryption, "the server does not offer TLS");
                error.hint = Some("turn on ssl in the server, or connect with ?sslmode=disable".into());
                self.fail(Box::new(error))
            }
            [b'N'] => {
                self.start(exchange.out);
                Progress::Pending
            }
            // The message of an error before encryption must not be trusted or shown (CVE-2024-10977).
            [b'E', ..] if mode == TlsMode::Prefer => self.try_the_other_way(),
            _ => self.fail(broken("the peer did not answer the request for TLS as PostgreSQL does").into()),
        }
    }

    fn try_the_other_way(&mut self) -> Progress {
        self.phase = Phase::Closed;
        self.second_try = true;
        self.reconnecting = true;
        self.tls = None;
        self.tail = Vec::new();
        self.login = Login::default();
        Progress::Reconnect
    }

    fn on_login_message(
        &mut self,
        tag: u8,
        body: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Progress>, Box<StatementError>> {
        match tag {
            b'R' => {
                let credentials = &self.server.credentials;
                self.login.on_request(body, credentials, self.tls.as_deref(), exchange.out)?;
            }
            b'K' => {
                let mut body = Body(body);
                let (process, secret) = (body.i32()?, body.i32()?);
                let digits = (u64::from(process as u32) << 32) | u64::from(secret as u32);
                for (i, digit) in self.key.iter_mut().enumerate() {
                    *digit = b"0123456789abcdef"[(digits >> (60 - 4 * i)) as usize & 15];
                }
            }
            // NegotiateProtocolVersion: a newer minor version than ours, or options we did not send.
            b'v' => {}
            b'Z' if self.login.done() => {
                self.transaction = body != b"I";
                self.first_refusal = None;
                self.login = Login::default();
                return Ok(Some(self.set_up(0, exchange.out)));
            }
            b'E' => {
                let mut error = Box::new(Refusal::read(body)?.error);
                let mode = self.server.tls.mode;
                // Without TLS there is no channel to bind to.
                let bare = self.server.credentials.channel_binding != ChannelBinding::Require;
                let other_way = (mode == TlsMode::Prefer && self.tls.is_some() && bare) || mode == TlsMode::Allow;
                // libpq tries the other way after any error; only these can depend on the encryption.
                if other_way && !self.second_try && error.class == Class::Authentication {
                    self.first_refusal = Some(error);
                    return Ok(Some(self.try_the_other_way()));
                }
                // The same error twice does not depend on the encryption.
                if let Some(first) = self.first_refusal.take().filter(|first| first.message != error.message) {
                    let way = if mode == TlsMode::Prefer { "with" } else { "without" };
                    let hint = error.hint.take().map(|hint| format!("; {hint}")).unwrap_or_default();
                    error.hint = Some(format!("{way} TLS the server had said: {}{hint}", first.message));
                }
                return Err(error);
            }
            _ => return Err(broken(format!("a message of type {} came during login", shown(tag))).into()),
        }
        Ok(None)
    }

    /// Runs the session's initial statements from `index` on.
    fn set_up(&mut self, index: usize, out: &mut Vec<u8>) -> Progress {
        let server = Arc::clone(&self.server);
        let Some(sql) = server.connect.session_sql.get(index) else {
            self.phase = Phase::Ready;
            return Progress::Ready;
        };
        self.phase = Phase::Busy;
        match self.query(Job::Setup(index), sql.as_bytes(), out) {
            Ok(_) => Progress::Pending,
            Err(error) => self.fail(Box::new(error)),
        }
    }
}

/// Operations.
impl PostgresConnection {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres { standard_strings: self.standard_strings }
    }

    fn query(&mut self, job: Job, sql: &[u8], out: &mut Vec<u8>) -> Result<Sent, StatementError> {
        check_text(sql)?;
        message::write_query(sql, out);
        self.flight = Flight { job, ..Flight::default() };
        Ok(Sent::Messages)
    }

    fn prepare(&mut self, id: StatementId, sql: &[u8], out: &mut Vec<u8>) -> Result<Sent, StatementError> {
        check_text(sql)?;
        let template = self.server.templates.get(sql, self.dialect());
        let connect = &self.server.connect;
        let on_server = connect.prepared && !connect.unnamed;
        let form = match on_server {
            false if connect.prepared => Form::Unnamed,
            true => Form::Server { prepared: false, parameters: 0, columns: None },
            false => Form::Text,
        };
        let statement = Statement { id: id.0, template, effect: Effect::of(sql), form };
        if on_server {
            self.write_preparation(&statement, out);
            message::write_sync(out);
            let job = Job::Prepare(id);
            self.flight = Flight { job, extended: true, describing: true, ..Flight::default() };
        }
        match self.find(id) {
            Ok(at) => self.statements[at] = statement,
            Err(at) => self.statements.insert(at, statement),
        }
        Ok(if on_server { Sent::Messages } else { Sent::Nothing })
    }

    fn execute_prepared(
        &mut self,
        id: StatementId,
        parameters: &[Value<'_>],
        out: &mut Vec<u8>,
    ) -> Result<Sent, StatementError> {
        let Ok(at) = self.find(id) else {
            return Err(StatementError::client(Class::Missing, format!("there is no prepared statement {}", id.0)));
        };
        let statement = &self.statements[at];
        let mut flight = Flight { job: Job::Execute(id), ..Flight::default() };
        match statement.form {
            Form::Text if self.deferral.waiting > 0 => {
                let message = "a text that the server cannot prepare was to be sent with deferred statements";
                let mut error = StatementError::client(Class::Other, message);
                error.hint = Some("run it with `con:query()`, which sends those first".into());
                return Err(error);
            }
            Form::Text => {
                let mut done = Ok(());
                message::write(b'Q', out, |out| {
                    done = statement.template.write_substituted(parameters, self.dialect(), out);
                    out.push(0);
                });
                done?;
            }
            Form::Unnamed => {
                self.deferral.send(out);
                write_parse_unnamed(&statement.template, out);
                message::write_bind(b"", parameters, out);
                message::write(b'D', out, |out| out.extend_from_slice(b"P\0"));
                message::write_execute(out);
                message::write_sync(out);
                flight.extended = true;
            }
            Form::Server { prepared, parameters: count, .. } => {
                if parameters.len() != usize::from(count) {
                    return Err(placeholders::wrong_count(count.into(), parameters.len()));
                }
                // No Sync after them: if one fails, the server skips the rest, including this one.
                self.deferral.send(out);
                if !prepared {
                    self.write_preparation(&self.statements[at], out);
                    flight.describing = true;
                }
                message::write_bind_and_execute(&self.name(id.0), parameters, out);
                message::write_sync(out);
                flight.extended = true;
            }
        }
        self.flight = flight;
        Ok(Sent::Messages)
    }

    fn close_statement(&mut self, id: StatementId, out: &mut Vec<u8>) -> Sent {
        let Ok(at) = self.find(id) else { return Sent::Nothing };
        match self.statements.remove(at).form {
            Form::Server { prepared: true, .. } => {
                self.write_close(id.0, out);
                message::write_sync(out);
                self.flight = Flight { job: Job::Close, extended: true, ..Flight::default() };
                Sent::Messages
            }
            _ => Sent::Nothing,
        }
    }

    /// COPY, and with the first large batch a query for the columns' types.
    fn load(
        &mut self,
        (table, columns): (&[u8], &[u8]),
        rows: &Rows,
        frozen: bool,
        out: &mut Vec<u8>,
    ) -> Result<Sent, StatementError> {
        if rows.sets() != 1 {
            let message = format!("rows to load come as one set, not {}", rows.sets());
            return Err(StatementError::client(Class::Other, message));
        }
        check_text(table)?;
        check_text(columns)?;
        // An error of that query would abort a transaction.
        let may_ask = self.server.connect.prepared && !self.transaction;
        let asking = may_ask && self.loaded.ask(table, columns, rows, out);
        self.loaded.write_copy((table, columns), rows, frozen, out);
        self.flight = Flight { job: Job::Load, asking, ..Flight::default() };
        Ok(Sent::Messages)
    }

    fn find(&self, id: StatementId) -> Result<usize, usize> {
        self.statements.binary_search_by_key(&id.0, |statement| statement.id)
    }

    /// Parse and Describe; Close first, because the server may still know the name.
    fn write_preparation(&self, statement: &Statement, out: &mut Vec<u8>) {
        self.write_close(statement.id, out);
        let name = self.name(statement.id);
        message::write(b'P', out, |out| {
            message::write_text(&name, out);
            statement.template.write_numbered(out);
            out.extend_from_slice(&[0, 0, 0]);
        });
        message::write(b'D', out, |out| {
            out.push(b'S');
            message::write_text(&name, out);
        });
    }

    fn write_close(&self, id: u32, out: &mut Vec<u8>) {
        message::write(b'C', out, |out| {
            out.push(b'S');
            message::write_text(&self.name(id), out);
        });
    }

    /// A statement's name on the server. A pooler may run many clients on one server connection, hence the key.
    fn name(&self, id: u32) -> [u8; 31] {
        let mut name = *b"assay_0123456789abcdef_00000000";
        name[6..22].copy_from_slice(&self.key);
        for (pair, byte) in name[23..].chunks_exact_mut(2).zip(id.to_be_bytes()) {
            pair.copy_from_slice(&HEX[usize::from(byte)]);
        }
        name
    }
}

/// Each byte as two hexadecimal digits: every execution names its statement.
const HEX: [[u8; 2]; 256] = {
    let (digits, mut pairs, mut byte) = (b"0123456789abcdef", [[0; 2]; 256], 0);
    while byte < pairs.len() {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// A NUL would end the text early and break the message.
fn check_text(sql: &[u8]) -> Result<(), StatementError> {
    match sql.contains(&0) {
        true => Err(StatementError::client(Class::Syntax, "the statement's text holds a NUL byte")),
        false => Ok(()),
    }
}

/// Handling of what arrives.
impl PostgresConnection {
    fn on_messages(&mut self, mut bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        let mut answer = Progress::Pending;
        while !bytes.is_empty() && !matches!(answer, Progress::Reconnect | Progress::Failed(_)) {
            let length_max = if self.phase == Phase::Login { LOGIN_LENGTH_MAX } else { LENGTH_MAX };
            let next = if self.tail.is_empty() {
                match message::length(bytes, length_max) {
                    Ok(Some(length)) if length <= bytes.len() => {
                        let (message, rest) = bytes.split_at(length);
                        bytes = rest;
                        self.on_message(message[0], &message[5..], exchange)
                    }
                    Ok(_) => {
                        self.tail.extend_from_slice(bytes);
                        break;
                    }
                    Err(broken) if self.phase == Phase::Login => {
                        Err(refusal::before_any_process(bytes).unwrap_or_else(|| broken.into()))
                    }
                    Err(broken) => Err(broken.into()),
                }
            } else {
                match self.complete_tail(&mut bytes, length_max) {
                    Ok(false) => break,
                    Ok(true) => {
                        let mut tail = std::mem::take(&mut self.tail);
                        let next = self.on_message(tail[0], &tail[5..], exchange);
                        if tail.capacity() <= TAIL_KEPT_MAX {
                            tail.clear();
                            self.tail = tail;
                        }
                        next
                    }
                    Err(broken) => Err(broken.into()),
                }
            };
            let next = match next {
                Ok(None) => continue,
                Ok(Some(next)) => next,
                Err(error) => self.fail(error),
            };
            match (&answer, next) {
                (Progress::Pending, next) => answer = next,
                // After a reply: the reply is good, the next operation gets the error.
                (_, Progress::Failed(error)) => {
                    self.goodbye = Some(error);
                    break;
                }
                (_, next) => unreachable!("nothing in flight, yet {next:?}"),
            }
        }
        if let Progress::Failed(_) = answer
            && let Some(rows) = self.flight.rows.take()
        {
            exchange.pool.put(rows);
        }
        answer
    }

    /// Moves into `tail` what is missing for one message; true when it is complete.
    fn complete_tail(&mut self, bytes: &mut &[u8], length_max: usize) -> Result<bool, Broken> {
        for _header_then_body in 0..2 {
            let wanted = message::length(&self.tail, length_max)?.unwrap_or(5);
            let (taken, rest) = bytes.split_at(bytes.len().min(wanted.saturating_sub(self.tail.len())));
            self.tail.extend_from_slice(taken);
            *bytes = rest;
        }
        Ok(message::length(&self.tail, length_max)? == Some(self.tail.len()))
    }

    fn fail(&mut self, error: Box<StatementError>) -> Progress {
        self.phase = Phase::Closed;
        self.tail = Vec::new();
        Progress::Failed(error)
    }

    fn on_message(
        &mut self,
        tag: u8,
        body: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Progress>, Box<StatementError>> {
        match (tag, self.phase) {
            (b'D', Phase::Busy) => self.on_row(body)?,
            // Notices and notifications may come at any time.
            (b'N' | b'A', _) => {}
            (b'S', _) => self.on_parameter_status(body)?,
            (_, Phase::Login) => return self.on_login_message(tag, body, exchange),
            (b'E', Phase::Ready) => {
                let mut error = Refusal::read(body)?.error;
                error.retry = Retry::Reconnect;
                return Err(Box::new(error));
            }
            (_, Phase::Busy) => return self.on_result_message(tag, body, exchange),
            _ => return Err(broken(format!("a message of type {} came unasked", shown(tag))).into()),
        }
        Ok(None)
    }

    fn on_parameter_status(&mut self, body: &[u8]) -> Result<(), Broken> {
        let mut body = Body(body);
        match (body.text()?, body.text()?) {
            (b"standard_conforming_strings", value) => self.standard_strings = value != b"off",
            (b"server_version", value) => self.version = String::from_utf8_lossy(value).into(),
            _ => {}
        }
        Ok(())
    }

    fn on_row(&mut self, body: &[u8]) -> Result<(), Broken> {
        if self.flight.error.is_some() || self.deferral.unanswered > 0 {
            // Too large already, after a refused COPY, or part of a pipeline: nobody wants them.
            return Ok(());
        }
        let rows = self.flight.rows.as_deref_mut().ok_or_else(|| broken("a row came without its description"))?;
        let mut body = Body(body);
        let columns = body.u16()?;
        if usize::from(columns) != rows.columns(rows.sets() - 1) {
            return Err(broken("a row has another number of columns than was announced"));
        }
        for _ in 0..columns {
            let length = body.i32()?;
            match usize::try_from(length) {
                Err(_) => rows.push_null(),
                Ok(length) => {
                    let text = body.bytes(length)?;
                    if rows.push_text(text).is_err() {
                        // Keeps the columns in step; the result is not returned.
                        rows.push_null();
                        let message = "the result is larger than 4 GiB";
                        self.flight
                            .error
                            .get_or_insert_with(|| Box::new(StatementError::client(Class::Limit, message)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Everything but rows while an operation is in flight.
    fn on_result_message(
        &mut self,
        tag: u8,
        body: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Progress>, Box<StatementError>> {
        let mut fields = Body(body);
        match tag {
            b'C' => {
                let tag = fields.text()?;
                let affected = message::affected(tag);
                if self.deferral.unanswered > 0 {
                    self.deferral.answered(affected, tag.starts_with(b"SELECT"));
                    return Ok(None);
                }
                // After an error only a refused COPY … TO STDOUT completes, and that changed nothing.
                if self.flight.error.is_none() {
                    self.flight.affected = self.flight.affected.saturating_add(affected);
                }
            }
            // BindComplete: now it is known whether rows will come, even if there are none.
            b'2' if self.deferral.unanswered == 0 => {
                if let Some(Form::Server { columns: Some(columns), .. }) = self.form() {
                    let columns = *columns;
                    self.begin_set(columns, exchange.pool);
                }
            }
            // ParameterDescription
            b't' if self.flight.asking => self.loaded.learn(fields)?,
            b't' => {
                let count = fields.u16()?;
                if let Some(Form::Server { parameters, .. }) = self.form() {
                    *parameters = count;
                }
            }
            // RowDescription, NoData
            b'T' | b'n' => {
                let described = if tag == b'T' { Some(fields.u16()?) } else { None };
                if self.flight.describing {
                    self.flight.describing = false;
                    if let Some(Form::Server { prepared, columns, .. }) = self.form() {
                        *prepared = true;
                        *columns = described;
                    }
                } else if let Some(columns) = described {
                    self.begin_set(columns, exchange.pool);
                    if self.flight.job == Job::Query {
                        self.read_labels(columns, fields)?;
                    }
                }
            }
            b'Z' => {
                self.transaction = fields.byte()? != b'I';
                if std::mem::take(&mut self.flight.asking) {
                    return Ok(None);
                }
                if self.deferral.goes_on() {
                    return Ok(None);
                }
                if self.deferral.unanswered > 0 && self.flight.error.is_none() {
                    return Err(broken("fewer statements were answered than were sent").into());
                }
                return Ok(Some(self.land(exchange)));
            }
            b'E' => self.on_refusal(Refusal::read(body)?)?,
            // CopyInResponse. The script's own COPY is refused, because it cannot provide the data.
            b'G' if self.flight.job != Job::Load => {
                self.refuse_copy("COPY … FROM STDIN");
                message::write(b'f', exchange.out, |out| message::write_text(b"not supported by the client", out));
                if self.flight.extended {
                    // The one already sent was skipped: the server was in COPY.
                    message::write_sync(exchange.out);
                }
            }
            // CopyOutResponse. The data is skipped.
            b'H' => self.refuse_copy("COPY … TO STDOUT"),
            // EmptyQueryResponse of a pipeline
            b'I' if self.deferral.unanswered > 0 => self.deferral.answered(0, false),
            // CopyBothResponse
            b'W' => {
                self.refuse_copy("replication");
                message::write(b'c', exchange.out, |_| {});
            }
            // CopyInResponse, CopyData, CopyDone, ParseComplete, a deferred statement's BindComplete, CloseComplete,
            // EmptyQueryResponse
            b'G' | b'd' | b'c' | b'1' | b'2' | b'3' | b'I' => {}
            _ => return Err(broken(format!("a message of type {} came in a result", shown(tag))).into()),
        }
        Ok(None)
    }

    /// The server's state of the prepared statement in flight.
    fn form(&mut self) -> Option<&mut Form> {
        let (Job::Prepare(id) | Job::Execute(id)) = self.flight.job else { return None };
        let at = self.find(id).ok()?;
        Some(&mut self.statements[at].form)
    }

    fn begin_set(&mut self, columns: u16, pool: &mut RowsPool) {
        self.flight.rows.get_or_insert_with(|| pool.take()).begin_set(columns.into());
    }

    /// The names in a RowDescription.
    fn read_labels(&mut self, columns: u16, mut fields: Body<'_>) -> Result<(), Broken> {
        let Some(rows) = &mut self.flight.rows else { return Ok(()) };
        for _ in 0..columns {
            rows.push_label(fields.text()?);
            // Table, column, type, its length and modifier, format.
            fields.bytes(18)?;
        }
        Ok(())
    }

    fn refuse_copy(&mut self, what: &str) {
        let message = format!("{what} cannot be run from a script");
        self.flight.error.get_or_insert_with(|| Box::new(StatementError::client(Class::Other, message)));
    }

    fn on_refusal(&mut self, refusal: Refusal) -> Result<(), Box<StatementError>> {
        let Refusal { fatal, routine, mut error } = refusal;
        if fatal {
            error.retry = Retry::Reconnect;
            return Err(Box::new(error));
        }
        if self.flight.asking {
            // Then it is sent as text, and the table's error is reported again.
            return Ok(());
        }
        if self.deferral.unanswered > 0 {
            let forgotten = error.code.state == "26000";
            for statement in self.statements.iter_mut().filter(|_| forgotten) {
                if let Form::Server { prepared, .. } = &mut statement.form {
                    *prepared = false;
                }
            }
            if forgotten {
                error.retry = Retry::Now;
            }
            self.deferral.blame(&mut error);
            self.flight.error.get_or_insert_with(|| Box::new(error));
            return Ok(());
        }
        match (self.flight.job, error.code.state.as_str()) {
            // Several statements in one text, or a parameter whose type only a value determines.
            (Job::Prepare(_), "42601") => self.flight.unpreparable = routine == b"exec_parse_message",
            (Job::Prepare(_), "42P18") => self.flight.unpreparable = true,
            // The server has forgotten the statement, or its result changed with the table.
            (Job::Execute(_), state @ ("26000" | "0A000")) => {
                if let Some(Form::Server { prepared, .. }) = self.form() {
                    *prepared = false;
                    if state == "26000" || routine == b"RevalidateCachedQuery" {
                        error.retry = Retry::Now;
                    }
                }
            }
            _ => {}
        }
        self.flight.error.get_or_insert_with(|| Box::new(error));
        Ok(())
    }

    /// ReadyForQuery: the operation is over.
    fn land(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        self.phase = Phase::Ready;
        self.deferral.unanswered = 0;
        let Flight { job, unpreparable, mut rows, affected, mut error, .. } = std::mem::take(&mut self.flight);
        match job {
            Job::Setup(index) => {
                if let Some(rows) = rows {
                    exchange.pool.put(rows);
                }
                return match error {
                    None => self.set_up(index + 1, exchange.out),
                    Some(mut error) => {
                        let sql = &self.server.connect.session_sql[index];
                        error.message = format!("{} (in the session statement `{sql}`)", error.message);
                        error.hint.get_or_insert_with(|| "check the statement in `--session-sql`".into());
                        self.fail(error)
                    }
                };
            }
            Job::Prepare(id) if error.is_some() => {
                let at = self.find(id);
                match at {
                    // Not inside a transaction: the error has already aborted it.
                    Ok(at) if unpreparable && !self.transaction => {
                        self.statements[at].form = Form::Text;
                        error = None;
                    }
                    Ok(at) => drop(self.statements.remove(at)),
                    Err(_) => {}
                }
            }
            Job::Execute(_) if error.is_some() => {
                if let Some(rows) = rows.take() {
                    exchange.pool.put(rows);
                }
            }
            _ => {}
        }
        Progress::Reply(Reply { rows, affected, error })
    }

    /// Bytes kept of an incomplete message.
    pub(super) fn tail_capacity(&self) -> usize {
        self.tail.capacity()
    }
}

impl From<Broken> for Box<StatementError> {
    fn from(Broken(what): Broken) -> Box<StatementError> {
        Box::new(StatementError::client(Class::Protocol, what))
    }
}
