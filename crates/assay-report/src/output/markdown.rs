//! A report as Markdown, for an issue, a pull request or a wiki.
//!
//! Tables and words only. Text from records cannot become markup, a link or a mention: every character with a meaning
//! in CommonMark or on the sites that show it is escaped.

use crate::findings::report::{Report, ReportEntry};
use crate::findings::run::Findings;
use crate::findings::suites::suites as suites_of;
use crate::output::comparison_text::comparison_text;
use crate::output::shown::{Shown, shown_markdown};
use crate::plain::clean;
use crate::tables::agents::agents;
use crate::tables::as_markdown::escaped;
use crate::tables::cases::cases;
use crate::tables::latency::responses;
use crate::tables::stages::stages;
use crate::tables::suites::{queries, side_by_side};
use crate::tables::work::errors;
use crate::words::cases::notes;
use crate::words::explanation::paragraph;
use crate::words::isolation::isolation_examples;
use crate::words::run::{command_line, host, per_second, per_second_of, sessions, started};
use crate::words::suites;
use crate::words::summary::{generator_figures, summary, title};
use crate::words::warning::warnings_by_hint;

const PARAGRAPH_WIDTH: usize = 4000;
const TEXT_WIDTH: usize = 200;
const COMMAND_WIDTH: usize = 4000;
const ENTRIES_MAX: usize = 200;

/// The Markdown; requested charts and tables come first.
pub fn markdown(report: &Report, asked: &[Shown]) -> String {
    let mut text = format!("# {}\n", escaped(&title(report), TEXT_WIDTH));
    for sentence in summary(report) {
        text += &format!("\n{}\n", escaped(&sentence, 1000));
    }
    for (causes, hint) in warnings_by_hint(report.runs(), |_| true).into_iter().take(ENTRIES_MAX) {
        let hint = if hint.is_empty() { hint } else { format!(" What to do: {hint}.") };
        text += &format!("\n> **Warning:** {}\n", escaped(&format!("{}.{hint}", causes.join("; ")), 1000));
    }
    if !asked.is_empty() {
        text += &format!("\n## Results\n\n{}", shown_markdown(asked));
    }
    if let Some(found) = suites_of(report) {
        text += "\n## Queries side by side\n";
        for sentence in suites::comparison(&found) {
            text += &format!("\n{}\n", escaped(&sentence, 1000));
        }
        side_by_side(&found).iter().for_each(|table| text += &format!("\n{}", table.markdown()));
    }
    if let [_, _, ..] = &report.entries[..] {
        text += "\n## Records side by side\n\n";
        let rows = report.entries.iter().flat_map(|entry| {
            let ladder = entry.findings.stages.len() > 1;
            entry.findings.stages.iter().map(move |stage| match ladder {
                true => (format!("{}, {}", entry.name, sessions(stage.sessions)), stage),
                false => (entry.name.clone(), stage),
            })
        });
        text += &stages("record", per_second_of(report.entries.iter().map(|entry| &entry.findings)), rows).markdown();
    }
    for (comparison, why) in report.comparisons.iter().zip(&report.explanations) {
        text += &format!("\n## Compared: {}\n\n", escaped(&comparison.candidate.name, TEXT_WIDTH));
        text += &block("text", &comparison_text(comparison));
        if let Some(why) = why.as_ref().filter(|why| why.differs) {
            text += &format!("\n{}\n", escaped(&paragraph(why).join(" "), PARAGRAPH_WIDTH));
        }
    }
    for entry in report.entries.iter().take(ENTRIES_MAX) {
        text += &of_entry(entry, report.entries.len() > 1, report.agents);
    }
    text
}

fn of_entry(entry: &ReportEntry, several: bool, with_agents: bool) -> String {
    let findings = &entry.findings;
    if let Some(found) = &findings.cases {
        let head = if several { format!("\n## {}\n", escaped(&entry.name, TEXT_WIDTH)) } else { String::new() };
        let (table, notes) = match found.suite {
            Some(_) => (queries(found), suites::notes(found)),
            None => (cases(found), notes(found)),
        };
        let notes: String = notes.iter().map(|note| format!("\n{}\n", escaped(note, 1000))).collect();
        return format!("{head}\n{}{notes}{}", table.markdown(), setup(findings));
    }
    let mut text = match several {
        true => format!("\n## {}\n", escaped(&entry.name, TEXT_WIDTH)),
        false => {
            let rows = findings.stages.iter().map(|stage| (sessions(stage.sessions), stage));
            format!("\n{}", stages("", per_second(findings.task.rate()), rows).markdown())
        }
    };
    if let Some(found) = &findings.isolation {
        for words in isolation_examples(found) {
            let lines: Vec<String> = words.lines.iter().map(|line| format!("* {}\n", escaped(line, 1000))).collect();
            text += &format!("\n{}\n\n{}", escaped(&words.heading, TEXT_WIDTH), lines.concat());
        }
    }
    if let Some(stage) = findings.main_stage() {
        text += &format!("\nResponse times with {}:\n\n", sessions(stage.sessions));
        text += &responses(stage, findings).markdown();
    }
    if let Some(errors) = errors(&findings.errors) {
        text += &format!("\n{}", errors.markdown());
    }
    if let Some(agents) = agents(findings).filter(|_| with_agents) {
        text += &format!("\n{}", agents.markdown());
    }
    text + &setup(findings)
}

fn setup(findings: &Findings) -> String {
    let mut facts = vec![format!("started {}, {}, seed {}", findings.started, findings.tool, findings.seed)];
    facts.push(format!("generator: {}", host(findings)));
    facts.extend(findings.stages.last().and_then(generator_figures).map(|figures| format!("generator: {figures}")));
    for target in findings.targets.iter().take(ENTRIES_MAX) {
        facts.push(format!("server: {} {} at {}", target.product, target.version, target.url));
    }
    let started: Vec<String> = started(findings).into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    if !started.is_empty() {
        facts.push(format!("started for this run: {}", started.join(", ")));
    }
    let facts: Vec<String> = facts.iter().map(|fact| format!("* {}\n", escaped(fact, TEXT_WIDTH))).collect();
    format!("\n{}\n{}", facts.concat(), block("sh", &clean(&command_line(findings), COMMAND_WIDTH)))
}

/// A code block that no run of backquotes in `text` can end.
fn block(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}
