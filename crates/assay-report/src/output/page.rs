//! A report as one self-contained HTML file.
//!
//! The answer is the heading; below it come the figures and charts in the order of a reader's questions. The templates
//! escape texts from records, after `shown` made them harmless; the data of charts is JSON without any `<`.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use assay_record::{Place, ScopeKind};

use crate::charts::chart::{Chart, ChartBody};
use crate::charts::layout::ChartLayout;
use crate::charts::palette::{self, Theme};
use crate::charts::picture::{PictureOptions, svg};
use crate::charts::{Charts, charts};
use crate::digits::{count, figure, ms, seconds};
use crate::findings::cases::CasesFindings;
use crate::findings::comparison::Comparison;
use crate::findings::explanation::Explanation;
use crate::findings::report::{Report, ReportEntry};
use crate::findings::run::{Findings, ServerFindings, Task};
use crate::findings::stage::StageFindings;
use crate::findings::suites::suites;
use crate::findings::telemetry::{LogSeverity, ScopeFindings};
use crate::output::cycle::cycle;
use crate::output::document::Document;
use crate::output::shown::{Shown, ShownContent};
use crate::plain::{DOT, clean};
use crate::tables::agents::agents;
use crate::tables::as_html::{shown, shown_to};
use crate::tables::cases::{cases, counters};
use crate::tables::comparison::changes;
use crate::tables::generator::generator;
use crate::tables::latency::responses;
use crate::tables::stages::{looks, stages};
use crate::tables::suites as suite_tables;
use crate::tables::table::ROWS_MAX;
use crate::tables::telemetry::{
    changes as telemetry_changes, log as log_table, metrics, statements as statement_uses, waits as waits_table,
};
use crate::tables::work;
use crate::words::audit::audit_words;
use crate::words::capacity::capacity_words;
use crate::words::cases::{notes, plan_lines, statement};
use crate::words::comparison::{
    change_text, conclusion, difference_words, differences_by_kind, doubts_of, is_not_of_medians, metric_name,
    middle_alone, of_pairs, side_facts,
};
use crate::words::explanation::{mechanism, not_measured, paragraph, plans, ruled_out};
use crate::words::facts::{Facts, event_loop, undone};
use crate::words::isolation::{isolation_examples, isolation_remarks};
use crate::words::run::{
    client, clients, command_line, growth, host, note_words, number_of, option_value, per, per_second, per_second_of,
    rate_words, sessions, started, step,
};
use crate::words::steadiness::{latency_intervals, over_time};
use crate::words::suites as suite_words;
use crate::words::summary::{capitalized, summary, title};
use crate::words::telemetry::{not_all_statements, telemetry};
use crate::words::verdict::verdict;
use crate::words::warning::warnings_by_hint;

const CSS: &str = include_str!("../../page/page.css");
const SCRIPT: &str = include_str!("../../page/page.js");
/// The library and its license, which must accompany it.
const LIBRARY: &str = concat!(
    "/*\n",
    include_str!("../../page/vendor/uplot/LICENSE"),
    "*/\n",
    include_str!("../../page/vendor/uplot/uPlot.iife.min.js")
);
const UPLOT_CSS: &str = include_str!("../../page/vendor/uplot/uPlot.min.css");

const COMMAND_WIDTH: usize = 4000;
const FAILURE_WIDTH: usize = 2000;
const SENTENCE_WIDTH: usize = 1000;
/// Characters of a warning in the heading of a closed box.
const FIRST_WARNING_WIDTH: usize = 160;

/// The page; requested charts and tables come first.
pub fn html(report: &Report, asked: &[Shown]) -> String {
    let (title, charts) = (title(report), charts(report));
    // A reader's own title is the heading, and the answer the line below it.
    let answer = report.answer.clone().or_else(|| verdict(report));
    let (heading, line) = match (answer, &report.title, &report.answer) {
        (Some(answer), Some(_), None) => (title, answer),
        (Some(answer), _, _) => (answer, title),
        (None, _, _) => (title, String::new()),
    };
    let mut sections = sections(report, &charts);
    if !asked.is_empty() {
        sections.insert(0, Section { id: "asked", title: "Results", content: shown_on_page(asked) });
    }
    let full = [&*heading, &*line].join(DOT);
    let document = Document {
        title: full.trim_end_matches(DOT),
        preview: [&heading, &line],
        picture: report.picture.as_deref(),
        style: &format!("{UPLOT_CSS}{}{CSS}", palette::css()),
        scripts: &[LIBRARY, SCRIPT],
        loads: false,
        data: charts.iter().map(ChartOnPage::of).collect::<Vec<_>>(),
        body: html! {
            (head(report, &heading, &line))
            (contents(&sections))
            (main(report, &sections))
            footer {
                "Times are response times: from when a transaction was due until it was done. Made by "
                (concat!("assay ", env!("CARGO_PKG_VERSION")))
                ". Charts: uPlot, MIT license, © Leon Sorokin. This file loads nothing from the network."
            }
        },
    };
    document.html()
}

