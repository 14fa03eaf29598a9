//! Whole commands: what a person types, and the complete output.
//!
//! Each test runs the program in a folder of its own, with a clean environment. Expected text is in the test; numbers
//! that change from run to run are redacted, keeping their widths.

mod clickhouse;
mod clickhouse_http;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "shared with the tests against real servers: each uses what it needs")]
mod common;
mod comparisons;
mod databases;
mod documents;
mod duckdb;
mod examples;
mod experiments;
mod hangs;
mod insert_benchmark;
mod interrupts;
mod killed;
mod lab;
mod libraries;
mod lists;
mod live;
mod mistakes;
mod mongodb;
mod olap;
mod records;
mod reports;
mod runs;
mod secrets;
mod servers;
mod specs;
mod statements;
mod ycsb;
