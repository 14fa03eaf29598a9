//! A chart's content, independent of how it is drawn.
//!
//! A `Chart` knows no color, no size and no program. The page and the pictures show the same charts, and each has a
//! table of the same figures. The amount of data is limited, so that no record can create a chart that nobody can open;
//! if a limit is reached, the caption says what was merged or omitted.

use serde::Serialize;

use crate::findings::arithmetic::median;
use crate::plain::clean;

/// One chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// Unique in a report: letters, digits, hyphens.
    pub id: String,
    /// Its title.
    pub title: String,
    /// A few words on how to read it, shorter than the title; may be empty.
    pub caption: String,
    /// Subject: workload, server, sessions, load and date, for self-contained pictures.
    pub subject: String,
    /// Name of its picture's file, without the ending; unique in a report.
    pub file: String,
    /// The horizontal axis.
    pub x: ChartAxis,
    /// The vertical axis.
    pub y: ChartAxis,
    /// Spans of `x` with a remark; ascending within a kind.
    pub marks: Vec<Mark>,
    /// Its content.
    #[serde(flatten)]
    pub body: ChartBody,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChartAxis {
    /// Quantity and unit.
    pub label: String,
    /// Scale of the axis.
    pub scale: AxisScale,
}

/// Scale: maps values to positions on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisScale {
    /// Linear, from zero.
    Linear,
    /// Linear, in seconds from zero, shown as 1:00 and 1:00:00.
    Time,
    /// Linear, from below the smallest value.
    Around,
    /// Logarithmic; all are above zero.
    Log,
    /// The values are nines: 0 is the smallest value, 1 is 90 %, 2 is 99 %.
    Nines,
    /// No values: names side by side.
    Names,
}

/// A span with a remark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// Its start, in units of the axis.
    pub from: f64,
    /// from <= to
    pub to: f64,
    /// Its meaning.
    pub kind: MarkKind,
    /// The remark.
    pub text: String,
}

/// Meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkKind {
    /// A stage of a ladder.
    Stage,
    /// The step of a ladder after which throughput stops growing: a point, not a span.
    Knee,
    /// No transaction finished: see `OutageFindings`.
    Outage,
    /// There were errors.
    Errors,
    /// A step of an experiment, or an event of a server, such as a checkpoint.
    Step,
    /// Throughput changed from one level to another: a point, not a span.
    Change,
    /// The steady part, as far as it was judged.
    Steady,
}

/// The content of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum ChartBody {
    /// Lines through points.
    Lines {
        /// In the order of the legend.
        lines: Vec<ChartLine>,
    },
    /// Distribution of values.
    Heat {
        /// Left and right edge of every column; they ascend and do not overlap.
        columns: Vec<(f64, f64)>,
        /// Edges of the rows: one more than there are rows, ascending.
        edges: Vec<f64>,
        /// Values per second of every column and row, the lowest row first.
        cells: Vec<Vec<f64>>,
    },
    /// A box for each of several sets of values.
    Boxes {
        /// From left to right.
        boxes: Vec<Boxed>,
    },
    /// Small charts with one horizontal axis; those in a row share the vertical one, too, unless each has its own.
    Panels {
        /// Panels in a row.
        across: usize,
        /// Whether each panel has a vertical axis of its own.
        own_scales: bool,
        /// Row by row.
        panels: Vec<Panel>,
    },
}

/// One of several charts in a picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// Its title: the difference from its neighbors; may be empty.
    pub name: String,
    /// The vertical axis; the same for all in a row.
    pub y: ChartAxis,
    /// Spans of the horizontal axis with a remark, over time.
    pub marks: Vec<Mark>,
    /// Its content.
    #[serde(flatten)]
    pub body: PanelBody,
}

/// The content of a panel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum PanelBody {
    /// Lines through points, and dots.
    Lines {
        /// In the order of the legend.
        lines: Vec<ChartLine>,
    },
    /// Boxes, bars or dots over the levels of a factor.
    Columns {
        /// Names, from left to right.
        levels: Vec<String>,
        /// Columns of one color.
        sets: Vec<ColumnSet>,
        /// How each is drawn.
        shape: ColumnShape,
    },
}

