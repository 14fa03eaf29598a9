//! Tables of the queries of `assay olap`: of one database, and of several side by side.

use crate::digits::{figure, ms};
use crate::findings::cases::{CaseFindings, CasesFindings};
use crate::findings::power::SuiteFigures;
use crate::findings::suites::{QueryFindings, QueryTime, SuitesFindings};
use crate::plain::clean;
use crate::tables::table::{NAME_WIDTH, Table, TableCell, TableColumn};

/// A row per query: its first execution, the shortest of the later ones, and its rows.
pub(crate) fn queries(found: &CasesFindings) -> Table {
    let mut columns = vec![
        TableColumn::words("query", NAME_WIDTH),
        TableColumn::figures("first ms"),
        TableColumn::figures("hot ms"),
        TableColumn::figures("rows"),
    ];
    let has_foreign = has_foreign(found);
    columns.extend(has_foreign.then(pushed_down_column));
    let has_reads = has_reads(found);
    columns.extend(has_reads.then(reads_columns).into_iter().flatten());
    columns.push(TableColumn::words("", 40));
    let row = |case: &CaseFindings| {
        let remark = match case {
            CaseFindings { timed_out: true, .. } => "timed out",
            CaseFindings { failure: Some(_), .. } => "failed",
            CaseFindings { result_changed: true, .. } => "rows changed",
            _ => "",
        };
        let mut cells = vec![
            TableCell::foreign(&case.name),
            TableCell::ns(case.first_ns),
            TableCell::ns(case.hot_ns),
            TableCell::of(case.rows, TableCell::Count),
        ];
        cells.extend(has_foreign.then(|| pushed_down(case)));
        cells.extend(has_reads.then(|| reads(case)).into_iter().flatten());
        cells.push(TableCell::words(remark));
        cells
    };
    Table::new(columns).with_rows(found.cases.iter().map(row))
}

/// Whether any case has foreign tables.
pub(crate) fn has_foreign(found: &CasesFindings) -> bool {
    found.cases.iter().any(|case| case.pushed_down.is_some())
}

/// For such cases.
pub(crate) fn pushed_down_column() -> TableColumn {
    TableColumn::figures("fully pushed down")
}

/// A cell of that column.
pub(crate) fn pushed_down(case: &CaseFindings) -> TableCell {
    TableCell::of(case.pushed_down, |yes| TableCell::words(if yes { "yes" } else { "no" }))
}

/// Whether the server said what it had read.
pub(crate) fn has_reads(found: &CasesFindings) -> bool {
    found.cases.iter().any(|case| case.read_rows.is_some())
}

/// For such cases.
pub(crate) fn reads_columns() -> [TableColumn; 2] {
    ["rows read", "MB read"].map(TableColumn::figures)
}

/// Cells of these columns.
pub(crate) fn reads(case: &CaseFindings) -> [TableCell; 2] {
    let bytes = TableCell::of(case.read_bytes, |bytes| TableCell::Number(bytes as f64 / 1e6));
    [TableCell::of(case.read_rows, TableCell::Count), bytes]
}

/// A column per database: the later executions, and the first ones. The last row is the score.
pub(crate) fn side_by_side(found: &SuitesFindings) -> Vec<Table> {
    type Times = fn(&QueryFindings) -> &Vec<QueryTime>;
    let all: [(&str, Times, &Vec<Option<f64>>); 2] = [
        ("Hot: the shortest of the later executions, ms × relative time", |query| &query.hot, &found.hot_score),
        ("First execution, ms × relative time", |query| &query.first, &found.first_score),
    ];
    let heads = || found.databases.iter().map(|name| TableColumn::figures(clean(name, NAME_WIDTH)));
    let table = |(caption, times, score): &(&str, Times, &Vec<Option<f64>>)| {
        let is_empty = found.queries.iter().flat_map(times).all(|time| time.elapsed_ns.is_none());
        let row = |query: &QueryFindings| {
            let cells = times(query).iter().map(time);
            [TableCell::foreign(&query.name)].into_iter().chain(cells).collect::<Vec<_>>()
        };
        let last = score.iter().map(|score| TableCell::of(*score, |score| TableCell::words(factor(score))));
        let last: Vec<TableCell> = [TableCell::words("geometric mean")].into_iter().chain(last).collect();
        let table = Table::new([TableColumn::words("query", NAME_WIDTH)].into_iter().chain(heads()));
        (!is_empty).then(|| table.with_rows(found.queries.iter().map(row)).with_rows([last]).with_caption(*caption))
    };
    all.iter().filter_map(table).chain(figures(found)).collect()
}

/// Figures of the whole suite, if any database has them.
fn figures(found: &SuitesFindings) -> Option<Table> {
    type Figure = fn(&SuiteFigures) -> Option<f64>;
    let all: [(&str, Figure); 4] = [
        ("power", |of| of.power),
        ("throughput", |of| of.throughput),
        ("composite", |of| of.composite),
        ("queries per hour", |of| of.queries_per_hour),
    ];
    let row = |(name, value): &(&str, Figure)| {
        let values: Vec<Option<f64>> = found.figures.iter().map(|of| of.as_ref().and_then(value)).collect();
        let cells = values.iter().map(|value| TableCell::of(*value, |value| TableCell::words(figure(value))));
        let is_known = values.iter().any(Option::is_some) && found.tables.is_empty();
        is_known.then(|| [TableCell::words(*name)].into_iter().chain(cells).collect::<Vec<_>>())
    };
    let rows: Vec<Vec<TableCell>> = all.iter().filter_map(row).collect();
    let heads = found.databases.iter().map(|name| TableColumn::figures(clean(name, NAME_WIDTH)));
    let table = Table::new([TableColumn::words("figure", NAME_WIDTH)].into_iter().chain(heads));
    (!rows.is_empty()).then(|| table.with_rows(rows).with_caption("The whole suite: figures derived from TPC-H's"))
}

fn time(time: &QueryTime) -> TableCell {
    let relative = time.relative.map_or(String::new(), |relative| format!(" {}", factor(relative)));
    TableCell::words(match time {
        QueryTime { elapsed_ns: Some(ns), .. } => format!("{}{relative}", ms(Some(*ns))),
        QueryTime { timed_out: true, .. } => format!("timed out{relative}"),
        _ => format!("no result{relative}"),
    })
}

fn factor(ratio: f64) -> String {
    format!("×{}", figure(ratio))
}
