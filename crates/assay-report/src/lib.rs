//! What a record says: findings, where every number is made, and their rendering, which computes nothing.
//!
//! `findings` turns a record into rates, quantiles and warnings; `text`, `csv` and `json` show them. The live
//! line of a running trial takes the same way (`interval_findings`, `interval_line`), so that it cannot disagree with the
//! report. Nothing here prints, reads a clock or opens a file.

#![forbid(unsafe_code)]

mod audit;
mod cells;
mod chart;
mod comparison;
mod comparison_text;
mod condition;
mod csv;
mod draw;
mod findings;
mod interval;
mod markdown;
mod metric;
mod page;
mod prometheus;
mod report;
mod series;
mod setting;
mod summary;
mod text;
mod throughput;
mod warning;
mod words;

pub use audit::{CounterFindings, RateFindings, RuleFindings, RuleVerdict, Unit};
pub use chart::{Axis, Body, Boxed, Chart, Line, Mark, MarkKind, Scale};
pub use comparison::{
    ChangeFindings, Comparison, MetricComparison, Side, SideFindings, StageComparison, Verdict, compare,
};
pub use comparison_text::{comparison_text, grid_text, summary_text};
pub use condition::{BadCondition, Beyond, Condition, ConditionFindings, Judgement, Outcome, metric_names};
pub use csv::{comparison_csv, csv, summary_csv};
pub use draw::{png, svg};
pub use findings::{
    ErrorFindings, Findings, GeneratorFindings, Host, LatencyFindings, LatencyIntervals, OpenFindings, QueueFindings,
    StageFindings, TallyFindings, Target, TypeFindings, findings,
};
pub use interval::{IntervalFindings, bucket_bounds_ns, interval_findings, interval_header, interval_line};
pub use markdown::markdown;
pub use metric::{Better, Metric, MetricUnit, TrialsFindings};
pub use page::html;
pub use prometheus::{LiveMetrics, prometheus};
pub use report::{Entry, Report, report};
pub use series::{MixedSeries, change_points_csv, intervals_csv};
pub use setting::{Difference, Group, Kind, Mixed, differences, groups};
pub use summary::{MetricSummary, StageSummary, Summary, summarise};
pub use text::{Loaded, loaded, loaded_text, text, warning_words};
pub use throughput::{SteadyFindings, ThroughputFindings, WavesFindings};
pub use warning::{Advice, Warning};
pub use words::summary;

/// Findings, a comparison or a summary as JSON, as docs/record.md lists them.
pub fn json(findings: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(findings).expect("findings are plain data with text keys") + "\n"
}

/// A report as JSON: findings of every record, and the figures of every chart.
pub fn report_json(report: &Report) -> String {
    serde_json::to_string(report).expect("a report is plain data with text keys") + "\n"
}
