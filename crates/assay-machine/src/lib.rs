//! Measures the machine itself: processor, memory, scheduler, locks, files.
//!
//! Five tests, each a module: what one event does, and its options as typed values. `run` runs any of them with threads
//! of the operating system, under limits, at a rate if wanted, and reports the counts. An event does the same work as
//! in sysbench's test of the same name, so that numbers can be compared. It knows no database, no Lua and no option
//! names, and prints nothing.

mod barrier;
mod fault;
mod measure;
mod random;
mod run;

pub mod cpu;
pub mod fileio;
pub mod memory;
pub mod mutex;
pub mod threads;

pub use fault::MachineFault;
pub use measure::{BUCKETS, Counts, EventLatencies, Snapshot, WorkerShare, bucket_value};
pub use run::{MachineOutcome, MachinePlan, MachineTest, TestLimit, TestMoment, TestThread, run};
