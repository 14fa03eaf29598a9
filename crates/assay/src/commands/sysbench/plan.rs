//! From options to the engine's `Plan`.

use std::sync::Arc;

use assay_engine::{
    Arrival, Connects, Deal, EventLoop, Ignore, Limit, Load, OnError, Plan, Policy, Stage, sessions_per_state,
};
use assay_io::Backend;
use assay_io::process::FilesLimit;
use assay_script::{Distribution, DistributionKind, Entry, Program, Setup};
use assay_sysbench::{Options, Settings, Shutdown};
use assay_wire::Nanos;

use super::target;
use super::voice::Voice;

/// Longer than anybody waits.
const FOREVER: Nanos = Nanos::from_secs(10 * 365 * 86_400);
/// A server that does not answer a login in this time is not there.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(60);
/// Connects under way at once.
const CONNECTS_PENDING: usize = 64;

/// What a plan is made of.
pub struct Parts<'a> {
    /// The script.
    pub program: &'a Arc<Program>,
    /// The core's options.
    pub settings: &'a Settings,
    /// All options, for the script too.
    pub options: &'a Options,
    /// The command line, the program's name first.
    pub words: &'a [String],
    /// Where scripts print.
    pub voice: &'a Arc<Voice>,
}

impl Parts<'_> {
    /// What `run` does.
    pub fn run(&self) -> Result<Plan, String> {
        let settings = self.settings;
        let mut plan = self.command("run", Entry::Thread, settings.threads)?;
        plan.limit = Limit { time: settings.time.map(Nanos::from_secs), transactions: settings.events };
        plan.warmup = Nanos::from_secs(settings.warmup);
        if settings.rate > 0 {
            plan.load = Load::Open { rate: settings.rate as f64, arrival: Arrival::Poisson, backlog_max: None };
        }
        if let (Shutdown::After(seconds), Some(_)) = (settings.shutdown, settings.time) {
            plan.grace = Nanos::from_secs(seconds);
        }
        Ok(plan)
    }

    /// What a command does, in so many sessions.
    pub fn command(&self, command: &str, entry: Entry, sessions: u32) -> Result<Plan, String> {
        let options = self.options;
        // What cannot be raised is told by the first connect that fails.
        let _ = FilesLimit::raise();
        let driver = options.text("db_driver").to_owned();
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(sessions as usize);
        Ok(Plan {
            program: Arc::clone(self.program),
            setup: self.setup(command, entry, sessions),
            targets: target::targets(options)?,
            stages: vec![Stage { sessions }],
            load: Load::Closed,
            limit: Limit::default(),
            warmup: Nanos::ZERO,
            interval: Nanos::from_secs(1),
            policy: Policy {
                ignore: ignored(options.list(&format!("{driver}_ignore_errors"))),
                retries: 0,
                restart_ignored: true,
                on_error: OnError::Stop,
                // MySQL's errors leave the rest of a transaction to the script.
                rollback: driver != "mysql",
                reconnect: FOREVER,
            },
            connects: Connects {
                pending_max: CONNECTS_PENDING,
                rate: None,
                timeout: CONNECT_TIMEOUT,
                deal: Deal::ByConnection,
            },
            workers,
            event_loop: EventLoop::of(Backend::best(sessions as usize, workers).0),
            sessions_per_state: sessions_per_state(sessions as usize, workers),
            grace: FOREVER,
            hold_max: FOREVER,
        })
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

fn ignored(codes: &[String]) -> Ignore {
    if codes.iter().any(|code| code == "all") { Ignore::All } else { Ignore::Codes(codes.to_vec()) }
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
