//! One connection to a database file: operations are answered inline, waits for locks happen outside.
//!
//! Prepared statements are kept by SQL text in rusqlite's cache, which is made large enough for all of them; two ids
//! with the same text share one. This file keeps the text of each id, so that it outlives the file handle.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use assay_random::Random;
use assay_seam::{
    Class, Connection, Exchange, Interrupter, Nanos, Operation, Origin, Progress, Reply, Retry, Rows, RowsPool,
    RowsWanted, ServerFacts, StatementError, StatementId, TlsFacts, Value,
};
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Batch, OpenFlags, Statement, TransactionState};

use crate::failure;
use crate::settings::{FileSettings, PragmaValue};
use crate::split::statement_end;

/// A connection that runs inside this process.
pub(crate) struct SqliteConnection {
    settings: Arc<FileSettings>,
    open: Option<Open>,
    /// The text of every prepared statement; outlives `open`.
    texts: HashMap<StatementId, Arc<str>>,
    /// The operation that waits for a lock, and since when.
    waiting: Waiting,
    random: Random,
}

/// An open file. Everything here ends with it.
struct Open {
    sqlite: rusqlite::Connection,
    path: String,
    /// Whether to keep statements prepared (`ConnectOptions::prepared`).
    prepared: bool,
    /// The capacity of `sqlite`'s statement cache.
    cache: usize,
    /// The text of a load's INSERT, kept for its memory.
    insert: String,
}

/// What an operation has done so far: a text of several statements may meet a lock in the middle.
#[derive(Default)]
struct Partial {
    /// Bytes of the text that have been executed.
    consumed: usize,
    /// Whether rows are only counted.
    counts: bool,
    rows: Option<Box<Rows>>,
    affected: u64,
}

/// An operation that waits for a lock: a copy of it, whose buffers are reused.
#[derive(Default)]
struct Waiting {
    work: Work,
    partial: Partial,
    since: Nanos,
    tries: u32,
    text: Vec<u8>,
    parameters: Vec<Parameter>,
    load: Rows,
    rows: RowsWanted,
}

#[derive(Clone, Copy, Default)]
enum Work {
    #[default]
    Open,
    Query,
    Prepare(StatementId),
    Execute(StatementId),
    Close(StatementId),
    RollBack,
    /// `text` is the table; from here on, the columns.
    Load(usize),
}

/// A `Value` whose text is in `Waiting::text`.
#[derive(Clone, Copy)]
enum Parameter {
    Null,
    Int(i64),
    Double(f64),
    Text { start: usize, end: usize, is_binary: bool },
}

/// The first pause; each further one is twice as long, up to 2⁶ times.
const PAUSE_MIN: Nanos = Nanos::from_micros(50);
const PAUSE_DOUBLINGS_MAX: u32 = 6;

impl SqliteConnection {
    /// `number`: the connection's number in its database; determines its pauses.
    pub(crate) fn new(settings: Arc<FileSettings>, number: u64) -> SqliteConnection {
        let random = Random::new(number);
        SqliteConnection { settings, open: None, texts: HashMap::new(), waiting: Waiting::default(), random }
    }

