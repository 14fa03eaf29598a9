//! `assay explain`: why two results differ.

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_record::Record;
use assay_report::{Findings, compare};
use assay_run::render;

use crate::command_line::ExplainOptions;
use crate::commands::trials;

/// Prints the explanation.
pub fn run(options: &ExplainOptions) -> Result<Exit, Trouble> {
    let (baseline, candidate) = match options.records.as_slice() {
        [] => (options.sides.baseline.clone(), options.sides.candidate.clone()),
        [one, other] => (vec![one.clone()], vec![other.clone()]),
        _ => {
            return Err(Trouble::usage("expected two records, the baseline first")
                .hint("several trials per side: assay explain --baseline A1 A2 … --candidate B1 B2 …"));
        }
    };
    let read = |paths| trials::read(paths, Record::read_thinned, |_, record| Ok(assay_report::findings(record)));
    let (baseline, candidate) = (read(&baseline)?, read(&candidate)?);
    trials::check_sides(&baseline, &candidate)?;
    trials::check_comparable(baseline.iter().chain(&candidate))?;
    let sides = [("baseline", baseline), ("candidate", candidate)];
    let [baseline, candidate] = sides.map(|(name, trials)| render::group(name, trials::pairs(trials)));
    let found = compare(render::side(&baseline), render::side(&candidate), options.margin);
    if found.baseline.workload != found.candidate.workload {
        let [one, other] = [&found.baseline.workload, &found.candidate.workload];
        return Err(Trouble::usage(format!("{one} and {other} are different workloads: there is nothing to explain")));
    }
    let (before, after): (&[Findings], &[Findings]) = (&baseline.trials, &candidate.trials);
    let Some(explanation) = assay_report::explain(&found, before, after) else {
        return Err(Trouble::usage("the two sides have no number of sessions in common"));
    };
    terminal::result(&match options.json {
        true => assay_report::explanation_json(&explanation),
        false => assay_report::explanation_text(&explanation, &found),
    })?;
    Ok(Exit::Success)
}
