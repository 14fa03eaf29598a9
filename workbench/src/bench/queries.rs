//! Queries on existing tables: CPU time per query and queries per second, over servers, workloads and sessions.

use std::fmt::Write;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use testkit::Kind;

use super::measure::{Sample, measure};
use super::setting::{MANY, heading, kind, start};
use super::tools::{Tool, Trial, is_postgres};

#[derive(Args)]
pub(super) struct Options {
    /// Servers: postgres, postgres18, mariadb, mysql
    #[arg(long, value_delimiter = ',', default_value = "postgres,mariadb", value_parser = kind)]
    servers: Vec<Kind>,
    /// Workloads that assay and sysbench both have
    #[arg(long, value_delimiter = ',', default_value = "oltp_point_select")]
    workloads: Vec<String>,
    /// Numbers of sessions
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256,1024,4000", value_parser = clap::value_parser!(u32).range(1..=5000))]
    sessions: Vec<u32>,
    /// Runs of each tool in each cell
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Length of a run
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Add two programs that do only what a load generator cannot do without, to see how far from it we are
    #[arg(long)]
    pub(super) floor: bool,
    /// Rows of the table
    #[arg(long, default_value_t = 100_000)]
    table_size: u64,
    /// Put the tables into docs/performance.md, in the place of those before
    #[arg(long)]
    pub(super) document: bool,
    /// Write the tables to this file too
    #[arg(long)]
    pub(super) out: Option<PathBuf>,
}

/// The results of a tool in a cell.
struct Shown {
    tool: Tool,
    /// Microseconds of client CPU per query.
    cpu: Sample,
    qps: Sample,
    /// Microseconds; for pgbench the mean.
    middle: Sample,
    /// Bytes per session.
    memory: Sample,
}

pub(super) fn run(options: &Options) -> Result<String> {
    let mut report = heading("Queries: assay compared with sysbench and pgbench", &options.servers)?;
    let floors = if options.floor { " (no script), (bare loop): the lower bound, see below." } else { "" };
    writeln!(
        report,
        "One table of {} rows; {} runs of {} s for each tool and cell, in turn; median [least–most].\n\
         CPU: user and system time of the client process, including startup and connecting, per query.\n\
         Ratios: assay's median divided by the other tool's; in brackets our target, bold if missed. Memory: largest\n\
         resident set per session. Latency: p50 of a transaction, pgbench's mean. MariaDB with more than {MANY} sessions: with\n\
         its thread pool.{floors}\n\n\
         | server | workload | sessions | tool | CPU µs/query | QPS | latency µs | memory KiB/session | CPU ratio | QPS ratio |\n\
         | --- | --- | --: | --- | --: | --: | --: | --: | --: | --: |",
        options.table_size, options.repeats, options.seconds
    )?;
    let folder = tempfile::tempdir()?;
    let mut lost = String::new();
    for kind in &options.servers {
        let (few, many): (Vec<u32>, Vec<u32>) = options.sessions.iter().partition(|sessions| **sessions <= MANY);
        for group in [few, many] {
            let group: Vec<u32> = group.into_iter().filter(|n| !is_postgres(*kind) || *n <= PROCESSES_MAX).collect();
            let Some(most) = group.iter().max() else { continue };
            let server = start(*kind, *most)?;
            measure(&mut Tool::Assay.prepare(&server, "app", 1, options.table_size))?;
            if is_postgres(*kind) {
                server.sql("app", "VACUUM ANALYZE;")?; // Autovacuum would do it at an arbitrary time.
            }
            for workload in &options.workloads {
                for sessions in &group {
                    let (workload, sessions, seconds, table_size) =
                        (&**workload, *sessions, options.seconds, options.table_size);
                    let trial = Trial { workload, sessions, seconds, table_size };
                    let shown = cell(&server, &trial, options, folder.path());
                    let start = format!("| {} | {workload} | {sessions} |", kind.name());
                    report += &rows(&start, &shown, |tool| target(*kind, tool, &trial), &mut lost);
                }
            }
        }
    }
    if lost.is_empty() {
        lost += "None.\n";
    }
    Ok(format!("{report}\nMissed targets:\n\n{lost}"))
}

/// PostgreSQL has a process per session.
const PROCESSES_MAX: u32 = 1500;

/// The target for assay's median relative to a peer's: CPU at most, QPS at least.
#[derive(Clone, Copy)]
struct Target {
    cpu: f64,
    qps: Option<f64>,
}

fn target(kind: Kind, tool: Tool, trial: &Trial<'_>) -> Option<Target> {
    if trial.workload != "oltp_point_select" {
        return None;
    }
    let (cpu, qps) = match (tool, trial.sessions) {
        (Tool::Sysbench, 1) => (1.0, Some(1.0)),
        (Tool::Sysbench, 16) => (0.85, Some(1.0)),
        (Tool::Sysbench, 64) => (0.55, Some(1.1)),
        (Tool::Sysbench, 256) => (0.5, Some(1.2)),
        (Tool::Sysbench, 1024) => (0.3, Some(if is_postgres(kind) { 1.8 } else { 1.3 })),
        (Tool::Sysbench, 4000) => (0.22, Some(1.6)),
        (Tool::Pgbench, 1) => (1.0, None),
        (Tool::Pgbench, 16) => (0.85, None),
        (Tool::Pgbench, 64) => (0.8, None),
        (Tool::Pgbench, 256) => (0.95, None),
        (Tool::Pgbench, 1024) => (0.9, None),
        _ => return None,
    };
    Some(Target { cpu, qps })
}

