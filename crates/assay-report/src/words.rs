//! A report in a few sentences, for those who read nothing else.

use assay_record::Status;

use crate::cells::{clean, count, figure, ms, percent, seconds};
use crate::chart::sessions;
use crate::findings::{Findings, StageFindings};
use crate::report::{Entry, Report};
use crate::text::load;
use crate::warning::Warning;

const NAME_WIDTH: usize = 80;
/// More settings than this are left to the tables.
const SETTINGS_MAX: usize = 8;

/// What the report is of.
pub(crate) fn title(report: &Report) -> String {
    let mut workloads: Vec<String> = report.entries.iter().map(|entry| clean(&entry.findings.workload, 60)).collect();
    workloads.dedup();
    let server = match report.entries.first().map(|entry| &entry.findings.targets[..]) {
        Some([target]) if !target.product.is_empty() => format!(" on {} {}", target.product, target.version),
        _ => String::new(),
    };
    let same = report.entries.iter().all(|entry| entry.findings.targets == report.entries[0].findings.targets);
    match &workloads[..] {
        [workload] if same => clean(&format!("{workload}{server}"), 120),
        workloads => clean(&workloads.join(", "), 120),
    }
}

/// One paragraph for one record; a sentence about each of several.
pub fn summary(report: &Report) -> Vec<String> {
    match &report.entries[..] {
        [] => vec!["There is no record.".into()],
        [entry] => vec![
            what_ran(&entry.findings),
            outcome(&entry.findings),
            troubles(&entry.findings),
            generator(&entry.findings),
        ],
        entries => several(entries, report.settings),
    }
}

fn what_ran(findings: &Findings) -> String {
    let server = match &findings.targets[..] {
        [] => "no server".into(),
        [target] if target.product.is_empty() => clean(&target.url, NAME_WIDTH),
        [target] => clean(&format!("{} {}", target.product, target.version), NAME_WIDTH),
        targets => format!("{} servers", targets.len()),
    };
    let numbers: Vec<String> = findings.stages.iter().take(12).map(|stage| count(stage.sessions.into())).collect();
    let sessions = match findings.stages.len() {
        0 => "no sessions".into(),
        1 => sessions(findings.stages[0].sessions),
        _ => format!("{} sessions, one after the other", numbers.join(", ")),
    };
    let each = if findings.stages.len() > 1 { " each" } else { "" };
    let length =
        findings.stages.first().map(|stage| format!(", {}{each}", seconds(stage.measured_ns))).unwrap_or_default();
    let end = match findings.status {
        Status::Complete => "",
        Status::Running => " The run was killed before its end.",
        Status::Interrupted => " The run was interrupted before its end.",
        Status::Failed => " The run failed before its end.",
    };
    format!(
        "{} ran on {server} with {sessions} ({}{length}).{end}",
        clean(&findings.workload, NAME_WIDTH),
        load(findings)
    )
}

fn outcome(findings: &Findings) -> String {
    let Some(stage) = findings.stages.iter().find(|stage| stage.best).or(findings.stages.last()) else {
        return "Nothing was measured.".into();
    };
    let rate = figure(stage.total.tps);
    let begin = match stage.best {
        true => format!("It was fastest with {}: {rate} transactions per second", sessions(stage.sessions)),
        false => format!("It did {rate} transactions per second"),
    };
    begin + &times(stage) + "."
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
        (0, None) => "No transaction failed and no error was met.".into(),
        (failed, first) => {
            let often = first
                .map(|error| format!(", most often {} {}", clean(&error.class, 24), clean(&error.code, 12)))
                .unwrap_or_default();
            format!("{} transactions failed; {} errors were met{often}.", count(failed), count(errors))
        }
    }
}

fn generator(findings: &Findings) -> String {
    let is_ours = |warning: &&Warning| matches!(warning, Warning::GeneratorBusy { .. } | Warning::GeneratorLate { .. });
    let Some(stage) = findings.stages.last() else { return String::new() };
    let Some(generator) = stage.generator else { return "What the generator itself took is not known.".into() };
    let figures = format!(
        "it used {} of the machine, its busiest worker was {} busy, its lag p99 was {} ms",
        percent(generator.cpu_share_of_machine),
        percent(generator.busiest_worker),
        ms(stage.total.lag.p99_ns)
    );
    match findings.warnings.iter().any(|warning| is_ours(&warning)) {
        true => format!("The generator was in its own way, see the warnings: {figures}."),
        false => format!("The generator was not in the way: {figures}."),
    }
}

fn several(entries: &[Entry], settings: usize) -> Vec<String> {
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
        let trials: Vec<&Entry> = entries.iter().filter(|other| other.setting == entry.setting).collect();
        let rate = |entry: &&Entry| entry.findings.stages.iter().map(|stage| stage.total.tps).fold(0.0, f64::max);
        let (low, high) = trials
            .iter()
            .map(rate)
            .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), tps| (low.min(tps), high.max(tps)));
        sentences.push(match &trials[..] {
            [entry] => format!("{}: {}", entry.name, outcome(&entry.findings)),
            trials => {
                let name = entry.name.rsplit_once(", trial ").map_or("All of them", |(name, _)| name);
                format!(
                    "{name}: {} to {} transactions per second in {} trials.",
                    figure(low),
                    figure(high),
                    trials.len()
                )
            }
        });
    }
    sentences
}
