//! A table in HTML, and text with markup escaped.

use maud::{Markup, Render, html};

use crate::digits::count;
use crate::plain::clean;
use crate::tables::table::{ColumnContent, ROWS_MAX, Table};

/// Longest text of a record shown in one place.
const TEXT_WIDTH: usize = 400;

impl Table {
    /// The first cell of a row is its header.
    pub(crate) fn html(&self) -> Markup {
        let label = (!self.caption.is_empty()).then(|| clean(&self.caption, TEXT_WIDTH));
        let left = self.rows.len().saturating_sub(ROWS_MAX);
        html! {
            // Outside the table: a wide table scrolls, and would take its caption along.
            @if let Some(caption) = &label {
                p.caption { (caption) }
            }
            div.wide {
                table aria-label=[label.as_ref()] {
                    @if self.has_heads() {
                        thead {
                            tr {
                                @for column in &self.columns {
                                    th scope="col" { (shown(&column.head)) }
                                }
                            }
                        }
                    }
                    tbody {
                        @for row in self.rows.iter().take(ROWS_MAX) {
                            tr class=[row.best.then_some("best")] {
                                @for (number, (column, cell)) in self.columns.iter().zip(&row.cells).enumerate() {
                                    @if number == 0 {
                                        th scope="row" { (shown(&cell.shown())) }
                                    } @else {
                                        td class=[(column.content != ColumnContent::Figures).then_some("words")] { (shown(&cell.shown())) }
                                    }
                                }
                            }
                            "\n"
                        }
                    }
                }
            }
            @if left > 0 {
                p.soft { "and " (count(left as u64)) " more rows" }
            }
        }
    }
}

/// Any text: made harmless, and not too long.
pub(crate) fn shown(text: &str) -> impl Render {
    shown_to(TEXT_WIDTH, text)
}

/// Text without control characters, cut to at most `width` characters.
pub(crate) fn shown_to(width: usize, text: &str) -> impl Render {
    clean(text, width)
}
