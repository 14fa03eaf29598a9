//! Options of `assay server`.

use assay_lab::placement::{Cpus, Transparent};
use assay_lab::{Description, Placement};
use assay_process::diagnostics::Trouble;
use assay_run::lab;
use assay_seam::Nanos;
use assay_spec::values;
use clap::Args;
use std::time::Duration;

use crate::command_line::shared::at_least_one;

/// Options of `server`.
#[derive(Args, Clone)]
pub struct ServerOptions {
    /// What to do
    #[command(subcommand)]
    pub action: ServerAction,
}

/// What can be done with servers.
#[derive(clap::Subcommand, Clone)]
pub enum ServerAction {
    /// Start a server and print its URL
    Start(Box<StartOptions>),
    /// List the servers started on this machine
    List,
    /// Stop servers, with their replicas, poolers and proxies
    Stop(StopOptions),
    /// Kill a server, as a crash would; `restart` starts it again
    Kill {
        /// Name of the server, as shown by `assay server list`
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Restart a server on the same data and port
    Restart {
        /// Name of the server, as shown by `assay server list`
        name: String,
        /// How long to wait for it to stop before killing it
        #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
        patience: Nanos,
    },
    /// Print the end of a server's log
    Log {
        /// Name of the server, as shown by `assay server list`
        name: String,
        /// Number of lines
        #[arg(long, value_name = "N", default_value = "100", value_parser = at_least_one)]
        lines: u64,
    },
    /// List the available server versions and where they come from
    Sources {
        /// postgres, mysql, mariadb, clickhouse, mongodb or ferretdb [default: all]
        product: Option<String>,
    },
    /// List, check or remove images of data directories
    Images(ImageOptions),
    /// Open a server's own client (psql, mysql, mariadb, clickhouse-client or mongosh), connected to it
    Shell {
        /// Name of the server, as shown by `assay server list`
        name: String,
    },
}

/// Options of `server start`.
#[derive(Args, Clone)]
pub struct StartOptions {
    /// postgres, mysql, mariadb, clickhouse, mongodb or ferretdb, with a version or the start of one, such as
    /// postgres:15
    #[arg(value_name = "PRODUCT:VERSION")]
    pub product: String,
    /// Name to use in other commands [default: product and version]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Server setting, named as in its configuration file; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Configuration file for the server; --set overrides it
    #[arg(long, value_name = "FILE")]
    pub config: Option<std::path::PathBuf>,
    /// Folder or archive with the server's binaries, or container:IMAGE [default: found as `assay server sources`
    /// shows]
    #[arg(long, value_name = "PATH")]
    pub binaries: Option<std::path::PathBuf>,
    /// Load this workload's tables first, such as 'tpcc --warehouses 10'; the data is kept as an image and copied next
    /// time
    #[arg(long, value_name = "WORDS")]
    pub prepare: Option<String>,
    /// Number of replicas
    #[arg(long, value_name = "N", default_value = "0", value_parser = replicas)]
    pub replicas: u32,
    /// Put a pooler or proxy in front of the server: pgbouncer, haproxy, haproxy:replicas or haproxy:all; may be
    /// repeated
    #[arg(long, value_name = "NAME")]
    pub front: Vec<String>,
    /// Setting of the last --front, named as in its configuration file; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "front")]
    pub front_set: Vec<String>,
    /// CPUs it may run on, such as 0-3,8, socket:0 or core:0-3; add ,no-smt to use one thread per core
    #[arg(long, value_name = "CPUS")]
    pub cpus: Option<String>,
    /// Memory limit, including its page cache
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    pub memory: Option<u64>,
    /// Reserve huge pages and make the server use them
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    pub huge_pages: Option<u64>,
    /// Transparent huge pages while it runs, for the whole machine: always, madvise or never
    #[arg(long, value_name = "WHEN")]
    pub thp: Option<String>,
    /// Existing user to run it as [default: the current user, or nobody if that is root]
    #[arg(long, value_name = "USER")]
    pub run_as: Option<String>,
    /// Data directory: a new or empty folder, or an existing data directory of this version; never removed
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<std::path::PathBuf>,
    /// TCP port on the loopback interface [default: a free one]
    #[arg(long, value_name = "N", value_parser = port)]
    pub port: Option<u16>,
    /// How long to wait for it to answer, and for replicas to catch up
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = values::duration)]
    pub patience: Nanos,
}

/// Options of `server stop`.
#[derive(Args, Clone)]
pub struct StopOptions {
    /// Name of the server, as shown by `assay server list`
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Stop and remove servers left behind by a killed process
    #[arg(long)]
    pub all_stale: bool,
    /// Also remove data, log and configuration
    #[arg(long)]
    pub remove: bool,
    /// How long to wait for it to stop before killing it
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    pub patience: Nanos,
}

/// Options of `server images`.
#[derive(Args, Clone)]
pub struct ImageOptions {
    /// Check every file of an image against its checksum
    #[arg(long, value_name = "IMAGE")]
    pub verify: Vec<String>,
    /// Remove an image
    #[arg(long, value_name = "IMAGE")]
    pub remove: Vec<String>,
}

impl StartOptions {
    /// What to start.
    pub fn description(&self) -> Result<Description, Trouble> {
        let wanted = self.product.parse()?;
        Ok(Description {
            name: self.name.clone(),
            binaries: self.binaries.clone(),
            settings: lab::settings_of(&wanted, &self.set)?,
            file: self.config.as_deref().map(lab::read).transpose()?,
            placement: Placement {
                cpus: self.cpus.as_deref().map(Cpus::of_this_machine).transpose()?,
                memory_bytes: self.memory,
                huge_pages_bytes: self.huge_pages,
                transparent: self.thp.as_deref().map(thp).transpose()?,
            },
            run_as: self.run_as.clone(),
            data: self.data.clone(),
            port: self.port,
            replicas: self.replicas,
            fronts: lab::fronts(&self.front, &self.front_set)?,
            patience: Duration::from_nanos(self.patience.0),
            ..Description::of(wanted)
        })
    }
}

fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err("a port is a number from 1 to 65535; without this option, assay finds a free one".to_owned()),
    }
}

fn thp(word: &str) -> Result<Transparent, Trouble> {
    word.parse().map_err(|reason| Trouble::usage(format!("--thp {word}: {reason}")))
}

fn replicas(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|number| *number <= 8).ok_or_else(|| "expected a whole number from 0 to 8".to_owned())
}
