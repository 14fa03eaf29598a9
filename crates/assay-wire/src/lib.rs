//! What the protocols of SQL servers have in common.
//!
//! Placeholders in statements, the texts of prepared statements, statements that wait for the next one. The protocols
//! themselves are in the crates of their products.

#![forbid(unsafe_code)]

pub mod deferral;
mod fuzz;
pub mod placeholders;
pub mod templates;

pub use fuzz::fuzz_placeholders;

use assay_seam::{Class, StatementError};

/// The error for a peer that breaks the protocol.
pub fn violation(what: String) -> Box<StatementError> {
    let mut error = StatementError::client(Class::Protocol, what);
    error.hint =
        Some("check what is between this machine and the server: a proxy may have changed the data".to_owned());
    Box::new(error)
}
