//! What the packages share: their version, and how `tar` is called.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use xtask::steps::run;

/// The version of the packages.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `tar` with the same result whenever and by whomever it is called: the contents of a folder, in the order of names.
pub(super) fn tar(folder: &Path, what: &str, file: &Path, compression: &[&str]) -> Result<()> {
    run(Command::new("tar")
        .args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--format=gnu"])
        .args(compression)
        .arg("--file")
        .arg(file)
        .arg("--directory")
        .arg(folder)
        .arg(what))
}
