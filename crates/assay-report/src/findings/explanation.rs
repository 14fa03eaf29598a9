//! Why two results differ: what moved together with the throughput, ranked by evidence.
//!
//! In a closed loop, sessions ÷ throughput is the time of a transaction (Little 1961), and so is each part of it:
//! sessions in a wait event ÷ throughput is the time that a transaction waits there, CPU time ÷ transactions what it
//! computes. What a part adds to a transaction, divided by what the transaction takes longer, is the share that it
//! explains. Settings that differ come first, because they are causes and everything else is their effect.
//!
//! A counter counts as moved if its confidence intervals exclude that it did not: over the trials if there are enough,
//! otherwise those within the runs. Without any interval, it must have at least doubled or halved.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::findings::comparison::{Comparison, MetricComparison, StageComparison};
use crate::findings::metric::MetricUnit;
use crate::findings::run::Findings;
use crate::findings::setting::{Difference, SettingKind};
use crate::findings::stage::StageFindings;
use crate::findings::wait_class::{WaitClass, wait_class};
use assay_stats::{Measure, Scale};

/// Why two sides differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Sessions of the stage that is explained.
    pub sessions: u32,
    /// The figure whose change is explained: `tps`, or that of the comparison's verdict (`p99`, `capacity`) if the
    /// throughput was given and is the same.
    pub headline: Option<Moved>,
    /// Whether it got worse.
    pub is_worse: bool,
    /// Unit of the throughput.
    #[serde(skip)]
    pub(crate) rate: MetricUnit,
    /// Time of a transaction in nanoseconds: sessions ÷ throughput, or the mean service time in an open loop, whose
    /// sessions wait for work.
    pub time: Option<Moved>,
    /// Whether it differs by more than chance and margin; false also if that is unknown.
    pub differs: bool,
    /// Settings that differ and may be the cause, the most important first.
    pub settings: Vec<Difference>,
    /// Statements whose plans differ.
    pub plans: Vec<PlanChange>,
    /// What moved with the throughput, the strongest evidence first.
    pub causes: Vec<Cause>,
    /// What did not.
    pub ruled_out: Vec<RuledOut>,
    /// What could not be judged, because a side has no such readings.
    pub unknown: Vec<Mechanism>,
}

/// A figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Its name.
    pub name: String,
    /// Median of the baseline.
    pub baseline: f64,
    /// Median of the candidate.
    pub candidate: f64,
    /// Interval of candidate ÷ baseline, if there is one.
    pub interval: Option<(f64, f64)>,
    /// Whether chance is ruled out.
    pub is_sure: bool,
}

/// A statement that the sides execute in different ways.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanChange {
    /// Its text without values, or its name in `assay sql`.
    pub statement: String,
    /// Plan of the baseline, with estimates.
    pub baseline: String,
    /// Plan of the candidate.
    pub candidate: String,
    /// Steps that only the baseline's plan has, without their conditions; both are empty if the order or conditions
    /// differ.
    pub only_baseline: Vec<String>,
    /// Steps that only the candidate's plan has.
    pub only_candidate: Vec<String>,
}

/// A way in which a server becomes slower or faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// Waiting for locks of other transactions.
    Locks,
    /// Waiting for locks inside the server.
    InternalLocks,
    /// Waiting for a timer.
    Sleeps,
    /// Waiting for a replica's confirmation.
    Replication,
    /// Waiting for other processes of the server.
    Processes,
    /// Waiting in an extension of the server.
    Extension,
    /// Waiting for something that has no name here.
    OtherWaits,
    /// Checkpoints, or a log so full that pages must be written.
    Checkpoints,
    /// More log per transaction.
    LogVolume,
    /// Waiting for the log to reach the drive.
    LogWaits,
    /// More pages that are not in the server's memory.
    Misses,
    /// Waiting for reads although there are not more of them.
    SlowReads,
    /// Waiting for reads; whether there are more of them is unknown.
    Reads,
    /// Waiting for writes to data files.
    Writes,
    /// Waiting for the drive, by the kernel's count.
    Drive,
    /// More old row versions or free space in the tables, and more work for the same rows.
    Bloat,
    /// More pages per transaction: another plan, a missing index, old statistics.
    PagesPerTransaction,
    /// More CPU time of the server per transaction, for the same pages.
    ServerCpu,
    /// Other processes of the machine.
    OtherProcesses,
    /// The hypervisor.
    Steal,
    /// A limit of the server's CPU time.
    Throttling,
    /// Waiting for a CPU, as with fewer of them.
    CpuWaits,
    /// Time between the server and the load generator: the network, or the generator itself.
    Outside,
    /// Other sessions of the server.
    OtherSessions,
    /// Waiting in a pooler.
    Pooler,
    /// Temporary files.
    TemporaryFiles,
    /// Scheduling: more context switches per transaction.
    ContextSwitches,
    /// More CPU time of the load generator per transaction.
    GeneratorCpu,
    /// Retries and failures.
    Retries,
}

/// Something that moved with the throughput.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// What.
    pub mechanism: Mechanism,
    /// What it adds to the time of a transaction, in nanoseconds; negative if it saves. `None`: it has no time.
    pub added_ns: Option<f64>,
    /// Share of the change of a transaction's time, 0 … 1.
    pub share: Option<f64>,
    /// The figures, the most telling first.
    pub figures: Vec<Moved>,
}

