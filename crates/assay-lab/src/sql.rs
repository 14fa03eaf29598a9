//! A blocking SQL client on the wire protocols, for the few queries that a server needs, so that no client has to be
//! installed.
//!
//! For administration only: readiness, settings, checkpoints. Nothing here is measured.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use assay_seam::{
    Cell, ConnectOptions, Connection, Driver, Endpoint, Exchange, Nanos, NoSurroundings, Operation, Progress, Reply,
    Rows, RowsPool,
};

/// A connection to a server.
pub struct SqlClient {
    stream: Box<dyn Stream>,
    machine: Box<dyn Connection>,
    pool: RowsPool,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// One row, each value as text; `None`: NULL.
pub type Row = Vec<Option<String>>;

impl SqlClient {
    /// Connects and logs in. `patience` limits every single wait for the server, here and later. The error is the
    /// server's or the system's own message.
    pub fn open(driver: &Driver, url: &str, patience: Duration) -> Result<SqlClient, String> {
        let options = ConnectOptions { prepared: false, ..ConnectOptions::default() };
        let database = (driver.open)(url, &options, &NoSurroundings).map_err(|error| error.to_string())?;
        let words = |error: std::io::Error| error.to_string();
        let stream: Box<dyn Stream> = match database.endpoints().into_iter().next() {
            Some(Endpoint::Unix(path)) => {
                let stream = UnixStream::connect(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                stream.set_read_timeout(Some(patience)).map_err(words)?;
                Box::new(stream)
            }
            Some(Endpoint::Tcp { host, port }) => {
                let stream = TcpStream::connect((host, port)).map_err(words)?;
                stream.set_read_timeout(Some(patience)).map_err(words)?;
                stream.set_nodelay(true).map_err(words)?;
                Box::new(stream)
            }
            Some(Endpoint::Embedded) | None => return Err("it has no socket".to_owned()),
        };
        let mut session = SqlClient { stream, machine: database.connection(), pool: RowsPool::default() };
        session.work(|machine, exchange| machine.on_connected(exchange))?;
        Ok(session)
    }

    /// Runs a statement and returns the rows of its first result set, if it has one.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>, String> {
        let operation = Operation::Query { text: sql.as_bytes() };
        let reply = self.work(|machine, exchange| machine.execute(&operation, exchange))?;
        if let Some(error) = reply.error {
            return Err(format!("{} ({})", error.message, error.code));
        }
        Ok(reply.rows.map_or_else(Vec::new, |rows| text_of(&rows)))
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

    /// Feeds the connection until it is ready or has answered.
    fn work(
        &mut self,
        begin: impl FnOnce(&mut dyn Connection, &mut Exchange<'_>) -> Progress,
    ) -> Result<Reply, String> {
        let mut out = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        let SqlClient { stream, machine, pool } = self;
        let mut progress = begin(&mut **machine, &mut Exchange { out: &mut out, pool, now: Nanos::ZERO });
        loop {
            stream.write_all(&out).map_err(|error| error.to_string())?;
            out.clear();
            match progress {
                Progress::Ready => return Ok(Reply::default()),
                Progress::Reply(reply) => return Ok(reply),
                Progress::Pending => {}
                Progress::Failed(error) => return Err(format!("{} ({})", error.message, error.code)),
                Progress::StartTls | Progress::Reconnect | Progress::Wait(_) => {
                    return Err("the server requires a login method that is not supported here".to_owned());
                }
            }
            let length = stream.read(&mut buffer).map_err(|error| match error.kind() {
                std::io::ErrorKind::WouldBlock => "no answer in time".to_owned(),
                _ => error.to_string(),
            })?;
            if length == 0 {
                return Err("the server closed the connection".to_owned());
            }
            let mut exchange = Exchange { out: &mut out, pool, now: Nanos::ZERO };
            progress = machine.on_bytes(&buffer[..length], &mut exchange);
        }
    }
}

impl Drop for SqlClient {
    fn drop(&mut self) {
        let mut out = Vec::new();
        let mut exchange = Exchange { out: &mut out, pool: &mut self.pool, now: Nanos::ZERO };
        self.machine.close(&mut exchange);
        // A goodbye that does not arrive does not matter.
        let _ = self.stream.write_all(&out);
    }
}

fn text_of(rows: &Rows) -> Vec<Row> {
    if rows.sets() == 0 {
        return Vec::new();
    }
    let text = |cell: Cell<'_>| match cell {
        Cell::Null => None,
        Cell::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Cell::Int(value) => Some(value.to_string()),
        Cell::Double(value) => Some(value.to_string()),
    };
    let cell = |row, column| rows.cell(0, row, column).and_then(text);
    (0..rows.len(0)).map(|row| (0..rows.columns(0)).map(|column| cell(row, column)).collect()).collect()
}
