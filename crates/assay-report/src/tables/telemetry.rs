//! Every metric of a server or machine, and those that changed most between two sides.

use crate::digits::{clock, percent, with_interval};
use crate::findings::comparison::{MetricComparison, StageComparison};
use crate::findings::telemetry::{ScopeFindings, StatementUseFindings, TelemetryFindings};
use crate::findings::verdict::ChangeVerdict;
use crate::plain::clean;
use crate::tables::table::{NAME_WIDTH, Table, TableCell, TableColumn};
use crate::words::comparison::{change_text, middle};
use crate::words::telemetry::{in_unit, in_unit_per_second};

const METRIC_WIDTH: usize = 30;
const SOURCE_WIDTH: usize = 60;
const STATEMENT_WIDTH: usize = 300;
const LINE_WIDTH: usize = 400;
/// Number of changes shown in a comparison.
const CHANGES_SHOWN: usize = 8;

/// A row per metric: rates and values per transaction of counters, levels of gauges.
pub(crate) fn metrics(scope: &ScopeFindings) -> Table {
    let figures = ["per s", "per transaction", "mean", "max"].map(TableColumn::figures);
    let columns = [TableColumn::words("metric", METRIC_WIDTH)].into_iter().chain(figures);
    let mut table = Table::new(columns.chain([TableColumn::words("source", SOURCE_WIDTH).roomy()]));
    for one in &scope.metrics {
        let words = |value: Option<f64>, words: fn(&TelemetryFindings, f64) -> String| {
            value.map_or(TableCell::Blank, |value| TableCell::Words(words(one, value)))
        };
        let cell = |value: Option<f64>| words(value, in_unit);
        let name = TableCell::foreign(&one.metric);
        table.row([
            name,
            words(one.per_s, in_unit_per_second),
            per_transaction(one),
            cell(one.mean),
            cell(one.max),
            TableCell::foreign(&one.source),
        ]);
    }
    table
}

/// Wait events with the mean number of sessions in each; `None` if they were not sampled, or there were none.
pub(crate) fn waits(scope: &ScopeFindings) -> Option<Table> {
    /// Number of events shown.
    const EVENTS_SHOWN: usize = 12;
    let all = scope.waits.as_ref().filter(|waits| !waits.is_empty())?;
    let figures = ["active sessions", "share"].map(TableColumn::figures);
    let mut table = Table::new([TableColumn::words("wait event", NAME_WIDTH)].into_iter().chain(figures));
    for one in all.iter().take(EVENTS_SHOWN) {
        let share = TableCell::Words(percent(one.share));
        table.row([TableCell::foreign(&one.event), TableCell::Number(one.sessions), share]);
    }
    Some(table)
}

/// The statements that took most of the server's time, by its own count; `None` if it has none.
pub(crate) fn statements(scope: &ScopeFindings) -> Option<Table> {
    /// Number of statements shown.
    const STATEMENTS_SHOWN: usize = 15;
    if scope.statements.is_empty() {
        return None;
    }
    type OfServer = (&'static str, fn(&StatementUseFindings) -> Option<TableCell>);
    // Not every server counts these by statement.
    let all: [OfServer; 5] = [
        ("page reads/call", |one| one.page_reads_per_call.map(TableCell::Number)),
        ("rows read/call", |one| one.read_rows_per_call.map(TableCell::Number)),
        ("KB read/call", |one| one.read_bytes_per_call.map(|bytes| TableCell::Number(bytes / 1e3))),
        ("memory MB max", |one| one.memory_bytes_max.map(|bytes| TableCell::Number(bytes as f64 / 1e6))),
        ("failed", |one| one.failures.map(TableCell::Count)),
    ];
    let is_counted = |(_, value): &OfServer| scope.statements.iter().any(|one| value(one).is_some());
    let counted: Vec<OfServer> = all.into_iter().filter(is_counted).collect();
    let figures = ["share of time", "calls", "mean ms", "rows/call"].into_iter();
    let figures = figures.chain(counted.iter().map(|(name, _)| *name)).map(TableColumn::figures);
    let mut table = Table::new([TableColumn::words("statement", STATEMENT_WIDTH).roomy()].into_iter().chain(figures));
    for one in scope.statements.iter().take(STATEMENTS_SHOWN) {
        let mut row = vec![
            TableCell::Words(clean(&one.text, STATEMENT_WIDTH)),
            TableCell::Share(one.share),
            TableCell::Count(one.calls),
            TableCell::Ms(one.mean_us * 1e3),
            TableCell::Number(one.rows_per_call),
        ];
        row.extend(counted.iter().map(|(_, value)| value(one).unwrap_or(TableCell::Unknown)));
        table.row(row);
    }
    Some(table)
}

/// The server's log during a stage; `None` if it wrote nothing.
pub(crate) fn log(scope: &ScopeFindings) -> Option<Table> {
    /// Number of lines shown.
    const LINES_SHOWN: usize = 100;
    if scope.log.is_empty() {
        return None;
    }
    let mut table =
        Table::new([TableColumn::words("time", NAME_WIDTH), TableColumn::words("line", LINE_WIDTH).roomy()]);
    for one in scope.log.iter().take(LINES_SHOWN) {
        table.row([TableCell::Words(clock(one.at_ns)), TableCell::Words(clean(&one.text, LINE_WIDTH))]);
    }
    Some(table)
}

fn per_transaction(one: &TelemetryFindings) -> TableCell {
    let Some(value) = one.per_transaction else { return TableCell::Blank };
    match one.per_transaction_low.zip(one.per_transaction_high) {
        Some((low, high)) => TableCell::Words(with_interval(value, low, high)),
        None => TableCell::Number(value),
    }
}

/// Other changes: costs per transaction of servers and machine, and levels, the largest changes first; `None` if
/// nothing did.
pub(crate) fn changes(stage: &StageComparison) -> Option<Table> {
    let of_telemetry =
        |one: &&MetricComparison| one.metric.name.starts_with("server") || one.metric.name.starts_with("machine.");
    let is_change = |one: &MetricComparison| {
        one.change.filter(|it| matches!(it.verdict, ChangeVerdict::More | ChangeVerdict::Less))
    };
    let mut changed: Vec<_> =
        stage.metrics.iter().filter(of_telemetry).filter_map(|one| Some((one, is_change(one)?))).collect();
    let size = |one: &MetricComparison| one.share().map_or(0.0, |share| (1.0 + share).max(0.0).ln().abs());
    changed.sort_by(|(one, _), (other, _)| size(other).total_cmp(&size(one)));
    let figures = ["baseline", "candidate", "change"].map(TableColumn::figures);
    let mut table =
        Table::new([TableColumn::words("what changed with it", METRIC_WIDTH + NAME_WIDTH)].into_iter().chain(figures));
    for (one, change) in changed.into_iter().take(CHANGES_SHOWN) {
        let side = |side| TableCell::of(side, |trials| TableCell::Words(middle(trials, &one.metric)));
        let name = TableCell::Words(clean(&one.metric.name, METRIC_WIDTH + NAME_WIDTH));
        table.row([
            name,
            side(one.baseline.as_ref()),
            side(one.candidate.as_ref()),
            TableCell::Words(change_text(&change, &one.metric)),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}
