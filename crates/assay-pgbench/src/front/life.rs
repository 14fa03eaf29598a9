//! A run with pgbench's output: progress lines, log files, and the numbers of its report.

use std::io::Write;
use std::time::Duration;

use assay_engine::{Line, Notice, Observer, Outcome};
use assay_measure::{Interval, Latencies};
use assay_seam::Nanos;

use super::desk::{DEADLOCK, Desk, OTHER, words_of};
use super::plan::keeps_journal;
use crate::Arguments;
use crate::log::{self, Aggregation, Ending, LogEntry};
use crate::report::{self, Figures, ReportTally, Span, Sums};

/// Watches a run.
pub(super) struct Life<'a> {
    arguments: &'a Arguments,
    desk: &'a Desk,
    connecting_since: Duration,
    /// Until all clients were connected.
    connecting: Option<Duration>,
    /// Unix time of the run's start, once a line of the journal has come.
    started: Option<Duration>,
    /// From the journal: by script, in total, and since the last progress line.
    scripts: Vec<Sums>,
    lag: Sums,
    recent_lag: Sums,
    above_limit: u64,
    files: Vec<LogFile>,
    /// The desk's counts at the last progress line.
    told: ReportTally,
}

struct LogFile {
    file: Box<dyn Write>,
    sums: Option<Aggregation>,
}

fn millis(span: Nanos) -> f64 {
    span.as_secs_f64() * 1000.0
}

