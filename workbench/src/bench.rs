//! Compares assay with other load generators: the same statements on the same server, alternating between tools.
//!
//! It compares what the *client* costs, CPU time per query as counted by the kernel, and the throughput it gets out of
//! the server. Client and server share the machine, so QPS depends on the CPU that a client leaves to the server as
//! much as on its own speed. Each repeat starts with another tool, so that a server that becomes slower or faster
//! favors none. Every number is a median, with minimum and maximum.

use std::fs;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use xtask::install;
use xtask::steps::{cargo, root, run as run_command};

mod connections;
mod load;
mod measure;
mod memory;
mod queries;
mod setting;
mod tools;

/// What `cargo xtask bench` takes.
#[derive(Args)]
#[group(skip)] // Otherwise its group would have the name of the one flattened into it.
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
    install::everything()?;
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

/// The document about performance, and the marks around its measured part.
const DOCUMENT: &str = "docs/performance.md";
const FROM: &str = "<!-- written by `cargo xtask bench --document` from here -->\n";
const TO: &str = "<!-- to here -->\n";

/// Replaces the previous report.
fn document(report: &str) -> Result<()> {
    let path = root().join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let text = replaced(&text, report).with_context(|| format!("{DOCUMENT} has no place for what is measured"))?;
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

/// `text` with `report` between the marks; headings of the report are moved down one level.
fn replaced(text: &str, report: &str) -> Option<String> {
    let (before, rest) = text.split_once(FROM)?;
    let (_, after) = rest.split_once(TO)?;
    Some(format!("{before}{FROM}#{report}{TO}{after}"))
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
