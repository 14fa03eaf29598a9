//! From options to the engine's `Plan`.

use std::sync::Arc;

use assay_engine::{
    Arrival, Connects, Deal, EventLoop, Ignore, Limit, Load, OnError, Plan, Policy, Stage, sessions_per_state,
};
use assay_io::Backend;
use assay_io::process::FilesLimit;
use assay_script::{Distribution, DistributionKind, Entry, Program, Setup};
use assay_seam::Nanos;
use assay_sysbench::{CoreSettings, Options, Shutdown};

use super::target;
use super::voice::Voice;

/// Longer than anybody waits.
const FOREVER: Nanos = Nanos::from_secs(10 * 365 * 86_400);
/// Who presses Ctrl-C waits no longer than this for statements in flight, and as long again for `thread_done`.
const GRACE_INTERRUPTED: Nanos = Nanos::from_millis(100);
/// A server that does not answer a login in this time is not there.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(60);
/// A connection is lost when the server's machine has acknowledged nothing for this long, as `assay run` has it.
const SILENCE_MAX: Nanos = Nanos::from_secs(30);
/// Connects under way at once.
const CONNECTS_PENDING: usize = 64;

/// What a plan is made of.
pub struct Parts<'a> {
    /// The script.
    pub program: &'a Arc<Program>,
    /// The core's options.
    pub settings: &'a CoreSettings,
    /// All options, for the script too.
    pub options: &'a Options,
    /// The command line, the program's name first.
    pub words: &'a [String],
    /// Where scripts print.
    pub voice: &'a Arc<Voice>,
}

impl Parts<'_> {
    /// What `run` does.
    pub fn run(&self) -> Plan {
        let settings = self.settings;
        let mut plan = self.command("run", Entry::Thread, settings.threads);
        plan.limit = Limit { time: settings.time.map(Nanos::from_secs), transactions: settings.events };
        plan.warmup = Nanos::from_secs(settings.warmup);
        if settings.rate > 0 {
            plan.load = Load::Open { rate: settings.rate as f64, arrival: Arrival::Poisson, backlog_max: None };
        }
        if let (Shutdown::After(seconds), Some(_)) = (settings.shutdown, settings.time) {
            plan.grace = Nanos::from_secs(seconds);
            plan.grace_interrupted = plan.grace_interrupted.min(plan.grace);
        }
        plan
    }

    /// What a command does, in so many sessions.
    pub fn command(&self, command: &str, entry: Entry, sessions: u32) -> Plan {
        let options = self.options;
        // What cannot be raised is told by the first connect that fails.
        let _ = FilesLimit::raise();
        let workers = workers(sessions);
        Plan {
            program: Arc::clone(self.program),
            setup: self.setup(command, entry, sessions),
            targets: target::targets(options),
            stages: vec![Stage { sessions }],
            load: Load::Closed,
            limit: Limit::default(),
            warmup: Nanos::ZERO,
            interval: Nanos::from_secs(1),
            policy: Policy {
                // What is ignored, and rolled back, differs between drivers and is decided beside the script.
                ignore: Ignore::Codes(Vec::new()),
                retries: 0,
                restart_ignored: true,
                on_error: OnError::Stop,
                rollback: false,
                // The last report comes after `thread_done`: errors there are in it, as statements are.
                errors_outside_apart: true,
                failed_prepares_count: false,
                // Every session says itself how its preparation or command ends.
                failures_are_alone: true,
                reconnect: FOREVER,
            },
            connects: Connects {
                pending_max: CONNECTS_PENDING,
                rate: None,
                timeout: CONNECT_TIMEOUT,
                silence_max: Some(SILENCE_MAX),
                deal: Deal::ByConnection,
            },
            workers,
            event_loop: EventLoop::of(Backend::best(sessions as usize, workers).0),
            sessions_per_state: sessions_per_state(sessions as usize, workers),
            grace: FOREVER,
            grace_interrupted: GRACE_INTERRUPTED,
            hold_max: FOREVER,
        }
    }

    /// What a script sees.
    pub fn setup(&self, command: &str, entry: Entry, sessions: u32) -> Setup {
        let options = self.options;
        Setup {
            command: command.to_owned(),
            entry,
            options: options.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            driver: driver_name(options),
            seed: match self.settings.seed {
                0 => random_seed(),
                seed => seed as u64,
            },
            sessions,
            distribution: distribution(options),
            argv: self.words.to_vec(),
            host: Some(self.voice.clone()),
        }
    }
}

/// How many OS threads drive the sessions, where one per CPU is not enough: events that wait without letting others run.
const WORKERS_VARIABLE: &str = "ASSAY_WORKERS";

/// What is wrong with the environment, if anything is.
pub fn check_workers() -> Result<(), String> {
    match std::env::var(WORKERS_VARIABLE) {
        Ok(text) if workers_asked_for().is_none() => {
            Err(format!("{WORKERS_VARIABLE}={text}: not a number of threads from 1 on"))
        }
        _ => Ok(()),
    }
}

fn workers_asked_for() -> Option<usize> {
    std::env::var(WORKERS_VARIABLE).ok()?.parse().ok().filter(|workers| *workers > 0)
}

/// OS threads that drive so many sessions.
pub fn workers(sessions: u32) -> usize {
    let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
    workers_asked_for().unwrap_or_else(cpus).min(sessions as usize)
}

/// What to tell somebody whose script holds a worker, at this place, for this long.
pub fn advice_on_holding(place: Option<&str>, held: Nanos, sessions: u32) -> String {
    format!(
        "WARNING: the script has run for {:.1} s without waiting for the database, at {}\n  {sessions} threads share {} \
         threads of the operating system, and the others stand still meanwhile: wait with usleep or sleep, \
         or set {WORKERS_VARIABLE}={sessions}\n",
        held.as_secs_f64(),
        place.unwrap_or("a place Lua cannot tell"),
        workers(sessions),
    )
}

/// As given: a script that asks for a database learns whether there is such a driver.
pub fn driver_name(options: &Options) -> &'static str {
    match options.text("db_driver") {
        "mysql" => "mysql",
        "pgsql" => "pgsql",
        "sqlite" => "sqlite",
        // Once per process.
        other => String::leak(other.to_owned()),
    }
}

fn distribution(options: &Options) -> Distribution {
    let kind = options.text("rand_type");
    Distribution {
        kind: DistributionKind::from_name(kind).unwrap_or(DistributionKind::Special),
        iterations: u32::try_from(options.int("rand_spec_iter")).unwrap_or(1).max(1),
        special_percent: options.number("rand_spec_pct").clamp(0.0, 100.0),
        special_hits: options.number("rand_spec_res").clamp(0.0, 100.0),
        pareto_h: options.number("rand_pareto_h").clamp(1e-6, 1.0 - 1e-6),
        zipfian_exponent: options.number("rand_zipfian_exp").max(0.0),
    }
}

/// Another one in every process.
pub fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // The keys of a hash map come from the system's random numbers.
    RandomState::new().hash_one(std::process::id()) >> 1
}
