//! What completes the value of an option or an argument.

use std::ffi::OsStr;
use std::path::Path;

use assay_lab::Status;
use assay_lab::product::Product;
use clap::{Arg, Command};
use clap_complete::CompletionCandidate;
use clap_complete::engine::{ArgValueCompleter, PathCompleter, ValueCompleter};

use crate::databases::Databases;

/// A name, with a few words about it.
type Named = (String, String);

/// A command whose arguments know what completes them.
pub(super) fn completed(command: Command) -> Command {
    below("", command)
}

/// `place`: the names of the commands above, without the program.
fn below(place: &str, command: Command) -> Command {
    let known = |argument: Arg| match completer(place, argument.get_id().as_str()) {
        Some(completer) => argument.add(completer),
        None => argument,
    };
    command.mut_args(known).mut_subcommands(|one| {
        let place = format!("{place} {}", one.get_name());
        below(place.trim_start(), one)
    })
}

/// What completes an argument of the command at `place`; `None`: what clap knows.
fn completer(place: &str, argument: &str) -> Option<ArgValueCompleter> {
    Some(match (place, argument) {
        ("new workload", "from") => named(workloads),
        ("new recipe", "from") => named(recipes),
        ("db remove", "name") => named(databases),
        ("db test", "database") | (_, "db") => named(|| [databases(), servers(true)].concat()),
        ("server stop", "names") | ("server kill" | "server restart" | "server log" | "server shell", "name") => {
            named(|| servers(false))
        }
        ("server sources", "product") => named(products),
        (_, "workload") => named_or_file(workloads, &[".lua"]),
        (_, "recipe") => named_or_file(recipes, &[".toml"]),
        (_, "scale") => named(|| ["full", "tiny"].map(plain).to_vec()),
        (_, "value" | "metric") => named(metrics),
        (_, "front") => named(fronts),
        (_, "product" | "server") => named(versions),
        ("tag", "words") | (_, "record" | "records" | "again" | "baseline" | "candidate") => {
            files(&[".json.zst", ".json"])
        }
        ("lab show" | "lab status" | "lab bundle", "folder") => ArgValueCompleter::new(PathCompleter::any()),
        _ => return None,
    })
}

/// The names that a function returns.
fn named(all: fn() -> Vec<Named>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| starting(all(), current))
}

/// The same, and files with these endings.
fn named_or_file(all: fn() -> Vec<Named>, endings: &'static [&'static str]) -> ArgValueCompleter {
    let files = files(endings);
    ArgValueCompleter::new(move |current: &OsStr| {
        let mut found = starting(all(), current);
        found.extend(files.complete(current));
        found
    })
}

/// Files with these endings, and folders on the way to them.
fn files(endings: &'static [&'static str]) -> ArgValueCompleter {
    let is_one = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !path.is_dir() && endings.iter().any(|ending| name.ends_with(ending))
    };
    let paths = PathCompleter::any().filter(is_one);
    ArgValueCompleter::new(move |current: &OsStr| paths.complete(current))
}

fn starting(all: Vec<Named>, current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let matching = all.into_iter().filter(|(name, _)| name.starts_with(&*current));
    matching.map(|(name, words)| CompletionCandidate::new(name).help(Some(words.into()))).collect()
}

fn plain(name: impl Into<String>) -> Named {
    (name.into(), String::new())
}

fn workloads() -> Vec<Named> {
    let runnable = assay_workloads::builtin().iter().filter(|builtin| builtin.runnable);
    let first = |text: &str| text.lines().next().and_then(|line| line.strip_prefix("--- ")).unwrap_or("").to_owned();
    runnable.map(|builtin| (builtin.name.to_owned(), first(builtin.text))).collect()
}

fn recipes() -> Vec<Named> {
    assay_recipe::shipped().iter().map(|(name, _)| plain(*name)).collect()
}

/// Databases by name. If their file cannot be read, the command itself reports it.
fn databases() -> Vec<Named> {
    let all = Databases::read().unwrap_or_default().all;
    all.into_iter().map(|(name, named)| (name, named.url)).collect()
}

/// Servers that were started here: their names, or the URLs of those that run.
fn servers(urls: bool) -> Vec<Named> {
    let mut all = Vec::new();
    for server in assay_lab::server::all(&assay_products::home()) {
        let (name, url, status) = (server.snapshot().name, server.url("app"), server.status());
        match urls {
            false => all.push((name, format!("{}, {url}", status.name()))),
            true if status == Status::Running => all.push((url, name)),
            true => {}
        }
    }
    all
}

/// Metrics of the load, and of servers.
fn metrics() -> Vec<Named> {
    let load = ["tps", "qps", "p50", "p90", "p95", "p99", "p999", "mean", "max", "service_p99", "lag_p99", "capacity"];
    let server = assay_telemetry::METRICS.iter().map(|metric| plain(format!("server.{}", metric.name)));
    load.into_iter().map(plain).chain(server).collect()
}

fn fronts() -> Vec<Named> {
    assay_products::products().fronts.iter().map(|front| plain(front.name())).collect()
}

fn products() -> Vec<Named> {
    assay_products::products().databases.iter().map(|product| plain(product.name())).collect()
}

/// `postgres:18.6`: what can be downloaded.
fn versions() -> Vec<Named> {
    let of = |product: &&dyn Product| {
        let name = product.name();
        product.catalog().iter().map(move |artifact| plain(format!("{name}:{}", artifact.version))).collect::<Vec<_>>()
    };
    assay_products::products().databases.iter().flat_map(of).collect()
}
