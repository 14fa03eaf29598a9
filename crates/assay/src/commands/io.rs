//! `assay io`: files as a database engine uses them, on a ladder of readers.
//!
//! The record is like that of a run: its transaction types are reads, writes and log appends, its sessions the readers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use assay_machine::fileio::jobs::{Jobs, JobsOutcome, KINDS, KindOutcome};
use assay_machine::fileio::size_text;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_process::scratch::Scratch;
use assay_process::{events, terminal};
use assay_record as record;
use assay_record::{Latencies, OptionValue, Place, Record, Status, Time};
use assay_run::{live, plan, record_of, render};
use assay_spec::{IoSpec, OutputSpec, Wrong};

/// Creates the files, runs the ladder, prints the result, and writes a record. `words`: the command line.
pub fn run(spec: &IoSpec, output: &OutputSpec, words: &[String]) -> Result<Exit, Trouble> {
    spec.check().map_err(|wrong| trouble(&wrong))?;
    live::may_write(output.record.as_deref(), output.force)?;
    let seed = spec.seed.unwrap_or_else(plan::random_seed);
    let first = jobs(spec, seed, spec.readers.iter().copied().max().unwrap_or(0))?;
    let failed = |what: &str, error: std::io::Error| {
        let trouble = Trouble::environment(format!("cannot {what} in {}: {error}", spec.folder.display()));
        match spec.direct && error.kind() == std::io::ErrorKind::InvalidInput {
            true => {
                trouble.hint("this filesystem may not support O_DIRECT: leave out --direct, or choose another --folder")
            }
            false => trouble,
        }
    };
    let say = |words: &str| {
        if !output.quiet {
            terminal::say(&format!("{words}\n"));
        }
    };
    let (began, watch) = (Time::from(std::time::SystemTime::now()), Instant::now());
    check_space(&spec.folder, first.missing_bytes())?;
    // Files that are not complete are of no use to the next run either.
    let files = Scratch::of(if spec.keep { first.missing_paths() } else { first.paths() });
    match first.prepare(&say, &|| interrupt::control().is_stopped()) {
        Err(_) if interrupt::control().is_stopped() => {
            return Err(Trouble::new(interrupt::exit(), "interrupted before anything was measured"));
        }
        prepared => prepared.map_err(|error| failed("make files", error))?,
    }
    let time = Duration::from_nanos(spec.time.0);
    let mut stages = Vec::new();
    let mut outcome = Ok(());
    for readers in &spec.readers {
        let (at, started) = (watch.elapsed(), Time::from(std::time::SystemTime::now()));
        let step = jobs(spec, seed, *readers)?;
        if spec.readers.len() > 1 {
            say(&format!("{readers} reader{}", if *readers == 1 { "" } else { "s" }));
        }
        let sessions = u32::try_from(*readers).unwrap_or(u32::MAX);
        events::tell(|| events::stage(stages.len(), sessions, None, Duration::ZERO));
        match step.run(time, &|| interrupt::control().is_stopped()) {
            Ok(done) => stages.push(stage(&step, &done, started, at)),
            Err(error) => {
                outcome = Err(failed("work on files", error));
                break;
            }
        }
        if interrupt::control().is_stopped() {
            break;
        }
    }
    if spec.keep {
        files.keep();
    } else {
        files.remove().map_err(|error| failed("remove files", error))?;
    }
    outcome?;
    let status = if interrupt::control().is_stopped() { Status::Interrupted } else { Status::Complete };
    let record = record_of_stages(spec, words, (began, watch.elapsed()), seed, status, stages);
    terminal::result(&render::result(&record, output.format, terminal::view(false)))?;
    if let Some(path) = live::kept(&record, output)? {
        say(&format!("record: {}", path.display()));
    }
    Ok(if status == Status::Interrupted { interrupt::exit() } else { Exit::Success })
}

/// Share of the free space that stays free.
const LEFT_PERCENT: u64 = 5;

/// Refuses a folder that is missing: it may be the mount point of a drive that is not mounted, and creating it would
/// measure another drive. Refuses one without space, before anything is written.
fn check_space(folder: &Path, bytes: u64) -> Result<(), Trouble> {
    if !folder.is_dir() {
        let what = if folder.exists() { "is not a folder" } else { "does not exist" };
        return Err(Trouble::environment(format!("--folder {} {what}", folder.display()))
            .hint("mount the drive to be measured, or create the folder on it"));
    }
    // Some file systems do not know their free space: writing will show it.
    let Ok(found) = nix::sys::statvfs::statvfs(folder) else { return Ok(()) };
    let free = found.blocks_available().saturating_mul(found.fragment_size());
    // Others on the same file system need some, and a full one is slow. Not a share of its size: behind a quota, the
    // size is more than can ever be written.
    let left = free / 100 * LEFT_PERCENT;
    if free < bytes.saturating_add(left) {
        let [free, bytes, left] = [free, bytes, left].map(size_text);
        return Err(Trouble::environment(format!(
            "no space in {} for files of {bytes}: {free} are free, and {left} are left to others",
            folder.display()
        ))
        .hint("free some space, lower --size and --log-size, or choose another --folder"));
    }
    Ok(())
}

