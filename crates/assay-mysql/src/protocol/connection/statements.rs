//! Prepared statements: preparing, executing and closing them.

use crate::protocol::load::LoadStep;
use crate::protocol::login::DEPRECATE_EOF;
use crate::protocol::packet::{PACKET_MAX, Reader, violation, write_packet};
use crate::protocol::refusal::{self, read_error};
use crate::protocol::result::Column;
use crate::protocol::statement::{Form, Statement, Types, name_statement, write_execute};
use assay_seam::{Class, Effect, Exchange, Progress, Reply, StatementError, StatementId, Value};
use assay_wire::placeholders::wrong_count;
use std::sync::Arc;

use super::{Bulk, COM_QUERY, COM_STMT_CLOSE, COM_STMT_PREPARE, Job, MySqlConnection, Phase, refuse, too_large};

impl MySqlConnection {
    pub(super) fn prepare(&mut self, id: StatementId, sql: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        // The caller may have forgotten to close one with the same name.
        self.close_statement(id, exchange);
        if !self.server.connect.prepared {
            let template = self.server.templates.get(sql, self.dialect());
            self.keep(Statement { id, effect: Effect::of(sql), form: Form::Text(template) });
            return Progress::Reply(Reply::default());
        }
        let template = self.server.templates.get(sql, self.dialect());
        let form = Form::Binary { template, server: None, types: Types::unsent(0), columns: None };
        self.job = Job::Prepare(Statement { id, effect: Effect::of(sql), form });
        self.send_prepare(sql, exchange)
    }

    fn send_prepare(&mut self, sql: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        self.command(exchange.out, Phase::Prepared, |out| {
            out.push(COM_STMT_PREPARE);
            out.extend_from_slice(sql);
        })
    }

    /// Prepares the statement at index `at` for the execution in `pending`.
    pub(super) fn prepare_again(&mut self, at: usize, exchange: &mut Exchange<'_>) -> Progress {
        let Statement { id, form: Form::Binary { template, server, .. }, .. } = &mut self.statements[at] else {
            unreachable!("only statements of the binary protocol are executed by it")
        };
        *server = None;
        self.job = Job::Execute { statement: *id, again: true };
        let template = Arc::clone(template);
        self.send_prepare(template.sql(), exchange)
    }

    fn keep(&mut self, statement: Statement) {
        match self.find(statement.id) {
            Ok(at) => self.statements[at] = statement,
            Err(at) => {
                // Doubling would leave half of it empty, in each of thousands of connections.
                if self.statements.len() == self.statements.capacity() {
                    self.statements.reserve_exact((self.statements.len() / 4).max(4));
                }
                self.statements.insert(at, statement);
            }
        }
    }

