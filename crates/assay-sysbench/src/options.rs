//! The command line: arguments to a test, a command and options, in two passes.
//!
//! The first pass takes every option that the core or a database driver knows; the rest waits for the second pass, when
//! the script has declared its options. Options are processed in their order, configuration files where they are named:
//! the last one wins.

use std::collections::BTreeMap;

use assay_options::{OptionDeclaration, OptionValue};

use crate::config_file;
use crate::value::{Unreadable, ValueKind};

/// An option that is known before any script.
#[derive(Clone, Copy, Debug)]
pub struct KnownOption {
    /// As shown, with `-`.
    pub name: &'static str,
    /// How its value is read.
    pub kind: ValueKind,
    /// As on the command line; `None`: no default, not shown.
    pub default: Option<&'static str>,
    /// For the list of options.
    pub help: &'static str,
}

/// An option with a default.
const fn known(name: &'static str, kind: ValueKind, default: &'static str, help: &'static str) -> KnownOption {
    KnownOption { name, kind, default: Some(default), help }
}

/// Options of the test itself.
pub const GENERAL: &[KnownOption] = &[
    known("threads", ValueKind::Int, "1", "sessions that run at the same time"),
    known("events", ValueKind::Int, "0", "end after this many events; 0: no limit"),
    known("time", ValueKind::Int, "10", "end after this many seconds; 0: no limit"),
    known("warmup-time", ValueKind::Int, "0", "seconds to run before anything is counted"),
    known(
        "forced-shutdown",
        ValueKind::Text,
        "off",
        "seconds (or N% of --time) to wait for events after --time before aborting them; off: no limit",
    ),
    known("thread-init-timeout", ValueKind::Int, "30", "seconds to wait for all sessions to start"),
    known("thread-stack-size", ValueKind::Size, "64K", "accepted for compatibility: no effect"),
    known("rate", ValueKind::Int, "0", "events per second that become due, over all sessions; 0: as many as possible"),
    known("report-interval", ValueKind::Int, "0", "print a line of statistics every N seconds; 0: none"),
    known(
        "report-checkpoints",
        ValueKind::List,
        "",
        "print a full report at each of these times, in seconds, and reset the counters",
    ),
    known("report-layout", ValueKind::Text, "1.0", "format of the final report: 1.0 or master"),
    known("debug", ValueKind::Bool, "off", "print debugging messages and a table of sessions"),
    known("validate", ValueKind::Bool, "off", "validate results, in tests that support it"),
    known("help", ValueKind::Bool, "off", "print this help text and exit"),
    known("version", ValueKind::Bool, "off", "print the version and exit"),
    KnownOption {
        name: "config-file",
        kind: ValueKind::File,
        default: None,
        help: "file with options, one NAME=VALUE per line",
    },
    KnownOption { name: "luajit-cmd", kind: ValueKind::Text, default: None, help: "as `luajit -j`: on, off, flush" },
    known("tx-rate", ValueKind::Int, "0", "old name of --rate"),
    known("max-requests", ValueKind::Int, "0", "old name of --events"),
    known("max-time", ValueKind::Int, "0", "old name of --time"),
    known("num-threads", ValueKind::Int, "1", "old name of --threads"),
];

/// Options of the random numbers.
pub const RANDOM: &[KnownOption] = &[
    known("rand-type", ValueKind::Text, "special", "distribution {uniform,gaussian,special,pareto,zipfian}"),
    known("rand-spec-iter", ValueKind::Int, "12", "uniform numbers averaged for a gaussian one"),
    known("rand-spec-pct", ValueKind::Int, "1", "percentage of values in the hot range"),
    known("rand-spec-res", ValueKind::Int, "75", "percentage of draws from the hot range"),
    known("rand-seed", ValueKind::Int, "0", "the same seed gives the same numbers; 0: from the time"),
    known("rand-pareto-h", ValueKind::Double, "0.2", "parameter h of pareto"),
    known("rand-zipfian-exp", ValueKind::Double, "0.8", "exponent of zipfian"),
];

