//! Histories: a log of words in memory and in files, and a view of its transactions.
//!
//! A transaction is a head of three words, followed by its operations:
//!
//! | words | contents |
//! | --- | --- |
//! | head | outcome (2 bits), words of operations (30), session (32); begin; end |
//! | append | kind 1 (8 bits), length 1 (24), key (32); value |
//! | read of a list | kind 2, length n, key; n values |
//! | write, answer unknown | kind 3, length 1, key; value |
//! | write | kind 3, length 3, key; value; number and value of the version before it |
//! | read of a register | kind 4, length 2, key; number and value of the version |
//! | total | kind 5, length 2, 0; found, expected |
//!
//! An append takes 16 bytes, a write of a register 32, a read of one 24, and a head 24. Instants are nanoseconds of one
//! clock; an end of `u64::MAX` means that nobody saw the transaction end.

/// Transactions of all sessions. Those of a session are in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    words: Vec<u64>,
    /// Index of each transaction's head.
    heads: Vec<usize>,
    /// Some transactions were not recorded: values that nobody wrote may be theirs.
    is_partial: bool,
}

/// How a transaction ended, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server acknowledged its commit.
    Ok,
    /// It was rolled back, or its commit was never requested.
    Failed,
    /// The answer to its commit was lost.
    Unknown,
}

/// A version of a register: how many writes came before it, including its own, and the value written. Both are 0 before
/// the first write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Counted from 1.
    pub number: u64,
    /// Unique among all values written to the key.
    pub value: u64,
}

impl Version {
    /// A counter that had this value: each write adds one, and the number of a version is all that is stored of it.
    pub fn counted(number: u64) -> Version {
        Version { number, value: COUNTED }
    }

    /// Whether it is the version of a counter.
    pub fn is_counted(self) -> bool {
        self.value == COUNTED
    }
}

/// Stands for the value where a version has only a number.
const COUNTED: u64 = u64::MAX;

/// Bits of a value below the stamp of its run.
pub const STAMP_SHIFT: u32 = 32;
/// Stamps are from 1 to this, so that values stay exact in a double.
pub const STAMP_MAX: u64 = 0xfff;

/// The stamp of the run that wrote a value; `None`: the value has none, or is that of a counter.
pub(crate) fn stamp_of(value: u64) -> Option<u64> {
    (value != COUNTED && value >> STAMP_SHIFT != 0).then_some(value >> STAMP_SHIFT)
}

/// What a transaction did to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Appended a value to a list. Values are unique per key.
    Append {
        /// The list.
        key: u32,
        /// The new element.
        value: u64,
    },
    /// Read a list.
    ReadList {
        /// The list.
        key: u32,
        /// Its elements.
        values: &'a [u64],
    },
    /// Wrote a register.
    Write {
        /// The register.
        key: u32,
        /// The new value.
        value: u64,
        /// The version before it; `None` if the answer was lost.
        replaced: Option<Version>,
    },
    /// Read a register.
    Read {
        /// The register.
        key: u32,
        /// What was found.
        version: Version,
    },
    /// Read a sum that no transaction changes.
    Total {
        /// The sum of what was read.
        found: i64,
        /// The sum at the beginning.
        expected: i64,
    },
}

/// A transaction of a history.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'a> {
    /// Its session.
    pub session: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// When it was started.
    pub begin: u64,
    /// When its end was known.
    pub end: u64,
    body: &'a [u64],
}

impl<'a> Transaction<'a> {
    /// In the order in which they were done.
    pub fn operations(&self) -> Operations<'a> {
        Operations { words: self.body }
    }
}

/// Operations of a transaction.
#[derive(Clone, Debug)]
pub struct Operations<'a> {
    words: &'a [u64],
}

const APPEND: u64 = 1;
const READ_LIST: u64 = 2;
const WRITE: u64 = 3;
const READ: u64 = 4;
const TOTAL: u64 = 5;

impl<'a> Iterator for Operations<'a> {
    type Item = Operation<'a>;

    fn next(&mut self) -> Option<Operation<'a>> {
        let (head, rest) = self.words.split_first()?;
        let (kind, length, key) = (head >> 56, (head >> 32 & 0xff_ffff) as usize, *head as u32);
        let (values, rest) = rest.split_at_checked(length)?;
        self.words = rest;
        Some(match (kind, values) {
            (APPEND, [value]) => Operation::Append { key, value: *value },
            (READ_LIST, values) => Operation::ReadList { key, values },
            (WRITE, [value]) => Operation::Write { key, value: *value, replaced: None },
            (WRITE, [value, number, before]) => {
                let replaced = Some(Version { number: *number, value: *before });
                Operation::Write { key, value: *value, replaced }
            }
            (READ, [number, value]) => Operation::Read { key, version: Version { number: *number, value: *value } },
            (TOTAL, [found, expected]) => Operation::Total { found: *found as i64, expected: *expected as i64 },
            _ => return None,
        })
    }
}

