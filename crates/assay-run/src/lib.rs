//! Executes a spec: one function for every run and every command of a workload, whoever asked for it.
//!
//! ```text
//! RunSpec ─► Assignment ─► Plan ─► engine ─► Outcome ─► Record ─► report
//! ```
//!
//! `execute` is that function. `assignment` loads and checks what a spec names, `plan` translates it for the engine,
//! `live` and `measured` keep the record while it grows, `telemetry` samples servers and machines beside the load,
//! `fleet` divides a run between machines. Nothing here knows a command line.

#![forbid(unsafe_code)]

pub mod assignment;
pub mod check;
pub mod cleanup;
pub mod client;
mod engine;
pub mod exec;
pub mod execute;
pub mod failure;
pub mod fleet;
pub mod identity;
pub mod isolation;
pub mod journal;
pub mod kill_check;
pub mod lab;
pub mod library;
pub mod live;
pub mod load_model;
pub mod measured;
pub mod metrics;
pub mod names;
pub mod next;
pub mod plan;
pub mod prepare;
pub mod record_of;
pub mod registry;
pub mod render;
pub mod served;
pub mod server_settings;
mod stranger;
pub mod telemetry;
pub mod top;
pub mod trust;
pub mod watch;
pub mod workload;

pub use execute::execute;