/// A chart as the page's script expects it.
#[derive(Serialize)]
struct ChartOnPage<'a> {
    #[serde(flatten)]
    chart: &'a Chart,
    layout: ChartLayout,
}

impl ChartOnPage<'_> {
    fn of(chart: &Chart) -> ChartOnPage<'_> {
        ChartOnPage { chart, layout: ChartLayout::of(chart) }
    }
}

/// The answer first: what was asked is the line below it.
fn head(report: &Report, heading: &str, line: &str) -> Markup {
    let of = match &report.entries[..] {
        [entry] => format!("{} · {} · {}", entry.findings.started, entry.findings.tool, entry.file),
        entries if report.head.is_some() => format!("{} records of {} cells", entries.len(), report.settings),
        entries if report.settings == 1 => format!("{} records of one setting", entries.len()),
        entries => format!("{} records, {} settings", entries.len(), report.settings),
    };
    html! {
        header {
            h1 { (shown(heading)) }
            @if !line.is_empty() { p.subject { (shown(line)) } }
            p.soft { (shown(&of)) }
            @for sentence in summary(report) {
                p { (shown(&sentence)) }
                "\n"
            }
        }
        "\n"
    }
}

/// Stays at the top of the window.
fn contents(sections: &[Section]) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                @for section in sections {
                    li { a href={ "#" (section.id) } { (section.title) } }
                }
            }
        }
        "\n"
    }
}

/// A part of the page, in the order of a reader's questions.
struct Section {
    id: &'static str,
    title: &'static str,
    content: Markup,
}

fn main(report: &Report, sections: &[Section]) -> Markup {
    html! {
        main {
            @if let [entry] = &report.entries[..] {
                (tiles(&entry.findings))
            }
            (warnings(report))
            noscript { p { "Charts need JavaScript; the tables do not." } }
            @for section in sections {
                section id=(section.id) {
                    h2 { a.anchor href={ "#" (section.id) } { (section.title) } }
                    (section.content)
                }
                "\n"
            }
        }
        "\n"
    }
}

/// In the order of a reader's questions; those for which the report has data.
fn sections(report: &Report, charts: &Charts) -> Vec<Section> {
    let section = |id, title, content: Markup| Section { id, title, content };
    let chart = |id: &str| charts.get(id);
    let mut sections = vec![section("cases", "Statements", statements(report))];
    let distribution = || charts_in_columns(["percentiles", "boxes"].into_iter().filter_map(chart));
    match &report.entries[..] {
        [entry] => {
            let (found, own) = (&entry.findings, &charts.of_entries[0]);
            let (waits, time): (Vec<&Chart>, Vec<&Chart>) = own.iter().partition(|chart| chart.id.starts_with("waits"));
            sections.push(section("ladder", "Ladder", ladders(report, charts)));
            sections.push(section("isolation", "Isolation", isolation(found)));
            sections.push(section("latency", "Response times", html! { (response_times(found)) (distribution()) }));
            sections.push(section("steadiness", "Steadiness", steadiness(found)));
            let server = html! { (telemetry_of(found, ScopeKind::Server)) (charts_in_columns(waits)) };
            sections.push(section("server", "Server", server));
            sections.push(section("time", "Over time", charts_over_time(time)));
            sections.push(section("machine", "Machine", telemetry_of(found, ScopeKind::Machine)));
            sections.push(section("work", "Work", stages_in_full(found)));
            sections.push(section("audit", "Audit", audits(found)));
            sections.push(section("errors", "Errors", errors(found)));
            sections.push(section("generator", "Load generator", load_generator(entry, report)));
            sections.push(section("settings", "Settings", setup(entry)));
        }
        _ => {
            let title = if report.head.is_some() { "Trials" } else { "Comparison" };
            let time = ["throughput-all", "latency-all"].into_iter().filter_map(chart);
            sections.push(section("verdict", title, comparison(report, charts)));
            sections.push(section("ladder", "Ladder", ladders(report, charts)));
            sections.push(section("latency", "Response times", distribution()));
            sections.push(section("time", "Over time", charts_in_columns(time)));
            sections.push(section("records", "Records", records(report, charts)));
        }
    }
    sections.retain(|section| !section.content.0.is_empty());
    let is_lines = |chart: &Chart| matches!(chart.body, ChartBody::Lines { .. });
    if charts.of_entries.iter().flatten().any(is_lines) {
        sections.push(section("explore", "Any two metrics", html! { div.explore {} }));
    }
    sections
}

