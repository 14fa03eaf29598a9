//! From the first message to a connection that is logged in: `hello`, the proofs of the password, the version.
//!
//! The first message of SCRAM travels with `hello`, which saves a round trip. Sources: MongoDB manual, `hello`,
//! `saslStart`; RFC 4616 (PLAIN).

use assay_seam::{Class, Code, Endpoint, Origin, Retry, StatementError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::protocol::bson::{self, Bson, Document};
use crate::protocol::compression::Compressor;
use crate::protocol::refusal;
use crate::protocol::scram::{self, Mechanism, Scram};
use crate::protocol::server::{self, Credentials, Method, MongoServer};

/// The oldest protocol with OP_MSG: MongoDB 3.6.
const WIRE_VERSION_MIN: i64 = 6;
const COMMAND_NOT_FOUND: u32 = 59;

/// What a server accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of a message.
    pub(super) message: usize,
    /// Writes in a command.
    pub(super) batch: usize,
    /// Whether it has transactions.
    pub(super) transactions: bool,
    /// How messages are compressed.
    pub(super) compressor: Option<Compressor>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { message: 48_000_000, batch: 100_000, transactions: false, compressor: None }
    }
}

/// The conversation so far.
#[derive(Debug)]
pub(super) struct Login {
    waits: WaitsFor,
    scram: Option<Scram>,
    pub(super) limits: Limits,
    /// The server's name for the conversation.
    conversation: i32,
    /// Of a scout: it ends with `hello`, whatever the server is.
    pub(super) members: Option<Vec<Endpoint>>,
}

/// The answer that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitsFor {
    Hello,
    /// To `hello` by its name before MongoDB 4.4.2.
    OldHello,
    /// The server's first message.
    First,
    /// The server's proof.
    Proof,
    /// The end of a conversation that a server does not end with its proof.
    End,
    /// Of a method with a single message.
    Only,
    Version,
}

/// What comes next.
pub(super) enum Turn {
    /// Send this command.
    Send(Vec<u8>),
    /// The connection is logged in, and the version is known.
    Done,
}

impl Login {
    /// Returns it with the first command.
    pub(super) fn start(server: &MongoServer) -> (Login, Vec<u8>) {
        let mechanism = server.credentials.as_ref().and_then(|credentials| match credentials.method {
            Method::Scram => Some(Mechanism::Sha256),
            Method::Only(mechanism) => Some(mechanism),
            Method::Plain | Method::X509 => None,
        });
        let scram = mechanism.zip(server.credentials.as_ref());
        let scram = scram.map(|(mechanism, credentials)| Scram::new(mechanism, &credentials.user, nonce()));
        let command = hello("hello", server, scram.as_ref());
        let limits = Limits::default();
        (Login { waits: WaitsFor::Hello, scram, limits, conversation: 0, members: None }, command)
    }

    /// One that only asks which servers belong together.
    pub(super) fn scout(server: &MongoServer) -> (Login, Vec<u8>) {
        let (waits, limits, members) = (WaitsFor::Hello, Limits::default(), Some(Vec::new()));
        (Login { waits, scram: None, limits, conversation: 0, members }, hello("hello", server, None))
    }

