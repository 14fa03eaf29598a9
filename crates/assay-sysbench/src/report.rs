//! The text of reports, whose labels, columns and blanks parsers have relied on for fifteen years.

use crate::histogram::Histogram;
use crate::log::{Log, LogLevel};
use crate::settings::{CoreSettings, ReportLayout, Shutdown};
use crate::stat::{PeriodStat, SessionStat, mean_and_deviation};

/// How a report looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to show statements and transactions, or only events.
    pub sql: bool,
    /// Form of the cumulative report.
    pub layout: ReportLayout,
    /// The percentile in its label; 0: none.
    pub percentile: u32,
    /// Rate mode: queue and concurrency are reported.
    pub rate: bool,
    /// Whether a table of sessions ends the cumulative report: `--debug`.
    pub by_session: bool,
    /// Whether the test itself has reported how much it did, and how fast.
    pub counted: bool,
}

/// The banner.
pub fn banner(luajit: &str) -> String {
    format!("sysbench {} (using bundled LuaJIT {luajit})\n", crate::VERSION)
}

/// What a run prints before its sessions start to get ready.
pub fn announcement(log: &mut Log, settings: &CoreSettings) -> String {
    let mut text = log.text(LogLevel::Notice, "Running the test with following options:");
    let mut say = |line: String| text += &log.text(LogLevel::Notice, &line);
    say(format!("Number of threads: {}", settings.threads));
    if settings.warmup > 0 {
        say(format!("Warmup time: {}s", settings.warmup));
    }
    if settings.rate > 0 {
        say(format!("Target transaction rate: {}/sec", settings.rate));
    }
    if settings.report_interval != 0 {
        say(format!("Report intermediate results every {} second(s)", settings.report_interval));
    }
    if !settings.checkpoints.is_empty() {
        let instants: Vec<String> = settings.checkpoints.iter().map(u64::to_string).collect();
        say(format!("Report checkpoint(s) at {} seconds", instants.join(", ")));
    }
    if settings.debug {
        say("Debug mode enabled.\n".to_owned());
    }
    if settings.validate {
        say("Validation checks: on.\n".to_owned());
    }
    match settings.seed {
        0 => say("Initializing random number generator from current time\n".to_owned()),
        seed => say(format!("Initializing random number generator from seed ({seed}).\n")),
    }
    if let (Shutdown::After(seconds), Some(time)) = (settings.shutdown, settings.time) {
        say(format!("Forcing shutdown in {} seconds", time + seconds));
    }
    say(String::new());
    text
}

/// What a run prints when its threads have started.
pub fn started(log: &mut Log, settings: &CoreSettings) -> String {
    let mut text = log.text(LogLevel::Notice, "Threads started!\n");
    if settings.warmup > 0 {
        text += &log.text(LogLevel::Notice, &format!("Warming up for {} seconds...\n", settings.warmup));
    }
    text
}

/// The lines of an intermediate report.
pub fn intermediate(log: &Log, stat: &PeriodStat, style: Style) -> String {
    let per_second = |count: u64| count as f64 / stat.time_interval.max(f64::MIN_POSITIVE);
    let (threads, events) = (stat.threads_running, per_second(stat.events));
    let latency = format!("lat (ms,{}%): {:.2}", style.percentile, stat.latency_pct * 1000.0);
    let line = if style.sql {
        let queries = per_second(stat.reads + stat.writes + stat.other);
        let (reads, writes, other) = (per_second(stat.reads), per_second(stat.writes), per_second(stat.other));
        let (errors, reconnects) = (per_second(stat.errors), per_second(stat.reconnects));
        format!(
            "thds: {threads} tps: {events:.2} qps: {queries:.2} (r/w/o: {reads:.2}/{writes:.2}/{other:.2}) {latency} \
             err/s: {errors:.2} reconn/s: {reconnects:.2}"
        )
    } else {
        format!("thds: {threads} eps: {events:.2} {latency}")
    };
    let mut text = log.timestamp(stat.time_total, &line);
    if style.rate {
        let comma = if style.sql { "," } else { "" };
        let queue = format!("queue length: {}{comma} concurrency: {}", stat.queue_length, stat.concurrency);
        text += &log.timestamp(stat.time_total, &queue);
    }
    text
}