fn comparison(report: &Report, charts: &Charts) -> Markup {
    html! {
        (figures_of(charts.get("trials")))
        @if let [comparison] = &report.comparisons[..] {
            (tiles_compared(comparison))
        }
        (side_by_side(report))
        @for (comparison, why) in report.comparisons.iter().zip(&report.explanations) {
            (compared(comparison))
            @if let Some(why) = why.as_ref().filter(|why| why.differs) {
                (explained(why))
            }
        }
    }
}

/// The changes of a comparison at one number of sessions, large.
fn tiles_compared(comparison: &Comparison) -> Markup {
    let [stage] = &comparison.stages[..] else { return Markup::default() };
    let one = |name: &str| {
        let metric = stage.metric(name)?;
        let (baseline, candidate) = (metric.baseline.as_ref()?, metric.candidate.as_ref()?);
        let change = metric.change.as_ref()?;
        let [before, after] = [baseline, candidate].map(|side| middle_alone(side, &metric.metric));
        let of = if is_not_of_medians(metric) { format!("{} ", of_pairs(change)) } else { String::new() };
        let change = of + &change_text(change, &metric.metric);
        Some((metric_name(&metric.metric), change, format!("{before} → {after}")))
    };
    html! {
        dl.figures {
            @for (name, change, medians) in ["tps", "p50", "p95", "p99"].into_iter().filter_map(one) {
                div { dt { (name) } dd { (change) br; small { (medians) } } }
            }
        }
    }
}

/// Response times of the stage that the answer is about.
fn response_times(findings: &Findings) -> Markup {
    let Some(stage) = findings.main_stage() else { return Markup::default() };
    html! {
        (responses(stage, findings).with_caption(measured_for(stage, findings)).html())
        (listed(vec![("at 95%", latency_intervals(stage))]))
    }
}

fn measured_for(stage: &StageFindings, findings: &Findings) -> String {
    let measured = seconds(stage.measured_ns);
    match findings.stages.len() {
        1 => format!("Response times, measured for {measured}"),
        _ => format!("Response times with {}, for {measured}", clients(findings, stage.sessions)),
    }
}

/// Whether throughput was steady, when it changed, and its outages.
fn steadiness(findings: &Findings) -> Markup {
    let several = findings.stages.len() > 1;
    html! {
        @for stage in findings.stages.iter().take(ROWS_MAX) {
            @if several { h3 { (capitalized(&step(findings, stage))) } }
            (listed(over_time(stage)))
            @if let Some(table) = work::outages(&stage.outages, &findings.targets) {
                (table.with_caption("Outages").html())
            }
        }
    }
}

