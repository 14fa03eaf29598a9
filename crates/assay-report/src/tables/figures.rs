//! The data of a requested chart: for spreadsheets, and for readers who cannot see it.

use std::collections::BTreeMap;

use crate::charts::chart::{AxisScale, Boxed, Chart, ChartLine, ColumnShape, Panel, PanelBody};
use crate::digits::{count, figure, sparkline};
use crate::tables::table::{Table, TableCell, TableColumn};

const NAME_WIDTH: usize = 76;

impl Chart {
    /// A row per point, box and bar: `low` and `high` are the ends of an interval, a band or the whiskers.
    pub(crate) fn figures(&self) -> Table {
        let names = ["panel", "value", "series", "x"].map(|name| TableColumn::words(name, NAME_WIDTH));
        let figures = ["y", "low", "high", "lower_quartile", "upper_quartile", "count"].map(TableColumn::figures);
        let mut table = Table::new(names.into_iter().chain(figures));
        for panel in self.panels() {
            let head = |series: &str, x: TableCell| {
                vec![TableCell::foreign(&panel.name), TableCell::foreign(&panel.y.label), TableCell::foreign(series), x]
            };
            match &panel.body {
                PanelBody::Lines { lines } => lines.iter().for_each(|line| {
                    for (number, (x, y)) in line.x.iter().zip(&line.y).enumerate() {
                        let mut row = head(&line.name, TableCell::Number(*x));
                        row.push(TableCell::of(*y, TableCell::Number));
                        if let Some(Some((low, high))) = line.band.get(number) {
                            row.extend([*low, *high].map(TableCell::Number));
                        }
                        table.row(row);
                    }
                }),
                PanelBody::Columns { levels, sets, .. } => {
                    for set in sets {
                        for (level, one) in levels.iter().zip(&set.columns) {
                            let Some(one) = one else { continue };
                            let mut row = head(&set.name, TableCell::foreign(level));
                            row.extend(column(one));
                            table.row(row);
                        }
                    }
                }
            }
        }
        table
    }

    pub(crate) fn panels(&self) -> &[Panel] {
        match &self.body {
            crate::charts::chart::ChartBody::Panels { panels, .. } => panels,
            _ => &[],
        }
    }

    /// A table per panel, for a terminal: figures, with a sketch beside them.
    pub(crate) fn sketches(&self) -> Vec<Table> {
        let several = self.panels().len() > 1;
        let table = |panel: &Panel| {
            let caption = match (several, panel.name.is_empty()) {
                (true, false) => format!("{}, {}", panel.name, panel.y.label),
                _ => panel.y.label.clone(),
            };
            let table = match &panel.body {
                PanelBody::Lines { lines } if self.x.scale == AxisScale::Time => line_table(&self.x.label, lines),
                PanelBody::Lines { lines } => curve_table(&self.x.label, lines),
                PanelBody::Columns { levels, sets, shape } => {
                    let bars = *shape == ColumnShape::Bar;
                    let all = || sets.iter().flat_map(|set| set.columns.iter().flatten());
                    let most = all().flat_map(ends).fold(0.0, f64::max);
                    let named = sets.iter().any(|set| !set.name.is_empty());
                    let middle = if bars { "value" } else { "median" };
                    let mut columns = vec![TableColumn::words(&self.x.label, 24)];
                    columns.extend(named.then(|| TableColumn::figures("")));
                    columns.extend(["low", middle, "high"].map(TableColumn::figures));
                    columns.push(TableColumn::words("", STRIP_WIDTH));
                    let mut table = Table::new(columns);
                    for (level, name) in levels.iter().enumerate() {
                        for (number, set) in sets.iter().enumerate() {
                            let Some(Some(one)) = set.columns.get(level) else { continue };
                            let name = if number == 0 { name.as_str() } else { "" };
                            let (low, high) = reach(one);
                            let mut row = vec![TableCell::foreign(name)];
                            row.extend(named.then(|| TableCell::foreign(&set.name)));
                            row.extend([low, one.median, high].map(TableCell::Number));
                            row.push(TableCell::words(if bars { bar(one, most) } else { box_strip(one, most) }));
                            table.row(row);
                        }
                    }
                    table
                }
            };
            table.with_caption(caption)
        };
        self.panels().iter().map(table).collect()
    }
}

/// Characters of a drawn box or bar.
const STRIP: usize = 36;
/// With what lies at its very end.
const STRIP_WIDTH: usize = STRIP + 1;

fn column(one: &Boxed) -> Vec<TableCell> {
    let (low, high) = reach(one);
    let quartiles = one.quartiles.map(|of| [of.lower, of.upper]);
    let [lower, upper] = quartiles.map_or([const { TableCell::Blank }; 2], |of| of.map(TableCell::Number));
    let [middle, low, high] = [one.median, low, high].map(TableCell::Number);
    vec![middle, low, high, lower, upper, TableCell::Count(one.count as u64)]
}

/// Lowest and highest point drawn: ends of the interval, of the whiskers, or of the values.
fn reach(one: &Boxed) -> (f64, f64) {
    let whiskers = one.quartiles.map(|of| (of.low, of.high));
    let points = || {
        let all = || one.points.iter().copied().chain([one.median]);
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max))
    };
    one.interval.or(whiskers).unwrap_or_else(points)
}

