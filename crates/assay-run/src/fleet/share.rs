//! An agent's share of a run: from an order to its result.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assay_engine::{Agent, Control, End, Outcome, Plan};
use assay_fleet::{Answer, Arrived, Bus, Database, Order, Part, Pattern, ShareEnded, mismatch};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_process::terminal;
use assay_record::{ReadHistory, Record};
use assay_seam::{ConnectOptions, Endpoint};
use assay_spec::{Concealed, RunSpec};
use tempfile::TempDir;

use crate::assignment::Assignment;
use crate::fleet::link::{Link, Reporter, sign};
use crate::fleet::{DATABASE_VARIABLE, parcel, refusal};
use crate::plan::ProcessOptions;
use crate::plan::Role;
use crate::workload::Workload;
use crate::{engine, failure, isolation, plan, record_of, registry};

/// What an agent is, apart from any run.
pub struct AgentHost<'a> {
    /// The bus.
    pub bus: Arc<Bus>,
    /// Its name.
    pub name: String,
    /// Servers that it may load; empty: any.
    pub allow_db: &'a [Pattern],
    /// The URL of a database that is given by a name or a URL.
    pub resolve: &'a dyn Fn(&str) -> Result<String, Trouble>,
}

/// A share that is ready to start.
struct ReadyShare {
    plan: Plan,
    workload: Workload,
    record: Option<Record>,
    part: Arc<Part>,
    agent: Agent,
}

/// A folder for the files of an order. Its lock is held as long as this process lives.
struct ShareFolder {
    folder: TempDir,
    _lock: File,
}

const FOLDER_PREFIX: &str = "assay-share-";
const LOCK: &str = "lock";

impl ShareFolder {
    fn new() -> std::io::Result<ShareFolder> {
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir()?;
        let lock = File::options().create_new(true).write(true).open(folder.path().join(LOCK))?;
        lock.lock()?;
        Ok(ShareFolder { folder, _lock: lock })
    }
}