/// Servers, or the machine: the main figures, and every metric, closed.
fn telemetry_of(findings: &Findings, kind: ScopeKind) -> Markup {
    let Some(main) = findings.main_stage() else { return Markup::default() };
    let names: &[&str] = if kind == ScopeKind::Server { &["server", "waits", "telemetry"] } else { &["machine"] };
    let facts = telemetry(main, findings).into_iter().filter(|(name, _)| names.contains(name)).collect();
    let several = findings.stages.len() > 1;
    html! {
        @if main.telemetry.iter().any(|scope| scope.scope == kind) {
            (listed(facts))
        }
        @for stage in findings.stages.iter().take(ROWS_MAX) {
            @for scope in stage.telemetry.iter().filter(|scope| scope.scope == kind) {
                @if let Some(waits) = waits_table(scope) {
                    (waits.html())
                }
                @if let Some(used) = statement_uses(scope).filter(|_| std::ptr::eq(stage, main)) {
                    details.setup open {
                        summary { "Statements by time, in the whole run: " (scope_name(scope, findings.targets.len())) }
                        @if let Some(words) = not_all_statements(scope, findings) { p.soft { (words) } }
                        (used.html())
                    }
                }
                @if let Some(lines) = log_table(scope) {
                    details.setup open[scope.log.iter().any(|line| line.severity > LogSeverity::Note)] {
                        summary {
                            "Log, " (number_of(scope.log.len() as u64, "line")) ": " (scope_name(scope, findings.targets.len()))
                            @if several { ", " (step(findings, stage)) }
                            @if scope.log_left_out > 0 { " (more of the run were left out)" }
                        }
                        (lines.html())
                    }
                }
                details.setup {
                    summary {
                        "All metrics: " (scope_name(scope, findings.targets.len()))
                        @if several { ", " (step(findings, stage)) }
                    }
                    (metrics(scope).html())
                }
            }
        }
    }
}

fn ladders(report: &Report, charts: &Charts) -> Markup {
    let several = report.entries.len() > 1;
    let ladders: Vec<&ReportEntry> = report.entries.iter().filter(|entry| entry.findings.stages.len() > 1).collect();
    html! {
        (figures_of(["ladder-throughput", "ladder-latency"].into_iter().filter_map(|id| charts.get(id))))
        (figures_of(charts.of_all.iter().filter(|chart| chart.id.starts_with("capacity-"))))
        @for entry in ladders.into_iter().take(ROWS_MAX) {
            (ladder(entry, several))
        }
    }
}

/// Statements compared by `assay sql`, and queries of `assay olap`.
fn statements(report: &Report) -> Markup {
    let several = report.entries.len() > 1;
    let of_cases = report.entries.iter().filter_map(|entry| Some((entry, entry.findings.cases.as_ref()?)));
    let table = |found: &CasesFindings| if found.suite.is_some() { suite_tables::queries(found) } else { cases(found) };
    let remarks = |found: &CasesFindings| match found.suite {
        Some(_) => suite_words::notes(found),
        None => notes(found),
    };
    html! {
        @if let Some(found) = suites(report) {
            @for words in suite_words::comparison(&found) {
                p { (shown(&words)) }
            }
            @for table in suite_tables::side_by_side(&found) {
                (table.html())
            }
        }
        @for (entry, found) in of_cases.take(ROWS_MAX) {
            @let caption = if several { format!("Times, {}", clean(&entry.name, 80)) } else { "Times".to_owned() };
            (table(found).with_caption(caption).html())
            @for note in remarks(found) {
                p { (shown(&note)) }
            }
            @if let Some(counters) = counters(found) {
                (counters.html())
            }
            @for case in &found.cases {
                details {
                    summary { (shown(&case.name)) }
                    pre { (shown(&statement(case))) }
                    @for line in plan_lines(case) {
                        pre { (shown(&line)) }
                    }
                }
            }
        }
    }
}

/// Whether the database kept its promise, with counterexamples.
fn isolation(findings: &Findings) -> Markup {
    let Some(found) = &findings.isolation else { return Markup::default() };
    html! {
        @for remark in isolation_remarks(found) {
            p { (remark) }
        }
        @for words in isolation_examples(found) {
            p { (words.heading) }
            (cycle(words.example))
            ul {
                @for line in words.lines {
                    li { (line) }
                }
            }
        }
    }
}

fn audits(findings: &Findings) -> Markup {
    let several = findings.stages.len() > 1;
    let caption = |stage: &StageFindings| {
        let verdict = format!("Audit: {}", audit_words(&stage.audit).unwrap_or_default());
        if several { format!("{verdict} ({})", sessions(stage.sessions)) } else { verdict }
    };
    let audits = findings.stages.iter().filter_map(|stage| Some((work::audit(&stage.audit, true)?, caption(stage))));
    html! {
        @for (table, caption) in audits.take(ROWS_MAX) {
            (table.with_caption(caption).html())
        }
    }
}

