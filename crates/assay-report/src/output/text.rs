//! The final report as text: the result first, then warnings, then tables. Units are in the column headers.
//!
//! Combines what `words` and `tables` created, and computes nothing. A run with several stages shows a table of them,
//! then the details of the best one; the JSON has the details of every stage.

use assay_record::{OptionValue, Status, Suite};

use crate::digits::{count, figure, ms, plural, seconds};
use crate::findings::cases::CasesFindings;
use crate::findings::run::{Findings, Task};
use crate::findings::stage::StageFindings;
use crate::findings::tally::TypeFindings;
use crate::findings::warning::{Warning, has_lower_bounds};
use crate::plain::{DOT, View, clean, wrap_to};
use crate::tables;
use crate::tables::agents::agents;
use crate::tables::latency::responses;
use crate::tables::stages::{looks, stages};
use crate::tables::table::{NAME_WIDTH, Table, TableCell, TableColumn};
use crate::tables::telemetry::metrics;
use crate::tables::work;
use crate::words::audit::audit_words;
use crate::words::capacity::capacity_words;
use crate::words::cases;
use crate::words::facts::{Facts, fallback, generator, undone};
use crate::words::isolation::{isolation_answer, isolation_examples, isolation_remarks};
use crate::words::run::{
    client, clients, growth, is_given, load, note_words, option_value, per_second, servers, servers_in_short, size,
    started, work as work_name,
};
use crate::words::steadiness::{latency_intervals, over_time};
use crate::words::suites;
use crate::words::telemetry::telemetry;
use crate::words::verdict::headline;
use crate::words::warning::warnings_by_hint;
use crate::words::window::window_sentence;

const FACT_WIDTH: usize = 80;
const FAILURE_LINES_MAX: usize = 40;
/// Width of names before facts.
const LABEL_WIDTH: usize = 12;
/// Width of a bar in the table of a ladder.
const BAR_WIDTH: usize = 12;

/// The final report for a pipe.
pub fn text(findings: &Findings) -> String {
    text_in(findings, View::default())
}

/// The final report for a view: what ran and the answer, what makes the answer doubtful, the table that it comes from,
/// then everything else.
pub fn text_in(findings: &Findings, view: View) -> String {
    if let Some(cases) = &findings.cases {
        let text = match &cases.suite {
            Some(suite) => queries(findings, (cases, suite), view),
            None => statements(findings, cases, view),
        };
        return if view.color { colored(&text, "") } else { text };
    }
    let mut text = isolation_head(findings, view);
    text += &head(findings, view);
    text += &isolation(findings, view);
    if let Some(failure) = &findings.failure {
        text.push('\n');
        for (number, line) in failure.lines().take(FAILURE_LINES_MAX).enumerate() {
            let label = if number == 0 { "error: " } else { "  " };
            text += &wrap_to(view.width, label, clean(line, 2000).split(' '), " ");
        }
    }
    // A run whose first transactions end it has no figures.
    let has_figures = |stage: &&StageFindings| findings.status != Status::Failed || stage.total.transactions > 0;
    let stage = findings.main_stage().filter(has_figures);
    match stage.filter(|stage| stage.measured_ns > 0) {
        Some(stage) => {
            text += &answer(stage, findings, view);
            text += &warnings(findings, Warning::is_headline, view);
            text += &steps(findings).map(|table| format!("\n{}", table.text(view.width))).unwrap_or_default();
            let told = told(stage, findings, view);
            if !told.is_empty() {
                text += &format!("\n{told}");
            }
            text += &warnings(findings, |warning| !warning.is_headline(), view);
        }
        None => text += &warnings(findings, |warning| !matches!(warning, Warning::EndedEarly { .. }), view),
    }
    if let Some(stage) = stage {
        text += &details(stage, findings, view);
    }
    if view.agents {
        text += &below(agents(findings), view);
    }
    text += &below(work::errors(&findings.errors), view);
    text += &format!("\n{}", origin(findings, view));
    let headline = stage.map_or_else(String::new, |stage| headline(stage, findings));
    if view.color { colored(&text, &headline) } else { text }
}

