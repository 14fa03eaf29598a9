//! Measures of how even a rate was.

use std::ops::Range;

use crate::mean::{mean, median};

/// How even a rate was.
#[derive(Clone, Debug, PartialEq)]
pub struct Variability {
    /// Standard deviation divided by the mean. Source: Pearson 1896.
    pub coefficient_of_variation: f64,
    /// The median.
    pub median: f64,
    /// Mean of the lowest hundredth of the values, at least one: the "1 % lows" of graphics benchmarks.
    pub lowest_hundredth: f64,
    /// Values below a tenth of the median: all runs of them, in order.
    pub stalls: Vec<Range<usize>>,
}

/// `rates`: one per second, or per any fixed time, >= 0. `None` for fewer than two, or if all are zero.
pub fn variability(rates: &[f64]) -> Option<Variability> {
    let mean = mean(rates);
    if rates.len() < 2 || mean <= 0.0 {
        return None;
    }
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let lowest = &sorted[..rates.len().div_ceil(100)];
    let median = median(rates);
    // If most seconds stood still, the median is zero, and every second without work is a stall.
    let stalled = |rate: &f64| *rate < median / 10.0 || *rate == 0.0;
    let mut stalls: Vec<Range<usize>> = Vec::new();
    for (at, _) in rates.iter().enumerate().filter(|(_, rate)| stalled(rate)) {
        match stalls.last_mut().filter(|stall| stall.end == at) {
            Some(stall) => stall.end += 1,
            None => stalls.push(at..at + 1),
        }
    }
    Some(Variability {
        coefficient_of_variation: (squares / (rates.len() - 1) as f64).sqrt() / mean,
        median,
        lowest_hundredth: crate::mean::mean(lowest),
        stalls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_worked_out_by_hand() {
        let mut rates = vec![100.0; 197];
        rates[40] = 0.0;
        rates[90] = 9.0;
        rates[91] = 3.0;
        let figures = variability(&rates).unwrap();
        assert_eq!((figures.median, figures.lowest_hundredth), (100.0, 1.5));
        assert_eq!(figures.stalls.iter().map(Range::len).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(figures.stalls[1], 90..92);
        // Mean 3 and deviation √2.5.
        let figures = variability(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((figures.coefficient_of_variation - 2.5f64.sqrt() / 3.0).abs() < 1e-12);
        assert_eq!((figures.lowest_hundredth, figures.stalls), (1.0, Vec::new()));
    }

    #[test]
    fn a_run_that_mostly_stood_still_is_one_long_stall() {
        let figures = variability(&[50.0, 0.0, 0.0, 0.0, 0.0]).unwrap();
        assert_eq!(figures.stalls.iter().map(Range::len).collect::<Vec<_>>(), [4]);
        assert_eq!(figures.stalls[0].start, 1);
        assert_eq!((variability(&[0.0; 5]), variability(&[7.0])), (None, None));
    }
}
