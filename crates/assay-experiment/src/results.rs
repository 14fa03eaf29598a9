//! What an experiment came to: its journal and records, as the report shows them.

use std::path::PathBuf;

use assay_process::diagnostics::{Trouble, nearest};
use assay_recipe::{Part, PhaseResult, Recipe, Show, TrialResult};
use assay_record::{Record, TrialId};
use assay_report::{
    ChartAsked, ChartKind, Experiment, ExperimentCell, ExperimentTrial, Factor, FailedTrial, Findings, LabResults,
    Level, MetricUnit, NoChart, NoWindow, OfTrials, PivotAsked, ShowAsked, Shown,
};
use assay_spec::values;

use crate::folder::Folder;
use crate::unpack;

/// Width for tables on a terminal.
pub const WIDTH: usize = 80;

/// The part for a terminal.
pub fn text(folder: &Folder) -> Result<String, Trouble> {
    // Without any measurement, tables would be empty.
    let results = if folder.progress.measured() > 0 { results(folder)? } else { without_measurements(folder) };
    Ok(results.text(WIDTH))
}

/// The page: the results, then the records by cell.
pub fn page(folder: &Folder) -> Result<String, Trouble> {
    let recipe = &folder.recipe;
    let Measured { experiment, .. } = trials(folder, recipe.part.as_ref())?;
    let mut cells: Vec<(String, Vec<(String, Findings)>)> =
        names_of_cells(recipe).into_iter().map(|name| (name, Vec::new())).collect();
    for trial in experiment.trials {
        let round = trial.round + recipe.trials.drop as usize + 1;
        cells[trial.cell].1.push((format!("round {round}"), trial.findings));
    }
    Ok(results(folder)?.page(cells))
}

/// Names of an experiment's cells: those of the recipe, each with every phase.
pub(crate) fn names_of_cells(recipe: &Recipe) -> Vec<String> {
    let phases: Vec<&str> = recipe.phases().map(|step| step.name.as_str()).collect();
    let of_cell = |cell: &assay_recipe::Cell| match &phases[..] {
        [] => vec![cell.name.clone()],
        phases => phases.iter().map(|phase| format!("{} {phase}", cell.name)).collect(),
    };
    recipe.cells.iter().flat_map(of_cell).collect()
}

/// What the experiment came to.
pub fn results(folder: &Folder) -> Result<LabResults<'_>, Trouble> {
    let (shown, left_out, experiment) = shown(folder)?;
    Ok(LabResults { shown, left_out, experiment: Some(experiment), ..without_measurements(folder) })
}

pub(crate) fn without_measurements(folder: &Folder) -> LabResults<'_> {
    let (recipe, progress) = (&folder.recipe, &folder.progress);
    let failures = progress.failures().map(|(key, cause, details)| FailedTrial {
        round: key.round,
        cell: &recipe.cells[key.cell].name,
        cause,
        details,
    });
    LabResults {
        title: &recipe.title,
        question: &recipe.question,
        look_at: &recipe.look_at,
        measured: progress.measured(),
        planned: recipe.cells.len() * progress.rounds(recipe.trials.count) as usize,
        seed: recipe.trials.seed,
        hash: &recipe.hash,
        failures: failures.collect(),
        disturbed: (progress.spoiled().count(), progress.repeated.len()),
        ..LabResults::default()
    }
}

/// What the recipe wants to show, as far as it was measured, with the whole experiment.
fn shown(folder: &Folder) -> Result<(Vec<Shown>, Vec<String>, Experiment), Trouble> {
    shown_of(folder.recipe.part.as_ref(), asked(folder), &|part| experiment_of(folder, part))
}

/// Loads an experiment with a part of each run, and says how many trials have no such part.
pub(crate) type LoadPart<'a> = &'a dyn Fn(Option<&Part>) -> Result<(Experiment, usize), Trouble>;