/// Removes folders that agents left behind when they were killed.
pub fn remove_left_behind() {
    let entries = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX)) {
        // Without a lock it is being made.
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if lock.try_lock().is_ok() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// How often to check whether a run should stop.
const LOOK_AROUND: Duration = Duration::from_millis(50);

/// Answers an order and carries it out; false if it was refused.
pub fn serve(host: &AgentHost<'_>, arrived: Arrived) -> bool {
    let order = arrived.order.clone();
    let folder = match ShareFolder::new() {
        Ok(folder) => folder,
        Err(error) => {
            let trouble = Trouble::environment(format!("cannot create a temporary folder: {error}"));
            arrived.answer(Answer::Refused(refusal(&trouble)));
            return false;
        }
    };
    match prepare(host, &order, folder.folder.path()) {
        Ok(share) => {
            arrived.answer(Answer::Taken);
            terminal::say(&format!(
                "run {} of {}: share {} of {}, {}\n",
                order.run,
                order.from,
                order.number + 1,
                order.agents,
                share.plan.setup.command
            ));
            let end = work(host, &order, share);
            terminal::say(&format!("run {}: {end}\n", order.run));
            true
        }
        Err(trouble) => {
            terminal::say(&format!("run {} of {} refused: {}\n", order.run, order.from, trouble.cause));
            arrived.answer(Answer::Refused(refusal(&trouble)));
            false
        }
    }
}

/// Finds every error that can be found before the first connect.
fn prepare(host: &AgentHost<'_>, order: &Order, folder: &Path) -> Result<ReadyShare, Trouble> {
    if let Some((theirs, ours)) = mismatch(&order.version, order.protocol) {
        let cause = format!("the coordinator runs {theirs}, but this agent runs {ours}");
        return Err(Trouble::new(Exit::Fleet, cause).hint("install the same version everywhere"));
    }
    if order.number >= order.agents {
        return Err(Trouble::new(Exit::Fleet, format!("there is no share {} of {}", order.number, order.agents)));
    }
    let mut spec = RunSpec::from_value(&order.spec)?;
    parcel::unpack(&mut spec, &order.files, folder)?;
    if order.database == Database::AgentEnvironment {
        let url = std::env::var(DATABASE_VARIABLE).ok().filter(|url| !url.is_empty());
        let Some(url) = url else {
            return Err(Trouble::environment(format!("{DATABASE_VARIABLE} is not set on agent {}", host.name)).hint(
                format!("start the agent with {DATABASE_VARIABLE}=URL or a name, or leave out --db-from-agent-env"),
            ));
        };
        spec.target.urls = vec![Concealed::from((host.resolve)(&url)?)];
    }
    let agent = Agent { number: order.number, agents: order.agents };
    let part = Arc::new(host.bus.take_part(order)?);
    let assignment = Assignment::load(spec)?;
    let urls = assignment.urls();
    may_load(&urls, host)?;
    let process = ProcessOptions {
        role: Role::Agent(Arc::new(Link::new(agent, part.clone()))),
        // Others may not be allowed.
        only_named: !host.allow_db.is_empty(),
        ..ProcessOptions::default()
    };
    let (plan, record) = match assignment.spec.task.as_str() {
        "run" => {
            let plan = plan::of_run(&assignment, &process, &urls)?;
            let mut record = record_of::begun(&plan, &assignment, None);
            sign(&mut record, agent, &host.name, &[]);
            (plan, Some(record))
        }
        "prepare" | "check" => (plan::of_command(&assignment, &process, &urls)?, None),
        _ => return Err(Trouble::usage("only run, prepare and check can be shared")),
    };
    let workload = assignment.workload;
    Ok(ReadyShare { plan, workload, record, part, agent })
}

/// Refuses servers that `--allow-db` does not cover.
fn may_load(urls: &[String], host: &AgentHost<'_>) -> Result<(), Trouble> {
    for url in urls {
        let database = registry::open(url, &ConnectOptions::default())?;
        for endpoint in database.endpoints() {
            let places = match &endpoint {
                Endpoint::Tcp { host, port } => vec![host.clone(), format!("{host}:{port}")],
                Endpoint::Unix(path) => vec![path.display().to_string()],
                Endpoint::Embedded => Vec::new(),
            };
            let is_allowed = host.allow_db.is_empty()
                || host.allow_db.iter().any(|pattern| places.iter().any(|place| pattern.covers(place)));
            if !is_allowed {
                let patterns: Vec<String> = host.allow_db.iter().map(ToString::to_string).collect();
                return Err(Trouble::new(
                    Exit::Fleet,
                    format!("agent {} may not load {}", host.name, database.display()),
                )
                .detail(format!("it was started with --allow-db {}", patterns.join(" --allow-db "))));
            }
        }
    }
    Ok(())
}

/// Runs the share. Returns how it ended, in words.
fn work(host: &AgentHost<'_>, order: &Order, share: ReadyShare) -> String {
    let ReadyShare { plan, workload, record, part, agent } = share;
    let control = Control::default();
    let over = Arc::new(AtomicBool::new(false));
    let watcher = {
        let (control, over, part) = (control.clone(), over.clone(), part.clone());
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if part.orders(|orders| orders.stop || orders.over)
                    || part.is_abandoned()
                    || interrupt::control().is_stopped()
                {
                    control.stop();
                }
                std::thread::sleep(LOOK_AROUND);
            }
        })
    };
    let mut reporter = Reporter {
        plan: &plan,
        bus: &host.bus,
        part: &part,
        run: &order.run,
        record,
        stored: Instant::now(),
        stages: 0,
    };
    reporter.begin();
    let outcome = engine::run(&plan, &control, &mut reporter);
    let abandoned = part.is_abandoned();
    let record = reporter.record.take();
    let failure = match &outcome.end {
        End::Failed(error) => Some(refusal(&failure::trouble(error, &plan, &workload, None))),
        End::Complete | End::Interrupted => None,
    };
    // Nothing was started, or the run is over and nobody will read it.
    let record = record.filter(|_| !outcome.stages.is_empty() && !part.orders(|orders| orders.over));
    let stored = record.is_some_and(|record| keep(host, order, record, &outcome, &part, agent));
    let ended = ShareEnded {
        failure: failure.clone(),
        interrupted: matches!(outcome.end, End::Interrupted),
        success: outcome.success,
        loaded: outcome.loaded,
        stored,
    };
    part.report(|report| (report.ended, report.loaded) = (Some(ended), outcome.loaded));
    // Until the coordinator has received it, or is gone.
    while !part.orders(|orders| orders.over) && !part.is_abandoned() && !interrupt::control().is_stopped() {
        std::thread::sleep(LOOK_AROUND);
    }
    over.store(true, Ordering::Relaxed);
    let _ = watcher.join();
    match (&failure, &outcome.end) {
        (Some(failure), _) => format!("failed: {}", failure.cause),
        _ if abandoned => "stopped: the coordinator is gone; see `assay fleet collect`".to_owned(),
        (None, End::Complete) => "complete".to_owned(),
        (None, _) => "stopped".to_owned(),
    }
}

/// Stores the record of a share; whether that worked.
fn keep(host: &AgentHost<'_>, order: &Order, mut record: Record, outcome: &Outcome, part: &Part, agent: Agent) -> bool {
    record_of::fill(&mut record, outcome, record_of::status(&outcome.end, None));
    let mut late_ns = Vec::new();
    part.report(|report| late_ns.clone_from(&report.late_ns));
    sign(&mut record, agent, &host.name, &late_ns);
    let bytes = record.to_bytes();
    let history = isolation::promised(outcome).map(|level| ReadHistory::to_bytes(level.name(), &outcome.history));
    let begun = Instant::now();
    let patience = Duration::from_millis(2 * order.lease_ms);
    // A server that restarts comes back.
    loop {
        let history_stored = match &history {
            Some(Ok(history)) => host.bus.store_history(&order.run, order.number, history),
            _ => Ok(()),
        };
        match history_stored.and_then(|()| host.bus.store(&order.run, order.number, &bytes)) {
            Ok(()) => return true,
            Err(error) if begun.elapsed() > patience => {
                terminal::say(&format!("cannot store the result of run {}: {error}\n", order.run));
                return false;
            }
            Err(_) => std::thread::sleep(LOOK_AROUND),
        }
    }
}
