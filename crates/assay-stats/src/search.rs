//! The search for the highest value that keeps a promise: a transaction rate, a number of sessions.
//!
//! A state machine without a clock: it gets the result of each look and returns where to look next. Looks are uncertain
//! (a stall breaks a promise that the rate would keep), so both ends of the bracket are measured again at the end, and
//! if looks at one value disagree, the majority decides. The same looks always lead to the same next step, so that
//! anybody who has the looks can repeat the conclusion.

/// Search parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlan {
    /// The first value looked at. min <= start <= max
    pub start: f64,
    /// The smallest value to look at. 0 < min
    pub min: f64,
    /// The largest value to look at.
    pub max: f64,
    /// Factor from a value that kept the promise to the next, as long as none has broken it. 1 < growth
    pub growth: f64,
    /// How far apart the ends of the bracket may be: a share of the lower end. 0 < precision
    pub precision: f64,
    /// Whether only whole numbers count.
    pub whole: bool,
    /// The most looks.
    pub looks_max: usize,
}

/// The result at a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// The requested value.
    pub at: f64,
    /// Whether the promise was kept.
    pub kept: bool,
    /// The value that was reached instead, if it could not be reached: a hint about the end.
    pub reached: Option<f64>,
}

/// The next action of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextLook {
    /// Look at this value.
    Look(f64),
    /// The search is over.
    Done(Bracket),
}

/// The values between which the promise breaks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bracket {
    /// The highest value known to keep the promise below all that break it; `None`: none does.
    pub low: Option<f64>,
    /// The lowest value known to break it; `None`: none does. low < high
    pub high: Option<f64>,
    /// Whether the search was completed: each end was measured twice, and they are close enough.
    pub complete: bool,
}

/// Looks at one value.
#[derive(Clone, Copy, Debug)]
struct LooksAtValue {
    at: f64,
    kept: usize,
    broken: usize,
    reached: Option<f64>,
}

impl LooksAtValue {
    fn looks(&self) -> usize {
        self.kept + self.broken
    }

    fn is_kept(&self) -> bool {
        self.kept > self.broken
    }

    fn is_broken(&self) -> bool {
        self.broken > self.kept
    }
}

/// A value at least this share of the bracket's lower end away from both ends is worth a look because of the hint.
const HINT_MARGIN: f64 = 0.1;
/// Just below what was reached: at the limit itself, everything waits.
const HINT_SHARE: f64 = 0.9;

impl SearchPlan {
    /// The next action after these looks, in order.
    pub fn next(&self, looks: &[Look]) -> NextLook {
        let points = points(looks);
        let bracket = bracket(&points);
        if looks.len() >= self.looks_max {
            return NextLook::Done(bracket);
        }
        if let Some(tied) = points.iter().find(|point| point.kept == point.broken) {
            return NextLook::Look(tied.at);
        }
        let at = |value: Option<f64>| points.iter().find(|point| Some(point.at) == value);
        let (low, high) = (at(bracket.low), at(bracket.high));
        // A higher value kept the promise: a single look at the lowest that broke it does not outweigh that.
        let is_doubtful =
            |high: &&LooksAtValue| high.looks() < 2 && points.iter().any(|one| one.is_kept() && one.at > high.at);
        if let Some(doubtful) = high.filter(is_doubtful) {
            return NextLook::Look(doubtful.at);
        }
        let again = [high, low].into_iter().flatten().find(|end| end.looks() < 2);
        let finish =
            || again.map_or(NextLook::Done(Bracket { complete: true, ..bracket }), |end| NextLook::Look(end.at));
        match (low, high) {
            (None, None) => NextLook::Look(self.shown(self.start)),
            (Some(low), None) if low.at >= self.max => finish(),
            (Some(low), None) => NextLook::Look(self.above(low.at, (low.at * self.growth).min(self.max))),
            (None, Some(high)) if high.at <= self.min => finish(),
            (None, Some(high)) => {
                let hinted = high.reached.map(|reached| reached * HINT_SHARE).filter(|hint| *hint < high.at * 0.9);
                NextLook::Look(self.below(high.at, hinted.unwrap_or(high.at / self.growth).max(self.min)))
            }
            (Some(low), Some(high)) => match self.between(low, high) {
                Some(value) => NextLook::Look(value),
                None => finish(),
            },
        }
    }

    /// Where to look inside the bracket; `None`: its ends are close enough.
    fn between(&self, low: &LooksAtValue, high: &LooksAtValue) -> Option<f64> {
        if high.at <= low.at * (1.0 + self.precision) || self.whole && high.at - low.at <= 1.0 {
            return None;
        }
        let margin = low.at * HINT_MARGIN;
        let is_inside = |hint: &f64| *hint > low.at + margin && *hint < high.at - margin;
        let hinted = high.reached.map(|reached| reached * HINT_SHARE).filter(is_inside);
        let value = self.shown(hinted.unwrap_or((low.at * high.at).sqrt()));
        // Rounding must not leave it.
        (value > low.at && value < high.at).then_some(value)
    }

