//! Statements compared by `assay sql`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Timed statements, and how they were timed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cases {
    /// The case by which the others are divided; `None`: the fastest.
    #[serde(default)]
    pub base: Option<String>,
    /// Executions of each case before the first that was timed.
    pub warmup: u32,
    /// Preparation before every execution; `None`: none.
    #[serde(default)]
    pub cold: Option<Cold>,
    /// Scope of the cases' counters: `session`, or `database`, which includes other sessions; `None`: not read.
    #[serde(default)]
    pub counters_of: Option<String>,
    /// What `assay olap` did; `None`: they were compared by `assay sql`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<Suite>,
    /// In the order given.
    pub cases: Vec<Case>,
}

/// Queries of an analytical workload, each executed several times in a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    /// Whether the order of the queries was drawn from the seed.
    pub random_order: bool,
    /// Executions of each query.
    pub runs: u32,
    /// Time limit of an execution.
    #[serde(default)]
    pub timeout_ns: Option<u64>,
    /// Rows of each table, counted before the first query.
    #[serde(default)]
    pub tables: BTreeMap<String, u64>,
    /// Scale factor of the data, if the workload has declared one and all its queries were executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// The queries once more, in parallel: each stream executed all of them on a connection of its own. Empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<QueryStream>,
}

/// All queries one after the other on one connection, while other streams did the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryStream {
    /// Start of its first query, counted from the start of the first stream.
    pub start_ns: u64,
    /// End of its last query, counted from there, too.
    pub end_ns: u64,
    /// In the order of their execution; fewer than all if the stream was given up.
    pub queries: Vec<StreamQuery>,
}

/// A query of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamQuery {
    /// Its name.
    pub name: String,
    /// From sending the statement to its last row, or to its failure.
    pub elapsed_ns: u64,
    /// Why it has no result; `None`: it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether it took longer than the time limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
}

/// Preparation before every execution of a cold case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cold {
    /// The server was restarted; the machine's page cache stayed warm.
    Restarted,
    /// The server was restarted and the machine's page cache emptied.
    RestartedCachesDropped,
}

/// One named statement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Its name, which no other case has.
    pub name: String,
    /// The timed statement.
    pub sql: String,
    /// Statements before every execution, not timed.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Statements after every execution, not timed.
    #[serde(default)]
    pub teardown: Vec<String>,
    /// Cases with the same value must return the same rows.
    #[serde(default)]
    pub result: Option<String>,
    /// Successful timed executions, in order.
    pub executions: Vec<Execution>,
    /// Rows of the last execution; `None`: it never succeeded.
    #[serde(default)]
    pub rows: Option<u64>,
    /// Hash of the rows of the last execution, in any order: 16 hexadecimal digits; of `assay olap` two hashes, one of
    /// which is the same if numbers differ a little.
    #[serde(default)]
    pub digest: Option<String>,
    /// Whether two executions returned different rows.
    #[serde(default)]
    pub result_changed: bool,
    /// Whether the result was so large that its rows were hashed while they arrived: its times include that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub large_result: bool,
    /// The plans seen, in the order of their first appearance; changed estimates alone are not a changed plan.
    #[serde(default)]
    pub plans: Vec<QueryPlan>,
    /// How much one execution increased the server's counters, without the increase by reading them; zeros are omitted.
    #[serde(default)]
    pub counters: BTreeMap<String, i64>,
    /// Whether another server executes all of it, by foreign tables; `None`: it has none, or this was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed_down: Option<bool>,
    /// Why it was given up: the server's message.
    #[serde(default)]
    pub failure: Option<String>,
    /// Whether an execution took longer than the time limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Rows of the first execution, to be compared with those of other databases; NULL is null. Empty: none, or too
    /// large to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<Vec<Option<String>>>,
}

/// Whether two digests are of the same rows. Those of `assay olap` are two hashes, with numbers cut at different
/// digits: one of them must be the same.
pub fn is_same_digest(one: &str, other: &str) -> bool {
    match (one.split_at_checked(HASH_DIGITS), other.split_at_checked(HASH_DIGITS)) {
        (Some((a, b)), Some((c, d))) if !b.is_empty() && !d.is_empty() => a == c || b == d,
        _ => one == other,
    }
}

const HASH_DIGITS: usize = 16;

/// One timed execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// From 1. Every round runs each case once, in an order drawn from the seed.
    pub round: u32,
    /// From sending the statement to its last row.
    pub elapsed_ns: u64,
    /// The plan before it ran, as an index into the case's plans; `None`: not requested.
    #[serde(default)]
    pub plan: Option<u32>,
    /// Rows of tables that the server read; `None`: it does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_rows: Option<u64>,
    /// Their bytes before compression, without columns that were not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
}

/// An execution plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryPlan {
    /// As text.
    pub text: String,
    /// As JSON in the server's own form; `None`: the server has none.
    #[serde(default)]
    pub json: Option<String>,
    /// The text without estimates: plans that share it are the same. Empty in records of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shape: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_the_same_if_one_of_their_hashes_is() {
        let [a, b, c] = ["a", "b", "c"].map(|digit| digit.repeat(HASH_DIGITS));
        let is_same = |one: [&String; 2], other: [&String; 2]| {
            is_same_digest(&one.map(String::as_str).concat(), &other.map(String::as_str).concat())
        };
        assert!(is_same([&a, &b], [&a, &c]) && is_same([&a, &b], [&c, &b]));
        assert!(!is_same([&a, &b], [&b, &a]) && !is_same([&a, &b], [&c, &c]));
        // Those of `assay sql` are one hash.
        assert!(is_same_digest(&a, &a) && !is_same_digest(&a, &b) && !is_same_digest(&a, &format!("{a}{b}")));
    }
}
