//! A running server: where it listens, administration, and everything that can happen to its process.
//!
//! It is addressed by its own process id only, never by name, and killed with its data when dropped.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::folder::{PID_FILE, server_folder, unprivileged};
use crate::{Certificates, Kind};

/// How long a server may take to answer its first query, or to shut down, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a kind of server needs to run; made anew when a port turns out to be taken.
pub(crate) struct Plan {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) socket: PathBuf,
    /// A lock file naming a process id, which might by now be another process's.
    pub(crate) stale: Option<PathBuf>,
    /// Asks for an orderly shutdown that does not wait for clients.
    pub(crate) stop: Signal,
    /// Gets in on the unix socket without a password.
    pub(crate) administrator: &'static str,
    pub(crate) version: String,
    pub(crate) certificates: Option<Certificates>,
}

/// A server of our own. Dropping it kills it and removes its data.
pub struct Server {
    kind: Kind,
    plan: Plan,
    folder: PathBuf,
    port: u16,
    /// `None` while stopped.
    process: Mutex<Option<Child>>,
}

impl Server {
    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its TCP port on 127.0.0.1; kept over `restart`.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its unix socket. PostgreSQL's clients want the folder that this lies in.
    pub fn socket(&self) -> &Path {
        &self.plan.socket
    }

    /// Its version number, such as `15.14`.
    pub fn version(&self) -> &str {
        &self.plan.version
    }

    /// The PEM files made for it, when it was started with TLS. Panics when it was not.
    pub fn certificates(&self) -> &Certificates {
        self.plan.certificates.as_ref().expect("the server was started with TLS")
    }

    /// A URL over TCP for the user `app`, who may do everything and needs no password by default.
    pub fn url(&self, database: &str) -> String {
        self.url_as("app", database)
    }

