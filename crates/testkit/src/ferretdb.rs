//! FerretDB, which speaks MongoDB's protocol over SQLite: built from its Go module, for as long as a test needs it.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use assay_lab::Account;

use crate::folder::private_folder;
use crate::nats_programs::{go, go_minor, last_line};
use crate::{Certificates, absent, cache, free_port};

const MODULE: &str = "github.com/FerretDB/FerretDB";
const VERSION: &str = "1.24.2";
/// The minor version of Go 1 that it needs, and a Go that is fetched where the machine's is older: Debian 12 has 1.19.
const GO_MINOR: u32 = 24;
const NEWER_GO: &str = "1.24.13";

/// A server that has not begun to listen after this never will.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running FerretDB. Dropping it kills it.
pub struct FerretDb {
    child: Mutex<Child>,
    port: u16,
    certificates: Option<Certificates>,
    login: String,
}

/// How it is set up.
#[derive(Clone, Copy, Debug, Default)]
pub struct FerretSetup {
    /// A user and a password, without which nobody may do anything.
    pub login: Option<(&'static str, &'static str)>,
    /// Takes TLS only.
    pub tls: bool,
    /// It says that it is the primary of this replica set.
    pub replica_set: Option<&'static str>,
}

impl FerretDb {
    /// Whether it can be started here; says aloud where not.
    pub fn present() -> bool {
        program().is_file() || absent("no FerretDB (cargo xtask install builds it with Go)")
    }

    /// The folder of its program.
    pub fn folder() -> PathBuf {
        cache().join("ferretdb").join(VERSION)
    }

