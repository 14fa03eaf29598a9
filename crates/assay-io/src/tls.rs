//! Encryption: rustls with libpq's sslmode.
//!
//! `Tls` is what a target's sockets share, `TlsSession` one socket's state. A session has no buffers of its own except
//! for an incomplete record: it uses those that the event loop's sockets share (rustls's unbuffered interface). An idle
//! session needs about 4 KB, including the certificate, and a round trip two allocations, which are rustls's
//! (tests/memory.rs prints both).
//!
//! Each connect makes a full handshake. Resumption is disabled: the clients whose load we imitate do not resume either,
//! and the cache would be a lock that all workers share.
//!
//! What rustls does not support is not supported: TLS before 1.2, key exchange without forward secrecy, DHE, RSA keys
//! under 2,048 bits. A host name must be one of the certificate's alternative names; the common name, libpq's fallback,
//! is not used.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use assay_seam::{TlsFacts, TlsMode, TlsSettings};
use rustls::RootCertStore;
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{AlertDescription, CertificateError, ClientConfig, InvalidMessage, OtherError, PeerIncompatible};

use crate::address::{Address, ConnectError};
use crate::certificate::Certificate;
use crate::{Closed, os_error};

mod verify;

use self::verify::{RSA_BITS_MIN, SelfSigned, ShortKey, Verifier, Version1};

/// A TLS client configuration, created once per target and shared by its sockets.
#[derive(Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    /// The name in SNI; an IP address if the target's name cannot be sent in SNI.
    name: ServerName<'static>,
    checks_name: bool,
}

impl Tls {
    /// Reads the certificates named in `settings`. Fails with the file and reason.
    ///
    /// What is verified: up to `Require`, only that the server has its certificate's key; from `VerifyCa` on, that the
    /// certificate chains to a root (or is one, byte for byte, as OpenSSL allows); in `VerifyFull`, also that it is for
    /// `server_name`, a host or an IP address. `Require` with a root file is `VerifyCa`, as in libpq.
    pub fn new(settings: &TlsSettings) -> Result<Tls, ConnectError> {
        let mode = match settings.mode {
            TlsMode::Require if settings.root.is_some() => TlsMode::VerifyCa,
            mode => mode,
        };
        let checks_name = mode == TlsMode::VerifyFull;
        let name = server_name(&settings.server_name, checks_name)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let verifier = if mode >= TlsMode::VerifyCa {
            let roots = match &settings.root {
                Some(path) => certificates(path, "root certificates")?,
                None => system_roots()?,
            };
            let mut store = RootCertStore::empty();
            let (usable, _) = store.add_parsable_certificates(roots.iter().cloned());
            if usable == 0 {
                let from = settings.root.as_deref().unwrap_or(Path::new("the system"));
                return Err(unusable(from, "it contains no usable root certificate"));
            }
            Verifier::chain(algorithms, store, roots, checks_name)
        } else {
            Verifier::anything(algorithms)
        };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the ring provider has suites for TLS 1.2 and 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &settings.client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate, "certificates")?;
                let bits = chain.first().and_then(|first| Certificate::parse(first)?.rsa_bits());
                if let Some(bits) = bits.filter(|bits| *bits < RSA_BITS_MIN) {
                    let why = format!("its RSA key has {bits} bits, and at least {RSA_BITS_MIN} are needed");
                    return Err(ConnectError { hint: Some(LENGTH.to_owned()), ..unusable(certificate, &why) });
                }
                let private = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
                    pem::Error::NoItemsFound => {
                        unusable(key, "it contains no private key (encrypted keys are not supported)")
                    }
                    error => unreadable(key, &error),
                })?;
                let signer = provider
                    .key_provider
                    .load_private_key(private)
                    .map_err(|error| unusable(key, &format!("its private key cannot be used: {error}")))?;
                // rustls compares the two itself, but does not read certificates of version 1.
                let read = chain.first().and_then(|first| Certificate::parse(first));
                let read = read.ok_or_else(|| unusable(certificate, "its first certificate is damaged"))?;
                if signer.public_key().is_some_and(|public| public.as_ref() != read.key) {
                    return Err(unusable(key, &format!("it is not the key of {}", certificate.display())));
                }
                let pair = SingleCertAndKey::from(CertifiedKey::new(chain, signer));
                builder.with_client_cert_resolver(Arc::new(pair))
            }
        };
        config.resumption = Resumption::disabled();
        Ok(Tls { config: Arc::new(config), name, checks_name })
    }

    /// The same for another host, whose certificate has another name.
    pub fn for_host(&self, host: &str) -> Result<Tls, ConnectError> {
        let (name, checks_name) = (server_name(host, self.checks_name)?, self.checks_name);
        Ok(Tls { config: Arc::clone(&self.config), name, checks_name })
    }
}