    /// Runs an operation as far as possible now. On an error, `partial` says how far it got.
    fn attempt<'v>(
        &mut self,
        operation: Operation<'_>,
        parameters: impl ExactSizeIterator<Item = Value<'v>>,
        partial: &mut Partial,
        pool: &mut RowsPool,
    ) -> Result<(), StatementError> {
        if let Operation::Close { statement } = operation {
            // The cache drops the statement itself when it needs the space.
            self.texts.remove(&statement);
            return Ok(());
        }
        let Some(open) = &mut self.open else {
            return Err(StatementError::network("the database file is not open"));
        };
        partial.counts = operation.counts_rows();
        match operation {
            Operation::Query { text: sql, .. } => open.query(utf8(sql)?, partial, pool),
            Operation::Prepare { statement, text: sql } => {
                let sql = utf8(sql)?;
                self.texts.insert(statement, sql.into());
                open.prepare(sql, self.texts.len())
            }
            Operation::Execute { statement, .. } => match self.texts.get(&statement) {
                Some(sql) => open.execute(sql, parameters, partial, pool),
                None => {
                    let message = format!("statement {} was never prepared", statement.0);
                    Err(StatementError::client(Class::Other, message))
                }
            },
            Operation::RollBack => open.query("ROLLBACK", partial, pool),
            Operation::Load { table, columns, rows, .. } => {
                partial.affected = open.load(utf8(table)?, utf8(columns)?, rows)?;
                Ok(())
            }
            Operation::Close { .. } => unreachable!("answered above"),
        }
    }

    /// Turns the result of an attempt into an answer, or into a pause. `first`: the operation, on its first attempt.
    fn settle(
        &mut self,
        result: Result<(), StatementError>,
        partial: Partial,
        first: Option<&Operation<'_>>,
        now: Nanos,
    ) -> Progress {
        let mut error = result.err();
        if let Some(busy) = error.take_if(|error| error.class == Class::Busy) {
            if let Some(operation) = first {
                self.waiting.begin(operation, now);
            }
            let hopeless = self.open.as_ref().and_then(Open::hopeless);
            match hopeless.map_or_else(|| self.pause(now, busy), Err) {
                Ok(wait) => {
                    self.waiting.partial = partial;
                    return wait;
                }
                Err(refusal) => error = Some(refusal),
            }
        }
        let Partial { rows, affected, .. } = partial;
        Progress::Reply(Reply { rows, affected, error: error.map(Box::new) })
    }

    /// Asks for a pause before the operation in `waiting` is tried again; gives up if it has waited for too long.
    fn pause(&mut self, now: Nanos, error: StatementError) -> Result<Progress, StatementError> {
        let waited = now - self.waiting.since;
        if waited >= self.settings.busy_timeout {
            let hint =
                Some("use fewer writing sessions, shorter transactions, or a larger busy_timeout= in the URL".into());
            return Err(StatementError { message: format!("{} for {waited}", error.message), hint, ..error });
        }
        let doublings = self.waiting.tries.min(PAUSE_DOUBLINGS_MAX);
        self.waiting.tries += 1;
        // Half to one and a half times the nominal pause, so that connections that met diverge again.
        let nominal = PAUSE_MIN.0 << doublings;
        Ok(Progress::Wait(Nanos(nominal / 2 + self.random.below(nominal))))
    }

    fn try_to_open(&mut self, now: Nanos) -> Progress {
        let error = match Open::new(&self.settings, self.texts.len()) {
            Ok(open) => {
                self.open = Some(open);
                return Progress::Ready;
            }
            Err(error) if error.class == Class::Busy => match self.pause(now, error) {
                Ok(wait) => return wait,
                Err(error) => error,
            },
            Err(error) => error,
        };
        Progress::Failed(Box::new(error))
    }
}

impl Connection for SqliteConnection {
    fn in_transaction(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.sqlite.is_autocommit())
    }

    fn server(&self) -> ServerFacts {
        ServerFacts { product: "SQLite".into(), version: rusqlite::version().into(), ..ServerFacts::default() }
    }

    fn interrupter(&self) -> Option<Interrupter> {
        let handle = self.open.as_ref()?.sqlite.get_interrupt_handle();
        Some(Arc::new(move || handle.interrupt()))
    }

    fn on_connected(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        self.waiting = Waiting { since: exchange.now, ..Waiting::default() };
        self.try_to_open(exchange.now)
    }

    fn on_bytes(&mut self, _: &[u8], _: &mut Exchange<'_>) -> Progress {
        no_socket()
    }

    fn on_secured(&mut self, _: &TlsFacts, _: &mut Exchange<'_>) -> Progress {
        no_socket()
    }

    fn on_closed(&mut self) -> bool {
        self.open = None;
        self.waiting.partial = Partial::default();
        false
    }

    fn on_timeout(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        if let Work::Open = self.waiting.work {
            return self.try_to_open(exchange.now);
        }
        // Taken out while it runs, because the attempt needs the rest of `self`; moving it copies no buffer.
        let mut waiting = mem::take(&mut self.waiting);
        let mut partial = mem::take(&mut waiting.partial);
        let result = self.attempt(waiting.operation(), waiting.values(), &mut partial, exchange.pool);
        self.waiting = waiting;
        self.settle(result, partial, None, exchange.now)
    }

    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress {
        let parameters = if let Operation::Execute { parameters, .. } = operation { *parameters } else { &[] };
        let mut partial = Partial::default();
        let result = self.attempt(*operation, parameters.iter().copied(), &mut partial, exchange.pool);
        self.settle(result, partial, Some(operation), exchange.now)
    }

    fn close(&mut self, _: &mut Exchange<'_>) {
        self.on_closed();
    }
}

