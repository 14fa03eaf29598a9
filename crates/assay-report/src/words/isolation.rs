//! The check of isolation: the answer in one line, and its counterexamples.

use assay_isolation::{Anomaly, Example, ExampleLink, ExampleStep, Form, IsolationLevel, Phenomenon, Relation};

use crate::digits::count;
use crate::findings::isolation::IsolationFindings;
use crate::plain::clean;

/// `no violation of serializability in 182,340 transactions (3 sessions, 100 keys)`.
pub fn isolation_answer(found: &IsolationFindings) -> String {
    let promise = level_name(found.level);
    let verdict = &found.verdict;
    if verdict.foreign > 0 {
        return format!(
            "{promise} was not checked: {} found values that another run wrote; let one run at a time use the tables, \
             and start with empty ones",
            number(verdict.foreign, "read", "reads")
        );
    }
    if !found.checked {
        return format!("{promise} was not checked: no transaction of the history committed");
    }
    let mut facts = vec![number(verdict.sessions, "session", "sessions"), number(verdict.keys, "key", "keys")];
    facts.retain(|fact| !fact.starts_with("0 "));
    if verdict.unknown > 0 {
        facts.push(format!("{} with unknown outcome", count(verdict.unknown)));
    }
    if verdict.partial {
        facts.push("later ones not checked: the history reached its limit".to_owned());
    }
    let facts = facts.join(", ");
    let of = format!("{} ({facts})", number(verdict.committed, "transaction", "transactions"));
    let violations: Vec<&Anomaly> = verdict.violations(found.level).collect();
    if !violations.is_empty() {
        return format!("{promise} violated in {of}: {}", anomalies(violations));
    }
    if verdict.has_only_totals() {
        let sums = number(verdict.reads, "sum", "sums");
        return match verdict.anomalies.is_empty() {
            true => format!("no wrong total in {sums} ({facts}); nothing else of {promise} was checked"),
            false => format!("{promise} permits what was found in {sums} ({facts}); nothing else was checked"),
        };
    }
    if !verdict.is_telling() {
        return format!("{promise} was not tested: of {of}, no two ran at the same time");
    }
    format!("no violation of {promise} in {of}")
}

/// What else was found, which the level permits; and the strongest levels that were not violated.
pub(crate) fn isolation_remarks(found: &IsolationFindings) -> Vec<String> {
    let mut remarks = Vec::new();
    if !found.checked {
        return remarks;
    }
    let permitted: Vec<&Anomaly> = found
        .verdict
        .anomalies
        .iter()
        .filter(|anomaly| !found.level.forbids(anomaly.phenomenon, anomaly.form))
        .collect();
    if !permitted.is_empty() {
        remarks.push(format!("permitted by {}: {}", level_name(found.level), anomalies(permitted)));
    }
    if found.verdict.anomalies.iter().any(|anomaly| anomaly.phenomenon == Phenomenon::GarbageRead) {
        remarks.push(
            "values that nobody wrote: if another program used the tables, or they were not empty, they are no fault of \
             the database"
                .to_owned(),
        );
    }
    if found.verdict.has_only_totals() {
        return remarks;
    }
    if !found.verdict.is_telling() {
        remarks.push(
            "checked: what each transaction and each session saw of its own; for anomalies between transactions, give \
             two or more --sessions and a load that keeps them busy"
                .to_owned(),
        );
        return remarks;
    }
    let names: Vec<&str> = found.not_violated.iter().map(|level| level_name(*level)).collect();
    match names.is_empty() {
        true => remarks.push("every isolation level was violated".to_owned()),
        false => remarks.push(format!("not violated: {}", names.join(", "))),
    }
    remarks
}

/// A counterexample in words.
pub(crate) struct ExampleWords<'a> {
    pub(crate) heading: String,
    pub(crate) lines: Vec<String>,
    pub(crate) example: &'a Example,
}

/// Counterexamples: those that violate the level first.
pub(crate) fn isolation_examples<'a>(found: &'a IsolationFindings) -> Vec<ExampleWords<'a>> {
    if !found.checked {
        return Vec::new();
    }
    let (mut violations, permitted): (Vec<&Anomaly>, Vec<&Anomaly>) =
        found.verdict.anomalies.iter().partition(|one| found.level.forbids(one.phenomenon, one.form));
    violations.extend(permitted);
    let words = |anomaly: &'a Anomaly| ExampleWords {
        heading: heading(anomaly, found.level),
        lines: lines(anomaly),
        example: &anomaly.example,
    };
    violations.into_iter().map(words).collect()
}

