//! The result of a search for capacity: the highest rate that keeps a promise, or the number of sessions beyond which
//! throughput stops growing.
//!
//! A running search asks here after every stage where to look next, and a reader of its record derives the same result
//! from the same stages.

use assay_record as record;
use assay_stats::{Bracket, Look, NextLook, SearchPlan, bracket_of};
use serde::Serialize;

use crate::findings::arithmetic::{per_second, sum};
use crate::findings::promise::{Promise, Promised, PromisedFigure};
use crate::findings::warning::Advice;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityFindings {
    /// Target of the search.
    pub of: Capacity,
    /// Outcome of the search.
    pub state: SearchState,
    /// The highest value known to be within capacity; `None`: none was.
    pub low: Option<f64>,
    /// The lowest value known to be beyond it; `None`: none was.
    pub high: Option<f64>,
    /// One per stage, in order.
    pub looks: Vec<LookFindings>,
    /// Causes that delayed the generator in every stage that broke the promise at `high`, by enough to have decided it.
    pub delayed: Option<DelayFindings>,
    /// Transaction types that promises name and that did not occur.
    pub unknown_types: Vec<String>,
    /// The types that occurred, if any are unknown.
    pub known_types: Vec<String>,
}

/// Causes other than the server that may have broken a promise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelayFindings {
    /// The smallest share of a stage for which a worker waited for a CPU, 0 … 1.
    pub waited_for_cpu: f64,
    /// The smallest p99 of lag of a stage; its maximum if there are too few values.
    pub lag_ns: u64,
}

/// Target of the search.
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

/// Outcome of a search.
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
    /// A look remained undecided: even `LOOK_STAGES_MAX` stages had too few transactions for a promise.
    TooFew,
    /// A promise is about a type of transaction that did not occur.
    UnknownType,
    /// The throughput at the end of the search is far below one that was reached in it: something disturbed the
    /// server, or it became slower.
    Unsteady,
    /// The run ended before the search did.
    Unfinished,
}

/// A stage's results for the promises.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LookFindings {
    /// Rate or sessions.
    pub at: f64,
    /// Within capacity; false if that is undecided.
    pub kept: bool,
    /// Stages that are judged together: this one and those before it at the same rate.
    pub stages: usize,
    /// Why it is undecided: there were too few transactions so far. `None`: it is decided.
    pub too_few: Option<TooFew>,
    /// Transactions that ended per second.
    pub reached_per_s: f64,
    /// The value of these stages for each promise, nanoseconds or a share; `None`: transactions that never ended decide
    /// it, or there were too few.
    pub values: Vec<Option<f64>>,
    /// Broken promises: indices.
    pub broken: Vec<usize>,
    /// Whether an increasing number of transactions waited for a session.
    pub backlog_grew: bool,
    /// More than 1 % of what was due was not done.
    pub fell_short: bool,
}

/// Too few transactions for a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TooFew {
    /// Index of the promise.
    pub promise: usize,
    /// Their number.
    pub transactions: u64,
    /// The number that the promise needs.
    pub needed: u64,
}

/// The most stages of one look.
pub(crate) const LOOK_STAGES_MAX: usize = 20;
/// A worker that waited for a CPU for this share of a stage may have decided a percentile.
const WAITED_MIN: f64 = 0.05;
/// And so may lag of this share of a promised response time.
const LAG_MIN: f64 = 0.2;
/// A stage with this share of the highest throughput is at the knee.
pub(crate) const KNEE_SHARE: f64 = 0.95;
/// Looks at a steady server are within this share of the highest throughput, once enough sessions are at work.
const REPEATABLE_SHARE: f64 = 0.8;
/// Share of due transactions that may be missing.
const SHORT_SHARE: f64 = 0.01;
/// A growing backlog counts if it is at least this much work.
const BACKLOG_SECONDS: f64 = 0.1;

const RATES: SearchPlan =
    SearchPlan { start: 100.0, min: 1.0, max: 1e7, growth: 4.0, precision: 0.05, whole: false, looks_max: 50 };

/// The rate of the next stage after these; `None`: the search is over.
pub fn next_rate(stages: &[record::Stage], promises: &[Promise]) -> Option<f64> {
    if !unknown_types(stages, promises).is_empty() {
        return None;
    }
    let looks = looks_at_rates(stages, promises);
    if let Some(last) = looks.last().filter(|look| look.too_few.is_some()) {
        return (last.stages < LOOK_STAGES_MAX).then_some(last.at);
    }
    match RATES.next(&decided(&looks)) {
        NextLook::Look(rate) => Some(rate),
        NextLook::Done(_) => None,
    }
}

