//! Parses numbers, sizes, durations and switches, with errors that show valid examples.
//!
//! Counts are decimal (`1M` rows is 1,000,000), sizes are binary (`1M` bytes is 1,048,576); both take `_` anywhere
//! between digits and `,` between thousands. Every function returns a lowercase fragment as its error, to which the
//! command line adds the option's name.

use assay_seam::Nanos;

/// A shorter interval would cost too much.
pub const INTERVAL_MIN: Nanos = Nanos::from_millis(100);
/// The kernel counts in seconds, and to 32,767.
pub const NETWORK_TIMEOUT_MIN: Nanos = Nanos::from_secs(2);
/// See `NETWORK_TIMEOUT_MIN`.
pub const NETWORK_TIMEOUT_MAX: Nanos = Nanos::from_secs(9 * 3600);
/// A shorter lease would end a run because of a slow network. assay-fleet has the same number.
pub const LEASE_MIN: Nanos = Nanos::from_secs(3);

/// A switch: `on`, `true`, `yes`, `1`, and their opposites, in any case.
pub fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

/// A whole number, possibly negative: `250`, `1_000`, `1,000`, `10k`, `1M` (a million), `2G`, `1T`; `1.5M` too, when
/// it comes out whole.
pub fn integer(text: &str) -> Result<i64, String> {
    let (digits, factor) = split_suffix(text, 1_000);
    let plain = without_separators(digits).ok_or(WHOLE_NUMBER)?;
    if let Ok(value) = plain.parse::<i64>() {
        return value.checked_mul(factor as i64).ok_or_else(|| "the number is too large".to_owned());
    }
    let value = plain.parse::<f64>().map_err(|_| WHOLE_NUMBER)? * factor as f64;
    // Beyond 2^53 a float cannot represent every whole number.
    match value.fract() == 0.0 && value.is_finite() {
        true if value.abs() < 9e15 => Ok(value as i64),
        true => Err("the number is too large".to_owned()),
        false => Err(WHOLE_NUMBER.to_owned()),
    }
}

/// A whole number of at least `least`.
pub fn count(text: &str, least: u64) -> Result<u64, String> {
    let value = integer(text)?;
    u64::try_from(value).ok().filter(|value| *value >= least).ok_or_else(|| format!("must be at least {least}"))
}

/// A number: `0.8`, `1e-3`, `2_000`, `1.5k`.
pub fn number(text: &str) -> Result<f64, String> {
    let (digits, factor) = split_suffix(text, 1_000);
    let value =
        without_separators(digits).and_then(|plain| plain.parse::<f64>().ok()).map(|value| value * factor as f64);
    value.filter(|value| value.is_finite()).ok_or_else(|| "expected a number, such as 0.5, 250 or 10k".to_owned())
}

/// A number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    number(text).and_then(|value| if value > 0.0 { Ok(value) } else { Err("must be above 0".to_owned()) })
}

/// A number of at least 0.
pub fn not_negative(text: &str) -> Result<f64, String> {
    number(text).and_then(|value| if value >= 0.0 { Ok(value) } else { Err("must not be negative".to_owned()) })
}

/// A number of sessions.
pub fn sessions(text: &str) -> Result<u32, String> {
    u32::try_from(count(text, 1)?).map_err(|_| "must be below 2^32".to_owned())
}

/// A size in bytes: `4096`, `64K` (65,536), `64KiB`, `1M`, `2GB`.
pub fn size(text: &str) -> Result<u64, String> {
    const EXPECTED: &str = "expected a size in bytes, such as 4096, 64K or 1G";
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    let (digits, factor) = split_suffix(bare, 1_024);
    let value: u64 = without_separators(digits).and_then(|plain| plain.parse().ok()).ok_or(EXPECTED)?;
    value.checked_mul(factor).ok_or_else(|| "the size is too large".to_owned())
}

/// Longest duration in seconds: 10,000 days. Sums of a few fit into 64 bits of nanoseconds.
const SECONDS_MAX: f64 = 864e6;

/// A length of time: `500ms`, `10s`, `1.5m`, `1h30m`, `250us`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Nanos, String> {
    const EXPECTED: &str = "expected a duration, such as 500ms, 30s, 10m or 1h30m";
    if text.starts_with('-') {
        return Err("must not be negative".to_owned());
    }
    if text.parse::<f64>().is_ok() {
        return duration(&format!("{text}s"));
    }
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').ok_or(EXPECTED)?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |found| digits + found);
        let seconds = match &rest[digits..unit_end] {
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return Err(EXPECTED.to_owned()),
        };
        total += seconds * rest[..digits].replace('_', "").parse::<f64>().map_err(|_| EXPECTED)?;
        rest = &rest[unit_end..];
    }
    if total > SECONDS_MAX {
        return Err("must be at most 10000d".to_owned());
    }
    if total.is_finite() && !text.is_empty() {
        Ok(Nanos((total * 1e9).round() as u64))
    } else {
        Err(EXPECTED.to_owned())
    }
}