fn records(report: &Report, charts: &Charts) -> Markup {
    html! {
        @for (number, (entry, own)) in report.entries.iter().zip(&charts.of_entries).enumerate() {
            div.record id={ "record-" (number + 1) } {
                details {
                    summary { (shown(&entry.name)) }
                    (response_times(&entry.findings))
                    (steadiness(&entry.findings))
                    (telemetry_of(&entry.findings, ScopeKind::Server))
                    (charts_over_time(own))
                    (telemetry_of(&entry.findings, ScopeKind::Machine))
                    (stages_in_full(&entry.findings))
                    (audits(&entry.findings))
                    (errors(&entry.findings))
                    h3 { "Load generator" }
                    (load_generator(entry, report))
                    (setup(entry))
                }
            }
            "\n"
        }
    }
}

/// The key figures, large.
fn tiles(findings: &Findings) -> Markup {
    let Some(stage) = findings.main_stage() else { return Markup::default() };
    let (total, response) = (&stage.total, &stage.total.response);
    let which = match &findings.capacity {
        Some(found) if found.low.is_some() => "At capacity".to_owned(),
        // None was found.
        Some(_) => capitalized(&step(findings, stage)),
        None if stage.best => "The fastest step".to_owned(),
        None => "The last step".to_owned(),
    };
    html! {
        @if findings.stages.len() > 1 {
            p.caption { (which) ", " (clients(findings, stage.sessions)) ":" }
        }
        dl.figures {
            @if let Some(own) = stage.rates.first() {
                div { dt { (shown_to(24, &own.name)) } dd { (figure(own.rate)) " " small { (per(own.per_ns)) } } }
            }
            @for (name, value, unit, _) in [
                ("throughput", figure(total.tps), per_second(findings.task.rate()), false),
                ("statements", figure(total.qps), "per s", true),
                ("p50", ms(response.p50_ns), "ms", false),
                ("p99", ms(response.p99_ns), "ms", false),
                ("max", ms(response.max_ns), "ms", false),
                ("failed", count(total.failed), "transactions", true),
            ].into_iter().filter(|one| !one.3 || findings.task != Task::Machine) {
                div { dt { (name) } dd { (value) " " small { (unit) } } }
            }
        }
    }
}

