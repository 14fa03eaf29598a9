//! Programs in front of servers, without data of their own: how the lab configures and runs them.

#![forbid(unsafe_code)]

mod haproxy;
mod pgbouncer;

pub use haproxy::HaProxy;
pub use pgbouncer::PgBouncer;
