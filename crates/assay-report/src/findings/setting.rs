//! The setting of a run: everything that must be the same before two results may be compared, the differences, and
//! names of settings by their differences.

use std::collections::{BTreeMap, BTreeSet};

use assay_record::{Arrival, Load, OnError, OptionValue, RatePoint};
use serde::Serialize;

use crate::findings::capacity::Capacity;
use crate::findings::harmless::{is_harmless_fact, is_harmless_setting};
use crate::findings::run::{Findings, Task};
use crate::plain::clean;

/// A difference between two sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its kind.
    pub kind: SettingKind,
    /// Its name: `option tables`, `session SQL`, `host`.
    pub what: String,
    /// Values in the baseline, several if its trials differ.
    pub baseline: Vec<String>,
    /// Values in the candidate.
    pub candidate: Vec<String>,
}

/// Kinds of differences, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// The work: workload, options, load, length.
    Work,
    /// The generator: host, CPUs, workers, version of assay.
    Generator,
    /// Which server, and its settings.
    Server,
    /// Setup of sessions.
    Session,
    /// The user's tags.
    Tag,
}

/// A setting in which the trials of one side differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mixed {
    /// Its name.
    pub what: String,
    /// Its values.
    pub values: Vec<String>,
}

pub(crate) type RunSettings = BTreeMap<(SettingKind, String), String>;

/// All settings of one run as text, by kind and name. Without seeds, in which trials differ, and without what
/// `harmless` lists.
pub(crate) fn settings(run: &Findings) -> RunSettings {
    let mut all = RunSettings::new();
    let mut put = |kind: SettingKind, what: &str, value: String| {
        all.insert((kind, what.to_owned()), value);
    };
    put(SettingKind::Work, "workload", run.workload.clone());
    if run.task != Task::Run {
        put(SettingKind::Work, "task", run.task.name().to_owned());
    }
    for (name, value) in &run.options {
        put(SettingKind::Work, &format!("option {name}"), option_text(value));
    }
    // The rows that statements look for depend on it, too.
    for (name, value) in &run.asked {
        put(SettingKind::Work, &format!("option {name} (asked)"), option_text(value));
    }
    put(SettingKind::Work, "distribution of rows", run.distribution.clone().unwrap_or_else(|| "none".into()));
    let mut sessions: Vec<String> = run.stages.iter().map(|stage| stage.sessions.to_string()).collect();
    let mut load = load_text(&run.load);
    match run.capacity.as_ref().map(|found| &found.of) {
        Some(Capacity::Rate { promises }) => {
            sessions.truncate(1);
            load = format!("searched: {}", promises.join(", "));
        }
        Some(Capacity::Sessions { max }) => sessions = vec![format!("searched up to {max}")],
        None => {}
    }
    put(SettingKind::Work, "sessions", sessions.join(","));
    put(SettingKind::Work, "load", load);
    let point = |point: &RatePoint| format!("{}:{}", duration(point.at_ns), point.per_s);
    let profile: Vec<String> = run.profile.iter().map(point).collect();
    put(SettingKind::Work, "rate over time", if profile.is_empty() { "constant".into() } else { profile.join(",") });
    let trace = run.trace.as_ref().map(|trace| format!("{} ({} arrivals)", trace.file, trace.arrivals));
    put(SettingKind::Work, "trace", trace.unwrap_or_else(|| "none".into()));
    let terminals = run.terminals.map(|of| format!("{}, think times × {}", of.number, of.think_scale));
    put(SettingKind::Work, "terminals", terminals.unwrap_or_else(|| "none".into()));
    put(SettingKind::Work, "time", run.limit.time_ns.map_or("no limit".into(), duration));
    put(SettingKind::Work, "transactions", run.limit.transactions.map_or("no limit".into(), |most| most.to_string()));
    put(SettingKind::Work, "warm-up", duration(run.warmup_ns));
    put(SettingKind::Work, "retries", run.policy.retries.to_string());
    put(SettingKind::Work, "ignored errors", run.policy.ignore.join(","));
    let on_error = if run.policy.on_error == OnError::Stop { "stop" } else { "continue" };
    put(SettingKind::Work, "on error", on_error.into());
    put(SettingKind::Generator, "host", run.host.name.to_lowercase());
    put(SettingKind::Generator, "kernel", run.host.kernel.clone());
    put(SettingKind::Generator, "CPU", run.host.cpu_model.clone());
    put(SettingKind::Generator, "CPUs", run.cpus.to_string());
    put(SettingKind::Generator, "memory", format!("{} MiB", run.host.memory_bytes >> 20));
    put(SettingKind::Generator, "workers", run.workers.to_string());
    put(
        SettingKind::Generator,
        "event loop",
        run.event_loop.as_ref().map_or("not known".into(), |of| of.backend.clone()),
    );
    put(
        SettingKind::Generator,
        "batch",
        run.event_loop.as_ref().map_or("not known".into(), |of| of.batch_max.to_string()),
    );
    put(SettingKind::Generator, "tool", run.tool.clone());
    for (name, value) in run.facts.iter().filter(|(name, _)| !is_harmless_fact(name)) {
        put(SettingKind::Generator, name, value.clone());
    }
    for (name, value) in &run.tags {
        put(SettingKind::Tag, &format!("tag {name}"), value.clone());
    }
    // Without --db every run has a temporary database of its own.
    let named = run.command.iter().any(|word| word == "--db" || word.starts_with("--db="));
    for (number, target) in run.targets.iter().enumerate() {
        let of = if run.targets.len() > 1 { format!("server {} ", number + 1) } else { "server ".into() };
        if named {
            let url = if run.on_started_server { without_port(&target.url) } else { target.url.clone() };
            put(SettingKind::Server, &format!("{of}URL"), url);
        }
        put(SettingKind::Server, &format!("{of}version"), format!("{} {}", target.product, target.version));
        put(SettingKind::Server, &format!("{of}TLS"), target.tls.clone().unwrap_or_else(|| "none".into()));
        let settings = target.settings.iter().filter(|(name, _)| !is_harmless_setting(name, target));
        for (name, value) in settings.chain(target.facts.iter().filter(|(name, _)| !is_harmless_fact(name))) {
            put(SettingKind::Server, &format!("{of}{name}"), value.clone());
        }
    }
    put(SettingKind::Session, SESSION_SQL, run.session_sql.join("; "));
    put(SettingKind::Session, "prepared statements", if run.prepared { "on" } else { "off" }.into());
    all
}

