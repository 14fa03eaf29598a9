//! Sentences about why two results differ.

use crate::digits::{change, figure, percent};
use crate::findings::explanation::{Cause, Explanation, Mechanism, Moved, PlanChange, RuledOut};
use crate::findings::metric::MetricUnit;
use crate::findings::setting::{Difference, SettingKind};
use crate::plain::{clean, indented};
use crate::words::run::per_second;
use crate::words::summary::capitalized;

const VALUE_WIDTH: usize = 40;
const NAME_WIDTH: usize = 60;
const LINE_WIDTH: usize = 400;
/// Settings that a sentence lists.
const LISTED: usize = 5;
/// Statements whose plans a sentence describes, and steps of each.
const PLANS_LISTED: usize = 3;
const STEPS_LISTED: usize = 3;
const STATEMENT_WIDTH: usize = 80;

/// The name of a mechanism, in lists.
pub(crate) fn mechanism(of: Mechanism) -> &'static str {
    match of {
        Mechanism::Locks => "waits for locks",
        Mechanism::InternalLocks => "waits for internal locks",
        Mechanism::Sleeps => "waits for a timer",
        Mechanism::Replication => "waits for replicas",
        Mechanism::Processes => "waits for other processes of the server",
        Mechanism::Extension => "waits in extensions",
        Mechanism::OtherWaits => "other waits",
        Mechanism::Checkpoints => "checkpoints",
        Mechanism::LogVolume => "log volume",
        Mechanism::LogWaits => "waits for the log",
        Mechanism::Misses => "buffer misses",
        Mechanism::SlowReads => "slow reads",
        Mechanism::Reads => "waits for reads",
        Mechanism::Writes => "waits for writes",
        Mechanism::Drive => "waits for the drive",
        Mechanism::Bloat => "size of the tables",
        Mechanism::PagesPerTransaction => "pages per transaction",
        Mechanism::ServerCpu => "CPU time of the server",
        Mechanism::OtherProcesses => "other processes",
        Mechanism::Steal => "CPU time taken by the hypervisor",
        Mechanism::Throttling => "CPU limit of the server",
        Mechanism::CpuWaits => "waits for a CPU",
        Mechanism::Outside => "time outside the server",
        Mechanism::OtherSessions => "other sessions of the server",
        Mechanism::Pooler => "waits in the pooler",
        Mechanism::TemporaryFiles => "temporary files",
        Mechanism::ContextSwitches => "context switches",
        Mechanism::GeneratorCpu => "CPU time of the load generator",
        Mechanism::Retries => "retries and failures",
    }
}

/// The paragraph: sentences that follow from each other.
pub(crate) fn paragraph(found: &Explanation) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let Some(moved) = &found.headline else { return vec!["Neither side has a throughput.".to_owned()] };
    let own_unit = format!(" {}", per_second(found.rate));
    let one = match found.rate {
        MetricUnit::RowsPerSecond => "row",
        MetricUnit::EventsPerSecond => "operation",
        _ => "transaction",
    };
    let (what, unit, shown): (_, _, fn(f64) -> String) = match moved.name.as_str() {
        "p99" => ("p99", "", ms),
        "capacity" => ("capacity", " tx/s", figure),
        _ => ("throughput", if found.rate == MetricUnit::PerSecond { " tps" } else { &own_unit }, figure),
    };
    let share = moved.candidate / moved.baseline - 1.0;
    let interval = moved.interval.map(|(low, high)| format!(" {}", ends(low, high))).unwrap_or_default();
    let from_to = format!("{} → {}{unit}, {}{interval}", shown(moved.baseline), shown(moved.candidate), change(share));
    if !found.differs && moved.interval.is_none() {
        all.push(format!(
            "Cannot tell whether the {what} differs: {from_to} without a confidence interval, which needs at least 4 \
             trials per side, or runs whose seconds are not too strongly correlated, of at least 30 s."
        ));
        return all;
    }
    if !found.differs {
        all.push(format!("No difference in {what} that chance does not explain: {from_to}."));
        return all;
    }
    let word = if share < 0.0 { "fell" } else { "rose" };
    let time = found.time.as_ref().map(|time| {
        let [before, after] = [time.baseline, time.candidate].map(ms);
        format!(": a {one} takes {after} instead of {before}")
    });
    all.push(format!("{} {word} ({from_to}){}.", capitalized(what), time.unwrap_or_default()));
    all.extend(settings(&found.settings));
    all.extend(found.plans.iter().take(PLANS_LISTED).map(plan));
    let more = found.plans.len().saturating_sub(PLANS_LISTED);
    all.extend((more > 0).then(|| format!("{more} more plans changed.")));
    all.extend(found.causes.iter().map(|cause| sentence(cause, found.is_worse)));
    if found.causes.is_empty() && found.settings.is_empty() && found.plans.is_empty() {
        all.push("No explanation found: no setting differs, and nothing that was measured moved with it.".to_owned());
    } else if found.causes.is_empty() {
        all.push("No counter moved with it, so nothing measured shows how it happened.".to_owned());
    }
    all
}

