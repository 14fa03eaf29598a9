//! The bus of a fleet: how a coordinator and its agents on other machines reach each other, over NATS.
//!
//! NATS carries messages, keeps who is there (a key-value bucket) and what agents measured (an object store);
//! everything below that is the client's and the server's. Messages repeat what is so rather than what happened: one
//! that is lost while the server restarts is made good by the next. The client has a thread and a runtime of its own,
//! apart from the workers. What is measured is not known here: what to do is a JSON value, results are bytes.

#![forbid(unsafe_code)]

mod agent;
mod bus;
mod clock;
mod lead;
mod leader;
mod messages;
mod pattern;

pub use agent::{Arrived, Member, Part};
pub use bus::{Bus, BusError, Nats, Stored};
pub use clock::{ClockReading, Offsets, Ping, best};
pub use lead::{Lead, LeadEvent, Leading};
pub use leader::Leader;
pub use messages::{
    Answer, Database, File, Gate, LEASE_MIN, OpenGate, Order, Orders, PROTOCOL, Presence, Refusal, Report, ShareEnded,
    mismatch,
};
pub use pattern::Pattern;
