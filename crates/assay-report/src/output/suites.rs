//! The queries of `assay olap` on several databases, as text.

use crate::findings::suites::SuitesFindings;
use crate::plain::wrap_to;
use crate::tables::suites::side_by_side;
use crate::words::suites::comparison;

/// The answer, then the tables that it comes from.
pub fn suites_text(found: &SuitesFindings, width: usize) -> String {
    let words = comparison(found);
    let mut text: String = words.iter().map(|words| wrap_to(width, "", words.split(' '), " ")).collect();
    for table in side_by_side(found) {
        text += &format!("\n{}{}", wrap_to(width, "", table.caption.split(' '), " "), table.text(width));
    }
    text
}
