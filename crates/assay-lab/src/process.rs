//! Server processes: recorded on disk before they start, identified by process id and start time.
//!
//! A process id alone may belong to another process tomorrow. An `Identity` also has the start time of the process and
//! the boot it belongs to, so a process that is not ours is never signaled.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::account::Account;
use crate::fault::{At, Blame, Fault, Result};
use crate::helpers;

pub use crate::identity::Identity;
pub(crate) use crate::identity::gone;

const SYSTEM: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Whether a program of this name is in a folder of `PATH`, or in one of the system's folders that a user's `PATH` may
/// lack.
pub(crate) fn is_on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(SYSTEM.map(PathBuf::from)).any(|folder| folder.join(name).is_file())
}

/// Says that the process of this id runs on a data directory, if its program's name begins so: ids are used again.
pub fn runs_on_it(pid: &str, program: &str) -> Option<String> {
    let process = Identity::of(pid.trim().parse().ok()?)?;
    let name = fs::read_to_string(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
    name.starts_with(program).then(|| format!("process {} runs on it", process.pid))
}

/// A program to start.
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a Path,
    /// The program, or the one that becomes it, and its arguments.
    pub(crate) words: &'a [OsString],
    pub(crate) environment: &'a [(String, String)],
    /// The user; `None`: the current one, or the program chooses.
    pub(crate) account: Option<&'a Account>,
    /// Working directory, which contains its `PID_FILE` and `LOG`.
    pub(crate) folder: &'a Path,
}

/// The name of the file in a server's folder that contains its identity: first its process id, then the rest.
pub const PID_FILE: &str = "assay.pid";
/// The name of the file in a server's folder with all its output.
pub const LOG: &str = "log";

/// Waits for a line on its input before it becomes the program: what must be recorded about the process, or done to it,
/// is done before the program runs. If we die before that, it ends.
const LAUNCHER: &str = r#"read -r go && exec "$@" </dev/null"#;

/// A process that was started here. Dropping it does not end it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) identity: Identity,
    /// Kept so that it can be waited for: nobody else does.
    child: Child,
}

impl Running {
    /// How it ended, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }
}

impl Launch<'_> {
    /// Starts it. `before` is called when the process exists and the program does not run yet.
    pub(crate) fn start(&self, before: impl FnOnce(&Identity) -> Result<()>) -> Result<Running> {
        let log_path = self.folder.join(LOG);
        let log = File::options().create(true).append(true).open(&log_path).at("write", &log_path)?;
        let again = log.try_clone().at("write", &log_path)?;
        let shell = "/bin/sh";
        let mut command = self.account.map_or_else(|| Command::new(shell), |account| account.command(shell));
        let mut child = command
            .args(["-c", LAUNCHER, "assay"])
            .args(self.words)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder)
            // Ctrl-C is for us; we end the server ourselves.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(again)
            .spawn()
            .at("start", self.program)?;
        let mut go = child.stdin.take().expect("asked for a pipe");
        let identity = Identity::of(child.id())
            .ok_or_else(|| Fault::environment(format!("{} exited before it was started", self.program.display())))?;
        let started = write_identity(self.folder, &identity).and_then(|()| before(&identity));
        if let Err(fault) = started {
            drop(go);
            let _ = child.wait();
            let _ = fs::remove_file(self.folder.join(PID_FILE));
            return Err(fault);
        }
        let _ = go.write_all(b"go\n");
        Ok(Running { identity, child })
    }
}

/// Whole or not at all: another thread that finds the file must be able to kill the process.
fn write_identity(folder: &Path, identity: &Identity) -> Result<()> {
    let (path, draft) = (folder.join(PID_FILE), folder.join(".draft-pid"));
    let text = format!("{} {} {}\n", identity.pid, identity.started, identity.boot);
    fs::write(&draft, text).at("write", &draft)?;
    fs::rename(&draft, &path).at("keep", &path)
}

/// The process last started in a server's folder; `None` if it was stopped cleanly, or never started.
pub fn identity_in(folder: &Path) -> Option<Identity> {
    let text = fs::read_to_string(folder.join(PID_FILE)).ok()?;
    let [pid, started, boot] = text.split_whitespace().collect::<Vec<_>>()[..] else { return None };
    Some(Identity { pid: pid.parse().ok()?, started: started.parse().ok()?, boot: boot.to_owned() })
}

/// As `Command::output`, and the program ends with this process.
pub(crate) fn to_its_end(command: &mut Command) -> std::io::Result<Output> {
    // Ctrl-C is for us, and ends it by `helpers::interrupt`.
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
    let _registered = helpers::Registered::new(child.id());
    child.wait_with_output()
}

/// The content of a file; one that is larger is cut, and cannot be read as what it should be.
pub(crate) fn read_bounded(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes).map(|_| bytes)
}

/// How much of the end of a log is read.
const LOG_BYTES: u64 = 1 << 20;

/// The last `lines` of a server's log.
pub fn log_tail(folder: &Path, lines: usize) -> String {
    let end = |mut log: File| {
        let length = log.metadata()?.len();
        log.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES)))?;
        let mut bytes = Vec::new();
        log.take(LOG_BYTES).read_to_end(&mut bytes).map(|_| bytes)
    };
    let log = File::open(folder.join(LOG)).and_then(end).unwrap_or_default();
    let text = String::from_utf8_lossy(&log);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Runs a program to its end and returns its output. `doing`: what the error message says has failed, such as
/// `initialize the data directory`, followed by the program's own output.
pub fn output(doing: &str, command: &mut Command) -> Result<String> {
    let program = PathBuf::from(command.get_program());
    let output = to_its_end(command.stdin(Stdio::null())).at("run", &program)?;
    if helpers::is_interrupted() && !output.status.success() {
        return Err(Fault::interrupted());
    }
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() {
        return Ok(said(&output.stdout));
    }
    let words = format!("{}\n{}", said(&output.stdout), said(&output.stderr));
    let last: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = last[last.len().saturating_sub(20)..].join("\n");
    let fault = Fault::server(format!("{} could not {doing}: {}", program.display(), output.status)).detail(&last);
    Err(match missing_library(&last) {
        Some(library) => {
            Fault { blame: Blame::Environment, ..fault }.hint(format!("install the package that contains {library}"))
        }
        None if crate::fault::is_full(&last) => Fault { blame: Blame::Environment, ..fault }.hint(crate::fault::FULL),
        None => fault,
    })
}

/// The name of the library that the dynamic linker did not find, if that is what this output says.
pub(crate) fn missing_library(words: &str) -> Option<&str> {
    let (_, rest) = words.split_once("error while loading shared libraries: ")?;
    rest.split_once(':').map(|(name, _)| name)
}
