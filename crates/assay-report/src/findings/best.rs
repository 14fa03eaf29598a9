//! An experiment with fewer levels of a factor: chosen ones, or only the best, in each place by itself: the curve of
//! bests.
//!
//! The best of several measured levels looks better than it is, the more levels there are: their noise is chosen, too.

use crate::findings::experiment::{Experiment, ExperimentCell, ExperimentTrial, Factor, FactorAxis, Unknown};
use crate::findings::metric::Better;

/// The best level of a factor in one place.
pub(crate) struct BestLevel {
    /// The levels of the other factors: `version=10.11`; empty: there are none.
    pub(crate) place: String,
    /// The step of a ladder.
    pub(crate) sessions: u32,
    /// The name of the level.
    pub(crate) level: String,
}

impl Experiment {
    /// Without `factor`: each place has the trials of the level with the best `value` there, at each step of a ladder.
    pub(crate) fn best_of(&self, factor: &str, value: &str) -> Result<(Experiment, Vec<BestLevel>), Unknown> {
        let number = self.factor(factor)?;
        self.unit(value)?;
        let lower = self.better(value) == Better::Lower;
        let others: Vec<FactorAxis> =
            (0..self.factors.len()).filter(|other| *other != number).map(FactorAxis::Factor).collect();
        let (mut cells, mut trials, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
        for place in self.combinations(&others) {
            let of_level =
                |level: usize| self.cell(place.iter().copied().chain([(FactorAxis::Factor(number), level)])).0;
            let candidates: Vec<(usize, usize)> =
                (0..self.factors[number].levels.len()).filter_map(|level| Some((level, of_level(level)?))).collect();
            let mut of_steps: Vec<(u32, usize)> = Vec::new();
            for sessions in self.sessions() {
                let mean = |cell: usize| {
                    let values = self.values(value, cell, sessions);
                    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
                };
                let known = candidates.iter().filter_map(|(level, cell)| Some((*level, *cell, mean(*cell)?)));
                let best = known.reduce(|a, b| if (b.2 < a.2) == lower && b.2 != a.2 { b } else { a });
                let Some((level, cell, _)) = best else { continue };
                of_steps.push((sessions, cell));
                chosen.push(BestLevel {
                    place: self.facet_name(&place),
                    sessions,
                    level: self.levels(FactorAxis::Factor(number))[level].clone(),
                });
            }
            let failed = candidates.iter().map(|(_, cell)| self.cells[*cell].failed).sum();
            let first = of_steps.first().map(|(_, cell)| &self.cells[*cell]);
            trials.extend(self.trials_of_steps(&of_steps, cells.len()));
            cells.push(ExperimentCell {
                levels: place.iter().map(|(_, level)| *level).collect(),
                price_per_hour: first.and_then(|cell| cell.price_per_hour),
                failed,
            });
        }
        let kept = |(at, factor): (usize, &Factor)| (at != number).then(|| factor.clone());
        let factors = self.factors.iter().enumerate().filter_map(kept).collect();
        Ok((Experiment::new(factors, cells, trials, self.rounds), chosen))
    }

    /// With these levels of a factor only.
    pub(crate) fn only(&self, factor: &str, levels: &[String]) -> Result<Experiment, Unknown> {
        let number = self.factor(factor)?;
        let mut factors = self.factors.clone();
        let all = &self.factors[number].levels;
        let kept: Vec<usize> = (0..all.len()).filter(|level| levels.contains(&all[*level].name)).collect();
        factors[number].levels = kept.iter().map(|level| all[*level].clone()).collect();
        let (mut cells, mut places) = (Vec::new(), vec![None; self.cells.len()]);
        for (cell, place) in self.cells.iter().zip(&mut places) {
            let Some(level) = kept.iter().position(|level| *level == cell.levels[number]) else { continue };
            *place = Some(cells.len());
            let mut cell = cell.clone();
            cell.levels[number] = level;
            cells.push(cell);
        }
        let of_cell = |trial: &ExperimentTrial| Some(ExperimentTrial { cell: places[trial.cell]?, ..trial.clone() });
        let trials = self.trials.iter().filter_map(of_cell).collect();
        Ok(Experiment::new(factors, cells, trials, self.rounds))
    }

    /// The number of the factor of this name; steps of a ladder are not one.
    fn factor(&self, name: &str) -> Result<usize, Unknown> {
        match self.axis(name)? {
            FactorAxis::Factor(number) => Ok(number),
            FactorAxis::Sessions => {
                let known = self.factors.iter().map(|factor| factor.name.as_str()).collect::<Vec<_>>().join(", ");
                Err(Unknown { what: "factor".into(), name: name.to_owned(), known })
            }
        }
    }

    /// One trial per round, whose stages come from the cells that were chosen for them.
    fn trials_of_steps(&self, steps: &[(u32, usize)], cell: usize) -> Vec<ExperimentTrial> {
        let mut all = Vec::new();
        for round in 0..self.rounds {
            let mut own: Option<ExperimentTrial> = None;
            for (sessions, from) in steps {
                let Some(trial) = self.trials.iter().find(|trial| trial.cell == *from && trial.round == round) else {
                    continue;
                };
                let own = own.get_or_insert_with(|| {
                    let mut first = ExperimentTrial { cell, ..trial.clone() };
                    first.findings.stages.clear();
                    first
                });
                let stages = trial.findings.stages.iter().filter(|stage| stage.sessions == *sessions);
                own.findings.stages.extend(stages.cloned());
            }
            all.extend(own);
        }
        all
    }
}
