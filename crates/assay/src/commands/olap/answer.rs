//! What a query has answered: its rows, in the forms by which databases are compared, or why there are none.

use assay_run::client::{Refused, text};
use assay_seam::{Class, Nanos, Rows};
use sha2::{Digest, Sha256};

/// Larger results are compared by their hash alone.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Why there are no rows, and whether the reason is the time limit.
pub(super) fn refusal(refused: Refused, elapsed: Nanos, limit: Option<Nanos>) -> (String, bool) {
    let (class, words) = match refused {
        Refused::Server(error) => (error.class, format!("{} ({}){}", error.message, error.code, error.hint_words())),
        Refused::Lost(words) => (Class::Connection, words),
    };
    let timed_out = limit.is_some_and(|limit| match class {
        Class::Timeout => true,
        // A server whose messages are not English.
        Class::Cancelled => elapsed >= limit,
        _ => false,
    });
    (words, timed_out)
}

/// What is wrong with an answer that arrived after the time limit.
pub(super) fn too_late(elapsed: Nanos, limit: Option<Nanos>) -> Option<String> {
    let limit = limit.filter(|limit| elapsed > *limit)?;
    Some(format!("ended after {elapsed}, the time limit is {limit}"))
}

/// All rows as text; empty if they are too large to keep.
pub(super) fn kept_rows(rows: &Rows) -> Vec<Vec<Option<String>>> {
    let row = |row| (0..rows.columns(0)).map(|column| text(rows, row, column)).collect::<Vec<_>>();
    let mut size = 0;
    let mut kept = Vec::new();
    for row in (0..rows.len(0)).map(row) {
        size += row.iter().map(|cell| cell.as_ref().map_or(0, String::len) + 1).sum::<usize>();
        if size > ANSWER_BYTES_MAX {
            return Vec::new();
        }
        kept.push(row);
    }
    kept
}

/// Number of rows, and a hash that does not depend on their order, with numbers rounded to six digits: databases
/// calculate averages with different precision.
pub(super) fn digest(rows: &Rows) -> (u64, String) {
    let mut sum = 0u64;
    for row in 0..rows.len(0) {
        let mut hasher = Sha256::new();
        for column in 0..rows.columns(0) {
            let cell = text(rows, row, column).map(|text| rounded(&text).unwrap_or(text));
            hasher.update(cell.as_ref().map_or(u64::MAX, |cell| cell.len() as u64).to_le_bytes());
            hasher.update(cell.unwrap_or_default());
        }
        let hash = hasher.finalize();
        sum = sum.wrapping_add(u64::from_le_bytes(hash[..8].try_into().expect("8 bytes")));
    }
    (rows.len(0) as u64, format!("{sum:016x}"))
}

/// A number with six digits; `None`: not a number.
fn rounded(text: &str) -> Option<String> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let number: f64 = text.parse().ok().filter(|number: &f64| is_decimal && number.is_finite())?;
    // There is one zero.
    Some(format!("{:.5e}", number + 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Rows {
        let mut rows = Rows::default();
        rows.begin_set(2);
        for cell in texts.iter().flat_map(|row| row.split(' ')) {
            rows.push_text(cell.as_bytes()).unwrap();
        }
        rows
    }

    #[test]
    fn a_digest_depends_on_no_order_and_no_precision() {
        let (count, hash) = digest(&of(&["a 1.50", "b -0"]));
        assert_eq!((count, &hash), (2, &digest(&of(&["b 0.0", "a 1.5000001"])).1));
        for other in [["a 1.51", "b 0"], ["a 1.5", "a 0"], ["a b", "1.5 0"]] {
            assert_ne!(digest(&of(&other)).1, hash, "{other:?}");
        }
    }

    #[test]
    fn large_results_are_not_kept() {
        assert_eq!(kept_rows(&of(&["a 1"])), [[Some("a".to_owned()), Some("1".to_owned())]]);
        let long = "x".repeat(ANSWER_BYTES_MAX);
        assert!(kept_rows(&of(&[&format!("a {long}")])).is_empty());
    }
}
