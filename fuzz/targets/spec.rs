//! What another program might give to `--spec`: reading it must not panic.

#![no_main]

use assay_spec::fuzz_spec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_spec(data));
