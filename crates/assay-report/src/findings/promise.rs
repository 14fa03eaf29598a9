//! The promises of a capacity search: `p99 < 10ms`, `new_order.p95 <= 50ms`, `errors < 0.1%`.

use assay_record as record;
use assay_stats::Distribution;

use crate::findings::arithmetic::{ratio, sum};
use crate::findings::latency::all;

/// A condition on a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    /// As written by the user.
    pub text: String,
    /// The transaction type; `None`: all of them.
    pub of: Option<String>,
    /// The figure that must be below the limit.
    pub figure: PromisedFigure,
    /// Nanoseconds of a time, a share of errors.
    pub limit: f64,
    /// Whether the limit itself is allowed.
    pub inclusive: bool,
}

/// The value that a promise limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromisedFigure {
    /// A percentile of the response times, in millionths.
    Percentile(u32),
    /// The longest response time.
    Max,
    /// Transactions that were given up or never ended, as a share of those started.
    Errors,
}

/// The values of stages for a promise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Promised {
    /// In nanoseconds or as a share; infinite if transactions that never ended decide it, `None` if there are none.
    pub(crate) value: Option<f64>,
    /// The transactions that it comes from.
    pub(crate) transactions: u64,
    /// Whether so many are beyond the limit that no further ones could keep the promise, up to those needed for it.
    pub(crate) is_beyond: bool,
}

/// A share of errors is not known more precisely than this many transactions tell.
const ERRORS_NEEDED_MAX: u64 = 1000;

/// A percentile of `ended` and of `lost` transactions, which took longer than all others.
fn percentile(ppm: u32, response: &Distribution, ended: u64, lost: u64) -> Option<f64> {
    let within = (f64::from(ppm) / 1e6 * (ended as f64 + lost as f64)).ceil();
    if ended == 0 {
        return (lost > 0).then_some(f64::INFINITY);
    }
    if within > ended as f64 {
        return Some(f64::INFINITY);
    }
    let of_ended = (within / ended as f64 * 1e6).ceil().min(1e6) as u32;
    let [value] = response.quantiles([of_ended.min(999_999)]);
    value.or(response.max()).map(|ns| ns as f64)
}

/// An invalid promise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected 'p99 < 10ms', 'max < 1s', 'errors < 0.1%', or the same of a transaction type: 'new_order.p95 < 50ms'"
)]
pub struct BadPromise;

impl std::str::FromStr for Promise {
    type Err = BadPromise;

    fn from_str(text: &str) -> Result<Promise, BadPromise> {
        let (name, rest) = text.split_once('<').ok_or(BadPromise)?;
        let (inclusive, limit) = rest.strip_prefix('=').map_or((false, rest), |limit| (true, limit));
        let (name, limit) = (name.trim(), limit.trim());
        // A type's name may contain dots, and so may a percentile.
        let dots = name.match_indices('.').map(|(at, _)| at);
        let of_type = |at: usize| Some((Some(&name[..at]).filter(|of| !of.is_empty())?, figure(&name[at + 1..])?));
        let (of, figure) = match figure(name) {
            Some(figure) => (None, figure),
            None => {
                dots.clone().find_map(of_type).map(|(of, figure)| (Some(of.to_owned()), figure)).ok_or(BadPromise)?
            }
        };
        let limit = match figure {
            PromisedFigure::Errors => limit.strip_suffix('%').and_then(number).map(|percent| percent / 100.0),
            PromisedFigure::Percentile(_) | PromisedFigure::Max => nanoseconds(limit),
        };
        let limit = limit.filter(|limit| *limit > 0.0 || inclusive && *limit == 0.0).ok_or(BadPromise)?;
        Ok(Promise { text: text.trim().to_owned(), of, figure, limit, inclusive })
    }
}

fn figure(name: &str) -> Option<PromisedFigure> {
    match name {
        "max" => Some(PromisedFigure::Max),
        "errors" => Some(PromisedFigure::Errors),
        _ => {
            let percent = name.strip_prefix('p').and_then(number)?;
            let ppm = (percent * 1e4).round();
            (ppm > 0.0 && ppm < 1e6).then_some(PromisedFigure::Percentile(ppm as u32))
        }
    }
}

/// No sign, no exponent, only finite values.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| plain)
}

fn nanoseconds(text: &str) -> Option<f64> {
    let at = text.find(|c: char| c.is_alphabetic())?;
    let unit = match &text[at..] {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        _ => return None,
    };
    number(&text[..at]).map(|value| value * unit)
}

