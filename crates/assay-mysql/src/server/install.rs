//! Where the programs come from.

use std::path::{Path, PathBuf};

use assay_lab::product::{Artifact, Binaries, Install};
use assay_lab::version::Version;

use super::Member;

impl Install for Member {
    fn programs(&self) -> &'static [&'static str] {
        self.programs
    }

    fn places(&self, root: &Path) -> Vec<PathBuf> {
        self.places.iter().map(|place| root.join(place)).collect()
    }

    fn package(&self) -> &'static str {
        self.package
    }

    fn catalog(&self) -> &'static [Artifact] {
        self.catalog
    }

    fn version_said(&self, words: &str) -> Option<Version> {
        let (_, version) = words.split_once(" Ver ")?;
        (self.is_said)(words).then(|| Version::find(version)).flatten()
    }

    fn environment(&self, binaries: &Binaries) -> Vec<(String, String)> {
        (self.environment)(binaries)
    }
}
