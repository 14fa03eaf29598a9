//! From a connected socket to the first operation: encryption, login, the statements of the session.

use crate::protocol::login::{ChannelBinding, Login};
use crate::protocol::message::{self, Body, broken, shown};
use crate::protocol::refusal::ErrorResponse;
use assay_seam::{Class, Exchange, Progress, StatementError, TlsMode};
use std::sync::Arc;

use super::{Job, Phase, PostgresConnection};

impl PostgresConnection {
    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        let server = &self.server;
        let always = [
            ("user", server.credentials.user.as_str()),
            ("database", &server.database),
            ("application_name", &server.application_name),
            ("client_encoding", &server.client_encoding),
            ("options", &server.options),
        ];
        let of_session = server.session.iter().map(|(name, value)| (*name, value.as_str()));
        let parameters = always.into_iter().chain(of_session).filter(|(_, value)| !value.is_empty());
        message::write_startup(parameters, out);
        self.phase = Phase::Login;
    }

    pub(super) fn on_ssl_answer(&mut self, bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress {
        let mode = self.server.tls.mode;
        match bytes {
            [b'S'] => {
                self.phase = Phase::Handshake;
                Progress::StartTls
            }
            // A man in the middle could have put text before the encrypted answer (CVE-2021-23222).
            [b'S' | b'N', ..] if bytes.len() > 1 => {
                self.fail(broken("data in the clear followed the answer to the request for TLS").into())
            }
            [b'N'] if mode >= TlsMode::Require => {
                let mut error = StatementError::client(Class::Encryption, "the server does not offer TLS");
                error.hint = Some("turn on ssl in the server, or connect with ?sslmode=disable".into());
                self.fail(Box::new(error))
            }
            [b'N'] => {
                self.start(exchange.out);
                Progress::Pending
            }
            // The message of an error before encryption must not be trusted or shown (CVE-2024-10977).
            [b'E', ..] if mode == TlsMode::Prefer => self.try_the_other_way(),
            _ => {
                let mut error: Box<StatementError> =
                    broken("the peer did not answer the request for TLS as PostgreSQL does").into();
                // A server of MySQL's family speaks first: length, number 0, protocol version 10.
                let is_mysql = bytes.get(3..5) == Some(&[0, 10]);
                error.hint = Some(match is_mysql {
                    true => "is this a PostgreSQL server? It answers like MySQL or MariaDB: mysql://…".into(),
                    false => "is this a PostgreSQL server, and the right port?".into(),
                });
                self.fail(error)
            }
        }
    }

    fn try_the_other_way(&mut self) -> Progress {
        self.phase = Phase::Closed;
        self.second_try = true;
        self.reconnecting = true;
        self.tls = None;
        self.tail = Vec::new();
        self.login = Login::default();
        Progress::Reconnect
    }

    pub(super) fn on_login_message(
        &mut self,
        tag: u8,
        body: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Progress>, Box<StatementError>> {
        match tag {
            b'R' => {
                let credentials = &self.server.credentials;
                self.login.on_request(body, credentials, self.tls.as_deref(), exchange.out)?;
            }
            b'K' => {
                let mut body = Body(body);
                let (process, secret) = (body.i32()?, body.i32()?);
                let digits = (u64::from(process as u32) << 32) | u64::from(secret as u32);
                for (i, digit) in self.key.iter_mut().enumerate() {
                    *digit = b"0123456789abcdef"[(digits >> (60 - 4 * i)) as usize & 15];
                }
            }
            // NegotiateProtocolVersion: a newer minor version than ours, or options we did not send.
            b'v' => {}
            b'Z' if self.login.done() => {
                self.transaction = body != b"I";
                self.first_refusal = None;
                self.login = Login::default();
                return Ok(Some(self.set_up(0, exchange.out)));
            }
            b'E' => {
                let mut error = Box::new(ErrorResponse::read(body)?.error);
                let mode = self.server.tls.mode;
                // Without TLS there is no channel to bind to.
                let bare = self.server.credentials.channel_binding != ChannelBinding::Require;
                let other_way = (mode == TlsMode::Prefer && self.tls.is_some() && bare) || mode == TlsMode::Allow;
                // libpq tries the other way after any error; only these can depend on the encryption.
                if other_way && !self.second_try && error.class == Class::Authentication {
                    self.first_refusal = Some(error);
                    return Ok(Some(self.try_the_other_way()));
                }
                // The same error twice does not depend on the encryption.
                if let Some(first) = self.first_refusal.take().filter(|first| first.message != error.message) {
                    let way = if mode == TlsMode::Prefer { "with" } else { "without" };
                    let hint = error.hint_words();
                    error.hint = Some(format!("{way} TLS the server had said: {}{hint}", first.message));
                }
                return Err(error);
            }
            _ => return Err(broken(format!("a message of type {} came during login", shown(tag))).into()),
        }
        Ok(None)
    }

    /// Runs the session's initial statements from `index` on.
    pub(super) fn set_up(&mut self, index: usize, out: &mut Vec<u8>) -> Progress {
        let server = Arc::clone(&self.server);
        let Some(sql) = server.connect.session_sql.get(index) else {
            self.phase = Phase::Ready;
            return Progress::Ready;
        };
        self.phase = Phase::Busy;
        match self.query(Job::Setup(index), sql.as_bytes(), out) {
            Ok(_) => Progress::Pending,
            Err(error) => self.fail(Box::new(error)),
        }
    }
}
