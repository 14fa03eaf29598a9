//! A report as one self-contained HTML file.
//!
//! Style, script and the chart library are in the file; a content security policy forbids everything else, so that the
//! page cannot contact any machine. The templates escape texts from records, after `shown` made them harmless; the data
//! of charts is JSON without any `<`.

use std::collections::BTreeMap;

use crate::output::cycle::cycle;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use assay_record::{Place, ScopeKind};

use crate::charts::chart::{Chart, ChartBody};
use crate::charts::layout::ChartLayout;
use crate::charts::palette::{self, Theme};
use crate::charts::picture::{PictureOptions, svg};
use crate::charts::{Charts, charts};
use crate::digits::{count, figure, ms, seconds};
use crate::findings::comparison::Comparison;
use crate::findings::explanation::Explanation;
use crate::findings::report::{Report, ReportEntry};
use crate::findings::run::{Findings, ServerFindings, Task};
use crate::findings::stage::StageFindings;
use crate::findings::telemetry::ScopeFindings;
use crate::output::shown::{Shown, ShownContent};
use crate::plain::{DOT, clean};
use crate::tables::agents::agents;
use crate::tables::as_html::{shown, shown_to};
use crate::tables::cases::{cases, counters};
use crate::tables::comparison::changes;
use crate::tables::generator::generator;
use crate::tables::latency::responses;
use crate::tables::stages::{looks, stages};
use crate::tables::table::ROWS_MAX;
use crate::tables::telemetry::{changes as telemetry_changes, metrics};
use crate::tables::work;
use crate::words::audit::audit_words;
use crate::words::capacity::capacity_words;
use crate::words::cases::{notes, plan_lines, statement};
use crate::words::comparison::{conclusion, difference_words, differences_by_kind, doubts_of, side_facts};
use crate::words::explanation::{mechanism, moved_words, not_measured, paragraph};
use crate::words::facts::{Facts, undone};
use crate::words::isolation::{isolation_examples, isolation_remarks};
use crate::words::run::{
    client, clients, command_line, growth, host, number_of, option_value, per, per_second, per_second_of, rate_words,
    sessions, started,
};
use crate::words::steadiness::{latency_intervals, over_time};
use crate::words::summary::{capitalized, summary, title};
use crate::words::telemetry::telemetry;
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
    let mut sections = sections(report, &charts);
    if !asked.is_empty() {
        sections.insert(0, Section { id: "asked", title: "Results", content: shown_on_page(asked) });
    }
    let style = format!("{UPLOT_CSS}{}{CSS}", palette::css());
    let policy = format!(
        "default-src 'none'; script-src {} {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        hash(LIBRARY),
        hash(SCRIPT),
        hash(&style)
    );
    let data: Vec<ChartOnPage> = charts.iter().map(ChartOnPage::of).collect();
    let data = serde_json::to_string(&data).expect("charts are plain data with text keys").replace('<', "\\u003c");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                link rel="icon" href="data:,";
                title { (shown(&title)) }
                "\n"
                style { (PreEscaped(style)) }
            }
            "\n"
            body {
                (head(report, &title, &sections))
                (main(report, &sections))
                footer {
                    "Times are response times: from when a transaction was due until it was done. Made by "
                    (concat!("assay ", env!("CARGO_PKG_VERSION")))
                    ". Charts: uPlot, MIT license, © Leon Sorokin. This file loads nothing from the network."
                }
                "\n"
                script type="application/json" id="data" { (PreEscaped(data)) }
                "\n"
                script { (PreEscaped(LIBRARY)) }
                "\n"
                script { (PreEscaped(SCRIPT)) }
            }
        }
        "\n"
    };
    page.into_string()
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

/// A source expression of a content security policy: exactly this text.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

fn head(report: &Report, title: &str, sections: &[Section]) -> Markup {
    let of = match &report.entries[..] {
        [entry] => format!("{} · {} · {}", entry.findings.started, entry.findings.tool, entry.file),
        entries if report.head.is_some() => format!("{} records of {} cells", entries.len(), report.settings),
        entries if report.settings == 1 => format!("{} records of one setting", entries.len()),
        entries => format!("{} records, {} settings", entries.len(), report.settings),
    };
    html! {
        header {
            h1 { (shown(title)) }
            p.soft { (shown(&of)) }
            @for sentence in summary(report) {
                p { (shown(&sentence)) }
                "\n"
            }
            nav aria-label="Contents" {
                ul {
                    @for section in sections {
                        li { a href={ "#" (section.id) } { (section.title) } }
                    }
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
                    h2 { (section.title) }
                    (section.content)
                }
                "\n"
            }
        }
        "\n"
    }
}

