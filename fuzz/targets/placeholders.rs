//! A statement with placeholders, however wrong: finding them must not panic.

#![no_main]

use assay_wire::fuzz_placeholders;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_placeholders(data));
