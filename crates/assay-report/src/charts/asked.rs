//! Requested charts, as in publications: of an experiment's cells, over time or over a factor, in panels.
//!
//! Only trials of the same cell are pooled. Axes without a place become panels.

use std::collections::BTreeMap;

use crate::charts::chart::{
    AxisScale, Boxed, Chart, ChartBody, ChartLine, ColumnSet, ColumnShape, LINES_MAX, Mark, MarkKind, NAME_WIDTH,
    POINTS_MAX, Panel, PanelBody, axis, rounded,
};
use crate::charts::spread::boxed;
use crate::charts::time::{change_marks, checkpoint_marks, note_mark, steady_mark, step_mark, time_axis};
use crate::findings::arithmetic::{median, rolling_median};
use crate::findings::course::{FigureOverTime, course, course_names};
use crate::findings::experiment::{BEST, Experiment, ExperimentTrial, FactorAxis, SETTING, Unknown};
use crate::findings::metric::Better;
use crate::findings::setting::SESSIONS;
use crate::findings::stage::StageFindings;
use crate::plain::clean;
use crate::words::run::sessions as sessions_words;

/// Presentation of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChartKind {
    /// Every second of every trial as a dot, with a rolling median: shows how even it was.
    Dots,
    /// Lines over time, runs aligned at their start.
    Lines,
    /// Boxes of all seconds over the levels of a factor.
    Boxes,
    /// Every second as a dot over the levels of a factor, with the median.
    Jitter,
    /// Bars of a metric over the levels of a factor, with intervals; trials are points.
    Bars,
    /// A metric by sessions, or by another numeric factor: a line per setting.
    Curves,
    /// Several metrics over time, each on top of the one before it, such as CPU time by kind.
    Stack,
}

/// Everything that distinguishes a kind from the others.
struct KindFacts {
    /// Its name in options and recipes.
    name: &'static str,
    x: KindAxis,
    /// Whether settings have colors unless another factor was requested.
    has_colors: bool,
    /// How to read it; may be empty.
    caption: &'static str,
    /// A metric's axis label, and what is drawn in one panel.
    draw: DrawPanel,
}

/// Draws the metric with this name.
type DrawPanel = fn(&PanelCells<'_>, &str) -> Result<(String, PanelBody), NoChart>;

/// The horizontal axis of a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KindAxis {
    /// Time since the start of a run.
    Time,
    /// Names of levels, side by side.
    Levels,
    /// Levels that are numbers; sessions unless requested otherwise.
    Numbers,
}

impl ChartKind {
    /// Every kind.
    pub const ALL: [ChartKind; 7] = [
        ChartKind::Dots,
        ChartKind::Lines,
        ChartKind::Boxes,
        ChartKind::Jitter,
        ChartKind::Bars,
        ChartKind::Curves,
        ChartKind::Stack,
    ];

    fn facts(self) -> KindFacts {
        match self {
            ChartKind::Dots => KindFacts {
                name: "dots",
                x: KindAxis::Time,
                has_colors: false,
                caption: "",
                draw: |cells, value| cells.over_time(value, true),
            },
            ChartKind::Lines => KindFacts {
                name: "lines",
                x: KindAxis::Time,
                has_colors: true,
                caption: "",
                draw: |cells, value| cells.over_time(value, false),
            },
            ChartKind::Boxes => KindFacts {
                name: "boxes",
                x: KindAxis::Levels,
                has_colors: false,
                caption: "",
                draw: |cells, value| cells.seconds(value, ColumnShape::Box),
            },
            ChartKind::Jitter => KindFacts {
                name: "jitter",
                x: KindAxis::Levels,
                has_colors: false,
                caption: "dots: seconds, line: median",
                draw: |cells, value| cells.seconds(value, ColumnShape::Jitter),
            },
            ChartKind::Bars => KindFacts {
                name: "bars",
                x: KindAxis::Levels,
                has_colors: false,
                caption: "95% intervals",
                draw: |cells, value| cells.bars(value),
            },
            ChartKind::Curves => KindFacts {
                name: "curves",
                x: KindAxis::Numbers,
                has_colors: true,
                caption: "band: range",
                draw: |cells, value| cells.curves(value),
            },
            ChartKind::Stack => KindFacts {
                name: "stack",
                x: KindAxis::Time,
                has_colors: false,
                caption: "stacked",
                draw: |cells, values| cells.stack(values),
            },
        }
    }

