//! DuckDB's shared library, from its package for Java: it offers the C API, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::ferretdb::succeeded;
use crate::mongo_java::fetch_jars;
use crate::{absent, cache};

/// The newest version, and the oldest that assay can use.
const VERSIONS: [&str; 2] = ["2.0.0.1", "1.2.2.0"];

const LIBRARY: &str = "libduckdb_java.so_linux_amd64";

/// The libraries that are here, each with its version, the newest first; says aloud which are not.
pub fn duckdb_libraries() -> Vec<(&'static str, PathBuf)> {
    let here = |version: &str| {
        library(version).is_file()
            || absent(&format!("no DuckDB {version} (cargo xtask install gets it from the Maven repository)"))
    };
    VERSIONS.into_iter().filter(|version| here(version)).map(|version| (version, library(version))).collect()
}

fn home(version: &str) -> PathBuf {
    cache().join("duckdb").join(version)
}

fn library(version: &str) -> PathBuf {
    home(version).join(LIBRARY)
}

/// The versions that `cargo xtask install` should fetch.
pub fn missing_duckdb() -> Vec<&'static str> {
    VERSIONS.into_iter().filter(|version| !library(version).is_file()).collect()
}

/// Fetches what is missing. Returns what the tests will use.
pub fn fetch_duckdb() -> Result<String> {
    for version in missing_duckdb() {
        let home = home(version);
        fetch_jars(&home, "org.duckdb", "duckdb_jdbc", version)?;
        let jar = home.join("jars").join(format!("duckdb_jdbc-{version}.jar"));
        let mut unzip = Command::new("unzip");
        // Under another name first: half a library is none.
        let unpacked = home.join("unpacked");
        unzip.args(["-qo"]).arg(&jar).arg(LIBRARY).arg("-d").arg(&unpacked);
        succeeded(unzip.output(), "unpack DuckDB's library")?;
        fs::rename(unpacked.join(LIBRARY), library(version))?;
        remove(&[&home.join("jars"), &unpacked])?;
    }
    Ok(format!("{} (Maven)", VERSIONS.join(", ")))
}

fn remove(folders: &[&Path]) -> Result<()> {
    folders.iter().try_for_each(|folder| Ok(fs::remove_dir_all(folder)?))
}
