//! MySQL and MariaDB: the client/server protocol as a state machine.
//!
//! `database` implements the seam, `server` reads where to connect and as whom, `connection` is the machine for one
//! connection; `login` (with the proofs of `auth`), `result`, `statement`, `load`, `refusal` and the framing of
//! `packet` are its parts. TLS is done by the event loop. Not supported: compression, protocol 9 and the password
//! hashes from before 4.1, cursors, asynchronous statements, files that the server asks for unprompted.

mod auth;
mod connection;
mod database;
mod fuzz;
mod load;
mod login;
mod packet;
mod refusal;
mod result;
mod server;
mod statement;
#[cfg(test)]
mod transcripts;

pub use database::DRIVER;
pub use fuzz::fuzz_mysql;
