//! The queries of `assay olap` on several databases: relative times, and whether all returned the same rows.
//!
//! Relative times are those of ClickBench: the ratio to the fastest database, after 10 ms were added to both, and over
//! all queries the geometric mean. A query without a result counts as a slow one, so that a database that fails does
//! not look fast.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use assay_record::is_same_digest;
use serde::Serialize;

use crate::findings::cases::{CaseFindings, CasesFindings};
use crate::findings::power::SuiteFigures;
use crate::findings::report::{Report, ReportEntry};
use crate::findings::run::ServerFindings;

/// Several databases, query by query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuitesFindings {
    /// Names of the databases, in the order given.
    pub databases: Vec<String>,
    /// In the order of the first database.
    pub queries: Vec<QueryFindings>,
    /// Geometric mean of the relative times of the first executions, by database; `None`: no query has a result, or the
    /// databases hold different data.
    pub first_score: Vec<Option<f64>>,
    /// The same of the later executions.
    pub hot_score: Vec<Option<f64>>,
    /// Figures of the parallel streams, and those scaled by the size of the data, by database.
    pub figures: Vec<Option<SuiteFigures>>,
    /// Queries that no database has answered: they are in no score.
    pub unanswered: Vec<String>,
    /// Tables whose numbers of rows differ; rows by database.
    pub tables: BTreeMap<String, Vec<Option<u64>>>,
    /// Queries whose rows were compared: those that at least two databases have answered.
    pub compared: usize,
    /// Results that differ.
    pub disagreements: Vec<Disagreement>,
}

/// One query, with one element per database in each list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueryFindings {
    /// Its name.
    pub name: String,
    /// The first execution.
    pub first: Vec<QueryTime>,
    /// The shortest of the later ones.
    pub hot: Vec<QueryTime>,
}

/// Time of a query on one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct QueryTime {
    /// `None`: it failed, took too long, or was not executed.
    pub elapsed_ns: Option<u64>,
    /// Relative to the fastest database, with 10 ms added to both; without a result, twice the slowest time or time
    /// limit counts. `None`: no database has a result.
    pub relative: Option<f64>,
    /// Whether it took longer than the time limit.
    pub timed_out: bool,
}

/// A query whose rows on one database are not those on another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// The query.
    pub query: String,
    /// The two databases.
    pub databases: [String; 2],
    /// Their numbers of rows.
    pub rows: [u64; 2],
    /// The first value that differs: its row and column, from 1, after sorting, and both values. `None`: the numbers of
    /// rows differ, or the rows were too many to keep, and their hashes differ.
    pub value: Option<(u64, u64, [String; 2])>,
}

/// Added to both times of a ratio, so that the fastest queries do not decide everything.
const ADDED_NS: f64 = 10e6;
/// Numbers are the same if they differ by less than this part: databases round averages differently.
const TOLERANCE: f64 = 1e-6;

/// The databases of a report; `None` if fewer than two of its records are of `assay olap`.
pub fn suites(report: &Report) -> Option<SuitesFindings> {
    let found = report.entries.iter().filter_map(|entry| {
        let cases = entry.findings.cases.as_ref().filter(|cases| cases.suite.is_some())?;
        Some((product(entry), entry.name.as_str(), cases))
    });
    let found: Vec<(String, &str, &CasesFindings)> = found.collect();
    let mut products: Vec<&String> = found.iter().map(|(product, ..)| product).collect();
    products.sort();
    products.dedup();
    let differ = products.len() == found.len();
    let name = |(product, name, _): &(String, &str, &CasesFindings)| match differ {
        true => product.clone(),
        false => (*name).to_owned(),
    };
    let names: Vec<String> = found.iter().map(name).collect();
    let found: Vec<(&str, &CasesFindings)> =
        names.iter().map(String::as_str).zip(found.iter().map(|(.., cases)| *cases)).collect();
    (found.len() > 1).then(|| of_databases(&found))
}

/// `PostgreSQL 17.2`: without the version of the package.
fn product(entry: &ReportEntry) -> String {
    let server = entry.findings.targets.first();
    server.map_or(String::new(), ServerFindings::in_short)
}