/// Length of a reporting interval.
pub fn interval(text: &str) -> Result<Nanos, String> {
    let interval = duration(text)?;
    if interval >= INTERVAL_MIN { Ok(interval) } else { Err("must be at least 100ms".to_owned()) }
}

/// How long a server's host may acknowledge nothing; 0: no limit.
pub fn network_timeout(text: &str) -> Result<Nanos, String> {
    let limit = duration(text)?;
    let possible = limit == Nanos::ZERO || (NETWORK_TIMEOUT_MIN..=NETWORK_TIMEOUT_MAX).contains(&limit);
    if possible { Ok(limit) } else { Err("must be 0, or from 2s to 9h".to_owned()) }
}

/// How long agents of a fleet run on alone.
pub fn lease(text: &str) -> Result<Nanos, String> {
    let lease = duration(text)?;
    if lease >= LEASE_MIN { Ok(lease) } else { Err(format!("must be at least {}", display_duration(LEASE_MIN))) }
}

/// A duration in the shortest form that `duration` reads back: `10s`, `500ms`, `1h30m`.
pub fn display_duration(time: Nanos) -> String {
    let Nanos(ns) = time;
    if ns % 1_000_000_000 == 0 {
        let seconds = ns / 1_000_000_000;
        let parts = [(seconds / 3_600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
        let text: String = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
        return if text.is_empty() { "0s".to_owned() } else { text };
    }
    if ns % 1_000_000 == 0 { format!("{}ms", ns / 1_000_000) } else { format!("{}us", ns / 1_000) }
}

/// A duration in a form that `duration` reads back to the nanosecond.
pub(crate) fn exact_duration(time: Nanos) -> String {
    match time.0 % 1_000 {
        0 => display_duration(time),
        ns => format!("{}.{ns:03}us", time.0 / 1_000),
    }
}

const WHOLE_NUMBER: &str = "expected a whole number, such as 250, 10k or 1M";

/// Splits a trailing K, M, G or T from a number; the factor is a power of `base`.
fn split_suffix(text: &str, base: u64) -> (&str, u64) {
    let power = match text.bytes().last().map(|last| last.to_ascii_uppercase()) {
        Some(b'K') => 1,
        Some(b'M') => 2,
        Some(b'G') => 3,
        Some(b'T') => 4,
        _ => return (text, 1),
    };
    (&text[..text.len() - 1], base.pow(power))
}

/// `1_000` and `1,000` without their separators; `None` if a comma is not between thousands, because `1,5` may be meant
/// as a fraction or a list.
fn without_separators(text: &str) -> Option<String> {
    let mut groups = text.split(',');
    let first = groups.next()?;
    let grouped = text.contains(',');
    let thousands = groups.all(|group| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit()));
    let lead_fits = !grouped || (1..=3).contains(&first.trim_start_matches(['-', '+']).len());
    let digits_around = !text.starts_with('_') && !text.ends_with('_');
    (thousands && lead_fits && digits_around).then(|| text.replace(['_', ','], ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_decimal_and_take_separators() {
        let cases = [
            ("250", 250),
            ("-3", -3),
            ("1_000", 1_000),
            ("1,000,000", 1_000_000),
            ("10k", 10_000),
            ("1.5M", 1_500_000),
        ];
        for (text, value) in cases {
            assert_eq!(integer(text), Ok(value), "{text}");
        }
        for text in ["", "ten", "1,5", "1.0001k5", "1.5", "M", "_1", "1e400", "99999999999T", "NaN"] {
            assert!(integer(text).is_err(), "{text}");
        }
        assert_eq!(count("0", 1), Err("must be at least 1".to_owned()));
        assert_eq!(count("-4", 0), Err("must be at least 0".to_owned()));
    }

    #[test]
    fn sizes_are_binary() {
        for (text, value) in [("4096", 4_096), ("64K", 65_536), ("64kb", 65_536), ("1MiB", 1_048_576), ("2g", 2 << 30)]
        {
            assert_eq!(size(text), Ok(value), "{text}");
        }
        for text in ["", "x", "1.5K", "-1", "99999999T"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_may_be_fractions() {
        for (text, value) in [("0.8", 0.8), ("1e-3", 0.001), ("1.5k", 1_500.0), ("2_000", 2_000.0)] {
            assert_eq!(number(text), Ok(value), "{text}");
        }
        for text in ["", "fast", "inf", "NaN", "1,5"] {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_read_back_as_they_are_shown() {
        for text in ["10s", "500ms", "1h30m", "2m5s", "250us", "0s"] {
            assert_eq!(display_duration(duration(text).unwrap()), text);
        }
        assert_eq!(duration("90"), Ok(Nanos::from_secs(90)));
        assert_eq!(duration("1.5m"), Ok(Nanos::from_secs(90)));
        for text in ["", "fast", "10 s", "-1s", "1x", "s", "1s2", "inf", "nan", "1e30", "99999999999d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn switches_have_two_sides() {
        assert_eq!((switch("on"), switch("FALSE")), (Ok(true), Ok(false)));
        assert!(switch("maybe").is_err());
    }
}