/// Writing the log of a history. Nothing here allocates once the log's memory has grown.
pub mod log {
    use super::{APPEND, Outcome, READ, READ_LIST, TOTAL, Version, WRITE};

    /// Longest list that fits.
    pub const LENGTH_MAX: usize = 0xff_ffff;

    fn head(kind: u64, length: usize, key: u32) -> u64 {
        kind << 56 | (length as u64) << 32 | u64::from(key)
    }

    /// Notes that a value is about to be appended.
    pub fn append(log: &mut Vec<u64>, key: u32, value: u64) {
        log.extend([head(APPEND, 1, key), value]);
    }

    /// Notes that a list was read.
    pub fn read_list(log: &mut Vec<u64>, key: u32, values: impl Iterator<Item = u64>) {
        let at = log.len();
        log.push(0);
        log.extend(values.take(LENGTH_MAX));
        log[at] = head(READ_LIST, log.len() - at - 1, key);
    }

    /// Notes that a value is about to be written.
    pub fn write(log: &mut Vec<u64>, key: u32, value: u64) {
        log.extend([head(WRITE, 1, key), value]);
    }

    /// Completes the write that was noted last: the version before it.
    pub fn replaced(log: &mut Vec<u64>, version: Version) {
        let Some(at) = log.len().checked_sub(2).filter(|at| log[*at] >> 32 == head(WRITE, 1, 0) >> 32) else { return };
        log[at] = head(WRITE, 3, log[at] as u32);
        log.extend([version.number, version.value]);
    }

    /// Notes that a register was read.
    pub fn read(log: &mut Vec<u64>, key: u32, version: Version) {
        log.extend([head(READ, 2, key), version.number, version.value]);
    }

    /// Notes a sum.
    pub fn total(log: &mut Vec<u64>, found: i64, expected: i64) {
        log.extend([head(TOTAL, 2, 0), found as u64, expected as u64]);
    }

    /// Adds `by`, which may be negative, to all instants of the log of a history, except to ends that nobody saw.
    pub fn advance(log: &mut [u64], by: i128) {
        let moved = |instant: u64| (i128::from(instant) + by).clamp(0, i128::from(u64::MAX - 1)) as u64;
        let mut rest = log;
        while let [head, begin, end, after @ ..] = rest {
            *begin = moved(*begin);
            if *end != u64::MAX {
                *end = moved(*end);
            }
            let length = ((*head >> 32 & 0x3fff_ffff) as usize).min(after.len());
            rest = &mut after[length..];
        }
    }

    /// Adds a transaction with its operations to the log of a history.
    pub fn transaction(log: &mut Vec<u64>, session: u32, outcome: Outcome, begin: u64, end: u64, operations: &[u64]) {
        let length = operations.len() as u64;
        debug_assert!(length < 1 << 30, "the length has 30 bits");
        log.extend([(outcome as u64) << 62 | (length & 0x3fff_ffff) << 32 | u64::from(session), begin, end]);
        log.extend(operations);
    }
}

impl History {
    /// An empty history.
    pub fn new() -> History {
        History::default()
    }

    /// Adds the transactions of a log; false if it is cut off or damaged, and then only those before that.
    pub fn extend(&mut self, log: &[u64]) -> bool {
        let mut rest = log;
        while let [head, _, _, after @ ..] = rest {
            let length = (head >> 32 & 0x3fff_ffff) as usize;
            if after.len() < length || head >> 62 > 2 {
                return false;
            }
            self.heads.push(self.words.len());
            let (transaction, after) = rest.split_at(3 + length);
            self.words.extend(transaction);
            rest = after;
        }
        rest.is_empty()
    }

    /// Some transactions are missing, because a limit was reached.
    pub fn set_partial(&mut self) {
        self.is_partial = true;
    }

    /// Whether some transactions are missing.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Adds a transaction.
    pub fn push(&mut self, session: u32, outcome: Outcome, instants: (u64, u64), operations: &[u64]) {
        self.heads.push(self.words.len());
        log::transaction(&mut self.words, session, outcome, instants.0, instants.1, operations);
    }

    /// Number of transactions.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// The log.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Transaction `index`; panics if there is none.
    pub fn transaction(&self, index: usize) -> Transaction<'_> {
        let at = self.heads[index];
        let head = self.words[at];
        let length = (head >> 32 & 0x3fff_ffff) as usize;
        Transaction {
            session: head as u32,
            outcome: match head >> 62 {
                0 => Outcome::Ok,
                1 => Outcome::Failed,
                _ => Outcome::Unknown,
            },
            begin: self.words[at + 1],
            end: self.words[at + 2],
            body: &self.words[at + 3..at + 3 + length],
        }
    }

    /// All transactions.
    pub fn transactions(&self) -> impl ExactSizeIterator<Item = Transaction<'_>> {
        (0..self.heads.len()).map(|index| self.transaction(index))
    }
}
