//! Whether what a recipe shows can exist, before anything is measured.
//!
//! Most metrics have fixed names. Counters, rates and types of transactions are named by the script of a workload, so
//! their names stand in its text; where a script puts a name together, that is a warning only.

use std::collections::BTreeSet;

use assay_process::diagnostics::{Trouble, nearest};
use assay_recipe::{Action, Recipe, Show};
use assay_report::{DERIVED, FIXED_METRICS, meant_metric};
use assay_run::library;
use assay_spec::ChildWork;
use assay_telemetry::METRICS;

use crate::experiment::WrongKey;
use crate::setup::PlannedCell;

/// Parts of a trial that are timed without a step.
const PARTS: [&str; 14] = [
    "binaries",
    "data",
    "initialize",
    "load",
    "start",
    "replicas",
    "pgbouncer",
    "haproxy",
    "warm-up",
    "run",
    "stop",
    "per_price",
    "capacity",
    "seconds",
];
/// Endings of readings of servers and machines.
const READINGS: [&str; 7] = ["_per_transaction", "_per_s", "_total", "_last", "_max", "_growth", "_percent"];
/// What is known of each type of transaction.
const OF_TYPES: [&str; 8] = ["tps", "p50", "p90", "p95", "p99", "p999", "mean", "max"];

const PER_TRANSACTION: &str = "_per_transaction";

/// What only charts over time show.
const OVER_TIME: [&str; 5] = ["errors", "retries", "failed", "backlog", "cpus_used"];

/// What a name is, as far as that can be known.
enum Named {
    Known,
    /// It may be put together by a script.
    Perhaps,
    /// No metric has this name, but one has a similar name.
    Like(String),
}

/// Refuses metrics that no run has, and returns warnings of those that may be missing.
pub fn check_shows(recipe: &Recipe, planned: &[PlannedCell]) -> Result<Vec<String>, WrongKey> {
    let names = Names::of(recipe, planned);
    let mut warnings = Vec::new();
    let mut check = |what: String, key: Vec<String>, name: &str| match names.find(name) {
        Named::Known => Ok(()),
        Named::Perhaps => {
            warnings
                .push(format!("{what}: {name} is neither a step nor a metric of every run; see `assay list metrics`"));
            Ok(())
        }
        Named::Like(near) => {
            let trouble = Trouble::usage(format!("{what}: no metric {name}")).hint(format!("did you mean {near}?"));
            Err(WrongKey { key, trouble })
        }
    };
    for (show, number) in recipe.shows.iter().zip(1..) {
        let values: Vec<&str> = match show {
            Show::Table(table) => vec![table.value.as_str()],
            Show::Chart(_, chart) => {
                let values = chart.value.0.iter().flat_map(|value| value.split(',')).map(str::trim);
                values.filter(|value| !OVER_TIME.contains(value)).collect()
            }
        };
        for value in values {
            check(format!("show {number}"), vec!["show".to_owned(), number.to_string()], value)?;
        }
    }
    for (step, number) in recipe.steps.iter().zip(1..) {
        if let Action::Run { metric: Some(metric), .. } = &step.action {
            check(format!("step {}", step.name), vec!["step".to_owned(), number.to_string()], metric)?;
        }
    }
    Ok(warnings)
}

/// Names that may be shown.
struct Names {
    /// Steps, and parts of a trial.
    steps: BTreeSet<String>,
    /// The texts of all scripts.
    scripts: Vec<String>,
    /// Whether a phase has a load in its background.
    has_background: bool,
    /// Whether files are measured, whose types have names of their own.
    has_files: bool,
}

