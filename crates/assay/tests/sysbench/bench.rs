//! Runs a command line with both programs and compares their output.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use testkit::{Kind, Server};

/// Debian's package.
const ORACLE: &str = "/usr/bin/sysbench";

/// A folder with files in which both programs run.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    /// Variables for both, in addition to PATH and HOME.
    variables: Vec<(String, String)>,
    /// Variables for Debian's sysbench alone.
    for_oracle: Vec<(String, String)>,
    /// The standard input of both.
    input: Option<PathBuf>,
}

/// The masked result of a command.
#[derive(PartialEq, Eq)]
pub(crate) struct Did {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Did {
    /// The output without the name of its database.
    fn without(self, database: &str) -> Did {
        let hide = |text: String| text.replace(database, "[DATABASE]");
        Did { code: self.code, stdout: hide(self.stdout), stderr: hide(self.stderr) }
    }

    /// The distinct lines on stdout, for messages of several threads: their order, and how often a message was repeated
    /// until the process ended, is chance.
    pub(crate) fn lines(&self) -> BTreeSet<&str> {
        self.stdout.lines().filter(|line| !line.starts_with("(last message repeated ")).collect()
    }

    /// Everything in one text.
    pub(crate) fn shown(&self) -> String {
        let code = self.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        format!("exit {code}\n--- stdout\n{}--- stderr\n{}", self.stdout, self.stderr)
    }
}

impl Bench {
    /// With these files: name and text. A name may contain folders.
    pub(crate) fn new(files: &[(&str, &str)]) -> Bench {
        testkit::accept_interrupts();
        assert!(PathBuf::from(ORACLE).is_file(), "{ORACLE} is missing; `cargo xtask install` gets what the tests need");
        let bench =
            Bench { folder: tempfile::tempdir().unwrap(), variables: Vec::new(), for_oracle: Vec::new(), input: None };
        for (name, text) in files {
            let path = bench.folder.path().join("work").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::create_dir_all(bench.folder.path().join("work")).unwrap();
        std::fs::create_dir_all(bench.folder.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_assay"), bench.folder.path().join("bin/sysbench")).unwrap();
        bench
    }

    /// Adds an environment variable for both programs.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Bench {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds an environment variable for Debian's sysbench alone.
    pub(crate) fn with_for_oracle(mut self, name: &str, value: &str) -> Bench {
        self.for_oracle.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds text on the standard input of both.
    pub(crate) fn with_input(mut self, text: &str) -> Bench {
        let path = self.folder.path().join("input");
        std::fs::write(&path, text).unwrap();
        self.input = Some(path);
        self
    }

    /// The result of Debian's sysbench.
    pub(crate) fn oracle(&self, line: &str) -> Did {
        self.run(ORACLE.into(), line, masked)
    }

    /// The result of ours.
    pub(crate) fn ours(&self, line: &str) -> Did {
        self.run(self.folder.path().join("bin/sysbench"), line, masked)
    }

    /// Both give the same result, with no figure masked but the version of LuaJIT.
    #[track_caller]
    pub(crate) fn same_figures(&self, line: &str) {
        let plain = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.lines()
                .filter(|line| !line.starts_with("sysbench 1.0.20 (using "))
                .fold(String::new(), |all, line| all + line + "\n")
        };
        let oracle = self.run(ORACLE.into(), line, plain);
        assert_same(line, &oracle, &self.run(self.folder.path().join("bin/sysbench"), line, plain));
    }

    /// A file in the folder that both run in.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// The output of Debian's sysbench, with all figures.
    pub(crate) fn oracle_text(&self, line: &str) -> String {
        String::from_utf8_lossy(&self.output(ORACLE.into(), line).stdout).into_owned()
    }

    /// The output of ours, with all figures.
    pub(crate) fn ours_text(&self, line: &str) -> String {
        String::from_utf8_lossy(&self.output(self.folder.path().join("bin/sysbench"), line).stdout).into_owned()
    }

    /// Both give the same result, which is returned.
    #[track_caller]
    pub(crate) fn same(&self, line: &str) -> Did {
        let (oracle, ours) = (self.oracle(line), self.ours(line));
        assert_same(line, &oracle, &ours);
        oracle
    }

    /// Both give the same results on a server of this kind, each in a database of its own, line by line. Returns the
    /// result of the last line. The options that name the server and the database are added.
    #[track_caller]
    pub(crate) fn same_on(&self, kind: Kind, lines: &[&str]) -> Did {
        let server = kind.shared();
        let (first, second) = (server.fresh_database().unwrap(), server.fresh_database().unwrap());
        let mut last = None;
        for line in lines {
            let oracle = self.oracle(&format!("{line} {}", options(server, &first)));
            let ours = self.ours(&format!("{line} {}", options(server, &second)));
            let (oracle, ours) = (oracle.without(&first), ours.without(&second));
            assert_same(line, &oracle, &ours);
            last = Some(oracle);
        }
        last.expect("a test has lines")
    }

    /// The result of ours on a server of this kind, in a database of its own.
    pub(crate) fn ours_on(&self, kind: Kind, line: &str) -> Did {
        let server = kind.shared();
        self.ours(&format!("{line} {}", options(server, &server.fresh_database().unwrap())))
    }

    /// Compares on MariaDB and on PostgreSQL.
    #[track_caller]
    pub(crate) fn same_on_servers(&self, lines: &[&str]) {
        for kind in [Kind::MariaDb, Kind::Postgres] {
            if kind.present() {
                self.same_on(kind, lines);
            }
        }
    }

    /// The commands of Debian's and of ours, not started yet. They ignore no signal, however the tests were started.
    pub(crate) fn both(&self, line: &str) -> [Command; 2] {
        [ORACLE.into(), self.folder.path().join("bin/sysbench")].map(|program| {
            let direct = self.command(program, line);
            let mut command = Command::new("/usr/bin/env");
            command.arg("--default-signal=HUP,INT,PIPE,QUIT,TERM").arg(direct.get_program()).args(direct.get_args());
            command.env_clear().envs(direct.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.current_dir(direct.get_current_dir().expect("it has one")).stdin(Stdio::null());
            command
        })
    }

    fn run(&self, program: PathBuf, line: &str, masked: impl Fn(&[u8]) -> String) -> Did {
        let Output { status, stdout, stderr } = self.output(program, line);
        let mut stdout = masked(&stdout);
        if line.contains("--debug") || line.contains("--verbosity=5") {
            // Which of several threads prints first is chance: the one that says that all have started may be the last.
            let mut lines: Vec<&str> = stdout.lines().collect();
            lines.sort_unstable();
            stdout = lines.join("\n");
        }
        Did { code: status.code(), stdout, stderr: masked(&stderr) }
    }

    /// The stderr of ours, which is redirected to this file of the folder.
    pub(crate) fn ours_saying_to(&self, file: &str, line: &str) -> String {
        let mut command = self.command(self.folder.path().join("bin/sysbench"), line);
        command.stdout(Stdio::null()).stderr(std::fs::File::create(self.path(file)).unwrap());
        command.status().unwrap();
        std::fs::read_to_string(self.path(file)).unwrap()
    }

    fn output(&self, program: PathBuf, line: &str) -> Output {
        self.command(program, line).output().unwrap()
    }

    fn command(&self, program: PathBuf, line: &str) -> Command {
        use std::os::unix::process::CommandExt;
        let mut words = words(line);
        // A run limited by its number of events must not end by the default of ten seconds: on a busy machine one of
        // the programs might reach the limit and the other not.
        let given = |options: [&str; 2]| words.iter().any(|word| options.iter().any(|option| word.starts_with(option)));
        if given(["--events=", "--max-requests="]) && !given(["--time=", "--max-time="]) {
            words.push("--time=600".to_owned());
        }
        let more = if program.as_os_str() == ORACLE { self.for_oracle.as_slice() } else { &[] };
        let mut command = Command::new(program);
        command
            .arg0("sysbench")
            .args(words)
            .current_dir(self.folder.path().join("work"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", "/home/nobody")
            .envs(self.variables.iter().chain(more).map(|(name, value)| (name, value)));
        match &self.input {
            Some(path) => command.stdin(std::fs::File::open(path).unwrap()),
            None => command.stdin(Stdio::null()),
        };
        command
    }
}

#[track_caller]
fn assert_same(line: &str, oracle: &Did, ours: &Did) {
    assert!(oracle == ours, "sysbench {line}\n=== sysbench 1.0.20: {}\n=== ours: {}", oracle.shown(), ours.shown());
}

/// How both programs find a database.
pub(crate) fn options(server: &Server, database: &str) -> String {
    let driver = if server.kind() == Kind::Postgres { "pgsql" } else { "mysql" };
    let port = server.port();
    format!(
        "--db-driver={driver} --{driver}-host=127.0.0.1 --{driver}-port={port} --{driver}-user=app \
         --{driver}-db={database}"
    )
}

/// Splits at blanks; `'…'` protects them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, begun) = (!quoted, true),
            c if c.is_whitespace() && !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            c => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// Masks what varies: a figure keeps the column at its right end.
///
/// Masked are values in seconds or milliseconds and rates after the labels of sysbench's reports, the figures of
/// interval lines and of histograms, addresses, and the versions of libraries in the banner. Everything else stays.
pub(crate) fn masked(bytes: &[u8]) -> String {
    static RULES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
        [
            // Final reports; `total number of events` and the counters stay.
            r"(?m)^( +(?:min|avg|max|sum|\d+th percentile): +)([\d.]+)$",
            r"(?m)^( +(?:transactions|queries|ignored errors|reconnects): +\d+ +\()([\d.]+)",
            // Interval lines; the number of threads stays.
            r"(tps: )([\d.]+)",
            r"(eps: )([\d.]+)",
            r"(qps: )([\d.]+)",
            r"(\(r/w/o: )([\d./]+)",
            r"(lat \(ms,\s?\d+%\): )([\d.]+)",
            r"(err/s:? )([\d.]+)",
            r"(reconn/s: )([\d.]+)",
            r"(0x)([0-9a-f]{6,})",
            r"(cdata<[^>]*>: )(0x[0-9a-f]+)",
            r"(?:table|function|userdata|thread): ()(0x[0-9a-f]+)",
            r"(using )((?:system|bundled) LuaJIT [\d.]+(?:-beta\d+)?)",
        ]
        .map(|rule| Regex::new(rule).expect("a valid expression"))
        .into()
    });
    // Figures that start in a fixed column: the text before them stays.
    static LEFT: LazyLock<Vec<Regex>> = LazyLock::new(|| {
        [
            r"(?m)^( +total time: +)[\d.]+s$",
            r"(?m)^( +(?:events|execution time) \(avg/stddev\): +)[\d.]+/[\d.]+$",
            // With `--debug`: how much each thread does is chance.
            r"(?m)^(DEBUG: +thread # +\d+: min: )[\d.]+(s  avg: )[\d.]+(s  max: )[\d.]+(s  events: )\d+$",
            r"(?m)^(DEBUG: +total time taken by event execution: )[\d.]+s$",
            // The built-in tests.
            r"(?m)^( +events per second: ) *[\d.]+$",
            r"(?m)^(Total operations: \d+ \() *[\d.]+",
            r"(?m)^([\d.]+ MiB transferred \()[\d.]+",
            r"(?m)^( +(?:reads/s|writes/s|fsyncs/s|read, MiB/s|written, MiB/s): +)[\d.]+$",
            r"(?m)^(\[ \d+s \] )[\d.]+( MiB/sec)$",
            r"(?m)^(\[ \d+s \] reads: )[\d.]+( MiB/s writes: )[\d.]+( MiB/s fsyncs: )[\d.]+(/s latency \(ms,\d+%\): )[\d.]+$",
            r"(?m)^(\d+ bytes written in )[\d.]+( seconds \()[\d.]+",
        ]
        .map(|rule| Regex::new(rule).expect("a valid expression"))
        .into()
    });
    static HISTOGRAM: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?m)^ *[\d.]+ \|[* ]+ \d+\n").expect("a valid expression"));
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    for rule in RULES.iter() {
        text = rule
            .replace_all(&text, |found: &Captures<'_>| {
                let (all, figure) = (found.get(0).expect("the match"), found.get(2).expect("the figure"));
                let label = &all.as_str()[..figure.start() - all.start()];
                // Right-aligned figures include the blanks before them.
                let blanks = label.len() - label.trim_end_matches(' ').len();
                if blanks > 1 {
                    let width = blanks + figure.len();
                    format!("{}{:>width$}", label.trim_end_matches(' '), "#")
                } else {
                    format!("{label}#")
                }
            })
            .into_owned();
    }
    for rule in LEFT.iter() {
        text = rule.replace_all(&text, "$1#$2#$3#$4").into_owned();
    }
    HISTOGRAM.replace_all(&text, "").into_owned()
}

#[test]
fn figures_that_vary_are_masked_and_counters_stay() {
    let text = |total: &str, rate: &str, reads: &str| {
        format!(
            "        read:                            {reads}\n    transactions:                        10     ({rate} per sec.)\n\
             \n    total time:                  {total}s\n"
        )
    };
    let one = masked(text("10.0004", "1.00", "140").as_bytes());
    assert_eq!(one, masked(text("9.9000", "12345.67", "140").as_bytes()));
    assert_ne!(one, masked(text("9.9000", "12345.67", "141").as_bytes()));
    assert_eq!(masked(b"[ 1s ] thds: 4 tps: 12.00"), "[ 1s ] thds: 4 tps: #");
}
