//! Checks that a compiler does not make. Run as a test of this package and as `cargo xtask tidy`.
//!
//! A check returns its complaints as text, `path: what is wrong`, and is itself tested with something to complain of.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::steps::{cargo, root};

mod arrows;
mod licences;
mod places;
mod texts;

/// Runs every check and prints all complaints.
pub(crate) fn run() -> Result<()> {
    let complaints = complaints()?;
    for complaint in &complaints {
        println!("{complaint}");
    }
    ensure!(complaints.is_empty(), "{} things are not tidy", complaints.len());
    Ok(())
}

fn complaints() -> Result<Vec<String>> {
    let files = files(&root())?;
    let metadata = metadata()?;
    let mut all = texts::complaints(&files);
    all.extend(arrows::complaints(&metadata));
    all.extend(arrows::unsafe_roots(&metadata, &files));
    all.extend(licences::complaints(&metadata));
    all.extend(places::complaints(&files));
    Ok(all)
}

/// A text file of the tree: its path from the root, with `/`, and its content.
struct File {
    path: String,
    text: String,
}

/// Every text file of the tree, except what tools make.
fn files(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            // `.git` is a file in a second worktree.
            if ["target", ".git", "assay-records", "corpus", "artifacts"].iter().any(|made| name == *made) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                let path = path.strip_prefix(root)?.to_str().context("a path that is not UTF-8")?.to_owned();
                files.push(File { path, text });
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// What cargo knows of the workspace and everything it depends on.
fn metadata() -> Result<Value> {
    let output = cargo(&["metadata", "--format-version", "1"]).output()?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A package's list of that name.
fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A value's text of that name.
fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_tree_is_tidy() {
        let complaints = super::complaints().unwrap();
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    }
}
