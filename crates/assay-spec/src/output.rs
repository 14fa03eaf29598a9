//! What becomes of a result, and who shares the work. Records do not keep this: it does not change what is run.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_seam::Nanos;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Concealed, read, values};

/// Where a result goes, and what is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputSpec {
    /// Format of the result on stdout.
    pub format: Format,
    /// Path of the record; `None`: a free one in the usual folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Replace an existing record.
    #[serde(deserialize_with = "read::switch")]
    pub force: bool,
    /// Write no record.
    #[serde(deserialize_with = "read::switch")]
    pub no_record: bool,
    /// File for the transactions that the workload logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<PathBuf>,
    /// File for the history of a workload that checks isolation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<PathBuf>,
    /// Address at which live metrics are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_listen: Option<SocketAddr>,
    /// Show all options in effect, zero values, and details of the load generator.
    #[serde(deserialize_with = "read::switch")]
    pub verbose: bool,
    /// Address at which a page of the run is served.
    #[serde(skip)]
    pub serve: Option<SocketAddr>,
    /// Show the run on the whole terminal instead of lines. Not for children, which have none.
    #[serde(skip)]
    pub top: bool,
    /// Print only errors and warnings on stderr.
    #[serde(deserialize_with = "read::switch")]
    pub quiet: bool,
}

/// Format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// All findings.
    Json,
    /// Tables.
    Csv,
}

/// The agents that share the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FleetSpec {
    /// The NATS server to which they are connected.
    pub url: Concealed,
    /// Number of agents; `None`: all that are free.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::sessions")]
    pub agents: Option<u32>,
    /// File with the credentials for NATS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<PathBuf>,
    /// File with the certificate authorities of the NATS server; `None`: those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Each agent connects to the database in its own environment.
    #[serde(deserialize_with = "read::switch")]
    pub db_from_agent_env: bool,
    /// How long agents run on without the coordinator, and how long it waits for a silent agent.
    #[serde(serialize_with = "read::write_duration", deserialize_with = "lease")]
    pub lease: Nanos,
}

impl Default for FleetSpec {
    fn default() -> FleetSpec {
        FleetSpec {
            url: Concealed::default(),
            agents: None,
            credentials: None,
            ca: None,
            db_from_agent_env: false,
            lease: Nanos::from_secs(15),
        }
    }
}

fn lease<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
    read::parsed(deserializer, values::lease)
}
