//! TLS against rustls servers in threads, with certificates made on the spot.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use assay_io::{Address, Closed, Io, IoEvent, Kernel, Tls};
use assay_seam::{Nanos, TlsFacts, TlsMode, TlsSettings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PublicKeyData, SigningKey};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ProtocolVersion, RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};

const TLS13: &SupportedProtocolVersion = &rustls::version::TLS13;
const TLS12: &SupportedProtocolVersion = &rustls::version::TLS12;

/// A folder with a CA, and certificates that it did or did not sign.
struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

const AUTHORITY: &str = "an authority";

/// A server's certificate in DER, its key in PKCS 8.
type Identity = (Vec<u8>, Vec<u8>);

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, AUTHORITY);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Authority { folder: tempfile::tempdir().unwrap(), issuer };
        authority.write("root.pem", &authority.issuer.pem());
        authority
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    fn issue(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = names_for(names);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.der().to_vec(), key.serialize_der())
    }
}

fn names_for(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
}

fn self_signed(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
    let mut params = names_for(names);
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().der().to_vec(), key.serialize_der())
}

/// An X.509 version 1 certificate, as `openssl x509 -req` makes it; many database servers have one.
fn version_1(authority: &Authority) -> Identity {
    let element = |tag: u8, content: &[u8]| {
        let length = match content.len() {
            short @ 0..=0x7f => vec![short as u8],
            long => vec![0x82, (long >> 8) as u8, long as u8],
        };
        [&[tag], &length[..], content].concat()
    };
    let key = KeyPair::generate().unwrap();
    let common_name = |name: &str| {
        let value = element(0x0c, name.as_bytes());
        element(0x30, &element(0x31, &element(0x30, &[&b"\x06\x03\x55\x04\x03"[..], &value].concat())))
    };
    let (issuer, name) = (common_name(AUTHORITY), common_name("db"));
    // ecdsa-with-SHA256
    let algorithm = element(0x30, b"\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02");
    let validity = element(0x30, b"\x17\x0d200101000000Z\x17\x0d490101000000Z");
    let public = key.subject_public_key_info();
    let inner = element(0x30, &[&b"\x02\x01\x01"[..], &algorithm, &issuer, &validity, &name, &public].concat());
    let signature = [&[0], &authority.issuer.key().sign(&inner).unwrap()[..]].concat();
    (element(0x30, &[inner, algorithm, element(0x03, &signature)].concat()), key.serialize_der())
}

fn server(
    (certificate, key): Identity,
    version: &'static SupportedProtocolVersion,
    client_root: Option<&Path>,
) -> ServerConnection {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = provider.key_provider.load_private_key(PrivateKeyDer::Pkcs8(key.into())).unwrap();
    let identity = CertifiedKey::new(vec![CertificateDer::from(certificate)], key);
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[version]).unwrap();
    let builder = match client_root {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(path).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(identity)));
    ServerConnection::new(Arc::new(config)).unwrap()
}

/// A rustls server for one connection: echoes, like the servers of `cases.rs`.
fn serve(
    identity: Identity,
    version: &'static SupportedProtocolVersion,
    client_root: Option<&Path>,
) -> (Address, JoinHandle<Option<ProtocolVersion>>) {
    let server = server(identity, version, client_root);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let thread = thread::spawn(move || {
        let mut stream = StreamOwned::new(server, listener.accept().unwrap().0);
        let mut buffer = vec![0; 100_000];
        while let Ok(n) = stream.read(&mut buffer)
            && n > 0
            && stream.write_all(&buffer[..n]).is_ok()
        {}
        stream.conn.send_close_notify();
        let _ = stream.flush();
        stream.conn.protocol_version()
    });
    (address, thread)
}

fn settings(mode: TlsMode, root: Option<PathBuf>) -> TlsSettings {
    TlsSettings { mode, root, client: None, server_name: "db.test".into(), each_host: false }
}