    /// Its name in options and recipes.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The kind of this name.
    pub fn of_name(name: &str) -> Option<ChartKind> {
        ChartKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether sessions are on its horizontal axis unless another factor was requested.
    pub fn is_by_sessions(self) -> bool {
        self.facts().x == KindAxis::Numbers
    }

    /// The names of kinds with such an axis: `dots and lines`.
    fn names(is: impl Fn(KindAxis) -> bool) -> String {
        let kinds = ChartKind::ALL.into_iter().map(ChartKind::facts);
        let names: Vec<&str> = kinds.filter(|kind| is(kind.x)).map(|kind| kind.name).collect();
        match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        }
    }
}

/// A requested chart. Axes are factors, or `sessions`.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartAsked {
    /// Its presentation.
    pub kind: ChartKind,
    /// The factor on the horizontal axis; `None`: the first one, for curves `sessions`. Over time there is none.
    pub x: Option<String>,
    /// The factor shown by color; `None`: for curves and lines `setting`, if there is such a factor.
    pub color: Option<String>,
    /// The factor with one panel per level, side by side.
    pub facet: Option<String>,
    /// The factor with one row of panels per level.
    pub facet_rows: Option<String>,
    /// Whether each panel has a vertical axis of its own; otherwise those in a row share one.
    pub own_scales: bool,
    /// Metrics, one row of panels each: `tps`, `p99`; over time also readings such as `server.log_bytes`.
    pub values: Vec<String>,
    /// `BEST`: bars and boxes as a share of the best one in their panel. No other value.
    pub ratio_to: Option<String>,
    /// Values that others are held against, by name: a line across each panel of dots, lines or curves.
    pub references: Vec<(String, f64)>,
    /// A factor of which only the best level is shown, by the first value, in each place by itself.
    pub best_of: Option<String>,
    /// Over time: all steps of a ladder one after the other, instead of a panel for each.
    pub whole_run: bool,
}

/// Why a chart cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoChart {
    /// A factor or a metric does not exist.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The request is contradictory.
    #[error("{0}")]
    Unfit(String),
    /// No trial has the requested data.
    #[error("there is no data for it")]
    Empty,
}

/// Most panels in one picture; more would be too small to read.
const PANELS_MAX: usize = 48;
/// Panels per row.
const ACROSS_MAX: usize = 4;
/// Most dots of one color in one panel; above that, an evenly spaced selection is drawn.
const DOTS_MAX: usize = 20_000;
const MEDIANS: usize = 40;
/// Most steps, outages and stages marked in one panel.
const MARKS_MAX: usize = 200;

impl Experiment {
    /// The chart; `number` distinguishes charts of one report.
    pub(crate) fn chart(&self, asked: &ChartAsked, number: usize) -> Result<Chart, NoChart> {
        if !asked.whole_run {
            return self.chart_with_marks(asked, number, self);
        }
        if asked.kind.facts().x != KindAxis::Time {
            let kinds = ChartKind::names(|x| x == KindAxis::Time);
            return Err(NoChart::Unfit(format!("whole_run is for charts over time: {kinds}")));
        }
        if [&asked.color, &asked.facet, &asked.facet_rows].into_iter().flatten().any(|axis| axis == SESSIONS) {
            return Err(NoChart::Unfit("whole_run shows all numbers of sessions in one panel".to_owned()));
        }
        self.as_whole_runs().chart_with_marks(asked, number, self)
    }

