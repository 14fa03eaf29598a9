//! A record for people outside: without the places that it names.
//!
//! Removed are URLs, paths, names of machines and command lines of kernels and processes, in every text of the record,
//! also in those that later versions add. Numbers, settings and versions stay.

use serde_json::Value;

use crate::trial::Record;

/// Stands for what was removed.
const HIDDEN: &str = "…";

/// Facts that are all place: they are removed with their names.
const FACTS: [&str; 3] = ["kernel command line", "command line", "data directory"];

impl Record {
    /// The record without places. `None`: it cannot be written as JSON, which no record that was read can be.
    pub fn public(mut self) -> Option<Record> {
        let names = self.names();
        // The numbers are most of a record.
        let (mut stages, mut telemetry) = (std::mem::take(&mut self.stages), self.telemetry.take());
        self.manifest.spec = None;
        self.environment.host.name = HIDDEN.to_owned();
        for agent in &mut self.agents {
            agent.host.name = HIDDEN.to_owned();
            agent.name = format!("agent {}", agent.number);
        }
        if let Some(started) = &mut self.environment.started {
            started.program = HIDDEN.to_owned();
            started.configuration.clear();
        }
        let mut value = self.to_value().ok()?;
        hide_all(&mut value, &names);
        for stage in &mut stages {
            let totals = [&mut stage.total].into_iter().chain(&mut stage.targets);
            for error in totals.flat_map(|tally| &mut tally.errors) {
                error.message = hide(&error.message, &names);
            }
        }
        for scope in telemetry.iter_mut().flat_map(|telemetry| &mut telemetry.scopes) {
            scope.absent.iter_mut().for_each(|one| one.reason = hide(&one.reason, &names));
            scope.series.iter_mut().for_each(|one| one.source = hide(&one.source, &names));
            // Whatever the server wrote there.
            scope.log_left_out += std::mem::take(&mut scope.log).len() as u64;
            scope.statements.iter_mut().for_each(|one| one.text = hide(&one.text, &names));
        }
        let record: Record = serde_json::from_slice(&serde_json::to_vec(&value).ok()?).ok()?;
        Some(Record { stages, telemetry, ..record })
    }

    /// Names of machines.
    fn names(&self) -> Vec<String> {
        /// Shorter ones are parts of other words.
        const LENGTH_MIN: usize = 3;
        let of_url = |url: &String| {
            let place = url.split_once("://")?.1.split(['/', '?']).next()?;
            let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
            Some(place.split(':').next()?.to_owned())
        };
        let hosts = self.agents.iter().map(|agent| &agent.host).chain([&self.environment.host]);
        let mut names: Vec<String> = hosts.map(|host| host.name.clone()).collect();
        names.extend(self.manifest.targets.iter().filter_map(of_url));
        names.retain(|name| name.len() >= LENGTH_MIN && !["localhost", "127.0.0.1"].contains(&name.as_str()));
        names
    }
}

fn hide_all(value: &mut Value, names: &[String]) {
    match value {
        Value::String(text) => *text = hide(text, names),
        Value::Array(values) => values.iter_mut().for_each(|value| hide_all(value, names)),
        Value::Object(fields) => {
            fields.retain(|name, _| !FACTS.contains(&name.as_str()));
            fields.values_mut().for_each(|value| hide_all(value, names));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// `text` without URLs, absolute paths and `names`.
fn hide(text: &str, names: &[String]) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['/', ':']) {
        let (before, place) = rest.split_at(at);
        let ends = |c: char| c.is_whitespace() || "\"'`,;()".contains(c);
        let length = place.find(ends).unwrap_or(place.len());
        let is_url = place.starts_with("://") || (place.starts_with(':') && before.ends_with("sqlite") && length > 1);
        let begins = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !")]*/".contains(c));
        let is_path = place.starts_with('/')
            && begins
            && place[1..].starts_with(|c: char| c.is_alphanumeric() || "._-".contains(c));
        found += before;
        let taken = if is_url || is_path { length } else { 1 };
        match (is_url, is_path) {
            (true, _) if place.starts_with("://") => found += &format!("://{HIDDEN}"),
            (true, _) => found += &format!(":{HIDDEN}"),
            (false, true) => found += HIDDEN,
            (false, false) => found += &place[..1],
        }
        rest = &place[taken..];
    }
    found += rest;
    // The name alone may be a word of the record's own, such as the name of a product.
    let others = names.iter().filter(|name| *name != text);
    others.fold(found, |found, name| without_name(&found, name))
}

/// Replaces `name` where it is a word of its own.
fn without_name(text: &str, name: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
        found += before;
        found += if is_word { HIDDEN } else { name };
        rest = after;
    }
    found + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(hide(text, &["db7.example.com".to_owned()]), expected);
    }

    #[test]
    fn places_are_hidden_and_nothing_else() {
        check("postgres://app@db7.example.com:5432/bench?x=1 --tables=8", "postgres://… --tables=8");
        check(
            "assay run my.lua --db=sqlite:bench.db --trace /home/me/a.csv",
            "assay run my.lua --db=sqlite:… --trace …",
        );
        check("lowerdir=/var/lib/docker/l1,upperdir=/var/x", "lowerdir=…,upperdir=…");
        check("cannot connect to db7.example.com:5432: refused", "cannot connect to …:5432: refused");
        check("\"/etc/postgresql/15/main\"", "\"…\"");
        check("1,200 tx/s at 12:30, 1/2 of N/A, /* x */ a/b", "1,200 tx/s at 12:30, 1/2 of N/A, /* x */ a/b");
        check("SELECT c FROM t WHERE id = ?", "SELECT c FROM t WHERE id = ?");
    }
}