impl Names {
    fn of(recipe: &Recipe, planned: &[PlannedCell]) -> Names {
        let mut steps: BTreeSet<String> = PARTS.map(str::to_owned).into();
        let mut workloads: BTreeSet<String> = BTreeSet::new();
        for step in &recipe.steps {
            steps.extend([step.name.clone(), format!("{} stop", step.name), format!("{} start", step.name)]);
            for line in step.beside.iter().chain(match &step.action {
                Action::Run { line, .. } => Some(line),
                _ => None,
            }) {
                workloads.extend(line.split_whitespace().next().map(str::to_owned));
            }
        }
        let mut has_files = false;
        for planned in planned {
            match &planned.runs.measured.work {
                ChildWork::Run(spec) => _ = workloads.insert(spec.workload.name.clone()),
                ChildWork::Io(_) => has_files = true,
                ChildWork::Sql(_) => {}
            }
        }
        let texts = workloads.iter().flat_map(|name| library::texts(name));
        let scripts = texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect();
        let has_background = recipe.steps.iter().any(|step| step.beside.is_some());
        Names { steps, scripts, has_background, has_files }
    }

    fn is_in_a_script(&self, name: &str) -> bool {
        let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
        let is_whole = |text: &str, at: usize| {
            !text[..at].ends_with(is_of_name) && !text[at + name.len()..].starts_with(is_of_name)
        };
        let is_in = |text: &String| text.match_indices(name).any(|(at, _)| is_whole(text, at));
        !name.is_empty() && self.scripts.iter().any(is_in)
    }

    fn find(&self, name: &str) -> Named {
        let fixed = || FIXED_METRICS.iter().copied().chain(DERIVED.iter().map(|one| one.name));
        if let Some(own) = name.strip_prefix("beside.").filter(|_| self.has_background) {
            return match FIXED_METRICS.contains(&own) {
                true => Named::Known,
                false => Named::Perhaps,
            };
        }
        if self.steps.contains(name) || fixed().any(|one| one == name) || name.starts_with("errors.") {
            return Named::Known;
        }
        let like = |near: Option<&str>| near.map_or(Named::Perhaps, |near| Named::Like(near.to_owned()));
        match name.split_once('.') {
            Some((scope, reading)) if is_scope(scope) => match is_reading(reading) {
                true => Named::Known,
                false => {
                    let near = nearest(stem(reading), METRICS.iter().map(|metric| metric.name));
                    let near = near.map(|near| format!("{scope}.{near}"));
                    like(near.as_deref().or_else(|| meant_metric(name)))
                }
            },
            Some((of, metric)) => {
                let is_of_type = OF_TYPES.contains(&metric) || fixed().any(|one| one == metric);
                match (is_of_type, self.is_in_a_script(of) || self.has_files) {
                    (true, true) => Named::Known,
                    (true, false) => Named::Perhaps,
                    (false, _) => like(nearest(metric, OF_TYPES).map(|near| format!("{of}.{near}")).as_deref()),
                }
            }
            // A counter: the ending makes all of them alike.
            None if name.ends_with(PER_TRANSACTION) => {
                let own = name.trim_end_matches(PER_TRANSACTION);
                let known = FIXED_METRICS.iter().filter_map(|one| one.strip_suffix(PER_TRANSACTION));
                match self.is_in_a_script(own) {
                    true => Named::Known,
                    false => like(nearest(own, known).map(|near| format!("{near}{PER_TRANSACTION}")).as_deref()),
                }
            }
            None if self.is_in_a_script(name) => Named::Known,
            None => {
                let near: Option<&str> = nearest(name, fixed());
                let near = near.or_else(|| nearest(name, self.steps.iter().map(String::as_str)));
                like(near.or_else(|| meant_metric(name)))
            }
        }
    }
}

/// `server`, `server2`, `machine`.
fn is_scope(name: &str) -> bool {
    name == "machine" || name.strip_prefix("server").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A reading without the ending that says how it is taken.
fn stem(reading: &str) -> &str {
    READINGS.iter().find_map(|ending| reading.strip_suffix(ending)).unwrap_or(reading)
}

fn is_reading(reading: &str) -> bool {
    let stem = stem(reading);
    let bytes = ["_mb", "_kb"].iter().find_map(|short| stem.strip_suffix(short)).map(|stem| format!("{stem}_bytes"));
    let is_metric = |name: &str| METRICS.iter().any(|metric| metric.name == name);
    let is_share =
        reading.ends_with("_percent") && (stem.starts_with("cpu_") || ["buffer_hit", "device_busy"].contains(&stem));
    is_share || is_metric(reading) || is_metric(stem) || bytes.is_some_and(|name| is_metric(&name))
}
