//! A report as Markdown, for an issue, a pull request or a wiki.
//!
//! Tables and words only. Text from records cannot become markup, a link or a mention: every character that means
//! something to CommonMark or to the places that show it is escaped.

use crate::cells::{NONE, clean, count, figure, ms, percent};
use crate::chart::sessions;
use crate::comparison_text::comparison_text;
use crate::findings::{Findings, StageFindings};
use crate::page::{command_line, stage_cells};
use crate::report::{Entry, Report};
use crate::text::warnings_by_hint;
use crate::words::{summary, title};

const TEXT_WIDTH: usize = 200;
const COMMAND_WIDTH: usize = 4000;
const ROWS_MAX: usize = 200;

/// The Markdown.
pub fn markdown(report: &Report) -> String {
    let mut text = format!("# {}\n", escaped(&title(report), TEXT_WIDTH));
    for sentence in summary(report) {
        text += &format!("\n{}\n", escaped(&sentence, 1000));
    }
    let several = report.entries.len() > 1;
    let runs = report.entries.iter().map(|entry| (if several { entry.name.as_str() } else { "" }, &entry.findings));
    for (causes, hint) in warnings_by_hint(runs).into_iter().take(ROWS_MAX) {
        let hint = if hint.is_empty() { hint } else { format!(" What to do: {hint}.") };
        text += &format!("\n> **Warning:** {}\n", escaped(&format!("{}.{hint}", causes.join("; ")), 1000));
    }
    if let [_, _, ..] = &report.entries[..] {
        text += "\n## Records side by side\n\n";
        text += &stages(report.entries.iter().flat_map(|entry| {
            let ladder = entry.findings.stages.len() > 1;
            entry.findings.stages.iter().map(move |stage| match ladder {
                true => (format!("{}, {}", entry.name, sessions(stage.sessions)), stage),
                false => (entry.name.clone(), stage),
            })
        }));
    }
    for comparison in &report.comparisons {
        text += &format!("\n## Compared: {}\n\n", escaped(&comparison.candidate.name, TEXT_WIDTH));
        text += &block("text", &comparison_text(comparison));
    }
    for entry in report.entries.iter().take(ROWS_MAX) {
        of_entry(&mut text, entry, report.entries.len() > 1);
    }
    text
}

fn of_entry(text: &mut String, entry: &Entry, several: bool) {
    let findings = &entry.findings;
    if several {
        *text += &format!("\n## {}\n", escaped(&entry.name, TEXT_WIDTH));
    } else {
        *text += "\n";
        *text += &stages(findings.stages.iter().map(|stage| (sessions(stage.sessions), stage)));
    }
    if let Some(stage) = findings.stages.iter().find(|stage| stage.best).or(findings.stages.last()) {
        *text += &format!("\nResponse times with {}, in ms:\n\n", sessions(stage.sessions));
        *text += &types(stage);
    }
    if !findings.errors.is_empty() {
        *text += "\n| error | count | in the server's words |\n| --- | ---: | --- |\n";
        for error in findings.errors.iter().take(ROWS_MAX) {
            let name = escaped(&format!("{} {} ({})", error.class, error.code, error.origin), TEXT_WIDTH);
            *text += &format!("| {name} | {} | {} |\n", count(error.count), escaped(&error.message, TEXT_WIDTH));
        }
    }
    *text += &setup(findings);
}

fn stages<'a>(rows: impl Iterator<Item = (String, &'a StageFindings)>) -> String {
    let mut text = String::from("| | tx/s | stmt/s | p50 ms | p95 ms | p99 ms | slowest ms | failed | CPU µs/stmt |\n");
    text += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    for (name, stage) in rows.take(ROWS_MAX) {
        let cells = stage_cells(escaped(&name, TEXT_WIDTH), stage);
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

fn types(stage: &StageFindings) -> String {
    let total = &stage.total;
    let mut text = String::from("| | count | min | mean | p50 | p90 | p95 | p99 | p99.9 | slowest |\n");
    text += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    let own = total.types.iter().take(ROWS_MAX).map(|one| (one.name.as_str(), &one.response));
    let all = (total.types.len() > 1).then_some(("all transactions", &total.response));
    for (name, latencies) in own.chain(all).chain([("service time", &total.service), ("our lag", &total.lag)]) {
        let cells = [
            escaped(name, TEXT_WIDTH),
            count(latencies.count),
            ms(latencies.min_ns),
            latencies.mean_ns.map_or(NONE.into(), |ns| figure(ns / 1e6)),
            ms(latencies.p50_ns),
            ms(latencies.p90_ns),
            ms(latencies.p95_ns),
            ms(latencies.p99_ns),
            ms(latencies.p999_ns),
            ms(latencies.max_ns),
        ];
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

fn setup(findings: &Findings) -> String {
    let host = &findings.host;
    let mut facts = vec![format!("started {}, {}, seed {}", findings.started, findings.tool, findings.seed)];
    facts.push(format!("generator: {}, {}, {}, {} CPUs", host.name, host.kernel, host.cpu_model, findings.cpus));
    if let Some((stage, generator)) = findings.stages.last().and_then(|stage| Some((stage, stage.generator?))) {
        facts.push(format!(
            "generator: {} of the machine, busiest worker {} busy, lag p99 {} ms",
            percent(generator.cpu_share_of_machine),
            percent(generator.busiest_worker),
            ms(stage.total.lag.p99_ns)
        ));
    }
    for target in findings.targets.iter().take(ROWS_MAX) {
        facts.push(format!("server: {} {} at {}", target.product, target.version, target.url));
    }
    let facts: Vec<String> = facts.iter().map(|fact| format!("* {}\n", escaped(fact, TEXT_WIDTH))).collect();
    format!("\n{}\n{}", facts.concat(), block("sh", &clean(&command_line(findings), COMMAND_WIDTH)))
}

/// A block of code that no run of backquotes in `text` can end.
fn block(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

fn escaped(text: &str, width: usize) -> String {
    let mut escaped = String::new();
    let text = clean(text, width);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            // A mention would call somebody, an address would become a link.
            '@' => escaped.push_str("&#64;"),
            ':' if rest.peek() == Some(&'/') => escaped.push_str("&#58;"),
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '$' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}
