//! The result of a search for capacity: the highest rate that keeps a promise, or the number of sessions beyond which
//! throughput stops growing.
//!
//! A running search asks here after every stage where to look next, and a reader of its record derives the same result
//! from the same stages.

use assay_record as record;
use assay_stats::{Bracket, Look, Search, Step, bracket_of};
use serde::Serialize;

use crate::findings::arithmetic::{per_second, sum};
use crate::findings::promise::Promise;
use crate::findings::warning::Advice;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityFindings {
    /// What was searched for.
    pub of: Capacity,
    /// How it ended.
    pub state: SearchState,
    /// The highest value known to be within capacity; `None`: none was.
    pub low: Option<f64>,
    /// The lowest value known to be beyond it; `None`: none was.
    pub high: Option<f64>,
    /// One per stage, in order.
    pub looks: Vec<LookFindings>,
}

/// What was searched for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Capacity {
    /// The highest rate, in transactions per second, that keeps all promises.
    Rate {
        /// The promises, as they were written.
        promises: Vec<String>,
    },
    /// The fewest sessions with `KNEE_SHARE` of the highest throughput: the first value beyond the search's own, which
    /// is too few sessions.
    Sessions {
        /// The largest number tried.
        max: u32,
    },
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchState {
    /// Between `low` and `high`; each was measured twice.
    Found,
    /// The promise was never broken: at least `low`.
    AtLeast,
    /// At `high`, it was broken because of the generator: at least `low`.
    GeneratorLimit,
    /// At `high`, it was broken because the generator and the server compete for the same CPUs: at least `low`, and
    /// between `low` and `high` for both together.
    SharedCpus,
    /// It was never kept: not even `high`.
    NotEven,
    /// The run ended before the search did.
    Unfinished,
}

/// A stage's results for the promises.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LookFindings {
    /// Rate or sessions.
    pub at: f64,
    /// Within capacity.
    pub kept: bool,
    /// Transactions that ended per second.
    pub reached_per_s: f64,
    /// The stage's value for each promise, nanoseconds or a share; `None`: transactions that never ended decide it, or
    /// there were none.
    pub values: Vec<Option<f64>>,
    /// Broken promises: indices.
    pub broken: Vec<usize>,
    /// Whether an increasing number of transactions waited for a session.
    pub backlog_grew: bool,
    /// More than 1 % of what was due was not done.
    pub fell_short: bool,
}

/// A stage with this share of the highest throughput is at the knee.
pub(crate) const KNEE_SHARE: f64 = 0.95;
/// Share of due transactions that may be missing.
const SHORT_SHARE: f64 = 0.01;
/// A growing backlog counts if it is at least this much work.
const BACKLOG_SECONDS: f64 = 0.1;

const RATES: Search =
    Search { start: 100.0, min: 1.0, max: 1e7, growth: 4.0, precision: 0.05, whole: false, looks_max: 50 };

/// The rate of the next stage after these; `None`: the search is over.
pub fn next_rate(stages: &[record::Stage], promises: &[Promise]) -> Option<f64> {
    let looks: Vec<Look> = stages.iter().map(|stage| look_at_rate(stage, promises).as_look()).collect();
    match RATES.next(&looks) {
        Step::Look(rate) => Some(rate),
        Step::Done(_) => None,
    }
}

/// The sessions of the next stage after these; `None`: the search is over.
pub fn next_sessions(stages: &[record::Stage], max: u32) -> Option<u32> {
    let looks: Vec<Look> = looks_at_sessions(stages).iter().map(LookFindings::as_look).collect();
    match sessions_search(max).next(&looks) {
        Step::Look(sessions) => Some(sessions as u32),
        Step::Done(_) => None,
    }
}

fn sessions_search(max: u32) -> Search {
    Search { start: 1.0, max: f64::from(max), growth: 2.0, precision: 0.1, whole: true, ..RATES }
}

/// The intermediate result of a running search, for progress output.
pub fn search_so_far(record: &record::Record) -> Option<CapacityFindings> {
    capacity_findings(record, &[])
}

fn looks(search: &record::Search, stages: &[record::Stage]) -> Vec<LookFindings> {
    match search {
        record::Search::Rate { promises } => {
            let promises = read(promises);
            stages.iter().map(|stage| look_at_rate(stage, &promises)).collect()
        }
        record::Search::Sessions { .. } => looks_at_sessions(stages),
    }
}

/// Promises in a record, which may have been edited: invalid ones are ignored.
fn read(promises: &[String]) -> Vec<Promise> {
    promises.iter().filter_map(|text| text.parse().ok()).collect()
}

