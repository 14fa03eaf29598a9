//! A text of statements, however wrong: splitting it must neither panic nor stand still.

#![no_main]

use assay_sqlite::fuzz_split;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_split(data));