impl Open {
    fn new(settings: &FileSettings, statements: usize) -> Result<Open, StatementError> {
        let failed = |error| failure::from_sqlite(error, &settings.path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let sqlite = rusqlite::Connection::open_with_flags(settings.file(), flags).map_err(failed)?;
        sqlite.busy_timeout(Duration::ZERO).map_err(failed)?;
        for (name, value) in settings.pragmas() {
            match value {
                PragmaValue::Number(number) => sqlite.pragma_update(None, name, number).map_err(failed)?,
                PragmaValue::Word(word) => sqlite.pragma_update(None, name, word).map_err(failed)?,
            }
            if let ("journal_mode", PragmaValue::Word(word)) = (name, value) {
                // SQLite answers with the old mode if it cannot change it, for example WAL on a network file system.
                let mode: String = sqlite.pragma_query_value(None, name, |row| row.get(0)).map_err(failed)?;
                if mode != word {
                    let message = format!("{} cannot use journal_mode {word}, it stays {mode}", settings.path);
                    return Err(StatementError::client(Class::Other, message));
                }
            }
        }
        let mut open =
            Open { sqlite, path: settings.path.clone(), prepared: settings.prepared, cache: 0, insert: String::new() };
        open.grow_cache(statements);
        let (mut partial, mut pool) = (Partial::default(), RowsPool::default());
        for sql in &settings.session_sql {
            partial.consumed = 0;
            open.query(sql, &mut partial, &mut pool)?;
        }
        Ok(open)
    }

    fn query(&mut self, sql: &str, partial: &mut Partial, pool: &mut RowsPool) -> Result<(), StatementError> {
        while partial.consumed < sql.len() {
            let rest = &sql[partial.consumed..];
            let first = &rest[..statement_end(rest)];
            let statement = Batch::new(&self.sqlite, first).next().map_err(|error| self.failed(error))?;
            if let Some(mut statement) = statement {
                self.run(&mut statement, std::iter::empty(), partial, pool)?;
            }
            partial.consumed += first.len();
        }
        Ok(())
    }

    /// `statements`: their number now, including this one.
    fn prepare(&mut self, sql: &str, statements: usize) -> Result<(), StatementError> {
        if !self.prepared {
            return Ok(());
        }
        self.grow_cache(statements);
        self.sqlite.prepare_cached(sql).map_err(|error| self.failed(error))?;
        Ok(())
    }

    fn execute<'v>(
        &mut self,
        sql: &str,
        parameters: impl ExactSizeIterator<Item = Value<'v>>,
        partial: &mut Partial,
        pool: &mut RowsPool,
    ) -> Result<(), StatementError> {
        if self.prepared {
            let mut statement = self.sqlite.prepare_cached(sql).map_err(|error| self.failed(error))?;
            self.run(&mut statement, parameters, partial, pool)
        } else {
            let mut statement = self.sqlite.prepare(sql).map_err(|error| self.failed(error))?;
            self.run(&mut statement, parameters, partial, pool)
        }
    }

