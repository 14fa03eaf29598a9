//! Instructions per statement on the measured path, compared with the accepted counts.
//!
//! Times differ from run to run and from machine to machine; instruction counts hardly do, so a change of a few percent
//! can be detected and refused in CI. Callgrind counts the instructions of a run against a null server (the crate
//! measured-path): script, engine, protocol and histograms, without the kernel. The startup cost is removed by
//! subtracting two runs of different length. A new compiler or LuaJIT may change the numbers: then accept them with
//! `--accept`, in a commit of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use xtask::install;
use xtask::steps::{cargo, root};

#[derive(Args)]
pub(crate) struct Options {
    /// Write what is counted now as what is expected from now on
    #[arg(long)]
    accept: bool,
}

impl Options {
    /// Compare only.
    pub(crate) fn check() -> Options {
        Options { accept: false }
    }
}

/// Protocol, workload, and transactions of the shorter run; the longer one has three times as many.
const PATHS: [(&str, &str, u64); 3] = [
    ("postgres", "oltp_point_select", 6000),
    ("mysql", "oltp_point_select", 6000),
    ("postgres", "oltp_read_write", 500),
];

const SESSIONS: &str = "64";

/// The tolerance of a count.
const TOLERANCE: f64 = 0.03;

const EXPECTED: &str = "crates/measured-path/instructions.txt";

pub(crate) fn run(options: &Options) -> Result<()> {
    install::valgrind()?;
    let program = build()?;
    let path = root().join(EXPECTED);
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let (mut counted, mut complaints) = (String::new(), Vec::new());
    for (protocol, workload, transactions) in PATHS {
        println!("counting {protocol} {workload}");
        let (short, long) = (
            count(&program, protocol, workload, transactions)?,
            count(&program, protocol, workload, 3 * transactions)?,
        );
        let each = (long.0 - short.0) as f64 / (long.1 - short.1) as f64;
        let name = format!("{protocol} {workload}");
        counted += &format!("{name} {each:.0}\n");
        match expected_of(&expected, &name) {
            None => println!("{name}: {each:.0} instructions per statement, nothing to compare with"),
            Some(expected) => {
                let change = each / expected - 1.0;
                println!("{name}: {each:.0} instructions per statement, {:+.1} % of {expected:.0}", change * 100.0);
                if change.abs() > TOLERANCE {
                    complaints.push(format!("{name} {:+.1} %", change * 100.0));
                }
            }
        }
    }
    if options.accept {
        fs::write(&path, counted).with_context(|| format!("writing {}", path.display()))?;
        return Ok(());
    }
    if !complaints.is_empty() {
        bail!(
            "instructions per statement changed by more than {} %: {}; find out why, then `cargo xtask instructions --accept`",
            TOLERANCE * 100.0,
            complaints.join(", ")
        );
    }
    Ok(())
}

/// The count that follows `name` on its line.
fn expected_of(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// Builds the program with release settings, from the same crates.
fn build() -> Result<PathBuf> {
    // Together with the tool itself, so that what the first command of CI compiled has the same features and is used.
    let arguments = ["build", "--release", "-p", "assay", "-p", "measured-path", "--message-format=json"];
    let output = cargo(&arguments).stderr(std::process::Stdio::inherit()).output()?;
    ensure!(output.status.success(), "cargo {}: {}", arguments.join(" "), output.status);
    let programs = String::from_utf8(output.stdout)?;
    let program = programs.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        (message["target"]["name"] == "measured-path").then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    program.context("cargo did not say where measured-path is")
}

/// Instructions of a whole run, and statements it ran.
fn count(program: &Path, protocol: &str, workload: &str, transactions: u64) -> Result<(u64, u64)> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    let output =
        command.args([protocol, workload, &transactions.to_string(), SESSIONS]).output().context("running valgrind")?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{told}", output.status);
    let statements = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok((collected(&told).with_context(|| format!("callgrind told no count:\n{told}"))?, statements))
}

/// `==123== Collected : 123456`
fn collected(told: &str) -> Option<u64> {
    told.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_callgrind_and_from_the_file() {
        assert_eq!(collected("==7== \n==7== Events    : Ir\n==7== Collected : 123733937\n"), Some(123_733_937));
        assert_eq!(collected("==7== nothing"), None);
        let text = "postgres oltp_point_select 5000\nmysql oltp_point_select 4800\n";
        assert_eq!(expected_of(text, "mysql oltp_point_select"), Some(4800.0));
        assert_eq!(expected_of(text, "sqlite oltp_point_select"), None);
    }

    #[test]
    fn every_path_has_an_expected_count() {
        let expected = fs::read_to_string(root().join(EXPECTED)).unwrap();
        for (protocol, workload, _) in PATHS {
            assert!(expected_of(&expected, &format!("{protocol} {workload}")).is_some(), "{protocol} {workload}");
        }
        assert_eq!(expected.lines().count(), PATHS.len());
    }
}
