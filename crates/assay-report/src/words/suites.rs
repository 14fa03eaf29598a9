//! The queries of `assay olap`, in words.

use assay_record::{Cold, Suite};

use crate::digits::{count, figure, length};
use crate::findings::cases::{CaseFindings, CasesFindings};
use crate::findings::power::SuiteFigures;
use crate::findings::suites::{Disagreement, SuitesFindings};
use crate::plain::clean;

/// Length of a name, and of an error.
const NAME_WIDTH: usize = 40;
const LINE_WIDTH: usize = 400;
/// Failures of streams that are named.
const FAILURES_MAX: usize = 5;

/// How they were executed: after the name of the workload and the server.
pub(crate) fn how(found: &CasesFindings, suite: &Suite) -> Vec<String> {
    let rows = suite.tables.iter().map(|(table, rows)| format!("{} {}", count(*rows), clean(table, NAME_WIDTH)));
    let rows: Vec<String> = rows.collect();
    let runs = if suite.runs == 1 { "once".to_owned() } else { format!("{} times in a row", suite.runs) };
    let order = if suite.random_order { "random order" } else { "the workload's order" };
    let mut facts = vec![format!("rows: {}", rows.join(", "))];
    if rows.is_empty() {
        facts.clear();
    }
    facts.push(match found.cases.len() {
        1 => format!("1 query, {runs}"),
        number => format!("{number} queries in {order}, each {runs}"),
    });
    facts.push(match found.cold {
        None => "first execution lukewarm: nothing was dropped from any cache".to_owned(),
        Some(Cold::Restarted) => "first execution after a restart of the server, OS cache warm".to_owned(),
        Some(Cold::RestartedCachesDropped) => {
            "first execution cold: server restarted, then OS cache emptied".to_owned()
        }
    });
    if !suite.streams.is_empty() {
        facts.push(format!("then {} in parallel", streams(suite.streams.len() as u64)));
    }
    facts.extend(suite.timeout_ns.map(|ns| format!("time limit {}", length(ns))));
    facts
}

fn streams(number: u64) -> String {
    if number == 1 { "1 stream".to_owned() } else { format!("{} streams", count(number)) }
}

/// Figures of the whole suite.
fn figures(found: &SuiteFigures) -> Vec<String> {
    let mut words = Vec::new();
    if found.streams > 0 {
        let rate = found.queries_per_hour.map_or(String::new(), |rate| format!(", {} per hour", figure(rate)));
        let (streams, queries) = (streams(found.streams), count(found.stream_queries));
        words.push(format!("{streams} in parallel: {queries} queries in {}{rate}.", length(found.streams_ns)));
        for (stream, query, failure) in found.failures.iter().take(FAILURES_MAX) {
            let (query, failure) = (clean(query, NAME_WIDTH), clean(failure, LINE_WIDTH));
            words.push(format!("{query} has no result in stream {stream}: {failure}."));
        }
        if let Some(more) = found.failures.len().checked_sub(FAILURES_MAX).filter(|more| *more > 0) {
            words.push(format!("{more} more queries of streams have no result."));
        }
        if found.queries_per_hour.is_none() {
            words.push("A stream without all results has no throughput.".to_owned());
        }
    }
    if let Some(scale) = found.scale {
        let named = [("power", found.power), ("throughput", found.throughput), ("composite", found.composite)];
        let known = named.iter().filter_map(|(name, value)| Some(format!("{name} {}", figure((*value)?))));
        let known: Vec<String> = known.collect();
        if !known.is_empty() {
            words.push(format!(
                "Calculated as TPC-H's metrics are, but not those, and not comparable with published results: {} (scale \
                 factor {scale}, power from first executions, no refresh functions).",
                known.join(", ")
            ));
        }
    }
    words
}

