//! pgbench's command line: arguments in, settings out, with pgbench's error messages.
//!
//! Parsed as by getopt_long: short options may be bundled, long ones abbreviated if that is unambiguous, and the
//! database's name may be anywhere. Source: `pgbench --help`, and pgbench 15's message for each mistake.

use crate::builtin;

/// How SQL is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// As text with the values in it.
    #[default]
    Simple,
    /// Parsed again each time, with parameters.
    Extended,
    /// Prepared once per connection.
    Prepared,
}

impl Mode {
    /// As on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Simple => "simple",
            Mode::Extended => "extended",
            Mode::Prepared => "prepared",
        }
    }
}

/// A script on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptArgument {
    /// `-b`, as an index into `BUILTINS`.
    Builtin(usize),
    /// `-f`
    File(String),
}

/// How pgbench_accounts is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioning {
    /// By ranges of aid.
    Range,
    /// By its hash.
    Hash,
}

/// A parsed command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    /// `--pgbench-version`
    pub version: Option<u32>,
    /// `-i`
    pub initialize: bool,
    /// `-I`, blanks removed.
    pub steps: String,
    /// `-F`, 10 ..= 100
    pub fillfactor: u32,
    /// `-q`
    pub quiet: bool,
    /// `-s`; `None`: not given.
    pub scale: Option<u32>,
    /// `--index-tablespace`
    pub index_tablespace: String,
    /// `--tablespace`
    pub tablespace: String,
    /// `--partitions`
    pub partitions: u32,
    /// `--partition-method`
    pub partition_method: Option<Partitioning>,
    /// `--unlogged-tables`
    pub unlogged: bool,
    /// Scripts with their weights, in order; at least one.
    pub scripts: Vec<(ScriptArgument, u64)>,
    /// `-c`
    pub clients: u32,
    /// `-C`
    pub reconnects: bool,
    /// `-D`, in order.
    pub variables: Vec<(String, String)>,
    /// `-j`, at most as many as clients.
    pub threads: u32,
    /// `-l`
    pub logs: bool,
    /// `-L`, milliseconds.
    pub latency_limit: Option<f64>,
    /// `-M`
    pub mode: Mode,
    /// `-n`
    pub no_vacuum: bool,
    /// `-P`, seconds.
    pub progress: Option<u32>,
    /// `-r`
    pub per_command: bool,
    /// `-R`, transactions per second.
    pub rate: Option<f64>,
    /// `-t`, of each client; `None` with `-T`.
    pub transactions: Option<u64>,
    /// `-T`, seconds.
    pub time: Option<u64>,
    /// `-v`
    pub vacuum_all: bool,
    /// `--aggregate-interval`, seconds.
    pub aggregate_interval: Option<u32>,
    /// `--exit-on-abort`
    pub exit_on_abort: bool,
    /// `--continue-on-error`
    pub continue_on_error: bool,
    /// Print what clients do, line by line.
    pub debug: bool,
    /// `--failures-detailed`
    pub failures_detailed: bool,
    /// `--log-prefix`
    pub log_prefix: String,
    /// `--max-tries`; 0: unlimited.
    pub tries: u32,
    /// `--progress-timestamp`
    pub progress_timestamp: bool,
    /// `--random-seed`, or PGBENCH_RANDOM_SEED, if it is a number.
    pub seed: Option<u64>,
    /// Whether the seed was requested explicitly and is printed.
    pub tells_seed: bool,
    /// `--sampling-rate`, 0 .. 1.
    pub sampling_rate: Option<f64>,
    /// `--verbose-errors`
    pub verbose_errors: bool,
    /// `-h`
    pub host: Option<String>,
    /// `-p`
    pub port: Option<String>,
    /// `-U`
    pub user: Option<String>,
    /// The database's name, or a connection string.
    pub database: Option<String>,
}

/// Why nothing is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedArguments {
    /// A request for information: to stdout.
    Print(String),
    /// Text for stderr, with exit status 0.
    Tell(String),
    /// An error: lines for stderr, including prefixes.
    Mistake(String),
}