    fn above(&self, than: f64, value: f64) -> f64 {
        let shown = self.shown(value).min(self.max);
        if shown > than { shown } else { value }
    }

    fn below(&self, than: f64, value: f64) -> f64 {
        let shown = self.shown(value).max(self.min);
        if shown < than { shown } else { value }
    }

    /// A round value: a whole number, or three digits.
    fn shown(&self, value: f64) -> f64 {
        if self.whole {
            return value.round().max(1.0);
        }
        let scale = 10f64.powf(2.0 - value.log10().floor());
        // Dividing by a power of ten gives the nearest number to that text; multiplying by its inverse may not.
        if scale >= 1.0 { (value * scale).round() / scale } else { (value * scale).round() * scale.recip().round() }
    }
}

/// The bracket after these looks, in any state of the search.
pub fn bracket_of(looks: &[Look]) -> Bracket {
    bracket(&points(looks))
}

fn points(looks: &[Look]) -> Vec<LooksAtValue> {
    let mut points: Vec<LooksAtValue> = Vec::new();
    for look in looks {
        let at = points.iter().position(|point| point.at == look.at).unwrap_or_else(|| {
            points.push(LooksAtValue { at: look.at, kept: 0, broken: 0, reached: None });
            points.len() - 1
        });
        let point = &mut points[at];
        *(if look.kept { &mut point.kept } else { &mut point.broken }) += 1;
        point.reached = look.reached.or(point.reached);
    }
    points.sort_by(|a, b| a.at.total_cmp(&b.at));
    points
}

