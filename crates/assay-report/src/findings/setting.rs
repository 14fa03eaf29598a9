//! The setting of a run: everything that must be the same before two results may be compared, the differences, and
//! names of settings by their differences.

use std::collections::{BTreeMap, BTreeSet};

use assay_record::{Attribute, AttributeScope};
use serde::Serialize;

use crate::findings::run::Findings;
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

/// The name of a setting. The order is that of reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SettingName {
    pub(crate) kind: SettingKind,
    /// With the thing that it is a setting of: `option tables`, `server 2 work_mem`.
    pub(crate) what: String,
    scope: AttributeScope,
    /// Without that: `tables`, `2 work_mem`.
    pub(crate) short: String,
}

impl SettingName {
    pub(crate) fn of(attribute: &Attribute) -> SettingName {
        let (kind, word) = match attribute.scope {
            AttributeScope::Run => (SettingKind::Work, ""),
            AttributeScope::Option => (SettingKind::Work, "option"),
            AttributeScope::Generator => (SettingKind::Generator, ""),
            AttributeScope::Front => (SettingKind::Server, "front"),
            AttributeScope::Replica | AttributeScope::Image => (SettingKind::Server, ""),
            AttributeScope::Server | AttributeScope::Placement => (SettingKind::Server, "server"),
            AttributeScope::Step => (SettingKind::Server, "step"),
            AttributeScope::Session => (SettingKind::Session, ""),
            AttributeScope::Tag => (SettingKind::Tag, "tag"),
        };
        let number = attribute.number.map(|number| number.to_string());
        let name = Some(attribute.name.as_str()).filter(|name| *name != word);
        let join = |parts: &[Option<&str>]| parts.iter().flatten().copied().collect::<Vec<_>>().join(" ");
        let short = join(&[number.as_deref(), name]);
        let word = Some(word).filter(|word| !word.is_empty());
        let what = join(&[word, number.as_deref(), name]);
        SettingName { kind, scope: attribute.scope, short: if short.is_empty() { what.clone() } else { short }, what }
    }

    pub(crate) fn is_sessions(&self) -> bool {
        self.scope == AttributeScope::Run && self.what == SESSIONS
    }
}

pub(crate) type RunSettings = BTreeMap<SettingName, String>;

/// All settings of one run, with the values in effect.
pub(crate) fn settings(run: &Findings) -> RunSettings {
    let value = |one: &Attribute| one.in_effect.clone().or_else(|| one.asked.clone()).unwrap_or_default();
    let matter = run.attributes.iter().filter(|one| one.matters);
    let tags = run.tags.iter().map(|(name, value)| Attribute::new(AttributeScope::Tag, name, value));
    let tags: Vec<Attribute> = tags.collect();
    matter.chain(&tags).map(|one| (SettingName::of(one), value(one))).collect()
}

/// Attributes whose values in effect are not the requested ones.
pub(crate) fn not_as_asked(run: &Findings) -> impl Iterator<Item = &Attribute> {
    run.attributes.iter().filter(|one| !one.as_asked)
}

