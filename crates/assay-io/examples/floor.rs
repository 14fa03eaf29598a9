//! How little a load generator can cost: point selects over the event loop, with nothing or not much above it.
//!
//! `floor bare|protocol epoll|uring|auto URL SESSIONS SECONDS ROWS` runs the statement of oltp_point_select in a closed
//! loop on one thread per CPU, and prints what it did in the form of `assay run --format json`, as far as `cargo xtask
//! bench` reads it. `protocol` does what every statement needs without a script: it is encoded, its reply is
//! decoded, the time in between goes into a histogram. `bare` sends bytes that were made before and counts what comes
//! back. It checks nothing and panics on any error: it is not a load generator.

use std::sync::{Arc, Barrier};

use assay_io::{Address, Backend, Clock, Io, IoEvent, Kernel, SocketId};
use assay_seam::{
    ConnectOptions, Connection, Database, Exchange, Nanos, NoSurroundings, Operation, Progress, RowsPool, RowsWanted,
    StatementId, Value,
};
use hdrhistogram::Histogram;

const STATEMENT: StatementId = StatementId(0);

/// Requests that a bare session makes with the protocol before it only repeats them.
const REQUESTS: usize = 16;

/// Connects under way at once, of a thread: a server's queue of them is short, and who finds it full waits for ever.
const CONNECTS: usize = 32;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Bare,
    Protocol,
}

/// The settings of all threads.
#[derive(Clone, Copy)]
struct Trial {
    mode: Mode,
    backend: Backend,
    clock: Clock,
    seconds: u64,
    rows: u64,
}

/// One connection.
struct Session {
    socket: SocketId,
    machine: Box<dyn Connection>,
    prepared: bool,
    sent: Nanos,
    /// In bare mode: what was sent before, and the length of each reply.
    requests: Vec<Vec<u8>>,
    reply_bytes: usize,
    received_bytes: usize,
    turn: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, backend, url, sessions, seconds, rows] = &arguments[..] else {
        panic!("usage: floor bare|protocol epoll|uring|auto URL SESSIONS SECONDS ROWS");
    };
    let number = |text: &String| text.parse::<u64>().expect("a number");
    let sessions = number(sessions) as usize;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(sessions);
    let trial = Trial {
        mode: if mode == "bare" { Mode::Bare } else { Mode::Protocol },
        backend: match backend.as_str() {
            "epoll" => Backend::Epoll,
            "uring" => Backend::Uring,
            _ => Backend::best(sessions, threads).0,
        },
        clock: Clock::start(),
        seconds: number(seconds),
        rows: number(rows),
    };
    let driver = if url.starts_with("postgres") { assay_postgres::DRIVER } else { assay_mysql::DRIVER };
    let database: Arc<dyn Database> =
        (driver.open)(url, &ConnectOptions::default(), &NoSurroundings).expect("a database URL").into();
    let start = Arc::new(Barrier::new(threads));
    let running: Vec<_> = (0..threads)
        .map(|thread| {
            let (database, start) = (Arc::clone(&database), Arc::clone(&start));
            let own = (sessions - thread).div_ceil(threads);
            std::thread::spawn(move || run(trial, &*database, own, thread as u64, &start))
        })
        .collect();
    let mut times = histogram();
    running.into_iter().for_each(|thread| times.add(thread.join().expect("it did not panic")).expect("of one kind"));
    println!(
        r#"{{ "stages": [{{ "total": {{ "statements": {}, "qps": {}, "response": {{ "p50_ns": {} }} }} }}] }}"#,
        times.len(),
        times.len() as f64 / trial.seconds as f64,
        times.value_at_quantile(0.5)
    );
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1000, 3_600_000_000_000, 3).expect("constants are right")
}

