//! Spans in which no transaction ended, to the instant where the record knows it.

use assay_record::Interval;

/// No transaction ended between these instants, since the start of the measured part. start_ns <= end_ns
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Silence {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

impl Silence {
    pub(crate) fn length_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// Silences that are as long as an interval or longer, in order: shorter ones cannot be told apart from others within it.
///
/// Records of 0.1.0 know whole intervals only. Of those the last may be short, and is not looked at.
pub(crate) fn silences(intervals: &[Interval]) -> Vec<Silence> {
    let Some((first, last)) = intervals.first().zip(intervals.last()) else { return Vec::new() };
    let is_exact = intervals.iter().any(|interval| interval.last_done_ns.is_some());
    let end_ns = if is_exact { end_of(last) } else { last.start_ns };
    let mut silences = Vec::new();
    let mut start_ns = first.start_ns;
    for interval in intervals.iter().filter(|interval| has_ended(interval)) {
        let (first_ns, last_ns) = edges(interval);
        silences.push(Silence { start_ns, end_ns: first_ns.max(start_ns) });
        start_ns = last_ns;
    }
    silences.push(Silence { start_ns, end_ns: end_ns.max(start_ns) });
    silences.retain(|silence| silence.length_ns() > 0 && silence.length_ns() >= first.length_ns);
    silences
}

fn has_ended(interval: &Interval) -> bool {
    interval.response.count > 0 || interval.transactions.iter().any(|count| *count > 0)
}

/// When its first transaction ended, and its last.
fn edges(interval: &Interval) -> (u64, u64) {
    let (start_ns, end_ns) = (interval.start_ns, end_of(interval));
    match (interval.first_done_ns, interval.last_done_ns) {
        (Some(first), Some(last)) if start_ns <= first && first <= last && last <= end_ns => (first, last),
        _ => (start_ns, end_ns),
    }
}

fn end_of(interval: &Interval) -> u64 {
    interval.start_ns.saturating_add(interval.length_ns)
}
