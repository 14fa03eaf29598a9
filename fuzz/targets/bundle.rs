//! What another program might give as a bundle: unpacking it must not panic, nor leave its folder.

#![no_main]

use assay_experiment::fuzz_bundle;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_bundle(data));