/// The block at the end, and at every checkpoint. `unfinished`: events that were given up.
pub fn cumulative(
    log: &mut Log,
    stat: &PeriodStat,
    shares: &[SessionStat],
    unfinished: Option<u64>,
    style: Style,
) -> String {
    let seconds = stat.time_interval.max(f64::MIN_POSITIVE);
    let mut text = String::new();
    let mut say = |line: &str| text += &log.text(LogLevel::Notice, line);
    let rate = |count: u64| format!("{count:<6} ({:.2} per sec.)", count as f64 / seconds);
    if style.sql {
        let queries = stat.reads + stat.writes + stat.other;
        say("SQL statistics:");
        say("    queries performed:");
        say(&format!("        read:                            {}", stat.reads));
        say(&format!("        write:                           {}", stat.writes));
        say(&format!("        other:                           {}", stat.other));
        say(&format!("        total:                           {queries}"));
        say(&format!("    transactions:                        {}", rate(stat.events)));
        say(&format!("    queries:                             {}", rate(queries)));
        say(&format!("    ignored errors:                      {}", rate(stat.errors)));
        say(&format!("    reconnects:                          {}", rate(stat.reconnects)));
    }
    if let Some(unfinished) = unfinished {
        say("");
        say(&format!("Number of unfinished transactions on forced shutdown: {unfinished}"));
    }
    match style.layout {
        ReportLayout::Master if style.counted => {}
        ReportLayout::Released => {
            say("");
            say("General statistics:");
            say(&format!("    total time:                          {:.4}s", stat.time_total));
            say(&format!("    total number of events:              {}", stat.events));
        }
        ReportLayout::Master => {
            say("");
            say("Throughput:");
            say(&format!("    events/s (eps):                      {:.4}", stat.events as f64 / seconds));
            say(&format!("    time elapsed:                        {:.4}s", stat.time_total));
            say(&format!("    total number of events:              {}", stat.events));
        }
    }
    say("");
    say("Latency (ms):");
    say(&format!("         min:                              {:10.2}", stat.latency_min * 1000.0));
    say(&format!("         avg:                              {:10.2}", stat.latency_avg * 1000.0));
    say(&format!("         max:                              {:10.2}", stat.latency_max * 1000.0));
    match style.percentile {
        0 => say("         percentile stats:               disabled"),
        percentile => {
            let latency = stat.latency_pct * 1000.0;
            say(&format!("        {percentile:>3}th percentile:                  {latency:10.2}"));
        }
    }
    say(&format!("         sum:                              {:10.2}", stat.latency_sum * 1000.0));
    say("");
    if !(style.layout == ReportLayout::Master && style.counted) {
        fairness(&mut say, shares);
    }
    if style.by_session {
        text += &by_session(log, shares);
    }
    text
}

fn fairness(say: &mut impl FnMut(&str), shares: &[SessionStat]) {
    let (events, events_deviation) = mean_and_deviation(shares.iter().map(|share| share.events as f64));
    let (busy, busy_deviation) = mean_and_deviation(shares.iter().map(|share| share.busy));
    say("Threads fairness:");
    say(&format!("    events (avg/stddev):           {events:.4}/{events_deviation:.2}"));
    say(&format!("    execution time (avg/stddev):   {busy:.4}/{busy_deviation:.2}"));
    say("");
}

/// The table of `--debug`.
fn by_session(log: &mut Log, shares: &[SessionStat]) -> String {
    let mut text = log.text(LogLevel::Debug, "Verbose per-thread statistics:\n");
    for (number, share) in shares.iter().enumerate() {
        let mean = if share.events > 0 { share.busy / share.events as f64 } else { 0.0 };
        let line = format!(
            "    thread #{number:3}: min: {:.4}s  avg: {mean:.4}s  max: {:.4}s  events: {}",
            share.min, share.max, share.events
        );
        text += &log.text(LogLevel::Debug, &line);
        let line = format!("                 total time taken by event execution: {:.4}s", share.busy);
        text += &log.text(LogLevel::Debug, &line);
    }
    if !text.is_empty() {
        text += &log.text(LogLevel::Notice, "");
    }
    text
}

