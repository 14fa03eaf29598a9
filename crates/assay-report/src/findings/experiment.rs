//! An experiment: cells of a grid over rounds, as pivot tables with ratios.
//!
//! Rounds are blocks (`assay_stats::Cells`): drift between rounds is removed from every ratio, and shown separately.
//! Each step of a ladder is fitted separately, because the steps share a start of the server.

use std::collections::BTreeMap;

use assay_record::Attribute;
use assay_stats::{Cells, Contrast, MARGIN_DEFAULT, Measure, Observation, Scale, Verdict};

use crate::findings::arithmetic::ratio;
use crate::findings::derived::{derived, derived_names};
use crate::findings::metric::{
    Better, Metric, MetricUnit, PER_PRICE, anomalies, metrics, scale, stage_sessions, trial_metrics,
};
use crate::findings::run::Findings;
use crate::findings::setting::{SESSIONS, not_as_asked};
use crate::findings::stage::StageFindings;

/// The measurements of a grid.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The factors.
    pub factors: Vec<Factor>,
    /// One level of each factor.
    pub cells: Vec<ExperimentCell>,
    /// Trials, in any order.
    pub trials: Vec<ExperimentTrial>,
    /// Rounds planned.
    pub rounds: usize,
}

/// A factor of an experiment.
#[derive(Clone, Debug)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// In the order of tables.
    pub levels: Vec<Level>,
}

/// One value of a factor.
#[derive(Clone, Debug)]
pub struct Level {
    /// The requested value.
    pub name: String,
    /// The settings that it sets: names, or paths that end with one.
    pub sets: Vec<String>,
    /// Its label: the value in effect, and the requested one if that differs.
    pub(crate) shown: String,
}

impl Level {
    /// A level that was in effect, as far as is known.
    pub fn new(name: String, sets: Vec<String>) -> Level {
        Level { shown: name.clone(), name, sets }
    }

    /// `8GB (asked: 10GB)`, from what was requested in its trials and was not in effect.
    fn label(&self, different: &[Attribute]) -> String {
        let is_set = |one: &&Attribute| {
            self.sets.iter().any(|path| {
                path.strip_suffix(&*one.name).is_some_and(|before| before.is_empty() || before.ends_with('.'))
            })
        };
        let mut all: Vec<(&str, &str, &str)> = Vec::new();
        for one in different.iter().filter(is_set) {
            // An option without a variable cannot be compared.
            let Some(in_effect) = one.in_effect.as_deref() else { continue };
            let one = (&*one.name, one.asked.as_deref().unwrap_or("none"), in_effect);
            if !all.contains(&one) {
                all.push(one);
            }
        }
        let words = |(name, asked, in_effect): &(&str, &str, &str)| format!("{name} {in_effect}, asked: {asked}");
        match all[..] {
            [] => self.name.clone(),
            [(_, asked, in_effect)] if asked == self.name || in_effect == self.name => {
                format!("{in_effect} (asked: {asked})")
            }
            _ => format!("{} ({})", self.name, all.iter().map(words).collect::<Vec<_>>().join("; ")),
        }
    }
}

/// One setting of an experiment.
#[derive(Clone, Debug)]
pub struct ExperimentCell {
    /// For each factor, the index of its level.
    pub levels: Vec<usize>,
    /// Price, in any currency.
    pub price_per_hour: Option<f64>,
    /// Trials of it that failed.
    pub failed: u32,
}

/// One trial of an experiment.
#[derive(Clone, Debug)]
pub struct ExperimentTrial {
    /// From 0.
    pub cell: usize,
    /// From 0.
    pub round: usize,
    /// Its results.
    pub findings: Findings,
    /// Durations of its steps, in seconds.
    pub parts: Vec<(String, f64)>,
    /// Values of steps, in their own units.
    pub values: Vec<(String, f64)>,
}