/// How the values over a level are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnShape {
    /// Quartiles, whiskers and outliers.
    Box,
    /// From zero to the value, with its interval.
    Bar,
    /// Every value as a dot, side by side as far as they are many.
    Jitter,
}

/// Columns of one color, one for each level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnSet {
    /// For the legend; may be empty.
    pub name: String,
    /// Palette index.
    pub group: usize,
    /// Over each level; `None` if nothing was measured.
    pub columns: Vec<Option<Boxed>>,
}

/// A line: `x` ascends, and all lists have the same length; `None` is a gap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartLine {
    /// For the legend.
    pub name: String,
    /// Palette index: its setting's, else its own.
    pub group: usize,
    /// Whether it is separate points instead of a line.
    pub dots: bool,
    /// Whether it is stacked on the previous line: `y` is the sum so far, and `band` extends down to the line before.
    pub stacked: bool,
    /// Horizontal positions.
    pub x: Vec<f64>,
    /// Values.
    pub y: Vec<Option<f64>>,
    /// Lowest and highest value of the trials whose median is `y`; empty for a single trial.
    pub band: Vec<Option<(f64, f64)>>,
}

/// A set of values: a box, or points if there are fewer than ten.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Boxed {
    /// Its name.
    pub name: String,
    /// Palette index of its setting.
    pub group: usize,
    /// Number of values.
    pub count: usize,
    /// Median of all values.
    pub median: f64,
    /// The box and its whiskers; `None` for fewer than ten values.
    pub quartiles: Option<Quartiles>,
    /// 95 % confidence interval of the median, if it is drawn and known.
    pub interval: Option<(f64, f64)>,
    /// All values if they are few; otherwise outliers, an even selection if these are many, too.
    pub points: Vec<f64>,
}

/// A box and its whiskers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quartiles {
    /// Lower whisker: the lowest value within 1.5 times the height of the box.
    pub low: f64,
    /// Lower edge.
    pub lower: f64,
    /// Upper edge.
    pub upper: f64,
    /// Upper whisker.
    pub high: f64,
}

pub(crate) const LINES_MAX: usize = 16;

/// Points of a line; of more, several are merged into one. A day of seconds is 86,400: no screen has that many columns.
pub const POINTS_MAX: usize = 7_200;

/// Points of a line of one of this many records: a page with a hundred of them must open, too.
pub(crate) fn points_max(records: usize) -> usize {
    /// As many as columns of a heat map.
    const LEAST: usize = 300;
    /// Of all records together.
    const OF_ALL: usize = 5 * POINTS_MAX;
    (OF_ALL / records.max(1)).clamp(LEAST, POINTS_MAX)
}

pub(crate) const STAGES_MAX: usize = 200;

pub(crate) const NAME_WIDTH: usize = 76;

impl Chart {
    /// A chart without marks; `named` sets its subject later.
    pub(crate) fn new(
        id: impl Into<String>,
        title: &str,
        caption: impl Into<String>,
        axes: [ChartAxis; 2],
        body: ChartBody,
    ) -> Chart {
        let [x, y] = axes;
        Chart {
            id: id.into(),
            title: title.to_owned(),
            caption: caption.into(),
            subject: String::new(),
            file: String::new(),
            x,
            y,
            marks: Vec::new(),
            body,
        }
    }

    pub(crate) fn with_marks(self, marks: Vec<Mark>) -> Chart {
        Chart { marks, ..self }
    }

    /// Adds a reader's notes to a chart over time; those after its end are left out.
    pub(crate) fn note(&mut self, notes: &[(f64, String)]) {
        if self.x.scale != AxisScale::Time {
            return;
        }
        let end = |lines: &[ChartLine]| lines.iter().flat_map(|line| &line.x).copied().fold(0.0, f64::max);
        let marks = |end: f64| {
            let shown = notes.iter().filter(move |(at, _)| *at <= end);
            shown.map(|(at, text)| Mark { from: *at, to: *at, kind: MarkKind::Step, text: clean(text, NAME_WIDTH) })
        };
        match &mut self.body {
            ChartBody::Lines { lines } => self.marks.extend(marks(end(lines))),
            ChartBody::Heat { columns, .. } => self.marks.extend(marks(columns.last().map_or(0.0, |(_, to)| *to))),
            ChartBody::Boxes { .. } => {}
            ChartBody::Panels { panels, .. } => {
                for panel in panels {
                    if let PanelBody::Lines { lines } = &panel.body {
                        panel.marks.extend(marks(end(lines)));
                    }
                }
            }
        }
    }

