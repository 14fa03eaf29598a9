//! Loading tables: how long `prepare` takes, and what it costs the client.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use testkit::{Kind, Server};

use super::measure::{Sample, Usage, measure, number};
use super::setting::{heading, kind, start};
use super::tools::{Tool, is_postgres};

#[derive(Args)]
pub(super) struct Options {
    /// Servers: postgres, postgres18, mariadb, mysql
    #[arg(long, value_delimiter = ',', default_value = "postgres,mariadb", value_parser = kind)]
    servers: Vec<Kind>,
    /// Tables to fill
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    tables: u32,
    /// Rows of each
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Runs of each tool
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Write the table to this file too
    #[arg(long)]
    pub(super) out: Option<PathBuf>,
}

const TOOLS: [Tool; 2] = [Tool::Assay, Tool::Sysbench];

pub(super) fn run(options: &Options) -> Result<String> {
    let mut report = heading("Loading: assay compared with sysbench", &options.servers)?;
    writeln!(
        report,
        "oltp_read_write, {} tables of {} rows, 2 sessions; {} runs each, in turn; median [least–most].\n\n\
         | server | tool | seconds | rows/s | client CPU s | time, other ÷ assay |\n\
         | --- | --- | --: | --: | --: | --: |",
        options.tables,
        number(options.rows as f64, 0),
        options.repeats
    )?;
    for kind in &options.servers {
        let server = start(*kind, 500)?;
        let mut values: [[Vec<f64>; 2]; 2] = Default::default();
        for repeat in 0..options.repeats as usize {
            for turn in 0..TOOLS.len() {
                let i = (repeat + turn) % TOOLS.len();
                let usage = fill(&server, TOOLS[i], options)?;
                eprintln!("{}: {} {:.1} s", kind.name(), TOOLS[i].name(), usage.elapsed.as_secs_f64());
                values[i][0].push(usage.elapsed.as_secs_f64());
                values[i][1].push(usage.cpu.as_secs_f64());
            }
        }
        let [seconds, cpu] =
            [0, 1].map(|what| [0, 1].map(|i| Sample::new(values[i][what].clone()).expect("ran at least once")));
        for (i, tool) in TOOLS.iter().enumerate() {
            let rate = options.rows as f64 * f64::from(options.tables) / seconds[i].median();
            let ratio =
                if i == 0 { String::new() } else { format!("{:.2}", seconds[i].median() / seconds[0].median()) };
            let (name, rate) = (tool.name(), number(rate, 0));
            let (seconds, cpu) = (seconds[i].text(1), cpu[i].text(1));
            writeln!(report, "| {} | {name} | {seconds} | {rate} | {cpu} | {ratio} |", kind.name())?;
        }
    }
    Ok(report)
}

/// Fills the tables of a new database and checks that they are full. Only the filling is timed.
fn fill(server: &Server, tool: Tool, options: &Options) -> Result<Usage> {
    let database = server.fresh_database()?;
    if is_postgres(server.kind()) {
        server.sql(&database, "CHECKPOINT;")?;
    }
    let usage = measure(&mut tool.prepare(server, &database, options.tables, options.rows))?;
    for table in 1..=options.tables {
        let rows = server.sql(&database, &format!("SELECT COUNT(*) FROM sbtest{table};"))?;
        ensure!(rows.trim() == options.rows.to_string(), "{} left {} rows in table {table}", tool.name(), rows.trim());
    }
    // PostgreSQL's backends outlive their clients for a moment.
    let force = if is_postgres(server.kind()) { " WITH (FORCE)" } else { "" };
    server.sql("", &format!("DROP DATABASE {database}{force};"))?;
    Ok(usage)
}
