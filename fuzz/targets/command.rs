//! What a user might write as a statement for MongoDB: it must not panic.

#![no_main]

use assay_mongodb::fuzz_statement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_statement(data));