/// Something that cannot have caused it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuledOut {
    /// What.
    pub mechanism: Mechanism,
    /// Its figure.
    pub figure: Moved,
    /// Whether it moved, but by too few bytes per transaction to matter.
    pub is_tiny: bool,
}

/// A part of a transaction's time must explain this share to be a cause.
const SHARE_MIN: f64 = 0.1;
/// A counter without a time must move by this factor.
const FACTOR_MIN: f64 = 1.1;
/// Without an interval.
const FACTOR_SURE: f64 = 2.0;
/// A counter of bytes per transaction must move by as many. Servers write less than that without being asked to: a
/// statement that only reads may set hint bits, and a checkpoint among many transactions is shared by all of them. A
/// transaction that changes one row writes more.
const BYTES_MIN: f64 = 100.0;
/// Old row versions below this number are the usual ones of a table that is written.
const OLD_ROWS_MIN: f64 = 1000.0;
/// From this factor of CPU time on, waiting for a CPU comes from that.
const QUEUEING_MIN: f64 = 1.5;
/// A single checkpoint in a stage is the usual one.
const CHECKPOINTS_MIN: f64 = 2.0;
/// From this share of its limit on, in percent, servers write pages to keep the checkpoint young.
const AGE_MIN: f64 = 70.0;
/// Sessions of others at work that count: fewer are background processes.
const OTHERS_MIN: f64 = 0.3;

/// Why `candidate` differs from `baseline`; `None` if there is nothing in common to compare. `found`: their comparison.
pub fn explain(found: &Comparison, baseline: &[Findings], candidate: &[Findings]) -> Option<Explanation> {
    if found.has_other_workload() {
        return None;
    }
    let of = |stage: &&StageComparison| {
        stage.metric("tps").and_then(|tps| tps.baseline.as_ref()).map_or(0.0, |tps| tps.median)
    };
    let stage = found.stages.iter().max_by(|a, b| of(a).total_cmp(&of(b)))?;
    let mut sides = Sides {
        comparison: stage,
        baseline: stages(baseline, stage.sessions),
        candidate: stages(candidate, stage.candidate_sessions),
        is_worse: false,
        is_open: found.headline != "tps",
    };
    let is_open = sides.is_open;
    let time = sides.per_side("time per transaction", |stage| match is_open {
        true => stage.total.service.mean_ns,
        false => Some(f64::from(stage.sessions) / stage.total.tps * 1e9),
    });
    let has_moved = |one: &Moved| one.is_sure && is_beyond(one, found.margin);
    let throughput = sides.metric("tps");
    let headline = match sides.metric(&found.headline) {
        Some(verdict) if !throughput.as_ref().is_some_and(has_moved) => Some(verdict),
        _ => throughput,
    };
    let differs = headline.as_ref().is_some_and(has_moved);
    let is_worse = |one: &Moved| (one.candidate < one.baseline) != (one.name == "p99");
    sides.is_worse = headline.as_ref().is_some_and(is_worse);
    // In an open loop the mean may be the same although a few transactions take longer.
    let added = time.as_ref().filter(|time| !is_open || is_beyond(time, found.margin));
    let added = added.map(|time| time.candidate - time.baseline);
    let (mut causes, mut ruled_out, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for mechanism in MECHANISMS {
        match sides.judge(mechanism, added) {
            Judgment::Cause(cause) => causes.push(cause),
            Judgment::RuledOut(figure) => {
                let is_tiny = is_tiny(&figure) && is_beyond(&figure, FACTOR_MIN - 1.0);
                ruled_out.push(RuledOut { mechanism, figure, is_tiny });
            }
            Judgment::Unclear => {}
            Judgment::Unknown => unknown.push(mechanism),
        }
    }
    // Bloat is why pages and CPU time grew.
    let grown = |one: &&Cause| matches!(one.mechanism, Mechanism::PagesPerTransaction | Mechanism::ServerCpu);
    let effect = causes.iter().find(grown).map(|one| (one.added_ns, one.share));
    if let Some((added_ns, share)) = effect {
        for bloat in causes.iter_mut().filter(|one| one.mechanism == Mechanism::Bloat && one.share <= share) {
            (bloat.added_ns, bloat.share) = (added_ns, share);
        }
    }
    let weight = |cause: &Cause| cause.share.unwrap_or(0.0);
    causes.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then_with(|| a.mechanism.cmp(&b.mechanism)));
    // What the drive does for a wait that has a name, and what the scheduler does for any wait, is not another cause.
    let is_of_drive = |one: &Cause| {
        use Mechanism::{Checkpoints, LogVolume, LogWaits, Misses, Reads, SlowReads, Writes};
        matches!(one.mechanism, Checkpoints | LogVolume | LogWaits | Misses | Reads | SlowReads | Writes)
    };
    if causes.iter().any(is_of_drive) {
        causes.retain(|one| one.mechanism != Mechanism::Drive);
    }
    if causes.iter().any(|one| one.mechanism != Mechanism::ContextSwitches) {
        causes.retain(|one| one.mechanism != Mechanism::ContextSwitches);
    }
    if !differs {
        causes.clear();
    }
    let matters = |one: &&Difference| one.kind != SettingKind::Tag && one.what != "host";
    let mut settings: Vec<Difference> = found.differences.iter().filter(matters).cloned().collect();
    // Settings of servers and sessions are what people vary; a kernel or a tool changes by the way.
    settings.sort_by_key(|one| match one.kind {
        SettingKind::Server | SettingKind::Session => 0,
        SettingKind::Work => 1,
        SettingKind::Generator | SettingKind::Tag => 2,
    });
    let plans = if differs { plan_changes(baseline, candidate) } else { Vec::new() };
    let (sessions, is_worse) = (stage.sessions, sides.is_worse);
    let rate = stage.metric("tps").map_or(MetricUnit::PerSecond, |tps| tps.metric.unit);
    Some(Explanation { sessions, headline, is_worse, rate, time, differs, settings, plans, causes, ruled_out, unknown })
}

