//! Login: the server's greeting, capabilities, and authentication.
//!
//! Handles packets' payloads only; the connection frames them. A password is sent in clear only where nobody can read
//! it: inside TLS, or (caching_sha2_password) on a unix socket. Source: MySQL internals, "Connection Phase"; MariaDB
//! knowledge base, "Connection".

use assay_seam::{Class, StatementError};

use super::auth;
use super::packet::{Reader, violation, write_lenenc};
use super::refusal::read_error;
use super::server::MySqlServer;

// Capability flags. Source: include/mysql_com.h
const LONG_PASSWORD: u32 = 1;
const LONG_FLAG: u32 = 1 << 2;
const CONNECT_WITH_DB: u32 = 1 << 3;
pub(super) const LOCAL_FILES: u32 = 1 << 7;
const PROTOCOL_41: u32 = 1 << 9;
pub(super) const SSL: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const MULTI_STATEMENTS: u32 = 1 << 16;
const MULTI_RESULTS: u32 = 1 << 17;
const PS_MULTI_RESULTS: u32 = 1 << 18;
const PLUGIN_AUTH: u32 = 1 << 19;
const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
pub(super) const DEPRECATE_EOF: u32 = 1 << 24;

// MariaDB's extended capabilities. Source: MariaDB knowledge base, "Connection"
/// COM_STMT_BULK_EXECUTE.
const BULK: u32 = 1 << 2;
/// Columns of a prepared statement's results are described once, and again when they change.
const CACHE_METADATA: u32 = 1 << 4;

const REQUIRED: u32 = PROTOCOL_41 | SECURE_CONNECTION;
const WANTED: u32 = REQUIRED
    | LONG_PASSWORD
    | LONG_FLAG
    | LOCAL_FILES
    | TRANSACTIONS
    | MULTI_STATEMENTS
    | MULTI_RESULTS
    | PS_MULTI_RESULTS
    | PLUGIN_AUTH
    | PLUGIN_AUTH_LENENC
    | DEPRECATE_EOF;

/// utf8mb4_general_ci: known to every server since MySQL 5.5.3.
const UTF8MB4: u8 = 45;

/// Packets a server may spend on one login; MariaDB tries an account's plugins one after the other.
const ROUNDS_MAX: u8 = 16;

/// The server's first packet.
#[derive(Debug)]
pub(super) struct Greeting {
    /// Verbatim, without the `5.5.5-` that MariaDB puts before it.
    pub(super) version: Box<str>,
    /// The server's capabilities.
    pub(super) capabilities: u32,
    /// MariaDB's additional capabilities; 0 for others.
    extended: u32,
    nonce: Vec<u8>,
    plugin: Vec<u8>,
}

impl Greeting {
    /// Reads protocol version 10, or the error a server sends in its place.
    pub(super) fn read(payload: &[u8]) -> Result<Greeting, Box<StatementError>> {
        match payload.first() {
            Some(0xFF) => return Err(read_error(payload)),
            Some(10) => {}
            _ => return Err(violation("greeted with something other than protocol version 10")),
        }
        let greeting = Greeting::fields(payload).ok_or_else(|| violation("sent a greeting that is cut short"))?;
        if greeting.capabilities & REQUIRED != REQUIRED {
            let message = format!("the server ({}) is too old: it lacks the protocol of MySQL 4.1", greeting.version);
            return Err(Box::new(StatementError::client(Class::Protocol, message)));
        }
        Ok(greeting)
    }

    fn fields(payload: &[u8]) -> Option<Greeting> {
        let mut reader = Reader(payload);
        reader.u8()?;
        let version = String::from_utf8_lossy(reader.nul_bytes()?).into_owned();
        let version = version.strip_prefix("5.5.5-").filter(|rest| rest.contains("MariaDB")).unwrap_or(&version).into();
        reader.u32()?;
        let mut nonce = reader.bytes(8)?.to_vec();
        reader.u8()?;
        let low = reader.u16()?;
        // Character set and status, which do not yet say anything about this session.
        reader.bytes(3)?;
        let capabilities = u32::from(low) | u32::from(reader.u16()?) << 16;
        let nonce_len = reader.u8()?;
        reader.bytes(6)?;
        // MariaDB leaves out the oldest flag to mark these bytes as valid.
        let extended = reader.u32()?;
        let extended = if capabilities & LONG_PASSWORD == 0 { extended } else { 0 };
        nonce.extend(reader.bytes(usize::from(nonce_len.saturating_sub(8).max(13)))?);
        // The last byte is a NUL that does not belong to it.
        nonce.pop();
        let plugin = match capabilities & PLUGIN_AUTH {
            0 => Vec::new(),
            // Some servers forget the NUL.
            _ => reader.nul_bytes().unwrap_or(reader.0).to_vec(),
        };
        Some(Greeting { version, capabilities, extended, nonce, plugin })
    }

