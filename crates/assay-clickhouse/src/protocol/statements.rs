//! Prepared statements: texts that are kept here, into which parameters are written. Both protocols execute only texts.

use std::collections::HashMap;
use std::sync::Arc;

use assay_seam::{Class, Effect, Exchange, InFlight, Operation, Progress, Reply, Rows, StatementError, StatementId};
use assay_wire::placeholders::{Dialect, Template};
use assay_wire::templates::Templates;

/// Texts, quoted names and comments are close enough to MySQL's.
pub(super) const DIALECT: Dialect = Dialect::MySql { backslash_escapes: true };

/// The statements that a connection has prepared.
#[derive(Debug, Default)]
pub(super) struct Statements {
    prepared: HashMap<StatementId, Arc<Template>>,
    /// Memory for a statement with its parameters.
    text: Vec<u8>,
}

/// What a connection does in the way of its protocol. No operation is in flight.
pub(super) trait Session {
    /// Its statements, and the texts that all connections share.
    fn statements(&mut self) -> (&mut Statements, &Templates);

    /// Sends a text. `labels`: rows come with the names of their columns.
    fn query(&mut self, sql: &[u8], labels: bool, exchange: &mut Exchange<'_>) -> Progress;

    /// Appends rows to a table.
    fn load(&mut self, table: &[u8], columns: &[u8], rows: &Rows, exchange: &mut Exchange<'_>) -> Progress;
}

/// Starts an operation.
pub(super) fn execute(session: &mut impl Session, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress {
    let (statements, templates) = session.statements();
    match *operation {
        Operation::Query { text, .. } => return session.query(text, true, exchange),
        Operation::Load { table, columns, rows, .. } => return session.load(table, columns, rows, exchange),
        Operation::Execute { statement, parameters, .. } => {
            let Some(template) = statements.prepared.get(&statement) else {
                let message = format!("statement {} was never prepared", statement.0);
                return Progress::Reply(Reply::failed(StatementError::client(Class::Other, message)));
            };
            let mut text = std::mem::take(&mut statements.text);
            text.clear();
            let progress = match template.write_substituted(parameters, DIALECT, &mut text) {
                Ok(()) => session.query(&text, false, exchange),
                Err(error) => Progress::Reply(Reply::failed(error)),
            };
            session.statements().0.text = text;
            return progress;
        }
        Operation::Prepare { statement, text } => {
            statements.prepared.insert(statement, templates.get(text, DIALECT));
        }
        Operation::Close { statement } => {
            statements.prepared.remove(&statement);
        }
        // There are no transactions to undo.
        Operation::RollBack => {}
    }
    Progress::Reply(Reply::default())
}

impl Statements {
    /// What the operation in flight does.
    pub(super) fn effect(&self, in_flight: &InFlight) -> Effect {
        in_flight.effect(|statement| self.prepared.get(&statement).map_or(Effect::Other, |it| Effect::of(it.sql())))
    }
}