/// The agents of a fleet as a table; empty if there are none.
pub fn agents_text(findings: &Findings, view: View) -> String {
    agents(findings).map(|table| table.text(view.width)).unwrap_or_default()
}

/// The answer to whether the database kept its promise, which comes first.
fn isolation_head(findings: &Findings, view: View) -> String {
    let Some(found) = &findings.isolation else { return String::new() };
    wrap_to(view.width, "", isolation_answer(found).split(' '), " ") + "\n"
}

/// What else the history shows, and counterexamples.
fn isolation(findings: &Findings, view: View) -> String {
    let Some(found) = &findings.isolation else { return String::new() };
    let mut text = String::new();
    for remark in isolation_remarks(found) {
        text += &wrap_to(view.width, "isolation: ", remark.split(' '), " ");
    }
    for words in isolation_examples(found) {
        text += &format!("\n{}", wrap_to(view.width, "", words.heading.split(' '), " "));
        for line in words.lines {
            text += &wrap_to(view.width, "  ", line.split(' '), " ");
        }
    }
    text
}

/// Queries of `assay olap`.
fn queries(findings: &Findings, (found, suite): (&CasesFindings, &Suite), view: View) -> String {
    let facts = [clean(&findings.workload, FACT_WIDTH), encrypted_servers(findings, view)];
    let mut text = wrap_to(view.width, "", facts.into_iter().chain(suites::how(found, suite)), DOT);
    text += &below(Some(tables::suites::queries(found)), view);
    let notes = suites::notes(found);
    let notes: String = notes.iter().map(|note| wrap_to(view.width, "", note.split(' '), " ")).collect();
    if !notes.is_empty() {
        text += &format!("\n{notes}");
    }
    text += &counters_and_plans(found, view);
    text + &format!("\n{}", origin(findings, view))
}

/// What servers said about statements besides their rows.
fn counters_and_plans(found: &CasesFindings, view: View) -> String {
    let plans = found.cases.iter().map(cases::plan_lines).filter(|lines| !lines.is_empty());
    let plans: String = plans.map(|lines| format!("\n{}\n", lines.join("\n"))).collect();
    below(tables::cases::counters(found), view) + &plans
}

/// Statements compared by `assay sql`.
fn statements(findings: &Findings, found: &CasesFindings, view: View) -> String {
    let facts = [clean(&findings.workload, FACT_WIDTH), encrypted_servers(findings, view)];
    let mut text = wrap_to(view.width, "", facts.into_iter().chain(cases::how(found)), DOT);
    text.push('\n');
    for case in &found.cases {
        let label = format!("{}  ", clean(&case.name, NAME_WIDTH));
        text += &wrap_to(view.width, &label, cases::statement(case).split(' '), " ");
    }
    text += &below(Some(tables::cases::cases(found)), view);
    let notes: String = cases::notes(found).iter().map(|note| wrap_to(view.width, "", note.split(' '), " ")).collect();
    if !notes.is_empty() {
        text += &format!("\n{notes}");
    }
    text += &counters_and_plans(found, view);
    text += &format!("\n{}", origin(findings, view));
    if let Some(words) = cases::conclusion(found) {
        text += &format!("\n{}", wrap_to(view.width, "", words.split(' '), " "));
    }
    text
}

/// What ran: workload, server, size of the tables, sessions, load.
fn head(findings: &Findings, view: View) -> String {
    let sessions = match &findings.stages[..] {
        [] => "no sessions".into(),
        [one] => clients(findings, one.sessions),
        stages => {
            let mut numbers: Vec<u32> = stages.iter().map(|stage| stage.sessions).collect();
            if findings.capacity.is_some() {
                // The table has them.
                numbers.sort_unstable();
            }
            numbers.dedup();
            match &numbers[..] {
                [one] => clients(findings, *one),
                _ => {
                    let numbers: Vec<String> = numbers.iter().map(|number| count((*number).into())).collect();
                    format!("{} {}s", numbers.join(", "), client(findings))
                }
            }
        }
    };
    let mut facts = vec![work_name(findings, FACT_WIDTH)];
    facts.extend((findings.task != Task::Machine).then(|| encrypted_servers(findings, view)));
    facts.extend(size(findings));
    facts.push(sessions);
    facts.extend(Some(load(findings)).filter(|load| !load.is_empty()));
    facts.extend((!findings.agents.is_empty()).then(|| plural(findings.agents.len() as u64, "agent")));
    let each = if findings.stages.len() > 1 { " each" } else { "" };
    facts.extend(findings.limit.time_ns.map(|time| seconds(time) + each));
    facts.extend(findings.limit.transactions.map(|most| plural(most, "transaction") + each));
    if findings.warmup_ns > 0 {
        facts.push(format!("warm-up {}", seconds(findings.warmup_ns)));
    }
    facts.extend(rows(findings, view));
    wrap_to(view.width, "", facts, DOT)
}

