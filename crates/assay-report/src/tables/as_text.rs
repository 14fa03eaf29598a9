//! A table for terminals: columns as wide as their widest cell, no lines, no colours.

use crate::plain::cut;
use crate::tables::table::{Cell, Column, Content, Table};

/// Between columns.
const GAP: &str = "  ";

impl Table {
    /// The first column and words flush left, figures flush right. No blanks at line ends.
    pub(crate) fn text(&self) -> String {
        let shown = |column: &Column, cell: &Cell| match column.content {
            Content::Figures => cell.shown(),
            Content::Words(width) => cut(cell.shown(), width),
        };
        let columns: Vec<(usize, &Column)> =
            self.columns.iter().enumerate().filter(|(_, column)| !column.roomy).collect();
        let head = |(number, column): &(usize, &Column)| match column.content {
            Content::Words(_) if *number > 0 => String::new(),
            _ => column.head.clone(),
        };
        let mut lines: Vec<Vec<String>> = Vec::new();
        lines.extend(self.has_heads().then(|| columns.iter().map(head).collect()));
        lines.extend(self.rows.iter().map(|row| {
            columns
                .iter()
                .map(|(number, column)| row.cells.get(*number).map_or(String::new(), |it| shown(column, it)))
                .collect()
        }));
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns.len()).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            let pad = |(at, cell): (usize, &String)| {
                let width = widths[at];
                match columns[at].1.content {
                    Content::Figures if at > 0 => format!("{cell:>width$}"),
                    _ => format!("{cell:<width$}"),
                }
            };
            let cells: Vec<String> = line.iter().enumerate().map(pad).collect();
            text.push_str(cells.join(GAP).trim_end());
            text.push('\n');
        }
        text
    }
}
