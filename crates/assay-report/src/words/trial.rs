//! A trial in one line, as soon as it has ended.

use crate::digits::figure;
use crate::findings::cases::CaseFindings;
use crate::findings::run::Findings;
use crate::findings::stage::StageFindings;
use crate::words::capacity::capacity_words;

/// The throughput of each stage: `1,234, 2,345 tx/s`; or the capacity that was found.
pub fn throughput_words(findings: &Findings) -> String {
    if let Some(found) = &findings.capacity {
        return capacity_words(found);
    }
    let rates: Vec<String> = findings.stages.iter().map(|stage| figure(stage.total.tps)).collect();
    format!("{} tx/s", rates.join(", "))
}

/// A trial of an experiment: the throughput of each stage with its sessions, the median of each timed statement, or the
/// capacity that was found.
pub fn trial_words(findings: &Findings) -> String {
    if let Some(cases) = &findings.cases {
        let one = |case: &CaseFindings| {
            let median = case.median_ns.map_or("failed".to_owned(), |ns| format!("{:.3} ms", ns / 1e6));
            format!("{} {median}", case.name)
        };
        return cases.cases.iter().map(one).collect::<Vec<_>>().join(", ");
    }
    if let Some(found) = &findings.capacity {
        return capacity_words(found);
    }
    let stage = |stage: &StageFindings| {
        let plural = if stage.sessions == 1 { "" } else { "s" };
        format!("{} tx/s with {} session{plural}", figure(stage.total.tps), stage.sessions)
    };
    findings.stages.iter().map(stage).collect::<Vec<_>>().join(", ")
}
