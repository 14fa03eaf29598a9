//! Packages of the Python package index, in a folder of testkit's cache: nothing of the user's Python changes.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use crate::{absent, cache};

/// What reads Parquet files.
const READERS: [&str; 4] = ["duckdb==2.0.1", "pandas==3.1.1", "polars==2.1.0", "pyarrow==26.0.1"];

/// Packages that are installed together.
pub(crate) struct Packages {
    /// Of their folder.
    pub(crate) name: &'static str,
    pub(crate) wanted: &'static [&'static str],
}

pub(crate) const TABLES: Packages = Packages { name: "readers", wanted: &READERS };

impl Packages {
    /// Whether they are there.
    pub(crate) fn are_present(&self) -> bool {
        self.folder().is_ok_and(|folder| folder.exists())
    }

    /// Fetches them unless they are there.
    pub(crate) fn fetch(&self) -> Result<()> {
        let folder = self.folder()?;
        if folder.exists() {
            return Ok(());
        }
        let parent = folder.parent().expect("it is in the cache");
        fs::create_dir_all(parent)?;
        let draft = tempfile::Builder::new().prefix("draft-").tempdir_in(parent)?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"];
        let output = python()?.args(install).args(self.wanted).arg("--target").arg(draft.path()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "pip cannot install {}: {said}", self.wanted.join(" "));
        fs::rename(draft.keep(), folder)?;
        Ok(())
    }

    /// A Python that finds them.
    pub(crate) fn python(&self) -> Result<Command> {
        let mut command = python()?;
        command.env("PYTHONPATH", self.folder()?);
        Ok(command)
    }

    /// The folder for this version of Python: packages have compiled parts.
    fn folder(&self) -> Result<PathBuf> {
        let version = ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"];
        let output = python()?.args(version).output()?;
        let version = String::from_utf8(output.stdout)?;
        Ok(cache().join(self.name).join(version.trim()))
    }
}

/// Whether pandas, Polars and DuckDB are in the cache; says aloud where not.
pub fn has_table_readers() -> bool {
    TABLES.are_present() || absent("no pandas, Polars and DuckDB (cargo xtask install)")
}

/// Whether `fetch_table_readers` has something to do.
pub fn misses_table_readers() -> bool {
    !TABLES.are_present()
}

/// Fetches pandas, Polars and DuckDB.
pub fn fetch_table_readers() -> Result<()> {
    TABLES.fetch()
}

/// Runs a script that may use pandas, Polars and DuckDB in a folder.
pub fn run_python(folder: &std::path::Path, script: impl AsRef<OsStr>) -> Result<Output> {
    Ok(TABLES.python()?.arg("-c").arg(script).current_dir(folder).output()?)
}

/// A Python that can install packages: that of the user, or Debian's.
fn python() -> Result<Command> {
    let has_pip = |program: &&str| {
        let output = Command::new(program).args(["-m", "pip", "--version"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has_pip);
    Ok(Command::new(found.context("no Python with pip")?))
}
