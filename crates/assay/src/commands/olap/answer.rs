//! What a query has answered: its rows, in the forms by which databases are compared, or why there are none.

use assay_run::client::{Refused, text, words_of};
use assay_seam::{Class, Nanos, Rows};

use crate::commands::sql::large::{Collect, row_hash};

/// Larger results are compared by their hash alone.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Rows that arrive in one or several parts: how many they are, their hash, and the rows themselves if they are few.
///
/// The hash does not depend on their order, and numbers have six digits in it: databases calculate averages with
/// different precision. Wherever digits are cut off, two numbers that are almost the same can lie on both sides. There
/// are two hashes, therefore, whose cuts are far from each other, and from numbers with few digits: results are the
/// same if one of them is.
#[derive(Default)]
pub(super) struct Answer {
    rows: u64,
    sums: [u64; 2],
    kept: Vec<Vec<Option<String>>>,
    kept_bytes: usize,
}

impl Collect for Answer {
    fn add(&mut self, rows: &Rows) {
        for row in 0..rows.len(0) {
            let cells: Vec<Option<String>> = (0..rows.columns(0)).map(|column| text(rows, row, column)).collect();
            let numbers: Vec<Option<f64>> = cells.iter().map(|cell| number(cell.as_deref()?)).collect();
            for (sum, cut) in self.sums.iter_mut().zip(CUTS) {
                let rounded: Vec<_> = numbers.iter().map(|number| number.map(|number| rounded(number, cut))).collect();
                let hashed = rounded.iter().zip(&cells).map(|(number, cell)| number.as_deref().or(cell.as_deref()));
                *sum = sum.wrapping_add(row_hash(&[], hashed));
            }
            self.kept_bytes += cells.iter().map(|cell| cell.as_ref().map_or(0, String::len) + 1).sum::<usize>();
            match self.kept_bytes <= ANSWER_BYTES_MAX {
                true => self.kept.push(cells),
                false => self.kept = Vec::new(),
            }
            self.rows += 1;
        }
    }
}

impl Answer {
    /// Number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Both hashes, in hexadecimal digits.
    pub(super) fn digest(&self) -> String {
        self.sums.map(|sum| format!("{sum:016x}")).concat()
    }

    /// All rows as text; empty if they are too large to keep.
    pub(super) fn kept(self) -> Vec<Vec<Option<String>>> {
        self.kept
    }
}

/// Why there are no rows, and whether the reason is the time limit.
pub(super) fn refusal(refused: Refused, elapsed: Nanos, limit: Option<Nanos>) -> (String, bool) {
    let (class, words) = match refused {
        Refused::Server(error) => (error.class, words_of(&error)),
        Refused::Lost(words) => (Class::Connection, words),
    };
    let timed_out = limit.is_some_and(|limit| match class {
        Class::Timeout => true,
        // A server whose messages are not English, one that does not keep the limit, or a database in this process.
        Class::Cancelled | Class::Connection => elapsed >= limit,
        _ => false,
    });
    match limit.filter(|_| timed_out && class != Class::Timeout) {
        Some(limit) => (format!("ended after {elapsed}, the time limit is {limit}"), true),
        None => (words, timed_out),
    }
}

/// What is wrong with an answer that arrived after the time limit.
pub(super) fn too_late(elapsed: Nanos, limit: Option<Nanos>) -> Option<String> {
    let limit = limit.filter(|limit| elapsed > *limit)?;
    Some(format!("ended after {elapsed}, the time limit is {limit}"))
}

/// Where numbers are cut, as a part of the sixth digit.
const CUTS: [f64; 2] = [0.381_966_011_25, 0.881_966_011_25];

/// The finite decimal number that a cell is.
fn number(text: &str) -> Option<f64> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    text.parse().ok().filter(|number: &f64| is_decimal && number.is_finite())
}

/// A number with six digits.
fn rounded(number: f64, cut: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let exponent = number.abs().log10().floor() as i32;
    let (mut digits, mut exponent) = ((number.abs() / 10f64.powi(exponent) * 1e5 + cut).floor(), exponent);
    // The exponent itself is rounded, and 9.999999 is almost 10.
    if digits >= 1e6 {
        (digits, exponent) = ((digits / 10.0).floor(), exponent + 1);
    }
    format!("{}{digits}e{exponent}", if number < 0.0 { "-" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Answer {
        let mut answer = Answer::default();
        for part in texts.chunks(2) {
            let mut rows = Rows::default();
            rows.begin_set(2);
            for cell in part.iter().flat_map(|row| row.split(' ')) {
                rows.push_text(cell.as_bytes()).unwrap();
            }
            answer.add(&rows);
        }
        answer
    }

    #[test]
    fn a_digest_depends_on_no_order_and_no_precision() {
        let one = of(&["a 1.50", "b -0", "c 7"]);
        assert_eq!((one.rows(), one.digest()), (3, of(&["c 7", "b 0.0", "a 1.5000001"]).digest()));
        for other in
            [["a 1.51", "b 0", "c 7"], ["a 1.5", "a 0", "c 7"], ["a b", "1.5 0", "c 7"], ["a 1.5", "b 0", "c -7"]]
        {
            assert_ne!(of(&other).digest(), one.digest(), "{other:?}");
        }
    }

    /// Numbers that a database calculates from floating-point numbers, and another one from decimals.
    #[test]
    fn what_is_almost_the_same_has_a_hash_in_common() {
        let halves = |text: &str| CUTS.map(|cut| rounded(number(text).unwrap(), cut));
        for (one, other) in [
            ("12345.65", "12345.649999999998"),
            ("10", "9.9999999999999982"),
            ("1000000", "999999.99999999988"),
            ("-0.001", "-0.00099999999999999980"),
            ("1.23456618033", "1.23456618034"),
            ("1.23456118033", "1.23456118034"),
            ("7e300", "6.9999999999999999e300"),
        ] {
            let [one, other] = [one, other].map(halves);
            assert!(one.iter().zip(&other).any(|(one, other)| one == other), "{one:?} {other:?}");
        }
        for (one, other) in [("1.5", "1.50003"), ("10", "9.9998"), ("1", "-1"), ("1", "10")] {
            let [first, second] = [one, other].map(halves);
            assert!(first.iter().zip(&second).all(|(first, second)| first != second), "{one} {other}");
        }
    }

    #[test]
    fn large_results_are_not_kept() {
        assert_eq!(of(&["a 1"]).kept(), [[Some("a".to_owned()), Some("1".to_owned())]]);
        let long = "x".repeat(ANSWER_BYTES_MAX);
        assert!(of(&[&format!("a {long}"), "b 1", "c 1"]).kept().is_empty());
    }
}
