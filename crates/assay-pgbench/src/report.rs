//! pgbench's report and progress lines, in the format of version 15.

use std::fmt::Write;

use crate::arguments::{Arguments, Partitioning};
use crate::script::Script;

/// Sums over durations, of transactions or anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// How many.
    pub count: u64,
    /// Milliseconds.
    pub sum: f64,
    /// Their squares.
    pub squares: f64,
    /// The longest.
    pub max: f64,
}

impl Sums {
    /// Adds one.
    pub fn add(&mut self, ms: f64) {
        self.count += 1;
        self.sum += ms;
        self.squares += ms * ms;
        self.max = self.max.max(ms);
    }

    /// Mean and standard deviation.
    pub fn mean_and_deviation(&self) -> (f64, f64) {
        let mean = self.sum / self.count as f64;
        (mean, (self.squares / self.count as f64 - mean * mean).max(0.0).sqrt())
    }
}

/// Transactions by result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReportTally {
    /// Successful ones, and their durations.
    pub done: Sums,
    /// Given up after a serialization failure.
    pub serialization: u64,
    /// After a deadlock.
    pub deadlock: u64,
    /// After another error, with `--continue-on-error`.
    pub other: u64,
    /// Skipped because they were too late.
    pub skipped: u64,
    /// Tried more than once.
    pub retried: u64,
    /// Tries beyond the first.
    pub retries: u64,
}

impl ReportTally {
    /// Given up.
    pub fn failed(&self) -> u64 {
        self.serialization + self.deadlock + self.other
    }

    fn all(&self) -> u64 {
        self.done.count + self.failed() + self.skipped
    }

    /// Adds another interval's.
    pub fn add(&mut self, other: &ReportTally) {
        self.done.count += other.done.count;
        self.done.sum += other.done.sum;
        self.done.squares += other.done.squares;
        self.done.max = self.done.max.max(other.done.max);
        self.serialization += other.serialization;
        self.deadlock += other.deadlock;
        self.other += other.other;
        self.skipped += other.skipped;
        self.retried += other.retried;
        self.retries += other.retries;
    }
}

/// The statistics of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommandTally {
    /// Executions, and their total time in seconds.
    pub count: u64,
    /// Seconds.
    pub seconds: f64,
    /// Transactions that failed because of it.
    pub failures: u64,
    /// Tries that it ended.
    pub retries: u64,
}

/// All results of a run.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// By script.
    pub scripts: Vec<ReportTally>,
    /// By script and command.
    pub commands: Vec<Vec<CommandTally>>,
    /// sent − due.
    pub lag: Sums,
    /// Transactions that took longer than the limit.
    pub above_limit: u64,
    /// Length of the measured part in seconds.
    pub seconds: f64,
    /// Seconds until all clients were connected; with `-C` the total of all connects.
    pub connecting: f64,
    /// Connects, with `-C`.
    pub connects: u64,
}

fn share(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole as f64
}

/// As C prints it.
fn fixed(number: f64, digits: usize) -> String {
    if number.is_nan() { "-nan".to_owned() } else { format!("{number:.digits$}") }
}

fn percent(part: u64, whole: u64) -> String {
    let number = share(part, whole);
    if number.is_nan() { "NaN".to_owned() } else { format!("{number:.3}") }
}

