//! Very many connections: several servers, one assay process for each, all at the same time, and one result.
//!
//! A process may have only so many descriptors, and an address only so many local ports: what one server and one
//! generator cannot hold, several of each can. Servers are MariaDB with its thread pool, on this machine. The one
//! result is of the time in which all of them were measuring, made from their records. Limits of this machine that
//! would be in the way are told before anything is started.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use assay_record::{Histogram, Interval, Record, Stage, Status};
use clap::Args;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::{Kind, Server, Settings};

use super::measure::number;
use super::setting::heading;
use super::tools::built;

#[derive(Args)]
pub(super) struct Options {
    /// Sessions over all processes
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    /// Servers, and processes of assay: one for each
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    processes: u32,
    /// Seconds measured once all are connected
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Connects under way at once in each process
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

pub(super) fn run(options: &Options) -> Result<String> {
    let each = options.sessions.div_ceil(options.processes);
    let folder = tempfile::tempdir()?;
    let limits = limits(each, options.sessions)?;
    let mut servers = Vec::new();
    for number in 1..=options.processes {
        let server = start(each)?;
        prepare(&server)?;
        eprintln!("server {number} of {} is ready", options.processes);
        servers.push(server);
    }
    let mut running = Vec::new();
    for (number, server) in servers.iter().enumerate() {
        running.push(Running::start(number, server, each, options, folder.path())?);
    }
    // Some are connected long before the others: all go on until the last has been measured for long enough.
    let poll = Duration::from_secs(1);
    while !running.iter_mut().map(Running::has_begun).collect::<Result<Vec<bool>>>()?.into_iter().all(|begun| begun) {
        std::thread::sleep(poll);
    }
    eprintln!("{} sessions are connected", each * options.processes);
    std::thread::sleep(Duration::from_secs(options.seconds.into()));
    running.iter().try_for_each(Running::interrupt)?;
    let records = running.into_iter().map(Running::end).collect::<Result<Vec<Record>>>()?;
    let mut report = heading("Many connections", &[Kind::MariaDb])?;
    writeln!(report, "\n{limits}\n\n{}", table(&records)?)?;
    Ok(report)
}

/// What this machine allows; an error that names the limit where it is too low.
fn limits(each: u32, sessions: u32) -> Result<String> {
    let (_, files) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let needed = u64::from(each) + FILES_OF_SERVER;
    ensure!(
        needed <= files,
        "{each} sessions of a process need {needed} descriptors, and the hard limit is {files}: use more --processes, or \
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
         net.ipv4.ip_local_port_range, or use more --processes"
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
    let server = Kind::MariaDb.start(&Settings {
        config: config.into(),
        max_connections: sessions + 10,
        ..Settings::default()
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

/// An assay under way.
struct Running {
    process: Child,
    record: PathBuf,
    errors: PathBuf,
}

impl Running {
    fn start(number: usize, server: &Server, sessions: u32, options: &Options, folder: &Path) -> Result<Running> {
        let [record, errors] = ["record.json.zst", "stderr"].map(|name| folder.join(format!("{}-{name}", number + 1)));
        let mut command = Command::new(built("assay"));
        command.arg("run").args(WORKLOAD).args(["--db", &server.url("app"), "--sessions", &sessions.to_string()]);
        command.args(["--time", "0", "--seed", &(number + 1).to_string()]);
        command.args(["--connect-pending", &options.pending.to_string(), "--record"]).arg(&record);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&errors)?);
        Ok(Running { process: command.spawn().with_context(|| format!("starting {command:?}"))?, record, errors })
    }

    /// Whether it has measured something. Partial records replace each other while it runs.
    fn has_begun(&mut self) -> Result<bool> {
        if let Some(status) = self.process.try_wait()? {
            bail!("{status}\n{}", fs::read_to_string(&self.errors)?);
        }
        Ok(Record::read(&self.record).is_ok_and(|record| !record.stages.is_empty()))
    }

    /// Asks for the report of what was done so far.
    fn interrupt(&self) -> Result<()> {
        Ok(kill(Pid::from_raw(self.process.id() as i32), Signal::SIGINT)?)
    }

    fn end(mut self) -> Result<Record> {
        let status = self.process.wait()?;
        if !status.success() {
            bail!("{status}\n{}", fs::read_to_string(&self.errors)?);
        }
        let record = Record::read(&self.record)?;
        ensure!(record.status != Status::Failed, "{}", record.failure.unwrap_or_default());
        Ok(record)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Start and end of something in milliseconds since 1970.
type Span = (u64, u64);

fn span(stage: &Stage) -> Span {
    let start = stage.started.unix_ms();
    (start, start + stage.measured_ns / 1_000_000)
}

/// Whole intervals of a stage within a span.
fn within(stage: &Stage, (from, to): Span) -> impl Iterator<Item = &Interval> {
    let begin = stage.started.unix_ms();
    stage.intervals.iter().filter(move |interval| {
        let start = begin + interval.start_ns / 1_000_000;
        from <= start && start + interval.length_ns / 1_000_000 <= to
    })
}

/// A row for each process, and one for all of them in the time they share.
fn table(records: &[Record]) -> Result<String> {
    let mut text = String::from(
        "| process | sessions | connected in s | tx/s | p50 ms | p99 ms | transactions per session | CPU µs/tx | MiB |\n\
         | --- | --: | --: | --: | --: | --: | --- | --: | --: |\n",
    );
    let stages: Vec<&Stage> = records.iter().filter_map(|record| record.stages.first()).collect();
    ensure!(stages.len() == records.len() && !stages.is_empty(), "a record without a stage");
    let shared = (
        stages.iter().map(|stage| span(stage).0).max().expect("there is one"),
        stages.iter().map(|stage| span(stage).1).min().expect("there is one"),
    );
    let (mut rate, mut response, mut sessions) = (0.0, Histogram::<u64>::new(3)?, 0);
    for (index, (record, stage)) in records.iter().zip(&stages).enumerate() {
        let connected_ms = stage.started.unix_ms() - record.started.unix_ms();
        let done: u64 = stage.total.transactions.iter().map(|one| one.count).sum();
        let mut all = Histogram::<u64>::new(3)?;
        for histogram in stage.total.transactions.iter().filter_map(|one| one.response.histogram.as_ref()) {
            all.add(histogram.decode())?;
        }
        let cpu = stage.generator.cpu_user_ns + stage.generator.cpu_system_ns;
        let fairness = format!(
            "{} to {}, {:.1} on average",
            stage.session_transactions_min,
            stage.session_transactions_max,
            done as f64 / f64::from(stage.sessions)
        );
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {fairness} | {} | {} |",
            index + 1,
            number_of(stage.sessions),
            number(connected_ms as f64 / 1e3, 1),
            number(done as f64 * 1e9 / stage.measured_ns as f64, 0),
            percentiles(&all),
            number(cpu as f64 / 1e3 / done.max(1) as f64, 1),
            stage.generator.memory_max_bytes >> 20
        )?;
        sessions += stage.sessions;
        let (mut count, mut length_ns) = (0, 0);
        for interval in within(stage, shared) {
            count += interval.transactions.iter().sum::<u64>();
            length_ns += interval.length_ns;
            if let Some(histogram) = &interval.response.histogram {
                response.add(histogram.decode())?;
            }
        }
        ensure!(length_ns > 0, "the processes never measured at the same time: give more --seconds");
        rate += count as f64 * 1e9 / length_ns as f64;
    }
    writeln!(
        text,
        "| all, in the {} s they share | {} | | {} | {} | | | |",
        number((shared.1 - shared.0) as f64 / 1e3, 1),
        number_of(sessions),
        number(rate, 0),
        percentiles(&response)
    )?;
    Ok(text)
}

fn number_of(sessions: u32) -> String {
    number(f64::from(sessions), 0)
}

/// p50 and p99 as two cells.
fn percentiles(response: &Histogram<u64>) -> String {
    let ms = |quantile| number(response.value_at_quantile(quantile) as f64 / 1e6, 1);
    format!("{} | {}", ms(0.5), ms(0.99))
}