/// What happens on one socket until `done`: facts about the handshake, or why the socket was closed.
fn drive(io: &mut Kernel, mut on: impl FnMut(&mut Kernel, IoEvent) -> bool) {
    let started = io.now();
    loop {
        io.wait(Some(io.now() + Nanos::from_secs(1))).unwrap();
        while let Some(event) = io.next_event() {
            if on(io, event) {
                return;
            }
        }
        assert!(io.now() - started < Nanos::from_secs(30), "nothing happens");
    }
}

/// Connects, encrypts, echoes `len` bytes. Returns facts about the connection, or why it failed.
fn echo(address: &Address, tls: &TlsSettings, len: usize) -> Result<TlsFacts, Closed> {
    let tls = Arc::new(Tls::new(tls).unwrap());
    let mut io = crate::kernel();
    let id = io.connect(address, Some(&tls)).unwrap();
    let sent: Vec<u8> = (0..len).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let (mut bytes, mut facts, mut result) = (Vec::new(), None, None);
    drive(&mut io, |io, event| {
        match event {
            IoEvent::Connected(_) => io.start_tls(id),
            IoEvent::Secured(_, this) => {
                facts = Some(this);
                io.send(id, &sent[..len / 2]);
                io.send(id, &sent[len / 2..]);
            }
            IoEvent::Received(_) => {
                bytes.extend_from_slice(io.received());
                if bytes.len() == len {
                    assert!(bytes == sent, "the echo differs");
                    result = facts.take().map(Ok);
                }
            }
            IoEvent::Closed(_, why) => result = Some(Err(why)),
        }
        result.is_some()
    });
    if result.as_ref().is_some_and(Result::is_ok) {
        io.close(id);
    }
    result.unwrap()
}

/// One handshake and a short echo with a fresh server.
fn check(identity: &Identity, tls: &TlsSettings) -> Result<TlsFacts, Closed> {
    let (address, thread) = serve(identity.clone(), TLS13, None);
    let result = echo(&address, tls, 100);
    thread.join().unwrap();
    result.map_err(|why| Closed { message: why.message.replace(&address.to_string(), "ADDRESS"), ..why })
}