    /// Binds, steps to the end, and collects rows. A lock at the first step leaves everything unchanged.
    fn run<'v>(
        &self,
        statement: &mut Statement<'_>,
        parameters: impl ExactSizeIterator<Item = Value<'v>>,
        partial: &mut Partial,
        pool: &mut RowsPool,
    ) -> Result<(), StatementError> {
        let failed = |error| self.failed(error);
        if statement.parameter_count() != parameters.len() {
            let message = format!(
                "the statement has {} placeholders, {} values were given",
                statement.parameter_count(),
                parameters.len()
            );
            return Err(StatementError::client(Class::Syntax, message));
        }
        let is_text = parameters.len() == 0;
        for (i, value) in parameters.enumerate() {
            statement.raw_bind_parameter(i + 1, bound(value)).map_err(failed)?;
        }
        let changes_before = self.sqlite.total_changes();
        let columns = statement.column_count();
        if columns == 0 {
            statement.raw_execute().map_err(failed)?;
        } else {
            let mut found = statement.raw_query();
            let mut row = found.next().map_err(failed)?;
            let rows = partial.rows.get_or_insert_with(|| pool.take());
            let kept = if partial.counts { 0 } else { columns };
            rows.begin_set(kept);
            // Names are reported for statements sent as text.
            if let Some(first) = row.filter(|_| is_text && !partial.counts) {
                let statement: &Statement<'_> = first.as_ref();
                for column in 0..columns {
                    rows.push_label(statement.column_name(column).unwrap_or_default().as_bytes());
                }
            }
            while let Some(this) = row {
                if partial.counts {
                    rows.push_bare_row();
                }
                for column in 0..kept {
                    match this.get_ref(column).map_err(failed)? {
                        ValueRef::Null => rows.push_null(),
                        ValueRef::Integer(value) => rows.push_int(value),
                        ValueRef::Real(value) => rows.push_double(value),
                        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                            rows.push_text(bytes).map_err(|_| too_large())?
                        }
                    }
                }
                pool.relieve(rows);
                row = found.next().map_err(|error| unfinished(self.failed(error)))?;
            }
        }
        // `changes` alone would repeat the number of the last statement that changed something.
        if self.sqlite.total_changes() != changes_before {
            partial.affected += self.sqlite.changes();
        }
        Ok(())
    }

    /// All rows or none. A lock met anywhere undoes the load.
    fn load(&mut self, table: &str, columns: &str, rows: &Rows) -> Result<u64, StatementError> {
        self.insert.clear();
        let places = vec!["?"; rows.columns(0)].join(",");
        let columns = if columns.is_empty() { String::new() } else { format!("({columns})") };
        write!(self.insert, "INSERT INTO {table}{columns} VALUES({places})").expect("writing to a String succeeds");
        let (begin, commit, undo) = if self.sqlite.is_autocommit() {
            ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
        } else {
            ("SAVEPOINT assay_load", "RELEASE assay_load", "ROLLBACK TO assay_load; RELEASE assay_load")
        };
        let result = self
            .sqlite
            .execute_batch(begin)
            .and_then(|()| self.insert_rows(rows))
            .and_then(|()| self.sqlite.execute_batch(commit));
        if let Err(error) = result {
            let error = self.failed(error);
            // Refused if `begin` was refused, or if SQLite has already rolled back; either way nothing is left to undo.
            let _ = self.sqlite.execute_batch(undo);
            return Err(error);
        }
        Ok(rows.len(0) as u64)
    }

    fn insert_rows(&self, rows: &Rows) -> rusqlite::Result<()> {
        let mut statement = self.sqlite.prepare_cached(&self.insert)?;
        for row in 0..rows.len(0) {
            for column in 0..rows.columns(0) {
                let value = match rows.cell(0, row, column).expect("row and column are in range") {
                    assay_seam::Cell::Null => Value::Null,
                    assay_seam::Cell::Int(value) => Value::Int(value),
                    assay_seam::Cell::Double(value) => Value::Double(value),
                    assay_seam::Cell::Text(text) => Value::Text(text),
                };
                statement.raw_bind_parameter(column + 1, bound(value))?;
            }
            statement.raw_execute()?;
        }
        Ok(())
    }

    /// A lock that waiting cannot open: a transaction that has started to read wants to write. Whoever holds the lock
    /// either commits, which makes the snapshot stale, or (without WAL) waits for this reader.
    fn hopeless(&self) -> Option<StatementError> {
        let reader = matches!(self.sqlite.transaction_state(None::<&str>), Ok(TransactionState::Read));
        (reader && !self.sqlite.is_autocommit()).then(|| StatementError {
            origin: Origin::Server,
            class: Class::Serialization,
            code: assay_seam::Code { number: rusqlite::ffi::SQLITE_BUSY as u32, state: String::new() },
            retry: Retry::AfterBackoff,
            message: "database is locked by another writer, and this transaction has already read".into(),
            position: 0,
            hint: Some(failure::UPGRADE.into()),
            details: String::new(),
        })
    }

    /// The cache holds all prepared statements and the INSERT of loads; it grows in steps, as shrinking would drop
    /// some.
    fn grow_cache(&mut self, statements: usize) {
        if statements + 1 > self.cache {
            self.cache = (statements + 1).next_power_of_two().max(16);
            self.sqlite.set_prepared_statement_cache_capacity(self.cache);
        }
    }

    fn failed(&self, error: rusqlite::Error) -> StatementError {
        failure::from_sqlite(error, &self.path)
    }
}

