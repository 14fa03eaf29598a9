//! What a recipe, a file of cases or a journal might hold: reading it must not panic.

#![no_main]

use assay_recipe::fuzz_recipe;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_recipe(data));