/// Shape and text of each plan of a statement, over all trials of a side.
type Plans<'a> = BTreeMap<&'a str, Vec<(&'a str, &'a str)>>;

/// Statements of both sides that have no plan in common. Plans that only one trial has are chance, or values.
fn plan_changes(baseline: &[Findings], candidate: &[Findings]) -> Vec<PlanChange> {
    let (before, after) = (plans(baseline), plans(candidate));
    let changed = before.into_iter().filter_map(|(statement, before)| {
        let after = after.get(statement)?;
        let is_common = before.iter().any(|(shape, _)| after.iter().any(|(other, _)| other == shape));
        if is_common {
            return None;
        }
        let (one, other) = (before.first()?, after.first()?);
        let (steps, others) = (steps(one.0), steps(other.0));
        let only = |of: &[String], other: &[String]| -> Vec<String> {
            let mut only: Vec<String> = of.iter().filter(|step| !other.contains(step)).cloned().collect();
            only.dedup();
            only
        };
        Some(PlanChange {
            statement: statement.to_owned(),
            baseline: one.1.to_owned(),
            candidate: other.1.to_owned(),
            only_baseline: only(&steps, &others),
            only_candidate: only(&others, &steps),
        })
    });
    changed.collect()
}

fn plans(trials: &[Findings]) -> Plans<'_> {
    let mut all = Plans::new();
    for trial in trials {
        let of_run = trial.sampling.iter().flat_map(|sampling| &sampling.plans);
        let of_run = of_run.flat_map(|one| {
            one.plans.iter().map(|plan| (one.statement.as_str(), plan.shape.as_str(), plan.text.as_str()))
        });
        let of_cases = trial.cases.iter().flat_map(|cases| &cases.cases);
        let of_cases = of_cases.flat_map(|case| {
            case.plans.iter().map(|plan| (case.name.as_str(), plan.shape.as_str(), plan.text.as_str()))
        });
        for (statement, shape, text) in of_run.chain(of_cases) {
            let known: &mut Vec<_> = all.entry(statement).or_default();
            if !known.iter().any(|(known, _)| *known == shape) {
                known.push((shape, text));
            }
        }
    }
    all
}

/// The steps of a plan: its lines without conditions.
fn steps(shape: &str) -> Vec<String> {
    let line = |line: &str| line.trim_start().trim_start_matches("->").trim().to_owned();
    shape.lines().map(line).filter(|step| !step.contains(": ")).collect()
}

const MECHANISMS: [Mechanism; 29] = [
    Mechanism::Locks,
    Mechanism::InternalLocks,
    Mechanism::Sleeps,
    Mechanism::Replication,
    Mechanism::Processes,
    Mechanism::Extension,
    Mechanism::OtherWaits,
    Mechanism::Checkpoints,
    Mechanism::LogVolume,
    Mechanism::LogWaits,
    Mechanism::Misses,
    Mechanism::SlowReads,
    Mechanism::Reads,
    Mechanism::Writes,
    Mechanism::Bloat,
    Mechanism::PagesPerTransaction,
    Mechanism::ServerCpu,
    Mechanism::OtherProcesses,
    Mechanism::Steal,
    Mechanism::Throttling,
    Mechanism::CpuWaits,
    Mechanism::Outside,
    Mechanism::OtherSessions,
    Mechanism::Pooler,
    Mechanism::TemporaryFiles,
    Mechanism::Drive,
    Mechanism::ContextSwitches,
    Mechanism::GeneratorCpu,
    Mechanism::Retries,
];

enum Judgment {
    Cause(Cause),
    RuledOut(Moved),
    /// It moved, but not enough, or the other way.
    Unclear,
    /// A side has no such readings.
    Unknown,
}

/// The stages of all trials with so many sessions.
fn stages(trials: &[Findings], sessions: u32) -> Vec<&StageFindings> {
    let of = |one: &'_ Findings| one.stages.iter().position(|stage| stage.sessions == sessions);
    trials.iter().filter_map(|one| of(one).map(|at| &one.stages[at])).collect()
}

struct Sides<'a> {
    comparison: &'a StageComparison,
    baseline: Vec<&'a StageFindings>,
    candidate: Vec<&'a StageFindings>,
    /// Whether the candidate is worse.
    is_worse: bool,
    /// Whether the load was given.
    is_open: bool,
}

