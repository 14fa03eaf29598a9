//! Counts and latencies of a period, and how they are added.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

use crate::add_to;
use crate::latencies::Latencies;

/// Counts and latencies of a period: a stage, or a worker's part of an interval; over all targets or for one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// By transaction type, in the order of the run's types; may be shorter, and without names, while measuring.
    pub transactions: Vec<TransactionTally>,
    /// Workload counters in successful transactions.
    #[serde(default)]
    pub counters: Vec<CounterTally>,
    /// By statement class.
    pub statements: ByClass<StatementTally>,
    /// Errors of statements and connections, one entry per origin, class and code, in this order.
    pub errors: Vec<ErrorTally>,
    /// Connections reopened after they were lost.
    pub reconnects: u64,
    /// Transactions that became due; in a closed loop, those started (0 in records of 0.1.0). due = done + rolled back
    /// + failed + stopped + dropped + unstarted + unfinished
    pub due: u64,
    /// Open loop: due, but dropped because too many were waiting.
    pub dropped: u64,
    /// Open loop and terminals: due, but not started when the stage ended; in the last stage of a partial record, at
    /// its end.
    pub unstarted: u64,
    /// Started, but not finished when the grace period was over; in the last stage of a partial record, at its end.
    pub unfinished: u64,
    /// Ended together with their session because the script wanted that, without being counted.
    #[serde(default)]
    pub stopped: u64,
    /// Open loop and terminals: how long due transactions waited for a free session.
    #[serde(default)]
    pub wait: Latencies,
    /// sent − due of every transaction: how late the generator was, without waiting for a free session.
    pub lag: Latencies,
    /// When the first and the last successful transaction ended, on the clock of the run; not in records, whose
    /// intervals have it.
    #[serde(skip)]
    pub done_ns: Option<[u64; 2]>,
}

/// One type of transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionTally {
    /// Its name; empty while measuring.
    pub name: String,
    /// Successful: what throughput counts.
    pub count: u64,
    /// Rolled back on purpose: not in `count`, but in the latencies.
    #[serde(default)]
    pub rolled_back: u64,
    /// Given up.
    pub failed: u64,
    /// Number of retries.
    pub retries: u64,
    /// Retries after the answer to a commit was lost: the server may have committed that attempt, too.
    #[serde(default)]
    pub retries_in_doubt: u64,
    /// Failed after the answer to a commit was lost: the server may have committed the last attempt.
    #[serde(default)]
    pub failed_in_doubt: u64,
    /// done − due, including retries; only of transactions that succeeded or were rolled back on purpose.
    pub response: Latencies,
    /// done − sent.
    pub service: Latencies,
}

/// What a workload counted under one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterTally {
    /// Its name; empty while measuring.
    pub name: String,
    /// Transactions that counted anything.
    pub transactions: u64,
    /// Sum over these transactions.
    pub sum: u64,
    /// Sum of the squares of each transaction's count.
    pub squares: u128,
}

/// One value per class of statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByClass<T> {
    /// Statements that return rows.
    pub read: T,
    /// Statements that change rows.
    pub write: T,
    /// BEGIN, COMMIT and everything else.
    pub other: T,
}

/// One class of statements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementTally {
    /// Answered without an error.
    pub count: u64,
    /// Answer received − request sent.
    pub service: Latencies,
}

/// One kind of error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorTally {
    /// Where it was raised: `server`, `network`, `client`, `script`.
    pub origin: String,
    /// Class of the error: `deadlock`, `serialization`, `timeout`, `constraint`, `connection`, …
    pub class: String,
    /// The server's errno or extended result code; 0 if there is none.
    pub number: u32,
    /// SQLSTATE; empty if there is none.
    pub state: String,
    /// Occurrences, whatever happened afterwards.
    pub count: u64,
    /// The message of the first occurrence.
    pub message: String,
}

/// What a statement was, as its answer showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementClass {
    /// It returned rows.
    Read,
    /// It changed rows.
    Write,
    /// Neither: BEGIN, COMMIT and everything else.
    Other,
}

impl StatementClass {
    /// All of them.
    pub const ALL: [StatementClass; 3] = [StatementClass::Read, StatementClass::Write, StatementClass::Other];
}

impl<T> Index<StatementClass> for ByClass<T> {
    type Output = T;

    fn index(&self, class: StatementClass) -> &T {
        match class {
            StatementClass::Read => &self.read,
            StatementClass::Write => &self.write,
            StatementClass::Other => &self.other,
        }
    }
}

