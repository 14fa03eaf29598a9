//! What a server lists at this moment: its sessions, and the sums of each statement. For a person who watches; records
//! do not keep it.

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
    /// Ends a session; `{}` is its id. Empty: not supported.
    pub end_sql: &'static str,
}

/// Statements listed at once.
pub const STATEMENTS_MAX: usize = 500;
