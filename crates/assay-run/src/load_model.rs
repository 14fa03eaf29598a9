//! Load models: a changing rate, a file of arrivals.

use std::path::Path;
use std::sync::Arc;

use assay_engine::{Rate, RatePoint};
use assay_process::diagnostics::Trouble;
use assay_seam::Nanos;

/// `2000`, or points of a time and a rate: `0:100,60s:2000,120s:500`.
pub fn rate(text: &str) -> Result<assay_spec::RateSpec, String> {
    let rate: assay_spec::RateSpec = text.parse()?;
    rate_of(&rate).map(|_| rate)
}

/// The rate of a spec, if its points make one.
pub fn rate_of(rate: &assay_spec::RateSpec) -> Result<Rate, String> {
    let points: Vec<RatePoint> = rate.points.iter().map(|(at, per_s)| RatePoint { at: *at, per_s: *per_s }).collect();
    let is_constant = matches!(points[..], [RatePoint { at: Nanos::ZERO, .. }]);
    Rate::new(&points).map_err(|error| match is_constant {
        true => format!("must be at most {}", assay_engine::RATE_MAX),
        false => error.to_string(),
    })
}

/// The instants in a file: each line has the seconds since the start, or a table with these in the first column;
/// ascending.
pub fn trace(path: &Path) -> Result<Arc<[Nanos]>, Trouble> {
    let text = assay_record::read_text(path, assay_record::LISTED_BYTES_MAX)
        .map_err(|error| Trouble::environment(format!("--rate-file {}: {error}", path.display())))?;
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
            rate(text).map(|rate| rate.points.iter().map(|(at, per_s)| (at.as_secs_f64(), *per_s)).collect::<Vec<_>>())
        };
        assert_eq!(points("2000"), Ok(vec![(0.0, 2000.0)]));
        assert_eq!(points("0:100,60s:2000, 2m:500"), Ok(vec![(0.0, 100.0), (60.0, 2000.0), (120.0, 500.0)]));
        assert_eq!(points("0:1,1s:1,1s:9"), Ok(vec![(0.0, 1.0), (1.0, 1.0), (1.0, 9.0)]));
        for text in ["", "0", "-5", "x", "1e9", "0:100,60s", "60s:1,0:2", "0:0", "0:-1", "x:1", "0:1,,"] {
            assert!(points(text).is_err(), "{text}");
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
