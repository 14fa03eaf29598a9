//! PostgreSQL: all that is particular to this product.

#![forbid(unsafe_code)]

mod protocol;
mod questions;

pub use protocol::{DRIVER, fuzz_postgres};
pub use questions::QUESTIONS;