    /// What both sides support and this server needs.
    pub(super) fn agreed(&self, server: &MySqlServer, tls: bool) -> u32 {
        let database = if server.database.is_empty() { 0 } else { CONNECT_WITH_DB };
        let ssl = if tls { SSL } else { 0 };
        self.capabilities & (WANTED | database | ssl)
    }

    /// Whether the server accepts many rows of parameters for one statement.
    pub(super) fn bulk(&self) -> bool {
        self.extended & BULK != 0
    }

    /// Whether results of prepared statements may come without a description of their columns. Only without the EOF
    /// packets, which nobody agrees on there.
    pub(super) fn caches_metadata(&self, capabilities: u32) -> bool {
        self.extended & CACHE_METADATA != 0 && capabilities & DEPRECATE_EOF != 0
    }

    /// Appends the common beginning of an SSLRequest and a handshake response.
    pub(super) fn write_preamble(&self, capabilities: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&capabilities.to_le_bytes());
        out.extend_from_slice(&(super::packet::PACKET_MAX as u32).to_le_bytes());
        out.push(UTF8MB4);
        out.extend_from_slice(&[0; 19]);
        let cache = if self.caches_metadata(capabilities) { CACHE_METADATA } else { 0 };
        out.extend_from_slice(&(self.extended & BULK | cache).to_le_bytes());
    }
}

/// How an account proves its password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Native,
    CachingSha2,
    Sha256,
    Ed25519,
    Clear,
}

impl Method {
    const ALL: [Method; 5] = [Method::Native, Method::CachingSha2, Method::Sha256, Method::Ed25519, Method::Clear];

    const fn name(self) -> &'static str {
        match self {
            Method::Native => "mysql_native_password",
            Method::CachingSha2 => "caching_sha2_password",
            Method::Sha256 => "sha256_password",
            Method::Ed25519 => "client_ed25519",
            Method::Clear => "mysql_clear_password",
        }
    }

    fn find(plugin: &[u8]) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name().as_bytes() == plugin)
    }
}

/// Who could read what we send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    /// Encrypted.
    pub(super) tls: bool,
    /// A unix socket: it never leaves the machine.
    pub(super) local: bool,
}

/// A login in progress, after the greeting.
#[derive(Debug)]
pub(super) struct Login {
    method: Method,
    nonce: Vec<u8>,
    channel: Channel,
    /// We asked for the server's public key.
    key_wanted: bool,
    rounds: u8,
}

/// What to do after a packet of the login.
#[derive(Debug)]
pub(super) enum Turn {
    /// Send this packet.
    Answer(Vec<u8>),
    /// Wait for the next packet.
    Wait,
    /// Logged in; the payload was an OK packet.
    Done,
}

impl Login {
    /// Starts a login and appends the payload of the handshake response.
    pub(super) fn start(
        greeting: &Greeting,
        server: &MySqlServer,
        channel: Channel,
        out: &mut Vec<u8>,
    ) -> Result<Login, Box<StatementError>> {
        let capabilities = greeting.agreed(server, channel.tls);
        // A plugin that we cannot start with is not an error: the server asks for the account's own one afterwards.
        let method = match Method::find(&greeting.plugin) {
            Some(method @ (Method::CachingSha2 | Method::Sha256)) => method,
            _ => Method::Native,
        };
        let mut login = Login { method, nonce: greeting.nonce.clone(), channel, key_wanted: false, rounds: 0 };
        let proof = login.proof(server)?;
        greeting.write_preamble(capabilities, out);
        out.extend_from_slice(server.user.as_bytes());
        out.push(0);
        // At most 250 bytes, for which both forms of length are the same single byte; a longer clear password waits
        // until the server asks.
        let proof = if proof.len() <= 250 { proof } else { Vec::new() };
        write_lenenc(proof.len(), out);
        out.extend_from_slice(&proof);
        if capabilities & CONNECT_WITH_DB != 0 {
            out.extend_from_slice(server.database.as_bytes());
            out.push(0);
        }
        if capabilities & PLUGIN_AUTH != 0 {
            out.extend_from_slice(method.name().as_bytes());
            out.push(0);
        }
        Ok(login)
    }

