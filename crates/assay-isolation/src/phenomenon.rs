//! Names of what can be wrong with a history.

use serde::{Deserialize, Serialize};

/// What is wrong, from the worst to the mildest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phenomenon {
    /// A value was read that nobody wrote.
    GarbageRead,
    /// A list contains a value twice.
    DuplicateElement,
    /// A transaction did not see its own write.
    Internal,
    /// An acknowledged write is not in a version that was made after it.
    LostWrite,
    /// G0: writes of transactions are interleaved.
    DirtyWrite,
    /// G1a: the write of a failed transaction was read.
    AbortedRead,
    /// G1b: a write was read that its transaction had overwritten.
    IntermediateRead,
    /// Two reads contradict each other about the order of writes.
    IncompatibleOrder,
    /// G1c: transactions depend on each other's writes.
    CircularInformation,
    /// P4: a transaction overwrote a version that it had not read, after reading an older one.
    LostUpdate,
    /// G-single: a transaction saw a part of another one's effects. Its cycle has one anti-dependency.
    ReadSkew,
    /// A cycle with several anti-dependencies, none of them adjacent.
    LongFork,
    /// A sum differs that no transaction changes.
    WrongTotal,
    /// G2-item: transactions did not see each other's writes. Its cycle has two adjacent anti-dependencies.
    WriteSkew,
    /// A session read an older version than before.
    NonMonotonicRead,
    /// A session did not read its own earlier write.
    UnreadOwnWrite,
    /// A session's later write is before an earlier one.
    NonMonotonicWrite,
    /// A session's write is before a version that it had read.
    WriteBeforeRead,
    /// A read did not see a write that was acknowledged before the read's transaction began.
    StaleRead,
}

/// What the cycle of a phenomenon needs besides dependencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Nothing.
    #[default]
    Plain,
    /// The order of a session's transactions.
    Session,
    /// The order of transactions in real time.
    RealTime,
}
