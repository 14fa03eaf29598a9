//! MongoDB, and servers that speak its protocol: all that is particular to them.
//!
//! A statement is a command in MongoDB's extended JSON, with `?` for parameters: `{"find": "users", "filter": {"_id":
//! ?}}`. Not supported, and refused with the reason: retryable writes, unacknowledged writes, `mongodb+srv://`,
//! tailable cursors and change streams.

#![forbid(unsafe_code)]

mod protocol;
mod questions;
mod server;
mod settings;

pub use protocol::{DRIVER, fuzz_mongodb, fuzz_statement};
pub use questions::QUESTIONS;
pub use server::Mongo;
pub use settings::SETTINGS;