fn bracket(points: &[LooksAtValue]) -> Bracket {
    let high = points.iter().find(|point| point.is_broken()).map(|point| point.at);
    let below = |point: &&LooksAtValue| point.is_kept() && high.is_none_or(|high| point.at < high);
    Bracket { low: points.iter().rfind(below).map(|point| point.at), high, complete: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_random::Random;

    const RATES: SearchPlan =
        SearchPlan { start: 100.0, min: 1.0, max: 1e7, growth: 4.0, precision: 0.05, whole: false, looks_max: 60 };

    /// Looks until the search is over; `look` says whether a value keeps the promise, and what was reached.
    fn run(search: &SearchPlan, mut look: impl FnMut(f64) -> (bool, Option<f64>)) -> (Bracket, Vec<Look>) {
        let mut looks = Vec::new();
        loop {
            match search.next(&looks) {
                NextLook::Done(bracket) => return (bracket, looks),
                NextLook::Look(at) => {
                    let (kept, reached) = look(at);
                    looks.push(Look { at, kept, reached });
                }
            }
        }
    }

    #[test]
    fn any_sharp_end_is_bracketed_and_both_ends_are_looked_at_twice() {
        for end in [1.7, 12.0, 99.9, 100.0, 101.0, 455.0, 1000.0, 31_415.9, 876_543.2, 9e6] {
            for hints in [false, true] {
                let (bracket, looks) = run(&RATES, |at| (at <= end, (hints && at > end).then_some(end)));
                let (low, high) = (bracket.low.unwrap(), bracket.high.unwrap());
                assert!(bracket.complete && low <= end && end < high && high <= low * 1.06, "{end}: {bracket:?}");
                assert!(looks.len() <= 20, "{end}: {} looks", looks.len());
                for at in [low, high] {
                    assert_eq!(looks.iter().filter(|look| look.at == at).count(), 2, "{end}");
                }
                assert_eq!(bracket_of(&looks), Bracket { complete: false, ..bracket });
            }
        }
    }

    #[test]
    fn a_promise_that_is_never_broken_or_never_kept_is_reported_as_that() {
        let (bracket, looks) = run(&RATES, |_| (true, None));
        assert_eq!(bracket, Bracket { low: Some(1e7), high: None, complete: true });
        assert!(looks.len() < 14);
        let (bracket, _) = run(&RATES, |_| (false, None));
        assert_eq!(bracket, Bracket { low: None, high: Some(1.0), complete: true });
    }

    #[test]
    fn one_look_that_a_stall_spoiled_does_not_decide() {
        for spoiled in 0..12 {
            let mut number = 0;
            let (bracket, _) = run(&RATES, |at| {
                number += 1;
                (at <= 5000.0 && number != spoiled + 1, None)
            });
            let (low, high) = (bracket.low.unwrap(), bracket.high.unwrap());
            assert!(bracket.complete && low <= 5000.0 && 5000.0 < high && high < low * 1.06, "{spoiled}: {bracket:?}");
        }
    }

    #[test]
    fn where_looks_are_uncertain_the_bracket_is_near_the_end() {
        let mut near = 0;
        for seed in 0..500 {
            let mut random = Random::of_stream(seed, 1);
            // Kept or broken by chance within some 3 % of the end.
            let (bracket, looks) = run(&RATES, |at| {
                let chance = 1.0 / (1.0 + ((at / 2000.0 - 1.0) / 0.01).exp());
                (random.unit() < chance, None)
            });
            assert!(looks.len() < 60, "seed {seed} did not come to an end");
            let (low, high) = (bracket.low.unwrap(), bracket.high.unwrap());
            near += u32::from(low > 2000.0 * 0.92 && high < 2000.0 * 1.08);
        }
        assert!(near >= 490, "{near} of 500");
    }

    #[test]
    fn whole_numbers_end_beside_each_other() {
        let sessions =
            SearchPlan { start: 1.0, min: 1.0, max: 64.0, growth: 2.0, precision: 0.1, whole: true, looks_max: 40 };
        for end in 1..64 {
            let (bracket, looks) = run(&sessions, |at| (at <= f64::from(end), None));
            let (low, high) = (bracket.low.unwrap(), bracket.high.unwrap());
            assert!(low <= f64::from(end) && high > f64::from(end), "{end}: {bracket:?}");
            assert!(high - low <= 1.0 || high <= low * 1.1, "{end}: {bracket:?}");
            assert!(looks.iter().all(|look| look.at.fract() == 0.0));
        }
        let (bracket, _) = run(&sessions, |_| (true, None));
        assert_eq!((bracket.low, bracket.high), (Some(64.0), None));
    }

    #[test]
    fn a_search_without_end_is_given_up() {
        let search = SearchPlan { looks_max: 5, ..RATES };
        let (bracket, looks) = run(&search, |at| (at <= 1234.0, None));
        assert_eq!(looks.len(), 5);
        assert!(!bracket.complete && bracket.low.unwrap() <= 1234.0 && bracket.high.unwrap() > 1234.0);
    }

    /// Where the search looks when every value up to `end` keeps the promise.
    fn values(search: &SearchPlan, end: f64, hints: bool) -> Vec<f64> {
        let (_, looks) = run(search, |at| (at <= end, (hints && at > end).then_some(end)));
        looks.iter().map(|look| look.at).collect()
    }

    #[test]
    fn values_grow_then_halve_the_bracket_by_their_logarithm_as_people_write_them() {
        assert_eq!(
            values(&RATES, 1000.0, false),
            [100.0, 400.0, 1600.0, 800.0, 1130.0, 951.0, 1040.0, 995.0, 1040.0, 995.0]
        );
        assert_eq!(values(&RATES, 12.0, false), [100.0, 25.0, 6.25, 12.5, 8.84, 10.5, 11.5, 12.0, 12.5, 12.0]);
        let sessions =
            SearchPlan { start: 1.0, min: 1.0, max: 64.0, growth: 2.0, precision: 0.1, whole: true, looks_max: 40 };
        assert_eq!(values(&sessions, 13.0, false), [1.0, 2.0, 4.0, 8.0, 16.0, 11.0, 13.0, 14.0, 14.0, 13.0]);
        assert_eq!(
            values(&sessions, 40.0, false),
            [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 45.0, 38.0, 41.0, 41.0, 38.0]
        );
    }

    #[test]
    fn what_was_reached_is_a_hint_where_to_look_unless_that_is_at_an_end_of_the_bracket() {
        assert_eq!(
            values(&RATES, 1000.0, true),
            [100.0, 400.0, 1600.0, 900.0, 1200.0, 1040.0, 967.0, 1000.0, 1040.0, 1000.0]
        );
        assert_eq!(values(&RATES, 12.0, true), [100.0, 10.8, 32.9, 18.8, 14.2, 12.4, 11.6, 12.0, 12.4, 12.0]);
        // A value hardly below the requested one adds nothing, and no hint leads out of the allowed range.
        let narrow = SearchPlan { min: 90.0, max: 300.0, ..RATES };
        assert_eq!(values(&narrow, 89.0, false), [100.0, 90.0, 90.0]);
        assert_eq!(values(&narrow, 89.0, true), [100.0, 90.0, 90.0]);
        assert_eq!(values(&narrow, 1000.0, false), [100.0, 300.0, 300.0]);
    }

    #[test]
    fn the_lowest_broken_value_is_asked_again_when_a_higher_one_keeps_the_promise() {
        // A stall spoils the third look, at 1600; nothing else up to 5000 breaks the promise.
        let mut number = 0;
        let (bracket, looks) = run(&RATES, |at| {
            number += 1;
            (at <= 5000.0 && number != 3, None)
        });
        let values: Vec<f64> = looks.iter().map(|look| look.at).collect();
        assert_eq!(values[..10], [100.0, 400.0, 1600.0, 800.0, 1130.0, 1340.0, 1460.0, 1530.0, 1600.0, 1600.0]);
        assert_eq!(values[10..], [6400.0, 3200.0, 4530.0, 5380.0, 4940.0, 5160.0, 5160.0, 4940.0]);
        assert_eq!(bracket, Bracket { low: Some(4940.0), high: Some(5160.0), complete: true });
        // With a kept value above it, one broken look is not enough to stop at.
        let look = |at: f64, kept: bool| Look { at, kept, reached: None };
        let doubtful = [look(100.0, true), look(200.0, false), look(400.0, true)];
        assert_eq!(RATES.next(&doubtful), NextLook::Look(200.0));
    }
}
