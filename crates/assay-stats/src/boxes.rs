//! The five numbers of a box plot.

/// Quartiles of some values, the range of the others, and outliers.
///
/// Source: Tukey 1977, Exploratory Data Analysis, ch. 2; quartiles by linear interpolation between order statistics
/// (Hyndman & Fan 1996, type 7).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoxFigures {
    /// Number of values.
    pub count: usize,
    /// Smallest value that is at most 1.5 times the interquartile range below the lower quartile.
    pub low: f64,
    /// A quarter of the values is at most this.
    pub lower_quartile: f64,
    /// Half of them.
    pub median: f64,
    /// Three quarters of them.
    pub upper_quartile: f64,
    /// Largest value that is at most 1.5 times the interquartile range above the upper quartile.
    pub high: f64,
    /// Values outside `low ..= high`, ascending.
    pub outside: Vec<f64>,
}

/// The box of `values`; `None` if there are none. Infinite values and NaN are ignored. Cost: O(n log n).
pub fn box_figures(values: impl IntoIterator<Item = f64>) -> Option<BoxFigures> {
    let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let quartile = |share: f64| {
        let position = share * (sorted.len() - 1) as f64;
        let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
        below + (above - below) * position.fract()
    };
    if sorted.is_empty() {
        return None;
    }
    let [lower_quartile, median, upper_quartile] = [0.25, 0.5, 0.75].map(quartile);
    let reach = 1.5 * (upper_quartile - lower_quartile);
    let inside = |value: &&f64| (lower_quartile - reach..=upper_quartile + reach).contains(*value);
    // The quartiles are between values inside the whiskers, but perhaps not equal to any of them.
    let low = sorted.iter().find(inside).copied().unwrap_or(lower_quartile).min(lower_quartile);
    let high = sorted.iter().rfind(inside).copied().unwrap_or(upper_quartile).max(upper_quartile);
    let outside = sorted.iter().filter(|value| !(low..=high).contains(*value)).copied().collect();
    Some(BoxFigures { count: sorted.len(), low, lower_quartile, median, upper_quartile, high, outside })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_holds_the_quartiles_and_names_what_is_far_outside() {
        let found = box_figures([7.0, 1.0, 3.0, 2.0, 4.0, 5.0, 6.0, 100.0, -50.0]).unwrap();
        assert_eq!((found.count, found.lower_quartile, found.median, found.upper_quartile), (9, 2.0, 4.0, 6.0));
        assert_eq!((found.low, found.high, found.outside), (1.0, 7.0, vec![-50.0, 100.0]));
    }

    #[test]
    fn few_and_odd_values_make_a_box_too() {
        assert_eq!(box_figures([]), None);
        assert_eq!(box_figures([f64::NAN, f64::INFINITY]), None);
        let one = box_figures([3.0]).unwrap();
        assert_eq!((one.low, one.median, one.high, one.outside), (3.0, 3.0, 3.0, vec![]));
        let two = box_figures([1.0, 2.0]).unwrap();
        assert_eq!((two.low, two.lower_quartile, two.median, two.high), (1.0, 1.25, 1.5, 2.0));
    }
}
