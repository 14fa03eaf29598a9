//! The numbers of one run; every number of a report is computed here and in the files next to it.
//!
//! Figures that cannot be derived from what was measured are `None`, never zero: a mean of nothing, a p99.9 of few
//! values. Sums saturate, so that no file can make a report panic.

use std::collections::{BTreeMap, BTreeSet};

use assay_record as record;
use assay_record::{
    Attribute, EventLoop, Limit, Load, Note, OptionValue, Place, Policy, RatePoint, Record, RecordedTrial, Status,
    Terminals, Time, Trace,
};
use serde::Serialize;

use crate::findings::agents::{AgentFindings, agent_findings};
use crate::findings::capacity::{Capacity, CapacityFindings, OfGenerator, SearchState, capacity_findings};
use crate::findings::cases::{CasesFindings, cases_findings};
use crate::findings::isolation::{IsolationFindings, isolation_findings};
use crate::findings::metric_unit::MetricUnit;
use crate::findings::stage::{StageFindings, stage_findings};
use crate::findings::tally::{ErrorFindings, errors_by_kind};
use crate::findings::telemetry::{SamplingFindings, sampling};
use crate::findings::warning::{Observed, Warning, damage, warnings};

/// The findings of a record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// Name and version of the assay that made the record.
    pub tool: String,
    /// Outcome of the run.
    pub status: Status,
    /// Why it failed.
    pub failure: Option<String>,
    /// The command line of the run, without passwords.
    pub command: Vec<String>,
    /// The workload.
    pub workload: String,
    /// The task, which determines what a transaction is.
    pub task: Task,
    /// Its options, with the values in effect.
    pub options: BTreeMap<String, OptionValue>,
    /// Requested values of options that differ from the tables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub asked: BTreeMap<String, OptionValue>,
    /// Options about the tables that the workload compared with them; `None`: not known.
    #[serde(skip)]
    pub found: Option<BTreeSet<String>>,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Distribution of the row numbers.
    pub distribution: Option<String>,
    /// When transactions were due.
    pub load: Load,
    /// Course of the rate during every stage; empty: constant.
    pub profile: Vec<RatePoint>,
    /// The file with the due instants of transactions.
    pub trace: Option<Trace>,
    /// The result of the search that the stages belong to.
    pub capacity: Option<CapacityFindings>,
    /// Users who shared the sessions.
    pub terminals: Option<Terminals>,
    /// When a stage was to end.
    pub limit: Limit,
    /// Warm-up of every stage.
    pub warmup_ns: u64,
    /// Start of the run.
    pub started: Time,
    /// Its length, including connects.
    pub elapsed_ns: u64,
    /// What distinguishes this run from others, besides its tags.
    #[serde(skip)]
    pub attributes: Vec<Attribute>,
    /// What distinguishes the servers that were started for the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identity: Vec<Attribute>,
    /// The trial of an experiment that this run was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<RecordedTrial>,
    /// Statements run on every new connection.
    pub session_sql: Vec<String>,
    /// Whether protocol-level prepared statements were used.
    pub prepared: bool,
    /// Reaction to errors.
    pub policy: Policy,
    /// Worker threads.
    pub workers: u32,
    /// Event loop of the workers; `None` if unknown or there were no sockets.
    pub event_loop: Option<EventLoop>,
    /// The generator's machine.
    pub host: GeneratorHost,
    /// CPUs of the generator's machine.
    pub cpus: u32,
    /// More of that machine, by name.
    pub facts: BTreeMap<String, String>,
    /// The user's tags.
    pub tags: BTreeMap<String, String>,
    /// The servers.
    pub targets: Vec<ServerFindings>,
    /// One per stage, in order.
    pub stages: Vec<StageFindings>,
    /// The cost of sampling servers and machines; `None`: they were not sampled.
    pub sampling: Option<SamplingFindings>,
    /// The agents of a fleet, whose work is added up in the stages; empty: one process did everything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFindings>,
    /// What the user noted during the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Errors over all stages, the most frequent first.
    pub errors: Vec<ErrorFindings>,
    /// Statements compared by `assay sql`; `None` for a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cases: Option<CasesFindings>,
    /// Whether the database kept the isolation that it promised; `None` if the workload does not check that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationFindings>,
    /// Warnings: read these before trusting a number.
    pub warnings: Vec<Warning>,
}