    /// `measured`: the experiment with the stages as they were measured, for marks.
    fn chart_with_marks(&self, asked: &ChartAsked, number: usize, measured: &Experiment) -> Result<Chart, NoChart> {
        let kind = asked.kind.facts();
        let unfit = |words: String| Err(NoChart::Unfit(words));
        let is_over_levels = kind.x == KindAxis::Levels;
        if kind.x == KindAxis::Time && asked.x.is_some() {
            let kinds = ChartKind::names(|x| x == KindAxis::Time);
            return unfit(format!("{kinds} are drawn over time: name factors as color or facet"));
        }
        if asked.ratio_to.as_deref().is_some_and(|base| base != BEST) {
            let words = "charts can show ratios to the best value only (best); for ratios to a level use a table";
            return unfit(words.to_owned());
        }
        if !asked.references.is_empty() && is_over_levels {
            let kinds = ChartKind::names(|x| x != KindAxis::Levels);
            return unfit(format!("references are drawn across {kinds} only"));
        }
        if asked.kind == ChartKind::Stack && asked.color.is_some() {
            return unfit("stack has a color for each metric: name factors as facet".to_owned());
        }
        if asked.ratio_to.is_some() && !is_over_levels {
            let kinds = ChartKind::names(|x| x == KindAxis::Levels);
            return unfit(format!("only {kinds} can show ratios to the best value"));
        }
        let named = |name: &Option<String>| name.as_ref().map(|name| self.axis(name)).transpose();
        let [x, color, facet] = [named(&asked.x)?, named(&asked.color)?, named(&asked.facet)?];
        let facet_rows = named(&asked.facet_rows)?;
        let x = x.or_else(|| self.usual_x(kind.x, [color, facet, facet_rows]));
        let color = color.or_else(|| self.usual_color([x, facet, facet_rows]).filter(|_| kind.has_colors));
        let placed: Vec<FactorAxis> = [x, color, facet, facet_rows].into_iter().flatten().collect();
        if placed.iter().enumerate().any(|(at, one)| placed[at + 1..].contains(one)) {
            return unfit("a factor can be used only once in a chart".to_owned());
        }
        let mut rest: Vec<FactorAxis> = self.others(&[x, color, facet_rows]);
        // A grid keeps the place of a combination that nobody measured.
        let columns = facet_rows.map(|_| self.combinations(&rest).len());
        rest.splice(0..0, facet_rows);
        let mut facets = self.combinations(&rest);
        if columns.is_none() {
            facets.retain(|facet| self.has_trials(facet));
        }
        // A stack has all metrics in one panel.
        let values = match asked.kind {
            ChartKind::Stack => vec![asked.values.join(",")],
            _ => asked.values.clone(),
        };
        let rows = values.len().max(1);
        if facets.len() * rows > PANELS_MAX {
            return Err(NoChart::Unfit(format!(
                "{} panels are too many for one picture (at most {PANELS_MAX}): name fewer records, or give factors a place",
                facets.len() * rows
            )));
        }
        let in_row = if rows > 1 { facets.len() } else { facets.len().min(ACROSS_MAX) };
        let mut across = columns.unwrap_or(in_row).max(1);
        let mut panels = Vec::new();
        let mut x_axis = time_axis(self.trials.iter().map(|trial| &trial.findings));
        for value in &values {
            for facet in &facets {
                let name = clean(&self.facet_name(facet), NAME_WIDTH);
                let cells = PanelCells { experiment: self, facet, x, color };
                let (label, body) = (kind.draw)(&cells, value)?;
                let marks = if kind.x == KindAxis::Time { cells.marks(measured) } else { Vec::new() };
                let mut panel = Panel { name, y: axis(&label, AxisScale::Linear), marks, body };
                if asked.ratio_to.is_some() {
                    panel.by_best(value, self.better(value));
                }
                panel.body.refer_to(&asked.references);
                panels.push(panel);
            }
        }
        // What only some combinations have, such as a step of theirs, has no panels in the others.
        if columns.is_none() && kind.x != KindAxis::Time && panels.iter().any(Panel::is_empty) {
            panels.retain(|panel| !panel.is_empty());
            across = panels.len().clamp(1, ACROSS_MAX);
        }
        if let Some(axis_of) = x {
            let name = clean(self.axis_name(axis_of), NAME_WIDTH);
            let scale = if kind.x == KindAxis::Numbers { scale_of(&panels) } else { AxisScale::Names };
            x_axis = axis(&name, scale);
        }
        let chart = Chart::new(
            format!("asked-{}", number + 1),
            &self.title(asked, x),
            caption(&self.caption_of(asked.kind, &asked.values, &panels), asked),
            [x_axis, axis("", AxisScale::Linear)],
            ChartBody::Panels { across, own_scales: asked.own_scales, panels },
        );
        let values: Vec<String> = asked.values.iter().map(|value| value.replace(['.', '_'], "-")).collect();
        let chart = Chart { file: format!("{}-{}", kind.name, values.join("-")), ..chart };
        if chart.is_empty() { Err(NoChart::Empty) } else { Ok(chart) }
    }

    /// How to read a kind, as far as it is in the panels: how many trials a bar has, what a band is.
    fn caption_of(&self, kind: ChartKind, values: &[String], panels: &[Panel]) -> String {
        let is_of_trial = || values.iter().all(|value| self.is_of_trial(value));
        let all = || panels.iter().flat_map(Panel::columns);
        let has_band = panels.iter().any(Panel::has_band);
        match kind {
            ChartKind::Boxes => {
                let what = if is_of_trial() { "trials" } else { "seconds" };
                let quartiles = all().filter(|one| one.quartiles.is_some()).count();
                match all().count() - quartiles {
                    0 => format!("boxes: quartiles of {what}"),
                    _ if quartiles == 0 => format!("dots: {what}, line: median"),
                    _ => format!("boxes: quartiles of {what}; dots: {what} that are too few for a box"),
                }
            }
            ChartKind::Jitter if is_of_trial() => "dots: trials, line: median".to_owned(),
            ChartKind::Curves if !has_band => String::new(),
            ChartKind::Bars => {
                let counts = || all().map(|one| one.count);
                let trials = match (counts().min(), counts().max()) {
                    (Some(1), Some(1)) | (None, _) | (_, None) => return "1 trial each".to_owned(),
                    (Some(low), Some(high)) if low == high => format!("n = {low} trials"),
                    (Some(low), Some(high)) => format!("n = {low} to {high} trials"),
                };
                if all().any(|one| one.interval.is_some()) { format!("{trials}, 95% intervals") } else { trials }
            }
            kind => kind.facts().caption.to_owned(),
        }
    }

