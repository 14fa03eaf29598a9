//! Charts as pictures, without a browser: SVG, and PNG from the same shapes.
//!
//! A chart becomes a list of shapes in units of one pixel; `svg` writes them as they are, `png` paints them at twice the size.
//! Text is measured, and in a PNG drawn, with the one font we carry, so that a picture looks the same on every
//! machine. Light ground and colours for print, as on the page.

use std::sync::LazyLock;

use tiny_skia::{FillRule, LineCap, Paint, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform};
use ttf_parser::{Face, OutlineBuilder};

use crate::cells::{clean, figure};
use crate::chart::{Axis, Body, Boxed, Chart, Line, MarkKind, Scale};

const FONT: &[u8] = include_bytes!("../page/vendor/roboto/Roboto-Regular.ttf");
static FACE: LazyLock<Face> = LazyLock::new(|| Face::parse(FONT, 0).expect("our own font is whole"));

const WIDTH: f32 = 960.0;
/// Of what lies between the axes.
const HEIGHT: f32 = 300.0;
const LEFT: f32 = 76.0;
const RIGHT: f32 = 20.0;
const TOP: f32 = 64.0;
/// Pixels of a PNG for one of ours.
const DENSITY: f32 = 2.0;
const BOX_ROW: f32 = 34.0;

type Colour = [u8; 3];
const INK: Colour = [0x1a, 0x1c, 0x20];
const SOFT: Colour = [0x58, 0x5f, 0x6b];
const GRID: Colour = [0xe4, 0xe7, 0xec];
const SHADE: Colour = [0xf6, 0xf6, 0xf7];
const BAD: Colour = [0xb3, 0x26, 0x1e];
const STALL: Colour = [0xf3, 0xdd, 0xdc];
const WARN: Colour = [0x8a, 0x4b, 0x00];
const BOX: Colour = [0xa6, 0xcc, 0xe2];
/// Okabe and Ito 2008, as on the page.
const SERIES: [Colour; 8] = [
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x9e, 0x73],
    [0xb5, 0x57, 0x8f],
    [0xb0, 0x78, 0x00],
    [0x2f, 0x9f, 0xe0],
    [0x1a, 0x1c, 0x20],
    [0x7a, 0x6a, 0x00],
];
const DASHES: [&[f32]; 3] = [&[], &[7.0, 3.0], &[2.0, 3.0]];
/// Along viridis, from few to many.
const HEAT: [Colour; 6] = [
    [0xee, 0xf3, 0xe2],
    [0xa8, 0xdb, 0x8f],
    [0x35, 0xb7, 0x79],
    [0x26, 0x82, 0x8e],
    [0x3e, 0x49, 0x89],
    [0x44, 0x01, 0x54],
];

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

#[derive(Clone, Copy, PartialEq)]
enum Anchor {
    Start,
    Middle,
    End,
}

