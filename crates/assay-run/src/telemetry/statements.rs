//! The statements that sessions of the load execute, and how the server would execute them.
//!
//! Sessions show their statements to whoever asks, so nothing on the measured path has to keep them. Plans are asked
//! for after the measured part of a stage.

use std::collections::BTreeMap;

use assay_record::{QueryPlan, StatementPlans};
use assay_seam::Nanos;
use assay_telemetry::{Running, has_plan, parameters, read_plan, without_literals};

use super::sampler::Readings;
use crate::client::Client;

/// Statements that are kept, apart from their values.
const STATEMENTS_MAX: usize = 50;
/// Texts of each: with other values, the plan may be another one.
const EXAMPLES_MAX: usize = 3;
/// Asking for plans takes at most this long, and a little more for the last one.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// What was seen.
#[derive(Default)]
pub(super) struct Statements {
    pub(super) running: Option<Running>,
    /// Examples, by their text without values; `None`: it was explained.
    seen: BTreeMap<String, Option<Vec<String>>>,
}

impl Statements {
    /// A session executes this text, or did so lately.
    pub(super) fn saw(&mut self, text: String) {
        // Asking for the plan of several statements would execute all but the first.
        let text = text.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
        if !has_plan(text) || text.contains(';') || text.contains("assay_telemetry") {
            return;
        }
        let form = without_literals(text);
        if self.seen.len() >= STATEMENTS_MAX && !self.seen.contains_key(&form) {
            return;
        }
        let Some(examples) = self.seen.entry(form).or_insert_with(|| Some(Vec::new())) else { return };
        if examples.len() < EXAMPLES_MAX && !examples.iter().any(|known| known == text) {
            examples.push(text.to_owned());
        }
    }

    /// Whether there are statements without a plan.
    pub(super) fn has_news(&self) -> bool {
        self.seen.values().any(Option::is_some)
    }

    /// Asks for the plans of all statements that have none yet.
    pub(super) fn explain(&mut self, client: &mut Client, target: u32, readings: &mut Readings) {
        let Some(running) = self.running else { return };
        let from = client.now();
        for (statement, examples) in &mut self.seen {
            if client.now() - from > PATIENCE {
                return;
            }
            let mut found = StatementPlans { target, statement: statement.clone(), ..StatementPlans::default() };
            for text in examples.take().into_iter().flatten() {
                let sql = match parameters(&text) {
                    0 => running.explain.replace("{}", &text),
                    number => {
                        found.is_generic = true;
                        let nulls = vec!["NULL"; number].join(", ");
                        running.explain_prepared.replace("{nulls}", &nulls).replace("{}", &text)
                    }
                };
                readings.statements += 1;
                let Ok(rows) = client.ask(&sql, PATIENCE) else { continue };
                let plan = read_plan(&rows).without_literals();
                client.reuse(rows);
                if !plan.shape.is_empty() && !found.plans.iter().any(|known| known.shape == plan.shape) {
                    found.plans.push(QueryPlan { text: plan.text, json: None, shape: plan.shape });
                }
            }
            if !found.plans.is_empty() {
                readings.planned(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asking_could_execute_is_not_asked_for() {
        let mut statements = Statements::default();
        for text in ["DROP TABLE t", "SELECT 1; DROP TABLE t", "COMMIT", "SELECT x AS assay_telemetry", ""] {
            statements.saw(text.to_owned());
        }
        assert!(!statements.has_news());
        for number in 0..100 {
            statements.saw(format!("SELECT a FROM t WHERE id = {number};"));
        }
        let examples = statements.seen["SELECT a FROM t WHERE id = ?"].as_ref().unwrap();
        assert_eq!(examples.len(), EXAMPLES_MAX);
        assert_eq!(examples[0], "SELECT a FROM t WHERE id = 0");
    }
}
