//! A report as one HTML file that opens offline, prints, and can be passed on.
//!
//! Style, script and the chart library are in the file; a content security policy forbids everything else, so that the page
//! can ask no other machine for anything. Texts from records are escaped wherever they go: `Html::text` is the only
//! way into markup, and the figures of charts travel as JSON in which no `<` is left.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use assay_record::Place;

use crate::cells::{NONE, clean, count, figure, ms, percent, seconds};
use crate::chart::{Body, Chart};
use crate::comparison_text::{conclusion, difference_words, differences_by_kind, doubts_of, side_facts, stage_rows};
use crate::findings::{ErrorFindings, Findings, LatencyFindings, StageFindings, TallyFindings};
use crate::report::{Entry, Report};
use crate::text::{
    COUNTERS_HEAD, DOT, audited, counted, latency_intervals, micros, option_value, over_time, rate, warnings_by_hint,
};
use crate::words::{capitalised, summary, title};

const CSS: &str = include_str!("../page/page.css");
const SCRIPT: &str = include_str!("../page/page.js");
/// The library and its licence, which goes wherever it goes.
const LIBRARY: &str = concat!(
    "/*\n",
    include_str!("../page/vendor/uplot/LICENSE"),
    "*/\n",
    include_str!("../page/vendor/uplot/uPlot.iife.min.js")
);
const UPLOT_CSS: &str = include_str!("../page/vendor/uplot/uPlot.min.css");

/// Longest text of a record shown in one place.
const TEXT_WIDTH: usize = 400;
const COMMAND_WIDTH: usize = 4000;
/// Rows shown of any table made from a record; a made-up record could have millions.
const ROWS_MAX: usize = 200;

/// The page.
pub fn html(report: &Report) -> String {
    let mut page = Html::default();
    let title = title(report);
    let style = format!("{UPLOT_CSS}{CSS}");
    page.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.raw(&format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {} {}; style-src {}; \
         img-src data:; base-uri 'none'; form-action 'none'\">\n",
        hash(LIBRARY),
        hash(SCRIPT),
        hash(&style)
    ));
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.raw("<meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n");
    page.element("title", &title).raw("\n<style>").raw(&style).raw("</style>\n</head>\n<body>\n");
    head(&mut page, report, &title);
    page.raw("<main>\n");
    if let [entry] = &report.entries[..] {
        tiles(&mut page, &entry.findings);
    }
    warnings(&mut page, report);
    if let [_, _, ..] = &report.entries[..] {
        overview(&mut page, report);
    }
    comparisons(&mut page, report);
    ladders(&mut page, report);
    page.raw("<h2 id=\"charts\">Charts</h2>\n<noscript><p>Charts need JavaScript; the tables do not.</p></noscript>\n");
    let own = report.entries.first().filter(|_| report.entries.len() == 1);
    for chart in own.into_iter().flat_map(|entry| &entry.charts).chain(&report.charts) {
        figure_of(&mut page, chart);
    }
    for (number, entry) in report.entries.iter().enumerate() {
        record(&mut page, entry, number, report.entries.len() > 1);
    }
    page.raw("</main>\n<footer>Times are response times: from the moment a transaction was due until it was done. ");
    page.raw("Made by ").text(concat!("assay ", env!("CARGO_PKG_VERSION")), TEXT_WIDTH);
    page.raw(". Charts: uPlot, MIT licence, © Leon Sorokin. This file asks no other machine for anything.</footer>\n");
    let charts: Vec<&Chart> = report.all_charts().collect();
    let data = serde_json::to_string(&charts).expect("charts are plain data with text keys").replace('<', "\\u003c");
    page.raw("<script type=\"application/json\" id=\"data\">").raw(&data).raw("</script>\n");
    page.raw("<script>").raw(LIBRARY).raw("</script>\n<script>").raw(SCRIPT).raw("</script>\n</body>\n</html>\n");
    page.0
}

/// A source expression of a content security policy: this text and no other.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// Markup under construction.
#[derive(Default)]
struct Html(String);

impl Html {
    /// Our own markup.
    fn raw(&mut self, markup: &str) -> &mut Html {
        self.0.push_str(markup);
        self
    }

