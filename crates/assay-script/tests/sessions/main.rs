//! Scripts against a tiny engine: what they request, what they see, how they fail.

mod additions;
mod declarations;
mod driver;
mod environment;
mod errors;
mod foreign;
mod legacy;
mod lifecycle;
mod randomness;
mod sql;
mod straight;
mod watchdog;
