//! One server: what it reports over a separate connection, and what the kernel reports about its processes.

use assay_engine::Target;
use assay_io::Clock;
use assay_seam::{Nanos, Rows, StatementId};
use assay_telemetry::question::{Condition, OWN_IDS, Waits};
use assay_telemetry::{OwnPart, Question, Shape, Switched, buffers_read, pgbouncer};

use super::data_folder::{self, DataFolder};
use super::hardware::Hardware;
use super::pace::Pace;
use super::process::{self, Device, Tree};
use super::sampler::{Moment, Own, Readings, SampleSource};
use super::server_log::ServerLog;
use super::statement_uses::StatementUses;
use super::statements::Statements;
use crate::client::{Client, Sent, text, words_of};
use assay_products::{live_questions, server_questions};

/// If it has not answered by then, it is queried again at the next sample.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// Between two observations of waits.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
/// Reading a server's processes and threads takes at most one part in this many of a CPU.
const TREE_SHARE: u64 = 200;

/// Numbers of prepared statements beyond those of the questions.
const WAITS: usize = 1000;
const PUBLISH: usize = 1001;
const RUNNING: usize = 1002;

/// A server to sample.
pub(super) struct ServerBeside {
    number: u32,
    target: Target,
    clock: Clock,
    full: bool,
    /// Where a local server's device is reported.
    local: Option<Device>,
    client: Option<Client>,
    chosen: Vec<Chosen>,
    waits: Option<Chosen>,
    /// Counters that we switched on: the statements that did, and those that undo it.
    switched_on: Vec<(String, String)>,
    tree: Option<Tree>,
    tree_pace: Pace,
    own: Option<process::Own>,
    work: OwnWork,
    publish: Option<Chosen>,
    /// Asks for the statements that sessions execute.
    running: Option<Chosen>,
    statements: Statements,
    folder: Option<DataFolder>,
    log: Option<ServerLog>,
    /// Since the first connection.
    uses: Option<StatementUses>,
    pooler: Option<Pooler>,
    /// Only a pooler is sampled, no server.
    is_console: bool,
}

/// What the server did for us since the start of the run, over all connections.
#[derive(Default)]
struct OwnWork {
    /// By connections that are closed.
    before: Sent,
    buffers: u64,
    cpu: Nanos,
    /// Questions about waits.
    looks: u64,
    /// Our statements are part of the server's statement statistics.
    watched: bool,
}

/// A question that the server answers.
struct Chosen {
    question: Question,
    statement: Option<StatementId>,
    /// Buffers that the server reads for it.
    buffers: u64,
}

impl ServerBeside {
    /// `pooler`: the admin console of the one in front of the server.
    pub(super) fn new(
        (number, target): (u32, Target),
        pooler: Option<Target>,
        (full, clock): (bool, Clock),
        local: Option<Device>,
    ) -> ServerBeside {
        ServerBeside {
            number,
            target,
            clock,
            full,
            local,
            client: None,
            chosen: Vec::new(),
            waits: None,
            switched_on: Vec::new(),
            tree: None,
            tree_pace: Pace::new(TREE_SHARE),
            own: None,
            work: OwnWork::default(),
            publish: None,
            running: None,
            statements: Statements::default(),
            folder: None,
            log: None,
            uses: None,
            pooler: pooler.map(|target| Pooler { target, clock, client: None }),
            is_console: false,
        }
    }

    /// A pooler alone, by its admin console.
    pub(super) fn of_console(target: Target, clock: Clock) -> ServerBeside {
        let console = ServerBeside::new((0, target.clone()), Some(target), (false, clock), None);
        ServerBeside { is_console: true, ..console }
    }