/// The sessions of the next stage after these; `None`: the search is over.
pub fn next_sessions(stages: &[record::Stage], max: u32) -> Option<u32> {
    match sessions_search(max).next(&decided(&looks_at_sessions(stages))) {
        NextLook::Look(sessions) => Some(sessions as u32),
        NextLook::Done(_) => None,
    }
}

fn sessions_search(max: u32) -> SearchPlan {
    SearchPlan { start: 1.0, max: f64::from(max), growth: 2.0, precision: 0.1, whole: true, ..RATES }
}

/// The intermediate result of a running search, for progress output.
pub fn search_so_far(record: &record::Record) -> Option<CapacityFindings> {
    capacity_findings(record, &[])
}

fn looks(search: &record::Search, stages: &[record::Stage]) -> Vec<LookFindings> {
    match search {
        record::Search::Rate { promises } => looks_at_rates(stages, &read(promises)),
        record::Search::Sessions { .. } => looks_at_sessions(stages),
    }
}

/// Promises in a record, which may have been edited: invalid ones are ignored.
fn read(promises: &[String]) -> Vec<Promise> {
    promises.iter().filter_map(|text| text.parse().ok()).collect()
}

/// State of the generator in a stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OfGenerator {
    /// Advice if it was the limit.
    pub(crate) advice: Option<Advice>,
    /// Share of the time the worker with the longest wait waited for a CPU.
    pub(crate) waited_for_cpu: f64,
    /// p99 of lag; the maximum if there are too few values.
    pub(crate) lag_ns: u64,
}

/// `of_generator`: for each stage.
pub(crate) fn capacity_findings(record: &record::Record, of_generator: &[OfGenerator]) -> Option<CapacityFindings> {
    let search = record.manifest.search.as_ref()?;
    let promises = match search {
        record::Search::Rate { promises } => read(promises),
        record::Search::Sessions { .. } => Vec::new(),
    };
    let looks = looks(search, &record.stages);
    let as_looks = decided(&looks);
    let settings = match search {
        record::Search::Rate { .. } => RATES,
        record::Search::Sessions { max } => sessions_search(*max),
    };
    let bracket = match settings.next(&as_looks) {
        NextLook::Done(bracket) => bracket,
        NextLook::Look(_) => bracket_of(&as_looks),
    };
    let unknown = unknown_types(&record.stages, &promises);
    let at_high = looks.iter().zip(of_generator).filter(|(look, _)| Some(look.at) == bracket.high && look.is_broken());
    let at_high: Vec<&OfGenerator> = at_high.map(|(_, generator)| generator).collect();
    let is_rate = matches!(search, record::Search::Rate { .. });
    let has_ended = record.status == record::Status::Complete;
    let state = match bracket {
        _ if !unknown.is_empty() => SearchState::UnknownType,
        Bracket { complete: false, .. } if has_ended && looks.last().is_some_and(|look| look.too_few.is_some()) => {
            SearchState::TooFew
        }
        Bracket { complete: false, .. } => SearchState::Unfinished,
        Bracket { high: None, .. } => SearchState::AtLeast,
        Bracket { low, .. } => match why_broken(at_high.iter().map(|generator| generator.advice)) {
            SearchState::Found if low.is_none() => SearchState::NotEven,
            SearchState::SharedCpus if low.is_none() => SearchState::GeneratorLimit,
            found if is_rate => found,
            _ => SearchState::Found,
        },
    };
    let state = match is_rate || is_repeatable(&looks, bracket.high.or(bracket.low)) {
        true => state,
        false if state == SearchState::Unfinished => state,
        false => SearchState::Unsteady,
    };
    let states_a_limit = matches!(state, SearchState::Found | SearchState::NotEven) && is_rate;
    let delayed = delay(&at_high, &promises).filter(|_| states_a_limit);
    let known = || record.stages.iter().flat_map(|stage| &stage.total.transactions);
    let mut known_types: Vec<String> = match unknown.is_empty() {
        true => Vec::new(),
        false => known().filter(|one| occurred(one)).map(|one| one.name.clone()).collect(),
    };
    known_types.sort();
    known_types.dedup();
    let of = match search {
        record::Search::Rate { .. } => {
            Capacity::Rate { promises: promises.into_iter().map(|promise| promise.text).collect() }
        }
        record::Search::Sessions { max } => Capacity::Sessions { max: *max },
    };
    let (low, high) = (bracket.low, bracket.high);
    Some(CapacityFindings { of, state, low, high, looks, delayed, unknown_types: unknown, known_types })
}

