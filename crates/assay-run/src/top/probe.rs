//! Asks a server for its sessions and statements while somebody looks at them, on a thread and a connection of its own.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assay_engine::Target;
use assay_io::Clock;
use assay_seam::{Nanos, Rows};
use assay_telemetry::live::STATEMENTS_MAX;
use assay_telemetry::{LiveQuestions, pgbouncer};
use assay_top::{ServerNow, SessionRow, StatementRow, Statements};

use crate::client::{Client, text, words_of};

/// If a server has not answered by then, it is asked again later.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// Between two questions; sorting and sending the sums of statements costs a server more than its sessions.
const EVERY: Duration = Duration::from_secs(1);
const STATEMENTS_EVERY: u32 = 2;

/// What is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) sessions: bool,
    pub(super) statements: bool,
}

enum Command {
    Look(Wanted),
    End(String),
}

/// The thread that asks. It ends when this is dropped.
pub(super) struct Probe {
    commands: Sender<Command>,
    shared: Arc<Mutex<Shared>>,
    wanted: Wanted,
}

struct Shared {
    now: ServerNow,
    /// The outcome of ending a session, until it has been shown.
    ended: Option<String>,
}

impl Probe {
    pub(super) fn start(target: Target) -> Probe {
        let (commands, inbox) = mpsc::channel();
        let now = ServerNow::silent("the server has not been asked yet");
        let shared = Arc::new(Mutex::new(Shared { now, ended: None }));
        let asked = Arc::clone(&shared);
        // A connection stays on the thread that opened it.
        let ask = move || Asker { target, clock: Clock::start(), client: None, shared: asked }.run(&inbox);
        // Without a thread, the reason above stays.
        let _ = std::thread::Builder::new().name("ask".to_owned()).spawn(ask);
        Probe { commands, shared, wanted: Wanted::default() }
    }

    /// From now on, only this is asked for.
    pub(super) fn look_at(&mut self, wanted: Wanted) {
        if wanted != self.wanted {
            self.wanted = wanted;
            let _ = self.commands.send(Command::Look(wanted));
        }
    }

    pub(super) fn end(&self, id: String) {
        let _ = self.commands.send(Command::End(id));
    }

    pub(super) fn now(&self) -> ServerNow {
        locked(&self.shared).now.clone()
    }

