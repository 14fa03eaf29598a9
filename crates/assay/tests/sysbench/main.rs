//! Conformance with sysbench: one file per part of its interface.
//!
//! Every test gives the same command line, in the same folder with the same files, to Debian's sysbench 1.0.20 and to
//! our binary called as `sysbench`. Exit code, stdout and stderr must be identical once what varies from run to run is
//! masked: times, rates and latencies, but never counters. Where ours differs on purpose, the test says so and has both
//! outputs. A missing package is a failure: `cargo xtask install` installs it.

mod bench;
mod builtin;
mod cmdline_table;
mod command_line;
mod connections;
mod errors_and_hooks;
mod ffi;
mod histogram;
mod legacy;
mod life_cycle;
mod lua_environment;
mod modules;
mod processes;
mod rand;
mod reports;
mod sql;
mod stock;
mod third_party;
