//! Options of a fleet: agents on other machines, and the commands that divide their work between them.

use std::path::PathBuf;

use assay_fleet::{Nats, Pattern};
use assay_seam::Nanos;
use assay_spec::values;
use clap::Args;

use crate::command_line::shared::{small_count, small_index};

/// Load from many machines.
#[derive(Args, Clone)]
#[command(next_help_heading = "Fleet")]
pub struct FleetOptions {
    /// Divide the work between agents on other machines, which are connected to this NATS server (see `assay agent`)
    #[arg(long = "fleet", alias = "nats", value_name = "URL", value_parser = nats_url)]
    pub url: Option<String>,
    /// Number of agents [default: all that are free]
    #[arg(long, value_name = "N", requires = "url", value_parser = small_count)]
    pub agents: Option<u32>,
    /// NATS credentials file
    #[arg(long, alias = "creds", value_name = "FILE", requires = "url")]
    pub fleet_creds: Option<PathBuf>,
    /// Certificate authorities of the NATS server, as a PEM file [default: those of the system]
    #[arg(long, alias = "ca", value_name = "FILE", requires = "url")]
    pub fleet_ca: Option<PathBuf>,
    /// Let each agent connect to the database that its environment variable ASSAY_DB names; --db is used only here
    #[arg(long, requires = "url")]
    pub db_from_agent_env: bool,
    /// How long agents run on without the coordinator, and how long it waits for a silent agent
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = values::lease)]
    pub lease: Nanos,
}

/// Where NATS is.
#[derive(Args, Clone)]
pub struct NatsOptions {
    /// NATS server with JetStream, such as nats://10.0.0.1:4222 or tls://assay:PASSWORD@nats.example.com
    #[arg(long = "nats", alias = "fleet", value_name = "URL", value_parser = nats_url)]
    pub url: String,
    /// NATS credentials file
    #[arg(long, alias = "fleet-creds", value_name = "FILE")]
    pub creds: Option<PathBuf>,
    /// Certificate authorities of the NATS server, as a PEM file [default: those of the system]
    #[arg(long, alias = "fleet-ca", value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

impl NatsOptions {
    /// For the bus.
    pub fn nats(&self) -> Nats {
        Nats { url: self.url.clone(), credentials: self.creds.clone(), ca: self.ca.clone() }
    }
}

/// Options of `agent`.
#[derive(Args, Clone)]
pub struct AgentOptions {
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub nats: NatsOptions,
    /// Name in messages and reports [default: MACHINE:PROCESS]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Load only servers that match this pattern, such as db*.example.com:5432; may be repeated [default: any server]
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub allow_db: Vec<Pattern>,
    /// Always take this share of a run, counted from zero, such as the index of a Kubernetes Job [default: any]
    #[arg(long, value_name = "N", value_parser = small_index)]
    pub share: Option<u32>,
    /// Exit after one run
    #[arg(long)]
    pub once: bool,
}

/// Where a NATS server is: `--fleet` and `--nats` are one option.
fn nats_url(text: &str) -> Result<String, String> {
    const EXPECTED: &str = "expected the URL of a NATS server, such as nats://10.0.0.1:4222";
    let place = match text.split_once("://") {
        Some(("nats" | "tls" | "ws" | "wss", place)) => place,
        Some(_) => return Err(EXPECTED.to_owned()),
        // `HOST:PORT`
        None if text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => text,
        None if text.parse::<u32>().is_ok() => return Err(format!("{EXPECTED}; how many agents: --agents {text}")),
        None => return Err(EXPECTED.to_owned()),
    };
    if place.is_empty() { Err(EXPECTED.to_owned()) } else { Ok(text.to_owned()) }
}

fn pattern(text: &str) -> Result<Pattern, String> {
    text.parse()
}

/// Options of `fleet`.
#[derive(Args, Clone)]
pub struct FleetCommandOptions {
    /// What to do
    #[command(subcommand)]
    pub action: FleetAction,
}

/// What can be done with a fleet.
#[derive(clap::Subcommand, Clone)]
pub enum FleetAction {
    /// List the agents and the results that have not been collected
    Status(NatsOptions),
    /// Check NATS and every agent: versions, clocks, limits
    Doctor(NatsOptions),
    /// Collect the results of a run whose coordinator is gone, and write its record
    Collect(CollectOptions),
}

/// Options of `fleet collect`.
#[derive(Args, Clone)]
pub struct CollectOptions {
    /// Run, as shown by `assay fleet status` [default: the only one]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub nats: NatsOptions,
    /// Path of the record [default: assay-records/WORKLOAD-TIME.json.zst]
    #[arg(long, value_name = "PATH")]
    pub record: Option<PathBuf>,
    /// Replace an existing record
    #[arg(long)]
    pub force: bool,
}
