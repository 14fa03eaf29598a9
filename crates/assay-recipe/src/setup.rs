//! What one cell runs: a server, its data, the load. It lists every field that a factor can set.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::cases::StatementCase;
use crate::error::RecipeError;
use crate::word::{Word, Words};

/// A cell's document, read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setup {
    /// Servers by their names. All of them are started for a trial; the load goes to all, or to those that `run.on`
    /// names.
    pub server: BTreeMap<String, Server>,
    /// What is loaded before trials.
    pub data: Data,
    /// The load.
    pub run: Run,
    /// Where the load comes from.
    pub generator: Generator,
}

/// A server that is started for every trial, or one that is already there.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// `postgres:15`; or `url`.
    pub product: Option<String>,
    /// Of a server that is already there, and is neither started nor stopped.
    pub url: Option<String>,
    /// A folder or archive of the server's programs.
    pub binaries: Option<String>,
    /// In the server's own words.
    pub settings: BTreeMap<String, Word>,
    /// A configuration file in the server's own format.
    pub config: Option<String>,
    /// The CPUs that it may run on: `0-3,8`.
    pub cpus: Option<String>,
    /// The most memory that it may use: `4G`.
    pub memory: Option<String>,
    /// Huge pages that are reserved for it: `2G`.
    pub huge_pages: Option<String>,
    /// Transparent huge pages of the machine: `always`, `madvise`, `never`.
    pub transparent_huge_pages: Option<String>,
    /// How many servers follow it.
    pub replicas: u32,
    /// What stands before it, by name: `pgbouncer`, `haproxy`.
    pub front: BTreeMap<String, Front>,
    /// Statements that are run on it before every trial.
    pub sql: Vec<String>,
    /// The load goes through its unix socket instead of TCP.
    pub socket: bool,
    /// Of the URL that the load uses, such as `ssl-mode = "required"`.
    pub parameters: BTreeMap<String, Word>,
}

/// A pooler or proxy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Front {
    /// In its own words.
    pub settings: BTreeMap<String, Word>,
    /// The servers that it stands before, where it is the nearest to them: `primary`, `replicas`, `all`.
    pub behind: Option<String>,
}

/// What is loaded once and copied for every trial.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Data {
    /// What `assay prepare` takes: `tpcc --warehouses 10`.
    pub prepare: Option<String>,
    /// More options of it.
    pub options: BTreeMap<String, Word>,
    /// Settings of the server while it is loaded, in its own words: those that decide how data is stored.
    pub settings: BTreeMap<String, Word>,
}

/// The load.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// What `assay run` takes: `tpcc --warehouses 10`. Or `case`, or `io`.
    pub workload: String,
    /// Statements to time against each other, as `assay sql` does.
    pub case: Vec<StatementCase>,
    /// What `assay io` takes: `--size 4G --direct`. Needs no server.
    pub io: Option<String>,
    /// Names of the servers that the load goes to; empty: all.
    pub on: Words,
    /// A number, or the steps of a ladder.
    pub sessions: Words,
    /// Transactions due per second.
    pub rate: Option<Word>,
    /// Length of a run of its own before the measured one, such as `1m`.
    pub warmup: Option<Word>,
    /// Length of the measured part of each step, such as `5m`.
    pub time: Option<Word>,
    /// More options of `assay run` and of the workload.
    pub options: BTreeMap<String, Word>,
    /// Statements run on every new connection.
    pub session_sql: Vec<String>,
}

/// The load generator.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Generator {
    /// The CPUs that it may run on: `4-7`.
    pub cpus: Option<String>,
    /// Threads driving the sessions.
    pub workers: Option<u32>,
}

impl Setup {
    /// Names of the servers that the load goes to.
    pub fn loaded(&self) -> Vec<&str> {
        match &self.run.on.0[..] {
            [] => self.server.keys().map(String::as_str).collect(),
            named => named.iter().map(String::as_str).collect(),
        }
    }

    /// The first server, whose product decides how a command line is read; `None`: the load needs none.
    pub fn first_server(&self) -> Option<&Server> {
        self.server.get(*self.loaded().first()?)
    }

    /// Whether there is all that a trial needs.
    pub(crate) fn check(&self) -> Result<(), RecipeError> {
        for (name, server) in &self.server {
            server.check(name)?;
        }
        if let Some(unknown) = self.run.on.0.iter().find(|name| !self.server.contains_key(*name)) {
            let known: Vec<&str> = self.server.keys().map(String::as_str).collect();
            return Err(RecipeError::new(format!("run.on: there is no server {unknown}")).meant(unknown, &known));
        }
        let kinds = [
            (!self.run.workload.trim().is_empty(), "workload"),
            (!self.run.case.is_empty(), "case"),
            (self.run.io.is_some(), "io"),
        ];
        let mut given = kinds.iter().filter(|(given, _)| *given).map(|(_, kind)| *kind);
        match (given.next(), given.next()) {
            (None, _) => {
                let mut error =
                    RecipeError::new("run.workload is missing, such as workload = \"tpcc --warehouses 10\"");
                error.hint =
                    Some("or [[run.case]] with statements to time, or run.io for files without a server".into());
                Err(error)
            }
            (Some(one), Some(other)) => Err(RecipeError::new(format!("run has both {one} and {other}: give one"))),
            (Some("io"), None) => Ok(()),
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
}

impl Server {
    fn check(&self, name: &str) -> Result<(), RecipeError> {
        let server = self;
        match (&server.product, &server.url) {
            (None, None) => {
                return Err(RecipeError::new(format!("server.{name} has neither product nor url")));
            }
            (Some(_), Some(_)) => return Err(RecipeError::new(format!("server.{name} has both product and url"))),
            (None, Some(_)) => {
                let plain = Server {
                    url: server.url.clone(),
                    sql: server.sql.clone(),
                    parameters: server.parameters.clone(),
                    ..Server::default()
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
                return Err(RecipeError::new(format!("server.{name}: socket leads to the server, past its front")));
            }
            (Some(_), None) => {}
        }
        Ok(())
    }
}