#[test]
fn any_certificate_will_do_up_to_require_in_both_versions() {
    let far = self_signed(&["elsewhere.test"], |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
    let authority = self_signed(&["db.test"], |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    // What MySQL and MariaDB generate themselves, and what the recipes in their manuals produce.
    let rsa = |pem: &str| {
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec();
        let key = PrivateKeyDer::from_pem_slice(include_bytes!("keys/rsa.pkcs8.pem")).unwrap();
        (certificate, key.secret_der().to_vec())
    };
    let (rsa_3, rsa_1) = (rsa(include_str!("keys/rsa.pem")), rsa(include_str!("keys/rsa.version1.pem")));
    for (identity, kind) in
        [(far, "ECDSA"), (authority, "ECDSA"), (version_1(&Authority::new()), "ECDSA"), (rsa_3, "RSA"), (rsa_1, "RSA")]
    {
        for version in [TLS12, TLS13] {
            for mode in [TlsMode::Allow, TlsMode::Prefer, TlsMode::Require] {
                for server_name in ["db.test", "127.0.0.1", "::1", "", "not a host name"] {
                    let (address, thread) = serve(identity.clone(), version, None);
                    let tls = TlsSettings { server_name: server_name.into(), ..settings(mode, None) };
                    let facts = echo(&address, &tls, 1000).unwrap();
                    assert_eq!(thread.join().unwrap(), Some(version.version));
                    let expected = match version.version {
                        ProtocolVersion::TLSv1_3 => "TLSv1.3 TLS_AES_256_GCM_SHA384".to_owned(),
                        _ => format!("TLSv1.2 TLS_ECDHE_{kind}_WITH_AES_256_GCM_SHA384"),
                    };
                    assert_eq!(facts.cipher, expected);
                    let hash = ring::digest::digest(&ring::digest::SHA256, &identity.0);
                    assert_eq!(facts.server_end_point.as_deref(), Some(hash.as_ref()));
                }
            }
        }
    }
}

#[test]
fn a_certificate_of_the_authority_is_accepted_by_the_modes_that_verify() {
    let authority = Authority::new();
    let identity = authority.issue(&["db.test", "127.0.0.1"], |_| {});
    for mode in [TlsMode::Require, TlsMode::VerifyCa, TlsMode::VerifyFull] {
        for server_name in ["db.test", "127.0.0.1"] {
            let tls = TlsSettings { server_name: server_name.into(), ..settings(mode, Some(authority.root())) };
            check(&identity, &tls).unwrap();
        }
    }
}

#[test]
fn an_unknown_authority_is_refused_from_verify_ca_on_and_by_require_with_a_root() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let identity = stranger.issue(&["db.test"], |_| {});
    for mode in [TlsMode::Require, TlsMode::VerifyCa, TlsMode::VerifyFull] {
        let why = check(&identity, &settings(mode, Some(authority.root()))).unwrap_err();
        assert_eq!(
            why.message,
            "TLS handshake with ADDRESS: the server's certificate is signed by an unknown authority"
        );
        assert!(why.tls && why.hint.unwrap().contains("root certificate"));
    }
}

#[test]
fn a_wrong_name_is_refused_by_verify_full_alone() {
    let authority = Authority::new();
    let identity = authority.issue(&["a.test", "b.test"], |_| {});
    check(&identity, &settings(TlsMode::VerifyCa, Some(authority.root()))).unwrap();
    let why = check(&identity, &settings(TlsMode::VerifyFull, Some(authority.root()))).unwrap_err();
    assert_eq!(
        why.message,
        "TLS handshake with ADDRESS: the server's certificate is valid for a.test, b.test, not for db.test"
    );
    let tls = TlsSettings { server_name: "127.0.0.1".into(), ..settings(TlsMode::VerifyFull, Some(authority.root())) };
    assert!(check(&identity, &tls).unwrap_err().message.ends_with("not for 127.0.0.1"));

    let nameless = authority.issue(&[], |_| {});
    check(&nameless, &settings(TlsMode::VerifyCa, Some(authority.root()))).unwrap();
    let why = check(&nameless, &settings(TlsMode::VerifyFull, Some(authority.root()))).unwrap_err();
    assert!(why.message.contains("contains no host name"), "{why}");
}

#[test]
fn expired_and_early_certificates_are_told_apart() {
    let authority = Authority::new();
    let tls = settings(TlsMode::VerifyCa, Some(authority.root()));
    let expired = authority.issue(&["db.test"], |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
    let why = check(&expired, &tls).unwrap_err();
    assert_eq!(why.message, "TLS handshake with ADDRESS: the server's certificate has expired");
    let early = authority.issue(&["db.test"], |params| params.not_before = rcgen::date_time_ymd(2999, 1, 1));
    let why = check(&early, &tls).unwrap_err();
    assert_eq!(why.message, "TLS handshake with ADDRESS: the server's certificate is not valid yet");
}

#[test]
fn a_self_signed_certificate_is_trusted_when_it_is_the_root_itself() {
    let authority = Authority::new();
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let identity = self_signed(&["db.test"], |params| params.is_ca = is_ca);
        let why = check(&identity, &settings(TlsMode::VerifyFull, Some(authority.root()))).unwrap_err();
        assert_eq!(
            why.message,
            "TLS handshake with ADDRESS: the server's certificate is self-signed and not among the roots"
        );
        let own = authority.write("own.pem", &pem(&identity.0));
        check(&identity, &settings(TlsMode::VerifyFull, Some(own.clone()))).unwrap();
        let elsewhere = TlsSettings { server_name: "b.test".into(), ..settings(TlsMode::VerifyFull, Some(own)) };
        assert!(check(&identity, &elsewhere).unwrap_err().message.ends_with("is valid for db.test, not for b.test"));

        let expired = self_signed(&["db.test"], |params| {
            params.is_ca = is_ca;
            params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        });
        let own = authority.write("own.pem", &pem(&expired.0));
        let why = check(&expired, &settings(TlsMode::VerifyCa, Some(own))).unwrap_err();
        assert!(why.message.ends_with("has expired"), "{why}");
    }
}

#[test]
fn a_version_1_certificate_is_verified_up_to_the_host_that_it_cannot_name() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let identity = version_1(&authority);
    assert_eq!(check(&identity, &settings(TlsMode::VerifyCa, Some(authority.root()))).map(drop), Ok(()));
    // With the same name and another key.
    let why = check(&identity, &settings(TlsMode::VerifyCa, Some(stranger.root()))).unwrap_err();
    assert!(why.message.ends_with("is signed by an unknown authority"), "{why}");
    let why = check(&identity, &settings(TlsMode::VerifyFull, Some(authority.root()))).unwrap_err();
    assert!(why.message.contains("X.509 version 1"), "{why}");
    let (mut damaged, key) = identity;
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    check(&(damaged, key), &settings(TlsMode::VerifyCa, Some(authority.root()))).unwrap_err();
}

