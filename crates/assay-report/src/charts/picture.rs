//! Charts as pictures, without a browser: SVG, and PNG from the same shapes. Light ground and colours for print.

use tiny_skia::Pixmap;

use crate::charts::chart::{Body, Boxed, Chart, Line, MarkKind, Scale};
use crate::charts::layout::{Layout, Look, Range};
use crate::charts::palette::{BAD, BOX, Colour, GRID, INK, SERIES, SHADE, SOFT, STALL, WARN, heat};
use crate::charts::shape::{Anchor, DENSITY, Shape, width_of};
use crate::plain::clean;

const WIDTH: f32 = 960.0;
/// Of what lies between the axes.
const HEIGHT: f32 = 300.0;
const LEFT: f32 = 76.0;
const RIGHT: f32 = 20.0;
const TOP: f32 = 64.0;
const BOX_ROW: f32 = 34.0;

/// The chart as an SVG document.
pub fn svg(chart: &Chart) -> String {
    let drawing = Drawing::of(chart);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" \
         font-family=\"Roboto, system-ui, sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        WIDTH, drawing.height
    );
    for shape in &drawing.shapes {
        text += &shape.svg();
    }
    text + "</svg>\n"
}

/// The chart as a PNG image.
pub fn png(chart: &Chart) -> Vec<u8> {
    let drawing = Drawing::of(chart);
    let size = |length: f32| (length * DENSITY).ceil() as u32;
    let mut image = Pixmap::new(size(WIDTH), size(drawing.height)).expect("drawings are small and not empty");
    image.fill(tiny_skia::Color::WHITE);
    for shape in &drawing.shapes {
        shape.paint(&mut image);
    }
    image.encode_png().expect("writing to memory does not fail")
}

struct Drawing {
    shapes: Vec<Shape>,
    height: f32,
}

/// An axis between two places.
struct Place<'a> {
    from: f32,
    to: f32,
    range: &'a Range,
}

impl Place<'_> {
    fn of(&self, value: f64) -> f32 {
        let along = |value: f64| if self.range.logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let span = along(self.range.high) - along(self.range.low);
        let share = if span > 0.0 { (along(value) - along(self.range.low)) / span } else { 0.5 };
        self.from + (self.to - self.from) * share.clamp(-0.1, 1.1) as f32
    }
}

impl Drawing {
    fn of(chart: &Chart) -> Drawing {
        let mut drawing = Drawing { shapes: Vec::new(), height: 0.0 };
        drawing.text((LEFT, 24.0), &chart.title, 17.0, INK, Anchor::Start);
        drawing.caption(&chart.caption);
        let layout = Layout::of(chart);
        let x = Place { from: LEFT, to: WIDTH - RIGHT, range: &layout.x };
        let y = Place { from: TOP + HEIGHT, to: TOP, range: &layout.y };
        if let Body::Boxes { boxes } = &chart.body {
            drawing.boxes(&chart.y.label, boxes, &layout.y);
            return drawing;
        }
        drawing.outages_and_stages(chart, &x);
        match &chart.body {
            Body::Boxes { .. } => (),
            Body::Lines { lines } => {
                drawing.axes(chart, &x, &y);
                drawing.lines(chart, lines, &layout.looks, (&x, &y));
            }
            // Its ground is full: the axes' lines would be under it.
            Body::Heat { columns, edges, cells } => {
                drawing.heat(columns, edges, cells, (&x, &y));
                drawing.axes(chart, &x, &y);
            }
        }
        drawing.marks_on_top(chart, &x);
        drawing.height = TOP + HEIGHT + 52.0;
        if let Body::Lines { lines } = &chart.body {
            drawing.legend(lines, &layout.looks);
        }
        drawing
    }

    fn text(&mut self, at: (f32, f32), text: &str, size: f32, colour: Colour, anchor: Anchor) {
        self.shapes.push(Shape::Text { at, text: clean(text, 200), size, colour, anchor, upwards: false });
    }

    fn line(&mut self, points: Vec<(f32, f32)>, colour: Colour, width: f32) {
        self.shapes.push(Shape::Lines { points, colour, width, dash: &[] });
    }

