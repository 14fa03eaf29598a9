//! Scripts against a tiny engine: what they ask for, what they see, how they fail.

mod driver;
mod lifecycle;
