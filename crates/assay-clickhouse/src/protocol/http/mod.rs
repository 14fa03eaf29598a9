//! ClickHouse's HTTP interface: requests and responses on a connection that is kept, or connected again.

pub(super) mod coding;
pub(super) mod connection;
mod exception;
mod response;
#[cfg(test)]
mod transcripts;
