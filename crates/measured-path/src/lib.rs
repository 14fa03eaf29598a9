//! Servers that answer at once and cost next to nothing: what a run against them costs is our own measured path,
//! without the kernel.
//!
//! `Null` is an `Io` whose sockets lead to canned answers of PostgreSQL or MySQL; its clock moves a little with every
//! `wait`. Answers to statements are made once and kept, so that a warm run finds them by number. Nothing is cut, lost
//! or late: that is what `assay_io::sim` is for.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use assay::command_line;
use assay_engine::Plan;
use assay_io::{Address, ConnectError, Io, IoEvent, SocketId, Tls, Waker};
use assay_run::plan;
use assay_seam::Nanos;

/// How many answers one `wait` hands out at most.
const BATCH_MAX: usize = 32;

/// The plan of `assay run` with these words, as the command line makes it.
pub fn plan_of(words: &[&str]) -> Plan {
    let words = ["assay", "run"].iter().chain(words).map(Into::into);
    let invocation = command_line::parse(words).expect("the command line is right").expect("it runs something");
    let assignment = invocation.assignment.as_ref().expect("it names a workload");
    plan::of_run(assignment, &plan::ProcessOptions::default(), &assignment.urls()).expect("a plan")
}

/// Sockets that lead to a null server.
pub struct Null {
    server: Box<dyn NullServer>,
    now: Nanos,
    sockets: u64,
    /// What has arrived and was not handed out: sockets, and their answers by number.
    arrived: VecDeque<(SocketId, usize)>,
    batch: usize,
    current: usize,
    answers: Vec<Vec<u8>>,
}

/// The number of an answer that is none: the connect has succeeded.
const CONNECTED: usize = usize::MAX;

/// A protocol. Answers are kept in `answers` and named by their place there.
pub trait NullServer {
    /// The first message of a server to a new client, if the server speaks first.
    fn greeting(&mut self, answers: &mut Vec<Vec<u8>>) -> Option<usize>;
    /// The answer to the bytes of one send; `None`: none is due.
    fn answer(&mut self, request: &[u8], answers: &mut Vec<Vec<u8>>) -> Option<usize>;
}

impl Null {
    /// Sockets that lead to this one.
    pub fn new(server: Box<dyn NullServer>) -> Null {
        Null { server, now: Nanos(1), sockets: 0, arrived: VecDeque::new(), batch: 0, current: 0, answers: Vec::new() }
    }
}

impl Io for Null {
    fn now(&self) -> Nanos {
        self.now
    }

    fn received_at(&self) -> Nanos {
        self.now
    }

    fn connect(&mut self, _address: &Address, _tls: Option<&Arc<Tls>>) -> Result<SocketId, ConnectError> {
        let id = SocketId(self.sockets);
        self.sockets += 1;
        self.arrived.push_back((id, CONNECTED));
        let greeting = self.server.greeting(&mut self.answers);
        self.arrived.extend(greeting.map(|answer| (id, answer)));
        Ok(id)
    }

    fn send(&mut self, socket: SocketId, bytes: &[u8]) {
        let answer = self.server.answer(bytes, &mut self.answers);
        self.arrived.extend(answer.map(|answer| (socket, answer)));
    }

    fn start_tls(&mut self, _socket: SocketId) {
        unimplemented!("null servers do not encrypt");
    }

    fn keep_alive(&mut self, _socket: SocketId, _limit: Nanos) {}

    fn close_if_silent(&mut self, _socket: SocketId, _limit: Nanos) {}

    fn close(&mut self, _socket: SocketId) {}

    fn wait(&mut self, until: Option<Nanos>) -> io::Result<()> {
        self.now += Nanos::from_micros(100);
        if self.arrived.is_empty() {
            self.now = self.now.max(until.unwrap_or(self.now));
        }
        self.batch = self.arrived.len().min(BATCH_MAX);
        Ok(())
    }

    fn next_event(&mut self) -> Option<IoEvent> {
        if self.batch == 0 {
            return None;
        }
        self.batch -= 1;
        let (socket, answer) = self.arrived.pop_front()?;
        self.current = answer;
        Some(if answer == CONNECTED { IoEvent::Connected(socket) } else { IoEvent::Received(socket) })
    }