    /// The same for another user: `name` or `name:password`.
    pub fn url_as(&self, user: &str, database: &str) -> String {
        let scheme = match self.kind {
            Kind::Postgres | Kind::Postgres18 | Kind::PgBouncer => "postgres",
            Kind::MariaDb => "mariadb",
            Kind::MySql => "mysql",
        };
        format!("{scheme}://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// The process id of the server (of PostgreSQL's postmaster). Fails while it is stopped.
    pub fn pid(&self) -> Result<u32> {
        Ok(self.process().as_ref().with_context(|| format!("{} is not running", self.kind.name()))?.id())
    }

    /// The last `lines` of what the server logged since it was first started.
    pub fn log_tail(&self, lines: usize) -> String {
        log_tail(&self.folder, lines)
    }

    /// Runs statements as administrator over the unix socket, each in its own transaction, stopping at the first
    /// that fails, and returns the rows: fields apart by tabs, no headings.
    pub fn sql(&self, database: &str, statements: &str) -> Result<String> {
        sql(self.kind, &self.plan, &self.folder, self.port, database, statements)
    }

    /// Creates an empty database for one test on a shared server and returns its name.
    pub fn fresh_database(&self) -> Result<String> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.sql("", &format!("CREATE DATABASE {name};"))?;
        Ok(name)
    }

    /// Kills it as a crash would: no goodbye to clients, no shutdown. Returns once nothing of it is left.
    pub fn kill9(&self) -> Result<()> {
        let mut process = self.process();
        let child = process.take().with_context(|| format!("{} is not running", self.kind.name()))?;
        self.bury(child)
    }

    /// Shuts it down in order, without waiting for clients to leave.
    pub fn stop(&self) -> Result<()> {
        let mut process = self.process();
        let mut child = process.take().with_context(|| format!("{} is not running", self.kind.name()))?;
        kill(pid(&child), self.plan.stop)?;
        let ended = poll(|| Ok(child.try_wait()?.map(|_| ())));
        self.bury(child)?;
        ended.with_context(|| format!("stopping {}; killed instead\n{}", self.kind.name(), self.log_tail(20)))
    }

    /// Starts it again on the same port and data, after `kill9`, `stop`, or instead of them.
    pub fn restart(&self) -> Result<()> {
        if self.pid().is_ok() {
            self.stop()?;
        }
        *self.process() = Some(run(self.kind, &self.plan, &self.folder, self.port)?);
        Ok(())
    }

    /// Stops all its processes where they stand: connections stay open and nothing answers.
    pub fn suspend(&self) -> Result<()> {
        self.signal_all(Signal::SIGSTOP)
    }

    /// Lets its processes go on.
    pub fn resume(&self) -> Result<()> {
        self.signal_all(Signal::SIGCONT)
    }

    /// Lays out and starts a server; tries other ports when somebody was faster.
    pub(crate) fn start(kind: Kind, plan: impl Fn(&Path, u16) -> Result<Plan>) -> Result<Server> {
        for _ in 0..5 {
            let folder = server_folder(kind.name())?;
            let port = free_port()?;
            let plan = plan(&folder, port).with_context(|| format!("setting up {}", kind.name()))?;
            match run(kind, &plan, &folder, port) {
                Ok(child) => return Ok(Server { kind, plan, folder, port, process: Mutex::new(Some(child)) }),
                Err(error) => {
                    let taken = log_tail(&folder, 50).to_lowercase().contains("in use");
                    let _ = fs::remove_dir_all(&folder);
                    if !taken {
                        return Err(error);
                    }
                }
            }
        }
        bail!("no free port for {} in five attempts", kind.name())
    }

    fn process(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn signal_all(&self, signal: Signal) -> Result<()> {
        let process = self.process();
        let child = process.as_ref().with_context(|| format!("{} is not running", self.kind.name()))?;
        // The parent first: it must not start another one meanwhile.
        kill(pid(child), signal)?;
        for backend in backends(pid(child)) {
            let _ = kill(backend, signal);
        }
        Ok(())
    }

    /// Kills what is left of a process and of its children, and waits until they are gone.
    fn bury(&self, child: Child) -> Result<()> {
        bury(&self.folder, child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = self.process().take() {
            let _ = self.bury(child);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32)
}

/// The children of a process: PostgreSQL's backends. MySQL and PgBouncer have none.
fn backends(parent: Pid) -> Vec<Pid> {
    let text = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
}

fn bury(folder: &Path, mut child: Child) -> Result<()> {
    let parent = pid(&child);
    // Stopped first, so that no backend is started after they were listed.
    let _ = kill(parent, Signal::SIGSTOP);
    let children = backends(parent);
    for process in children.iter().copied().chain([parent]) {
        let _ = kill(process, Signal::SIGKILL);
    }
    child.wait()?;
    let _ = fs::remove_file(folder.join(PID_FILE));
    poll(|| Ok(children.iter().all(|child| gone(*child)).then_some(())))
}

/// Whether a process no longer runs: it is not there, or it waits for whoever reaps orphans here.
fn gone(process: Pid) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    // The state follows the name, which stands in parentheses and may hold anything.
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// Starts the program and waits until it answers; on failure nothing is left running.
fn run(kind: Kind, plan: &Plan, folder: &Path, port: u16) -> Result<Child> {
    if let Some(stale) = &plan.stale {
        let _ = fs::remove_file(stale);
    }
    let log = File::options().create(true).append(true).open(folder.join("log"))?;
    let mut child = unprivileged(&plan.program)
        .args(&plan.arguments)
        .current_dir(folder)
        .process_group(0) // Ctrl-C is for the test; the guardian ends the server.
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("starting {}", plan.program.display()))?;
    fs::write(folder.join(PID_FILE), child.id().to_string())?;

    let mut last = None;
    let ready = poll(|| {
        if let Some(status) = child.try_wait()? {
            bail!("it ended with {status}");
        }
        let answer = match kind {
            Kind::PgBouncer => UnixStream::connect(&plan.socket).map(drop).map_err(|error| anyhow!(error)),
            _ => sql(kind, plan, folder, port, "", "SELECT 1;").map(drop),
        };
        Ok(answer.map_err(|error| last = Some(error)).ok())
    });
    if let Err(error) = ready {
        bury(folder, child)?;
        let last = last.map(|error| format!("\nlast attempt to connect: {error}")).unwrap_or_default();
        bail!("{} did not start: {error}{last}\n{}", kind.name(), log_tail(folder, 30));
    }
    Ok(child)
}

fn sql(kind: Kind, plan: &Plan, folder: &Path, port: u16, database: &str, statements: &str) -> Result<String> {
    let mut command = match kind {
        Kind::Postgres | Kind::Postgres18 | Kind::PgBouncer => {
            let mut psql = Command::new(Kind::Postgres.program("psql"));
            psql.args(["-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-U", plan.administrator]);
            psql.arg("-h").arg(folder).arg("-p").arg(port.to_string());
            psql.args(["-d", if database.is_empty() { "postgres" } else { database }]);
            psql
        }
        Kind::MariaDb | Kind::MySql => {
            let mut mariadb = Command::new(Kind::MariaDb.program("mariadb"));
            mariadb.args(["--no-defaults", "--batch", "--raw", "--skip-column-names"]);
            mariadb.arg("--socket").arg(&plan.socket).args(["--user", plan.administrator, database]);
            mariadb
        }
    };
    // PGOPTIONS, MYSQL_PWD and the like are the user's, and so is the language of messages.
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LC_ALL", "C.UTF-8");
    let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut input = client.stdin.take().context("asked for a pipe")?;
    // A client that cannot connect leaves without reading; what it says of that matters, not the broken pipe.
    let _ = input.write_all(statements.as_bytes());
    drop(input);
    let output = client.wait_with_output()?;
    ensure!(output.status.success(), "{}: {}", kind.name(), String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?)
}

/// Asks until there is an answer, with short pauses, for as long as `PATIENCE`.
fn poll(mut question: impl FnMut() -> Result<Option<()>>) -> Result<()> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(5);
    loop {
        if question()?.is_some() {
            return Ok(());
        }
        ensure!(start.elapsed() < PATIENCE, "no answer in {} s", PATIENCE.as_secs());
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

/// A port nobody listens on. Below the range the kernel takes clients' ports from: a load test's connections must
/// not take it before somebody listens on it, or while the server is restarted.
pub fn free_port() -> Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    (0..1000)
        .map(|_| 15_000 + ((std::process::id() * 97 + NEXT.fetch_add(1, Ordering::Relaxed) * 13) % 17_000) as u16)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("no free port between 15000 and 32000")
}

fn log_tail(folder: &Path, lines: usize) -> String {
    let log = fs::read(folder.join("log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&log);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
