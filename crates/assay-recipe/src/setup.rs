//! The setup of a cell: servers, data, load. It has every field that a factor can set.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::cases::StatementCase;
use crate::error::RecipeError;
use crate::word::{Word, Words};

/// A cell's document, parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Setup {
    /// Servers by name. All of them are started for a trial; the load goes to all, or to those in `run.on`.
    pub server: BTreeMap<String, RecipeServer>,
    /// Data loaded before trials.
    pub data: Data,
    /// The load.
    pub run: Run,
    /// Where the load is generated.
    pub generator: Generator,
}

/// A server that is started for every trial, or one that is already running.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table such as [server] with product = \"postgres:17\"")]
pub struct RecipeServer {
    /// `postgres:15`; or `url`.
    pub product: Option<String>,
    /// URL of a server that is already running, and is neither started nor stopped.
    pub url: Option<String>,
    /// A folder or archive with the server's programs.
    pub binaries: Option<String>,
    /// With the server's own names.
    pub settings: BTreeMap<String, Word>,
    /// A configuration file in the server's own format.
    pub config: Option<String>,
    /// Its CPUs: `0-3,8`.
    pub cpus: Option<String>,
    /// Memory limit: `4G`.
    pub memory: Option<String>,
    /// Huge pages reserved for it: `2G`.
    pub huge_pages: Option<String>,
    /// Transparent huge pages of the machine: `always`, `madvise`, `never`.
    pub transparent_huge_pages: Option<String>,
    /// The number of replicas.
    pub replicas: u32,
    /// Its fronts, by name: `pgbouncer`, `haproxy`.
    pub front: BTreeMap<String, RecipeFront>,
    /// Statements run on it before every trial.
    pub sql: Vec<String>,
    /// Whether to connect through its unix socket instead of TCP.
    pub socket: bool,
    /// Parameters of the URL for the load, such as `ssl-mode = "required"`.
    pub parameters: BTreeMap<String, Word>,
    /// The folder in which its data directory is made for each trial, such as one on another drive.
    pub data: Option<String>,
    /// A filesystem that is made for its data directory, with its mount options: `ext4`, `btrfs:compress=zstd` (root
    /// only).
    pub filesystem: Option<String>,
}

/// A pooler or proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecipeFront {
    /// With its own names.
    pub settings: BTreeMap<String, Word>,
    /// The servers behind it, if it is the nearest to them: `primary`, `replicas`, `all`.
    pub behind: Option<String>,
}

/// Data that is loaded once and copied for every trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Data {
    /// Arguments of `assay prepare`: `tpcc --warehouses 10`.
    pub prepare: Option<String>,
    /// Names of the servers that hold it; empty: those that are loaded.
    pub on: Words,
    /// More of its options.
    pub options: BTreeMap<String, Word>,
    /// Settings of the server during the load, with its own names: those that determine how data is stored.
    pub settings: BTreeMap<String, Word>,
}

/// The load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Arguments of `assay run`: `tpcc --warehouses 10`. Or `case`, or `io`.
    pub workload: String,
    /// Statements to compare, as with `assay sql`.
    pub case: Vec<StatementCase>,
    /// Arguments of `assay io`: `--size 4G --direct`. Needs no server.
    pub io: Option<String>,
    /// A filesystem that is made for the files of `io`: `ext4`, `btrfs:compress=zstd` (root only).
    pub filesystem: Option<String>,
    /// The servers to load, by name, or parts of them, such as `db.replica1`; empty: all.
    pub on: Words,
    /// A number, or the steps of a ladder.
    pub sessions: Words,
    /// Transactions due per second.
    pub rate: Option<Word>,
    /// Length of a separate run before the measured one, such as `1m`.
    pub warmup: Option<Word>,
    /// Length of the measured part of each step, such as `5m`.
    pub time: Option<Word>,
    /// More options of `assay run` and of the workload.
    pub options: BTreeMap<String, Word>,
    /// Statements run on every new connection.
    pub session_sql: Vec<String>,
}

/// The load generator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Generator {
    /// Its CPUs: `4-7`.
    pub cpus: Option<String>,
    /// Threads that drive the sessions.
    pub workers: Option<u32>,
}

impl Setup {
    /// The servers to load, in order, each with the part to load, such as `replica1`; `None`: its URL.
    pub fn targets(&self) -> Vec<(&str, Option<&str>)> {
        match &self.run.on.0[..] {
            [] => self.server.keys().map(|name| (name.as_str(), None)).collect(),
            named => self.named(named),
        }
    }

