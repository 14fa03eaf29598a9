//! emmylua_check, the checker of a language server for Lua: built by cargo, into testkit's cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{absent, cache};

const VERSION: &str = "0.25.1";

fn folder() -> PathBuf {
    cache().join("emmylua_check").join(VERSION)
}

fn program() -> PathBuf {
    folder().join("bin/emmylua_check")
}

/// Whether it is in the cache; says aloud where not.
pub fn has_lua_checker() -> bool {
    program().is_file() || absent("no emmylua_check (cargo xtask test --matrix builds it)")
}

/// Builds it, unless it is there. Returns its version.
pub fn fetch_lua_checker() -> Result<&'static str> {
    if !program().is_file() {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["install", "emmylua_check", "--version", VERSION, "--locked", "--debug", "--quiet", "--root"]);
        // Nothing of it is of use later, and a build for somebody else may be under way in the usual folder.
        let target = tempfile::tempdir().context("a folder to build emmylua_check in")?;
        let status = cargo.arg(folder()).env("CARGO_TARGET_DIR", target.path()).status()?;
        ensure!(status.success(), "cargo install emmylua_check: {status}");
    }
    Ok(VERSION)
}

/// What it says about the Lua files of a folder: `FILE:LINE: MESSAGE [KIND]`.
pub fn check_lua(folder: &Path) -> Result<Vec<String>> {
    let output = Command::new(program()).args(["--output-format", "json"]).arg(folder).output()?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("reading what emmylua_check said: {}", String::from_utf8_lossy(&output.stderr)))?;
    let files = said.as_array().context("emmylua_check said no list")?;
    ensure!(!files.is_empty(), "emmylua_check found no Lua file in {}", folder.display());
    let mut lines = Vec::new();
    for file in files {
        let name = file["file"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        for found in file["diagnostics"].as_array().into_iter().flatten() {
            let line = found["range"]["start"]["line"].as_u64().unwrap_or(0) + 1;
            let [code, message] = ["code", "message"].map(|key| found[key].as_str().unwrap_or_default());
            lines.push(format!("{name}:{line}: {message} [{code}]"));
        }
    }
    Ok(lines)
}
