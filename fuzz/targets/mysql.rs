//! What a MySQL server might send, however wrong, against the MySQL machine: it must not panic.

#![no_main]

use assay_mysql::fuzz_mysql;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_mysql(data));
