//! Layout of a chart, independent of how it is drawn: axis ranges, ticks, and line styles.

use serde::Serialize;

use crate::charts::chart::{AxisScale, Boxed, Chart, ChartAxis, ChartBody, ChartLine, Panel, PanelBody};
use crate::charts::palette::SERIES_MANY;
use crate::digits::figure;

/// For the page and for pictures. A page that shows a part of a chart computes its own ticks if too few of these are
/// left.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ChartLayout {
    pub(crate) x: Range,
    pub(crate) y: Range,
    /// One for each line.
    pub(crate) looks: Vec<LineStyle>,
}

/// The full range of an axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Range {
    pub(crate) low: f64,
    /// low < high
    pub(crate) high: f64,
    pub(crate) logarithmic: bool,
    /// Factor between the largest value and `high`; on a logarithmic axis, also between `low` and the smallest.
    pub(crate) room: f64,
    /// Ascending.
    pub(crate) ticks: Vec<Tick>,
}

/// A value of an axis with its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) text: String,
}

/// The style of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LineStyle {
    /// Index into `Palette::series`.
    pub(crate) color: usize,
    /// Lengths of dashes and gaps; empty for a solid line.
    pub(crate) dash: &'static [f32],
}

const DASHES: [&[f32]; 3] = [&[], &[7.0, 3.0], &[2.0, 3.0]];
/// Number of ticks wanted, horizontally and vertically.
const ACROSS: f64 = 10.0;
const UPWARDS: f64 = 6.0;
const UPWARDS_IN_PANELS: f64 = 5.0;
/// More numbers of sessions than this are not all labeled.
const NAMED_MAX: usize = 16;

impl ChartLayout {
    pub(crate) fn of(chart: &Chart) -> ChartLayout {
        match &chart.body {
            ChartBody::Lines { lines } => ChartLayout {
                x: across(&chart.x, lines),
                y: upwards(&chart.y, lines),
                looks: lines.iter().map(look).collect(),
            },
            ChartBody::Heat { columns, edges, .. } => {
                let ends = columns.first().zip(columns.last()).map_or((0.0, 1.0), |(first, last)| (first.0, last.1));
                let rows = edges.first().zip(edges.last()).map_or((1.0, 10.0), |(low, high)| (*low, *high));
                ChartLayout { x: time_range(ends), y: Range::new(rows, true, 1.0, UPWARDS), looks: Vec::new() }
            }
            ChartBody::Boxes { boxes } => {
                let x = Range { ticks: Vec::new(), ..Range::new((0.0, 1.0), false, 1.0, UPWARDS) };
                let most = boxes.iter().flat_map(values).fold(0.0, f64::max);
                let least = boxes.iter().flat_map(values).fold(most, f64::min);
                let around = chart.y.scale == AxisScale::Around && most > least;
                let low = if around { (least - 0.25 * (most - least)).max(0.0) } else { 0.0 };
                ChartLayout {
                    x,
                    y: Range::new((low, most + 0.02 * (most - low)), false, 1.0, UPWARDS),
                    looks: Vec::new(),
                }
            }
            ChartBody::Panels { panels, .. } => {
                let (x, mut rows) = panel_ranges(chart, panels.len().max(1), panels, false);
                let y = rows.pop().unwrap_or_else(|| Range::new((0.0, 1.0), false, 1.0, UPWARDS));
                ChartLayout { x, y, looks: Vec::new() }
            }
        }
    }
}