    fn rect(&mut self, at: (f32, f32), size: (f32, f32), fill: Colour) {
        self.shapes.push(Shape::Rect { at, size, fill });
    }

    /// At most two lines.
    fn caption(&mut self, caption: &str) {
        let (mut lines, mut line) = (Vec::new(), String::new());
        for word in caption.split_whitespace() {
            let longer = format!("{line} {word}");
            if width_of(&longer, 12.0) > WIDTH - LEFT - RIGHT && lines.is_empty() {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            } else {
                line = longer.trim_start().to_owned();
            }
        }
        lines.push(line);
        for (number, line) in lines.iter().enumerate() {
            self.text((LEFT, 41.0 + 15.0 * number as f32), line, 12.0, SOFT, Anchor::Start);
        }
    }

    fn lines(&mut self, chart: &Chart, lines: &[Line], looks: &[Look], (x, y): (&Place, &Place)) {
        let few = lines.iter().map(|line| line.x.len()).max().unwrap_or(0) < 90 && chart.x.scale != Scale::Nines;
        for (line, look) in lines.iter().zip(looks) {
            let (colour, dash) = (SERIES[look.colour], look.dash);
            let all = || line.x.iter().zip(&line.y).map(|(at, value)| Some((x.of(*at), y.of((*value)?))));
            for points in all().collect::<Vec<_>>().split(Option::is_none) {
                let points = points.iter().copied().flatten().collect();
                self.shapes.push(Shape::Lines { points, colour, width: 1.5, dash });
            }
            if few {
                self.shapes.extend(all().flatten().map(|at| Shape::Circle { at, radius: 2.5, colour }));
            }
        }
    }

