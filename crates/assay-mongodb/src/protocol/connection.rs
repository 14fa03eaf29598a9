//! One connection: login, operations, and what survives a reconnect.
//!
//! One command is in flight, and one message answers it. An operation may take several: further batches of a cursor, or
//! further messages of a load; the engine sees one reply.

use std::sync::Arc;

use assay_seam::{
    Class, Connection, Effect, Endpoint, Exchange, Operation, Progress, Reply, Retry, Rows, RowsWanted, ServerFacts,
    StatementError, StatementId, TlsFacts, TlsMode, Value,
};

use crate::protocol::answer::{Fault, Sheet};
use crate::protocol::bson::{self, Bson, Document};
use crate::protocol::compression;
use crate::protocol::load::{self, Head, Load};
use crate::protocol::login::{Limits, Login, Turn};
use crate::protocol::message::{self, Inbound, malformed};
use crate::protocol::refusal::{self, violation};
use crate::protocol::server::MongoServer;
use crate::protocol::template::{Reading, Template};
use crate::protocol::transaction::{self, Control, Transaction};

/// What the next message must be.
#[derive(Debug)]
enum Phase {
    /// Not connected.
    Closed,
    /// None before TLS is established.
    Securing,
    /// Part of the login.
    Login(Box<Login>),
    /// None.
    Idle,
    /// The answer to the job's command.
    Answer,
    /// The answer to `killCursors`, after an error of ours.
    Killed(Box<StatementError>),
}

/// What the messages are for.
#[derive(Debug)]
enum Job {
    None,
    /// The session statement of this index (`ConnectOptions::session_sql`).
    Setup(usize, Box<Template>),
    Query(Box<Template>),
    /// Place in `statements`, which does not change meanwhile.
    Execute(usize),
    Load(Load),
    /// `abortTransaction`, whatever its answer is.
    RollBack,
}

#[derive(Debug)]
struct Statement {
    id: StatementId,
    template: Arc<Template>,
}

/// A client connection.
#[derive(Debug)]
pub(super) struct MongoConnection {
    server: Arc<MongoServer>,
    inbound: Inbound,
    phase: Phase,
    job: Job,
    /// Number of the last message sent.
    request: u32,
    limits: Limits,
    cipher: Option<Box<str>>,
    /// Ordered by id.
    statements: Vec<Statement>,
    /// The table that was loaded last.
    head: Option<Head>,
    transaction: Transaction,
    effect: Effect,
    /// The reply as far as it has arrived.
    reply: Reply,
    /// Whether the rows of the operation in flight are only counted.
    counts: bool,
    /// Documents that are being written, and text that is being made.
    opened: Vec<usize>,
    scratch: Vec<u8>,
    /// A message that was compressed.
    unpacked: Vec<u8>,
    /// What the server did after the answer that came with it.
    farewell: Option<Box<StatementError>>,
    /// It only asks which servers belong together.
    scouts: bool,
    members: Vec<Endpoint>,
}

impl MongoConnection {
    pub(super) fn new(server: Arc<MongoServer>) -> MongoConnection {
        MongoConnection {
            scouts: false,
            members: Vec::new(),
            server,
            inbound: Inbound::default(),
            phase: Phase::Closed,
            job: Job::None,
            request: 0,
            limits: Limits::default(),
            cipher: None,
            statements: Vec::new(),
            head: None,
            transaction: Transaction::default(),
            effect: Effect::Reads,
            reply: Reply::default(),
            counts: false,
            opened: Vec::new(),
            scratch: Vec::new(),
            unpacked: Vec::new(),
            farewell: None,
        }
    }

    /// One that does not log in.
    pub(super) fn scout(server: Arc<MongoServer>) -> MongoConnection {
        MongoConnection { scouts: true, ..MongoConnection::new(server) }
    }

    fn find(&self, id: StatementId) -> Result<usize, usize> {
        self.statements.binary_search_by_key(&id.0, |statement| statement.id.0)
    }

    fn next_request(&mut self) -> u32 {
        self.request = self.request.wrapping_add(1);
        self.request
    }

    /// Sends a command of ours that belongs to the transaction, if there is one.
    fn send_within(&mut self, mut command: Vec<u8>, exchange: &mut Exchange<'_>) {
        if let Some(elements) = self.transaction.elements(false) {
            bson::extend(0, elements, &mut command);
        }
        self.send(&command, exchange);
        self.transaction.on_sent();
    }

