//! The project's automation: `cargo xtask test` is all a fresh machine needs to know.
//!
//! Everything that is more than one cargo command lives here, in Rust, so that it runs the same at home and in CI.
//! Nothing here is part of the tool.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod bench;
mod boot;
mod dist;
mod front;
mod fuzz;
mod install;
mod instructions;
mod lints;
mod site;
mod steps;
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
    Install,
    /// Check what the compiler does not: module heads, crate dependencies, licenses, tests that prove nothing
    Tidy,
    /// Fill prose and comments anew that are wider than rustfmt's max_width
    Wrap(tidy::width::Options),
    /// Feed the wire parsers with mutated server messages
    Fuzz(fuzz::Options),
    /// Count the instructions of the measured path per statement, and compare with what is expected
    Instructions(instructions::Options),
    /// Measure assay beside sysbench and pgbench
    Bench(bench::Options),
    /// Build the packages of a release: archive, Debian package, container image, symbols, SBOM, checksums
    Dist,
    /// Make README.md's terminal screen and chart anew, from a real run
    Front(front::Options),
    /// Make a website of the documents, with search
    Site(site::Options),
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
        Task::Install => install::run_all(),
        Task::Tidy => tidy::run(),
        Task::Wrap(options) => tidy::width::wrap(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Instructions(options) => instructions::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Dist => dist::run_all(),
        Task::Front(options) => front::run_all(&options),
        Task::Site(options) => site::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::CommandFactory;

    use super::*;
    use crate::steps::root;

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
            for line in lines(&path, &["cargo xtask ", "benches/many-connections.sh "]) {
                let line = line.replace("benches/many-connections.sh", "cargo xtask bench connections");
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
