//! Sums and rates of counts from a file that may say anything: they saturate, and nothing is divided by zero.

use assay_record::ByClass;

/// Zero when no time passed: nothing can have been done in it.
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
