//! Very many connections: a fleet whose agents load several servers, all on this machine.
//!
//! A process may have only so many descriptors, and an address only so many local ports: what one server and one
//! generator cannot hold, several of each can. Servers are MariaDB with its thread pool; each agent drives the sessions
//! of one of them. The result is that of `assay run --fleet`: one record. Limits of this machine that would be too low
//! are reported before anything is started.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_record::{AgentStage, Histogram, Latencies, Record, Stage};
use clap::Args;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use testkit::{Kind, Nats, NatsProgram, Server, ServerSetup};

use super::measure::number;
use super::setting::heading;
use super::tools::built;

#[derive(Args)]
pub(super) struct Options {
    /// Sessions over all agents
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    /// Agents, and servers: one for each
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    agents: u32,
    /// Seconds measured once all are connected
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Concurrent connects of each agent
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pending: u32,
    /// Write the result to this file too
    #[arg(long)]
    pub(super) out: Option<PathBuf>,
}

/// Descriptors of a server besides its connections: tables, logs, its listening sockets. An assay needs fewer.
const FILES_OF_SERVER: u64 = 400;
/// Memory of a session on both sides, as seen with the thread pool: server, generator, and the kernel's sockets.
const SESSION_BYTES: u64 = 110 << 10;
/// Before they are given to their sockets, connects wait here.
const BACKLOG: u32 = 4096;

/// How long agents may take to be ready, and to end.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn run(options: &Options) -> Result<String> {
    let each = options.sessions.div_ceil(options.agents);
    let folder = tempfile::tempdir()?;
    let limits = limits(each, options.sessions)?;
    let mut servers = Vec::new();
    for number in 1..=options.agents {
        let server = start(each)?;
        prepare(&server)?;
        eprintln!("server {number} of {} is ready", options.agents);
        servers.push(server);
    }
    let nats = Nats::start(&NatsProgram::newest(), "")?;
    let url = nats.url("");
    let mut agents =
        (1..=options.agents).map(|number| Agent::start(number, &url, folder.path())).collect::<Result<Vec<Agent>>>()?;
    let record = folder.path().join("record.json.zst");
    let mut command = Command::new(built("assay"));
    command.arg("run").args(WORKLOAD).args(servers.iter().flat_map(|server| ["--db".to_owned(), server.url("app")]));
    let options_of_run = [
        ("sessions", each * options.agents),
        ("time", options.seconds),
        ("connect-pending", options.pending * options.agents),
        ("agents", options.agents),
        ("seed", 1),
    ];
    command.args(options_of_run.map(|(name, value)| format!("--{name}={value}")));
    command.args(["--fleet", &url, "--lease", "60s", "--telemetry", "off", "--record"]).arg(&record);
    let before = cpu_of_children()?;
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "assay run: {status}{}", agents.iter().map(Agent::log).collect::<String>());
    // CPU time of the children that have ended: no agent is among them yet.
    let coordinator = cpu_of_children()? - before;
    agents.iter_mut().try_for_each(Agent::end)?;
    let record = Record::read(&record)?;
    let mut report = heading("Many connections", &[Kind::MariaDb])?;
    writeln!(report, "\n{limits}\n\n{}", table(&record)?)?;
    writeln!(report, "{}", costs(&record, coordinator)?)?;
    Ok(report)
}

/// What this machine allows; an error that names the limit where it is too low.
fn limits(each: u32, sessions: u32) -> Result<String> {
    let (_, files) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let needed = u64::from(each) + FILES_OF_SERVER;
    ensure!(
        needed <= files,
        "{each} sessions of a process need {needed} descriptors, and the hard limit is {files}: use more --agents, or \
         raise it (`ulimit -Hn`, LimitNOFILE=)"
    );
    let setting = |path: &str| fs::read_to_string(Path::new("/proc/sys").join(path)).with_context(|| path.to_owned());
    let numbers = |text: &str| text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>();
    let machine = numbers(&setting("fs/file-max")?)?[0];
    // A connection has two ends here.
    ensure!(2 * u64::from(sessions) < machine, "fs.file-max is {machine}: raise it above {}", 2 * sessions);
    let ports = numbers(&setting("net/ipv4/ip_local_port_range")?)?;
    let ports = ports[1] - ports[0] + 1;
    ensure!(
        u64::from(each) <= ports,
        "{each} connections to a server need as many local ports, and there are {ports}: widen \
         net.ipv4.ip_local_port_range, or use more --agents"
    );
    let queue = numbers(&setting("net/core/somaxconn")?)?[0];
    let memory = fs::read_to_string("/proc/meminfo")?;
    let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:")).context("MemAvailable")?;
    let available = available.trim_end_matches("kB").trim().parse::<u64>()? << 10;
    let wanted = u64::from(sessions) * SESSION_BYTES;
    ensure!(
        wanted <= available,
        "{sessions} sessions take about {} MiB, and {} are free: lower --sessions",
        wanted >> 20,
        available >> 20
    );
    Ok(format!(
        "Limits: {files} descriptors a process, {ports} local ports to a server, a queue of {} connects \
         (net.core.somaxconn {queue}), fs.file-max {machine}, {} MiB free.",
        queue.min(BACKLOG.into()),
        available >> 20
    ))
}