    /// A packet arrived.
    pub(super) fn on_packet(&mut self, payload: &[u8], server: &MySqlServer) -> Result<Turn, Box<StatementError>> {
        self.rounds += 1;
        if self.rounds > ROUNDS_MAX {
            return Err(violation("asks for the password again and again"));
        }
        match payload {
            [0x00, ..] => Ok(Turn::Done),
            [0xFF, ..] => Err(read_error(payload)),
            [0xFE, request @ ..] => self.on_switch(request, server).map(Turn::Answer),
            [0x01, data @ ..] => self.on_data(data, server),
            _ => Err(violation("sent an unknown packet during the login")),
        }
    }

    /// The account uses another plugin than the one we started with.
    fn on_switch(&mut self, request: &[u8], server: &MySqlServer) -> Result<Vec<u8>, Box<StatementError>> {
        let mut reader = Reader(request);
        let plugin = match request {
            [] => b"mysql_old_password",
            _ => reader.nul_bytes().ok_or_else(|| violation("sent a request for a plugin that is cut short"))?,
        };
        self.method = Method::find(plugin).ok_or_else(|| unsupported(plugin, server))?;
        self.nonce = reader.0.to_vec();
        self.key_wanted = false;
        self.proof(server)
    }

    /// The proof of the password in the first packet of the method.
    fn proof(&mut self, server: &MySqlServer) -> Result<Vec<u8>, Box<StatementError>> {
        let password = server.password.as_bytes();
        let nonce = |length| self.nonce.get(..length).ok_or_else(|| violation("sent a nonce that is cut short"));
        Ok(match self.method {
            Method::Native => auth::native(password, nonce(auth::NONCE_LEN)?),
            Method::CachingSha2 => auth::caching_sha2(password, nonce(auth::NONCE_LEN)?),
            Method::Ed25519 => auth::ed25519(password, nonce(32)?),
            Method::Sha256 | Method::Clear if self.channel.tls => in_clear(server),
            Method::Sha256 if password.is_empty() => vec![0],
            Method::Sha256 => {
                self.key_wanted = true;
                vec![1]
            }
            Method::Clear => {
                let mut error = StatementError::client(
                    Class::Authentication,
                    "the server wants the password in clear (mysql_clear_password) on a connection without TLS",
                );
                error.hint = Some("add `sslmode=require` to the URL".into());
                return Err(Box::new(error));
            }
        })
    }

    /// The method continues: caching_sha2_password reports whether it knew the account, or a public key arrived.
    fn on_data(&mut self, data: &[u8], server: &MySqlServer) -> Result<Turn, Box<StatementError>> {
        if std::mem::take(&mut self.key_wanted) {
            let nonce = self.nonce.get(..auth::NONCE_LEN).unwrap_or(&[]);
            let cipher = auth::rsa_encrypted(server.password.as_bytes(), nonce, data);
            return cipher.map(Turn::Answer).ok_or_else(|| violation("sent a public key that cannot be used"));
        }
        match (self.method, data) {
            (Method::CachingSha2, [3]) => Ok(Turn::Wait),
            (Method::CachingSha2, [4]) if self.channel.tls || self.channel.local => Ok(Turn::Answer(in_clear(server))),
            (Method::CachingSha2, [4]) => {
                self.key_wanted = true;
                Ok(Turn::Answer(vec![2]))
            }
            _ => Err(violation("sent data the authentication method does not have")),
        }
    }
}

fn in_clear(server: &MySqlServer) -> Vec<u8> {
    [server.password.as_bytes(), &[0]].concat()
}

fn unsupported(plugin: &[u8], server: &MySqlServer) -> Box<StatementError> {
    let plugin = String::from_utf8_lossy(plugin);
    let message = format!("the account of user `{}` logs in by `{plugin}`, which is not supported", server.user);
    let mut error = StatementError::client(Class::Authentication, message);
    let known: Vec<&str> = Method::ALL.map(Method::name).into();
    error.hint = Some(format!("give the account one of {}", known.join(", ")));
    Box::new(error)
}
