//! A tiny engine for tests: answers the requests of sessions from canned replies and records the conversation.

use std::collections::HashMap;
use std::sync::Arc;

use assay_options::*;
use assay_script::*;
use assay_seam::{Class, Code, Dialect, Nanos, Operation, Origin, Reply, Retry, Rows, RowsPool, StatementError};

/// A `Program` from a text called `test.lua`.
pub(crate) fn program(text: &str) -> Program {
    load(text).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn load(text: &str) -> Result<Program, ScriptError> {
    let top = TopLevel {
        command: Some("run".into()),
        argv: vec!["assay".into()],
        driver: Dialect::plain("mysql"),
        ..TopLevel::default()
    };
    Program::from_text(&Arc::new(Library::default()), "test.lua", text, &top)
}

pub(crate) fn setup() -> Setup {
    Setup {
        command: "run".into(),
        entry: Entry::Thread,
        options: vec![("threads".into(), OptionValue::Number(2.0)), ("table_size".into(), OptionValue::Number(100.0))],
        driver: Dialect::plain("mysql"),
        seed: 42,
        sessions: 300,
        distribution: Distribution::default(),
        argv: vec!["assay".into(), "run".into()],
        front: None,
    }
}

/// How to answer, and what was requested.
pub(crate) struct Driver {
    /// Replies by statement text (or `execute N`); each used once, in order; then plain success.
    pub(crate) replies: HashMap<String, Vec<(Reply, Verdict)>>,
    /// Number of transactions allowed per session.
    pub(crate) transactions: u32,
    pub(crate) decision: Decision,
    pub(crate) pool: RowsPool,
    /// One line per request.
    pub(crate) asked: Vec<String>,
    pub(crate) claims: u64,
    /// Loads are answered only when they are flushed.
    pub(crate) loads_ahead: bool,
    /// The answer to the next connect.
    pub(crate) refusal: Option<Box<StatementError>>,
}

impl Default for Driver {
    fn default() -> Driver {
        Driver {
            replies: HashMap::new(),
            transactions: 1,
            decision: Decision::Retry,
            pool: RowsPool::default(),
            asked: Vec::new(),
            claims: 0,
            loads_ahead: false,
            refusal: None,
        }
    }
}

impl Driver {
    pub(crate) fn reply(mut self, statement: &str, reply: Reply, verdict: Verdict) -> Driver {
        self.replies.entry(statement.to_owned()).or_default().push((reply, verdict));
        self
    }

    pub(crate) fn rows(self, statement: &str, columns: usize, cells: &[Option<&str>]) -> Driver {
        self.reply(statement, Reply { rows: Some(rows(columns, cells)), ..Reply::default() }, Verdict::Fatal)
    }

    pub(crate) fn error(self, statement: &str, number: u32, state: &str, verdict: Verdict) -> Driver {
        self.reply(statement, Reply::failed(error(number, state)), verdict)
    }

    /// Answers one session until it ends.
    pub(crate) fn run(&mut self, state: &mut LuaState, slot: Slot) {
        let mut answer = Answer::Done;
        let mut left = self.transactions;
        loop {
            let (line, next) = self.answer(state, slot, answer, &mut left);
            self.asked.push(line);
            match next {
                Some(next) => answer = next,
                None => return,
            }
        }
    }

    /// One step: the request, and the answer to it unless it is held back.
    pub(crate) fn answer(
        &mut self,
        state: &mut LuaState,
        slot: Slot,
        answer: Answer,
        left: &mut u32,
    ) -> (String, Option<Answer>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let request = state.resume(slot, answer, &mut self.pool);
        match request {
            Request::Connect(number, ..) => {
                let line = format!("connect {}", number.0);
                (line, Some(self.refusal.take().map_or(Answer::Done, |error| Answer::Error(error, 0))))
            }
            Request::Disconnect(number) => (format!("disconnect {}", number.0), Some(Answer::Done)),
            Request::Leave(number) => (format!("leave {}", number.0), Some(Answer::Done)),
            Request::Reconnect(number) => (format!("reconnect {}", number.0), Some(Answer::Done)),
            Request::Operation(number, Operation::Load { table, rows, columns, .. }) if self.loads_ahead => {
                let line = format!("load {}: {} ({}): {} rows", number.0, text(table), text(columns), rows.len(0));
                (line, Some(Answer::Proceed(true)))
            }
            Request::Operation(number, operation) => {
                let (line, key) = match operation {
                    Operation::Query { text: sql, .. } => (format!("query {}: {}", number.0, text(sql)), text(sql)),
                    Operation::Prepare { statement, text: sql } => {
                        (format!("prepare {}.{}: {}", number.0, statement.0, text(sql)), text(sql))
                    }
                    Operation::Execute { statement, parameters, .. } => (
                        format!("execute {}.{}: {parameters:?}", number.0, statement.0).replace("\\\"", "\""),
                        format!("execute {}", statement.0),
                    ),
                    Operation::Close { statement } => (format!("close {}.{}", number.0, statement.0), String::new()),
                    Operation::RollBack => (format!("rollback {}", number.0), String::new()),
                    Operation::Load { table, columns, rows, .. } => (
                        format!("load {}: {} ({}): {} rows", number.0, text(table), text(columns), rows.len(0)),
                        "load".to_owned(),
                    ),
                };
                let (reply, verdict) = match self.replies.get_mut(&key) {
                    Some(replies) if !replies.is_empty() => replies.remove(0),
                    _ => (Reply::default(), Verdict::Fatal),
                };
                (line, Some(Answer::Reply(reply, verdict)))
            }
            Request::Defer(number, operation) => {
                let Operation::Execute { statement, parameters, .. } = operation else { panic!("{operation:?}") };
                (format!("defer {}.{}: {parameters:?}", number.0, statement.0), Some(Answer::Proceed(true)))
            }
            Request::Pipe(number, operation) => {
                let Operation::Execute { statement, parameters, .. } = operation else { panic!("{operation:?}") };
                (format!("pipe {}.{}: {parameters:?}", number.0, statement.0), Some(Answer::Proceed(true)))
            }
            Request::Synchronize(number) => (format!("synchronize {}", number.0), Some(Answer::Done)),
            Request::InTransaction(number) => (format!("in transaction {}?", number.0), Some(Answer::Proceed(false))),
            Request::Flush(number) => {
                let replies = self.replies.get_mut("load").filter(|replies| self.loads_ahead && !replies.is_empty());
                let answer = replies.map_or(Answer::Done, |replies| {
                    let (reply, verdict) = replies.remove(0);
                    Answer::Reply(reply, verdict)
                });
                (format!("flush {}", number.0), Some(answer))
            }
            Request::Notification(number, limit) => {
                let answer = Answer::Reply(Reply::default(), Verdict::Fatal);
                (format!("notification {} within {limit}", number.0), Some(answer))
            }
            Request::Ready => ("ready".into(), Some(Answer::Done)),
            Request::Next => {
                let proceed = *left > 0;
                *left = left.saturating_sub(1);
                ("next".into(), Some(if proceed { Answer::Begin(Nanos::ZERO) } else { Answer::Proceed(false) }))
            }
            Request::Type(number) => (format!("type {number}"), Some(Answer::Done)),
            Request::Failed(failure) => (
                format!("failed restart={} statement={}: {}", failure.restart, failure.statement, failure.message),
                Some(Answer::Decision(self.decision)),
            ),
            Request::Stop => ("stop".into(), Some(Answer::Done)),
            Request::Sleep(time) => (format!("sleep {time}"), Some(Answer::Done)),
            Request::Claim(name) => {
                let line = format!("claim {}", text(name));
                self.claims += 1;
                (line, Some(Answer::Number(self.claims - 1)))
            }
            Request::Executed => ("executed".into(), Some(Answer::Executed(Footprint::default()))),
            Request::Barrier => ("barrier".into(), Some(Answer::Done)),
            Request::Expect(rows) => (format!("expect {rows}"), Some(Answer::Done)),
            Request::Log(line) => (format!("log {}", text(line)), Some(Answer::Done)),
            Request::Declare(declaration) => (format!("declare {declaration:?}"), Some(Answer::Done)),
            Request::Finished { success } => (format!("finished {success}"), None),
            Request::Died(failure) => (format!("died: {}", ScriptError::from(&failure)), None),
        }
    }
}

pub(crate) fn rows(columns: usize, cells: &[Option<&str>]) -> Box<Rows> {
    let mut rows = Box::<Rows>::default();
    rows.begin_set(columns);
    for cell in cells {
        match cell {
            Some(text) => rows.push_text(text.as_bytes()).unwrap(),
            None => rows.push_null(),
        }
    }
    rows
}

pub(crate) fn error(number: u32, state: &str) -> StatementError {
    StatementError {
        origin: Origin::Server,
        class: Class::Other,
        code: Code { number, state: state.into() },
        retry: Retry::Never,
        message: "no luck".into(),
        position: 0,
        hint: None,
        details: String::new(),
    }
}

/// Runs one session of a script to its end; returns its requests, one per line.
pub(crate) fn conversation(text: &str, setup: &Setup, driver: Driver) -> String {
    let mut driver = driver;
    let program = program(text);
    let mut state = LuaState::new(&program, setup).unwrap_or_else(|error| panic!("{error}"));
    let slot = state.add_session(0).unwrap();
    driver.run(&mut state, slot);
    driver.asked.join("\n")
}

/// Compares a conversation with the expected lines, ignoring leading blanks.
#[track_caller]
pub(crate) fn check(text: &str, driver: Driver, wanted: &str) {
    check_as(text, &setup(), driver, wanted);
}

#[track_caller]
pub(crate) fn check_as(text: &str, setup: &Setup, driver: Driver, wanted: &str) {
    let trim = |text: &str| text.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n");
    assert_eq!(trim(&conversation(text, setup, driver)), trim(wanted));
}
