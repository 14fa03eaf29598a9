//! A file system of its own, for tests that fill it or need a certain kind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::{refused, root};

/// A mounted file system; unmounted when dropped.
pub struct Mounted(TempDir);

impl Mounted {
    /// Mounts with these options of `mount`. `None`, where mounting is not allowed, see `refused`: root in a container
    /// may not.
    pub fn new(options: &[&str]) -> Option<Mounted> {
        if !root("mounting") {
            return None;
        }
        let mounted = Mounted(tempfile::tempdir().unwrap());
        fs::create_dir(mounted.path()).unwrap();
        // Servers that run as other users enter it too.
        fs::set_permissions(mounted.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let output = Command::new("mount").args(options).arg(mounted.path()).output().unwrap();
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            refused(&format!("nothing can be mounted here: {why}"));
            return None;
        }
        fs::set_permissions(mounted.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Some(mounted)
    }

    /// Its root.
    pub fn path(&self) -> PathBuf {
        self.0.path().join("mounted")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}