/// Of an experiment, which `experiment_of` loads with a part of each run, and the number of trials without that part.
/// `usual`: the part where none is asked for.
pub(crate) fn shown_of(
    usual: Option<&Part>,
    asked: Vec<(Option<Part>, ShowAsked)>,
    experiment_of: LoadPart<'_>,
) -> Result<(Vec<Shown>, Vec<String>, Experiment), Trouble> {
    let (mut measured, mut left_out) = (Vec::new(), Vec::new());
    // By the part of the time; loading the records takes longer than finding one of a few.
    let mut experiments: Vec<(Option<Part>, Experiment)> = Vec::new();
    let mut unfit: Vec<(Part, String)> = Vec::new();
    for part in [usual.cloned()].into_iter().chain(asked.iter().map(|(own, _)| own.clone()).filter(Option::is_some)) {
        let is_tried = unfit.iter().any(|(known, _)| Some(known) == part.as_ref());
        if is_tried || experiments.iter().any(|(known, _)| *known == part) {
            continue;
        }
        match experiment_of(part.as_ref()) {
            Ok((experiment, 0)) => experiments.push((part, experiment)),
            Ok((experiment, unsteady)) => {
                let all = unsteady + experiment.trials.len();
                left_out.push(format!(
                    "{unsteady} of {all} trials were not steady, or were too short to tell: their steady part is not shown."
                ));
                experiments.push((part, experiment));
            }
            Err(trouble) => match part {
                Some(part) if usual != Some(&part) => unfit.push((part, trouble.cause)),
                _ => return Err(trouble),
            },
        }
    }
    let of = |own: &Option<Part>| {
        let found = experiments.iter().find(|(known, _)| own.is_some() && known == own);
        found.map_or(&experiments[0].1, |(_, experiment)| experiment)
    };
    for (own, asked) in &asked {
        if let Some((_, cause)) = unfit.iter().find(|(known, _)| own.as_ref() == Some(known)) {
            left_out.push(format!("not shown: {cause}"));
            continue;
        }
        let experiment = of(own);
        match assay_report::shown(experiment, std::slice::from_ref(asked)) {
            Ok(_) => measured.push((experiment, asked)),
            Err(NoChart::Unfit(words)) => return Err(unknown(NoChart::Unfit(words))),
            Err(NoChart::Empty) => left_out.push("not measured, so not shown: a chart of the recipe".to_owned()),
            Err(NoChart::Unknown(error)) => {
                let reasons = experiment.why_absent(&error.name);
                let near = assay_report::meant_metric(&error.name).map(str::to_owned);
                let near = near.or_else(|| nearest(&error.name, error.known.split(", ")).map(str::to_owned));
                let words = match (reasons.is_empty(), near) {
                    (false, _) => format!(": {}", reasons.join("; ")),
                    (true, Some(near)) => format!(" (there is {near}; see `assay list metrics`)"),
                    (true, None) => " (see `assay list metrics`)".to_owned(),
                };
                left_out.push(format!("not measured, so not shown: {}{words}", error.name));
            }
        }
    }
    let shown = assay_report::shown_of(measured).map_err(unknown)?;
    Ok((shown, left_out, experiments.swap_remove(0).1))
}

/// Each with the last part of the time that is its own.
pub(crate) fn asked(folder: &Folder) -> Vec<(Option<Part>, ShowAsked)> {
    let recipe = &folder.recipe;
    if !recipe.shows.is_empty() {
        return recipe.shows.iter().map(|show| (show.part(), one_asked(show))).collect();
    }
    // A recipe that shows nothing gets the most suitable table.
    let first = recipe.factors.first();
    if recipe.phases().next().is_some() {
        let table = PivotAsked {
            rows: "phase".to_owned(),
            columns: first.map(|factor| factor.name.clone()),
            ratio_to: first.map(|factor| factor.levels[0].name.clone()),
            ..usual_table()
        };
        return vec![(None, ShowAsked::Table(table))];
    }
    let table = ShowAsked::Table(PivotAsked {
        rows: first.map_or("sessions".to_owned(), |factor| factor.name.clone()),
        columns: recipe.factors.get(1).map(|factor| factor.name.clone()),
        ratio_to: recipe.factors.get(1).or(first).map(|factor| factor.levels[0].name.clone()),
        ..usual_table()
    });
    vec![(None, table)]
}

/// Throughput by sessions.
fn usual_table() -> PivotAsked {
    PivotAsked {
        rows: "sessions".to_owned(),
        only: Vec::new(),
        columns: None,
        value: "tps".to_owned(),
        ratio_to: None,
        of: OfTrials::All,
        best_of: None,
        fault_above: None,
    }
}

