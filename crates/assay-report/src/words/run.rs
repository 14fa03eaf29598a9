//! Description of a run: servers, sessions, load, options, and the command line.

use assay_record::{Arrival, Attribute, AttributeScope, Load, Note, OptionValue, RatePoint, Terminals};

use crate::digits::{clock, count, figure, seconds};
use crate::findings::capacity::{Capacity, CapacityFindings};
use crate::findings::loaded::Loaded;
use crate::findings::metric::MetricUnit;
use crate::findings::run::{Findings, ServerFindings, Task};
use crate::findings::setting::SettingName;
use crate::findings::stage::StageFindings;
use crate::findings::tally::ErrorFindings;
use crate::plain::clean;

const OPTION_WIDTH: usize = 40;
const SERVER_WIDTH: usize = 80;
const NOTE_WIDTH: usize = 200;

/// `1 session`, `64 sessions`.
pub(crate) fn sessions(number: u32) -> String {
    number_of(number.into(), "session")
}

/// `3 sessions`; a machine test has threads, and `assay io` a ladder of readers.
pub(crate) fn clients(findings: &Findings, number: u32) -> String {
    number_of(number.into(), client(findings))
}

/// What distinguishes a stage from the others of its run: its rate in a search for one, otherwise its clients.
pub(crate) fn step(findings: &Findings, stage: &StageFindings) -> String {
    match stage.open.as_ref().filter(|_| findings.searches_rate()) {
        Some(open) => format!("{} tx/s due", figure(open.rate_per_s)),
        None => clients(findings, stage.sessions),
    }
}

/// Clients of a stage: sessions, threads or readers.
pub(crate) fn client(findings: &Findings) -> &'static str {
    match (findings.task, findings.workload.as_str()) {
        (Task::Machine, "io") => "reader",
        (Task::Machine, _) => "thread",
        _ => "session",
    }
}

/// Notes of the user with their times since the first measured second, as in charts: `0:42 dropped the index`.
pub(crate) fn note_words(findings: &Findings) -> Vec<String> {
    let start = findings.stages.first().map_or(findings.started, |stage| stage.started).unix_ms();
    let words = |note: &Note| {
        let at = note.at.unix_ms();
        let sign = if at < start { "−" } else { "" };
        format!("{sign}{} {}", clock(at.abs_diff(start).saturating_mul(1_000_000)), clean(&note.text, NOTE_WIDTH))
    };
    findings.notes.iter().map(words).collect()
}

/// `1 error`, `12 errors`.
pub(crate) fn number_of(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{} {what}s", count(number)) }
}

/// `deadlock 40P01`; without a code, only its class.
pub(crate) fn error_name(error: &ErrorFindings) -> String {
    let (class, code) = (clean(&error.class, 24), clean(&error.code, 12));
    if code.is_empty() { class } else { format!("{class} {code}") }
}

/// `PostgreSQL 15.14`, the URL of a server that never answered, or the number of servers.
pub(crate) fn servers(findings: &Findings) -> String {
    match &findings.targets[..] {
        [] => "no server".into(),
        [target] if target.product.is_empty() => clean(&target.url, SERVER_WIDTH),
        [target] => clean(&format!("{} {}", target.product, target.version), SERVER_WIDTH),
        targets => several_servers(targets),
    }
}

/// The same without what packagers append to a version: `PostgreSQL 15.14`, `MariaDB 10.11.14`.
pub(crate) fn servers_in_short(findings: &Findings) -> String {
    match &findings.targets[..] {
        [target] if !target.product.is_empty() => clean(&target.in_short(), SERVER_WIDTH),
        _ => servers(findings),
    }
}

/// `2 servers (PostgreSQL 15.14, PostgreSQL 17.2)`; of many versions, only the number of servers.
fn several_servers(targets: &[ServerFindings]) -> String {
    const NAMED_MAX: usize = 3;
    let mut names: Vec<String> = targets.iter().map(|target| clean(&target.in_short(), SERVER_WIDTH)).collect();
    names.sort();
    names.dedup();
    let all = format!("{} servers", targets.len());
    let is_known = names.len() <= NAMED_MAX && targets.iter().all(|target| !target.product.is_empty());
    if is_known { format!("{all} ({})", names.join(", ")) } else { all }
}