    fn heat(&mut self, columns: &[(f64, f64)], edges: &[f64], cells: &[Vec<f64>], (x, y): (&Place, &Place)) {
        let most = cells.iter().flatten().copied().fold(0.0, f64::max);
        for (column, cells) in columns.iter().zip(cells) {
            for (row, value) in cells.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                let share = (value / most * 1e3).ln_1p() / 1e3f64.ln_1p();
                let (left, right, top, bottom) =
                    (x.of(column.0), x.of(column.1), y.of(edges[row + 1]), y.of(edges[row]));
                self.rect((left, top), ((right - left).max(0.5) + 0.3, bottom - top + 0.3), heat(share));
            }
        }
    }

    fn boxes(&mut self, label: &str, boxes: &[Boxed], range: &Range) {
        let longest = boxes.iter().map(|one| width_of(&one.name, 12.0)).fold(0.0, f32::max);
        let left = (longest + 24.0).clamp(LEFT, 360.0);
        let x = Place { from: left, to: WIDTH - RIGHT, range };
        let bottom = TOP + BOX_ROW * boxes.len() as f32 + 8.0;
        for tick in &range.ticks {
            self.line(vec![(x.of(tick.at), TOP), (x.of(tick.at), bottom)], GRID, 1.0);
            self.text((x.of(tick.at), bottom + 16.0), &tick.text, 12.0, SOFT, Anchor::Middle);
        }
        self.text((f32::midpoint(left, WIDTH - RIGHT), bottom + 36.0), label, 12.0, SOFT, Anchor::Middle);
        for (number, one) in boxes.iter().enumerate() {
            let middle = TOP + BOX_ROW * (number as f32 + 0.5);
            self.text((left - 12.0, middle + 4.0), &one.name, 12.0, INK, Anchor::End);
            let (low, from, to, high) =
                (x.of(one.low), x.of(one.lower_quartile), x.of(one.upper_quartile), x.of(one.high));
            self.line(vec![(low, middle), (high, middle)], INK, 1.0);
            self.line(vec![(low, middle - 6.0), (low, middle + 6.0)], INK, 1.0);
            self.line(vec![(high, middle - 6.0), (high, middle + 6.0)], INK, 1.0);
            self.rect((from, middle - 10.0), ((to - from).max(1.0), 20.0), BOX);
            self.line(vec![(x.of(one.median), middle - 10.0), (x.of(one.median), middle + 10.0)], SERIES[1], 3.0);
            let outside =
                one.outside.iter().map(|value| Shape::Circle { at: (x.of(*value), middle), radius: 2.0, colour: INK });
            self.shapes.extend(outside);
        }
        self.height = bottom + 48.0;
    }

    fn outages_and_stages(&mut self, chart: &Chart, x: &Place) {
        let span = |from: f64, to: f64| (x.of(from), (x.of(to) - x.of(from)).max(1.0));
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Stage).step_by(2) {
            let (left, width) = span(mark.from, mark.to);
            self.rect((left, TOP), (width, HEIGHT), SHADE);
        }
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Outage) {
            let (left, width) = span(mark.from, mark.to);
            self.rect((left, TOP), (width, HEIGHT), STALL);
            self.rect((left, TOP), (width, 3.0), BAD);
        }
    }

    fn marks_on_top(&mut self, chart: &Chart, x: &Place) {
        let mut free = 0.0;
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Stage) {
            let left = x.of(mark.from) + 4.0;
            let room = x.of(mark.to) - left;
            let short = mark.text.split(' ').next().unwrap_or_default();
            let fitting = [mark.text.as_str(), short].into_iter().find(|text| width_of(text, 11.0) < room);
            if let Some(text) = fitting.filter(|_| left >= free) {
                self.text((left, TOP - 4.0), text, 11.0, SOFT, Anchor::Start);
                free = left + width_of(text, 11.0) + 6.0;
            }
        }
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Knee) {
            let at = x.of(mark.from);
            self.line(vec![(at, TOP), (at, TOP + HEIGHT)], SOFT, 1.0);
            if at >= free {
                self.text((at, TOP - 4.0), &mark.text, 11.0, SOFT, Anchor::Middle);
                free = at + width_of(&mark.text, 11.0) + 6.0;
            }
        }
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Errors) {
            let left = x.of(mark.from);
            self.rect((left, TOP + HEIGHT - 6.0), ((x.of(mark.to) - left).max(1.5), 6.0), WARN);
        }
    }

    fn axes(&mut self, chart: &Chart, x: &Place, y: &Place) {
        let (bottom, right) = (TOP + HEIGHT, WIDTH - RIGHT);
        for tick in &y.range.ticks {
            self.line(vec![(LEFT, y.of(tick.at)), (right, y.of(tick.at))], GRID, 1.0);
            self.text((LEFT - 8.0, y.of(tick.at) + 4.0), &tick.text, 12.0, SOFT, Anchor::End);
        }
        for tick in &x.range.ticks {
            self.line(vec![(x.of(tick.at), bottom), (x.of(tick.at), bottom + 5.0)], SOFT, 1.0);
            self.text((x.of(tick.at), bottom + 18.0), &tick.text, 12.0, SOFT, Anchor::Middle);
        }
        self.text((f32::midpoint(LEFT, right), bottom + 38.0), &chart.x.label, 12.0, SOFT, Anchor::Middle);
        let label = clean(&chart.y.label, 80);
        let at = (16.0, TOP + HEIGHT / 2.0);
        self.shapes.push(Shape::Text {
            at,
            text: label,
            size: 12.0,
            colour: SOFT,
            anchor: Anchor::Middle,
            upwards: true,
        });
    }

    fn legend(&mut self, lines: &[Line], looks: &[Look]) {
        let (mut left, mut top) = (LEFT, TOP + HEIGHT + 62.0);
        for (line, look) in lines.iter().zip(looks) {
            let width = 30.0 + width_of(&line.name, 12.0);
            if left + width > WIDTH - RIGHT && left > LEFT {
                (left, top) = (LEFT, top + 20.0);
            }
            let (colour, dash) = (SERIES[look.colour], look.dash);
            self.shapes.push(Shape::Lines {
                points: vec![(left, top - 4.0), (left + 22.0, top - 4.0)],
                colour,
                width: 3.0,
                dash,
            });
            self.text((left + 28.0, top), &line.name, 12.0, INK, Anchor::Start);
            left += width + 20.0;
        }
        self.height = top + 16.0;
    }
}
