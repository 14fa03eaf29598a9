//! Statistics, pure: numbers in, numbers out. Nothing here formats, and nothing knows a file or a clock.

#![forbid(unsafe_code)]

mod distribution;

pub use distribution::Distribution;
