//! CSV tables: one row per stage, server and transaction type; per metric of a comparison; per trial.
//!
//! Figures are plain: no grouping, nanoseconds, empty if missing. docs/record.md lists the columns.

use crate::findings::comparison::Comparison;
use crate::findings::latency::LatencyFindings;
use crate::findings::metric::{MetricUnit, TrialsFindings};
use crate::findings::run::Findings;
use crate::findings::stage::StageFindings;
use crate::findings::summary::Summary;
use crate::findings::tally::TallyFindings;
use crate::findings::verdict::ChangeVerdict;
use crate::plain::clean;
use crate::tables::latency::latency_cells;
use crate::tables::table::{Table, TableCell, TableColumn};

/// The table with headers. `target` and `type` are empty in rows of all of them; figures that are unknown by type are
/// empty in rows of one type.
pub fn csv(findings: &Findings) -> String {
    let tags = findings.tags.keys().map(|tag| TableColumn::figures(tag_column(tag)));
    let mut table = tallies(findings);
    table.columns.extend(tags);
    for row in &mut table.rows {
        row.cells.extend(findings.tags.values().map(|value| TableCell::foreign(value)));
    }
    table.csv()
}

const TALLY: &str = "stage,sessions,measured_ns,target,type,transactions,tps,failed,retries,statements,qps,errors,response_ns_min,\
         response_ns_mean,response_ns_p50,response_ns_p90,response_ns_p95,response_ns_p99,response_ns_p999,response_ns_max,\
         service_ns_p50,service_ns_p99,lag_ns_p99,lag_ns_max";

pub(crate) fn tallies_columns() -> Vec<TableColumn> {
    headed(TALLY).columns
}

/// The same without tags.
pub(crate) fn tallies(findings: &Findings) -> Table {
    let mut table = Table::new(tallies_columns());
    for (number, stage) in findings.stages.iter().enumerate() {
        tally(&mut table, number, stage, "", &stage.total);
        for (target, one) in findings.targets.iter().zip(&stage.targets) {
            tally(&mut table, number, stage, &target.url, one);
        }
    }
    table
}

/// A tag's column.
pub(crate) fn tag_column(tag: &str) -> String {
    format!("tag_{}", clean(tag, TAG_WIDTH))
}

const TAG_WIDTH: usize = 100;

/// A row per comparison, stage and metric.
pub fn comparison_csv(comparisons: &[Comparison]) -> String {
    let mut table = headed(
        "baseline,candidate,sessions,metric,unit,baseline_trials,baseline_median,baseline_low,baseline_high,\
         candidate_trials,candidate_median,candidate_low,candidate_high,ratio,ratio_low,ratio_high,superiority,verdict,\
         trials_needed,difference,difference_low,difference_high",
    );
    for one in comparisons {
        for stage in &one.stages {
            for metric in &stage.metrics {
                let mut row = vec![TableCell::foreign(&one.baseline.name), TableCell::foreign(&one.candidate.name)];
                row.extend([TableCell::Count(stage.sessions.into()), TableCell::foreign(&metric.metric.name)]);
                row.push(unit(metric.metric.unit));
                row.extend(trials(metric.baseline.as_ref()));
                row.extend(trials(metric.candidate.as_ref()));
                if let Some(change) = metric.change {
                    let size = |size: Option<f64>| {
                        let end = |end: Option<f64>| known(end.filter(|_| size.is_some()));
                        [known(size), end(change.low), end(change.high)]
                    };
                    row.extend(size(change.ratio));
                    row.push(TableCell::Number(change.superiority));
                    row.extend(verdict(change.verdict));
                    row.extend(size(change.difference));
                }
                table.row(row);
            }
        }
    }
    table.csv()
}

