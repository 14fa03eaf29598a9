//! MySQL and MariaDB: all that is particular to these products.

#![forbid(unsafe_code)]

pub mod defaults;
mod protocol;
mod questions;

pub use protocol::{DRIVER, fuzz_mysql};
pub use questions::QUESTIONS;
