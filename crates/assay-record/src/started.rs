//! The server that was started for a run, and how earlier records described it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::attribute::Attribute;

/// A server that was started for a run, and removed afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredServer")]
pub struct StartedServer {
    /// Its product as in `assay server`: `postgres`.
    pub product: String,
    /// Its version.
    pub version: String,
    /// The program's path.
    pub program: String,
    /// Requested settings and placement, replicas, fronts, how its data was restored, and what steps before the run
    /// reached.
    pub identity: Vec<Attribute>,
    /// Its configuration as written, by file; for replicas and fronts, preceded by their names.
    pub configuration: BTreeMap<String, String>,
    /// How long each part of the start took.
    pub timings_ns: BTreeMap<String, u64>,
}

/// A started server as any record holds it: the first ones had a field for each attribute.
#[derive(Deserialize)]
struct StoredServer {
    #[serde(default)]
    product: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    program: String,
    #[serde(default)]
    identity: Vec<Attribute>,
    #[serde(default)]
    configuration: BTreeMap<String, String>,
    #[serde(default)]
    timings_ns: BTreeMap<String, u64>,
    #[serde(default)]
    settings: Vec<StoredSetting>,
    #[serde(default)]
    cpus: Option<String>,
    #[serde(default)]
    memory_bytes: Option<u64>,
    #[serde(default)]
    fronts: Vec<String>,
    #[serde(default)]
    restored_by: Option<String>,
    #[serde(default)]
    settled: Vec<StoredStep>,
}

#[derive(Deserialize)]
struct StoredSetting {
    name: String,
    asked: Option<String>,
    in_effect: Option<String>,
    same: bool,
}

#[derive(Deserialize)]
struct StoredStep {
    step: String,
    reached: Vec<String>,
    complete: bool,
}

/// Removes the fields that became attributes from the JSON of a started server.
pub(crate) fn without_earlier_fields(started: &mut Value) {
    if let Value::Object(fields) = started {
        for name in ["settings", "cpus", "memory_bytes", "fronts", "restored_by", "settled"] {
            fields.remove(name);
        }
    }
}

impl From<StoredServer> for StartedServer {
    fn from(stored: StoredServer) -> StartedServer {
        let fronts = stored.fronts.len();
        let settings = stored.settings.into_iter();
        let mut identity = stored.identity;
        identity.extend(settings.map(|one| Attribute::setting(&one.name, one.asked, one.in_effect, one.same)));
        identity.extend(stored.cpus.map(|cpus| Attribute::placement("pinned CPUs", cpus)));
        identity.extend(stored.memory_bytes.map(|bytes| Attribute::memory("memory limit", bytes)));
        identity.extend(
            stored.fronts.into_iter().enumerate().map(|(place, program)| Attribute::front(place, fronts, program)),
        );
        identity.extend(stored.restored_by.map(|method| Attribute::restored(&method)));
        identity.extend(stored.settled.iter().flat_map(|one| Attribute::step(&one.step, &one.reached, one.complete)));
        StartedServer {
            product: stored.product,
            version: stored.version,
            program: stored.program,
            identity,
            configuration: stored.configuration,
            timings_ns: stored.timings_ns,
        }
    }
}