/// The horizontal axis of all panels, and the vertical one of each: those in a row share it, unless they have their
/// own.
pub(crate) fn panel_ranges(chart: &Chart, columns: usize, panels: &[Panel], own: bool) -> (Range, Vec<Range>) {
    let lines = |panels: &[Panel]| -> Vec<ChartLine> {
        let of = |panel: &Panel| match &panel.body {
            PanelBody::Lines { lines } => lines.clone(),
            PanelBody::Columns { .. } => Vec::new(),
        };
        panels.iter().flat_map(of).collect()
    };
    let row = |row: &[Panel]| {
        let columns = row.iter().filter_map(|panel| match &panel.body {
            PanelBody::Columns { sets, .. } => Some(sets),
            PanelBody::Lines { .. } => None,
        });
        let boxes = columns.flatten().flat_map(|set| set.columns.iter().flatten());
        let most = boxes.flat_map(values).fold(0.0, f64::max);
        let range = upwards(&row[0].y, &lines(row));
        if most > 0.0 { Range::new((0.0, most), false, 1.06, UPWARDS_IN_PANELS) } else { range }
    };
    let all = lines(panels);
    let mut x = across(&chart.x, &all);
    if matches!(chart.x.scale, AxisScale::Linear | AxisScale::Log) {
        let mut places: Vec<f64> = all.iter().flat_map(|line| line.x.iter().copied()).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        if places.len() <= NAMED_MAX {
            x.ticks = named(places);
        }
    }
    let together = if own { 1 } else { columns.max(1) };
    let ranges = panels.chunks(together).flat_map(|panels| std::iter::repeat_n(row(panels), panels.len())).collect();
    (x, ranges)
}

/// Everything drawn for a box.
fn values(one: &Boxed) -> impl Iterator<Item = f64> {
    let quartiles = one.quartiles.iter().flat_map(|of| [of.low, of.high]);
    let ends = one.interval.iter().flat_map(|(low, high)| [*low, *high]);
    quartiles.chain(ends).chain(one.points.iter().copied()).chain([one.median])
}

pub(crate) fn look(line: &ChartLine) -> LineStyle {
    LineStyle { color: line.group % SERIES_MANY, dash: DASHES[line.group / SERIES_MANY % DASHES.len()] }
}

fn across(axis: &ChartAxis, lines: &[ChartLine]) -> Range {
    let all = || lines.iter().flat_map(|line| &line.x).copied();
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    match axis.scale {
        AxisScale::Nines => Range { ticks: nines(high), ..Range::new((0.0, high), false, 1.0, ACROSS) },
        scale if axis.label == "sessions" => {
            let range = match scale {
                AxisScale::Log => Range::new((low, high), true, 1.15, ACROSS),
                _ => Range::new((0.0, high), false, 1.05, ACROSS),
            };
            let longest = lines.iter().map(|line| &line.x).max_by_key(|x| x.len());
            match longest.filter(|x| x.len() <= NAMED_MAX) {
                Some(own) => Range { ticks: named(own.iter().copied()), ..range },
                None => range,
            }
        }
        AxisScale::Time => time_range((0.0, high)),
        AxisScale::Log => Range::new((low, high), true, 1.15, ACROSS),
        _ => Range::new((0.0, high), false, 1.0, ACROSS),
    }
}

fn time_range(ends: (f64, f64)) -> Range {
    let range = Range::new(ends, false, 1.0, ACROSS);
    let ticks = time_ticks(range.low, range.high).into_iter().map(|at| Tick { at, text: clock(at) }).collect();
    Range { ticks, ..range }
}

fn upwards(axis: &ChartAxis, lines: &[ChartLine]) -> Range {
    let bands = || lines.iter().flat_map(|line| &line.band).flatten().flat_map(|(low, high)| [*low, *high]);
    let all = || lines.iter().flat_map(|line| &line.y).flatten().copied().chain(bands());
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    match axis.scale {
        AxisScale::Log => Range::new((low, high), true, 1.2, UPWARDS),
        AxisScale::Around if low <= high => {
            // Values that are all alike still need some height.
            let spread = (high - low).max(0.04 * high);
            Range::new(((low - 0.25 * spread).max(0.0), high + 0.06 * spread), false, 1.0, UPWARDS)
        }
        _ => Range::new((0.0, high), false, 1.06, UPWARDS),
    }
}

impl Range {
    /// `low`, `high`: of the values. `wanted`: about how many ticks.
    fn new((low, high): (f64, f64), logarithmic: bool, room: f64, wanted: f64) -> Range {
        let (low, high) = if logarithmic && low > 0.0 { (low / room, high * room) } else { (low, high * room) };
        let high = if high > low { high } else { low + 1.0 };
        let ticks = named(if logarithmic { log_ticks(low, high) } else { even_ticks(low, high, wanted) });
        Range { low, high, logarithmic, room, ticks }
    }
}

