//! The temporary folder of the embedded database, used if there is no `--db`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::diagnostics::Trouble;

/// A folder that is removed when this is dropped, or when a second Ctrl-C quits.
pub struct Scratch {
    folder: PathBuf,
}

/// The folder to remove when the process quits without unwinding.
static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);

impl Scratch {
    /// Creates a folder that only this user can read.
    pub fn new() -> Result<Scratch, Trouble> {
        let folder = tempfile::Builder::new().prefix("assay-").tempdir().map_err(|error| {
            Trouble::environment(format!("cannot create a temporary folder: {error}"))
                .hint("set TMPDIR to a writable folder, or choose a database with --db sqlite:FILE")
        })?;
        let folder = folder.keep();
        *FOLDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder.clone());
        Ok(Scratch { folder })
    }

    /// Its path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The URL of a database in it.
    pub fn url(&self) -> String {
        format!("sqlite:{}", self.folder.join("assay.db").display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove();
    }
}

/// Removes the folder, if there is one. What cannot be removed is left to the system's cleanup of `/tmp`.
pub fn remove() {
    if let Some(folder) = FOLDER.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = std::fs::remove_dir_all(folder);
    }
}
