//! Statistics, pure: numbers in, numbers out. Nothing here formats, and nothing knows a file or a clock.

#![forbid(unsafe_code)]

mod boxes;
mod distribution;

pub use boxes::{BoxFigures, box_figures};
pub use distribution::Distribution;
