//! MySQL and MariaDB: the client/server protocol as a machine.
//!
//! `target` reads URLs and option files, `session` is the connection, made of `login` (with the proofs of `auth`),
//! `result`, `statement`, `load` and the framing of `packet`; `errno` knows what the server's numbers mean. TLS
//! belongs to the event loop. Refused: compression, protocol 9 and the password hashes of before 4.1, cursors,
//! asynchronous statements, files the server asks for by itself.

mod auth;
mod errno;
mod load;
mod login;
mod packet;
mod result;
mod session;
mod statement;
mod target;
#[cfg(test)]
mod transcripts;

use assay_seam::Driver;

pub use fuzz::fuzz_mysql;

mod fuzz;

/// The registry's entry for MySQL and MariaDB.
pub const DRIVER: Driver = Driver { name: "mysql", schemes: &["mysql", "mariadb"], open: target::open };
