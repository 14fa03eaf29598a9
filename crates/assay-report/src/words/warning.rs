//! Warnings: what a reader should know before trusting a number, and what to do about it.

use assay_record::{OptionValue, Status};

use crate::digits::{clock, count, figure, length, ms, percent, plural};
use crate::findings::capacity::{Capacity, CapacityFindings};
use crate::findings::limit::GeneratorLimit;
use crate::findings::run::{Findings, Task};
use crate::findings::stage::StageFindings;
use crate::findings::warning::{Advice, MissingPart, Warning};
use crate::plain::clean;
use crate::words::generator::limited;
use crate::words::outage::outages_words;
use crate::words::run::{clients, number_of};

/// Stages listed per run; a forged record could have millions of stages.
const WARNINGS_MAX: usize = 200;

const SERVER_WIDTH: usize = 60;
const SIZES_WIDTH: usize = 80;

/// Files named of those with the same trial.
const COPIES_MAX: usize = 3;
const FILE_WIDTH: usize = 60;

/// Damaged lines and missing parts that are listed.
const DAMAGE_MAX: usize = 5;

/// With the same advice.
const CAUSES_MAX: usize = 12;

/// The warnings of all runs (the name of each, which may be empty, and its findings): what is wrong, and what to do
/// about it, which may be empty. The steps of a ladder, and trials, often have the same problem: the advice is given
/// once. `which`: the warnings that are wanted.
pub(crate) fn warnings_by_hint<'a>(
    runs: impl IntoIterator<Item = (&'a str, &'a Findings)>,
    which: fn(&Warning) -> bool,
) -> Vec<(Vec<String>, String)> {
    let mut told: Vec<(Vec<String>, String)> = Vec::new();
    for (name, findings) in runs {
        for group in alike(findings.warnings.iter().filter(|one| which(one)).take(WARNINGS_MAX)) {
            let (cause, hint) = warnings_words(&group, findings);
            let cause = if name.is_empty() { cause } else { format!("{name}: {cause}") };
            match told.iter_mut().find(|(_, known)| *known == hint && !hint.is_empty()) {
                Some((causes, _)) if causes.len() < CAUSES_MAX => causes.push(cause),
                Some((causes, _)) => causes[CAUSES_MAX - 1] = "and more of the same".into(),
                None => told.push((vec![cause], hint)),
            }
        }
    }
    told
}

/// `b.json.zst, c.json.zst and 5 more`: files with the same trial.
pub(crate) fn copies_words(files: &[String]) -> String {
    let shown: Vec<String> = files.iter().take(COPIES_MAX).map(|file| clean(file, FILE_WIDTH)).collect();
    let more = match files.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    shown.join(", ") + &more
}

/// Warnings that can be told together: one that several steps of a ladder have, with the same advice.
fn alike<'a>(warnings: impl Iterator<Item = &'a Warning>) -> Vec<Vec<&'a Warning>> {
    let mut groups: Vec<Vec<&Warning>> = Vec::new();
    let is_told_together = |one: &Warning, other: &Warning| match (one, other) {
        (Warning::NoTransactions { .. }, Warning::NoTransactions { .. })
        | (Warning::TooShort { .. }, Warning::TooShort { .. })
        | (Warning::LowerBounds { unfinished: 0, .. }, Warning::LowerBounds { unfinished: 0, .. })
        | (Warning::GeneratorBusy { .. }, Warning::GeneratorBusy { .. })
        | (Warning::GeneratorStarved { .. }, Warning::GeneratorStarved { .. })
        | (Warning::GeneratorLate { .. }, Warning::GeneratorLate { .. }) => {
            one.advice_on_generator() == other.advice_on_generator()
        }
        _ => false,
    };
    for warning in warnings {
        match groups.iter_mut().find(|group| is_told_together(group[0], warning)) {
            Some(group) => group.push(warning),
            None => groups.push(vec![warning]),
        }
    }
    groups
}

