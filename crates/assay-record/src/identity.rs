//! Everything that distinguishes a run from others, as attributes.
//!
//! Most of it follows from the other fields of a record, which earlier versions left as the only description. What was
//! written down wins, because whoever wrote it knew more: the default of an option, a setting that does not matter,
//! something that has no field.

use std::collections::BTreeMap;

use crate::attribute::{Attribute, AttributeScope};
use crate::trial::{Arrival, Load, OnError, OptionValue, RatePoint, Record, RecordedServer, Search};

/// Facts of a server's process that repeat its settings, which are known better.
const REPEATED: [&str; 2] = ["command line", "data directory"];

impl Record {
    /// What distinguishes this run besides its tags, and without seeds, in which trials differ: what was written down,
    /// what the other fields say, the servers that were started for it.
    pub fn attributes(&self) -> Vec<Attribute> {
        let mut all = self.own_attributes();
        // The run knew a URL only. Who started a server for it says so afterwards.
        if self.environment.started.is_some() {
            for one in all.iter_mut().filter(|one| one.scope == AttributeScope::Server && one.name == URL) {
                one.in_effect = one.in_effect.take().map(|url| without_place(&url));
            }
        }
        let is_reported = self.environment.servers.iter().any(|server| !server.settings.is_empty());
        let started = self.environment.started.iter().flat_map(|started| &started.identity).cloned();
        all.extend(started.map(|one| {
            // Requested settings are compared by what the server reports.
            let is_reported = is_reported && one.scope == AttributeScope::Server;
            Attribute { matters: one.matters && !is_reported, ..one }
        }));
        all
    }

    /// Writes down what is known at the end of the run, for whoever reads the file. Not what may be added later.
    pub fn identify(&mut self) {
        self.identity = self.own_attributes();
    }

    fn own_attributes(&self) -> Vec<Attribute> {
        let mut all = self.of_run();
        all.extend(self.of_options());
        all.extend(self.of_generator());
        all.extend(self.of_session());
        let servers = self.environment.servers.iter().cloned().chain(std::iter::repeat(RecordedServer::default()));
        let servers = self.manifest.targets.iter().zip(servers).enumerate();
        all.extend(servers.flat_map(|(place, (url, server))| self.of_server(place, url, &server)));
        let places: BTreeMap<_, usize> = all.iter().enumerate().map(|(place, one)| (one.key(), place)).collect();
        let places: Vec<Option<usize>> = self.identity.iter().map(|known| places.get(&known.key()).copied()).collect();
        for (known, place) in self.identity.iter().zip(places) {
            match place {
                Some(place) => all[place] = completed(known, &all[place]),
                None => all.push(known.clone()),
            }
        }
        all
    }

    fn of_run(&self) -> Vec<Attribute> {
        let manifest = &self.manifest;
        let put = |name: &str, value: String| Attribute::new(AttributeScope::Run, name, value);
        let none = || "none".to_owned();
        let mut all = vec![put("workload", manifest.workload.clone())];
        if !matches!(&*manifest.task, "" | "run") {
            all.push(put("task", manifest.task.clone()));
        }
        all.push(put("distribution of rows", manifest.distribution.clone().unwrap_or_else(none)));
        let mut sessions: Vec<String> = self.stages.iter().map(|stage| stage.sessions.to_string()).collect();
        let mut load = load_text(&manifest.load);
        match &manifest.search {
            Some(Search::Rate { promises }) => {
                sessions.truncate(1);
                load = format!("searched: {}", promises.join(", "));
            }
            Some(Search::Sessions { max }) => sessions = vec![format!("searched up to {max}")],
            None => {}
        }
        let point = |point: &RatePoint| format!("{}:{}", seconds(point.at_ns), point.per_s);
        let profile: Vec<String> = manifest.profile.iter().map(point).collect();
        let trace = manifest.trace.as_ref().map(|trace| format!("{} ({} arrivals)", trace.file, trace.arrivals));
        let terminals = manifest.terminals.map(|of| format!("{}, think times × {}", of.number, of.think_scale));
        let no_limit = || "no limit".to_owned();
        let policy = &manifest.policy;
        all.extend([
            put("sessions", sessions.join(",")),
            put("load", load),
            put("rate over time", if profile.is_empty() { "constant".into() } else { profile.join(",") }),
            put("trace", trace.unwrap_or_else(none)),
            put("terminals", terminals.unwrap_or_else(none)),
            put("time", manifest.limit.time_ns.map_or_else(no_limit, seconds)),
            put("transactions", manifest.limit.transactions.map_or_else(no_limit, |most| most.to_string())),
            put("warm-up", seconds(manifest.warmup_ns)),
            put("retries", policy.retries.to_string()),
            put("ignored errors", policy.ignore.join(",")),
            put("on error", if policy.on_error == OnError::Stop { "stop" } else { "continue" }.into()),
            put("restarts after ignored errors", if policy.restart_ignored { "on" } else { "off" }.into()),
            put("time to reconnect", seconds(policy.reconnect_ns)),
        ]);
        all
    }

