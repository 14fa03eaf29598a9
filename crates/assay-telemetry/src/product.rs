//! What to ask the servers of one product: its crate has such a table.

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
}