/// Runs every tool that has the workload in turn, `repeats` times. Failures are reported and left out.
fn cell(server: &testkit::Server, trial: &Trial<'_>, options: &Options, folder: &std::path::Path) -> Vec<Shown> {
    let floors = Tool::FLOORS.into_iter().filter(|_| options.floor);
    let tools = Tool::PEERS.into_iter().chain(floors).filter(|tool| tool.takes(server.kind(), trial.workload));
    let tools: Vec<Tool> = tools.collect();
    let mut values: Vec<[Vec<f64>; 4]> = vec![Default::default(); tools.len()];
    for repeat in 0..options.repeats as usize {
        for turn in 0..tools.len() {
            let i = (repeat + turn) % tools.len();
            let what = format!("{} {} {} sessions", server.kind().name(), trial.workload, trial.sessions);
            let measured = tools[i].run(server, trial, folder).and_then(|mut command| {
                wait_for_rest(server)?;
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
                    values[i][3].push(done.middle_us);
                    values[i][2].push(usage.memory_bytes as f64 / f64::from(trial.sessions));
                }
            }
        }
    }
    tools
        .into_iter()
        .zip(values)
        .filter_map(|(tool, [cpu, qps, memory, middle])| {
            let [cpu, qps, memory, middle] = [cpu, qps, memory, middle].map(Sample::new);
            Some(Shown { tool, cpu: cpu?, qps: qps?, memory: memory?, middle: middle? })
        })
        .collect()
}

/// Waits until the server has closed the connections of the previous run, which would use its slots and time.
fn wait_for_rest(server: &testkit::Server) -> Result<()> {
    let others = if is_postgres(server.kind()) {
        "SELECT count(*) - 1 FROM pg_stat_activity WHERE backend_type = 'client backend';"
    } else {
        "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app';"
    };
    let end = Instant::now() + PATIENCE;
    while server.sql("app", others)?.trim().parse::<u32>()? > 0 {
        ensure!(Instant::now() < end, "the server still has connections of the run before");
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(30);

/// A row for every tool; those of the peers show how assay compares. Missed targets are added to `lost`.
fn rows(start: &str, shown: &[Shown], target: impl Fn(Tool) -> Option<Target>, lost: &mut String) -> String {
    let ours = shown.iter().find(|one| one.tool == Tool::Assay);
    let mut rows = String::new();
    for one in shown {
        let name = one.tool.name();
        let target = target(one.tool);
        let mut ratio = |what: &str, of: fn(&Shown) -> &Sample, most: Option<f64>, least: Option<f64>| {
            let Some(ours) = ours.filter(|_| one.tool != Tool::Assay) else { return String::new() };
            let ratio = of(ours).median() / of(one).median();
            let missed = most.is_some_and(|most| ratio > most) || least.is_some_and(|least| ratio < least);
            let aim = match (most, least) {
                (Some(most), _) => format!(" (≤ {most})"),
                (_, Some(least)) => format!(" (≥ {least})"),
                _ => String::new(),
            };
            if missed {
                lost.push_str(&format!(
                    "* {}: {what} {ratio:.2} of {name}'s{aim}",
                    start.trim_matches(['|', ' ']).replace(" | ", ", ")
                ));
                let floors = shown.iter().filter(|shown| Tool::FLOORS.contains(&shown.tool));
                for (floor, sign) in floors.zip([';', ',']) {
                    let ratio = of(floor).median() / of(one).median();
                    lost.push_str(&format!("{sign} {} {ratio:.2}", floor.tool.name()));
                }
                lost.push('\n');
                return format!("**{ratio:.2}**{aim}");
            }
            format!("{ratio:.2}{aim}")
        };
        let cpu_ratio = ratio("CPU per query", |shown| &shown.cpu, target.map(|target| target.cpu), None);
        let qps_ratio = ratio("QPS", |shown| &shown.qps, None, target.and_then(|target| target.qps));
        let (cpu, qps, middle) = (one.cpu.text(2), one.qps.text(0), one.middle.text(0));
        let memory = one.memory.median() / 1024.0;
        rows += &format!("{start} {name} | {cpu} | {qps} | {middle} | {memory:.0} | {cpu_ratio} | {qps_ratio} |\n");
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
            middle: Sample::new(vec![300.0]).unwrap(),
        };
        let mut both = vec![shown(Tool::Assay, 9.0, 2000.0), shown(Tool::Sysbench, 12.0, 1000.0)];
        let mut lost = String::new();
        assert_eq!(
            rows("|", &both, |_| None, &mut lost),
            "| assay | 9.00 [9.00–9.00] | 2,000 [2,000–2,000] | 300 [300–300] | 2 |  |  |\n\
             | sysbench | 12.00 [12.00–12.00] | 1,000 [1,000–1,000] | 300 [300–300] | 2 | 0.75 | 2.00 |\n"
        );
        assert_eq!(lost, "");
        let rows = rows("| a | 1 |", &both, |_| Some(Target { cpu: 0.5, qps: Some(1.5) }), &mut lost);
        assert!(rows.ends_with("| **0.75** (≤ 0.5) | 2.00 (≥ 1.5) |\n"), "{rows}");
        assert_eq!(lost, "* a, 1: CPU per query 0.75 of sysbench's (≤ 0.5)\n");
        both.extend([shown(Tool::Protocol, 8.4, 2100.0), shown(Tool::Bare, 7.2, 2200.0)]);
        lost.clear();
        let aim = |tool| (tool == Tool::Sysbench).then_some(Target { cpu: 1.0, qps: Some(2.5) });
        self::rows("| a | 1 |", &both, aim, &mut lost);
        assert_eq!(lost, "* a, 1: QPS 2.00 of sysbench's (≥ 2.5); (no script) 2.10, (bare loop) 2.20\n");
    }
}