/// What the times of a large result include.
pub(crate) fn large_result(case: &CaseFindings) -> Option<String> {
    let name = clean(&case.name, NAME_WIDTH);
    case.large_result.then(|| {
        format!(
            "The result of {name} is so large that its rows were hashed while they arrived: its times include that."
        )
    })
}

/// Remarks below the table.
pub(crate) fn notes(found: &CasesFindings) -> Vec<String> {
    let of_case = |case: &CaseFindings| {
        let name = clean(&case.name, NAME_WIDTH);
        let failure = case.failure.as_ref().map(|failure| match case.timed_out {
            true => format!("{name} took too long: {}.", clean(failure, LINE_WIDTH)),
            false => format!("{name} failed: {}.", clean(failure, LINE_WIDTH)),
        });
        let changed = case.result_changed.then(|| format!("{name} did not return the same rows every time."));
        failure.into_iter().chain(changed).chain(large_result(case))
    };
    let figures = found.figures.iter().flat_map(figures);
    found.cases.iter().flat_map(of_case).chain(figures).chain(counted_with_others(found)).collect()
}

/// What counters also contain.
pub(crate) fn counted_with_others(found: &CasesFindings) -> Option<String> {
    let of_all = found.counters_of.as_deref() == Some("database");
    of_all.then(|| "Counters are those of the whole database: other sessions count too.".to_owned())
}

/// Which database is the fastest and by how much, and whether all of them returned the same rows.
pub(crate) fn comparison(found: &SuitesFindings) -> Vec<String> {
    let mut words = Vec::new();
    for (table, rows) in &found.tables {
        let rows = found.databases.iter().zip(rows).map(|(name, rows)| {
            let rows = rows.map_or("no".to_owned(), count);
            format!("{rows} rows on {}", clean(name, NAME_WIDTH))
        });
        let rows: Vec<String> = rows.collect();
        words.push(format!(
            "The databases hold different data, so their times and rows cannot be compared: {} has {}.",
            clean(table, NAME_WIDTH),
            rows.join(", ")
        ));
    }
    for (what, score) in [("hot", &found.hot_score), ("in the first execution", &found.first_score)] {
        let mut order: Vec<(f64, &String)> =
            score.iter().zip(&found.databases).filter_map(|(score, name)| Some(((*score)?, name))).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let listed = order.iter().map(|(score, name)| format!("{} ×{}", clean(name, NAME_WIDTH), figure(*score)));
        let listed: Vec<String> = listed.collect();
        if !listed.is_empty() {
            words.push(format!("Relative time {what}, geometric mean over the queries: {}.", listed.join(", ")));
        }
    }
    if found.queries.iter().flat_map(|query| &query.first).any(|time| time.elapsed_ns.is_none()) {
        words.push(
            "A query without a result counts as twice its slowest time on any database, or twice the time limit."
                .to_owned(),
        );
    }
    if !found.unanswered.is_empty() {
        let names: Vec<String> = found.unanswered.iter().map(|name| clean(name, NAME_WIDTH)).collect();
        words.push(format!("No database answered {}: left out of the means.", names.join(", ")));
    }
    words.extend(found.disagreements.iter().map(disagreement));
    if found.disagreements.is_empty() && found.compared > 0 {
        words.push("All databases returned the same rows.".to_owned());
    }
    words
}

fn disagreement(found: &Disagreement) -> String {
    let [one, other] = found.databases.each_ref().map(|name| clean(name, NAME_WIDTH));
    let query = clean(&found.query, NAME_WIDTH);
    match (&found.value, found.rows) {
        (Some((row, column, [a, b])), _) => format!(
            "Different results of {query}: in row {row}, column {column}, {one} has {} and {other} has {}.",
            clean(a, NAME_WIDTH),
            clean(b, NAME_WIDTH)
        ),
        (None, [a, b]) if a != b => {
            format!("Different results of {query}: {} rows on {one}, {} on {other}.", count(a), count(b))
        }
        _ => format!("Different results of {query}: the hashes of the rows of {one} and {other} differ."),
    }
}