/// Options of logging.
pub const LOG: &[KnownOption] =
    &[known("verbosity", ValueKind::Int, "3", "verbosity of messages, from 5 (all) to 0 (fatal errors only)")];

/// Options of latencies.
pub const LATENCY: &[KnownOption] = &[
    known("percentile", ValueKind::Int, "95", "percentile of latency to report (1-100); 0: none"),
    known("histogram", ValueKind::Bool, "off", "draw the distribution of latencies in the final report"),
];

/// Options of all databases.
pub const DATABASE: &[KnownOption] = &[
    known("db-driver", ValueKind::Text, "mysql", "database to use"),
    known("db-ps-mode", ValueKind::Text, "auto", "prepared statements {auto, disable}"),
    known("db-debug", ValueKind::Bool, "off", "print more about statements"),
];

/// A database and its options.
#[derive(Clone, Copy, Debug)]
pub struct DriverOptions {
    /// As in `--db-driver`.
    pub name: &'static str,
    /// For the list of drivers.
    pub help: &'static str,
    /// Known whichever driver is chosen.
    pub options: &'static [KnownOption],
}

/// The databases.
pub const DRIVERS: &[DriverOptions] = &[
    DriverOptions {
        name: "mysql",
        help: "MySQL driver",
        options: &[
            known("mysql-host", ValueKind::List, "localhost", "hosts; connections are assigned round-robin"),
            known("mysql-port", ValueKind::List, "3306", "ports of each host"),
            KnownOption {
                name: "mysql-socket",
                kind: ValueKind::List,
                default: None,
                help: "sockets, in place of hosts",
            },
            known("mysql-user", ValueKind::Text, "sbtest", "user"),
            known("mysql-password", ValueKind::Text, "", "password"),
            known("mysql-db", ValueKind::Text, "sbtest", "database"),
            known(
                "mysql-ssl",
                ValueKind::SwitchOrText,
                "off",
                "encrypt {on,off,disabled,preferred,required,verify_ca,verify_identity}",
            ),
            KnownOption {
                name: "mysql-ssl-key",
                kind: ValueKind::Text,
                default: None,
                help: "file with the client's private key",
            },
            KnownOption {
                name: "mysql-ssl-ca",
                kind: ValueKind::Text,
                default: None,
                help: "file of trusted certificates",
            },
            KnownOption {
                name: "mysql-ssl-cert",
                kind: ValueKind::Text,
                default: None,
                help: "file with the client certificate",
            },
            known("mysql-ssl-cipher", ValueKind::Text, "", "accepted for compatibility: no effect"),
            known("mysql-compression", ValueKind::Bool, "off", "accepted for compatibility: nothing is compressed"),
            known("mysql-compression-algorithms", ValueKind::Text, "zlib", "accepted for compatibility"),
            known("mysql-debug", ValueKind::Bool, "off", "print debugging messages of the driver"),
            known(
                "mysql-ignore-errors",
                ValueKind::List,
                "1213,1020,1205",
                "errors that restart their event, or \"all\"",
            ),
            known("mysql-dry-run", ValueKind::Bool, "off", "pretend that every statement succeeds, and execute none"),
        ],
    },
    DriverOptions {
        name: "pgsql",
        help: "PostgreSQL driver",
        options: &[
            known("pgsql-host", ValueKind::Text, "localhost", "hosts, or directory of the socket"),
            known("pgsql-port", ValueKind::Int, "5432", "port"),
            known("pgsql-user", ValueKind::Text, "sbtest", "user"),
            known("pgsql-password", ValueKind::Text, "", "password"),
            known("pgsql-db", ValueKind::Text, "sbtest", "database, or a connection string"),
            KnownOption {
                name: "pgsql-sslmode",
                kind: ValueKind::Text,
                default: None,
                help: "encrypt {disable,allow,prefer,require,verify-ca,verify-full} [PGSSLMODE]",
            },
            known(
                "pgsql-ignore-errors",
                ValueKind::List,
                "40P01,40001,23505",
                "SQLSTATEs that restart their event, or \"all\"",
            ),
        ],
    },
    DriverOptions {
        name: "sqlite",
        help: "SQLite, inside this process",
        options: &[
            known("sqlite-db", ValueKind::Text, "sbtest.db", "database file"),
            known("sqlite-ignore-errors", ValueKind::List, "", "errors that restart their event, or \"all\""),
        ],
    },
];

