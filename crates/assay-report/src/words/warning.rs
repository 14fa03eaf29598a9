//! Warnings: what a reader should know before trusting a number, and what to do about it.

use assay_record::{OptionValue, Status};

use crate::digits::{count, length, ms, percent};
use crate::findings::limit::GeneratorLimit;
use crate::findings::run::{Findings, Task};
use crate::findings::stage::StageFindings;
use crate::findings::warning::{Advice, Warning};
use crate::plain::clean;
use crate::words::generator::limited;
use crate::words::outage::outages_words;
use crate::words::run::clients;

/// Stages listed per run; a forged record could have millions of stages.
const WARNINGS_MAX: usize = 200;

const SERVER_WIDTH: usize = 60;
const SIZES_WIDTH: usize = 80;

/// Files named of those with the same trial.
const COPIES_MAX: usize = 3;
const FILE_WIDTH: usize = 60;

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
        for warning in findings.warnings.iter().filter(|one| which(one)).take(WARNINGS_MAX) {
            let (cause, hint) = warning_words(warning, findings);
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

/// The problem, and advice, which may be empty.
pub fn warning_words(warning: &Warning, findings: &Findings) -> (String, String) {
    let stage = |number: &usize| match &findings.stages[..] {
        [_] => String::new(),
        stages => {
            format!(" with {}", clients(findings, stages.get(*number).map_or(0, |stage| stage.sessions)))
        }
    };
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
            format!("{} transactions failed ({}); not included in the latencies", count(*failed), percent(*share)),
            String::new(),
        ),
        Warning::Outage { stage: number, target, times, longest, length_ns, share } => (
            format!(
                "{}{}{} ({} of the time)",
                target.map(|target| server_name(findings, target) + ": ").unwrap_or_default(),
                outages_words(*times, longest, *length_ns),
                stage(number),
                percent(*share)
            ),
            "look for restarts, checkpoints and locks in the server's log at that time".into(),
        ),
        Warning::LowerBounds { stage: number, unfinished: 0 } => (
            format!(
                "the latencies{} are lower bounds: a closed loop hides an outage, since each session waits it out \
                 only once",
                stage(number)
            ),
            "measure with `--rate` to see how long users would have waited".into(),
        ),
        Warning::LowerBounds { stage: number, unfinished } => (
            format!(
                "the latencies{} are lower bounds: {} transactions {}",
                stage(number),
                count(*unfinished),
                match findings.status {
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

/// The name of one of several servers.
fn server_name(findings: &Findings, target: u32) -> String {
    let server = findings.targets.get(target as usize);
    server.map_or(format!("server {}", target + 1), |server| clean(&server.url, SERVER_WIDTH))
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