    /// Anybody's text: shown as it is, at most `width` characters of it.
    fn text(&mut self, text: &str, width: usize) -> &mut Html {
        for c in clean(text, width).chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
        self
    }

    fn element(&mut self, name: &str, text: &str) -> &mut Html {
        self.raw(&format!("<{name}>")).text(text, TEXT_WIDTH).raw(&format!("</{name}>"))
    }

    /// A table: the first cell of a row is its head; a last cell beyond `head` is words.
    fn table(&mut self, caption: &str, head: &[&str], rows: impl IntoIterator<Item = Row>) {
        // Beside the table and not in it: a wide table scrolls, and would take its caption along.
        if caption.is_empty() {
            self.raw("<div class=\"wide\"><table>");
        } else {
            self.raw("<p class=\"caption\">")
                .text(caption, TEXT_WIDTH)
                .raw("</p><div class=\"wide\"><table aria-label=\"");
            self.text(caption, TEXT_WIDTH).raw("\">");
        }
        self.raw("\n<thead><tr>");
        for name in head {
            self.raw("<th scope=\"col\">").text(name, TEXT_WIDTH).raw("</th>");
        }
        self.raw("</tr></thead>\n<tbody>\n");
        let mut rows = rows.into_iter();
        for row in rows.by_ref().take(ROWS_MAX) {
            self.raw(if row.best { "<tr class=\"best\">" } else { "<tr>" });
            for (column, cell) in row.cells.iter().enumerate() {
                match column {
                    0 => self.raw("<th scope=\"row\">").text(cell, TEXT_WIDTH).raw("</th>"),
                    column if column >= row.figures => {
                        self.raw("<td class=\"words\">").text(cell, TEXT_WIDTH).raw("</td>")
                    }
                    _ => self.element("td", cell),
                };
            }
            self.raw("</tr>\n");
        }
        self.raw("</tbody></table></div>\n");
        let left = rows.count();
        if left > 0 {
            self.raw("<p class=\"soft\">")
                .text(&format!("and {} more rows", count(left as u64)), TEXT_WIDTH)
                .raw("</p>\n");
        }
    }

    fn facts(&mut self, facts: &[(&str, String)]) {
        self.raw("<dl class=\"facts\">");
        for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
            self.element("dt", name).raw("<dd>").text(value, COMMAND_WIDTH).raw("</dd>");
        }
        self.raw("</dl>\n");
    }
}

/// A row of a table.
struct Row {
    cells: Vec<String>,
    /// Cells from this one on are words.
    figures: usize,
    best: bool,
}

impl Row {
    fn of<S: Into<String>>(cells: impl IntoIterator<Item = S>) -> Row {
        Row { cells: cells.into_iter().map(Into::into).collect(), figures: usize::MAX, best: false }
    }

    fn with_words_from(self, figures: usize) -> Row {
        Row { figures, ..self }
    }
}

fn head(page: &mut Html, report: &Report, title: &str) {
    page.raw("<header>\n").element("h1", title).raw("\n<p class=\"soft\">");
    match &report.entries[..] {
        [entry] => {
            page.text(&format!("{} · {} · {}", entry.findings.started, entry.findings.tool, entry.file), TEXT_WIDTH)
        }
        entries if report.settings == 1 => page.text(&format!("{} records of one setting", entries.len()), TEXT_WIDTH),
        entries => page.text(&format!("{} records, {} settings", entries.len(), report.settings), TEXT_WIDTH),
    };
    page.raw("</p>\n");
    for sentence in summary(report) {
        page.element("p", &sentence).raw("\n");
    }
    page.raw("<nav aria-label=\"Contents\"><ul><li><a href=\"#charts\">Charts</a></li>");
    for (number, entry) in report.entries.iter().enumerate().take(ROWS_MAX) {
        let name = if report.entries.len() == 1 { "Figures, settings, command" } else { &entry.name };
        page.raw(&format!("<li><a href=\"#record-{}\">", number + 1)).text(name, 80).raw("</a></li>");
    }
    page.raw("</ul></nav>\n</header>\n");
}

