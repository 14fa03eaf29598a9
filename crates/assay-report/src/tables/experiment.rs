//! Pivot tables of an experiment.

use assay_stats::{Contrast, Measure, Verdict};

use crate::digits::{figure, percent, with_ends, with_range};
use crate::findings::experiment::SETTING;
use crate::findings::experiment::{Pivot, PivotCell};
use crate::plain::clean;
use crate::tables::table::{Table, TableCell, TableColumn};
use crate::words::effects::contrast_figures;

/// A number of rounds or trials that nobody measures: an exact one would only look precise.
const MANY: usize = 100;

/// Characters of a level.
const LEVEL_WIDTH: usize = 40;

impl Pivot {
    /// One per facet. Ratios are in columns of their own, after all values.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let mut columns = vec![TableColumn::words(clean(&self.rows, LEVEL_WIDTH), LEVEL_WIDTH)];
        let axis = self.columns.as_ref().map(|axis| clean(axis, LEVEL_WIDTH));
        match &axis {
            None => columns.push(TableColumn::figures(self.value.clone())),
            Some(axis) => {
                let head = |level: &String| match axis.as_str() {
                    // The heading already says it.
                    SETTING => clean(level, LEVEL_WIDTH),
                    axis => format!("{axis} {}", clean(level, LEVEL_WIDTH)),
                };
                columns.extend(self.column_levels.iter().map(|level| TableColumn::figures(head(level))));
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
        let (sign, word) = match self.by {
            Some(Measure::Difference) => ('−', "difference"),
            _ => ('/', "ratio"),
        };
        columns.extend(ratios.iter().map(|column| match &axis {
            Some(_) => {
                TableColumn::figures(format!("{} {sign} {base}", clean(&self.column_levels[*column], LEVEL_WIDTH)))
            }
            None => TableColumn::figures(format!("{word} to {base}")),
        }));
        let table = |facet: &crate::findings::experiment::Facet| {
            let name = if facet.name.is_empty() {
                String::new()
            } else {
                format!(", {}", clean(&facet.name, 4 * LEVEL_WIDTH))
            };
            let mut table =
                Table::new(columns.iter().map(|column| TableColumn { head: column.head.clone(), ..*column }));
            for (level, places) in &facet.rows {
                let mut cells = vec![TableCell::foreign(level)];
                cells.extend(places.iter().map(|place| value(place, self.by_best)));
                cells.extend(ratios.iter().map(|column| ratio(&places[*column], self.more_of)));
                table.row(cells);
            }
            table.with_caption(format!("{}{name}", self.value))
        };
        self.facets.iter().map(table).collect()
    }

    /// A row per place, for spreadsheets.
    pub(crate) fn figures(&self) -> Table {
        let rows = clean(&self.rows, LEVEL_WIDTH);
        let columns = self.columns.as_ref().map(|name| clean(name, LEVEL_WIDTH));
        let words =
            ["table".to_owned(), rows].into_iter().chain(columns).map(|name| TableColumn::words(name, LEVEL_WIDTH));
        let figures = ["value", "low", "high", "of_best", "ratio", "ratio_low", "ratio_high"].map(TableColumn::figures);
        let others = ["difference", "difference_low", "difference_high", "lowest", "highest"].map(TableColumn::figures);
        let verdict = [TableColumn::words("verdict", LEVEL_WIDTH)];
        let mut table = Table::new(words.chain(figures).chain(verdict).chain(others));
        for facet in &self.facets {
            for (level, places) in &facet.rows {
                for (number, place) in places.iter().enumerate() {
                    let mut row = vec![TableCell::foreign(&facet.name), TableCell::foreign(level)];
                    row.extend(self.column_levels.get(number).map(|level| TableCell::foreign(level)));
                    row.extend(plain(place));
                    table.row(row);
                }
            }
        }
        table
    }
}

/// A place's figures, unrounded.
fn plain(place: &PivotCell) -> Vec<TableCell> {
    let ends = |ends: Option<(f64, f64)>| {
        let (low, high) = ends.unzip();
        [low, high].map(|end| end.map_or(TableCell::Blank, TableCell::Number))
    };
    let blanks = |many: usize| std::iter::repeat_n(TableCell::Blank, many);
    match place {
        PivotCell::Measured { value, interval, range, contrast, of_best, .. } => {
            let mut row = vec![TableCell::Number(*value)];
            row.extend(ends(*interval));
            row.push(of_best.map_or(TableCell::Blank, TableCell::Number));
            let by = |measure| contrast.filter(|contrast| contrast.by == measure);
            let size = |measure| by(measure).map_or(TableCell::Blank, |contrast| TableCell::Number(contrast.size));
            row.push(size(Measure::Ratio));
            row.extend(ends(by(Measure::Ratio).and_then(|contrast| contrast.interval)));
            row.push(contrast.map_or(TableCell::Blank, |contrast| match contrast.verdict {
                Verdict::More => TableCell::words("more"),
                Verdict::Less => TableCell::words("less"),
                Verdict::NoDifference => TableCell::words("same"),
                Verdict::CannotTell { .. } => TableCell::words("cannot_tell"),
            }));
            row.push(size(Measure::Difference));
            row.extend(ends(by(Measure::Difference).and_then(|contrast| contrast.interval)));
            row.extend(ends(*range));
            row
        }
        PivotCell::Failed => blanks(7).chain([TableCell::words("failed")]).chain(blanks(5)).collect(),
        PivotCell::Nothing => blanks(13).collect(),
    }
}

/// Followed by its share of the best one, and by how many trials it is without.
fn value(place: &PivotCell, by_best: bool) -> TableCell {
    match place {
        PivotCell::Measured { value, interval, range, of_best, failed, .. } => {
            let figure = match (interval, range) {
                (Some((low, high)), _) => with_ends(*value, *low, *high),
                (None, Some((low, high))) => with_range(*value, *low, *high),
                (None, None) => figure(*value),
            };
            let share = of_best.filter(|_| by_best).map(|share| format!("  {}", percent(share)));
            let failed = (*failed > 0).then(|| format!("  ({failed} failed)"));
            TableCell::words(figure + &share.unwrap_or_default() + &failed.unwrap_or_default())
        }
        PivotCell::Failed => TableCell::words("failed"),
        PivotCell::Nothing => TableCell::Unknown,
    }
}

fn ratio(place: &PivotCell, more_of: &str) -> TableCell {
    match place {
        PivotCell::Measured { contrast: Some(found), .. } => TableCell::words(contrast_words(found, more_of)),
        _ => TableCell::Blank,
    }
}

/// `1.12 [1.08, 1.16]`, or what cannot be said without more rounds or trials.
pub(crate) fn contrast_words(found: &Contrast, more_of: &str) -> String {
    let verdict = match found.verdict {
        Verdict::More | Verdict::Less => String::new(),
        Verdict::NoDifference => " same".to_owned(),
        Verdict::CannotTell { trials_needed } if trials_needed > MANY => format!(" ? over {MANY} {more_of}"),
        Verdict::CannotTell { trials_needed } => format!(" ? {trials_needed} {more_of}"),
    };
    contrast_figures(found) + &verdict
}
