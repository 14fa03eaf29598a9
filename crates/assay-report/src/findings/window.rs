//! A part of a run: the intervals of every stage from one instant to another, as if nothing else had been measured.
//!
//! Data per interval is restricted to the part: counts, throughput, response times, errors, telemetry.
//! What it has only per stage is omitted (times of types, service times, counters, audits, single servers) or, for the
//! generator and its lag, remains that of the whole stage.

use std::collections::BTreeMap;

use assay_record::{Interval, Record, Stage, StatementTally, Tally, Time, TransactionTally};

use crate::findings::arithmetic::{map, sum};
use crate::findings::latency::LatencyFindings;
use crate::findings::run::{Findings, findings};
use crate::findings::stage::{StageFindings, WindowFindings};
use crate::findings::tally::ErrorFindings;
use crate::findings::throughput::SteadyFindings;

/// The requested part of every stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The last nanoseconds; all of a shorter stage.
    Last {
        /// > 0
        ns: u64,
    },
    /// Between two instants since the start of the measured part.
    Between {
        /// The first.
        from_ns: u64,
        /// The second, or the end; from_ns < to_ns.
        to_ns: Option<u64>,
    },
    /// From the start of the steady part on.
    Steady {
        /// Until then, or the end.
        to_ns: Option<u64>,
    },
}

/// There is no such part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWindow {
    /// It contains no whole interval.
    #[error("no whole interval of a run of {} lies in it", crate::digits::seconds(*measured_ns))]
    Empty {
        /// Length of the stage.
        measured_ns: u64,
    },
    /// `Window::Steady` of a stage without a steady part.
    #[error("throughput was not steady, or is not known to be")]
    NotSteady,
    /// Stages of a search have no times of their own.
    #[error("the stages of a search cannot be cut")]
    Search,
}

/// The findings about a part of each stage of `record`.
pub fn findings_within(record: &Record, window: Window) -> Result<Findings, NoWindow> {
    let whole = findings(record);
    if whole.capacity.is_some() {
        return Err(NoWindow::Search);
    }
    let mut part = record.clone();
    part.rules.clear();
    let mut cut = Vec::new();
    for (stage, of) in part.stages.iter_mut().zip(&whole.stages) {
        cut.push(narrow(stage, of, window)?);
    }
    let mut found = findings(&part);
    let stages = found.stages.iter_mut().zip(&part.stages);
    for (((stage, cut_from), of), window) in stages.zip(&whole.stages).zip(cut) {
        complete(stage, &cut_from.intervals, of, window);
    }
    found.errors = found.stages.iter().flat_map(|stage| stage.total.errors_by_kind.clone()).collect();
    Ok(found)
}

/// Keeps the intervals of a stage that are in `window`, and the sums that follow from them.
fn narrow(stage: &mut Stage, whole: &StageFindings, window: Window) -> Result<WindowFindings, NoWindow> {
    let of_ns = stage.measured_ns;
    let (from_ns, to_ns) = match window {
        Window::Last { ns } => (of_ns.saturating_sub(ns), of_ns),
        Window::Between { from_ns, to_ns } => (from_ns, to_ns.unwrap_or(of_ns)),
        Window::Steady { to_ns } => match whole.throughput.steady {
            Some(SteadyFindings::Steady { start_ns, .. }) => (start_ns, to_ns.unwrap_or(of_ns)),
            _ => return Err(NoWindow::NotSteady),
        },
    };
    let end_of = |interval: &Interval| interval.start_ns.saturating_add(interval.length_ns);
    // Runs end slightly late: an interval that exceeds the window by a tenth of its length still counts.
    let is_in = |one: &Interval| {
        let slack = one.length_ns / 10;
        one.start_ns.saturating_add(slack) >= from_ns && end_of(one) <= to_ns.saturating_add(slack)
    };
    stage.intervals.retain(is_in);
    let (Some(first), Some(last)) = (stage.intervals.first(), stage.intervals.last()) else {
        return Err(NoWindow::Empty { measured_ns: of_ns });
    };
    let (from_ns, to_ns) = (first.start_ns, end_of(last));
    stage.measured_ns = to_ns - from_ns;
    stage.started = Time::from_unix_ms(stage.started.unix_ms().saturating_add(from_ns / 1_000_000));
    stage.start_ns = stage.start_ns.map(|start| start.saturating_add(from_ns));
    stage.targets.clear();
    stage.total = tally(&stage.total, &stage.intervals);
    for interval in &mut stage.intervals {
        let since = |ns: &mut u64| *ns = ns.saturating_sub(from_ns);
        since(&mut interval.start_ns);
        interval.first_done_ns.iter_mut().for_each(since);
        interval.last_done_ns.iter_mut().for_each(since);
        let targets = interval.targets.iter_mut();
        targets.flat_map(|of| of.first_done_ns.iter_mut().chain(&mut of.last_done_ns)).for_each(since);
    }
    Ok(WindowFindings { from_ns, to_ns, of_ns })
}

