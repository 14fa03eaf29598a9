//! Rows of words and figures: sorted, filtered, with a chosen one.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use crate::view::View;

/// One cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    /// Its order; `None`: that of its text.
    order: Option<f64>,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    width: u16,
    is_figure: bool,
}

/// Rows under a head.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    columns: Vec<Column>,
    rows: Vec<(String, Vec<Cell>)>,
    has_choice: bool,
}

pub(crate) fn words(text: impl Into<String>) -> Cell {
    Cell { text: assay_report::visible(&text.into(), false).replace(['\n', '\t'], " "), order: None }
}

/// A figure with its order; a missing one is a dash.
pub(crate) fn figure(value: Option<f64>, show: impl Fn(f64) -> String) -> Cell {
    match value {
        Some(value) => Cell { text: show(value), order: Some(value) },
        None => Cell { text: "–".to_owned(), order: Some(f64::NEG_INFINITY) },
    }
}

pub(crate) const fn text_column(name: &'static str, width: u16) -> Column {
    Column { name, width, is_figure: false }
}

pub(crate) const fn figure_column(name: &'static str, width: u16) -> Column {
    Column { name, width, is_figure: true }
}

impl Grid {
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Grid {
        Grid { columns: columns.into(), rows: Vec::new(), has_choice: false }
    }

    /// Whether a row can be chosen.
    pub(crate) fn choosable(mut self) -> Grid {
        self.has_choice = true;
        self
    }

    pub(crate) fn row(&mut self, id: impl Into<String>, cells: Vec<Cell>) {
        self.rows.push((id.into(), cells));
    }

    pub(crate) fn into_rows(self) -> Vec<(String, Vec<Cell>)> {
        self.rows
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Lines that it needs.
    pub(crate) fn height(&self) -> u16 {
        u16::try_from(self.rows.len() + 1).unwrap_or(u16::MAX)
    }

    /// Rows that pass the filter, in the wanted order.
    fn arranged(&self, view: &View) -> Vec<&(String, Vec<Cell>)> {
        let wanted = view.filter.to_lowercase();
        let matches = |(_, cells): &&(String, Vec<Cell>)| {
            wanted.is_empty() || cells.iter().any(|cell| cell.text.to_lowercase().contains(&wanted))
        };
        let mut rows: Vec<_> = self.rows.iter().filter(matches).collect();
        if let Some(by) = self.sorted_by(view) {
            // Figures: the largest first.
            rows.sort_by(|(_, one), (_, other)| match (one.get(by), other.get(by)) {
                (Some(one), Some(other)) => match (one.order, other.order) {
                    (Some(one), Some(other)) => other.total_cmp(&one),
                    _ => one.text.cmp(&other.text),
                },
                _ => std::cmp::Ordering::Equal,
            });
        }
        rows
    }

    fn sorted_by(&self, view: &View) -> Option<usize> {
        view.sort.filter(|_| !self.columns.is_empty()).map(|sort| sort % self.columns.len())
    }

    /// Draws as many rows as fit around the chosen one, and tells the view what is there.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer, view: &mut View) {
        let rows = self.arranged(view);
        if self.has_choice {
            view.rows = rows.len();
            view.row = view.row.min(rows.len().saturating_sub(1));
            view.row_id = rows.get(view.row).map(|(id, _)| id.clone());
        }
        if area.height == 0 || area.width == 0 {
            return;
        }
        let sorted = self.sorted_by(view);
        let head = self.columns.iter().enumerate().map(|(number, column)| {
            let mark = if sorted == Some(number) { "↓" } else { "" };
            format!("{}{mark}", column.name)
        });
        let bold = Style::new().add_modifier(Modifier::BOLD);
        self.line(area.x, area.y, area.width, &head.collect::<Vec<_>>(), bold, buffer);
        let room = usize::from(area.height - 1);
        let chosen = if self.has_choice { view.row } else { 0 };
        let first = (chosen + 1).saturating_sub(room);
        for (number, (_, cells)) in rows.iter().enumerate().skip(first).take(room) {
            let y = area.y + 1 + (number - first) as u16;
            let texts: Vec<String> = cells.iter().map(|cell| cell.text.clone()).collect();
            let style = match self.has_choice && number == view.row {
                true => Style::new().add_modifier(Modifier::REVERSED),
                false => Style::new(),
            };
            self.line(area.x, y, area.width, &texts, style, buffer);
        }
        if rows.is_empty() && room > 0 {
            let words = if self.rows.is_empty() { "none" } else { "no row matches the filter" };
            buffer.set_stringn(area.x, area.y + 1, words, usize::from(area.width), Style::new());
        }
    }

    /// The last column gets what is left.
    fn line(&self, x: u16, y: u16, width: u16, texts: &[String], style: Style, buffer: &mut Buffer) {
        let mut at = 0;
        for (number, (column, text)) in self.columns.iter().zip(texts).enumerate() {
            if at >= width {
                break;
            }
            let is_last = number + 1 == self.columns.len();
            let own = if is_last { width - at } else { column.width.min(width - at) };
            let text: String = text.chars().take(usize::from(own)).collect();
            let padded = match column.is_figure {
                true => format!("{text:>0$}", usize::from(own.min(column.width))),
                false => format!("{text:<0$}", usize::from(own)),
            };
            buffer.set_stringn(x + at, y, &padded, usize::from(own), style);
            if !is_last {
                buffer.set_stringn(x + at + own, y, " ", usize::from(width - at - own), style);
            }
            at = at.saturating_add(own).saturating_add(1);
        }
    }
}
