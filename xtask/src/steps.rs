//! Steps of a task: each prints its name and duration, all are tried, and the last line is a summary.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// The steps done so far.
pub struct Steps {
    start: Instant,
    done: Vec<(&'static str, Duration, Option<anyhow::Error>)>,
}

impl Steps {
    /// No steps yet; their time starts now.
    #[expect(clippy::new_without_default, reason = "a default would not read a clock")]
    pub fn new() -> Steps {
        Steps { start: Instant::now(), done: Vec::new() }
    }

    /// Runs one step. A failure is remembered, not fatal: later steps may find more errors. Returns whether it
    /// succeeded.
    pub fn run(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) -> bool {
        println!("\n== {name}");
        let start = Instant::now();
        let error = step().err();
        let spent = start.elapsed();
        match &error {
            None => println!("== {name}: ok, {:.1} s", spent.as_secs_f64()),
            Some(error) => println!("== {name}: FAILED after {:.1} s: {error:#}", spent.as_secs_f64()),
        }
        let succeeded = error.is_none();
        self.done.push((name, spent, error));
        succeeded
    }

    /// Prints every step again, and why it failed; returns an error if one did.
    pub fn finish(self) -> Result<()> {
        println!("\n== summary");
        for (name, spent, error) in &self.done {
            let outcome = if error.is_none() { "ok" } else { "FAILED" };
            println!("{:>8.1} s  {outcome:<6}  {name}", spent.as_secs_f64());
            if let Some(error) = error {
                println!("{error:#}");
            }
        }
        println!("{:>8.1} s  in all", self.start.elapsed().as_secs_f64());
        let failed: Vec<_> =
            self.done.iter().filter(|(_, _, error)| error.is_some()).map(|(name, _, _)| *name).collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }
}

/// A command that runs in parallel with steps. Killed when dropped.
pub struct Beside {
    child: Child,
    /// Output that has not been shown yet.
    output: File,
}

impl Beside {
    /// Starts it and collects its output.
    pub fn start(command: &mut Command) -> Result<Beside> {
        let file = tempfile::NamedTempFile::new().context("a file for what a command prints")?;
        let output = file.reopen()?;
        command.stdin(Stdio::null()).stdout(file.as_file().try_clone()?).stderr(file.into_file());
        let child = command.spawn().with_context(|| format!("running {command:?}"))?;
        Ok(Beside { child, output })
    }

    /// Shows the output since the last call.
    pub fn show(&mut self) -> Result<()> {
        io::copy(&mut self.output, &mut io::stdout())?;
        Ok(())
    }

    /// Shows its output until it ends. Returns an error if it failed.
    pub fn finish(mut self) -> Result<()> {
        loop {
            let ended = self.child.try_wait()?;
            self.show()?;
            if let Some(status) = ended {
                ensure!(status.success(), "{status}");
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

/// A cargo command in the root of the workspace.
///
/// Removes the variables that cargo set for *us*: build scripts that read them (ring's does) would run again, and
/// everything that depends on them would be recompiled, whenever somebody alternates between `cargo test` and `cargo
/// xtask test`.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    let ours = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| ours.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command whose output goes where ours goes.
pub fn run(command: &mut Command) -> Result<()> {
    let words: Vec<_> =
        [command.get_program()].into_iter().chain(command.get_args()).map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    let status = command.status().with_context(|| format!("running {line}"))?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}

/// A command to be run as root: directly, or by sudo if that needs no password.
pub fn as_root(program: &str) -> Result<Command> {
    if nix::unistd::geteuid().is_root() {
        return Ok(Command::new(program));
    }
    let allowed = Command::new("sudo").args(["-n", "true"]).stderr(Stdio::null()).status();
    ensure!(allowed.is_ok_and(|status| status.success()), "not root, and sudo asks for a password");
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", program]);
    Ok(sudo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_steps_run_after_a_failure_and_the_outcome_is_a_failure() {
        let mut steps = Steps::new();
        assert!(!steps.run("first", || bail!("broken")));
        assert!(steps.run("second", || Ok(())));
        assert_eq!(steps.finish().unwrap_err().to_string(), "failed: first");
        let mut steps = Steps::new();
        steps.run("only", || Ok(()));
        steps.finish().unwrap();
    }

    #[test]
    fn a_command_beside_the_steps_says_how_it_ended() {
        let sh = |script| Beside::start(Command::new("sh").args(["-c", script]));
        sh("echo said by the command beside; sleep 0.2").unwrap().finish().unwrap();
        assert_eq!(sh("exit 3").unwrap().finish().unwrap_err().to_string(), "exit status: 3");
        assert!(Beside::start(&mut Command::new("/no/such/program")).is_err());
        let waits = sh("exec sleep 1000").unwrap();
        let process = nix::unistd::Pid::from_raw(waits.child.id() as i32);
        drop(waits);
        assert_eq!(nix::sys::signal::kill(process, None), Err(nix::errno::Errno::ESRCH));
    }
}
