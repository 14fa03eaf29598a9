//! From options to the engine's `Plan`.

use std::sync::Arc;

use assay_engine::{
    Arrival, Connects, Deal, EventLoop, Ignore, Limit, Load, OnError, Plan, Policy, Stage, sessions_per_state,
};
use assay_io::Backend;
use assay_io::process::FilesLimit;
use assay_script::{Distribution, DistributionKind, Entry, Program, Setup};
use assay_seam::Nanos;

use super::invocation::Invocation;
use super::process::Process;
use super::targets;
use crate::{Options, Shutdown};

/// Longer than anybody waits.
const FOREVER: Nanos = Nanos::from_secs(10 * 365 * 86_400);
/// After Ctrl-C, how long to wait for statements in flight, and again for `thread_done`.
const GRACE_INTERRUPTED: Nanos = Nanos::from_millis(100);
/// A server that does not answer a login within this time is considered absent.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(60);
/// A connection is lost if the server's machine has acknowledged nothing for this long, as in `assay run`.
const SILENCE_MAX: Nanos = Nanos::from_secs(30);
/// Concurrent connects.
const CONNECTS_PENDING: usize = 64;

/// A script's plans.
pub(super) struct ScriptPlans<'a> {
    pub(super) program: &'a Arc<Program>,
    pub(super) invocation: &'a Invocation,
}

impl ScriptPlans<'_> {
    /// The plan of `run`.
    pub(super) fn run(&self) -> Plan {
        let settings = &self.invocation.settings;
        let mut plan = self.command("run", Entry::Thread, settings.threads);
        plan.limit = Limit { time: settings.time.map(Nanos::from_secs), transactions: settings.events };
        plan.warmup = Nanos::from_secs(settings.warmup);
        if settings.rate > 0 {
            plan.load =
                Load::Open { rate: (settings.rate as f64).into(), arrival: Arrival::Poisson, backlog_max: None };
        }
        if let (Shutdown::After(seconds), Some(_)) = (settings.shutdown, settings.time) {
            plan.grace = Nanos::from_secs(seconds);
            plan.grace_interrupted = plan.grace_interrupted.min(plan.grace);
        }
        plan
    }

    /// The plan of a command with this many sessions.
    pub(super) fn command(&self, command: &str, entry: Entry, sessions: u32) -> Plan {
        let Invocation { process, options, .. } = self.invocation;
        // If it cannot be raised, the first connect that fails reports it.
        let _ = FilesLimit::raise();
        let workers = workers(*process, sessions);
        Plan {
            program: Arc::clone(self.program),
            setup: self.setup(command, entry, sessions),
            targets: targets::targets(*process, options),
            stages: vec![Stage::of(sessions)],
            load: Load::Closed,
            limit: Limit::default(),
            warmup: Nanos::ZERO,
            interval: Nanos::from_secs(1),
            policy: Policy {
                // Ignored errors and rollbacks differ between drivers and are decided beside the script.
                ignore: Ignore::Codes(Vec::new()),
                retries: 0,
                restart_ignored: true,
                on_error: OnError::Stop,
                rollback: false,
                // The last report comes after `thread_done`, so it includes errors there, and statements.
                errors_outside_apart: true,
                // An event counts if it ends after the warm-up.
                carried_over_count: true,
                must_complete: false,
                failed_prepares_count: false,
                // Every session reports how its own preparation or command ends.
                failures_are_alone: true,
                // Another thread may wait for its connection, or for its locks.
                sessions_leave_alone: true,
                // What `thread_done` shows does not depend on what was in flight.
                grace_bounds_leaving: false,
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
            fleet: None,
            event_loop: EventLoop::of(Backend::best(sessions as usize, workers).0),
            sessions_per_state: sessions_per_state(sessions as usize, workers),
            grace: FOREVER,
            grace_interrupted: GRACE_INTERRUPTED,
            hold_max: FOREVER,
        }
    }

    /// What a script sees.
    pub(super) fn setup(&self, command: &str, entry: Entry, sessions: u32) -> Setup {
        let Invocation { process, options, words, console, .. } = self.invocation;
        Setup {
            command: command.to_owned(),
            entry,
            options: options.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            driver: process.dialect(driver_name(options)),
            seed: self.invocation.seed(),
            sessions,
            distribution: distribution(options),
            argv: words.clone(),
            front: Some(console.clone()),
        }
    }
}

/// How many OS threads drive the sessions if one per CPU is not enough: events that wait without yielding.
const WORKERS_VARIABLE: &str = "ASSAY_WORKERS";

/// An error in the environment, if there is one.
pub(super) fn check_workers(process: &dyn Process) -> Result<(), String> {
    match process.surroundings().variable(WORKERS_VARIABLE) {
        Some(text) if workers_asked_for(process).is_none() => {
            Err(format!("{WORKERS_VARIABLE}={text}: not a number of threads from 1 on"))
        }
        _ => Ok(()),
    }
}

fn workers_asked_for(process: &dyn Process) -> Option<usize> {
    process.surroundings().variable(WORKERS_VARIABLE)?.parse().ok().filter(|workers| *workers > 0)
}

/// Number of OS threads for this many sessions.
pub(super) fn workers(process: &dyn Process, sessions: u32) -> usize {
    let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
    workers_asked_for(process).unwrap_or_else(cpus).min(sessions as usize)
}

/// The message for a script that holds a worker, at this position, for this long.
pub(super) fn advice_on_holding(process: &dyn Process, place: Option<&str>, held: Nanos, sessions: u32) -> String {
    format!(
        "WARNING: the script has run for {:.1} s without waiting for the database, at {}\n  {sessions} threads share {} \
         threads of the operating system, and the others stand still meanwhile: wait with usleep or sleep, \
         or set {WORKERS_VARIABLE}={sessions}\n",
        held.as_secs_f64(),
        place.unwrap_or("a C function that the script calls"),
        workers(process, sessions),
    )
}

/// As given: a script that asks for a database learns whether the driver exists.
pub(super) fn driver_name(options: &Options) -> &'static str {
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