/// A requested pivot table. Axes are factors, or `sessions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PivotAsked {
    /// A row per level.
    pub rows: String,
    /// Only these levels of `rows`; empty: all. `rows` is then a factor.
    pub only: Vec<String>,
    /// A column per level.
    pub columns: Option<String>,
    /// A metric's name, `per_price`, or the name of a step, for its seconds or its value.
    pub value: String,
    /// The level of `columns`, or of `rows` without columns, by which the others are divided; `BEST`: every value as a
    /// share of the best one in its table, or in its step of a ladder.
    pub ratio_to: Option<String>,
    /// Which of its trials represent a cell.
    pub of: OfTrials,
    /// A factor of which only the best level is shown, chosen separately in each place; it is not an axis.
    pub best_of: Option<String>,
    /// Percent: a place that is worse than the base by more than this is named as a fault.
    pub fault_above: Option<u32>,
}

/// A pseudo-level: the best value of a table or a chart is 100 %.
pub const BEST: &str = "best";

/// Which of its trials represent a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OfTrials {
    /// All of them, through the fit of cells and rounds.
    #[default]
    All,
    /// The worst one.
    Worst,
    /// The best one.
    Best,
    /// The best but one; of a cell with a single trial, that one.
    SecondBest,
}

impl OfTrials {
    /// Every way.
    pub const ALL: [OfTrials; 4] = [OfTrials::All, OfTrials::Worst, OfTrials::Best, OfTrials::SecondBest];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            OfTrials::All => "all",
            OfTrials::Worst => "worst",
            OfTrials::Best => "best",
            OfTrials::SecondBest => "second-best",
        }
    }

    /// The way of this name.
    pub fn of_name(name: &str) -> Option<OfTrials> {
        OfTrials::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// Something requested does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {what} {name:?}; there are: {known}")]
pub struct Unknown {
    /// `trial has a value`, `level of memory`.
    pub what: String,
    /// The requested name.
    pub name: String,
    /// Separated by commas.
    pub known: String,
}

/// Tables of one kind: one per combination of the levels that are neither rows nor columns.
pub(crate) struct Pivot {
    /// `tps`, `p99 ms`.
    pub(crate) value: String,
    pub(crate) rows: String,
    pub(crate) columns: Option<String>,
    pub(crate) column_levels: Vec<String>,
    /// The column, or the row without columns, by which the others are divided.
    pub(crate) base: Option<usize>,
    /// Whether values are also shown relative to the best one.
    pub(crate) by_best: bool,
    /// The way to clearer results: more `rounds`, or more `trials` of records that were not measured in rounds.
    pub(crate) more_of: &'static str,
    pub(crate) facets: Vec<Facet>,
    /// Effects of the levels against the base, averaged over all levels of the other factors.
    pub(crate) effects: Vec<LevelEffect>,
    pub(crate) of: OfTrials,
    /// Which direction of the value is good.
    pub(crate) better: Better,
    /// Percent: what is worse than the base by more is a fault.
    pub(crate) fault_above: Option<u32>,
    /// Whether it has one fit, not one for each step of a ladder.
    pub(crate) once: bool,
    /// Whether some cell has several trials.
    pub(crate) repeated: bool,
    /// Whether some cells have fewer trials than others.
    pub(crate) uneven: bool,
    /// Standard deviation of a trial, as a share; the largest of all steps of a ladder.
    pub(crate) deviation: Option<f64>,
    /// Ratio of the last round to the first, for the step where it was largest.
    pub(crate) drift: Option<Contrast>,
    /// What all places are compared by; `None`: some by their ratio, and some by their difference.
    pub(crate) by: Option<Measure>,
}

/// The effect of a factor's level over all levels of the others.
pub(crate) struct LevelEffect {
    /// `1000 / 1`.
    pub(crate) levels: String,
    /// The step of a ladder; `None`: there is one only.
    pub(crate) sessions: Option<u32>,
    /// The other factors.
    pub(crate) over: String,
    pub(crate) contrast: Contrast,
}

pub(crate) struct Facet {
    /// `memory=1G, sessions=4`; empty when there is only one.
    pub(crate) name: String,
    /// Levels with their cells.
    pub(crate) rows: Vec<(String, Vec<PivotCell>)>,
}

/// A cell of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PivotCell {
    /// A value with its interval; and how it compares with the base.
    Measured {
        value: f64,
        interval: Option<(f64, f64)>,
        /// The lowest and the highest trial, if they are too few for an interval.
        range: Option<(f64, f64)>,
        contrast: Option<Contrast>,
        /// Relative to the best value of its table, or of its step of a ladder: 1 is the best, whether more or less is
        /// better.
        of_best: Option<f64>,
        /// Trials of the cell that failed; the value is of the others.
        failed: u32,
    },
    /// All its trials failed.
    Failed,
    /// Omitted, or not yet measured.
    Nothing,
}

