//! Filesystems made for a trial: in a sparse file, mounted through a loop device. Only root may do that.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::account::is_root;
use crate::fault::{At, Fault, Result};

/// A mounted filesystem. Dropping it unmounts and removes it.
pub struct MadeFilesystem {
    folder: PathBuf,
    image: PathBuf,
}

/// The share of the free space that a filesystem may grow to, in percent.
const SHARE: u64 = 80;
/// Attempts to unmount, with this time between them: a process that ended a moment ago may still hold it.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

impl MadeFilesystem {
    /// Makes and mounts one below `place`. `words`: its type and mount options, such as `ext4:noatime`.
    pub fn make(place: &Path, name: &str, words: &str) -> Result<MadeFilesystem> {
        let (kind, options) = words.split_once(':').map_or((words, None), |(kind, options)| (kind, Some(options)));
        if kind.is_empty() || !kind.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(Fault::usage(format!("filesystem {words:?} is not a type with mount options"))
                .hint("such as ext4 or btrfs:compress=zstd"));
        }
        if !is_root() {
            return Err(Fault::environment(format!("only root can make and mount the filesystem {words}"))
                .hint("mount it yourself, and give its folder with server.NAME.data or run.options.folder"));
        }
        fs::create_dir_all(place).at("create", place)?;
        let free = nix::sys::statvfs::statvfs(place)
            .map_err(|error| Fault::environment(format!("cannot look at {}: {error}", place.display())))?;
        let bytes = free.blocks_available() * free.fragment_size() / 100 * SHARE;
        let made = MadeFilesystem { folder: place.join(name), image: place.join(format!("{name}.img")) };
        let file = File::create(&made.image).at("create", &made.image)?;
        file.set_len(bytes).at("create", &made.image)?;
        fs::create_dir_all(&made.folder).at("create", &made.folder)?;
        let mut format = Command::new(format!("mkfs.{kind}"));
        run(format.arg(if kind == "btrfs" || kind == "xfs" { "-f" } else { "-q" }).arg(&made.image))?;
        let options = options.map_or("loop".to_owned(), |options| format!("loop,{options}"));
        run(Command::new("mount").args(["-t", kind, "-o", &options]).arg(&made.image).arg(&made.folder))?;
        Ok(made)
    }

    /// Where it is mounted.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for MadeFilesystem {
    fn drop(&mut self) {
        remove(&self.folder, &self.image);
    }
}

/// Why a filesystem cannot be made here; `None`: nothing is missing, as far as can be said before.
pub fn missing(words: &str) -> Option<String> {
    if !is_root() {
        return Some("only root can make and mount it".to_owned());
    }
    let kind = words.split(':').next().unwrap_or_default();
    let program = format!("mkfs.{kind}");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = ["/sbin", "/usr/sbin"].map(PathBuf::from).into_iter().chain(std::env::split_paths(&path));
    let is_there = folders.map(|folder| folder.join(&program)).any(|program| program.is_file());
    (!is_there).then(|| format!("{program} is not installed"))
}

/// Removes what processes that were killed have left below `place`, of names that start with `prefix` and end with the
/// number of a process.
pub fn remove_stale(place: &Path, prefix: &str) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "img")) {
        let folder = path.with_extension("");
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(prefix) else { continue };
        let process: String = rest.chars().take_while(char::is_ascii_digit).collect();
        if !process.is_empty() && !Path::new("/proc").join(process).exists() {
            remove(&folder, &path);
        }
    }
}

fn remove(folder: &Path, image: &Path) {
    for _ in 0..ATTEMPTS {
        let unmounted = Command::new("umount").arg(folder).stderr(Stdio::null()).status();
        // What is not mounted is an ordinary, empty folder.
        if unmounted.is_ok_and(|status| status.success()) || fs::remove_dir(folder).is_ok() || !folder.exists() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    let _ = fs::remove_dir(folder);
    let _ = fs::remove_file(image);
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output().map_err(|error| {
        Fault::environment(format!("cannot run {program}: {error}"))
            .hint("install the filesystem's tools, or choose another filesystem")
    })?;
    if done.status.success() {
        return Ok(());
    }
    Err(Fault::environment(format!("{program} ended with {}", done.status))
        .detail(String::from_utf8_lossy(&done.stderr)))
}
