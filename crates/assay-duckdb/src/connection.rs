//! One connection to a database file: every operation is answered inline.

use std::collections::HashMap;
use std::sync::Arc;

use assay_seam::{
    Class, Connection, Exchange, Interrupter, Operation, Progress, Reply, Rows, RowsPool, ServerFacts, StatementError,
    StatementId, TlsFacts, Value,
};

use crate::client::{Client, Outcome, Prepared};
use crate::settings::FileSettings;
use crate::values::Values;

/// A connection that runs inside this process.
pub(crate) struct DuckConnection {
    settings: Arc<FileSettings>,
    /// The text of every prepared statement; outlives `open`.
    texts: HashMap<StatementId, Box<[u8]>>,
    open: Option<Open>,
    version: String,
}

/// An open session. Everything here ends with it, statements first.
struct Open {
    prepared: HashMap<StatementId, Prepared>,
    client: Client,
    session: Session,
}

/// What a session remembers between statements.
#[derive(Default)]
struct Session {
    in_transaction: bool,
    scratch: Vec<u8>,
}

/// What an operation has returned so far.
#[derive(Default)]
struct Partial {
    /// Whether rows are only counted.
    counts: bool,
    rows: Option<Box<Rows>>,
    affected: u64,
}

impl DuckConnection {
    pub(crate) fn new(settings: Arc<FileSettings>) -> DuckConnection {
        DuckConnection { settings, texts: HashMap::new(), open: None, version: String::new() }
    }

    fn connect(&mut self, pool: &mut RowsPool) -> Result<(), StatementError> {
        let client = Client::new(&self.settings)?;
        self.version = client.version();
        let mut open = Open { prepared: HashMap::new(), client, session: Session::default() };
        for sql in &self.settings.session_sql {
            open.query(sql.as_bytes(), &mut Partial::default(), pool)?;
        }
        self.open = Some(open);
        Ok(())
    }

    fn attempt(
        &mut self,
        operation: &Operation<'_>,
        partial: &mut Partial,
        pool: &mut RowsPool,
    ) -> Result<(), StatementError> {
        if let Operation::Close { statement } = operation {
            self.texts.remove(statement);
            self.open.as_mut().and_then(|open| open.prepared.remove(statement));
            return Ok(());
        }
        let keeps = self.settings.prepared;
        let Some(open) = &mut self.open else {
            return Err(StatementError::network("the database file is not open"));
        };
        partial.counts = operation.counts_rows();
        match *operation {
            Operation::Query { text, .. } => open.query(text, partial, pool),
            Operation::Prepare { statement, text } => {
                self.texts.insert(statement, text.into());
                if keeps {
                    open.prepared.insert(statement, open.prepare(text)?);
                }
                Ok(())
            }
            Operation::Execute { statement, parameters, .. } => {
                let Some(text) = self.texts.get(&statement) else {
                    let message = format!("statement {} was never prepared", statement.0);
                    return Err(StatementError::client(Class::Other, message));
                };
                // Missing after a reconnect, or if statements are not kept.
                let prepared = match open.prepared.remove(&statement) {
                    Some(prepared) => prepared,
                    None => open.prepare(text)?,
                };
                let result = open.session.run(&prepared, parameters, partial, pool);
                if keeps {
                    open.prepared.insert(statement, prepared);
                }
                result
            }
            Operation::RollBack => open.query(b"ROLLBACK", partial, pool),
            Operation::Load { table, columns, rows, .. } => {
                partial.affected = open.load(table, columns, rows, pool)?;
                Ok(())
            }
            Operation::Close { .. } => unreachable!("answered above"),
        }
    }
}

impl Connection for DuckConnection {
    fn in_transaction(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.session.in_transaction)
    }

    fn interrupter(&self) -> Option<Interrupter> {
        self.open.as_ref().map(|open| open.client.interrupter())
    }

    fn server(&self) -> ServerFacts {
        ServerFacts { product: "DuckDB".into(), version: self.version.clone(), ..ServerFacts::default() }
    }

    fn on_connected(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        match self.connect(exchange.pool) {
            Ok(()) => Progress::Ready,
            Err(error) => Progress::Failed(Box::new(error)),
        }
    }

    fn on_bytes(&mut self, _: &[u8], _: &mut Exchange<'_>) -> Progress {
        no_socket()
    }

    fn on_secured(&mut self, _: &TlsFacts, _: &mut Exchange<'_>) -> Progress {
        no_socket()
    }

    fn on_closed(&mut self) -> bool {
        self.open = None;
        false
    }

    fn on_timeout(&mut self, _: &mut Exchange<'_>) -> Progress {
        no_socket()
    }

    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress {
        let mut partial = Partial::default();
        let error = self.attempt(operation, &mut partial, exchange.pool).err();
        let Partial { rows, affected, .. } = partial;
        Progress::Reply(Reply { rows, affected, error: error.map(Box::new) })
    }

    fn close(&mut self, _: &mut Exchange<'_>) {
        self.on_closed();
    }
}

