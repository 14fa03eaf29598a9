//! Asks a server for its settings, for the record.
//!
//! On one connection of its own, after the run, so that it takes nothing from the measured sessions: no connection slot and
//! no time. Not being told is no error: the record then has no settings.

use std::collections::BTreeMap;

use assay_engine::Target;
use assay_io::clock::Clock;
use assay_io::readiness::Readiness;
use assay_io::{Address, Event, Io, SocketId};
use assay_seam::{Cell, Connection, Exchange, Nanos, Operation, Progress, Rows, RowsPool};

/// A server that has not answered by then is not waited for.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// The settings of one server, by name; empty when it would not say.
pub fn read(target: &Target) -> BTreeMap<String, String> {
    let Some(sql) = target.database.settings_query() else { return BTreeMap::new() };
    let answer = match target.addresses.as_slice() {
        [] => ask(target, None, sql),
        addresses => addresses.iter().find_map(|address| ask(target, Some(address), sql)),
    };
    answer.map_or_else(BTreeMap::new, |rows| pairs(&rows))
}

fn ask(target: &Target, address: Option<&Address>, sql: &str) -> Option<Box<Rows>> {
    let io = Readiness::new(Clock::start(), 1).ok()?;
    let deadline = io.now() + PATIENCE;
    let connection = target.database.connection();
    let mut call = Call { io, connection, socket: None, out: Vec::new(), pool: RowsPool::default() };
    let mut progress = call.connect(target, address)?;
    let mut asked = false;
    loop {
        call.send();
        progress = match progress {
            Progress::Ready if !asked => {
                asked = true;
                call.step(|connection, exchange| {
                    connection.execute(&Operation::Query { sql: sql.as_bytes() }, exchange)
                })
            }
            Progress::Ready => return None,
            Progress::Reply(reply) => {
                call.close();
                return reply.rows;
            }
            Progress::Failed(_) => return None,
            Progress::Reconnect => call.connect(target, address)?,
            Progress::StartTls => {
                call.io.start_tls(call.socket?);
                call.next(deadline)?
            }
            Progress::Wait(pause) => {
                let until = call.io.now() + pause;
                while call.io.now() < until.min(deadline) {
                    call.io.wait(Some(until)).ok()?;
                }
                call.step(|connection, exchange| connection.on_timeout(exchange))
            }
            Progress::Pending => call.next(deadline)?,
        };
        if call.io.now() >= deadline {
            return None;
        }
    }
}

/// One connection, driven until it has answered.
struct Call {
    io: Readiness,
    connection: Box<dyn Connection>,
    socket: Option<SocketId>,
    out: Vec<u8>,
    pool: RowsPool,
}

impl Call {
    fn step(&mut self, act: impl FnOnce(&mut dyn Connection, &mut Exchange<'_>) -> Progress) -> Progress {
        let now = self.io.now();
        act(&mut *self.connection, &mut Exchange { out: &mut self.out, pool: &mut self.pool, now })
    }

    fn connect(&mut self, target: &Target, address: Option<&Address>) -> Option<Progress> {
        if let Some(socket) = self.socket.take() {
            self.io.close(socket);
            self.connection.on_closed();
        }
        let Some(address) = address else {
            return Some(self.step(|connection, exchange| connection.on_connected(exchange)));
        };
        self.socket = Some(self.io.connect(address, target.tls.as_ref()).ok()?);
        Some(Progress::Pending)
    }

    fn send(&mut self) {
        if let Some(socket) = self.socket {
            self.io.send(socket, &self.out);
        }
        self.out.clear();
    }

    /// What the next event leads to; `None` when nothing came in time.
    fn next(&mut self, deadline: Nanos) -> Option<Progress> {
        loop {
            match self.io.next_event() {
                Some(Event::Connected(_)) => {
                    return Some(self.step(|connection, exchange| connection.on_connected(exchange)));
                }
                Some(Event::Received(_)) => {
                    let bytes = self.io.received().to_vec();
                    return Some(self.step(|connection, exchange| connection.on_bytes(&bytes, exchange)));
                }
                Some(Event::Secured(_, facts)) => {
                    return Some(self.step(|connection, exchange| connection.on_secured(&facts, exchange)));
                }
                Some(Event::Closed(..)) => {
                    self.socket = None;
                    return self.connection.on_closed().then_some(Progress::Reconnect);
                }
                None if self.io.now() >= deadline => return None,
                None => self.io.wait(Some(deadline)).ok()?,
            }
        }
    }

    fn close(&mut self) {
        let now = self.io.now();
        self.connection.close(&mut Exchange { out: &mut self.out, pool: &mut self.pool, now });
        self.send();
        if let Some(socket) = self.socket.take() {
            self.io.close(socket);
        }
    }
}

/// The first two columns of the first result set.
fn pairs(rows: &Rows) -> BTreeMap<String, String> {
    let text = |row, column| match rows.cell(0, row, column) {
        Some(Cell::Text(text)) => Some(String::from_utf8_lossy(text).into_owned()),
        Some(Cell::Int(number)) => Some(number.to_string()),
        Some(Cell::Double(number)) => Some(number.to_string()),
        Some(Cell::Null) | None => None,
    };
    (0..rows.len(0)).filter_map(|row| Some((text(row, 0)?, text(row, 1)?))).collect()
}