enum Shape {
    Lines { points: Vec<(f32, f32)>, colour: Colour, width: f32, dash: &'static [f32] },
    Rect { at: (f32, f32), size: (f32, f32), fill: Colour },
    Circle { at: (f32, f32), radius: f32, colour: Colour },
    Text { at: (f32, f32), text: String, size: f32, colour: Colour, anchor: Anchor, upwards: bool },
}

struct Drawing {
    shapes: Vec<Shape>,
    height: f32,
}

/// Where values lie between two places.
struct Place {
    from: f32,
    to: f32,
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Place {
    fn of(&self, value: f64) -> f32 {
        let along = |value: f64| if self.logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let span = along(self.high) - along(self.low);
        let share = if span > 0.0 { (along(value) - along(self.low)) / span } else { 0.5 };
        self.from + (self.to - self.from) * share.clamp(-0.1, 1.1) as f32
    }
}

impl Drawing {
    fn of(chart: &Chart) -> Drawing {
        let mut drawing = Drawing { shapes: Vec::new(), height: 0.0 };
        drawing.text((LEFT, 24.0), &chart.title, 17.0, INK, Anchor::Start);
        drawing.caption(&chart.caption);
        match &chart.body {
            Body::Boxes { boxes } => drawing.boxes(chart, boxes),
            Body::Lines { lines } => drawing.lines(chart, lines),
            Body::Heat { columns, edges, cells } => drawing.heat(chart, columns, edges, cells),
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

    fn lines(&mut self, chart: &Chart, lines: &[Line]) {
        let (x, y) = (x_place(chart, lines), y_place(chart, lines));
        self.stalls_and_stages(chart, &x);
        self.axes(chart, &x, &y, lines);
        let few = lines.iter().map(|line| line.x.len()).max().unwrap_or(0) < 90 && chart.x.scale != Scale::Nines;
        for line in lines {
            let (colour, dash) = look(line);
            let mut points: Vec<(f32, f32)> = Vec::new();
            for (at, value) in line.x.iter().zip(&line.y) {
                match value {
                    Some(value) => points.push((x.of(*at), y.of(*value))),
                    None => {
                        self.shapes.push(Shape::Lines { points: std::mem::take(&mut points), colour, width: 1.5, dash })
                    }
                }
            }
            self.shapes.push(Shape::Lines { points, colour, width: 1.5, dash });
            if few {
                let points = line.x.iter().zip(&line.y).filter_map(|(at, value)| Some((x.of(*at), y.of((*value)?))));
                self.shapes.extend(points.map(|at| Shape::Circle { at, radius: 2.5, colour }).collect::<Vec<_>>());
            }
        }
        self.marks_on_top(chart, &x);
        self.legend(lines);
    }

    fn heat(&mut self, chart: &Chart, columns: &[(f64, f64)], edges: &[f64], cells: &[Vec<f64>]) {
        let (first, last) =
            (columns.first().map_or(0.0, |column| column.0), columns.last().map_or(1.0, |column| column.1));
        let x = Place { from: LEFT, to: WIDTH - RIGHT, low: first, high: last, logarithmic: false };
        let (low, high) = (edges.first().copied().unwrap_or(1.0), edges.last().copied().unwrap_or(10.0));
        let y = Place { from: TOP + HEIGHT, to: TOP, low, high, logarithmic: true };
        self.stalls_and_stages(chart, &x);
        let most = cells.iter().flatten().copied().fold(0.0, f64::max);
        for (column, cells) in columns.iter().zip(cells) {
            for (row, value) in cells.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                let share = (value / most * 1e3).ln_1p() / 1e3f64.ln_1p();
                let (left, right, top, bottom) =
                    (x.of(column.0), x.of(column.1), y.of(edges[row + 1]), y.of(edges[row]));
                self.rect((left, top), ((right - left).max(0.5) + 0.3, bottom - top + 0.3), mixed(share));
            }
        }
        self.axes(chart, &x, &y, &[]);
        self.marks_on_top(chart, &x);
        self.height = TOP + HEIGHT + 52.0;
    }

    fn boxes(&mut self, chart: &Chart, boxes: &[Boxed]) {
        let longest = boxes.iter().map(|one| width_of(&one.name, 12.0)).fold(0.0, f32::max);
        let left = (longest + 24.0).clamp(LEFT, 360.0);
        let most = boxes.iter().map(|one| one.outside.iter().copied().fold(one.high, f64::max)).fold(0.0, f64::max);
        let x = Place {
            from: left,
            to: WIDTH - RIGHT,
            low: 0.0,
            high: if most > 0.0 { most } else { 1.0 },
            logarithmic: false,
        };
        let bottom = TOP + BOX_ROW * boxes.len() as f32 + 8.0;
        for value in even_ticks(0.0, x.high, 6.0) {
            self.line(vec![(x.of(value), TOP), (x.of(value), bottom)], GRID, 1.0);
            self.text((x.of(value), bottom + 16.0), &figure(value), 12.0, SOFT, Anchor::Middle);
        }
        self.text((f32::midpoint(left, WIDTH - RIGHT), bottom + 36.0), &chart.y.label, 12.0, SOFT, Anchor::Middle);
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

    fn stalls_and_stages(&mut self, chart: &Chart, x: &Place) {
        let span = |from: f64, to: f64| (x.of(from), (x.of(to) - x.of(from)).max(1.0));
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Stage).step_by(2) {
            let (left, width) = span(mark.from, mark.to);
            self.rect((left, TOP), (width, HEIGHT), SHADE);
        }
        for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Stall) {
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

    fn axes(&mut self, chart: &Chart, x: &Place, y: &Place, lines: &[Line]) {
        let (bottom, right) = (TOP + HEIGHT, WIDTH - RIGHT);
        for value in ticks(&chart.y, y) {
            self.line(vec![(LEFT, y.of(value)), (right, y.of(value))], GRID, 1.0);
            self.text((LEFT - 8.0, y.of(value) + 4.0), &tick(value), 12.0, SOFT, Anchor::End);
        }
        for (value, name) in x_ticks(chart, x, lines) {
            self.line(vec![(x.of(value), bottom), (x.of(value), bottom + 5.0)], SOFT, 1.0);
            self.text((x.of(value), bottom + 18.0), &name, 12.0, SOFT, Anchor::Middle);
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

    fn legend(&mut self, lines: &[Line]) {
        let (mut left, mut top) = (LEFT, TOP + HEIGHT + 62.0);
        for line in lines {
            let width = 30.0 + width_of(&line.name, 12.0);
            if left + width > WIDTH - RIGHT && left > LEFT {
                (left, top) = (LEFT, top + 20.0);
            }
            let (colour, dash) = look(line);
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

fn look(line: &Line) -> (Colour, &'static [f32]) {
    (SERIES[line.group % SERIES.len()], DASHES[line.group / SERIES.len() % DASHES.len()])
}

fn x_place(chart: &Chart, lines: &[Line]) -> Place {
    let all = || lines.iter().flat_map(|line| &line.x).copied();
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let (low, high) = match chart.x.scale {
        Scale::Log => (low / 1.15, high * 1.15),
        _ => (0.0, high),
    };
    Place { from: LEFT, to: WIDTH - RIGHT, low, high, logarithmic: chart.x.scale == Scale::Log }
}

fn y_place(chart: &Chart, lines: &[Line]) -> Place {
    let all = || lines.iter().flat_map(|line| &line.y).flatten().copied();
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let (low, high) = match chart.y.scale {
        Scale::Log if high > 0.0 => (low / 1.2, high * 1.2),
        _ if high > 0.0 => (0.0, high * 1.06),
        _ => (0.0, 1.0),
    };
    Place { from: TOP + HEIGHT, to: TOP, low, high, logarithmic: chart.y.scale == Scale::Log }
}

fn ticks(axis: &Axis, place: &Place) -> Vec<f64> {
    match axis.scale {
        Scale::Log => log_ticks(place.low, place.high),
        _ => even_ticks(place.low, place.high, 6.0),
    }
}

fn x_ticks(chart: &Chart, place: &Place, lines: &[Line]) -> Vec<(f64, String)> {
    if chart.x.scale == Scale::Nines {
        let names = ["fastest", "90%", "99%", "99.9%", "99.99%", "99.999%", "99.9999%"];
        let all = names.iter().enumerate().map(|(nines, name)| (nines as f64, (*name).to_owned()));
        return all.chain([(2f64.log10(), "50%".to_owned())]).filter(|(nines, _)| *nines <= place.high).collect();
    }
    let own = lines
        .iter()
        .map(|line| &line.x)
        .max_by_key(|x| x.len())
        .filter(|x| chart.x.label == "sessions" && x.len() <= 16);
    let values = own.cloned().unwrap_or_else(|| match chart.x.scale {
        Scale::Log => log_ticks(place.low, place.high),
        _ => even_ticks(place.low, place.high, 10.0),
    });
    values.into_iter().map(|value| (value, tick(value))).collect()
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

fn mixed(share: f64) -> Colour {
    let at = share.clamp(0.0, 1.0) * (HEAT.len() - 1) as f64;
    let (one, other) = (HEAT[at.floor() as usize], HEAT[at.ceil() as usize]);
    std::array::from_fn(|i| (f64::from(one[i]) + (f64::from(other[i]) - f64::from(one[i])) * at.fract()).round() as u8)
}

fn width_of(text: &str, size: f32) -> f32 {
    let units: u32 =
        text.chars().map(|c| FACE.glyph_hor_advance(glyph(c)).unwrap_or(0).into()).map(|width: u32| width).sum();
    units as f32 * size / f32::from(FACE.units_per_em())
}

fn glyph(c: char) -> ttf_parser::GlyphId {
    FACE.glyph_index(c).or_else(|| FACE.glyph_index('?')).unwrap_or_default()
}

fn hex([red, green, blue]: Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

impl Shape {
    fn svg(&self) -> String {
        match self {
            Shape::Lines { points, .. } if points.len() < 2 => String::new(),
            Shape::Lines { points, colour, width, dash } => {
                let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                let dash = dash.iter().map(|length| length.to_string()).collect::<Vec<_>>().join(" ");
                let dash = if dash.is_empty() { dash } else { format!(" stroke-dasharray=\"{dash}\"") };
                let (points, colour) = (points.join(" "), hex(*colour));
                format!(
                    "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}/>\n"
                )
            }
            Shape::Rect { at: (x, y), size: (width, height), fill } => {
                let fill = hex(*fill);
                format!(
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>\n"
                )
            }
            Shape::Circle { at: (x, y), radius, colour } => {
                format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{}\"/>\n", hex(*colour))
            }
            Shape::Text { at: (x, y), text, size, colour, anchor, upwards } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let turned = if *upwards { format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"") } else { String::new() };
                format!(
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{}\" text-anchor=\"{anchor}\"{turned}>{}</text>\n",
                    hex(*colour),
                    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
                )
            }
        }
    }

    fn paint(&self, image: &mut Pixmap) {
        let scaled = Transform::from_scale(DENSITY, DENSITY);
        let paint = |[red, green, blue]: Colour| {
            let mut paint = Paint { anti_alias: true, ..Paint::default() };
            paint.set_color_rgba8(red, green, blue, 255);
            paint
        };
        match self {
            Shape::Lines { points, colour, width, dash } => {
                let mut path = PathBuilder::new();
                for (number, (x, y)) in points.iter().enumerate() {
                    if number == 0 { path.move_to(*x, *y) } else { path.line_to(*x, *y) }
                }
                let dash = StrokeDash::new(dash.to_vec(), 0.0).filter(|_| !dash.is_empty());
                let stroke = Stroke { width: *width, line_cap: LineCap::Round, dash, ..Stroke::default() };
                if let Some(path) = path.finish() {
                    image.stroke_path(&path, &paint(*colour), &stroke, scaled, None);
                }
            }
            Shape::Rect { at, size, fill } => {
                if let Some(rect) = Rect::from_xywh(at.0, at.1, size.0, size.1) {
                    image.fill_rect(rect, &paint(*fill), scaled, None);
                }
            }
            Shape::Circle { at, radius, colour } => {
                if let Some(path) = PathBuilder::from_circle(at.0, at.1, *radius) {
                    image.fill_path(&path, &paint(*colour), FillRule::Winding, scaled, None);
                }
            }
            Shape::Text { at, text, size, colour, anchor, upwards } => {
                let width = width_of(text, *size);
                let left = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => -width / 2.0,
                    Anchor::End => -width,
                };
                let mut outline = Outline { path: PathBuilder::new(), left: 0.0 };
                for c in text.chars() {
                    FACE.outline_glyph(glyph(c), &mut outline);
                    outline.left += f32::from(FACE.glyph_hor_advance(glyph(c)).unwrap_or(0));
                }
                let scale = *size / f32::from(FACE.units_per_em());
                let turn = if *upwards { -90.0 } else { 0.0 };
                // Fonts count upwards, images downwards.
                let there =
                    scaled.pre_translate(at.0, at.1).pre_rotate(turn).pre_translate(left, 0.0).pre_scale(scale, -scale);
                if let Some(path) = outline.path.finish() {
                    image.fill_path(&path, &paint(*colour), FillRule::Winding, there, None);
                }
            }
        }
    }
}

/// A glyph's outline as a path, in the font's units.
struct Outline {
    path: PathBuilder,
    left: f32,
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.left + x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.left + x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.quad_to(self.left + x1, y1, self.left + x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.path.cubic_to(self.left + x1, y1, self.left + x2, y2, self.left + x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
