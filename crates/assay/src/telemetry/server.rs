//! One server: what it reports over a separate connection, and what the kernel reports about its processes.

use assay_engine::Target;
use assay_io::Clock;
use assay_seam::{Nanos, Rows, StatementId};
use assay_telemetry::question::Waits;
use assay_telemetry::{Question, Switched, pgbouncer, server_questions};

use super::data_folder::{self, DataFolder};
use super::hardware::Hardware;
use super::pace::Pace;
use super::process::{self, Device, Own, Tree};
use super::sampler::{Readings, Source};
use crate::client::{Client, text};

/// If it has not answered by then, it is queried again at the next sample.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// Between two observations of waits.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
/// Reading a server's processes and threads takes at most one part in this many of a CPU.
const TREE_SHARE: u64 = 200;

/// A server to sample.
pub(super) struct Server {
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
    own: Option<Own>,
    folder: Option<DataFolder>,
    pooler: Option<Pooler>,
}

/// A question that the server answers.
struct Chosen {
    question: Question,
    statement: Option<StatementId>,
}

impl Server {
    /// `pooler`: the admin console of the one in front of the server.
    pub(super) fn new(
        target: Target,
        pooler: Option<Target>,
        (full, clock): (bool, Clock),
        local: Option<Device>,
    ) -> Server {
        Server {
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
            folder: None,
            pooler: pooler.map(|target| Pooler { target, clock, client: None }),
        }
    }

    /// Connects, and finds out what this server has and permits.
    fn connect(&mut self, readings: &mut Readings) -> Result<(), String> {
        let mut client = Client::open(&self.target, self.clock, PATIENCE)?;
        let facts = client.server();
        let plan = server_questions(&facts.product, &facts.version);
        self.chosen.clear();
        let mut questions = plan.questions;
        if !plan.of_extensions.is_empty() {
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
        }
        for question in questions {
            match choose(&mut client, &question, self.chosen.len(), readings) {
                Ok(chosen) => self.chosen.push(chosen),
                Err(reason) => question.asked.iter().for_each(|asked| readings.lack(asked.metric, &reason)),
            }
        }
        if let (Some(switched), true) = (&plan.switched, self.full) {
            self.switch_on(&mut client, switched, readings);
        }
        self.waits = waits(&mut client, plan.waits, self.chosen.len(), readings);
        if let Some(local) = &self.local {
            match process::find(&mut client, &plan.process) {
                Ok(found) => {
                    *local.lock().expect("samplers do not panic") = Some(found.device);
                    let mut tree = found.tree;
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
        match choose(client, &switched.question, self.chosen.len(), readings) {
            Ok(chosen) => self.chosen.push(chosen),
            Err(reason) => lack(readings, &reason),
        }
    }

    /// What our own connection cost the server since the last time.
    fn count_own(&mut self, readings: &mut Readings) {
        if let Some(spent) = self.own.as_mut().and_then(Own::since_last) {
            readings.server_spent(spent);
        }
    }

    fn connected(&mut self, readings: &mut Readings) -> bool {
        if self.client.as_ref().is_none_or(|client| !client.is_open()) {
            self.client = None;
            if let Err(reason) = self.connect(readings) {
                readings.lack("commits", &reason);
            }
        }
        self.client.is_some()
    }
}

/// The question, as a prepared statement if possible; or why the server refuses it.
fn choose(client: &mut Client, question: &Question, number: usize, readings: &mut Readings) -> Result<Chosen, String> {
    readings.statements += 2;
    let rows = client.ask(&question.sql, PATIENCE)?;
    client.reuse(rows);
    let statement = StatementId(number as u32);
    let is_prepared = client.prepare(statement, &question.sql, PATIENCE).is_ok();
    Ok(Chosen { question: question.clone(), statement: is_prepared.then_some(statement) })
}

/// How to observe waits, if the server permits it.
fn waits(client: &mut Client, waits: Option<Waits>, number: usize, readings: &mut Readings) -> Option<Chosen> {
    let waits = waits?;
    if !waits.condition.is_empty() {
        readings.statements += 1;
        let is_on = client.ask(waits.condition, PATIENCE).ok().and_then(|rows| text(&rows, 0, 0));
        if is_on.as_deref() != Some("YES") {
            readings.lack("waits", waits.refused);
            return None;
        }
    }
    let question = Question { sql: waits.sql.to_owned(), shape: assay_telemetry::Shape::Named, asked: Vec::new() };
    match choose(client, &question, number, readings) {
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
fn answer(client: &mut Client, chosen: &Chosen, readings: &mut Readings) -> Option<Box<Rows>> {
    let before = client.now();
    let rows = match chosen.statement {
        Some(statement) => client.execute(statement, PATIENCE),
        None => client.ask(&chosen.question.sql, PATIENCE),
    };
    readings.statements += 1;
    readings.statements_ns += (client.now() - before).0;
    rows.ok()
}

impl Source for Server {
    fn open(&mut self, readings: &mut Readings) {
        self.connected(readings);
    }

    fn sample(&mut self, readings: &mut Readings) {
        if self.connected(readings) {
            let client = self.client.as_mut().expect("it is connected");
            for chosen in &self.chosen {
                let Some(rows) = answer(client, chosen, readings) else { continue };
                let values = chosen.question.read(&rows);
                client.reuse(rows);
                for asked in &chosen.question.asked {
                    if !values.iter().any(|(found, _)| found == asked) {
                        readings.lack(asked.metric, &format!("this server does not report {}", asked.source));
                    }
                }
                values.iter().for_each(|(asked, value)| readings.put(asked.metric, asked.source, *value));
            }
        }
        self.count_own(readings);
        if let Some(tree) = &mut self.tree
            && self.tree_pace.keep(self.clock.now(), || tree.read(readings)) == Some(false)
        {
            // It has ended; its successor is found once it accepts connections.
            self.tree = None;
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
        let Some(rows) = answer(client, waits, readings) else { return };
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
        for (on, undo) in self.switched_on.drain(..) {
            let is_undone = client.ask(&undo, PATIENCE).is_ok();
            readings.intervened(on, is_undone.then_some(undo));
        }
        client.close();
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
                    return asked.for_each(|asked| readings.lack(asked.metric, &reason));
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
