//! Charts as pictures, without a browser: SVG, and PNG from the same shapes. A picture is self-contained: the line
//! below its title says what it shows.

use tiny_skia::Pixmap;

use crate::charts::chart::{
    AxisScale, Boxed, Chart, ChartBody, ChartLine, ColumnSet, ColumnShape, Mark, MarkKind, Panel, PanelBody,
};
use crate::charts::layout::{ChartLayout, LineStyle, Range, Tick, look, panel_ranges};
use crate::charts::palette::{Color, Palette, Theme, hex};
use crate::charts::shape::{Anchor, DENSITY, DrawnShape, width_of};
use crate::digits::figure;
use crate::plain::{DOT, clean};

/// Appearance of pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureOptions {
    /// Replaces a chart's title, which then starts the line below.
    pub title: Option<String>,
    /// Width in pixels of an SVG; a PNG has twice as many. `PICTURE_SIZES`
    pub width: u32,
    /// The height; a picture with many rows takes what they need.
    pub height: u32,
    /// Its background.
    pub theme: Theme,
}

/// Smallest and largest width and height: room for a title and an axis, and for a PNG that fits into memory.
pub const PICTURE_SIZES: std::ops::RangeInclusive<u32> = 320..=8000;

impl Default for PictureOptions {
    fn default() -> PictureOptions {
        PictureOptions { title: None, width: 960, height: 460, theme: Theme::Light }
    }
}

const LEFT: f32 = 76.0;
const RIGHT: f32 = 30.0;
const BOX_ROW: f32 = 34.0;
/// From the axis to the bottom, without the legend.
const BELOW_AXIS: f32 = 50.0;
const LEGEND_ROW: f32 = 20.0;
const FOOT: f32 = 8.0;
/// Minimum height between the axes.
const PLOT_MIN: f32 = 100.0;
/// Between panels, and above those with names.
const PANEL_GAP: f32 = 24.0;
const PANEL_NAME: f32 = 22.0;
/// Between panels for the labels of an own vertical axis.
const OWN_AXIS: f32 = 36.0;
/// Widest box or bar, with the gap beside it.
const COLUMN_MAX: f32 = 60.0;
/// Colors of a heat map's scale, and the width of each.
const SCALE_STEPS: usize = 24;
const SCALE_STEP: f32 = 4.0;
const DOT_OPACITY: f32 = 0.4;
const BAND_OPACITY: f32 = 0.2;
const STACK_OPACITY: f32 = 0.6;

/// The chart as an SVG document.
pub fn svg(chart: &Chart, options: &PictureOptions) -> String {
    let drawing = Drawing::of(chart, options);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" \
         font-family=\"Roboto, system-ui, sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"{2}\"/>\n",
        drawing.width,
        drawing.height,
        hex(drawing.palette.paper)
    );
    for shape in &drawing.shapes {
        text += &shape.svg();
    }
    text + "</svg>\n"
}

/// The chart as a PNG image.
pub fn png(chart: &Chart, options: &PictureOptions) -> Vec<u8> {
    let drawing = Drawing::of(chart, options);
    let size = |length: f32| (length * DENSITY).ceil() as u32;
    let mut image = Pixmap::new(size(drawing.width), size(drawing.height)).expect("drawings are small and not empty");
    let [red, green, blue] = drawing.palette.paper;
    image.fill(tiny_skia::Color::from_rgba8(red, green, blue, 255));
    for shape in &drawing.shapes {
        shape.paint(&mut image);
    }
    image.encode_png().expect("writing to memory does not fail")
}

/// Lines of the name of a panel's vertical axis: more would reach its labels.
const Y_LINES: usize = 2;

struct Drawing {
    shapes: Vec<DrawnShape>,
    palette: &'static Palette,
    width: f32,
    height: f32,
    /// Top and bottom of the plot area.
    top: f32,
    bottom: f32,
}

/// An axis between two positions.
struct AxisSpan<'a> {
    from: f32,
    to: f32,
    range: &'a Range,
}

impl AxisSpan<'_> {
    fn of(&self, value: f64) -> f32 {
        let along = |value: f64| if self.range.logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let span = along(self.range.high) - along(self.range.low);
        let share = if span > 0.0 { (along(value) - along(self.range.low)) / span } else { 0.5 };
        self.from + (self.to - self.from) * share.clamp(-0.1, 1.1) as f32
    }
}