    /// Reads an answer.
    pub(super) fn on_reply(&mut self, reply: Document<'_>, server: &MongoServer) -> Result<Turn, Box<StatementError>> {
        if let Some(error) = refusal::of_reply(reply)? {
            return match self.waits {
                WaitsFor::Hello if error.code.number == COMMAND_NOT_FOUND => {
                    self.waits = WaitsFor::OldHello;
                    Ok(Turn::Send(hello("isMaster", server, self.scram.as_ref())))
                }
                // A server without this command reports no version.
                WaitsFor::Version => Ok(Turn::Done),
                _ => Err(error),
            };
        }
        match self.waits {
            WaitsFor::Hello | WaitsFor::OldHello if self.members.is_some() => {
                self.members = Some(members(reply, server)?);
                Ok(Turn::Done)
            }
            WaitsFor::Hello | WaitsFor::OldHello => {
                self.limits = check(reply, server)?;
                self.log_in(reply, server)
            }
            WaitsFor::First => self.on_first(reply, server),
            WaitsFor::Proof => {
                let scram = self.scram.as_ref().expect("a proof belongs to SCRAM");
                scram.finish(payload(reply)?).map_err(refused)?;
                if reply.is_true("done")? {
                    return Ok(self.ask_version(server));
                }
                self.waits = WaitsFor::End;
                Ok(Turn::Send(self.go_on(b"", server)))
            }
            WaitsFor::End if reply.is_true("done")? => Ok(self.ask_version(server)),
            WaitsFor::End => Err(refused("the server does not end the login".to_owned())),
            WaitsFor::Only => Ok(self.ask_version(server)),
            WaitsFor::Version => {
                let text = |name: &str| {
                    reply.text(name).map(|text| String::from_utf8_lossy(text.unwrap_or_default()).into_owned())
                };
                let (version, ferret) = (text("version")?, text("ferretdbVersion")?);
                let found = match ferret.strip_prefix('v').unwrap_or(&ferret) {
                    "" => ("MongoDB".to_owned(), version),
                    ferret => ("FerretDB".to_owned(), format!("{ferret} (as MongoDB {version})")),
                };
                let _ = server.version.set(found);
                Ok(Turn::Done)
            }
        }
    }

    /// After `hello`.
    fn log_in(&mut self, hello: Document<'_>, server: &MongoServer) -> Result<Turn, Box<StatementError>> {
        let Some(credentials) = &server.credentials else { return Ok(self.ask_version(server)) };
        if let Some(Bson::Document(first)) = hello.get("speculativeAuthenticate")?
            && self.scram.is_some()
        {
            return self.on_first(first, server);
        }
        let command = match credentials.method {
            Method::X509 => {
                self.waits = WaitsFor::Only;
                command("authenticate", &credentials.source, |out| {
                    bson::text_element("mechanism", b"MONGODB-X509", out);
                    if !credentials.user.is_empty() {
                        bson::text_element("user", credentials.user.as_bytes(), out);
                    }
                })
            }
            Method::Plain => {
                self.waits = WaitsFor::Only;
                let payload = format!("\0{}\0{}", credentials.user, credentials.password);
                start_sasl("PLAIN", payload.as_bytes(), credentials)
            }
            Method::Scram | Method::Only(_) => {
                let offered = hello.inner("saslSupportedMechs")?;
                let (mut any, mut best) = (false, false);
                for mechanism in offered.elements() {
                    any = true;
                    best |= matches!(mechanism?, (_, Bson::Text(b"SCRAM-SHA-256")));
                }
                // A server that does not tell has the better one.
                let mechanism = match credentials.method {
                    Method::Only(mechanism) => mechanism,
                    _ if any && !best => Mechanism::Sha1,
                    _ => Mechanism::Sha256,
                };
                let scram = self.scram.insert(Scram::new(mechanism, &credentials.user, nonce()));
                self.waits = WaitsFor::First;
                start_sasl(mechanism.name(), scram.first().as_bytes(), credentials)
            }
        };
        Ok(Turn::Send(command))
    }

    fn on_first(&mut self, reply: Document<'_>, server: &MongoServer) -> Result<Turn, Box<StatementError>> {
        let (Some(scram), Some(credentials)) = (&mut self.scram, &server.credentials) else {
            return Err(refused("the server asks for a proof that belongs to no login".to_owned()));
        };
        self.conversation = reply.integer("conversationId")?.and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        let password = scram::prepared(scram.mechanism(), &credentials.user, &credentials.password).map_err(refused)?;
        let answer = scram.answer(payload(reply)?, &password, &server.salted);
        let answer = answer.map_err(|why| refused(format!("the server's first message of the login: {why}")))?;
        self.waits = WaitsFor::Proof;
        Ok(Turn::Send(self.go_on(answer.as_bytes(), server)))
    }

