//! Histories written by hand.

use assay_isolation::{Form, History, IsolationLevel, IsolationVerdict, Outcome, Phenomenon, Version, check, log};

/// An operation of a history under test.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Append(u32, u64),
    List(u32, Vec<u64>),
    /// Key, value, number and value of the version before it.
    Write(u32, u64, u64, u64),
    /// Key, number, value.
    Read(u32, u64, u64),
    Total(i64, i64),
    /// Key of a counter, and its value before one is added.
    Count(u32, u64),
    /// Key of a counter, and its value.
    Counter(u32, u64),
}

pub(crate) use Op::{Append, Count, Counter, List, Read, Total, Write};

/// A history under construction.
#[derive(Default)]
pub(crate) struct Written(pub(crate) History);

impl Written {
    /// A transaction of a session from one instant to another.
    pub(crate) fn add(&mut self, session: u32, outcome: Outcome, instants: (u64, u64), operations: &[Op]) {
        let mut words = Vec::new();
        for operation in operations {
            match operation {
                Append(key, value) => log::append(&mut words, *key, *value),
                List(key, values) => log::read_list(&mut words, *key, values.iter().copied()),
                Write(key, value, number, before) => {
                    log::write(&mut words, *key, *value);
                    log::replaced(&mut words, Version { number: *number, value: *before });
                }
                Read(key, number, value) => log::read(&mut words, *key, Version { number: *number, value: *value }),
                Total(found, expected) => log::total(&mut words, *found, *expected),
                Count(key, before) => {
                    // Values of a key are unique.
                    log::write(&mut words, *key, instants.0 * 100 + u64::from(session));
                    log::replaced(&mut words, Version::counted(*before));
                }
                Counter(key, value) => log::read(&mut words, *key, Version::counted(*value)),
            }
        }
        self.0.push(session, outcome, instants, &words);
    }

    pub(crate) fn ok(mut self, session: u32, instants: (u64, u64), operations: &[Op]) -> Written {
        self.add(session, Outcome::Ok, instants, operations);
        self
    }

    pub(crate) fn failed(mut self, session: u32, instants: (u64, u64), operations: &[Op]) -> Written {
        self.add(session, Outcome::Failed, instants, operations);
        self
    }

    pub(crate) fn unknown(mut self, session: u32, begin: u64, operations: &[Op]) -> Written {
        self.add(session, Outcome::Unknown, (begin, u64::MAX), operations);
        self
    }

    pub(crate) fn check(&self) -> IsolationVerdict {
        check(&self.0, 0)
    }
}

/// Phenomena with their forms, and the levels that hold.
pub(crate) fn summary(verdict: &IsolationVerdict) -> String {
    let mut text = String::new();
    for anomaly in &verdict.anomalies {
        let form = if anomaly.form == Form::Plain { String::new() } else { format!(" ({:?})", anomaly.form) };
        text.push_str(&format!("{:?}{form} × {}\n", anomaly.phenomenon, anomaly.count));
    }
    let holding: Vec<&str> =
        IsolationLevel::ALL.into_iter().filter(|level| verdict.holds(*level)).map(IsolationLevel::name).collect();
    text + "holds: " + &holding.join(", ")
}

pub(crate) fn phenomena(verdict: &IsolationVerdict) -> Vec<Phenomenon> {
    verdict.anomalies.iter().map(|anomaly| anomaly.phenomenon).collect()
}
