//! Comparisons, grids and summaries of trials as text: at most 80 columns, readable without color.
//!
//! The verdict first, then doubts, then the numbers. Every difference is shown with its interval, or with a remark that
//! there is none. Combines what `words` and `tables` created, and computes nothing.

use crate::findings::comparison::{Comparison, SideFindings, StageComparison};
use crate::findings::judgment::{ConditionFindings, Judgment};
use crate::findings::setting::{Difference, SettingKind};
use crate::findings::summary::Summary;
use crate::plain::{DOT, clean, wrap_to};
use crate::tables::comparison::{changes, grid, is_any_not_of_medians, trials};
use crate::tables::telemetry::changes as telemetry_changes;
use crate::words::comparison::{
    conclusion, difference_words, differences_by_kind, doubts_of, judgment_words, side_facts,
};
use crate::words::run::sessions;

const WIDTH: usize = 80;
const VALUE_WIDTH: usize = 60;

/// A comparison of two sides.
pub fn comparison_text(found: &Comparison) -> String {
    let conclusions = found.stages.iter().map(|stage| conclusion(found, stage));
    let mut text: String = conclusions.map(|words| wrap_to(WIDTH, "", words.split(' '), " ")).collect();
    if found.stages.is_empty() {
        text += "nothing to compare: the two sides have no number of sessions in common\n";
    }
    text += &doubts(&found.baseline);
    text += &doubts(&found.candidate);
    text += &format!("\n{}{}", side_text("baseline ", &found.baseline), side_text("candidate", &found.candidate));
    text += &differences_text(&found.differences);
    for stage in &found.stages {
        text += &format!("\n{}", stage_text(stage));
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
    let disturbing = |one: &Difference| matches!(one.kind, SettingKind::Work | SettingKind::Generator);
    if comparisons.iter().flat_map(|one| &one.differences).any(disturbing) {
        let words =
            "not all settings did the same work from the same machine, so the server alone does not explain a ratio";
        text += &format!("\n{}", wrap_to(WIDTH, "! ", words.split(' '), " "));
    }
    text += &doubts(&first.baseline);
    text += &comparisons.iter().map(|one| doubts(&one.candidate)).collect::<String>();
    for stage in &first.stages {
        let same = comparisons.iter().flat_map(|one| &one.stages).all(|one| one.sessions == one.candidate_sessions);
        let with = if same { sessions(stage.sessions) } else { "the sessions of each".to_owned() };
        text += &format!("\nwith {with}\n\n{}", grid(comparisons, stage).text(WIDTH));
    }
    text += "\n* the 95% confidence interval of the ratio includes 1: this may be chance\n";
    text += "? too few trials: a confidence interval needs at least 4 per setting\n";
    text
}

/// Several trials of one setting.
pub fn summary_text(found: &Summary) -> String {
    let mut text = String::new();
    for stage in &found.stages {
        let number = stage.metric("tps").map_or(0, |tps| tps.values.len());
        if !text.is_empty() {
            text.push('\n');
        }
        let many = if number == 1 { "trial" } else { "trials" };
        text += &format!("{number} {many} with {}:\n\n{}", sessions(stage.sessions), trials(stage).text(WIDTH));
        if number < 5 {
            text += "a confidence interval needs at least 5 trials\n";
        }
    }
    text + &doubts(&found.side)
}

fn side_text(label: &str, side: &SideFindings) -> String {
    wrap_to(WIDTH, &format!("{label}  "), side_facts(side), DOT)
}

fn differences_text(differences: &[Difference]) -> String {
    let mut text = String::new();
    for group in differences_by_kind(differences) {
        let head = if group.is_warning { format!("! {}", group.words) } else { group.words.to_owned() };
        text += &format!("\n{}", wrap_to(WIDTH, "", head.split(' '), " "));
        text += &group.differences.into_iter().map(|one| difference_text("  ", one)).collect::<String>();
    }
    text
}

fn difference_text(indent: &str, one: &Difference) -> String {
    let label = format!("{indent}{}: ", clean(&one.what, VALUE_WIDTH));
    wrap_to(WIDTH, &label, difference_words(one).split(' '), " ")
}

fn doubts(side: &SideFindings) -> String {
    let told = |words: String| format!("\n{}", wrap_to(WIDTH, "! ", words.split(' '), " "));
    doubts_of(side).into_iter().map(told).collect()
}

fn stage_text(stage: &StageComparison) -> String {
    let note = if is_any_not_of_medians(stage) {
        "a change is the median of the ratios of all pairs of trials, not of the medians;\n\
         ±0 where the two have opposite signs\n"
    } else {
        ""
    };
    let with_it = telemetry_changes(stage).map(|table| format!("\n{}", table.text(WIDTH)));
    changes(stage).text(WIDTH) + note + &with_it.unwrap_or_default()
}

fn condition_text(found: &ConditionFindings) -> String {
    let condition = clean(&found.condition, VALUE_WIDTH);
    let judgment = |one: &Judgment| {
        let words = judgment_words(one, found.stages.len() > 1);
        wrap_to(WIDTH, "", format!("fail-if {condition}: {words}").split(' '), " ")
    };
    found.stages.iter().map(judgment).collect()
}