    /// Servers and parts of them, by the names in a recipe: `db`, `db.replica1`.
    pub fn named<'a>(&'a self, names: &'a [String]) -> Vec<(&'a str, Option<&'a str>)> {
        let one = |name: &'a String| match name.split_once('.').filter(|_| !self.server.contains_key(name)) {
            Some((server, part)) => (server, Some(part)),
            None => (name.as_str(), None),
        };
        names.iter().map(one).collect()
    }

    /// Names of the servers to load, each once.
    pub fn loaded(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.targets() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Whether the data is loaded into this server.
    pub fn holds_data(&self, server: &str) -> bool {
        match &self.data.on.0[..] {
            [] => self.loaded().contains(&server),
            named => named.iter().any(|name| name == server),
        }
    }

    /// The first server, whose product determines how a command line is parsed; `None`: the load needs none.
    pub fn first_server(&self) -> Option<&RecipeServer> {
        self.server.get(*self.loaded().first()?)
    }

    /// Checks that everything a trial needs is there. `has_phases`: steps are measured instead of the load of `[run]`.
    pub(crate) fn check(&self, has_phases: bool) -> Result<(), RecipeError> {
        for (name, server) in &self.server {
            server.check(name)?;
        }
        self.check_targets("run.on", &self.run.on.0)?;
        self.check_servers("data.on", self.data.on.0.iter().map(String::as_str))?;
        let kinds = [
            (!self.run.workload.trim().is_empty(), "workload"),
            (!self.run.case.is_empty(), "case"),
            (self.run.io.is_some(), "io"),
        ];
        let mut given = kinds.iter().filter(|(given, _)| *given).map(|(_, kind)| *kind);
        match (given.next(), given.next()) {
            (None, _) if has_phases && self.server.is_empty() => {
                Err(RecipeError::new("steps that are measured need a server, such as [server.db]"))
            }
            (None, _) if has_phases => Ok(()),
            (Some(kind), _) if has_phases => {
                Err(RecipeError::new(format!("run.{kind} and steps with when = \"measure\": give one of them")))
            }
            (None, _) => {
                let mut error =
                    RecipeError::new("run.workload is missing, such as workload = \"tpcc --warehouses 10\"");
                error.hint =
                    Some("or [[run.case]] with statements to time, or run.io for files without a server".into());
                Err(error)
            }
            (Some(one), Some(other)) => Err(RecipeError::new(format!("run has both {one} and {other}: give one"))),
            (Some("io"), None) => Ok(()),
            (Some(_), None) if self.run.filesystem.is_some() => {
                let mut error = RecipeError::new("run.filesystem is for run.io");
                error.hint = Some("for a server, use server.NAME.filesystem".into());
                Err(error)
            }
            (Some(kind), None) => {
                if self.server.is_empty() {
                    let mut error = RecipeError::new(format!("run.{kind} needs a server"));
                    error.hint = Some("such as [server.db] with product = \"postgres:15\"".into());
                    return Err(error);
                }
                if kind == "case" {
                    crate::cases::check(&self.run.case)
                        .map_err(|words| RecipeError::new(format!("run.case: {words}")))?;
                    if self.loaded().len() > 1 {
                        return Err(RecipeError::new("run.case goes to one server: name it with run.on"));
                    }
                }
                Ok(())
            }
        }
    }

    /// Checks that the servers that a key names are there, and their parts.
    pub(crate) fn check_targets(&self, key: &str, names: &[String]) -> Result<(), RecipeError> {
        if names.is_empty() {
            return Ok(());
        }
        let targets = self.named(names);
        self.check_servers(key, targets.iter().map(|(name, _)| *name))?;
        for (name, part) in targets {
            let parts = self.server[name].parts();
            if let Some(part) = part.filter(|part| !parts.iter().any(|known| known == part)) {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                return Err(RecipeError::new(format!("{key}: {name} has no {part}")).meant(part, &parts));
            }
        }
        Ok(())
    }

    fn check_servers<'a>(&self, key: &str, mut names: impl Iterator<Item = &'a str>) -> Result<(), RecipeError> {
        let known: Vec<&str> = self.server.keys().map(String::as_str).collect();
        match names.find(|name| !known.contains(name)) {
            Some(name) => Err(RecipeError::new(format!("{key}: there is no server {name}")).meant(name, &known)),
            None => Ok(()),
        }
    }
}

impl RecipeServer {
    /// The names of its parts: `primary`, `replica1`, its fronts.
    fn parts(&self) -> Vec<String> {
        let replicas = (1..=self.replicas).map(|number| format!("replica{number}"));
        ["primary".to_owned()].into_iter().chain(replicas).chain(self.front.keys().cloned()).collect()
    }

    fn check(&self, name: &str) -> Result<(), RecipeError> {
        let server = self;
        match (&server.product, &server.url) {
            (None, None) => {
                return Err(RecipeError::new(format!("server.{name} has neither product nor url")));
            }
            (Some(_), Some(_)) => return Err(RecipeError::new(format!("server.{name} has both product and url"))),
            (None, Some(_)) => {
                let plain = RecipeServer {
                    url: server.url.clone(),
                    sql: server.sql.clone(),
                    parameters: server.parameters.clone(),
                    ..RecipeServer::default()
                };
                if *server != plain {
                    let mut error =
                        RecipeError::new(format!("server.{name} is given by its url: it can be changed only by SQL"));
                    error.hint =
                        Some(format!("use server.{name}.sql, run.session_sql or steps; or product instead of url"));
                    return Err(error);
                }
            }
            (Some(_), None) if self.socket && !self.front.is_empty() => {
                return Err(RecipeError::new(format!("server.{name}: socket would bypass its front")));
            }
            (Some(_), None) => {}
        }
        Ok(())
    }
}