    /// The first factor without a place, or the sessions.
    fn usual_x(&self, kind: KindAxis, taken: [Option<FactorAxis>; 3]) -> Option<FactorAxis> {
        let free = |one: &FactorAxis| !taken.contains(&Some(*one));
        let sessions = Some(FactorAxis::Sessions).filter(free);
        match kind {
            KindAxis::Time => None,
            KindAxis::Numbers => sessions,
            KindAxis::Levels => (0..self.factors.len()).map(FactorAxis::Factor).find(free).or(sessions),
        }
    }

    fn usual_color(&self, taken: [Option<FactorAxis>; 3]) -> Option<FactorAxis> {
        let free = |one: &FactorAxis| !taken.contains(&Some(*one));
        let first = || (0..self.factors.len()).map(FactorAxis::Factor).find(free);
        self.axis(SETTING).ok().filter(free).or_else(first)
    }

    fn has_trials(&self, facet: &[(FactorAxis, usize)]) -> bool {
        let sessions = self.sessions();
        self.trials.iter().any(|trial| {
            let cell = &self.cells[trial.cell];
            facet.iter().all(|(axis, level)| match axis {
                FactorAxis::Factor(number) => cell.levels[*number] == *level,
                FactorAxis::Sessions => trial.findings.stages.iter().any(|stage| stage.sessions == sessions[*level]),
            })
        })
    }

    fn title(&self, asked: &ChartAsked, x: Option<FactorAxis>) -> String {
        let values: Vec<&str> = asked.values.iter().map(|value| name_of(value)).collect();
        let values = values.join(", ");
        let mut title = values;
        title += match (asked.kind, x) {
            (_, None) => " over time".to_owned(),
            (_, Some(x)) => format!(" by {}", clean(self.axis_name(x), NAME_WIDTH)),
        }
        .as_str();
        let mut chars = title.chars();
        chars.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + chars.as_str())
    }
}

/// Its common name, if it has one.
fn name_of(value: &str) -> &str {
    match value {
        "tps" => "throughput",
        "qps" => "statements",
        "p50" => "median response time",
        "server.checkpoint_age_bytes" => "checkpoint age",
        "server.log_bytes" => "log written",
        other => other,
    }
}

fn caption(of_kind: &str, asked: &ChartAsked) -> String {
    let best = if asked.ratio_to.is_some() { ", best = 100%" } else { "" };
    let best_of = asked.best_of.as_ref();
    let best_of = best_of.map_or(String::new(), |factor| format!(", best {}", clean(factor, NAME_WIDTH)));
    format!("{of_kind}{best}{best_of}").trim_start_matches(", ").to_owned()
}

impl PanelBody {
    /// Adds a level line for each reference, as wide as what is drawn.
    fn refer_to(&mut self, references: &[(String, f64)]) {
        let PanelBody::Lines { lines } = self else { return };
        let xs = || lines.iter().flat_map(|line| &line.x).copied();
        let Some((from, to)) = xs().reduce(f64::min).zip(xs().reduce(f64::max)) else { return };
        let group = lines.iter().map(|line| line.group).max().unwrap_or(0) + 1;
        let line = |(number, (name, value)): (usize, &(String, f64))| {
            let group = group + number;
            ChartLine {
                group,
                x: vec![from, to],
                y: vec![Some(rounded(*value)); 2],
                ..ChartLine::new(&clean(name, NAME_WIDTH), group)
            }
        };
        let all: Vec<ChartLine> = references.iter().enumerate().map(line).collect();
        lines.extend(all);
    }
}

/// The cells of a panel.
struct PanelCells<'a> {
    experiment: &'a Experiment,
    facet: &'a [(FactorAxis, usize)],
    x: Option<FactorAxis>,
    color: Option<FactorAxis>,
}

