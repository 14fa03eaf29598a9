//! Loading rows, step by step.

use crate::protocol::load::{self, Load, LoadStep, LoadTable, Way};
use crate::protocol::login::LOCAL_FILES;
use crate::protocol::refusal;
use crate::protocol::result::Column;
use assay_seam::{Class, Connection, Exchange, Progress, Reply, Rows, StatementError};

use super::{Bulk, COM_QUERY, COM_STMT_PREPARE, Infile, Job, MySqlConnection, Phase, refuse};

impl MySqlConnection {
    pub(super) fn load(&mut self, table: &[u8], columns: &[u8], rows: &Rows, exchange: &mut Exchange<'_>) -> Progress {
        if rows.len(0) == 0 {
            return Progress::Reply(Reply::default());
        }
        if let Some(number) = load::unwritable(rows) {
            return refuse(Class::Other, format!("there is no literal for the number {number}"));
        }
        let large = load::suits_file(rows);
        let infile = large && self.capabilities & LOCAL_FILES != 0;
        let goal = LoadTable { name: table.into(), columns: columns.into() };
        let backslash_escapes = self.backslash_escapes();
        let bulk = if large && !matches!(self.bulk, Bulk::Unavailable) {
            load::Bulk::new(&goal, rows, backslash_escapes)
        } else {
            None
        };
        let step = match (&self.bulk, &bulk, &self.infile) {
            (Bulk::Known(known, None), Some(bulk), _) if *known == bulk.text => None,
            (_, Some(_), _) => Some(LoadStep::Begin(Way::Bulk)),
            _ if !infile => None,
            (_, _, Infile::Refused) => None,
            (_, _, Infile::Known(known, suits)) if **known == goal => suits.then_some(LoadStep::Begin(Way::Infile)),
            _ => Some(LoadStep::Probe),
        };
        if step.is_none() {
            let start = exchange.out.len();
            let mut next = 0;
            self.binary = false;
            let most = self.packet_max.unwrap_or(load::UNASKED_BYTES);
            self.command(exchange.out, Phase::Result, |out| {
                out.push(COM_QUERY);
                next = load::write_insert(table, columns, (rows, 0), backslash_escapes, most, out);
            });
            if next == rows.len(0) {
                self.job = Job::Query;
                return Progress::Pending;
            }
            exchange.out.truncate(start);
        }
        let mut load = Box::new(Load::new(goal, rows, bulk, !self.in_transaction(), self.packet_max));
        load.step = step.unwrap_or(LoadStep::Begin(Way::Insert));
        self.send_load(load, exchange)
    }

    fn refuse_files(&mut self, error: &StatementError) {
        self.infile = Infile::Refused;
        self.server.file_refusal.get_or_init(|| error.to_string());
    }

    pub(super) fn send_load(&mut self, mut load: Box<Load>, exchange: &mut Exchange<'_>) -> Progress {
        let backslash_escapes = self.backslash_escapes();
        self.binary = false;
        let phase = if load.step == LoadStep::Prepare { Phase::Prepared } else { Phase::Result };
        let progress = self.command(exchange.out, phase, |out| match load.step {
            LoadStep::Bulk(statement) => load.write_bulk(statement, out),
            step => {
                out.push(if step == LoadStep::Prepare { COM_STMT_PREPARE } else { COM_QUERY });
                load.write_statement(backslash_escapes, out);
            }
        });
        self.job = Job::Load(load);
        progress
    }

    /// The statement of `load.step` is answered.
    pub(super) fn on_load_step(&mut self, mut load: Box<Load>, exchange: &mut Exchange<'_>) -> Progress {
        let Reply { rows, affected, error } = std::mem::take(&mut self.reply);
        if matches!(load.step, LoadStep::Begin(_)) && error.is_none() {
            self.packet_max = load.learn_packet_max(rows.as_deref());
        }
        if let Some(rows) = rows {
            exchange.pool.put(rows);
        }
        load.step = match (load.step, error) {
            (LoadStep::Probe, error) => {
                // A user who may insert may not be allowed to read.
                let suits = error.is_none() && self.columns.iter().all(Column::reads_numbers_from_text);
                self.infile = Infile::Known(Box::new(load.table.clone()), suits);
                LoadStep::Begin(if suits { Way::Infile } else { Way::Insert })
            }
            (LoadStep::Prepare, _) => unreachable!("a Prepare is not answered by a result"),
            (LoadStep::Begin(Way::Infile), None) => LoadStep::Infile,
            (LoadStep::Begin(Way::Bulk), None) => match self.bulk {
                Bulk::Known(ref known, Some(statement)) if *known == load.bulk().text => LoadStep::Bulk(statement),
                _ => {
                    if let Bulk::Known(_, Some(statement)) = std::mem::replace(&mut self.bulk, Bulk::Untried) {
                        self.send_close(statement, exchange);
                    }
                    LoadStep::Prepare
                }
            },
            (LoadStep::Begin(Way::Bulk), Some(_)) if load.speak_as_ever() => LoadStep::Begin(Way::Bulk),
            (LoadStep::Begin(way), Some(_)) if load.ask_no_more() => LoadStep::Begin(way),
            (LoadStep::Begin(Way::Insert), None) => LoadStep::Insert,
            (LoadStep::Bulk(statement), None) if load.unfinished() => LoadStep::Bulk(statement),
            (LoadStep::Bulk(_), None) => LoadStep::Commit,
            (LoadStep::Bulk(_), Some(error)) if refusal::BULK_REFUSED.contains(&error.code.number) => {
                self.bulk = Bulk::Unavailable;
                load.restart();
                LoadStep::Undo
            }
            (LoadStep::Infile, None) if affected == load.len() as u64 && self.warnings == 0 => LoadStep::Commit,
            (LoadStep::Infile, None) => {
                self.infile = Infile::Known(Box::new(load.table.clone()), false);
                LoadStep::Undo
            }
            (LoadStep::Infile, Some(error)) if refusal::INFILE_REFUSED.contains(&error.code.number) => {
                self.refuse_files(&error);
                LoadStep::Insert
            }
            // Some servers do not know the statement. If the rows are wrong, an INSERT yields the true error.
            (LoadStep::Infile, Some(error)) if refusal::is_of_statement(&error) => {
                self.refuse_files(&error);
                LoadStep::Undo
            }
            (LoadStep::Undo, None) if self.warnings > 0 => {
                let message = "rows were refused, and the table's storage engine could not undo the others";
                load.error = Some(Box::new(StatementError::client(Class::Other, message)));
                LoadStep::Abort
            }
            // A rollback ended the transaction; otherwise the savepoint still exists.
            (LoadStep::Undo, None) if !self.in_transaction() => LoadStep::Begin(Way::Insert),
            (LoadStep::Undo, None) => LoadStep::Insert,
            (LoadStep::Insert, None) if load.unfinished() => LoadStep::Insert,
            (LoadStep::Insert, None) => LoadStep::Commit,
            (LoadStep::Commit, None) => {
                self.reply.affected = load.len() as u64;
                return self.answer();
            }
            (LoadStep::Abort, _) => {
                self.reply.error = load.error;
                return self.answer();
            }
            (LoadStep::Begin(_) | LoadStep::Commit | LoadStep::Undo, Some(error)) => {
                self.reply.error = Some(error);
                return self.answer();
            }
            (LoadStep::Infile | LoadStep::Bulk(_) | LoadStep::Insert, Some(error)) => {
                load.error = Some(error);
                LoadStep::Abort
            }
        };
        self.send_load(load, exchange)
    }
}
