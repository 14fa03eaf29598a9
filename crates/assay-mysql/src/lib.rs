//! MySQL and MariaDB: all that is particular to these products.

#![forbid(unsafe_code)]

mod defaults;
mod protocol;
mod questions;
mod server;
mod settings;

pub use protocol::{DRIVER, fuzz_mysql};
pub use questions::QUESTIONS;
pub use server::{MARIADB, MYSQL, Member};
pub use settings::SETTINGS;
