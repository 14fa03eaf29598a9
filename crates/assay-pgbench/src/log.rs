//! Log files of `-l`: one line per transaction, or per interval.
//!
//! Source: the manual's page on pgbench, "Per-Transaction Logging" and "Aggregated Logging".

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::arguments::Arguments;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Success.
    Done,
    /// A serialization failure in the last try.
    Serialization,
    /// A deadlock in the last try.
    Deadlock,
    /// Another error, with `--continue-on-error`.
    Other,
    /// Skipped because it was too late.
    Skipped,
}

/// A finished transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogEntry {
    /// The client.
    pub client: u64,
    /// Its script, from 0.
    pub script: u64,
    /// How it ended.
    pub ending: Ending,
    /// Its number within the client, from 1.
    pub number: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Unix time of its end, in microseconds.
    pub ended: u64,
    /// done − due, in microseconds.
    pub took: u64,
    /// sent − due, in microseconds.
    pub lag: u64,
}

/// The line of a transaction.
pub fn line(arguments: &Arguments, entry: &LogEntry) -> String {
    let took = match entry.ending {
        Ending::Done => entry.took.to_string(),
        Ending::Skipped => "skipped".to_owned(),
        Ending::Serialization if arguments.failures_detailed => "serialization".to_owned(),
        Ending::Deadlock if arguments.failures_detailed => "deadlock".to_owned(),
        Ending::Other if arguments.failures_detailed => "other".to_owned(),
        Ending::Serialization | Ending::Deadlock | Ending::Other => "failed".to_owned(),
    };
    let (seconds, micros) = (entry.ended / 1_000_000, entry.ended % 1_000_000);
    let mut text = format!("{} {} {took} {} {seconds} {micros}", entry.client, entry.number, entry.script);
    if arguments.rate.is_some() {
        let _ = write!(text, " {}", if entry.ending == Ending::Skipped { 0 } else { entry.lag });
    }
    if arguments.tries != 1 {
        let _ = write!(text, " {}", entry.retries);
    }
    text.push('\n');
    text
}

/// Sums of one interval.
#[derive(Clone, Copy, Debug, Default)]
struct IntervalSums {
    transactions: u64,
    latency: [u64; 4],
    lag: [u64; 4],
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
    other: u64,
}

/// Sum, sum of squares, least, greatest.
fn add(sums: &mut [u64; 4], is_first: bool, value: u64) {
    sums[0] += value;
    sums[1] = sums[1].saturating_add(value.saturating_mul(value));
    sums[2] = if is_first { value } else { sums[2].min(value) };
    sums[3] = sums[3].max(value);
}

/// Sums over intervals, written when these are over. Transactions arrive almost in order: those of one thread do.
#[derive(Debug)]
pub struct Aggregation {
    /// Seconds.
    interval: u64,
    /// Unix time of the first one's start.
    start: u64,
    open: BTreeMap<u64, IntervalSums>,
    /// Intervals written.
    written: u64,
    with_lag: bool,
    with_others: bool,
}

impl Aggregation {
    /// Intervals of this many seconds from `start` on, in Unix time.
    pub fn new(arguments: &Arguments, start: u64) -> Aggregation {
        let interval = u64::from(arguments.aggregate_interval.unwrap_or(1));
        Aggregation {
            interval,
            start,
            open: BTreeMap::new(),
            written: 0,
            with_lag: arguments.rate.is_some(),
            with_others: arguments.continue_on_error,
        }
    }

    /// A transaction has ended.
    pub fn add(&mut self, entry: &LogEntry) {
        let number = (entry.ended / 1_000_000).saturating_sub(self.start) / self.interval;
        let sums = self.open.entry(number.max(self.written)).or_default();
        match entry.ending {
            Ending::Done => {
                let is_first = sums.transactions == 0;
                sums.transactions += 1;
                add(&mut sums.latency, is_first, entry.took);
                if self.with_lag {
                    add(&mut sums.lag, is_first, entry.lag);
                }
            }
            Ending::Skipped => sums.skipped += 1,
            Ending::Serialization => sums.serialization += 1,
            Ending::Deadlock => sums.deadlock += 1,
            Ending::Other => sums.other += 1,
        }
        sums.retried += u64::from(entry.retries > 0);
        sums.retries += entry.retries;
    }