impl<T> IndexMut<StatementClass> for ByClass<T> {
    fn index_mut(&mut self, class: StatementClass) -> &mut T {
        match class {
            StatementClass::Read => &mut self.read,
            StatementClass::Write => &mut self.write,
            StatementClass::Other => &mut self.other,
        }
    }
}

impl<T> ByClass<T> {
    /// Read, write, other.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.read, &self.write, &self.other].into_iter()
    }

    /// Something of each.
    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> ByClass<U> {
        ByClass { read: of(&self.read), write: of(&self.write), other: of(&self.other) }
    }
}

impl ByClass<u64> {
    /// Adds those of `other`.
    pub fn add(&mut self, other: &ByClass<u64>) {
        StatementClass::ALL.into_iter().for_each(|class| add_to(&mut self[class], other[class]));
    }
}

impl TransactionTally {
    /// Whether no transaction of this type has ended.
    pub fn is_empty(&self) -> bool {
        self.ended() == 0
    }

    /// How many have ended.
    pub fn ended(&self) -> u64 {
        self.count.saturating_add(self.rolled_back).saturating_add(self.failed)
    }

    fn add(&mut self, other: &TransactionTally) {
        add_to(&mut self.count, other.count);
        add_to(&mut self.rolled_back, other.rolled_back);
        add_to(&mut self.failed, other.failed);
        add_to(&mut self.retries, other.retries);
        add_to(&mut self.retries_in_doubt, other.retries_in_doubt);
        add_to(&mut self.failed_in_doubt, other.failed_in_doubt);
        self.response.add(&other.response);
        self.service.add(&other.service);
    }

    fn clear(&mut self) {
        (self.count, self.rolled_back, self.failed) = (0, 0, 0);
        (self.retries, self.retries_in_doubt, self.failed_in_doubt) = (0, 0, 0);
        self.response.clear();
        self.service.clear();
    }
}

impl CounterTally {
    fn add(&mut self, other: &CounterTally) {
        add_to(&mut self.transactions, other.transactions);
        add_to(&mut self.sum, other.sum);
        self.squares = self.squares.saturating_add(other.squares);
    }
}

impl ErrorTally {
    fn kind(&self) -> (&str, &str, u32, &str) {
        (&self.origin, &self.class, self.number, &self.state)
    }
}

impl Tally {
    /// All its distributions.
    pub fn latencies_mut(&mut self) -> impl Iterator<Item = &mut Latencies> {
        let ByClass { read, write, other } = &mut self.statements;
        let of_transactions = self.transactions.iter_mut().flat_map(|one| [&mut one.response, &mut one.service]);
        let of_statements = [read, write, other].map(|one| &mut one.service);
        of_transactions.chain(of_statements).chain([&mut self.wait, &mut self.lag])
    }

    /// Adds everything of `other`, whose types and counters have the same indices: see `arrange`.
    pub fn add(&mut self, other: &Tally) {
        for (index, theirs) in other.transactions.iter().enumerate() {
            self.transaction(index).add(theirs);
        }
        for (index, theirs) in other.counters.iter().enumerate() {
            self.counter(index).add(theirs);
        }
        for class in StatementClass::ALL {
            add_to(&mut self.statements[class].count, other.statements[class].count);
            self.statements[class].service.add(&other.statements[class].service);
        }
        for theirs in &other.errors {
            let ours = self.error(theirs.kind());
            add_to(&mut ours.count, theirs.count);
            if ours.message.is_empty() {
                ours.message.clone_from(&theirs.message);
            }
        }
        if let Some([first, last]) = other.done_ns {
            self.note_done(first, last);
        }
        add_to(&mut self.reconnects, other.reconnects);
        add_to(&mut self.due, other.due);
        add_to(&mut self.dropped, other.dropped);
        add_to(&mut self.unstarted, other.unstarted);
        add_to(&mut self.unfinished, other.unfinished);
        add_to(&mut self.stopped, other.stopped);
        self.wait.add(&other.wait);
        self.lag.add(&other.lag);
    }

    /// Clears all counts, keeps the memory of the histograms.
    pub fn clear(&mut self) {
        self.transactions.iter_mut().for_each(TransactionTally::clear);
        for counter in &mut self.counters {
            (counter.transactions, counter.sum, counter.squares) = (0, 0, 0);
        }
        for class in StatementClass::ALL {
            self.statements[class].count = 0;
            self.statements[class].service.clear();
        }
        self.errors.clear();
        self.done_ns = None;
        (self.reconnects, self.due, self.dropped) = (0, 0, 0);
        (self.unstarted, self.unfinished, self.stopped) = (0, 0, 0);
        self.wait.clear();
        self.lag.clear();
    }

