//! Files that must not outlive the process: the embedded database that is used if there is no `--db`, and the files of
//! `assay io`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::diagnostics::Trouble;

/// What to remove when the process quits without unwinding.
static LEFT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Files or a folder that are removed when this is dropped, or when a second Ctrl-C quits.
pub struct Scratch(Vec<PathBuf>);

impl Scratch {
    /// Creates a folder that only this user can read.
    pub fn new() -> Result<Scratch, Trouble> {
        let folder = tempfile::Builder::new().prefix("assay-").tempdir().map_err(|error| {
            Trouble::environment(format!("cannot create a temporary folder: {error}"))
                .hint("set TMPDIR to a writable folder, or choose a database with --db sqlite:FILE")
        })?;
        Ok(Scratch::of(vec![folder.keep()]))
    }

    /// Paths that are there, or will be.
    pub fn of(paths: Vec<PathBuf>) -> Scratch {
        LEFT.lock().unwrap_or_else(PoisonError::into_inner).extend(paths.iter().cloned());
        Scratch(paths)
    }

    /// The folder's path.
    pub fn folder(&self) -> &Path {
        &self.0[0]
    }

    /// The URL of a database in the folder.
    pub fn url(&self) -> String {
        format!("sqlite:{}", self.folder().join("assay.db").display())
    }

    /// Removes everything now; the first error.
    pub fn remove(mut self) -> io::Result<()> {
        self.remove_all()
    }

    /// Keeps everything.
    pub fn keep(mut self) {
        self.forget();
    }

    fn remove_all(&mut self) -> io::Result<()> {
        self.forget().iter().map(|path| remove_one(path)).fold(Ok(()), io::Result::and)
    }

    fn forget(&mut self) -> Vec<PathBuf> {
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|path| !self.0.contains(path));
        std::mem::take(&mut self.0)
    }
}

impl Drop for Scratch {
    /// What cannot be removed is left to the user, or to the system's cleanup of `/tmp`.
    fn drop(&mut self) {
        let _ = self.remove_all();
    }
}

/// Removes what every `Scratch` would remove.
pub fn remove() {
    for path in std::mem::take(&mut *LEFT.lock().unwrap_or_else(PoisonError::into_inner)) {
        let _ = remove_one(&path);
    }
}

fn remove_one(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
