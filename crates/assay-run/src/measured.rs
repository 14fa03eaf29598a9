//! The record of a command that is worth measuring: `prepare`, which counts rows, and `check`.
//!
//! It has the form of a run's with one stage, so that everything that reads records can read these, too.

use std::path::{Path, PathBuf};

use assay_engine::{Outcome, Plan};
use assay_io::Clock;
use assay_io::process::Usage;
use assay_process::diagnostics::Trouble;
use assay_process::interrupt;
use assay_record::{
    DEFAULT_FOLDER, Generator, Interval, Latencies, Place, Record, RecordFile, Stage, Status, Tally, TransactionTally,
};
use assay_seam::Nanos;
use assay_spec::{OutputSpec, TelemetrySpec};

use crate::live::{beside, existing, unwritable};
use crate::telemetry::{Beside, HostUrl, Samplers};
use crate::{identity, record_of, server_settings};

/// Between two intervals.
const EVERY: Nanos = Nanos::from_secs(1);

/// A command in progress.
pub struct Measured {
    record: Record,
    file: RecordFile,
    beside: Option<Beside>,
    samplers: Option<Samplers>,
    begun: Usage,
    /// End of the last interval, rows until then and our CPU time then.
    last: (Nanos, u64, Nanos),
    intervals: Vec<Interval>,
}

impl Measured {
    /// Starts with what is known before, and writes it; `None`: no record is wanted.
    pub fn begin(record: Record, output: &OutputSpec, telemetry: &TelemetrySpec) -> Result<Option<Measured>, Trouble> {
        let file = match &output.record {
            _ if output.no_record => return Ok(None),
            Some(path) => RecordFile::begin(path, &record, existing(output.force)),
            None => RecordFile::begin_new(Path::new(DEFAULT_FOLDER), &record),
        };
        let file = file.map_err(unwritable)?;
        interrupt::record_is_in(file.path());
        let beside = beside(telemetry)?;
        let begun = Usage::of_process();
        let last = (Nanos::ZERO, 0, begun.cpu());
        Ok(Some(Measured { record, file, beside, samplers: None, begun, last, intervals: Vec::new() }))
    }

    /// It starts: servers are sampled. Instants count from `started` on `clock`.
    pub fn begins(&mut self, plan: &Plan, clock: Clock, started: Nanos) {
        if let Some(beside) = &self.beside {
            let places: Vec<Place> = self.record.environment.servers.iter().map(|server| server.place).collect();
            self.samplers = Samplers::start(&plan.targets, &places, beside, clock, started);
            if let Some(samplers) = &self.samplers {
                samplers.stage_begins(Nanos::ZERO);
            }
        }
    }

    /// Rows loaded so far.
    pub fn loading(&mut self, rows: u64, elapsed: Nanos, sessions: u32) {
        if elapsed - self.last.0 >= EVERY {
            self.interval(rows, elapsed, sessions);
        }
    }

    fn interval(&mut self, rows: u64, elapsed: Nanos, sessions: u32) {
        let cpu = Usage::of_process().cpu();
        let (from, before, cpu_before) = std::mem::replace(&mut self.last, (elapsed, rows, cpu));
        let loaded = rows.saturating_sub(before);
        self.intervals.push(Interval {
            start_ns: from.0,
            length_ns: (elapsed - from).0,
            transactions: vec![loaded],
            due: Some(loaded),
            sessions,
            cpu_ns: (cpu - cpu_before).0,
            ..Interval::default()
        });
    }

    /// It is over: the final record. Returns its path.
    pub fn finish(mut self, plan: &Plan, outcome: &Outcome) -> Result<PathBuf, Trouble> {
        if let Some(samplers) = &mut self.samplers {
            samplers.stage_ends();
            samplers.finish();
            samplers
                .news()
                .into_iter()
                .for_each(|readings| readings.put_into(self.record.telemetry.get_or_insert_default()));
        }
        let used = Usage::of_process() - self.begun;
        let sessions = plan.stages.first().map_or(1, |stage| stage.sessions);
        let is_load = self.record.manifest.task == "prepare";
        let count = if is_load { outcome.loaded } else { 1 };
        if outcome.elapsed > self.last.0 {
            self.interval(count, outcome.elapsed, sessions);
        }
        let took = if is_load { Latencies::default() } else { one(outcome.elapsed) };
        let name = if is_load { "row" } else { "check" };
        let row = TransactionTally {
            name: name.to_owned(),
            count,
            response: took.clone(),
            service: took,
            ..TransactionTally::default()
        };
        let record = &mut self.record;
        record.status = if outcome.success { Status::Complete } else { Status::Failed };
        record.failure = (!outcome.success).then(|| "the check found errors in the tables".to_owned());
        record.elapsed_ns = outcome.elapsed.0;
        record.types = vec![name.to_owned()];
        record_of::servers(record, outcome);
        record.stages = vec![Stage {
            sessions,
            started: record.started,
            start_ns: Some(0),
            measured_ns: outcome.elapsed.0,
            total: Tally { transactions: vec![row], due: count, ..Tally::default() },
            generator: Generator {
                cpu_user_ns: used.user.0,
                cpu_system_ns: used.system.0,
                switches_involuntary: used.switches_involuntary,
                switches_voluntary: used.switches_voluntary,
                workers: record.manifest.workers,
                memory_max_bytes: used.resident_bytes_max,
                ..Generator::default()
            },
            intervals: std::mem::take(&mut self.intervals),
            ..Stage::default()
        }];
        for (number, (server, target)) in record.environment.servers.iter_mut().zip(&plan.targets).enumerate() {
            server_settings::read(target, server.place).into_record(server);
            let host = self.beside.as_ref().and_then(|beside| beside.hosts.get(number));
            server.facts.extend(host.map(HostUrl::facts).unwrap_or_default());
        }
        identity::write_down(record);
        self.file.finish(record).map_err(unwritable)
    }

    /// It failed, or was interrupted: no record is left.
    pub fn discard(self) {
        self.file.discard();
    }
}

/// The latency of the only transaction.
fn one(took: Nanos) -> Latencies {
    Latencies::of(1, (took.0, took.0), took.0.into(), None)
}
