//! Findings and reports as JSON, as documented in docs/record.md.

use assay_stats::{Measure, Verdict};
use serde::Serialize;

use crate::charts::chart::Chart;
use crate::charts::charts;
use crate::findings::comparison::Comparison;
use crate::findings::experiment::{Pivot, PivotCell};
use crate::findings::report::{Report, ReportEntry};
use crate::output::shown::Shown;

/// Findings, a comparison or a summary as JSON, as docs/record.md lists them.
pub fn json(findings: &impl Serialize) -> String {
    serde_json::to_string_pretty(findings).expect("findings are plain data with text keys") + "\n"
}

/// A report as JSON: findings of every record, the data of every chart, and of the requested charts and tables.
pub fn report_json(report: &Report, asked: &[Shown]) -> String {
    #[derive(Serialize)]
    struct WithCharts<'a> {
        entries: Vec<EntryWithCharts<'a>>,
        charts: &'a [Chart],
        settings: usize,
        comparisons: &'a [Comparison],
        asked_charts: Vec<&'a Chart>,
        asked_tables: Vec<AskedTable<'a>>,
    }
    #[derive(Serialize)]
    struct EntryWithCharts<'a> {
        #[serde(flatten)]
        entry: &'a ReportEntry,
        charts: &'a [Chart],
    }
    let charts = charts(report);
    let entries = report.entries.iter().zip(&charts.of_entries);
    let entries = entries.map(|(entry, charts)| EntryWithCharts { entry, charts }).collect();
    let report = WithCharts {
        entries,
        charts: &charts.of_all,
        settings: report.settings,
        comparisons: &report.comparisons,
        asked_charts: asked.iter().filter_map(Shown::chart).collect(),
        asked_tables: asked.iter().filter_map(Shown::pivot).map(AskedTable::of).collect(),
    };
    serde_json::to_string(&report).expect("a report is plain data with text keys") + "\n"
}

/// A pivot table, cell by cell.
#[derive(Serialize)]
struct AskedTable<'a> {
    value: &'a str,
    rows: &'a str,
    columns: Option<&'a str>,
    deviation: Option<f64>,
    cells: Vec<AskedCell<'a>>,
}

/// The cell of a row and a column.
#[derive(Default, Serialize)]
struct AskedCell<'a> {
    table: &'a str,
    row: &'a str,
    column: Option<&'a str>,
    state: &'static str,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    of_best: Option<f64>,
    lowest: Option<f64>,
    highest: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    difference: Option<f64>,
    difference_low: Option<f64>,
    difference_high: Option<f64>,
    verdict: Option<&'static str>,
    trials_needed: Option<usize>,
}

impl AskedTable<'_> {
    fn of(pivot: &Pivot) -> AskedTable<'_> {
        let mut cells = Vec::new();
        for facet in &pivot.facets {
            for (row, places) in &facet.rows {
                for (number, place) in places.iter().enumerate() {
                    let column = pivot.column_levels.get(number).map(String::as_str);
                    cells.push(AskedCell { table: &facet.name, row, column, ..AskedCell::of(place) });
                }
            }
        }
        let Pivot { value, rows, columns, deviation, .. } = pivot;
        AskedTable { value, rows, columns: columns.as_deref(), deviation: *deviation, cells }
    }
}

impl AskedCell<'_> {
    fn of(place: &PivotCell) -> Self {
        let PivotCell::Measured { value, interval, range, contrast, of_best, .. } = place else {
            let state = if *place == PivotCell::Failed { "failed" } else { "not_measured" };
            return AskedCell { state, ..AskedCell::default() };
        };
        let (low, high) = interval.unzip();
        let (lowest, highest) = range.unzip();
        let by = |measure| contrast.filter(|contrast| contrast.by == measure);
        let (ratio, difference) = (by(Measure::Ratio), by(Measure::Difference));
        let (ratio_low, ratio_high) = ratio.and_then(|ratio| ratio.interval).unzip();
        let (difference_low, difference_high) = difference.and_then(|difference| difference.interval).unzip();
        let verdict = contrast.map(|contrast| contrast.verdict);
        AskedCell {
            state: "measured",
            value: Some(*value),
            low,
            high,
            of_best: *of_best,
            lowest,
            highest,
            ratio: ratio.map(|ratio| ratio.size),
            ratio_low,
            ratio_high,
            difference: difference.map(|difference| difference.size),
            difference_low,
            difference_high,
            verdict: verdict.map(|verdict| match verdict {
                Verdict::More => "more",
                Verdict::Less => "less",
                Verdict::NoDifference => "no_difference",
                Verdict::CannotTell { .. } => "cannot_tell",
            }),
            trials_needed: match verdict {
                Some(Verdict::CannotTell { trials_needed }) => Some(trials_needed),
                _ => None,
            },
            ..AskedCell::default()
        }
    }
}
