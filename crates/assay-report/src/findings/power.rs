//! Figures of a whole suite of analytical queries: power, throughput, and both in one.
//!
//! They are calculated as the metrics of TPC-H are, and are not those: the data and statements are our own, there are
//! no refresh functions, and the rules about when and how often queries are executed are ours.

use assay_record::{Case, QueryStream, Suite};
use serde::Serialize;

/// Figures of a suite, without a unit of their own: queries per hour, multiplied by the scale factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuiteFigures {
    /// Parallel streams; 0: there were none.
    pub streams: u64,
    /// Queries of all streams together.
    pub stream_queries: u64,
    /// From the start of the first stream to the end of the last one.
    pub streams_ns: u64,
    /// Queries per hour in all streams together; `None`: there were no streams, or a query has no result.
    pub queries_per_hour: Option<f64>,
    /// Queries of the streams without a result: stream, query, reason.
    pub failures: Vec<(u64, String, String)>,
    /// The scale factor of the data; `None`: the workload has declared none, or some queries were not executed.
    pub scale: Option<f64>,
    /// From the first execution of each query, one after the other.
    pub power: Option<f64>,
    /// From the streams.
    pub throughput: Option<f64>,
    /// Geometric mean of both.
    pub composite: Option<f64>,
}

/// `None`: neither streams nor a scale factor.
pub(crate) fn suite_figures(suite: &Suite, cases: &[Case]) -> Option<SuiteFigures> {
    if suite.streams.is_empty() && suite.scale.is_none() {
        return None;
    }
    let streams = &suite.streams;
    let span = streams.iter().map(|one| one.end_ns).max().unwrap_or(0);
    let of_stream = |(number, stream): (u64, &QueryStream)| {
        let failed =
            stream.queries.iter().filter_map(move |one| Some((number, one.name.clone(), one.failure.clone()?)));
        failed.collect::<Vec<_>>()
    };
    let failures: Vec<(u64, String, String)> = (1..).zip(streams).flat_map(of_stream).collect();
    let is_whole =
        !streams.is_empty() && failures.is_empty() && streams.iter().all(|stream| stream.queries.len() == cases.len());
    let queries_per_hour = (is_whole && span > 0).then(|| per_hour(streams.len() * cases.len(), span));
    let throughput = suite.scale.zip(queries_per_hour).map(|(scale, per_hour)| scale * per_hour);
    let first = |case: &Case| {
        let first = case.executions.iter().find(|one| one.round == 1).map(|one| one.elapsed_ns as f64);
        first.filter(|_| case.failure.is_none())
    };
    let times: Option<Vec<f64>> = cases.iter().map(first).collect();
    let power = suite.scale.zip(times).and_then(|(scale, times)| power(scale, &times));
    Some(SuiteFigures {
        streams: streams.len() as u64,
        stream_queries: streams.iter().map(|stream| stream.queries.len() as u64).sum(),
        streams_ns: span,
        queries_per_hour,
        failures,
        scale: suite.scale,
        power,
        throughput,
        composite: power.zip(throughput).map(|(power, throughput)| (power * throughput).sqrt()),
    })
}

const HOUR_NS: f64 = 3600e9;

/// Queries per hour of all streams together.
///
/// Source: TPC-H specification 2.17, clause 5.4.2 (throughput), before it is multiplied by the scale factor.
fn per_hour(queries: usize, span_ns: u64) -> f64 {
    queries as f64 * HOUR_NS / span_ns as f64
}

/// An hour, divided by the geometric mean of the times in ns, multiplied by the scale factor. Times below a thousandth
/// of the longest count as that. `None`: there are no times.
///
/// Source: TPC-H specification 2.17, clause 5.4.1 (power), where the times of two refresh functions are in the mean,
/// too.
fn power(scale: f64, times: &[f64]) -> Option<f64> {
    let longest = times.iter().copied().max_by(f64::total_cmp).filter(|longest| *longest > 0.0)?;
    let logs: f64 = times.iter().map(|time| time.max(longest / 1000.0).ln()).sum();
    Some(scale * HOUR_NS / (logs / times.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use assay_record::{Execution, StreamQuery};

    use super::*;

    fn case(name: &str, seconds: u64) -> Case {
        let execution = |round, elapsed_ns| Execution { round, elapsed_ns, ..Execution::default() };
        // Later executions do not count.
        let executions = vec![execution(1, seconds * 1_000_000_000), execution(2, 1)];
        Case { name: name.to_owned(), executions, ..Case::default() }
    }

    fn stream(start: u64, end: u64, failure: Option<&str>) -> QueryStream {
        let query = |name: &str, failure: Option<&str>| StreamQuery {
            name: name.to_owned(),
            failure: failure.map(str::to_owned),
            ..StreamQuery::default()
        };
        let queries = vec![query("b", None), query("a", failure)];
        QueryStream { start_ns: start * 1_000_000_000, end_ns: end * 1_000_000_000, queries }
    }

    #[test]
    fn power_and_throughput_are_those_of_the_clauses() {
        let cases = [case("a", 1), case("b", 4)];
        let suite = |streams| Suite { scale: Some(10.0), streams, ..Suite::default() };
        let found = suite_figures(&suite(vec![stream(0, 8, None), stream(1, 9, None)]), &cases).unwrap();
        // A geometric mean of 2 s; 4 queries in 9 s.
        let is = |found: Option<f64>, expected: f64| (found.unwrap() / expected - 1.0).abs() < 1e-9;
        assert!(is(found.power, 10.0 * 1800.0), "{found:?}");
        assert!(is(found.throughput, 10.0 * 1600.0) && is(found.queries_per_hour, 1600.0), "{found:?}");
        assert!(is(found.composite, 10.0 * (1800.0f64 * 1600.0).sqrt()), "{found:?}");
        // What is missing is missing: no figure is calculated from the rest.
        let found = suite_figures(&suite(vec![stream(0, 8, None), stream(1, 9, Some("no memory"))]), &cases).unwrap();
        assert_eq!((found.throughput, found.queries_per_hour, found.composite), (None, None, None));
        assert_eq!(found.failures, [(2, "a".to_owned(), "no memory".to_owned())]);
        let without = [case("a", 1), Case { executions: Vec::new(), ..case("b", 1) }];
        assert_eq!(suite_figures(&suite(Vec::new()), &without).unwrap().power, None);
        assert_eq!(suite_figures(&Suite::default(), &cases), None);
    }

    #[test]
    fn the_shortest_time_is_a_thousandth_of_the_longest() {
        let power = |times: &[f64]| power(1.0, times).unwrap();
        assert_eq!(power(&[1e9, 1e12]), power(&[1.0, 1e12]));
        assert!(power(&[1e9, 1e12]) > power(&[2e9, 1e12]));
    }
}