/// What distinguishes the servers that were started for the run, by name; settings only if they are not in effect as
/// requested.
pub(crate) fn started(findings: &Findings) -> Vec<(String, String)> {
    let is_shown = |one: &&Attribute| one.scope != AttributeScope::Server || !one.as_asked;
    let words = |one: &Attribute| {
        let value = one.in_effect.as_deref().unwrap_or("unknown");
        let asked = if one.as_asked { None } else { one.asked.as_ref() };
        let asked = asked.map_or(String::new(), |asked| format!(" (asked: {asked})"));
        let SettingName { what, .. } = SettingName::of(one);
        (what.strip_prefix("server ").unwrap_or(&what).to_owned(), format!("{value}{asked}"))
    };
    findings.identity.iter().filter(is_shown).map(words).collect()
}

/// The generator's machine.
pub(crate) fn host(findings: &Findings) -> String {
    let host = &findings.host;
    let gib = match host.memory_bytes {
        0 => String::new(),
        bytes => format!(", {} GiB", figure(bytes as f64 / f64::from(1 << 30))),
    };
    format!("{}, {}, {}, {} CPUs{gib}", host.name, host.kernel, host.cpu_model, findings.cpus)
}

/// When transactions were due; empty for a machine test.
pub(crate) fn load(findings: &Findings) -> String {
    if let Some(Terminals { number, think_scale }) = findings.terminals {
        let scale =
            if think_scale == 1.0 { String::new() } else { format!(", think times × {}", figure(think_scale)) };
        return format!("shared by {} terminals{scale}", count(number.into()));
    }
    match &findings.load {
        Load::Closed if findings.task == Task::Machine => String::new(),
        Load::Closed => "closed loop".into(),
        Load::Open { rate_per_s, arrival, .. } => {
            let arrival = match arrival {
                Arrival::Constant => "constant",
                Arrival::Poisson => "Poisson",
            };
            if let Some(CapacityFindings { of: Capacity::Rate { promises }, .. }) = &findings.capacity {
                return format!("{arrival}, searching for the rate that keeps {}", promised(promises));
            }
            if let Some(trace) = &findings.trace {
                return format!("{} arrivals of {}", count(trace.arrivals), clean(&trace.file, OPTION_WIDTH));
            }
            if !findings.profile.is_empty() {
                return format!("{arrival} {} tx/s", profile(&findings.profile));
            }
            format!("{arrival} {} tx/s", figure(*rate_per_s))
        }
    }
}

/// The unit of throughput of machine tests.
pub(crate) const OPERATIONS: &str = "operations/s";

/// The unit of throughput.
pub(crate) fn per_second(unit: MetricUnit) -> &'static str {
    match unit {
        MetricUnit::RowsPerSecond => "rows/s",
        MetricUnit::EventsPerSecond => OPERATIONS,
        _ => "tx/s",
    }
}

/// The unit of throughput of several records; `per s` if they did different kinds of work.
pub(crate) fn per_second_of<'a>(records: impl IntoIterator<Item = &'a Findings>) -> &'static str {
    one_of(records.into_iter().map(|one| per_second(one.task.rate())), "tx/s", "per s")
}

/// The unit of throughput in a sentence.
pub(crate) fn rate_words(unit: MetricUnit) -> &'static str {
    match unit {
        MetricUnit::RowsPerSecond => "rows per second",
        MetricUnit::EventsPerSecond => "operations per second",
        _ => TRANSACTIONS_PER_SECOND,
    }
}

/// The usual unit of throughput.
pub(crate) const TRANSACTIONS_PER_SECOND: &str = "transactions per second";

/// The unit of throughput of several records; `per second` if they did different kinds of work.
pub(crate) fn rate_words_of<'a>(records: impl IntoIterator<Item = &'a Findings>) -> &'static str {
    one_of(records.into_iter().map(|one| rate_words(one.task.rate())), TRANSACTIONS_PER_SECOND, "per second")
}