    /// Connects, and finds out what this server has and permits.
    fn connect(&mut self, readings: &mut Readings) -> Result<(), String> {
        let mut client = Client::open(&self.target, self.clock, PATIENCE).map_err(|error| words_of(&error))?;
        let facts = client.server();
        let plan = server_questions(&facts.product, &facts.version);
        let live = live_questions(&facts.product, &facts.version);
        if self.uses.is_none() {
            self.uses = StatementUses::begin(&mut client, live, PATIENCE, readings);
        }
        self.chosen.clear();
        let (explain, mut questions) = (plan.explain, plan.questions);
        if !plan.extensions_sql.is_empty() {
            readings.statements += 1;
            let rows = client.ask(plan.extensions_sql, PATIENCE)?;
            let present: Vec<String> = (0..rows.len(0)).filter_map(|row| text(&rows, row, 0)).collect();
            client.reuse(rows);
            for (extension, question) in plan.of_extensions {
                if present.iter().any(|one| one == extension) {
                    questions.push(question);
                } else {
                    let reason = format!("the database has no extension {extension}");
                    question.asked.iter().for_each(|asked| readings.lack(asked.metric, &reason));
                }
            }
            for (extension, question) in plan.without_extensions {
                if present.iter().any(|one| one.eq_ignore_ascii_case(extension)) {
                    let reason = format!("{extension} is active, whose part is not known");
                    question.asked.iter().for_each(|asked| readings.lack(asked.metric, &reason));
                } else {
                    questions.push(question);
                }
            }
        }
        // Questions about statements come last, when all others have been asked.
        questions.sort_by_key(|question| !question.own_ids_sql.is_empty());
        self.work.looks += u64::from(plan.waits.is_some());
        self.waits = waits(&mut client, explain, plan.waits, readings);
        self.publish = match plan.publish_sql {
            "" => None,
            sql => {
                let question = Question::new(sql.to_owned(), Shape::Row, Vec::new());
                choose(&mut client, explain, question, PUBLISH, readings).ok()
            }
        };
        self.running = plan.running.and_then(|running| {
            self.statements.running = Some(running);
            let question = Question::new(running.sql.to_owned(), Shape::Row, Vec::new());
            choose(&mut client, explain, question, RUNNING, readings).ok()
        });
        for question in questions {
            let asked = question.asked.clone();
            if let Some(refused) = refused(&mut client, question.condition, readings) {
                asked.iter().for_each(|asked| readings.lack(asked.metric, refused));
                continue;
            }
            if question.of_some && is_elsewhere(&mut client, &question, readings) {
                continue;
            }
            match choose(&mut client, explain, question, self.chosen.len(), readings) {
                Ok(chosen) => self.chosen.push(chosen),
                Err(reason) => asked.iter().for_each(|asked| readings.lack(asked.metric, &reason)),
            }
        }
        if let (Some(switched), true) = (&plan.switched, self.full) {
            self.switch_on(&mut client, switched, readings);
        }
        if let Some(local) = &self.local {
            match process::find(&mut client, &plan.process) {
                Ok(found) => {
                    *local.lock().expect("samplers do not panic") = Some(found.device);
                    let mut tree = found.tree;
                    self.log = ServerLog::of(tree.root(), self.log.take());
                    tree.hardware = self.full.then(Hardware::default);
                    self.tree = Some(tree);
                    self.own = found.own;
                    self.folder = found.folder.map(DataFolder::new);
                }
                Err(reason) => {
                    let mut local = local.lock().expect("samplers do not panic");
                    local.get_or_insert_with(|| Err(reason.clone()));
                    let all = process::METRICS.iter().chain([&data_folder::METRIC]);
                    all.for_each(|metric| readings.lack(metric, &reason));
                }
            }
        }
        if !plan.unwatch_sql.is_empty() {
            readings.statements += 1;
            self.work.watched = client.ask(plan.unwatch_sql, PATIENCE).is_err();
        }
        self.client = Some(client);
        Ok(())
    }

