//! Memory of many sessions: the maximum resident set of the whole process, with and without encryption.
//!
//! Sessions of oltp_read_write with prepared statements, on MariaDB with its thread pool, which can hold many
//! connections. Neither the server nor the load of the machine affects the result.

use std::fmt::Write;
use std::process::Command;

use anyhow::Result;
use clap::Args;
use testkit::{Kind, ServerSetup, Tls};

use super::measure::{measure, number};
use super::setting::heading;
use super::tools::{Tool, built};

#[derive(Args)]
pub(super) struct Options {
    /// Numbers of sessions
    #[arg(long, value_delimiter = ',', default_value = "1000,10000", value_parser = clap::value_parser!(u32).range(1..=15_000))]
    sessions: Vec<u32>,
    /// Length of a run, after all are connected
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
}

const ROWS: u64 = 100_000;

pub(super) fn run(options: &Options) -> Result<String> {
    let mut report = heading("Memory: many sessions of oltp_read_write", &[Kind::MariaDb])?;
    report += "\n| sessions | encrypted | resident MiB at most | KiB/session |\n| --: | --- | --: | --: |\n";
    let most = options.sessions.iter().max().copied().unwrap_or(1);
    for (tls, mode, encrypted) in [(Tls::Off, "disabled", "no"), (Tls::Offered, "required", "TLS")] {
        let config = ["thread_handling = pool-of-threads", "back_log = 4096", "max_prepared_stmt_count = 1048576"];
        let config = config.map(str::to_owned).to_vec();
        let settings = ServerSetup { config, max_connections: most + 100, tls, ..ServerSetup::default() };
        let server = Kind::MariaDb.start(&settings)?;
        measure(&mut Tool::Assay.prepare(&server, "app", 1, ROWS))?;
        let url = format!("{}?ssl-mode={mode}", server.url("app"));
        for sessions in &options.sessions {
            let mut command = Command::new(built("assay"));
            command.args(["run", "oltp_read_write", "--db", &url, "--tables=1", "--format=json", "--no-record"]);
            command.args([format!("--table-size={ROWS}"), format!("--sessions={sessions}")]);
            command.arg(format!("--time={}s", options.seconds));
            let bytes = measure(&mut command)?.memory_bytes as f64;
            let (whole, each) = (number(bytes / 1048576.0, 1), number(bytes / 1024.0 / f64::from(*sessions), 1));
            writeln!(report, "| {} | {encrypted} | {whole} | {each} |", number(f64::from(*sessions), 0))?;
        }
    }
    Ok(report)
}