impl PanelCells<'_> {
    /// A name and a number for each color.
    fn colors(&self) -> Vec<(String, Option<(FactorAxis, usize)>)> {
        let Some(axis) = self.color else { return vec![(String::new(), None)] };
        if self.experiment.levels(axis).len() == 1 {
            return vec![(String::new(), Some((axis, 0)))];
        }
        let name = |level: String| match self.experiment.axis_name(axis) {
            SETTING => level,
            SESSIONS if level == "1" => "1 session".into(),
            SESSIONS => format!("{level} sessions"),
            name => format!("{name}={level}"),
        };
        let levels = self.experiment.levels(axis).into_iter().enumerate();
        levels.map(|(number, level)| (clean(&name(level), NAME_WIDTH), Some((axis, number)))).collect()
    }

    /// The cell with these levels, and its sessions.
    fn cell(&self, color: Option<(FactorAxis, usize)>, x: Option<usize>) -> Option<(usize, u32)> {
        let at = self.facet.iter().copied().chain(color).chain(self.x.zip(x));
        let (cell, step) = self.experiment.cell(at);
        Some((cell?, *self.experiment.sessions().get(step)?))
    }

    fn stages(&self, color: Option<(FactorAxis, usize)>, x: Option<usize>) -> Vec<&StageFindings> {
        self.cell(color, x).map_or(Vec::new(), |(cell, sessions)| self.experiment.stages(cell, sessions).collect())
    }

    fn unknown(&self, value: &str) -> Unknown {
        let stages = self.experiment.trials.iter().flat_map(|trial| &trial.findings.stages);
        let mut known: Vec<String> = Vec::new();
        for name in stages.flat_map(course_names) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        Unknown { what: "trial has over time a value".into(), name: value.to_owned(), known: known.join(", ") }
    }

    fn is_known(&self, value: &str) -> bool {
        let mut stages = self.experiment.trials.iter().flat_map(|trial| &trial.findings.stages);
        stages.any(|stage| course(stage, value).is_some())
    }

    fn over_time(&self, value: &str, dots: bool) -> Result<(String, PanelBody), NoChart> {
        if !self.is_known(value) {
            return Err(self.unknown(value).into());
        }
        let mut lines = Vec::new();
        let mut label = value.to_owned();
        for (number, (name, color)) in self.colors().into_iter().enumerate().take(LINES_MAX) {
            let stages = self.stages(color, None);
            let courses: Vec<FigureOverTime> = stages.iter().filter_map(|stage| course(stage, value)).collect();
            if courses.is_empty() {
                continue;
            }
            label = label_of(value, courses[0].unit);
            let trials = courses.len();
            // A line through all trials would go up and down within each second.
            let dotted = if dots { together(courses.clone()) } else { Vec::new() };
            let points = if trials == 1 { together(courses) } else { by_second(courses) };
            let is_only = name.is_empty();
            let width = if dots { ((points.len() / MEDIANS) | 1).max(5) } else { 1 };
            let group = if self.color.is_some() { number } else { 0 };
            if dots {
                let step = dotted.len().div_ceil(DOTS_MAX).max(1);
                let (x, y) = dotted.iter().step_by(step).map(|(x, y)| (*x, y.map(rounded))).unzip();
                let name = if is_only { "each second".to_owned() } else { name.clone() };
                lines.push(ChartLine { group, dots: true, x, y, ..ChartLine::new(&name, group) });
            }
            // With several colors, a legend needs no second entry each.
            let name = match (dots, is_only) {
                (false, _) => name,
                (true, true) => "median".to_owned(),
                (true, false) => String::new(),
            };
            lines.push(ChartLine { group, ..medians(&name, &points, width) });
            // A metric in bytes is drawn with its limit.
            if let Some(of) = value.strip_suffix("_bytes") {
                let limit = stages.iter().find_map(|stage| course(stage, &format!("{of}_limit_bytes")));
                lines.extend(limit.map(|limit| {
                    let (x, y) = limit.points.into_iter().map(|(x, y)| (x, y.map(rounded))).unzip();
                    ChartLine { x, y, ..ChartLine::new("limit", 1) }
                }));
            }
        }
        Ok((label, PanelBody::Lines { lines }))
    }

    /// Each metric on top of the one before it; of several trials, the median of each second. `values`: their names,
    /// separated by commas.
    fn stack(&self, values: &str) -> Result<(String, PanelBody), NoChart> {
        let stages = self.stages(None, None);
        let mut lines: Vec<ChartLine> = Vec::new();
        let mut label = "";
        let mut below: Vec<(f64, f64)> = Vec::new();
        for (group, value) in values.split(',').enumerate().take(LINES_MAX) {
            if !self.is_known(value) {
                return Err(self.unknown(value).into());
            }
            let courses: Vec<FigureOverTime> = stages.iter().filter_map(|stage| course(stage, value)).collect();
            let Some(first) = courses.first() else { continue };
            if !label.is_empty() && label != first.unit {
                let words = format!("a stack needs metrics of one unit, and {value} is in {}", first.unit);
                return Err(NoChart::Unfit(words));
            }
            label = first.unit;
            let own: Vec<(f64, f64)> = by_second(courses).into_iter().filter_map(|(x, y)| Some((x, y?))).collect();
            let sum_below = |x: f64| below.iter().find(|(at, _)| *at == x).map_or(0.0, |(_, sum)| *sum);
            let mut line = ChartLine { stacked: true, ..ChartLine::new(stack_name(value), group) };
            let mut sums = Vec::new();
            for (x, y) in own {
                let low = sum_below(x);
                line.x.push(x);
                line.y.push(Some(rounded(low + y)));
                line.band.push(Some((rounded(low), rounded(low + y))));
                sums.push((x, low + y));
            }
            below = sums;
            lines.push(line);
        }
        Ok((label.to_owned(), PanelBody::Lines { lines }))
    }

    /// Steps of the recipe, outages, checkpoints of a single trial, and the stages of a whole run. `measured`: with the
    /// stages as they were measured; their ladder is drawn as one if it is another experiment than this one.
    fn marks(&self, measured: &Experiment) -> Vec<Mark> {
        let whole = !std::ptr::eq(self.experiment, measured);
        let cells: Vec<(usize, u32)> =
            self.colors().into_iter().filter_map(|(_, color)| self.cell(color, None)).collect();
        let trials: Vec<&ExperimentTrial> = measured
            .trials
            .iter()
            .filter(|trial| cells.iter().any(|(cell, _)| *cell == trial.cell) && !trial.findings.stages.is_empty())
            .collect();
        let (mut steps, mut outages, mut stages, mut steady): (Vec<Mark>, Vec<Mark>, Vec<Mark>, Vec<Mark>) =
            Default::default();
        for trial in &trials {
            let sessions = cells.iter().find(|(cell, _)| *cell == trial.cell).map_or(0, |(_, sessions)| *sessions);
            let of_panel = |stage: &&StageFindings| whole || stage.sessions == sessions;
            let own: Vec<&StageFindings> = trial.findings.stages.iter().filter(of_panel).collect();
            let Some((first, last)) = own.first().zip(own.last()) else { continue };
            let begin =
                |stage: &StageFindings| (stage.started.unix_ms().saturating_sub(first.started.unix_ms())) as f64 / 1e3;
            let end = begin(last) + last.measured_ns as f64 / 1e9;
            let of_trial = trial.findings.trial.iter().flat_map(|trial| &trial.steps);
            steps.extend(of_trial.filter_map(|step| step_mark(step, first.started.unix_ms(), end)));
            let notes = trial.findings.notes.iter();
            steps.extend(notes.filter_map(|note| note_mark(note, first.started.unix_ms(), end)));
            for stage in &own {
                let begin = begin(stage);
                if trials.len() == 1 {
                    steps.extend(checkpoint_marks(stage, begin));
                    steps.extend(change_marks(stage, begin));
                    steady.extend(steady_mark(stage, begin));
                }
                // Of several settings in one panel, an area would seem to be about all of them.
                let own_outages = stage.throughput.outages.iter().filter(|_| cells.len() == 1);
                outages.extend(own_outages.map(|outage| Mark {
                    from: begin + outage.start_ns as f64 / 1e9,
                    to: begin + outage.end_ns() as f64 / 1e9,
                    kind: MarkKind::Outage,
                    text: String::new(),
                }));
            }
            if whole && own.len() > 1 && stages.is_empty() {
                stages.extend(own.iter().map(|stage| Mark {
                    from: begin(stage),
                    to: begin(stage) + stage.measured_ns as f64 / 1e9,
                    kind: MarkKind::Stage,
                    text: sessions_words(stage.sessions),
                }));
            }
        }
        let mut marks = stages;
        marks.extend(steady);
        marks.extend(merged(outages));
        marks.extend(merged(steps));
        marks.truncate(MARKS_MAX);
        marks
    }

    fn columns(
        &self,
        shape: ColumnShape,
        of: &dyn Fn(Option<(FactorAxis, usize)>, usize) -> Option<Boxed>,
    ) -> PanelBody {
        let levels = self.x.map_or(vec![String::new()], |axis| self.experiment.levels(axis));
        let set = |(number, (name, color)): (usize, (String, Option<(FactorAxis, usize)>))| ColumnSet {
            name,
            group: number,
            columns: (0..levels.len()).map(|level| of(color, level)).collect(),
        };
        let sets = self.colors().into_iter().enumerate().map(set).collect();
        PanelBody::Columns { levels: levels.iter().map(|level| clean(level, NAME_WIDTH)).collect(), sets, shape }
    }

    /// The seconds of each cell; where a value has none, its trials.
    fn seconds(&self, value: &str, shape: ColumnShape) -> Result<(String, PanelBody), NoChart> {
        let drawn = |values: Vec<f64>| if shape == ColumnShape::Jitter { jittered(values) } else { boxed(values) };
        if self.experiment.is_of_trial(value) {
            let (unit, scale) = self.experiment.unit(value)?;
            let of_cell = |color: Option<(FactorAxis, usize)>, level: usize| {
                let (cell, sessions) = self.cell(color, Some(level))?;
                drawn(self.experiment.values(value, cell, sessions).iter().map(|one| rounded(one * scale)).collect())
            };
            return Ok((label_of(value, unit), self.columns(shape, &of_cell)));
        }
        if !self.is_known(value) {
            return Err(self.unknown(value).into());
        }
        let unit = std::cell::Cell::new("");
        let of_cell = |color: Option<(FactorAxis, usize)>, level: usize| {
            let stages = self.stages(color, Some(level));
            let courses: Vec<FigureOverTime> = stages.iter().filter_map(|stage| course(stage, value)).collect();
            unit.set(courses.first().map_or(unit.get(), |one| one.unit));
            drawn(courses.iter().flat_map(|course| &course.points).filter_map(|(_, value)| *value).collect())
        };
        let body = self.columns(shape, &of_cell);
        Ok((label_of(value, unit.get()), body))
    }

    fn bars(&self, value: &str) -> Result<(String, PanelBody), NoChart> {
        let (unit, scale) = self.experiment.unit(value)?;
        let mut fits = BTreeMap::new();
        for sessions in self.experiment.sessions() {
            fits.insert(sessions, self.experiment.fit(value, sessions, scale));
        }
        let bar = |color: Option<(FactorAxis, usize)>, level: usize| {
            let (cell, sessions) = self.cell(color, Some(level))?;
            let points: Vec<f64> =
                self.experiment.values(value, cell, sessions).iter().map(|one| rounded(one * scale)).collect();
            let fitted = fits.get(&sessions)?.as_ref()?.value(cell)?;
            Some(Boxed {
                name: String::new(),
                group: 0,
                count: points.len(),
                median: rounded(fitted.value),
                quartiles: None,
                interval: fitted.interval.map(|(low, high)| (rounded(low), rounded(high))),
                points,
            })
        };
        let body = self.columns(ColumnShape::Bar, &bar);
        Ok((label_of(value, unit), body))
    }

    fn curves(&self, value: &str) -> Result<(String, PanelBody), NoChart> {
        let (unit, scale) = self.experiment.unit(value)?;
        let axis = self.x.unwrap_or(FactorAxis::Sessions);
        let levels = self.experiment.levels(axis);
        let Some(places) = levels.iter().map(|level| level.parse().ok()).collect::<Option<Vec<f64>>>() else {
            let name = self.experiment.axis_name(axis);
            return Err(NoChart::Unfit(format!("curves need numbers on the x axis, and {name} has none: use bars")));
        };
        let mut lines = Vec::new();
        for (number, (name, color)) in self.colors().into_iter().enumerate().take(LINES_MAX) {
            let mut line = ChartLine::new(&name, number);
            for (level, place) in places.iter().enumerate() {
                let cell = self.cell(color, Some(level));
                let values = cell.map_or(Vec::new(), |(cell, sessions)| self.experiment.values(value, cell, sessions));
                if !values.is_empty() {
                    line.push(*place, &values.iter().map(|one| one * scale).collect::<Vec<_>>());
                }
            }
            // The range of a single trial is a point.
            if line.band.iter().flatten().all(|(low, high)| low == high) {
                line.band.clear();
            }
            lines.extend((!line.x.is_empty()).then_some(line));
        }
        Ok((label_of(value, unit), PanelBody::Lines { lines }))
    }
}

