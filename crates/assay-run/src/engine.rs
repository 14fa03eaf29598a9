//! Runs the engine, and then ends what its connections have left running on the servers.

use assay_client::end_what_is_left;
use assay_engine::{Control, Observer, Outcome, Plan};

/// See the module.
pub(crate) fn run(plan: &Plan, control: &Control, observer: &mut dyn Observer) -> Outcome {
    let outcome = assay_engine::run(plan.clone(), control, observer);
    plan.targets.iter().for_each(|target| end_what_is_left(target, 0));
    outcome
}