fn of_databases(found: &[(&str, &CasesFindings)]) -> SuitesFindings {
    let mut names: Vec<&str> = Vec::new();
    for case in found.iter().flat_map(|(_, cases)| &cases.cases) {
        if !names.contains(&case.name.as_str()) {
            names.push(&case.name);
        }
    }
    let case = |cases: &'_ CasesFindings, name: &str| cases.cases.iter().position(|case| case.name == name);
    let of_query = |name: &&str| {
        let cases: Vec<Option<&CaseFindings>> =
            found.iter().map(|(_, cases)| case(cases, name).map(|at| &cases.cases[at])).collect();
        let limit = found.iter().filter_map(|(_, cases)| cases.suite.as_ref()?.timeout_ns).max();
        let times = |time: fn(&CaseFindings) -> Option<u64>| {
            let known = cases.iter().map(|case| case.and_then(time)).collect::<Vec<_>>();
            let timed_out = cases.iter().map(|case| case.is_some_and(|case| case.timed_out));
            relative(&known, limit)
                .into_iter()
                .zip(timed_out)
                .map(|(time, timed_out)| QueryTime { timed_out: timed_out && time.elapsed_ns.is_none(), ..time })
        };
        QueryFindings {
            name: (*name).to_owned(),
            first: times(|case| case.first_ns).collect(),
            hot: times(|case| case.hot_ns.filter(|_| case.failure.is_none())).collect(),
        }
    };
    let queries: Vec<QueryFindings> = names.iter().map(of_query).collect();
    let tables = tables(found);
    let score = |times: fn(&QueryFindings) -> &Vec<QueryTime>| -> Vec<Option<f64>> {
        let of_database = |at: usize| {
            let logs: Vec<f64> = queries.iter().filter_map(|query| Some(times(query)[at].relative?.ln())).collect();
            (!logs.is_empty() && tables.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
        };
        (0..found.len()).map(of_database).collect()
    };
    let (first_score, hot_score) = (score(|query| &query.first), score(|query| &query.hot));
    let is_unanswered = |query: &&QueryFindings| query.first.iter().all(|time| time.elapsed_ns.is_none());
    let disagreements = match tables.is_empty() {
        true => names.iter().flat_map(|name| disagreements(found, name)).collect(),
        // Other data has other results.
        false => Vec::new(),
    };
    let answers = |name: &str| {
        let case = |(_, cases): &&(&str, &CasesFindings)| {
            cases.cases.iter().any(|case| case.name == name && case.rows.is_some() && case.failure.is_none())
        };
        found.iter().filter(case).count()
    };
    SuitesFindings {
        compared: if tables.is_empty() { names.iter().filter(|name| answers(name) > 1).count() } else { 0 },
        databases: found.iter().map(|(name, _)| (*name).to_owned()).collect(),
        unanswered: queries.iter().filter(is_unanswered).map(|query| query.name.clone()).collect(),
        figures: found.iter().map(|(_, cases)| cases.figures.clone()).collect(),
        queries,
        first_score,
        hot_score,
        tables,
        disagreements,
    }
}

/// Times of a query, by database.
fn relative(times: &[Option<u64>], limit_ns: Option<u64>) -> Vec<QueryTime> {
    let known = || times.iter().flatten().copied();
    let Some((least, most)) = known().min().zip(known().max()) else {
        return vec![QueryTime::default(); times.len()];
    };
    let penalty = 2.0 * most.max(limit_ns.unwrap_or(0)) as f64;
    let ratio = |time: &Option<u64>| {
        let counted = time.map_or(penalty, |time| time as f64);
        let relative = Some((counted + ADDED_NS) / (least as f64 + ADDED_NS));
        QueryTime { elapsed_ns: *time, relative, timed_out: false }
    };
    times.iter().map(ratio).collect()
}

fn tables(found: &[(&str, &CasesFindings)]) -> BTreeMap<String, Vec<Option<u64>>> {
    let of = |(_, cases): &(&str, &CasesFindings)| cases.suite.clone().unwrap_or_default().tables;
    let all: Vec<BTreeMap<String, u64>> = found.iter().map(of).collect();
    let names = all.iter().flat_map(BTreeMap::keys).cloned();
    let rows = |name: String| {
        let rows = all.iter().map(|tables| tables.get(&name).copied()).collect::<Vec<_>>();
        (name, rows)
    };
    names.map(rows).filter(|(_, rows)| rows.iter().any(|one| *one != rows[0])).collect()
}

/// Databases whose rows are not those of the first that has any.
fn disagreements(found: &[(&str, &CasesFindings)], query: &str) -> Vec<Disagreement> {
    let answered = found.iter().filter_map(|(name, cases)| {
        let case = cases.cases.iter().find(|case| case.name == query && case.failure.is_none())?;
        Some((*name, case, case.rows?))
    });
    let answered: Vec<(&str, &CaseFindings, u64)> = answered.collect();
    let Some(((first, case, rows), others)) = answered.split_first() else { return Vec::new() };
    let with_first = |(name, other, other_rows): &(&str, &CaseFindings, u64)| {
        let kept = !case.answer.is_empty() && !other.answer.is_empty();
        let value = match kept && rows == other_rows {
            true => difference(&case.answer, &other.answer),
            false => None,
        };
        let same = rows == other_rows && if kept { value.is_none() } else { digests_agree(case, other) };
        (!same).then(|| Disagreement {
            query: query.to_owned(),
            databases: [(*first).to_owned(), (*name).to_owned()],
            rows: [*rows, *other_rows],
            value,
        })
    };
    others.iter().filter_map(with_first).collect()
}

fn digests_agree(one: &CaseFindings, other: &CaseFindings) -> bool {
    one.digest.as_ref().zip(other.digest.as_ref()).is_none_or(|(one, other)| is_same_digest(one, other))
}

type AnswerRow = Vec<Option<String>>;

/// The first value that differs, after sorting: row and column from 1, and both values.
fn difference(one: &[AnswerRow], other: &[AnswerRow]) -> Option<(u64, u64, [String; 2])> {
    let sorted = |rows: &[AnswerRow]| {
        let mut rows = rows.to_vec();
        rows.sort_by(|a, b| order(a, b));
        rows
    };
    let shown = |cell: Option<&Option<String>>| match cell {
        None => "no column".to_owned(),
        Some(None) => "NULL".to_owned(),
        Some(Some(text)) => text.clone(),
    };
    for (row, (a, b)) in sorted(one).iter().zip(&sorted(other)).enumerate() {
        for column in 0..a.len().max(b.len()) {
            let (a, b) = (a.get(column), b.get(column));
            if !a.zip(b).is_some_and(|(a, b)| is_same(a, b)) {
                return Some((row as u64 + 1, column as u64 + 1, [shown(a), shown(b)]));
            }
        }
    }
    None
}

fn is_same(a: &Option<String>, b: &Option<String>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) if a != b => match number(a).zip(number(b)) {
            Some((a, b)) => (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1e-3),
            None => false,
        },
        (a, b) => a == b,
    }
}

