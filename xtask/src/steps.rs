//! Steps of a task: each prints its name and duration, all are tried, and the last line is a summary.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// What was done so far.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<(&'static str, Duration, Option<anyhow::Error>)>,
}

impl Steps {
    /// Does one step. Its failure is remembered, not fatal: the next steps find their own troubles. Says whether
    /// it succeeded.
    pub(crate) fn run(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) -> bool {
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

    /// Prints every step once more; an error when one failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n== summary");
        for (name, spent, error) in &self.done {
            let outcome = if error.is_none() { "ok" } else { "FAILED" };
            println!("{:>8.1} s  {outcome:<6}  {name}", spent.as_secs_f64());
        }
        let total: Duration = self.done.iter().map(|(_, spent, _)| *spent).sum();
        println!("{:>8.1} s  in all", total.as_secs_f64());
        let failed: Vec<_> =
            self.done.iter().filter(|(_, _, error)| error.is_some()).map(|(name, _, _)| *name).collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

/// A cargo command in the root of the workspace.
///
/// What cargo told *us* about ourselves is withheld: build scripts that look at it (ring's does) would run, and
/// everything above them compile, each time somebody alternates between `cargo test` and `cargo xtask test`.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
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
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let words: Vec<_> =
        [command.get_program()].into_iter().chain(command.get_args()).map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    let status = command.status().with_context(|| format!("running {line}"))?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}

/// A command to be run as root: by us, or by sudo when it asks for no password.
pub(crate) fn as_root(program: &str) -> Result<Command> {
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
        let mut steps = Steps::default();
        assert!(!steps.run("first", || bail!("broken")));
        assert!(steps.run("second", || Ok(())));
        assert_eq!(steps.finish().unwrap_err().to_string(), "failed: first");
        let mut steps = Steps::default();
        steps.run("only", || Ok(()));
        steps.finish().unwrap();
    }
}