    fn received(&self) -> &[u8] {
        &self.answers[self.current]
    }

    fn waker(&self) -> Waker {
        Waker::flag(Arc::<AtomicBool>::default())
    }
}

/// What a statement answers with.
#[derive(Clone, Copy, PartialEq)]
enum AnswerKind {
    Row,
    Changed,
    Nothing,
}

impl AnswerKind {
    fn of(sql: &[u8]) -> AnswerKind {
        match sql.get(..6) {
            Some(b"SELECT") => AnswerKind::Row,
            Some(b"UPDATE" | b"DELETE" | b"INSERT") => AnswerKind::Changed,
            _ => AnswerKind::Nothing,
        }
    }
}

/// As long as the column c of the OLTP tables.
const CELL: [u8; 119] = [b'7'; 119];

fn keep(answers: &mut Vec<Vec<u8>>, answer: Vec<u8>) -> Option<usize> {
    let known = answers.iter().position(|known| *known == answer);
    Some(known.unwrap_or_else(|| {
        answers.push(answer);
        answers.len() - 1
    }))
}

/// PostgreSQL, protocol 3.0, without a password.
#[derive(Default)]
pub struct NullPostgres {
    /// By statement number, which is the same on all connections: the answer to an execution.
    executed: Vec<usize>,
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

const ROW_DESCRIPTION: &[u8] = b"\0\x01c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";

impl NullPostgres {
    fn result(kind: AnswerKind) -> Vec<u8> {
        match kind {
            AnswerKind::Row => {
                let row = [&[0, 1, 0, 0, 0, CELL.len() as u8][..], &CELL].concat();
                [message(b'D', &row), message(b'C', b"SELECT 1\0")].concat()
            }
            AnswerKind::Changed => message(b'C', b"UPDATE 1\0"),
            AnswerKind::Nothing => message(b'C', b"BEGIN\0"),
        }
    }

    /// The statement's number, a small one, in a name such as `assay_0123456789abcdef_00000002`.
    fn number(name: &[u8]) -> usize {
        name[27..31].iter().fold(0, |number, digit| number << 4 | (*digit as char).to_digit(16).unwrap() as usize)
    }
}

impl NullServer for NullPostgres {
    fn greeting(&mut self, _answers: &mut Vec<Vec<u8>>) -> Option<usize> {
        None
    }