/// `not measured on both sides: waits in the pooler`.
pub(crate) fn not_measured(found: &Explanation) -> String {
    let names: Vec<&str> = found.unknown.iter().map(|one| mechanism(*one)).collect();
    format!("not measured on both sides: {}", names.join(", "))
}

fn settings(differences: &[Difference]) -> Option<String> {
    let (likely, other): (Vec<&Difference>, Vec<&Difference>) =
        differences.iter().partition(|one| one.kind != SettingKind::Generator);
    let one = |side: &[String]| side.first().map_or("none".to_owned(), |value| clean(value, VALUE_WIDTH));
    let words = |found: &&Difference| {
        format!("{} {} → {}", clean(&found.what, VALUE_WIDTH), one(&found.baseline), one(&found.candidate))
    };
    let shown = if likely.is_empty() { &other } else { &likely };
    if shown.is_empty() {
        return None;
    }
    let mut listed: Vec<String> = shown.iter().take(LISTED).map(words).collect();
    listed.extend((shown.len() > LISTED).then(|| format!("{} more", shown.len() - LISTED)));
    Some(format!("These settings differ: {}.", listed.join("; ")))
}

/// `The plan of SELECT … changed: Index Scan using t_id on t → Seq Scan on t.`
fn plan(found: &PlanChange) -> String {
    let steps = |steps: &[String]| {
        let mut listed: Vec<String> = steps.iter().take(STEPS_LISTED).map(|step| clean(step, NAME_WIDTH)).collect();
        listed.extend((steps.len() > STEPS_LISTED).then(|| format!("{} more", steps.len() - STEPS_LISTED)));
        if listed.is_empty() { "fewer steps".to_owned() } else { listed.join(", ") }
    };
    let statement = clean(&found.statement, STATEMENT_WIDTH);
    match (found.only_baseline.as_slice(), found.only_candidate.as_slice()) {
        ([], []) => format!("The plan of {statement} changed: the same steps with another order or other conditions."),
        (before, after) => format!("The plan of {statement} changed: {} → {}.", steps(before), steps(after)),
    }
}

/// A heading for each side's plan of a statement, with its lines.
pub(crate) fn plans(found: &Explanation) -> Vec<(String, Vec<String>)> {
    let lines = |text: &str| text.lines().map(|line| indented(line, LINE_WIDTH)).collect();
    let all = found.plans.iter().take(PLANS_LISTED).flat_map(|one| {
        let statement = clean(&one.statement, STATEMENT_WIDTH);
        [("baseline", &one.baseline), ("candidate", &one.candidate)]
            .map(|(side, text)| (format!("plan of {statement}, {side}"), lines(text)))
    });
    all.collect()
}

