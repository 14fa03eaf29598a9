//! The environment of a measurement: servers and machine.

use std::fs;
use std::process::Command;

use anyhow::Result;
use testkit::{Kind, Server, ServerSetup};

use super::tools::Tool;

/// With more sessions than this, the server is configured for them.
pub(super) const MANY: u32 = 500;

/// A server with room for the data and for every session, and without checkpoints during the measurement.
pub(super) fn start(kind: Kind, sessions_max: u32) -> Result<Server> {
    let mut config: Vec<&str> = match kind {
        Kind::Postgres | Kind::Postgres18 => {
            vec!["shared_buffers = 512MB", "max_wal_size = 8GB", "checkpoint_timeout = 1h", "autovacuum = off"]
        }
        _ => vec!["innodb_buffer_pool_size = 1G", "innodb_log_file_size = 1G"],
    };
    // As its manual recommends for many connections; the other servers have no thread pool, or not for free.
    if kind == Kind::MariaDb && sessions_max > MANY {
        config.push("thread_handling = pool-of-threads");
    }
    let config = config.into_iter().map(str::to_owned).collect();
    kind.start(&ServerSetup { config, max_connections: sessions_max + 100, ..ServerSetup::default() })
}

/// The machine that the numbers were measured on.
pub(super) fn heading(title: &str, servers: &[Kind]) -> Result<String> {
    let cpus = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("\t: unknown");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    let mut versions: Vec<String> =
        servers.iter().map(|kind| Ok(format!("{} {}", kind.name(), kind.version()?))).collect::<Result<_>>()?;
    for tool in Tool::PEERS {
        versions.push(tool.version()?);
    }
    let date = Command::new("date").args(["-u", "+%F"]).output()?.stdout;
    Ok(format!(
        "# {title}\n\n{}: {} CPUs,{}, Linux {}, client and server on the same machine, TCP loopback.\n\
         Load average before the first run: {load} (what else ran then is in these numbers).\n{}.\n",
        String::from_utf8_lossy(&date).trim(),
        std::thread::available_parallelism()?,
        model
            .trim_start_matches(['\t', ' ', ':'])
            .split_whitespace()
            .fold(String::new(), |text, word| text + " " + word),
        kernel.trim(),
        versions.join(", "),
    ))
}

/// Parses a kind of server by its name.
pub(super) fn kind(name: &str) -> Result<Kind, String> {
    [Kind::Postgres, Kind::Postgres18, Kind::MariaDb, Kind::MySql]
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| "one of postgres, postgres18, mariadb, mysql".to_owned())
}