    fn of_options(&self) -> Vec<Attribute> {
        let manifest = &self.manifest;
        let put = |name: &str, value: &OptionValue| Attribute::new(AttributeScope::Option, name, value.to_string());
        // The rows that statements look for depend on the requested value, too.
        let asked = manifest.asked.iter().map(|(name, value)| put(&format!("{name} (asked)"), value));
        let in_effect = manifest.options.iter().map(|(name, value)| {
            let asked = manifest.asked.get(name).map(OptionValue::to_string);
            Attribute { as_asked: asked.is_none(), asked, ..put(name, value) }
        });
        asked.chain(in_effect).collect()
    }

    fn of_generator(&self) -> Vec<Attribute> {
        let host = &self.environment.host;
        let event_loop = self.manifest.event_loop.as_ref();
        let unknown = || "not known".to_owned();
        let put = |name: &str, value: String| Attribute::new(AttributeScope::Generator, name, value);
        let mut all = vec![
            put("host", host.name.to_lowercase()),
            put("kernel", host.kernel.clone()),
            put("CPU", host.cpu_model.clone()),
            put("CPUs", host.cpus.to_string()),
            put("memory", format!("{} MiB", host.memory_bytes >> 20)),
            put("workers", self.manifest.workers.to_string()),
            put("event loop", event_loop.map_or_else(unknown, |of| of.backend.clone())),
            put("batch", event_loop.map_or_else(unknown, |of| of.batch_max.to_string())),
            put("polls", event_loop.map_or_else(unknown, |of| format!("{} µs", of.polls_ns / 1000))),
            put("tool", format!("{} {}", self.tool.name, self.tool.version)),
        ];
        let mut agents: Vec<String> = self.agents.iter().map(|agent| agent.host.name.to_lowercase()).collect();
        agents.sort();
        if !agents.is_empty() {
            all.push(put("agents", agents.join(",")));
        }
        let facts = self.environment.facts.iter().filter(|(name, _)| !REPEATED.contains(&name.as_str()));
        all.extend(facts.map(|(name, value)| put(name, value.clone())));
        all
    }

    fn of_session(&self) -> [Attribute; 2] {
        let put = |name: &str, value: String| Attribute::new(AttributeScope::Session, name, value);
        [
            put("session SQL", self.manifest.session_sql.join("; ")),
            put("prepared statements", if self.manifest.prepared { "on" } else { "off" }.into()),
        ]
    }

    fn of_server(&self, place: usize, url: &str, server: &RecordedServer) -> Vec<Attribute> {
        let put = |name: &str, value: String| Attribute::new(AttributeScope::Server, name, value);
        let mut all = Vec::new();
        // Without --db every run has a temporary database of its own.
        if self.manifest.command.iter().any(|word| word == "--db" || word.starts_with("--db=")) {
            all.push(put(URL, url.to_owned()));
        }
        all.push(put("version", format!("{} {}", server.product, server.version)));
        all.push(put("TLS", server.tls.clone().unwrap_or_else(|| "none".into())));
        // Records of earlier versions may have no origins.
        let has_default = |name: &String| !server.origins.is_empty() && !server.origins.contains_key(name);
        let settings = server.settings.iter();
        all.extend(settings.map(|(name, value)| Attribute::reported(name, value, has_default(name))));
        let facts = server.facts.iter().filter(|(name, _)| !REPEATED.contains(&name.as_str()));
        all.extend(facts.map(|(name, value)| put(name, value.clone())));
        let of = self.manifest.targets.len();
        all.into_iter().map(|one| one.numbered(place, of)).collect()
    }
}

/// `known`, with what only the fields of the record say.
fn completed(known: &Attribute, field: &Attribute) -> Attribute {
    let known = known.clone();
    Attribute {
        asked: known.asked.or_else(|| field.asked.clone()),
        in_effect: known.in_effect.or_else(|| field.in_effect.clone()),
        default: known.default.or_else(|| field.default.clone()),
        as_asked: known.as_asked && field.as_asked,
        ..known
    }
}

const URL: &str = "URL";

/// Parameters of a connection matter; the port and the socket of a server that was started for a run do not.
fn without_place(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[start..].find(['/', '?']).map_or(url.len(), |at| start + at);
    let host = match url[start..end].rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => &url[start..end],
    };
    let rest = match url[end..].split_once('?') {
        Some((path, parameters)) => {
            let is_path = |value: &str| value.starts_with('/') || value.to_ascii_lowercase().starts_with("%2f");
            let plain = |one: &str| match one.split_once('=') {
                Some((name @ ("host" | "socket"), value)) if is_path(value) => format!("{name}=/"),
                _ => one.to_owned(),
            };
            format!("{path}?{}", parameters.split('&').map(plain).collect::<Vec<_>>().join("&"))
        }
        None => url[end..].to_owned(),
    };
    format!("{}{host}{rest}", &url[..start])
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

/// All digits: `10 s`, `1.25 s`.
fn seconds(ns: u64) -> String {
    format!("{} s", ns as f64 / 1e9)
}