fn tiles(page: &mut Html, findings: &Findings) {
    let Some(stage) = findings.stages.iter().find(|stage| stage.best).or(findings.stages.last()) else { return };
    let (total, response) = (&stage.total, &stage.total.response);
    if findings.stages.len() > 1 {
        let step = if stage.best { "The fastest step" } else { "The last step" };
        page.raw("<p class=\"caption\">")
            .text(&format!("{step}, {}:", crate::chart::sessions(stage.sessions)), 80)
            .raw("</p>");
    }
    page.raw("<dl class=\"figures\">");
    for (name, value, unit) in [
        ("throughput", figure(total.tps), "tx/s"),
        ("statements", figure(total.qps), "per s"),
        ("median", ms(response.p50_ns), "ms"),
        ("p99", ms(response.p99_ns), "ms"),
        ("slowest", ms(response.max_ns), "ms"),
        ("failed", count(total.failed), "transactions"),
    ] {
        page.raw("<div>")
            .element("dt", name)
            .raw("<dd>")
            .text(&value, 40)
            .raw(" ")
            .element("small", unit)
            .raw("</dd></div>");
    }
    page.raw("</dl>\n");
}

fn warnings(page: &mut Html, report: &Report) {
    let several = report.entries.len() > 1;
    let runs = report.entries.iter().map(|entry| (if several { entry.name.as_str() } else { "" }, &entry.findings));
    for (causes, hint) in warnings_by_hint(runs).into_iter().take(ROWS_MAX) {
        page.raw("<div class=\"warning\"><b>Warning:</b> ");
        for cause in causes {
            page.text(&cause, TEXT_WIDTH).raw(".<br>");
        }
        if !hint.is_empty() {
            page.raw("What to do: ").text(&hint, TEXT_WIDTH).raw(".");
        }
        page.raw("</div>\n");
    }
    for failure in report.entries.iter().filter_map(|entry| entry.findings.failure.as_ref()).take(ROWS_MAX) {
        page.raw("<p class=\"warning\"><b>The run failed:</b> ").text(failure, 2000).raw("</p>\n");
    }
}

const STAGE_HEAD: [&str; 9] =
    ["", "tx/s", "stmt/s", "p50 ms", "p95 ms", "p99 ms", "slowest ms", "failed", "CPU µs/stmt"];

/// The row of a stage under `STAGE_HEAD`.
pub(crate) fn stage_cells(name: String, stage: &StageFindings) -> [String; 9] {
    let (total, response) = (&stage.total, &stage.total.response);
    [
        name,
        figure(total.tps),
        figure(total.qps),
        ms(response.p50_ns),
        ms(response.p95_ns),
        ms(response.p99_ns),
        ms(response.max_ns),
        count(total.failed),
        stage.generator.and_then(|generator| generator.cpu_ns_per_statement).map_or(NONE.into(), micros),
    ]
}

/// A row for each record; a ladder is represented by its best stage.
fn overview(page: &mut Html, report: &Report) {
    page.raw("<h2 id=\"records\">Records side by side</h2>\n");
    let row = |entry: &Entry| {
        let stages = &entry.findings.stages;
        let stage = stages.iter().find(|stage| stage.best).or(stages.last());
        let name = match (stage, stages.len()) {
            (Some(stage), 2..) => format!("{} (best: {})", entry.name, crate::chart::sessions(stage.sessions)),
            _ => entry.name.clone(),
        };
        stage.map_or_else(|| Row::of([name.clone(), NONE.into()]), |stage| Row::of(stage_cells(name.clone(), stage)))
    };
    let mut head = STAGE_HEAD;
    head[0] = "record";
    page.table("", &head, report.entries.iter().map(row));
}

