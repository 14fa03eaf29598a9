//! ClickHouse: all that is particular to this product.
//!
//! The driver speaks the native protocol (TCP, port 9000) and HTTP (port 8123). The first is the one to measure with: a
//! connection is kept however long it is idle, and a query ends with its connection. The second goes through proxies
//! and is what many applications use. Rows are loaded as blocks of columns by both.

#![forbid(unsafe_code)]

mod protocol;
mod questions;
mod server;

pub use protocol::{DRIVER, fuzz_clickhouse};
pub use questions::QUESTIONS;
pub use server::ClickHouse;

use assay_telemetry::SettingFacts;

/// How to read its settings: those of the session, where a profile or a session statement may have changed them.
pub const SETTINGS: SettingFacts = SettingFacts {
    queries: &["SELECT name, value, if(changed, 'changed', NULL) AS assay_telemetry FROM system.settings"],
    ..SettingFacts::NONE
};
