//! An experiment: cells of a grid over rounds, as pivot tables with ratios.
//!
//! Rounds are blocks (`assay_stats::Blocks`): what drifted between rounds is taken out of every ratio, and shown by itself. A
//! ladder's steps are fitted each by themselves, since they share a server's start.

use std::collections::BTreeMap;

use assay_stats::{Blocks, MARGIN_DEFAULT, Observation, Ratio};

use crate::findings::metric::{MetricUnit, metrics, stage_sessions};
use crate::findings::run::Findings;

/// What was measured of a grid.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Names of factors, each with those of its levels.
    pub factors: Vec<(String, Vec<String>)>,
    /// One level of each factor.
    pub cells: Vec<ExperimentCell>,
    /// In any order.
    pub trials: Vec<ExperimentTrial>,
    /// Rounds planned.
    pub rounds: usize,
}

/// One setting of an experiment.
#[derive(Clone, Debug)]
pub struct ExperimentCell {
    /// Of each factor, the number of its level.
    pub levels: Vec<usize>,
    /// In any currency.
    pub price_per_hour: Option<f64>,
    /// A trial of it failed.
    pub failed: bool,
}

/// One trial of an experiment.
#[derive(Clone, Debug)]
pub struct ExperimentTrial {
    /// From 0.
    pub cell: usize,
    /// From 0.
    pub round: usize,
    /// What was measured.
    pub findings: Findings,
    /// What was done around it, in seconds.
    pub parts: Vec<(String, f64)>,
}

/// A pivot table that is wanted. Axes are factors, or `sessions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PivotAsked {
    /// A row per level.
    pub rows: String,
    /// A column per level.
    pub columns: Option<String>,
    /// A metric's name, `per_price`, or that of a part, for its seconds.
    pub value: String,
    /// The level of `columns`, or of `rows` without columns, that the others are divided by.
    pub ratio_to: Option<String>,
}

/// A figure that was asked for is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no trial has a value {name:?}; there are: {known}")]
pub struct UnknownValue {
    /// As asked.
    pub name: String,
    /// With commas between.
    pub known: String,
}

/// Tables of one kind: one per combination of the levels that are neither rows nor columns.
pub(crate) struct Pivot {
    /// `tps`, `p99 ms`.
    pub(crate) value: String,
    pub(crate) rows: String,
    pub(crate) columns: Option<String>,
    pub(crate) column_levels: Vec<String>,
    /// The column, or the row without columns, that others are divided by.
    pub(crate) base: Option<usize>,
    pub(crate) facets: Vec<Facet>,
    /// Standard deviation of a trial, as a share; the largest of all steps of a ladder.
    pub(crate) deviation: Option<f64>,
    /// The last round by the first, of the step where it was most.
    pub(crate) drift: Option<Ratio>,
}

pub(crate) struct Facet {
    /// `memory=1G, sessions=4`; empty when there is only one.
    pub(crate) name: String,
    /// Levels with what stands in each column.
    pub(crate) rows: Vec<(String, Vec<Place>)>,
}

/// What stands where a row and a column meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    /// A value with its interval, by trials; and by the base.
    Measured {
        value: f64,
        interval: Option<(f64, f64)>,
        ratio: Option<Ratio>,
    },
    Failed,
    /// Left out, or not yet measured.
    Nothing,
}

/// An axis: a factor by its number, or the steps of a ladder.
#[derive(Clone, Copy, PartialEq)]
enum Axis {
    Factor(usize),
    Sessions,
}

const SESSIONS: &str = "sessions";
const PER_PRICE: &str = "per_price";

