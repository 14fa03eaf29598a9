//! Queries on tables that are there: CPU time per query and queries per second, over servers, workloads, sessions.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use testkit::Kind;

use super::measure::{Sample, measure};
use super::tools::{Tool, Trial, is_postgres};
use super::{heading, kind, start};

#[derive(Args)]
pub(super) struct Options {
    /// Servers: postgres, postgres18, mariadb, mysql
    #[arg(long, value_delimiter = ',', default_value = "postgres,mariadb", value_parser = kind)]
    servers: Vec<Kind>,
    /// Workloads that assay and sysbench both have
    #[arg(long, value_delimiter = ',', default_value = "oltp_point_select,oltp_read_write")]
    workloads: Vec<String>,
    /// Numbers of sessions
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256", value_parser = clap::value_parser!(u32).range(1..=500))]
    sessions: Vec<u32>,
    /// Runs of each tool in each cell
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Length of a run
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Rows of the table
    #[arg(long, default_value_t = 100_000)]
    table_size: u64,
    /// Write the table to this file too
    #[arg(long)]
    pub(super) out: Option<PathBuf>,
}

/// What a tool showed in a cell.
struct Shown {
    tool: Tool,
    /// Microseconds of client CPU per query.
    cpu: Sample,
    qps: Sample,
    /// Bytes per session.
    memory: Sample,
}

pub(super) fn run(options: &Options) -> Result<String> {
    let mut report = heading("Queries: assay beside its peers", &options.servers)?;
    writeln!(
        report,
        "One table of {} rows; {} runs of {} s for each tool and cell, in turn; median [least–most].\n\
         CPU: of the client process from start to end, connecting included, per query it counted.\n\
         Ratios: assay's median over the peer's. Memory: largest resident set per session.\n\n\
         | server | workload | sessions | tool | CPU µs/query | QPS | memory KiB/session | CPU assay ÷ it | QPS assay ÷ it |\n\
         | --- | --- | --: | --- | --: | --: | --: | --: | --: |",
        options.table_size, options.repeats, options.seconds
    )?;
    let folder = tempfile::tempdir()?;
    for kind in &options.servers {
        let server = start(*kind)?;
        measure(&mut Tool::Assay.prepare(&server, "app", 1, options.table_size))?;
        if is_postgres(*kind) {
            server.sql("app", "VACUUM ANALYZE;")?; // Autovacuum would do it at a time of its own.
        }
        for workload in &options.workloads {
            for sessions in &options.sessions {
                let (workload, sessions, seconds, table_size) =
                    (&**workload, *sessions, options.seconds, options.table_size);
                let trial = Trial { workload, sessions, seconds, table_size };
                let shown = cell(&server, &trial, options.repeats, folder.path());
                report += &rows(&format!("| {} | {workload} | {sessions} |", kind.name()), &shown);
            }
        }
    }
    Ok(report)
}

/// Runs every tool that has the workload in turn, `repeats` times. What failed is said and left out.
fn cell(server: &testkit::Server, trial: &Trial<'_>, repeats: u32, folder: &std::path::Path) -> Vec<Shown> {
    let tools: Vec<Tool> = Tool::ALL.into_iter().filter(|tool| tool.takes(server.kind(), trial.workload)).collect();
    let mut values: Vec<[Vec<f64>; 3]> = vec![Default::default(); tools.len()];
    for repeat in 0..repeats as usize {
        for turn in 0..tools.len() {
            let i = (repeat + turn) % tools.len();
            let what = format!("{} {} {} sessions", server.kind().name(), trial.workload, trial.sessions);
            let measured = tools[i].run(server, trial, folder).and_then(|mut command| {
                let usage = measure(&mut command)?;
                Ok((tools[i].read(&usage.output)?, usage))
            });
            match measured {
                Err(error) => eprintln!("{what}: {} failed: {error:#}", tools[i].name()),
                Ok((done, usage)) => {
                    let cpu = usage.cpu.as_secs_f64() * 1e6 / done.queries;
                    eprintln!("{what}: {:<8} {cpu:7.2} µs/query {:9.0} QPS", tools[i].name(), done.qps);
                    values[i][0].push(cpu);
                    values[i][1].push(done.qps);
                    values[i][2].push(usage.memory_bytes as f64 / f64::from(trial.sessions));
                }
            }
        }
    }
    tools
        .into_iter()
        .zip(values)
        .filter_map(|(tool, [cpu, qps, memory])| {
            Some(Shown { tool, cpu: Sample::new(cpu)?, qps: Sample::new(qps)?, memory: Sample::new(memory)? })
        })
        .collect()
}

/// A row for every tool; the peers' say how assay compares to them.
fn rows(start: &str, shown: &[Shown]) -> String {
    let ours = shown.iter().find(|one| one.tool == Tool::Assay);
    let mut rows = String::new();
    for one in shown {
        let ratio = |of: fn(&Shown) -> &Sample| match ours {
            Some(ours) if one.tool != Tool::Assay => format!("{:.2}", of(ours).median() / of(one).median()),
            _ => String::new(),
        };
        let (cpu, qps) = (one.cpu.text(2), one.qps.text(0));
        let memory = one.memory.median() / 1024.0;
        let (cpu_ratio, qps_ratio) = (ratio(|shown| &shown.cpu), ratio(|shown| &shown.qps));
        let name = one.tool.name();
        rows += &format!("{start} {name} | {cpu} | {qps} | {memory:.0} | {cpu_ratio} | {qps_ratio} |\n");
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_peers_say_how_assay_compares() {
        let shown = |tool, cpu: f64, qps: f64| Shown {
            tool,
            cpu: Sample::new(vec![cpu]).unwrap(),
            qps: Sample::new(vec![qps]).unwrap(),
            memory: Sample::new(vec![2048.0]).unwrap(),
        };
        assert_eq!(
            rows("|", &[shown(Tool::Assay, 9.0, 2000.0), shown(Tool::Sysbench, 12.0, 1000.0)]),
            "| assay | 9.00 [9.00–9.00] | 2,000 [2,000–2,000] | 2 |  |  |\n\
             | sysbench | 12.00 [12.00–12.00] | 1,000 [1,000–1,000] | 2 | 0.75 | 2.00 |\n"
        );
    }
}
