//! ClickHouse's native protocol and its HTTP interface: state machines without sockets, clocks, files and processes.
//!
//! Source: ClickHouse's documentation, "Native Protocol", "Native Format" and "HTTP Interface"; a server of version
//! 18.16.

mod block;
mod connection;
mod database;
mod fuzz;
mod http;
mod insert;
mod packet;
mod refusal;
mod server;
mod statements;
#[cfg(test)]
mod transcripts;
mod types;
mod values;

pub use database::DRIVER;
pub use fuzz::fuzz_clickhouse;
