//! Reports: findings, where every number is computed, and their rendering, which computes nothing.
//!
//! Layers, each of which knows only those before it:
//!
//! * `cpus`, `digits` and `plain`: work on many things at once, formatting of figures, and making text from outside
//!   harmless.
//! * `findings`: a record's rates, quantiles and warnings; comparisons, trials and reports of several records.
//! * `words`: sentences about findings, the same in every output.
//! * `tables` and `charts`: findings as rows and as lines; each table has four formats, each chart two.
//! * `output`: whole reports, built from these.
//!
//! The live line of a running trial is built in the same way (`interval_findings`, `interval_line`), so that it cannot
//! contradict the report. Nothing here prints, reads a clock or opens a file.

#![forbid(unsafe_code)]

mod charts;
mod cpus;
mod digits;
mod findings;
mod leb128;
mod output;
mod plain;
mod tables;
mod words;

pub use charts::asked::{ChartAsked, ChartKind, NoChart};
pub use charts::chart::{
    AxisScale, Boxed, Chart, ChartAxis, ChartBody, ChartLine, ColumnSet, ColumnShape, Mark, MarkKind, POINTS_MAX,
    Panel, PanelBody, Quartiles,
};
pub use charts::palette::Theme;
pub use charts::picture::{PICTURE_SIZES, PictureOptions, png, svg};
pub use charts::{Charts, charts, forget_undrawn};
pub use cpus::on_all_cpus;
pub use digits::{clock, count, figure, ms, percent, short};
pub use findings::agents::{AgentFindings, AgentStageFindings};
pub use findings::audit::{CounterFindings, RateFindings, RuleFindings, RuleUnit, RuleVerdict};
pub use findings::capacity::{
    Capacity, CapacityFindings, LookFindings, SearchState, next_rate, next_sessions, search_so_far,
};
pub use findings::cases::{CaseFindings, CasesFindings, PlanFindings, RatioFindings};
pub use findings::comparison::{
    ChangeFindings, Comparison, MetricComparison, Side, SideFindings, StageComparison, compare,
};
pub use findings::condition::{BadCondition, Beyond, Condition, metric_names};
pub use findings::derived::{DERIVED, DerivedFigure, meant_metric};
pub use findings::experiment::{
    BEST, Experiment, ExperimentCell, ExperimentTrial, Factor, Level, OfTrials, PivotAsked, Unknown,
};
pub use findings::explanation::{Cause, Explanation, Mechanism, Moved, PlanChange, RuledOut, explain};
pub use findings::history::{
    BadNote, DriftFindings, History, HistoryAsked, HistoryBy, HistoryChange, HistoryNote, HistoryRecord, NoteKind,
    PointFindings, SeriesFindings, history,
};
pub use findings::interval::{Buckets, IntervalFindings, interval_findings};
pub use findings::isolation::IsolationFindings;
pub use findings::judgment::{ConditionFindings, Judged, Judgment};
pub use findings::latency::LatencyFindings;
pub use findings::library::{LibraryEntry, LibraryFigures, library_figures, settings_in_effect};
pub use findings::limit::LimitedTrials;
pub use findings::loaded::{Loaded, loaded};
pub use findings::metric::{Better, FIXED_METRICS, Metric, MetricUnit, TrialsFindings, metric_value};
pub use findings::outage::{ListedOutage, OutageFindings};
pub use findings::power::SuiteFigures;
pub use findings::promise::{BadPromise, Promise, PromisedFigure};
pub use findings::report::{Report, ReportEntry, report, report_of_cells};
pub use findings::run::{Findings, GeneratorHost, ServerFindings, Task, figures, findings};
pub use findings::setting::{Difference, Group, Mixed, SettingKind, differences, groups};
pub use findings::shares::{Points, ShareFindings, Shares, TelemetryPoint};
pub use findings::stage::{
    GeneratorFindings, LatencyIntervals, OpenFindings, QueueFindings, StageFindings, WindowFindings,
};
pub use findings::suites::{Disagreement, QueryFindings, QueryTime, SuitesFindings, suites};
pub use findings::summary::{MetricSummary, SessionsSummary, Summary, summarize};
pub use findings::tally::{ErrorFindings, TallyFindings, TypeFindings};
pub use findings::telemetry::{AbsentFindings, SamplingFindings, ScopeFindings, TelemetryFindings, WaitFindings};
pub use findings::throughput::{ShiftFindings, SteadyFindings, ThroughputFindings, WavesFindings};
pub use findings::verdict::ChangeVerdict;
pub use findings::warning::{Advice, MissingPart, Warning};
pub use findings::window::{NoWindow, Window, findings_within};
pub use output::bisection::bisection_text;
pub use output::comparison_text::{comparison_text, grid_text, summary_text};
pub use output::csv::{comparison_csv, csv, summary_csv};
pub use output::data::DataTable;
pub use output::experiment::experiment_csv;
pub use output::explanation::{explanation_json, explanation_text};
pub use output::history::{history_json, history_markdown, history_text};
pub use output::json::{json, report_json};
pub use output::lab::{FailedTrial, LabResults};
pub use output::library::{library_problems_text, library_text};
pub use output::library_page::library_html;
pub use output::live_page::live_html;
pub use output::markdown::markdown;
pub use output::page::html;
pub use output::parquet::parquet;
pub use output::progress::{LineOf, Progress, interval_header, interval_line, progress_line};
pub use output::prometheus::{LiveMetrics, prometheus};
pub use output::series::{MixedSeries, change_points_csv, intervals_csv, telemetry_csv};
pub use output::shown::{ShowAsked, Shown, shown, shown_csv, shown_markdown, shown_of, shown_text};
pub use output::suites::suites_text;
pub use output::text::{agents_text, text, text_in};
pub use plain::{View, visible};
pub use tables::as_text::listing;
pub use tables::table::ROWS_MAX;
pub use words::capacity::{capacity_words, look_line};
pub use words::isolation::isolation_answer;
pub use words::run::loaded_text;
pub use words::summary::summary;
pub use words::telemetry::{in_unit, in_unit_per_second};
pub use words::trial::{throughput_words, trial_words};
pub use words::warning::warning_words;

pub use assay_stats::half_width;