/// A wrong value, named by its option.
fn trouble(wrong: &Wrong) -> Trouble {
    let (cause, hint) = wrong.words(|path| format!("--{}", path.replace('_', "-")));
    Trouble { hints: hint.into_iter().collect(), ..Trouble::usage(cause) }
}

fn jobs(spec: &IoSpec, seed: u64, readers: u64) -> Result<Jobs, Trouble> {
    let small =
        |name: &str, value: u64| usize::try_from(value).map_err(|_| Trouble::usage(format!("--{name} is too large")));
    Ok(Jobs {
        folder: spec.folder.clone(),
        files: small("files", spec.files)?,
        size: spec.size,
        block: small("block", spec.block)?,
        log_block: small("log-block", spec.log_block)?,
        log_size: spec.log_size,
        direct: spec.direct,
        dsync: spec.dsync,
        readers: small("readers", readers)?,
        writers: small("writers", spec.writers)?,
        write_depth: small("write-depth", spec.write_depth.min(assay_machine::fileio::BACKLOG_MAX as u64))?,
        loggers: small("loggers", spec.loggers)?,
        seed,
    })
}

fn record_of_stages(
    spec: &IoSpec,
    words: &[String],
    (started, elapsed): (Time, Duration),
    seed: u64,
    status: Status,
    stages: Vec<record::Stage>,
) -> Record {
    let number = |value: u64| OptionValue::Int(i64::try_from(value).unwrap_or(i64::MAX));
    let asked = [
        ("size", number(spec.size)),
        ("files", number(spec.files)),
        ("writers", number(spec.writers)),
        ("write_depth", number(spec.write_depth)),
        ("loggers", number(spec.loggers)),
        ("block", number(spec.block)),
        ("log_block", number(spec.log_block)),
        ("log_size", number(spec.log_size)),
        ("direct", OptionValue::Bool(spec.direct)),
        ("dsync", OptionValue::Bool(spec.dsync)),
    ];
    let asked: BTreeMap<String, OptionValue> =
        asked.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let folder = std::fs::canonicalize(&spec.folder).unwrap_or_else(|_| spec.folder.clone());
    let files = record::RecordedServer {
        product: "files".to_owned(),
        place: Place::Embedded,
        ..record::RecordedServer::default()
    };
    let mut record = Record {
        status,
        started,
        elapsed_ns: nanos(elapsed),
        manifest: record::Manifest {
            command: words.to_vec(),
            workload: "io".to_owned(),
            task: "machine".to_owned(),
            options: asked,
            seed,
            sessions: stages.iter().map(|stage| stage.sessions).collect(),
            limit: record::Limit { time_ns: Some(spec.time.0), transactions: None },
            interval_ns: 1_000_000_000,
            workers: stages.iter().map(|stage| stage.generator.workers).max().unwrap_or(0),
            targets: vec![format!("file:{}", folder.display())],
            ..record::Manifest::default()
        },
        environment: record::Environment { servers: vec![files], ..record_of::this_machine() },
        types: KINDS.map(str::to_owned).to_vec(),
        stages,
        tags: spec.tags.clone(),
        ..record_of::begun_now()
    };
    record.identify();
    record
}

fn stage(jobs: &Jobs, done: &JobsOutcome, started: Time, at: Duration) -> record::Stage {
    let tally = |(kind, name): (&KindOutcome, &str)| {
        let found = latencies(kind);
        record::TransactionTally {
            name: name.to_owned(),
            count: found.count,
            response: found.clone(),
            service: found,
            ..record::TransactionTally::default()
        }
    };
    let transactions: Vec<record::TransactionTally> = done.kinds.iter().zip(KINDS).map(tally).collect();
    let due = transactions.iter().map(|one| one.count).sum();
    let statement = |kind: usize| {
        let one = &transactions[kind];
        record::StatementTally { count: one.count, service: one.service.clone() }
    };
    let statements = record::ByClass { read: statement(0), write: statement(1), other: statement(2) };
    let mut start_ns = 0;
    let intervals = done.seconds.iter().map(|(length, counts)| {
        let interval = record::Interval {
            start_ns,
            length_ns: nanos(*length),
            transactions: counts.to_vec(),
            statements: record::ByClass { read: counts[0], write: counts[1], other: counts[2] },
            sessions: jobs.readers as u32,
            ..record::Interval::default()
        };
        start_ns += interval.length_ns;
        interval
    });
    let workers = (jobs.readers + jobs.writers + jobs.loggers) as u32;
    record::Stage {
        // A stage with writers only has no reader, but still a row of its own.
        sessions: jobs.readers as u32,
        started,
        start_ns: Some(nanos(at)),
        measured_ns: nanos(done.measured),
        intervals: intervals.collect(),
        total: record::Tally { due, transactions, statements, ..record::Tally::default() },
        generator: record::Generator { workers, ..record::Generator::default() },
        ..record::Stage::default()
    }
}

fn latencies(kind: &KindOutcome) -> Latencies {
    let found = &kind.latencies;
    let empty = found.is_empty();
    let edges = if empty { (0, 0) } else { (found.min(), found.max()) };
    Latencies::of(found.len(), edges, kind.sum_ns, (!empty).then_some(found))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
