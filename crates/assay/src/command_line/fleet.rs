//! Options of a fleet: agents on other machines, and the commands that divide their work between them.

use std::path::PathBuf;

use assay_fleet::{Nats, Pattern};
use assay_seam::Nanos;
use assay_spec::values;
use clap::Args;

/// Load from many machines.
#[derive(Args, Clone)]
#[command(next_help_heading = "Fleet")]
pub struct FleetOptions {
    /// Divide the work between agents on other machines, which are connected to this NATS server (see `assay agent`)
    #[arg(long = "fleet", value_name = "URL")]
    pub url: Option<String>,
    /// Number of agents [default: all that are free]
    #[arg(long, value_name = "N", requires = "url", value_parser = clap::value_parser!(u32).range(1..))]
    pub agents: Option<u32>,
    /// NATS credentials file
    #[arg(long, value_name = "FILE", requires = "url")]
    pub fleet_creds: Option<PathBuf>,
    /// Certificate authorities of the NATS server, as a PEM file [default: those of the system]
    #[arg(long, value_name = "FILE", requires = "url")]
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
    #[arg(long = "nats", value_name = "URL")]
    pub url: String,
    /// NATS credentials file
    #[arg(long, value_name = "FILE")]
    pub creds: Option<PathBuf>,
    /// Certificate authorities of the NATS server, as a PEM file [default: those of the system]
    #[arg(long, value_name = "FILE")]
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
    #[arg(long, value_name = "N")]
    pub share: Option<u32>,
    /// Exit after one run
    #[arg(long)]
    pub once: bool,
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
