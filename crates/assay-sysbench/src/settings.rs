//! Converts options to the settings of a run, checking every value.

use assay_options::OptionValue;

use crate::log::LogLevel;
use crate::options::Options;

/// The values of the core's options.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreSettings {
    /// Sessions. 1 <= threads.
    pub threads: u32,
    /// Events, over all sessions; `None`: no limit.
    pub events: Option<u64>,
    /// Seconds; `None`: no limit.
    pub time: Option<u64>,
    /// Seconds before anything is counted.
    pub warmup: u64,
    /// When events are given up.
    pub shutdown: Shutdown,
    /// Seconds for sessions to get ready.
    pub init_timeout: u64,
    /// Events per second; 0: as many as possible.
    pub rate: u64,
    /// Seconds between lines of statistics; 0: none. As given, for the header.
    pub report_interval: i64,
    /// Seconds of the checkpoints, ascending.
    pub checkpoints: Vec<u64>,
    /// Be verbose.
    pub debug: bool,
    /// Whether to validate results.
    pub validate: bool,
    /// Percentile to report; 0: none.
    pub percentile: u32,
    /// Whether to show the histogram.
    pub histogram: bool,
    /// Highest message level.
    pub verbosity: i64,
    /// Form of the final report.
    pub layout: ReportLayout,
    /// 0: from the time of day.
    pub seed: i64,
}

/// When events that outlast `--time` are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Never.
    Off,
    /// This many seconds after `--time`.
    After(u64),
}

/// Form of the cumulative report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportLayout {
    /// The layout of sysbench 1.0.20: "General statistics".
    Released,
    /// The layout of its development branch: "Throughput".
    Master,
}

impl ReportLayout {
    /// As on the command line.
    pub fn from_name(name: &str) -> Option<ReportLayout> {
        match name {
            "1.0" => Some(ReportLayout::Released),
            "master" => Some(ReportLayout::Master),
            _ => None,
        }
    }
}

/// Invalid values: a message for stdout, and its level (`None`: printed unchanged).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsRefusal {
    /// How it is printed.
    pub level: Option<LogLevel>,
    /// Its text.
    pub message: String,
}

/// Deprecated options, their replacements, and the value that means "not given".
const OLD_NAMES: [(&str, &str, f64); 4] = [
    ("num-threads", "threads", 1.0),
    ("max-requests", "events", 0.0),
    ("max-time", "time", 0.0),
    ("tx-rate", "rate", 0.0),
];

/// Most checkpoints.
const CHECKPOINTS_MAX: usize = 256;

/// Moves the values of deprecated options to the new ones, with a message.
pub fn replace_old_names(options: &mut Options) -> Vec<String> {
    let mut warnings = Vec::new();
    for (old, new, nothing) in OLD_NAMES {
        let value = options.number(&old.replace('-', "_"));
        if value > nothing {
            options.set(new, OptionValue::Number(value));
            warnings.push(format!("--{old} is deprecated, use --{new} instead"));
        }
    }
    warnings
}

/// Only the verbosity, which is in effect before anything else is checked.
pub fn verbosity(options: &Options) -> Result<i64, SettingsRefusal> {
    match options.int("verbosity") {
        verbosity @ 0..=5 if options.is_on("debug") || options.is_on("mysql_debug") => Ok(verbosity.max(5)),
        verbosity @ 0..=5 => Ok(verbosity),
        // sysbench has it in a byte.
        verbosity => {
            Err(SettingsRefusal { level: None, message: format!("Invalid value for verbosity: {}", verbosity as u8) })
        }
    }
}

/// Whether the run has no limit.
pub fn is_endless(options: &Options) -> bool {
    options.int("events") == 0 && options.int("time") == 0
}