/// Symbol in front of an entry of the legend.
enum Swatch {
    Line(Color, &'static [f32]),
    Dot(Color),
    Square(Color),
    /// The colors of a heat map, from few to many.
    Scale(&'static Palette),
    Nothing,
}

impl Drawing {
    fn of(chart: &Chart, options: &PictureOptions) -> Drawing {
        let palette = Palette::of(options.theme);
        let size = |length: u32| length.clamp(*PICTURE_SIZES.start(), *PICTURE_SIZES.end()) as f32;
        let (width, height) = (size(options.width), size(options.height));
        let mut drawing = Drawing { shapes: Vec::new(), palette, width, height, top: 0.0, bottom: 0.0 };
        drawing.head(chart, options.title.as_deref());
        let layout = ChartLayout::of(chart);
        let legend = drawing.legend_rows(chart, &layout.looks);
        if let ChartBody::Boxes { boxes } = &chart.body {
            drawing.boxes(&chart.y.label, boxes, &layout.y);
        } else if let ChartBody::Panels { across, own_scales, panels } = &chart.body {
            drawing.panels(chart, (*across, *own_scales), panels, LEGEND_ROW * legend.len() as f32);
        } else {
            let below = BELOW_AXIS + LEGEND_ROW * legend.len() as f32 + FOOT;
            drawing.bottom = (height - below).max(drawing.top + PLOT_MIN);
            let x = AxisSpan { from: LEFT, to: width - RIGHT, range: &layout.x };
            let y = AxisSpan { from: drawing.bottom, to: drawing.top, range: &layout.y };
            drawing.outages_and_stages(chart, &x);
            match &chart.body {
                ChartBody::Boxes { .. } | ChartBody::Panels { .. } => (),
                ChartBody::Lines { lines } => {
                    drawing.axes(chart, &x, &y);
                    drawing.bands(lines, &layout.looks, (&x, &y));
                    drawing.lines(chart, lines, &layout.looks, (&x, &y));
                }
                // Its area is filled: the grid lines would be below it.
                ChartBody::Heat { columns, edges, cells } => {
                    drawing.heat(columns, edges, cells, (&x, &y));
                    drawing.axes(chart, &x, &y);
                }
            }
            drawing.marks_on_top(chart, &x);
        }
        drawing.legend(legend);
        drawing
    }

    fn text(&mut self, at: (f32, f32), text: &str, size: f32, color: Color, anchor: Anchor) {
        self.shapes.push(DrawnShape::Text { at, text: clean(text, 400), size, color, anchor, upwards: false });
    }

    fn line(&mut self, points: Vec<(f32, f32)>, color: Color, width: f32) {
        self.shapes.push(DrawnShape::Lines { points, color, width, dash: &[] });
    }

    fn rect(&mut self, at: (f32, f32), size: (f32, f32), fill: Color) {
        self.shapes.push(DrawnShape::Rect { at, size, fill });
    }

    /// The title, and the subject of the picture: as many lines as they need.
    fn head(&mut self, chart: &Chart, title: Option<&str>) {
        let subject = match title {
            Some(_) => [&*chart.title, &*chart.subject].join(DOT).trim_end_matches(DOT).to_owned(),
            None => chart.subject.clone(),
        };
        let (palette, room) = (self.palette, self.width - LEFT - RIGHT);
        let mut top = 8.0;
        for line in wrapped(&clean(title.unwrap_or(&chart.title), 200), 17.0, room, " ") {
            top += 20.0;
            self.text((LEFT, top), &line, 17.0, palette.ink, Anchor::Start);
        }
        for line in wrapped(&clean(&subject, 400), 12.0, room, DOT) {
            top += 17.0;
            self.text((LEFT, top), &line, 12.0, palette.soft, Anchor::Start);
        }
        self.top = top + 24.0;
    }

    /// From the lowest to the highest of several trials.
    fn bands(&mut self, lines: &[ChartLine], looks: &[LineStyle], (x, y): (&AxisSpan, &AxisSpan)) {
        for (line, look) in lines.iter().zip(looks) {
            let all: Vec<_> = line.x.iter().zip(&line.band).collect();
            for run in all.split(|(_, ends)| ends.is_none()).filter(|run| run.len() > 1) {
                let at =
                    |of: fn((f64, f64)) -> f64| run.iter().filter_map(move |(at, ends)| Some((**at, of((**ends)?))));
                let low = at(|ends| ends.0).map(|(at, value)| (x.of(at), y.of(value)));
                let high = at(|ends| ends.1).map(|(at, value)| (x.of(at), y.of(value)));
                let points = low.chain(high.collect::<Vec<_>>().into_iter().rev()).collect();
                self.shapes.push(DrawnShape::Area {
                    points,
                    color: self.palette.series[look.color],
                    opacity: if line.stacked { STACK_OPACITY } else { BAND_OPACITY },
                });
            }
        }
    }

    fn lines(&mut self, chart: &Chart, lines: &[ChartLine], looks: &[LineStyle], (x, y): (&AxisSpan, &AxisSpan)) {
        let few = lines.iter().map(|line| line.x.len()).max().unwrap_or(0) < 90 && chart.x.scale != AxisScale::Nines;
        for (line, look) in lines.iter().zip(looks) {
            let (color, dash) = (self.palette.series[look.color], look.dash);
            let all = || line.x.iter().zip(&line.y).map(|(at, value)| Some((x.of(*at), y.of((*value)?))));
            if line.dots {
                let dot = |at| DrawnShape::Circle { at, radius: 2.0, color, opacity: DOT_OPACITY };
                self.shapes.extend(all().flatten().map(dot));
                continue;
            }
            for points in all().collect::<Vec<_>>().split(Option::is_none) {
                let points = points.iter().copied().flatten().collect();
                let width = if lines.iter().any(|line| line.dots) { 2.0 } else { 1.5 };
                self.shapes.push(DrawnShape::Lines { points, color, width, dash });
            }
            if few && !lines.iter().any(|line| line.dots) {
                let point = |at| DrawnShape::Circle { at, radius: 2.5, color, opacity: 1.0 };
                self.shapes.extend(all().flatten().map(point));
            }
        }
    }

    fn heat(&mut self, columns: &[(f64, f64)], edges: &[f64], cells: &[Vec<f64>], (x, y): (&AxisSpan, &AxisSpan)) {
        let most = cells.iter().flatten().copied().fold(0.0, f64::max);
        for (column, cells) in columns.iter().zip(cells) {
            for (row, value) in cells.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                let share = (value / most * 1e3).ln_1p() / 1e3f64.ln_1p();
                let (left, right, top, bottom) =
                    (x.of(column.0), x.of(column.1), y.of(edges[row + 1]), y.of(edges[row]));
                self.rect((left, top), ((right - left).max(0.5) + 0.3, bottom - top + 0.3), self.palette.heat(share));
            }
        }
    }

    fn boxes(&mut self, label: &str, boxes: &[Boxed], range: &Range) {
        let palette = self.palette;
        let longest = boxes.iter().map(|one| width_of(&one.name, 12.0)).fold(0.0, f32::max);
        let left = (longest + 24.0).clamp(LEFT, (self.width * 0.4).max(LEFT));
        let right = self.width - RIGHT;
        let x = AxisSpan { from: left, to: right, range };
        let top = self.top - 12.0;
        let bottom = top + BOX_ROW * boxes.len() as f32 + 8.0;
        for tick in side_by_side(&range.ticks, |at| x.of(at)) {
            self.line(vec![(x.of(tick.at), top), (x.of(tick.at), bottom)], palette.grid, 1.0);
            self.text((x.of(tick.at), bottom + 16.0), &tick.text, 12.0, palette.soft, Anchor::Middle);
        }
        self.text((f32::midpoint(left, right), bottom + 36.0), label, 12.0, palette.soft, Anchor::Middle);
        for (number, one) in boxes.iter().enumerate() {
            let middle = top + BOX_ROW * (number as f32 + 0.5);
            let name = fitting(&one.name, 12.0, left - 20.0);
            self.text((left - 12.0, middle + 4.0), &name, 12.0, palette.ink, Anchor::End);
            self.one_box(one, &x, middle);
        }
        self.bottom = bottom;
    }

    fn one_box(&mut self, one: &Boxed, x: &AxisSpan, middle: f32) {
        let palette = self.palette;
        let color = palette.series[one.group % palette.series.len()];
        if let Some(of) = one.quartiles {
            let [low, from, to, high] = [of.low, of.lower, of.upper, of.high].map(|value| x.of(value));
            self.line(vec![(low, middle), (high, middle)], palette.ink, 1.0);
            self.line(vec![(low, middle - 6.0), (low, middle + 6.0)], palette.ink, 1.0);
            self.line(vec![(high, middle - 6.0), (high, middle + 6.0)], palette.ink, 1.0);
            let to = to.max(from + 1.0);
            let (above, below) = (middle - 10.0, middle + 10.0);
            self.rect((from, above), (to - from, 20.0), palette.paper);
            let points = vec![(from, above), (to, above), (to, below), (from, below)];
            self.shapes.push(DrawnShape::Area { points, color, opacity: 0.35 });
        }
        if let Some((low, high)) = one.interval {
            let [low, high] = [low, high].map(|value| x.of(value));
            self.line(vec![(low, middle), (high, middle)], palette.soft, 3.0);
        }
        let (radius, opacity) = if one.quartiles.is_some() { (2.0, 1.0) } else { (4.0, 0.6) };
        for value in &one.points {
            let fill = if one.quartiles.is_some() { palette.soft } else { color };
            self.shapes.push(DrawnShape::Circle { at: (x.of(*value), middle), radius, color: fill, opacity });
        }
        let median = x.of(one.median);
        self.line(vec![(median, middle - 10.0), (median, middle + 10.0)], palette.ink, 2.5);
    }

    /// A grid of small charts, `across` in a row, each with its `own` vertical axis or not. `legend`: the room that it
    /// needs below.
    fn panels(&mut self, chart: &Chart, (across, own): (usize, bool), panels: &[Panel], legend: f32) {
        let across = across.max(1);
        let gap = if own { PANEL_GAP + OWN_AXIS } else { PANEL_GAP };
        let rows = panels.len().div_ceil(across);
        let (x_range, y_ranges) = panel_ranges(chart, across, panels, own);
        let has_names = panels.iter().any(|panel| !panel.name.is_empty());
        let above = if has_names { PANEL_NAME } else { 0.0 };
        let room = self.height - self.top - BELOW_AXIS - legend - FOOT;
        let each = (room / rows as f32 - above - PANEL_GAP).max(PLOT_MIN);
        let width = (self.width - LEFT - RIGHT - gap * (across - 1) as f32) / across as f32;
        let mut top = self.top - 12.0;
        for (row, (panels_of_row, y_ranges)) in panels.chunks(across).zip(y_ranges.chunks(across)).enumerate() {
            let (from, bottom) = (top + above, top + above + each);
            for (column, (panel, y_range)) in panels_of_row.iter().zip(y_ranges).enumerate() {
                let left = LEFT + column as f32 * (width + gap);
                let x = AxisSpan { from: left, to: left + width, range: &x_range };
                let y = AxisSpan { from: bottom, to: from, range: y_range };
                let is_lowest = (row + 1) * across + column >= panels.len();
                self.panel(chart, panel, (&x, &y), (column == 0, own, is_lowest));
            }
            top = bottom + PANEL_GAP;
        }
        self.bottom = top - PANEL_GAP;
        let middle = f32::midpoint(LEFT, self.width - RIGHT);
        self.text((middle, self.bottom + 38.0), &chart.x.label, 12.0, self.palette.soft, Anchor::Middle);
    }

    /// `is_first`: of its row, with the name of the vertical axis; its ticks have labels there, or if it has its `own`;
    /// `is_lowest`: of its column, with labels of the horizontal axis.
    fn panel(
        &mut self,
        chart: &Chart,
        panel: &Panel,
        (x, y): (&AxisSpan, &AxisSpan),
        (is_first, own, is_lowest): (bool, bool, bool),
    ) {
        let (palette, bottom, top) = (self.palette, y.from, y.to);
        if !panel.name.is_empty() {
            let name = fitting(&panel.name, 12.0, x.to - x.from);
            self.text((f32::midpoint(x.from, x.to), top - 7.0), &name, 12.0, palette.ink, Anchor::Middle);
        }
        for tick in &y.range.ticks {
            self.line(vec![(x.from, y.of(tick.at)), (x.to, y.of(tick.at))], palette.grid, 1.0);
            if is_first || own {
                self.text((x.from - 8.0, y.of(tick.at) + 4.0), &tick.text, 12.0, palette.soft, Anchor::End);
            }
        }
        if is_first {
            let lines = wrapped(&clean(&panel.y.label, 80), 12.0, bottom - top, " ");
            let first = if lines.len() > 1 { 12.0 } else { 18.0 };
            for (line, number) in lines.into_iter().take(Y_LINES).zip(0u8..) {
                self.shapes.push(DrawnShape::Text {
                    at: (first + 13.0 * f32::from(number), f32::midpoint(top, bottom)),
                    text: line,
                    size: 12.0,
                    color: palette.soft,
                    anchor: Anchor::Middle,
                    upwards: true,
                });
            }
        }
        self.line(vec![(x.from, bottom), (x.to, bottom)], palette.soft, 1.0);
        self.panel_marks(&panel.marks, x, (top, bottom));
        match &panel.body {
            PanelBody::Lines { lines } => {
                // The last label would run into the first one of the next panel.
                let has_room = |tick: &&Tick| {
                    x.of(tick.at) + width_of(&tick.text, 12.0) / 2.0 <= x.to + PANEL_GAP / 3.0
                        || x.to + RIGHT >= self.width
                };
                let ticks: Vec<&Tick> = side_by_side(&x.range.ticks, |at| x.of(at));
                for tick in ticks.into_iter().filter(has_room).filter(|_| is_lowest).collect::<Vec<_>>() {
                    self.line(vec![(x.of(tick.at), bottom), (x.of(tick.at), bottom + 5.0)], palette.soft, 1.0);
                    self.text((x.of(tick.at), bottom + 18.0), &tick.text, 12.0, palette.soft, Anchor::Middle);
                }
                let looks: Vec<LineStyle> = lines.iter().map(look).collect();
                self.bands(lines, &looks, (x, y));
                self.lines(chart, lines, &looks, (x, y));
            }
            PanelBody::Columns { levels, sets, shape } => self.columns(levels, sets, *shape, (x, y), is_lowest),
        }
    }

    /// Marks of a panel, below its lines: stages and outages as areas, steps as lines with their names.
    fn panel_marks(&mut self, marks: &[Mark], x: &AxisSpan, (top, bottom): (f32, f32)) {
        let palette = self.palette;
        let span = |mark: &Mark| (x.of(mark.from), (x.of(mark.to).min(x.to) - x.of(mark.from)).max(1.0));
        let of_kind = |kind: MarkKind| marks.iter().filter(move |mark| mark.kind == kind);
        for mark in of_kind(MarkKind::Stage).step_by(2) {
            let (left, width) = span(mark);
            self.rect((left, top), (width, bottom - top), palette.shade);
        }
        for mark in of_kind(MarkKind::Steady) {
            let (left, width) = span(mark);
            self.rect((left, top), (width, bottom - top), palette.steady);
            self.rect((left, top), (width, 3.0), palette.good);
        }
        for mark in of_kind(MarkKind::Outage) {
            let (left, width) = span(mark);
            self.rect((left, top), (width, bottom - top), palette.outage);
            self.rect((left, top), (width, 3.0), palette.bad);
        }
        let mut free = f32::NEG_INFINITY;
        for mark in of_kind(MarkKind::Stage) {
            let left = x.of(mark.from) + 3.0;
            let short = mark.text.split(' ').next().unwrap_or_default();
            let room = x.of(mark.to) - left;
            let text = [mark.text.as_str(), short].into_iter().find(|text| width_of(text, 11.0) < room);
            if let Some(text) = text.filter(|_| left >= free) {
                self.text((left, top + 11.0), text, 11.0, palette.soft, Anchor::Start);
                free = left + width_of(text, 11.0) + 6.0;
            }
        }
        self.steps(marks, x, (top, bottom), if free > f32::NEG_INFINITY { 24.0 } else { 11.0 });
    }

    /// A line at the start of each step, with its name where there is room, and one at its end if it took long.
    fn steps(&mut self, marks: &[Mark], x: &AxisSpan, (top, bottom): (f32, f32), below_top: f32) {
        /// A step shorter than this on the screen has one line.
        const SHORT: f32 = 3.0;
        /// Names in rows below each other, if they are too long for one.
        const ROWS: usize = 3;
        let palette = self.palette;
        let mut free = [f32::NEG_INFINITY; ROWS];
        for mark in marks.iter().filter(|mark| matches!(mark.kind, MarkKind::Step | MarkKind::Change)) {
            let (from, to) = (x.of(mark.from), x.of(mark.to).min(x.to));
            self.shapes.push(DrawnShape::Lines {
                points: vec![(from, top), (from, bottom)],
                color: if mark.kind == MarkKind::Change { palette.bad } else { palette.soft },
                width: 1.0,
                dash: &[4.0, 2.0],
            });
            if to - from > SHORT {
                self.rect((from, bottom - 4.0), (to - from, 4.0), palette.soft);
            }
            let text = fitting(&mark.text, 11.0, (x.to - x.from) * 0.8);
            let width = width_of(&text, 11.0);
            let left = if from + 3.0 + width <= x.to { from + 3.0 } else { (from - 3.0 - width).max(x.from) };
            if let Some(row) = (0..ROWS).find(|row| free[*row] <= left) {
                let at = (left, top + below_top + 13.0 * row as f32);
                self.text(at, &text, 11.0, palette.ink, Anchor::Start);
                free[row] = left + width + 6.0;
            }
        }
    }

    /// Boxes, bars or dots side by side over each level.
    fn columns(
        &mut self,
        levels: &[String],
        sets: &[ColumnSet],
        shape: ColumnShape,
        (x, y): (&AxisSpan, &AxisSpan),
        named: bool,
    ) {
        let slot = (x.to - x.from) / levels.len().max(1) as f32;
        let wide = (slot * 0.8 / sets.len().max(1) as f32).min(COLUMN_MAX);
        for (level, name) in levels.iter().enumerate() {
            let middle = x.from + slot * (level as f32 + 0.5);
            if named {
                let name = fitting_ends(name, 12.0, slot - 4.0);
                self.text((middle, y.from + 18.0), &name, 12.0, self.palette.ink, Anchor::Middle);
            }
            let first = middle - wide * sets.len() as f32 / 2.0;
            for (number, set) in sets.iter().enumerate() {
                if let Some(Some(one)) = set.columns.get(level) {
                    let at = first + wide * (number as f32 + 0.5);
                    self.column(one, set.group, shape, (at, wide * 0.4), y);
                }
            }
        }
    }

    /// `at`: its center, and half its width.
    fn column(&mut self, one: &Boxed, group: usize, shape: ColumnShape, (at, half): (f32, f32), y: &AxisSpan) {
        let palette = self.palette;
        let color = palette.series[group % palette.series.len()];
        let mut filled = |from: f32, to: f32, opacity: f32| {
            let points = vec![(at - half, from), (at + half, from), (at + half, to), (at - half, to)];
            self.shapes.push(DrawnShape::Area { points, color, opacity });
        };
        if shape == ColumnShape::Bar {
            filled(y.from, y.of(one.median), 0.45);
        }
        if let Some(of) = one.quartiles {
            let [low, lower, upper, high] = [of.low, of.lower, of.upper, of.high].map(|value| y.of(value));
            filled(lower, upper.min(lower - 1.0), 0.45);
            self.line(vec![(at, low), (at, lower)], palette.ink, 1.0);
            self.line(vec![(at, upper), (at, high)], palette.ink, 1.0);
            for end in [low, high] {
                self.line(vec![(at - half / 2.0, end), (at + half / 2.0, end)], palette.ink, 1.0);
            }
        }
        let is_jitter = shape == ColumnShape::Jitter;
        let (radius, opacity, color) = match one.quartiles {
            Some(_) => (1.5, 0.7, palette.soft),
            None if is_jitter => (2.0, DOT_OPACITY, color),
            None => (3.0, 0.7, color),
        };
        // Points stand beside the error bar, not under it.
        let beside = if one.interval.is_some() { at - half / 2.0 } else { at };
        for (number, value) in one.points.iter().enumerate() {
            let x = if is_jitter { at + half * spread(number) } else { beside };
            self.shapes.push(DrawnShape::Circle { at: (x, y.of(*value)), radius, color, opacity });
        }
        if let Some((low, high)) = one.interval {
            let [low, high] = [low, high].map(|value| y.of(value));
            self.line(vec![(at, low), (at, high)], palette.ink, 1.5);
            for end in [low, high] {
                self.line(vec![(at - half / 3.0, end), (at + half / 3.0, end)], palette.ink, 1.5);
            }
        }
        self.line(vec![(at - half, y.of(one.median)), (at + half, y.of(one.median))], palette.ink, 2.0);
        let label = figure(one.median);
        if shape == ColumnShape::Bar && width_of(&label, 11.0) <= half * 2.5 {
            let ends = one.points.iter().copied().chain(one.interval.map(|(_, high)| high));
            let top = ends.fold(one.median, f64::max);
            self.text((at, y.of(top) - 6.0), &label, 11.0, palette.ink, Anchor::Middle);
        }
    }

    /// Legend of all panels: an entry that several panels have appears once.
    fn panel_legend(&self, panels: &[Panel]) -> Vec<(Swatch, String)> {
        let mut told: Vec<(String, usize, bool)> = Vec::new();
        let mut entries = Vec::new();
        for panel in panels {
            let all: Vec<(&str, usize, bool, Swatch)> = match &panel.body {
                PanelBody::Lines { lines } => {
                    let entry = |line| {
                        let look: LineStyle = look(line);
                        let color = self.palette.series[look.color];
                        let swatch = if line.dots { Swatch::Dot(color) } else { Swatch::Line(color, look.dash) };
                        (line.name.as_str(), line.group, line.dots, swatch)
                    };
                    lines.iter().map(entry).collect()
                }
                PanelBody::Columns { sets, .. } => {
                    let color = |set: &ColumnSet| self.palette.series[set.group % self.palette.series.len()];
                    sets.iter().map(|set| (set.name.as_str(), set.group, false, Swatch::Square(color(set)))).collect()
                }
            };
            for (name, group, dots, swatch) in all {
                let key = (name.to_owned(), group, dots);
                if !name.is_empty() && !told.contains(&key) {
                    told.push(key);
                    entries.push((swatch, fitting(name, 12.0, self.width - LEFT - RIGHT - 30.0)));
                }
            }
        }
        entries
    }

    fn outages_and_stages(&mut self, chart: &Chart, x: &AxisSpan) {
        let (top, height) = (self.top, self.bottom - self.top);
        let span = |from: f64, to: f64| (x.of(from), (x.of(to) - x.of(from)).max(1.0));
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Stage).step_by(2) {
            let (left, width) = span(mark.from, mark.to);
            self.rect((left, top), (width, height), self.palette.shade);
        }
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Steady) {
            let (left, width) = span(mark.from, mark.to);
            self.rect((left, top), (width, height), self.palette.steady);
            self.rect((left, top), (width, 3.0), self.palette.good);
        }
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Outage) {
            let (left, width) = span(mark.from, mark.to);
            self.rect((left, top), (width, height), self.palette.outage);
            self.rect((left, top), (width, 3.0), self.palette.bad);
        }
    }

    fn marks_on_top(&mut self, chart: &Chart, x: &AxisSpan) {
        let (top, bottom, palette) = (self.top, self.bottom, self.palette);
        let mut free = 0.0;
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Stage) {
            let left = x.of(mark.from) + 4.0;
            let room = x.of(mark.to) - left;
            let short = mark.text.split(' ').next().unwrap_or_default();
            let fitting = [mark.text.as_str(), short].into_iter().find(|text| width_of(text, 11.0) < room);
            if let Some(text) = fitting.filter(|_| left >= free) {
                self.text((left, top - 4.0), text, 11.0, palette.soft, Anchor::Start);
                free = left + width_of(text, 11.0) + 6.0;
            }
        }
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Knee) {
            let at = x.of(mark.from);
            self.line(vec![(at, top), (at, bottom)], palette.soft, 1.0);
            let half = width_of(&mark.text, 11.0) / 2.0;
            let middle = at.clamp(half, (self.width - half).max(half));
            if middle - half >= free {
                self.text((middle, top - 4.0), &mark.text, 11.0, palette.soft, Anchor::Middle);
                free = middle + half + 6.0;
            }
        }
        self.steps(&chart.marks, x, (top, bottom), 11.0);
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Errors) {
            let left = x.of(mark.from);
            self.rect((left, bottom - 6.0), ((x.of(mark.to) - left).max(1.5), 6.0), palette.warn);
        }
    }

    fn axes(&mut self, chart: &Chart, x: &AxisSpan, y: &AxisSpan) {
        let (bottom, right, palette) = (self.bottom, self.width - RIGHT, self.palette);
        for tick in &y.range.ticks {
            self.line(vec![(LEFT, y.of(tick.at)), (right, y.of(tick.at))], palette.grid, 1.0);
            self.text((LEFT - 8.0, y.of(tick.at) + 4.0), &tick.text, 12.0, palette.soft, Anchor::End);
        }
        for tick in side_by_side(&x.range.ticks, |at| x.of(at)) {
            self.line(vec![(x.of(tick.at), bottom), (x.of(tick.at), bottom + 5.0)], palette.soft, 1.0);
            self.text((x.of(tick.at), bottom + 18.0), &tick.text, 12.0, palette.soft, Anchor::Middle);
        }
        self.text((f32::midpoint(LEFT, right), bottom + 38.0), &chart.x.label, 12.0, palette.soft, Anchor::Middle);
        self.shapes.push(DrawnShape::Text {
            at: (16.0, f32::midpoint(self.top, bottom)),
            text: clean(&chart.y.label, 80),
            size: 12.0,
            color: palette.soft,
            anchor: Anchor::Middle,
            upwards: true,
        });
    }

    /// The legend's entries, in as many rows as needed, each with its horizontal position.
    fn legend_rows(&self, chart: &Chart, looks: &[LineStyle]) -> Vec<Vec<(f32, Swatch, String)>> {
        let mut entries: Vec<(Swatch, String)> = Vec::new();
        if let ChartBody::Panels { panels, .. } = &chart.body {
            entries.extend(self.panel_legend(panels));
        }
        if let ChartBody::Lines { lines } = &chart.body {
            for (line, look) in lines.iter().zip(looks) {
                let color = self.palette.series[look.color];
                let swatch = if line.dots { Swatch::Dot(color) } else { Swatch::Line(color, look.dash) };
                entries.push((swatch, fitting(&line.name, 12.0, self.width - LEFT - RIGHT - 30.0)));
            }
        }
        if let ChartBody::Heat { cells, .. } = &chart.body {
            let most = cells.iter().flatten().copied().fold(0.0, f64::max);
            let text = format!("{} to {} per second, log scale", figure(most / 1e3), figure(most));
            entries.push((Swatch::Scale(self.palette), text));
        }
        let kinds = [
            (MarkKind::Steady, self.palette.good, "steady"),
            (MarkKind::Outage, self.palette.bad, "outage"),
            (MarkKind::Errors, self.palette.warn, "errors"),
        ];
        let panels = match &chart.body {
            ChartBody::Panels { panels, .. } => &panels[..],
            _ => &[],
        };
        for (kind, color, words) in kinds {
            let mut marks = chart.marks.iter().chain(panels.iter().flat_map(|panel| &panel.marks));
            if marks.any(|mark| mark.kind == kind) {
                entries.push((Swatch::Square(color), words.to_owned()));
            }
        }
        if !chart.caption.is_empty() {
            let caption = format!("({})", clean(&chart.caption, 200));
            entries.push((Swatch::Nothing, fitting(&caption, 12.0, self.width - LEFT - RIGHT)));
        }
        let mut rows: Vec<Vec<_>> = Vec::new();
        let mut left = f32::INFINITY;
        for (swatch, text) in entries {
            let before = swatch.width();
            let width = before + width_of(&text, 12.0);
            if left + width > self.width - RIGHT {
                left = LEFT;
                rows.push(Vec::new());
            }
            rows.last_mut().expect("the first entry begins a row").push((left, swatch, text));
            left += width + 20.0;
        }
        rows
    }

    fn legend(&mut self, rows: Vec<Vec<(f32, Swatch, String)>>) {
        let mut top = self.bottom + BELOW_AXIS;
        for row in rows {
            top += LEGEND_ROW;
            for (left, swatch, text) in row {
                let middle = top - 12.0;
                let color = if matches!(swatch, Swatch::Nothing) { self.palette.soft } else { self.palette.ink };
                let before = swatch.width();
                match swatch {
                    Swatch::Line(color, dash) => self.shapes.push(DrawnShape::Lines {
                        points: vec![(left, middle), (left + 22.0, middle)],
                        color,
                        width: 3.0,
                        dash,
                    }),
                    Swatch::Dot(color) => {
                        let at = (left + 5.0, middle);
                        self.shapes.push(DrawnShape::Circle { at, radius: 3.0, color, opacity: 0.6 });
                    }
                    Swatch::Square(color) => self.rect((left, middle - 4.0), (8.0, 8.0), color),
                    Swatch::Scale(palette) => {
                        for step in 0..SCALE_STEPS {
                            let at = (left + SCALE_STEP * step as f32, middle - 4.0);
                            let color = palette.heat(step as f64 / (SCALE_STEPS - 1) as f64);
                            self.rect(at, (SCALE_STEP + 0.3, 8.0), color);
                        }
                    }
                    Swatch::Nothing => (),
                }
                self.text((left + before, middle + 4.0), &text, 12.0, color, Anchor::Start);
            }
        }
        self.height = top + FOOT;
    }
}