/// An axis: a factor by its index, or the steps of a ladder.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum FactorAxis {
    Factor(usize),
    Sessions,
}

/// The axis of everything else that differs.
pub(crate) const SETTING: &str = "setting";

impl Experiment {
    /// The only constructor: levels show what was in effect in their trials.
    pub fn new(
        mut factors: Vec<Factor>,
        cells: Vec<ExperimentCell>,
        trials: Vec<ExperimentTrial>,
        rounds: usize,
    ) -> Experiment {
        let different: Vec<(usize, Vec<Attribute>)> =
            trials.iter().map(|trial| (trial.cell, not_as_asked(&trial.findings).cloned().collect())).collect();
        for (place, factor) in factors.iter_mut().enumerate() {
            for (number, level) in factor.levels.iter_mut().enumerate() {
                let own = different.iter().filter(|(cell, _)| cells[*cell].levels.get(place) == Some(&number));
                let own: Vec<Attribute> = own.flat_map(|(_, different)| different).cloned().collect();
                level.shown = level.label(&own);
            }
        }
        Experiment { factors, cells, trials, rounds }
    }

    pub(crate) fn pivot(&self, asked: &PivotAsked) -> Result<Pivot, Unknown> {
        let sessions = self.sessions();
        let (unit, scale) = self.unit(&asked.value)?;
        let fits: Vec<Option<Cells>> = sessions.iter().map(|step| self.fit(&asked.value, *step, scale)).collect();
        let rows = self.axis(&asked.rows)?;
        let columns = asked.columns.as_ref().map(|name| self.axis(name)).transpose()?;
        // Times and values of steps belong to the trial, not to a step of its ladder.
        let once = self.is_of_trial(&asked.value);
        let others = self.others(&[Some(rows), columns, once.then_some(FactorAxis::Sessions)]);
        let row_levels = self.levels(rows);
        let column_levels = columns.map_or(Vec::new(), |axis| self.levels(axis));
        let by_best = asked.ratio_to.as_deref() == Some(BEST);
        let base = match &asked.ratio_to {
            Some(base) if !by_best => Some(self.base(columns.unwrap_or(rows), base)?),
            _ => None,
        };
        let facets_of = self.combinations(&others);
        let places = row_levels.len() * column_levels.len().max(1) * facets_of.len();
        let per_base = if columns.is_some() { column_levels.len() } else { row_levels.len() };
        let family = places - places / per_base.max(1);
        let at = |facet: &[(FactorAxis, usize)], row: usize, column: usize| {
            let own = columns.map(|axis| (axis, column));
            self.cell(facet.iter().copied().chain([(rows, row)]).chain(own))
        };
        let place = |facet: &[(FactorAxis, usize)], row: usize, column: usize| {
            let (Some(cell), step) = at(facet, row, column) else { return PivotCell::Nothing };
            let failed = self.cells[cell].failed;
            let nothing = if failed > 0 { PivotCell::Failed } else { PivotCell::Nothing };
            let Some(step_sessions) = sessions.get(step).copied() else { return nothing };
            let fit = fits.get(step).and_then(Option::as_ref);
            let found = match asked.of {
                OfTrials::All => fit.and_then(|fit| fit.value(cell)).map(|found| {
                    let range = (found.trials > 1 && found.interval.is_none()).then_some(found.range);
                    (found.value, found.interval, range)
                }),
                which => {
                    self.extreme(which, &asked.value, cell, step_sessions).map(|value| (value * scale, None, None))
                }
            };
            let Some((value, interval, range)) = found else { return nothing };
            let of_base = base.filter(|base| *base != if columns.is_some() { column } else { row });
            let contrast = of_base.and_then(|base| {
                let (base, _) = if columns.is_some() { at(facet, row, base) } else { at(facet, base, column) };
                match asked.of {
                    OfTrials::All => fit?.contrast(base?, cell, family, MARGIN_DEFAULT),
                    which => {
                        let base = self.extreme(which, &asked.value, base?, step_sessions)? * scale;
                        Some(of_single_trials(value, base, self.scale(&asked.value)))
                    }
                }
            });
            let trials = self.stages(cell, step_sessions).count();
            let contrast = contrast.map(|found| if self.rounds > 1 { found } else { with_more_than(trials, found) });
            PivotCell::Measured { value, interval, range, contrast, of_best: None, failed }
        };
        let effects = match (base, asked.of) {
            (Some(base), OfTrials::All) => {
                let steps = if once { &sessions[..sessions.len().min(1)] } else { &sessions[..] };
                self.effects(columns.unwrap_or(rows), base, steps, &fits)
            }
            _ => Vec::new(),
        };
        let better = self.better(&asked.value);
        let facets = facets_of.iter().map(|facet| {
            let axes = (rows, columns);
            let columns = column_levels.len().max(1);
            let row = |row: usize| (0..columns).map(|column| place(facet, row, column)).collect::<Vec<_>>();
            let rows = row_levels.iter().cloned().enumerate().map(|(number, level)| (level, row(number)));
            let mut facet = Facet { name: self.facet_name(facet), rows: rows.collect() };
            // Steps of a ladder are not compared with each other.
            match axes {
                _ if !by_best => {}
                (FactorAxis::Sessions, _) => {
                    facet.rows.iter_mut().for_each(|(_, places)| compare_with_best(places.iter_mut(), better));
                }
                (_, Some(FactorAxis::Sessions)) => (0..column_levels.len()).for_each(|column| {
                    compare_with_best(facet.rows.iter_mut().filter_map(|(_, places)| places.get_mut(column)), better);
                }),
                _ => compare_with_best(facet.rows.iter_mut().flat_map(|(_, places)| places), better),
            }
            facet
        });
        let mut facets: Vec<Facet> = facets.collect();
        // Of a step that only some cells have, the others would be empty tables.
        let is_empty =
            |facet: &Facet| facet.rows.iter().all(|(_, row)| row.iter().all(|one| *one == PivotCell::Nothing));
        if !facets.iter().all(is_empty) {
            facets.retain(|facet| !is_empty(facet));
        }
        let trials_of: Vec<usize> =
            (0..self.cells.len()).map(|cell| self.trials.iter().filter(|trial| trial.cell == cell).count()).collect();
        let found = fits.iter().flatten();
        let drifts = found.clone().filter_map(Cells::drift);
        let places = || facets.iter().flat_map(|facet| &facet.rows).flat_map(|(_, places)| places);
        let is_by = |measure| {
            let by = |place: &PivotCell| match place {
                PivotCell::Measured { contrast: Some(contrast), .. } => contrast.by == measure,
                _ => false,
            };
            places().any(by)
        };
        let by = match [is_by(Measure::Ratio), is_by(Measure::Difference)] {
            [true, true] => None,
            [false, true] => Some(Measure::Difference),
            [_, false] => Some(Measure::Ratio),
        };
        let of = match asked.of {
            OfTrials::All => "",
            OfTrials::Worst => ", worst trial",
            OfTrials::Best => ", best trial",
            OfTrials::SecondBest => ", second-best trial",
        };
        Ok(Pivot {
            value: if unit.is_empty() { format!("{}{of}", asked.value) } else { format!("{} {unit}{of}", asked.value) },
            rows: asked.rows.clone(),
            columns: asked.columns.clone(),
            column_levels,
            base,
            by_best,
            more_of: if self.rounds > 1 { "rounds" } else { "trials" },
            facets,
            effects,
            of: asked.of,
            better,
            fault_above: asked.fault_above,
            once: once || sessions.len() < 2,
            repeated: trials_of.iter().any(|trials| *trials > 1),
            uneven: trials_of
                .iter()
                .any(|trials| *trials > 0 && *trials != trials_of.iter().copied().max().unwrap_or(0)),
            deviation: found.filter_map(Cells::deviation).max_by(f64::total_cmp),
            drift: drifts.max_by(|a, b| a.size.ln().abs().total_cmp(&b.size.ln().abs())),
            by,
        })
    }