/// ` with 1, 2 and 4 sessions`; a step of a search is known by its rate. Empty if the run had only one stage.
fn with_stages(numbers: impl Iterator<Item = usize>, findings: &Findings) -> String {
    let stages: Vec<&StageFindings> = numbers.filter_map(|number| findings.stages.get(number)).collect();
    let [first, ..] = &stages[..] else { return String::new() };
    if findings.stages.len() == 1 {
        return String::new();
    }
    if let (Some(CapacityFindings { of: Capacity::Rate { .. }, .. }), Some(open)) = (&findings.capacity, &first.open) {
        return format!(" at {} tx/s due", figure(open.rate_per_s));
    }
    let mut sessions: Vec<u32> = stages.iter().map(|stage| stage.sessions).collect();
    sessions.dedup();
    let last = clients(findings, sessions.pop().unwrap_or_default());
    let others: Vec<String> = sessions.iter().map(|number| count((*number).into())).collect();
    if others.is_empty() { format!(" with {last}") } else { format!(" with {} and {last}", others.join(", ")) }
}

/// The same problem of one or more stages, and advice, which may be empty.
fn warnings_words(group: &[&Warning], findings: &Findings) -> (String, String) {
    let [first, _, ..] = group else { return warning_words(group[0], findings) };
    let with = with_stages(group.iter().filter_map(|one| one.stage()), findings);
    let (_, hint) = warning_words(first, findings);
    let all = |of: &dyn Fn(&Warning) -> Option<f64>| {
        let values = || group.iter().filter_map(|one| of(one));
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    };
    let work = if findings.task == Task::Machine { "operation" } else { "transaction" };
    let cause = match first {
        Warning::NoTransactions { .. } => format!("no {work} finished{with}"),
        Warning::TooShort { transactions_needed, .. } => {
            let (least, most) = all(&|one| match one {
                Warning::TooShort { transactions, .. } => Some(*transactions as f64),
                _ => None,
            });
            let number = range(count(least as u64), count(most as u64));
            format!("only {number} {work}s{with}: p99.9 needs {}", count(*transactions_needed))
        }
        Warning::GeneratorBusy { .. } => {
            let (least, most) = all(&|one| match one {
                Warning::GeneratorBusy { busiest_worker, .. } => Some(*busiest_worker),
                _ => None,
            });
            let busy = range(percent(least), percent(most));
            format!("{}{with}: its busiest worker was {busy} busy", limited(GeneratorLimit::Bottleneck))
        }
        Warning::GeneratorStarved { .. } => {
            let (least, most) = all(&|one| match one {
                Warning::GeneratorStarved { waited_for_cpu, .. } => Some(*waited_for_cpu),
                _ => None,
            });
            let waited = range(percent(least), percent(most));
            format!(
                "{}{with}: a worker waited {waited} of the time for a CPU, which adds to the latencies",
                limited(GeneratorLimit::Starved)
            )
        }
        Warning::GeneratorLate { .. } => {
            let (least, most) = all(&|one| match one {
                Warning::GeneratorLate { lag_ns, .. } => Some(*lag_ns as f64),
                _ => None,
            });
            let lag = range(ms(Some(least as u64)), ms(Some(most as u64)));
            let name = lag_name(first.stage().and_then(|number| findings.stages.get(number)));
            format!("{}{with}: {name} is {lag} ms, a large part of the response", limited(GeneratorLimit::Late))
        }
        Warning::LowerBounds { .. } => hidden_outage(&with),
        _ => warning_words(first, findings).0,
    };
    (cause, hint)
}

fn hidden_outage(with: &str) -> String {
    format!(
        "the latencies{with} are lower bounds: a closed loop hides an outage, since each session waits it out only once"
    )
}

/// `26% to 66%`; one value if both ends read the same.
fn range(least: String, most: String) -> String {
    if least == most { most } else { format!("{least} to {most}") }
}