impl Sides<'_> {
    fn judge(&self, mechanism: Mechanism, added: Option<f64>) -> Judgment {
        let rare = |name: &str, class: WaitClass| self.of_rare_waits(name, class, added, mechanism);
        match mechanism {
            Mechanism::Locks => {
                let also = ["server.lock_waits_per_transaction"];
                let seen = self.of_waits("waiting for locks", WaitClass::Locks, added, mechanism, &also);
                // A list of sessions does not tell who waits for a row.
                stronger(seen, self.of_time("server.lock_wait_us_per_transaction", added, mechanism))
            }
            Mechanism::InternalLocks => {
                self.of_waits("waiting for internal locks", WaitClass::InternalLocks, added, mechanism, &[])
            }
            Mechanism::Sleeps => rare("waiting for a timer", WaitClass::Sleeps),
            Mechanism::Replication => rare("waiting for a replica", WaitClass::Replication),
            Mechanism::Processes => rare("waiting for other processes of the server", WaitClass::Processes),
            Mechanism::Extension => rare("waiting in an extension", WaitClass::Extension),
            Mechanism::OtherWaits => rare("waiting for something else", WaitClass::Other),
            Mechanism::Writes => rare("waiting for writes to data files", WaitClass::Writes),
            Mechanism::Checkpoints => self.checkpoints(added),
            Mechanism::Bloat => self.bloat(added),
            Mechanism::Outside => self.outside(added),
            Mechanism::OtherSessions => self.other_sessions(),
            Mechanism::CpuWaits => match (self.other_processes(), self.throttling(added)) {
                // They are why it waits.
                (Judgment::Cause(_), _) | (_, Judgment::Cause(_)) => Judgment::Unclear,
                _ if self.metric("server.cpu_us_per_transaction").is_some_and(|cpu| self.queueing(&cpu) != 0.0) => {
                    Judgment::Unclear
                }
                _ => quiet(self.of_time("server.cpu_wait_us_per_transaction", added, mechanism)),
            },
            Mechanism::Drive => {
                let of = |name: &str| quiet(self.of_time(name, added, mechanism));
                stronger(of("machine.device_queue_us_per_transaction"), of("machine.pressure_io_us_per_transaction"))
            }
            Mechanism::Reads => match self.metric("server.buffer_misses_per_transaction") {
                Some(_) => Judgment::Unclear,
                None => rare("waiting for reads", WaitClass::Reads),
            },
            Mechanism::LogVolume => {
                let volume = ["server.log_bytes_per_transaction", "server.log_full_pages_per_transaction"];
                match self.factor(&volume, mechanism) {
                    Judgment::Cause(cause) => if_it_matters(self.timed(cause, WaitClass::Log, added)),
                    other => other,
                }
            }
            Mechanism::LogWaits => {
                // With more log, waiting for it is the same cause.
                if let Judgment::Cause(_) = self.factor(&["server.log_bytes_per_transaction"], mechanism) {
                    return Judgment::Unclear;
                }
                let of = self.of_waits(
                    "waiting for the log",
                    WaitClass::Log,
                    added,
                    mechanism,
                    &["server.log_fsyncs_per_transaction"],
                );
                match (of, self.factor(&["server.log_fsyncs_per_transaction"], mechanism)) {
                    (Judgment::Unknown, fsyncs) => fsyncs,
                    (of, _) => of,
                }
            }
            Mechanism::Misses => match self.factor(&["server.buffer_misses_per_transaction"], mechanism) {
                // More pages in all, and as large a share of them as before: misses are the effect.
                Judgment::Cause(cause) if self.is_of_pages() && !self.misses_outgrow_pages(&cause) => Judgment::Unclear,
                Judgment::Cause(cause) => self.timed_by_reads(cause, added),
                other => other,
            },
            Mechanism::SlowReads => match self.metric("server.buffer_misses_per_transaction") {
                None => Judgment::Unknown,
                Some(misses) if misses.is_sure && is_beyond(&misses, FACTOR_MIN - 1.0) => Judgment::Unclear,
                Some(_) => self.of_waits(
                    "waiting for reads",
                    WaitClass::Reads,
                    added,
                    mechanism,
                    &["machine.device_queue_us_per_transaction"],
                ),
            },
            Mechanism::PagesPerTransaction => {
                let pages = ["server.buffer_reads_per_transaction", "server.cpu_us_per_transaction"];
                match self.factor(&pages, mechanism) {
                    Judgment::Cause(cause) => if_it_matters(self.timed_by_cpu(cause, added)),
                    other => other,
                }
            }
            Mechanism::ServerCpu if self.is_of_pages() => Judgment::Unclear,
            Mechanism::ServerCpu => self.server_cpu(added),
            Mechanism::OtherProcesses => self.other_processes(),
            Mechanism::Steal => self.of_time("machine.cpu_steal_us_per_transaction", added, mechanism),
            Mechanism::Throttling => self.throttling(added),
            Mechanism::Pooler => self.of_time("server.pooler_wait_us_per_transaction", added, mechanism),
            Mechanism::TemporaryFiles => self.factor(&["server.temporary_bytes_per_transaction"], mechanism),
            Mechanism::ContextSwitches => self.factor(&["machine.context_switches_per_transaction"], mechanism),
            Mechanism::GeneratorCpu => self.of_time_ns("cpu_per_transaction", added, mechanism),
            Mechanism::Retries => self.factor(&["retries_per_transaction", "failed_per_transaction"], mechanism),
        }
    }

    /// Whether transactions touch more pages, or fewer.
    fn is_of_pages(&self) -> bool {
        let pages = self.metric("server.buffer_reads_per_transaction");
        pages.is_some_and(|pages| pages.is_sure && is_beyond(&pages, FACTOR_MIN - 1.0))
    }

    /// A figure of the comparison; of counters that a server publishes too late for stages as short as these, per
    /// commit.
    fn metric(&self, name: &str) -> Option<Moved> {
        let Some(one) = self.comparison.metric(name).filter(|one| one.baseline.is_some() && one.candidate.is_some())
        else {
            let metric = name.strip_prefix("server.")?.strip_suffix("_per_transaction")?;
            return self.per_side(&format!("server.{metric}_per_commit"), |stage| {
                let server =
                    stage.telemetry.iter().find(|scope| crate::findings::course::scope_name(scope) == "server")?;
                server.per_commit(metric)
            });
        };
        let (baseline, candidate) = (one.baseline.as_ref()?.median, one.candidate.as_ref()?.median);
        Some(self.moved(name, one, baseline, candidate))
    }

    fn moved(&self, name: &str, one: &MetricComparison, baseline: f64, candidate: f64) -> Moved {
        let over_trials = one.change.filter(|change| change.ratio.is_some());
        let over_trials = over_trials.and_then(|change| change.low.zip(change.high));
        // Of counts with zeros there is only a difference, which may still be sure.
        let of_difference = one.change.filter(|change| change.ratio.is_none()).and_then(|it| it.includes_none());
        let interval = over_trials.or_else(|| self.within_runs(name));
        let is_sure = match (interval, of_difference) {
            (Some((low, high)), _) => low > 1.0 || high < 1.0,
            (None, Some(includes_none)) => !includes_none,
            (None, None) => is_doubled(baseline, candidate),
        };
        Moved { name: name.to_owned(), baseline, candidate, interval, is_sure }
    }

    /// Interval of the ratio from the intervals within the runs, which may be wider than they need to be.
    fn within_runs(&self, name: &str) -> Option<(f64, f64)> {
        let of = |stages: &[&StageFindings]| -> Option<(f64, f64)> {
            let each: Option<Vec<(f64, f64)>> = stages.iter().map(|stage| interval_of(stage, name)).collect();
            let each = each.filter(|each| !each.is_empty())?;
            Some(each.into_iter().fold((f64::INFINITY, 0.0), |(low, high), one| (one.0.min(low), one.1.max(high))))
        };
        let ((from, to), (low, high)) = (of(&self.baseline)?, of(&self.candidate)?);
        (from > 0.0 && to > 0.0).then_some((low / to, high / from))
    }

    /// Medians over the trials of both sides of something that a stage has.
    fn per_side(&self, name: &str, of: impl Fn(&StageFindings) -> Option<f64>) -> Option<Moved> {
        let median = |stages: &[&StageFindings]| -> Option<(Vec<f64>, f64)> {
            let values: Vec<f64> =
                stages.iter().filter_map(|stage| of(stage)).filter(|value| value.is_finite()).collect();
            let middle = assay_stats::trials(&values, Scale::Count)?.median;
            Some((values, middle))
        };
        let ((before, baseline), (after, candidate)) = (median(&self.baseline)?, median(&self.candidate)?);
        let change = assay_stats::change(&before, &after, assay_stats::MARGIN_DEFAULT, Scale::Count);
        let known = change.and_then(|change| Some((change.by, change.interval?)));
        let is_sure = match known {
            Some((by, (low, high))) => low > by.none() || high < by.none(),
            None => is_doubled(baseline, candidate),
        };
        let interval = known.filter(|(by, _)| *by == Measure::Ratio).map(|(_, interval)| interval);
        Some(Moved { name: name.to_owned(), baseline, candidate, interval, is_sure })
    }

    /// Time per transaction in wait events of these classes, in nanoseconds.
    fn waits(&self, name: &str, of: &[WaitClass]) -> Option<Moved> {
        self.per_side(name, |stage| {
            let sessions = sessions_in(stage, |event| of.contains(&wait_class(event)))?;
            Some(sessions / stage.total.tps * 1e9)
        })
    }

    /// A part of a transaction's time that most transactions do not have: not worth a word where there is none.
    fn of_rare_waits(&self, name: &str, class: WaitClass, added: Option<f64>, mechanism: Mechanism) -> Judgment {
        quiet(self.of_waits(name, class, added, mechanism, &[]))
    }

    fn throttling(&self, added: Option<f64>) -> Judgment {
        self.of_time("server.cgroup_throttled_us_per_transaction", added, Mechanism::Throttling)
    }

    /// Whether misses have grown by more than the pages that transactions touch.
    fn misses_outgrow_pages(&self, misses: &Cause) -> bool {
        let factor = |one: &Moved| if one.baseline > 0.0 { one.candidate / one.baseline } else { f64::INFINITY };
        let pages = self.metric("server.buffer_reads_per_transaction");
        let (Some(misses), Some(pages)) = (misses.figures.first(), pages) else { return false };
        let ratio = factor(misses) / factor(&pages);
        ratio >= FACTOR_SURE || ratio <= 1.0 / FACTOR_SURE
    }

    /// What misses take: waits for reads, and the CPU time of reads that the operating system answers from its memory.
    fn timed_by_reads(&self, cause: Cause, added: Option<f64>) -> Judgment {
        let grown = |moved: Option<Moved>, scale: f64| moved.map(|moved| (moved.candidate - moved.baseline) * scale);
        let waits = grown(self.waits("waiting for it", &[WaitClass::Reads]), 1.0);
        let cpu = grown(self.metric("server.cpu_us_per_transaction"), 1e3);
        let of = waits.into_iter().chain(cpu).reduce(|one, other| one + other);
        if_it_matters(with_time(cause, of, added))
    }

    /// Checkpoints that one side has, and the other one has not, or a checkpoint whose age is near its limit.
    fn checkpoints(&self, added: Option<f64>) -> Judgment {
        let counted = |stage: &StageFindings| {
            let server = stage.telemetry.iter().find(|scope| scope.metric("checkpoints_requested").is_some())?;
            let per_s = |name: &str| server.metric(name).and_then(|one| one.per_s).unwrap_or(0.0);
            let per_s = per_s("checkpoints_requested") + per_s("checkpoints_timed");
            Some(per_s * stage.measured_ns as f64 / 1e9)
        };
        let aged = |stage: &StageFindings| {
            let server = stage.telemetry.iter().find(|scope| scope.metric("checkpoint_age_limit_bytes").is_some())?;
            Some(
                server.metric("checkpoint_age_bytes")?.max? / server.metric("checkpoint_age_limit_bytes")?.max? * 100.0,
            )
        };
        let number = self.per_side("checkpoints", counted);
        let age = self.per_side("oldest checkpoint, % of its limit", aged);
        let more = |one: &Moved| {
            let (least, most) = (one.baseline.min(one.candidate), one.baseline.max(one.candidate));
            (one.candidate > one.baseline) == self.is_worse && most >= FACTOR_SURE * least
        };
        let is_number =
            number.as_ref().is_some_and(|one| more(one) && one.baseline.max(one.candidate) >= CHECKPOINTS_MIN);
        let is_age = age.as_ref().is_some_and(|one| more(one) && one.baseline.max(one.candidate) >= AGE_MIN);
        let figures: Vec<Moved> =
            [number.filter(|_| is_number), age.filter(|_| is_age)].into_iter().flatten().collect();
        if figures.is_empty() {
            return Judgment::Unclear;
        }
        let pages = ["server.pages_written_per_transaction", "server.log_bytes_per_transaction"];
        let moved = |one: &Moved| one.is_sure && is_beyond(one, FACTOR_MIN - 1.0);
        let also = pages.iter().filter_map(|name| self.metric(name)).filter(moved);
        let figures = figures.into_iter().chain(also).collect();
        let waits = self.waits("waiting for it", &[WaitClass::Log, WaitClass::Writes, WaitClass::Reads]);
        let cause = Cause { mechanism: Mechanism::Checkpoints, added_ns: None, share: None, figures };
        Judgment::Cause(with_time(cause, waits.map(|moved| moved.candidate - moved.baseline), added))
    }

    /// Tables that are larger, or have more old row versions, where transactions touch more pages or need more CPU time
    /// for what they did before.
    fn bloat(&self, added: Option<f64>) -> Judgment {
        let grows = |one: &Moved| (one.candidate > one.baseline) == self.is_worse;
        let size = self.metric("server.data_bytes").filter(|one| grows(one) && is_beyond(one, FACTOR_MIN - 1.0));
        let is_many =
            |one: &Moved| (one.candidate - one.baseline).abs() >= OLD_ROWS_MIN && is_beyond(one, FACTOR_SURE - 1.0);
        let old = self.metric("server.purge_lag").filter(|one| grows(one) && is_many(one));
        if size.is_none() && old.is_none() {
            return Judgment::Unclear;
        }
        let works = ["server.buffer_reads_per_transaction", "server.cpu_us_per_transaction"];
        let moved = |one: &Moved| one.is_sure && is_beyond(one, FACTOR_MIN - 1.0) && grows(one);
        let mut work = works.iter().filter_map(|name| self.metric(name)).filter(moved).peekable();
        if work.peek().is_none() {
            return Judgment::Unclear;
        }
        let figures = old.into_iter().chain(size).chain(work).collect();
        let cause = Cause { mechanism: Mechanism::Bloat, added_ns: None, share: None, figures };
        self.timed_by_reads(cause, added)
    }

    /// The time of a transaction in which no session of the server works or waits for it.
    fn outside(&self, added: Option<f64>) -> Judgment {
        if self.is_open {
            return Judgment::Unknown;
        }
        let moved = self.per_side("time outside the server", |stage| {
            let busy = sessions_in(stage, |event| wait_class(event) != WaitClass::Client)?;
            // A session whose request has not been read yet, for want of a CPU, does not look busy; and a load
            // generator that waits for a CPU keeps all its sessions waiting.
            let sessions = f64::from(stage.sessions);
            let cpu_waits = stage.telemetry.iter().filter_map(|scope| scope.metric("cpu_wait_us")?.per_s);
            let kept = stage.generator.and_then(|it| it.waited_for_cpu).unwrap_or(0.0) * sessions;
            let outside = sessions - busy - cpu_waits.sum::<f64>() / 1e6 - kept;
            Some(outside.max(0.0) / stage.total.tps * 1e9)
        });
        let Some(moved) = moved else { return Judgment::Unknown };
        let of = moved.candidate - moved.baseline;
        quiet(by_share(moved, of, added, Mechanism::Outside, Vec::new()))
    }

    /// Sessions at work beyond those of the load, or statements beyond its own.
    fn other_sessions(&self) -> Judgment {
        let mechanism = Mechanism::OtherSessions;
        let busy = self.per_side("sessions of others at work", |stage| {
            Some(
                (sessions_in(stage, |event| wait_class(event) != WaitClass::Client)? - f64::from(stage.sessions))
                    .max(0.0),
            )
        });
        let more = busy.filter(|one| {
            let more = one.candidate - one.baseline;
            (more > 0.0) == self.is_worse && more.abs() >= OTHERS_MIN
        });
        let is_retried = self.metric("retries_per_transaction").is_some_and(|one| one.baseline != one.candidate);
        let statements = self.metric("server.statements_per_transaction").filter(|one| {
            (one.candidate > one.baseline) == self.is_worse && one.is_sure && is_beyond(one, FACTOR_MIN - 1.0)
        });
        let share = more.as_ref().map(|one| (one.candidate - one.baseline).abs().min(1.0));
        let figures: Vec<Moved> = more.into_iter().chain(statements.filter(|_| !is_retried)).collect();
        match figures.is_empty() {
            true => Judgment::Unclear,
            false => Judgment::Cause(Cause { mechanism, added_ns: None, share, figures }),
        }
    }

    /// A part of a transaction's time that waits.
    fn of_waits(
        &self,
        name: &str,
        class: WaitClass,
        added: Option<f64>,
        mechanism: Mechanism,
        also: &[&str],
    ) -> Judgment {
        let Some(moved) = self.waits(name, &[class]) else { return Judgment::Unknown };
        let has_moved = |one: &Moved| one.is_sure && is_beyond(one, FACTOR_MIN - 1.0);
        let also: Vec<Moved> = also.iter().filter_map(|name| self.metric(name)).filter(has_moved).collect();
        let of = moved.candidate - moved.baseline;
        by_share(moved, of, added, mechanism, also)
    }

    /// A counter of microseconds per transaction.
    fn of_time(&self, name: &str, added: Option<f64>, mechanism: Mechanism) -> Judgment {
        let Some(moved) = self.metric(name) else { return Judgment::Unknown };
        let of = (moved.candidate - moved.baseline) * 1e3;
        by_share(moved, of, added, mechanism, Vec::new())
    }

    /// Nanoseconds per transaction.
    fn of_time_ns(&self, name: &str, added: Option<f64>, mechanism: Mechanism) -> Judgment {
        let Some(moved) = self.metric(name) else { return Judgment::Unknown };
        let of = moved.candidate - moved.baseline;
        by_share(moved, of, added, mechanism, Vec::new())
    }

    /// Counters without a time, of which the first decides.
    fn factor(&self, names: &[&str], mechanism: Mechanism) -> Judgment {
        let mut figures = names.iter().filter_map(|name| self.metric(name));
        let Some(first) = figures.next() else { return Judgment::Unknown };
        // What hardly ever happens may double by chance.
        let is_rare = first.baseline.max(first.candidate) < 1e-3;
        let is_more = first.candidate > first.baseline;
        if is_tiny(&first) {
            return Judgment::RuledOut(first);
        }
        if !first.is_sure || !is_beyond(&first, FACTOR_MIN - 1.0) || is_rare {
            return match first.interval {
                Some((low, high)) if low > 1.0 / FACTOR_MIN && high < FACTOR_MIN => Judgment::RuledOut(first),
                None if !is_beyond(&first, FACTOR_MIN - 1.0) || is_rare => Judgment::RuledOut(first),
                _ => Judgment::Unclear,
            };
        }
        if self.is_worse != is_more {
            return Judgment::Unclear;
        }
        let figures = [first].into_iter().chain(figures).collect();
        Judgment::Cause(Cause { mechanism, added_ns: None, share: None, figures })
    }

    /// With the time in wait events.
    fn timed(&self, cause: Cause, class: WaitClass, added: Option<f64>) -> Cause {
        let waits = self.waits("waiting for it", &[class]).map(|moved| moved.candidate - moved.baseline);
        with_time(cause, waits, added)
    }

    fn timed_by_cpu(&self, cause: Cause, added: Option<f64>) -> Cause {
        let cpu = self.metric("server.cpu_us_per_transaction");
        with_time(cause, cpu.map(|cpu| (cpu.candidate - cpu.baseline) * 1e3 + self.queueing(&cpu)), added)
    }

    /// More CPU time for the same work.
    fn server_cpu(&self, added: Option<f64>) -> Judgment {
        let Some(cpu) = self.metric("server.cpu_us_per_transaction") else { return Judgment::Unknown };
        let of = (cpu.candidate - cpu.baseline) * 1e3 + self.queueing(&cpu);
        by_share(cpu, of, added, Mechanism::ServerCpu, Vec::new())
    }

    /// Waiting for a CPU that comes from needing it for so much longer, in nanoseconds.
    fn queueing(&self, cpu: &Moved) -> f64 {
        let waits = self.metric("server.cpu_wait_us_per_transaction").filter(|_| is_beyond(cpu, QUEUEING_MIN - 1.0));
        waits.map_or(0.0, |waits| (waits.candidate - waits.baseline) * 1e3)
    }

    /// CPU time of the machine that is neither the servers' nor the generator's, as a share of one CPU.
    fn other_processes(&self) -> Judgment {
        let of = |stage: &StageFindings| {
            let machine = stage.telemetry.iter().find(|scope| scope.metric("cpu_user_us").is_some())?;
            let rate = |name: &str| machine.metric(name).and_then(|one| one.per_s);
            let all = (rate("cpu_user_us")? + rate("cpu_system_us")?) / 1e6;
            let servers = stage.telemetry.iter().filter_map(|scope| scope.metric("cpu_us")?.per_s).sum::<f64>() / 1e6;
            let generator = stage.generator.as_ref().map_or(0.0, |it| it.cpu_ns as f64 / stage.measured_ns as f64);
            Some((all - servers - generator).max(0.0))
        };
        let is_local = |stage: &&StageFindings| stage.telemetry.iter().any(|scope| scope.metric("cpu_us").is_some());
        if !self.baseline.iter().chain(&self.candidate).all(is_local) {
            return Judgment::Unknown;
        }
        let Some(moved) = self.per_side("CPUs used by other processes", of) else { return Judgment::Unknown };
        let more = moved.candidate - moved.baseline;
        // A twentieth of a CPU is background.
        match more.abs() {
            small if small < 0.05 => Judgment::RuledOut(moved),
            // Of single runs, only a large change is sure.
            _ if (more > 0.0) != self.is_worse || more.abs() < if moved.is_sure { 0.1 } else { 0.5 } => {
                Judgment::Unclear
            }
            _ => {
                let waits = self.metric("server.cpu_wait_us_per_transaction");
                let figures = [moved].into_iter().chain(waits).collect();
                let mechanism = Mechanism::OtherProcesses;
                Judgment::Cause(Cause { mechanism, added_ns: None, share: Some(more.abs().min(1.0)), figures })
            }
        }
    }
}

