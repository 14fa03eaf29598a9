//! PostgreSQL: all that is particular to this product.

#![forbid(unsafe_code)]

mod protocol;
mod questions;
mod server;
mod settings;

pub use protocol::{DRIVER, GREETING, fuzz_postgres, is_greeting};
pub use questions::QUESTIONS;
pub use server::Postgres;
pub use settings::SETTINGS;
