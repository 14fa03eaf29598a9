//! One server: what it reports over a separate connection, and what the kernel reports about its processes.

use assay_engine::Target;
use assay_io::Clock;
use assay_seam::{Nanos, Rows, StatementId};
use assay_telemetry::question::Waits;
use assay_telemetry::{Question, plan};

use super::process::{self, Device, Tree};
use super::sampler::{Readings, Source};
use crate::client::{Client, text};

/// A server that has not answered by then is asked again at the next sample.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// Between two looks at what sessions wait for.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// A server to sample.
pub(super) struct Server {
    target: Target,
    clock: Clock,
    /// Where a local server's device goes.
    local: Option<Device>,
    client: Option<Client>,
    chosen: Vec<Chosen>,
    waits: Option<Chosen>,
    tree: Option<Tree>,
}

/// A question that the server answers.
struct Chosen {
    question: Question,
    statement: Option<StatementId>,
}

impl Server {
    pub(super) fn new(target: Target, clock: Clock, local: Option<Device>) -> Server {
        Server { target, clock, local, client: None, chosen: Vec::new(), waits: None, tree: None }
    }

    /// Connects, and finds out what this server has and lets us see.
    fn connect(&mut self, readings: &mut Readings) -> Result<(), String> {
        let mut client = Client::open(&self.target, self.clock, PATIENCE)?;
        let facts = client.server();
        let plan = plan(&facts.product, &facts.version);
        self.chosen.clear();
        for question in plan.questions {
            match choose(&mut client, &question, self.chosen.len(), readings) {
                Ok(chosen) => self.chosen.push(chosen),
                Err(reason) => question.asked.iter().for_each(|asked| readings.lack(asked.metric, &reason)),
            }
        }
        self.waits = waits(&mut client, plan.waits, self.chosen.len(), readings);
        if let Some(local) = &self.local {
            match process::find(&mut client, &plan.process) {
                Ok(found) => {
                    *local.lock().expect("samplers do not panic") = Some(found.device);
                    self.tree = Some(found.tree);
                }
                Err(reason) => {
                    let mut local = local.lock().expect("samplers do not panic");
                    local.get_or_insert_with(|| Err(reason.clone()));
                    process::METRICS.iter().for_each(|metric| readings.lack(metric, &reason));
                }
            }
        }
        self.client = Some(client);
        Ok(())
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

/// The question, prepared where that is possible; why not, when the server refuses it.
fn choose(client: &mut Client, question: &Question, number: usize, readings: &mut Readings) -> Result<Chosen, String> {
    readings.statements += 2;
    let rows = client.ask(&question.sql, PATIENCE)?;
    client.reuse(rows);
    let statement = StatementId(number as u32);
    let is_prepared = client.prepare(statement, &question.sql, PATIENCE).is_ok();
    Ok(Chosen { question: question.clone(), statement: is_prepared.then_some(statement) })
}

/// How to look at what sessions wait for, where the server lets us.
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
                        readings.lack(asked.metric, &format!("this server has no {}", asked.source));
                    }
                }
                values.iter().for_each(|(asked, value)| readings.put(asked.metric, asked.source, *value));
            }
        }
        if let Some(tree) = &mut self.tree
            && !tree.read(readings)
        {
            // It has ended; its successor is found when it lets us in.
            self.tree = None;
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

    fn close(&mut self) {
        if let Some(client) = self.client.take() {
            client.close();
        }
    }
}