    /// Counters that are off, and wanted.
    fn switch_on(&mut self, client: &mut Client, switched: &Switched, readings: &mut Readings) {
        let lack = |readings: &mut Readings, reason: &str| {
            switched.question.asked.iter().for_each(|asked| readings.lack(asked.metric, reason));
        };
        let mut answer = Err(String::new());
        for sql in &switched.off_sql {
            readings.statements += 1;
            answer = client.ask(sql, PATIENCE);
            if answer.is_ok() {
                break;
            }
        }
        let off = match answer {
            Ok(rows) => (0..rows.len(0)).filter_map(|row| text(&rows, row, 0)).collect::<Vec<_>>(),
            Err(reason) => return lack(readings, &reason),
        };
        for name in off {
            let [on, undo] = [switched.on_sql, switched.undo_sql].map(|sql| sql.replace("{}", &name));
            readings.statements += 1;
            if let Err(reason) = client.ask(&on, PATIENCE) {
                return lack(readings, &reason);
            }
            readings.intervened(on.clone(), None);
            self.switched_on.push((on, undo));
        }
        match choose(client, "", switched.question.clone(), self.chosen.len(), readings) {
            Ok(chosen) => self.chosen.push(chosen),
            Err(reason) => lack(readings, &reason),
        }
    }

    /// What our own connection cost the server since the last time.
    fn count_own(&mut self, readings: &mut Readings) {
        if let Some(spent) = self.own.as_mut().and_then(process::Own::since_last) {
            readings.server_spent(spent);
            self.work.cpu += spent;
        }
    }

    fn connected(&mut self, readings: &mut Readings) -> bool {
        if self.is_console {
            return false;
        }
        if self.client.as_ref().is_none_or(|client| !client.is_open()) {
            if let Some(lost) = self.client.take() {
                self.work.before = self.work.before + lost.sent();
            }
            if let Err(reason) = self.connect(readings) {
                readings.lack("commits", &reason);
            }
        }
        self.client.is_some()
    }
}

/// Whether this server has nothing of what is asked for.
fn is_elsewhere(client: &mut Client, question: &Question, readings: &mut Readings) -> bool {
    readings.statements += 1;
    // Why the server refuses the question is reported when it is chosen.
    client.ask(&question.sql, PATIENCE).is_ok_and(|rows| {
        let is_empty = question.read(&rows).is_empty();
        client.reuse(rows);
        is_empty
    })
}

/// The question, as a prepared statement if possible; or why the server refuses it.
fn choose(
    client: &mut Client,
    explain: &str,
    mut question: Question,
    number: usize,
    readings: &mut Readings,
) -> Result<Chosen, String> {
    readings.statements += 2;
    let rows = client.ask(&question.sql, PATIENCE)?;
    client.reuse(rows);
    if !question.own_ids_sql.is_empty() {
        readings.statements += 1;
        let rows = client.ask(question.own_ids_sql, PATIENCE)?;
        let ids: Vec<String> = (0..rows.len(0)).filter_map(|row| text(&rows, row, 0)).collect();
        client.reuse(rows);
        question.sql = question.sql.replace(OWN_IDS, &format!("'{{{}}}'", ids.join(",")));
    }
    let mut buffers = 0;
    if !explain.is_empty() && !question.uncounted {
        readings.statements += 1;
        // Without the answer, our own part is not subtracted.
        if let Ok(rows) = client.ask(&format!("{explain}{}", question.sql), PATIENCE) {
            let lines: Vec<String> = (0..rows.len(0)).filter_map(|row| text(&rows, row, 0)).collect();
            client.reuse(rows);
            buffers = buffers_read(&lines.join("\n"));
        }
    }
    let statement = StatementId(number as u32);
    let is_prepared = !question.shape.has_names() && client.prepare(statement, &question.sql, PATIENCE).is_ok();
    Ok(Chosen { question, statement: is_prepared.then_some(statement), buffers })
}

/// Why something is not asked; `None`: it is.
fn refused(client: &mut Client, condition: Option<Condition>, readings: &mut Readings) -> Option<&'static str> {
    let condition = condition?;
    readings.statements += 1;
    let answer = client.ask(condition.sql, PATIENCE).ok().and_then(|rows| {
        let last = rows.columns(0).saturating_sub(1);
        text(&rows, 0, last)
    });
    (answer.as_deref() != Some("YES")).then_some(condition.refused)
}

