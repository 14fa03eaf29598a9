//! The text files of the tree, read once for all checks.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A text file of the tree: its path from the root, with `/`, and its content.
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

/// Every text file of the tree, except generated ones.
pub(super) fn all(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            // `.git` is a file in a linked worktree.
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
