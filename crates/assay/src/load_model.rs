//! Parses load models: a changing rate, a file of arrivals, a number of sessions to search for.

use std::path::Path;
use std::sync::Arc;

use assay_engine::{Rate, RatePoint};
use assay_seam::Nanos;

use crate::diagnostics::Trouble;
use crate::values;

/// `--sessions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// The steps of a ladder; for a search, the most to try. At least one.
    pub steps: Vec<u32>,
    /// Search for the knee.
    pub auto: bool,
}

/// Without a given maximum, more sessions than this are not tried: servers refuse a hundred.
pub(crate) const AUTO_MAX: u32 = 64;

/// `8`, `1,2,4` or `auto`, `auto:128`.
pub fn sessions(text: &str) -> Result<Sessions, String> {
    match text.split_once(':').map_or((text, None), |(name, max)| (name, Some(max))) {
        ("auto", max) => Ok(Sessions { steps: vec![max.map_or(Ok(AUTO_MAX), session_count)?], auto: true }),
        _ => Ok(Sessions { steps: text.split(',').map(session_count).collect::<Result<_, _>>()?, auto: false }),
    }
}

/// A number of sessions.
pub fn session_count(text: &str) -> Result<u32, String> {
    u32::try_from(values::count(text, 1)?).map_err(|_| "must be below 2^32".to_owned())
}

/// `2000`, or points of a time and a rate: `0:100,60s:2000,120s:500`.
pub fn rate(text: &str) -> Result<Rate, String> {
    let per_second = |text: &str| values::number(text.trim());
    if !text.contains(':') {
        let per_s = per_second(text)?;
        if per_s <= 0.0 {
            return Err("must be above 0".to_owned());
        }
        return Rate::new(&[RatePoint { at: Nanos::ZERO, per_s }]).map_err(|_| at_most());
    }
    let point = |text: &str| {
        let (at, per_s) = text.split_once(':').ok_or("expected TIME:RATE,…, such as 0:100,60s:2000")?;
        Ok(RatePoint { at: values::duration(at.trim())?, per_s: per_second(per_s)? })
    };
    let points: Vec<RatePoint> = text.split(',').map(point).collect::<Result<_, String>>()?;
    Rate::new(&points).map_err(|error| error.to_string())
}

fn at_most() -> String {
    format!("must be at most {}", assay_engine::RATE_MAX)
}

/// The instants in a file: each line has the seconds since the start, or a table with these in the first column;
/// ascending.
pub fn trace(path: &Path) -> Result<Arc<[Nanos]>, Trouble> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Trouble::usage(format!("--rate-file {}: {error}", path.display())))?;
    let mut arrivals: Vec<Nanos> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let first = line.split([',', '\t', ' ']).next().unwrap_or_default().trim();
        if first.is_empty() || first.starts_with('#') {
            continue;
        }
        let wrong = |why: &str| {
            Trouble::usage(format!("--rate-file {}:{}: {why}", path.display(), number + 1))
                .hint("each line must start with the seconds since the start, such as 0.125, in ascending order")
        };
        let seconds = first.parse().ok().filter(|seconds: &f64| (0.0..=SECONDS_MAX).contains(seconds));
        let Some(seconds) = seconds else {
            // The header of a table.
            if arrivals.is_empty() && number == 0 && first.starts_with(char::is_alphabetic) {
                continue;
            }
            return Err(wrong(&format!("`{first}` is not a time in seconds")));
        };
        let at = Nanos::from_secs_f64(seconds);
        if arrivals.last().is_some_and(|last| *last > at) {
            return Err(wrong("the time goes back"));
        }
        arrivals.push(at);
    }
    if arrivals.is_empty() {
        return Err(Trouble::usage(format!("--rate-file {}: it contains no arrivals", path.display())));
    }
    Ok(arrivals.into())
}

/// A year.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers_or_points_in_time() {
        let points = |text: &str| {
            rate(text).map(|rate| rate.points().iter().map(|at| (at.at.as_secs_f64(), at.per_s)).collect::<Vec<_>>())
        };
        assert_eq!(points("2000"), Ok(vec![(0.0, 2000.0)]));
        assert_eq!(points("0:100,60s:2000, 2m:500"), Ok(vec![(0.0, 100.0), (60.0, 2000.0), (120.0, 500.0)]));
        assert_eq!(points("0:1,1s:1,1s:9"), Ok(vec![(0.0, 1.0), (1.0, 1.0), (1.0, 9.0)]));
        for text in ["", "0", "-5", "x", "1e9", "0:100,60s", "60s:1,0:2", "0:0", "0:-1", "x:1", "0:1,,"] {
            assert!(points(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sessions_are_a_ladder_or_to_be_found() {
        let is = |text: &str, steps: &[u32], auto| {
            assert_eq!(sessions(text), Ok(Sessions { steps: steps.to_vec(), auto }), "{text}");
        };
        is("8", &[8], false);
        is("1,2,1k", &[1, 2, 1000], false);
        is("auto", &[64], true);
        is("auto:256", &[256], true);
        for text in ["", "0", "1,,2", "auto:0", "auto:x", "automatic"] {
            assert!(sessions(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_of_arrivals_is_read_by_its_first_column() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = folder.path().join("a.csv");
            std::fs::write(&path, text).unwrap();
            trace(&path)
                .map(|found| found.to_vec())
                .map_err(|trouble| trouble.cause.replace(&*path.to_string_lossy(), "a"))
        };
        let millis = |all: &[u64]| Ok(all.iter().map(|ms| Nanos::from_millis(*ms)).collect::<Vec<_>>());
        assert_eq!(read("0\n0.5\n0.5\n2\n"), millis(&[0, 500, 500, 2000]));
        assert_eq!(read("seconds,kind\n# late\n\n0.001,x\n1.5\ty\n"), millis(&[1, 1500]));
        assert_eq!(read("1\nx\n"), Err("--rate-file a:2: `x` is not a time in seconds".into()));
        assert_eq!(read("2\n1\n"), Err("--rate-file a:2: the time goes back".into()));
        assert_eq!(read("-1\n"), Err("--rate-file a:1: `-1` is not a time in seconds".into()));
        assert_eq!(read("# nothing\n"), Err("--rate-file a: it contains no arrivals".into()));
    }
}