fn one_asked(show: &Show) -> ShowAsked {
    match show {
        Show::Table(table) => ShowAsked::Table(PivotAsked {
            rows: table.rows.clone(),
            only: table.only.clone(),
            columns: table.columns.clone(),
            value: table.value.clone(),
            ratio_to: table.ratio_to.clone(),
            of: table.of.as_deref().and_then(OfTrials::of_name).unwrap_or_default(),
            best_of: table.best_of.clone(),
            fault_above: table.fault_above,
        }),
        Show::Chart(kind, chart) => ShowAsked::Chart(ChartAsked {
            kind: ChartKind::of_name(kind).expect("a test compares the names of recipes and reports"),
            x: chart.x.clone(),
            color: chart.color.clone(),
            facet: chart.facet.clone(),
            facet_rows: chart.facet_rows.clone(),
            own_scales: chart.own_scales,
            values: match &chart.value.0[..] {
                [] => vec!["tps".to_owned()],
                values => {
                    values.iter().flat_map(|value| value.split(',')).map(|value| value.trim().to_owned()).collect()
                }
            },
            ratio_to: chart.ratio_to.clone(),
            references: chart
                .reference
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value.0.parse().ok()?)))
                .collect(),
            best_of: chart.best_of.clone(),
            whole_run: chart.whole_run,
        }),
    }
}

/// Everything measured so far, by case where statements are timed. `part`: only this part of each run.
pub fn experiment(folder: &Folder, part: Option<&Part>) -> Result<Experiment, Trouble> {
    experiment_of(folder, part).map(|(experiment, _)| experiment)
}

/// With the number of trials that have no such part.
pub(crate) fn experiment_of(folder: &Folder, part: Option<&Part>) -> Result<(Experiment, usize), Trouble> {
    let Measured { experiment, records, unsteady } = trials(folder, part)?;
    let mut names: Vec<String> = Vec::new();
    for case in folder.recipe.cells.iter().flat_map(|cell| &cell.setup.run.case) {
        if !names.contains(&case.name) {
            names.push(case.name.clone());
        }
    }
    Ok((if names.is_empty() { experiment } else { by_case(experiment, &records, names) }, unsteady))
}

/// Records of measured trials, in the order of the journal.
pub(crate) fn records(folder: &Folder) -> impl Iterator<Item = Result<Record, Trouble>> {
    let paths = folder.progress.outcomes.values().filter_map(|outcome| match outcome {
        TrialResult::Done { record, .. } => Some(unpack::below(record)),
        _ => None,
    });
    paths.flatten().map(move |inside| {
        Record::read(&folder.path.join(inside)).map_err(|error| Trouble::environment(error.to_string()))
    })
}

/// The trials measured so far.
pub(crate) struct Measured {
    pub(crate) experiment: Experiment,
    /// Their records, in the same order.
    records: Vec<Record>,
    /// Trials that are left out because they have no steady part.
    unsteady: usize,
}