fn heading(anomaly: &Anomaly, level: IsolationLevel) -> String {
    let permitted = if level.forbids(anomaly.phenomenon, anomaly.form) { "" } else { ", permitted" };
    format!("{}: {} found{permitted}, for example", name(anomaly), count(anomaly.count))
}

fn lines(anomaly: &Anomaly) -> Vec<String> {
    let example = &anomaly.example;
    let steps = example.steps.iter().enumerate().map(|(at, step)| self::step(at, step));
    steps.chain(example.links.iter().map(link)).collect()
}

fn step(at: usize, step: &ExampleStep) -> String {
    let instant = |ns: u64| format!("{:.6}", ns as f64 / 1e9);
    let end = step.end.map_or("?".to_owned(), instant);
    let outcome = if step.outcome == "ok" { String::new() } else { format!(", {}", clean(&step.outcome, 20)) };
    let operations: Vec<String> = step.operations.iter().map(|operation| clean(operation, 200)).collect();
    let operations = operations.join("; ");
    format!("T{} (session {}, {}–{end} s{outcome}): {operations}", at + 1, step.session, instant(step.begin))
}

fn link(link: &ExampleLink) -> String {
    let (from, to) = (link.from + 1, link.to + 1);
    let key = link.key.map_or(String::new(), |key| format!(" of key {key}"));
    match link.relation {
        Relation::WriteWrite => format!("T{from} before T{to}: T{to} wrote a later version{key}"),
        Relation::WriteRead => format!("T{from} before T{to}: T{to} read T{from}'s version{key}"),
        Relation::ReadWrite => format!("T{from} before T{to}: T{from} read the version{key} before T{to}'s"),
        Relation::Session => format!("T{from} before T{to}: they are of one session"),
        Relation::RealTime => format!("T{from} before T{to}: T{from} had ended when T{to} began"),
    }
}

fn anomalies(all: Vec<&Anomaly>) -> String {
    let one = |anomaly: &&Anomaly| format!("{} × {}", count(anomaly.count), name(anomaly));
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn number(value: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { several })
}

fn name(anomaly: &Anomaly) -> String {
    let name = match anomaly.phenomenon {
        Phenomenon::GarbageRead => "read of a value that nobody wrote",
        Phenomenon::DuplicateElement => "element twice in a list",
        Phenomenon::Internal => "transaction that does not see its own write",
        Phenomenon::LostWrite => "lost write",
        Phenomenon::DirtyWrite => "dirty write (G0)",
        Phenomenon::AbortedRead => "aborted read (G1a)",
        Phenomenon::IntermediateRead => "intermediate read (G1b)",
        Phenomenon::IncompatibleOrder => "reads that disagree about the order of writes",
        Phenomenon::CircularInformation => "circular information flow (G1c)",
        Phenomenon::LostUpdate => "lost update (P4)",
        Phenomenon::ReadSkew => "read skew (G-single)",
        Phenomenon::LongFork => "long fork (G-nonadjacent)",
        Phenomenon::WrongTotal => "wrong total",
        Phenomenon::WriteSkew => "write skew (G2-item)",
        Phenomenon::NonMonotonicRead => "non-monotonic read",
        Phenomenon::UnreadOwnWrite => "session that does not read its own write",
        Phenomenon::NonMonotonicWrite => "non-monotonic write",
        Phenomenon::WriteBeforeRead => "write before what its session had read",
        Phenomenon::StaleRead => "stale read",
    };
    match anomaly.form {
        Form::Plain => name.to_owned(),
        Form::Session => format!("{name} with session order"),
        Form::RealTime => format!("{name} with real time"),
    }
}

/// The promise of a level, in a sentence.
pub(crate) fn level_name(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::ReadUncommitted => "read uncommitted",
        IsolationLevel::ReadCommitted => "read committed",
        IsolationLevel::RepeatableRead => "repeatable read",
        IsolationLevel::SnapshotIsolation => "snapshot isolation",
        IsolationLevel::Serializable => "serializability",
        IsolationLevel::StrongSessionSerializable => "strong session serializability",
        IsolationLevel::StrictSerializable => "strict serializability",
    }
}
