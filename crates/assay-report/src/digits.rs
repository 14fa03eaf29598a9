//! Formatting of numbers: digits, grouping, units.

/// Shown for a missing figure.
pub(crate) const NONE: &str = "–";

/// Half of the last digit that `figure` shows: how far the figure may be from the value.
pub(crate) fn half_digit(value: f64) -> f64 {
    0.5 * 0.1f64.powi(decimals(value.abs()))
}

/// Digits that `figure` shows after the decimal point of a value that is not negative.
fn decimals(value: f64) -> i32 {
    match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.09995 => 3,
        v if v >= 0.009995 => 4,
        v if v > 0.0 => 5,
        _ => 0,
    }
}

/// `12,345`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 row`, `12,345 rows`.
pub(crate) fn plural(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Three significant digits, or all digits before the decimal point: `0.0123`, `1.23`, `12.3`, `12,345`.
pub fn figure(value: f64) -> String {
    if value < 0.0 {
        return format!("−{}", figure(-value));
    }
    match decimals(value) {
        0 => count(value.round() as u64),
        decimals => format!("{value:.*}", decimals as usize),
    }
}

/// `1,998 ±12`, `5.50 ±0.25`: digits stop where the interval starts, at the second digit of its half-width. If the
/// value is far from the center, or the half-width says little, the ends are shown instead: `1.4 [1.2, 3.1]`.
pub(crate) fn with_interval(value: f64, low: f64, high: f64) -> String {
    interval_words(value, low, high, f64::INFINITY)
}

/// The long form of `with_interval`: shows both ends unless the halves are about equally long.
pub(crate) fn with_ends(value: f64, low: f64, high: f64) -> String {
    interval_words(value, low, high, LOPSIDED)
}

/// Largest ratio of the longer half of an interval to the shorter one.
const LOPSIDED: f64 = 1.15;

fn interval_words(value: f64, low: f64, high: f64, lopsided: f64) -> String {
    let (below, above) = (value - low, high - value);
    let half = below.max(above);
    // A zero difference, up to rounding.
    if half <= value.abs() * 1e-6 || half.is_nan() {
        return if value == 0.0 { figure(value) } else { format!("{} ±0", figure(value)) };
    }
    let decimals = (1.0 - half.log10().floor()).clamp(0.0, 6.0) as usize;
    let plain = |value: f64| if decimals == 0 { count(value.round() as u64) } else { format!("{value:.decimals$}") };
    let is_nothing = |value: f64| plain(value.abs()).chars().all(|c| "0.".contains(c));
    let sign = |value: f64| if value < 0.0 && !is_nothing(value) { "−" } else { "" };
    let shown = |value: f64| format!("{}{}", sign(value), plain(value.abs()));
    // A small value within a wide interval has digits of its own: it is not zero.
    let own = if value != 0.0 && is_nothing(value) { figure(value) } else { shown(value) };
    match half > value.abs() / 2.0 || half > below.min(above) * lopsided {
        true => format!("{own} [{}, {}]", shown(low), shown(high)),
        false => format!("{} ±{}", shown(value), shown(half)),
    }
}

/// At most seven characters: `99,999`, `1.23M`, `18.4E`.
pub fn short(value: f64) -> String {
    const PREFIXES: [(f64, &str); 5] = [(1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"), (1e18, "E")];
    if value < 999_999.5 {
        return figure(value);
    }
    let (scale, prefix) = PREFIXES.into_iter().find(|(scale, _)| value / scale < 999.5).unwrap_or(PREFIXES[4]);
    figure(value / scale) + prefix
}

/// A count in at most seven characters.
pub(crate) fn short_count(value: u64) -> String {
    if value < 1_000_000 { count(value) } else { short(value as f64) }
}

/// Nanoseconds as milliseconds.
pub fn ms(ns: Option<u64>) -> String {
    ns.map_or_else(|| NONE.to_owned(), |ns| figure(ns as f64 / 1e6))
}

/// Milliseconds in at most six characters for anything below two hours: `0.0093`, `99,999`, `100k`, `3,600k`.
pub(crate) fn short_ms(ns: Option<u64>) -> String {
    match ns {
        Some(ns @ 1..9_995) => format!("{:.4}", ns as f64 / 1e6),
        Some(ns) if ns >= 99_999_500_000 => figure(ns as f64 / 1e9) + "k",
        _ => ms(ns),
    }
}

/// Nanoseconds as seconds: `10 s`, `1.5 s`.
pub(crate) fn seconds(ns: u64) -> String {
    let tenths = format!("{:.1}", ns as f64 / 1e9);
    format!("{} s", tenths.strip_suffix(".0").unwrap_or(&tenths))
}

/// A duration with three digits, or to the second from 100 s on: `312 ms`, `5.02 s`, `72.4 s`, `140 s`.
pub(crate) fn length(ns: u64) -> String {
    if ns < 999_500_000 { format!("{} ms", figure(ns as f64 / 1e6)) } else { format!("{} s", figure(ns as f64 / 1e9)) }
}

/// A time since the start, as on a clock: `0:30`, `12:05`, `1:00:00`; rounded down to the second.
pub fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A change as `+12.3%`, `−0.4%`: one decimal, and none from 100 % on.
pub(crate) fn change(share: f64) -> String {
    let percent = share * 100.0;
    let digits = usize::from(percent.abs() < 99.95);
    let text = format!("{:.digits$}%", percent.abs());
    let sign = if text.chars().all(|c| "0.%".contains(c)) {
        "±"
    } else if percent < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{text}")
}

/// A difference with its sign: `+1.23`, `−45`, `±0`.
pub(crate) fn signed(difference: f64) -> String {
    match difference {
        0.0 => "±0".to_owned(),
        less if less < 0.0 => figure(less),
        more => format!("+{}", figure(more)),
    }
}

/// `1.61 (1.20 … 2.05)`: a value of too few trials for an interval, with the lowest and the highest.
pub(crate) fn with_range(value: f64, low: f64, high: f64) -> String {
    format!("{} ({} … {})", figure(value), figure(low), figure(high))
}

/// A share as `12%`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}

pub(crate) fn micros(ns: f64) -> String {
    figure(ns / 1e3)
}

/// A block per value, scaled to the largest.
pub(crate) fn sparkline(values: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    values.iter().map(|value| BLOCKS[((value / most * 7.0).round() as usize).min(7)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits_and_group_thousands() {
        let shown = [0.0, 0.00512, 0.0123, 0.1, 0.9999, 1.0, 9.999, 12.34, 99.96, 123.4, 12345.6, 1e9].map(figure);
        assert_eq!(
            shown,
            [
                "0",
                "0.00512",
                "0.0123",
                "0.100",
                "1.00",
                "1.00",
                "10.0",
                "12.3",
                "100",
                "123",
                "12,346",
                "1,000,000,000"
            ]
        );
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!((count(0), count(999), count(1000)), ("0".into(), "999".into(), "1,000".into()));
    }

    #[test]
    fn digits_stop_where_the_interval_starts() {
        let shown = [(1998.3, 12.4), (1000.0, 9.69), (5.4999, 0.25), (0.012345, 0.0019), (5.0, 0.0), (3e6, 123456.0)];
        assert_eq!(
            shown.map(|(value, half)| with_interval(value, value - half / 2.0, value + half)),
            ["1,998 ±12", "1000.0 ±9.7", "5.50 ±0.25", "0.0123 ±0.0019", "5.00 ±0", "3,000,000 ±123,456"]
        );
        assert_eq!(with_interval(0.0, 0.0, 0.0), "0");
        assert_eq!(with_interval(1.38, 1.2, 3.07), "1.4 [1.2, 3.1]");
        assert_eq!(with_ends(9.68, 7.59, 12.4), "9.7 [7.6, 12.4]");
        assert_eq!(with_ends(1998.3, 1985.9, 2010.9), "1,998 ±13");
        assert_eq!(with_interval(3.0, -0.5, 9.0), "3.0 [−0.5, 9.0]");
        assert_eq!(with_interval(-150.0, -210.0, -90.0), "−150 ±60");
        assert_eq!(
            [with_ends(-0.3, -4.0, 3.4), with_range(1.61, 1.2, -2.05)],
            ["−0.3 [−4.0, 3.4]", "1.61 (1.20 … −2.05)"]
        );
        assert_eq!([0.0, 1.234, -1234.0].map(signed), ["±0", "+1.23", "−1,234"]);
        // What was measured is not zero, however wide its interval.
        assert_eq!(with_interval(0.3, 0.0, 25.0), "0.300 [0, 25]");
        assert_eq!([0.156, -0.004, 0.0, -0.00001, 1.5].map(change), ["+15.6%", "−0.4%", "±0.0%", "±0.0%", "+150%"]);
    }

    #[test]
    fn short_figures_never_exceed_seven_characters() {
        let shown = [0.0, 12.3, 999_999.0, 999_999.9, 1_234_567.0, 1e9, 123e12, u64::MAX as f64].map(short);
        assert_eq!(shown, ["0", "12.3", "999,999", "1.00M", "1.23M", "1.00G", "123T", "18.4E"]);
    }
}