/// How the run ended, when it started, and what it takes to repeat it.
fn origin(findings: &Findings, view: View) -> String {
    ended(findings, view) + &given(findings, view)
}

/// Outcome and start of the run.
fn ended(findings: &Findings, view: View) -> String {
    let took = seconds(findings.elapsed_ns);
    let ended = match findings.status {
        Status::Running => format!("not finished, {took} recorded"),
        Status::Complete => format!("complete in {took}"),
        Status::Interrupted => format!("interrupted after {took}"),
        Status::Failed => format!("failed after {took}"),
    };
    let facts = [ended, format!("started {}", findings.started), clean(&findings.tool, NAME_WIDTH)];
    wrap_to(view.width, "", facts, DOT)
}

/// Seed, options and tags.
fn given(findings: &Findings, view: View) -> String {
    let option =
        |(name, value): (&String, &OptionValue)| format!("{}={}", clean(name, NAME_WIDTH), option_value(value));
    let options = findings.options.iter().filter(|(name, _)| view.verbose || is_given(findings, name));
    let facts = [format!("seed {}", findings.seed)].into_iter().chain(options.map(option));
    let mut text = wrap_to(view.width, "", facts, DOT);
    let started = started(findings);
    if !started.is_empty() {
        let fact = |(name, value): &(String, String)| clean(&format!("{name} {value}"), FACT_WIDTH);
        text += &wrap_to(view.width, "server: ", started.iter().map(fact), ", ");
    }
    if !findings.tags.is_empty() {
        let tag =
            |(name, value): (&String, &String)| format!("{}={}", clean(name, NAME_WIDTH), clean(value, FACT_WIDTH));
        text += &wrap_to(view.width, "tags: ", findings.tags.iter().map(tag), ", ");
    }
    let notes = note_words(findings);
    if !notes.is_empty() {
        text += &wrap_to(view.width, "notes: ", notes, DOT);
    }
    text
}

/// The distribution of rows, if it is not the default.
fn rows(findings: &Findings, view: View) -> Option<String> {
    let name = findings.distribution.as_ref().filter(|name| view.verbose || *name != "uniform")?;
    Some(format!("{} rows", clean(name, NAME_WIDTH)))
}

/// The server, without what its packager appended to the version unless everything is shown.
fn encrypted_servers(findings: &Findings, view: View) -> String {
    let tls = match &findings.targets[..] {
        [target] if !target.product.is_empty() => target.tls.as_ref(),
        _ => None,
    };
    let servers = if view.verbose { servers(findings) } else { servers_in_short(findings) };
    servers + &tls.map(|tls| format!(" ({})", clean(tls, 40))).unwrap_or_default()
}

/// The result in a line or two, and which part of the run it covers.
fn answer(stage: &StageFindings, findings: &Findings, view: View) -> String {
    let mut text = match &findings.capacity {
        Some(found) => wrap_to(view.width, "", capacity_words(found).split(' '), " "),
        None => measured(stage, findings, view),
    };
    if let Some(growth) = growth(findings) {
        text += &wrap_to(view.width, "", growth.split(' '), " ");
    }
    if let Some(window) = window_sentence(&findings.stages) {
        text += &wrap_to(view.width, "", window.split(' '), " ");
    }
    text
}