/// Looks beyond capacity, each with advice about a generator that limited it.
fn why_broken(mut looks: impl Iterator<Item = Option<Advice>> + Clone) -> SearchState {
    let by_generator = looks.clone().count() > 0 && looks.clone().all(|advice| advice.is_some());
    match by_generator {
        true if looks.all(|advice| advice == Some(Advice::SeparateFromServer)) => SearchState::SharedCpus,
        true => SearchState::GeneratorLimit,
        false => SearchState::Found,
    }
}

/// Causes that delayed the generator in all of these stages by enough to have broken a promise.
fn delay(stages: &[&OfGenerator], promises: &[Promise]) -> Option<DelayFindings> {
    let times = promises.iter().filter(|promise| promise.figure != PromisedFigure::Errors);
    let shortest = times.map(|promise| promise.limit).fold(f64::INFINITY, f64::min);
    let may_decide =
        |stage: &&&OfGenerator| stage.waited_for_cpu >= WAITED_MIN || stage.lag_ns as f64 >= LAG_MIN * shortest;
    let all = !stages.is_empty() && stages.iter().all(|stage| may_decide(&stage));
    all.then(|| DelayFindings {
        waited_for_cpu: stages.iter().map(|stage| stage.waited_for_cpu).fold(f64::INFINITY, f64::min),
        lag_ns: stages.iter().map(|stage| stage.lag_ns).min().unwrap_or(0),
    })
}

/// The types that promises name and that did not occur, once any transaction of these stages has ended.
fn unknown_types(stages: &[record::Stage], promises: &[Promise]) -> Vec<String> {
    let types = || stages.iter().flat_map(|stage| &stage.total.transactions).filter(|one| occurred(one));
    let is_unknown = |of: &&String| types().next().is_some() && !types().any(|one| one.name == **of);
    let mut unknown: Vec<String> =
        promises.iter().filter_map(|promise| promise.of.as_ref()).filter(is_unknown).cloned().collect();
    unknown.sort();
    unknown.dedup();
    unknown
}

fn occurred(one: &record::TransactionTally) -> bool {
    one.count > 0 || one.rolled_back > 0 || one.failed > 0
}

fn decided(looks: &[LookFindings]) -> Vec<Look> {
    looks.iter().filter(|look| look.too_few.is_none()).map(LookFindings::as_look).collect()
}

/// One for each stage. A look that has too few transactions for a verdict goes on in the next stage at its rate.
fn looks_at_rates(stages: &[record::Stage], promises: &[Promise]) -> Vec<LookFindings> {
    let mut together: Vec<&record::Stage> = Vec::new();
    let mut looks = Vec::new();
    for stage in stages {
        if together.first().is_some_and(|first| first.rate_per_s != stage.rate_per_s) {
            together.clear();
        }
        together.push(stage);
        let look = look_at_rate(&together, promises);
        if look.too_few.is_none() || look.stages >= LOOK_STAGES_MAX {
            together.clear();
        }
        looks.push(look);
    }
    looks
}

