//! Parses metrics with Prometheus' own library for Python, an independent parser.

use std::io::{Error, Result, Write};
use std::process::{Command, Stdio};

/// The format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0, used in files.
    OpenMetrics,
    /// Prometheus' text format 0.0.4, used by HTTP.
    Text,
}

/// Prints the number of samples of each family, or fails if the format is wrong.
const READ: &str = "import sys
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as text
parse = (openmetrics if sys.argv[1] == 'OpenMetrics' else text).text_string_to_metric_families
for family in parse(sys.stdin.read()): print(family.name, family.type, len(family.samples))";

/// The families in `text` with their types and numbers of samples, such as `assay_errors counter 3`. Fails if the
/// parser does, or is missing: `cargo xtask install` installs it.
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