/// One box, closed: its first line has the most important warning, and the result stays on the screen.
fn warnings(report: &Report) -> Markup {
    let failures = report.entries.iter().filter_map(|entry| entry.findings.failure.as_ref());
    let all = warnings_by_hint(report.runs(), |_| true);
    let number: usize = all.iter().map(|(causes, _)| causes.len()).sum();
    let first = all.first().and_then(|(causes, _)| causes.first());
    html! {
        @for failure in failures.take(ROWS_MAX) {
            p.warning.failure { b { "The run failed:" } " " (shown_to(FAILURE_WIDTH, failure)) }
        }
        @if let Some(first) = first {
            details.warning {
                summary {
                    b { (number_of(number as u64, "warning")) ":" } " " (shown_to(FIRST_WARNING_WIDTH, first))
                    @if number > 1 { " …" }
                }
                ul {
                    @for (causes, hint) in all.iter().take(ROWS_MAX) {
                        li {
                            @for cause in causes {
                                (shown(cause)) "." br;
                            }
                            @if !hint.is_empty() {
                                "What to do: " (shown(hint)) "."
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A row per record; a ladder is represented by its best stage.
fn side_by_side(report: &Report) -> Markup {
    fn row(entry: &ReportEntry) -> Option<(String, &StageFindings)> {
        let stage = entry.findings.main_stage()?;
        let name = match entry.findings.stages.len() {
            2.. => format!("{} (best: {})", entry.name, sessions(stage.sessions)),
            _ => entry.name.clone(),
        };
        Some((name, stage))
    }
    let rows = report.entries.iter().filter_map(row);
    html! {
        (stages("record", per_second_of(report.entries.iter().map(|entry| &entry.findings)), rows).html())
    }
}

/// A setting compared with the first: doubts about the comparison, then its figures with intervals and verdicts, in the
/// words of `assay compare`.
fn compared(comparison: &Comparison) -> Markup {
    let (baseline, candidate) = (&comparison.baseline, &comparison.candidate);
    html! {
        h3 { "Compared: " (shown_to(120, &candidate.name)) }
        (facts([("baseline", side_facts(baseline).join(DOT)), ("candidate", side_facts(candidate).join(DOT))]))
        @for group in differences_by_kind(&comparison.differences) {
            div class=[group.is_warning.then_some("warning")] {
                p { (capitalized(group.words)) }
                ul {
                    @for one in group.differences.into_iter().take(ROWS_MAX) {
                        li { (shown(&format!("{}: {}", clean(&one.what, 80), difference_words(one)))) }
                    }
                }
            }
        }
        @for doubt in doubts_of(baseline).into_iter().chain(doubts_of(candidate)).take(ROWS_MAX) {
            div.warning { b { "Warning:" } " " (shown(&doubt)) "." }
        }
        @if comparison.stages.is_empty() {
            p { "The two sides have no number of sessions in common: nothing can be compared." }
        }
        @for stage in comparison.stages.iter().take(ROWS_MAX) {
            (changes(stage).html())
            @if let Some(changed) = telemetry_changes(stage) {
                (changed.html())
            }
            p { b { (shown(&capitalized(&conclusion(comparison, stage)))) "." } }
        }
    }
}

/// Why they differ, in the words of `assay explain`.
fn explained(why: &Explanation) -> Markup {
    html! {
        div data-explanation="" {
            h4 { "Why they differ" }
            @for sentence in paragraph(why) { p { (shown_to(SENTENCE_WIDTH, &sentence)) } }
            @for (heading, lines) in plans(why) {
                details.setup {
                    summary { (shown_to(SENTENCE_WIDTH, &capitalized(&heading))) }
                    pre { (lines.join("\n")) }
                }
            }
            @if !why.ruled_out.is_empty() {
                details.setup {
                    summary { "Ruled out (" (why.ruled_out.len()) ")" }
                    (facts(why.ruled_out.iter().map(|one| (mechanism(one.mechanism), ruled_out(one)))))
                }
            }
            @if !why.unknown.is_empty() {
                p.soft { (not_measured(why)) "." }
            }
        }
    }
}

fn ladder(entry: &ReportEntry, several: bool) -> Markup {
    if let Some(found) = &entry.findings.capacity {
        let answer = capitalized(&capacity_words(found)) + ".";
        return html! {
            h3 { "Search for capacity" @if several { ": " (shown_to(80, &entry.name)) } }
            p { b { (shown(&answer)) } }
            (looks(found, &entry.findings).html())
        };
    }
    let all = &entry.findings.stages;
    let rows = all.iter().map(|stage| (count(stage.sessions.into()), stage));
    let growth = growth(&entry.findings).map(|words| format!(" {}.", capitalized(&words))).unwrap_or_default();
    let unit = entry.findings.task.rate();
    let table = stages(&format!("{}s", client(&entry.findings)), per_second(unit), rows);
    let table = table.with_caption(format!("Bold: most {}.{growth}", rate_words(unit)));
    html! {
        @if several {
            h3 { (shown_to(80, &entry.name)) }
        }
        (table.html())
    }
}

fn figures_of<'a>(charts: impl IntoIterator<Item = &'a Chart>) -> Markup {
    html! {
        @for chart in charts {
            (figure_of(chart))
        }
    }
}

/// Side by side where the window is wide enough.
fn charts_in_columns<'a>(charts: impl IntoIterator<Item = &'a Chart>) -> Markup {
    let figures = figures_of(charts);
    html! {
        @if !figures.0.is_empty() { div.charts { (figures) } }
    }
}

/// Charts over time; those in which nothing moved are closed.
fn charts_over_time<'a>(charts: impl IntoIterator<Item = &'a Chart>) -> Markup {
    // What everybody looks for stays open.
    let is_result = |chart: &Chart| chart.id.starts_with("throughput") || chart.id.starts_with("latency");
    let (constant, moved): (Vec<&Chart>, Vec<&Chart>) =
        charts.into_iter().partition(|chart| !is_result(chart) && chart.is_constant());
    let names: Vec<&str> = constant.iter().map(|chart| chart.title.as_str()).collect();
    html! {
        (charts_in_columns(moved))
        @if !constant.is_empty() {
            details.setup {
                summary { "Constant throughout: " (shown(&names.join(", "))) }
                (charts_in_columns(constant))
            }
        }
    }
}

fn figure_of(chart: &Chart) -> Markup {
    debug_assert!(chart.id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "ids are ours");
    let keys = match chart.body {
        ChartBody::Boxes { .. } => "",
        _ => " Arrow keys move the cursor, plus and minus zoom, 0 shows the whole range.",
    };
    let label = clean(&format!("Chart: {}.{keys}", chart.title), 400);
    html! {
        figure id={ "chart-" (chart.id) } data-chart=(chart.id) {
            figcaption {
                h3 { a.anchor href={ "#chart-" (chart.id) } { (shown(&chart.title)) } }
                @if !chart.caption.is_empty() {
                    p { (shown(&chart.caption)) }
                }
            }
            div.plot role="group" aria-label=(label) {}
            details.behind { summary { "Data as a table" } }
        }
        "\n"
    }
}

/// Charts are embedded as pictures, for light and for dark backgrounds.
fn shown_on_page(asked: &[Shown]) -> Markup {
    let picture = |chart: &Chart, theme: Theme, class: &str| {
        let options = PictureOptions { theme, ..PictureOptions::default() };
        html! { div class=(class) { (PreEscaped(svg(chart, &options))) } }
    };
    html! {
        @for one in asked {
            @match &one.0 {
                ShownContent::Tables { tables, notes, .. } => {
                    @for table in tables { (table.html()) }
                    @for note in notes { p.soft { (shown(note)) } }
                }
                ShownContent::Chart(chart) => {
                    figure id={ "chart-" (chart.id) } {
                        div.picture role="img" aria-label=(clean(&format!("Chart: {}.", chart.title), 400)) {
                            (picture(chart, Theme::Light, "on-light"))
                            (picture(chart, Theme::Dark, "on-dark"))
                        }
                        details.behind { summary { "Data as a table" } (chart.figures().html()) }
                    }
                }
            }
        }
    }
}

fn stages_in_full(findings: &Findings) -> Markup {
    html! {
        @for stage in findings.stages.iter().take(ROWS_MAX) {
            (stage_in_full(stage, findings))
        }
    }
}

fn errors(findings: &Findings) -> Markup {
    html! {
        @if let Some(table) = work::errors(&findings.errors) {
            (table.with_caption("All errors, including retried ones").html())
        }
    }
}

fn load_generator(entry: &ReportEntry, report: &Report) -> Markup {
    let findings = &entry.findings;
    let embedded = findings.is_embedded();
    let database = if embedded { "The database ran in the same process and is included." } else { "" };
    html! {
        (generator(findings).with_caption(database).html())
        @if let Some(table) = agents(findings).filter(|_| report.agents) {
            (table.with_caption("Agents").html())
        }
    }
}

/// What a stage did; its response times unless they are shown as those of the answer.
fn stage_in_full(stage: &StageFindings, findings: &Findings) -> Markup {
    let is_main = findings.main_stage().is_some_and(|main| std::ptr::eq(main, stage));
    let tables = [
        (!is_main).then(|| responses(stage, findings).with_caption(measured_for(stage, findings))),
        work::types(stage, findings.task).map(|table| table.with_caption("Transaction outcomes")),
        work::rates(&stage.rates).map(|table| table.with_caption("Throughput as defined by the workload")),
        work::counters(&stage.counters).map(|table| table.with_caption("Workload counters")),
        Some(work::throughput(&stage.total, findings.task, true).with_caption("Throughput")),
        work::targets(&findings.targets, &stage.targets).map(|table| table.with_caption("By server")),
    ];
    html! {
        @if findings.stages.len() > 1 { h3 { (capitalized(&step(findings, stage))) } }
        (listed(undone(stage)))
        @for table in tables.into_iter().flatten() {
            (table.html())
        }
    }
}

fn scope_name(scope: &ScopeFindings, servers: usize) -> String {
    match (scope.scope, scope.target) {
        (ScopeKind::Machine, _) => "Machine (load generator and server)".to_owned(),
        (ScopeKind::Server, _) if servers < 2 => "The server".to_owned(),
        (ScopeKind::Server, target) => format!("Server {}", target.saturating_add(1)),
    }
}

fn listed(told: Vec<Facts>) -> Markup {
    facts(told.into_iter().map(|(name, told)| (name, told.join(DOT))))
}

fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
                dt { (name) } dd { (shown_to(COMMAND_WIDTH, &value)) }
            }
        }
    }
}

fn setup(entry: &ReportEntry) -> Markup {
    let findings = &entry.findings;
    let given = findings.options.iter().map(|(name, value)| (name, option_value(value)));
    let given = given.filter(|(_, value)| !value.is_empty());
    let options: Vec<String> = given.take(ROWS_MAX).map(|(name, value)| format!("{name}={value}")).collect();
    let why = findings.event_loop.as_ref().and_then(|event_loop| event_loop.fallback.as_ref());
    let event_loop = event_loop(findings).map(|event_loop| match why {
        Some(why) => format!("{event_loop}; io_uring not used: {why}"),
        None => event_loop,
    });
    html! {
        h3 { "Run it again" }
        pre { (shown_to(COMMAND_WIDTH, &command_line(findings))) }
        h3 { "Setup" }
        (facts([
            ("record", entry.file.clone()),
            ("started", findings.started.to_string()),
            ("seed", findings.seed.to_string()),
            ("options", options.join(", ")),
            ("tags", named(&findings.tags, ", ")),
            ("notes", note_words(findings).join(DOT)),
            ("session SQL", findings.session_sql.join("; ")),
            ("generator", host(findings)),
            ("event loop", event_loop.unwrap_or_default()),
        ]))
        (folded("setup", "Machine of the generator", plain(&findings.facts)))
        @for target in findings.targets.iter().take(ROWS_MAX) {
            (server(target))
        }
        (folded("setup", "Servers started for this run", started(findings)))
        @let unavailable = unavailable(findings);
        @if !unavailable.is_empty() {
            details.setup {
                summary { "Unavailable metrics" }
                ul {
                    @for one in unavailable.iter().take(ROWS_MAX) {
                        li { (shown(one)) }
                    }
                }
            }
        }
    }
}

/// Metrics that could not be read, and those that stood still in a stage although the load must have moved them.
fn unavailable(findings: &Findings) -> Vec<String> {
    let unread = findings.sampling.iter().flat_map(|sampling| &sampling.absent);
    let unread = unread.map(|one| format!("{}: {}", one.metric, one.reason));
    let still = findings.stages.iter().flat_map(|stage| &stage.telemetry).flat_map(|scope| &scope.absent);
    unread.chain(still.map(|one| format!("{}: {}", one.metric, one.reason))).collect()
}

/// `name = value` for each.
fn named(values: &BTreeMap<String, String>, between: &str) -> String {
    let one = |(name, value): (&String, &String)| format!("{name} = {value}");
    values.iter().take(ROWS_MAX).map(one).collect::<Vec<_>>().join(between)
}

fn server(target: &ServerFindings) -> Markup {
    let place = match target.place {
        Place::Remote => "",
        Place::Local => "on the generator's machine",
        Place::Embedded => "inside the generator",
    };
    let setting = |(name, value): (&String, &String)| {
        let origin = target.origins.get(name).map(|origin| format!(" ({origin})")).unwrap_or_default();
        (name.clone(), format!("{value}{origin}"))
    };
    let settings: Vec<(String, String)> = target.settings.iter().take(ROWS_MAX).map(setting).collect();
    html! {
        (facts([
            ("server", format!("{} {}", target.product, target.version)),
            ("address", target.url.clone()),
            ("location", place.into()),
            ("encryption", target.tls.clone().unwrap_or_default()),
        ]))
        (folded("setup", "Process and drive of the server", plain(&target.facts)))
        (folded("setup printed", "Settings of the server", settings))
    }
}

/// Names and values, closed: they are many, some are long (the flags of a CPU), and few readers need them. `printed`:
/// open on paper.
fn folded(class: &str, title: &str, values: Vec<(String, String)>) -> Markup {
    html! {
        @if !values.is_empty() {
            details class=(class) {
                summary { (title) " (" (values.len()) ")" }
                dl.facts {
                    @for (name, value) in &values {
                        dt { (shown(name)) } dd { (shown_to(COMMAND_WIDTH, value)) }
                    }
                }
            }
        }
    }
}

fn plain(values: &BTreeMap<String, String>) -> Vec<(String, String)> {
    values.iter().take(ROWS_MAX).map(|(name, value)| (name.clone(), value.clone())).collect()
}
