//! PostgreSQL, protocol 3.0.
//!
//! `target` reads where to connect and as whom, `frontend` is the machine for one connection; `login`, `message`, `load`,
//! `refusal`, `passfile` and `service` are its parts. TLS happens below, in the event loop. Refused on purpose: GSSAPI, SSPI, the
//! binary form of parameters and results, COPY by the script, replication.
//! Source throughout: the PostgreSQL manual, chapters 34 (libpq) and 55 (protocol).

mod frontend;
mod fuzz;
mod load;
mod login;
mod message;
mod passfile;
mod refusal;
mod service;
mod target;
#[cfg(test)]
mod tests;

pub use fuzz::fuzz_postgres;

use assay_seam::Driver;

/// The registry's entry.
pub const DRIVER: Driver = Driver { name: "pgsql", schemes: &["postgres", "postgresql"], open: target::open };