/// An error of pgbench.
pub fn error(text: &str) -> RefusedArguments {
    RefusedArguments::Mistake(format!("pgbench: error: {text}\n"))
}

/// An argument that getopt does not understand.
fn unreadable(text: &str) -> RefusedArguments {
    RefusedArguments::Mistake(format!("pgbench: {text}\npgbench: hint: Try \"pgbench --help\" for more information.\n"))
}

/// The letter of `--dbname`.
const DATABASE: char = '\u{1}';

/// Long options: name, whether a value follows, and the equivalent letter.
const LONG: [(&str, bool, char); 47] = [
    ("builtin", true, 'b'),
    ("client", true, 'c'),
    ("connect", false, 'C'),
    ("dbname", true, DATABASE),
    ("debug", false, 'd'),
    ("define", true, 'D'),
    ("file", true, 'f'),
    ("fillfactor", true, 'F'),
    ("host", true, 'h'),
    ("initialize", false, 'i'),
    ("init-steps", true, 'I'),
    ("jobs", true, 'j'),
    ("log", false, 'l'),
    ("latency-limit", true, 'L'),
    ("no-vacuum", false, 'n'),
    ("port", true, 'p'),
    ("progress", true, 'P'),
    ("protocol", true, 'M'),
    ("quiet", false, 'q'),
    ("report-per-command", false, 'r'),
    ("report-latencies", false, 'r'),
    ("rate", true, 'R'),
    ("scale", true, 's'),
    ("select-only", false, 'S'),
    ("skip-some-updates", false, 'N'),
    ("time", true, 'T'),
    ("transactions", true, 't'),
    ("username", true, 'U'),
    ("vacuum-all", false, 'v'),
    ("unlogged-tables", false, '\u{2}'),
    ("tablespace", true, '\u{3}'),
    ("index-tablespace", true, '\u{4}'),
    ("sampling-rate", true, '\u{5}'),
    ("aggregate-interval", true, '\u{6}'),
    ("progress-timestamp", false, '\u{7}'),
    ("log-prefix", true, '\u{8}'),
    ("foreign-keys", false, '\u{9}'),
    ("random-seed", true, '\u{a}'),
    ("show-script", true, '\u{b}'),
    ("partitions", true, '\u{c}'),
    ("partition-method", true, '\u{d}'),
    ("failures-detailed", false, '\u{e}'),
    ("max-tries", true, '\u{f}'),
    ("verbose-errors", false, '\u{10}'),
    ("exit-on-abort", false, '\u{11}'),
    ("continue-on-error", false, '\u{12}'),
    ("pgbench-version", true, '\u{13}'),
];

/// Letters with a value.
const WITH_VALUE: &str = "bcDfFhIjLMpPRstTU";
/// Letters without.
const WITHOUT_VALUE: &str = "CdilnNqrSv";

/// The oldest and the newest version whose options are known, and the first one in which `-d` names the database
/// instead of printing what clients do.
const VERSIONS: [u32; 2] = [15, 19];
const DBNAME_VERSION: u32 = 17;

/// The value of `--pgbench-version`: which meaning an option has that later versions changed.
fn version_of(words: &[String]) -> Result<u32, RefusedArguments> {
    let mut words = words.iter().take_while(|word| *word != "--");
    let mut version = VERSIONS[0];
    while let Some(word) = words.next() {
        let Some(rest) = word.strip_prefix("--pgbench-version") else { continue };
        let value = match rest.strip_prefix('=') {
            Some(value) => value,
            None => words.next().map_or("", |value| value),
        };
        let known = major_of(value).filter(|major| (VERSIONS[0]..=VERSIONS[1]).contains(major));
        let [oldest, newest] = VERSIONS;
        version = known.ok_or_else(|| {
            error(&format!("invalid value \"{value}\" for option --pgbench-version: expected {oldest} to {newest}"))
        })?;
    }
    Ok(version)
}

