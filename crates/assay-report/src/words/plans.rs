//! Plans of timed statements in an experiment, in words, and where they differ.

use crate::digits::count;
use crate::findings::plans::{CasePlan, CasePlans, CellPlans};
use crate::plain::{clean, indented};

/// Length of a line of a plan.
const LINE_WIDTH: usize = 400;
const NAME_WIDTH: usize = 76;

/// A heading for each plan, with its lines.
pub(crate) fn plans_of(all: &[CellPlans]) -> Vec<(String, Vec<String>)> {
    let mut blocks = Vec::new();
    for cell in all {
        let place = if cell.place.is_empty() { String::new() } else { format!(", {}", clean(&cell.place, NAME_WIDTH)) };
        for case in &cell.cases {
            for plan in &case.plans {
                let executions = match case.plans.len() {
                    1 => String::new(),
                    _ => format!(" ({} executions)", count(plan.executions)),
                };
                let head = format!("Plan of {}{place}{executions}", clean(&case.name, NAME_WIDTH));
                blocks.push((head, lines(plan)));
            }
        }
    }
    blocks
}

fn lines(plan: &CasePlan) -> Vec<String> {
    plan.text.lines().map(|line| indented(line, LINE_WIDTH)).collect()
}

/// Statements whose plan changed between executions, or differs between cells.
pub(crate) fn differences_of(all: &[CellPlans]) -> Vec<String> {
    let mut words = Vec::new();
    for cell in all {
        for case in cell.cases.iter().filter(|case| case.plans.len() > 1) {
            let place = if cell.place.is_empty() { String::new() } else { format!(" with {}", cell.place) };
            words.push(format!("The plan of {}{place} changed between executions.", clean(&case.name, NAME_WIDTH)));
        }
    }
    let Some((first, others)) = all.split_first() else { return words };
    for case in &first.cases {
        let shape = |case: &CasePlans| case.plans.first().map(|plan| plan.shape.clone());
        let own = shape(case);
        let same_case = |cell: &&CellPlans| {
            cell.cases.iter().find(|other| other.name == case.name).is_some_and(|other| shape(other) != own)
        };
        let differ: Vec<String> = others.iter().filter(same_case).map(|cell| clean(&cell.place, NAME_WIDTH)).collect();
        if !differ.is_empty() {
            let (name, place) = (clean(&case.name, NAME_WIDTH), clean(&first.place, NAME_WIDTH));
            words
                .push(format!("The plan of {name} with {place} differs from that with {}.", differ.join(" and with ")));
        }
    }
    words
}
