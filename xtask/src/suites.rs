//! The tests of the workspace, several programs at once: most of them wait for servers, not for a CPU.
//!
//! Cargo only compiles them. It would check for each program that everything is up to date, and could not do anything
//! else meanwhile.

use std::cmp::Reverse;
use std::fs;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use xtask::install::FETCH;
use xtask::steps::cargo;

use crate::lints::Wrapper;

/// The programs of all tests, compiled.
pub(crate) struct Suites {
    programs: Vec<Program>,
    /// The compiler's wrapper that they were compiled with.
    wrapper: Wrapper,
    /// Warnings of the compiler and of Clippy.
    pub(crate) warnings: usize,
}

/// The tests of one file, or the unit tests of one crate.
struct Program {
    /// `assay --test cli`, `assay-stats --lib`.
    name: String,
    path: PathBuf,
    /// Of its package: its tests run there.
    folder: PathBuf,
    /// The name of its file; `None`: unit tests.
    file: Option<String>,
    /// Bytes.
    source: u64,
}

/// Compiles and lints all tests and what they test, and shows warnings and errors.
pub(crate) fn compile(wrapper: Wrapper) -> Result<Suites> {
    let mut cargo = wrapper.around(cargo(&["test", "--workspace", "--no-run", "--message-format=json"]));
    let output = cargo.stderr(Stdio::inherit()).output().context("running cargo test --no-run")?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<serde_json::Value> =
        messages.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("reading what cargo said")?;
    said(&messages).iter().for_each(|(_, text)| eprint!("{text}"));
    ensure!(output.status.success(), "cargo test --no-run: {}", output.status);
    let warnings = said(&messages).iter().filter(|(level, _)| *level == "warning").count();
    Ok(Suites { programs: programs(&messages)?, wrapper, warnings })
}

/// Compiles the program that fetches servers, with the features and the wrapper of the tests, which need most of what
/// it is made of. Returns its path.
pub(crate) fn fetcher(wrapper: &Wrapper) -> Result<PathBuf> {
    let arguments = ["build", "--workspace", "--bin", FETCH, "--message-format=json-render-diagnostics"];
    let output = wrapper.around(cargo(&arguments)).stderr(Stdio::inherit()).output().context("running cargo build")?;
    ensure!(output.status.success(), "cargo build: {}", output.status);
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let built = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back();
    built.context("cargo build made no program")
}

/// The tests that take minutes, longest first. Most of their tests wait for servers and for what is due, so twice as
/// many of each run at once as there are CPUs.
const LONGEST: [&str; 4] = ["cli", "tpcc", "live_postgres", "live_mysql"];

/// Of the messages of `cargo test --no-run`: the longest first, then other test files, longest sources first; then the
/// unit tests.
fn programs(messages: &[serde_json::Value]) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for message in messages {
        programs.extend(program(message)?);
    }
    programs.sort_by(|one, other| {
        let longest = |program: &Program| LONGEST.iter().position(|file| program.file.as_deref() == Some(*file));
        let key = |program: &Program| {
            (longest(program).unwrap_or(LONGEST.len()), program.file.is_none(), Reverse(program.source))
        };
        key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
    });
    ensure!(!programs.is_empty(), "cargo test --no-run made no programs");
    Ok(programs)
}

/// Levels and texts of what the compiler said, each once: a file is compiled for its tests and for those of others.
fn said(messages: &[serde_json::Value]) -> Vec<(&str, &str)> {
    let mut said = Vec::new();
    for message in messages.iter().map(|message| &message["message"]) {
        if let (Some(level), Some(text)) = (message["level"].as_str(), message["rendered"].as_str())
            && !said.contains(&(level, text))
        {
            said.push((level, text));
        }
    }
    said
}