/// Every option of the tables above.
pub fn all_known() -> impl Iterator<Item = &'static KnownOption> {
    let drivers = DRIVERS.iter().flat_map(|driver| driver.options);
    [GENERAL, RANDOM, LOG, LATENCY, DATABASE].into_iter().flatten().chain(drivers)
}

/// The canonical form of a name: in `sysbench.opt`, and for comparing.
pub fn key_of(name: &str) -> String {
    name.replace('-', "_")
}

/// The value that a table's default stands for.
pub fn default_of(known: &KnownOption) -> OptionValue {
    let default = known.default.unwrap_or_default();
    known.kind.read((known.kind != ValueKind::Bool || known.default.is_some()).then_some(default)).unwrap_or_default()
}

/// A command line that cannot be parsed. `Display` is the line for stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageError {
    /// A third argument that is not an option.
    Surplus(String),
    /// An unknown option, or a switch with an invalid value; as written.
    Option(String),
    /// An invalid number.
    Value {
        /// The option's key.
        option: String,
        /// What was given.
        value: String,
    },
}

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UsageError::Surplus(word) => write!(f, "Unrecognized command line argument: {word}"),
            UsageError::Option(word) => write!(f, "invalid option: {word}"),
            UsageError::Value { option, value } => write!(f, "Invalid value for the '{option}' option: '{value}'"),
        }
    }
}

impl std::error::Error for UsageError {}

/// Options in effect, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    values: BTreeMap<String, OptionValue>,
}

impl Options {
    /// Every known option with its default.
    pub fn defaults() -> Options {
        let values = all_known().map(|known| (key_of(known.name), default_of(known))).collect();
        Options { values }
    }

    /// Sets an option.
    pub fn set(&mut self, key: &str, value: OptionValue) {
        self.values.insert(key_of(key), value);
    }

    /// All of them, for `sysbench.opt`.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &OptionValue)> {
        self.values.iter()
    }

    /// An option's value.
    pub fn get(&self, key: &str) -> Option<&OptionValue> {
        self.values.get(key)
    }

    /// A switch; off if there is none with this name.
    pub fn is_on(&self, key: &str) -> bool {
        matches!(self.get(key), Some(OptionValue::Bool(true)))
    }

    /// A number; 0 if there is none with this name.
    pub fn number(&self, key: &str) -> f64 {
        if let Some(OptionValue::Number(number)) = self.get(key) { *number } else { 0.0 }
    }

    /// A whole number.
    pub fn int(&self, key: &str) -> i64 {
        self.number(key) as i64
    }

    /// A text; empty if there is none with this name.
    pub fn text(&self, key: &str) -> &str {
        if let Some(OptionValue::Text(text)) = self.get(key) { text } else { "" }
    }

    /// A list; empty if there is none with this name.
    pub fn list(&self, key: &str) -> &[String] {
        if let Some(OptionValue::List(list)) = self.get(key) { list } else { &[] }
    }
}

/// An option that the first pass did not know.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pending {
    /// As written, for messages.
    word: String,
    /// `None`: it is known, but its value is invalid.
    key: Option<String>,
    value: Option<String>,
    from_file: bool,
}