    /// The effect of every level but the base; empty if there is no other factor.
    fn effects(&self, axis: FactorAxis, base: usize, steps: &[u32], fits: &[Option<Cells>]) -> Vec<LevelEffect> {
        let factors = (0..self.factors.len()).map(FactorAxis::Factor);
        let others: Vec<FactorAxis> = factors.filter(|one| *one != axis && self.levels(*one).len() > 1).collect();
        if others.is_empty() || axis == FactorAxis::Sessions {
            return Vec::new();
        }
        let (levels, combinations) = (self.levels(axis), self.combinations(&others));
        let over = others.iter().map(|one| self.axis_name(*one)).collect::<Vec<_>>().join(" and ");
        let family = (levels.len() - 1) * steps.len();
        let mut effects = Vec::new();
        for (fit, sessions) in fits.iter().zip(steps) {
            for (level, name) in levels.iter().enumerate().filter(|(level, _)| *level != base) {
                let at = |combination: &[(FactorAxis, usize)], level: usize| {
                    self.cell(combination.iter().copied().chain([(axis, level)])).0
                };
                let pair = |all: &Vec<(FactorAxis, usize)>| Some((at(all, base)?, at(all, level)?));
                let pairs: Vec<(usize, usize)> = combinations.iter().filter_map(pair).collect();
                let found = fit.as_ref().and_then(|fit| fit.mean_contrast(&pairs, family, MARGIN_DEFAULT));
                effects.extend(found.map(|contrast| {
                    let sign = if contrast.by == Measure::Ratio { '/' } else { '−' };
                    let levels = format!("{name} {sign} {}", levels[base]);
                    let sessions = (steps.len() > 1).then_some(*sessions);
                    LevelEffect { levels, sessions, over: over.clone(), contrast }
                }));
            }
        }
        effects
    }

