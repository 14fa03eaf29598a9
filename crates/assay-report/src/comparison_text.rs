//! Comparisons, grids and summaries of trials, for people: at most 80 columns, readable without colour.
//!
//! What makes a comparison doubtful stands before its numbers. No difference is shown without its interval, or without
//! saying that there is none. Formats what `comparison` and `summary` made and computes nothing.

use assay_record::Status;

use crate::cells::{NONE, Table, change, clean, count, figure, percent, with_interval, wrap_to};
use crate::comparison::{ChangeFindings, Comparison, MetricComparison, SideFindings, StageComparison, Verdict};
use crate::condition::{ConditionFindings, Judgement, Outcome};
use crate::metric::{MetricUnit, TrialsFindings};
use crate::setting::{Difference, Kind};
use crate::summary::{StageSummary, Summary};

const WIDTH: usize = 80;
const NAME_WIDTH: usize = 24;
/// Of a side in a sentence.
const SIDE_WIDTH: usize = 44;
const VALUE_WIDTH: usize = 60;
/// More records than this are counted, not listed.
const RECORDS_SHOWN: usize = 2;

/// A comparison of two sides.
pub fn comparison_text(found: &Comparison) -> String {
    let mut text = side_text("baseline ", &found.baseline) + &side_text("candidate", &found.candidate);
    text += &differences_text(&found.differences);
    text += &doubts(&found.baseline);
    text += &doubts(&found.candidate);
    for stage in &found.stages {
        text += &format!("\n{}", stage_text(found, stage));
    }
    if found.stages.is_empty() {
        text += "\nthe two sides have no number of sessions in common: nothing can be compared\n";
    }
    if !found.conditions.is_empty() {
        text.push('\n');
    }
    for condition in &found.conditions {
        text += &condition_text(condition);
    }
    text
}

/// Several settings, each compared with the first: a row per setting and number of sessions.
pub fn grid_text(comparisons: &[Comparison]) -> String {
    let Some(first) = comparisons.first() else { return String::new() };
    let mut text = side_text("baseline ", &first.baseline);
    for one in comparisons {
        text += &side_text("         ", &one.candidate);
        text +=
            &one.differences.iter().map(|difference| difference_text("             ", difference)).collect::<String>();
    }
    let disturbing = |one: &Difference| matches!(one.kind, Kind::Work | Kind::Generator);
    if comparisons.iter().flat_map(|one| &one.differences).any(disturbing) {
        let words = "not all did the same work from the same place: no ratio below is the server's alone";
        text += &format!("\n{}", wrap_to(WIDTH, "warning: ", words.split(' '), " "));
    }
    text += &doubts(&first.baseline);
    text += &comparisons.iter().map(|one| doubts(&one.candidate)).collect::<String>();
    for stage in &first.stages {
        let same = comparisons.iter().flat_map(|one| &one.stages).all(|one| one.sessions == one.candidate_sessions);
        let with = if same { sessions(stage.sessions) } else { "the sessions of each".to_owned() };
        text += &format!("\nwith {with}\n\n");
        let stages: Vec<(&Comparison, &StageComparison)> = comparisons
            .iter()
            .filter_map(|one| Some((one, one.stages.iter().find(|other| other.sessions == stage.sessions)?)))
            .collect();
        let mut table = Table::default();
        table.row(["setting", "tx/s", "ratio", "p50 ms", "ratio", "p99 ms", "ratio"]);
        let metrics = ["tps", "p50", "p99"];
        let mut row = vec![clean(&first.baseline.name, NAME_WIDTH)];
        for name in metrics {
            let metric = stage.metric(name);
            row.push(metric.and_then(|metric| metric.baseline.as_ref()).map_or(NONE.into(), |it| middle(it, metric)));
            row.push("1".into());
        }
        table.row(row);
        for (one, stage) in stages {
            let mut row = vec![clean(&one.candidate.name, NAME_WIDTH)];
            for name in metrics {
                let metric = stage.metric(name);
                row.push(metric.and_then(|it| it.candidate.as_ref()).map_or(NONE.into(), |it| middle(it, metric)));
                row.push(metric.and_then(|it| it.change).map_or(NONE.into(), |change| ratio(&change)));
            }
            table.row(row);
        }
        text += &table.text();
    }
    text += "\n* the interval of the ratio at 95% holds 1: the difference may be chance\n";
    text += "? too few trials for an interval: four of each setting are needed\n";
    text
}

