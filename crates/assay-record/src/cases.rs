//! Statements that were timed one by one: `assay sql`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What was timed, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cases {
    /// The case that the others are divided by; `None`: the fastest.
    #[serde(default)]
    pub base: Option<String>,
    /// Executions of each case before the first that was timed.
    pub warmup: u32,
    /// What was done before every execution; `None`: nothing.
    #[serde(default)]
    pub cold: Option<Cold>,
    /// Whose counters those of the cases are: `session`, or `database`, which counts other sessions too; `None`: not
    /// read.
    #[serde(default)]
    pub counters_of: Option<String>,
    /// In the order in which they were named.
    pub cases: Vec<Case>,
}

/// What was done before every execution of a cold case.
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
    /// What was timed.
    pub sql: String,
    /// Statements before every execution, not timed.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Statements after every execution, not timed.
    #[serde(default)]
    pub teardown: Vec<String>,
    /// Cases with the same name here are to give the same rows.
    #[serde(default)]
    pub result: Option<String>,
    /// Those that were timed and succeeded, in the order in which they ran.
    pub executions: Vec<Execution>,
    /// Rows of the last execution; `None`: it never succeeded.
    #[serde(default)]
    pub rows: Option<u64>,
    /// Hash of the rows of the last execution, whatever their order: 16 hexadecimal digits.
    #[serde(default)]
    pub digest: Option<String>,
    /// Two executions gave different rows.
    #[serde(default)]
    pub result_changed: bool,
    /// The plans seen, in the order in which they appeared; numbers that are estimates do not make a plan another one.
    #[serde(default)]
    pub plans: Vec<QueryPlan>,
    /// By how much one execution raised the server's counters, without those that reading them raises; zeros are left
    /// out.
    #[serde(default)]
    pub counters: BTreeMap<String, i64>,
    /// Why it was given up, in the server's words.
    #[serde(default)]
    pub failure: Option<String>,
}

/// One timed execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// From 1. Every round runs each case once, in an order drawn from the seed.
    pub round: u32,
    /// From sending the statement to its last row.
    pub elapsed_ns: u64,
    /// Which of the case's plans it had before it ran, from 0; `None`: not asked for.
    #[serde(default)]
    pub plan: Option<u32>,
}

/// How a server would run a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryPlan {
    /// As the server shows it to people.
    pub text: String,
    /// As the server shows it to programs, JSON in its own shape; `None`: it has no such form.
    #[serde(default)]
    pub json: Option<String>,
}
