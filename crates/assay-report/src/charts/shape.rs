//! Drawing primitives in pixels: as SVG, and rasterized at twice the size.
//!
//! Text is measured, and in a PNG drawn, with the one embedded font, so that a picture looks the same on every machine.

use std::sync::LazyLock;

use tiny_skia::{FillRule, LineCap, Paint, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform};
use ttf_parser::{Face, OutlineBuilder};

use crate::charts::palette::{Color, hex};

const FONT: &[u8] = include_bytes!("../../page/vendor/roboto/Roboto-Regular.ttf");

static FACE: LazyLock<Face> = LazyLock::new(|| Face::parse(FONT, 0).expect("our own font is whole"));

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

pub(crate) enum DrawnShape {
    Lines {
        points: Vec<(f32, f32)>,
        color: Color,
        width: f32,
        dash: &'static [f32],
    },
    Rect {
        at: (f32, f32),
        size: (f32, f32),
        fill: Color,
    },
    /// A closed path; `opacity`: 0 … 1.
    Area {
        points: Vec<(f32, f32)>,
        color: Color,
        opacity: f32,
    },
    Circle {
        at: (f32, f32),
        radius: f32,
        color: Color,
        opacity: f32,
    },
    Text {
        at: (f32, f32),
        text: String,
        size: f32,
        color: Color,
        anchor: Anchor,
        upwards: bool,
    },
}

impl DrawnShape {
    pub(crate) fn svg(&self) -> String {
        match self {
            DrawnShape::Lines { points, .. } if points.len() < 2 => String::new(),
            DrawnShape::Lines { points, color, width, dash } => {
                let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                let dash = dash.iter().map(|length| length.to_string()).collect::<Vec<_>>().join(" ");
                let dash = if dash.is_empty() { dash } else { format!(" stroke-dasharray=\"{dash}\"") };
                let (points, color) = (points.join(" "), hex(*color));
                format!(
                    "<polyline points=\"{points}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"{dash}/>\n"
                )
            }
            DrawnShape::Rect { at: (x, y), size: (width, height), fill } => {
                let fill = hex(*fill);
                format!(
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>\n"
                )
            }
            DrawnShape::Area { points, color, opacity } => {
                let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                let (points, color) = (points.join(" "), hex(*color));
                format!("<polygon points=\"{points}\" fill=\"{color}\" fill-opacity=\"{opacity}\"/>\n")
            }
            DrawnShape::Circle { at: (x, y), radius, color, opacity } => {
                let (color, faint) = (hex(*color), format!(" fill-opacity=\"{opacity}\""));
                let faint = if *opacity < 1.0 { faint } else { String::new() };
                format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{color}\"{faint}/>\n")
            }
            DrawnShape::Text { at: (x, y), text, size, color, anchor, upwards } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let turned = if *upwards { format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"") } else { String::new() };
                format!(
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{}\" text-anchor=\"{anchor}\"{turned}>{}</text>\n",
                    hex(*color),
                    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
                )
            }
        }
    }

    pub(crate) fn paint(&self, image: &mut Pixmap) {
        let scaled = Transform::from_scale(DENSITY, DENSITY);
        let faint = |[red, green, blue]: Color, opacity: f32| {
            let mut paint = Paint { anti_alias: true, ..Paint::default() };
            paint.set_color_rgba8(red, green, blue, (opacity * 255.0).round() as u8);
            paint
        };
        let paint = |color: Color| faint(color, 1.0);
        match self {
            DrawnShape::Lines { points, color, width, dash } => {
                let mut path = PathBuilder::new();
                for (number, (x, y)) in points.iter().enumerate() {
                    if number == 0 { path.move_to(*x, *y) } else { path.line_to(*x, *y) }
                }
                let dash = StrokeDash::new(dash.to_vec(), 0.0).filter(|_| !dash.is_empty());
                let stroke = Stroke { width: *width, line_cap: LineCap::Round, dash, ..Stroke::default() };
                if let Some(path) = path.finish() {
                    image.stroke_path(&path, &paint(*color), &stroke, scaled, None);
                }
            }
            DrawnShape::Rect { at, size, fill } => {
                if let Some(rect) = Rect::from_xywh(at.0, at.1, size.0, size.1) {
                    image.fill_rect(rect, &paint(*fill), scaled, None);
                }
            }
            DrawnShape::Area { points, color, opacity } => {
                let mut path = PathBuilder::new();
                for (number, (x, y)) in points.iter().enumerate() {
                    if number == 0 { path.move_to(*x, *y) } else { path.line_to(*x, *y) }
                }
                path.close();
                if let Some(path) = path.finish() {
                    image.fill_path(&path, &faint(*color, *opacity), FillRule::Winding, scaled, None);
                }
            }
            DrawnShape::Circle { at, radius, color, opacity } => {
                if let Some(path) = PathBuilder::from_circle(at.0, at.1, *radius) {
                    image.fill_path(&path, &faint(*color, *opacity), FillRule::Winding, scaled, None);
                }
            }
            DrawnShape::Text { at, text, size, color, anchor, upwards } => {
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
                    image.fill_path(&path, &paint(*color), FillRule::Winding, there, None);
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

pub(crate) fn width_of(text: &str, size: f32) -> f32 {
    let units: u32 =
        text.chars().map(|c| FACE.glyph_hor_advance(glyph(c)).unwrap_or(0).into()).map(|width: u32| width).sum();
    units as f32 * size / f32::from(FACE.units_per_em())
}

fn glyph(c: char) -> ttf_parser::GlyphId {
    FACE.glyph_index(c).or_else(|| FACE.glyph_index('?')).unwrap_or_default()
}

/// Pixels of a PNG per unit of a drawing.
pub(crate) const DENSITY: f32 = 2.0;
