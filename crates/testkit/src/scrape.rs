//! Metrics as Prometheus' own library for Python parses them: an independent parser.

use std::io::{Error, Result, Write};
use std::process::{Command, Stdio};

/// The format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0, of files.
    OpenMetrics,
    /// Prometheus' own, version 0.0.4, of what is served.
    Text,
}

/// Prints how many samples each family has, or fails where the text is not of its format.
const READ: &str = "import sys
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as text
parse = (openmetrics if sys.argv[1] == 'OpenMetrics' else text).text_string_to_metric_families
for family in parse(sys.stdin.read()): print(family.name, family.type, len(family.samples))";

/// The families in `text` with their types and numbers of samples, such as `assay_errors counter 3`. Fails where that
/// parser does, or is not there: `cargo xtask install` installs it.
pub fn metric_families(text: &str, format: Exposition) -> Result<Vec<String>> {
    // Not the first in PATH, which may be another Python without the package.
    let mut python = Command::new("/usr/bin/python3")
        .args(["-c", READ, &format!("{format:?}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    python.stdin.take().expect("it is piped").write_all(text.as_bytes())?;
    let done = python.wait_with_output()?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect()),
        false => Err(Error::other(String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}
