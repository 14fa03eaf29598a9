//! The tests of the workspace, several programs at once: most of them wait for servers, not for a CPU.
//!
//! They are executed here, not by cargo, whose lock would let them wait for what is compiled meanwhile.

use std::fs;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::steps::cargo;

/// What is executed at once.
#[derive(Debug, PartialEq)]
enum Suite {
    /// A program: what it tests, its path, and the folder of its package.
    Program { name: String, path: PathBuf, package: PathBuf },
    /// The tests in documentation.
    Documentation,
}

/// All tests, compiled.
pub(crate) struct Suites(Vec<Suite>);

/// Compiles all tests.
pub(crate) fn compile() -> Result<Suites> {
    let arguments = ["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];
    let output = cargo(&arguments).stderr(Stdio::inherit()).output().context("running cargo test")?;
    ensure!(output.status.success(), "cargo {}: {}", arguments.join(" "), output.status);
    let told = String::from_utf8(output.stdout).context("reading what cargo compiled")?;
    suites(&told)
}

/// Runs all tests, as many programs at once as there are CPUs. The output of each is shown as a whole when it has
/// ended, and at the end what was not tested. `ready` completes each command.
///
/// # Errors
/// Names the suites that failed, after all have run.
pub(crate) fn run_all(suites: &Suites, ready: &(dyn Fn(&mut Command) + Sync)) -> Result<()> {
    let count = suites.0.len();
    let left = Mutex::new(suites.0.iter());
    let outcome = Mutex::new((0, Vec::new()));
    let skipped = Mutex::new(Vec::new());
    let next = || left.lock().expect("nobody panics with it").next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(suite) = next() {
                    let start = Instant::now();
                    let result = one(suite, ready);
                    let name = suite.name();
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
                        failed.push(name);
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
    ensure!(failed.is_empty(), "{}", failed.join(", "));
    Ok(())
}

/// Runs one suite. Returns its output, including errors, in order, and whether it passed.
fn one(suite: &Suite, ready: &(dyn Fn(&mut Command) + Sync)) -> Result<(String, bool)> {
    let mut output = tempfile::tempfile().context("a file for what tests print")?;
    let mut command = suite.command();
    ready(&mut command);
    let status = command
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .status()
        .with_context(|| format!("running {}", suite.name()))?;
    output.rewind()?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), status.success()))
}

impl Suite {
    fn name(&self) -> String {
        match self {
            Suite::Program { name, .. } => name.clone(),
            Suite::Documentation => "examples in documentation".to_owned(),
        }
    }

    fn command(&self) -> Command {
        match self {
            Suite::Program { path, package, .. } => {
                let mut command = Command::new(path);
                // As cargo runs it.
                command.current_dir(package).env("CARGO_MANIFEST_DIR", package);
                command
            }
            Suite::Documentation => cargo(&["test", "--quiet", "--workspace", "--doc"]),
        }
    }
}

/// What cargo says it compiled, one JSON object per line: first tests in files of their own, longest sources first,
/// since they take longest; then the unit tests, then those in documentation.
fn suites(told: &str) -> Result<Suites> {
    let mut files = Vec::new();
    let mut units = Vec::new();
    for line in told.lines() {
        let artifact: Value = serde_json::from_str(line).with_context(|| format!("reading {line}"))?;
        let (true, Some(path)) = (artifact["profile"]["test"] == true, artifact["executable"].as_str()) else {
            continue;
        };
        let text = |value: &Value| value.as_str().map(str::to_owned).with_context(|| format!("reading {line}"));
        let (name, source) = (text(&artifact["target"]["name"])?, text(&artifact["target"]["src_path"])?);
        let manifest = PathBuf::from(text(&artifact["manifest_path"])?);
        let package = manifest.parent().with_context(|| format!("reading {line}"))?.to_owned();
        let is_file = artifact["target"]["kind"][0] == "test";
        let size = size(Path::new(&source))?;
        let name = if is_file { name } else { format!("units of {name}") };
        let list = if is_file { &mut files } else { &mut units };
        list.push((size, Suite::Program { name, path: path.into(), package }));
    }
    files.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    units.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let programs = files.into_iter().chain(units).map(|(_, suite)| suite);
    Ok(Suites(programs.chain([Suite::Documentation]).collect()))
}

/// The size of a program's source in bytes: of its file, or of the whole folder if that is a `main.rs` or `lib.rs`.
fn size(source: &Path) -> Result<u64> {
    let about = || format!("reading {}", source.display());
    if !source.ends_with("main.rs") && !source.ends_with("lib.rs") {
        return Ok(fs::metadata(source).with_context(about)?.len());
    }
    let mut folders = vec![source.parent().with_context(about)?.to_owned()];
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(about)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                bytes += entry.metadata()?.len();
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::root;

    #[test]
    fn the_longest_files_of_tests_come_first_and_what_is_no_test_is_left_out() {
        let artifact = |kind: &str, name: &str, source: &str, test: bool| {
            let source = root().join(source);
            let manifest = root().join("xtask/Cargo.toml");
            serde_json::json!({
                "reason": "compiler-artifact", "manifest_path": manifest, "profile": { "test": test },
                "target": { "kind": [kind], "name": name, "src_path": source }, "executable": format!("/built/{name}"),
            })
            .to_string()
        };
        let told = [
            artifact("bin", "xtask", "xtask/src/main.rs", true),
            artifact("bin", "assay", "crates/assay/src/main.rs", false),
            artifact("test", "refused", "crates/assay-io/tests/refused.rs", true),
            r#"{ "reason": "build-finished", "success": true }"#.to_owned(),
            artifact("test", "cli", "crates/assay/tests/cli/main.rs", true),
        ];
        let suites = suites(&told.join("\n")).unwrap().0;
        let names: Vec<String> = suites.iter().map(Suite::name).collect();
        assert_eq!(names, ["cli", "refused", "units of xtask", "examples in documentation"]);
        let command = suites[0].command();
        assert_eq!(command.get_program(), "/built/cli");
        assert_eq!(command.get_current_dir(), Some(&*root().join("xtask")));
    }
}