#[test]
fn a_client_certificate_of_version_1_is_shown_too() {
    let authority = Authority::new();
    let (certificate, key) = version_1(&authority);
    let client = (
        authority.write("client.pem", &pem(&certificate)),
        authority.write("client.key", &pem_of("PRIVATE KEY", &key)),
    );
    for version in [TLS12, TLS13] {
        let with = TlsSettings { client: Some(client.clone()), ..settings(TlsMode::Require, None) };
        // rustls as a server refuses this version, which shows that it was offered; database servers accept it.
        let (address, thread) = serve(authority.issue(&["db.test"], |_| {}), version, Some(&authority.root()));
        let why = echo(&address, &with, 100).unwrap_err();
        assert!(why.tls && why.message.contains("the server refused the client certificate"), "{why}");
        thread.join().unwrap();
    }
}

#[test]
fn a_server_without_the_certificates_key_is_refused_even_by_require() {
    for version in [TLS12, TLS13] {
        let (certificate, _) = self_signed(&["db.test"], |_| {});
        let (_, other_key) = self_signed(&["db.test"], |_| {});
        let (address, thread) = serve((certificate, other_key), version, None);
        let why = echo(&address, &settings(TlsMode::Require, None), 10).unwrap_err();
        assert!(why.tls && why.message.starts_with(&format!("TLS handshake with {address}: ")), "{why}");
        thread.join().unwrap();
    }
}

fn pem(der: &[u8]) -> String {
    pem_of("CERTIFICATE", der)
}

fn pem_of(label: &str, der: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in der.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63] as char;
            text.push(if i <= chunk.len() { digit } else { '=' });
        }
    }
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

#[test]
fn a_client_certificate_is_shown_when_the_server_asks() {
    let authority = Authority::new();
    let server = authority.issue(&["db.test"], |_| {});
    let (certificate, key) = authority.issue(&["client"], |_| {});
    let client = (
        authority.write("client.pem", &pem(&certificate)),
        authority.write("client.key", &pem_of("PRIVATE KEY", &key)),
    );
    for version in [TLS12, TLS13] {
        let with = TlsSettings { client: Some(client.clone()), ..settings(TlsMode::Require, None) };
        let (address, thread) = serve(server.clone(), version, Some(&authority.root()));
        echo(&address, &with, 100).unwrap();
        thread.join().unwrap();

        let (address, thread) = serve(server.clone(), version, Some(&authority.root()));
        let why = echo(&address, &settings(TlsMode::Require, None), 100).unwrap_err();
        assert!(why.tls && why.message.ends_with("the server demands a client certificate"), "{why}");
        thread.join().unwrap();

        let stranger = Authority::new();
        let (address, thread) = serve(server.clone(), version, Some(&stranger.root()));
        let why = echo(&address, &with, 100).unwrap_err();
        assert!(why.tls && why.message.contains("the server refused the client certificate"), "{why}");
        thread.join().unwrap();
    }
}

