//! `assay completions SHELL`: completions of commands and options for a shell.
//!
//! Without workload options, which are declared in the workload's file.

use assay_lab::product::Product;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::aot::{self, generate};

use crate::command_line::{CompletionsOptions, Shell, definition};

/// Prints them.
pub fn run(options: &CompletionsOptions) -> Result<Exit, Trouble> {
    let mut text = Vec::new();
    let shell = match options.shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    generate(shell, &mut with_values(definition()), "assay", &mut text);
    terminal::result_bytes(&text)?;
    Ok(Exit::Success)
}

/// The options that take names, with the names that there are: of workloads, recipes, their scales, metrics, server
/// versions, poolers and proxies. Records are files. Names that change, of running servers and databases, are not known
/// here.
fn with_values(command: Command) -> Command {
    let is_of_recipes = command.get_name() == "recipe";
    let named = |argument: Arg| match argument.get_id().as_str() {
        "from" => argument.value_parser(names(if is_of_recipes { recipes() } else { workloads() })),
        "value" => argument.value_parser(names(metrics())),
        "front" => argument.value_parser(names(fronts())),
        "scale" => argument.value_parser(names(vec!["full".to_owned(), "tiny".to_owned()])),
        "workload" => argument.value_parser(names(workloads())).value_hint(ValueHint::FilePath),
        "recipe" => argument.value_parser(names(recipes())).value_hint(ValueHint::FilePath),
        "product" | "server" => argument.value_parser(names(versions())),
        "record" | "records" | "again" | "baseline" | "candidate" => argument.value_hint(ValueHint::FilePath),
        _ => argument,
    };
    command.mut_args(named).mut_subcommands(with_values)
}

fn names(all: Vec<String>) -> PossibleValuesParser {
    PossibleValuesParser::new(all)
}

fn workloads() -> Vec<String> {
    let runnable = assay_workloads::builtin().iter().filter(|builtin| builtin.runnable);
    runnable.map(|builtin| builtin.name.to_owned()).collect()
}

fn recipes() -> Vec<String> {
    assay_recipe::shipped().iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Metrics of the load, and of servers.
fn metrics() -> Vec<String> {
    let load = ["tps", "qps", "p50", "p90", "p95", "p99", "p999", "mean", "max", "service_p99", "lag_p99", "capacity"];
    let server = assay_telemetry::METRICS.iter().map(|metric| format!("server.{}", metric.name));
    load.into_iter().map(str::to_owned).chain(server).collect()
}

fn fronts() -> Vec<String> {
    assay_products::products().fronts.iter().map(|front| front.name().to_owned()).collect()
}

/// `postgres:18.6`: what can be downloaded.
fn versions() -> Vec<String> {
    let of = |product: &&dyn Product| {
        let name = product.name();
        product.catalog().iter().map(move |artifact| format!("{name}:{}", artifact.version)).collect::<Vec<_>>()
    };
    assay_products::products().databases.iter().flat_map(of).collect()
}
