//! Pivot tables of an experiment.

use assay_stats::{Ratio, Verdict};

use crate::digits::{figure, with_interval};
use crate::findings::experiment::{Pivot, Place};
use crate::plain::clean;
use crate::tables::table::{Cell, Column, Table};

/// Of a level.
const LEVEL_WIDTH: usize = 40;

impl Pivot {
    /// One per facet. Ratios stand in columns of their own, after all values.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let mut columns = vec![Column::words(clean(&self.rows, LEVEL_WIDTH), LEVEL_WIDTH)];
        let axis = self.columns.as_ref().map(|axis| clean(axis, LEVEL_WIDTH));
        match &axis {
            None => columns.push(Column::figures(self.value.clone())),
            Some(axis) => {
                columns.extend(
                    self.column_levels
                        .iter()
                        .map(|level| Column::figures(format!("{axis} {}", clean(level, LEVEL_WIDTH)))),
                );
            }
        }
        let ratios: Vec<usize> = match (self.base, &axis) {
            (None, _) => Vec::new(),
            (Some(_), None) => vec![0],
            (Some(base), Some(_)) => (0..self.column_levels.len()).filter(|column| *column != base).collect(),
        };
        let base = self.base.map(|base| match &axis {
            Some(_) => clean(&self.column_levels[base], LEVEL_WIDTH),
            None => self.facets.first().map_or(String::new(), |facet| clean(&facet.rows[base].0, LEVEL_WIDTH)),
        });
        let base = base.unwrap_or_default();
        columns.extend(ratios.iter().map(|column| match &axis {
            Some(_) => Column::figures(format!("{} / {base}", clean(&self.column_levels[*column], LEVEL_WIDTH))),
            None => Column::figures(format!("by {base}")),
        }));
        let table = |facet: &crate::findings::experiment::Facet| {
            let name = if facet.name.is_empty() {
                String::new()
            } else {
                format!(", {}", clean(&facet.name, 4 * LEVEL_WIDTH))
            };
            let mut table = Table::new(columns.iter().map(|column| Column { head: column.head.clone(), ..*column }));
            for (level, places) in &facet.rows {
                let mut cells = vec![Cell::foreign(level)];
                cells.extend(places.iter().map(value));
                cells.extend(ratios.iter().map(|column| ratio(&places[*column])));
                table.row(cells);
            }
            table.with_caption(format!("{}{name}", self.value))
        };
        self.facets.iter().map(table).collect()
    }
}

fn value(place: &Place) -> Cell {
    match place {
        Place::Measured { value, interval: Some((low, high)), .. } => Cell::words(with_interval(*value, *low, *high)),
        Place::Measured { value, .. } => Cell::words(figure(*value)),
        Place::Failed => Cell::words("failed"),
        Place::Nothing => Cell::Unknown,
    }
}

fn ratio(place: &Place) -> Cell {
    match place {
        Place::Measured { ratio: Some(found), .. } => Cell::words(ratio_words(found)),
        _ => Cell::Blank,
    }
}

/// `1.12 [1.08, 1.16]`, and what cannot be told.
pub(crate) fn ratio_words(found: &Ratio) -> String {
    let interval = found.interval.map_or(String::new(), |(low, high)| format!(" [{}, {}]", figure(low), figure(high)));
    let verdict = match found.verdict {
        Verdict::More | Verdict::Less => String::new(),
        Verdict::NoDifference => " same".to_owned(),
        Verdict::CannotTell { trials_needed } => format!(" ? {trials_needed} rounds"),
    };
    format!("{}{interval}{verdict}", figure(found.ratio))
}