/// All values as points, in their order; of very many, an even selection.
fn jittered(values: Vec<f64>) -> Option<Boxed> {
    let middle = median(values.iter().copied())?;
    let step = values.len().div_ceil(DOTS_MAX / 10).max(1);
    Some(Boxed {
        name: String::new(),
        group: 0,
        count: values.len(),
        median: rounded(middle),
        quartiles: None,
        interval: None,
        points: values.into_iter().step_by(step).map(rounded).collect(),
    })
}

impl Panel {
    fn columns(&self) -> impl Iterator<Item = &Boxed> {
        let sets: &[ColumnSet] = match &self.body {
            PanelBody::Columns { sets, .. } => sets,
            PanelBody::Lines { .. } => &[],
        };
        sets.iter().flat_map(|set| set.columns.iter().flatten())
    }

    fn has_band(&self) -> bool {
        matches!(&self.body, PanelBody::Lines { lines } if lines.iter().any(|line| !line.band.is_empty()))
    }

    /// Everything as a share of the best, in percent.
    fn by_best(&mut self, value: &str, better: Better) {
        let PanelBody::Columns { sets, .. } = &mut self.body else { return };
        let all = sets.iter().flat_map(|set| set.columns.iter().flatten()).map(|one| one.median);
        let best = if better == Better::Lower { all.reduce(f64::min) } else { all.reduce(f64::max) };
        let Some(best) = best.filter(|best| *best > 0.0) else { return };
        let share = |value: &mut f64| *value = rounded(*value / best * 100.0);
        for one in sets.iter_mut().flat_map(|set| set.columns.iter_mut().flatten()) {
            share(&mut one.median);
            one.points.iter_mut().for_each(share);
            one.interval.iter_mut().for_each(|(low, high)| [low, high].into_iter().for_each(share));
            if let Some(of) = &mut one.quartiles {
                [&mut of.low, &mut of.lower, &mut of.upper, &mut of.high].into_iter().for_each(share);
            }
        }
        self.y.label = format!("{}, percent of the best", name_of(value));
    }
}