    fn go_on(&self, payload: &[u8], server: &MongoServer) -> Vec<u8> {
        let source = server.credentials.as_ref().map_or("admin", |credentials| &credentials.source);
        command("saslContinue", source, |out| {
            bson::int_element("conversationId", self.conversation, out);
            bson::name(bson::BINARY, b"payload", out);
            bson::binary(0, payload, out);
        })
    }

    fn ask_version(&mut self, server: &MongoServer) -> Turn {
        if server.version.get().is_some() {
            return Turn::Done;
        }
        self.waits = WaitsFor::Version;
        Turn::Send(command("buildInfo", "admin", |_| ()))
    }
}

/// 24 random bytes as text.
fn nonce() -> String {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).expect("the kernel has random numbers");
    STANDARD.encode(bytes)
}

/// `{NAME: 1, …, $db: DATABASE}`.
fn command(name: &str, database: &str, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    let start = bson::begin(&mut out);
    bson::int_element(name, 1, &mut out);
    write(&mut out);
    bson::text_element("$db", database.as_bytes(), &mut out);
    bson::end(start, &mut out);
    out
}

fn hello(name: &str, server: &MongoServer, scram: Option<&Scram>) -> Vec<u8> {
    command(name, "admin", |out| {
        bson::bool_element("helloOk", true, out);
        bson::document_element("client", out, |out| {
            if !server.application_name.is_empty() {
                let name = server.application_name.chars().take(100).collect::<String>();
                bson::document_element("application", out, |out| bson::text_element("name", name.as_bytes(), out));
            }
            bson::document_element("driver", out, |out| {
                bson::text_element("name", b"assay", out);
                bson::text_element("version", env!("CARGO_PKG_VERSION").as_bytes(), out);
            });
            bson::document_element("os", out, |out| bson::text_element("type", std::env::consts::OS.as_bytes(), out));
        });
        if !server.compressors.is_empty() {
            bson::name(bson::ARRAY, b"compression", out);
            let list = bson::begin(out);
            for (place, compressor) in server.compressors.iter().enumerate() {
                bson::text_element(&place.to_string(), compressor.name().as_bytes(), out);
            }
            bson::end(list, out);
        }
        let (Some(scram), Some(credentials)) = (scram, &server.credentials) else { return };
        let user = format!("{}.{}", credentials.source, credentials.user);
        bson::text_element("saslSupportedMechs", user.as_bytes(), out);
        bson::document_element("speculativeAuthenticate", out, |out| {
            bson::int_element("saslStart", 1, out);
            write_sasl(scram.mechanism().name(), scram.first().as_bytes(), out);
            bson::text_element("db", credentials.source.as_bytes(), out);
        });
    })
}

fn start_sasl(mechanism: &str, payload: &[u8], credentials: &Credentials) -> Vec<u8> {
    command("saslStart", &credentials.source, |out| write_sasl(mechanism, payload, out))
}

fn write_sasl(mechanism: &str, payload: &[u8], out: &mut Vec<u8>) {
    bson::text_element("mechanism", mechanism.as_bytes(), out);
    bson::name(bson::BINARY, b"payload", out);
    bson::binary(0, payload, out);
    // The server's proof is its last message.
    bson::document_element("options", out, |out| bson::bool_element("skipEmptyExchange", true, out));
}

fn payload(reply: Document<'_>) -> Result<&[u8], Box<StatementError>> {
    match reply.get("payload")? {
        Some(Bson::Binary { bytes, .. }) => Ok(bytes),
        Some(Bson::Text(text)) => Ok(text),
        _ => Err(refused("the server's message of the login has no payload".to_owned())),
    }
}

fn refused(message: String) -> Box<StatementError> {
    Box::new(StatementError::client(Class::Authentication, message))
}

/// The first compressor of the URL that the server has, too. None would not be what was asked for.
fn agreed(hello: Document<'_>, server: &MongoServer) -> Result<Option<Compressor>, Box<StatementError>> {
    let offered = hello.inner("compression")?;
    for compressor in &server.compressors {
        for element in offered.elements() {
            if element?.1 == Bson::Text(compressor.name().as_bytes()) {
                return Ok(Some(*compressor));
            }
        }
    }
    if server.compressors.is_empty() {
        return Ok(None);
    }
    let names: Vec<&str> = server.compressors.iter().map(|compressor| compressor.name()).collect();
    let message = format!("the server does not compress messages with {}", names.join(" or "));
    let mut error = StatementError::client(Class::Other, message);
    error.hint = Some("leave out `compressors`, or start the server with --networkMessageCompressors".to_owned());
    Err(Box::new(error))
}