/// How to observe waits, if the server permits it.
fn waits(client: &mut Client, explain: &str, waits: Option<Waits>, readings: &mut Readings) -> Option<Chosen> {
    let waits = waits?;
    if let Some(refused) = refused(client, waits.condition, readings) {
        readings.lack("waits", refused);
        return None;
    }
    let question = Question::new(waits.sql.to_owned(), Shape::Named, Vec::new());
    match choose(client, explain, question, WAITS, readings) {
        Ok(chosen) => {
            readings.samples_waits();
            Some(chosen)
        }
        Err(reason) => {
            readings.lack("waits", &reason);
            None
        }
    }
}

/// The answer, and how long it took.
fn answer(client: &mut Client, chosen: &Chosen, work: &mut OwnWork, readings: &mut Readings) -> Option<Box<Rows>> {
    let before = client.now();
    let rows = match chosen.statement {
        Some(statement) => client.execute(statement, PATIENCE),
        None => client.ask(&chosen.question.sql, PATIENCE),
    };
    readings.statements += 1;
    readings.statements_ns += (client.now() - before).0;
    work.buffers += chosen.buffers;
    rows.ok()
}

impl OwnWork {
    /// Our part of a server's count that is read now.
    fn part(&self, of: OwnPart, client: &Client) -> Own {
        let sent = self.before + client.sent();
        match of {
            OwnPart::None => Own::Nothing,
            OwnPart::Statements => Own::Part(sent.statements),
            OwnPart::Transactions => Own::Part(sent.statements + sent.prepared),
            OwnPart::Waits => Own::Part(self.looks),
            OwnPart::Buffers => Own::Part(self.buffers),
            OwnPart::Watched if self.watched => Own::Unknown,
            OwnPart::Watched => Own::Nothing,
        }
    }
}

impl SampleSource for ServerBeside {
    fn open(&mut self, readings: &mut Readings) {
        self.connected(readings);
    }

    fn sample(&mut self, moment: Moment, readings: &mut Readings) {
        if self.connected(readings) {
            let client = self.client.as_mut().expect("it is connected");
            // What costs reads is asked outside the time in which reads are counted.
            let all = self.chosen.iter().filter(|chosen| moment == Moment::Within || !chosen.question.late);
            let (at_ends, every): (Vec<&Chosen>, Vec<&Chosen>) = all.partition(|chosen| chosen.question.at_ends);
            let questions = match moment {
                Moment::First => [at_ends, every].concat(),
                Moment::Within => every,
                Moment::Last => [every, at_ends].concat(),
            };
            let late = self.chosen.iter().filter(|chosen| moment == Moment::First && chosen.question.late);
            for asked in late.flat_map(|chosen| &chosen.question.asked) {
                // Until it is read.
                readings.lack(asked.metric, "this server publishes it too late for so short a stage");
            }
            if let Some(publish) = &self.publish
                && let Some(rows) = answer(client, publish, &mut self.work, readings)
            {
                client.reuse(rows);
            }
            for chosen in questions {
                // As far as the server can have counted.
                let own: Vec<Own> =
                    chosen.question.asked.iter().map(|asked| self.work.part(asked.own, client)).collect();
                let Some(rows) = answer(client, chosen, &mut self.work, readings) else { continue };
                let values = chosen.question.read(&rows);
                client.reuse(rows);
                for (asked, own) in chosen.question.asked.iter().zip(own) {
                    match values.iter().find(|(found, _)| found == asked) {
                        Some((asked, value)) => readings.put_with(asked.metric, asked.source, *value, own),
                        None if chosen.question.of_some => {}
                        None => {
                            let reason = format!("this server does not report {}", asked.source);
                            readings.lack(asked.metric, &reason);
                        }
                    }
                }
            }
        }
        if let (Moment::Within, Some(client), Some(running)) = (moment, &mut self.client, &self.running)
            && let Some(rows) = answer(client, running, &mut self.work, readings)
        {
            (0..rows.len(0)).filter_map(|row| text(&rows, row, 0)).for_each(|text| self.statements.saw(text));
            client.reuse(rows);
        }
        self.count_own(readings);
        // Without a connection there is no work for us.
        let own = match (&self.own, &self.client) {
            (None, Some(_)) => Own::Unknown,
            _ => Own::Part(self.work.cpu.0 / 1000),
        };
        if let Some(tree) = &mut self.tree
            && self.tree_pace.keep(self.clock.now(), || tree.read(own, readings)) == Some(false)
        {
            // It has ended; its successor is found once it accepts connections.
            self.tree = None;
        }
        if let Some(log) = &mut self.log {
            log.read(readings);
        }
        if let Some(folder) = &mut self.folder {
            folder.read(self.clock.now(), readings);
        }
        if let Some(pooler) = &mut self.pooler {
            pooler.read(readings);
        }
    }

