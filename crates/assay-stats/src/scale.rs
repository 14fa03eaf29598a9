//! What the values of a figure are, and how they are therefore compared.
//!
//! Errors of a rate or a time are in proportion to it, so that two of them are compared by their ratio, and intervals
//! are those of logarithms. Nothing else is like that: a count may be 0, which has no logarithm, a percentage ends at
//! 100, and a difference may be negative. On the logarithmic scale, the interval of three small percentages reaches
//! from 0 to hundreds of thousands. So these have intervals on their own scale, which end where possible values end,
//! and are compared by their difference as soon as there is no ratio.

/// What the values of a figure are. The order is that from narrow to wide: every value of one may also be in the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Rates, times, sizes: above 0, with errors in proportion.
    Ratio,
    /// A part of something: 0 <= value <= whole.
    Share {
        /// 100 for percentages.
        whole: f64,
    },
    /// Counts, and whatever else is often 0: 0 <= value.
    Count,
    /// Differences, temperatures: any value.
    Difference,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Candidate by baseline: 1 is no change.
    Ratio,
    /// Candidate minus baseline, in the unit of the values: 0 is no change.
    Difference,
}

impl Measure {
    /// The size of no change.
    pub fn none(self) -> f64 {
        match self {
            Measure::Ratio => 1.0,
            Measure::Difference => 0.0,
        }
    }
}

impl Scale {
    /// This scale, or if some value is outside it, the narrowest one that has room for all.
    pub fn fitting(self, values: impl IntoIterator<Item = f64>) -> Scale {
        let [low, high] = values
            .into_iter()
            .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| [low.min(value), high.max(value)]);
        match self {
            Scale::Ratio if low > 0.0 => self,
            Scale::Share { whole } if low >= 0.0 && high <= whole => self,
            _ if self != Scale::Difference && low >= 0.0 => Scale::Count,
            _ => Scale::Difference,
        }
    }

    /// The ends of an interval, as far as values can be there.
    pub fn within(self, (low, high): (f64, f64)) -> (f64, f64) {
        match self {
            Scale::Ratio | Scale::Count => (low.max(0.0), high.max(0.0)),
            Scale::Share { whole } => (low.clamp(0.0, whole), high.clamp(0.0, whole)),
            Scale::Difference => (low, high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_gives_way_to_a_wider_one_if_a_value_is_outside() {
        let percent = Scale::Share { whole: 100.0 };
        assert_eq!(Scale::Ratio.fitting([3.0, 0.1]), Scale::Ratio);
        assert_eq!(Scale::Ratio.fitting([3.0, 0.0]), Scale::Count);
        assert_eq!(Scale::Ratio.fitting([3.0, -0.1]), Scale::Difference);
        assert_eq!(percent.fitting([0.0, 100.0]), percent);
        assert_eq!(percent.fitting([0.0, 240.0]), Scale::Count);
        assert_eq!(Scale::Count.fitting([0.0, -1.0]), Scale::Difference);
        assert_eq!(Scale::Difference.fitting([1.0]), Scale::Difference);
    }

    #[test]
    fn intervals_end_where_values_end() {
        assert_eq!(Scale::Share { whole: 100.0 }.within((-3.0, 140.0)), (0.0, 100.0));
        assert_eq!(Scale::Count.within((-3.0, 140.0)), (0.0, 140.0));
        assert_eq!(Scale::Difference.within((-3.0, 140.0)), (-3.0, 140.0));
    }
}
