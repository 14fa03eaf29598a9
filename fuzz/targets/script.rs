//! What a script for pgbench might hold: translating it must not panic.

#![no_main]

use assay_pgbench::fuzz_script;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_script(data));