    /// The numbers of sessions that were measured.
    pub(crate) fn sessions(&self) -> Vec<u32> {
        let mut sessions = stage_sessions(self.trials.iter().map(|trial| &trial.findings));
        sessions.sort_unstable();
        sessions
    }

    /// The axis with this name.
    pub(crate) fn axis(&self, name: &str) -> Result<FactorAxis, Unknown> {
        if name == SESSIONS {
            return Ok(FactorAxis::Sessions);
        }
        self.factors.iter().position(|one| one.name == name).map(FactorAxis::Factor).ok_or_else(|| {
            let names = self.factors.iter().map(|one| one.name.as_str()).chain([SESSIONS]);
            Unknown { what: "factor".into(), name: name.to_owned(), known: names.collect::<Vec<_>>().join(", ") }
        })
    }

    pub(crate) fn axis_name(&self, axis: FactorAxis) -> &str {
        match axis {
            FactorAxis::Factor(number) => &self.factors[number].name,
            FactorAxis::Sessions => SESSIONS,
        }
    }

    /// As shown.
    pub(crate) fn levels(&self, axis: FactorAxis) -> Vec<String> {
        match axis {
            FactorAxis::Factor(number) => self.factors[number].levels.iter().map(|level| level.shown.clone()).collect(),
            FactorAxis::Sessions => self.sessions().iter().map(u32::to_string).collect(),
        }
    }

