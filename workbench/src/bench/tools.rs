//! How each tool is called, and how its report is parsed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use testkit::{Kind, Server};

use xtask::steps::root;

/// A load generator, or a program that does only what a load generator cannot avoid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Assay,
    Sysbench,
    Pgbench,
    /// The example `floor` of assay-io: event loop, protocol and a histogram, without script and engine.
    Protocol,
    /// Sends bytes that were prepared in advance.
    Bare,
}

/// One run.
pub(super) struct Trial<'a> {
    pub(super) workload: &'a str,
    pub(super) sessions: u32,
    pub(super) seconds: u32,
    pub(super) table_size: u64,
}

/// The results that a tool reports.
#[derive(Debug, PartialEq)]
pub(super) struct Done {
    /// Statements executed, of all kinds, over the whole run.
    pub(super) queries: f64,
    /// Queries per second, by the tool's own clock.
    pub(super) qps: f64,
    /// Median latency of a transaction in microseconds; for pgbench the mean.
    pub(super) middle_us: f64,
}

impl Tool {
    /// The load generators, in the order of tables; assay first.
    pub(super) const PEERS: [Tool; 3] = [Tool::Assay, Tool::Sysbench, Tool::Pgbench];
    /// Lower bounds of assay's cost.
    pub(super) const FLOORS: [Tool; 2] = [Tool::Protocol, Tool::Bare];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::Assay => "assay",
            Tool::Sysbench => "sysbench",
            Tool::Pgbench => "pgbench",
            Tool::Protocol => "(no script)",
            Tool::Bare => "(bare loop)",
        }
    }

    /// Its name and version, as it prints them.
    pub(super) fn version(self) -> Result<String> {
        let output = Command::new(self.program()).arg("--version").output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn program(self) -> PathBuf {
        match self {
            Tool::Assay => built("assay"),
            Tool::Protocol | Tool::Bare => built("examples/floor"),
            Tool::Sysbench => "sysbench".into(),
            Tool::Pgbench => Kind::Postgres.program("pgbench"),
        }
    }

    /// Whether it has this workload: pgbench and the floors are compared where a transaction is a single statement.
    pub(super) fn takes(self, kind: Kind, workload: &str) -> bool {
        match self {
            Tool::Assay | Tool::Sysbench => true,
            Tool::Pgbench => is_postgres(kind) && workload == "oltp_point_select",
            Tool::Protocol | Tool::Bare => workload == "oltp_point_select",
        }
    }

    /// The command that runs a trial on prepared tables; `folder` is for a script, if one is needed.
    pub(super) fn run(self, server: &Server, trial: &Trial<'_>, folder: &Path) -> Result<Command> {
        let mut command = Command::new(self.program());
        let Trial { workload, sessions, seconds, table_size } = *trial;
        match self {
            Tool::Assay => {
                command.args([
                    "run",
                    workload,
                    "--db",
                    &server.url("app"),
                    "--tables=1",
                    "--format=json",
                    "--no-record",
                ]);
                command.arg(format!("--table-size={table_size}"));
                command.args([format!("--sessions={sessions}"), format!("--time={seconds}s")]);
            }
            Tool::Sysbench => {
                sysbench(&mut command, server, "app").args([
                    workload,
                    "run",
                    "--tables=1",
                    "--report-interval=0",
                    "--percentile=50",
                ]);
                command.arg(format!("--table-size={table_size}"));
                command.args([format!("--threads={sessions}"), format!("--time={seconds}")]);
            }
            Tool::Pgbench => {
                let script = folder.join("point_select.pgbench");
                let text = format!("\\set id random(1, {table_size})\nSELECT c FROM sbtest1 WHERE id = :id;\n");
                std::fs::write(&script, text)?;
                command.args(["-n", "-M", "prepared", "-h", "127.0.0.1", "-U", "app"]).arg("-f").arg(&script);
                command.args([
                    "-p",
                    &server.port().to_string(),
                    "-c",
                    &sessions.to_string(),
                    "-T",
                    &seconds.to_string(),
                ]);
                command.args(["-j", &sessions.min(2).to_string(), "app"]);
            }
            Tool::Protocol | Tool::Bare => {
                let mode = if self == Tool::Bare { "bare" } else { "protocol" };
                command.args([mode, "auto", &server.url("app")]);
                command.args([u64::from(sessions), seconds.into(), table_size].map(|number| number.to_string()));
            }
        }
        Ok(command)
    }

    /// The command that creates and fills tables; pgbench has its own tables.
    pub(super) fn prepare(self, server: &Server, database: &str, tables: u32, rows: u64) -> Command {
        let mut command = Command::new(self.program());
        match self {
            Tool::Assay => command.args(["prepare", "oltp_read_write", "--db", &server.url(database), "--sessions=2"]),
            _ => sysbench(&mut command, server, database).args(["oltp_read_write", "prepare", "--threads=2"]),
        };
        command.args([format!("--tables={tables}"), format!("--table-size={rows}")]);
        command
    }

    /// Parses its report.
    pub(super) fn read(self, output: &str) -> Result<Done> {
        match self {
            Tool::Assay | Tool::Protocol | Tool::Bare => read_assay(output),
            Tool::Sysbench => read_sysbench(output),
            Tool::Pgbench => read_pgbench(output),
        }
        .with_context(|| format!("reading the report of {}:\n{output}", self.name()))
    }
}

