//! A report in a few sentences.

use assay_record::Status;

use crate::digits::{count, figure, ms, percent, plural, seconds};
use crate::findings::comparison::Comparison;
use crate::findings::limit::limits;
use crate::findings::metric::{metric_over_trials, stage_sessions};
use crate::findings::report::{Report, ReportEntry};
use crate::findings::run::Findings;
use crate::findings::stage::StageFindings;
use crate::plain::clean;
use crate::words::capacity::capacity_words;
use crate::words::comparison::conclusion;
use crate::words::generator::limited;
use crate::words::isolation::isolation_answer;
use crate::words::run::{client, clients, error_name, load, number_of, rate_words, rate_words_of, servers, sessions};
use crate::words::steadiness::over_time;
use crate::words::window::window_sentence;

const NAME_WIDTH: usize = 80;
/// More settings than this are left to the tables.
const SETTINGS_MAX: usize = 8;

/// The subject of the report.
pub(crate) fn title(report: &Report) -> String {
    if let Some(title) = &report.title {
        return clean(title, 120);
    }
    let mut workloads: Vec<String> = report.entries.iter().map(|entry| clean(&entry.findings.workload, 60)).collect();
    workloads.dedup();
    let server = match report.entries.first().map(|entry| &entry.findings.targets[..]) {
        Some([target]) if !target.product.is_empty() => format!(" on {} {}", target.product, target.version),
        _ => String::new(),
    };
    let product = |entry: &ReportEntry| -> Vec<(String, String)> {
        entry.findings.targets.iter().map(|target| (target.product.clone(), target.version.clone())).collect()
    };
    let same = report.entries.iter().all(|entry| product(entry) == product(&report.entries[0]));
    match &workloads[..] {
        [workload] if same => clean(&format!("{workload}{server}"), 120),
        workloads => clean(&workloads.join(", "), 120),
    }
}

/// One paragraph for one record; a sentence about each of several.
pub fn summary(report: &Report) -> Vec<String> {
    if let Some(head) = &report.head {
        return head.clone();
    }
    let window = window_sentence(report.entries.iter().flat_map(|entry| &entry.findings.stages));
    sentences(report).into_iter().chain(window).collect()
}

fn sentences(report: &Report) -> Vec<String> {
    match &report.entries[..] {
        [] => vec!["No records.".into()],
        [entry] if entry.findings.cases.is_some() => Vec::new(),
        [entry] => [
            isolation(&entry.findings),
            what_ran(&entry.findings),
            outcome(&entry.findings),
            steadiness(&entry.findings),
            troubles(&entry.findings),
            generator(&entry.findings),
        ]
        .into_iter()
        .filter(|sentence| !sentence.is_empty())
        .collect(),
        entries => several(entries, report.settings).into_iter().chain(verdicts(&report.comparisons)).collect(),
    }
}

/// The verdict of every comparison; once if it is the same for every number of sessions.
fn verdicts(comparisons: &[Comparison]) -> Vec<String> {
    let of = |comparison: &Comparison| {
        let stages = comparison.stages.iter();
        let told: Vec<(u32, String)> = stages.map(|stage| (stage.sessions, conclusion(comparison, stage))).collect();
        match &told[..] {
            [(_, first), others @ ..] if others.iter().all(|(_, other)| other == first) => {
                vec![capitalized(first) + "."]
            }
            told => told.iter().map(|(number, words)| format!("With {}: {words}.", sessions(*number))).collect(),
        }
    };
    comparisons.iter().flat_map(of).take(SETTINGS_MAX).collect()
}

