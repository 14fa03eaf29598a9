//! What a ClickHouse server might send, however wrong, against the ClickHouse machine: it must not panic.

#![no_main]

use assay_clickhouse::fuzz_clickhouse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_clickhouse(data));
