//! Experiments with the same factors from several machines, shown as one: what tells them apart is a factor more.

use assay_process::diagnostics::Trouble;
use assay_recipe::{Part, differences};
use assay_record::Record;
use assay_report::{
    ChartKind, Experiment, ExperimentCell, ExperimentTrial, Factor, Findings, LabResults, Level, ShowAsked,
};

use crate::folder::Folder;
use crate::results::{asked, experiment_of, names_of_cells, records, shown_of, trials, without_measurements};

/// At least two experiments.
pub struct Merged {
    folders: Vec<Folder>,
    /// What tells them apart, such as `kernel`.
    factor: String,
    /// Its level for each of them, all different.
    levels: Vec<String>,
    /// What to look at, and everything else that differs.
    look_at: String,
}

/// Paths of a recipe that may differ: they name the machine, or do not matter to results.
const MAY_DIFFER: [&str; 8] =
    ["run.options.tag", "grid.price", "title", "question", "look_at", "needs", "show", "trials.count"];

impl Merged {
    /// `names`: of the folders or bundles, for experiments that nothing else tells apart.
    pub fn of(folders: Vec<Folder>, names: Vec<String>) -> Result<Merged, Trouble> {
        let factors = |folder: &Folder| folder.recipe.factors.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        let mut first: Vec<Record> = Vec::new();
        for (folder, name) in folders.iter().zip(&names) {
            if factors(folder) != factors(&folders[0]) {
                let cause = format!("{} and {name} are experiments with different factors", names[0]);
                let words = |folder: &Folder| factors(folder).join(", ");
                return Err(Trouble::usage(cause).detail(format!("{}; {}", words(&folders[0]), words(folder))));
            }
            let record =
                records(folder).next().ok_or_else(|| Trouble::usage(format!("{name}: nothing is measured yet")));
            first.push(record??);
        }
        let (factor, levels) = told_apart_by(&first).unwrap_or_else(|| ("experiment".to_owned(), distinct(names)));
        let mut differ: Vec<String> = Vec::new();
        for (name, value) in FACTS {
            let values: Vec<&str> = first.iter().map(value).collect();
            if name != factor && values.iter().any(|one| *one != values[0]) {
                differ.push(format!("{name}: {}", values.join(" / ")));
            }
        }
        for folder in &folders[1..] {
            for (path, one, other) in differences(&folders[0].recipe.document, &folder.recipe.document) {
                let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
                let words = format!("{path}: {} / {}", shown(&one), shown(&other));
                if !MAY_DIFFER.iter().any(|known| path.starts_with(known)) && !differ.contains(&words) {
                    differ.push(words);
                }
            }
        }
        let look_at = match differ.is_empty() {
            true => format!("the ratios by {factor}. Nothing else that is recorded differs"),
            false => format!("the ratios by {factor}. These differ, too: {}", differ.join("; ")),
        };
        Ok(Merged { folders, factor, levels, look_at })
    }

    /// All of them, with the factor more.
    pub fn experiment(&self, part: Option<&Part>) -> Result<Experiment, Trouble> {
        self.experiment_of(part).map(|(experiment, _)| experiment)
    }

    fn experiment_of(&self, part: Option<&Part>) -> Result<(Experiment, usize), Trouble> {
        let mut unsteady = 0;
        let mut all = Vec::new();
        for folder in &self.folders {
            let (experiment, left_out) = experiment_of(folder, part)?;
            unsteady += left_out;
            all.push(experiment);
        }
        Ok((joined(all, &self.factor, &self.levels), unsteady))
    }