pub(super) fn is_postgres(kind: Kind) -> bool {
    matches!(kind, Kind::Postgres | Kind::Postgres18)
}

fn sysbench<'a>(command: &'a mut Command, server: &Server, database: &str) -> &'a mut Command {
    let (driver, prefix) = if is_postgres(server.kind()) { ("pgsql", "pgsql") } else { ("mysql", "mysql") };
    command.arg(format!("--db-driver={driver}")).args([
        format!("--{prefix}-host=127.0.0.1"),
        format!("--{prefix}-port={}", server.port()),
        format!("--{prefix}-user=app"),
        format!("--{prefix}-db={database}"),
    ])
}

/// The findings of a run of one stage: docs/record.md.
fn read_assay(output: &str) -> Result<Done> {
    let findings: Value = serde_json::from_str(output)?;
    let total = &findings["stages"][0]["total"];
    let queries = total["statements"].as_f64().context("no stages[0].total.statements")?;
    let qps = total["qps"].as_f64().context("no stages[0].total.qps")?;
    ensure!(queries > 0.0, "nothing was measured");
    let p50 = total["response"]["p50_ns"].as_f64().context("no stages[0].total.response.p50_ns")?;
    Ok(Done { queries, qps, middle_us: p50 / 1e3 })
}

/// `    queries:     123456 (1234.56 per sec.)` and `         50th percentile:    0.05`
fn read_sysbench(output: &str) -> Result<Done> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("queries:")).context("no line `queries:`")?;
    let numbers: Vec<f64> =
        line.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|word| word.parse().ok()).collect();
    let [queries, qps] = numbers[..] else { bail!("not two numbers: {line}") };
    let start = "50th percentile:";
    let p50 = output.lines().find_map(|line| line.trim().strip_prefix(start)).context("no line `50th percentile:`")?;
    Ok(Done { queries, qps, middle_us: p50.trim().parse::<f64>()? * 1e3 })
}

/// `number of transactions actually processed: 123` and `tps = 45.6 (without initial connection time)`
/// and `latency average = 0.123 ms`.
fn read_pgbench(output: &str) -> Result<Done> {
    let after = |start: &str| -> Result<f64> {
        let line = output.lines().find_map(|line| line.strip_prefix(start)).with_context(|| format!("no `{start}`"))?;
        let word = line.split([' ', '/']).find(|word| !word.is_empty()).context("nothing follows")?;
        Ok(word.parse()?)
    };
    let (queries, qps) = (after("number of transactions actually processed: ")?, after("tps = ")?);
    Ok(Done { queries, qps, middle_us: after("latency average = ")? * 1e3 })
}

/// Where the build put a program.
pub(super) fn built(program: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    root().join(target).join("release").join(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_every_tool_are_read() {
        let sysbench = "    transactions:   50  (6.2 per sec.)\n    queries:   1000   (123.45 per sec.)\n    ignored errors: 0\n         50th percentile:    0.25\n";
        assert_eq!(read_sysbench(sysbench).unwrap(), Done { queries: 1000.0, qps: 123.45, middle_us: 250.0 });
        let pgbench = "number of transactions actually processed: 4711\nnumber of failed transactions: 0 (0.000%)\n\
                       latency average = 0.5 ms\ninitial connection time = 2.1 ms\ntps = 588.5 (without initial connection time)\n";
        assert_eq!(read_pgbench(pgbench).unwrap(), Done { queries: 4711.0, qps: 588.5, middle_us: 500.0 });
        let assay =
            r#"{ "stages": [{ "total": { "statements": 1000, "qps": 125.0, "response": { "p50_ns": 9000 } } }] }"#;
        assert_eq!(read_assay(assay).unwrap(), Done { queries: 1000.0, qps: 125.0, middle_us: 9.0 });
    }

    #[test]
    fn a_report_that_says_nothing_is_an_error() {
        for tool in Tool::PEERS.into_iter().chain(Tool::FLOORS) {
            assert!(tool.read("{}").is_err(), "{tool:?}");
            assert!(tool.read("").is_err(), "{tool:?}");
        }
    }
}