/// Every setting beside the first: what makes a comparison doubtful, then its figures with intervals and verdicts, in the words of
/// `assay compare`.
fn comparisons(page: &mut Html, report: &Report) {
    for comparison in &report.comparisons {
        page.raw("<h2>").text(&format!("Compared: {}", comparison.candidate.name), 120).raw("</h2>\n");
        let (baseline, candidate) = (&comparison.baseline, &comparison.candidate);
        page.facts(&[("baseline", side_facts(baseline).join(DOT)), ("candidate", side_facts(candidate).join(DOT))]);
        for (head, differences) in differences_by_kind(&comparison.differences) {
            let head = head.trim_start_matches("warning: ");
            page.raw(if head.starts_with("the sides differ") { "<div>" } else { "<div class=\"warning\">" });
            page.element("p", &capitalised(head)).raw("<ul>");
            for one in differences.into_iter().take(ROWS_MAX) {
                page.element("li", &format!("{}: {}", clean(&one.what, 80), difference_words(one)));
            }
            page.raw("</ul></div>\n");
        }
        for doubt in doubts_of(baseline).into_iter().chain(doubts_of(candidate)).take(ROWS_MAX) {
            page.raw("<div class=\"warning\"><b>Warning:</b> ").text(&doubt, TEXT_WIDTH).raw(".</div>\n");
        }
        if comparison.stages.is_empty() {
            page.element("p", "The two sides have no number of sessions in common: nothing can be compared.");
        }
        for stage in comparison.stages.iter().take(ROWS_MAX) {
            let mut rows = stage_rows(stage).into_iter();
            let head: Vec<String> = rows.next().unwrap_or_default();
            let head: Vec<&str> = head.iter().map(String::as_str).chain(["at 95%"]).collect();
            page.table("", &head, rows.map(|row| Row::of(row).with_words_from(4)));
            if let Some(words) = conclusion(comparison, stage) {
                page.raw("<p><b>").text(&capitalised(&words), TEXT_WIDTH).raw(".</b></p>\n");
            }
        }
    }
}

fn ladders(page: &mut Html, report: &Report) {
    for entry in report.entries.iter().filter(|entry| entry.findings.stages.len() > 1).take(ROWS_MAX) {
        page.raw("<h2>").text("By number of sessions", 80);
        if report.entries.len() > 1 {
            page.raw(": ").text(&entry.name, 80);
        }
        page.raw("</h2>\n");
        let mut head = STAGE_HEAD;
        head[0] = "sessions";
        let row = |stage: &StageFindings| {
            let mut row = Row::of(stage_cells(count(stage.sessions.into()), stage)).with_words_from(STAGE_HEAD.len());
            row.cells.push(if stage.knee { "knee".into() } else { String::new() });
            Row { best: stage.best, ..row }
        };
        let knee = match entry.findings.stages.iter().any(|stage| stage.knee) {
            true => " Knee: no later step has 5% more.",
            false => "",
        };
        let head = head.into_iter().chain([""]).collect::<Vec<_>>();
        let caption = format!("Bold: most transactions per second.{knee}");
        page.table(&caption, &head, entry.findings.stages.iter().map(row));
    }
}

fn figure_of(page: &mut Html, chart: &Chart) {
    debug_assert!(chart.id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "ids are ours");
    page.raw(&format!("<figure id=\"chart-{0}\" data-chart=\"{0}\"><figcaption>", chart.id));
    page.element("h3", &chart.title).element("p", &chart.caption).raw("</figcaption>");
    let keys = match chart.body {
        Body::Boxes { .. } => "",
        _ => " Arrow keys move the cursor, plus and minus zoom, 0 shows the whole range.",
    };
    page.raw("<div class=\"plot\" role=\"group\" aria-label=\"")
        .text(&format!("Chart: {}.{keys}", chart.title), TEXT_WIDTH);
    page.raw("\"></div><details class=\"behind\"><summary>Figures as a table</summary></details></figure>\n");
}

fn record(page: &mut Html, entry: &Entry, number: usize, several: bool) {
    let findings = &entry.findings;
    page.raw(&format!("<section class=\"record\" id=\"record-{}\">", number + 1));
    if several {
        page.raw("<details><summary>").text(&entry.name, TEXT_WIDTH).raw("</summary>\n");
    } else {
        page.raw("<h2>Figures</h2>\n");
    }
    for stage in findings.stages.iter().take(ROWS_MAX) {
        transactions(page, stage, findings.stages.len() > 1);
        targets(page, stage, findings);
    }
    errors(page, &findings.errors);
    if several {
        for chart in &entry.charts {
            figure_of(page, chart);
        }
    }
    self_check(page, findings);
    setup(page, entry);
    page.raw(if several { "</details></section>\n" } else { "</section>\n" });
}

