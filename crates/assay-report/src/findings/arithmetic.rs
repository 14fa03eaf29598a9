//! Sums and rates of counts from a file that may contain anything: they saturate, and never divide by zero.

use assay_record::ByClass;

/// Zero if no time passed: nothing can have been done in it.
pub(crate) fn per_second(count: u64, ns: u64) -> f64 {
    ratio(count as f64 * 1e9, ns as f64).unwrap_or(0.0)
}

pub(crate) fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator > 0.0).then(|| numerator / denominator)
}

pub(crate) fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

pub(crate) fn class_sum(values: ByClass<u64>) -> u64 {
    sum([values.read, values.write, values.other].into_iter())
}

pub(crate) fn map<T, U>(classes: &ByClass<T>, of: impl Fn(&T) -> U) -> ByClass<U> {
    ByClass { read: of(&classes.read), write: of(&classes.write), other: of(&classes.other) }
}

/// For an even number, halfway between the two in the middle; `None` if empty.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        many if many % 2 == 0 => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
        _ => Some(sorted[middle]),
    }
}

/// The median of each value and its neighbors: at most `width` of them, fewer at the ends. `width` is odd.
pub(crate) fn rolling_median(values: &[f64], width: usize) -> Vec<f64> {
    let reach = width / 2;
    let around = |at: usize| {
        let near = &values[at.saturating_sub(reach)..values.len().min(at + reach + 1)];
        median(near.iter().copied()).expect("the value itself is among them")
    };
    (0..values.len()).map(around).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rolling_median_keeps_steps_and_trends_and_drops_single_values() {
        assert_eq!(median([]), None);
        assert_eq!(median([4.0, 1.0]), Some(2.5));
        assert_eq!(
            rolling_median(&[1.0, 1.0, 9.0, 1.0, 1.0, 5.0, 5.0, 5.0], 3),
            [1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0]
        );
        assert_eq!(rolling_median(&[1.0, 2.0, 3.0, 4.0], 5), [2.0, 2.5, 2.5, 3.0]);
        assert_eq!(rolling_median(&[], 5), [0.0; 0]);
    }
}
