//! What one cell runs: a server, its data, the load. Every field that a factor can set stands here.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::error::RecipeError;

/// A cell's document, read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setup {
    /// Servers by their names; exactly one by now.
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
}

/// A pooler or proxy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Front {
    /// In its own words.
    pub settings: BTreeMap<String, Word>,
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
    /// What `assay run` takes: `tpcc --warehouses 10`.
    pub workload: String,
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
    /// The server's name and description.
    pub fn only_server(&self) -> (&str, &Server) {
        self.server.iter().next().map(|(name, server)| (name.as_str(), server)).expect("`check` found one")
    }

    /// Whether there is all that a trial needs.
    pub(crate) fn check(&self) -> Result<(), RecipeError> {
        let mut servers = self.server.iter();
        let (Some((name, server)), None) = (servers.next(), servers.next()) else {
            let count = self.server.len();
            let mut error = RecipeError::new(format!("a recipe has exactly one server, but this one has {count}"));
            error.hint =
                Some("such as [server.db] with product = \"postgres:15\"; replicas and front belong to it".into());
            return Err(error);
        };
        match (&server.product, &server.url) {
            (None, None) => {
                return Err(RecipeError::new(format!("server.{name} has neither product nor url")));
            }
            (Some(_), Some(_)) => return Err(RecipeError::new(format!("server.{name} has both product and url"))),
            (None, Some(_)) => {
                let plain = Server { url: server.url.clone(), sql: server.sql.clone(), ..Server::default() };
                if *server != plain {
                    let mut error =
                        RecipeError::new(format!("server.{name} is given by its url: it can be changed only by SQL"));
                    error.hint =
                        Some(format!("use server.{name}.sql, run.session_sql or steps; or product instead of url"));
                    return Err(error);
                }
            }
            (Some(_), None) => {}
        }
        if self.run.workload.trim().is_empty() {
            return Err(RecipeError::new("run.workload is missing, such as workload = \"tpcc --warehouses 10\""));
        }
        Ok(())
    }
}

/// Text, or a number or switch as text: settings and options are written as their server or workload spells them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word(pub String);

/// One word or a list of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(pub Vec<String>);

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

struct Scalar;

impl Visitor<'_> for Scalar {
    type Value = Word;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number, true or false")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Word, E> {
        Ok(Word(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Word, E> {
        Ok(Word(value.to_string()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Word, E> {
        Ok(Word(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Word, E> {
        Ok(Word(value.to_string()))
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<Word, E> {
        Ok(Word(if on { "on" } else { "off" }.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        deserializer.deserialize_any(Scalar)
    }
}

struct List;

impl<'de> Visitor<'de> for List {
    type Value = Words;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value, or a list of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
        Ok(Words(vec![text.to_owned()]))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Words, E> {
        Ok(Words(vec![value.to_string()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Words, A::Error> {
        let mut words = Vec::new();
        while let Some(Word(word)) = items.next_element()? {
            words.push(word);
        }
        Ok(Words(words))
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Words, D::Error> {
        deserializer.deserialize_any(List)
    }
}