fn transactions(page: &mut Html, stage: &StageFindings, named: bool) {
    let total = &stage.total;
    let row = |name: &str, tps: Option<f64>, failed: Option<u64>, latencies: &LatencyFindings| {
        Row::of([
            name.to_owned(),
            count(latencies.count),
            tps.map_or(String::new(), figure),
            ms(latencies.min_ns),
            latencies.mean_ns.map_or(NONE.into(), |ns| figure(ns / 1e6)),
            ms(latencies.p50_ns),
            ms(latencies.p90_ns),
            ms(latencies.p95_ns),
            ms(latencies.p99_ns),
            ms(latencies.p999_ns),
            ms(latencies.max_ns),
            failed.map_or(String::new(), count),
        ])
    };
    let mut rows: Vec<Row> =
        total.types.iter().map(|one| row(&one.name, Some(one.tps), Some(one.failed), &one.response)).collect();
    if total.types.len() > 1 {
        rows.push(row("all transactions", Some(total.tps), Some(total.failed), &total.response));
    }
    rows.push(row("service time", None, None, &total.service));
    rows.push(row("our lag", None, None, &total.lag));
    let caption = match named {
        true => format!(
            "Response times with {}, for {}",
            crate::chart::sessions(stage.sessions),
            seconds(stage.measured_ns)
        ),
        false => format!("Response times, measured for {}", seconds(stage.measured_ns)),
    };
    let head = ["ms", "count", "per s", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "slowest", "failed"];
    page.table(&caption, &head, rows);
    let mut told = over_time(stage);
    told.push(("at 95%", latency_intervals(stage)));
    page.facts(&told.into_iter().map(|(name, facts)| (name, facts.join(DOT))).collect::<Vec<_>>());
    promises(page, stage);
    statements(page, total);
    if let Some(open) = stage.open {
        page.element(
            "p",
            &format!(
                "Open loop: {} were due ({} per s), {} dropped, {} not begun at the end, backlog at most {}.",
                count(open.due),
                figure(open.due_per_s),
                count(open.dropped),
                count(open.unstarted),
                count(open.backlog_max)
            ),
        );
    }
}

/// The workload's own throughputs, and the audit of its rules.
fn promises(page: &mut Html, stage: &StageFindings) {
    if !stage.rates.is_empty() {
        let rows = stage.rates.iter().map(|one| Row::of(rate(one)).with_words_from(2));
        page.table("Throughput as the workload counts it", &["", "rate"], rows);
    }
    let rows: Vec<Row> = stage.counters.iter().filter(|one| !one.audited).map(|one| Row::of(counted(one))).collect();
    if !rows.is_empty() {
        page.table("What the workload counted", &COUNTERS_HEAD, rows);
    }
    if !stage.audit.is_empty() {
        let rows = stage.audit.iter().map(|rule| Row::of(audited(rule)).with_words_from(3));
        page.table("Audit: the workload's own rules", &["rule", "observed", "allowed", ""], rows);
    }
}

fn statements(page: &mut Html, total: &TallyFindings) {
    let (number, rate, service) = (&total.statements_by_class, &total.qps_by_class, &total.statement_service);
    let classes = [
        ("read", number.read, rate.read, &service.read),
        ("write", number.write, rate.write, &service.write),
        ("other", number.other, rate.other, &service.other),
    ];
    let row = |(name, number, rate, service): (&str, u64, f64, &LatencyFindings)| {
        Row::of([name.into(), count(number), figure(rate), ms(service.p50_ns), ms(service.p99_ns), ms(service.max_ns)])
    };
    page.table("Statements", &["", "count", "per s", "p50 ms", "p99 ms", "slowest ms"], classes.into_iter().map(row));
}

fn targets(page: &mut Html, stage: &StageFindings, findings: &Findings) {
    if stage.targets.is_empty() {
        return;
    }
    let rows = findings.targets.iter().zip(&stage.targets).map(|(target, tally)| {
        let response = &tally.response;
        let figures =
            [figure(tally.tps), figure(tally.qps), ms(response.p50_ns), ms(response.p99_ns), count(tally.failed)];
        Row::of([target.url.clone()].into_iter().chain(figures))
    });
    page.table("By server", &["", "tx/s", "stmt/s", "p50 ms", "p99 ms", "failed"], rows);
}

