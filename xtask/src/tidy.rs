//! Checks that the compiler does not make. Run as a test of this package and as `cargo xtask tidy`.
//!
//! A check returns its complaints as text, `path: what is wrong`, and is itself tested with input that it must complain
//! about.

use anyhow::{Result, ensure};

use xtask::steps::root;

mod arrows;
mod circles;
mod file;
mod licenses;
mod metadata;
mod places;
mod refusals;
mod skips;
mod texts;
pub(crate) mod width;

/// Runs every check. The error has all complaints.
pub(crate) fn run() -> Result<()> {
    let complaints = complaints()?;
    ensure!(complaints.is_empty(), "{} things are not tidy:\n{}", complaints.len(), complaints.join("\n"));
    Ok(())
}

fn complaints() -> Result<Vec<String>> {
    let files = file::all(&root())?;
    let metadata = metadata::read()?;
    let mut all = texts::complaints(&files);
    all.extend(arrows::complaints(&metadata));
    all.extend(arrows::unsafe_roots(&metadata, &files));
    all.extend(circles::complaints(&files));
    all.extend(licenses::complaints(&metadata));
    all.extend(places::complaints(&files));
    all.extend(refusals::complaints(&metadata, &files));
    all.extend(skips::complaints(&files));
    all.extend(width::complaints(&files)?);
    Ok(all)
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_tree_is_tidy() {
        let complaints = super::complaints().unwrap();
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    }
}
