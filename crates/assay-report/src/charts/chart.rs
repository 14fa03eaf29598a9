//! A chart: what it shows, whoever draws it.
//!
//! A `Chart` knows no colour, no size and no program. The page and the drawings show the same charts, and a table
//! of the same figures stands behind each. What is drawn has bounds, so that no record can make a chart nobody
//! can open; where they are reached, the caption says what was merged or left out.

use serde::Serialize;

/// One chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// Unique in a report: letters, digits, hyphens.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Spans of `x` worth a remark; ascending within a kind.
    pub marks: Vec<Mark>,
    /// What is drawn.
    #[serde(flatten)]
    pub body: Body,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// What it measures, with the unit.
    pub label: String,
    /// How values become places.
    pub scale: Scale,
}

/// How values become places on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By their logarithm; all are above zero.
    Log,
    /// The values are nines: 0 is the smallest value, 1 is 90 %, 2 is 99 %.
    Nines,
    /// There are no values: names side by side.
    Names,
}

/// A span worth a remark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// Where it begins, in units of the axis.
    pub from: f64,
    /// from <= to
    pub to: f64,
    /// What it is.
    pub kind: MarkKind,
    /// The remark.
    pub text: String,
}

/// What a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkKind {
    /// A stage of a ladder.
    Stage,
    /// The step of a ladder after which throughput stops growing: a place, no span.
    Knee,
    /// No transaction finished: see `OutageFindings`.
    Outage,
    /// Errors were met.
    Errors,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Body {
    /// Lines through points.
    Lines {
        /// In the order of the legend.
        lines: Vec<Line>,
    },
    /// How many values lie where.
    Heat {
        /// Left and right edge of every column; they ascend and do not overlap.
        columns: Vec<(f64, f64)>,
        /// Edges of the rows: one more than there are rows, ascending.
        edges: Vec<f64>,
        /// Values per second of every column, and in it of every row, the lowest first.
        cells: Vec<Vec<f64>>,
    },
    /// A box for each of several sets of values.
    Boxes {
        /// From left to right.
        boxes: Vec<Boxed>,
    },
}

/// A line: `x` ascends, and both lists are as long; `None` is a gap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// Lines of the same number belong together: trials of one setting.
    pub group: usize,
    /// Across.
    pub x: Vec<f64>,
    /// Upwards.
    pub y: Vec<Option<f64>>,
}

/// A box of a box plot: `BoxFigures` with a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Boxed {
    /// What its values are of.
    pub name: String,
    /// Number of values.
    pub count: usize,
    /// Lower whisker.
    pub low: f64,
    /// Lower edge.
    pub lower_quartile: f64,
    /// Line inside.
    pub median: f64,
    /// Upper edge.
    pub upper_quartile: f64,
    /// Upper whisker.
    pub high: f64,
    /// Points outside the whiskers: some of them, evenly chosen when they are many.
    pub outside: Vec<f64>,
}

pub(crate) const LINES_MAX: usize = 16;

pub(crate) const STAGES_MAX: usize = 200;

pub(crate) const NAME_WIDTH: usize = 76;

impl Chart {
    /// Lines that all belong together are told apart instead.
    pub(crate) fn with_groups(mut self) -> Chart {
        if let Body::Lines { lines } = &mut self.body
            && lines.windows(2).all(|two| two[0].group == two[1].group)
        {
            lines.iter_mut().enumerate().for_each(|(number, line)| line.group = number);
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        match &self.body {
            Body::Lines { lines } => !lines.iter().any(|line| line.y.iter().any(Option::is_some)),
            Body::Heat { columns, .. } => columns.is_empty(),
            Body::Boxes { boxes } => boxes.is_empty(),
        }
    }
}

pub(crate) fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.into(), scale }
}

/// Five digits: more than a screen shows, and shorter to pass on.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powf(4.0 - value.abs().log10().floor());
    if scale.is_finite() { (value * scale).round() / scale } else { value }
}