/// Starts a sentence: capitalizes the first letter.
pub(crate) fn capitalized(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

fn isolation(findings: &Findings) -> String {
    findings.isolation.as_ref().map_or(String::new(), |found| capitalized(&isolation_answer(found)) + ".")
}

fn what_ran(findings: &Findings) -> String {
    let server = servers(findings);
    let numbers: Vec<String> = findings.stages.iter().take(12).map(|stage| count(stage.sessions.into())).collect();
    let sessions = match findings.stages.len() {
        0 => "no sessions".into(),
        1 => clients(findings, findings.stages[0].sessions),
        _ if findings.stages.iter().all(|stage| stage.sessions == findings.stages[0].sessions) => {
            format!(
                "{} in {} stages",
                clients(findings, findings.stages[0].sessions),
                count(findings.stages.len() as u64)
            )
        }
        _ => format!("{} {}s, one after another", numbers.join(", "), client(findings)),
    };
    let each = if findings.stages.len() > 1 { " each" } else { "" };
    let length = findings.stages.first().map(|stage| format!("{}{each}", seconds(stage.measured_ns)));
    let agents = (!findings.agents.is_empty()).then(|| plural(findings.agents.len() as u64, "agent"));
    let facts = [load(findings)].into_iter().chain(agents).chain(length);
    let facts: Vec<String> = facts.filter(|fact| !fact.is_empty()).collect();
    let end = match findings.status {
        Status::Complete => "",
        Status::Running => " Its record has no end.",
        Status::Interrupted => " The run was interrupted before it was complete.",
        Status::Failed => " The run failed before it was complete.",
    };
    format!("{} ran on {server} with {sessions} ({}).{end}", clean(&findings.workload, NAME_WIDTH), facts.join(", "))
}

fn outcome(findings: &Findings) -> String {
    let Some(stage) = findings.main_stage() else { return "Nothing was measured.".into() };
    if let Some(found) = &findings.capacity {
        return capitalized(&capacity_words(found)) + ".";
    }
    let rate = format!("{} {}", figure(stage.total.tps), rate_words(findings.task.rate()));
    let begin = match stage.best {
        true => format!("The highest throughput was with {}: {rate}", clients(findings, stage.sessions)),
        false => format!("Throughput was {rate}"),
    };
    begin + &times(stage) + "." + &knee(findings)
}

fn knee(findings: &Findings) -> String {
    let knee = findings.stages.iter().find(|stage| stage.knee);
    knee.map(|stage| format!(" Beyond {}, throughput hardly grew.", clients(findings, stage.sessions)))
        .unwrap_or_default()
}

/// Steadiness of the stage that `outcome` describes.
fn steadiness(findings: &Findings) -> String {
    let told = findings.main_stage().map(over_time).unwrap_or_default();
    let Some((_, facts)) = told.first() else { return String::new() };
    let facts = facts.join(", ");
    match facts.split_once([':', ',']) {
        Some(("unknown", why)) => format!("Steady state unknown:{why}."),
        Some(("no", why)) => format!("Not steady:{why}."),
        Some(("yes", since)) => format!("Steady{since}."),
        _ => format!("Steady: {facts}."),
    }
}

fn times(stage: &StageFindings) -> String {
    let response = &stage.total.response;
    match (response.p50_ns, response.p99_ns) {
        (Some(_), Some(_)) => {
            format!(", half of them within {} ms and 99% within {} ms", ms(response.p50_ns), ms(response.p99_ns))
        }
        (Some(_), None) => format!(", half of them within {} ms", ms(response.p50_ns)),
        _ => String::new(),
    }
}

fn troubles(findings: &Findings) -> String {
    let sum = |of: fn(&StageFindings) -> u64| findings.stages.iter().map(of).fold(0, u64::saturating_add);
    let (failed, errors) = (sum(|stage| stage.total.failed), sum(|stage| stage.total.errors));
    match (failed, findings.errors.first()) {
        (0, None) => "No failed transactions and no errors.".into(),
        (failed, first) => {
            let most = if findings.errors.len() > 1 { "most often " } else { "" };
            let often = first.map(|error| format!(", {most}{}", error_name(error))).unwrap_or_default();
            let failed = if failed == 0 { "No transaction".to_owned() } else { number_of(failed, "transaction") };
            format!("{failed} failed; {}{often}.", number_of(errors, "error"))
        }
    }
}

fn generator(findings: &Findings) -> String {
    let Some(stage) = findings.stages.last() else { return String::new() };
    let Some(figures) = generator_figures(stage) else { return "The generator's own cost is unknown.".into() };
    if findings.is_embedded() {
        return format!("The database ran inside the generator; the figures include both: {figures}.");
    }
    match &limits(findings)[..] {
        [] => format!("The generator was not the bottleneck: {figures}."),
        several => {
            let words: Vec<&str> = several.iter().map(|limit| limited(*limit)).collect();
            format!("{}, see the warnings: {figures}.", capitalized(&words.join(", ")))
        }
    }
}

/// The generator's use of resources in a stage, if known.
pub(crate) fn generator_figures(stage: &StageFindings) -> Option<String> {
    let generator = stage.generator?;
    let lag = stage.total.lag.p99_ns.map(|ns| format!(", its lag p99 was {} ms", ms(Some(ns))));
    Some(format!(
        "it used {} of the machine, its busiest worker was {} busy{}",
        percent(generator.cpu_share_of_machine),
        percent(generator.busiest_worker),
        lag.unwrap_or_default()
    ))
}

fn several(entries: &[ReportEntry], settings: usize) -> Vec<String> {
    let mut sentences = vec![match settings {
        1 => format!("{} records, trials of one setting. {}", entries.len(), what_ran(&entries[0].findings)),
        settings => format!("{} records of {settings} settings.", entries.len()),
    }];
    let mut seen = 0;
    for (number, entry) in entries.iter().enumerate() {
        if entries[..number].iter().any(|before| before.setting == entry.setting) {
            continue;
        }
        seen += 1;
        if seen > SETTINGS_MAX {
            sentences.push(format!("{} more settings are in the tables below.", settings - SETTINGS_MAX));
            break;
        }
        let trials: Vec<&ReportEntry> = entries.iter().filter(|other| other.setting == entry.setting).collect();
        sentences.push(match &trials[..] {
            [entry] => format!("{}: {}", entry.name, outcome(&entry.findings)),
            trials => {
                let name = entry.name.rsplit_once(", trial ").map_or("All of them", |(name, _)| name);
                format!("{name}: {}.", over_trials(trials))
            }
        });
    }
    sentences
}

/// Throughput over the trials of one setting, with the number of sessions that had the highest.
pub(crate) fn over_trials(trials: &[&ReportEntry]) -> String {
    let findings = || trials.iter().map(|entry| &entry.findings);
    let all = stage_sessions(findings());
    let tps = |sessions: &u32| Some((*sessions, metric_over_trials(findings(), *sessions, "tps")?));
    let best = all.iter().filter_map(tps).max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
    let Some((sessions_many, tps)) = best else { return "nothing was measured".into() };
    let known = match (tps.low, tps.high) {
        (Some(low), Some(high)) => format!("[{}, {}] at 95%", figure(low), figure(high)),
        _ => "too few for a confidence interval".into(),
    };
    let with = if all.len() > 1 { format!(" with {}", sessions(sessions_many)) } else { String::new() };
    format!(
        "{} {}{with}, the median of {} trials ({known}; spread {})",
        figure(tps.median),
        rate_words_of(trials.iter().map(|trial| &trial.findings)),
        tps.values.len(),
        percent(tps.spread)
    )
}