    /// What they came to.
    pub fn results(&self) -> Result<LabResults<'_>, Trouble> {
        let usual = self.folders[0].recipe.part.as_ref();
        let (shown, left_out, experiment) = shown_of(usual, self.asked(), &|part| self.experiment_of(part))?;
        let each: Vec<LabResults<'_>> = self.folders.iter().map(without_measurements).collect();
        Ok(LabResults {
            measured: each.iter().map(|one| one.measured).sum(),
            planned: each.iter().map(|one| one.planned).sum(),
            disturbed: each.iter().fold((0, 0), |sum, one| (sum.0 + one.disturbed.0, sum.1 + one.disturbed.1)),
            failures: each.iter().flat_map(|one| one.failures.iter().copied()).collect(),
            look_at: &self.look_at,
            shown,
            left_out,
            experiment: Some(experiment),
            ..without_measurements(&self.folders[0])
        })
    }

    /// The page: the results, then the records by cell.
    pub fn page(&self) -> Result<String, Trouble> {
        let mut cells: Vec<(String, Vec<(String, Findings)>)> = Vec::new();
        for (folder, level) in self.folders.iter().zip(&self.levels) {
            let before = cells.len();
            let name = |cell: String| (format!("{}={level} {cell}", self.factor), Vec::new());
            cells.extend(names_of_cells(&folder.recipe).into_iter().map(name));
            for trial in trials(folder, folder.recipe.part.as_ref())?.experiment.trials {
                let round = trial.round + folder.recipe.trials.drop as usize + 1;
                cells[before + trial.cell].1.push((format!("round {round}"), trial.findings));
            }
        }
        Ok(self.results()?.page(cells))
    }

    /// The recipe's tables and charts, with the new factor in the columns and colors: it is what is compared.
    fn asked(&self) -> Vec<(Option<Part>, ShowAsked)> {
        let mut all: Vec<(Option<Part>, ShowAsked)> = Vec::new();
        for (part, asked) in asked(&self.folders[0]) {
            let asked = match asked {
                ShowAsked::Table(mut table) => {
                    table.columns = Some(self.factor.clone());
                    table.ratio_to = Some(self.levels[0].clone());
                    table.fault_above = None;
                    ShowAsked::Table(table)
                }
                ShowAsked::Chart(mut chart) => {
                    let own = Some(self.factor.clone());
                    // A stack has its values in colors.
                    match chart.kind {
                        ChartKind::Stack => chart.facet = own,
                        _ => chart.color = own,
                    }
                    ShowAsked::Chart(chart)
                }
            };
            if !all.iter().any(|known| *known == (part.clone(), asked.clone())) {
                all.push((part, asked));
            }
        }
        all
    }
}

type Fact = (&'static str, fn(&Record) -> &str);

/// What is known about a machine.
static FACTS: [Fact; 3] = [
    ("kernel", |record| &record.environment.host.kernel),
    ("CPU", |record| &record.environment.host.cpu_model),
    ("machine", |record| &record.environment.host.name),
];

/// A tag; otherwise the kernel or the CPU, if only one of them differs; otherwise the machine's name.
fn told_apart_by(first: &[Record]) -> Option<(String, Vec<String>)> {
    let all_differ = |values: &[&str]| (1..values.len()).all(|at| !values[..at].contains(&values[at]));
    for tag in first[0].tags.keys() {
        let values: Vec<&str> = first.iter().filter_map(|record| record.tags.get(tag).map(String::as_str)).collect();
        if values.len() == first.len() && all_differ(&values) {
            return Some((tag.clone(), values.into_iter().map(str::to_owned).collect()));
        }
    }
    let values = |value: fn(&Record) -> &str| first.iter().map(value).collect::<Vec<&str>>();
    let differ: Vec<&Fact> =
        FACTS[..2].iter().filter(|(_, value)| values(*value).iter().any(|one| *one != value(&first[0]))).collect();
    let found = match differ[..] {
        [one] => one,
        _ => &FACTS[2],
    };
    let values = values(found.1);
    all_differ(&values).then(|| (found.0.to_owned(), values.into_iter().map(str::to_owned).collect()))
}

/// Names that occur twice get a number.
fn distinct(names: Vec<String>) -> Vec<String> {
    let number = |(at, name): (usize, &String)| match names.iter().filter(|other| *other == name).count() {
        1 => name.clone(),
        _ => format!("{name} ({})", at + 1),
    };
    names.iter().enumerate().map(number).collect()
}

/// Levels with the same name are the same.
fn joined(all: Vec<Experiment>, factor: &str, levels: &[String]) -> Experiment {
    let mut factors = all[0].factors.clone();
    for experiment in &all[1..] {
        for (known, other) in factors.iter_mut().zip(&experiment.factors) {
            for level in &other.levels {
                if !known.levels.iter().any(|one| one.name == level.name) {
                    known.levels.push(level.clone());
                }
            }
        }
    }
    let rounds = all.iter().map(|experiment| experiment.rounds).max().unwrap_or(1);
    let (mut cells, mut trials): (Vec<ExperimentCell>, Vec<ExperimentTrial>) = Default::default();
    for (source, experiment) in all.into_iter().enumerate() {
        let before = cells.len();
        for cell in experiment.cells {
            let place = |(number, level): (usize, usize)| {
                let name = &experiment.factors[number].levels[level].name;
                factors[number].levels.iter().position(|one| one.name == *name).expect("all levels were added")
            };
            let levels = cell.levels.iter().copied().enumerate().map(place).chain([source]).collect();
            cells.push(ExperimentCell { levels, ..cell });
        }
        trials
            .extend(experiment.trials.into_iter().map(|trial| ExperimentTrial { cell: before + trial.cell, ..trial }));
    }
    let levels = levels.iter().map(|name| Level::new(name.clone(), Vec::new())).collect();
    factors.push(Factor { name: factor.to_owned(), levels });
    Experiment::new(factors, cells, trials, rounds)
}