fn label_of(value: &str, unit: &str) -> String {
    match (value, unit) {
        ("tps", _) => "transactions per second".to_owned(),
        ("qps", _) => "statements per second".to_owned(),
        (value, "") => value.to_owned(),
        ("p50" | "p90" | "p95" | "p99" | "p999" | "mean" | "max", "ms") => format!("response time, {value}, ms"),
        (value, unit) => format!("{}, {unit}", name_of(value)),
    }
}

/// Marks with the same text that overlap are one: from the first start to the last end.
fn merged(mut marks: Vec<Mark>) -> Vec<Mark> {
    /// Trials reach a step at slightly different times.
    const NEAR: f64 = 1.0;
    marks.sort_by(|a, b| a.from.total_cmp(&b.from));
    let mut all: Vec<Mark> = Vec::new();
    for mark in marks {
        match all.iter_mut().find(|known| known.text == mark.text && mark.from <= known.to + NEAR) {
            Some(known) => known.to = known.to.max(mark.to),
            None => all.push(mark),
        }
    }
    all
}

/// The name of a metric among others of its kind: `user` of `machine.cpu_user_percent`.
fn stack_name(value: &str) -> &str {
    let name = value.split_once('.').map_or(value, |(_, name)| name);
    match name.strip_prefix("cpu_").and_then(|name| name.strip_suffix("_percent")) {
        Some(kind) => kind,
        None => name,
    }
}

