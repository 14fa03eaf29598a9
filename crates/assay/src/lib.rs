//! Everything behind the command line, as a library: `main.rs` and other front ends use it.
//!
//! Only this crate prints, exits and handles signals. Numbers are computed in assay-report; assay-engine decides what
//! happens on the measured path. `registry.rs` lists the known databases, `commands` the subcommands.

#![forbid(unsafe_code)]

pub mod assignment;
pub mod child;
pub mod client;
pub mod command_line;
pub mod commands;
pub mod failure;
pub mod fleet;
pub mod journal;
pub mod lab;
pub mod library;
pub mod live;
pub mod load_model;
pub mod machine_record;
pub mod measured;
pub mod metrics;
pub mod plan;
pub mod record_of;
pub mod registry;
pub mod render;
pub mod server_settings;
pub mod signals;
pub mod telemetry;
pub mod watch;
pub mod workload;
