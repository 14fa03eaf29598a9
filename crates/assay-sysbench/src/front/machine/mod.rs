//! The built-in tests: converts options for assay-machine, and its counts for sysbench's reports.
//!
//! One file per test: its options, its announcement, its part of the reports. What is common to all is here.

pub(super) mod cpu;
pub(super) mod fileio;
pub(super) mod memory;
pub(super) mod mutex;
pub(super) mod threads;

use std::sync::Arc;
use std::time::Duration;

use crate::report::{self, Style};
use crate::{Histogram, LogLevel, PeriodStat, SessionStat, Shutdown};
use assay_machine::{MachineFault, MachineOutcome, MachinePlan, Snapshot, TestLimit, TestMoment, bucket_value};

use super::invocation::{FAILED, GIVEN_UP, Invocation};
use super::process::MachineReport;

/// What a test prints.
trait Manner {
    /// Its part of a whole report, before the general one.
    fn block(&self, _: &Invocation, _: &Snapshot) {}

    /// Whether the block of the development branch has the number of events, and their rate.
    fn counts(&self) -> bool {
        false
    }

    /// Its line of an intermediate report. False: the general line.
    fn line(&self, _: &Invocation, _: &Snapshot) -> bool {
        false
    }
}

/// A test that has nothing to add.
struct PlainTest;

impl Manner for PlainTest {}

/// The error of `run` for any other command (files have more).
fn no_command(invocation: &Invocation, test: &str, command: &str) -> u8 {
    match command {
        "prepare" | "cleanup" => {
            invocation.refuse(&format!("'{test}' test does not implement the '{command}' command."))
        }
        _ => invocation.refuse(&format!("Unknown command: {command}")),
    }
}

/// Prints an error.
fn fail(invocation: &Invocation, fault: &MachineFault) -> u8 {
    for line in &fault.lines {
        invocation.console.say(LogLevel::Fatal, line);
    }
    if let Some(advice) = &fault.advice {
        invocation.console.say(LogLevel::Warning, advice);
    }
    FAILED
}

/// An invalid value of an option.
fn invalid(invocation: &Invocation, option: &str, value: impl std::fmt::Display) -> u8 {
    fail(invocation, &MachineFault::new(format!("Invalid value for {option}: {value}")))
}

/// A notice.
fn say(invocation: &Invocation, line: &str) {
    invocation.console.say(LogLevel::Notice, line);
}

/// What every run prints first.
fn announce(invocation: &Invocation) {
    invocation.console.with(|log| report::announcement(log, &invocation.settings));
}

/// The core's options as a plan, with at most `events` events.
fn plan(invocation: &Invocation, events: Option<u64>) -> MachinePlan {
    let settings = &invocation.settings;
    let time = settings.time.map(Duration::from_secs);
    MachinePlan {
        events,
        time,
        warmup: Duration::from_secs(settings.warmup),
        rate: Some(settings.rate).filter(|rate| *rate > 0),
        interval: u64::try_from(settings.report_interval).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs),
        checkpoints: settings.checkpoints.iter().map(|seconds| Duration::from_secs(*seconds)).collect(),
        give_up: match settings.shutdown {
            Shutdown::Off => None,
            Shutdown::After(seconds) => time.map(|time| time + Duration::from_secs(seconds)),
        },
        seed: invocation.seed(),
        stop: invocation.process.stop_asked(),
        ..MachinePlan::new(settings.threads)
    }
}

