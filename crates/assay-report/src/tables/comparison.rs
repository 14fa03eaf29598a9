//! Sides, settings and trials side by side.

use crate::digits::percent;
use crate::findings::comparison::{Comparison, MetricComparison, StageComparison};
use crate::findings::metric::{Metric, MetricUnit, TrialsFindings};
use crate::findings::setting::SETTING_WIDTH;
use crate::findings::summary::SessionsSummary;
use crate::tables::stages::cpu_of_each;
use crate::tables::table::{NAME_WIDTH, Table, TableCell, TableColumn};
use crate::words::comparison::{change_text, is_not_of_medians, metric_name, middle, ratio, verdict};
use crate::words::run::{per_second, sessions};

/// A row per metric: both sides, the change with its interval, and the verdict.
pub(crate) fn changes(stage: &StageComparison) -> Table {
    let with = match (stage.sessions, stage.candidate_sessions) {
        (one, other) if one == other => sessions(one),
        (one, other) => format!("{one} → {other} sessions"),
    };
    let figures = ["baseline", "candidate", "change"].map(TableColumn::figures);
    let columns = [TableColumn::words(with, NAME_WIDTH)].into_iter().chain(figures);
    let mut table = Table::new(columns.chain([TableColumn::words("at 95%", NAME_WIDTH)]));
    let rate = stage.metric("tps").map_or(MetricUnit::PerSecond, |tps| tps.metric.unit);
    for metric in rows(stage) {
        let side = |side: &Option<TrialsFindings>| known(side.as_ref(), &metric.metric);
        let name = match metric.metric.name.as_str() {
            "cpu_per_transaction" => cpu_of_each(per_second(rate)),
            _ => metric_name(&metric.metric),
        };
        let mut row = vec![TableCell::Words(name), side(&metric.baseline), side(&metric.candidate)];
        row.push(TableCell::of(metric.change, |change| TableCell::Words(change_text(&change, &metric.metric))));
        row.extend(metric.change.map(|change| TableCell::words(verdict(&metric.metric.name, change.verdict))));
        table.row(row);
    }
    table
}

/// The metrics of these rows.
fn rows(stage: &StageComparison) -> impl Iterator<Item = &MetricComparison> {
    let of_all = ["capacity", "tps", "p50", "p95", "p99", "cpu_per_transaction"];
    let types: Vec<&MetricComparison> = stage.metrics.iter().filter(|one| one.metric.name.ends_with(".p99")).collect();
    // A single type has the same figures as the total.
    let types = if types.len() > 1 { types } else { Vec::new() };
    let own = stage.metrics.iter().filter(|one| one.metric.unit == MetricUnit::Own);
    of_all.into_iter().filter_map(|name| stage.metric(name)).chain(types).chain(own)
}

/// Whether a row shows a change that is not that of the two medians beside it.
pub(crate) fn is_any_not_of_medians(stage: &StageComparison) -> bool {
    rows(stage).any(is_not_of_medians)
}

/// One row per setting with this number of sessions, the baseline first: three metrics, each with its ratio to the
/// baseline.
pub(crate) fn grid(comparisons: &[Comparison], first: &StageComparison) -> Table {
    const METRICS: [(&str, &str); 3] = [("tps", "tx/s"), ("p50", "p50 ms"), ("p99", "p99 ms")];
    let of_first = |name: &str, head: &str| first.metric(name).map_or(head.to_owned(), |of| metric_name(&of.metric));
    let heads =
        METRICS.iter().flat_map(|(name, head)| [of_first(name, head), "ratio".to_owned()]).map(TableColumn::figures);
    let mut table = Table::new([TableColumn::words("setting", SETTING_WIDTH)].into_iter().chain(heads));
    type Shown = fn(&MetricComparison) -> [TableCell; 2];
    let row = |name: &str, stage: &StageComparison, shown: Shown| {
        let cells =
            METRICS.iter().flat_map(|(name, _)| stage.metric(name).map_or([const { TableCell::Unknown }; 2], shown));
        [TableCell::foreign(name)].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let Some(baseline) = comparisons.first().map(|one| &one.baseline.name) else { return table };
    table.row(row(baseline, first, |metric| [known(metric.baseline.as_ref(), &metric.metric), TableCell::words("1")]));
    for one in comparisons {
        if let Some(stage) = one.stages.iter().find(|stage| stage.sessions == first.sessions) {
            table.row(row(&one.candidate.name, stage, |metric| {
                let ratio = TableCell::of(metric.change, |change| TableCell::Words(ratio(&change, &metric.metric)));
                [known(metric.candidate.as_ref(), &metric.metric), ratio]
            }));
        }
    }
    table
}

fn known(trials: Option<&TrialsFindings>, metric: &Metric) -> TableCell {
    TableCell::of(trials, |trials| TableCell::Words(middle(trials, metric)))
}

/// A row per trial, then their median with its interval, and their spread.
pub(crate) fn trials(stage: &SessionsSummary) -> Table {
    type Unit = fn(f64) -> TableCell;
    let rate = stage.metrics.iter().find(|one| one.metric.name == "tps").map(|one| one.metric.unit);
    let rate = per_second(rate.unwrap_or(MetricUnit::PerSecond));
    let cpu = cpu_of_each(rate);
    let metrics: [(&str, &str, Unit); 5] = [
        ("tps", rate, TableCell::Number),
        ("p50", "p50 ms", TableCell::Ms),
        ("p95", "p95 ms", TableCell::Ms),
        ("p99", "p99 ms", TableCell::Ms),
        ("cpu_per_transaction", &cpu, TableCell::Micros),
    ];
    let columns = metrics.map(|(name, _, unit)| (stage.metric(name), unit));
    let heads = metrics.iter().map(|(_, head, _)| *head).chain(["failed"]).map(TableColumn::figures);
    let mut table = Table::new([TableColumn::words("trial", NAME_WIDTH)].into_iter().chain(heads));
    for (at, failed) in stage.failed.iter().enumerate() {
        let mut row = vec![TableCell::Words((at + 1).to_string())];
        // A figure that only some trials have cannot be assigned to this one.
        let of = |column: &TrialsFindings| {
            column.values.get(at).copied().filter(|_| column.values.len() == stage.failed.len())
        };
        row.extend(columns.iter().map(|(column, unit)| TableCell::of(column.and_then(of), *unit)));
        row.push(TableCell::Count(*failed));
        table.row(row);
    }
    if stage.failed.len() < 2 {
        return table;
    }
    let mut over_all = |name: &str, of: &dyn Fn(&TrialsFindings, Unit) -> Option<TableCell>| {
        let cells: Vec<Option<TableCell>> =
            columns.iter().map(|(column, unit)| column.and_then(|column| of(column, *unit))).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or(TableCell::Unknown));
            table.row([TableCell::words(name)].into_iter().chain(cells).collect::<Vec<_>>());
        }
    };
    over_all("median", &|column, unit| Some(unit(column.median)));
    over_all("95% low", &|column, unit| column.low.map(unit));
    over_all("95% high", &|column, unit| column.high.map(unit));
    over_all("spread", &|column, _| Some(TableCell::Words(percent(column.spread))));
    table
}
