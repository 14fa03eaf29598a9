//! What to ask the servers of one product: its crate has such a table.

use crate::live::LiveQuestions;
use crate::question::ServerQuestions;
use crate::statement::StatementQuestions;

/// The questions for a product, given its name and version as a server reports them at login.
#[derive(Clone, Copy, Debug)]
pub struct Questions {
    /// Names of products that understand them.
    pub products: &'static [&'static str],
    /// About the server.
    pub server: fn(product: &str, version: &str) -> ServerQuestions,
    /// About a single statement.
    pub statement: fn(product: &str, version: &str) -> StatementQuestions,
    /// About what is there at this moment.
    pub live: fn(product: &str, version: &str) -> LiveQuestions,
    /// About the user's rights and limits, for a test of a connection.
    pub checkup: Checkup,
}

/// What a test of a connection asks. Questions that the server refuses are skipped.
#[derive(Clone, Copy, Debug)]
pub struct Checkup {
    /// The shortest query, to time round trips.
    pub ping: &'static str,
    /// Limits that a run may meet: what they are, and a query with the value in the last column of its first row.
    pub limits: &'static [(&'static str, &'static str)],
    /// Rights without which telemetry is incomplete.
    pub rights: &'static [Right],
    /// Returns the user's name, as it is written in `GRANT`.
    pub user_sql: &'static str,
}

impl Checkup {
    /// For a database without users.
    pub const NONE: Checkup = Checkup { ping: "SELECT 1", limits: &[], rights: &[], user_sql: "" };
}

/// A right that telemetry needs.
#[derive(Clone, Copy, Debug)]
pub struct Right {
    /// Its name.
    pub name: &'static str,
    /// What is missing without it.
    pub shows: &'static str,
    /// Returns 1 if the user has it. Empty: it is missing if the server names it when it refuses a question.
    pub sql: &'static str,
    /// The statement that grants it; `{}` is the user.
    pub grant: &'static str,
}
