//! What arrives: messages, results, and errors.

use crate::protocol::message::{self, Body, Broken, LENGTH_MAX, broken, shown};
use crate::protocol::refusal::{self, ErrorResponse};
use assay_seam::{Class, Exchange, Progress, Reply, Retry, RowsPool, StatementError};

use super::{Flight, Form, Job, LOGIN_LENGTH_MAX, Phase, PostgresConnection, TAIL_KEPT_MAX};

impl PostgresConnection {
    pub(super) fn on_messages(&mut self, mut bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        let mut answer = Progress::Pending;
        while !bytes.is_empty() && !matches!(answer, Progress::Reconnect | Progress::Failed(_)) {
            let length_max = if self.phase == Phase::Login { LOGIN_LENGTH_MAX } else { LENGTH_MAX };
            let next = if self.tail.is_empty() {
                match message::length(bytes, length_max) {
                    Ok(Some(length)) if length <= bytes.len() => {
                        let (message, rest) = bytes.split_at(length);
                        bytes = rest;
                        self.on_message(message[0], &message[5..], exchange)
                    }
                    Ok(_) => {
                        self.tail.extend_from_slice(bytes);
                        break;
                    }
                    Err(broken) if self.phase == Phase::Login => {
                        Err(refusal::before_any_process(bytes).unwrap_or_else(|| broken.into()))
                    }
                    Err(broken) => Err(broken.into()),
                }
            } else {
                match self.complete_tail(&mut bytes, length_max) {
                    Ok(false) => break,
                    Ok(true) => {
                        let mut tail = std::mem::take(&mut self.tail);
                        let next = self.on_message(tail[0], &tail[5..], exchange);
                        if tail.capacity() <= TAIL_KEPT_MAX {
                            tail.clear();
                            self.tail = tail;
                        }
                        next
                    }
                    Err(broken) => Err(broken.into()),
                }
            };
            let next = match next {
                Ok(None) => continue,
                Ok(Some(next)) => next,
                Err(error) => self.fail(error),
            };
            match (&answer, next) {
                (Progress::Pending, next) => answer = next,
                // After a reply: the reply is good, the next operation gets the error.
                (_, Progress::Failed(error)) => {
                    self.unasked.get_or_insert_default().goodbye = Some(error);
                    break;
                }
                (_, next) => unreachable!("nothing in flight, yet {next:?}"),
            }
        }
        if let Some(rows) = &mut self.flight.rows {
            exchange.pool.relieve(rows);
        }
        if let Progress::Failed(_) = answer
            && let Some(rows) = self.flight.rows.take()
        {
            exchange.pool.put(rows);
        }
        answer
    }

    /// Moves into `tail` what is missing for one message; true when it is complete.
    fn complete_tail(&mut self, bytes: &mut &[u8], length_max: usize) -> Result<bool, Broken> {
        for _header_then_body in 0..2 {
            let wanted = message::length(&self.tail, length_max)?.unwrap_or(5);
            let (taken, rest) = bytes.split_at(bytes.len().min(wanted.saturating_sub(self.tail.len())));
            self.tail.extend_from_slice(taken);
            *bytes = rest;
        }
        Ok(message::length(&self.tail, length_max)? == Some(self.tail.len()))
    }

    pub(super) fn fail(&mut self, error: Box<StatementError>) -> Progress {
        self.phase = Phase::Closed;
        self.tail = Vec::new();
        Progress::Failed(error)
    }

