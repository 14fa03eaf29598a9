//! Which part of a run the figures cover.

use crate::digits::{clock, seconds};
use crate::findings::stage::StageFindings;
use crate::findings::stage::WindowFindings;

/// `1:00 to 2:00`; for several runs with different parts, `last 60 s` or whatever they have in common. `None`: the
/// whole runs.
pub(crate) fn window_words<'a>(stages: impl IntoIterator<Item = &'a StageFindings>) -> Option<String> {
    let windows: Vec<WindowFindings> = stages.into_iter().filter_map(|stage| stage.window).collect();
    let first = windows.first()?;
    let whole_seconds = |ns: u64| (ns + 500_000_000) / 1_000_000_000 * 1_000_000_000;
    let ends = |one: &WindowFindings| [one.from_ns, one.to_ns].map(whole_seconds);
    let length = |one: &WindowFindings| whole_seconds(one.to_ns - one.from_ns);
    let same_ends = windows.iter().all(|one| ends(one) == ends(first));
    let last = windows.iter().all(|one| one.to_ns >= one.of_ns && length(one) == length(first));
    Some(match (same_ends, last) {
        (true, _) => ends(first).map(clock).join(" to "),
        (_, true) => format!("last {}", seconds(length(first))),
        _ => "a part of each run".into(),
    })
}

/// The window as a sentence.
pub(crate) fn window_sentence<'a>(stages: impl IntoIterator<Item = &'a StageFindings>) -> Option<String> {
    let window = window_words(stages)?;
    Some(format!(
        "Only {window} is shown; times count from there. The generator's figures are of the whole run. Not shown, since \
         records keep them for whole runs only: service times, latencies of transaction types and statements, \
         rollbacks, failures and retries by type, counters, audits, figures of each server, error codes."
    ))
}
