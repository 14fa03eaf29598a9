//! What a server lists at this moment: its sessions, and the sums of each statement. For a person who watches; records
//! do not keep it.

use crate::question::Condition;

/// Questions about the present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveQuestions {
    /// Returns id, user, database, client, state, wait, seconds in the state, statement. Empty: not supported.
    pub sessions_sql: &'static str,
    /// Returns id, executions, microseconds, rows, pages read from outside the server's memory (or NULL), text; the
    /// most expensive first, at most `STATEMENTS_MAX`. Empty: not supported.
    pub statements_sql: &'static str,
    /// Asked before: statements are listed only if the answer is `YES`.
    pub statements_condition: &'static str,
    /// The reason to report if they are not listed.
    pub no_statements: &'static str,
    /// Where the server keeps its statements if it does not count them. It is not read while somebody watches: such a
    /// log can be very long.
    pub log: Option<StatementLog>,
    /// Ends a session; `{}` is its id. Empty: not supported.
    pub end_sql: &'static str,
}

/// A table with a row for each statement that a server has executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementLog {
    /// Answers the server's time, which replaces `{since}` in `sql`.
    pub now_sql: &'static str,
    /// Makes the server write what it has not written yet.
    pub flush_sql: &'static str,
    /// Whether it is there, with all columns that `sql` needs.
    pub condition: Condition,
    /// Returns what `LiveQuestions::statements_sql` does, then rows read, bytes read, the most memory of one execution,
    /// and the number of failed executions, which are not among the others.
    pub sql: &'static str,
}

/// Statements listed at once.
pub const STATEMENTS_MAX: usize = 500;