    fn on_message(
        &mut self,
        tag: u8,
        body: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Progress>, Box<StatementError>> {
        match (tag, self.phase) {
            (b'D', Phase::Busy) => self.on_row(body)?,
            // Notices and notifications may come at any time.
            (b'N', _) => {
                if let Some(tell) = self.server.connect.notices {
                    tell(&ErrorResponse::read(body)?.lines());
                }
            }
            (b'A', _) => {
                let notifications = &mut self.unasked.get_or_insert_default().notifications;
                notifications.add(body)?;
                if self.phase == Phase::Listening {
                    self.phase = Phase::Ready;
                    return Ok(notifications.take(exchange.pool).map(Progress::Reply));
                }
            }
            (b'S', _) => self.on_parameter_status(body)?,
            (_, Phase::Login) => return self.on_login_message(tag, body, exchange),
            (b'E', Phase::Ready | Phase::Listening) => {
                let mut error = ErrorResponse::read(body)?.error;
                error.retry = Retry::Reconnect;
                return Err(Box::new(error));
            }
            (_, Phase::Busy) => return self.on_result_message(tag, body, exchange),
            _ => return Err(broken(format!("a message of type {} came unasked", shown(tag))).into()),
        }
        Ok(None)
    }

    fn on_parameter_status(&mut self, body: &[u8]) -> Result<(), Broken> {
        let mut body = Body(body);
        match (body.text()?, body.text()?) {
            (b"standard_conforming_strings", value) => self.standard_strings = value != b"off",
            (b"server_version", value) => self.version = String::from_utf8_lossy(value).into(),
            _ => {}
        }
        Ok(())
    }

    fn on_row(&mut self, body: &[u8]) -> Result<(), Broken> {
        if self.flight.error.is_some() || self.deferral.unanswered > 0 {
            // Too large already, after a refused COPY, or part of a pipeline: nobody wants them.
            return Ok(());
        }
        let rows = self.flight.rows.as_deref_mut().ok_or_else(|| broken("a row came without its description"))?;
        if self.flight.counts {
            rows.push_bare_row();
            return Ok(());
        }
        let mut body = Body(body);
        let columns = body.u16()?;
        if usize::from(columns) != rows.columns(rows.sets() - 1) {
            return Err(broken("a row has another number of columns than was announced"));
        }
        if columns == 0 {
            rows.push_bare_row();
        }
        for _ in 0..columns {
            let length = body.i32()?;
            match usize::try_from(length) {
                Err(_) => rows.push_null(),
                Ok(length) => {
                    let text = body.bytes(length)?;
                    if rows.push_text(text).is_err() {
                        // Keeps the columns in step; the result is not returned.
                        rows.push_null();
                        let message = "the result is larger than 4 GiB";
                        self.flight
                            .error
                            .get_or_insert_with(|| Box::new(StatementError::client(Class::Limit, message)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Everything but rows while an operation is in flight.
    fn on_result_message(
        &mut self,
        tag: u8,
        body: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Progress>, Box<StatementError>> {
        let mut fields = Body(body);
        match tag {
            b'C' => {
                let tag = fields.text()?;
                let affected = message::affected(tag);
                if self.deferral.unanswered > 0 {
                    self.deferral.answered(affected, tag.starts_with(b"SELECT"));
                    return Ok(None);
                }
                // After an error only a refused COPY … TO STDOUT completes, and that changed nothing.
                if self.flight.error.is_none() {
                    self.flight.affected = self.flight.affected.saturating_add(affected);
                }
            }
            // BindComplete: now it is known whether rows will come, even if there are none.
            b'2' if self.deferral.unanswered == 0 => {
                if let Some(Form::Server { columns: Some(columns), .. }) = self.form() {
                    let columns = *columns;
                    self.begin_set(columns, exchange.pool);
                }
            }
            // ParameterDescription
            b't' if self.flight.asking => self.loaded.learn(fields)?,
            b't' => {
                let count = fields.u16()?;
                if let Some(Form::Server { parameters, .. }) = self.form() {
                    *parameters = count;
                }
            }
            // RowDescription, NoData
            b'T' | b'n' => {
                let described = if tag == b'T' { Some(fields.u16()?) } else { None };
                if self.flight.describing {
                    self.flight.describing = false;
                    if let Some(Form::Server { prepared, columns, .. }) = self.form() {
                        *prepared = true;
                        *columns = described;
                    }
                } else if let Some(columns) = described {
                    self.begin_set(columns, exchange.pool);
                    if self.flight.job == Job::Query {
                        self.read_labels(columns, fields)?;
                    }
                }
            }
            b'Z' => {
                self.transaction = fields.byte()? != b'I';
                if std::mem::take(&mut self.flight.asking) {
                    return Ok(None);
                }
                if self.deferral.goes_on() {
                    return Ok(None);
                }
                if self.deferral.unanswered > 0 && self.flight.error.is_none() {
                    return Err(broken("fewer statements were answered than were sent").into());
                }
                return Ok(Some(self.land(exchange)));
            }
            b'E' => self.on_refusal(ErrorResponse::read(body)?)?,
            // CopyInResponse. The script's own COPY is refused, because it cannot provide the data.
            b'G' if self.flight.job != Job::Load => {
                self.refuse_copy("COPY … FROM STDIN");
                message::write(b'f', exchange.out, |out| message::write_text(b"not supported by the client", out));
                if self.flight.extended {
                    // The one already sent was skipped: the server was in COPY.
                    message::write_sync(exchange.out);
                }
            }
            // CopyOutResponse. The data is skipped.
            b'H' => self.refuse_copy("COPY … TO STDOUT"),
            // EmptyQueryResponse of a pipeline
            b'I' if self.deferral.unanswered > 0 => self.deferral.answered(0, false),
            // CopyBothResponse
            b'W' => {
                self.refuse_copy("replication");
                message::write(b'c', exchange.out, |_| {});
            }
            // CopyInResponse, CopyData, CopyDone, ParseComplete, a deferred statement's BindComplete, CloseComplete,
            // EmptyQueryResponse
            b'G' | b'd' | b'c' | b'1' | b'2' | b'3' | b'I' => {}
            _ => return Err(broken(format!("a message of type {} came in a result", shown(tag))).into()),
        }
        Ok(None)
    }

    /// The server's state of the prepared statement in flight.
    fn form(&mut self) -> Option<&mut Form> {
        let (Job::Prepare(id) | Job::Execute(id)) = self.flight.job else { return None };
        let at = self.find(id).ok()?;
        Some(&mut self.statements[at].form)
    }

    fn begin_set(&mut self, columns: u16, pool: &mut RowsPool) {
        let columns = if self.flight.counts { 0 } else { columns.into() };
        self.flight.rows.get_or_insert_with(|| pool.take()).begin_set(columns);
    }

    /// The names in a RowDescription.
    fn read_labels(&mut self, columns: u16, mut fields: Body<'_>) -> Result<(), Broken> {
        let Some(rows) = self.flight.rows.as_mut().filter(|_| !self.flight.counts) else { return Ok(()) };
        for _ in 0..columns {
            rows.push_label(fields.text()?);
            // Table, column, type, its length and modifier, format.
            fields.bytes(18)?;
        }
        Ok(())
    }

    fn refuse_copy(&mut self, what: &str) {
        let message = format!("{what} cannot be run from a script");
        self.flight.error.get_or_insert_with(|| Box::new(StatementError::client(Class::Other, message)));
    }

    fn on_refusal(&mut self, refusal: ErrorResponse) -> Result<(), Box<StatementError>> {
        let ErrorResponse { fatal, routine, mut error, .. } = refusal;
        if fatal {
            error.retry = Retry::Reconnect;
            return Err(Box::new(error));
        }
        if self.flight.asking {
            // Then it is sent as text, and the table's error is reported again.
            return Ok(());
        }
        if self.deferral.unanswered > 0 {
            let forgotten = error.code.state == "26000";
            for statement in self.statements.iter_mut().filter(|_| forgotten) {
                if let Form::Server { prepared, .. } = &mut statement.form {
                    *prepared = false;
                }
            }
            if forgotten {
                error.retry = Retry::Now;
            }
            self.deferral.blame(&mut error);
            self.flight.error.get_or_insert_with(|| Box::new(error));
            return Ok(());
        }
        match (self.flight.job, error.code.state.as_str()) {
            // Several statements in one text, or a parameter whose type only a value determines.
            (Job::Prepare(_), "42601") => self.flight.unpreparable = routine == b"exec_parse_message",
            (Job::Prepare(_), "42P18") => self.flight.unpreparable = true,
            // The server has forgotten the statement, or its result changed with the table.
            (Job::Execute(_), state @ ("26000" | "0A000")) => {
                if let Some(Form::Server { prepared, .. }) = self.form() {
                    *prepared = false;
                    if state == "26000" || routine == b"RevalidateCachedQuery" {
                        error.retry = Retry::Now;
                    }
                }
            }
            _ => {}
        }
        self.flight.error.get_or_insert_with(|| Box::new(error));
        Ok(())
    }

    /// ReadyForQuery: the operation is over.
    fn land(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        self.phase = Phase::Ready;
        self.deferral.unanswered = 0;
        let Flight { job, unpreparable, mut rows, affected, mut error, .. } = std::mem::take(&mut self.flight);
        match job {
            Job::Setup(index) => {
                if let Some(rows) = rows {
                    exchange.pool.put(rows);
                }
                return match error {
                    None => self.set_up(index + 1, exchange.out),
                    Some(mut error) => {
                        let sql = &self.server.connect.session_sql[index];
                        error.message = format!("{} (in the session statement `{sql}`)", error.message);
                        error.hint.get_or_insert_with(|| "check the statement in `--session-sql`".into());
                        self.fail(error)
                    }
                };
            }
            Job::Prepare(id) if error.is_some() => {
                let at = self.find(id);
                match at {
                    // Not inside a transaction: the error has already aborted it.
                    Ok(at) if unpreparable && !self.transaction => {
                        self.statements[at].form = Form::Text;
                        error = None;
                    }
                    Ok(at) => drop(self.statements.remove(at)),
                    Err(_) => {}
                }
            }
            Job::Execute(_) if error.is_some() => {
                if let Some(rows) = rows.take() {
                    exchange.pool.put(rows);
                }
            }
            Job::Load => self.send_next_load(error.is_none(), exchange.out),
            _ => {}
        }
        Progress::Reply(Reply { rows, affected, error })
    }

    /// A load is answered: the one that waits for it follows, or is dropped.
    fn send_next_load(&mut self, succeeded: bool, out: &mut Vec<u8>) {
        let mut next = std::mem::take(&mut self.next_load);
        if next.is_empty() || !succeeded {
            return;
        }
        if out.is_empty() {
            std::mem::swap(out, &mut next);
        } else {
            out.append(&mut next);
        }
        self.next_load = next;
        self.flight = Flight { job: Job::Load, ..Flight::default() };
        self.phase = Phase::Busy;
    }

    /// Bytes kept of an incomplete message.
    pub(in crate::protocol) fn tail_capacity(&self) -> usize {
        self.tail.capacity()
    }
}

impl From<Broken> for Box<StatementError> {
    fn from(Broken(what): Broken) -> Box<StatementError> {
        assay_wire::violation(what)
    }
}