/// `None`: the message is about something else.
fn program(message: &serde_json::Value) -> Result<Option<Program>> {
    let Some(path) = message["executable"].as_str().filter(|_| message["profile"]["test"] == true) else {
        return Ok(None);
    };
    let target = &message["target"];
    let texts = [&message["manifest_path"], &target["name"], &target["src_path"], &target["kind"][0]];
    let [Some(manifest), Some(name), Some(source), Some(kind)] = texts.map(serde_json::Value::as_str) else {
        bail!("cargo did not say what {path} is");
    };
    let folder = Path::new(manifest).parent().context("a manifest without a folder")?;
    let package = folder.file_name().context("a package in no folder")?.to_string_lossy();
    let file = (kind == "test").then(|| name.to_owned());
    let name = match &file {
        Some(file) => format!("{package} --test {file}"),
        None => format!("{package} --{kind}"),
    };
    Ok(Some(Program { name, path: path.into(), folder: folder.to_owned(), file, source: size(Path::new(source))? }))
}

impl Suites {
    /// Runs all tests, those in documentation last, one program more at once than there are CPUs, because many tests
    /// wait. The output of each is shown as a whole when it has ended, and at the end what was not tested. `ready`
    /// completes each command.
    ///
    /// # Errors
    /// The suites that failed, with what their failed tests said, after all have run.
    pub(crate) fn run(self, ready: &(dyn Fn(&mut Command) + Sync)) -> Result<()> {
        let lanes = 1 + cpus();
        let mut commands: Vec<(String, Command)> = self.programs.into_iter().map(Program::command).collect();
        // As the tests were compiled, or everything would be compiled again.
        let documentation = cargo(&["test", "--quiet", "--workspace", "--no-fail-fast", "--doc"]);
        let documentation = self.wrapper.around(documentation);
        commands.push(("--doc".to_owned(), documentation));
        let outcome = Mutex::new(Outcome { count: commands.len(), ..Outcome::default() });
        let left = Mutex::new(commands.into_iter());
        let next = || left.lock().expect("nobody panics with it").next();
        thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    while let Some((name, mut command)) = next() {
                        ready(&mut command);
                        let start = Instant::now();
                        let result = one(command);
                        let said = outcome.lock().expect("nobody panics with it").add(&name, result, start);
                        // A closed pipe is not a test failure.
                        let _ = std::io::stdout().write_all(said.as_bytes());
                    }
                });
            }
        });
        outcome.into_inner().expect("nobody panics with it").finish()
    }
}

impl Program {
    fn command(self) -> (String, Command) {
        let mut command = Command::new(self.path);
        command.args(["--format", "pretty"]);
        if self.file.as_deref().is_some_and(|file| LONGEST.contains(&file)) {
            command.args(["--test-threads", &(2 * cpus()).to_string()]);
        }
        command.env("CARGO_MANIFEST_DIR", &self.folder).current_dir(self.folder);
        (self.name, command)
    }
}

fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What the programs that have ended said.
#[derive(Default)]
struct Outcome {
    count: usize,
    done: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
}

impl Outcome {
    /// Returns what to print of it.
    fn add(&mut self, name: &str, result: Result<(String, bool)>, start: Instant) -> String {
        self.done += 1;
        let (said, passed) = match result {
            Ok((output, passed)) => {
                let lines = output.lines().filter(|line| line.contains("SKIPPED ALOUD: "));
                self.skipped.extend(lines.map(str::to_owned));
                (format!("{output}-- {name}: {}", if passed { "ok" } else { "FAILED" }), passed)
            }
            Err(error) => (format!("-- {name}: FAILED: {error:#}"), false),
        };
        if !passed {
            self.failed.push(format!("{name}\n{}", why(&said)));
        }
        let (seconds, done, count) = (start.elapsed().as_secs_f64(), self.done, self.count);
        format!("{said}, {seconds:.1} s ({done} of {count})\n")
    }