impl<'a> Life<'a> {
    /// Opens the log files.
    pub(super) fn new(arguments: &'a Arguments, desk: &'a Desk, scripts: usize) -> Result<Life<'a>, String> {
        let mut files = Vec::new();
        if arguments.logs {
            let process = desk.process.id();
            for thread in 0..arguments.threads {
                let end = if thread == 0 { String::new() } else { format!(".{thread}") };
                let path = format!("{}.{process}{end}", arguments.log_prefix);
                let file = desk
                    .process
                    .create(&path)
                    .map_err(|error| format!("could not open logfile \"{path}\": {}", words_of(&error)))?;
                files.push(LogFile { file, sums: None });
            }
        }
        Ok(Life {
            arguments,
            desk,
            connecting_since: desk.process.elapsed(),
            connecting: None,
            started: None,
            scripts: vec![Sums::default(); scripts],
            lag: Sums::default(),
            recent_lag: Sums::default(),
            above_limit: 0,
            files,
            told: ReportTally::default(),
        })
    }

    /// Whether clients reached their first transactions.
    pub(super) fn has_begun(&self) -> bool {
        self.connecting.is_some()
    }

    fn on_lines(&mut self, lines: &[Line], now: Nanos) {
        let unix = || self.desk.process.unix_time();
        let started = *self.started.get_or_insert_with(|| unix().saturating_sub(Duration::from_nanos(now.0)));
        for line in lines {
            let &[client, script, ending, number, retries] = line.values.as_slice() else { continue };
            let ending = match ending as u32 {
                0 => Ending::Done,
                1 => Ending::Serialization,
                DEADLOCK => Ending::Deadlock,
                OTHER => Ending::Other,
                _ => Ending::Skipped,
            };
            let (took, lag) = (line.done - line.due, line.sent - line.due);
            let micros = |span: Nanos| span.0 / 1000;
            let entry = LogEntry {
                client: client as u64,
                script: script as u64,
                ending,
                number: number as u64,
                retries: retries as u64,
                ended: (started + Duration::from_nanos(line.done.0)).as_micros() as u64,
                took: micros(took),
                lag: micros(lag),
            };
            if ending == Ending::Done {
                if let Some(sums) = self.scripts.get_mut(script as usize) {
                    sums.add(millis(took));
                }
                self.lag.add(millis(lag));
                self.recent_lag.add(millis(lag));
                let limit = self.arguments.latency_limit;
                self.above_limit += u64::from(limit.is_some_and(|limit| millis(took) > limit));
            }
            self.log(&entry, started);
        }
        let over = (started + Duration::from_nanos(now.0)).as_secs().saturating_sub(2);
        for log in &mut self.files {
            if let Some(sums) = &mut log.sums {
                let _ = log.file.write_all(sums.lines_before(over).as_bytes());
            }
        }
    }

    fn log(&mut self, entry: &LogEntry, started: Duration) {
        let arguments = self.arguments;
        let thread = log::thread_of(entry.client, arguments.clients, arguments.threads);
        let Some(log) = self.files.get_mut(thread as usize) else { return };
        if arguments.aggregate_interval.is_some() {
            let begun = self.connecting.unwrap_or_default();
            let first = || Aggregation::new(arguments, (started + begun).as_secs());
            log.sums.get_or_insert_with(first).add(entry);
        } else if arguments.sampling_rate.is_none_or(is_chosen) {
            let _ = log.file.write_all(log::line(arguments, entry).as_bytes());
        }
    }

    fn on_interval(&mut self, interval: &Interval) {
        let Some(every) = self.arguments.progress else { return };
        // The part after the last complete interval has no line.
        if Nanos(interval.length_ns) < Nanos::from_secs(u64::from(every)) {
            return;
        }
        let told = self.told_so_far();
        let before = std::mem::replace(&mut self.told, told);
        let tally = ReportTally {
            done: sums(&interval.response),
            serialization: told.serialization - before.serialization,
            deadlock: told.deadlock - before.deadlock,
            other: told.other - before.other,
            skipped: told.skipped - before.skipped,
            retried: told.retried - before.retried,
            retries: told.retries - before.retries,
        };
        let at = match self.arguments.progress_timestamp {
            true => self.desk.process.unix_time().as_secs_f64(),
            false => Nanos(interval.start_ns + interval.length_ns).as_secs_f64(),
        };
        let lag = std::mem::take(&mut self.recent_lag);
        let span = Span { at, seconds: Nanos(interval.length_ns).as_secs_f64(), tally, lag };
        self.desk.process.complain(&report::progress(self.arguments, &span));
    }

    /// What the clients have reported, for all scripts.
    fn told_so_far(&self) -> ReportTally {
        let mut all = ReportTally::default();
        self.desk.notes().scripts.iter().for_each(|script| all.add(script));
        all
    }

    /// Everything, when the run is over. Completes the log files.
    pub(super) fn figures(mut self, outcome: &Outcome) -> Figures {
        for log in &mut self.files {
            if let Some(sums) = &mut log.sums {
                let _ = log.file.write_all(sums.finish().as_bytes());
            }
            let _ = log.file.flush();
        }
        let notes = self.desk.notes();
        let mut scripts = notes.scripts;
        let stage = outcome.stages.last();
        for (i, script) in scripts.iter_mut().enumerate() {
            script.done = if keeps_journal(self.arguments) {
                self.scripts[i]
            } else {
                // The workload's own type if there is only one script.
                let name = format!("script {}", i + 1);
                let kind =
                    if self.scripts.len() == 1 { Some(0) } else { outcome.types.iter().position(|kind| *kind == name) };
                let of_kind = kind.and_then(|kind| stage?.total.transactions.get(kind));
                of_kind.map_or(Sums::default(), |tally| sums(&tally.response))
            };
        }
        let connecting = self.connecting.unwrap_or_default().as_secs_f64();
        Figures {
            scripts,
            commands: notes.commands,
            lag: self.lag,
            above_limit: self.above_limit,
            seconds: stage.map_or(0.0, |stage| stage.measured.as_secs_f64()),
            connecting: if self.arguments.reconnects { notes.connecting.0 } else { connecting },
            connects: notes.connecting.1,
        }
    }
}

/// Whether a sample of this share includes one more.
fn is_chosen(share: f64) -> bool {
    use std::hash::{BuildHasher, RandomState};
    // The keys of hash maps are random, and different each time.
    (RandomState::new().hash_one(0) as f64) < share * 2_f64.powi(64)
}

/// In milliseconds. Squares are computed from the buckets, three digits of each value.
fn sums(latencies: &Latencies) -> Sums {
    let squares = latencies.buckets().into_iter().map(|bucket| {
        let ms = bucket.highest_ns as f64 / 1e6;
        ms * ms * bucket.count as f64
    });
    Sums {
        count: latencies.count,
        sum: latencies.sum_ns as f64 / 1e6,
        squares: squares.sum(),
        max: millis(Nanos(latencies.max_ns)),
    }
}

impl Observer for Life<'_> {
    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::StageBegins { .. } => {
                self.connecting = Some(self.desk.process.elapsed() - self.connecting_since);
            }
            Notice::Interval { interval, .. } => self.on_interval(&interval.measured),
            Notice::Journal { lines, now, .. } => self.on_lines(lines, now),
            _ => {}
        }
    }
}
