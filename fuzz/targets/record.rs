//! Files that are not records: reading them must not panic.

#![no_main]

use assay_record::fuzz_record;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_record(data));
