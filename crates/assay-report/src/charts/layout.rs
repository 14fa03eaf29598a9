//! Where things of a chart go, whoever draws it: the ranges of its axes, their ticks, and the looks of its lines.

use serde::Serialize;

use crate::charts::chart::{Axis, Body, Chart, Line, Scale};
use crate::charts::palette::SERIES;
use crate::digits::figure;

/// For the page and for pictures. A page that shows a part of a chart finds ticks of its own where too few of these are left.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Layout {
    pub(crate) x: Range,
    pub(crate) y: Range,
    /// One for each line.
    pub(crate) looks: Vec<Look>,
}

/// What an axis shows when it shows everything.
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

/// How a line looks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Look {
    /// In `SERIES`.
    pub(crate) colour: usize,
    /// Lengths of strokes and gaps; empty for a whole line.
    pub(crate) dash: &'static [f32],
}

const DASHES: [&[f32]; 3] = [&[], &[7.0, 3.0], &[2.0, 3.0]];
/// Ticks wanted across, and upwards.
const ACROSS: f64 = 10.0;
const UPWARDS: f64 = 6.0;
/// More numbers of sessions than these are not named each.
const NAMED_MAX: usize = 16;

impl Layout {
    pub(crate) fn of(chart: &Chart) -> Layout {
        match &chart.body {
            Body::Lines { lines } => Layout {
                x: across(&chart.x, lines),
                y: upwards(&chart.y, lines),
                looks: lines.iter().map(look).collect(),
            },
            Body::Heat { columns, edges, .. } => {
                let ends = columns.first().zip(columns.last()).map_or((0.0, 1.0), |(first, last)| (first.0, last.1));
                let rows = edges.first().zip(edges.last()).map_or((1.0, 10.0), |(low, high)| (*low, *high));
                let [x, y] = [Range::new(ends, false, 1.0, ACROSS), Range::new(rows, true, 1.0, UPWARDS)];
                Layout { x, y, looks: Vec::new() }
            }
            Body::Boxes { boxes } => {
                let most =
                    boxes.iter().map(|one| one.outside.iter().copied().fold(one.high, f64::max)).fold(0.0, f64::max);
                let [x, y] = [(0.0, 1.0), (0.0, most)].map(|ends| Range::new(ends, false, 1.0, UPWARDS));
                Layout { x: Range { ticks: Vec::new(), ..x }, y, looks: Vec::new() }
            }
        }
    }
}

fn look(line: &Line) -> Look {
    Look { colour: line.group % SERIES.len(), dash: DASHES[line.group / SERIES.len() % DASHES.len()] }
}

fn across(axis: &Axis, lines: &[Line]) -> Range {
    let all = || lines.iter().flat_map(|line| &line.x).copied();
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    match axis.scale {
        Scale::Nines => Range { ticks: nines(high), ..Range::new((0.0, high), false, 1.0, ACROSS) },
        scale if axis.label == "sessions" => {
            let range = match scale {
                Scale::Log => Range::new((low, high), true, 1.15, ACROSS),
                _ => Range::new((0.0, high), false, 1.05, ACROSS),
            };
            let longest = lines.iter().map(|line| &line.x).max_by_key(|x| x.len());
            match longest.filter(|x| x.len() <= NAMED_MAX) {
                Some(own) => Range { ticks: named(own.iter().copied()), ..range },
                None => range,
            }
        }
        Scale::Log => Range::new((low, high), true, 1.15, ACROSS),
        _ => Range::new((0.0, high), false, 1.0, ACROSS),
    }
}

fn upwards(axis: &Axis, lines: &[Line]) -> Range {
    let all = || lines.iter().flat_map(|line| &line.y).flatten().copied();
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    match axis.scale {
        Scale::Log => Range::new((low, high), true, 1.2, UPWARDS),
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

/// 1, 2 and 5 of every decade; of wide ranges only the decades.
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