/// Several trials of one setting.
pub fn summary_text(found: &Summary) -> String {
    let mut text = String::new();
    for stage in &found.stages {
        let trials = stage.metric("tps").map_or(0, |tps| tps.values.len());
        if !text.is_empty() {
            text.push('\n');
        }
        let many = if trials == 1 { "trial" } else { "trials" };
        text += &format!("{trials} {many} with {}:\n\n", sessions(stage.sessions));
        text += &trials_text(stage);
        if trials < 5 {
            text += "an interval of the median takes 5 trials\n";
        }
    }
    text += &doubts(&found.side);
    text
}

fn trials_text(stage: &StageSummary) -> String {
    let names = ["tps", "p50", "p95", "p99", "cpu_per_transaction"];
    let columns = names.map(|name| stage.metric(name));
    let scales = [1.0, 1e6, 1e6, 1e6, 1e3];
    let mut table = Table::default();
    table.row(["trial", "tx/s", "p50 ms", "p95 ms", "p99 ms", "CPU µs/tx", "failed"]);
    for (at, failed) in stage.failed.iter().enumerate() {
        let mut row = vec![(at + 1).to_string()];
        // A figure that only some trials have cannot be said to be of this one.
        let of = |column: &TrialsFindings| {
            column.values.get(at).copied().filter(|_| column.values.len() == stage.failed.len())
        };
        row.extend(
            columns
                .iter()
                .zip(scales)
                .map(|(column, scale)| column.and_then(of).map_or(NONE.into(), |value| figure(value / scale))),
        );
        row.push(count(*failed));
        table.row(row);
    }
    let mut summary = |name: &str, shown: &dyn Fn(&TrialsFindings, f64) -> Option<String>| {
        let cells: Vec<Option<String>> =
            columns.iter().zip(scales).map(|(column, scale)| column.and_then(|column| shown(column, scale))).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| NONE.into()));
            table.row([name.to_owned()].into_iter().chain(cells));
        }
    };
    summary("median", &|column, scale| Some(figure(column.median / scale)));
    summary("  from", &|column, scale| column.low.map(|low| figure(low / scale)));
    summary("  to", &|column, scale| column.high.map(|high| figure(high / scale)));
    summary("spread", &|column, _| Some(percent(column.spread)));
    table.text()
}

fn side_text(label: &str, side: &SideFindings) -> String {
    wrap_to(WIDTH, &format!("{label}  "), side_facts(side), " · ")
}