    /// Lines of the intervals that ended before this Unix time.
    pub fn lines_before(&mut self, now: u64) -> String {
        let over = now.saturating_sub(self.start) / self.interval;
        self.write(over)
    }

    /// Lines of all remaining intervals.
    pub fn finish(&mut self) -> String {
        let last = self.open.last_key_value().map_or(0, |(number, _)| number + 1);
        self.write(last)
    }

    fn write(&mut self, end: u64) -> String {
        let mut text = String::new();
        while self.written < end {
            let sums = self.open.remove(&self.written).unwrap_or_default();
            let _ = write!(text, "{} {}", self.start + self.written * self.interval, sums.transactions);
            for number in sums.latency.into_iter().chain(sums.lag) {
                let _ = write!(text, " {number}");
            }
            let _ = write!(
                text,
                " {} {} {} {} {}",
                sums.skipped, sums.retried, sums.retries, sums.serialization, sums.deadlock
            );
            if self.with_others {
                let _ = write!(text, " {}", sums.other);
            }
            text.push('\n');
            self.written += 1;
        }
        text
    }
}

/// The thread to which a client would belong, with this many threads: each has a contiguous range of clients.
pub fn thread_of(client: u64, clients: u32, threads: u32) -> u64 {
    let (clients, threads) = (u64::from(clients), u64::from(threads));
    let mut first = 0;
    for thread in 0..threads {
        first += (clients - first).div_ceil(threads - thread);
        if client < first {
            return thread;
        }
    }
    threads - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Arguments {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Arguments::parse(&words, &|_| None).unwrap()
    }

    const ENTRY: LogEntry = LogEntry {
        client: 1,
        script: 0,
        ending: Ending::Done,
        number: 3,
        retries: 2,
        ended: 1_795_393_052_000_545,
        took: 4946,
        lag: 103,
    };

    #[test]
    fn lines_have_the_columns_that_were_asked_for() {
        assert_eq!(line(&arguments("-l"), &ENTRY), "1 3 4946 0 1795393052 545\n");
        assert_eq!(line(&arguments("-l -R 5 --max-tries 2"), &ENTRY), "1 3 4946 0 1795393052 545 103 2\n");
        let failed = LogEntry { ending: Ending::Deadlock, ..ENTRY };
        assert_eq!(line(&arguments("-l"), &failed), "1 3 failed 0 1795393052 545\n");
        assert_eq!(line(&arguments("-l --failures-detailed"), &failed), "1 3 deadlock 0 1795393052 545\n");
    }

    #[test]
    fn intervals_are_written_when_they_are_over_the_empty_ones_too() {
        let mut sums = Aggregation::new(&arguments("-l -T 4 --aggregate-interval 1"), 1_795_393_052);
        sums.add(&ENTRY);
        sums.add(&LogEntry { took: 54, retries: 0, ..ENTRY });
        assert_eq!(sums.lines_before(1_795_393_052), "");
        assert_eq!(sums.lines_before(1_795_393_053), "1795393052 2 5000 24465832 54 4946 0 0 0 0 0 1 2 0 0\n");
        sums.add(&LogEntry { ended: ENTRY.ended + 2_000_000, ending: Ending::Serialization, ..ENTRY });
        assert_eq!(sums.finish(), "1795393053 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n1795393054 0 0 0 0 0 0 0 0 0 0 1 2 1 0\n");
    }

    #[test]
    fn clients_are_dealt_to_threads_in_runs() {
        assert_eq!((0..5).map(|client| thread_of(client, 5, 2)).collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
        assert_eq!((0..3).map(|client| thread_of(client, 3, 2)).collect::<Vec<_>>(), [0, 0, 1]);
    }
}