/// The major part of a version.
fn major_of(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

/// Options in order, and the other arguments.
struct Split {
    options: Vec<(char, String)>,
    others: Vec<String>,
}

fn split(words: &[String]) -> Result<Split, RefusedArguments> {
    let (mut options, mut others) = (Vec::new(), Vec::new());
    let names_database = version_of(words)? >= DBNAME_VERSION;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            others.extend(words.by_ref().cloned());
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let exact = LONG.iter().find(|(known, _, _)| *known == name);
            let mut near = LONG.iter().filter(|(known, _, _)| known.starts_with(name));
            let (_, takes_value, letter) = match (exact, near.next()) {
                (Some(one), _) => one,
                (None, None) => return Err(unreadable(&format!("unrecognized option '{word}'"))),
                (None, Some(first)) => {
                    let more: Vec<&(&str, bool, char)> = near.filter(|other| other.2 != first.2).collect();
                    if !more.is_empty() {
                        let names = [first].into_iter().chain(more).map(|(name, _, _)| format!(" '--{name}'"));
                        let names: String = names.collect();
                        let text = format!("option '{word}' is ambiguous; possibilities:{names}");
                        return Err(unreadable(&text));
                    }
                    first
                }
            };
            let value = match (takes_value, value) {
                (true, Some(value)) => value.to_owned(),
                (true, None) => match words.next() {
                    Some(value) => value.clone(),
                    None => return Err(unreadable(&format!("option '--{name}' requires an argument"))),
                },
                (false, Some(_)) => {
                    return Err(unreadable(&format!("option '--{name}' doesn't allow an argument")));
                }
                (false, None) => String::new(),
            };
            options.push((*letter, value));
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            for (at, letter) in letters.char_indices() {
                let is_database = letter == 'd' && names_database;
                if WITH_VALUE.contains(letter) || is_database {
                    let rest = &letters[at + letter.len_utf8()..];
                    let value = match rest {
                        "" => words.next().cloned(),
                        rest => Some(rest.to_owned()),
                    };
                    let missing = || unreadable(&format!("option requires an argument -- '{letter}'"));
                    let letter = if is_database { DATABASE } else { letter };
                    options.push((letter, value.ok_or_else(missing)?));
                    break;
                }
                if !WITHOUT_VALUE.contains(letter) {
                    return Err(unreadable(&format!("invalid option -- '{letter}'")));
                }
                options.push((letter, String::new()));
            }
        } else {
            others.push(word.clone());
        }
    }
    Ok(Split { options, others })
}

/// A whole number in a range, as pgbench parses it.
fn number(text: &str, name: &str, least: i64, most: i64) -> Result<i64, RefusedArguments> {
    let invalid = || error(&format!("invalid value \"{text}\" for option {name}"));
    let trimmed = text.trim_start();
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    // For C an empty text is 0.
    if text.is_empty() {
        return number("0", name, least, most);
    }
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid());
    }
    match trimmed.parse::<i64>() {
        Ok(number) if number >= least && number <= most => Ok(number),
        _ => Err(error(&format!("{name} must be in range {least}..{most}"))),
    }
}

const INT_MAX: i64 = i32::MAX as i64;
/// As in pgbench.
const SCRIPTS_MAX: usize = 128;

/// The number at the start of a text, as C parses it; 0 if there is none.
fn leading(text: &str) -> f64 {
    let text = text.trim_start();
    (0..=text.len())
        .rev()
        .filter(|end| text.is_char_boundary(*end))
        .find_map(|end| text[..end].parse().ok())
        .unwrap_or(0.0)
}

/// `NAME@WEIGHT`.
fn weighted(text: &str) -> Result<(&str, u64), RefusedArguments> {
    let Some((name, weight)) = text.rsplit_once('@').filter(|(name, _)| !name.is_empty()) else { return Ok((text, 1)) };
    match weight.parse::<i64>() {
        Err(_) => Err(error(&format!("invalid weight specification: @{weight}"))),
        Ok(weight) if !(0..=INT_MAX).contains(&weight) => {
            Err(error(&format!("weight specification out of range (0 .. {INT_MAX}): {weight}")))
        }
        Ok(weight) => Ok((name, weight as u64)),
    }
}

