//! Whether the checker finds what is wrong, and nothing else.

mod examples;
mod planted;
mod simulated;
mod simulator;
mod written;