    /// Lines that belong together are distinguished otherwise.
    pub(crate) fn with_groups(mut self) -> Chart {
        if let ChartBody::Lines { lines } = &mut self.body
            && lines.windows(2).all(|two| two[0].group == two[1].group)
            && !lines.iter().any(|line| line.dots)
        {
            lines.iter_mut().enumerate().for_each(|(number, line)| line.group = number);
        }
        self
    }

    /// The axes upwards, those of its panels among them.
    pub(crate) fn axes_up(&mut self) -> impl Iterator<Item = &mut ChartAxis> {
        let panels = match &mut self.body {
            ChartBody::Panels { panels, .. } => &mut panels[..],
            _ => &mut [],
        };
        [&mut self.y].into_iter().chain(panels.iter_mut().map(|panel| &mut panel.y))
    }

    /// Whether each of its lines has the same value all the time, as far as a reader can see.
    pub(crate) fn is_constant(&self) -> bool {
        /// A share of the largest value.
        const VISIBLE: f64 = 0.002;
        /// Fewer values show nothing about time.
        const VALUES_MIN: usize = 3;
        let ChartBody::Lines { lines } = &self.body else { return false };
        let most = lines.iter().flat_map(|line| &line.y).flatten().copied().fold(0.0, f64::max);
        lines.iter().all(|line| {
            let known = || line.y.iter().flatten().copied();
            let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
            known().count() >= VALUES_MIN && high - low <= VISIBLE * most
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        match &self.body {
            ChartBody::Lines { lines } => !lines.iter().any(|line| line.y.iter().any(Option::is_some)),
            ChartBody::Heat { columns, .. } => columns.is_empty(),
            ChartBody::Boxes { boxes } => boxes.is_empty(),
            ChartBody::Panels { panels, .. } => panels.iter().all(Panel::is_empty),
        }
    }
}

impl Panel {
    /// Whether it has no point.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.body {
            PanelBody::Lines { lines } => !lines.iter().any(|line| line.y.iter().any(Option::is_some)),
            PanelBody::Columns { sets, .. } => !sets.iter().any(|set| set.columns.iter().any(Option::is_some)),
        }
    }
}

impl ChartLine {
    /// A line without points.
    pub(crate) fn new(name: &str, group: usize) -> ChartLine {
        ChartLine {
            name: name.to_owned(),
            group,
            dots: false,
            stacked: false,
            x: Vec::new(),
            y: Vec::new(),
            band: Vec::new(),
        }
    }

    /// One more point: the median of `values`, with a band if there are several.
    pub(crate) fn push(&mut self, x: f64, values: &[f64]) {
        self.x.push(x);
        self.y.push(median(values.iter().copied()).map(rounded));
        let ends = values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max));
        self.band.push(ends.map(|(low, high)| (rounded(low), rounded(high))));
    }
}

pub(crate) fn axis(label: &str, scale: AxisScale) -> ChartAxis {
    ChartAxis { label: label.into(), scale }
}

/// Five digits: more than a screen shows, and less to transfer.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    /// Nearly all that are needed: to raise to a power takes longer than the rest.
    const POWERS: [f64; 13] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12];
    let exponent = 4.0 - value.abs().log10().floor();
    let known = (exponent >= 0.0).then(|| POWERS.get(exponent as usize)).flatten();
    let scale = known.copied().unwrap_or_else(|| 10f64.powf(exponent));
    if scale.is_finite() { (value * scale).round() / scale } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_fewer_points_where_there_are_many_records() {
        let found = [0, 1, 5, 6, 10, 100, 200].map(points_max);
        assert_eq!(found, [POINTS_MAX, POINTS_MAX, POINTS_MAX, 6_000, 3_600, 360, 300]);
    }
}
