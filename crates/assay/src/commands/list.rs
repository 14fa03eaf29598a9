//! `assay list`: the built-in workloads, and the metrics of reports and recipes.

use std::sync::Arc;

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_run::library;
use assay_run::workload::Workload;
use assay_telemetry::{METRICS, Metric, Reading, Unit};

use crate::command_line::Listed;

/// The commands of most workloads.
const USUAL: &str = "check, cleanup, prepare, prewarm, run, warmup";

/// The commands of the examples.
const USUAL_OF_EXAMPLES: &str = "check, cleanup, prepare, run";

/// Prints name and description of every built-in workload, and its commands if they are not the usual ones; or all
/// metrics.
pub fn run(what: Listed, words: &[String]) -> Result<Exit, Trouble> {
    if what == Listed::Metrics {
        terminal::result(&metrics())?;
        return Ok(Exit::Success);
    }
    let (examples, others): (Vec<_>, Vec<_>) =
        assay_workloads::builtin().iter().filter(|builtin| builtin.runnable).partition(|builtin| builtin.is_example());
    let mut text = described(&others, USUAL, words)?;
    text += &format!("\nExamples, made to be copied and changed (commands: {USUAL_OF_EXAMPLES}):\n\n");
    text += &described(&examples, USUAL_OF_EXAMPLES, words)?;
    text.push_str(&format!("\nCommands, unless listed: {USUAL}.\nA workload's options: assay run NAME --help.\n"));
    terminal::result(&text)?;
    Ok(Exit::Success)
}

/// An entry for each of these workloads, with its commands unless they are `usual`.
fn described(workloads: &[&assay_workloads::Workload], usual: &str, words: &[String]) -> Result<String, Trouble> {
    let mut text = String::new();
    for builtin in workloads {
        let name = builtin.name;
        let program = library::load(name, "list", words, assay_products::EMBEDDED.dialect)?;
        let workload = Workload { name: name.to_owned(), program: Arc::new(program), given: Vec::new() };
        let description = workload.program.description().unwrap_or("no description");
        text.push_str(&format!("{name}\n    {description}\n"));
        let commands = workload.commands().join(", ");
        if commands != usual {
            text.push_str(&format!("    commands: {commands}\n"));
        }
    }
    Ok(text)
}

/// Figures of the load, with their meanings.
const OF_LOAD: [(&str, &str); 12] = [
    ("tps, qps", "successful transactions and statements per second"),
    ("p50, p90, p95, p99, p999, mean, max", "response times, ms"),
    ("service_p50, …, lag_p50, …", "service times and lag of the generator, ms"),
    ("TYPE.tps, TYPE.p50, …", "the same of one transaction type, such as new_order.p99"),
    ("cpu_per_transaction", "CPU time of the generator, ms"),
    ("failed_per_transaction, errors_per_transaction, retries_per_transaction", "per successful transaction"),
    ("COUNTER_per_transaction", "a counter of the workload"),
    ("RATE", "a named rate of the workload, such as tpmC"),
    ("outage", "time without service, ms"),
    ("capacity", "highest rate that keeps the promise of --find-rate"),
    ("per_price", "in recipes: transactions per unit of currency"),
    ("errors.CLASS", "in recipes: number of errors of this class, such as errors.connection"),
];

/// Other readings of the metrics of servers and machines, in recipes.
const READINGS: [(&str, &str); 7] = [
    ("NAME", "a gauge: its mean"),
    ("NAME_per_transaction, NAME_per_s, NAME_total", "a counter: per transaction, per second, in the whole run"),
    ("NAME_last, NAME_max, NAME_growth", "a gauge: at the end, its maximum, from the first to the last reading"),
    ("…_mb_…, …_kb_…", "in place of …_bytes_…: in units of 1,000,000 or 1,000 bytes, such as log_mb_total"),
    ("server.buffer_hit_percent", "pages found in the server's own memory"),
    ("machine.cpu_user_percent", "share of all CPU time; also system, iowait, steal, idle"),
    ("machine.device_busy_percent", "time in which the device had something to do"),
];

/// Versions whose sources are listed.
const VERSIONS: [(&str, &[&str]); 6] = [
    ("PostgreSQL", &["10.0", "12.0", "14.0", "15.0", "16.0", "17.0", "18.0"]),
    ("MySQL", &["5.7.44", "8.0.40", "8.4.3"]),
    ("MariaDB", &["10.6.20", "10.11.10", "11.4.4"]),
    ("MongoDB", &["8.0.0"]),
    ("FerretDB", &["1.24.2"]),
    ("ClickHouse", &["18.16.1"]),
];

/// All metrics that reports, comparisons and recipes know.
fn metrics() -> String {
    let lines = |all: &mut dyn Iterator<Item = (&'static str, &'static str)>| {
        all.map(|(name, meaning)| format!("{name}\n    {meaning}\n")).collect::<String>()
    };
    let derived = assay_report::DERIVED.iter().map(|one| (one.name, one.meaning));
    let mut text = format!("Of the load\n\n{}", lines(&mut OF_LOAD.into_iter()));
    text += &format!("\nOf its seconds, in recipes\n\n{}", lines(&mut derived.into_iter()));
    text += &format!("\nReadings of servers and machines\n\n{}", lines(&mut READINGS.into_iter()));
    let (servers, machines): (Vec<&Metric>, Vec<&Metric>) =
        METRICS.iter().partition(|metric| !sources(metric.name).is_empty());
    text += "\nservers: server.NAME, server2.NAME for the second\n\n";
    for metric in servers {
        text += &format!("{}\n    {}\n", metric.name, kind(metric));
        sources(metric.name).iter().for_each(|source| text += &format!("    {source}\n"));
    }
    text += "\nprocesses (server.NAME) and machines (machine.NAME), from the kernel; poolers, from themselves\n\n";
    machines.iter().for_each(|metric| text += &format!("{}\n    {}\n", metric.name, kind(metric)));
    text
}

fn kind(metric: &Metric) -> String {
    let reading = match metric.reading {
        Reading::Counter => "counter",
        Reading::Gauge => "gauge",
    };
    let unit = match metric.unit {
        Unit::Count => "number",
        Unit::Bytes => "bytes",
        Unit::Us => "microseconds",
    };
    format!("{reading}, {unit}")
}

/// `PostgreSQL 10, 12: pg_stat_…`: a line for each source of a product.
fn sources(metric: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for (product, versions) in VERSIONS {
        let of_product = |family: &&assay_products::Family| family.questions.products.contains(&product);
        let Some(family) = assay_products::FAMILIES.iter().find(of_product) else { continue };
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for version in versions {
            let asked = (family.questions.server)(product, version);
            let depending = asked.of_extensions.iter().chain(&asked.without_extensions).map(|(_, question)| question);
            let questions = asked.questions.iter().chain(depending);
            let questions = questions.chain(asked.switched.iter().map(|switched| &switched.question));
            let own = questions.flat_map(|question| &question.asked).find(|asked| asked.metric == metric);
            let Some(source) = own.map(|asked| asked.source.to_owned()) else { continue };
            let major = version.rsplit_once('.').map_or(*version, |(major, _)| major).to_owned();
            match found.iter_mut().find(|(known, _)| *known == source) {
                Some((_, known)) => known.push(major),
                None => found.push((source, vec![major])),
            }
        }
        for (source, known) in found {
            let of = if known.len() == versions.len() { String::new() } else { format!(" {}", known.join(", ")) };
            lines.push(format!("{product}{of}: {source}"));
        }
    }
    lines
}
