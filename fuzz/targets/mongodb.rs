//! What a MongoDB server might send, however wrong, against the MongoDB machine: it must not panic.

#![no_main]

use assay_mongodb::fuzz_mongodb;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_mongodb(data));