fn server_name(host: &str, checks_name: bool) -> Result<ServerName<'static>, ConnectError> {
    match ServerName::try_from(host) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) if checks_name => Err(ConnectError {
            message: format!("`{host}` is not a host name that can be checked against a certificate"),
            hint: Some("use the host's name, or check only the certificate's chain (`verify-ca`)".into()),
        }),
        // rustls never sends an IP address as SNI, so a name that cannot be sent becomes one.
        Err(_) => Ok(ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into())),
    }
}

fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let read = CertificateDer::pem_file_iter(path).and_then(|found| found.collect::<Result<Vec<_>, _>>());
    let found = read.map_err(|error| unreadable(path, &error))?;
    if found.is_empty() { Err(unusable(path, &format!("it contains no {what} in PEM format"))) } else { Ok(found) }
}

fn system_roots() -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let found = rustls_native_certs::load_native_certs();
    if !found.certs.is_empty() {
        return Ok(found.certs);
    }
    let why = found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
    Err(ConnectError {
        message: format!("reading the system's root certificates: {why}"),
        hint: Some("install the package ca-certificates, or give a file with root certificates".into()),
    })
}

fn unreadable(path: &Path, error: &pem::Error) -> ConnectError {
    let why = match error {
        pem::Error::Io(error) => os_error::words(error),
        error => error.to_string(),
    };
    unusable(path, &why)
}

fn unusable(path: &Path, why: &str) -> ConnectError {
    ConnectError { message: format!("reading {}: {why}", path.display()), hint: None }
}

/// One socket's encryption.
pub(crate) struct TlsSession {
    connection: UnbufferedClientConnection,
    /// An incomplete record or handshake message.
    rest: Vec<u8>,
    secured: bool,
    peer_closed: bool,
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSession").field("secured", &self.secured).finish_non_exhaustive()
    }
}

/// An incomplete record's buffer larger than this is freed once it is empty.
const SPARE_BYTES_MAX: usize = 4 * 1024;

/// RFC 8446 §5.2: a record holds at most 2¹⁴ bytes. Its frame takes at most 5 + 8 + 1 + 16 in the suites we offer.
const RECORD_BYTES_MAX: usize = 1 << 14;
const FRAME_BYTES_MAX: usize = 30;

impl TlsSession {
    /// Starts a handshake: appends what must be sent first to `out`.
    pub(crate) fn start(tls: &Tls, out: &mut Vec<u8>) -> Result<TlsSession, rustls::Error> {
        let connection = UnbufferedClientConnection::new(Arc::clone(&tls.config), tls.name.clone())?;
        let mut session = TlsSession { connection, rest: Vec::new(), secured: false, peer_closed: false };
        session.process(&mut [], &mut Vec::new(), out)?;
        Ok(session)
    }

    /// Application data may be sent.
    pub(crate) fn is_secured(&self) -> bool {
        self.secured
    }

    /// Whether the peer has said that nothing more will come.
    pub(crate) fn is_closed(&self) -> bool {
        self.peer_closed
    }