/// Runs a test whose header was printed, prints its results, and returns the exit code.
fn run<T: assay_machine::MachineTest>(
    invocation: &Invocation,
    test: T,
    manner: &impl Manner,
    plan: &MachinePlan,
) -> u8 {
    let console = &invocation.console;
    say(invocation, "Initializing worker threads...\n");
    if plan.rate.is_some() {
        console.say(LogLevel::Debug, "Event generating thread started");
    }
    let is_kept = invocation.process.keeps_machine_reports();
    let mut kept = Vec::new();
    let mut watched = plan.clone();
    if is_kept {
        watched.interval = watched.interval.or(Some(Duration::from_secs(1)));
    }
    let outcome = assay_machine::run(&Arc::new(test), &watched, |moment| match moment {
        TestMoment::Ready(id) => {
            console.say(LogLevel::Debug, &format!("Worker thread (#{id}) started"));
            console.say(LogLevel::Debug, &format!("Worker thread (#{id}) initialized"));
        }
        TestMoment::Started => {
            invocation.process.hear_interrupts(true);
            console.with(|log| report::started(log, &invocation.settings));
            invocation.refuse_rate();
        }
        TestMoment::Warm => {}
        TestMoment::Limit(limit) => {
            let limit = if limit == TestLimit::Events { "Event" } else { "Time" };
            console.say(LogLevel::Info, &format!("{limit} limit exceeded, exiting..."));
        }
        TestMoment::Interval(snapshot) => {
            if is_kept {
                kept.push(snapshot.clone());
            }
            if plan.interval.is_some() && !manner.line(invocation, &snapshot) {
                console.with(|log| report::intermediate(log, &stat(invocation, &snapshot), style(invocation)));
            }
        }
        TestMoment::Checkpoint(snapshot) => {
            console.with(|log| log.timestamp(snapshot.total.as_secs_f64(), "Checkpoint report:"));
            cumulate(invocation, manner, &snapshot, None);
        }
        TestMoment::Done => console.say(LogLevel::Info, "Done.\n"),
    });
    match outcome {
        Err(fault) => fail(invocation, &fault),
        Ok(MachineOutcome { snapshot, unfinished }) => {
            let interrupted = invocation.process.control().is_stopped();
            let given_up = unfinished.filter(|_| !interrupted);
            if given_up.is_some() {
                console.say(LogLevel::Fatal, "The --max-time limit has expired, forcing shutdown...");
            }
            cumulate(invocation, manner, &snapshot, given_up);
            if is_kept {
                let (test, own) = &invocation.test;
                let all = invocation.options.iter().filter(|(key, _)| own.contains(key));
                let options = all.map(|(key, value)| (key.clone(), value.clone())).collect();
                let report = MachineReport { test, options, plan, intervals: &kept, all: &snapshot };
                invocation.process.machine_report(&report);
            }
            let code = match given_up {
                Some(_) => GIVEN_UP,
                None if interrupted => invocation.process.exit_code_interrupted(),
                None => 0,
            };
            if unfinished.is_some() {
                // Threads are still working.
                invocation.process.exit(code.into());
            }
            code
        }
    }
}

/// A whole report.
fn cumulate(invocation: &Invocation, manner: &impl Manner, snapshot: &Snapshot, unfinished: Option<u32>) {
    let seconds = |time: Duration| time.as_secs_f64();
    let shares: Vec<SessionStat> = snapshot
        .shares
        .iter()
        .map(|share| SessionStat {
            events: share.events,
            busy: seconds(share.busy),
            min: seconds(share.min),
            max: seconds(share.max),
        })
        .collect();
    if invocation.settings.histogram && unfinished.is_none() {
        invocation.console.with(|log| report::distribution(log, &histogram(snapshot)));
    }
    manner.block(invocation, snapshot);
    let (stat, unfinished) = (stat(invocation, snapshot), unfinished.map(u64::from));
    let style = Style { counted: manner.counts(), ..style(invocation) };
    invocation.console.with(|log| report::cumulative(log, &stat, &shares, unfinished, style));
}

fn style(invocation: &Invocation) -> Style {
    let settings = &invocation.settings;
    Style {
        sql: false,
        layout: settings.layout,
        percentile: settings.percentile,
        rate: settings.rate > 0,
        by_session: settings.debug,
        counted: false,
    }
}

/// In milliseconds.
fn histogram(snapshot: &Snapshot) -> Histogram {
    let mut histogram = Histogram::of_latencies();
    for (bucket, count) in snapshot.latencies.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
        histogram.add(bucket_value(bucket), *count);
    }
    let [min, max] = [snapshot.latencies.min, snapshot.latencies.max].map(|time| time.as_secs_f64() * 1000.0);
    if histogram.count() > 0 {
        histogram.bound(min, max);
    }
    histogram
}

fn stat(invocation: &Invocation, snapshot: &Snapshot) -> PeriodStat {
    let latencies = &snapshot.latencies;
    let sum = latencies.sum.as_secs_f64();
    PeriodStat {
        threads_running: snapshot.running,
        time_interval: snapshot.interval.as_secs_f64(),
        time_total: snapshot.total.as_secs_f64(),
        latency_pct: histogram(snapshot).percentile(f64::from(invocation.settings.percentile)) / 1000.0,
        events: snapshot.events,
        reads: snapshot.reads,
        writes: snapshot.writes,
        other: snapshot.syncs,
        queue_length: snapshot.waiting,
        concurrency: u64::from(snapshot.busy),
        latency_min: latencies.min.as_secs_f64(),
        latency_max: latencies.max.as_secs_f64(),
        latency_avg: if snapshot.events > 0 { sum / snapshot.events as f64 } else { 0.0 },
        latency_sum: sum,
        ..PeriodStat::default()
    }
}

/// Per second of the time that a report covers.
fn per_second(snapshot: &Snapshot, number: f64) -> f64 {
    let seconds = snapshot.interval.as_secs_f64();
    if seconds > 0.0 { number / seconds } else { 0.0 }
}

const MIB: f64 = 1_048_576.0;