/// Parameters of a connection matter, a port does not.
fn without_port(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[start..].find(['/', '?']).map_or(url.len(), |at| start + at);
    match url[start..end].rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{}{host}{}", &url[..start], &url[end..])
        }
        _ => url.to_owned(),
    }
}

/// Settings that differ between the sides, the most important first.
pub fn differences(baseline: &[Findings], candidate: &[Findings]) -> Vec<Difference> {
    let (baseline, candidate) = (values(baseline), values(candidate));
    let names: BTreeSet<_> = baseline.keys().chain(candidate.keys()).collect();
    let of = |side: &BTreeMap<(SettingKind, String), BTreeSet<String>>, name: &(SettingKind, String)| -> Vec<String> {
        side.get(name).into_iter().flatten().cloned().collect()
    };
    let difference = |name: &(SettingKind, String)| {
        let (before, after) = (of(&baseline, name), of(&candidate, name));
        let (kind, what) = name.clone();
        (before != after).then_some(Difference { kind, what, baseline: before, candidate: after })
    };
    names.into_iter().filter_map(difference).collect()
}

/// The trials of one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name: the settings that distinguish it.
    pub name: String,
    /// Paths of its records.
    pub records: Vec<String>,
    /// Their findings, in the same order; at least one.
    pub trials: Vec<Findings>,
}

/// Length of a setting's name: leaves room for figures beside it, and for a trial's number and sessions in a legend.
pub(crate) const SETTING_WIDTH: usize = 32;