/// The problem, and advice, which may be empty.
pub fn warning_words(warning: &Warning, findings: &Findings) -> (String, String) {
    let stage = |number: &usize| with_stages(std::iter::once(*number), findings);
    let work = if findings.task == Task::Machine { "operation" } else { "transaction" };
    match warning {
        Warning::EndedEarly { status: Status::Failed } => {
            ("the run failed: the figures cover the time until then".into(), String::new())
        }
        Warning::EndedEarly { status: Status::Running } => {
            ("the record has no end: the run was killed, or is still going on".into(), String::new())
        }
        Warning::EndedEarly { .. } => {
            ("the run was interrupted: the figures cover the time until then".into(), String::new())
        }
        Warning::DamagedRecord { lines, missing } => (damage_words(lines, missing, &stage), String::new()),
        Warning::Copies { files } => {
            (format!("the same trial was also given as {}: it counts once", copies_words(files)), String::new())
        }
        Warning::OtherSize { option, asked, actual } => {
            let size = |value: &OptionValue| match value {
                OptionValue::Int(value) => u64::try_from(*value).map_or_else(|_| value.to_string(), count),
                other => clean(&other.to_string(), SIZES_WIDTH),
            };
            (
                format!(
                    "--{} was {}, but the tables have {}: the load is not what was asked for",
                    clean(&option.replace('_', "-"), SERVER_WIDTH),
                    size(asked),
                    size(actual)
                ),
                "prepare the tables with the options of the run".into(),
            )
        }
        Warning::NoTransactions { stage: number } => (format!("no {work} finished{}", stage(number)), String::new()),
        Warning::TooShort { stage: number, transactions, transactions_needed } => (
            format!(
                "only {} {work}s{}: p99.9 needs {}",
                count(*transactions),
                stage(number),
                count(*transactions_needed)
            ),
            "run longer (`--time`)".into(),
        ),
        Warning::Failures { failed, share } => (
            format!(
                "{} failed ({}); not included in the latencies",
                number_of(*failed, "transaction"),
                percent(*share)
            ),
            String::new(),
        ),
        Warning::Outage { stage: number, target, times, longest, length_ns, share } => (
            format!(
                "{}{}{} ({} of the time){}",
                target.map(|target| server_name(findings, target) + ": ").unwrap_or_default(),
                outages_words(*times, longest, *length_ns),
                stage(number),
                percent(*share),
                match longest.halted_ns {
                    None | Some(0) => String::new(),
                    Some(halted) => format!("; assay itself was not running for {} of it", length(halted)),
                }
            ),
            match longest.halted_ns {
                Some(0) => outage_causes(findings).into(),
                Some(_) => {
                    "assay or its machine was suspended, or had no CPU for it: the database may have been fine".into()
                }
                None => {
                    format!("{}; whether assay itself was running then is not known", outage_causes(findings))
                }
            },
        ),
        Warning::LowerBounds { stage: number, unfinished: 0 } => {
            (hidden_outage(&stage(number)), "measure with `--rate` to see how long users would have waited".into())
        }
        Warning::LowerBounds { stage: number, unfinished } => (
            format!(
                "the latencies{} are lower bounds: {} {}",
                stage(number),
                plural(*unfinished, "transaction"),
                match findings.status {
                    Status::Running if *unfinished == 1 => "was in flight when the record ends",
                    Status::Running => "were in flight when the record ends",
                    _ => "had not finished when the grace period was over",
                }
            ),
            String::new(),
        ),
        Warning::InDoubt { retries, failed } => {
            let retried = format!(
                "{} of the retries followed a lost answer to a commit: the server may have committed both runs",
                count(*retries)
            );
            let given_up = format!(
                "{} of the failed transactions lost the answer to a commit: the server may have committed them",
                count(*failed)
            );
            let words = match (retries, failed) {
                (_, 0) => retried,
                (0, _) => given_up,
                _ => format!("{retried}; {given_up}"),
            };
            (words, String::new())
        }
        Warning::StatementsLost { errors } => (
            format!(
                "{} errors said that a prepared statement does not exist: a connection pooler may not support them",
                count(*errors)
            ),
            "turn prepared statements off (`--prepared off`)".into(),
        ),
        Warning::Overload { stage: number, due, undone, wait_p50_ns, service_p50_ns } => {
            let waited = match (wait_p50_ns, service_p50_ns) {
                (Some(wait), Some(service)) if wait >= service => format!(
                    "half of the transactions waited {} or longer for a session, and then took {}",
                    length(*wait),
                    length(*service)
                ),
                _ => String::new(),
            };
            let undone = match undone {
                0 => String::new(),
                undone => {
                    format!("of {} transactions due, {} were dropped or not started", count(*due), count(*undone))
                }
            };
            let facts: Vec<String> = [waited, undone].into_iter().filter(|fact| !fact.is_empty()).collect();
            (
                format!("the rate was too high{}: {}", stage(number), facts.join("; ")),
                "lower `--rate`, or add `--sessions` if the server has capacity left".into(),
            )
        }
        Warning::GeneratorBusy { stage: number, busiest_worker, advice: what } => (
            format!(
                "{}{}: its busiest worker was {} busy",
                limited(GeneratorLimit::Bottleneck),
                stage(number),
                percent(*busiest_worker)
            ),
            advice(what),
        ),
        Warning::GeneratorStarved { stage: number, waited_for_cpu, advice: what } => (
            format!(
                "{}{}: a worker waited {} of the time for a CPU, which adds to the latencies",
                limited(GeneratorLimit::Starved),
                stage(number),
                percent(*waited_for_cpu)
            ),
            advice(what),
        ),
        Warning::GeneratorLate { stage: number, lag_ns, response_p50_ns, advice: what } => (
            format!(
                "{}{}: {} is {} ms, the median response {} ms",
                limited(GeneratorLimit::Late),
                stage(number),
                lag_name(findings.stages.get(*number)),
                ms(Some(*lag_ns)),
                ms(Some(*response_p50_ns))
            ),
            advice(what),
        ),
        Warning::OverRange { stage: number, count: values } => (
            format!(
                "{} latencies{} exceed one hour; quantiles show the largest for them",
                count(*values),
                stage(number)
            ),
            String::new(),
        ),
    }
}