/// Throughput and latencies; a workload's own measure of throughput comes first.
fn measured(stage: &StageFindings, findings: &Findings, view: View) -> String {
    let throughput = format!("{} {}", figure(stage.total.tps), per_second(findings.task.rate()));
    let with = (findings.stages.len() > 1).then(|| format!("with {}", clients(findings, stage.sessions)));
    if findings.task == Task::Machine && stage.total.types.len() > 1 {
        // Latencies of reads and of syncs have no meaning together.
        let of = |one: &TypeFindings| format!("{} {}/s", clean(&one.name, NAME_WIDTH), figure(one.tps));
        let facts = with.into_iter().chain(stage.total.types.iter().filter(|one| one.has_ended()).map(of));
        return wrap_to(view.width, &format!("{throughput:LABEL_WIDTH$}"), facts, DOT);
    }
    let bound = if has_lower_bounds(stage) { "≥" } else { "" };
    let shown = |latencies: &[(&str, Option<u64>)]| {
        let known = latencies.iter().filter(|(_, ns)| ns.is_some());
        let mut facts: Vec<String> = known.map(|(name, ns)| format!("{name} {bound}{}", ms(*ns))).collect();
        if let Some(last) = facts.last_mut() {
            last.push_str(" ms");
        }
        facts
    };
    let Some(own) = stage.rates.first() else {
        let response = &stage.total.response;
        let latencies =
            [("p50", response.p50_ns), ("p95", response.p95_ns), ("p99", response.p99_ns), ("max", response.max_ns)];
        let label = format!("{:LABEL_WIDTH$}", format!("{throughput} "));
        return wrap_to(view.width, &label, with.into_iter().chain(shown(&latencies)), DOT);
    };
    let label = format!("{:LABEL_WIDTH$}", format!("{} {} ", figure(own.rate), clean(&own.name, NAME_WIDTH)));
    let mut facts: Vec<String> = with.into_iter().chain([throughput]).collect();
    if let Some(of_type) = own.of.as_ref().and_then(|name| stage.total.types.iter().find(|one| one.name == *name)) {
        let latencies = &of_type.response;
        let mut known = shown(&[("p95", latencies.p95_ns), ("p99", latencies.p99_ns)]).into_iter();
        facts.extend(known.next().map(|first| format!("{} {first}", clean(&of_type.name, NAME_WIDTH))));
        facts.extend(known);
    }
    wrap_to(view.width, &label, facts, DOT)
}

/// Steadiness of throughput, work that was not done, and the audit.
fn told(stage: &StageFindings, findings: &Findings, view: View) -> String {
    let unit = per_second(findings.task.rate());
    let unseen = !view.verbose && stage.audit.iter().any(|rule| !rule.is_alarming());
    let hint = unseen.then(|| "`assay show -v` lists every rule".to_owned());
    let audit = audit_words(&stage.audit).map(|words| ("audit", [words].into_iter().chain(hint).collect()));
    let told = over_time(stage).into_iter().chain(undone(stage)).chain(audit);
    let told = told.map(|(name, facts)| (name, facts.iter().map(|fact| fact.replace("tx/s", unit)).collect()));
    listed(told, view)
}

fn warnings(findings: &Findings, which: fn(&Warning) -> bool, view: View) -> String {
    let mut text = String::new();
    for (causes, hint) in warnings_by_hint([("", findings)], which) {
        text.push('\n');
        for cause in causes {
            text += &wrap_to(view.width, "! ", cause.split(' '), " ");
        }
        if !hint.is_empty() {
            text += &wrap_to(view.width, "  hint: ", hint.split(' '), " ");
        }
    }
    text
}

/// The steps of a ladder, with a bar for each one's throughput, or of a search; `None` if there was only one.
fn steps(findings: &Findings) -> Option<Table> {
    let all = &findings.stages;
    if let Some(found) = &findings.capacity {
        return Some(looks(found, findings));
    }
    if all.len() < 2 {
        return None;
    }
    let rows = all.iter().map(|stage| (count(stage.sessions.into()), stage));
    let mut table = stages(&format!("{}s", client(findings)), per_second(findings.task.rate()), rows);
    let most = all.iter().map(|stage| stage.total.tps).fold(f64::MIN_POSITIVE, f64::max);
    table.columns.insert(1, TableColumn::figures("").from(80));
    for (row, stage) in table.rows.iter_mut().zip(all) {
        let bar = "█".repeat((stage.total.tps / most * BAR_WIDTH as f64).round() as usize);
        row.cells.insert(1, TableCell::Words(format!("{bar:BAR_WIDTH$}")));
    }
    Some(table)
}