/// Verdict, ladder, audit, time, distribution, environment; those for which the report has data.
fn sections(report: &Report, charts: &Charts) -> Vec<Section> {
    let section = |id, title, content: Markup| Section { id, title, content };
    let one = match &report.entries[..] {
        [entry] => Some((entry, &charts.of_entries[0][..])),
        _ => None,
    };
    let (time, distribution) = match one {
        Some((entry, own)) => {
            let is_heat = |chart: &&Chart| chart.id.starts_with("heat-");
            let (heat, time): (Vec<&Chart>, Vec<&Chart>) = own.iter().partition(is_heat);
            let shown = charts.get("percentiles").into_iter().chain(heat).chain(charts.get("boxes"));
            (figures_of(time), html! { (figures_of(shown)) (stages_in_full(&entry.findings)) })
        }
        None => {
            let of_all = |ids: [&str; 2]| figures_of(ids.into_iter().filter_map(|id| charts.get(id)));
            (of_all(["throughput-all", "latency-all"]), of_all(["percentiles", "boxes"]))
        }
    };
    let mut sections = Vec::new();
    if one.is_none() {
        let title = if report.head.is_some() { "Trials" } else { "Verdict" };
        sections.push(section("verdict", title, verdict(report, charts)));
    }
    sections.push(section("cases", "Statements", statements(report)));
    sections.push(section("ladder", "Ladder", ladders(report, charts)));
    sections.extend(one.map(|(entry, _)| section("isolation", "Isolation", isolation(&entry.findings))));
    sections.extend(one.map(|(entry, _)| section("audit", "Audit", audits(&entry.findings))));
    sections.push(section("time", "Over time", time));
    sections.push(section("distribution", "Distribution", distribution));
    match one {
        Some((entry, _)) => sections.push(section("environment", "Environment", environment(entry, report))),
        None => sections.push(section("records", "Records", records(report, charts))),
    }
    sections.retain(|section| !section.content.0.is_empty());
    sections
}

fn verdict(report: &Report, charts: &Charts) -> Markup {
    html! {
        (figures_of(charts.get("trials")))
        (side_by_side(report))
        @for (comparison, why) in report.comparisons.iter().zip(&report.explanations) {
            (compared(comparison))
            @if let Some(why) = why.as_ref().filter(|why| why.differs) {
                (explained(why))
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

/// Statements compared by `assay sql`.
fn statements(report: &Report) -> Markup {
    let several = report.entries.len() > 1;
    let of_cases = report.entries.iter().filter_map(|entry| Some((entry, entry.findings.cases.as_ref()?)));
    html! {
        @for (entry, found) in of_cases.take(ROWS_MAX) {
            @let caption = if several { format!("Times, {}", clean(&entry.name, 80)) } else { "Times".to_owned() };
            (cases(found).with_caption(caption).html())
            @for note in notes(found) {
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
                    (audits(&entry.findings))
                    (figures_of(own))
                    (stages_in_full(&entry.findings))
                    (environment(entry, report))
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
    let step = match &findings.capacity {
        Some(_) => "At capacity",
        None if stage.best => "The fastest step",
        None => "The last step",
    };
    html! {
        @if findings.stages.len() > 1 {
            p.caption { (step) ", " (clients(findings, stage.sessions)) ":" }
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
            @if let Some(words) = conclusion(comparison, stage) {
                p { b { (shown(&capitalized(&words))) "." } }
            }
        }
    }
}

/// Why they differ, in the words of `assay explain`.
fn explained(why: &Explanation) -> Markup {
    html! {
        div data-explanation="" {
            h4 { "Why they differ" }
            @for sentence in paragraph(why) { p { (shown_to(SENTENCE_WIDTH, &sentence)) } }
            @if !why.ruled_out.is_empty() {
                details.setup {
                    summary { "Ruled out (" (why.ruled_out.len()) ")" }
                    (facts(why.ruled_out.iter().map(|one| (mechanism(one.mechanism), moved_words(&one.figure)))))
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
                h3 { (shown(&chart.title)) }
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
        @if let Some(table) = work::errors(&findings.errors) {
            (table.with_caption("All errors, including retried ones").html())
        }
    }
}

fn environment(entry: &ReportEntry, report: &Report) -> Markup {
    let findings = &entry.findings;
    let embedded = findings.is_embedded();
    let database = if embedded { "The database ran in the same process and is included." } else { "" };
    html! {
        h3 { "Load generator" }
        (generator(findings).with_caption(database).html())
        @if let Some(table) = agents(findings).filter(|_| report.agents) {
            (table.with_caption("Agents").html())
        }
        (setup(entry))
    }
}

fn stage_in_full(stage: &StageFindings, findings: &Findings) -> Markup {
    let measured = seconds(stage.measured_ns);
    let caption = match findings.stages.len() {
        1 => format!("Response times, measured for {measured}"),
        _ => format!("Response times with {}, for {measured}", clients(findings, stage.sessions)),
    };
    let mut told = over_time(stage);
    told.push(("at 95%", latency_intervals(stage)));
    told.extend(undone(stage));
    told.extend(telemetry(stage, findings));
    let tables = [
        work::types(stage, findings.task).map(|table| table.with_caption("Transaction outcomes")),
        work::rates(&stage.rates).map(|table| table.with_caption("Throughput as defined by the workload")),
        work::counters(&stage.counters).map(|table| table.with_caption("Workload counters")),
        Some(work::throughput(&stage.total, findings.task, true).with_caption("Throughput")),
        work::outages(&stage.outages, &findings.targets).map(|table| table.with_caption("Outages")),
        work::targets(&findings.targets, &stage.targets).map(|table| table.with_caption("By server")),
    ];
    html! {
        (responses(stage, findings).with_caption(caption).html())
        (listed(told))
        @for table in tables.into_iter().flatten() {
            (table.html())
        }
        @for scope in &stage.telemetry {
            (metrics(scope).with_caption(scope_name(scope)).html())
        }
    }
}

fn scope_name(scope: &ScopeFindings) -> String {
    match (scope.scope, scope.target) {
        (ScopeKind::Machine, _) => "Machine (load generator and server)".to_owned(),
        (ScopeKind::Server, 0) => "The server".to_owned(),
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
    let event_loop = findings.event_loop.as_ref().map(|event_loop| match &event_loop.fallback {
        Some(why) => format!("{}; io_uring not used: {why}", event_loop.backend),
        None => event_loop.backend.clone(),
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