    /// The axes that are none of these.
    pub(crate) fn others(&self, axes: &[Option<FactorAxis>]) -> Vec<FactorAxis> {
        let all = (0..self.factors.len()).map(FactorAxis::Factor).chain([FactorAxis::Sessions]);
        all.filter(|one| !axes.contains(&Some(*one))).collect()
    }

    /// Every combination of the levels of some axes; a single empty one if there are no axes.
    pub(crate) fn combinations(&self, axes: &[FactorAxis]) -> Vec<Vec<(FactorAxis, usize)>> {
        axes.iter().fold(vec![Vec::new()], |all, axis| {
            let levels = self.levels(*axis).len();
            let with = |one: Vec<(FactorAxis, usize)>| {
                (0..levels).map(move |level| one.iter().copied().chain([(*axis, level)]).collect())
            };
            all.into_iter().flat_map(with).collect()
        })
    }

    /// The cell where these levels meet, and the index of its step of a ladder.
    pub(crate) fn cell(&self, at: impl Iterator<Item = (FactorAxis, usize)>) -> (Option<usize>, usize) {
        let mut levels = vec![0; self.factors.len()];
        let mut step = 0;
        for (axis, level) in at {
            match axis {
                FactorAxis::Factor(number) => levels[number] = level,
                FactorAxis::Sessions => step = level,
            }
        }
        (self.cells.iter().position(|cell| cell.levels == levels), step)
    }

    /// `memory=1G, sessions=4`, of axes that have several levels.
    pub(crate) fn facet_name(&self, facet: &[(FactorAxis, usize)]) -> String {
        let several =
            facet.iter().map(|(axis, level)| (*axis, self.levels(*axis), *level)).filter(|one| one.1.len() > 1);
        let name = |(axis, levels, level): (FactorAxis, Vec<String>, usize)| match self.axis_name(axis) {
            // The heading already says it.
            SETTING => levels[level].clone(),
            name => format!("{name}={}", levels[level]),
        };
        several.map(name).collect::<Vec<_>>().join(", ")
    }

    /// The level by which the others are divided, by its requested value or as shown.
    fn base(&self, axis: FactorAxis, name: &str) -> Result<usize, Unknown> {
        let levels: &[Level] = match axis {
            FactorAxis::Factor(number) => &self.factors[number].levels,
            FactorAxis::Sessions => &[],
        };
        let found = levels.iter().position(|level| level.name == name || level.shown == name);
        found.ok_or_else(|| Unknown {
            what: format!("level of {} to divide by:", self.axis_name(axis)),
            name: name.to_owned(),
            known: levels.iter().map(|level| &*level.name).chain([BEST]).collect::<Vec<_>>().join(", "),
        })
    }

    /// Its trials, each with the stage that has this number of sessions.
    pub(crate) fn stages(&self, cell: usize, sessions: u32) -> impl Iterator<Item = &StageFindings> {
        let trials = self.trials.iter().filter(move |trial| trial.cell == cell);
        trials.filter_map(move |trial| trial.findings.stages.iter().find(|stage| stage.sessions == sessions))
    }

    /// A value of each trial of a cell, by a metric's own unit.
    pub(crate) fn values(&self, value: &str, cell: usize, sessions: u32) -> Vec<f64> {
        let trials = self.trials.iter().filter(|trial| trial.cell == cell);
        trials.filter_map(|trial| self.value_of(trial, value, sessions)).collect()
    }