impl Swatch {
    /// With the gap behind it.
    fn width(&self) -> f32 {
        match self {
            Swatch::Line(..) => 28.0,
            Swatch::Dot(_) | Swatch::Square(_) => 14.0,
            Swatch::Scale(_) => SCALE_STEP * SCALE_STEPS as f32 + 6.0,
            Swatch::Nothing => 0.0,
        }
    }
}

/// −1 … 1: the same for the same number, and far apart for neighbors (multiples of the golden ratio).
fn spread(number: usize) -> f32 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    ((number as f64 * GOLDEN).fract() * 2.0 - 1.0) as f32
}

/// Keeps as many ticks as there is room for labels.
fn side_by_side(ticks: &[Tick], place: impl Fn(f64) -> f32) -> Vec<&Tick> {
    let mut free = f32::NEG_INFINITY;
    let has_room = |tick: &&Tick| {
        let half = width_of(&tick.text, 12.0) / 2.0;
        let fits = place(tick.at) - half >= free;
        if fits {
            free = place(tick.at) + half + 8.0;
        }
        fits
    };
    ticks.iter().filter(has_room).collect()
}

/// `text` in lines of at most `room`, broken at `separator`; what has none is truncated. At most three lines.
fn wrapped(text: &str, size: f32, room: f32, separator: &str) -> Vec<String> {
    const LINES_MAX: usize = 3;
    let mut lines: Vec<String> = Vec::new();
    for piece in text.split(separator).filter(|piece| !piece.is_empty()) {
        match lines.last_mut() {
            Some(line) if width_of(&format!("{line}{separator}{piece}"), size) <= room => {
                *line = format!("{line}{separator}{piece}");
            }
            _ => lines.push(piece.to_owned()),
        }
    }
    lines.truncate(LINES_MAX);
    lines.iter().map(|line| fitting(line, size, room)).collect()
}

