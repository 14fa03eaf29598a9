//! `assay top`: watches a run in progress, a record or a server.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_process::underway::{self, Underway};
use assay_run::plan;
use assay_run::telemetry::{Beside, HostUrl};
use assay_run::top::{Watched, watch};
use assay_seam::ConnectOptions;
use assay_top::View;

use crate::command_line::TopOptions;
use crate::databases;

/// Shows it until the user quits.
pub fn run(options: &TopOptions) -> Result<Exit, Trouble> {
    if !terminal::stderr_is_terminal() {
        return Err(Trouble::usage("assay top needs a terminal on stderr")
            .hint("`assay show RECORD` prints the report of a record anywhere"));
    }
    let target = match &options.db {
        Some(name) => Some(plan::target(&databases::resolve(name)?, &ConnectOptions::default())?),
        None => None,
    };
    let (mut watched, run) = match (&options.record, &target) {
        (Some(path), _) => {
            let path = record_at(path)?;
            let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
            let run = underway::all().into_iter().find(|run| run.record.as_deref() == Some(&*absolute));
            (Watched::record(&path, run.clone())?, run)
        }
        (None, Some(target)) if options.run.is_none() => {
            let poolers = options.pooler.as_deref().map(plan::beside).transpose()?;
            let host = options.host_metrics.as_deref().map(str::parse::<HostUrl>).transpose();
            let host = host.map_err(|reason| Trouble::usage(format!("--host-metrics: {reason}")))?;
            let beside = Beside {
                poolers: poolers.into_iter().collect(),
                hosts: host.into_iter().collect(),
                ..Beside::default()
            };
            (Watched::server(target.clone(), beside, false)?, None)
        }
        (None, _) => {
            let run = chosen(options.run).map_err(|trouble| match options.run {
                None if underway::all().is_empty() => trouble.hint("name a record to replay it, or a server with --db"),
                _ => trouble,
            })?;
            let Some(path) = &run.record else {
                return Err(Trouble::usage(format!(
                    "the run of process {} writes no record, so nothing can be read from it",
                    run.process
                ))
                .hint("start it without --no-record, or with --top"));
            };
            (Watched::record(path, Some(run.clone()))?, Some(run))
        }
    };
    if let (Some(target), true) = (target, options.record.is_some() || options.run.is_some()) {
        watched.ask(target);
    }
    let view = match watched.is_live() {
        true => View { can_note: run.is_some(), ..View::default() },
        false => {
            let from = options.from.map_or(0, |from| from.0);
            View::replay(watched.length(), from, options.speed.unwrap_or(1.0))
        }
    };
    let color = terminal::stderr_color() && !options.no_color;
    watch(watched, view, color, &AtomicBool::new(false))?;
    Ok(Exit::Success)
}

/// The run of a process, or the only one in progress.
pub(super) fn chosen(process: Option<u32>) -> Result<Underway, Trouble> {
    let mut runs = underway::all();
    if let Some(process) = process {
        let found = runs.iter().position(|run| run.process == process);
        return match found {
            Some(found) => Ok(runs.swap_remove(found)),
            None => Err(Trouble::usage(format!("no run of process {process} is in progress")).detail(listed(&runs))),
        };
    }
    match runs.len() {
        0 => Err(Trouble::usage("no run of this user is in progress on this machine")),
        1 => Ok(runs.remove(0)),
        number => {
            Err(Trouble::usage(format!("{number} runs are in progress: choose one with --run PID"))
                .detail(listed(&runs)))
        }
    }
}

/// A line per run.
fn listed(runs: &[Underway]) -> String {
    let line = |run: &Underway| {
        let record = run.record.as_ref().map_or_else(|| "no record".to_owned(), |path| path.display().to_string());
        format!(
            "--run {}: {}, {}, started {}, {record}",
            run.process,
            run.workload,
            run.targets.join(", "),
            run.started
        )
    };
    runs.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A record, or the latest one below a folder.
fn record_at(path: &Path) -> Result<PathBuf, Trouble> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let runs = underway::all().into_iter().filter_map(|run| run.record);
    let folder = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Some(record) = runs.into_iter().find(|record| record.starts_with(&folder)) {
        return Ok(record);
    }
    let mut latest: Option<(std::time::SystemTime, PathBuf)> = None;
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if kind.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(".json.zst")
                && let Ok(changed) = entry.metadata().and_then(|found| found.modified())
                && latest.as_ref().is_none_or(|(time, _)| *time < changed)
            {
                latest = Some((changed, path));
            }
        }
    }
    latest.map(|(_, path)| path).ok_or_else(|| Trouble::usage(format!("there is no record below {}", path.display())))
}