    pub(super) fn on_prepared(
        &mut self,
        payload: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Progress, Box<StatementError>> {
        if payload.first() == Some(&0xFF) {
            let error = read_error(payload);
            if error.class == Class::Protocol {
                return Err(error);
            }
            match std::mem::replace(&mut self.job, Job::None) {
                Job::Prepare(Statement { id, effect, form: Form::Binary { template, .. } })
                    if error.code.number == refusal::NOT_PREPARABLE =>
                {
                    self.keep(Statement { id, effect, form: Form::Text(template) });
                }
                Job::Load(mut load) => {
                    // INSERTs succeed, or fail with the true error.
                    self.bulk = Bulk::Known(load.bulk().text.clone(), None);
                    load.step = LoadStep::Undo;
                    return Ok(self.send_load(load, exchange));
                }
                _ => self.reply.error = Some(error),
            }
            return Ok(self.answer());
        }
        let read = || {
            let mut reader = Reader(payload);
            let (header, id, columns, parameters) = (reader.u8()?, reader.u32()?, reader.u16()?, reader.u16()?);
            (header == 0).then_some((id, columns, parameters))
        };
        let (number, columns, parameters) =
            read().ok_or_else(|| violation("answered a Prepare with something that makes no sense"))?;
        match &mut self.job {
            Job::Prepare(Statement { effect, form: Form::Binary { server, types, .. }, .. }) => {
                if columns > 0 && *effect != Effect::Reads {
                    *effect = Effect::Other;
                }
                *server = Some(number);
                *types = Types::unsent(parameters);
            }
            Job::Execute { statement, .. } => {
                let id = *statement;
                let Ok(at) = self.find(id) else { return Err(violation("prepared a statement that is gone")) };
                let Form::Binary { server, types, .. } = &mut self.statements[at].form else {
                    return Err(violation("prepared a statement it cannot prepare"));
                };
                if types.len() != usize::from(parameters) {
                    return Err(violation("counted the placeholders of a statement in two ways"));
                }
                *server = Some(number);
                name_statement(&mut self.pending, number);
            }
            Job::Load(load) => {
                if load.bulk().parameters() != usize::from(parameters) {
                    return Err(violation("counted the placeholders of a statement in two ways"));
                }
                self.bulk = Bulk::Known(load.bulk().text.clone(), Some(number));
                load.step = LoadStep::Bulk(number);
            }
            _ => return Err(violation("prepared a statement nobody asked for")),
        }
        self.width = columns.into();
        self.columns.clear();
        let eof = u32::from(self.capabilities & DEPRECATE_EOF == 0);
        let packets = |count: u16| if count == 0 { 0 } else { u32::from(count) + eof };
        match packets(columns) + packets(parameters) {
            0 => Ok(self.after_prepare(exchange)),
            left => {
                self.phase = Phase::Definitions(left);
                Ok(Progress::Pending)
            }
        }
    }

    pub(super) fn on_definition(
        &mut self,
        payload: &[u8],
        left: u32,
        exchange: &mut Exchange<'_>,
    ) -> Result<Progress, Box<StatementError>> {
        if self.caches_metadata && left <= self.width {
            self.columns.push(Column::read(payload)?.0);
        }
        if left == 1 {
            self.remember_columns();
            return Ok(self.after_prepare(exchange));
        }
        self.phase = Phase::Definitions(left - 1);
        Ok(Progress::Pending)
    }

    fn after_prepare(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        match std::mem::replace(&mut self.job, Job::None) {
            Job::Prepare(statement) => {
                self.keep(statement);
                self.answer()
            }
            Job::Load(load) => self.send_load(load, exchange),
            job => {
                self.job = job;
                self.send_pending(exchange)
            }
        }
    }

    pub(super) fn run_statement(
        &mut self,
        id: StatementId,
        parameters: &[Value<'_>],
        exchange: &mut Exchange<'_>,
    ) -> Progress {
        let Ok(at) = self.find(id) else {
            return refuse(Class::Other, format!("there is no prepared statement {}", id.0));
        };
        let dialect = self.dialect();
        let statement = &mut self.statements[at];
        match &mut statement.form {
            // Together with others, in one text: the server executes nothing after an error. If commands were sent
            // without waiting, it would execute the later ones, and after a deadlock outside any transaction.
            form if self.deferral.waiting > 0 || matches!(form, Form::Text(_)) => {
                let start = exchange.out.len();
                let mut written = Ok(());
                self.inbound.sequence = 0;
                write_packet(exchange.out, &mut self.inbound.sequence, |out| {
                    out.push(COM_QUERY);
                    self.deferral.send(out);
                    written = statement.text().write_substituted(parameters, dialect, out);
                });
                if let Err(error) = written {
                    exchange.out.truncate(start);
                    self.deferral.forget();
                    return Progress::Reply(Reply::failed(error));
                }
                self.binary = false;
                self.job = Job::Query;
                self.phase = Phase::Result;
                Progress::Pending
            }
            Form::Text(_) => unreachable!("sent above"),
            Form::Binary { server, types, .. } => {
                if parameters.len() != types.len() {
                    return Progress::Reply(Reply::failed(wrong_count(types.len(), parameters.len())));
                }
                self.pending.clear();
                write_execute(types, parameters, &mut self.pending);
                if self.pending.len() > PACKET_MAX {
                    return too_large();
                }
                match *server {
                    Some(server) => {
                        self.job = Job::Execute { statement: id, again: false };
                        name_statement(&mut self.pending, server);
                        self.send_pending(exchange)
                    }
                    None => self.prepare_again(at, exchange),
                }
            }
        }
    }

    fn send_pending(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        self.binary = true;
        let pending = std::mem::take(&mut self.pending);
        let progress = self.command(exchange.out, Phase::Result, |out| out.extend_from_slice(&pending));
        self.pending = pending;
        progress
    }

    pub(super) fn close_statement(&mut self, id: StatementId, exchange: &mut Exchange<'_>) {
        let Ok(at) = self.find(id) else { return };
        if let Form::Binary { server: Some(server), .. } = self.statements.remove(at).form {
            self.send_close(server, exchange);
        }
    }

    pub(super) fn send_close(&mut self, server: u32, exchange: &mut Exchange<'_>) {
        // The only command without an answer.
        self.command(exchange.out, Phase::Idle, |out| {
            out.push(COM_STMT_CLOSE);
            out.extend_from_slice(&server.to_le_bytes());
        });
    }
}
