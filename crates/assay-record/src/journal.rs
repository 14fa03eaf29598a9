//! The text of a journal: CSV, one line per transaction that a workload logs.
//!
//! `due`, `begun` and `done` are UTC with microseconds (RFC 3339), followed by the workload's own columns, which are
//! all numbers, empty for missing values.

use std::fmt::Write as _;
use std::time::SystemTime;

/// The first line.
pub fn journal_head(columns: &[String]) -> String {
    format!("due,begun,done,{}\n", columns.join(","))
}

/// A transaction's line. `values` in the order of the columns, NaN for missing values.
pub fn journal_line([due, begun, done]: [SystemTime; 3], values: &[f64]) -> String {
    let time = humantime::format_rfc3339_micros;
    let mut line = format!("{},{},{}", time(due), time(begun), time(done));
    for value in values {
        line.push(',');
        if !value.is_nan() {
            let _ = write!(line, "{value}");
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_has_three_instants_and_a_place_for_every_column() {
        let at = |ms: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(1_773_500_966_000 + ms);
        assert_eq!(journal_head(&["warehouse".to_owned(), "order_1".to_owned()]), "due,begun,done,warehouse,order_1\n");
        assert_eq!(
            journal_line([at(535), at(536), at(1600)], &[3.0, f64::NAN, 0.5]),
            "2026-03-14T15:09:26.535000Z,2026-03-14T15:09:26.536000Z,2026-03-14T15:09:27.600000Z,3,,0.5\n"
        );
    }
}