fn details(stage: &StageFindings, findings: &Findings, view: View) -> String {
    let mut text = String::from("\n");
    if findings.stages.len() > 1 {
        let rate = stage.open.filter(|_| findings.capacity.is_some());
        let rate = rate.map(|open| format!("at {} tx/s due, ", figure(open.rate_per_s))).unwrap_or_default();
        let clients = clients(findings, stage.sessions);
        text += &format!("{rate}with {clients}, for {}:\n\n", seconds(stage.measured_ns));
    }
    if findings.capacity.is_some() {
        text += &format!("{}\n", measured(stage, findings, view));
    }
    text += &work::throughput(&stage.total, findings.task, view.verbose).text(view.width);
    text += &below(work::outages(&stage.outages, &findings.targets), view);
    text += &below(work::rates(&stage.rates), view);
    text += &below(work::counters(&stage.counters), view);
    text += &below(work::types(stage, findings.task), view);
    text += &below(work::targets(&findings.targets, &stage.targets), view);
    text += &below(Some(responses(stage, findings)), view);
    let known = latency_intervals(stage);
    if !known.is_empty() {
        text += &listed([("at 95%", known)], view);
    }
    let read = telemetry(stage, findings);
    if !read.is_empty() {
        text += &format!("\n{}", listed(read, view));
    }
    if findings.sampling.as_ref().is_some_and(|sampling| sampling.full) {
        text += &stage.telemetry.iter().map(|scope| below(Some(metrics(scope)), view)).collect::<String>();
    }
    let generator = generator(stage, findings);
    if !generator.is_empty() && (view.verbose || findings.warnings.iter().any(Warning::is_of_generator)) {
        text += &format!("\n{}", listed(generator, view));
        if let Some(why) = fallback(findings) {
            text += &listed([("io_uring", vec![why])], view);
        }
    }
    text + &below(work::audit(&stage.audit, view.verbose), view)
}

fn listed(facts: impl IntoIterator<Item = Facts>, view: View) -> String {
    let line = |(name, facts): Facts| {
        // A long fact is broken between words; otherwise a line has whole facts.
        let words = facts.iter().any(|fact| fact.chars().count() + LABEL_WIDTH > view.width);
        let label = format!("{name:LABEL_WIDTH$}");
        if words {
            wrap_to(view.width, &label, facts.join(DOT).split(' '), " ")
        } else {
            wrap_to(view.width, &label, facts, DOT)
        }
    };
    facts.into_iter().map(line).collect()
}

/// A table after an empty line.
fn below(table: Option<Table>, view: View) -> String {
    table.map(|table| format!("\n{}", table.text(view.width))).unwrap_or_default()
}

/// The headline in bold; warnings, hints, errors and verdicts in the colors used on stderr.
fn colored(text: &str, headline: &str) -> String {
    let paint = |color: &str, text: &str| format!("\u{1b}[{color}m{text}\u{1b}[0m");
    let line = |line: &str| match line {
        line if line.starts_with("! ") => paint("1;33", "!") + &line[1..],
        line if line.starts_with("  hint:") => paint("36", "  hint:") + &line["  hint:".len()..],
        line if line.starts_with("error:") => paint("1;31", "error:") + &line["error:".len()..],
        line if !headline.is_empty() && line.starts_with(headline) => paint("1", headline) + &line[headline.len()..],
        line if line.ends_with("FAILED") => line[..line.len() - "FAILED".len()].to_owned() + &paint("1;31", "FAILED"),
        line => line.replace("most tx/s", &paint("1;32", "most tx/s")),
    };
    text.lines().map(|one| line(one) + "\n").collect()
}