    /// Successful transactions ended between these instants, the first and the last of some.
    pub fn note_done(&mut self, first_ns: u64, last_ns: u64) {
        let [earliest, latest] = self.done_ns.unwrap_or([first_ns, last_ns]);
        self.done_ns = Some([earliest.min(first_ns), latest.max(last_ns)]);
    }

    /// The tally of transaction type `index`.
    pub fn transaction(&mut self, index: usize) -> &mut TransactionTally {
        if self.transactions.len() <= index {
            self.transactions.resize_with(index + 1, TransactionTally::default);
        }
        &mut self.transactions[index]
    }

    fn counter(&mut self, index: usize) -> &mut CounterTally {
        if self.counters.len() <= index {
            self.counters.resize_with(index + 1, CounterTally::default);
        }
        &mut self.counters[index]
    }

    /// Counts what one transaction counted under counter `index`.
    pub fn counted(&mut self, index: usize, amount: u64) {
        let counter = self.counter(index);
        counter.transactions += 1;
        counter.sum = counter.sum.saturating_add(amount);
        counter.squares = counter.squares.saturating_add(u128::from(amount) * u128::from(amount));
    }

    /// Errors of this origin, class, number and state.
    pub fn error(&mut self, kind: (&str, &str, u32, &str)) -> &mut ErrorTally {
        let known = self.errors.iter().position(|known| known.kind() == kind);
        let at = known.unwrap_or_else(|| {
            let at = self.errors.partition_point(|known| known.kind() < kind);
            let (origin, class, number, state) = kind;
            let (origin, class, state) = (origin.to_owned(), class.to_owned(), state.to_owned());
            self.errors.insert(at, ErrorTally { origin, class, number, state, ..ErrorTally::default() });
            at
        });
        &mut self.errors[at]
    }

    /// The number of errors by class.
    pub fn errors_by_class(&self) -> BTreeMap<String, u64> {
        let mut classes = BTreeMap::new();
        for error in &self.errors {
            add_to(classes.entry(error.class.clone()).or_default(), error.count);
        }
        classes
    }

    /// How many transactions have ended, in whatever way, or never will.
    pub fn accounted(&self) -> u64 {
        let ended = self.transactions.iter().map(TransactionTally::ended);
        let gone = [self.stopped, self.dropped, self.unstarted, self.unfinished];
        ended.chain(gone).fold(0, u64::saturating_add)
    }

    /// Names types and counters, which have indices while measuring.
    pub fn name(&mut self, types: &[String], counters: &[String]) {
        for (index, name) in types.iter().enumerate() {
            self.transaction(index).name.clone_from(name);
        }
        for (index, name) in counters.iter().enumerate() {
            self.counter(index).name.clone_from(name);
        }
    }

    /// Puts named types and counters in this order, those that are missing too.
    #[must_use]
    pub fn arrange(mut self, types: &[String], counters: &[String]) -> Tally {
        let of_type = |name: &String| {
            let known = self.transactions.iter_mut().find(|one| one.name == *name).map(std::mem::take);
            known.unwrap_or_else(|| TransactionTally { name: name.clone(), ..TransactionTally::default() })
        };
        let transactions = types.iter().map(of_type).collect();
        let of_counter = |name: &String| {
            let known = self.counters.iter_mut().find(|one| one.name == *name).map(std::mem::take);
            known.unwrap_or_else(|| CounterTally { name: name.clone(), ..CounterTally::default() })
        };
        let counters = counters.iter().map(of_counter).collect();
        Tally { transactions, counters, ..self }
    }

    /// The tally with all distributions encoded, to be kept or written.
    pub fn at_rest(&self) -> Tally {
        let of_type = |one: &TransactionTally| TransactionTally {
            name: one.name.clone(),
            response: one.response.at_rest(),
            service: one.service.at_rest(),
            ..*one
        };
        Tally {
            transactions: self.transactions.iter().map(of_type).collect(),
            counters: self.counters.clone(),
            statements: self
                .statements
                .map(|class| StatementTally { count: class.count, service: class.service.at_rest() }),
            errors: self.errors.clone(),
            wait: self.wait.at_rest(),
            lag: self.lag.at_rest(),
            ..*self
        }
    }
}
