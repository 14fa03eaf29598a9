//! The tasks of `cargo xtask` that need more than a compiler: servers to measure on, records, packages, the website.
//!
//! They are a program of their own so that xtask itself, which everybody who runs the tests has to wait for, compiles
//! in seconds. Nothing here is part of the tool.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod bench;
mod dist;
mod front;
mod site;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Tasks of this project that need more than a compiler")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
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
    match task() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn task() -> Result<()> {
    match Arguments::parse().task {
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
    use xtask::steps::root;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn commands_of_the_documents_are_read() {
        let mut seen = 0;
        let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
        for path in docs.chain(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name))) {
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let names: Vec<String> =
                Arguments::command().get_subcommands().map(|task| task.get_name().into()).collect();
            for line in
                text.lines().map(|line| line.replace("benches/many-connections.sh", "cargo xtask bench connections"))
            {
                let line = line.split(" #").next().unwrap();
                let words: Vec<&str> = line.split_whitespace().collect();
                let ["cargo", "xtask", task, ..] = words[..] else { continue };
                if names.iter().any(|name| name == task) {
                    assert!(Arguments::try_parse_from(&words[1..]).is_ok(), "{}: {line}", path.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > 3, "only {seen} commands");
    }
}