/// The value that all have; `none` if there are none, `mixed` if they differ.
fn one_of(mut all: impl Iterator<Item = &'static str>, none: &'static str, mixed: &'static str) -> &'static str {
    match all.next() {
        Some(first) if all.all(|one| one == first) => first,
        Some(_) => mixed,
        None => none,
    }
}

/// The workload, and what was done with it if it was not a run.
pub(crate) fn work(findings: &Findings, width: usize) -> String {
    let name = clean(&findings.workload, width);
    match findings.task {
        Task::Run | Task::Machine => name,
        Task::Prepare => format!("{name} prepare"),
        Task::Check => format!("{name} check"),
    }
}

/// `100 at 0 s, 2,000 at 60 s`, linear in between.
pub(crate) fn profile(points: &[RatePoint]) -> String {
    const POINTS_MAX: usize = 12;
    let point = |point: &RatePoint| format!("{} at {}", figure(point.per_s), seconds(point.at_ns));
    let mut shown: Vec<String> = points.iter().take(POINTS_MAX).map(point).collect();
    shown.extend((points.len() > POINTS_MAX).then(|| "…".to_owned()));
    shown.join(", ")
}

/// `p99 < 10ms and errors < 0.1%`.
pub(crate) fn promised(promises: &[String]) -> String {
    promises.iter().map(|text| clean(text, OPTION_WIDTH)).collect::<Vec<_>>().join(" and ")
}

/// Whether throughput stopped growing on a ladder, and where; `None` if unknown, or if it was none.
pub(crate) fn growth(findings: &Findings) -> Option<String> {
    let stages = &findings.stages;
    if findings.capacity.is_some() || stages.len() < 2 {
        return None;
    }
    if let Some(knee) = stages.iter().find(|stage| stage.knee) {
        let clients = clients(findings, knee.sessions);
        return Some(format!("knee: {clients}; beyond that, throughput grows by less than 5%"));
    }
    let grows = stages.last().is_some_and(|stage| stage.best);
    grows.then(|| "no knee: throughput still grows at the last step".to_owned())
}

/// `10 warehouses`, `4 tables of 10,000 rows`, `scale 50`: the size of the tables, if the workload has the usual
/// options and has looked.
pub(crate) fn size(findings: &Findings) -> Option<String> {
    // What a script only says of itself is among its options.
    let is_known = |name: &str| findings.found.as_ref().is_none_or(|found| found.contains(name));
    let number = |name: &str| match findings.options.get(name).filter(|_| is_known(name)) {
        Some(OptionValue::Int(value)) => u64::try_from(*value).ok().filter(|value| *value > 0),
        _ => None,
    };
    if let Some(warehouses) = number("warehouses") {
        return Some(number_of(warehouses, "warehouse"));
    }
    match (number("tables"), number("table_size"), number("scale")) {
        (Some(tables), Some(rows), _) => Some(format!("{} of {} rows", number_of(tables, "table"), count(rows))),
        (None, Some(rows), _) => Some(format!("{} rows", count(rows))),
        (None, None, Some(scale)) => Some(format!("scale {}", count(scale))),
        _ => None,
    }
}

/// `per s`, `per min`, `per h`.
pub(crate) fn per(ns: u64) -> String {
    match ns {
        1_000_000_000 => "per s".into(),
        60_000_000_000 => "per min".into(),
        3_600_000_000_000 => "per h".into(),
        ns => format!("per {}", seconds(ns)),
    }
}

/// The value of an option.
pub(crate) fn option_value(value: &OptionValue) -> String {
    clean(&value.to_string(), OPTION_WIDTH)
}

/// Whether an option of the workload was given on the command line.
pub(crate) fn is_given(findings: &Findings, name: &str) -> bool {
    let is = |word: &String| {
        let option = word.strip_prefix("--").map(|option| option.split('=').next().unwrap_or(option));
        option.is_some_and(|option| option.replace('-', "_") == name.replace('-', "_"))
    };
    findings.command.iter().any(is)
}

/// The command that repeats the run, ready to paste: with its seed, and without overwriting a record.
pub(crate) fn command_line(findings: &Findings) -> String {
    /// Options with a value that belong to this one run.
    const OWN: [&str; 4] = ["--record", "--journal", "--trials", "--seed"];
    let is_ours = findings.command.get(1).is_some_and(|word| word == "run");
    let mut command = Vec::new();
    let mut words = findings.command.iter();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or(word);
        match is_ours && OWN.contains(&name) {
            _ if is_ours && name == "--force" => {}
            false => command.push(word.clone()),
            true if word.contains('=') => {}
            true => drop(words.next()),
        }
    }
    if is_ours {
        command.extend(["--seed".to_owned(), findings.seed.to_string()]);
    }
    let plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c));
    let quoted = |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) };
    command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// One line: `400,000 rows in 2.5 s (160,000 rows/s)`.
pub fn loaded_text(loaded: &Loaded) -> String {
    let (rows, took) = (number_of(loaded.rows, "row"), seconds(loaded.elapsed_ns));
    format!("{rows} in {took} ({} rows/s)\n", figure(loaded.rows_per_s))
}
