//! Checks what transactions read and wrote against the isolation that a database promised.
//!
//! A [`History`] has the operations of committed, failed and unknown transactions. [`check`] recovers the order of the
//! versions of each key, builds the graph of dependencies between transactions, and looks for the phenomena that the
//! isolation levels forbid. Numbers and values only: no clock, file or socket, and no sentences for users.
//!
//! * A. Adya, "Weak Consistency: A Generalized Theory and Optimistic Implementations for Distributed Transactions",
//!   1999: the dependencies, the phenomena G0 to G2, the levels PL-1 to PL-3.
//! * K. Kingsbury, P. Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020: how the
//!   order of versions follows from reads of lists, and cycles with the order of sessions and of real time.
//! * A. Cerone, A. Gotsman, "Analysing Snapshot Isolation", PODC 2016: a history is snapshot isolated if every cycle of
//!   its dependencies has two adjacent anti-dependencies.

#![forbid(unsafe_code)]

mod check;
mod cycles;
mod edn;
mod facts;
mod findings;
mod graph;
mod hash;
mod history;
mod level;
mod local;
mod phenomenon;
mod timing;
mod verdict;
mod versions;

pub use check::check;
pub use history::{History, Operation, Operations, Outcome, STAMP_MAX, STAMP_SHIFT, Transaction, Version, log};
pub use level::IsolationLevel;
pub use phenomenon::{Form, Phenomenon};
pub use verdict::{Anomaly, Example, ExampleLink, ExampleStep, IsolationVerdict, Relation};