    fn extreme(&self, which: OfTrials, value: &str, cell: usize, sessions: u32) -> Option<f64> {
        let mut values = self.values(value, cell, sessions);
        // The best one first.
        values.sort_by(f64::total_cmp);
        if self.better(value) != Better::Lower {
            values.reverse();
        }
        match which {
            OfTrials::Worst => values.last().copied(),
            OfTrials::SecondBest => values.get(1).or(values.first()).copied(),
            OfTrials::All | OfTrials::Best => values.first().copied(),
        }
    }

    /// Which direction of a value is good; durations are better when short.
    pub(crate) fn better(&self, value: &str) -> Better {
        if value == PER_PRICE {
            return Better::Higher;
        }
        let stages = self.trials.iter().flat_map(|trial| &trial.findings.stages);
        let found = stages.flat_map(metrics).find(|(metric, _)| metric.name == value).map(|(metric, _)| metric.better);
        let stages = || self.trials.iter().flat_map(|trial| &trial.findings.stages);
        let found = found.or_else(|| stages().find_map(|stage| derived(stage, value)).map(|found| found.better));
        match found {
            Some(Better::Neither) => Better::Higher,
            Some(better) => better,
            None => Better::Lower,
        }
    }

    /// What the values of a figure are.
    pub(crate) fn scale(&self, value: &str) -> Scale {
        if self.trials.iter().any(|trial| trial.parts.iter().any(|(name, _)| name == value)) {
            return Scale::Ratio;
        }
        let trials = self.trials.iter().flat_map(|trial| trial_metrics_of(&trial.findings));
        trials
            .into_iter()
            .find(|(metric, _)| metric.name == value)
            .map_or_else(|| scale(value, None), |it| it.0.scale())
    }

    /// Fits all cells, each in its own way if the scale of the value wants it so.
    pub(crate) fn fit(&self, value: &str, sessions: u32, scale: f64) -> Option<Cells> {
        let observation = |trial: &ExperimentTrial| {
            let found = self.value_of(trial, value, sessions)? * scale;
            Some(Observation { cell: trial.cell, round: trial.round, value: found })
        };
        let observations: Vec<Observation> = self.trials.iter().filter_map(observation).collect();
        Cells::fit(&observations, self.cells.len(), self.rounds, self.scale(value))
    }

    /// Whether it is the time or the value of a step of the recipe.
    pub(crate) fn is_of_trial(&self, value: &str) -> bool {
        self.trials.iter().flat_map(|trial| trial.parts.iter().chain(&trial.values)).any(|(name, _)| name == value)
    }

    fn value_of(&self, trial: &ExperimentTrial, name: &str, sessions: u32) -> Option<f64> {
        if let Some((_, found)) = trial.parts.iter().chain(&trial.values).find(|(part, _)| part == name) {
            return Some(*found);
        }
        let stage = trial.findings.stages.iter().find(|stage| stage.sessions == sessions)?;
        if name == PER_PRICE {
            return self.cells[trial.cell].price_per_hour.map(|price| stage.total.tps * 3600.0 / price);
        }
        let found = trial_metrics(&trial.findings, sessions);
        let found = found.into_iter().find(|(metric, _)| metric.name == name);
        found.map_or_else(|| derived(stage, name)?.value, |(_, value)| value)
    }

    /// Why no trial has a metric of a server or machine, as far as its samplers know; several reasons of several
    /// trials.
    pub fn why_absent(&self, name: &str) -> Vec<String> {
        let Some((_, metric)) = name.split_once('.') else { return Vec::new() };
        let mut reasons: Vec<String> = Vec::new();
        for trial in &self.trials {
            let of_stages = trial.findings.stages.iter().flat_map(|stage| &stage.telemetry);
            let unmoved = of_stages.flat_map(|scope| &scope.absent).map(|one| (&one.metric, &one.reason));
            let unread = trial.findings.sampling.iter().flat_map(|sampling| &sampling.absent);
            for (absent, reason) in unmoved.chain(unread.map(|one| (&one.metric, &one.reason))) {
                if metric.starts_with(absent.trim_end_matches("_bytes")) && !reasons.contains(reason) {
                    reasons.push(reason.clone());
                }
            }
        }
        reasons
    }

