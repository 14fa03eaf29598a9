//! Operations of the script, as messages to the server.

use crate::protocol::message;
use assay_seam::{Class, Effect, Rows, StatementError, StatementId, Value};
use assay_wire::placeholders;

use super::{Flight, Form, Job, PostgresConnection, Sent, Statement, write_parse_unnamed};

impl PostgresConnection {
    pub(super) fn query(&mut self, job: Job, sql: &[u8], out: &mut Vec<u8>) -> Result<Sent, StatementError> {
        check_text(sql)?;
        message::write_query(sql, out);
        self.flight = Flight { job, ..Flight::default() };
        Ok(Sent::Messages)
    }

    pub(super) fn prepare(&mut self, id: StatementId, sql: &[u8], out: &mut Vec<u8>) -> Result<Sent, StatementError> {
        check_text(sql)?;
        let template = self.server.templates.get(sql, self.dialect());
        let connect = &self.server.connect;
        let on_server = connect.prepared && !connect.unnamed;
        let form = match on_server {
            false if connect.prepared => Form::Unnamed,
            true => Form::Server { prepared: false, parameters: 0, columns: None },
            false => Form::Text,
        };
        let statement = Statement { id: id.0, template, effect: Effect::of(sql), form };
        if on_server {
            self.write_preparation(&statement, out);
            message::write_sync(out);
            let job = Job::Prepare(id);
            self.flight = Flight { job, extended: true, describing: true, ..Flight::default() };
        }
        match self.find(id) {
            Ok(at) => self.statements[at] = statement,
            Err(at) => {
                // Doubling would leave half of it empty, in each of thousands of connections.
                if self.statements.len() == self.statements.capacity() {
                    self.statements.reserve_exact((self.statements.len() / 4).max(4));
                }
                self.statements.insert(at, statement);
            }
        }
        Ok(if on_server { Sent::Messages } else { Sent::Nothing })
    }

    pub(super) fn execute_prepared(
        &mut self,
        id: StatementId,
        parameters: &[Value<'_>],
        out: &mut Vec<u8>,
    ) -> Result<Sent, StatementError> {
        let Ok(at) = self.find(id) else {
            return Err(StatementError::client(Class::Missing, format!("there is no prepared statement {}", id.0)));
        };
        let statement = &self.statements[at];
        let mut flight = Flight { job: Job::Execute(id), ..Flight::default() };
        match statement.form {
            Form::Text if self.deferral.waiting > 0 => {
                let message = "a text that the server cannot prepare was to be sent with deferred statements";
                let mut error = StatementError::client(Class::Other, message);
                error.hint = Some("run it with `con:query()`, which sends those first".into());
                return Err(error);
            }
            Form::Text => {
                let mut done = Ok(());
                message::write(b'Q', out, |out| {
                    done = statement.template.write_substituted(parameters, self.dialect(), out);
                    out.push(0);
                });
                done?;
            }
            Form::Unnamed => {
                self.deferral.send(out);
                write_parse_unnamed(&statement.template, out);
                message::write_bind(b"", parameters, out);
                message::write(b'D', out, |out| out.extend_from_slice(b"P\0"));
                message::write_execute(out);
                message::write_sync(out);
                flight.extended = true;
            }
            Form::Server { prepared, parameters: count, .. } => {
                if parameters.len() != usize::from(count) {
                    return Err(placeholders::wrong_count(count.into(), parameters.len()));
                }
                // No Sync after them: if one fails, the server skips the rest, including this one.
                self.deferral.send(out);
                if !prepared {
                    self.write_preparation(&self.statements[at], out);
                    flight.describing = true;
                }
                message::write_bind_and_execute(&self.name(id.0), parameters, out);
                message::write_sync(out);
                flight.extended = true;
            }
        }
        self.flight = flight;
        Ok(Sent::Messages)
    }

    pub(super) fn close_statement(&mut self, id: StatementId, out: &mut Vec<u8>) -> Sent {
        let Ok(at) = self.find(id) else { return Sent::Nothing };
        match self.statements.remove(at).form {
            Form::Server { prepared: true, .. } => {
                self.write_close(id.0, out);
                message::write_sync(out);
                self.flight = Flight { job: Job::Close, extended: true, ..Flight::default() };
                Sent::Messages
            }
            _ => Sent::Nothing,
        }
    }

    /// COPY, and with the first large batch a query for the columns' types.
    pub(super) fn load(
        &mut self,
        (table, columns): (&[u8], &[u8]),
        rows: &Rows,
        frozen: bool,
        out: &mut Vec<u8>,
    ) -> Result<Sent, StatementError> {
        if rows.sets() != 1 {
            let message = format!("rows to load come as one set, not {}", rows.sets());
            return Err(StatementError::client(Class::Other, message));
        }
        check_text(table)?;
        check_text(columns)?;
        // An error of that query would abort a transaction. If the transaction created or emptied the table itself,
        // what the query may not do, COPY may not either.
        let may_ask = self.server.connect.prepared && (frozen || !self.transaction);
        let asking = may_ask && self.loaded.ask(table, columns, rows, out);
        self.loaded.write_copy((table, columns), rows, frozen, out);
        self.flight = Flight { job: Job::Load, asking, ..Flight::default() };
        Ok(Sent::Messages)
    }

    /// Parse and Describe; Close first, because the server may still know the name.
    fn write_preparation(&self, statement: &Statement, out: &mut Vec<u8>) {
        self.write_close(statement.id, out);
        let name = self.name(statement.id);
        message::write(b'P', out, |out| {
            message::write_text(&name, out);
            statement.template.write_numbered(out);
            out.extend_from_slice(&[0, 0, 0]);
        });
        message::write(b'D', out, |out| {
            out.push(b'S');
            message::write_text(&name, out);
        });
    }

    fn write_close(&self, id: u32, out: &mut Vec<u8>) {
        message::write(b'C', out, |out| {
            out.push(b'S');
            message::write_text(&self.name(id), out);
        });
    }

    /// A statement's name on the server. A pooler may run many clients on one server connection, hence the key.
    pub(super) fn name(&self, id: u32) -> [u8; 31] {
        let mut name = *b"assay_0123456789abcdef_00000000";
        name[6..22].copy_from_slice(&self.key);
        for (pair, byte) in name[23..].chunks_exact_mut(2).zip(id.to_be_bytes()) {
            pair.copy_from_slice(&HEX[usize::from(byte)]);
        }
        name
    }
}

/// Each byte as two hexadecimal digits: every execution names its statement.
const HEX: [[u8; 2]; 256] = {
    let (digits, mut pairs, mut byte) = (b"0123456789abcdef", [[0; 2]; 256], 0);
    while byte < pairs.len() {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// A NUL would end the text early and break the message.
fn check_text(sql: &[u8]) -> Result<(), StatementError> {
    match sql.contains(&0) {
        true => Err(StatementError::client(Class::Syntax, "the statement's text holds a NUL byte")),
        false => Ok(()),
    }
}