/// Texts decide before numbers, and these with six digits: what databases round differently must not change the order.
fn order(a: &[Option<String>], b: &[Option<String>]) -> Ordering {
    let texts = |row: &[Option<String>]| -> Vec<Option<String>> {
        row.iter().filter(|cell| cell.as_deref().and_then(number).is_none()).cloned().collect()
    };
    let numbers = |row: &[Option<String>]| -> Vec<f64> {
        let all = row.iter().filter_map(|cell| number(cell.as_deref()?));
        all.map(|number| format!("{number:.5e}").parse().unwrap_or(number)).collect()
    };
    let by_number = |a: &[f64], b: &[f64]| {
        let different = a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|order| *order != Ordering::Equal);
        different.unwrap_or(Ordering::Equal)
    };
    texts(a).cmp(&texts(b)).then_with(|| by_number(&numbers(a), &numbers(b)))
}

fn number(text: &str) -> Option<f64> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    text.parse().ok().filter(|number: &f64| is_decimal && number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(texts: &[&str]) -> Vec<AnswerRow> {
        let cell = |text: &str| if text == "NULL" { None } else { Some(text.to_owned()) };
        texts.iter().map(|row| row.split(' ').map(cell).collect()).collect()
    }

    #[test]
    fn rows_are_the_same_in_any_order_and_if_numbers_are_rounded_differently() {
        let one = rows(&["a 1 2.5000000", "b 2 3.1415926535", "NULL 0 0.1"]);
        for same in [
            &["b 2 3.141593", "NULL 0 0.10", "a 1.0 2.5"][..],
            &["NULL 0 0.1000000000001", "a 1 25e-1", "b 2.00 3.1415926"],
        ] {
            assert_eq!(difference(&one, &rows(same)), None, "{same:?}");
        }
        for (other, place) in [
            (&["a 1 2.5", "b 2 3.15", "NULL 0 0.1"][..], (3, 3, "3.1415926535", "3.15")),
            (&["a 1 2.5", "b 2 3.141593", "NULL 0 NULL"], (1, 3, "0.1", "NULL")),
            (&["a 1 2.5", "c 2 3.141593", "NULL 0 0.1"], (3, 1, "b", "c")),
        ] {
            let (row, column, a, b) = place;
            let found = difference(&one, &rows(other));
            assert_eq!(found, Some((row, column, [a.to_owned(), b.to_owned()])), "{other:?}");
        }
    }

    #[test]
    fn a_missing_result_counts_as_twice_the_slowest_time_or_limit() {
        let ms = |ms: u64| Some(ms * 1_000_000);
        let ratios = |times: &[Option<u64>], limit| -> Vec<Option<f64>> {
            relative(times, limit).iter().map(|time| time.relative).collect()
        };
        assert_eq!(ratios(&[ms(10), ms(190)], None), [Some(1.0), Some(10.0)]);
        assert_eq!(ratios(&[ms(10), None, ms(20)], None), [Some(1.0), Some(2.5), Some(1.5)]);
        assert_eq!(ratios(&[ms(10), None], ms(95)), [Some(1.0), Some(10.0)]);
        assert_eq!(ratios(&[None, None], ms(95)), [None, None]);
    }
}
