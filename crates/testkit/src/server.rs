//! A running server: its address, its administration, and what can be done to its process.
//!
//! The lab runs it; here it is killed with its data when dropped, and queried with the usual clients.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use nix::sys::signal::Signal;

use crate::{Certificates, Kind};

/// How long a server may take to stop on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server for tests. Dropping it kills it and removes its data.
pub struct Server {
    kind: Kind,
    lab: assay_lab::Server,
    socket: PathBuf,
    version: String,
    certificates: Option<Certificates>,
}

impl Server {
    pub(crate) fn new(kind: Kind, lab: assay_lab::Server, certificates: Option<Certificates>) -> Server {
        let (socket, version) = (lab.socket(), lab.snapshot().binaries.version.to_string());
        Server { kind, lab, socket, version, certificates }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The server as the lab sees it.
    pub fn lab(&self) -> &assay_lab::Server {
        &self.lab
    }

    /// Its TCP port on 127.0.0.1; kept over `restart`.
    pub fn port(&self) -> u16 {
        self.lab.port()
    }

    /// Its unix socket. PostgreSQL's clients want the folder that this lies in.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its version number, such as `15.14`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The PEM files created for it, if it was started with TLS. Panics if it was not.
    pub fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().expect("the server was started with TLS")
    }

    /// A URL over TCP for the user `app`, who may do everything and needs no password by default.
    pub fn url(&self, database: &str) -> String {
        self.url_as("app", database)
    }

    /// Its URL for another user: `name` or `name:password`.
    pub fn url_as(&self, user: &str, database: &str) -> String {
        let scheme = match self.kind {
            Kind::Postgres | Kind::Postgres18 | Kind::PgBouncer => "postgres",
            Kind::MariaDb => "mariadb",
            Kind::MySql => "mysql",
        };
        format!("{scheme}://{user}@127.0.0.1:{}/{database}", self.port())
    }

    /// The process id of the server (of PostgreSQL's postmaster). Fails while it is stopped.
    pub fn pid(&self) -> Result<u32> {
        let identity = self.lab.identity().filter(assay_lab::process::Identity::runs);
        Ok(identity.with_context(|| format!("{} is not running", self.kind.name()))?.pid)
    }

    /// The last `lines` of what the server logged since it was first started.
    pub fn log_tail(&self, lines: usize) -> String {
        self.lab.log_tail(lines)
    }

    /// Runs statements as administrator over the unix socket, each in its own transaction, stopping at the first error,
    /// and returns the rows: fields separated by tabs, no headings.
    pub fn sql(&self, database: &str, statements: &str) -> Result<String> {
        let mut command = match self.kind {
            Kind::Postgres | Kind::Postgres18 | Kind::PgBouncer => {
                let mut psql = Command::new(Kind::Postgres.program("psql"));
                psql.args(["-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-U", "postgres"]);
                psql.arg("-h").arg(self.lab.folder()).arg("-p").arg(self.port().to_string());
                psql.args(["-d", if database.is_empty() { "postgres" } else { database }]);
                psql
            }
            Kind::MariaDb | Kind::MySql => {
                let mut mariadb = Command::new(Kind::MariaDb.program("mariadb"));
                mariadb.args(["--no-defaults", "--batch", "--raw", "--skip-column-names"]);
                mariadb.arg("--socket").arg(&self.socket).args(["--user", "root", database]);
                mariadb
            }
        };
        // PGOPTIONS, MYSQL_PWD and the like are the user's, and so is the language of messages.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LC_ALL", "C.UTF-8");
        let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut input = client.stdin.take().context("asked for a pipe")?;
        // A client that cannot connect exits without reading; its message matters, not the broken pipe.
        let _ = input.write_all(statements.as_bytes());
        drop(input);
        let output = client.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{}: {}", self.kind.name(), said.trim());
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Creates an empty database for one test on a shared server and returns its name.
    pub fn fresh_database(&self) -> Result<String> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.sql("", &format!("CREATE DATABASE {name};"))?;
        Ok(name)
    }

    /// Kills it as a crash would: no goodbye to clients, no shutdown. Returns when none of its processes are left.
    pub fn kill9(&self) -> Result<()> {
        self.pid()?;
        self.lab.kill().map_err(|fault| anyhow!("{fault}"))
    }

    /// Shuts it down cleanly, without waiting for clients to leave.
    pub fn stop(&self) -> Result<()> {
        self.pid()?;
        let ended = self.lab.stop(PATIENCE).map_err(|fault| anyhow!("{fault}"))?;
        let killed = ended.by == Some(Signal::SIGKILL);
        ensure!(!killed, "stopping {}; killed instead\n{}", self.kind.name(), self.log_tail(20));
        Ok(())
    }

    /// Starts it again on the same port and data, after `kill9`, `stop`, or instead of them.
    pub fn restart(&self) -> Result<()> {
        if self.pid().is_ok() {
            self.stop()?;
        }
        self.lab.restart(PATIENCE).map_err(|fault| anyhow!("{fault}"))
    }

    /// Stops all its processes (SIGSTOP): connections stay open and nothing answers.
    pub fn suspend(&self) -> Result<()> {
        self.pid()?;
        self.lab.suspend();
        Ok(())
    }

    /// Continues its processes.
    pub fn resume(&self) -> Result<()> {
        self.pid()?;
        self.lab.resume();
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.lab.kill();
        let _ = self.lab.remove();
    }
}