/// The median of the trials in each second; `None`: none of them has a value in it.
fn by_second(courses: Vec<FigureOverTime>) -> Vec<(f64, Option<f64>)> {
    let step = courses.iter().filter_map(|course| usual_step(&course.points)).fold(1.0, f64::max);
    let mut seconds: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for (x, y) in courses.into_iter().flat_map(|course| course.points) {
        seconds.entry((x / step).round() as i64).or_default().extend(y);
    }
    seconds.into_iter().map(|(second, values)| (second as f64 * step, median(values))).collect()
}

/// The median distance of points, in whole seconds.
fn usual_step(points: &[(f64, Option<f64>)]) -> Option<f64> {
    median(points.windows(2).map(|two| two[1].0 - two[0].0)).map(|step| step.round().max(1.0))
}

/// The points of all trials in order of time, aligned at their start.
fn together(courses: Vec<FigureOverTime>) -> Vec<(f64, Option<f64>)> {
    let mut points: Vec<(f64, Option<f64>)> = courses.into_iter().flat_map(|course| course.points).collect();
    points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    points
}

/// The rolling median of the known values, at most `POINTS_MAX` points.
fn medians(name: &str, points: &[(f64, Option<f64>)], width: usize) -> ChartLine {
    // A single trial as it was measured, with its gaps.
    if width == 1 {
        let kept = points.iter().step_by(points.len().div_ceil(POINTS_MAX).max(1));
        let (x, y) = kept.map(|(x, y)| (*x, y.map(rounded))).unzip();
        return ChartLine { x, y, ..ChartLine::new(name, 0) };
    }
    let known: Vec<(f64, f64)> = points.iter().filter_map(|(x, y)| Some((*x, (*y)?))).collect();
    let smooth = rolling_median(&known.iter().map(|(_, y)| *y).collect::<Vec<_>>(), width);
    let step = known.len().div_ceil(POINTS_MAX).max(1);
    let (x, y) = known.iter().zip(smooth).step_by(step).map(|((x, _), y)| (*x, Some(rounded(y)))).unzip();
    ChartLine { x, y, ..ChartLine::new(name, 0) }
}

/// Logarithmic if the largest value is far from the smallest.
fn scale_of(panels: &[Panel]) -> AxisScale {
    let lines = panels.iter().filter_map(|panel| match &panel.body {
        PanelBody::Lines { lines } => Some(lines),
        PanelBody::Columns { .. } => None,
    });
    let all: Vec<f64> = lines.flatten().flat_map(|line| line.x.iter().copied()).collect();
    let (low, high) = (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max));
    if low > 0.0 && high >= 8.0 * low { AxisScale::Log } else { AxisScale::Linear }
}