/// Settings that differ between the sides, the most important first.
pub fn differences(baseline: &[Findings], candidate: &[Findings]) -> Vec<Difference> {
    let (baseline, candidate) = (values(baseline), values(candidate));
    let names: BTreeSet<_> = baseline.keys().chain(candidate.keys()).collect();
    let of = |side: &BTreeMap<SettingName, BTreeSet<String>>, name: &SettingName| -> Vec<String> {
        side.get(name).into_iter().flatten().cloned().collect()
    };
    let difference = |name: &SettingName| {
        let (before, after) = (of(&baseline, name), of(&candidate, name));
        let SettingName { kind, what, .. } = name.clone();
        (before != after).then_some(Difference { kind, what, baseline: before, candidate: after })
    };
    let mut differences: Vec<Difference> = names.into_iter().filter_map(difference).collect();
    differences.sort_by_key(|one| one.what != WORKLOAD);
    differences
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
/// long, the common part of statements and of URLs is omitted, then everything that is not needed to distinguish them;
/// what is still too long is truncated. No two are alike.
pub(crate) fn names(all: &[RunSettings], width: usize) -> Vec<String> {
    let tags = |settings: &RunSettings| -> RunSettings {
        settings.clone().into_iter().filter(|(name, _)| name.kind == SettingKind::Tag).collect()
    };
    let tags: Vec<RunSettings> = all.iter().map(tags).collect();
    let by = if are_distinct(&tags) { tags } else { all.to_vec() };
    let shortened = without_common_place(&without_common_words(&by));
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
    let key = SettingName::of(&Attribute::new(AttributeScope::Session, SESSION_SQL, ""));
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

/// URLs without the user, machine or port that they have in common.
fn without_common_place(all: &[RunSettings]) -> Vec<RunSettings> {
    let mut shortened = all.to_vec();
    let keys: BTreeSet<&SettingName> =
        all.iter().flat_map(BTreeMap::keys).filter(|key| key.short.ends_with(URL)).collect();
    for key in keys {
        let Some(urls) = all.iter().map(|one| one.get(key).map(String::as_str)).collect::<Option<Vec<&str>>>() else {
            continue;
        };
        let is_common = |length: &usize| urls.iter().all(|url| url.starts_with(&urls[0][..*length]));
        // Whatever follows one of these has a meaning of its own.
        let ends = urls[0].char_indices().filter(|(_, c)| matches!(c, ':' | '@' | '/')).map(|(at, _)| at);
        let common = ends.take_while(is_common).last().filter(|length| *length > "postgres:/".len());
        if let (Some(common), false) = (common, urls.iter().all(|url| *url == urls[0])) {
            for (one, url) in shortened.iter_mut().zip(&urls) {
                one.insert(key.clone(), format!("…{}", &url[common..]));
            }
        }
    }
    shortened
}

/// Only what is needed to distinguish settings: the first value that does it alone, or the first few that do it
/// together.
fn necessary(all: &[RunSettings]) -> Vec<RunSettings> {
    let keys: BTreeSet<&SettingName> = all.iter().flat_map(BTreeMap::keys).collect();
    let only = |chosen: &[&SettingName]| -> Vec<RunSettings> {
        let of = |one: &RunSettings| one.clone().into_iter().filter(|(key, _)| chosen.contains(&key)).collect();
        all.iter().map(of).collect()
    };
    let mut differing: Vec<_> =
        keys.into_iter().filter(|key| all.iter().any(|one| one.get(*key) != all[0].get(*key))).collect();
    differing.sort_by_key(|key| key.what != WORKLOAD);
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
    let differs = |key: &&SettingName| all.iter().any(|other| other.get(*key) != settings.get(*key));
    let keys: BTreeSet<_> = all.iter().flat_map(BTreeMap::keys).filter(differs).collect();
    // A server setting that also appears in session SQL is shown once.
    let sql: Vec<&String> = keys
        .iter()
        .filter(|name| name.what == SESSION_SQL)
        .flat_map(|key| all.iter().filter_map(|other| other.get(*key)))
        .collect();
    let is_told = |name: &SettingName| {
        name.scope == AttributeScope::Server
            && name.what.rsplit(' ').next().is_some_and(|what| sql.iter().any(|sql| sql.contains(what)))
    };
    let words = keys.iter().filter(|key| !is_told(key)).map(|key| words(key, settings.get(*key)));
    words.collect::<Vec<_>>().join(", ")
}

const SESSION_SQL: &str = "session SQL";
const URL: &str = "URL";
/// Says more than anything else that differs.
const WORKLOAD: &str = "workload";
pub(crate) const SESSIONS: &str = "sessions";

/// A setting in a name: self-explanatory values need no word before them.
fn words(name: &SettingName, value: Option<&String>) -> String {
    let value = value.map_or("", String::as_str);
    match (name.what.as_str(), value) {
        (SESSIONS, "1") => "1 session".into(),
        (SESSIONS, value) => format!("{value} sessions"),
        (_, "" | "none") => format!("no {}", name.short),
        (WORKLOAD | "load" | SESSION_SQL, value) => value.into(),
        (what, value) if name.scope == AttributeScope::Server && what.ends_with(" version") => value.into(),
        (what, value) if name.short == what => format!("{what} {value}"),
        (_, value) => format!("{}={value}", name.short),
    }
}

/// Settings that differ between the trials of one side.
pub(crate) fn mixed(side: &[Findings]) -> Vec<Mixed> {
    let several = values(side).into_iter().filter(|(_, values)| values.len() > 1);
    several.map(|(name, values)| Mixed { what: name.what, values: values.into_iter().collect() }).collect()
}

fn values(side: &[Findings]) -> BTreeMap<SettingName, BTreeSet<String>> {
    let mut all: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (name, value) in side.iter().flat_map(settings) {
        all.entry(name).or_default().insert(value);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_apart_by_what_they_do_not_share() {
        let named = |urls: &[&str]| -> Vec<String> {
            let url = |url: &&str| {
                [(SettingName::of(&Attribute::new(AttributeScope::Run, URL, *url)), (*url).to_owned())].into()
            };
            names(&urls.iter().map(url).collect::<Vec<_>>(), SETTING_WIDTH)
        };
        let own = named(&["postgres://app@127.0.0.1:36001/bench", "postgres://app@127.0.0.1:36002/bench"]);
        assert_eq!(own, ["URL …:36001/bench", "URL …:36002/bench"]);
        let own = named(&["mysql://app@database.example.org/one", "mysql://app@database.example.org/one_more"]);
        assert_eq!(own, ["URL …/one", "URL …/one_more"]);
        let own = named(&["postgres://a@localhost/b", "mysql://a@localhost/b"]);
        assert_eq!(own, ["URL postgres://a@localhost/b", "URL mysql://a@localhost/b"]);
    }
}
