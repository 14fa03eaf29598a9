//! PostgreSQL, protocol 3.0.
//!
//! `database` implements the seam, `server` reads where to connect and as whom, `connection` is the state machine for
//! one connection; `login`, `message`, `load`, `refusal`, `passfile` and `service` are its parts. TLS is done by the
//! event loop. Refused on purpose: GSSAPI, SSPI, the binary form of parameters and results, COPY by the script,
//! replication. Source: the PostgreSQL manual, chapters 34 (libpq) and 55 (protocol).

mod connection;
mod database;
mod fuzz;
mod load;
mod login;
mod message;
mod notifications;
mod passfile;
mod refusal;
mod server;
mod service;
#[cfg(test)]
mod transcripts;

pub use database::DRIVER;
pub use fuzz::fuzz_postgres;
pub use message::{GREETING, is_greeting};