/// The report at the end.
pub fn report(
    arguments: &Arguments,
    scripts: &[Script],
    scale: u32,
    partitions: Option<(Partitioning, u32)>,
    figures: &Figures,
) -> String {
    let mut total = ReportTally::default();
    figures.scripts.iter().for_each(|script| total.add(script));
    let mut text = String::new();
    let kind = if scripts.len() == 1 { scripts[0].name.as_str() } else { "multiple scripts" };
    let _ = writeln!(text, "transaction type: {kind}\nscaling factor: {scale}");
    if let Some((method, count)) = partitions {
        let method = if method == Partitioning::Hash { "hash" } else { "range" };
        let _ = writeln!(text, "partition method: {method}\npartitions: {count}");
    }
    let _ = writeln!(
        text,
        "query mode: {}\nnumber of clients: {}\nnumber of threads: {}",
        arguments.mode.name(),
        arguments.clients,
        arguments.threads
    );
    if arguments.tries != 0 {
        let _ = writeln!(text, "maximum number of tries: {}", arguments.tries);
    }
    match (arguments.time, arguments.transactions) {
        (None, Some(each)) => {
            let _ = writeln!(
                text,
                "number of transactions per client: {each}\nnumber of transactions actually processed: {}/{}",
                total.done.count,
                each * u64::from(arguments.clients)
            );
        }
        (time, _) => {
            let _ = writeln!(
                text,
                "duration: {} s\nnumber of transactions actually processed: {}",
                time.unwrap_or(0),
                total.done.count
            );
        }
    }
    outcomes(&mut text, "", arguments, &total);
    if total.done.count == 0 {
        return text;
    }
    if let Some(limit) = arguments.latency_limit {
        let _ = writeln!(
            text,
            "number of transactions above the {limit:.1} ms latency limit: {}/{} ({}%)",
            figures.above_limit,
            total.done.count,
            percent(figures.above_limit, total.done.count)
        );
    }
    if arguments.rate.is_some() || arguments.latency_limit.is_some() || arguments.progress.is_some() {
        let (mean, deviation) = total.done.mean_and_deviation();
        let _ = writeln!(text, "latency average = {mean:.3} ms\nlatency stddev = {deviation:.3} ms");
    } else {
        let ended = (total.done.count + total.failed()) as f64;
        let mean = 1000.0 * figures.seconds * f64::from(arguments.clients) / ended;
        let including = if total.failed() > 0 { " (including failures)" } else { "" };
        let _ = writeln!(text, "latency average = {mean:.3} ms{including}");
    }
    if arguments.rate.is_some() {
        let (mean, _) = figures.lag.mean_and_deviation();
        let _ = writeln!(text, "rate limit schedule lag: avg {} (max {:.3}) ms", fixed(mean, 3), figures.lag.max);
    }
    let tps = total.done.count as f64 / figures.seconds;
    if arguments.reconnects {
        let mean = 1000.0 * figures.connecting / figures.connects.max(1) as f64;
        let _ = writeln!(text, "average connection time = {mean:.3} ms\ntps = {tps:.6} (including reconnection times)");
    } else {
        let _ = writeln!(
            text,
            "initial connection time = {:.3} ms\ntps = {tps:.6} (without initial connection time)",
            1000.0 * figures.connecting
        );
    }
    if scripts.len() > 1 {
        let weights: u64 = arguments.scripts.iter().map(|(_, weight)| weight).sum();
        for (i, (script, tally)) in scripts.iter().zip(&figures.scripts).enumerate() {
            let weight = arguments.scripts[i].1;
            let _ = writeln!(
                text,
                "SQL script {}: {}\n - weight: {weight} (targets {:.1}% of total)\n - {} transactions ({:.1}% of total, tps = {:.6})",
                i + 1,
                script.name,
                share(weight, weights),
                tally.done.count,
                share(tally.done.count, total.done.count),
                tally.done.count as f64 / figures.seconds
            );
            outcomes(&mut text, " - ", arguments, tally);
            if tally.done.count > 0 {
                let (mean, deviation) = tally.done.mean_and_deviation();
                let _ = writeln!(text, " - latency average = {mean:.3} ms\n - latency stddev = {deviation:.3} ms");
            }
            if arguments.per_command {
                commands(&mut text, " - ", arguments, script, &figures.commands[i]);
            }
        }
    } else if arguments.per_command {
        commands(&mut text, "", arguments, &scripts[0], &figures.commands[0]);
    }
    text
}

/// Failed, retried, skipped.
fn outcomes(text: &mut String, dash: &str, arguments: &Arguments, tally: &ReportTally) {
    let all = tally.all();
    let mut count = |what: &str, number: u64| {
        let _ = writeln!(text, "{dash}number of {what}: {number} ({}%)", percent(number, all));
    };
    count("failed transactions", tally.failed());
    if arguments.failures_detailed {
        count("serialization failures", tally.serialization);
        count("deadlock failures", tally.deadlock);
        if arguments.continue_on_error {
            count("other failures", tally.other);
        }
    }
    if arguments.tries != 1 {
        count("transactions retried", tally.retried);
        let _ = writeln!(text, "{dash}total number of retries: {}", tally.retries);
    }
    if arguments.rate.is_some() && arguments.latency_limit.is_some() {
        let _ = writeln!(
            text,
            "{dash}number of transactions skipped: {} ({}%)",
            tally.skipped,
            percent(tally.skipped, all)
        );
    }
}

fn commands(text: &mut String, dash: &str, arguments: &Arguments, script: &Script, tallies: &[CommandTally]) {
    let with_retries = arguments.tries != 1;
    let rest = if with_retries { ", failures and retries" } else { " and failures" };
    let _ = writeln!(text, "{dash}statement latencies in milliseconds{rest}:");
    for (command, tally) in script.commands.iter().zip(tallies) {
        let mean = if tally.count == 0 { 0.0 } else { 1000.0 * tally.seconds / tally.count as f64 };
        let _ = write!(text, "  {mean:>12.3}  {:>10}", tally.failures);
        if with_retries {
            let _ = write!(text, "  {:>10}", tally.retries);
        }
        let _ = writeln!(text, "  {}", command.shown);
    }
}

/// An interval of a run, for a progress line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// Seconds since the start of the run, or Unix time, at its end.
    pub at: f64,
    /// Its length in seconds.
    pub seconds: f64,
    /// What ended in it.
    pub tally: ReportTally,
    /// sent − due.
    pub lag: Sums,
}

/// A progress line.
pub fn progress(arguments: &Arguments, span: &Span) -> String {
    let Span { at, seconds, tally, lag } = span;
    let or_zero = |number: f64| if number.is_finite() { number } else { 0.0 };
    let (mean, deviation) = tally.done.mean_and_deviation();
    let time = if arguments.progress_timestamp { format!("{at:.3} s") } else { format!("{at:.1} s") };
    let mut text = format!(
        "progress: {time}, {:.1} tps, lat {:.3} ms stddev {:.3}, {} failed",
        tally.done.count as f64 / seconds,
        or_zero(mean),
        or_zero(deviation),
        tally.failed()
    );
    if arguments.rate.is_some() {
        let _ = write!(text, ", lag {:.3} ms", or_zero(lag.mean_and_deviation().0));
        if arguments.latency_limit.is_some() {
            let _ = write!(text, ", {} skipped", tally.skipped);
        }
    }
    if arguments.tries != 1 {
        let _ = write!(text, ", {} retried, {} retries", tally.retried, tally.retries);
    }
    text.push('\n');
    text
}
