//! MySQL and MariaDB: all that is particular to these products.

#![forbid(unsafe_code)]

mod protocol;

pub use protocol::{DRIVER, fuzz_mysql};