/// A row per stage, metric and trial.
pub fn summary_csv(summary: &Summary) -> String {
    let mut table = headed("sessions,metric,unit,trial,value,median,median_low,median_high");
    for stage in &summary.stages {
        for metric in &stage.metrics {
            let found = metric.trials.as_ref();
            for (at, value) in found.map_or(&[][..], |it| &it.values).iter().enumerate() {
                let [_, median, low, high] = trials(found);
                let name = TableCell::foreign(&metric.metric.name);
                let head = [TableCell::Count(stage.sessions.into()), name, unit(metric.metric.unit)];
                let figures = [TableCell::Count(at as u64 + 1), TableCell::Number(*value), median, low, high];
                table.row(head.into_iter().chain(figures).collect::<Vec<_>>());
            }
        }
    }
    table.csv()
}

/// An empty table with these columns.
pub(crate) fn headed(names: &str) -> Table {
    Table::new(names.split(',').map(TableColumn::figures))
}

fn known(value: Option<f64>) -> TableCell {
    TableCell::of(value, TableCell::Number)
}

/// Number, median, and the ends of its interval.
fn trials(found: Option<&TrialsFindings>) -> [TableCell; 4] {
    [
        TableCell::Count(found.map_or(0, |it| it.values.len() as u64)),
        known(found.map(|it| it.median)),
        known(found.and_then(|it| it.low)),
        known(found.and_then(|it| it.high)),
    ]
}

fn unit(unit: MetricUnit) -> TableCell {
    TableCell::words(match unit {
        MetricUnit::PerSecond => "per_second",
        MetricUnit::RowsPerSecond => "rows_per_second",
        MetricUnit::EventsPerSecond => "events_per_second",
        MetricUnit::Ns => "ns",
        MetricUnit::PerTransaction => "per_transaction",
        MetricUnit::Own => "own",
        MetricUnit::Level => "level",
    })
}

/// The verdict, and the number of trials needed.
fn verdict(verdict: ChangeVerdict) -> [TableCell; 2] {
    let (word, needed) = match verdict {
        ChangeVerdict::Better => ("better", TableCell::Blank),
        ChangeVerdict::Worse => ("worse", TableCell::Blank),
        ChangeVerdict::More => ("more", TableCell::Blank),
        ChangeVerdict::Less => ("less", TableCell::Blank),
        ChangeVerdict::NoDifference => ("no_difference", TableCell::Blank),
        ChangeVerdict::CannotTell { trials_needed } => ("cannot_tell", TableCell::Count(trials_needed as u64)),
    };
    [TableCell::words(word), needed]
}

fn tally(table: &mut Table, number: usize, stage: &StageFindings, target: &str, tally: &TallyFindings) {
    let mut row = |name: &str,
                   counts: [TableCell; 7],
                   response: &LatencyFindings,
                   service: &LatencyFindings,
                   lag: [TableCell; 2]| {
        let head = [number as u64, stage.sessions.into(), stage.measured_ns].map(TableCell::Count);
        let names = [target, name].map(TableCell::foreign);
        let service = [service.p50_ns, service.p99_ns].map(TableCell::ns);
        let cells =
            head.into_iter().chain(names).chain(counts).chain(latency_cells(response)).chain(service).chain(lag);
        table.row(cells.collect::<Vec<_>>());
    };
    let known = |count: Option<u64>| count.map_or(TableCell::Blank, TableCell::Count);
    let counts = |transactions, tps, failed, retries| {
        [TableCell::Count(transactions), TableCell::Number(tps), known(failed), known(retries)]
    };
    let [transactions, tps, failed, retries] =
        counts(tally.transactions, tally.tps, Some(tally.failed), Some(tally.retries));
    let [statements, qps, errors] =
        [TableCell::Count(tally.statements), TableCell::Number(tally.qps), TableCell::Count(tally.errors)];
    let lag = [tally.lag.p99_ns, tally.lag.max_ns].map(TableCell::ns);
    let all = [transactions, tps, failed, retries, statements, qps, errors];
    row("", all, &tally.response, &tally.service, lag);
    for one in &tally.types {
        let [transactions, tps, failed, retries] = counts(one.transactions, one.tps, one.failed, one.retries);
        let counts = [transactions, tps, failed, retries, TableCell::Blank, TableCell::Blank, TableCell::Blank];
        row(&one.name, counts, &one.response, &one.service, [const { TableCell::Blank }; 2]);
    }
}