fn builtin_place(name: &str) -> Result<usize, RefusedArguments> {
    match builtin::find(name) {
        Ok(found) => Ok(builtin::BUILTINS.iter().position(|one| one == found).expect("it is one of them")),
        Err(text) => Err(RefusedArguments::Mistake(format!("pgbench: error: {text}\n{}", builtin::list()))),
    }
}

/// A number above zero.
fn above_zero(value: &str, what: &str) -> Result<f64, RefusedArguments> {
    let number = leading(value);
    if number > 0.0 { Ok(number) } else { Err(error(&format!("invalid {what}: \"{value}\""))) }
}

/// `NAME=VALUE` of a variable.
fn definition(text: &str) -> Result<(String, String), RefusedArguments> {
    let parts = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let (name, value) = parts.ok_or_else(|| error(&format!("invalid variable definition: \"{text}\"")))?;
    let begins_well = name.starts_with(|c: char| !c.is_ascii_digit());
    if !begins_well || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()) {
        return Err(error(&format!("option: invalid variable name: \"{name}\"")));
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn partitioning(text: &str) -> Result<Partitioning, RefusedArguments> {
    match text.to_ascii_lowercase().as_str() {
        "range" => Ok(Partitioning::Range),
        "hash" => Ok(Partitioning::Hash),
        _ => Err(error(&format!("invalid partition method, expecting \"range\" or \"hash\", got: \"{text}\""))),
    }
}

/// What was given besides the arguments themselves.
#[derive(Default)]
struct Given {
    /// Whether an option was that makes sense only for a benchmark, or only for the initialization.
    benchmarking: bool,
    initializing: bool,
    foreign_keys: bool,
    tries: Option<u32>,
    /// The random seed and where it comes from.
    seed: Option<(&'static str, String)>,
}

/// Options that make sense only for a benchmark, and only for the initialization.
const FOR_BENCHMARKING: &str = "bcCDfjlLMNPrRStTv\u{5}\u{6}\u{7}\u{8}\u{a}\u{e}\u{f}\u{10}\u{11}";
const FOR_INITIALIZING: &str = "FIq\u{2}\u{3}\u{4}\u{9}\u{c}\u{d}";

impl Arguments {
    /// Parses the arguments after the program's name. `variable`: the environment.
    pub fn parse(words: &[String], variable: &dyn Fn(&str) -> Option<String>) -> Result<Arguments, RefusedArguments> {
        if let Some(first) = words.first() {
            if first == "--help" || first == "-?" {
                return Err(RefusedArguments::Print(crate::help::HELP.to_owned()));
            }
            if first == "--version" || first == "-V" {
                return Err(RefusedArguments::Print(format!("pgbench (PostgreSQL) {} (assay)\n", crate::VERSION)));
            }
        }
        let Split { options, others } = split(words)?;
        let mut these = Arguments::defaults();
        let seed = variable("PGBENCH_RANDOM_SEED").map(|text| ("PGBENCH_RANDOM_SEED environment variable", text));
        let mut given = Given { seed, ..Given::default() };
        for (letter, value) in options {
            given.benchmarking |= FOR_BENCHMARKING.contains(letter);
            given.initializing |= FOR_INITIALIZING.contains(letter);
            these.take(letter, &value, &mut given)?;
        }
        if let Some((origin, text)) = &given.seed {
            these.tells_seed = true;
            these.seed = read_seed(text, origin)?;
        }
        if these.log_prefix.is_empty() {
            these.log_prefix = "pgbench_log".to_owned();
            // An empty prefix was given, and is as wrong without -l as any other.
        }
        these.check(others, &given, words)?;
        Ok(these)
    }

    fn add(&mut self, source: ScriptArgument, weight: u64) -> Result<(), RefusedArguments> {
        if self.scripts.len() == SCRIPTS_MAX {
            return Err(error(&format!("at most {SCRIPTS_MAX} SQL scripts are allowed")));
        }
        self.scripts.push((source, weight));
        Ok(())
    }

    /// One option, by its letter.
    fn take(&mut self, letter: char, value: &str, given: &mut Given) -> Result<(), RefusedArguments> {
        let count = |name| number(value, name, 1, INT_MAX);
        match letter {
            'i' => self.initialize = true,
            'I' => {
                self.steps = value.replace(' ', "");
                check_steps(&self.steps)?;
            }
            'F' => self.fillfactor = number(value, "-F/--fillfactor", 10, 100)? as u32,
            'q' => self.quiet = true,
            's' => self.scale = Some(count("-s/--scale")? as u32),
            'b' if value == "list" => return Err(RefusedArguments::Tell(builtin::list())),
            'b' => {
                let (name, weight) = weighted(value)?;
                self.add(ScriptArgument::Builtin(builtin_place(name)?), weight)?;
            }
            'S' => self.add(ScriptArgument::Builtin(builtin_place("select-only")?), 1)?,
            'N' => self.add(ScriptArgument::Builtin(builtin_place("simple-update")?), 1)?,
            'f' => {
                let (name, weight) = weighted(value)?;
                self.add(ScriptArgument::File(name.to_owned()), weight)?;
            }
            'c' => self.clients = count("-c/--clients")? as u32,
            'C' => self.reconnects = true,
            'j' => self.threads = count("-j/--jobs")? as u32,
            'd' => self.debug = true,
            'D' => self.variables.push(definition(value)?),
            'l' => self.logs = true,
            // pgbench counts in whole microseconds; zero means no limit.
            'L' => self.latency_limit = Some(above_zero(value, "latency limit")?).filter(|limit| *limit >= 1e-3),
            'M' => {
                let modes = [Mode::Simple, Mode::Extended, Mode::Prepared];
                let found = modes.into_iter().find(|mode| mode.name() == value);
                self.mode = found.ok_or_else(|| error(&format!("invalid query mode (-M): \"{value}\"")))?;
            }
            'n' => self.no_vacuum = true,
            'P' => self.progress = Some(count("-P/--progress")? as u32),
            'r' => self.per_command = true,
            'R' => self.rate = Some(above_zero(value, "rate limit")?),
            't' => self.transactions = Some(count("-t/--transactions")? as u64),
            'T' => self.time = Some(count("-T/--time")? as u64),
            'v' => self.vacuum_all = true,
            'h' => self.host = Some(value.to_owned()),
            'p' => self.port = Some(value.to_owned()),
            'U' => self.user = Some(value.to_owned()),
            DATABASE => self.database = Some(value.to_owned()),
            '\u{2}' => self.unlogged = true,
            '\u{3}' => self.tablespace = value.to_owned(),
            '\u{4}' => self.index_tablespace = value.to_owned(),
            '\u{5}' => {
                let share = above_zero(value, "sampling rate")?;
                if share > 1.0 {
                    return Err(error(&format!("invalid sampling rate: \"{value}\"")));
                }
                self.sampling_rate = Some(share);
            }
            '\u{6}' => self.aggregate_interval = Some(count("--aggregate-interval")? as u32),
            '\u{7}' => self.progress_timestamp = true,
            '\u{8}' => self.log_prefix = value.to_owned(),
            '\u{9}' => given.foreign_keys = true,
            '\u{a}' => given.seed = Some(("--random-seed option", value.to_owned())),
            '\u{b}' => return Err(RefusedArguments::Tell(builtin::BUILTINS[builtin_place(value)?].listing())),
            '\u{c}' => self.partitions = number(value, "--partitions", 0, INT_MAX)? as u32,
            '\u{d}' => self.partition_method = Some(partitioning(value)?),
            '\u{e}' => self.failures_detailed = true,
            '\u{f}' => {
                let tries = leading(value) as i64;
                if tries < 0 {
                    return Err(error(&format!("invalid number of maximum tries: \"{value}\"")));
                }
                given.tries = Some(tries as u32);
            }
            '\u{10}' => self.verbose_errors = true,
            '\u{11}' => self.exit_on_abort = true,
            '\u{12}' => self.continue_on_error = true,
            // Checked before, because it decides what other options mean.
            '\u{13}' => self.version = major_of(value),
            _ => unreachable!("every option of the table is handled"),
        }
        Ok(())
    }

    fn defaults() -> Arguments {
        Arguments {
            version: None,
            initialize: false,
            steps: "dtgvp".to_owned(),
            fillfactor: 100,
            quiet: false,
            scale: None,
            index_tablespace: String::new(),
            tablespace: String::new(),
            partitions: 0,
            partition_method: None,
            unlogged: false,
            scripts: Vec::new(),
            clients: 1,
            reconnects: false,
            variables: Vec::new(),
            threads: 1,
            logs: false,
            latency_limit: None,
            mode: Mode::Simple,
            no_vacuum: false,
            progress: None,
            per_command: false,
            rate: None,
            transactions: None,
            time: None,
            vacuum_all: false,
            aggregate_interval: None,
            exit_on_abort: false,
            continue_on_error: false,
            debug: false,
            failures_detailed: false,
            log_prefix: "pgbench_log".to_owned(),
            tries: 1,
            progress_timestamp: false,
            seed: None,
            tells_seed: false,
            sampling_rate: None,
            verbose_errors: false,
            host: None,
            port: None,
            user: None,
            database: None,
        }
    }

    /// Checks combinations of options, in pgbench's order.
    fn check(&mut self, others: Vec<String>, given: &Given, words: &[String]) -> Result<(), RefusedArguments> {
        if self.scripts.is_empty() {
            self.scripts.push((ScriptArgument::Builtin(0), 1));
        }
        if self.scripts.iter().map(|(_, weight)| weight).sum::<u64>() == 0 && !self.initialize {
            return Err(error("total script weight must not be zero"));
        }
        self.threads = self.threads.min(self.clients);
        let mut others = others.into_iter();
        if let Some(name) = others.next() {
            self.database = Some(name);
        }
        if let Some(second) = others.next() {
            return Err(RefusedArguments::Mistake(format!(
                "pgbench: error: too many command-line arguments (first is \"{second}\")\n\
                 pgbench: hint: Try \"pgbench --help\" for more information.\n"
            )));
        }
        if self.initialize {
            if given.benchmarking {
                return Err(error("some of the specified options cannot be used in initialization (-i) mode"));
            }
            if self.partitions == 0 && self.partition_method.is_some() {
                return Err(error("--partition-method requires greater than zero --partitions"));
            }
            if self.no_vacuum {
                self.steps.retain(|step| step != 'v');
            }
            if given.foreign_keys && !self.steps.contains('f') {
                self.steps.push('f');
            }
            return Ok(());
        }
        if given.initializing {
            return Err(error("some of the specified options cannot be used in benchmarking mode"));
        }
        if self.transactions.is_some() && self.time.is_some() {
            return Err(error("specify either a number of transactions (-t) or a duration (-T), not both"));
        }
        if self.transactions.is_none() && self.time.is_none() {
            self.transactions = Some(10);
        }
        if self.sampling_rate.is_some() && !self.logs {
            return Err(error("log sampling (--sampling-rate) is allowed only when logging transactions (-l)"));
        }
        if self.sampling_rate.is_some() && self.aggregate_interval.is_some() {
            return Err(error(
                "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
            ));
        }
        if self.aggregate_interval.is_some() && !self.logs {
            return Err(error("log aggregation is allowed only when actually logging transactions"));
        }
        if !self.logs && words.iter().any(|word| word.starts_with("--log-prefix")) {
            return Err(error("log file prefix (--log-prefix) is allowed only when logging transactions (-l)"));
        }
        if let (Some(interval), Some(time)) = (self.aggregate_interval.map(u64::from), self.time) {
            if interval > time {
                return Err(error(&format!(
                    "number of seconds for aggregation ({interval}) must not be higher than test duration ({time})"
                )));
            }
            if time % interval != 0 {
                return Err(error(&format!(
                    "duration ({time}) must be a multiple of aggregation interval ({interval})"
                )));
            }
        }
        if self.progress_timestamp && self.progress.is_none() {
            return Err(error("--progress-timestamp is allowed only under --progress"));
        }
        self.tries = given.tries.unwrap_or(1);
        if self.tries == 0 && self.latency_limit.is_none() && self.time.is_none() {
            return Err(error(
                "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)",
            ));
        }
        Ok(())
    }

    /// Whether any script is built in: those query the database for its scale.
    pub fn has_builtin(&self) -> bool {
        self.scripts.iter().any(|(source, _)| matches!(source, ScriptArgument::Builtin(_)))
    }
}

fn check_steps(steps: &str) -> Result<(), RefusedArguments> {
    if steps.is_empty() {
        return Err(error("no initialization steps specified"));
    }
    match steps.chars().find(|step| !"dtgGvpf".contains(*step)) {
        Some(step) => Err(RefusedArguments::Mistake(format!(
            "pgbench: error: unrecognized initialization step \"{step}\"\n\
             pgbench: detail: Allowed step characters are: \"dtgGvpf\".\n"
        ))),
        None => Ok(()),
    }
}

/// A number as C reads it where it must not be negative: that wraps, and one that is too large is the largest.
fn unsigned(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: Option<u64> = digits.parse().ok();
    Some(number.map_or(u64::MAX, |number| if text.starts_with('-') { number.wrapping_neg() } else { number }))
}

/// `None`: any.
fn read_seed(text: &str, origin: &str) -> Result<Option<u64>, RefusedArguments> {
    match text {
        "time" | "rand" => Ok(None),
        text => match unsigned(text) {
            Some(seed) => Ok(Some(seed)),
            None => Err(RefusedArguments::Mistake(format!(
                "pgbench: error: unrecognized random seed option \"{text}\"\n\
                 pgbench: detail: Expecting an unsigned integer, \"time\" or \"rand\".\n\
                 pgbench: error: error while setting random seed from {origin}\n"
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, RefusedArguments> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Arguments::parse(&words, &|_| None)
    }

    #[track_caller]
    fn refused(line: &str, text: &str) {
        match parse(line) {
            Err(RefusedArguments::Mistake(lines)) => {
                assert_eq!(lines.lines().next(), Some(format!("pgbench: {text}").as_str()), "{line}")
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_are_bundled_cut_short_and_mixed_with_the_database() {
        let parsed = parse("-nS -c4 bench -j 8 --protocol=prepared --trans 5 -D a=b=c").unwrap();
        assert_eq!((parsed.clients, parsed.threads, parsed.no_vacuum), (4, 4, true));
        assert_eq!(
            (parsed.mode, parsed.transactions, parsed.database.as_deref()),
            (Mode::Prepared, Some(5), Some("bench"))
        );
        assert_eq!(parsed.variables, [("a".to_owned(), "b=c".to_owned())]);
        assert_eq!(parsed.scripts, [(ScriptArgument::Builtin(2), 1)]);
    }

    #[test]
    fn options_that_changed_have_the_meaning_of_the_version_asked_for() {
        let parsed = parse("-d -t 1 bench").unwrap();
        assert_eq!((parsed.debug, parsed.database.as_deref()), (true, Some("bench")));
        let parsed = parse("-t 1 -nd bench --pgbench-version=17.2").unwrap();
        assert_eq!((parsed.debug, parsed.no_vacuum, parsed.database.as_deref()), (false, true, Some("bench")));
        assert!(parse("--debug -d bench --pgbench-version 19 --continue-on-error").unwrap().debug);
        refused("--pgbench-version=14", "error: invalid value \"14\" for option --pgbench-version: expected 15 to 19");
    }

    #[test]
    fn mistakes_are_refused_in_its_words() {
        refused("-c 0", "error: -c/--clients must be in range 1..2147483647");
        refused("-c 1.5", "error: invalid value \"1.5\" for option -c/--clients");
        refused("--nosuch", "unrecognized option '--nosuch'");
        refused("-z", "invalid option -- 'z'");
        refused("-c", "option requires an argument -- 'c'");
        refused("-b s", "error: ambiguous builtin name: 2 builtin scripts found for prefix \"s\"");
        refused(&"-S ".repeat(129), "error: at most 128 SQL scripts are allowed");
        refused("-b tpcb@x", "error: invalid weight specification: @x");
        refused("-i -c 2", "error: some of the specified options cannot be used in initialization (-i) mode");
        refused("-R x", "error: invalid rate limit: \"x\"");
    }
}
