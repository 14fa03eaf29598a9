//! Runs the program and shows its output: for all tests of whole commands.

pub(crate) mod counts;
pub(crate) mod telemetry;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

use assay_record::{Record, Stage, Status, TransactionTally};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A folder to run commands in, removed at the end.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        testkit::accept_interrupts();
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Creates a file in it.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The command, not started yet.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command
            .args(words(line))
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.path())
            .env("TMPDIR", self.path())
            .env("ASSAY_IO", event_loop());
        command.stdin(Stdio::null());
        command
    }

    /// Runs it to the end.
    pub(crate) fn run(&self, line: &str) -> Ran {
        Ran::new(self, self.command(line).output().unwrap())
    }

    /// Runs it to the end with these variables, and fails unless it exits with `code`.
    #[track_caller]
    pub(crate) fn expect_with(&self, variables: &[(&str, &str)], line: &str, code: i32) -> Ran {
        let ran = Ran::new(self, self.command(line).envs(variables.iter().copied()).output().unwrap());
        assert_eq!(ran.code, Some(code), "assay {line}\n{}", ran.shown());
        ran
    }

    /// Runs it to the end, and fails unless it exits with `code`.
    #[track_caller]
    pub(crate) fn expect(&self, line: &str, code: i32) -> Ran {
        self.expect_with(&[], line, code)
    }

    /// Starts it, to be watched line by line.
    pub(crate) fn start(&self, line: &str) -> Started<'_> {
        self.start_with(&[], line)
    }

    /// Starts it with these variables, to be watched line by line.
    pub(crate) fn start_with(&self, variables: &[(&str, &str)], line: &str) -> Started<'_> {
        let mut command = self.command(line);
        let mut child =
            command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        // In a thread: a result longer than a pipe's buffer must not block stderr.
        let mut pipe = child.stdout.take().unwrap();
        let stdout = std::thread::spawn(move || {
            let mut stdout = Vec::new();
            pipe.read_to_end(&mut stdout).unwrap();
            stdout
        });
        Started { folder: self, child, stdout: Some(stdout), stderr, said: String::new() }
    }

    /// The sorted names of its files.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// In every record that a test leaves in its folder, each transaction that became due must be accounted for.
impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.to_str().unwrap_or_default();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else if name.ends_with(".json.zst") || name.ends_with(".json") {
                    // Other JSON, and files that a test damaged on purpose, are not records.
                    let _ = Record::read(&path).map(|record| assert_nothing_is_lost(&record));
                }
            }
        }
    }
}

/// See `Folder`.
pub(crate) fn assert_nothing_is_lost(record: &Record) {
    // Records of 0.1.0, which some tests start from, lack some fields.
    let is_known = |stage: &&Stage| stage.intervals.iter().any(|interval| interval.backlog_max.is_some());
    // In format 1, transactions in flight were not counted while the run went on.
    let has_all = record.status != Status::Running || record.format > 1;
    for stage in record.stages.iter().filter(|_| has_all).filter(is_known) {
        let total = &stage.total;
        let ended = |one: &TransactionTally| one.count + one.rolled_back + one.failed;
        let found = total.transactions.iter().map(ended).sum::<u64>()
            + total.stopped
            + total.dropped
            + total.unstarted
            + total.unfinished;
        assert_eq!(total.due, found, "due, and what became of it: {:?}", record.manifest.command);
    }
}

/// As ASSAY_IO says, so that every test can be run with either: `ASSAY_IO=epoll cargo test -p assay`. Otherwise the
/// better one that this machine has, so that no test gets the warning about the other.
fn event_loop() -> String {
    std::env::var("ASSAY_IO").unwrap_or_else(|_| match assay_io::Backend::best(usize::MAX, 1) {
        (assay_io::Backend::Uring, _) => "uring".to_owned(),
        (assay_io::Backend::Epoll, _) => "epoll".to_owned(),
    })
}