/// Verdict on the last of these stages, judged together with the others.
fn look_at_rate(stages: &[&record::Stage], promises: &[Promise]) -> LookFindings {
    let rate = stages.last().and_then(|stage| stage.rate_per_s).unwrap_or(0.0);
    let values: Vec<Promised> = promises.iter().map(|promise| promise.value(stages)).collect();
    let total = |of: fn(&record::Tally) -> u64| sum(stages.iter().map(|stage| of(&stage.total)));
    let due = total(|total| total.due);
    let is_known = |number: &usize| values[*number].transactions >= promises[*number].transactions_needed();
    let is_broken = |number: &usize| match values[*number].value {
        Some(value) if is_known(number) => !promises[*number].allows(value),
        _ => values[*number].is_beyond,
    };
    let numbers = 0..promises.len();
    let broken: Vec<usize> = numbers.clone().filter(is_broken).collect();
    let undone = total(|total| sum([total.dropped, total.unstarted, total.unfinished].into_iter()));
    // One of a few is less than a share can tell.
    let fell_short = undone > 1 && undone as f64 > due as f64 * SHORT_SHARE;
    let backlog_grew = stages.iter().any(|stage| grows(stage, rate));
    let is_beyond = !broken.is_empty() || fell_short || backlog_grew;
    let too_few = numbers.filter(|number| !is_beyond && !is_known(number)).map(|number| TooFew {
        promise: number,
        transactions: values[number].transactions,
        needed: promises[number].transactions_needed(),
    });
    let too_few = too_few.max_by_key(|found| found.needed.saturating_sub(found.transactions));
    let shown = |number: usize| values[number].value.filter(|value| value.is_finite() && is_known(&number));
    LookFindings {
        at: rate,
        kept: !is_beyond && too_few.is_none(),
        stages: stages.len(),
        too_few,
        reached_per_s: stages.last().map_or(0.0, |stage| reached(stage)),
        values: (0..promises.len()).map(shown).collect(),
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

/// If at most half as many sessions reached `KNEE_SHARE` of the maximum, that is enough. Where looks at a number of
/// sessions disagree, the majority decides, of two the better: the other may have been disturbed.
fn looks_at_sessions(stages: &[record::Stage]) -> Vec<LookFindings> {
    let all: Vec<(f64, f64)> = stages.iter().map(|stage| (f64::from(stage.sessions), reached(stage))).collect();
    let at = |sessions: f64| all.iter().filter(move |(other, _)| *other == sessions).map(|(_, tps)| *tps);
    let most = all.iter().filter_map(|(sessions, _)| upper_median(at(*sessions))).fold(0.0, f64::max);
    let twice_is_known = |sessions: f64| all.iter().any(|(other, _)| *other >= 2.0 * sessions);
    let reaches = |tps: f64| tps >= KNEE_SHARE * most;
    let enough = |sessions: f64| upper_median(at(sessions)).is_some_and(reaches) && twice_is_known(sessions);
    let numbers = all.iter().map(|(sessions, _)| *sessions);
    let fewest = numbers.filter(|sessions| enough(*sessions)).fold(f64::INFINITY, f64::min);
    let look = |(at, tps): &(f64, f64)| LookFindings {
        at: *at,
        kept: *at < fewest || *at == fewest && !reaches(*tps),
        stages: 1,
        too_few: None,
        reached_per_s: *tps,
        values: Vec::new(),
        broken: Vec::new(),
        backlog_grew: false,
        fell_short: false,
    };
    all.iter().map(look).collect()
}

/// The larger of the two in the middle.
fn upper_median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Whether the throughput at the end of a search for a knee is like the highest that any look has seen.
fn is_repeatable(looks: &[LookFindings], end: Option<f64>) -> bool {
    let highest = looks.iter().map(|look| look.reached_per_s).fold(0.0, f64::max);
    let at_end = looks.iter().filter(|look| Some(look.at) == end).map(|look| look.reached_per_s);
    upper_median(at_end).is_none_or(|tps| tps >= REPEATABLE_SHARE * highest)
}

impl CapacityFindings {
    /// The look that shows the result of the search: the highest rate that keeps the promises, the fewest sessions that
    /// are enough.
    pub(crate) fn best_look(&self) -> Option<usize> {
        let at = match self.of {
            Capacity::Rate { .. } => self.low.or(self.high),
            Capacity::Sessions { .. } => self.high.or(self.low),
        }?;
        if self.state == SearchState::Unsteady {
            return None;
        }
        let looks = self.looks.iter().enumerate().filter(|(_, look)| look.at == at && look.too_few.is_none());
        match self.of {
            Capacity::Rate { .. } => looks.map(|(number, _)| number).max(),
            // As the search judges it.
            Capacity::Sessions { .. } => {
                let mut looks: Vec<(usize, &LookFindings)> = looks.collect();
                looks.sort_by(|(_, one), (_, other)| one.reached_per_s.total_cmp(&other.reached_per_s));
                looks.get(looks.len() / 2).map(|(number, _)| *number)
            }
        }
    }
}

impl LookFindings {
    fn is_broken(&self) -> bool {
        !self.kept && self.too_few.is_none()
    }

    fn as_look(&self) -> Look {
        Look { at: self.at, kept: self.kept, reached: self.fell_short.then_some(self.reached_per_s) }
    }
}