/// Groups the trials of each setting, in order of appearance. Names are those of `names`, at most `SETTING_WIDTH` wide.
pub fn groups(trials: Vec<(String, Findings)>) -> Vec<Group> {
    let mut groups: Vec<(RunSettings, Group)> = Vec::new();
    for (record, trial) in trials {
        let settings = settings(&trial);
        match groups.iter_mut().find(|(known, _)| *known == settings) {
            Some((_, group)) => {
                group.records.push(record);
                group.trials.push(trial);
            }
            None => {
                groups.push((settings, Group { name: String::new(), records: vec![record], trials: vec![trial] }));
            }
        }
    }
    let all: Vec<RunSettings> = groups.iter().map(|(settings, _)| settings.clone()).collect();
    let names = names(&all, SETTING_WIDTH);
    let mut groups: Vec<Group> = groups.into_iter().map(|(_, group)| group).collect();
    for (group, name) in groups.iter_mut().zip(&names) {
        group.name = if names.len() == 1 { clean(&group.trials[0].workload, SETTING_WIDTH) } else { name.clone() };
    }
    groups
}

/// The name of each: its tags if they distinguish all, otherwise everything that they do not share. If that is too
/// long, the common part of statements is omitted, then everything that is not needed to distinguish them; what is
/// still too long is truncated. No two are alike.
pub(crate) fn names(all: &[RunSettings], width: usize) -> Vec<String> {
    let tags = |settings: &RunSettings| -> RunSettings {
        settings.clone().into_iter().filter(|((kind, _), _)| *kind == SettingKind::Tag).collect()
    };
    let tags: Vec<RunSettings> = all.iter().map(tags).collect();
    let by = if are_distinct(&tags) { tags } else { all.to_vec() };
    let shortened = without_common_words(&by);
    let fits = |by: &Vec<RunSettings>| by.iter().all(|one| name(one, by).chars().count() <= width);
    let ways = [by, shortened.clone(), necessary(&shortened)];
    let by = ways.iter().find(|by| fits(by)).unwrap_or(&ways[2]);
    let own: Vec<String> = by.iter().map(|one| clean(&name(one, by), width)).collect();
    let apart = |(number, name): (usize, &String)| {
        if own.iter().filter(|other| *other == name).count() == 1 {
            return name.clone();
        }
        let end = format!(" #{}", number + 1);
        clean(name, width - end.len().min(width)) + &end
    };
    own.iter().enumerate().map(apart).collect()
}

fn are_distinct(all: &[RunSettings]) -> bool {
    all.iter().enumerate().all(|(number, one)| !all[..number].contains(one))
}

/// Session SQL without common words at its beginning and its end.
fn without_common_words(all: &[RunSettings]) -> Vec<RunSettings> {
    let key = (SettingKind::Session, SESSION_SQL.to_owned());
    let texts: Vec<Vec<&str>> =
        all.iter().map(|one| one.get(&key).map_or("", String::as_str).split(' ').collect()).collect();
    let shortest = texts.iter().map(Vec::len).min().unwrap_or(0);
    if shortest < 2 || texts.iter().all(|text| *text == texts[0]) {
        return all.to_vec();
    }
    let common = |at: &dyn Fn(&Vec<&str>, usize) -> String, most: usize| {
        (0..most).take_while(|number| texts.iter().all(|text| at(text, *number) == at(&texts[0], *number))).count()
    };
    let first = common(&|text, number| text[number].to_owned(), shortest - 1);
    let last = common(&|text, number| text[text.len() - 1 - number].to_owned(), shortest - 1 - first);
    let mut all = all.to_vec();
    for (one, text) in all.iter_mut().zip(&texts) {
        one.insert(key.clone(), text[first..text.len() - last].join(" "));
    }
    all
}

