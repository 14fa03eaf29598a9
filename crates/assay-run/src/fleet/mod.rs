//! Runs that several processes share: the coordinator's course and an agent's, over the bus of assay-fleet.
//!
//! An agent runs the same command line as one process would, as one of several (`assay_engine::Fleet`); what it
//! measured is a record like any other. The coordinator says what to do and when, shows the sum, and puts the records
//! together.

pub mod crew;
pub mod link;
pub mod parcel;
pub mod share;

use assay_fleet::Refusal;
use assay_process::diagnostics::{Exit, Trouble};

/// The variable that holds an agent's own database.
pub const DATABASE_VARIABLE: &str = "ASSAY_DB";

/// A trouble as it travels.
pub fn refusal(trouble: &Trouble) -> Refusal {
    Refusal {
        exit: trouble.exit as u8,
        cause: trouble.cause.clone(),
        details: trouble.details.clone(),
        hints: trouble.hints.clone(),
    }
}

/// A trouble of an agent.
pub fn trouble_of(agent: &str, refusal: &Refusal) -> Trouble {
    let exit = Exit::of_code(refusal.exit.into()).filter(|exit| *exit != Exit::Success).unwrap_or(Exit::Fleet);
    let cause = format!("agent {agent}: {}", refusal.cause);
    Trouble { exit, cause, details: refusal.details.clone(), hints: refusal.hints.clone() }
}
