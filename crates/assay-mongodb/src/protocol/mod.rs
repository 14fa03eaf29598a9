//! MongoDB's wire protocol as a state machine.
//!
//! `database` implements the seam, `server` reads where to connect and as whom, `connection` is the machine for one
//! connection; `login` (with the proofs of `scram`), `answer`, `load`, `refusal`, `transaction`, and the framing of
//! `message` with its `compression` are its parts. `json` reads a statement, `template` makes a BSON message with gaps
//! of it, `bson` reads what the server sends, `shown` writes that as text. TLS is done by the event loop.

mod answer;
mod bson;
mod compression;
mod connection;
mod database;
mod fuzz;
mod json;
mod load;
mod login;
mod message;
mod refusal;
mod scram;
mod server;
mod shown;
mod template;
mod transaction;
#[cfg(test)]
mod transcripts;

pub use database::DRIVER;
pub use fuzz::{fuzz_mongodb, fuzz_statement};
