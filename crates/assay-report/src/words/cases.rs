//! Statements compared by `assay sql`, in words.

use assay_record::Cold;

use crate::digits::{figure, plural};
use crate::findings::cases::{CaseFindings, CasesFindings};
use crate::plain::clean;
use crate::words::suites::{counted_with_others, large_result};

/// Length of a statement, an error or a plan's line.
const LINE_WIDTH: usize = 400;

/// Method of timing.
pub(crate) fn how(found: &CasesFindings) -> Vec<String> {
    let runs = found.cases.iter().map(|case| case.runs).max().unwrap_or(0);
    let mut facts = vec![plural(found.cases.len() as u64, "case")];
    // None if every case failed.
    facts.extend((runs > 0).then(|| format!("{} each, in random order", plural(runs, "run"))));
    facts.push(match found.cold {
        None => format!("warm-up {}", plural(found.warmup.into(), "run")),
        Some(Cold::Restarted) => "cold: server restarted before each run, OS cache warm".to_owned(),
        Some(Cold::RestartedCachesDropped) => "cold: server restarted and OS cache emptied before each run".to_owned(),
    });
    facts
}

/// Which case is the fastest and by how much, or which cannot be told apart, in a sentence; `None` if fewer than two
/// were timed. The interval of a ratio is that of the table.
pub(crate) fn conclusion(found: &CasesFindings) -> Option<String> {
    const NAMES_MAX: usize = 4;
    let name = |name: &str| clean(name, 40);
    if found.cases.iter().filter(|case| case.median_ns.is_some()).count() < 2 {
        return None;
    }
    let times = |ratio: f64, low: Option<f64>, high: Option<f64>| {
        let interval = low.zip(high).map(|(low, high)| format!(" [{}, {}]", figure(low), figure(high)));
        format!("{}{} times", figure(ratio), interval.unwrap_or_default())
    };
    if let Some(fastest) = &found.fastest {
        let of_base = found.cases.iter().find(|case| case.name == *fastest)?.ratio.as_ref();
        return Some(match of_base.zip(found.base.as_ref()) {
            Some((one, base)) => {
                let inverse = times(1.0 / one.ratio, one.high.map(|high| 1.0 / high), one.low.map(|low| 1.0 / low));
                format!("{} is the fastest: {} takes {inverse} as long.", name(fastest), name(base))
            }
            None => {
                let mut others: Vec<_> =
                    found.cases.iter().filter_map(|case| Some((case, case.ratio.as_ref()?))).collect();
                others.sort_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
                let (next, ratio) = others.first()?;
                let times = times(ratio.ratio, ratio.low, ratio.high);
                let next_is = if others.len() > 1 { "the next, " } else { "" };
                format!("{} is the fastest: {next_is}{} takes {times} as long.", name(fastest), name(&next.name))
            }
        });
    }
    match &found.fastest_candidates[..] {
        [_, _, ..] => {
            let mut names: Vec<String> = found.fastest_candidates.iter().take(NAMES_MAX).map(|one| name(one)).collect();
            let more = found.fastest_candidates.len() - names.len();
            let last = if more > 0 { format!("{more} more") } else { names.pop()? };
            Some(format!("No case is shown to be the fastest: {} and {last} cannot be told apart.", names.join(", ")))
        }
        _ => None,
    }
}

/// Remarks below the table: different results, changed plans, errors.
pub(crate) fn notes(found: &CasesFindings) -> Vec<String> {
    let mut notes = Vec::new();
    for name in &found.disagreements {
        let of_result = |case: &&CaseFindings| case.result.as_ref() == Some(name);
        let shown = |case: &CaseFindings| {
            let digest = case.digest.as_deref().unwrap_or("-");
            let rows = plural(case.rows.unwrap_or(0), "row");
            format!("{}: {rows}, hash {}", clean(&case.name, 40), clean(digest, 20))
        };
        let cases: Vec<String> = found.cases.iter().filter(of_result).map(shown).collect();
        notes.push(format!("Cases that should return the same rows do not ({}).", cases.join("; ")));
    }
    for case in &found.cases {
        let name = clean(&case.name, 40);
        if let Some(failure) = &case.failure {
            notes.push(format!("{name} failed: {}.", clean(failure, LINE_WIDTH)));
        }
        if case.result_changed {
            notes.push(format!("{name} did not return the same rows every time."));
        }
        notes.extend(large_result(case));
        if let [_, others @ ..] = &case.plans[..] {
            for plan in others {
                let round = plan.first_round.map_or(String::new(), |round| format!(" in round {round}"));
                notes.push(format!("The plan of {name} changed{round}."));
            }
        }
    }
    if found.cases.len() > 1 && found.cases.iter().any(|case| case.ratio.is_some()) {
        let shortest = found.cases.iter().map(|case| case.runs).filter(|runs| *runs > 0).min().unwrap_or(0);
        notes.push(match shortest {
            0..=4 => "Confidence intervals of medians need at least 5 runs.".to_owned(),
            _ => "Medians of times, and ratios of their geometric means, with 95% confidence intervals; `same`: no \
                  difference above 3%; `? n runs`: inconclusive, n runs of each would find a difference of 3% four times \
                  out of five."
                .to_owned(),
        });
    }
    notes.extend(counted_with_others(found));
    notes
}

/// A statement after its name, and its plans.
pub(crate) fn plan_lines(case: &CaseFindings) -> Vec<String> {
    let several = case.plans.len() > 1;
    let of = |(number, plan): (usize, &crate::findings::cases::PlanFindings)| {
        let head = match several {
            true => format!("plan {} of {}, {}:", number + 1, clean(&case.name, 40), plural(plan.executions, "run")),
            false => format!("plan of {}:", clean(&case.name, 40)),
        };
        let lines = plan.text.lines().map(|line| {
            let indent: String = line.chars().take_while(|c| *c == ' ').take(60).collect();
            format!("  {indent}{}", clean(line, LINE_WIDTH))
        });
        [head].into_iter().chain(lines).collect::<Vec<_>>()
    };
    case.plans.iter().enumerate().flat_map(of).collect()
}

/// The statement on one line.
pub(crate) fn statement(case: &CaseFindings) -> String {
    clean(&case.sql.split_whitespace().collect::<Vec<_>>().join(" "), LINE_WIDTH)
}