/// A server for this many connections, plus one for its administrator.
fn start(sessions: u32) -> Result<Server> {
    let config = [
        "thread_handling = pool-of-threads".to_owned(),
        format!("back_log = {BACKLOG}"),
        // Else the server lowers max_connections to what is left beside the tables it might open.
        format!("open_files_limit = {}", u64::from(sessions) + FILES_OF_SERVER),
        "table_open_cache = 100".to_owned(),
        "table_open_cache_instances = 1".to_owned(),
        "innodb_open_files = 50".to_owned(),
        "max_prepared_stmt_count = 1048576".to_owned(),
        // Servers and generators connect on the same few CPUs: a login may wait longer for its turn than the usual 10
        // s.
        "connect_timeout = 300".to_owned(),
        // Half of what a connection takes, where its statements are short.
        "net_buffer_length = 1024".to_owned(),
        "query_prealloc_size = 1024".to_owned(),
        "query_alloc_block_size = 1024".to_owned(),
        "transaction_prealloc_size = 1024".to_owned(),
    ];
    let server = Kind::MariaDb.start(&ServerSetup {
        config: config.into(),
        max_connections: sessions + 10,
        ..ServerSetup::default()
    })?;
    let holds: u32 = server.sql("", "SELECT @@max_connections;")?.trim().parse()?;
    ensure!(holds > sessions, "the server lowered max_connections to {holds}: it lacks descriptors");
    Ok(server)
}

const WORKLOAD: [&str; 3] = ["oltp_point_select", "--table-size", "10k"];

fn prepare(server: &Server) -> Result<()> {
    let mut command = Command::new(built("assay"));
    let output = command.arg("prepare").args(WORKLOAD).args(["--db", &server.url("app")]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// An agent, which ends after its run.
struct Agent {
    process: Child,
    log: PathBuf,
}

impl Agent {
    fn start(number: u32, nats: &str, folder: &Path) -> Result<Agent> {
        let log = folder.join(format!("agent-{number}"));
        let mut command = Command::new(built("assay"));
        // Its share is the server of its number.
        command.args(["agent", "--once", "--nats", nats, "--name", &format!("agent {number}")]);
        command.arg(format!("--share={}", number - 1));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&log)?);
        Ok(Agent { process: command.spawn().with_context(|| format!("starting {command:?}"))?, log })
    }

    fn log(&self) -> String {
        format!("\n{}", fs::read_to_string(&self.log).unwrap_or_default().trim_end())
    }

    fn end(&mut self) -> Result<()> {
        let begun = Instant::now();
        while self.process.try_wait()?.is_none() {
            ensure!(begun.elapsed() < PATIENCE, "an agent does not end:{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A row for each agent, and one for all of them.
fn table(record: &Record) -> Result<String> {
    let mut text = String::from(
        "| agent | sessions | tx/s | p50 ms | p99 ms | CPU µs/tx | MiB | started late, ms | clock ± ms |\n\
         | --- | --: | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    let stage = record.stages.first().context("the record has no stage")?;
    for agent in &record.agents {
        let own: &AgentStage = agent.stages.first().context("an agent without a stage")?;
        let cpu = own.generator.cpu_user_ns + own.generator.cpu_system_ns;
        let bound = agent.clock_before.map_or_else(String::new, |clock| number(clock.bound_ns as f64 / 1e6, 2));
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {bound} |",
            agent.name,
            number(own.sessions.into(), 0),
            number(own.transactions as f64 * 1e9 / own.measured_ns as f64, 0),
            percentiles(&own.response)?,
            number(cpu as f64 / 1e3 / own.transactions.max(1) as f64, 1),
            own.generator.memory_max_bytes >> 20,
            number(own.late_ns as f64 / 1e6, 2),
        )?;
    }
    let done = transactions(stage);
    let response = Latencies::sum(stage.total.transactions.iter().map(|one| &one.response));
    writeln!(
        text,
        "| all | {} | {} | {} | | {} | | |",
        number(stage.sessions.into(), 0),
        number(done as f64 * 1e9 / stage.measured_ns as f64, 0),
        percentiles(&response)?,
        stage.generator.memory_max_bytes >> 20,
    )?;
    Ok(text)
}

/// CPU time of processes that have ended and were waited for.
fn cpu_of_children() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = |time: TimeVal| Duration::from_micros(time.num_microseconds().unsigned_abs());
    Ok(time(usage.user_time()) + time(usage.system_time()))
}

/// How long connecting took, how evenly sessions were served, and the CPU time of the coordinator.
fn costs(record: &Record, coordinator: Duration) -> Result<String> {
    let stage = record.stages.first().context("the record has no stage")?;
    let mean = transactions(stage) as f64 / f64::from(stage.sessions);
    Ok(format!(
        "All sessions were connected and the measurement started {} s after the start of the run. Each session finished {} \
         to {} transactions, {mean:.1} on average. The coordinator used {} s of CPU time in {} s, for {} intervals.",
        number(stage.start_ns.unwrap_or(0) as f64 / 1e9, 1),
        stage.session_transactions_min,
        stage.session_transactions_max,
        number(coordinator.as_secs_f64(), 2),
        number(record.elapsed_ns as f64 / 1e9, 1),
        stage.intervals.len(),
    ))
}

fn transactions(stage: &Stage) -> u64 {
    stage.total.transactions.iter().map(|one| one.count).sum()
}

/// p50 and p99 as two cells.
fn percentiles(response: &Latencies) -> Result<String> {
    let histogram = response.histogram();
    let histogram = histogram.map_or_else(|| Histogram::<u64>::new(3), Ok)?;
    let ms = |quantile| number(histogram.value_at_quantile(quantile) as f64 / 1e6, 1);
    Ok(format!("{} | {}", ms(0.5), ms(0.99)))
}
