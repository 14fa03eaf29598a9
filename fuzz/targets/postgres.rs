//! What a PostgreSQL server might send, however wrong, against the PostgreSQL machine: it must not panic.

#![no_main]

use assay_postgres::fuzz_postgres;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_postgres(data));
