//! The engine: drives the sessions of a script over connections, on schedule, and measures them.
//!
//! `run` takes a `Plan`, reports progress to an `Observer`, and returns an `Outcome`. It never prints, exits or handles
//! signals: that is the job of the binary, through a `Control`.

#![forbid(unsafe_code)]

mod arrivals;
pub mod control;
mod coordinator;
pub mod fleet;
mod messages;
pub mod observer;
pub mod outcome;
mod patience;
pub mod plan;
mod quota;
pub mod rate;
mod retry;
pub mod run;
pub mod schedule;
mod shared;
mod sums;
mod watchdog;
mod worker;

pub use assay_io::{NeededEndpoints, Target, Unresolved};
pub use control::Control;
pub use fleet::{Agent, Fleet, Gate};
pub use observer::{Notice, Observer, Warning};
pub use outcome::{End, Interval, Line, Outcome, Outside, RunError, SessionTally, StageOutcome};
pub use plan::{
    Arrival, Connects, Deal, EventLoop, Ignore, Limit, Load, OnError, Plan, Policy, Stage, sessions_per_state,
};
pub use rate::{BadRate, RATE_MAX, Rate, RatePoint};
pub use run::{Reporter, run, run_inline};