    fn answer(&mut self, request: &[u8], answers: &mut Vec<Vec<u8>>) -> Option<usize> {
        // Bind to the unnamed portal, Execute, Sync.
        if request[0] == b'B' {
            return Some(self.executed[NullPostgres::number(&request[6..])]);
        }
        let ready = message(b'Z', b"I");
        match request[0] {
            b'Q' => {
                let kind = AnswerKind::of(&request[5..]);
                let description = message(b'T', ROW_DESCRIPTION);
                let start = if kind == AnswerKind::Row { &description[..] } else { &[] };
                keep(answers, [start, &NullPostgres::result(kind), &ready].concat())
            }
            // Close, Sync.
            b'C' if request[38] == b'S' => keep(answers, [message(b'3', b""), ready].concat()),
            // Close, Parse, Describe, Sync.
            b'C' => {
                let name = &request[6..38];
                let parse = &request[38..];
                let sql = &parse[5 + name.len()..];
                let sql = &sql[..sql.iter().position(|byte| *byte == 0).expect("a text ends")];
                let kind = AnswerKind::of(sql);
                let number = NullPostgres::number(name);
                self.executed.resize(self.executed.len().max(number + 1), 0);
                let executed = [message(b'2', b""), NullPostgres::result(kind), ready.clone()].concat();
                self.executed[number] = keep(answers, executed)?;
                let count = sql.iter().filter(|byte| **byte == b'$').count() as u16;
                let types = [0, 0, 0, 23].repeat(count.into());
                let parameters = message(b't', &[&count.to_be_bytes()[..], &types].concat());
                let columns = if kind == AnswerKind::Row { message(b'T', ROW_DESCRIPTION) } else { message(b'n', b"") };
                let done = [message(b'3', b""), message(b'1', b"")].concat();
                keep(answers, [done, parameters, columns, ready].concat())
            }
            b'X' => None,
            _ => {
                let version = message(b'S', b"server_version\x0017.0 (null)\0");
                let key = message(b'K', &[0, 0, 0, 1, 0, 0, 0, 1]);
                keep(answers, [message(b'R', &[0; 4]), version, key, ready].concat())
            }
        }
    }
}

/// MySQL, protocol 4.1, without a password.
#[derive(Default)]
pub struct NullMySql {
    /// Texts prepared, whichever connection did it: a place here is the statement's number.
    texts: Vec<Vec<u8>>,
    executed: Vec<usize>,
    ok: Option<usize>,
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const CHANGED: &[u8] = &[0, 1, 0, 2, 0, 0, 0];
const END: &[u8] = &[0xFE, 0, 0, 2, 0];
/// A column of CHAR.
const COLUMN: &[u8] = b"\x03def\x00\x01t\x01t\x01a\x01a\x0C\x2D\0\x0B\0\0\0\xFE\0\0\0\0\0";

fn packets(mut sequence: u8, payloads: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for payload in payloads {
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
        out.push(sequence);
        out.extend_from_slice(payload);
        sequence += 1;
    }
    out
}

impl NullMySql {
    /// `row` begins with what the protocol, text or binary, puts in front of the cell.
    fn result(kind: AnswerKind, row: &[u8]) -> Vec<u8> {
        let row = [row, &[CELL.len() as u8], &CELL].concat();
        match kind {
            AnswerKind::Row => packets(1, &[&[1], COLUMN, END, &row, END]),
            AnswerKind::Changed => packets(1, &[CHANGED]),
            AnswerKind::Nothing => packets(1, &[OK]),
        }
    }
}

impl NullServer for NullMySql {
    fn greeting(&mut self, answers: &mut Vec<Vec<u8>>) -> Option<usize> {
        // Everything up to PLUGIN_AUTH_LENENC but TLS.
        let capabilities = (0x003F_FFFF_u32 & !(1 << 11)).to_le_bytes();
        let parts = [
            &b"\x0A8.0.0-null\0\x09\0\0\0abcdefgh\0"[..],
            &capabilities[..2],
            &[45, 2, 0],
            &capabilities[2..],
            &[21],
            &[0; 10],
            b"ijklmnopqrst\0mysql_native_password\0",
        ];
        keep(answers, packets(0, &[&parts.concat()]))
    }

    fn answer(&mut self, request: &[u8], answers: &mut Vec<Vec<u8>>) -> Option<usize> {
        let [.., sequence, command] = request[..5] else { return None };
        match (sequence, command) {
            (0, 23) => Some(self.executed[u32::from_le_bytes(request[5..9].try_into().unwrap()) as usize]),
            (0, 3) => keep(answers, NullMySql::result(AnswerKind::of(&request[5..]), &[])),
            (0, 22) => {
                let sql = &request[5..];
                let known = self.texts.iter().position(|text| text == sql);
                let number = known.unwrap_or_else(|| {
                    self.texts.push(sql.to_vec());
                    self.texts.len() - 1
                });
                let kind = AnswerKind::of(sql);
                if known.is_none() {
                    self.executed.push(keep(answers, NullMySql::result(kind, &[0, 0]))?);
                }
                let parameters = sql.iter().filter(|byte| **byte == b'?').count();
                let columns = usize::from(kind == AnswerKind::Row);
                let head =
                    [&[0][..], &(number as u32).to_le_bytes(), &[columns as u8, 0, parameters as u8, 0, 0, 0, 0]];
                let head = head.concat();
                let mut parts = vec![&head[..]];
                for count in [parameters, columns].into_iter().filter(|count| *count > 0) {
                    parts.extend(std::iter::repeat_n(COLUMN, count));
                    parts.push(END);
                }
                keep(answers, packets(1, &parts))
            }
            (0, 1 | 25) => None,
            // The login, and what else has nothing to say but yes.
            _ => {
                let ok = packets(sequence + 1, &[OK]);
                if sequence == 0 {
                    self.ok = self.ok.or_else(|| keep(answers, ok));
                    return self.ok;
                }
                keep(answers, ok)
            }
        }
    }
}