/// The members of the set of the URL that this server is in; none if it is in no set, or in another.
fn members(hello: Document<'_>, server: &MongoServer) -> Result<Vec<Endpoint>, Box<StatementError>> {
    let wanted = server.topology.set.as_deref().map(str::as_bytes);
    match hello.text("setName")? {
        None => return Ok(Vec::new()),
        Some(set) if wanted.is_some_and(|wanted| wanted != set) => return Ok(Vec::new()),
        Some(_) => {}
    }
    let mut members = Vec::new();
    // Those that never become primary are named apart.
    for field in ["hosts", "passives"] {
        for element in hello.inner(field)?.elements() {
            let (_, Bson::Text(name)) = element? else { continue };
            members.extend(std::str::from_utf8(name).ok().and_then(server::endpoint_of));
        }
    }
    members.truncate(MEMBERS_MAX);
    Ok(members)
}

/// A replica set has no more.
const MEMBERS_MAX: usize = 50;

/// Whether this server may be used, and what it accepts.
fn check(hello: Document<'_>, server: &MongoServer) -> Result<Limits, Box<StatementError>> {
    let wire = hello.integer("maxWireVersion")?.unwrap_or_default();
    if wire < WIRE_VERSION_MIN {
        let message =
            format!("the server is too old: its protocol has version {wire}, and {WIRE_VERSION_MIN} is needed");
        let mut error = StatementError::client(Class::Protocol, message);
        error.hint = Some("use MongoDB 3.6 or newer".to_owned());
        return Err(Box::new(error));
    }
    let topology = &server.topology;
    let text = |name: &str| hello.text(name).map(|text| text.map(|text| String::from_utf8_lossy(text).into_owned()));
    let set = text("setName")?;
    let is_member = set.is_some();
    if let Some(wanted) = &topology.set
        && set.as_ref() != Some(wanted)
    {
        let is = set.map_or_else(|| "is in no replica set".to_owned(), |set| format!("is in the replica set {set}"));
        let mut error = StatementError::client(Class::Other, format!("the server {is}, and not in {wanted}"));
        error.hint = Some("correct `replicaSet` in the URL, or leave it out".to_owned());
        return Err(Box::new(error));
    }
    let is_primary = hello.is_true("isWritablePrimary")? || hello.is_true("ismaster")?;
    let is_router = text("msg")?.as_deref() == Some("isdbgrid");
    let suits =
        topology.direct || is_router || if topology.secondary { hello.is_true("secondary")? } else { is_primary };
    if !suits {
        let wanted = if topology.secondary { "a secondary" } else { "the primary" };
        let primary = text("primary")?.map_or_else(String::new, |primary| format!("; the primary is {primary}"));
        return Err(Box::new(StatementError {
            origin: Origin::Server,
            class: Class::Connection,
            code: Code::default(),
            retry: Retry::Reconnect,
            message: format!("the server is not {wanted} of its replica set{primary}"),
            position: 0,
            hint: Some(
                "the members that the set lists were tried as well: check that their names are known here, and that \
                 they accept connections; or use this one with directConnection=true"
                    .to_owned(),
            ),
            details: String::new(),
        }));
    }
    let limit = |name: &str, usual: usize| {
        hello.integer(name).map(|found| found.and_then(|n| usize::try_from(n).ok()).unwrap_or(usual).clamp(1, usual))
    };
    let usual = Limits::default();
    let has_sessions = hello.integer("logicalSessionTimeoutMinutes")?.is_some();
    Ok(Limits {
        transactions: has_sessions && (is_member || is_router),
        compressor: agreed(hello, server)?,
        message: limit("maxMessageSizeBytes", usual.message)?,
        batch: limit("maxWriteBatchSize", usual.batch)?,
    })
}
