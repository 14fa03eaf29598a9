//! Folders for servers: one per test process, removed with it, and a persistent cache.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use anyhow::Result;
use assay_lab::Home;
use assay_products::products;
use nix::unistd::geteuid;
use tempfile::TempDir;

/// The folder kept between runs: the lab's binaries and images of empty data directories.
///
/// `ASSAY_TEST_CACHE` if set; for root `/var/cache/assay-test`, because `nobody` must be able to read it and a checkout
/// may be under `/root`; otherwise `$XDG_CACHE_HOME/assay-test` or `~/.cache/assay-test`.
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

/// A new folder beside the cache, which is on a drive even if the temporary folder is not: for tests of what a drive
/// reports. Servers of other users may write to it; it is removed when dropped.
pub fn folder_on_a_drive() -> Result<TempDir> {
    let cache = cache();
    fs::create_dir_all(&cache)?;
    let everybody = fs::Permissions::from_mode(0o1777);
    Ok(tempfile::Builder::new().prefix("drive-").permissions(everybody).tempdir_in(cache)?)
}

/// What the guardian does once its input ends, which is when the test process is gone for any reason. PostgreSQL's
/// backends are included: a suspended one would outlive its postmaster forever.
const GUARDIAN: &str = r#"
cat >/dev/null
for file in "$1"/*/assay.pid; do
  [ -e "$file" ] || continue
  read -r pid rest <"$file"
  kill -9 $pid $(cat /proc/$pid/task/$pid/children 2>/dev/null) 2>/dev/null
done
rm -rf "$1" 2>/dev/null || { sleep 1; rm -rf "$1"; }
"#;

/// The lab of this process: its servers are in a folder that a guardian process removes (and kills the servers in it)
/// when this process ends. A parent-death signal does not work: it depends on the thread that started the server, and
/// tests are threads.
pub fn home() -> Result<Home> {
    static PROCESS: OnceLock<(PathBuf, Mutex<ChildStdin>)> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());

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
    let (servers, _) = PROCESS.get().expect("set above");
    Ok(Home { servers: servers.clone(), cache: cache(), products: products() })
}

/// One folder for `ASSAY_LAB` of all programs under test: servers that they start end with this process.
pub fn lab_folder() -> Result<PathBuf> {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    static MAKING: Mutex<()> = Mutex::new(());
    let _guard = MAKING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(folder) = FOLDER.get() {
        return Ok(folder.clone());
    }
    let (home, folder) = (home()?, private_folder("lab")?);
    fs::create_dir_all(home.cache.join("binaries"))?;
    fs::create_dir_all(home.cache.join("images"))?;
    symlink(&home.servers, folder.join("servers"))?;
    for name in ["binaries", "images"] {
        symlink(home.cache.join(name), folder.join(name))?;
    }
    Ok(FOLDER.get_or_init(|| folder).clone())
}

/// A name that no other server of this process has.
pub(crate) fn name_of(kind: &str) -> Result<String> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    Ok(format!("{kind}-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// A folder beside the servers', for files that a test provides for them.
pub(crate) fn private_folder(kind: &str) -> Result<PathBuf> {
    let folder = home()?.servers.join(name_of(kind)?);
    fs::create_dir(&folder)?;
    Ok(folder)
}