    fn look_every(&self) -> Option<Nanos> {
        self.waits.as_ref().map(|_| LOOK_EVERY)
    }

    fn look(&mut self, readings: &mut Readings) {
        let (Some(client), Some(waits)) = (&mut self.client, &self.waits) else { return };
        self.work.looks += 1;
        let Some(rows) = answer(client, waits, &mut self.work, readings) else { return };
        let sessions = (0..rows.len(0)).filter_map(|row| {
            let number = text(&rows, row, 1)?.parse().ok()?;
            Some((text(&rows, row, 0)?, number))
        });
        readings.saw(sessions.collect::<Vec<_>>());
        client.reuse(rows);
    }

    fn close(&mut self, readings: &mut Readings) {
        if let Some(pooler) = self.pooler.as_mut().and_then(|pooler| pooler.client.take()) {
            pooler.close();
        }
        self.count_own(readings);
        self.own = None;
        let Some(mut client) = self.client.take() else { return };
        if let Some(uses) = &self.uses {
            uses.read(&mut client, PATIENCE, readings);
        }
        self.work.before = self.work.before + client.sent();
        for (on, undo) in self.switched_on.drain(..) {
            let is_undone = client.ask(&undo, PATIENCE).is_ok();
            readings.intervened(on, is_undone.then_some(undo));
        }
        client.close();
        // As sessions log in, whose settings may change plans.
        if self.statements.has_news()
            && let Ok(mut client) = Client::open_as_session(&self.target, self.clock, PATIENCE, None)
        {
            self.statements.explain(&mut client, self.number, readings);
            self.work.before = self.work.before + client.sent();
            client.close();
        }
    }
}

/// A pooler in front of a server, queried through its admin console.
struct Pooler {
    target: Target,
    clock: Clock,
    client: Option<Client>,
}

impl Pooler {
    fn read(&mut self, readings: &mut Readings) {
        let mut client = match self.client.take().filter(Client::is_open) {
            Some(client) => client,
            None => match Client::open(&self.target, self.clock, PATIENCE) {
                Ok(client) => client,
                Err(reason) => {
                    let questions = pgbouncer::questions();
                    let asked = questions.iter().flat_map(|question| &question.asked);
                    return asked.for_each(|asked| readings.lack(asked.metric, &words_of(&reason)));
                }
            },
        };
        for question in pgbouncer::questions() {
            readings.statements += 1;
            match client.ask(&question.sql, PATIENCE) {
                Ok(rows) => {
                    let values = question.read(&rows);
                    client.reuse(rows);
                    values.iter().for_each(|(asked, value)| {
                        readings.put(asked.metric, &format!("{}: {}", question.sql, asked.source), *value);
                    });
                }
                Err(reason) => question.asked.iter().for_each(|asked| readings.lack(asked.metric, &reason)),
            }
        }
        self.client = Some(client);
    }
}