/// The sums of some intervals. An additional type per interval, after the real ones, carries what is known only for all
/// types together.
fn tally(whole: &Tally, intervals: &[Interval]) -> Tally {
    let of_type = |number: usize| sum(intervals.iter().map(|one| one.transactions.get(number).copied().unwrap_or(0)));
    let types = whole.transactions.iter().enumerate().map(|(number, one)| TransactionTally {
        name: one.name.clone(),
        count: of_type(number),
        ..TransactionTally::default()
    });
    let carriers = intervals.iter().map(|one| TransactionTally {
        failed: one.failed,
        retries: one.retries,
        response: one.response.clone(),
        ..TransactionTally::default()
    });
    let mut statements = assay_record::ByClass::<u64>::default();
    for one in intervals {
        statements.read = statements.read.saturating_add(one.statements.read);
        statements.write = statements.write.saturating_add(one.statements.write);
        statements.other = statements.other.saturating_add(one.statements.other);
    }
    Tally {
        transactions: types.chain(carriers).collect(),
        statements: map(&statements, |count| StatementTally { count: *count, ..StatementTally::default() }),
        reconnects: sum(intervals.iter().map(|one| one.reconnects)),
        due: sum(intervals.iter().map(|one| one.due.unwrap_or(0))),
        dropped: whole.dropped,
        unstarted: whole.unstarted,
        unfinished: whole.unfinished,
        stopped: whole.stopped,
        lag: whole.lag.clone(),
        ..Tally::default()
    }
}

/// Restores what is known only for the whole stage, and removes the additional types of `tally`.
fn complete(stage: &mut StageFindings, intervals: &[Interval], whole: &StageFindings, window: WindowFindings) {
    stage.window = Some(window);
    stage.generator = whole.generator;
    stage.session_transactions_mean = whole.session_transactions_mean;
    let total = &mut stage.total;
    total.types.truncate(whole.total.types.len());
    (total.rolled_back, total.retries_in_doubt, total.failed_in_doubt) = (None, None, None);
    let is_only = whole.total.types.iter().filter(|one| one.has_ended()).count() == 1;
    for (one, in_whole) in total.types.iter_mut().zip(&whole.total.types) {
        (one.rolled_back, one.failed, one.retries) = (None, None, None);
        if is_only && in_whole.has_ended() {
            (one.response, one.failed, one.retries) = (total.response, Some(total.failed), Some(total.retries));
        }
    }
    total.service = LatencyFindings::default();
    total.errors = sum(intervals.iter().map(|interval| interval.errors));
    total.errors_by_kind = errors_by_class(intervals, total.errors);
}

/// Errors by class, which is all that intervals have; those of 0.1.0 have only their number. The most frequent
/// first.
fn errors_by_class(intervals: &[Interval], all: u64) -> Vec<ErrorFindings> {
    let mut by_class: BTreeMap<&str, u64> = BTreeMap::new();
    for (class, count) in intervals.iter().flat_map(|interval| &interval.errors_by_class) {
        let sum = by_class.entry(class).or_default();
        *sum = sum.saturating_add(*count);
    }
    if by_class.is_empty() && all > 0 {
        by_class.insert("of any kind", all);
    }
    let of = |(class, count): (&str, u64)| ErrorFindings {
        origin: "any origin".into(),
        class: class.to_owned(),
        code: String::new(),
        count,
        message: "codes and messages are kept for the whole run only".into(),
    };
    let mut errors: Vec<ErrorFindings> = by_class.into_iter().map(of).collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    errors
}