pub(crate) fn trials(folder: &Folder, part: Option<&Part>) -> Result<Measured, Trouble> {
    let recipe = &folder.recipe;
    let (mut trials, mut records, mut known) = (Vec::new(), Vec::new(), Vec::<(String, TrialId)>::new());
    let mut unsteady = 0;
    let phases: Vec<&str> = recipe.phases().map(|step| step.name.as_str()).collect();
    for (key, outcome) in &folder.progress.outcomes {
        let TrialResult::Done { record, parts, values, phases: measured, .. } = outcome else { continue };
        if key.round <= recipe.trials.drop {
            continue;
        }
        let read = |inside: &str| -> Result<(PathBuf, Record), Trouble> {
            // A bundle may come from anybody.
            let Some(below) = unpack::below(inside) else {
                return Err(Trouble::usage(format!("the journal names a record outside of the experiment: {inside}")));
            };
            let path = folder.path.join(below);
            let record = Record::read(&path).map_err(|error| Trouble::environment(error.to_string()))?;
            Ok((path, record))
        };
        let round = (key.round - recipe.trials.drop) as usize - 1;
        // One load, or one of each phase.
        let runs: Vec<(usize, &str, Option<&PhaseResult>)> = match &measured[..] {
            [] => vec![(key.cell, record.as_str(), None)],
            all => {
                let runs = all.iter().filter_map(|one| {
                    let phase = phases.iter().position(|name| *name == one.name)?;
                    let inside = one.record.as_ref().unwrap_or(record);
                    Some((key.cell * phases.len() + phase, inside.as_str(), Some(one)))
                });
                runs.collect()
            }
        };
        for (cell, inside, phase) in runs {
            let (path, record) = read(inside)?;
            let has_load = phase.is_none_or(|phase| phase.record.is_some());
            // A copy in place of a lost record would be a measurement that nobody made.
            if let Some((other, _)) = known.iter().find(|(_, known)| has_load && *known == record.trial()) {
                return Err(Trouble::environment(format!("{} holds the same trial as {other}", path.display()))
                    .hint("restore the record, or repeat the experiment in another folder"));
            }
            let findings = match part {
                _ if !has_load => {
                    let mut findings = assay_report::findings(&record);
                    findings.stages.clear();
                    findings
                }
                None => assay_report::findings(&record),
                Some(Part::Last(last)) => within(&record, last)?,
                Some(Part::Steady) => {
                    match assay_report::findings_within(&record, assay_report::Window::Steady { to_ns: None }) {
                        Ok(findings) => findings,
                        Err(NoWindow::NotSteady) => {
                            unsteady += 1;
                            continue;
                        }
                        Err(error) => return Err(Trouble::usage(format!("from = steady: {error}"))),
                    }
                }
            };
            let (mut parts, mut values) = (parts.clone(), values.clone());
            if let Some(phase) = phase {
                parts.push(("seconds".to_owned(), phase.seconds));
                values.extend(phase.value.map(|value| (phase.name.clone(), value)));
                if let Some(beside) = &phase.beside {
                    let findings = assay_report::findings(&read(beside)?.1);
                    for name in assay_report::FIXED_METRICS {
                        match assay_report::metric_value(&findings, name) {
                            Some((ns, MetricUnit::Ns)) => parts.push((format!("beside.{name}"), ns / 1e9)),
                            Some((value, _)) => values.push((format!("beside.{name}"), value)),
                            None => {}
                        }
                    }
                }
            }
            if has_load {
                known.push((path.display().to_string(), record.trial()));
            }
            trials.push(ExperimentTrial { cell, round, findings, parts, values });
            records.push(record);
        }
    }
    let asked: Vec<ShowAsked> = asked(folder).into_iter().map(|(_, asked)| asked).collect();
    as_one_step(&mut trials, &asked);
    let failed = |cell: usize| {
        let own = folder.progress.failures().filter(|(key, ..)| key.cell == cell && key.round > recipe.trials.drop);
        own.count() as u32
    };
    let level = |level: &assay_recipe::Level| {
        Level::new(level.name.clone(), level.sets.iter().map(|(path, _)| path.clone()).collect())
    };
    let factor = |factor: &assay_recipe::Factor| Factor {
        name: factor.name.clone(),
        levels: factor.levels.iter().map(level).collect(),
    };
    let cell = |(number, cell): (usize, &assay_recipe::Cell)| {
        let (failed, phases) = (failed(number), phases.len());
        let of_phase = move |phase: Option<usize>| ExperimentCell {
            levels: cell.levels.iter().copied().chain(phase).collect(),
            price_per_hour: cell.price_per_hour,
            failed,
        };
        let all: Vec<Option<usize>> = if phases == 0 { vec![None] } else { (0..phases).map(Some).collect() };
        all.into_iter().map(of_phase).collect::<Vec<_>>()
    };
    let planned = (recipe.trials.count - recipe.trials.drop) as usize;
    let rounds = trials.iter().map(|trial| trial.round + 1).max().unwrap_or(1).max(planned);
    let levels = phases.iter().map(|name| Level::new((*name).to_owned(), Vec::new())).collect();
    let of_phases = (!phases.is_empty()).then(|| Factor { name: "phase".to_owned(), levels });
    let factors = recipe.factors.iter().map(factor).chain(of_phases).collect();
    let cells = recipe.cells.iter().enumerate().flat_map(cell).collect();
    let experiment = Experiment::new(factors, cells, trials, rounds);
    Ok(Measured { experiment, records, unsteady })
}

