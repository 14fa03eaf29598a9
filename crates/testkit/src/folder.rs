//! Where servers live: a folder per test process that outlives no one, and a cache that outlives every run.
//!
//! Making an empty data directory takes seconds (MySQL: four), copying one takes milliseconds; so each version's is
//! made once into the cache and copied for every server. Servers refuse to run as root: there we use `nobody`.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use anyhow::{Context, Result, ensure};
use nix::unistd::{User, geteuid};

/// The folder kept between runs: unpacked servers in `servers/`, empty data directories in `templates/`.
///
/// `ASSAY_TEST_CACHE` when set; for root `/var/cache/assay-test`, since `nobody` has to get at it and a checkout may
/// lie under `/root`; for others `$XDG_CACHE_HOME/assay-test` or `~/.cache/assay-test`.
pub fn cache() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = variable("ASSAY_TEST_CACHE") {
        return folder;
    }
    if geteuid().is_root() {
        return PathBuf::from("/var/cache/assay-test");
    }
    let base = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("assay-test")
}

/// A command run by an unprivileged user: ourselves, or `nobody` when we are root.
pub(crate) fn unprivileged(program: impl AsRef<std::ffi::OsStr>) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]).arg(program);
    // Without this PostgreSQL's tools stumble over the folder we were started in.
    command.current_dir("/");
    command
}

/// Hands a file or folder to the user of `unprivileged`.
pub(crate) fn hand_over(path: &Path) -> Result<()> {
    if geteuid().is_root() {
        let nobody = User::from_name("nobody")?.context("there is no user `nobody` to run servers as")?;
        chown(path, Some(nobody.uid.as_raw()), Some(nobody.gid.as_raw()))?;
    }
    Ok(())
}

/// The name of the file in a server's folder that holds its process id.
pub(crate) const PID_FILE: &str = "assay.pid";

/// What the guardian does once its input ends, which is when the test process is gone, however it went. Backends
/// of PostgreSQL are named too: a suspended one would outlive its postmaster for ever.
const GUARDIAN: &str = r#"
cat >/dev/null
for file in "$1"/*/assay.pid; do
  [ -e "$file" ] || continue
  pid=$(cat "$file")
  kill -9 $pid $(cat /proc/$pid/task/$pid/children 2>/dev/null) 2>/dev/null
done
rm -rf "$1" 2>/dev/null || { sleep 1; rm -rf "$1"; }
"#;

/// Makes a folder for one server, inside the one of this process, which a guardian process removes (and kills the
/// servers in it) when this process ends. A parent-death signal would not do: it follows the thread that
/// started the server, and tests are threads.
pub(crate) fn server_folder(name: &str) -> Result<PathBuf> {
    static PROCESS: OnceLock<(PathBuf, Mutex<ChildStdin>)> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    static NEXT: AtomicU32 = AtomicU32::new(1);

    let guard = STARTING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if PROCESS.get().is_none() {
        let mode = fs::Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new().prefix("assay-test-").permissions(mode).tempdir()?.keep();
        let mut guardian = Command::new("/bin/sh")
            .args(["-c", GUARDIAN, "guardian"])
            .arg(&folder)
            .process_group(0) // Ctrl-C is for the test, not for who tidies up after it.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let input = guardian.stdin.take().expect("asked for a pipe");
        let _ = PROCESS.set((folder, Mutex::new(input)));
    }
    drop(guard);
    let (process, _) = PROCESS.get().expect("set above");
    let folder = process.join(format!("{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir(&folder)?;
    hand_over(&folder)?;
    Ok(folder)
}

/// Copies the data directory called `name` to `into`, after `make` has made it if this is the first time ever.
pub(crate) fn copy_template(name: &str, into: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    // One lock per template: two tests that want the same one make it once, others do not wait.
    static LOCKS: Mutex<Option<HashMap<String, Arc<Mutex<()>>>>> = Mutex::new(None);
    let lock = {
        let mut locks = LOCKS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        locks.get_or_insert_default().entry(name.to_owned()).or_default().clone()
    };
    let _guard = lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner());

    let templates = cache().join("templates");
    let template = templates.join(name);
    if !template.exists() {
        fs::create_dir_all(&templates).with_context(|| format!("creating {}", templates.display()))?;
        let mode = fs::Permissions::from_mode(0o755);
        let draft = tempfile::Builder::new().prefix(".draft-").permissions(mode).tempdir_in(&templates)?;
        hand_over(draft.path())?;
        let data = draft.path().join("data");
        make(&data).with_context(|| format!("making an empty data directory for {name}"))?;
        // Another process may have been faster; its result is as good.
        if let Err(error) = fs::rename(&data, &template) {
            ensure!(template.exists(), "keeping {}: {error}", template.display());
        }
    }
    run(unprivileged("cp").args(["-R", "--reflink=auto"]).arg(&template).arg(into))
}

/// Runs a command to its end; its output is the error when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("running {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