/// Checks the options of the core.
pub fn settings(options: &Options) -> Result<CoreSettings, SettingsRefusal> {
    let fatal = |message: String| SettingsRefusal { level: Some(LogLevel::Fatal), message };
    let verbosity = verbosity(options)?;
    let distribution = options.text("rand_type");
    if !["uniform", "gaussian", "special", "pareto", "zipfian"].contains(&distribution) {
        return Err(fatal(format!("Invalid random numbers distribution: {distribution}.")));
    }
    let percentile = options.int("percentile");
    let percentile = u32::try_from(percentile)
        .ok()
        .filter(|percentile| *percentile <= 100)
        .ok_or_else(|| fatal(format!("Invalid value for --percentile: {percentile}")))?;
    let histogram = options.is_on("histogram");
    if histogram && percentile == 0 {
        return Err(fatal("--histogram cannot be used with --percentile=0".to_owned()));
    }
    let threads = options.int("threads");
    let threads = u32::try_from(threads)
        .ok()
        .filter(|threads| *threads > 0)
        .ok_or_else(|| fatal(format!("Invalid value for --threads: {threads}.\n")))?;
    if options.number("thread_stack_size") <= 0.0 {
        let size = options.int("thread_stack_size");
        return Err(fatal(format!("Invalid value for thread-stack-size: {size}.\n")));
    }
    let command = options.text("luajit_cmd");
    if !["", "on", "off", "flush"].contains(&command) {
        return Err(fatal(format!("Invalid value for --luajit-cmd: '{command}'")));
    }
    let time = options.int("time").max(0) as u64;
    let limit = |value: i64| u64::try_from(value).ok().filter(|value| *value > 0);
    Ok(CoreSettings {
        threads,
        events: limit(options.int("events")),
        time: limit(time as i64),
        warmup: match options.int("warmup_time") {
            warmup @ 0.. => warmup as u64,
            warmup => return Err(fatal(format!("Invalid value for --warmup-time: {warmup}."))),
        },
        shutdown: shutdown(options, time).ok_or_else(|| {
            fatal(format!("Invalid value for --forced-shutdown: '{}'", options.text("forced_shutdown")))
        })?,
        init_timeout: options.int("thread_init_timeout").max(0) as u64,
        rate: match options.int("rate") {
            rate @ 0.. => rate as u64,
            rate => return Err(fatal(format!("Invalid value for --rate: {rate}."))),
        },
        report_interval: options.int("report_interval"),
        checkpoints: checkpoints(options.list("report_checkpoints")).map_err(fatal)?,
        debug: options.is_on("debug"),
        validate: options.is_on("validate"),
        percentile,
        histogram,
        verbosity,
        layout: ReportLayout::from_name(options.text("report_layout"))
            .ok_or_else(|| fatal(format!("Invalid value for --report-layout: '{}'", options.text("report_layout"))))?,
        seed: options.int("rand_seed"),
    })
}

/// Without a value, it is 5 % of the time.
fn shutdown(options: &Options, time: u64) -> Option<Shutdown> {
    let text = options.text("forced_shutdown");
    let share = |percent: f64| Shutdown::After((time as f64 * percent / 100.0) as u64);
    match text {
        "off" => Some(Shutdown::Off),
        _ if time == 0 => Some(Shutdown::Off),
        "" => Some(share(5.0)),
        _ => match text.strip_suffix('%') {
            Some(percent) => percent.parse().ok().filter(|percent: &f64| *percent >= 0.0).map(share),
            None => text.parse().ok().map(Shutdown::After),
        },
    }
}

fn checkpoints(list: &[String]) -> Result<Vec<u64>, String> {
    if list.len() > CHECKPOINTS_MAX {
        return Err(format!("Too many checkpoints in --report-checkpoints (up to {CHECKPOINTS_MAX} can be defined)"));
    }
    let mut checkpoints = list
        .iter()
        .map(|item| item.parse().map_err(|_| format!("Invalid value for --report-checkpoints: '{item}'")))
        .collect::<Result<Vec<u64>, String>>()?;
    checkpoints.sort_unstable();
    Ok(checkpoints)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(given: &[(&str, OptionValue)]) -> Options {
        let mut options = Options::defaults();
        given.iter().for_each(|(key, value)| options.set(key, value.clone()));
        options
    }

    fn number(value: f64) -> OptionValue {
        OptionValue::Number(value)
    }

    #[test]
    fn old_names_win_and_are_warned_of() {
        let mut options = with(&[("num_threads", number(4.0)), ("max_time", number(0.0)), ("time", number(7.0))]);
        assert_eq!(replace_old_names(&mut options), ["--num-threads is deprecated, use --threads instead"]);
        let settings = settings(&options).unwrap();
        assert_eq!((settings.threads, settings.time), (4, Some(7)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |option: &str, value| settings(&with(&[(option, value)])).unwrap_err().message;
        assert_eq!(check("warmup_time", number(-1.0)), "Invalid value for --warmup-time: -1.");
        assert_eq!(check("luajit_cmd", OptionValue::Text("v".to_owned())), "Invalid value for --luajit-cmd: 'v'");
    }

    #[test]
    fn shutdown_is_seconds_or_a_share_of_the_time() {
        let check = |text: &str| {
            let options = with(&[("forced_shutdown", OptionValue::Text(text.to_owned())), ("time", number(60.0))]);
            settings(&options).map(|settings| settings.shutdown).map_err(|refusal| refusal.message)
        };
        assert_eq!(check("off"), Ok(Shutdown::Off));
        assert_eq!(check(""), Ok(Shutdown::After(3)));
        assert_eq!(check("10%"), Ok(Shutdown::After(6)));
        assert_eq!(check("4"), Ok(Shutdown::After(4)));
        assert_eq!(check("abc"), Err("Invalid value for --forced-shutdown: 'abc'".to_owned()));
    }

    #[test]
    fn checkpoints_are_sorted_and_bounded() {
        let list = |items: &[&str]| checkpoints(&items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>());
        assert_eq!(list(&["7", "3"]), Ok(vec![3, 7]));
        assert_eq!(list(&["a"]), Err("Invalid value for --report-checkpoints: 'a'".to_owned()));
        assert!(list(&["1"; 257]).is_err());
    }
}
