//! The wire protocols of PostgreSQL and MySQL, as machines.
//!
//! Pure state machines: bytes and instants go in, bytes and replies come out. Nothing opens a socket, reads a clock or
//! blocks. What they implement is the seam, in a crate of its own; `placeholders`, `templates` and `deferral` are what
//! the two have in common.

#![forbid(unsafe_code)]

mod deferral;
pub mod mysql;
pub mod placeholders;
pub mod postgres;
mod templates;
