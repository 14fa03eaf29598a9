//! From a connected socket to the first operation: encryption, login, the statements of the session.

use crate::protocol::login::{self, Channel, Greeting, Login, Turn};
use crate::protocol::packet::write_packet;
use assay_seam::{Class, Endpoint, Exchange, Progress, StatementError, TlsMode};
use std::sync::Arc;

use super::{Bulk, Job, MySqlConnection, Phase};

impl MySqlConnection {
    fn channel(&self) -> Channel {
        Channel { tls: self.cipher.is_some(), local: matches!(self.server.endpoint, Endpoint::Unix(_)) }
    }

    pub(super) fn on_greeting(
        &mut self,
        payload: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Progress, Box<StatementError>> {
        let greeting = Box::new(Greeting::read(payload)?);
        self.version = greeting.version.clone();
        let mode = self.server.tls.mode;
        if greeting.capabilities & login::SSL != 0 && mode != TlsMode::Disable && !self.skip_tls {
            let capabilities = greeting.agreed(&self.server, true);
            write_packet(exchange.out, &mut self.inbound.sequence, |out| greeting.write_preamble(capabilities, out));
            self.phase = Phase::Securing(greeting);
            return Ok(Progress::StartTls);
        }
        if mode >= TlsMode::Require {
            let message = format!("the server ({}) does not offer TLS", greeting.version);
            let mut error = StatementError::client(Class::Encryption, message);
            error.hint = Some("give the server a certificate (ssl_cert, ssl_key), or use `sslmode=prefer`".into());
            return Err(Box::new(error));
        }
        self.start_login(&greeting, exchange)
    }

    pub(super) fn start_login(
        &mut self,
        greeting: &Greeting,
        exchange: &mut Exchange<'_>,
    ) -> Result<Progress, Box<StatementError>> {
        let channel = self.channel();
        self.capabilities = greeting.agreed(&self.server, channel.tls);
        self.caches_metadata = greeting.caches_metadata(self.capabilities);
        let bulk = greeting.bulk() && self.server.connect.prepared;
        self.bulk = if bulk { Bulk::Untried } else { Bulk::Unavailable };
        let mut login = Ok(None);
        write_packet(exchange.out, &mut self.inbound.sequence, |out| {
            login = Login::start(greeting, &self.server, channel, out).map(Some);
        });
        self.phase = Phase::Login(Box::new(login?.expect("the closure ran")));
        Ok(Progress::Pending)
    }

    pub(super) fn on_login(
        &mut self,
        payload: &[u8],
        mut login: Box<Login>,
        exchange: &mut Exchange<'_>,
    ) -> Result<Progress, Box<StatementError>> {
        match login.on_packet(payload, &self.server)? {
            Turn::Answer(answer) => {
                write_packet(exchange.out, &mut self.inbound.sequence, |out| out.extend_from_slice(&answer));
            }
            Turn::Wait => {}
            Turn::Done => {
                self.read_ok(payload)?;
                self.inbound.trusted = true;
                return Ok(self.set_up(0, exchange));
            }
        }
        self.phase = Phase::Login(login);
        Ok(Progress::Pending)
    }

    /// Sends the session statement of this index; after the last one the connection is ready.
    pub(super) fn set_up(&mut self, index: usize, exchange: &mut Exchange<'_>) -> Progress {
        let server = Arc::clone(&self.server);
        match server.connect.session_sql.get(index) {
            Some(sql) => {
                self.job = Job::Setup(index);
                self.query(exchange.out, &[sql.as_bytes()])
            }
            None => {
                self.phase = Phase::Idle;
                Progress::Ready
            }
        }
    }
}
