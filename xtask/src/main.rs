//! The project's automation: `cargo xtask test` is all a fresh machine needs to know.
//!
//! Everything that is more than one cargo command lives here, in Rust, so that it runs the same at home and in CI.
//! Nothing here is part of the tool.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod fuzz;
mod install;
mod instructions;
mod steps;
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
    Test,
    /// Install what the tests and benchmarks need: by apt, from the Maven repository
    Install,
    /// Check what the compiler does not: module heads, crate dependencies, licences, tests that prove nothing
    Tidy,
    /// Feed the wire parsers with mutated server messages
    Fuzz(fuzz::Options),
    /// Count the instructions of the measured path per statement, and compare with what is expected
    Instructions(instructions::Options),
    /// Measure assay beside sysbench and pgbench
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test => test::run_all(),
        Task::Install => install::run_all(),
        Task::Tidy => tidy::run(),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Instructions(options) => instructions::run(&options),
        Task::Bench(options) => bench::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