    fn finish(self) -> Result<()> {
        if !self.skipped.is_empty() {
            println!("-- not tested here:\n{}", self.skipped.join("\n"));
        }
        ensure!(self.failed.is_empty(), "{}", self.failed.join("\n"));
        Ok(())
    }
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

/// Runs a program. Returns its output, including errors, in order, and whether it passed.
fn one(mut command: Command) -> Result<(String, bool)> {
    let mut output = tempfile::tempfile().context("a file for what tests print")?;
    let status = command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .status()
        .with_context(|| format!("running {}", command.get_program().display()))?;
    output.rewind()?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), status.success()))
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
    use xtask::steps::root;

    #[test]
    fn failures_are_repeated_without_the_tests_that_passed() {
        let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nbroken\n-- --lib: FAILED";
        assert_eq!(why(output), "failures:\n\n---- b stdout ----\nbroken\n-- --lib: FAILED");
        assert_eq!(why("-- --lib: FAILED: no cargo"), "-- --lib: FAILED: no cargo");
        let long = format!("\nfailures:\n{}", "x\n".repeat(200));
        assert!(why(&long).ends_with("x\n[101 more lines above]"), "{}", why(&long));
    }

    #[test]
    fn programs_of_tests_are_found_and_the_longest_files_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("assay/Cargo.toml");
        let made = |name: &str, kind: &str, bytes: usize, executable: serde_json::Value, is_test: bool| {
            let source = folder.path().join(format!("{name}.rs"));
            fs::write(&source, "x".repeat(bytes)).unwrap();
            serde_json::json!({
                "reason": "compiler-artifact", "manifest_path": manifest, "executable": executable,
                "target": {"name": name, "src_path": source, "kind": [kind]}, "profile": {"test": is_test},
            })
        };
        let heard = |level: &str| {
            let message = serde_json::json!({"level": level, "rendered": "unused"});
            serde_json::json!({"reason": "compiler-message", "message": message})
        };
        let messages = [
            made("short", "test", 10, "/t/short-1".into(), true),
            made("assay_stats", "lib", 1000, "/t/assay_stats-1".into(), true),
            made("long", "test", 20, "/t/long-1".into(), true),
            made("live_mysql", "test", 1, "/t/live_mysql-1".into(), true),
            made("tpcc", "test", 2, "/t/tpcc-1".into(), true),
            made("assay", "bin", 3000, "/t/assay".into(), false),
            made("dependency", "lib", 10, serde_json::Value::Null, false),
            heard("warning"),
            heard("warning"),
            // Only says how many warnings there were.
            heard("failure-note"),
            serde_json::json!({"reason": "build-finished", "success": true}),
        ];
        let found = programs(&messages).unwrap();
        assert_eq!(said(&messages), [("warning", "unused"), ("failure-note", "unused")]);
        let names: Vec<&str> = found.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(
            names,
            ["assay --test tpcc", "assay --test live_mysql", "assay --test long", "assay --test short", "assay --lib"]
        );
        assert_eq!(found[0].path, Path::new("/t/tpcc-1"));
        assert_eq!(found[0].folder, folder.path().join("assay"));
        assert!(programs(&[]).is_err());
        let unknown = serde_json::json!({"executable": "/t/x", "profile": {"test": true}});
        assert_eq!(programs(&[unknown]).err().unwrap().to_string(), "cargo did not say what /t/x is");
    }

    #[test]
    fn the_longest_tests_have_the_names_of_files() {
        for name in LONGEST {
            let file = root().join("crates/assay/tests").join(name).join("main.rs");
            assert!(file.is_file(), "{}", file.display());
        }
    }

    #[test]
    fn a_program_that_fails_is_repeated_at_the_end() {
        let mut outcome = Outcome { count: 3, ..Outcome::default() };
        outcome.add("a --lib", Ok(("x: SKIPPED ALOUD: no server\n".to_owned(), true)), Instant::now());
        assert_eq!((outcome.done, &outcome.skipped[..]), (1, &["x: SKIPPED ALOUD: no server".to_owned()][..]));
        outcome.add("b --lib", Ok(("\nfailures:\nb\n".to_owned(), false)), Instant::now());
        outcome.add("c --lib", Err(anyhow::anyhow!("no such file")), Instant::now());
        let error = outcome.finish().unwrap_err().to_string();
        assert_eq!(error, "b --lib\nfailures:\nb\n-- b --lib: FAILED\nc --lib\n-- c --lib: FAILED: no such file");
    }
}