#[test]
fn keys_are_read_in_every_form_that_openssl_writes() {
    let authority = Authority::new();
    for (form, key, certificate) in [
        ("pkcs1", include_str!("keys/rsa.pkcs1.pem"), include_str!("keys/rsa.pem")),
        ("pkcs8", include_str!("keys/rsa.pkcs8.pem"), include_str!("keys/rsa.pem")),
        ("sec1", include_str!("keys/ec.sec1.pem"), include_str!("keys/ec.pem")),
    ] {
        let client = (authority.write("client.pem", certificate), authority.write("client.key", key));
        let tls = TlsSettings { client: Some(client), ..settings(TlsMode::Require, None) };
        assert!(Tls::new(&tls).is_ok(), "{form}: {:?}", Tls::new(&tls));
    }
}

#[test]
fn files_that_cannot_serve_are_named_with_the_reason() {
    let authority = Authority::new();
    let empty = authority.write("empty.pem", "nothing here\n");
    let absent = authority.folder.path().join("absent.pem");
    let rsa = authority.write("rsa.pem", include_str!("keys/rsa.pem"));
    let wrong = authority.write("ec.key", include_str!("keys/ec.sec1.pem"));
    let refusal = |tls: TlsSettings| Tls::new(&tls).unwrap_err().message;
    assert_eq!(
        refusal(settings(TlsMode::VerifyCa, Some(absent.clone()))),
        format!("reading {}: no such file or directory", absent.display())
    );
    assert_eq!(
        refusal(settings(TlsMode::VerifyCa, Some(empty.clone()))),
        format!("reading {}: it contains no root certificates in PEM format", empty.display())
    );
    let client = |certificate: &PathBuf, key: &PathBuf| TlsSettings {
        client: Some((certificate.clone(), key.clone())),
        ..settings(TlsMode::Require, None)
    };
    assert_eq!(
        refusal(client(&rsa, &empty)),
        format!("reading {}: it contains no private key (encrypted keys are not supported)", empty.display())
    );
    assert_eq!(
        refusal(client(&rsa, &wrong)),
        format!("reading {}: it is not the key of {}", wrong.display(), rsa.display())
    );
    let nameless = TlsSettings { server_name: String::new(), ..settings(TlsMode::VerifyFull, Some(authority.root())) };
    assert!(refusal(nameless).contains("is not a host name"));
}

#[test]
fn large_transfers_survive_encryption_both_ways() {
    for version in [TLS12, TLS13] {
        let (address, thread) = serve(self_signed(&["db.test"], |_| {}), version, None);
        echo(&address, &settings(TlsMode::Require, None), 20_000_000).unwrap();
        thread.join().unwrap();
    }
}

#[test]
fn the_peers_goodbye_closes_the_socket_after_its_last_bytes() {
    for version in [TLS12, TLS13] {
        let server = server(self_signed(&["db.test"], |_| {}), version, None);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let thread = thread::spawn(move || {
            let mut stream = StreamOwned::new(server, listener.accept().unwrap().0);
            stream.write_all(b"first words, ").unwrap();
            stream.write_all(b"last words").unwrap();
            stream.conn.send_close_notify();
            stream.flush().unwrap();
            // The socket itself stays open until the client closes it.
            stream.sock.read_to_end(&mut Vec::new()).unwrap();
        });
        let tls = Arc::new(Tls::new(&settings(TlsMode::Require, None)).unwrap());
        let mut io = crate::kernel();
        let id = io.connect(&address, Some(&tls)).unwrap();
        let (mut bytes, mut why) = (Vec::new(), None);
        drive(&mut io, |io, event| {
            match event {
                IoEvent::Connected(_) => io.start_tls(id),
                IoEvent::Secured(..) => {}
                IoEvent::Received(_) => bytes.extend_from_slice(io.received()),
                IoEvent::Closed(_, closed) => why = Some(closed.message),
            }
            why.is_some()
        });
        assert_eq!(String::from_utf8(bytes).unwrap(), "first words, last words");
        assert_eq!(why, Some(format!("{address} closed the connection")));
        thread.join().unwrap();
    }
}