    /// A value's unit, and the factor to it.
    pub(crate) fn unit(&self, name: &str) -> Result<(&'static str, f64), Unknown> {
        let stages = || self.trials.iter().flat_map(|trial| &trial.findings.stages);
        let mut known: BTreeMap<String, MetricUnit> = BTreeMap::new();
        let of_runs = self.trials.iter().flat_map(|trial| anomalies(&trial.findings));
        known.extend(stages().flat_map(metrics).chain(of_runs).map(|(metric, _)| (metric.name, metric.unit)));
        if self.trials.iter().any(|trial| trial.findings.capacity.is_some()) {
            known.insert("capacity".to_owned(), MetricUnit::PerSecond);
        }
        match known.get(name) {
            Some(MetricUnit::Ns) => return Ok(("ms", 1e-6)),
            Some(_) => return Ok(("", 1.0)),
            None if name == PER_PRICE || self.trials.is_empty() => return Ok(("", 1.0)),
            None => {}
        }
        if let Some(found) = stages().find_map(|stage| derived(stage, name)) {
            return Ok((found.unit, 1.0));
        }
        let parts = || self.trials.iter().flat_map(|trial| &trial.parts);
        if parts().any(|(part, _)| part == name) {
            return Ok(("s", 1.0));
        }
        let values = || self.trials.iter().flat_map(|trial| &trial.values);
        if values().any(|(value, _)| value == name) {
            return Ok(("", 1.0));
        }
        let derived = derived_names().map(str::to_owned);
        let mut names: Vec<String> = known.into_keys().chain(derived).chain([PER_PRICE.to_owned()]).collect();
        for (part, _) in parts().chain(values()) {
            if !names.contains(part) {
                names.push(part.clone());
            }
        }
        Err(Unknown { what: "trial has a value".into(), name: name.to_owned(), known: names.join(", ") })
    }
}

/// The best value is 1, and so is any equally good one.
fn compare_with_best<'a>(places: impl Iterator<Item = &'a mut PivotCell>, better: Better) {
    let mut all: Vec<(f64, &mut Option<f64>)> = places
        .filter_map(|place| match place {
            PivotCell::Measured { value, of_best, .. } => Some((*value, of_best)),
            _ => None,
        })
        .collect();
    let values = all.iter().map(|(value, _)| *value);
    let best = if better == Better::Lower { values.reduce(f64::min) } else { values.reduce(f64::max) };
    let Some(best) = best else { return };
    for (value, of_best) in all.iter_mut().filter(|(value, _)| *value >= 0.0 && best >= 0.0) {
        **of_best = if better == Better::Lower { ratio(best, *value) } else { ratio(*value, best) };
    }
}

/// How two single trials compare, without an interval.
fn of_single_trials(value: f64, base: f64, scale: Scale) -> Contrast {
    let ratio = ratio(value, base).filter(|ratio| *ratio >= 0.0 && matches!(scale, Scale::Ratio | Scale::Count));
    let (by, size) = ratio.map_or((Measure::Difference, value - base), |ratio| (Measure::Ratio, ratio));
    Contrast { by, size, interval: None, verdict: if size < by.none() { Verdict::Less } else { Verdict::More } }
}

/// If all trials are in one round, more trials are needed than there were.
fn with_more_than(trials: usize, found: Contrast) -> Contrast {
    let verdict = match found.verdict {
        Verdict::CannotTell { trials_needed } => Verdict::CannotTell { trials_needed: trials_needed.max(trials + 1) },
        verdict => verdict,
    };
    Contrast { verdict, ..found }
}

/// Every metric of a trial, at any number of sessions.
fn trial_metrics_of(findings: &Findings) -> Vec<(Metric, Option<f64>)> {
    stage_sessions([findings]).into_iter().flat_map(|sessions| trial_metrics(findings, sessions)).collect()
}