/// Mean sessions of a stage in events that `is` finds; `None`: not sampled.
fn sessions_in(stage: &StageFindings, is: impl Fn(&str) -> bool) -> Option<f64> {
    let scopes = || stage.telemetry.iter().filter_map(|scope| scope.waits.as_ref());
    scopes().next()?;
    Some(scopes().flatten().filter(|wait| is(&wait.event)).fold(0.0, |sum, wait| sum + wait.sessions))
}

/// The cause of these that explains more; otherwise the first judgment, unless it is unknown.
fn stronger(one: Judgment, other: Judgment) -> Judgment {
    match (one, other) {
        (Judgment::Cause(one), Judgment::Cause(other)) => {
            let is_less = one.share.unwrap_or(0.0) < other.share.unwrap_or(0.0);
            Judgment::Cause(if is_less { other } else { one })
        }
        (Judgment::Unknown, other) | (_, other @ Judgment::Cause(_)) => other,
        (one, _) => one,
    }
}

/// Says nothing where there is nothing to say.
fn quiet(judgment: Judgment) -> Judgment {
    match judgment {
        Judgment::Cause(cause) => Judgment::Cause(cause),
        _ => Judgment::Unclear,
    }
}

/// A part of the time of a transaction.
fn by_share(moved: Moved, of: f64, added: Option<f64>, mechanism: Mechanism, also: Vec<Moved>) -> Judgment {
    let Some(added) = added.filter(|added| *added != 0.0) else { return Judgment::Unclear };
    let share = of / added;
    if share < SHARE_MIN {
        return if share.abs() < SHARE_MIN { Judgment::RuledOut(moved) } else { Judgment::Unclear };
    }
    // Waits of single runs have no interval, and a tenth of the change is no small thing.
    let excludes_none = moved.interval.is_none_or(|(low, high)| low > 1.0 || high < 1.0);
    if !excludes_none && moved.baseline > 0.0 {
        return Judgment::Unclear;
    }
    let figures = [moved].into_iter().chain(also).collect();
    Judgment::Cause(Cause { mechanism, added_ns: Some(of), share: Some(share.min(1.0)), figures })
}

