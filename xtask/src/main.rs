//! The project's automation: `cargo xtask test` is all a fresh machine needs to know.
//!
//! Everything that is more than one cargo command lives here, in Rust, so that it runs the same at home and in CI.
//! Nothing here is part of the tool.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use xtask::install;
use xtask::steps::{cargo, run};

mod fuzz;
mod instructions;
mod lints;
mod suites;
mod test;
mod tidy;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Automation of this project")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what is missing, then check formatting, lints, tidiness and run every test
    Test(test::Options),
    /// Install what the tests and benchmarks need: by apt, from the Maven repository
    Install(install::Options),
    /// Check what the compiler does not: module heads, crate dependencies, licenses, tests that prove nothing
    Tidy,
    /// Fill prose and comments anew that are wider than rustfmt's max_width
    Wrap(tidy::width::Options),
    /// Feed the wire parsers with mutated server messages
    Fuzz(fuzz::Options),
    /// Count the instructions of the measured path per statement, and compare with what is expected
    Instructions(instructions::Options),
    /// Measure assay beside sysbench and pgbench
    #[command(disable_help_flag = true)]
    Bench(Passed),
    /// Build the packages of a release: archive, Debian package, container image, symbols, SBOM, checksums
    #[command(disable_help_flag = true)]
    Dist(Passed),
    /// Make README.md's terminal screen and chart anew, from a real run
    #[command(disable_help_flag = true)]
    Front(Passed),
    /// Make a website of the documents, with search
    #[command(disable_help_flag = true)]
    Site(Passed),
}

/// What the workbench reads: its tasks need crates that take minutes to compile.
#[derive(Args)]
struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Passed {
    fn run(&self, task: &str) -> Result<()> {
        run(cargo(&["run", "--quiet", "--package", "workbench", "--", task]).args(&self.arguments))
    }
}

fn main() -> ExitCode {
    let outcome = match lints::wrapped() {
        Some(arguments) => lints::compile(&arguments),
        None => task().map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn task() -> Result<()> {
    match Arguments::parse().task {
        Task::Test(options) => test::run_all(&options),
        Task::Install(options) => install::run_all(&options),
        Task::Tidy => tidy::run(),
        Task::Wrap(options) => tidy::width::wrap(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Instructions(options) => instructions::run(&options),
        Task::Bench(passed) => passed.run("bench"),
        Task::Dist(passed) => passed.run("dist"),
        Task::Front(passed) => passed.run("front"),
        Task::Site(passed) => passed.run("site"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::CommandFactory;

    use super::*;
    use xtask::steps::root;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// Lines that begin with one of `heads`, without their comments, of a file below the root.
    fn lines(path: &str, heads: &[&str]) -> Vec<String> {
        let text = fs::read_to_string(root().join(path)).unwrap();
        let of_ours = text.lines().filter(|line| heads.iter().any(|head| line.starts_with(head)));
        of_ours.map(|line| line.split(" #").next().unwrap().trim().to_owned()).collect()
    }

    #[test]
    fn ci_calls_the_two_commands_of_the_readme_as_they_stand_there() {
        let theirs = lines("README.md", &["cargo run ", "cargo xtask "]);
        assert_eq!(theirs, ["cargo run --release -- run oltp_read_write", "cargo xtask test"]);
        assert_eq!(lines(".ci/run", &["cargo "]), theirs);
    }

    #[test]
    fn what_the_readme_installs_is_a_package_with_a_program() {
        let [line] = &lines("README.md", &["cargo install "])[..] else { panic!("one way to install") };
        let folder = line.strip_prefix("cargo install --path ").unwrap();
        assert!(root().join(folder).join("Cargo.toml").is_file() && root().join(folder).join("src/main.rs").is_file());
    }

    #[test]
    fn commands_of_the_documents_are_read() {
        let mut seen = 0;
        let docs = fs::read_dir(root().join("docs")).unwrap();
        let docs = docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().to_str().unwrap()));
        for path in docs.chain(["CONTRIBUTING.md".to_owned()]) {
            if !path.ends_with(".md") {
                continue;
            }
            for line in lines(&path, &["cargo xtask "]) {
                if line.trim() == "cargo xtask" {
                    continue; // it lists the tasks
                }
                let words = line.split_whitespace().skip(1);
                assert!(Arguments::try_parse_from(words).is_ok(), "{path}: {line}");
                seen += 1;
            }
        }
        assert!(seen > 3, "only {seen} commands");
    }
}