    /// The server that all tests of this process share. Panics if it cannot be started: call `present` first.
    pub fn shared() -> &'static FerretDb {
        static SHARED: OnceLock<FerretDb> = OnceLock::new();
        SHARED.get_or_init(|| FerretDb::start(FerretSetup::default()).expect("FerretDB starts"))
    }

    /// Starts one on a free port of the loopback interface.
    pub fn start(setup: FerretSetup) -> Result<FerretDb> {
        let (folder, port) = (private_folder("ferretdb")?, free_port()?);
        let account = Account::choose(None)?;
        let data = folder.join("data");
        fs::create_dir(&data)?;
        account.own(&data)?;
        let mut command = account.command(program());
        command.args(["--handler=sqlite", "--telemetry=disable", "--debug-addr=-", "--log-level=warn"]);
        // As for the other servers: the data is discarded, and a kill of the server leaves it in the page cache.
        command.arg(format!("--sqlite-url=file:{}/?_pragma=synchronous(off)", data.display()));
        command.arg(format!("--state-dir={}", data.display()));
        let address = format!("127.0.0.1:{port}");
        let mut certificates = None;
        if setup.tls {
            let made = Certificates::make(&private_folder("certificates")?, &["localhost".to_owned()])?;
            account.own(&made.server.0)?;
            account.own(&made.server.1)?;
            command.args(["--listen-addr=", &format!("--listen-tls={address}")]);
            command.arg(format!("--listen-tls-cert-file={}", made.server.0.display()));
            command.arg(format!("--listen-tls-key-file={}", made.server.1.display()));
            certificates = Some(made);
        } else {
            command.arg(format!("--listen-addr={address}"));
        }
        let mut login = String::new();
        if let Some((user, password)) = setup.login {
            command.args(["--test-enable-new-auth", "--setup-database=admin"]);
            command.args([format!("--setup-username={user}"), format!("--setup-password={password}")]);
            login = format!("{user}:{password}@");
        }
        if let Some(name) = setup.replica_set {
            command.arg(format!("--repl-set-name={name}"));
        }
        let log = fs::File::create(folder.join("log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn()?;
        // For the guardian, should this process be killed.
        fs::write(folder.join("assay.pid"), format!("{}\n", child.id()))?;
        let server = FerretDb { child: Mutex::new(child), port, certificates, login };
        listens(&server.child, port, &folder.join("log"))?;
        Ok(server)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database, as the user of the setup.
    pub fn url(&self, database: &str) -> String {
        match &self.certificates {
            None => format!("mongodb://{}127.0.0.1:{}/{database}", self.login, self.port),
            Some(made) => format!(
                "mongodb://{}localhost:{}/{database}?tls=true&tlsCAFile={}",
                self.login,
                self.port,
                made.ca.display()
            ),
        }
    }

    /// Those of a server with TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// Kills it, as a crash would.
    pub fn kill(&self) -> Result<()> {
        end(&self.child)
    }
}

impl Drop for FerretDb {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Waits until the server of this process listens.
pub(crate) fn listens(child: &Mutex<Child>, port: u16, log: &Path) -> Result<()> {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = child.lock().unwrap_or_else(PoisonError::into_inner).try_wait()?;
        let log = || fs::read_to_string(log).unwrap_or_default();
        ensure!(ended.is_none() && begun.elapsed() < START_TIMEOUT, "the server does not listen: {}", log());
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Kills it.
pub(crate) fn end(child: &Mutex<Child>) -> Result<()> {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    child.kill()?;
    child.wait()?;
    Ok(())
}

fn program() -> PathBuf {
    FerretDb::folder().join("ferretdb")
}

/// The version that `cargo xtask install` should build; `None`: it was built before.
pub fn missing_ferretdb() -> Option<&'static str> {
    (!program().is_file()).then_some(VERSION)
}

/// Builds it, unless it was built before. Returns what the tests will use.
pub fn fetch_ferretdb() -> Result<String> {
    let path = program();
    if !path.is_file() {
        let Some(go) = go() else { bail!("Go is missing, which builds FerretDB") };
        let folder = path.parent().expect("it is in a folder");
        fs::create_dir_all(folder)?;
        let draft = tempfile::Builder::new().prefix("draft-").tempdir_in(folder)?;
        build(&go, draft.path())?;
        fs::rename(draft.path().join("ferretdb"), &path)?;
    }
    Ok(format!("{VERSION} (built by Go)"))
}

/// A module in Go's cache cannot be built where it is: its version is in a file that only releases have.
fn build(go: &Path, folder: &Path) -> Result<()> {
    let newer = match go_minor().is_some_and(|minor| minor >= GO_MINOR) {
        true => None,
        false => Some(newer_go(go, folder)?),
    };
    let go = newer.as_deref().unwrap_or(go);
    let source = folder.join("source");
    copy(&download(go, folder, MODULE, &format!("v{VERSION}"))?, &source)?;
    fs::write(source.join("build/version/version.txt"), format!("v{VERSION}\n"))?;
    let output = command(go, &source).args(["build", "-o"]).arg(folder.join("ferretdb")).arg("./cmd/ferretdb").output();
    succeeded(output, "build FerretDB").map(drop)
}

/// A Go that is new enough, which Go itself distributes as a module.
fn newer_go(go: &Path, folder: &Path) -> Result<PathBuf> {
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("FerretDB needs Go 1.{GO_MINOR}, and on {other} it is not looked for"),
    };
    let version = format!("v0.0.1-go{NEWER_GO}.linux-{machine}");
    let root = folder.join("go");
    // Its programs are not executable in the cache.
    copy(&download(go, folder, "golang.org/toolchain", &version)?, &root)?;
    Ok(root.join("bin/go"))
}

/// The folder of a module in Go's cache, where it is after this.
fn download(go: &Path, folder: &Path, module: &str, version: &str) -> Result<PathBuf> {
    fs::write(folder.join("go.mod"), "module asking\n\ngo 1.19\n")?;
    let output = command(go, folder).args(["mod", "download", "-json"]).arg(format!("{module}@{version}")).output();
    let answer = succeeded(output, &format!("download {module} {version}"))?;
    let found = answer.lines().find_map(|line| line.trim().strip_prefix("\"Dir\": \"")?.strip_suffix("\","));
    found.map(PathBuf::from).with_context(|| format!("Go does not say where {module} is"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    succeeded(Command::new("cp").arg("-r").args([from, to]).output(), "copy a module")?;
    succeeded(Command::new("chmod").args(["-R", "u+wx"]).arg(to).output(), "copy a module").map(drop)
}

fn command(go: &Path, folder: &Path) -> Command {
    let mut command = Command::new(go);
    // No other version of Go on its own, and no C compiler.
    let settings = [("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0"), ("GOFLAGS", "-mod=mod")];
    command.current_dir(folder).envs(settings).stdin(Stdio::null());
    command
}

/// What it printed.
pub(crate) fn succeeded(output: std::io::Result<std::process::Output>, what: &str) -> Result<String> {
    let output = output.with_context(|| format!("cannot {what}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "cannot {what}: {}", last_line(&said));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