impl Promise {
    /// Transactions needed for a verdict: one is expected above a percentile, and one error at the limit of a share.
    pub(crate) fn transactions_needed(&self) -> u64 {
        match self.figure {
            PromisedFigure::Percentile(ppm) => 1_000_000u64.div_ceil(u64::from(1_000_000 - ppm.min(999_999))),
            PromisedFigure::Errors if self.limit > 0.0 => ((1.0 / self.limit).ceil() as u64).min(ERRORS_NEEDED_MAX),
            PromisedFigure::Errors | PromisedFigure::Max => 1,
        }
    }

    /// The value of stages that are judged together.
    pub(crate) fn value(&self, stages: &[&record::Stage]) -> Promised {
        let types = || {
            let all = stages.iter().flat_map(|stage| &stage.total.transactions);
            all.filter(|one| self.of.as_ref().is_none_or(|of| *of == one.name))
        };
        let total = |of: fn(&record::Tally) -> [u64; 3]| sum(stages.iter().flat_map(|stage| of(&stage.total)));
        let ended = sum(types().map(|one| one.count.saturating_add(one.rolled_back)));
        let failed = sum(types().map(|one| one.failed));
        // The types of transactions that were not started are unknown.
        let (lost, unfinished) = match self.of {
            None => (
                total(|total| [total.dropped, total.unstarted, total.unfinished]),
                total(|total| [total.unfinished, 0, 0]),
            ),
            Some(_) => (0, 0),
        };
        let response = all(types().map(|one| &one.response));
        let needed = self.transactions_needed();
        match self.figure {
            PromisedFigure::Errors => {
                let failed = failed.saturating_add(unfinished);
                let transactions = ended.saturating_add(failed);
                let value = ratio(failed as f64, transactions as f64);
                let is_beyond = failed as f64 > self.limit * transactions.max(needed) as f64;
                Promised { value, transactions, is_beyond }
            }
            PromisedFigure::Max => {
                let value = if lost > 0 { Some(f64::INFINITY) } else { response.max().map(|ns| ns as f64) };
                let is_beyond = value.is_some_and(|value| !self.allows(value));
                Promised { value, transactions: ended.saturating_add(lost), is_beyond }
            }
            PromisedFigure::Percentile(ppm) => {
                // Transactions that never ended took longer than all others.
                let transactions = ended.saturating_add(lost);
                let beyond = transactions.saturating_sub(response.at_most([self.limit as u64])[0]);
                let above = 1.0 - f64::from(ppm) / 1e6;
                // However fast all that are missing are.
                let is_beyond = beyond as f64 > (transactions.max(needed) as f64 * above).floor();
                Promised { value: percentile(ppm, &response, ended, lost), transactions, is_beyond }
            }
        }
    }

    /// Whether a value keeps it.
    pub(crate) fn allows(&self, value: f64) -> bool {
        value < self.limit || self.inclusive && value <= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, of: Option<&str>, figure: PromisedFigure, limit: f64, inclusive: bool) {
        let wanted = Promise { text: text.trim().into(), of: of.map(str::to_owned), figure, limit, inclusive };
        assert_eq!(text.parse(), Ok(wanted));
    }

    #[test]
    fn promises_are_read_as_people_write_them() {
        check("p99 < 10ms", None, PromisedFigure::Percentile(990_000), 1e7, false);
        check("p99.9<=1.5s", None, PromisedFigure::Percentile(999_000), 1.5e9, true);
        check("new_order.p99.99 < 250us", Some("new_order"), PromisedFigure::Percentile(999_900), 2.5e5, false);
        check("a.b.max < 1m", Some("a.b"), PromisedFigure::Max, 60e9, false);
        check(" errors < 0.1% ", None, PromisedFigure::Errors, 0.001, false);
        check("pay.errors <= 0%", Some("pay"), PromisedFigure::Errors, 0.0, true);
        for text in [
            "",
            "p99",
            "p99 > 10ms",
            "p99 < 10",
            "p99 < ms",
            "p99 < -1ms",
            "p0 < 1ms",
            "p100 < 1ms",
            "tps < 5%",
            "errors < 5ms",
            "errors < 5",
            ".p99 < 1ms",
            "p99 < 1e3ms",
            "p99 < 0ms",
            "max < NaNs",
            "pNaN < 1ms",
        ] {
            assert_eq!(text.parse::<Promise>(), Err(BadPromise), "{text}");
        }
    }
}
