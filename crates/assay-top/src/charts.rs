//! A chart of the report in a part of the screen, with braille dots.

use assay_report::{AxisScale, Chart, ChartBody, ChartLine, MarkKind, clock, figure};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart as Picture, Dataset, GraphType, Padding, Widget};

/// Colors of lines, in the order of the legend.
const COLORS: [Color; 8] = [
    Color::Cyan,
    Color::Yellow,
    Color::Green,
    Color::Magenta,
    Color::LightBlue,
    Color::LightRed,
    Color::Gray,
    Color::LightGreen,
];
const MARKS: [MarkKind; 3] = [MarkKind::Step, MarkKind::Change, MarkKind::Outage];
/// Titles for narrow charts.
const SHORT: [(&str, &str); 14] = [
    ("Throughput by transaction type", "types"),
    ("Throughput over time", "throughput"),
    ("Response time over time", "response"),
    ("Errors and retries over time", "trouble"),
    ("Active sessions by wait event", "waits"),
    ("Checkpoint age and its limit", "checkpoint"),
    ("Pages written and buffer misses", "pages"),
    ("CPU of the whole machine", "CPU"),
    ("CPU of the server's processes", "server"),
    ("Device under the data directory", "device"),
    ("Memory of the machine", "memory"),
    ("Pressure: some task waited", "pressure"),
    ("Buffer hit ratio", "hits"),
    ("Active sessions", "active"),
];
/// Less is not a chart.
const HEIGHT_MIN: u16 = 5;

/// The style of a line.
pub(crate) fn style_of(number: usize, color: bool) -> Style {
    if color { Style::new().fg(COLORS[number % COLORS.len()]) } else { Style::new() }
}

/// Draws a chart whose times count from `from_ns`.
pub(crate) fn draw_chart(chart: &Chart, from_ns: u64, area: Rect, buffer: &mut Buffer, color: bool) {
    let ChartBody::Lines { lines } = &chart.body else { return };
    if area.height < HEIGHT_MIN || area.width < 16 {
        return;
    }
    let is_log = chart.y.scale == AxisScale::Log;
    let offset = from_ns as f64 / 1e9;
    let height_of = |value: f64| if is_log { value.max(1e-6).log10() } else { value };
    let values = || lines.iter().flat_map(|line| line.y.iter().flatten().copied()).filter(|y| !is_log || *y > 0.0);
    let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
    if low > high {
        return;
    }
    let (bottom, top) = match chart.y.scale {
        AxisScale::Log => ((low / 1.2).log10(), (high * 1.2).log10()),
        AxisScale::Around => (low - (high - low).max(low.abs() * 1e-3), high + (high - low).max(1e-3) * 0.1),
        _ => (0.0, if high > 0.0 { high * 1.05 } else { 1.0 }),
    };
    let instants = || lines.iter().flat_map(|line| line.x.iter().copied());
    let first = instants().fold(f64::INFINITY, f64::min).min(0.0);
    let last = instants().fold(first + 1.0, f64::max);
    let pieces: Vec<Piece> =
        lines.iter().enumerate().flat_map(|(number, line)| pieces(number, line, &height_of)).collect();
    let marks: Vec<(MarkKind, Vec<(f64, f64)>)> = chart
        .marks
        .iter()
        .filter(|mark| MARKS.contains(&mark.kind))
        .map(|mark| (mark.kind, vec![(mark.from, bottom), (mark.from, top)]))
        .collect();
    let mut datasets = Vec::new();
    for (kind, points) in &marks {
        let style = match (color, kind) {
            (false, _) => Style::new().add_modifier(Modifier::DIM),
            (true, MarkKind::Step) => Style::new().fg(Color::White),
            (true, _) => Style::new().fg(Color::Red),
        };
        datasets.push(Dataset::default().data(points).graph_type(GraphType::Line).marker(Marker::Braille).style(style));
    }
    for (number, dots, points) in &pieces {
        let kind = if *dots { GraphType::Scatter } else { GraphType::Line };
        let style = style_of(*number, color);
        datasets.push(Dataset::default().data(points).graph_type(kind).marker(Marker::Braille).style(style));
    }
    let shown = |at: f64| figure(if is_log { 10f64.powf(at) } else { at });
    let labels = |low: f64, high: f64| [low, (low + high) / 2.0, high];
    let time = |at: f64| clock(((at + offset).max(0.0) * 1e9).round() as u64);
    let y = labels(bottom, top).map(|at| Span::raw(shown(at)));
    let x = labels(first, last).map(|at| Span::raw(time(at)));
    let block = Block::new().title(title(chart, lines, color, area.width)).padding(Padding::ZERO);
    Picture::new(datasets)
        .block(block)
        .legend_position(None)
        .hidden_legend_constraints((Constraint::Length(0), Constraint::Length(0)))
        .x_axis(Axis::default().bounds([first, last]).labels(x).style(soft(color)))
        .y_axis(Axis::default().bounds([bottom, top]).labels(y).style(soft(color)))
        .render(area, buffer);
    texts(chart, (first, last), area, buffer);
}