/// Cuts `text` to the available width in its middle: names that differ at their ends stay apart.
fn fitting_ends(text: &str, size: f32, room: f32) -> String {
    let letters: Vec<char> = text.chars().collect();
    let cut = |left_out: usize| {
        let kept = letters.len() - left_out;
        let (first, last) = (kept.div_ceil(2), kept / 2);
        let ends =
            [&letters[..first], &['…'], &letters[letters.len() - last..]].map(|part| part.iter().collect::<String>());
        ends.concat()
    };
    if width_of(text, size) <= room {
        return text.to_owned();
    }
    (1..letters.len()).map(cut).find(|cut| width_of(cut, size) <= room).unwrap_or_else(|| "…".to_owned())
}

/// Cuts `text` to the available width.
fn fitting(text: &str, size: f32, room: f32) -> String {
    if width_of(text, size) <= room {
        return text.to_owned();
    }
    let mut cut = text.to_owned();
    while !cut.is_empty() && width_of(&cut, size) + width_of("…", size) > room {
        cut.pop();
    }
    cut + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_at_their_ends_stay_apart() {
        let of = |name: &str| fitting_ends(name, 12.0, 90.0);
        assert_eq!(of("short"), "short");
        let (one, other) = (of("a_long_name_of_a_setting_1"), of("a_long_name_of_a_setting_2"));
        assert!(one.starts_with("a_lo") && one.ends_with("_1") && other.ends_with("_2"), "{one} {other}");
        assert!(width_of(&one, 12.0) <= 90.0);
        assert_eq!(fitting_ends("name", 12.0, 1.0), "…");
    }
}
