//! What drivers may read besides a URL: environment, files, the user.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assay_seam::Surroundings;

/// The real machine.
pub struct ThisMachine;

impl Surroundings for ThisMachine {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        std::fs::read(path).ok()
    }

    fn mode(&self, path: &Path) -> Option<u32> {
        std::fs::metadata(path).ok().map(|metadata| metadata.permissions().mode() & 0o7777)
    }

    fn home(&self) -> Option<PathBuf> {
        std::env::home_dir().filter(|home| !home.as_os_str().is_empty())
    }

    fn user(&self) -> Option<String> {
        nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten().map(|user| user.name)
    }
}