/// Tasks that leave records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// It ran: transactions.
    #[default]
    Run,
    /// Its tables were filled: a transaction is a row.
    Prepare,
    /// Its tables were checked: one transaction.
    Check,
    /// A machine test: a transaction is an event.
    Machine,
}

impl Task {
    /// An unknown task counts as a run.
    fn of(name: &str) -> Task {
        match name {
            "prepare" => Task::Prepare,
            "check" => Task::Check,
            "machine" => Task::Machine,
            _ => Task::Run,
        }
    }

    /// The unit of its throughput.
    pub(crate) fn rate(self) -> MetricUnit {
        match self {
            Task::Run | Task::Check => MetricUnit::PerSecond,
            Task::Prepare => MetricUnit::RowsPerSecond,
            Task::Machine => MetricUnit::EventsPerSecond,
        }
    }
}

/// The load generator's machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GeneratorHost {
    /// Its name.
    pub name: String,
    /// Its kernel's name and release.
    pub kernel: String,
    /// Its CPU's name.
    pub cpu_model: String,
    /// Its memory.
    pub memory_bytes: u64,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerFindings {
    /// Its URL, without a password.
    pub url: String,
    /// Product name; empty if it never answered.
    pub product: String,
    /// Version.
    pub version: String,
    /// TLS version and cipher.
    pub tls: Option<String>,
    /// Where it ran.
    pub place: Place,
    /// Settings that affect performance or differ from their defaults, as the server spells them.
    pub settings: BTreeMap<String, String>,
    /// Origin of the values that differ.
    pub origins: BTreeMap<String, String>,
    /// Facts about a local server's process, data directory and drive.
    pub facts: BTreeMap<String, String>,
}

impl ServerFindings {
    /// Its product and version, without what packagers append: `PostgreSQL 17.2`.
    pub(crate) fn in_short(&self) -> String {
        let version = self.version.split([' ', '-', '+']).next().unwrap_or_default();
        format!("{} {version}", self.product)
    }
}

impl Findings {
    /// Whether a database ran inside the generator, on its workers.
    pub(crate) fn is_embedded(&self) -> bool {
        self.targets.iter().any(|target| target.place == Place::Embedded)
    }

    /// Whether its stages differ in their rates: it searched for the highest that keeps promises.
    pub(crate) fn searches_rate(&self) -> bool {
        matches!(&self.capacity, Some(CapacityFindings { of: Capacity::Rate { .. }, .. }))
    }

    /// The stage for reports that can show only one: for a search, the one with the highest value within capacity;
    /// otherwise the best of several, or the last.
    pub(crate) fn main_stage(&self) -> Option<&StageFindings> {
        if let Some(stage) = self.capacity.as_ref().and_then(|found| self.stages.get(found.best_look()?)) {
            return Some(stage);
        }
        self.stages.iter().find(|stage| stage.best).or(self.stages.last())
    }
}

/// All findings of a record.
pub fn findings(record: &Record) -> Findings {
    found(record, true)
}

/// The findings of a record that comparisons need: without anything over time, and without confidence intervals within
/// the run. `record` may lack the histograms of its intervals (`Record::read_figures`).
pub fn figures(record: &Record) -> Findings {
    found(record, false)
}