impl Open {
    fn query(&mut self, sql: &[u8], partial: &mut Partial, pool: &mut RowsPool) -> Result<(), StatementError> {
        let statements = self.client.statements(sql)?;
        for index in 0..statements.len() {
            self.session.run(&statements.prepare(index)?, &[], partial, pool)?;
        }
        Ok(())
    }

    fn prepare(&self, sql: &[u8]) -> Result<Prepared, StatementError> {
        let statements = self.client.statements(sql)?;
        match statements.len() {
            1 => statements.prepare(0),
            _ => Err(StatementError::client(Class::Syntax, "a prepared statement must be a single statement")),
        }
    }

    /// All rows or none.
    fn load(&mut self, table: &[u8], columns: &[u8], rows: &Rows, pool: &mut RowsPool) -> Result<u64, StatementError> {
        let named = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec())
                .map_err(|_| StatementError::client(Class::Syntax, "a name is not valid UTF-8"))
        };
        let (table, columns) = (named(table)?, named(columns)?);
        let own = !self.session.in_transaction;
        let mut command = |open: &mut Open, sql: &str| open.query(sql.as_bytes(), &mut Partial::default(), pool);
        if own {
            command(self, "BEGIN")?;
        }
        let mut loaded = self.append(&table, &columns, rows);
        if own && loaded.is_ok() {
            loaded = command(self, "COMMIT");
        }
        if own && loaded.is_err() && self.session.in_transaction {
            // Refused only if there is nothing left to undo.
            let _ = command(self, "ROLLBACK");
        }
        loaded?;
        Ok(rows.len(0) as u64)
    }

    fn append(&self, table: &str, columns: &str, rows: &Rows) -> Result<(), StatementError> {
        let mut loader = self.client.loader(table, columns)?;
        for row in 0..rows.len(0) {
            loader.row((0..rows.columns(0)).map(|column| rows.cell(0, row, column).expect("it is in range")))?;
        }
        loader.done()
    }
}

impl Session {
    fn run(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        partial: &mut Partial,
        pool: &mut RowsPool,
    ) -> Result<(), StatementError> {
        let result = prepared.execute(parameters.iter().copied());
        if prepared.is_of_transaction() {
            // DuckDB refuses to begin within a transaction, and to end what has not begun: it changes sides, and a
            // commit that fails has undone the transaction.
            let stays = result.as_ref().is_err_and(|error| error.message.contains("within a transaction"));
            self.in_transaction = if result.is_ok() { !self.in_transaction } else { self.in_transaction && stays };
        }
        let mut outcome = result?;
        partial.affected += outcome.changed();
        self.read(&mut outcome, parameters.is_empty(), partial, pool)
    }

    /// `is_text`: names of columns are reported for statements sent as text.
    fn read(
        &mut self,
        outcome: &mut Outcome,
        is_text: bool,
        partial: &mut Partial,
        pool: &mut RowsPool,
    ) -> Result<(), StatementError> {
        let Some(columns) = outcome.columns()? else { return Ok(()) };
        let rows = partial.rows.get_or_insert_with(|| pool.take());
        rows.begin_set(if partial.counts { 0 } else { columns.len() });
        if is_text && !partial.counts {
            columns.iter().for_each(|column| rows.push_label(column.name.as_bytes()));
        }
        while let Some(chunk) = outcome.chunk() {
            if partial.counts {
                (0..chunk.rows()).for_each(|_| rows.push_bare_row());
                continue;
            }
            let vectors = columns.iter().enumerate();
            // SAFETY: the chunk outlives them.
            let vectors: Vec<Values> =
                vectors.map(|(index, column)| unsafe { Values::new(column, chunk.vector(index)) }).collect();
            for row in 0..chunk.rows() {
                for vector in &vectors {
                    // SAFETY: the chunk has this row.
                    unsafe { vector.push(row, &mut self.scratch, rows)? };
                }
            }
            pool.relieve(rows);
        }
        Ok(())
    }
}

fn no_socket() -> Progress {
    Progress::Failed(Box::new(StatementError::client(Class::Protocol, "an embedded database has no socket")))
}