/// One thread's sessions, from connecting to the end.
fn run(trial: Trial, database: &dyn Database, sessions: usize, seed: u64, start: &Barrier) -> Histogram<u64> {
    let mut io = Kernel::new(trial.backend, trial.clock, trial.backend.batch_default()).expect("an event loop");
    let address = Address::resolve(&database.endpoints()[0]).expect("a known host").swap_remove(0);
    let connect = |io: &mut Kernel| Session {
        socket: io.connect(&address, None).expect("a connection"),
        machine: database.connection(),
        prepared: false,
        sent: Nanos::ZERO,
        requests: Vec::new(),
        reply_bytes: 0,
        received_bytes: 0,
        turn: 0,
    };
    let mut all: Vec<Session> = (0..sessions.min(CONNECTS)).map(|_| connect(&mut io)).collect();
    // Sockets of a fresh event loop are numbered from 0.
    let (mut pool, mut out, mut times, mut random) = (RowsPool::default(), Vec::new(), histogram(), seed * 2 + 1);
    let (mut ready, mut end) = (0, Nanos(u64::MAX));
    loop {
        io.wait((end.0 < u64::MAX).then_some(end)).expect("the event loop works");
        let now = io.received_at();
        if now >= end {
            return times;
        }
        while let Some(event) = io.next_event() {
            let (IoEvent::Connected(socket) | IoEvent::Received(socket)) = event else { panic!("{event:?}") };
            let session = &mut all[socket.0 as u32 as usize];
            let mut exchange = Exchange { out: &mut out, pool: &mut pool, now };
            if end.0 < u64::MAX && session.requests.len() == REQUESTS {
                session.received_bytes += io.received().len();
                if session.received_bytes == session.reply_bytes {
                    times.record((now - session.sent).0).expect("within bounds");
                    session.send_again(&mut io);
                }
                continue;
            }
            let progress = match event {
                IoEvent::Connected(_) => session.machine.on_connected(&mut exchange),
                _ => {
                    session.received_bytes += io.received().len();
                    session.machine.on_bytes(io.received(), &mut exchange)
                }
            };
            match progress {
                Progress::Pending => io.send(socket, &out),
                Progress::Ready => {
                    let sql = b"SELECT c FROM sbtest1 WHERE id=?";
                    session.machine.execute(&Operation::Prepare { statement: STATEMENT, text: sql }, &mut exchange);
                    io.send(socket, &out);
                }
                Progress::Reply(reply) => {
                    assert!(reply.error.is_none(), "{:?}", reply.error);
                    reply.rows.into_iter().for_each(|rows| pool.put(rows));
                    if std::mem::replace(&mut session.prepared, true) {
                        times.record((now - session.sent).0).expect("within bounds");
                        session.reply_bytes = session.received_bytes;
                        session.execute(trial, &mut random, &mut pool, &mut out, &mut io);
                    } else {
                        ready += 1;
                        if all.len() < sessions {
                            all.push(connect(&mut io));
                        }
                    }
                }
                other => panic!("{other:?}"),
            }
            out.clear();
        }
        if ready == sessions && end.0 == u64::MAX {
            start.wait();
            end = io.now() + Nanos::from_secs(trial.seconds);
            for session in &mut all {
                session.execute(trial, &mut random, &mut pool, &mut out, &mut io);
                out.clear();
            }
        }
    }
}

impl Session {
    /// Asks for a row by its id, through the protocol.
    fn execute(&mut self, trial: Trial, random: &mut u64, pool: &mut RowsPool, out: &mut Vec<u8>, io: &mut Kernel) {
        // Xorshift (Marsaglia 2003).
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        self.sent = io.now();
        self.received_bytes = 0;
        let parameters = [Value::Int((*random % trial.rows) as i64 + 1)];
        let operation = Operation::Execute { statement: STATEMENT, parameters: &parameters, rows: RowsWanted::Keep };
        self.machine.execute(&operation, &mut Exchange { out, pool, now: self.sent });
        io.send(self.socket, out);
        if trial.mode == Mode::Bare {
            self.requests.push(out.clone());
        }
    }

    /// Sends what was sent before.
    fn send_again(&mut self, io: &mut Kernel) {
        self.sent = io.now();
        self.received_bytes = 0;
        self.turn = (self.turn + 1) % REQUESTS;
        io.send(self.socket, &self.requests[self.turn]);
    }
}
