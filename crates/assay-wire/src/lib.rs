//! The wire protocols of PostgreSQL and MySQL, as state machines.
//!
//! Pure: bytes and instants go in, bytes and replies come out. Nothing opens a socket, reads a clock or blocks. They
//! implement the seam, which is a crate of its own; `placeholders`, `templates` and `deferral` are what both have in
//! common.

#![forbid(unsafe_code)]

mod deferral;
pub mod mysql;
pub mod placeholders;
pub mod postgres;
mod templates;

use assay_seam::{Class, StatementError};

/// The error for a peer that breaks the protocol.
fn violation(what: String) -> Box<StatementError> {
    let mut error = StatementError::client(Class::Protocol, what);
    error.hint =
        Some("check what is between this machine and the server: a proxy may have changed the data".to_owned());
    Box::new(error)
}