    /// What became of ending a session, once.
    pub(super) fn ended(&self) -> Option<String> {
        locked(&self.shared).ended.take()
    }
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Asker {
    target: Target,
    clock: Clock,
    client: Option<Open>,
    shared: Arc<Mutex<Shared>>,
}

/// A connection, and what can be asked over it.
struct Open {
    client: Client,
    questions: LiveQuestions,
    is_pooler: bool,
    /// Why statements are not listed.
    no_statements: Option<String>,
}

impl Asker {
    fn run(mut self, inbox: &Receiver<Command>) {
        let (mut wanted, mut turn) = (Wanted::default(), 0u32);
        loop {
            let command = match wanted == Wanted::default() {
                true => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => inbox.recv_timeout(EVERY),
            };
            match command {
                Ok(Command::Look(now)) => (wanted, turn) = (now, 0),
                Ok(Command::End(id)) => {
                    let outcome = self.end(&id);
                    locked(&self.shared).ended = Some(outcome);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if wanted.sessions {
                let sessions = self.sessions();
                locked(&self.shared).now.sessions = sessions;
            }
            if wanted.statements && turn.is_multiple_of(STATEMENTS_EVERY) {
                self.statements();
            }
            turn = turn.wrapping_add(1);
        }
    }

    /// The connection, opened if there is none.
    fn open(&mut self) -> Result<&mut Open, String> {
        if self.client.as_ref().is_none_or(|open| !open.client.is_open()) {
            self.client = None;
            let mut client = Client::open(&self.target, self.clock, PATIENCE)
                .map_err(|error| format!("{} does not answer: {}", self.target.database.display(), words_of(&error)))?;
            let facts = client.server();
            let is_pooler = pgbouncer::is_console(&facts.version);
            let questions = match is_pooler {
                true => pgbouncer::LIVE,
                false => assay_products::live_questions(&facts.product, &facts.version),
            };
            let no_statements = no_statements(&mut client, &questions);
            let mut shared = locked(&self.shared);
            let version = facts.version.split_whitespace().next().unwrap_or_default();
            shared.now.name = match is_pooler {
                true => format!("PgBouncer {}", version.trim_end_matches("/bouncer")),
                false => format!("{} {version}", facts.product),
            };
            let cannot = || format!("{} does not end single sessions", shared.now.name);
            shared.now.cannot_end = questions.end_sql.is_empty().then(cannot);
            drop(shared);
            self.client = Some(Open { client, questions, is_pooler, no_statements });
        }
        Ok(self.client.as_mut().expect("it was just opened"))
    }

    fn sessions(&mut self) -> Result<Vec<SessionRow>, String> {
        let open = self.open()?;
        if open.questions.sessions_sql.is_empty() {
            return Err("this database does not list its sessions".to_owned());
        }
        let rows = open.client.ask(open.questions.sessions_sql, PATIENCE)?;
        let list = if open.is_pooler { pgbouncer_sessions(&rows) } else { sessions_of(&rows) };
        open.client.reuse(rows);
        Ok(list)
    }

    fn statements(&mut self) {
        let at = self.clock.now().as_secs_f64();
        let answer = self.open().and_then(|open| match &open.no_statements {
            Some(reason) => Err(reason.clone()),
            None => {
                let rows = open.client.ask(open.questions.statements_sql, PATIENCE)?;
                let list = statements_of(&rows);
                open.client.reuse(rows);
                Ok(list)
            }
        });
        let mut shared = locked(&self.shared);
        let statements = &mut shared.now.statements;
        match (answer, statements.is_ok()) {
            (Ok(rows), is_known) => {
                if !is_known {
                    *statements = Ok(Statements::default());
                }
                let is_all = rows.len() < STATEMENTS_MAX;
                if let Ok(known) = statements {
                    known.take(at, rows, is_all);
                }
            }
            (Err(reason), _) => *statements = Err(reason),
        }
    }

    fn end(&mut self, id: &str) -> String {
        // It becomes part of a statement.
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_digit()) {
            return format!("{id} is not the number of a session");
        }
        let outcome = self.open().and_then(|open| match open.questions.end_sql {
            "" => Err("this server does not end single sessions".to_owned()),
            sql => {
                let rows = open.client.ask(&sql.replace("{}", id), PATIENCE)?;
                let is_refused = text(&rows, 0, 0).is_some_and(|answer| answer == "f");
                open.client.reuse(rows);
                if is_refused { Err("it had ended already".to_owned()) } else { Ok(()) }
            }
        });
        match outcome {
            Ok(()) => format!("session {id} was ended"),
            Err(reason) => format!("session {id} was not ended: {reason}"),
        }
    }
}

/// Why statements cannot be listed; `None`: they can.
fn no_statements(client: &mut Client, questions: &LiveQuestions) -> Option<String> {
    if questions.statements_sql.is_empty() {
        let reason =
            if questions.no_statements.is_empty() { "not counted by this server" } else { questions.no_statements };
        return Some(reason.to_owned());
    }
    match client.ask(questions.statements_condition, PATIENCE) {
        Ok(rows) => {
            let is_on = text(&rows, 0, 0).as_deref() == Some("YES");
            client.reuse(rows);
            (!is_on).then(|| questions.no_statements.to_owned())
        }
        Err(reason) => Some(reason),
    }
}

fn sessions_of(rows: &Rows) -> Vec<SessionRow> {
    let row = |row: usize| {
        let cell = |column: usize| text(rows, row, column).unwrap_or_default();
        SessionRow {
            id: cell(0),
            user: cell(1),
            database: cell(2),
            client: cell(3),
            state: cell(4),
            wait: cell(5),
            age_s: text(rows, row, 6).and_then(|age| age.parse().ok()),
            statement: cell(7),
        }
    };
    (0..rows.len(0)).map(row).collect()
}

/// PgBouncer's columns differ between versions, and are found by name.
fn pgbouncer_sessions(rows: &Rows) -> Vec<SessionRow> {
    let column = |name: &str| (0..rows.columns(0)).find(|column| rows.label(0, *column) == Some(name.as_bytes()));
    let row = |row: usize| {
        let cell = |name: &str| column(name).and_then(|column| text(rows, row, column)).unwrap_or_default();
        SessionRow {
            id: cell("ptr"),
            user: cell("user"),
            database: cell("database"),
            client: format!("{}:{}", cell("addr"), cell("port")),
            state: cell("state"),
            wait: if cell("state") == "waiting" { "for a server".to_owned() } else { String::new() },
            age_s: cell("wait").parse().ok().filter(|_| cell("state") == "waiting"),
            statement: String::new(),
        }
    };
    (0..rows.len(0)).map(row).collect()
}

fn statements_of(rows: &Rows) -> Vec<StatementRow> {
    let row = |row: usize| {
        let number = |column: usize| text(rows, row, column).and_then(|value| value.parse().ok());
        Some(StatementRow {
            id: text(rows, row, 0)?,
            calls: number(1)?,
            time_us: number(2)?,
            rows: number(3)?,
            misses: number(4),
            text: text(rows, row, 5).unwrap_or_default(),
        })
    };
    (0..rows.len(0)).filter_map(row).collect()
}
