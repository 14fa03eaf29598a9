//! What a file that is no record might hold: reading it must not panic.

#![no_main]

use assay_record::fuzz_record;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_record(data));