/// `of_generator`: for each stage, what to do about its generator if that limited it.
pub(crate) fn capacity_findings(record: &record::Record, of_generator: &[Option<Advice>]) -> Option<CapacityFindings> {
    let search = record.manifest.search.as_ref()?;
    let looks = looks(search, &record.stages);
    let as_looks: Vec<Look> = looks.iter().map(LookFindings::as_look).collect();
    let settings = match search {
        record::Search::Rate { .. } => RATES,
        record::Search::Sessions { max } => sessions_search(*max),
    };
    let bracket = match settings.next(&as_looks) {
        Step::Done(bracket) => bracket,
        Step::Look(_) => bracket_of(&as_looks),
    };
    let state = match (bracket, search) {
        (Bracket { complete: false, .. }, _) => SearchState::Unfinished,
        (Bracket { low: None, .. }, _) => SearchState::NotEven,
        (Bracket { high: None, .. }, _) => SearchState::AtLeast,
        (Bracket { high: Some(high), .. }, record::Search::Rate { .. }) => {
            let broken = looks.iter().zip(of_generator).filter(|(look, _)| look.at == high && !look.kept);
            why_broken(broken.map(|(_, advice)| *advice))
        }
        _ => SearchState::Found,
    };
    let of = match search.clone() {
        record::Search::Rate { promises } => {
            Capacity::Rate { promises: read(&promises).into_iter().map(|promise| promise.text).collect() }
        }
        record::Search::Sessions { max } => Capacity::Sessions { max },
    };
    Some(CapacityFindings { of, state, low: bracket.low, high: bracket.high, looks })
}

/// What looks beyond capacity say about it; for each of them, what to do about a generator that limited it.
fn why_broken(mut looks: impl Iterator<Item = Option<Advice>> + Clone) -> SearchState {
    let by_generator = looks.clone().count() > 0 && looks.clone().all(|advice| advice.is_some());
    match by_generator {
        true if looks.all(|advice| advice == Some(Advice::SeparateFromServer)) => SearchState::SharedCpus,
        true => SearchState::GeneratorLimit,
        false => SearchState::Found,
    }
}

fn look_at_rate(stage: &record::Stage, promises: &[Promise]) -> LookFindings {
    let total = &stage.total;
    let rate = stage.rate_per_s.unwrap_or(0.0);
    let values: Vec<Option<f64>> = promises.iter().map(|promise| promise.value(stage)).collect();
    let is_broken = |value: &Option<f64>, promise: &Promise| match value {
        Some(value) => !promise.allows(*value),
        None => total.due > 0 && promise.of.is_none(),
    };
    let broken: Vec<usize> =
        (0..promises.len()).filter(|number| is_broken(&values[*number], &promises[*number])).collect();
    let undone = sum([total.dropped, total.unstarted, total.unfinished].into_iter());
    let fell_short = undone as f64 > total.due as f64 * SHORT_SHARE;
    let backlog_grew = grows(stage, rate);
    LookFindings {
        at: rate,
        kept: broken.is_empty() && !fell_short && !backlog_grew,
        reached_per_s: reached(stage),
        values: values.into_iter().map(|value| value.filter(|value| value.is_finite())).collect(),
        broken,
        backlog_grew,
        fell_short,
    }
}

/// The minimum that waited in the last third of the stage is more than the maximum in the first, and large enough to
/// matter.
fn grows(stage: &record::Stage, rate: f64) -> bool {
    let backlogs: Vec<u64> = stage.intervals.iter().map(|interval| interval.backlog).collect();
    let third = backlogs.len() / 3;
    if third == 0 {
        return false;
    }
    let first = backlogs[..third].iter().max().copied().unwrap_or(0);
    let last = backlogs[backlogs.len() - third..].iter().min().copied().unwrap_or(0);
    last > first && last as f64 > rate * BACKLOG_SECONDS
}

fn reached(stage: &record::Stage) -> f64 {
    let ended = |one: &record::TransactionTally| one.count.saturating_add(one.rolled_back);
    per_second(sum(stage.total.transactions.iter().map(ended)), stage.measured_ns)
}

/// If at most half as many sessions reached `KNEE_SHARE` of the maximum, that is enough.
fn looks_at_sessions(stages: &[record::Stage]) -> Vec<LookFindings> {
    let all: Vec<(f64, f64)> = stages.iter().map(|stage| (f64::from(stage.sessions), reached(stage))).collect();
    let most = all.iter().map(|(_, tps)| *tps).fold(0.0, f64::max);
    let twice_is_known = |sessions: f64| all.iter().any(|(other, _)| *other >= 2.0 * sessions);
    let enough = |(sessions, tps): &(f64, f64)| *tps >= KNEE_SHARE * most && twice_is_known(*sessions);
    let fewest = all.iter().filter(|one| enough(one)).map(|(sessions, _)| *sessions).fold(f64::INFINITY, f64::min);
    let look = |(at, tps): &(f64, f64)| LookFindings {
        at: *at,
        kept: *at < fewest || *at == fewest && !enough(&(*at, *tps)),
        reached_per_s: *tps,
        values: Vec::new(),
        broken: Vec::new(),
        backlog_grew: false,
        fell_short: false,
    };
    all.iter().map(look).collect()
}

impl CapacityFindings {
    /// The last look at the result of the search: the highest rate that keeps the promises, the fewest sessions that
    /// are enough.
    pub(crate) fn best_look(&self) -> Option<usize> {
        let at = match self.of {
            Capacity::Rate { .. } => self.low.or(self.high),
            Capacity::Sessions { .. } => self.high.or(self.low),
        }?;
        self.looks.iter().rposition(|look| look.at == at)
    }
}

impl LookFindings {
    fn as_look(&self) -> Look {
        Look { at: self.at, kept: self.kept, reached: self.fell_short.then_some(self.reached_per_s) }
    }
}