/// `line 6 of the record is damaged: 0:01 to 0:02 is missing`.
fn damage_words(lines: &[u64], missing: &[MissingPart], of_stage: &dyn Fn(&usize) -> String) -> String {
    let numbers: Vec<String> = lines.iter().take(DAMAGE_MAX).map(|line| count(*line)).collect();
    let and_more =
        |all: usize| if all > DAMAGE_MAX { format!(" and {} more", all - DAMAGE_MAX) } else { String::new() };
    let parts = missing.iter().take(DAMAGE_MAX);
    let parts =
        parts.map(|part| format!("{} to {}{}", clock(part.start_ns), clock(part.end_ns), of_stage(&part.stage)));
    let parts = format!("{}{}", parts.collect::<Vec<_>>().join(", "), and_more(missing.len()));
    let is = if missing.len() > 1 { "are" } else { "is" };
    match (lines, missing) {
        ([], _) => format!("the record has no intervals for {parts}: lines of it are missing"),
        (_, []) => {
            let (line, are) = if lines.len() == 1 { ("line", "is") } else { ("lines", "are") };
            format!(
                "{line} {}{} of the record {are} damaged: what they said is missing",
                numbers.join(", "),
                and_more(lines.len())
            )
        }
        ([line], _) => format!("line {} of the record is damaged: {parts} {is} missing", count(*line)),
        _ => format!(
            "lines {}{} of the record are damaged: {parts} {is} missing",
            numbers.join(", "),
            and_more(lines.len())
        ),
    }
}

/// The name of one of several servers.
fn server_name(findings: &Findings, target: u32) -> String {
    let server = findings.targets.get(target as usize);
    server.map_or(format!("server {}", target + 1), |server| clean(&server.url, SERVER_WIDTH))
}

/// Where to look for the cause of an outage. An embedded database has no log.
fn outage_causes(findings: &Findings) -> &'static str {
    match findings.is_embedded() {
        true => "look for statements that took that long, checkpoints and locks of the file at that time",
        false => "look for restarts, checkpoints and locks in the server's log at that time",
    }
}

/// The subject of a warning about lag.
fn lag_name(stage: Option<&StageFindings>) -> &'static str {
    if stage.is_some_and(|stage| stage.total.lag.p99_ns.is_none()) { "the largest lag" } else { "lag p99" }
}

fn advice(advice: &Advice) -> String {
    match advice {
        Advice::AddWorkers { workers, useful } => format!("add workers (`--workers {useful}`; there were {workers})"),
        Advice::SeparateFromServer => {
            "server and generator compete for the same CPUs: run the generator on another machine".into()
        }
        Advice::LargerMachine => "run the generator on a machine with more CPUs".into(),
        Advice::QuietMachine => "something else delayed the workers: look for other load on this machine".into(),
    }
}