    /// Sends a command of ours.
    fn send(&mut self, command: &[u8], exchange: &mut Exchange<'_>) {
        let (request, start) = (self.next_request(), exchange.out.len());
        message::write(request, exchange.out, |out| out.extend_from_slice(command));
        self.compress(start, exchange.out);
    }

    /// Compresses the message from `start` on, if that was agreed.
    fn compress(&self, start: usize, out: &mut Vec<u8>) {
        if let Some(compressor) = self.limits.compressor {
            compression::compress(compressor, start, out);
        }
    }

    /// The template of the job, which has one.
    fn template(&self) -> &Template {
        match &self.job {
            Job::Setup(_, template) | Job::Query(template) => template,
            Job::Execute(at) => &self.statements[*at].template,
            Job::None | Job::Load(_) | Job::RollBack => unreachable!("this job has no statement"),
        }
    }

    /// Sends the job's command. A value that cannot be sent is the answer.
    fn send_job(&mut self, parameters: &[Value<'_>], exchange: &mut Exchange<'_>) -> Progress {
        let request = self.next_request();
        let start = message::begin(request, exchange.out);
        let mut opened = std::mem::take(&mut self.opened);
        let mut transaction = std::mem::take(&mut self.transaction);
        let template = self.template();
        let ends =
            matches!(template.control, Some(Control::Commit { concern: false } | Control::Abort { concern: false }));
        let written = template.write_within(transaction.elements(ends), parameters, &mut opened, exchange.out);
        let (effect, is_secret) = (template.effect, template.is_secret);
        self.opened = opened;
        self.transaction = transaction;
        self.effect = effect;
        let length = exchange.out.len() - start;
        let result = written.and_then(|()| match length <= self.limits.message {
            true => Ok(()),
            false => Err(StatementError::client(
                Class::Limit,
                format!("the command has {length} bytes, and the server accepts {}", self.limits.message),
            )),
        });
        if let Err(error) = result {
            exchange.out.truncate(start);
            return self.answered(Some(Box::new(error)), exchange);
        }
        message::end(start, exchange.out);
        if !is_secret {
            self.compress(start, exchange.out);
        }
        self.transaction.on_sent();
        self.phase = Phase::Answer;
        Progress::Pending
    }

    /// Executes the job's statement, which may be one about the transaction.
    fn execute_job(&mut self, parameters: &[Value<'_>], exchange: &mut Exchange<'_>) -> Progress {
        match &self.template().control {
            None => return self.send_job(parameters, exchange),
            Some(Control::Start { first, last }) => {
                if let Some(error) = self.refuse_start() {
                    return self.answered(Some(error), exchange);
                }
                let (first, last) = (first.clone(), last.clone());
                self.transaction.start(&first, &last);
            }
            Some(Control::Commit { .. }) if !self.transaction.is_open() => {
                let error = StatementError::client(Class::Other, "there is no transaction to commit");
                return self.answered(Some(Box::new(error)), exchange);
            }
            Some(_) if self.transaction.is_sent() => return self.send_job(parameters, exchange),
            // Nothing was done in it.
            Some(_) => self.transaction.end(),
        }
        self.effect = Effect::Reads;
        self.answered(None, exchange)
    }

    /// Why no transaction can begin here and now.
    fn refuse_start(&self) -> Option<Box<StatementError>> {
        // FerretDB can be told to call itself a member of a replica set, but it ignores the fields of transactions.
        let ignores = self.server.version.get().is_some_and(|(product, _)| product == "FerretDB");
        let (message, hint) = if self.transaction.is_open() {
            ("a transaction is open already", "end it with {\"commitTransaction\": 1} or {\"abortTransaction\": 1}")
        } else if self.limits.transactions && !ignores {
            return None;
        } else {
            (
                "this server has no transactions: only members of a replica set of MongoDB and mongos have them",
                "start mongod with `--replSet NAME`, and make it a set of one with rs.initiate(); or do without \
                 transactions (built-in workloads: `--skip-trx on`)",
            )
        };
        let mut error = StatementError::client(Class::Other, message);
        error.hint = Some(hint.to_owned());
        Some(Box::new(error))
    }

    /// Aborts the transaction, if the server knows of one.
    fn roll_back(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        self.effect = Effect::Reads;
        if !self.transaction.is_sent() {
            self.transaction.end();
            return Progress::Reply(Reply::default());
        }
        self.job = Job::RollBack;
        self.send_within(abort(), exchange);
        self.phase = Phase::Answer;
        Progress::Pending
    }

    fn start_login(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        let (login, command) = match self.scouts {
            true => Login::scout(&self.server),
            false => Login::start(&self.server),
        };
        self.send(&command, exchange);
        self.phase = Phase::Login(Box::new(login));
        Progress::Pending
    }

    /// Sends the session statement of this index; after the last one the connection is ready.
    fn set_up(&mut self, index: usize, exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        let server = Arc::clone(&self.server);
        let Some(text) = server.connect.session_sql.get(index) else {
            self.job = Job::None;
            self.phase = Phase::Idle;
            return Ok(Progress::Ready);
        };
        let template = compiled(text.as_bytes(), &server)?;
        if template.control.is_some() {
            let error = StatementError::client(Class::Other, "a session does not begin within a transaction");
            return Err(Box::new(error));
        }
        self.counts = true;
        self.job = Job::Setup(index, Box::new(template));
        Ok(self.send_job(&[], exchange))
    }

    /// Answers the operation in flight.
    fn answered(&mut self, error: Option<Box<StatementError>>, exchange: &mut Exchange<'_>) -> Progress {
        self.phase = Phase::Idle;
        let mut reply = std::mem::take(&mut self.reply);
        if let Job::Setup(index, _) = self.job {
            if let Some(rows) = reply.rows {
                exchange.pool.put(rows);
            }
            return match error {
                Some(error) => self.fail(error, exchange),
                None => self.set_up(index + 1, exchange).unwrap_or_else(|error| self.fail(error, exchange)),
            };
        }
        self.job = Job::None;
        reply.error = error;
        Progress::Reply(reply)
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

    fn on_compressed(&mut self, message: &[u8], exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        let agreed = self.limits.compressor.expect("others were refused");
        let mut unpacked = std::mem::take(&mut self.unpacked);
        let progress = match compression::decompress(agreed, message, &mut unpacked) {
            Ok(()) if unpacked.len() < message::LENGTH_MIN => {
                Err(violation("sent a compressed message without content"))
            }
            Ok(()) => self.on_message(&unpacked, exchange),
            Err(what) => Err(violation(what)),
        };
        unpacked.clear();
        unpacked.shrink_to(message::KEEP_MAX);
        self.unpacked = unpacked;
        progress
    }

    fn on_message(&mut self, message: &[u8], exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        match &mut self.phase {
            Phase::Closed | Phase::Securing => Err(violation("sent something before it was asked")),
            Phase::Idle => Err(violation("sent an answer that nobody asked for")),
            Phase::Login(login) => {
                let reply = message::document(message, self.request)?;
                match login.on_reply(reply, &self.server)? {
                    Turn::Send(command) => {
                        self.send(&command, exchange);
                        Ok(Progress::Pending)
                    }
                    Turn::Done => {
                        self.limits = login.limits;
                        if let Some(members) = login.members.take() {
                            self.members = members;
                            self.phase = Phase::Idle;
                            return Ok(Progress::Ready);
                        }
                        self.set_up(0, exchange)
                    }
                }
            }
            Phase::Answer => {
                let reply = message::document(message, self.request)?;
                if let Some(error) = refusal::of_reply(reply)? {
                    return self.on_error(error, reply, exchange);
                }
                if matches!(self.job, Job::RollBack) {
                    self.transaction.end();
                    return Ok(self.answered(None, exchange));
                }
                if matches!(self.job, Job::Load(_)) {
                    self.on_loaded(reply, exchange)
                } else {
                    self.on_rows(reply, exchange)
                }
            }
            Phase::Killed(_) => {
                message::document(message, self.request)?;
                let Phase::Killed(error) = std::mem::replace(&mut self.phase, Phase::Idle) else {
                    unreachable!("it was matched")
                };
                Ok(self.answered(Some(error), exchange))
            }
        }
    }

    fn on_error(
        &mut self,
        error: Box<StatementError>,
        reply: Document<'_>,
        exchange: &mut Exchange<'_>,
    ) -> Result<Progress, Box<StatementError>> {
        let control = match &self.job {
            Job::Query(template) => template.control.as_ref(),
            Job::Execute(at) => self.statements[*at].template.control.as_ref(),
            _ => None,
        };
        let (commits, aborts) = match control {
            Some(Control::Commit { .. }) => (true, false),
            Some(Control::Abort { .. }) => (false, true),
            _ => (false, matches!(self.job, Job::RollBack)),
        };
        if commits && transaction::is_in_doubt(reply)? {
            let message = format!("whether the transaction was committed is not known: {}", error.message);
            return Err(Box::new(StatementError {
                class: Class::Connection,
                retry: Retry::Reconnect,
                message,
                ..*error
            }));
        }
        // Another server must be asked.
        if error.class == Class::Connection {
            if refusal::NOT_PRIMARY.contains(&error.code.number) {
                self.effect = Effect::Reads;
            }
            return Err(error);
        }
        if commits || aborts {
            self.transaction.end();
        }
        // Whatever was wrong with it, the transaction is over: most often an earlier error has ended it.
        if aborts {
            return Ok(self.answered(None, exchange));
        }
        // Writes before the one that failed were done.
        if !matches!(self.job, Job::Setup(..)) {
            self.reply.affected += number(reply, "n")?;
        }
        Ok(self.answered(Some(error), exchange))
    }

    /// An answer without an error to a statement.
    fn on_rows(&mut self, reply: Document<'_>, exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        let template: &Template = match &self.job {
            Job::Setup(_, template) | Job::Query(template) => template,
            Job::Execute(at) => &self.statements[*at].template,
            Job::None | Job::Load(_) | Job::RollBack => unreachable!("this job has no statement"),
        };
        if template.control.is_some() {
            self.transaction.end();
            return Ok(self.answered(None, exchange));
        }
        let labels = matches!(self.job, Job::Query(_));
        if template.reading == Reading::Written {
            self.reply.affected = number(reply, "n")?;
            return Ok(self.answered(None, exchange));
        }
        let is_first = self.reply.rows.is_none();
        let rows = self.reply.rows.get_or_insert_with(|| exchange.pool.take());
        let mut sheet = Sheet { rows, scratch: &mut self.scratch, counts: self.counts };
        let mut cursor = None;
        let filled = match template.reading {
            Reading::Written => unreachable!("it was answered above"),
            Reading::Modified => {
                sheet.begin(template, labels);
                self.reply.affected = number(reply.inner("lastErrorObject")?, "n")?;
                match reply.get("value")? {
                    Some(Bson::Document(found)) => sheet.document(found, &template.columns),
                    _ => Ok(()),
                }
            }
            Reading::Counted => {
                sheet.begin(template, labels);
                sheet.value(reply.get("n")?.unwrap_or(Bson::Null))
            }
            Reading::Distinct => {
                sheet.begin(template, labels);
                let values = reply.inner("values")?;
                values.elements().try_for_each(|element| sheet.value(element?.1))
            }
            Reading::Usual => match reply.get("cursor")? {
                Some(Bson::Document(found)) => {
                    if is_first {
                        sheet.begin(template, labels);
                    }
                    cursor = cursor_of(found)?;
                    let batch = found.inner(if is_first { "firstBatch" } else { "nextBatch" })?;
                    sheet.batch(batch, &template.columns)
                }
                _ => sheet.fields(reply, labels),
            },
        };
        match (filled, cursor) {
            (Ok(()), None) => {
                let has_no_fields = template.reading == Reading::Usual && reply.get("cursor")?.is_none();
                if has_no_fields && let Some(rows) = self.reply.rows.take_if(|rows| rows.is_empty()) {
                    exchange.pool.put(rows);
                }
                Ok(self.answered(None, exchange))
            }
            (Ok(()), Some((id, database, collection))) => {
                self.reply.rows.iter_mut().for_each(|rows| exchange.pool.relieve(rows));
                let command = get_more(id, database, collection);
                self.send_within(command, exchange);
                Ok(Progress::Pending)
            }
            (Err(Fault::Malformed), _) => Err(malformed()),
            (Err(Fault::TooLarge), cursor) => {
                let rows = self.reply.rows.take();
                rows.into_iter().for_each(|rows| exchange.pool.put(rows));
                let error = Box::new(StatementError::client(Class::Limit, "the result is larger than 4 GiB"));
                match cursor {
                    None => Ok(self.answered(Some(error), exchange)),
                    Some((id, database, collection)) => {
                        let command = kill_cursor(id, database, collection);
                        self.send_within(command, exchange);
                        self.phase = Phase::Killed(error);
                        Ok(Progress::Pending)
                    }
                }
            }
        }
    }

    /// Documents of a load were stored.
    fn on_loaded(&mut self, reply: Document<'_>, exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        self.reply.affected += number(reply, "n")?;
        let Job::Load(Load { rest, next }) = &mut self.job else { unreachable!("the caller has looked") };
        let Some(rows) = rest.take() else { return Ok(self.answered(None, exchange)) };
        let first = *next;
        Ok(self.send_rows(&rows, first, exchange))
    }

    /// Sends rows from `first` on, as many as the server accepts.
    fn send_rows(&mut self, rows: &Rows, first: usize, exchange: &mut Exchange<'_>) -> Progress {
        let (request, start) = (self.next_request(), exchange.out.len());
        let head = self.head.as_ref().expect("a load has a head");
        let transaction = self.transaction.elements(false);
        match load::write(head, (rows, first), self.limits, (request, transaction), exchange.out) {
            Ok(next) => {
                self.compress(start, exchange.out);
                self.transaction.on_sent();
                let rest = (next < rows.len(0)).then(|| Box::new(rows.clone()));
                self.job = Job::Load(Load { rest, next });
                self.phase = Phase::Answer;
                Progress::Pending
            }
            Err(error) => self.answered(Some(Box::new(error)), exchange),
        }
    }

    fn load(&mut self, (table, columns, rows): (&[u8], &[u8], &Rows), exchange: &mut Exchange<'_>) -> Progress {
        if !self.head.as_ref().is_some_and(|head| head.is_for(table, columns)) {
            match Head::new(table, columns, &self.server.additions) {
                Ok(head) => self.head = Some(head),
                Err(error) => return Progress::Reply(Reply::failed(error)),
            }
        }
        let width = self.head.as_ref().map_or(0, Head::width);
        if rows.columns(0) != width {
            let message = format!("{width} fields are named, and the rows have {} values", rows.columns(0));
            return refuse(Class::Syntax, message);
        }
        if rows.len(0) == 0 {
            return Progress::Reply(Reply::default());
        }
        self.effect = Effect::ChangesRows;
        self.send_rows(rows, 0, exchange)
    }

    fn read(&mut self, inbound: &mut Inbound, mut bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        let mut progress = Progress::Pending;
        loop {
            inbound.trusted = !matches!(self.phase, Phase::Closed | Phase::Securing | Phase::Login(_));
            inbound.compressed = inbound.trusted && self.limits.compressor.is_some();
            let result = match inbound.next(&mut bytes) {
                Ok(None) => return progress,
                Ok(Some(message)) if message::is_compressed(message) => self.on_compressed(message, exchange),
                Ok(Some(message)) => self.on_message(message, exchange),
                Err(error) => Err(error),
            };
            match result {
                Ok(Progress::Pending) => {}
                Ok(Progress::Failed(error)) => return Progress::Failed(error),
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
}

/// A statement without parameters.
fn compiled(text: &[u8], server: &MongoServer) -> Result<Template, Box<StatementError>> {
    let template = Template::new(text, &server.additions)?;
    match template.gaps() {
        0 => Ok(template),
        gaps => {
            let message = format!("the statement has {gaps} placeholders, and is executed without parameters");
            let mut error = StatementError::client(Class::Syntax, message);
            error.hint = Some("prepare it: con:prepare(text, types)".to_owned());
            Err(Box::new(error))
        }
    }
}

fn number(document: Document<'_>, name: &str) -> Result<u64, Box<StatementError>> {
    Ok(document.integer(name)?.and_then(|n| u64::try_from(n).ok()).unwrap_or_default())
}

type OpenCursor<'a> = (i64, &'a [u8], &'a [u8]);

/// Id, database and collection of a cursor that has more; `None`: it has ended.
fn cursor_of(cursor: Document<'_>) -> Result<Option<OpenCursor<'_>>, Box<StatementError>> {
    let id = cursor.integer("id")?.unwrap_or_default();
    if id == 0 {
        return Ok(None);
    }
    let name = cursor.text("ns")?.unwrap_or_default();
    let dot = name.iter().position(|byte| *byte == b'.').ok_or_else(|| violation("sent a cursor without its name"))?;
    Ok(Some((id, &name[..dot], &name[dot + 1..])))
}

fn get_more(id: i64, database: &[u8], collection: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let start = bson::begin(&mut out);
    bson::name(bson::INT64, b"getMore", &mut out);
    out.extend_from_slice(&id.to_le_bytes());
    bson::text_element("collection", collection, &mut out);
    bson::text_element("$db", database, &mut out);
    bson::end(start, &mut out);
    out
}

fn kill_cursor(id: i64, database: &[u8], collection: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let start = bson::begin(&mut out);
    bson::text_element("killCursors", collection, &mut out);
    bson::name(bson::ARRAY, b"cursors", &mut out);
    let list = bson::begin(&mut out);
    bson::name(bson::INT64, b"0", &mut out);
    out.extend_from_slice(&id.to_le_bytes());
    bson::end(list, &mut out);
    bson::text_element("$db", database, &mut out);
    bson::end(start, &mut out);
    out
}

fn abort() -> Vec<u8> {
    let mut out = Vec::new();
    let start = bson::begin(&mut out);
    bson::int_element("abortTransaction", 1, &mut out);
    bson::text_element("$db", b"admin", &mut out);
    bson::end(start, &mut out);
    out
}

fn refuse(class: Class, message: String) -> Progress {
    Progress::Reply(Reply::failed(StatementError::client(class, message)))
}

impl Connection for MongoConnection {
    fn in_transaction(&self) -> bool {
        self.transaction.is_open()
    }

    fn server(&self) -> ServerFacts {
        let (product, version) =
            self.server.version.get().cloned().unwrap_or_else(|| ("MongoDB".into(), String::new()));
        ServerFacts { product, version, tls: self.cipher.as_deref().map(str::to_owned), process: None }
    }

    fn members(&self) -> Vec<Endpoint> {
        self.members.clone()
    }

    fn on_connected(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        self.inbound = Inbound::default();
        if self.server.tls.mode == TlsMode::Disable {
            return self.start_login(exchange);
        }
        self.phase = Phase::Securing;
        Progress::StartTls
    }

    fn on_bytes(&mut self, bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        let mut inbound = std::mem::take(&mut self.inbound);
        let progress = self.read(&mut inbound, bytes, exchange);
        if !matches!(progress, Progress::Failed(_)) {
            self.inbound = inbound;
        }
        progress
    }

    fn on_secured(&mut self, tls: &TlsFacts, exchange: &mut Exchange<'_>) -> Progress {
        self.cipher = Some(tls.cipher.as_str().into());
        self.start_login(exchange)
    }

    fn on_closed(&mut self) -> bool {
        self.inbound = Inbound::default();
        self.phase = Phase::Closed;
        self.job = Job::None;
        self.cipher = None;
        self.reply = Reply::default();
        self.farewell = None;
        self.transaction.on_closed();
        // The login is never compressed.
        self.limits = Limits::default();
        false
    }

    fn on_timeout(&mut self, _: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress {
        if let Some(error) = self.farewell.take() {
            self.effect = Effect::Reads;
            return self.fail(error, exchange);
        }
        self.counts = operation.counts_rows();
        match *operation {
            Operation::Query { text, rows: RowsWanted::Keep | RowsWanted::Count } => match compiled(text, &self.server)
            {
                Ok(template) => {
                    self.job = Job::Query(Box::new(template));
                    self.execute_job(&[], exchange)
                }
                Err(error) => Progress::Reply(Reply { error: Some(error), ..Reply::default() }),
            },
            Operation::Prepare { statement, text } => match self.server.templates.get(text, &self.server.additions) {
                Ok(template) => {
                    let kept = Statement { id: statement, template };
                    match self.find(statement) {
                        Ok(at) => self.statements[at] = kept,
                        Err(at) => self.statements.insert(at, kept),
                    }
                    Progress::Reply(Reply::default())
                }
                Err(error) => Progress::Reply(Reply::failed(error)),
            },
            Operation::Execute { statement, parameters, .. } => match self.find(statement) {
                Ok(at) => {
                    self.job = Job::Execute(at);
                    self.execute_job(parameters, exchange)
                }
                Err(_) => refuse(Class::Other, format!("there is no prepared statement {}", statement.0)),
            },
            Operation::Close { statement } => {
                if let Ok(at) = self.find(statement) {
                    self.statements.remove(at);
                }
                Progress::Reply(Reply::default())
            }
            Operation::RollBack => self.roll_back(exchange),
            Operation::Load { table, columns, rows, .. } => self.load((table, columns, rows), exchange),
        }
    }

    fn has_sent_rows(&self) -> bool {
        matches!((&self.phase, &self.job), (Phase::Answer, Job::Load(Load { rest: None, .. })))
    }

    /// The protocol has no goodbye.
    fn close(&mut self, _: &mut Exchange<'_>) {}
}