/// Name, workload, number of trials, servers and records of a side.
pub(crate) fn side_facts(side: &SideFindings) -> Vec<String> {
    let trials = match side.records.len() {
        1 => "1 trial".to_owned(),
        many => format!("{many} trials"),
    };
    let records: Vec<String> = match side.records.as_slice() {
        [first, .., last] if side.records.len() > RECORDS_SHOWN => {
            vec![format!("{} … {}", clean(first, VALUE_WIDTH), clean(last, VALUE_WIDTH))]
        }
        few => few.iter().map(|record| clean(record, VALUE_WIDTH)).collect(),
    };
    let mut facts = vec![clean(&side.name, VALUE_WIDTH), clean(&side.workload, NAME_WIDTH), trials];
    facts.extend(side.servers.iter().map(|server| clean(server, NAME_WIDTH * 2)));
    facts.extend(records);
    facts.dedup();
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// What the sides do not share, the most disturbing first, each kind under what it means.
pub(crate) fn differences_by_kind(differences: &[Difference]) -> Vec<(&'static str, Vec<&Difference>)> {
    let kinds = [
        (&[Kind::Work][..], "warning: the sides did different work; no difference below is the server's alone:"),
        (&[Kind::Generator], "warning: the load came from different places; a difference below may be theirs:"),
        (&[Kind::Server, Kind::Session], "the sides differ in:"),
    ];
    let of = |(kinds, head): (&[Kind], _)| (head, differences.iter().filter(|one| kinds.contains(&one.kind)).collect());
    kinds.into_iter().map(of).filter(|(_, of): &(_, Vec<_>)| !of.is_empty()).collect()
}

fn differences_text(differences: &[Difference]) -> String {
    let mut text = String::new();
    for (head, of) in differences_by_kind(differences) {
        text += &format!("\n{}", wrap_to(WIDTH, "", head.split(' '), " "));
        text += &of.into_iter().map(|one| difference_text("  ", one)).collect::<String>();
    }
    text
}

fn difference_text(indent: &str, one: &Difference) -> String {
    let label = format!("{indent}{}: ", clean(&one.what, VALUE_WIDTH));
    wrap_to(WIDTH, &label, difference_words(one).split(' '), " ")
}

/// `on → off`.
pub(crate) fn difference_words(one: &Difference) -> String {
    let values = |values: &[String]| match values {
        [] => "none".to_owned(),
        values => clean(&values.iter().map(|value| named(value)).collect::<Vec<_>>().join(" or "), VALUE_WIDTH),
    };
    format!("{} → {}", values(&one.baseline), values(&one.candidate))
}

fn named(value: &str) -> &str {
    if value.is_empty() { "none" } else { value }
}

fn doubts(side: &SideFindings) -> String {
    let told = |words: String| format!("\n{}", wrap_to(WIDTH, "warning: ", words.split(' '), " "));
    doubts_of(side).into_iter().map(told).collect()
}

/// What makes a side doubtful.
pub(crate) fn doubts_of(side: &SideFindings) -> Vec<String> {
    let name = clean(&side.name, NAME_WIDTH);
    let mut doubts = Vec::new();
    let mut warn = |words: String| doubts.push(words);
    for mixed in &side.mixed {
        let values: Vec<String> = mixed.values.iter().map(|value| clean(named(value), NAME_WIDTH)).collect();
        warn(format!(
            "the trials of {name} are not of one setting: {} is {}",
            clean(&mixed.what, VALUE_WIDTH),
            values.join(" or ")
        ));
    }
    for (trial, status) in &side.incomplete {
        let ended = match status {
            Status::Running => "was killed",
            Status::Interrupted => "was interrupted",
            Status::Failed => "failed",
            Status::Complete => continue,
        };
        warn(format!("trial {trial} of {name} {ended}; what it measured until then is counted"));
    }
    if side.limited_by_generator > 0 {
        let (limited, all) = (side.limited_by_generator, side.records.len());
        warn(format!(
            "the generator was the bottleneck in {limited} of {all} trials of {name}: `assay show` says more"
        ));
    }
    if side.failed > 0 {
        warn(format!("{} transactions of {name} failed; they are in no figure", count(side.failed)));
    }
    doubts
}

fn sessions(number: u32) -> String {
    if number == 1 { "1 session".into() } else { format!("{} sessions", count(number.into())) }
}

fn stage_text(found: &Comparison, stage: &StageComparison) -> String {
    let mut table = Table::default();
    stage_rows(stage).into_iter().for_each(|row| table.row(row));
    let note = if stage.metrics.iter().any(MetricComparison::is_not_of_medians) {
        "a change is the median of the ratios of all pairs of trials, not of the medians\n"
    } else {
        ""
    };
    let conclusion = conclusion(found, stage).map(|words| wrap_to(WIDTH, "", words.split(' '), " "));
    format!("{}{note}\n{}", table.text(), conclusion.unwrap_or_default())
}

/// The head, and a row per metric: its name, both sides, the change with its interval and, where there is one, the verdict.
pub(crate) fn stage_rows(stage: &StageComparison) -> Vec<Vec<String>> {
    let with = match (stage.sessions, stage.candidate_sessions) {
        (one, other) if one == other => sessions(one),
        (one, other) => format!("{one} → {other} sessions"),
    };
    let mut rows = vec![vec![with, "baseline".into(), "candidate".into(), "change".into()]];
    let of_all = ["tps", "p50", "p95", "p99", "cpu_per_transaction"];
    let types: Vec<&MetricComparison> = stage.metrics.iter().filter(|one| one.metric.name.ends_with(".p99")).collect();
    // The only type has the figures of all.
    let types = if types.len() > 1 { types } else { Vec::new() };
    for metric in of_all.into_iter().filter_map(|name| stage.metric(name)).chain(types) {
        let side = |side: &Option<TrialsFindings>| side.as_ref().map_or(NONE.into(), |it| middle(it, Some(metric)));
        let mut row = vec![metric_name(&metric.metric.name), side(&metric.baseline), side(&metric.candidate)];
        if let Some(change) = &metric.change {
            row.extend([change_text(change), verdict(&metric.metric.name, change.verdict).to_owned()]);
        } else {
            row.push(NONE.into());
        }
        rows.push(row);
    }
    rows
}

fn metric_name(name: &str) -> String {
    match name {
        "tps" => "tx/s".into(),
        "cpu_per_transaction" => "our CPU µs/tx".into(),
        name => match name.rsplit_once('.') {
            Some((of, metric)) => format!("{} {metric} ms", clean(of, 13)),
            None => format!("{name} ms"),
        },
    }
}

/// The median and its interval.
fn middle(trials: &TrialsFindings, metric: Option<&MetricComparison>) -> String {
    let scale = match metric.map(|metric| (metric.metric.unit, metric.metric.name.as_str())) {
        Some((MetricUnit::Ns, "cpu_per_transaction")) => 1e3,
        Some((MetricUnit::Ns, _)) => 1e6,
        _ => 1.0,
    };
    match trials.low.zip(trials.high) {
        Some((low, high)) => with_interval(trials.median / scale, low / scale, high / scale),
        None => figure(trials.median / scale),
    }
}

/// `+15.6% [+14.1, +17.0]`.
fn change_text(found: &ChangeFindings) -> String {
    let known = match (found.low, found.high) {
        (Some(low), Some(high)) => {
            let [low, high] = [low, high].map(|end| change(end - 1.0).trim_end_matches('%').to_owned());
            format!("[{low}, {high}]")
        }
        _ => "(no interval)".into(),
    };
    format!("{} {known}", change(found.ratio - 1.0))
}

fn ratio(found: &ChangeFindings) -> String {
    let mark = match (found.low, found.high) {
        (Some(low), Some(high)) if low <= 1.0 && 1.0 <= high => "*",
        (Some(_), Some(_)) => "",
        _ => "?",
    };
    format!("{:.3}{mark}", found.ratio)
}

fn verdict(metric: &str, verdict: Verdict) -> &'static str {
    let cpu = metric == "cpu_per_transaction";
    match verdict {
        Verdict::Better if cpu => "less",
        Verdict::Worse if cpu => "more",
        Verdict::Better => "faster",
        Verdict::Worse => "slower",
        Verdict::NoDifference => "the same",
        Verdict::CannotTell { .. } => "cannot tell",
    }
}

