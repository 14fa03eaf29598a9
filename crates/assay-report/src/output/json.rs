//! Findings and reports as JSON, as documented in docs/record.md.

use serde::Serialize;

use crate::charts::chart::Chart;
use crate::charts::charts;
use crate::findings::comparison::Comparison;
use crate::findings::report::{Entry, Report};

/// Findings, a comparison or a summary as JSON, as docs/record.md lists them.
pub fn json(findings: &impl Serialize) -> String {
    serde_json::to_string_pretty(findings).expect("findings are plain data with text keys") + "\n"
}

/// A report as JSON: findings of every record, and the data of every chart.
pub fn report_json(report: &Report) -> String {
    #[derive(Serialize)]
    struct WithCharts<'a> {
        entries: Vec<EntryWithCharts<'a>>,
        charts: &'a [Chart],
        settings: usize,
        comparisons: &'a [Comparison],
    }
    #[derive(Serialize)]
    struct EntryWithCharts<'a> {
        #[serde(flatten)]
        entry: &'a Entry,
        charts: &'a [Chart],
    }
    let charts = charts(report);
    let entries = report.entries.iter().zip(&charts.of_entries);
    let entries = entries.map(|(entry, charts)| EntryWithCharts { entry, charts }).collect();
    let (settings, comparisons) = (report.settings, &report.comparisons[..]);
    let report = WithCharts { entries, charts: &charts.of_all, settings, comparisons };
    serde_json::to_string(&report).expect("a report is plain data with text keys") + "\n"
}