/// Only what is needed to distinguish settings: the first value that does it alone, or the first few that do it
/// together.
fn necessary(all: &[RunSettings]) -> Vec<RunSettings> {
    let keys: BTreeSet<&(SettingKind, String)> = all.iter().flat_map(BTreeMap::keys).collect();
    let only = |chosen: &[&(SettingKind, String)]| -> Vec<RunSettings> {
        let of = |one: &RunSettings| one.clone().into_iter().filter(|(key, _)| chosen.contains(&key)).collect();
        all.iter().map(of).collect()
    };
    let differing: Vec<_> =
        keys.into_iter().filter(|key| all.iter().any(|one| one.get(*key) != all[0].get(*key))).collect();
    if let Some(one) = differing.iter().map(|key| only(&[key])).find(|by| are_distinct(by)) {
        return one;
    }
    let number = |by: &[RunSettings]| by.iter().enumerate().filter(|(at, one)| !by[..*at].contains(one)).count();
    let mut chosen = Vec::new();
    for key in differing {
        let before = number(&only(&chosen));
        chosen.push(key);
        if number(&only(&chosen)) == before {
            chosen.pop();
        }
    }
    only(&chosen)
}

/// The `settings` that not all of `all` share.
fn name(settings: &RunSettings, all: &[RunSettings]) -> String {
    let differs = |key: &&(SettingKind, String)| all.iter().any(|other| other.get(*key) != settings.get(*key));
    let keys: BTreeSet<_> = all.iter().flat_map(BTreeMap::keys).filter(differs).collect();
    // A server setting that also appears in session SQL is shown once.
    let sql: Vec<&String> = keys
        .iter()
        .filter(|(_, what)| what == SESSION_SQL)
        .flat_map(|key| all.iter().filter_map(|other| other.get(*key)))
        .collect();
    let is_told = |(kind, what): &(SettingKind, String)| {
        *kind == SettingKind::Server
            && what.rsplit(' ').next().is_some_and(|what| sql.iter().any(|sql| sql.contains(what)))
    };
    let words = keys.iter().filter(|key| !is_told(key)).map(|key| words(&key.1, settings.get(*key)));
    words.collect::<Vec<_>>().join(", ")
}

const SESSION_SQL: &str = "session SQL";

/// A setting in a name: self-explanatory values need no word before them.
fn words(what: &str, value: Option<&String>) -> String {
    let value = value.map_or("", String::as_str);
    match (what, value) {
        ("sessions", "1") => "1 session".into(),
        ("sessions", value) => format!("{value} sessions"),
        (what, "" | "none") => format!(
            "no {}",
            what.trim_start_matches("option ").trim_start_matches("server ").trim_start_matches("tag ")
        ),
        ("workload" | "load" | SESSION_SQL, value) => value.into(),
        (what, value) if what.starts_with("server") && what.ends_with(" version") => value.into(),
        (what, value) => match what.split_once(' ') {
            Some(("option" | "server" | "tag", name)) => format!("{name}={value}"),
            _ => format!("{what} {value}"),
        },
    }
}

/// Settings that differ between the trials of one side.
pub(crate) fn mixed(side: &[Findings]) -> Vec<Mixed> {
    let several = values(side).into_iter().filter(|(_, values)| values.len() > 1);
    several.map(|((_, what), values)| Mixed { what, values: values.into_iter().collect() }).collect()
}

fn values(side: &[Findings]) -> BTreeMap<(SettingKind, String), BTreeSet<String>> {
    let mut all: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (name, value) in side.iter().flat_map(settings) {
        all.entry(name).or_default().insert(value);
    }
    all
}

/// The value of an option, as written on the command line.
pub(crate) fn option_text(value: &OptionValue) -> String {
    match value {
        OptionValue::Bool(value) => value.to_string(),
        OptionValue::Int(value) => value.to_string(),
        OptionValue::Number(value) => value.to_string(),
        OptionValue::Text(value) => value.clone(),
        OptionValue::List(values) => values.join(","),
    }
}

fn load_text(load: &Load) -> String {
    match load {
        Load::Closed => "closed loop".into(),
        Load::Open { rate_per_s, arrival, backlog_max } => {
            let arrival = if *arrival == Arrival::Constant { "constant" } else { "poisson" };
            let bound = backlog_max.map(|most| format!(", backlog at most {most}")).unwrap_or_default();
            format!("{arrival} {rate_per_s} tx/s{bound}")
        }
    }
}

fn duration(ns: u64) -> String {
    crate::digits::seconds(ns)
}