fn ends(one: &Boxed) -> [f64; 2] {
    let (low, high) = reach(one);
    [low, high]
}

/// The certain part is solid, the interval is shaded.
fn bar(one: &Boxed, most: f64) -> String {
    let (low, high) = one.interval.unwrap_or((one.median, one.median));
    let [low, high] = [low, high].map(|value| place(value, most));
    "█".repeat(low) + &"▒".repeat(high.saturating_sub(low))
}

/// `   ├──▒▒┃▒▒▒───┤`; points if there are few values.
fn box_strip(one: &Boxed, most: f64) -> String {
    let mut strip = vec![' '; STRIP_WIDTH];
    let at = |value: f64| place(value, most).min(STRIP);
    if let Some(of) = one.quartiles {
        (at(of.low)..=at(of.high)).for_each(|at| strip[at] = '─');
        (at(of.lower)..=at(of.upper)).for_each(|at| strip[at] = '▒');
    }
    one.points.iter().for_each(|value| strip[at(*value)] = '·');
    strip[at(one.median)] = '┃';
    strip.into_iter().collect::<String>().trim_end().to_owned()
}

fn place(value: f64, most: f64) -> usize {
    if most > 0.0 { (value / most * STRIP as f64).round().clamp(0.0, STRIP as f64) as usize } else { 0 }
}

/// The course of each line.
fn line_table(x: &str, lines: &[ChartLine]) -> Table {
    let mut table = Table::new([
        TableColumn::words("", 40),
        TableColumn::figures("lowest"),
        TableColumn::figures("mean"),
        TableColumn::figures("highest"),
        TableColumn::words(x, STRIP_WIDTH),
    ]);
    let several = lines.iter().any(|line| !line.name.is_empty());
    for line in lines.iter().filter(|line| !several || !line.name.is_empty()) {
        let line = &unstacked(line);
        let known: Vec<f64> = line.y.iter().flatten().copied().collect();
        // NaN if there are no values.
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let low = known.iter().copied().fold(f64::INFINITY, f64::min);
        let high = known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut row = vec![TableCell::foreign(&line.name)];
        row.extend(
            [low, mean, high]
                .map(|value| if value.is_finite() { TableCell::Number(value) } else { TableCell::Unknown }),
        );
        row.push(TableCell::words(sparkline(&thinned(&by_second(line)))));
        table.row(row);
    }
    table
}

/// With the values of a stacked line itself, without those below it.
fn unstacked(line: &ChartLine) -> ChartLine {
    let mut own = line.clone();
    if line.stacked {
        for (y, band) in own.y.iter_mut().zip(&line.band) {
            *y = y.zip(*band).map(|(top, (bottom, _))| top - bottom);
        }
    }
    own
}

/// The mean of each second: several trials may have a point in it.
fn by_second(line: &ChartLine) -> Vec<f64> {
    let mut seconds: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (x, y) in line.x.iter().zip(&line.y) {
        let Some(y) = y else { continue };
        let (sum, count) = seconds.entry(x.round() as i64).or_default();
        (*sum, *count) = (*sum + y, *count + 1.0);
    }
    seconds.into_values().map(|(sum, count)| sum / count).collect()
}

/// A row for each place on the horizontal axis, a column for each curve.
fn curve_table(x: &str, lines: &[ChartLine]) -> Table {
    let mut columns = vec![TableColumn::words(x, 24)];
    columns
        .extend(lines.iter().map(|line| TableColumn::figures(if line.name.is_empty() { "value" } else { &line.name })));
    let mut table = Table::new(columns);
    let mut places: Vec<f64> = lines.iter().flat_map(|line| line.x.iter().copied()).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    for place in places {
        let is_whole = place >= 0.0 && place.fract() == 0.0;
        let mut row = vec![TableCell::words(if is_whole { count(place as u64) } else { figure(place) })];
        row.extend(lines.iter().map(|line| curve_cell(line, place).map_or(TableCell::Unknown, TableCell::words)));
        table.row(row);
    }
    table
}

/// `1,998 [1,950, 2,031]`: a curve's value there, and its band; `None`: it has none.
fn curve_cell(line: &ChartLine, place: f64) -> Option<String> {
    let number = line.x.iter().position(|x| *x == place)?;
    let value = figure(line.y[number]?);
    let band = line.band.get(number).copied().flatten().filter(|(low, high)| low < high);
    Some(band.map_or_else(|| value.clone(), |(low, high)| format!("{value} [{}, {}]", figure(low), figure(high))))
}

/// Means of equal parts, one per character of a strip.
fn thinned(values: &[f64]) -> Vec<f64> {
    let each = values.len().div_ceil(STRIP).max(1);
    values.chunks(each).map(|some| some.iter().sum::<f64>() / some.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_stack_has_its_own_values_and_not_the_sum_up_to_it() {
        let line = ChartLine {
            stacked: true,
            x: vec![0.0, 1.0],
            y: vec![Some(99.5), None],
            band: vec![Some((71.5, 99.5)), None],
            ..ChartLine::new("system", 1)
        };
        assert_eq!(unstacked(&line).y, [Some(28.0), None]);
        assert_eq!(unstacked(&ChartLine { stacked: false, ..line }).y, [Some(99.5), None]);
    }
}
