//! An agent's run as the engine sees it: the other processes, and the reports to the coordinator.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_engine::{Agent, Gate, Notice, Observer, Outcome, Plan};
use assay_fleet::{Bus, Part};
use assay_record::{
    AgentPart, AgentStage, Connected, Event, Record, StageInterval, StageStarted, Started, Status, Totals,
};
use assay_seam::Nanos;

use crate::{record_of, watch};

/// The other agents, over the bus.
pub struct Link {
    agent: Agent,
    part: Arc<Part>,
}

impl Link {
    /// For this part of a run.
    pub fn new(agent: Agent, part: Arc<Part>) -> Link {
        Link { agent, part }
    }
}

impl assay_engine::Fleet for Link {
    fn agent(&self) -> Agent {
        self.agent
    }

    fn claim(&self, name: &[u8], granted: Box<dyn FnOnce(u64) + Send>) {
        self.part.claim(name, granted);
    }

    fn arrive(&self, generation: u64, opened: Box<dyn FnOnce() + Send>) {
        self.part.arrive(generation, opened);
    }

    fn leave(&self) {
        self.part.report(|report| report.left = true);
    }

    fn passes(&self, gate: Gate, now: Nanos) -> Option<Nanos> {
        let wire = match gate {
            Gate::Sessions => assay_fleet::Gate::Sessions,
            Gate::Stage(stage) => assay_fleet::Gate::Stage(stage as u32),
            Gate::Done => assay_fleet::Gate::Done,
        };
        self.part.report(|report| report.waits = Some(wire));
        let own = self.agent.number as usize;
        let open = self.part.orders(|orders| orders.gates.iter().find(|open| open.gate == wire).cloned());
        let Some(open) = open else {
            // Nobody will open it, but the script must still clean up.
            let alone = self.part.is_abandoned() || self.part.orders(|orders| orders.over);
            return (gate == Gate::Done && alone).then_some(now);
        };
        self.part.report(|report| report.waits = None);
        let Some(at) = open.at_ns.get(own) else { return Some(now) };
        let ahead = at - self.part.now_ns();
        if let Gate::Stage(stage) = gate {
            self.part.report(|report| {
                report.late_ns.resize(stage + 1, 0);
                report.late_ns[stage] = u64::try_from(-ahead).unwrap_or(0);
            });
        }
        Some(now + Nanos(u64::try_from(ahead).unwrap_or(0)))
    }
}

/// Reports to the coordinator, and stores a partial record where the coordinator can find it.
pub struct Reporter<'a> {
    /// What is done.
    pub plan: &'a Plan,
    /// The bus.
    pub bus: &'a Arc<Bus>,
    /// This agent's part in the run.
    pub part: &'a Part,
    /// The run.
    pub run: &'a str,
    /// The record so far; `None`: a command has none.
    pub record: Option<Record>,
    /// When it was last stored.
    pub stored: Instant,
    /// Stages whose start the coordinator has been sent.
    pub stages: usize,
}

/// A partial record is stored this often.
const STORE_EVERY: Duration = Duration::from_secs(5);

impl Reporter<'_> {
    /// Sends the start of the record to the coordinator, which then follows it.
    pub fn begin(&self) {
        if let Some(record) = &self.record {
            self.part.add_news(Event::Started(Box::new(Started::of(record))).line());
        }
    }

    /// Stores the record so far, and sends its totals to the coordinator: it has them even if the store is lost.
    fn store(&mut self, so_far: &Outcome) {
        if let Some(record) = &mut self.record {
            record_of::fill(record, so_far, (Status::Running, None));
            let bytes = record.to_bytes();
            let number = record.agents.iter().position(|agent| !agent.name.is_empty()).unwrap_or(0);
            self.bus.store_soon(self.run, number as u32, bytes);
            for number in self.stages..record.stages.len() {
                let started = StageStarted::of(record, number).map(Event::StageStarted);
                started.into_iter().for_each(|started| self.part.add_news(started.line()));
            }
            self.stages = record.stages.len();
            if let Some(totals) = self.stages.checked_sub(1).and_then(|last| Totals::of(record, last)) {
                self.part.add_news(Event::SoFar(Box::new(totals)).line());
            }
        }
        self.stored = Instant::now();
    }
}

impl Observer for Reporter<'_> {
    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::Connecting { ready, wanted } => {
                self.part.report(|report| (report.ready, report.wanted) = (ready, wanted));
            }
            Notice::Loading { rows, expected, elapsed: _ } => {
                self.part.report(|report| (report.loaded, report.expected) = (rows, expected));
            }
            Notice::Log { session: _, text } => self.part.add_news(watch::notice(text, false).line()),
            Notice::Warning(warning) => {
                self.part.add_news(watch::notice(&watch::warning_text(&warning, self.plan), true).line());
            }
            Notice::Interval { stage, interval, so_far } => {
                if let Some(record) = self.record.as_mut().filter(|record| record.types != so_far.types) {
                    record.types.clone_from(&so_far.types);
                    self.part.add_news(Event::Connected(Box::new(Connected::of(record))).line());
                }
                let (stage, interval) = (stage as u32, interval.measured.clone());
                self.part.add_news(Event::Interval(Box::new(StageInterval { stage, interval })).line());
                if self.stored.elapsed() >= STORE_EVERY {
                    self.store(so_far);
                }
            }
            Notice::StageEnds { stage: _, so_far } => self.store(so_far),
            Notice::Begins { .. }
            | Notice::Ends { .. }
            | Notice::StageReady
            | Notice::StageBegins { .. }
            | Notice::Overdue { .. }
            | Notice::Journal { .. }
            | Notice::History { .. } => {}
        }
    }
}

/// In a share's record: whose it is, and of how many.
pub fn sign(record: &mut Record, agent: Agent, name: &str, late_ns: &[u64]) {
    record.agents = (0..agent.agents).map(|number| AgentPart { number, ..AgentPart::default() }).collect();
    let own = &mut record.agents[agent.number as usize];
    name.clone_into(&mut own.name);
    own.stages = late_ns.iter().map(|late_ns| AgentStage { late_ns: *late_ns, ..AgentStage::default() }).collect();
}