/// Where no run is a ladder and the number of sessions is not an axis, it is part of a cell like any other, and not
/// something to show cells apart by.
fn as_one_step(trials: &mut [ExperimentTrial], asked: &[ShowAsked]) {
    let is_axis = |name: &Option<String>| name.as_deref() == Some("sessions");
    let by_sessions = asked.iter().any(|asked| match asked {
        ShowAsked::Table(table) => table.rows == "sessions" || is_axis(&table.columns),
        ShowAsked::Chart(chart) => {
            [&chart.x, &chart.color, &chart.facet].into_iter().any(is_axis)
                || (chart.kind.is_by_sessions() && chart.x.is_none())
        }
    });
    let alone = |trial: &ExperimentTrial| trial.findings.stages.len() <= 1 && trial.findings.capacity.is_none();
    if by_sessions || !trials.iter().all(alone) {
        return;
    }
    let mut stages = trials.iter().flat_map(|trial| &trial.findings.stages);
    let Some(sessions) = stages.next().map(|stage| stage.sessions) else { return };
    trials.iter_mut().flat_map(|trial| &mut trial.findings.stages).for_each(|stage| stage.sessions = sessions);
}

/// The last part of each run.
fn within(record: &Record, last: &str) -> Result<Findings, Trouble> {
    let time = values::duration(last).map_err(|reason| Trouble::usage(format!("last = {last}: {reason}")))?;
    assay_report::findings_within(record, assay_report::Window::Last { ns: time.0 })
        .map_err(|error| Trouble::usage(format!("last = {last}: {error}")))
}

/// Timed statements are an additional factor: a trial's results are split by statement.
fn by_case(whole: Experiment, records: &[Record], names: Vec<String>) -> Experiment {
    let count = names.len();
    let cells = whole.cells.iter().flat_map(|cell| {
        (0..count).map(|case| {
            let levels = cell.levels.iter().copied().chain([case]).collect();
            ExperimentCell { levels, ..cell.clone() }
        })
    });
    let trials = whole.trials.iter().zip(records).flat_map(|(trial, record)| {
        names.iter().enumerate().filter_map(move |(case, name)| {
            let findings = assay_report::findings(&of_case(record, name)?);
            Some(ExperimentTrial { cell: trial.cell * count + case, findings, ..trial.clone() })
        })
    });
    let (cells, trials) = (cells.collect(), trials.collect());
    let levels = names.into_iter().map(|name| Level::new(name, Vec::new())).collect();
    let factors = whole.factors.into_iter().chain([Factor { name: "case".to_owned(), levels }]).collect();
    Experiment::new(factors, cells, trials, whole.rounds)
}

/// The part of a record about one case; `None`: it was not timed.
fn of_case(record: &Record, name: &str) -> Option<Record> {
    let mut own = record.clone();
    own.types = vec![name.to_owned()];
    if let Some(cases) = &mut own.cases {
        cases.cases.retain(|case| case.name == name);
    }
    for stage in &mut own.stages {
        stage.total.transactions.retain(|one| one.name == name);
        let one = stage.total.transactions.first()?;
        stage.measured_ns = u64::try_from(one.response.sum_ns).unwrap_or(u64::MAX);
        stage.total.due = one.count + one.failed;
    }
    Some(own)
}

fn unknown(error: NoChart) -> Trouble {
    Trouble::usage(format!("cannot show a result of the recipe: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_know_the_charts_that_reports_draw() {
        let shows: String = ChartKind::ALL.iter().map(|kind| format!("[[show]]\n{} = {{}}\n", kind.name())).collect();
        let text = format!("title = 't'\n[run]\nio = '--size 1M'\n{shows}");
        let recipe = assay_recipe::Recipe::read(&text, None, &[]).unwrap();
        let kinds: Vec<ChartKind> = recipe.shows.iter().map(one_asked).map(kind_of).collect();
        assert_eq!(kinds, ChartKind::ALL);
    }

    fn kind_of(asked: ShowAsked) -> ChartKind {
        match asked {
            ShowAsked::Chart(chart) => chart.kind,
            ShowAsked::Table(table) => panic!("{table:?}"),
        }
    }
}
