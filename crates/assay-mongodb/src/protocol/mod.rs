//! MongoDB's wire protocol as a state machine.
//!
//! `database` implements the seam, `server` reads where to connect and as whom, with the `seeds` of a name,
//! `connection` is the machine for one connection; `login` (with the proofs of `scram`), `answer`, `load`, `refusal`,
//! `transaction`, and the framing of `message` with its `compression` are its parts. `json` reads a statement,
//! `template` makes a command of it with the `additions` of the URL and a `body` of BSON with gaps, `bson` reads what
//! the server sends, `shown` writes that as text. TLS is done by the event loop.

mod additions;
mod answer;
mod body;
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
mod seeds;
mod server;
mod shown;
mod template;
mod transaction;
#[cfg(test)]
mod transcripts;

pub use database::DRIVER;
pub use fuzz::{fuzz_mongodb, fuzz_statement};