    /// What must be put before newly arrived bytes.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.rest
    }

    /// Handles what arrived, with `rest` before it: decrypts it in place, appends plain text to `plain` and what must
    /// be sent to `out` (even after an error: the alert for the server). Returns true if this ended the handshake.
    pub(crate) fn receive(
        &mut self,
        incoming: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<bool, rustls::Error> {
        let taken = self.process(incoming, plain, out)?;
        self.rest.clear();
        self.rest.extend_from_slice(&incoming[taken..]);
        if self.rest.is_empty() && self.rest.capacity() > SPARE_BYTES_MAX {
            self.rest = Vec::new();
        }
        let ended = !self.secured && !self.connection.is_handshaking();
        self.secured |= ended;
        Ok(ended)
    }

    /// What the handshake revealed.
    pub(crate) fn facts(&self) -> TlsFacts {
        let version = self.connection.protocol_version().and_then(|version| version.as_str()).unwrap_or_default();
        let version = version.replace('_', ".");
        let suite = self.connection.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
        // rustls names the suites of TLS 1.3 `TLS13_…`; IANA and everybody else `TLS_…`.
        let suite = suite.unwrap_or_default().replace("TLS13_", "TLS_");
        let certificate = self.connection.peer_certificates().and_then(|chain| chain.first());
        let server_end_point = certificate.and_then(|der| Certificate::parse(der)?.server_end_point());
        TlsFacts { server_end_point, cipher: format!("{version} {suite}") }
    }

    /// Appends `bytes`, encrypted, to `out`.
    pub(crate) fn encrypt(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), rustls::Error> {
        self.write(out, bytes.len() + (bytes.len() / RECORD_BYTES_MAX + 1) * FRAME_BYTES_MAX, |traffic, out| {
            traffic.encrypt(bytes, out)
        })
    }

    /// Appends the goodbye to `out`.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) -> Result<(), rustls::Error> {
        self.write(out, 2 + FRAME_BYTES_MAX, |traffic, out| traffic.queue_close_notify(out))
    }

    /// Writes the result of `encode`, for which `room` bytes are usually enough, after what the session itself has to
    /// send.
    fn write(
        &mut self,
        out: &mut Vec<u8>,
        mut room: usize,
        mut encode: impl FnMut(&mut WriteTraffic<'_>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<(), rustls::Error> {
        loop {
            let UnbufferedStatus { discard, state } = self.connection.process_tls_records(&mut self.rest);
            let mut done = false;
            match state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    let at = out.len();
                    while !done {
                        out.resize(at + room, 0);
                        match encode(&mut traffic, &mut out[at..]) {
                            Ok(written) => {
                                out.truncate(at + written);
                                done = true;
                            }
                            // The session had something of its own to say.
                            Err(EncryptError::InsufficientSize(more)) if more.required_size > room => {
                                room = more.required_size
                            }
                            Err(_) => return Err(rustls::Error::EncryptError),
                        }
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => encode_into(&mut data, out),
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.peer_closed = true,
                _ => return Err(rustls::Error::HandshakeNotComplete),
            }
            self.rest.drain(..discard);
            if done {
                return Ok(());
            }
        }
    }

    /// Returns how many bytes of `incoming` have been handled.
    fn process(&mut self, incoming: &mut [u8], plain: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<usize, rustls::Error> {
        let mut taken = 0;
        loop {
            let UnbufferedStatus { mut discard, state } = self.connection.process_tls_records(&mut incoming[taken..]);
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode_into(&mut data, out),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.peer_closed = true,
                Ok(_) => return Ok(taken + discard),
                Err(error) => {
                    self.take_alert(out);
                    return Err(error);
                }
            }
            taken += discard;
        }
    }

    /// Only what rustls has queued is taken out: it must not see the failed bytes again.
    fn take_alert(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            match self.connection.process_tls_records(&mut []).state {
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode_into(&mut data, out),
                // Plain text from before the failure comes first.
                Ok(ConnectionState::ReadTraffic(mut traffic)) => while traffic.next_record().is_some() {},
                _ => return,
            }
        }
    }
}

type WriteTraffic<'a> = rustls::unbuffered::WriteTraffic<'a, rustls::client::ClientConnectionData>;
type EncodeTlsData<'a> = rustls::unbuffered::EncodeTlsData<'a, rustls::client::ClientConnectionData>;

fn encode_into(data: &mut EncodeTlsData<'_>, out: &mut Vec<u8>) {
    let at = out.len();
    if let Err(EncodeError::InsufficientSize(size)) = data.encode(&mut []) {
        out.resize(at + size.required_size, 0);
        data.encode(&mut out[at..]).expect("it has the room that it asked for");
    }
}

/// A TLS error, phrased for somebody who runs a database. `secured`: whether the handshake was over.
pub(crate) fn explain(address: &Address, error: &rustls::Error, secured: bool) -> Closed {
    let (what, hint) = words(error);
    let message = match secured {
        true => format!("lost the connection to {address}: {what}"),
        false => format!("TLS handshake with {address}: {what}"),
    };
    Closed { message, hint: hint.map(str::to_owned), tls: true }
}

/// The socket closed during a handshake.
pub(crate) fn interrupted(why: Closed) -> Closed {
    Closed {
        message: format!("{} during the TLS handshake", why.message),
        hint: Some("check that the server has TLS switched on; its log may say why it hung up".into()),
        tls: true,
    }
}