fn named(values: impl IntoIterator<Item = f64>) -> Vec<Tick> {
    values.into_iter().map(|at| Tick { at, text: tick(at) }).collect()
}

fn nines(high: f64) -> Vec<Tick> {
    let names = [
        (0.0, "fastest"),
        (2f64.log10(), "50%"),
        (1.0, "90%"),
        (2.0, "99%"),
        (3.0, "99.9%"),
        (4.0, "99.99%"),
        (5.0, "99.999%"),
        (6.0, "99.9999%"),
    ];
    let shown = names.into_iter().filter(|(at, _)| *at <= high);
    shown.map(|(at, text)| Tick { at, text: text.to_owned() }).collect()
}

/// Multiples of 1, 2 or 5 of a power of ten, about `wanted` of them.
fn even_ticks(low: f64, high: f64, wanted: f64) -> Vec<f64> {
    let raw = (high - low) / wanted;
    if !(raw > 0.0 && raw.is_finite()) {
        return vec![low];
    }
    let scale = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * scale >= raw).unwrap_or(10.0) * scale;
    (0..=20)
        .map(|number| (low / step).ceil() * step + f64::from(number) * step)
        .take_while(|value| *value <= high)
        .collect()
}

/// Seconds in units that people use: about `ACROSS` multiples of one of these.
fn time_ticks(low: f64, high: f64) -> Vec<f64> {
    const STEPS: [f64; 20] = [
        0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
        14_400.0, 21_600.0, 43_200.0,
    ];
    let raw = (high - low) / ACROSS;
    match STEPS.into_iter().find(|step| *step >= raw) {
        Some(step) => {
            let first = (low / step).ceil();
            (0..=20).map(|number| (first + f64::from(number)) * step).take_while(|value| *value <= high).collect()
        }
        None => even_ticks(low / 86_400.0, high / 86_400.0, ACROSS).into_iter().map(|days| days * 86_400.0).collect(),
    }
}

/// Seconds as `0:05`, `1:00`, `1:00:00`; tenths only if needed.
pub(crate) fn clock(seconds: f64) -> String {
    let tenths = (seconds * 10.0).round() as u64;
    let (whole, rest) = (tenths / 10, tenths % 10);
    let (hours, minutes, left) = (whole / 3600, whole / 60 % 60, whole % 60);
    let rest = if rest == 0 { String::new() } else { format!(".{rest}") };
    if hours > 0 { format!("{hours}:{minutes:02}:{left:02}{rest}") } else { format!("{minutes}:{left:02}{rest}") }
}

/// 1, 2 and 5 of every decade; for wide ranges only the decades.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    if !(low > 0.0 && high > low && high.is_finite()) {
        return vec![];
    }
    let steps: &[f64] = if (high / low).log10() > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let decades = low.log10().floor() as i32..=high.log10() as i32;
    let values = decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
    values.filter(|value| (low..=high).contains(value)).collect()
}

fn tick(value: f64) -> String {
    let text = figure(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(high: f64, expected: &[&str]) {
        let texts: Vec<String> = time_range((0.0, high)).ticks.into_iter().map(|tick| tick.text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn time_is_counted_in_minutes_and_hours() {
        check(
            1.0,
            &["0:00", "0:00.1", "0:00.2", "0:00.3", "0:00.4", "0:00.5", "0:00.6", "0:00.7", "0:00.8", "0:00.9", "0:01"],
        );
        check(60.0, &["0:00", "0:10", "0:20", "0:30", "0:40", "0:50", "1:00"]);
        check(600.0, &["0:00", "1:00", "2:00", "3:00", "4:00", "5:00", "6:00", "7:00", "8:00", "9:00", "10:00"]);
        check(10_000.0, &["0:00", "30:00", "1:00:00", "1:30:00", "2:00:00", "2:30:00"]);
        check(
            20.0 * 86_400.0,
            &[
                "0:00",
                "48:00:00",
                "96:00:00",
                "144:00:00",
                "192:00:00",
                "240:00:00",
                "288:00:00",
                "336:00:00",
                "384:00:00",
                "432:00:00",
                "480:00:00",
            ],
        );
    }
}