/// A command line after the first pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    /// The test: built-in, file or module; `None`, or `-`: a script on standard input.
    pub test: Option<String>,
    /// What to do.
    pub command: Option<String>,
    /// Known options.
    pub options: Options,
    /// Whether `--test` was used for the test's name.
    pub test_option: bool,
    /// Messages for stderr: configuration files that cannot be read.
    pub complaints: Vec<String>,
    pending: Vec<Pending>,
}

impl Arguments {
    /// The first pass. `words`: without the program's name. `read`: a configuration file's content, or the error.
    pub fn parse(words: &[String], read: &dyn Fn(&str) -> Result<String, String>) -> Result<Arguments, UsageError> {
        let mut arguments = Arguments {
            test: None,
            command: None,
            options: Options::defaults(),
            test_option: false,
            complaints: Vec::new(),
            pending: Vec::new(),
        };
        for word in words {
            let Some(option) = word.strip_prefix("--") else {
                let free = [&mut arguments.test, &mut arguments.command].into_iter().find(|place| place.is_none());
                *free.ok_or_else(|| UsageError::Surplus(word.clone()))? = Some(word.clone());
                continue;
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            if key_of(name) == "test" {
                arguments.test = Some(value.unwrap_or_default().to_owned());
                arguments.test_option = true;
                continue;
            }
            arguments.take(word, name, value, false, read)?;
        }
        Ok(arguments)
    }

    fn take(
        &mut self,
        word: &str,
        name: &str,
        value: Option<&str>,
        from_file: bool,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<(), UsageError> {
        let key = key_of(name);
        let Some(known) = all_known().find(|known| key_of(known.name) == key) else {
            let value = value.map(str::to_owned);
            self.pending.push(Pending { word: word.to_owned(), key: Some(key), value, from_file });
            return Ok(());
        };
        match known.kind.read(value) {
            Ok(value) => self.options.set(&key, value),
            // Left to the second pass, in which nobody knows it: the script is loaded before the option is refused.
            Err(Unreadable::Option) => {
                self.pending.push(Pending { word: word.to_owned(), key: None, value: None, from_file: false })
            }
            Err(Unreadable::Number) => {
                return Err(UsageError::Value { option: key, value: value.unwrap_or_default().to_owned() });
            }
        }
        if known.kind == ValueKind::File {
            let path = value.unwrap_or_default();
            match read(path) {
                Ok(text) => {
                    for (name, value) in config_file::pairs(&text) {
                        let word = format!("--{name}={value}");
                        // A file that names another file, or itself, would never end.
                        if key_of(&name) != "config_file" {
                            self.take(&word, &name, Some(&value), true, read)?;
                        }
                    }
                }
                Err(reason) => self.complaints.push(format!("{path}: {reason}")),
            }
        }
        Ok(())
    }

    /// The second pass, for a test that declares these options (`None`: it declares none, and every option is accepted,
    /// as text). Returns the options in effect, including the test's own, and those that were declared.
    pub fn complete(&self, declared: Option<&[OptionDeclaration]>) -> Result<Options, UsageError> {
        let mut options = self.options.clone();
        for declaration in declared.unwrap_or_default() {
            let key = declaration.key();
            // A script that declares `threads` sees the value in effect, not its own default.
            if options.get(&key).is_none() {
                options.set(&key, declaration.default.clone());
            }
        }
        for pending in &self.pending {
            let Some(key) = &pending.key else { return Err(UsageError::Option(pending.word.clone())) };
            let declaration = declared.unwrap_or_default().iter().find(|one| one.key() == *key);
            match declaration {
                Some(declaration) => {
                    let value =
                        ValueKind::from(declaration.kind).read(pending.value.as_deref()).map_err(|unreadable| {
                            match unreadable {
                                Unreadable::Option => UsageError::Option(pending.word.clone()),
                                Unreadable::Number => UsageError::Value {
                                    option: key.clone(),
                                    value: pending.value.clone().unwrap_or_default(),
                                },
                            }
                        })?;
                    options.set(key, value);
                }
                None if pending.from_file => {}
                // A bare `--` has no name.
                None if declared.is_none() && key.is_empty() => {}
                None if declared.is_none() => {
                    let text = pending.value.clone().unwrap_or_default();
                    options.set(key, OptionValue::Text(text));
                }
                None => return Err(UsageError::Option(pending.word.clone())),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_options::OptionKind;

    fn parse(words: &[&str]) -> Result<Arguments, UsageError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let read = |path: &str| match path {
            "conf" => Ok("threads=5\ntable_size=7\nunknown=1\n".to_owned()),
            _ => Err("No such file or directory".to_owned()),
        };
        Arguments::parse(&words, &read)
    }

    fn table_size() -> Vec<OptionDeclaration> {
        vec![OptionDeclaration {
            name: "table_size".to_owned(),
            description: "rows".to_owned(),
            kind: OptionKind::Double,
            choices: Vec::new(),
            unused: false,
            bounds: assay_options::Bounds::default(),
            default: OptionValue::Number(10_000.0),
        }]
    }

    #[test]
    fn words_and_options_stand_in_any_order() {
        let arguments = parse(&["--threads=4", "x.lua", "--mysql_user=me", "run", "--time", "3"]).unwrap_err();
        assert_eq!(arguments.to_string(), "Unrecognized command line argument: 3");
        let arguments = parse(&["--threads=4", "x.lua", "--mysql_user=me", "run", "--debug"]).unwrap();
        assert_eq!((arguments.test.as_deref(), arguments.command.as_deref()), (Some("x.lua"), Some("run")));
        assert_eq!(arguments.options.int("threads"), 4);
        assert_eq!(arguments.options.text("mysql_user"), "me");
        assert!(arguments.options.is_on("debug"));
    }

    #[test]
    fn the_last_of_a_repeated_option_and_of_a_file_wins() {
        assert_eq!(parse(&["--threads=4", "--threads=2"]).unwrap().options.int("threads"), 2);
        assert_eq!(parse(&["--threads=4", "--config-file=conf"]).unwrap().options.int("threads"), 5);
        assert_eq!(parse(&["--config-file=conf", "--threads=4"]).unwrap().options.int("threads"), 4);
        assert_eq!(parse(&["--config-file=none"]).unwrap().complaints, ["none: No such file or directory"]);
    }

    #[test]
    fn a_file_sets_the_options_of_a_script_and_its_other_names_are_passed_over() {
        let options = parse(&["--config-file=conf", "x"]).unwrap().complete(Some(&table_size())).unwrap();
        assert_eq!(options.number("table_size"), 7.0);
        let options = parse(&["--config-file=conf", "x", "--table-size=1M"]).unwrap();
        assert_eq!(options.complete(Some(&table_size())).unwrap().number("table_size"), 1_048_576.0);
    }

    #[test]
    fn an_unknown_option_is_refused_when_the_script_has_a_table_and_a_text_when_not() {
        let arguments = parse(&["x", "run", "--xx=y", "--flag"]).unwrap();
        let refused = arguments.complete(Some(&table_size())).unwrap_err();
        assert_eq!(refused.to_string(), "invalid option: --xx=y");
        let options = arguments.complete(None).unwrap();
        assert_eq!((options.text("xx"), options.get("flag")), ("y", Some(&OptionValue::Text(String::new()))));
    }

    #[test]
    fn a_number_is_checked_at_once_and_a_switch_after_the_script_is_loaded() {
        let refused = parse(&["--threads=abc"]).unwrap_err();
        assert_eq!(refused.to_string(), "Invalid value for the 'threads' option: 'abc'");
        let arguments = parse(&["--mysql-dry-run=xyz"]).unwrap();
        assert_eq!(arguments.complete(None).unwrap_err().to_string(), "invalid option: --mysql-dry-run=xyz");
    }
}
