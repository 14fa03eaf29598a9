//! Where ClickHouse's programs come from.

use std::fs;
use std::path::{Path, PathBuf};

use assay_lab::product::{Artifact, Install};
use assay_lab::version::Version;

use super::ClickHouse;

impl Install for ClickHouse {
    fn programs(&self) -> &'static [&'static str] {
        &["clickhouse-server"]
    }

    fn places(&self, root: &Path) -> Vec<PathBuf> {
        ["usr/sbin", "usr/bin", "usr/local/bin"].iter().map(|place| root.join(place)).collect()
    }

    fn package(&self) -> &'static str {
        "clickhouse-server"
    }

    fn catalog(&self) -> &'static [Artifact] {
        &[]
    }

    fn version_said(&self, words: &str) -> Option<Version> {
        // ClickHouse server version 24.3.2.23 (official build).
        words.contains("ClickHouse").then(|| Version::find(words)).flatten()
    }

    /// Debian's 18.16 does not know `--version`, but its library has it in its name.
    fn version_of_files(&self, program: &Path) -> Option<Version> {
        let base = program.parent()?.parent()?;
        let folders = [base.join("lib"), base.join(format!("lib/{}-linux-gnu", std::env::consts::ARCH))];
        let files = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let names = files.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| name.strip_prefix("libclickhouse.so.")?.parse().ok()).max()
    }
}