fn errors(page: &mut Html, errors: &[ErrorFindings]) {
    if errors.is_empty() {
        return;
    }
    let rows = errors.iter().map(|error| {
        let code = if error.code.is_empty() { "no code" } else { &error.code };
        let name = format!("{} {} ({})", error.class, code, error.origin);
        Row::of([name, count(error.count), clean(&error.message, TEXT_WIDTH)]).with_words_from(2)
    });
    page.table("Errors, whatever became of them", &["error", "count", "in the server's words"], rows);
}

fn self_check(page: &mut Html, findings: &Findings) {
    page.raw("<h3>The generator itself</h3>\n");
    let embedded = findings.targets.iter().any(|target| target.place == Place::Embedded);
    let rows = findings.stages.iter().map(|stage| {
        let name = crate::chart::sessions(stage.sessions);
        let Some(generator) = stage.generator else { return Row::of([name, NONE.into()]) };
        Row::of([
            name,
            generator.cpu_ns_per_statement.map_or(NONE.into(), micros),
            percent(generator.cpu_share_of_machine),
            percent(generator.busiest_worker),
            generator.waited_for_cpu.map_or(NONE.into(), percent),
            ms(stage.total.lag.p99_ns),
            ms(stage.total.lag.max_ns),
            generator.switches_per_statement.map_or(NONE.into(), figure),
            generator.events_per_turn.filter(|_| !embedded).map_or(NONE.into(), figure),
            count(generator.memory_max_bytes >> 20),
        ])
    });
    let head = [
        "",
        "CPU µs/stmt",
        "of the machine",
        "busiest worker",
        "waited for a CPU",
        "lag p99 ms",
        "lag max ms",
        "switches/stmt",
        "events/turn",
        "MiB",
    ];
    let database = if embedded { "The database ran in the same process and is included." } else { "" };
    page.table(database, &head, rows);
}

fn setup(page: &mut Html, entry: &Entry) {
    let findings = &entry.findings;
    page.raw("<h3>Run it again</h3>\n<pre>").text(&command_line(findings), COMMAND_WIDTH).raw("</pre>\n");
    page.raw("<h3>What ran where</h3>\n");
    let host = &findings.host;
    let gib = if host.memory_bytes > 0 {
        format!(", {} GiB", figure(host.memory_bytes as f64 / f64::from(1 << 30)))
    } else {
        String::new()
    };
    let options: Vec<String> =
        findings.options.iter().take(ROWS_MAX).map(|(name, value)| format!("{name}={}", option_value(value))).collect();
    let event_loop = findings.event_loop.as_ref().map(|event_loop| match &event_loop.fallback {
        Some(why) => format!("{}; io_uring not used: {why}", event_loop.backend),
        None => event_loop.backend.clone(),
    });
    page.facts(&[
        ("record", entry.file.clone()),
        ("started", findings.started.to_string()),
        ("seed", findings.seed.to_string()),
        ("options", options.join(", ")),
        ("session SQL", findings.session_sql.join("; ")),
        ("generator", format!("{}, {}, {}, {} CPUs{gib}", host.name, host.kernel, host.cpu_model, findings.cpus)),
        ("event loop", event_loop.unwrap_or_default()),
    ]);
    for target in findings.targets.iter().take(ROWS_MAX) {
        let place = match target.place {
            Place::Remote => "",
            Place::Local => "on the generator's machine",
            Place::Embedded => "inside the generator",
        };
        let settings: Vec<String> =
            target.settings.iter().take(ROWS_MAX).map(|(name, value)| format!("{name} = {value}")).collect();
        page.facts(&[
            ("server", format!("{} {}", target.product, target.version)),
            ("at", target.url.clone()),
            ("where", place.into()),
            ("encryption", target.tls.clone().unwrap_or_default()),
            ("settings", settings.join(" · ")),
        ]);
    }
}

/// The command, to be pasted into a shell.
pub(crate) fn command_line(findings: &Findings) -> String {
    let plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c));
    let quoted = |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) };
    findings.command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