fn sentence(cause: &Cause, slower: bool) -> String {
    let what = match (cause.mechanism, slower) {
        (Mechanism::LogWaits, true) if cause.added_ns.is_none() => "The log is flushed more often",
        (Mechanism::LogWaits, false) if cause.added_ns.is_none() => "The log is flushed less often",
        (Mechanism::Locks, true) => "Transactions wait longer for locks held by others",
        (Mechanism::Locks, false) => "Transactions wait less for locks held by others",
        (Mechanism::InternalLocks, true) => "Transactions wait longer for locks inside the server",
        (Mechanism::InternalLocks, false) => "Transactions wait less for locks inside the server",
        (Mechanism::Sleeps, true) => "Statements sleep longer, as in a function or trigger that waits for a timer",
        (Mechanism::Sleeps, false) => "Statements sleep less",
        (Mechanism::Replication, true) => "Transactions wait longer until a replica confirms them",
        (Mechanism::Replication, false) => "Transactions wait less until a replica confirms them",
        (Mechanism::Processes, true) => "Sessions wait longer for other processes of the server",
        (Mechanism::Processes, false) => "Sessions wait less for other processes of the server",
        (Mechanism::Extension, true) => "Sessions wait longer in an extension",
        (Mechanism::Extension, false) => "Sessions wait less in an extension",
        (Mechanism::OtherWaits, true) => "Sessions wait longer in the server",
        (Mechanism::OtherWaits, false) => "Sessions wait less in the server",
        (Mechanism::Checkpoints, true) => {
            "The server makes more checkpoints, or must write pages to make room in its log"
        }
        (Mechanism::Checkpoints, false) => "The server makes fewer checkpoints, or has more room in its log",
        (Mechanism::LogVolume, true) => "Transactions write more log",
        (Mechanism::LogVolume, false) => "Transactions write less log",
        (Mechanism::LogWaits, true) => "Transactions wait longer until the log is written",
        (Mechanism::LogWaits, false) => "Transactions wait less until the log is written",
        (Mechanism::Misses, true) => {
            "More of the requested pages are not in the server's memory: its cache is too small for them, or not warm yet"
        }
        (Mechanism::Misses, false) => "Fewer of the requested pages are missing in the server's memory",
        (Mechanism::SlowReads, true) => "Reads take longer, and there are not more of them",
        (Mechanism::SlowReads, false) => "Reads take less time, and there are not fewer of them",
        (Mechanism::Reads, true) => "Sessions wait longer for reads",
        (Mechanism::Reads, false) => "Sessions wait less for reads",
        (Mechanism::Writes, true) => "Sessions wait longer for writes to data files",
        (Mechanism::Writes, false) => "Sessions wait less for writes to data files",
        (Mechanism::Drive, true) => "Transactions wait longer for the drive",
        (Mechanism::Drive, false) => "Transactions wait less for the drive",
        (Mechanism::Bloat, true) => {
            "The tables are bloated: they hold more old row versions or free space, and the same rows need more work"
        }
        (Mechanism::Bloat, false) => "The tables hold fewer old row versions or less free space",
        (Mechanism::PagesPerTransaction, true) => {
            "Statements touch more pages, as with another plan, a missing index or old statistics"
        }
        (Mechanism::PagesPerTransaction, false) => {
            "Statements touch fewer pages, as with another plan, a new index or fresh statistics"
        }
        (Mechanism::ServerCpu, true) => "The server needs more CPU time for the same pages",
        (Mechanism::ServerCpu, false) => "The server needs less CPU time for the same pages",
        (Mechanism::OtherProcesses, true) => "Other processes of the machine use more CPU time",
        (Mechanism::OtherProcesses, false) => "Other processes of the machine use less CPU time",
        (Mechanism::Steal, true) => "The hypervisor takes more CPU time",
        (Mechanism::Steal, false) => "The hypervisor takes less CPU time",
        (Mechanism::Throttling, true) => "The server is held back by its CPU limit",
        (Mechanism::Throttling, false) => "The server is held back less by its CPU limit",
        (Mechanism::CpuWaits, true) => "The server waits longer for a CPU",
        (Mechanism::CpuWaits, false) => "The server waits less for a CPU",
        (Mechanism::Outside, true) => {
            "More time passes outside the server, between an answer and the next request: on the network, or in the client"
        }
        (Mechanism::Outside, false) => "Less time passes outside the server, on the network or in the client",
        (Mechanism::OtherSessions, true) => "Other sessions use the server",
        (Mechanism::OtherSessions, false) => "Fewer other sessions use the server",
        (Mechanism::Pooler, true) => "Transactions wait longer in the pooler",
        (Mechanism::Pooler, false) => "Transactions wait less in the pooler",
        (Mechanism::TemporaryFiles, true) => "More is written to temporary files",
        (Mechanism::TemporaryFiles, false) => "Less is written to temporary files",
        (Mechanism::ContextSwitches, true) => "There are more context switches per transaction",
        (Mechanism::ContextSwitches, false) => "There are fewer context switches per transaction",
        (Mechanism::GeneratorCpu, true) => "The load generator needs more CPU time",
        (Mechanism::GeneratorCpu, false) => "The load generator needs less CPU time",
        (Mechanism::Retries, true) => "More transactions are retried or fail",
        (Mechanism::Retries, false) => "Fewer transactions are retried or fail",
    };
    let share = match (cause.added_ns, cause.share) {
        (Some(ns), Some(share)) => {
            format!(", {} of the difference ({} per transaction)", percent(share), signed_ms(ns))
        }
        _ => String::new(),
    };
    let figures: Vec<String> = cause.figures.iter().map(moved_words).collect();
    format!("{what}{share}: {}.", figures.join("; "))
}

/// The figure of something that was ruled out.
pub(crate) fn ruled_out(one: &RuledOut) -> String {
    let why = if one.is_tiny { "; too few bytes to matter" } else { "" };
    format!("{}{why}", moved_words(&one.figure))
}

/// `server.log_bytes 612 → 9,120 per transaction, ×14.9 [14.2, 15.6]`.
pub(crate) fn moved_words(moved: &Moved) -> String {
    let (name, per) = match (moved.name.strip_suffix("_per_transaction"), moved.name.strip_suffix("_per_commit")) {
        (Some(name), _) => (name, " per transaction"),
        (_, Some(name)) => (name, " per commit"),
        _ => (moved.name.as_str(), ""),
    };
    let is_time = name.starts_with("waiting") || name == "cpu" || name.starts_with("time");
    let shown = |value: f64| if is_time { ms(value) } else { figure(value) };
    let per = if name.starts_with("waiting") || name.starts_with("time outside") { " per transaction" } else { per };
    let factor = match (moved.baseline > 0.0, moved.interval) {
        (true, Some((low, high))) => {
            format!(", ×{:.2} [{low:.2}, {high:.2}]", moved.candidate / moved.baseline)
        }
        (true, None) => format!(", ×{:.2}", moved.candidate / moved.baseline),
        (false, _) => String::new(),
    };
    format!("{} {} → {}{per}{factor}", clean(name, 60), shown(moved.baseline), shown(moved.candidate))
}

fn ends(low: f64, high: f64) -> String {
    let short = |ratio: f64| change(ratio - 1.0).trim_end_matches('%').to_owned();
    format!("[{}, {}]", short(low), short(high))
}

fn ms(ns: f64) -> String {
    format!("{} ms", figure(ns / 1e6))
}

fn signed_ms(ns: f64) -> String {
    format!("{}{} ms", if ns < 0.0 { "−" } else { "+" }, figure(ns.abs() / 1e6))
}
