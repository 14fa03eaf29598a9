//! Runs the program and shows what it did: for all whole-command tests.

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
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Puts a file into it.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The command, not yet started.
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

    /// Runs to the end.
    pub(crate) fn run(&self, line: &str) -> Ran {
        Ran::new(self, self.command(line).output().unwrap())
    }

    /// Runs to the end with these variables, and fails unless it exits with `code`.
    #[track_caller]
    pub(crate) fn expect_with(&self, variables: &[(&str, &str)], line: &str, code: i32) -> Ran {
        let ran = Ran::new(self, self.command(line).envs(variables.iter().copied()).output().unwrap());
        assert_eq!(ran.code, Some(code), "assay {line}\n{}", ran.shown());
        ran
    }

    /// Runs to the end, and fails unless it exits with `code`.
    #[track_caller]
    pub(crate) fn expect(&self, line: &str, code: i32) -> Ran {
        self.expect_with(&[], line, code)
    }

    /// Starts, to be watched line by line.
    pub(crate) fn start(&self, line: &str) -> Started<'_> {
        self.start_with(&[], line)
    }

    /// Starts with these variables, to be watched line by line.
    pub(crate) fn start_with(&self, variables: &[(&str, &str)], line: &str) -> Started<'_> {
        let mut command = self.command(line);
        let mut child =
            command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        // On the side: a result longer than a pipe holds must not stop what is said on stderr.
        let mut pipe = child.stdout.take().unwrap();
        let stdout = std::thread::spawn(move || {
            let mut stdout = Vec::new();
            pipe.read_to_end(&mut stdout).unwrap();
            stdout
        });
        Started { folder: self, child, stdout: Some(stdout), stderr, said: String::new() }
    }

    /// Names of what is in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// In every record that a test leaves in its folder, each transaction that became due is found again.
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
                    // Other JSON, and what a test spoiled on purpose, is no record.
                    let _ = Record::read(&path).map(|record| assert_nothing_is_lost(&record));
                }
            }
        }
    }
}

fn assert_nothing_is_lost(record: &Record) {
    // Records of 0.1.0, which some tests make theirs of, do not know everything.
    let is_known = |stage: &&Stage| stage.intervals.iter().any(|interval| interval.backlog_max.is_some());
    // While it runs, transactions are under way.
    for stage in record.stages.iter().filter(|_| record.status != Status::Running).filter(is_known) {
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

/// As ASSAY_IO says, so that every test can be run over either: `ASSAY_IO=epoll cargo test -p assay`. Else the better
/// one that this machine has, so that no test hears of the other.
fn event_loop() -> String {
    std::env::var("ASSAY_IO").unwrap_or_else(|_| match assay_io::Backend::best(usize::MAX, 1) {
        (assay_io::Backend::Uring, _) => "uring".to_owned(),
        (assay_io::Backend::Epoll, _) => "epoll".to_owned(),
    })
}

/// Splits at blanks; `'…'` keeps them.
fn words(line: &str) -> Vec<String> {
    line.split('\'')
        .enumerate()
        .flat_map(|(i, part)| match i % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

/// What a command did.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    fn new(folder: &Folder, output: Output) -> Ran {
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

    /// What was found, of a command that ran with `--format json`.
    #[track_caller]
    pub(crate) fn findings(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.shown()))
    }

    /// Everything, for comparison: exit code, stdout, then stderr.
    pub(crate) fn shown(&self) -> String {
        let part = |name: &str, text: &str| if text.is_empty() { String::new() } else { format!("--- {name}\n{text}") };
        let code = self.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        format!("exit {code}\n{}{}", part("stdout", &self.stdout), part("stderr", &self.stderr))
    }

    /// The same without what a machine's speed decides: numbers, the width of columns, how many lines of figures there
    /// are, warnings about the measurement.
    pub(crate) fn redacted(&self) -> String {
        let shown = testkit::redact::redact(&self.shown());
        let (code, shown) = (self.shown().lines().next().unwrap().to_owned(), shown.lines().skip(1));
        let mut lines = vec![code];
        let (mut is_dropped, mut is_outages) = (false, false);
        for line in shown {
            // Warnings about the measurement, how even the run was, and what the generator took, each with the lines
            // that continue it.
            let begins =
                ["! ", "fairness ", "generator ", "io_uring ", "variation "].iter().any(|head| line.starts_with(head));
            is_dropped = begins || is_dropped && line.starts_with("  ");
            // A machine that stood still for a second made an outage.
            is_outages = line.starts_with("outage at") || is_outages && !line.is_empty();
            if is_dropped || is_outages {
                continue;
            }
            let line = line.replace(['≥', '█'], "");
            let mut line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            if line.starts_with("errors ") {
                line = "errors …".to_owned();
            }
            // How many quantiles there are values for.
            if line.starts_with("# tx/s ") {
                line = "# tx/s …".to_owned();
            }
            // Whether there were the thousand values that p99.9 takes is up to the machine.
            line = line.replace("# – #", "# # #");
            if let Some((before, name)) = line.split_once("assay-records/") {
                let digits = name.replace(|c: char| c.is_ascii_digit(), "#");
                line = format!("{before}assay-records/{digits}");
            }
            // Which step of a ladder is marked.
            let by_chance = ["warning: ", "knee: ", "no knee: "].iter().any(|head| line.starts_with(head));
            if lines.last() != Some(&line) && !by_chance {
                lines.push(line);
            }
        }
        lines.join("\n")
    }
}

/// A command under way.
pub(crate) struct Started<'a> {
    folder: &'a Folder,
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Started<'_> {
    /// Waits until a line of stderr holds `text`.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |line| line.contains(text));
    }

    /// Waits for an interval line at whose end so many sessions took transactions. Its transactions per second.
    pub(crate) fn wait_for_interval(&mut self, sessions: u32) -> f64 {
        let mut rate = 0.0;
        self.wait_until("another interval", |line| {
            // time, sessions, tx/s, …; what there is no figure for is a dash.
            let words: Vec<String> = line.split_whitespace().map(|word| word.replace(',', "")).collect();
            let figure = |i: usize| words.get(i).and_then(|word| word.parse::<f64>().ok());
            rate = figure(2).unwrap_or_default();
            words.len() > 8 && figure(0).is_some() && figure(1) == Some(f64::from(sessions))
        });
        rate
    }

    /// Waits for a line of stderr that is `right`, which is called `wanted` should it never come.
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
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
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
    /// A test that failed leaves nothing running.
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