impl Experiment {
    pub(crate) fn pivot(&self, asked: &PivotAsked) -> Result<Pivot, UnknownValue> {
        let sessions = stage_sessions(self.trials.iter().map(|trial| &trial.findings));
        let (unit, scale) = self.unit(&asked.value)?;
        let fits: Vec<Option<Blocks>> = sessions.iter().map(|step| self.fit(&asked.value, *step, scale)).collect();
        let axis = |name: &String| {
            if name == SESSIONS {
                Some(Axis::Sessions)
            } else {
                self.factors.iter().position(|(one, _)| one == name).map(Axis::Factor)
            }
        };
        let rows = axis(&asked.rows).unwrap_or(Axis::Sessions);
        let columns = asked.columns.as_ref().and_then(axis);
        let names = |axis: Axis| match axis {
            Axis::Factor(number) => self.factors[number].1.clone(),
            Axis::Sessions => sessions.iter().map(u32::to_string).collect(),
        };
        let all = (0..self.factors.len()).map(Axis::Factor).chain([Axis::Sessions]);
        let others: Vec<Axis> = all.filter(|one| *one != rows && Some(*one) != columns).collect();
        let row_levels = names(rows);
        let column_levels = columns.map_or(Vec::new(), names);
        let base = asked.ratio_to.as_ref().and_then(|base| {
            if columns.is_some() { &column_levels } else { &row_levels }.iter().position(|level| level == base)
        });
        let counts: Vec<usize> = others.iter().map(|axis| names(*axis).len()).collect();
        let facets_count: usize = counts.iter().product();
        let places = row_levels.len() * column_levels.len().max(1) * facets_count;
        let per_base = if columns.is_some() { column_levels.len() } else { row_levels.len() };
        let family = places - places / per_base.max(1);
        let at = |facet: &[usize], row: usize, column: usize| {
            let mut levels = vec![0; self.factors.len()];
            let mut step = 0;
            let chosen = others.iter().copied().zip(facet.iter().copied()).chain([(rows, row)]);
            for (axis, level) in chosen.chain(columns.map(|axis| (axis, column))) {
                match axis {
                    Axis::Factor(number) => levels[number] = level,
                    Axis::Sessions => step = level,
                }
            }
            (self.cells.iter().position(|cell| cell.levels == levels), step)
        };
        let place = |facet: &[usize], row: usize, column: usize| {
            let (Some(cell), step) = at(facet, row, column) else { return Place::Nothing };
            if self.cells[cell].failed {
                return Place::Failed;
            }
            let Some(fit) = fits.get(step).and_then(Option::as_ref) else { return Place::Nothing };
            let Some((value, interval)) = fit.value(cell) else { return Place::Nothing };
            let of_base = base.filter(|base| *base != if columns.is_some() { column } else { row });
            let ratio = of_base.and_then(|base| {
                let (base, _) = if columns.is_some() { at(facet, row, base) } else { at(facet, base, column) };
                fit.ratio(base?, cell, family, MARGIN_DEFAULT)
            });
            Place::Measured { value, interval: interval.map(|found| (found.low, found.high)), ratio }
        };
        let facets = (0..facets_count).map(|number| {
            let mut rest = number;
            let mut facet: Vec<usize> = counts
                .iter()
                .rev()
                .map(|count| {
                    let level = rest % count;
                    rest /= count;
                    level
                })
                .collect();
            facet.reverse();
            let named = others.iter().zip(&facet).filter(|(axis, _)| names(**axis).len() > 1).map(|(axis, level)| {
                let name = match axis {
                    Axis::Factor(number) => self.factors[*number].0.as_str(),
                    Axis::Sessions => SESSIONS,
                };
                format!("{name}={}", names(*axis)[*level])
            });
            let name = named.collect::<Vec<_>>().join(", ");
            let columns = column_levels.len().max(1);
            let row = |row: usize| (0..columns).map(|column| place(&facet, row, column)).collect::<Vec<_>>();
            Facet {
                name,
                rows: row_levels.iter().cloned().enumerate().map(|(number, level)| (level, row(number))).collect(),
            }
        });
        let facets: Vec<Facet> = facets.collect();
        let found = fits.iter().flatten();
        let drifts = found.clone().filter_map(Blocks::drift);
        Ok(Pivot {
            value: if unit.is_empty() { asked.value.clone() } else { format!("{} {unit}", asked.value) },
            rows: asked.rows.clone(),
            columns: asked.columns.clone(),
            column_levels,
            base,
            facets,
            deviation: found.filter_map(Blocks::deviation).max_by(f64::total_cmp),
            drift: drifts.max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs())),
        })
    }

    fn fit(&self, value: &str, sessions: u32, scale: f64) -> Option<Blocks> {
        let observation = |trial: &ExperimentTrial| {
            let found = self.value_of(trial, value, sessions)? * scale;
            (found > 0.0 && found.is_finite()).then_some(Observation {
                cell: trial.cell,
                round: trial.round,
                value: found,
            })
        };
        let observations: Vec<Observation> = self.trials.iter().filter_map(observation).collect();
        Blocks::fit(&observations, self.cells.len(), self.rounds)
    }

    fn value_of(&self, trial: &ExperimentTrial, name: &str, sessions: u32) -> Option<f64> {
        if let Some((_, seconds)) = trial.parts.iter().find(|(part, _)| part == name) {
            return Some(*seconds);
        }
        let stage = trial.findings.stages.iter().find(|stage| stage.sessions == sessions)?;
        if name == PER_PRICE {
            return self.cells[trial.cell].price_per_hour.map(|price| stage.total.tps * 3600.0 / price);
        }
        metrics(stage).into_iter().find(|(metric, _)| metric.name == name).and_then(|(_, value)| value)
    }

    /// A value's unit, and what makes it so.
    fn unit(&self, name: &str) -> Result<(&'static str, f64), UnknownValue> {
        let stages = || self.trials.iter().flat_map(|trial| &trial.findings.stages);
        let mut known: BTreeMap<String, MetricUnit> = BTreeMap::new();
        known.extend(stages().flat_map(metrics).map(|(metric, _)| (metric.name, metric.unit)));
        match known.get(name) {
            Some(MetricUnit::Ns) => return Ok(("ms", 1e-6)),
            Some(_) => return Ok(("", 1.0)),
            None if name == PER_PRICE || self.trials.is_empty() => return Ok(("", 1.0)),
            None => {}
        }
        let parts = || self.trials.iter().flat_map(|trial| &trial.parts);
        if parts().any(|(part, _)| part == name) {
            return Ok(("s", 1.0));
        }
        let mut names: Vec<String> = known.into_keys().chain([PER_PRICE.to_owned()]).collect();
        for (part, _) in parts() {
            if !names.contains(part) {
                names.push(part.clone());
            }
        }
        Err(UnknownValue { name: name.to_owned(), known: names.join(", ") })
    }
}
