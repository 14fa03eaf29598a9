//! assay beside its peers: the same statements on the same server in the same run, one tool after the other.
//!
//! What is compared is what the *client* costs, CPU time per query as the kernel counted it, and what it gets
//! out of the server. Client and server share the machine, so QPS says as much about the room a client leaves to the
//! server as about its own speed. Each repeat starts with another tool, so that a server that grows
//! slower or faster favours none. Every number is a median, with the least and the most beside it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use testkit::{Kind, Server, Settings};

use crate::install;
use crate::steps::{cargo, root, run as run_command};

mod connections;
mod load;
mod measure;
mod memory;
mod queries;
mod tools;

/// What `cargo xtask bench` takes.
#[derive(Args)]
#[group(skip)] // Else it would be a group of the same name as the one flattened into it.
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    queries: queries::Options,
}

#[derive(Subcommand)]
enum What {
    /// Fill tables instead of querying them
    Load(load::Options),
    /// Hold as many connections as several servers can
    Connections(connections::Options),
    /// Memory per session of many sessions
    Memory(memory::Options),
}

/// Measures, prints a table in Markdown, and writes it to `--out` too.
pub(crate) fn run(options: &Options) -> Result<()> {
    install::run_all()?;
    run_command(&mut cargo(&["build", "--release", "-p", "assay"]))?;
    if options.queries.floor {
        run_command(&mut cargo(&["build", "--release", "-p", "assay-io", "--example", "floor"]))?;
    }
    let (report, out) = match &options.what {
        None => (queries::run(&options.queries)?, &options.queries.out),
        Some(What::Load(options)) => (load::run(options)?, &options.out),
        Some(What::Connections(options)) => (connections::run(options)?, &options.out),
        Some(What::Memory(options)) => (memory::run(options)?, &None),
    };
    print!("{report}");
    if options.what.is_none() && options.queries.document {
        document(&report)?;
    }
    if let Some(path) = out {
        fs::write(path, &report).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// The document about speed, and what encloses the part of it that is measured.
const DOCUMENT: &str = "docs/performance.md";
const FROM: &str = "<!-- written by `cargo xtask bench --document` from here -->\n";
const TO: &str = "<!-- to here -->\n";

/// Puts the report in the place of the one before.
fn document(report: &str) -> Result<()> {
    let path = root().join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let text = replaced(&text, report).with_context(|| format!("{DOCUMENT} has no place for what is measured"))?;
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

/// `text` with `report` between the marks; a heading of the report becomes one of a section.
fn replaced(text: &str, report: &str) -> Option<String> {
    let (before, rest) = text.split_once(FROM)?;
    let (_, after) = rest.split_once(TO)?;
    Some(format!("{before}{FROM}#{report}{TO}{after}"))
}

/// Where the build above left a program.
fn built(program: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    root().join(target).join("release").join(program)
}

/// A server that has room for the data and for every session, and does not write checkpoints meanwhile.
fn start(kind: Kind, sessions_max: u32) -> Result<Server> {
    let mut config: Vec<&str> = match kind {
        Kind::Postgres | Kind::Postgres18 => {
            vec!["shared_buffers = 512MB", "max_wal_size = 8GB", "checkpoint_timeout = 1h", "autovacuum = off"]
        }
        _ => vec!["innodb_buffer_pool_size = 1G", "innodb_log_file_size = 1G"],
    };
    // As its manual advises for many connections; the others have none, or not for free.
    if kind == Kind::MariaDb && sessions_max > queries::MANY {
        config.push("thread_handling = pool-of-threads");
    }
    let config = config.into_iter().map(str::to_owned).collect();
    kind.start(&Settings { config, max_connections: sessions_max + 100, ..Settings::default() })
}

/// What the numbers were measured on.
fn heading(title: &str, servers: &[Kind]) -> Result<String> {
    let cpus = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("\t: unknown");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    let mut versions: Vec<String> =
        servers.iter().map(|kind| Ok(format!("{} {}", kind.name(), kind.version()?))).collect::<Result<_>>()?;
    for tool in tools::Tool::PEERS {
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
fn kind(name: &str) -> Result<Kind, String> {
    [Kind::Postgres, Kind::Postgres18, Kind::MariaDb, Kind::MySql]
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| "one of postgres, postgres18, mariadb, mysql".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_a_place_for_what_is_measured() {
        let text = fs::read_to_string(root().join(DOCUMENT)).unwrap();
        let text = replaced(&text, "# Queries\n").unwrap();
        assert!(text.contains(&format!("{FROM}## Queries\n{TO}")), "{text}");
        assert_eq!(replaced("nothing", ""), None);
    }
}
