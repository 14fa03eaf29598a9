//! Reads cargo's metadata about the workspace.

use anyhow::{Result, bail};
use serde_json::Value;

use xtask::steps::cargo;

/// Cargo's metadata of the workspace and all dependencies.
pub(super) fn read() -> Result<Value> {
    let output = cargo(&["metadata", "--format-version", "1"]).output()?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The list with this name in a package.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The text with this name in a value.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}