/// A counter that moved a little, and whose time is known to explain next to nothing, is not a cause.
fn if_it_matters(cause: Cause) -> Judgment {
    let is_large = cause.figures.first().is_some_and(|first| is_beyond(first, FACTOR_SURE - 1.0));
    let is_slight = cause.added_ns.is_some() && cause.share.is_none_or(|share| share < SHARE_MIN);
    if is_slight && !(is_large && cause.mechanism == Mechanism::LogVolume) {
        Judgment::Unclear
    } else {
        Judgment::Cause(cause)
    }
}

fn with_time(cause: Cause, of: Option<f64>, added: Option<f64>) -> Cause {
    let share = of.zip(added).filter(|(_, added)| *added != 0.0).map(|(of, added)| (of / added).clamp(0.0, 1.0));
    Cause { added_ns: of, share: share.filter(|share| *share > 0.0), ..cause }
}

fn is_beyond(moved: &Moved, margin: f64) -> bool {
    match moved.baseline > 0.0 && moved.candidate > 0.0 {
        true => (moved.candidate / moved.baseline).ln().abs() >= margin.ln_1p(),
        false => moved.baseline != moved.candidate,
    }
}

/// Whether it counts bytes, and changed by next to none.
fn is_tiny(moved: &Moved) -> bool {
    moved.name.ends_with("_bytes_per_transaction") && (moved.candidate - moved.baseline).abs() < BYTES_MIN
}

fn is_doubled(baseline: f64, candidate: f64) -> bool {
    match baseline > 0.0 && candidate > 0.0 {
        true => (candidate / baseline).ln().abs() >= FACTOR_SURE.ln(),
        false => baseline != candidate,
    }
}

/// The interval of a figure within a run.
fn interval_of(stage: &StageFindings, name: &str) -> Option<(f64, f64)> {
    if name == "tps" {
        // The last interval may be shorter.
        let whole = stage.intervals.len().saturating_sub(1);
        let seconds: Vec<f64> = stage.intervals[..whole].iter().map(|interval| interval.tps).collect();
        let found = assay_stats::mean_interval(&seconds).ok()?;
        return Some((found.low.max(0.0), found.high));
    }
    let (scope, metric) = name.split_once('.')?;
    let metric = metric.strip_suffix("_per_transaction")?;
    let scope = stage.telemetry.iter().find(|one| crate::findings::course::scope_name(one) == scope)?;
    let found = scope.metric(metric)?;
    found.per_transaction_low.zip(found.per_transaction_high)
}
