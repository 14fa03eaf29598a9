//! What arrives: packets, results, and errors.

use crate::protocol::load::{self, LoadStep};
use crate::protocol::login::DEPRECATE_EOF;
use crate::protocol::packet::{FRAME_MAX, OUT_OF_ORDER, Reader, violation, write_packet};
use crate::protocol::refusal::{self, read_error};
use crate::protocol::result::{Column, read_binary_row, read_text_row};
use crate::protocol::statement::{Form, Statement, attach_types};
use assay_seam::{Class, Code, Exchange, Progress, StatementError};
use std::sync::Arc;

use super::{COLUMNS_KEEP_MAX, IN_TRANSACTION, Job, MORE_RESULTS, MySqlConnection, PENDING_KEEP_MAX, Phase, position};

impl MySqlConnection {
    pub(super) fn on_packet(
        &mut self,
        payload: &[u8],
        in_order: bool,
        exchange: &mut Exchange<'_>,
    ) -> Result<Progress, Box<StatementError>> {
        if !in_order {
            return Err(match payload.first() {
                // The server gives up without waiting for its turn.
                Some(0xFF) => read_error(payload),
                _ => violation(OUT_OF_ORDER),
            });
        }
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Closed | Phase::Securing(_) => Err(violation("sent something nobody asked for")),
            Phase::Idle if payload.first() == Some(&0xFF) => Err(read_error(payload)),
            Phase::Idle => Err(violation("sent something nobody asked for")),
            Phase::Greeting => self.on_greeting(payload, exchange),
            Phase::Login(login) => self.on_login(payload, login, exchange),
            Phase::Result => self.on_result(payload, exchange),
            Phase::Columns(left) => self.on_column(payload, left),
            Phase::ColumnsEnd => {
                self.phase = Phase::Row;
                if payload.first() == Some(&0xFE) { Ok(Progress::Pending) } else { Err(violation("left out an EOF")) }
            }
            Phase::Row => self.on_row(payload, exchange),
            Phase::Prepared => self.on_prepared(payload, exchange),
            Phase::Definitions(left) => self.on_definition(payload, left, exchange),
        }
    }

    fn on_result(&mut self, payload: &[u8], exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        match payload.first() {
            Some(0x00) => {
                let affected = self.read_ok(payload)?;
                self.reply.affected = self.reply.affected.saturating_add(affected);
                self.end_of_result(exchange)
            }
            Some(0xFF) => self.on_error(payload, exchange),
            Some(0xFB) => Ok(self.on_file_request(&payload[1..], exchange)),
            _ => {
                let nonsense = || violation("sent a result that makes no sense");
                let mut reader = Reader(payload);
                let width = reader.lenenc().filter(|width| (1..=65_535).contains(width)).ok_or_else(nonsense)?;
                let described = match self.caches_metadata {
                    true => reader.u8().ok_or_else(nonsense)? != 0,
                    false => true,
                };
                if !reader.0.is_empty() {
                    return Err(nonsense());
                }
                self.width = width as u32;
                self.columns.clear();
                let rows = self.reply.rows.get_or_insert_with(|| exchange.pool.take());
                rows.begin_set(if self.counts { 0 } else { self.width as usize });
                self.phase = Phase::Columns(self.width);
                if !described {
                    let known = columns_of(&mut self.job, &mut self.statements).and_then(|known| known.as_deref());
                    let known = known.filter(|known| known.len() as u64 == width);
                    let known = known.ok_or_else(|| violation("left out columns that it never described"))?;
                    self.columns.extend_from_slice(known);
                    self.phase = Phase::Row;
                }
                Ok(Progress::Pending)
            }
        }
    }

    /// Remembers the columns that were described: they may not be again.
    pub(super) fn remember_columns(&mut self) {
        if !self.caches_metadata {
            return;
        }
        if let Some(known) = columns_of(&mut self.job, &mut self.statements)
            && known.as_deref() != Some(&self.columns)
        {
            *known = Some(self.server.columns.shared(&self.columns));
        }
    }

    fn on_column(&mut self, payload: &[u8], left: u32) -> Result<Progress, Box<StatementError>> {
        let (column, name) = Column::read(payload)?;
        self.columns.push(column);
        if let (Job::Query, false, Some(rows)) = (&self.job, self.counts, &mut self.reply.rows) {
            rows.push_label(name);
        }
        if left == 1 {
            self.remember_columns();
        }
        self.phase = match left {
            1 if self.capabilities & DEPRECATE_EOF != 0 => Phase::Row,
            1 => Phase::ColumnsEnd,
            _ => Phase::Columns(left - 1),
        };
        Ok(Progress::Pending)
    }

    fn on_row(&mut self, payload: &[u8], exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        match payload.first() {
            Some(0xFF) => return self.on_error(payload, exchange),
            // A row that starts like this has a first cell of at least 16 MiB.
            Some(0xFE) if payload.len() < FRAME_MAX => {
                if self.capabilities & DEPRECATE_EOF != 0 {
                    self.read_ok(payload)?;
                } else {
                    self.read_eof(payload)?;
                }
                return self.end_of_result(exchange);
            }
            _ => {}
        }
        let Some(rows) = &mut self.reply.rows else { return Err(violation("sent a row without columns")) };
        match self.binary {
            _ if self.counts => rows.push_bare_row(),
            true => read_binary_row(payload, &self.columns, rows)?,
            false => read_text_row(payload, self.width, rows)?,
        }
        self.phase = Phase::Row;
        Ok(Progress::Pending)
    }

    /// Reads an OK packet (0x00, or 0xFE at the end of rows); returns the number of rows changed.
    pub(super) fn read_ok(&mut self, payload: &[u8]) -> Result<u64, Box<StatementError>> {
        let mut read = || {
            let mut reader = Reader(payload);
            reader.u8()?;
            let affected = reader.lenenc()?;
            // The id last inserted.
            reader.lenenc()?;
            self.status = reader.u16()?;
            self.warnings = reader.u16()?;
            Some(affected)
        };
        read().ok_or_else(|| violation("sent an OK packet that is cut short"))
    }

    fn read_eof(&mut self, payload: &[u8]) -> Result<(), Box<StatementError>> {
        let mut reader = Reader(payload);
        let (Some(_), Some(warnings), Some(status)) = (reader.u8(), reader.u16(), reader.u16()) else {
            return Err(violation("sent an EOF packet that is cut short"));
        };
        (self.warnings, self.status) = (warnings, status);
        Ok(())
    }

    fn on_error(&mut self, payload: &[u8], exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        let mut error = read_error(payload);
        if error.class == Class::Protocol {
            return Err(error);
        }
        if self.deferral.unanswered > 0 {
            self.deferral.blame(&mut error);
            self.deferral.unanswered = 0;
        }
        if error.code.number == refusal::DEADLOCK {
            self.status &= !IN_TRANSACTION;
        }
        self.status &= !MORE_RESULTS;
        self.reply.error.get_or_insert(error);
        self.end_of_result(exchange)
    }

    /// The server asks for a file. Only the one we offered is allowed, and only while loading.
    fn on_file_request(&mut self, name: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        self.phase = Phase::Result;
        if let Job::Load(load) = &self.job
            && load.step == LoadStep::Infile
            && name == load::FILE
        {
            load.write_file(exchange.out, &mut self.inbound.sequence);
            return Progress::Pending;
        }
        let name = String::from_utf8_lossy(name);
        let message = format!("the server asked for the local file `{name}`, which it did not get");
        // The number that MySQL's client library uses for it.
        let code = Code { number: 2068, state: "HY000".to_owned() };
        self.reply.error =
            Some(Box::new(StatementError { code, ..StatementError::client(Class::Permission, message) }));
        write_packet(exchange.out, &mut self.inbound.sequence, |_| ());
        Progress::Pending
    }

    /// A result is complete: others follow, or the job continues, or it is done.
    fn end_of_result(&mut self, exchange: &mut Exchange<'_>) -> Result<Progress, Box<StatementError>> {
        let more = self.status & MORE_RESULTS != 0;
        if self.deferral.unanswered > 0 {
            self.deferral.answered(std::mem::take(&mut self.reply.affected), false);
            if !more && (self.deferral.unanswered > 0 || !matches!(self.job, Job::Flush)) {
                return Err(violation("answered fewer statements than it was sent"));
            }
        }
        if more {
            self.phase = Phase::Result;
            return Ok(Progress::Pending);
        }
        match std::mem::replace(&mut self.job, Job::None) {
            Job::None => Err(violation("answered a question nobody asked")),
            Job::Setup(index) => {
                let reply = std::mem::take(&mut self.reply);
                if let Some(rows) = reply.rows {
                    exchange.pool.put(rows);
                }
                match reply.error {
                    Some(error) => Err(error),
                    None => Ok(self.set_up(index + 1, exchange)),
                }
            }
            Job::Execute { statement, again: false } if self.failed_with(&[refusal::UNKNOWN_STATEMENT]) => {
                let Ok(at) = self.find(statement) else { return Ok(self.answer()) };
                let Form::Binary { types, .. } = &self.statements[at].form else { return Ok(self.answer()) };
                attach_types(&mut self.pending, types);
                self.reply.error = None;
                Ok(self.prepare_again(at, exchange))
            }
            Job::Query | Job::Prepare(_) | Job::Execute { .. } | Job::Flush => Ok(self.answer()),
            Job::Load(load) => Ok(self.on_load_step(load, exchange)),
        }
    }

    fn failed_with(&self, numbers: &[u32]) -> bool {
        self.reply.error.as_ref().is_some_and(|error| numbers.contains(&error.code.number))
    }

    pub(super) fn answer(&mut self) -> Progress {
        self.phase = Phase::Idle;
        if self.pending.capacity() > PENDING_KEEP_MAX {
            self.pending = Vec::new();
        }
        if self.columns.capacity() > COLUMNS_KEEP_MAX {
            self.columns = Vec::new();
        }
        Progress::Reply(std::mem::take(&mut self.reply))
    }
}

/// The columns of the statement that is being prepared or executed, if that is done by the binary protocol.
fn columns_of<'a>(job: &'a mut Job, statements: &'a mut [Statement]) -> Option<&'a mut Option<Arc<Vec<Column>>>> {
    let statement = match job {
        Job::Prepare(statement) => statement,
        Job::Execute { statement, .. } => {
            let at = position(statements, *statement).ok()?;
            &mut statements[at]
        }
        _ => return None,
    };
    match &mut statement.form {
        Form::Binary { columns, .. } => Some(columns),
        Form::Text(_) => None,
    }
}
