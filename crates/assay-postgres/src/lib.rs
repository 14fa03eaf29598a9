//! PostgreSQL: all that is particular to this product.

#![forbid(unsafe_code)]

mod protocol;

pub use protocol::{DRIVER, fuzz_postgres};