/// Splits at blanks; `'…'` protects them.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split('\'')
        .enumerate()
        .flat_map(|(i, part)| match i % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

/// The result of a command.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn new(folder: &Folder, output: Output) -> Ran {
        let name = folder.path().to_str().unwrap();
        let text = |bytes: &[u8]| {
            let text = testkit::redact::replace(std::str::from_utf8(bytes).unwrap(), &[(name, "[FOLDER]")]);
            // The name of a temporary folder: six random characters.
            match text.split_once("[FOLDER]/assay-") {
                Some((before, after)) => format!("{before}[FOLDER]/assay-[NAME]{}", &after[6..]),
                None => text,
            }
        };
        Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// The findings of a command that ran with `--format json`.
    #[track_caller]
    pub(crate) fn findings(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.shown()))
    }

    /// As `shown`, without stdout: a run that fails prints what it has measured, too.
    pub(crate) fn complaint(self) -> String {
        Ran { stdout: String::new(), ..self }.shown()
    }

    /// Exit code, stdout, then stderr, for comparison.
    pub(crate) fn shown(&self) -> String {
        let part = |name: &str, text: &str| if text.is_empty() { String::new() } else { format!("--- {name}\n{text}") };
        let code = self.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        format!("exit {code}\n{}{}", part("stdout", &self.stdout), part("stderr", &self.stderr))
    }

    /// The same without what depends on the machine's speed: numbers, column widths, the number of lines with figures,
    /// and warnings about the measurement.
    pub(crate) fn redacted(&self) -> String {
        let shown = testkit::redact::redact(&self.shown());
        let (code, shown) = (self.shown().lines().next().unwrap().to_owned(), shown.lines().skip(1));
        let mut lines = vec![code];
        let (mut is_dropped, mut is_outages, mut is_headline) = (false, false, false);
        for line in shown {
            // Warnings about the measurement, the variation of throughput, and the load of the generator, each with its
            // continuation lines.
            let begins =
                ["! ", "fairness ", "generator ", "io_uring ", "variation "].iter().any(|head| line.starts_with(head));
            is_dropped = begins || is_dropped && line.starts_with("  ");
            // A machine that stalled for a second caused an outage.
            is_outages = line.starts_with("outage at") || is_outages && !line.is_empty();
            // Long figures continue the line with throughput and latencies on the next.
            is_headline = line.starts_with("# tx/s ") || is_headline && line.starts_with("  ");
            if is_dropped || is_outages || is_headline && line.starts_with("  ") {
                continue;
            }
            let line = line.replace(['≥', '█'], "");
            let mut line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            if line.starts_with("errors ") {
                line = "errors …".to_owned();
            }
            // How many quantiles have values.
            if line.starts_with("# tx/s ") {
                line = "# tx/s …".to_owned();
            }
            // Whether there were enough values for percentiles depends on the machine.
            if line.starts_with("# ") && line.split(' ').all(|figure| ["#", "–"].contains(&figure)) {
                line = line.replace('–', "#");
            }
            line = line.replace("# – #", "# # #");
            if let Some((before, name)) = line.split_once("assay-records/") {
                let digits = name.replace(|c: char| c.is_ascii_digit(), "#");
                line = format!("{before}assay-records/{digits}");
            }
            // Which stage of a ladder is marked.
            let by_chance = ["warning: ", "knee: ", "no knee: "].iter().any(|head| line.starts_with(head));
            if lines.last() != Some(&line) && !by_chance {
                lines.push(line);
            }
        }
        lines.join("\n")
    }
}

/// A running command.
pub(crate) struct Started<'a> {
    folder: &'a Folder,
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Started<'_> {
    /// Waits until a line of stderr contains `text`.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |line| line.contains(text));
    }

    /// Waits for an interval line that reports this many sessions with transactions. Returns its transactions per
    /// second.
    pub(crate) fn wait_for_interval(&mut self, sessions: u32) -> f64 {
        self.wait_for_figures(|figures| figures[1] == Some(f64::from(sessions)))[2].unwrap_or_default()
    }

    /// Waits for the next interval line.
    pub(crate) fn wait_for_any_interval(&mut self) {
        self.wait_for_figures(|_| true);
    }

    /// Waits for an interval line with errors.
    pub(crate) fn wait_for_errors(&mut self) {
        self.wait_for_figures(|figures| figures[10] > Some(0.0));
    }

    /// Waits for an interval line with the `right` figures: time, sessions, tx/s, …; a missing one is a dash.
    fn wait_for_figures(&mut self, right: impl Fn(&[Option<f64>]) -> bool) -> Vec<Option<f64>> {
        let mut figures = Vec::new();
        self.wait_until("another interval", |line| {
            figures = line.split_whitespace().map(|word| word.replace(',', "").parse().ok()).collect();
            figures.len() > 8 && figures[0].is_some() && right(&figures)
        });
        figures
    }

    /// Waits for a line of stderr that is `right`; `wanted` describes it in case it never comes.
    fn wait_until(&mut self, wanted: &str, mut right: impl FnMut(&str) -> bool) {
        loop {
            let mut line = String::new();
            let length = self.stderr.read_line(&mut line).unwrap();
            self.said.push_str(&line);
            assert!(length > 0, "it ended without saying {wanted:?}: {}", self.said);
            if right(&line) {
                return;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    /// Waits for the end.
    pub(crate) fn finish(mut self) -> Ran {
        self.stderr.read_to_string(&mut self.said).unwrap();
        let stdout = self.stdout.take().unwrap().join().unwrap();
        let status = self.child.wait().unwrap();
        Ran::new(self.folder, Output { status, stdout, stderr: std::mem::take(&mut self.said).into_bytes() })
    }
}

impl Drop for Started<'_> {
    /// A failed test leaves nothing running.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A workload with one small table, in plain Lua.
pub(crate) const ONE_TABLE: &str = r#"--- Counts in one row of one table.

sysbench.cmdline.options = {
  table_size = {"Rows in the table", 10},
  greeting = {"What to say", "hello"},
  loud = {"Say it loud", false},
}

sysbench.cmdline.commands = {
  greet = {function() print(sysbench.opt.greeting .. (sysbench.opt.loud and "!" or "")) end},
  refuse = {function() return false end},
}

function prepare()
  local con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE counter(id INTEGER PRIMARY KEY, n INTEGER)")
  for i = 1, sysbench.opt.table_size do
    con:query("INSERT INTO counter VALUES (" .. i .. ", 0)")
  end
end

function cleanup()
  sysbench.sql.driver():connect():query("DROP TABLE IF EXISTS counter")
end

function check()
  local con = sysbench.sql.driver():connect()
  return tonumber((con:query_row("SELECT COUNT(*) FROM counter"))) == sysbench.opt.table_size
end

function thread_init()
  con = sysbench.sql.driver():connect()
end

function event()
  con:query("UPDATE counter SET n = n + 1 WHERE id = " .. sysbench.rand.default(1, sysbench.opt.table_size))
end

function thread_done()
  con:disconnect()
end
"#;