const ROOT: &str = "give the root certificate that signed it, or do not verify (`require`)";
const LENGTH: &str =
    "issue it with a longer key, such as `openssl req -newkey rsa:2048`, or connect without TLS (`disable`)";
const VERSIONS: &str = "the server must offer TLS 1.3, or TLS 1.2 with ECDHE";
const CLIENT: &str = "check the client certificate and key, and the authorities that the server trusts";

fn words(error: &rustls::Error) -> (String, Option<&'static str>) {
    use rustls::Error::{AlertReceived, InvalidCertificate, PeerIncompatible as Incompatible};
    match error {
        InvalidCertificate(error) => certificate_words(error),
        Incompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13 | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        )
        | AlertReceived(AlertDescription::ProtocolVersion) => {
            ("the server does not speak TLS 1.2 or newer".into(), Some(VERSIONS))
        }
        AlertReceived(AlertDescription::HandshakeFailure) => {
            ("the server and assay have no cipher in common".into(), Some(VERSIONS))
        }
        Incompatible(why) => (format!("the server's TLS is not compatible: {why:?}"), Some(VERSIONS)),
        AlertReceived(AlertDescription::CertificateRequired) => {
            ("the server demands a client certificate".into(), Some("give a client certificate and key"))
        }
        AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError),
        ) => (format!("the server refused the client certificate: {alert:?}"), Some(CLIENT)),
        AlertReceived(alert) => (format!("the server aborted it: {alert:?}"), None),
        rustls::Error::InvalidMessage(
            InvalidMessage::InvalidContentType
            | InvalidMessage::UnknownProtocolVersion
            | InvalidMessage::MessageTooLarge,
        ) => (
            "the server answered with something that is not TLS".into(),
            Some("check that this port speaks the database's protocol and that the server has TLS switched on"),
        ),
        error => (error.to_string(), None),
    }
}

fn certificate_words(error: &CertificateError) -> (String, Option<&'static str>) {
    use CertificateError as E;
    match error {
        E::UnknownIssuer => ("the server's certificate is signed by an unknown authority".into(), Some(ROOT)),
        E::Other(OtherError(why)) if why.is::<SelfSigned>() => (
            "the server's certificate is self-signed and not among the roots".into(),
            Some("give the certificate itself as root, or do not verify (`require`)"),
        ),
        E::Other(OtherError(why)) if why.is::<ShortKey>() => {
            let short = why.downcast_ref::<ShortKey>().expect("it was checked");
            let whose =
                if short.is_above { "the authority of the server's certificate" } else { "the server's certificate" };
            (
                format!("{whose} has an RSA key of {} bits, and at least {RSA_BITS_MIN} are needed", short.bits),
                Some(LENGTH),
            )
        }
        E::Other(OtherError(why)) if why.is::<Version1>() => (
            "the server's certificate is X.509 version 1, which contains no host name to verify".into(),
            Some("issue one of version 3 with the host as alternative name, or check only its chain (`verify-ca`)"),
        ),
        E::NotValidForNameContext { expected, presented } if presented.is_empty() => (
            format!("the server's certificate contains no host name, so it is not valid for {}", expected.to_str()),
            Some(
                "issue it with the host as subject alternative name (the common name does not count), or check only \
                 its chain (`verify-ca`)",
            ),
        ),
        E::NotValidForNameContext { expected, presented } => (
            format!("the server's certificate is valid for {}, not for {}", hosts(presented), expected.to_str()),
            Some("connect by a name that the certificate has, or check only its chain (`verify-ca`)"),
        ),
        E::Expired | E::ExpiredContext { .. } => {
            ("the server's certificate has expired".into(), Some("renew it, or do not verify (`require`)"))
        }
        E::NotValidYet | E::NotValidYetContext { .. } => {
            ("the server's certificate is not valid yet".into(), Some("check the clocks of both machines"))
        }
        E::BadSignature => ("the server does not hold the key of its certificate".into(), None),
        error => (format!("the server's certificate: {error}"), None),
    }
}

/// webpki lists names as `DnsName("db.test")`; people read them bare.
fn hosts(presented: &[String]) -> String {
    let bare = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
    presented.iter().map(bare).collect::<Vec<_>>().join(", ")
}
