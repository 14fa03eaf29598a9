//! The archive: a folder with everything.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::contents::Contents;
use super::shared::tar;

/// Packs `NAME.tar.gz` with a folder of that name.
pub(super) fn pack(contents: &Contents, name: &str, dist: &Path) -> Result<PathBuf> {
    let scratch = tempfile::tempdir()?;
    contents.copy_to(&scratch.path().join(name))?;
    let file = dist.join(format!("{name}.tar.gz"));
    tar(scratch.path(), name, &file, &["--use-compress-program=gzip --no-name --best"])?;
    Ok(file)
}