#[test]
fn a_peer_that_does_not_speak_tls_is_told_in_plain_words() {
    for (answer, ends) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "the server answered with something that is not TLS"),
        (b"", "closed the connection during the TLS handshake"),
        // An alert of TLS 1.0: fatal, protocol_version.
        (b"\x15\x03\x01\x00\x02\x02\x46", "the server does not speak TLS 1.2 or newer"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "the server and assay have no cipher in common"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let thread = thread::spawn(move || {
            let mut stream: TcpStream = listener.accept().unwrap().0;
            let mut hello = [0; 10];
            stream.read_exact(&mut hello).unwrap();
            stream.write_all(answer).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let why = echo(&address, &settings(TlsMode::Require, None), 10).unwrap_err();
        assert!(why.message.ends_with(ends) && why.tls && why.hint.is_some(), "{why:?}");
        thread.join().unwrap();
    }
}

/// A server program that is killed when its test ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `openssl s_server` for one connection, which sends every line back reversed; `None` without the program.
fn openssl(folder: &Path, arguments: &[&str]) -> Option<(Address, Program)> {
    let mut command = Command::new("openssl");
    command.args(["s_server", "-accept", "127.0.0.1:0", "-rev", "-naccept", "1", "-cert"]);
    command.arg(folder.join("server.pem")).arg("-key").arg(folder.join("server.key")).args(arguments);
    let mut program = match command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            testkit::absent("openssl is missing (`cargo xtask install` gets what the tests need)");
            return None;
        }
        child => Program(child.unwrap()),
    };
    let mut lines = BufReader::new(program.0.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
    let address = lines.find_map(|line| line.strip_prefix("ACCEPT ")?.parse().ok()).expect("it says where it listens");
    Some((Address::Tcp(address), program))
}

#[test]
fn openssl_and_we_understand_each_other() {
    let authority = Authority::new();
    authority.write("server.pem", include_str!("keys/rsa.version1.pem"));
    authority.write("server.key", include_str!("keys/rsa.pkcs8.pem"));
    let tls = Arc::new(Tls::new(&settings(TlsMode::Require, None)).unwrap());
    for (argument, expected) in [
        ("-tls1_3", Ok("TLSv1.3 TLS_AES_256_GCM_SHA384")),
        ("-tls1_2", Ok("TLSv1.2 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")),
        ("-tls1_1", Err("the server does not speak TLS 1.2 or newer")),
    ] {
        let Some((address, _program)) = openssl(authority.folder.path(), &[argument, "-cipher", "ALL:@SECLEVEL=0"])
        else {
            return;
        };
        let mut io = crate::kernel();
        let id = io.connect(&address, Some(&tls)).unwrap();
        let (mut cipher, mut answers, mut why) = (String::new(), 0, None);
        drive(&mut io, |io, event| {
            match event {
                IoEvent::Connected(_) => io.start_tls(id),
                IoEvent::Secured(_, facts) => {
                    cipher = facts.cipher;
                    io.send(id, b"abc\n");
                }
                IoEvent::Received(_) => {
                    assert_eq!(io.received(), b"cba\n");
                    answers += 1;
                    io.send(id, b"abc\n");
                }
                IoEvent::Closed(_, closed) => why = Some(closed.message),
            }
            answers == 3 || why.is_some()
        });
        io.close(id);
        match expected {
            Ok(expected) => assert_eq!((&cipher[..], why), (expected, None)),
            Err(expected) => assert_eq!(why, Some(format!("TLS handshake with {address}: {expected}"))),
        }
    }
}
