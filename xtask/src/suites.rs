//! The tests of the workspace, several binaries at once: most of them wait for servers, not for a CPU.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::steps::{cargo, run};

/// Which tests one command of cargo runs: `["--test", "tpcc"]`.
type Suite = Vec<String>;

/// Compiles all tests.
pub(crate) fn compile() -> Result<()> {
    run(&mut cargo(&["test", "--workspace", "--no-run"]))
}

/// Runs all tests, as many binaries at once as there are CPUs. The output of each is shown as a whole when it has
/// ended, and at the end what was not tested. `ready` completes each command. (One binary more takes no less time: all
/// wait for the longest one in the end.)
///
/// # Errors
/// The suites that failed, with what their failed tests said, after all have run.
pub(crate) fn run_all(ready: &(dyn Fn(&mut Command) + Sync)) -> Result<()> {
    let suites = all()?;
    let count = suites.len();
    let left = Mutex::new(suites.into_iter());
    let outcome = Mutex::new((0, Vec::new()));
    let skipped = Mutex::new(Vec::new());
    let next = || left.lock().expect("nobody panics with it").next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(suite) = next() {
                    let start = Instant::now();
                    let result = one(&suite, ready);
                    let name = suite.join(" ");
                    if let Ok((output, _)) = &result {
                        let lines = output.lines().filter(|line| line.contains("SKIPPED ALOUD: "));
                        skipped.lock().expect("nobody panics with it").extend(lines.map(str::to_owned));
                    }
                    let (done, failed) = &mut *outcome.lock().expect("nobody panics with it");
                    *done += 1;
                    let (said, passed) = match result {
                        Ok((output, true)) => (format!("{output}-- {name}: ok"), true),
                        Ok((output, false)) => (format!("{output}-- {name}: FAILED"), false),
                        Err(error) => (format!("-- {name}: FAILED: {error:#}"), false),
                    };
                    if !passed {
                        failed.push(format!("{name}\n{}", why(&said)));
                    }
                    // A closed pipe is not a test failure.
                    let _ = writeln!(
                        std::io::stdout(),
                        "{said}, {:.1} s ({done} of {count})",
                        start.elapsed().as_secs_f64()
                    );
                }
            });
        }
    });
    let skipped = skipped.into_inner().expect("nobody panics with it");
    if !skipped.is_empty() {
        println!("-- not tested here:\n{}", skipped.join("\n"));
    }
    let (_, failed) = outcome.into_inner().expect("nobody panics with it");
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// What failed tests said: the end of a suite's output, from the first failure on. Logs can be cut in the middle, and
/// this is printed last.
fn why(output: &str) -> String {
    let failures = output.find("\nfailures:\n").map_or(output, |start| &output[start..]);
    let lines: Vec<&str> = failures.trim().lines().collect();
    let kept = lines.len().min(WHY_LINES);
    let left_out = lines.len() - kept;
    let note = if left_out == 0 { String::new() } else { format!("\n[{left_out} more lines above]") };
    lines[..kept].join("\n") + &note
}

/// Lines of a suite's failures that are repeated at the end.
const WHY_LINES: usize = 100;

/// Runs one suite. Returns its output, including errors, in order, and whether it passed.
fn one(suite: &Suite, ready: &(dyn Fn(&mut Command) + Sync)) -> Result<(String, bool)> {
    let mut output = tempfile::tempfile().context("a file for what tests print")?;
    let mut command = cargo(&["test", "--quiet", "--workspace", "--no-fail-fast"]);
    command.args(suite).args(["--", "--format", "pretty"]);
    ready(&mut command);
    let status = command
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .status()
        .with_context(|| format!("running cargo test {}", suite.join(" ")))?;
    output.rewind()?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), status.success()))
}

/// All suites of the workspace: tests in files of their own, longest sources first, since they take longest; then the
/// unit tests, then those in documentation.
fn all() -> Result<Vec<Suite>> {
    let output =
        cargo(&["metadata", "--no-deps", "--format-version", "1"]).output().context("running cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    let mut suites: Vec<Suite> = files(&metadata)?.into_iter().map(|name| vec!["--test".to_owned(), name]).collect();
    suites.push(vec!["--lib".to_owned(), "--bins".to_owned()]);
    suites.push(vec!["--doc".to_owned()]);
    Ok(suites)
}

/// The names of test files, longest sources first. Two packages may have a file with the same name: one command runs
/// both.
fn files(metadata: &serde_json::Value) -> Result<Vec<String>> {
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    for target in packages.iter().filter_map(|package| package["targets"].as_array()).flatten() {
        let is_test = target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "test"));
        if let (true, Some(name), Some(source)) = (is_test, target["name"].as_str(), target["src_path"].as_str()) {
            *sizes.entry(name.to_owned()).or_default() += size(Path::new(source))?;
        }
    }
    let mut names: Vec<_> = sizes.into_iter().collect();
    names.sort_by(|(one, size), (other, rest)| rest.cmp(size).then_with(|| one.cmp(other)));
    Ok(names.into_iter().map(|(name, _)| name).collect())
}

/// The size of a test's source in bytes; for a test with a `main.rs`, of its whole folder.
fn size(source: &Path) -> Result<u64> {
    let about = || format!("reading {}", source.display());
    if source.file_name().is_some_and(|name| name != "main.rs") {
        return Ok(fs::metadata(source).with_context(about)?.len());
    }
    let folder = source.parent().with_context(about)?;
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(about)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_repeated_without_the_tests_that_passed() {
        let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nbroken\n-- --lib: FAILED";
        assert_eq!(why(output), "failures:\n\n---- b stdout ----\nbroken\n-- --lib: FAILED");
        assert_eq!(why("-- --lib: FAILED: no cargo"), "-- --lib: FAILED: no cargo");
        let long = format!("\nfailures:\n{}", "x\n".repeat(200));
        assert!(why(&long).ends_with("x\n[101 more lines above]"), "{}", why(&long));
    }

    #[test]
    fn every_test_file_is_in_a_suite_and_the_longest_come_first() {
        let suites = all().unwrap();
        let place = |words: &[&str]| suites.iter().position(|suite| suite == words);
        for name in ["cli", "tpcc", "simulation", "coverage", "fuzz", "servers"] {
            assert_eq!(suites.iter().filter(|suite| suite[1..] == [name.to_owned()]).count(), 1, "{name}");
        }
        assert!(place(&["--test", "sysbench"]) < place(&["--test", "refused"]));
        assert_eq!(place(&["--lib", "--bins"]), Some(suites.len() - 2));
        assert_eq!(place(&["--doc"]), Some(suites.len() - 1));
    }
}
