//! Authentication: cleartext, md5, SCRAM-SHA-256 with and without channel binding.
//!
//! Follows libpq: the server picks the method; of the SASL mechanisms, the one with channel binding wins if the
//! connection is encrypted; a client that could bind but was not offered it says so (gs2 flag `y`), so that a server
//! that did offer it notices the man in the middle. A server that skips its own proof is refused. Source: PostgreSQL
//! manual, 55.2.1 and 55.3; RFC 5802, RFC 5929 §4.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};

use crate::protocol::message::{self, Body};
use assay_seam::{Class, StatementError, TlsFacts};

/// libpq's channel_binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelBinding {
    Disable,
    Prefer,
    Require,
}

/// Who logs in.
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: Option<Vec<u8>>,
    /// Why there is no password, if one was found but ignored.
    pub(super) password_hint: Option<String>,
    pub(super) channel_binding: ChannelBinding,
}

/// The conversation so far.
#[derive(Default)]
pub(super) struct Login {
    /// Boxed: needed only for a moment in the life of a connection.
    scram: Option<Box<Scram>>,
    done: bool,
}

struct Scram {
    machine: ScramSha256,
    step: ExpectedMessage,
    bound: bool,
}

/// The message that the server should send next.
#[derive(PartialEq, Eq)]
enum ExpectedMessage {
    Continue,
    Final,
    Ok,
}

impl Login {
    /// The server let us in, and proved itself if the method provides for it.
    pub(super) fn done(&self) -> bool {
        self.done
    }

    /// An Authentication message arrived. Writes the answer to `out`.
    pub(super) fn on_request(
        &mut self,
        body: &[u8],
        credentials: &Credentials,
        tls: Option<&TlsFacts>,
        out: &mut Vec<u8>,
    ) -> Result<(), Box<StatementError>> {
        let mut body = Body(body);
        let request = body.i32()?;
        if credentials.channel_binding == ChannelBinding::Require
            && !matches!(request, 10..=12)
            && !self.scram.as_ref().is_some_and(|scram| scram.bound && scram.step == ExpectedMessage::Ok)
        {
            return Err(unbound("channel_binding=require, but the server does not use channel binding"));
        }
        match (request, &mut self.scram) {
            _ if self.done => return Err(out_of_turn(request)),
            (0, None) => self.done = true,
            (0, Some(scram)) if scram.step == ExpectedMessage::Ok => self.done = true,
            (0, Some(_)) => {
                return Err(refused("the server accepted the login without proving that it knows the password"));
            }
            (3, None) => {
                let password = password(credentials)?;
                message::write(b'p', out, |out| message::write_text(password, out));
            }
            (5, None) => {
                let salt = body.bytes(4)?.try_into().expect("four bytes were taken");
                let hash = md5_hash(credentials.user.as_bytes(), password(credentials)?, salt);
                message::write(b'p', out, |out| message::write_text(hash.as_bytes(), out));
            }
            (10, None) => self.scram = Some(Box::new(begin_scram(body, credentials, tls, out)?)),
            (11, Some(scram)) if scram.step == ExpectedMessage::Continue => {
                scram.machine.update(body.0).map_err(|error| refused(format!("SCRAM: {error}")))?;
                message::write(b'p', out, |out| out.extend_from_slice(scram.machine.message()));
                scram.step = ExpectedMessage::Final;
            }
            (12, Some(scram)) if scram.step == ExpectedMessage::Final => {
                scram.machine.finish(body.0).map_err(|error| refused(format!("SCRAM: {error}")))?;
                scram.step = ExpectedMessage::Ok;
            }
            (2 | 6..=9, None) => {
                return Err(refused(
                    "the server requires Kerberos, GSSAPI or SSPI, which are not supported: add a password rule for the user to pg_hba.conf",
                ));
            }
            _ => return Err(out_of_turn(request)),
        }
        Ok(())
    }
}

fn begin_scram(
    mut body: Body<'_>,
    credentials: &Credentials,
    tls: Option<&TlsFacts>,
    out: &mut Vec<u8>,
) -> Result<Scram, Box<StatementError>> {
    let (mut plain, mut plus) = (false, false);
    loop {
        match body.text()? {
            b"" => break,
            name if name == SCRAM_SHA_256.as_bytes() => plain = true,
            name if name == SCRAM_SHA_256_PLUS.as_bytes() => plus = true,
            _ => {}
        }
    }
    if plus && tls.is_none() {
        return Err(refused("the server offers channel binding on an unencrypted connection"));
    }
    let binding = match credentials.channel_binding {
        ChannelBinding::Disable => None,
        _ => tls.and_then(|tls| tls.server_end_point.clone()),
    };
    let (mechanism, flag, bound) = match binding {
        Some(data) if plus => (SCRAM_SHA_256_PLUS, sasl::ChannelBinding::tls_server_end_point(data), true),
        _ if credentials.channel_binding == ChannelBinding::Require => {
            return Err(unbound("channel_binding=require, but the server does not offer it or TLS is not in use"));
        }
        _ if !plain => return Err(refused("the server offers no supported SASL mechanism")),
        Some(_) => (SCRAM_SHA_256, sasl::ChannelBinding::unrequested(), false),
        None => (SCRAM_SHA_256, sasl::ChannelBinding::unsupported(), false),
    };
    let machine = ScramSha256::new(password(credentials)?, flag);
    message::write_sasl_initial(mechanism, machine.message(), out);
    Ok(Scram { machine, step: ExpectedMessage::Continue, bound })
}

fn password(credentials: &Credentials) -> Result<&[u8], Box<StatementError>> {
    match credentials.password.as_deref() {
        Some(password) if !password.is_empty() => Ok(password),
        _ => {
            let mut error = refused(format!("the server asks for a password for user {}", credentials.user));
            let ways = "give one in the URL, in PGPASSWORD or in ~/.pgpass";
            error.hint = Some(credentials.password_hint.clone().unwrap_or_else(|| ways.into()));
            Err(error)
        }
    }
}

fn out_of_turn(request: i32) -> Box<StatementError> {
    message::broken(format!("authentication request {request} came out of turn")).into()
}

/// Channel binding was requested but is not available.
fn unbound(message: &str) -> Box<StatementError> {
    let mut error = refused(message);
    error.hint = Some("this needs TLS (sslmode=require) and a role with a scram-sha-256 password".into());
    error
}

fn refused(message: impl Into<String>) -> Box<StatementError> {
    Box::new(StatementError::client(Class::Authentication, message))
}