/// `over_time`: also what figures leave out.
fn found(record: &Record, over_time: bool) -> Findings {
    let open = match record.manifest.load {
        Load::Closed => None,
        Load::Open { rate_per_s, .. } => Some(rate_per_s),
    };
    let is_search = record.manifest.search.is_some();
    let cpus = record.environment.host.cpus;
    let of = |stage| stage_findings(stage, record, open, cpus, over_time);
    let mut stages: Vec<_> = record.stages.iter().map(of).collect();
    let best = stages.iter().map(|stage| stage.total.tps).fold(0.0, f64::max);
    if let [_, _, ..] = stages[..]
        && !is_search
        && let Some(stage) = stages.iter_mut().find(|stage| stage.total.tps > 0.0 && stage.total.tps >= best)
    {
        stage.best = true;
    }
    if let Some(knee) = knee(&stages).filter(|_| !is_search) {
        stages[knee].knee = true;
    }
    let targets = targets(record);
    let places: Vec<Place> = targets.iter().map(|target| target.place).collect();
    let mut warnings = warnings(&Observed { status: record.status, stages: &stages, places: &places, cpus });
    if let Some(damage) = damage(record) {
        warnings.insert(0, damage);
    }
    let advice = |stage: usize| {
        let mut of_stage = warnings.iter().filter(|warning| warning.stage() == Some(stage));
        of_stage.find_map(Warning::advice_on_generator)
    };
    let of_generator: Vec<OfGenerator> = stages
        .iter()
        .enumerate()
        .map(|(number, stage)| OfGenerator {
            advice: advice(number),
            waited_for_cpu: stage.generator.and_then(|generator| generator.waited_for_cpu).unwrap_or(0.0),
            lag_ns: stage.total.lag.p99_ns.or(stage.total.lag.max_ns).unwrap_or(0),
        })
        .collect();
    let sizes = record.manifest.asked.iter().filter_map(|(option, asked)| {
        let actual = record.manifest.options.get(option)?.clone();
        Some(Warning::OtherSize { option: option.clone(), asked: asked.clone(), actual })
    });
    warnings.extend(sizes);
    let capacity = capacity_findings(record, &of_generator);
    if let Some(found) = &capacity {
        // Beyond capacity servers do not keep up: that is what the search is for.
        let best = found.best_look();
        warnings.retain(|warning| warning.stage().is_none() || warning.stage() == best);
        let is_knee = matches!(found.of, Capacity::Sessions { .. }) && found.state != SearchState::Unfinished;
        if let (true, Some(stage)) = (is_knee, best.and_then(|best| stages.get_mut(best))) {
            stage.knee = true;
        }
    }
    Findings {
        tool: format!("{} {}", record.tool.name, record.tool.version),
        status: record.status,
        failure: record.failure.clone(),
        command: record.manifest.command.clone(),
        workload: record.manifest.workload.clone(),
        task: Task::of(&record.manifest.task),
        options: record.manifest.options.clone(),
        asked: record.manifest.asked.clone(),
        found: record.manifest.found.clone(),
        seed: record.manifest.seed,
        distribution: record.manifest.distribution.clone(),
        load: record.manifest.load,
        profile: record.manifest.profile.clone(),
        trace: record.manifest.trace.clone(),
        capacity,
        terminals: record.manifest.terminals,
        limit: record.manifest.limit,
        warmup_ns: record.manifest.warmup_ns,
        started: record.started,
        elapsed_ns: record.elapsed_ns,
        attributes: record.attributes(),
        identity: record.environment.started.as_ref().map_or_else(Vec::new, |started| started.identity.clone()),
        trial: record.environment.trial.clone(),
        session_sql: record.manifest.session_sql.clone(),
        prepared: record.manifest.prepared,
        policy: record.manifest.policy.clone(),
        workers: record.manifest.workers,
        event_loop: record.manifest.event_loop.clone(),
        host: GeneratorHost {
            name: record.environment.host.name.clone(),
            kernel: record.environment.host.kernel.clone(),
            cpu_model: record.environment.host.cpu_model.clone(),
            memory_bytes: record.environment.host.memory_bytes,
        },
        cpus,
        facts: record.environment.facts.clone(),
        tags: record.tags.clone(),
        targets,
        errors: errors_by_kind(record.stages.iter().flat_map(|stage| &stage.total.errors)),
        stages,
        agents: agent_findings(&record.agents),
        notes: record.notes.clone(),
        cases: record.cases.as_ref().map(cases_findings),
        sampling: record.telemetry.as_ref().map(|telemetry| sampling(telemetry, &record.stages)),
        isolation: isolation_findings(record),
        warnings,
    }
}

/// If throughput grows by less than this from a step to the best later one, it has stopped growing.
const KNEE_GROWTH: f64 = 0.05;

fn knee(stages: &[StageFindings]) -> Option<usize> {
    let (_, earlier) = stages.split_last()?;
    let rising = stages.windows(2).all(|pair| pair[0].sessions < pair[1].sessions);
    let grows_after =
        |at: usize| stages[at + 1..].iter().any(|later| later.total.tps > stages[at].total.tps * (1.0 + KNEE_GROWTH));
    (0..earlier.len()).find(|at| rising && stages[*at].total.tps > 0.0 && !grows_after(*at))
}

fn targets(record: &Record) -> Vec<ServerFindings> {
    let servers =
        record.environment.servers.iter().cloned().chain(std::iter::repeat(record::RecordedServer::default()));
    let target = |(url, server): (&String, record::RecordedServer)| ServerFindings {
        url: url.clone(),
        product: server.product,
        version: server.version,
        tls: server.tls,
        place: server.place,
        settings: server.settings,
        origins: server.origins,
        facts: server.facts,
    };
    record.manifest.targets.iter().zip(servers).map(target).collect()
}
