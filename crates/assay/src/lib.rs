//! Everything behind the command line, as a library: `main.rs` and other front ends use it.
//!
//! Only this crate prints, exits and handles signals. Numbers are computed in assay-report; assay-engine decides what
//! happens on the measured path. `registry.rs` opens databases, `commands` has the subcommands.

#![forbid(unsafe_code)]

pub mod command_line;
pub mod commands;
pub mod databases;
pub mod machine_record;
pub mod signals;