/// `--histogram`: the chart of all latencies, before the cumulative report.
pub fn distribution(log: &mut Log, histogram: &Histogram) -> String {
    let head = log.text(LogLevel::Notice, "Latency histogram (values are in milliseconds)");
    head + &histogram.picture() + &log.text(LogLevel::Notice, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat() -> PeriodStat {
        PeriodStat {
            threads_running: 2,
            time_interval: 2.0,
            time_total: 4.0,
            latency_pct: 0.0227,
            events: 100,
            reads: 1400,
            writes: 400,
            other: 200,
            errors: 1,
            reconnects: 0,
            queue_length: 3,
            concurrency: 2,
            latency_min: 0.0201,
            latency_max: 0.0229,
            latency_avg: 0.021,
            latency_sum: 2.1,
        }
    }

    fn style(sql: bool) -> Style {
        Style { sql, layout: ReportLayout::Released, percentile: 95, rate: true, by_session: false, counted: false }
    }

    #[test]
    fn interval_lines_are_those_that_parsers_know() {
        let log = Log::new(3);
        assert_eq!(
            intermediate(&log, &stat(), style(true)),
            "[ 4s ] thds: 2 tps: 50.00 qps: 1000.00 (r/w/o: 700.00/200.00/100.00) lat (ms,95%): 22.70 err/s: 0.50 \
             reconn/s: 0.00\n[ 4s ] queue length: 3, concurrency: 2\n"
        );
        assert_eq!(
            intermediate(&log, &stat(), style(false)),
            "[ 4s ] thds: 2 eps: 50.00 lat (ms,95%): 22.70\n[ 4s ] queue length: 3 concurrency: 2\n"
        );
    }

    #[test]
    fn the_cumulative_report_keeps_labels_columns_and_blanks() {
        let share = SessionStat { events: 50, busy: 1.05, min: 0.0201, max: 0.0229 };
        assert_eq!(
            cumulative(&mut Log::new(3), &stat(), &[share, share], None, style(true)),
            "SQL statistics:
    queries performed:
        read:                            1400
        write:                           400
        other:                           200
        total:                           2000
    transactions:                        100    (50.00 per sec.)
    queries:                             2000   (1000.00 per sec.)
    ignored errors:                      1      (0.50 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          4.0000s
    total number of events:              100

Latency (ms):
         min:                                   20.10
         avg:                                   21.00
         max:                                   22.90
         95th percentile:                       22.70
         sum:                                 2100.00

Threads fairness:
    events (avg/stddev):           50.0000/0.00
    execution time (avg/stddev):   1.0500/0.00

"
        );
    }

    #[test]
    fn a_test_with_its_own_block_has_no_fairness_in_the_layout_of_the_development_branch() {
        let share = SessionStat { events: 3, busy: 0.0631, min: 0.0201, max: 0.0229 };
        let said = |layout, counted| {
            let style = Style { layout, counted, ..style(false) };
            cumulative(&mut Log::new(3), &stat(), &[share], None, style).contains("Threads fairness:")
        };
        assert!(
            said(ReportLayout::Released, true)
                && said(ReportLayout::Master, false)
                && !said(ReportLayout::Master, true)
        );
    }

    #[test]
    fn debugging_has_a_table_of_sessions() {
        let share = SessionStat { events: 3, busy: 0.0631, min: 0.0201, max: 0.0229 };
        let style = Style { by_session: true, ..style(false) };
        let text = cumulative(&mut Log::new(5), &stat(), &[share], None, style);
        let table = text.split_once("/0.00\n\n").unwrap().1;
        assert_eq!(
            table,
            "DEBUG: Verbose per-thread statistics:

DEBUG:     thread #  0: min: 0.0201s  avg: 0.0210s  max: 0.0229s  events: 3
DEBUG:                  total time taken by event execution: 0.0631s

"
        );
    }
}
