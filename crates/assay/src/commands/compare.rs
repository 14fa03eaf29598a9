//! `assay compare`: compares two or more settings by the records of their trials.

use std::path::PathBuf;

use assay_process::diagnostics::{self, Exit, Trouble};
use assay_process::terminal;
use assay_record::Record;
use assay_report::{Comparison, Condition, ConditionFindings, Group};
use assay_run::render;
use assay_spec::Format;

use crate::command_line::{CompareOptions, JudgmentOptions};
use crate::commands::trials::{self, Trial};

/// Compares and judges.
pub fn run(options: &CompareOptions) -> Result<Exit, Trouble> {
    if options.agents && options.format != Format::Text {
        return Err(Trouble::usage("--agents needs --format text").hint("`assay report --json` has the agents, too"));
    }
    let groups = if options.records.is_empty() {
        let (baseline, candidate) = (read(&options.sides.baseline)?, read(&options.sides.candidate)?);
        trials::check_sides(&baseline, &candidate)?;
        trials::check_comparable(baseline.iter().chain(&candidate))?;
        vec![render::group("baseline", trials::pairs(baseline)), render::group("candidate", trials::pairs(candidate))]
    } else {
        let all = trials::runs_among(read(&options.records)?);
        trials::check_comparable(all.iter())?;
        assay_report::groups(trials::pairs(all))
    };
    let (first, others) = groups.split_first().expect("at least one record was read");
    let exit = if !others.is_empty() {
        let comparisons = others.iter().map(|other| compared(first, other, &options.judgment)).collect();
        conclude(comparisons, &options.judgment, options.format)
    } else if options.judgment.fail_if.is_empty() {
        terminal::result(&render::summary(first, options.format))?;
        Ok(Exit::Success)
    } else {
        let cause = format!("--fail-if has nothing to compare: all records have the same settings ({})", first.name);
        return Err(Trouble::usage(cause).hint("give the records of each side with --baseline and --candidate"));
    };
    if options.agents {
        show_agents(&groups)?;
    }
    exit
}

/// The agents of each record that has any.
fn show_agents(groups: &[Group]) -> Result<(), Trouble> {
    for (record, findings) in groups.iter().flat_map(|group| group.records.iter().zip(&group.trials)) {
        if !findings.agents.is_empty() {
            terminal::result(&format!("\n{record}\n{}", assay_report::agents_text(findings, terminal::view(false))))?;
        }
    }
    Ok(())
}

/// Two settings, compared.
pub(crate) fn compared(baseline: &Group, candidate: &Group, options: &JudgmentOptions) -> Comparison {
    assay_report::compare(render::side(baseline), render::side(candidate), options.margin)
}

/// Judges the conditions, prints everything, and fails if one holds.
pub(crate) fn conclude(
    mut comparisons: Vec<Comparison>,
    options: &JudgmentOptions,
    format: Format,
) -> Result<Exit, Trouble> {
    for comparison in &mut comparisons {
        comparison.conditions =
            options.fail_if.iter().map(|one| judged(one, comparison)).collect::<Result<_, Trouble>>()?;
    }
    terminal::result(&match (format, comparisons.as_slice()) {
        (Format::Text, [one]) => assay_report::comparison_text(one),
        (Format::Text, several) => assay_report::grid_text(several),
        (Format::Json, [one]) => assay_report::json(one),
        (Format::Json, several) => assay_report::json(&several),
        (Format::Csv, several) => assay_report::comparison_csv(several),
    })?;
    let those = |what: fn(&ConditionFindings) -> bool| -> Vec<&str> {
        let conditions = comparisons.iter().flat_map(|comparison| &comparison.conditions);
        conditions.filter(|found| what(found)).map(|found| found.condition.as_str()).collect()
    };
    let (met, unsure) = (those(ConditionFindings::is_met), those(ConditionFindings::is_unsure));
    if !met.is_empty() {
        return Err(Trouble::new(Exit::Difference, format!("--fail-if is met: {}", met.join(", "))));
    }
    if options.fail_if_unsure && !unsure.is_empty() {
        let cause = format!("--fail-if may be met (--fail-if-unsure): {}", unsure.join(", "));
        return Err(Trouble::new(Exit::Difference, cause).hint("run more trials for a narrower confidence interval"));
    }
    Ok(Exit::Success)
}

/// Names of metrics shown where none was meant.
const SHOWN: usize = 3;

fn judged(condition: &Condition, comparison: &Comparison) -> Result<ConditionFindings, Trouble> {
    if comparison.stages.is_empty() {
        return Err(Trouble::usage(
            "--fail-if cannot be evaluated: the two sides have no number of sessions in common",
        ));
    }
    let names = assay_report::metric_names(comparison);
    if names.contains(&condition.metric.as_str()) {
        return Ok(condition.judge(comparison));
    }
    let trouble = Trouble::usage(format!("--fail-if {}: there is no metric {}", condition.text, condition.metric));
    Err(match diagnostics::nearest(&condition.metric, names.iter().copied()) {
        Some(near) => trouble.hint(format!("did you mean {near}?")),
        None => trouble.hint(format!(
            "there are {}, such as {}; `assay compare … --format json` has them all",
            names.len(),
            diagnostics::nearest_few(&condition.metric, names.iter().copied(), SHOWN).join(", ")
        )),
    })
}

fn read(paths: &[PathBuf]) -> Result<Vec<Trial>, Trouble> {
    trials::read(paths, Record::read_figures, |_, record| Ok(assay_report::figures(record)))
}