fn soft(color: bool) -> Style {
    if color { Style::new().fg(Color::DarkGray) } else { Style::new() }
}

/// What the chart shows, and the last value of each line.
fn title(chart: &Chart, lines: &[ChartLine], color: bool, width: u16) -> Line<'static> {
    let unit = chart.y.label.replace("transactions per second", "tx/s").replace("response time, ms", "ms");
    let full = format!("{}, {unit}", chart.title);
    let short = SHORT.iter().find(|(title, _)| chart.title.starts_with(title)).map(|(_, short)| *short);
    let name = match short.filter(|_| usize::from(width) < 3 * full.chars().count()) {
        Some(short) => format!("{short}, {unit}"),
        None => full,
    };
    let mut spans = vec![Span::styled(name, Style::new().add_modifier(Modifier::BOLD))];
    let mut room = usize::from(width).saturating_sub(spans[0].content.chars().count());
    for (number, line) in lines.iter().enumerate() {
        // The last instant's own value: an earlier one is not what is now.
        let below = line.band.last().copied().flatten().map_or(0.0, |(from, _)| if line.stacked { from } else { 0.0 });
        let value = line.y.last().copied().flatten().map_or_else(|| "–".to_owned(), |y| figure(y - below));
        let text = format!("  {} {value}", line.name);
        let length = text.chars().count();
        if length > room {
            break;
        }
        room -= length;
        spans.push(Span::styled(text, style_of(number, color)));
    }
    Line::from(spans)
}

/// Part of a line without gaps: the number of the line, whether it is drawn as dots, and its points.
type Piece = (usize, bool, Vec<(f64, f64)>);

/// A line without its gaps.
fn pieces(number: usize, line: &ChartLine, height: &impl Fn(f64) -> f64) -> Vec<Piece> {
    let mut all = vec![Vec::new()];
    for (x, y) in line.x.iter().zip(&line.y) {
        match y {
            Some(y) => all.last_mut().expect("there is one").push((*x, height(*y))),
            None => all.push(Vec::new()),
        }
    }
    all.retain(|points| !points.is_empty());
    all.into_iter().map(|points| (number, line.dots || points.len() == 1, points)).collect()
}

/// Texts of steps and notes beside their marks, as far as there is room.
fn texts(chart: &Chart, (first, last): (f64, f64), area: Rect, buffer: &mut Buffer) {
    let left = (area.x..area.right()).find(|x| buffer[(*x, area.y + 1)].symbol() == "│").unwrap_or(area.x);
    let width = f64::from(area.right().saturating_sub(left + 1));
    let mut free = left;
    for mark in chart.marks.iter().filter(|mark| mark.kind == MarkKind::Step) {
        let share = (mark.from - first) / (last - first);
        if !(0.0..=1.0).contains(&share) {
            continue;
        }
        let length = u16::try_from(mark.text.chars().count()).unwrap_or(u16::MAX);
        let beside = left + 2 + (share * width) as u16;
        let x = if beside.saturating_add(length) <= area.right() { beside } else { beside.saturating_sub(length + 2) };
        if x <= free || x.saturating_add(length) > area.right() {
            continue;
        }
        buffer.set_stringn(x, area.y + 1, &mark.text, usize::from(length), Style::new());
        free = x + length;
    }
}