/// What follows, in a sentence; nothing where a side did not measure what counts.
pub(crate) fn conclusion(found: &Comparison, stage: &StageComparison) -> Option<String> {
    let metric = stage.metric(&found.headline)?;
    let change = metric.change?;
    let (mut baseline, mut candidate) =
        (clean(&found.baseline.name, SIDE_WIDTH), clean(&found.candidate.name, SIDE_WIDTH));
    if baseline == candidate {
        // They differ where they are cut.
        (baseline, candidate) = ("the baseline".into(), "the candidate".into());
    }
    let name = metric_name(&metric.metric.name);
    Some(match change.verdict {
        Verdict::Better | Verdict::Worse => {
            let word = verdict(&metric.metric.name, change.verdict);
            let larger = (change.superiority * change.pairs as f64).round();
            let pairs = if change.ratio > 1.0 { larger } else { change.pairs as f64 - larger };
            format!(
                "{candidate} is {word} than {baseline}: {name} {} at 95%, in {pairs} of {} pairs of trials",
                change_text(&change),
                change.pairs
            )
        }
        Verdict::NoDifference => {
            format!("no difference found: {name} {} at 95% is within ±{}", change_text(&change), percent(found.margin))
        }
        Verdict::CannotTell { trials_needed } => {
            let trials = |side: &Option<TrialsFindings>| side.as_ref().map_or(0, |side| side.values.len());
            let there = trials(&metric.baseline).min(trials(&metric.candidate));
            let why = match change.low {
                None => format!("with {there} any difference may be chance"),
                Some(_) => format!("a difference of {} would be lost between the trials", percent(found.margin)),
            };
            let most = trials_needed.saturating_sub(there);
            format!(
                "cannot tell whether {candidate} is faster or slower than {baseline}: more trials are needed, {most} per \
                 side ({trials_needed} in all); {why}"
            )
        }
    })
}

fn condition_text(found: &ConditionFindings) -> String {
    let condition = clean(&found.condition, VALUE_WIDTH);
    let several = found.stages.len() > 1;
    let judgement = |one: &Judgement| {
        let at = if several { format!(" with {}", sessions(one.sessions)) } else { String::new() };
        let by = one.change.map_or("not known".into(), change);
        let words = match one.outcome {
            Outcome::Met => format!("met: the change{at} is {by}"),
            Outcome::MetWithoutInterval => {
                format!("met: the change{at} is {by}, judged without an interval: that takes 4 trials per side")
            }
            Outcome::MayBeChance => {
                format!("not met: the change{at} is {by}, but may be chance: more trials are needed")
            }
            Outcome::NotMet => format!("not met: the change{at} is {by}"),
            Outcome::Unknown => format!("not known{at}: a side has no such figure"),
        };
        wrap_to(WIDTH, "", format!("fail-if {condition}: {words}").split(' '), " ")
    };
    found.stages.iter().map(judgement).collect()
}