impl Waiting {
    /// Keeps a copy of `operation`.
    fn begin(&mut self, operation: &Operation<'_>, now: Nanos) {
        self.since = now;
        self.tries = 0;
        self.text.clear();
        self.parameters.clear();
        self.work = match *operation {
            Operation::Query { text: sql, rows } => {
                self.text.extend_from_slice(sql);
                self.rows = rows;
                Work::Query
            }
            Operation::Prepare { statement, text: sql } => {
                self.text.extend_from_slice(sql);
                Work::Prepare(statement)
            }
            Operation::Execute { statement, parameters, rows } => {
                self.rows = rows;
                for value in parameters {
                    self.parameters.push(match *value {
                        Value::Null => Parameter::Null,
                        Value::Int(value) => Parameter::Int(value),
                        Value::Double(value) => Parameter::Double(value),
                        Value::Text(text) | Value::Bytes(text) => {
                            let start = self.text.len();
                            self.text.extend_from_slice(text);
                            let end = self.text.len();
                            Parameter::Text { start, end, is_binary: matches!(value, Value::Bytes(_)) }
                        }
                    });
                }
                Work::Execute(statement)
            }
            Operation::Close { statement } => Work::Close(statement),
            Operation::RollBack => Work::RollBack,
            Operation::Load { table, columns, rows, .. } => {
                self.text.extend_from_slice(table);
                self.text.extend_from_slice(columns);
                self.load = rows.clone();
                Work::Load(table.len())
            }
        };
    }

    /// What was kept. The parameters of an `Execute` come from `values`.
    fn operation(&self) -> Operation<'_> {
        match self.work {
            Work::Open => unreachable!("opening is no operation"),
            Work::Query => Operation::Query { text: &self.text, rows: self.rows },
            Work::Prepare(statement) => Operation::Prepare { statement, text: &self.text },
            Work::Execute(statement) => Operation::Execute { statement, parameters: &[], rows: self.rows },
            Work::Close(statement) => Operation::Close { statement },
            Work::RollBack => Operation::RollBack,
            Work::Load(columns) => Operation::Load {
                table: &self.text[..columns],
                columns: &self.text[columns..],
                rows: &self.load,
                frozen: false,
            },
        }
    }

    fn values(&self) -> impl ExactSizeIterator<Item = Value<'_>> {
        self.parameters.iter().map(|parameter| match *parameter {
            Parameter::Null => Value::Null,
            Parameter::Int(value) => Value::Int(value),
            Parameter::Double(value) => Value::Double(value),
            Parameter::Text { start, end, is_binary: true } => Value::Bytes(&self.text[start..end]),
            Parameter::Text { start, end, is_binary: false } => Value::Text(&self.text[start..end]),
        })
    }
}

fn bound(value: Value<'_>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match value {
        Value::Null => ValueRef::Null,
        Value::Int(value) => ValueRef::Integer(value),
        Value::Double(value) => ValueRef::Real(value),
        Value::Text(text) => ValueRef::Text(text),
        Value::Bytes(bytes) => ValueRef::Blob(bytes),
    })
}

fn utf8(sql: &[u8]) -> Result<&str, StatementError> {
    std::str::from_utf8(sql).map_err(|_| {
        StatementError::client(Class::Syntax, "the statement is not valid UTF-8; pass binary data as parameters")
    })
}

fn too_large() -> StatementError {
    StatementError::client(Class::Limit, "the result is larger than 4 GiB")
}

/// A lock after rows were returned cannot be waited for: the statement would return those rows twice.
fn unfinished(error: StatementError) -> StatementError {
    let class = if error.class == Class::Busy { Class::Serialization } else { error.class };
    StatementError { class, ..error }
}

fn no_socket() -> Progress {
    Progress::Failed(Box::new(StatementError::client(Class::Protocol, "an embedded database has no socket")))
}
