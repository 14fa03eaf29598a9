//! Conversations with a scripted server: whole, and split at every byte.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::protocol::connection::PostgresConnection;
use crate::protocol::{DRIVER, fuzz_postgres, server};
use assay_seam::{
    Class, ConnectOptions, Connection, Endpoint, Exchange, Executed, Nanos, Operation, Origin, Progress, Rows,
    RowsPool, RowsWanted, StatementId, Surroundings, TlsFacts, TlsMode, Value,
};

// The server's messages.

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

fn auth(request: u32, data: &[u8]) -> Vec<u8> {
    message(b'R', &[&request.to_be_bytes()[..], data].concat())
}

fn status(name: &str, value: &str) -> Vec<u8> {
    message(b'S', format!("{name}\0{value}\0").as_bytes())
}

/// The messages from AuthenticationOk to the one before the first operation.
fn greeting() -> Vec<u8> {
    [
        auth(0, b""),
        status("server_version", "15.14"),
        status("standard_conforming_strings", "on"),
        message(b'K', &[0, 0, 0, 9, 0xab, 0xcd, 0xef, 1]),
        ready(b'I'),
    ]
    .concat()
}

fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

fn described(names: &[&str]) -> Vec<u8> {
    let columns = names.iter().map(|name| [name.as_bytes(), &[0; 19]].concat());
    message(b'T', &[(names.len() as u16).to_be_bytes().to_vec(), columns.collect::<Vec<_>>().concat()].concat())
}

fn row(cells: &[Option<&str>]) -> Vec<u8> {
    let mut body = (cells.len() as u16).to_be_bytes().to_vec();
    for cell in cells {
        body.extend(cell.map_or(-1, |cell| cell.len() as i32).to_be_bytes());
        body.extend(cell.unwrap_or_default().as_bytes());
    }
    message(b'D', &body)
}

fn complete(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

fn refusal(severity: &str, state: &str, words: &str, routine: &str) -> Vec<u8> {
    message(b'E', format!("S{severity}\0V{severity}\0C{state}\0M{words}\0Fx.c\0L1\0R{routine}\0\0").as_bytes())
}

fn notice() -> Vec<u8> {
    message(b'N', b"SNOTICE\0C00000\0Mby the way\0\0")
}

/// The answer to Close, Parse and Describe.
fn prepared(parameters: u16, columns: &[&str]) -> Vec<u8> {
    let types = vec![0; 4 * usize::from(parameters)];
    let described = if columns.is_empty() { message(b'n', b"") } else { described(columns) };
    let parameters = message(b't', &[&parameters.to_be_bytes()[..], &types].concat());
    [message(b'3', b""), message(b'1', b""), parameters, described].concat()
}

// Surroundings and connections.

#[derive(Default)]
struct Around {
    variables: HashMap<&'static str, &'static str>,
    files: HashMap<&'static str, (u32, &'static str)>,
}

impl Surroundings for Around {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|value| value.to_string())
    }
    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        self.files.get(path.to_str()?).map(|file| file.1.into())
    }
    fn mode(&self, path: &Path) -> Option<u32> {
        self.files.get(path.to_str()?).map(|file| file.0)
    }
    fn home(&self) -> Option<PathBuf> {
        Some("/home/me".into())
    }
    fn user(&self) -> Option<String> {
        Some("me".into())
    }
}

const URL: &str = "postgres://me:secret@h/db?sslmode=disable";

fn connection(url: &str, options: &ConnectOptions) -> PostgresConnection {
    PostgresConnection::new(Arc::new(server::read(url, options, &Around::default()).unwrap()))
}

/// What happens on our side; the server's answer follows.
#[derive(Clone, Copy)]
enum Ask<'a> {
    Connect,
    Secured,
    Closed,
    /// This execution can wait, or cannot.
    Defer(Operation<'a>),
    Flush,
    /// Nothing: the server continues on its own.
    Listen,
    Notification,
    /// The time of the wait for a notification is over.
    Timeout,
    Do(Operation<'a>),
}

fn show_rows(rows: &Rows) -> String {
    let set = |set| {
        let row = |row| {
            (0..rows.columns(set)).map(move |column| match rows.cell(set, row, column).unwrap() {
                assay_seam::Cell::Null => "-".into(),
                assay_seam::Cell::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            })
        };
        format!("[{}]", (0..rows.len(set)).map(|r| row(r).collect::<Vec<_>>().join(",")).collect::<Vec<_>>().join(" "))
    };
    (0..rows.sets()).map(set).collect()
}

fn show(progress: &Progress) -> String {
    match progress {
        Progress::Reply(reply) => {
            let rows = reply.rows.as_deref().map(show_rows).unwrap_or("no rows".into());
            let error = reply.error.as_ref().map(|error| format!(", {error}")).unwrap_or_default();
            format!("{rows}, {} affected{error}", reply.affected)
        }
        Progress::Failed(error) => format!("failed, {error}, {:?}", error.retry),
        other => format!("{other:?}"),
    }
}

/// Plays a conversation, the server's bytes split after each of `cuts` (offsets in all of them). Returns one line for
/// everything we send and everything the engine learns.
fn play(mut connection: PostgresConnection, turns: &[(Ask<'_>, Vec<u8>)], cut: impl Fn(usize) -> bool) -> Vec<String> {
    let (mut lines, mut pool, mut total) = (Vec::new(), RowsPool::default(), 0);
    let mut note = |out: &mut Vec<u8>, progress: Progress| {
        if !out.is_empty() {
            match lines.last_mut().filter(|line: &&mut String| line.starts_with("> ")) {
                Some(line) => line.push_str(&out.escape_ascii().to_string()),
                None => lines.push(format!("> {}", out.escape_ascii())),
            }
            out.clear();
        }
        if !matches!(progress, Progress::Pending) {
            lines.push(show(&progress));
        }
    };
    let tls = TlsFacts { server_end_point: Some(b"certificate".to_vec()), cipher: "TLSv1.3".into() };
    let mut out = Vec::new();
    for (ask, answer) in turns {
        let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
        let progress = match ask {
            Ask::Connect => connection.on_connected(&mut exchange),
            Ask::Listen => Progress::Pending,
            Ask::Secured => connection.on_secured(&tls, &mut exchange),
            Ask::Closed => match connection.on_closed() {
                true => Progress::Reconnect,
                false => Progress::Pending,
            },
            Ask::Do(operation) => connection.execute(operation, &mut exchange),
            Ask::Defer(operation) => match connection.defer(operation) {
                true => Progress::Pending,
                false => Progress::Ready,
            },
            Ask::Flush => connection.flush(&mut exchange),
            Ask::Notification => connection.notification(Nanos::from_secs(1), &mut exchange),
            Ask::Timeout => connection.on_timeout(&mut exchange),
        };
        note(&mut out, progress);
        for piece in answer.chunk_by(|_, _| {
            total += 1;
            !cut(total)
        }) {
            let progress =
                connection.on_bytes(piece, &mut Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO });
            note(&mut out, progress);
        }
        total += 1;
    }
    lines
}

/// Plays a conversation whole, then split at each byte, then byte by byte: the lines must always be `expected`.
fn check(url: &str, options: &ConnectOptions, turns: &[(Ask<'_>, Vec<u8>)], expected: &[&str]) {
    let whole = play(connection(url, options), turns, |_| false);
    assert_eq!(whole, expected);
    let length: usize = turns.iter().map(|(_, answer)| answer.len() + 1).sum();
    for at in 0..length {
        assert_eq!(play(connection(url, options), turns, |total| total == at), expected, "cut at {at}");
    }
    assert_eq!(play(connection(url, options), turns, |_| true), expected, "byte by byte");
}

/// A conversation after a login without authentication; `expected` omits the login.
fn check_operations(options: &ConnectOptions, turns: &[(Ask<'_>, Vec<u8>)], expected: &[&str]) {
    let turns = [&[(Ask::Connect, greeting())], turns].concat();
    let expected = [&[STARTUP, "Ready"], expected].concat();
    check(URL, options, &turns, &expected);
}

const STARTUP: &str = r"> \x00\x00\x00I\x00\x03\x00\x00user\x00me\x00database\x00db\x00application_name\x00assay\x00client_encoding\x00UTF8\x00\x00";
const SSL_REQUEST: &str = r"> \x00\x00\x00\x08\x04\xd2\x16/";

fn prepared_on() -> ConnectOptions {
    ConnectOptions::default()
}

// Login.

#[test]
fn a_trusting_server_lets_us_in() {
    check(URL, &prepared_on(), &[(Ask::Connect, greeting())], &[STARTUP, "Ready"]);
}

#[test]
fn passwords_go_in_the_form_the_server_asks_for() {
    let check = |request: Vec<u8>, answer: &str| {
        let expected = format!("{STARTUP}{answer}");
        check(URL, &prepared_on(), &[(Ask::Connect, [request, greeting()].concat())], &[&expected, "Ready"]);
    };
    check(auth(3, b""), r"p\x00\x00\x00\x0bsecret\x00");
    // "md5" and md5(md5("secretme") "salt"), as Python's hashlib computes them.
    check(auth(5, b"salt"), r"p\x00\x00\x00(md541c83370953958037c7298c50b238bda\x00");
}

#[test]
fn a_missing_password_is_said_to_be_missing() {
    let url = "postgres://me@h/db?sslmode=disable";
    let expected = "failed, client: the server asks for a password for user me (no code), Never";
    for request in [auth(3, b""), auth(5, b"salt"), auth(10, b"SCRAM-SHA-256\0\0")] {
        check(url, &prepared_on(), &[(Ask::Connect, request)], &[STARTUP, expected]);
    }
}

#[test]
fn login_errors_carry_the_servers_code_and_words() {
    for (state, words, expected) in [
        ("28P01", "password authentication failed for user \"me\"", "Never"),
        ("28000", "no pg_hba.conf entry for host \"::1\", user \"me\", database \"db\", no encryption", "Never"),
        ("3D000", "database \"db\" does not exist", "Never"),
        ("53300", "sorry, too many clients already", "Reconnect"),
        ("57P03", "the database system is starting up", "Reconnect"),
    ] {
        let expected = format!("failed, server: {words} ({state}), {expected}");
        let refused = refusal("FATAL", state, words, "auth_failed");
        check(URL, &prepared_on(), &[(Ask::Connect, refused)], &[STARTUP, &expected]);
    }
}

#[test]
fn methods_we_do_not_have_and_messages_out_of_turn_end_the_login() {
    let check = |answer: Vec<u8>, expected: &str| {
        let lines = play(connection(URL, &prepared_on()), &[(Ask::Connect, answer)], |_| false);
        let last = lines.last().unwrap();
        assert!(last.starts_with("failed, client: ") && last.contains(expected), "{last}");
    };
    check(auth(7, b""), "Kerberos, GSSAPI or SSPI");
    check(auth(10, b"SCRAM-SHA-512\0\0"), "no supported SASL mechanism");
    check(auth(10, b"SCRAM-SHA-256-PLUS\0\0"), "channel binding on an unencrypted connection");
    check(auth(10, b"SCRAM-SHA-256"), "a text in a message has no end");
    check([auth(10, b"SCRAM-SHA-256\0\0"), auth(0, b"")].concat(), "without proving");
    check([auth(10, b"SCRAM-SHA-256\0\0"), auth(11, b"r=other,s=YQ==,i=1")].concat(), "invalid nonce");
    check(auth(12, b"v=YQ=="), "authentication request 12 came out of turn");
    check([auth(0, b""), auth(3, b"")].concat(), "authentication request 3 came out of turn");
    check(auth(5, b"sal"), "ended too early");
    check(ready(b'I'), "a message of type `Z` came during login");
    check(b"J\0\0\0\x0a8.0.31\0".to_vec(), "a message of type `J` came during login");
    check(b"R\0\0\0\x03".to_vec(), "a message of type `R` announced 3 bytes");
    check(b"R\x00\x02\0\0".to_vec(), "a message of type `R` announced 131072 bytes");
}

/// Feeds `answer` in pieces of `size`; returns the last progress.
fn feed(connection: &mut PostgresConnection, out: &mut Vec<u8>, answer: &[u8], size: usize) -> Progress {
    let mut pool = RowsPool::default();
    out.clear();
    let mut exchange = Exchange { out, pool: &mut pool, now: Nanos::ZERO };
    answer.chunks(size).map(|piece| connection.on_bytes(piece, &mut exchange)).last().unwrap()
}

/// A server that knows SCRAM and the password "secret" (RFC 5802, one iteration). Returns how the login ended, and the
/// mechanism and flag that were used.
fn scram(url: &str, tls: Option<TlsFacts>, mechanisms: &[u8], size: usize) -> (String, String) {
    let hmac = |key: &[u8], text: &[u8]| -> Vec<u8> {
        Hmac::<Sha256>::new_from_slice(key).unwrap().chain_update(text).finalize().into_bytes().to_vec()
    };
    let (mut connection, mut out, mut pool) = (connection(url, &prepared_on()), Vec::new(), RowsPool::default());
    connection.on_connected(&mut Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO });
    if let Some(tls) = &tls {
        assert!(matches!(feed(&mut connection, &mut out, b"S", size), Progress::StartTls));
        connection.on_secured(tls, &mut Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO });
    }
    let progress = feed(&mut connection, &mut out, &auth(10, mechanisms), size);
    if let Progress::Failed(_) = progress {
        return (show(&progress), String::new());
    }
    let said = String::from_utf8(out[5..].to_vec()).unwrap();
    let (mechanism, first) = said.split_once('\0').unwrap();
    let (flag, bare) = first[4..].split_once(",,").unwrap();
    let nonce = format!("{}server", bare.strip_prefix("n=,r=").unwrap());
    let server_first = format!("r={nonce},s={},i=1", STANDARD.encode("salt"));
    feed(&mut connection, &mut out, &auth(11, server_first.as_bytes()), size);
    let last = String::from_utf8(out[5..].to_vec()).unwrap();
    let (without_proof, proof) = last.rsplit_once(",p=").unwrap();
    let data = if mechanism.ends_with("PLUS") { "certificate" } else { "" };
    assert_eq!(without_proof, format!("c={},r={nonce}", STANDARD.encode(format!("{flag},,{data}"))));
    let salted = hmac(b"secret", b"salt\0\0\0\x01");
    let spoken = format!("{bare},{server_first},{without_proof}");
    let client_key = hmac(&salted, b"Client Key");
    let signature = hmac(&Sha256::digest(&client_key), spoken.as_bytes());
    let expected: Vec<u8> = client_key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
    assert_eq!(STANDARD.decode(proof).unwrap(), expected, "we prove that we know the password");
    let proof = hmac(&hmac(&salted, b"Server Key"), spoken.as_bytes());
    let server_final = format!("v={}", STANDARD.encode(proof));
    let rest = [auth(12, server_final.as_bytes()), greeting()].concat();
    (show(&feed(&mut connection, &mut out, &rest, size)), format!("{mechanism} {flag}"))
}

#[test]
fn scram_follows_libpq_in_what_is_bound_to_the_channel() {
    let (plain, both) = (b"SCRAM-SHA-256\0\0".as_slice(), b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0".as_slice());
    let facts =
        |data: Option<&[u8]>| Some(TlsFacts { server_end_point: data.map(<[u8]>::to_vec), cipher: "TLSv1.3".into() });
    let bound = || facts(Some(b"certificate"));
    let check = |parameters: &str, tls: Option<TlsFacts>, mechanisms, end: &str, way: &str| {
        let url = format!(
            "postgres://me:secret@h/db?sslmode={}{parameters}",
            if tls.is_some() { "require" } else { "disable" }
        );
        for size in 1..100 {
            let (progress, used) = scram(&url, tls.clone(), mechanisms, size);
            assert_eq!((progress.as_str(), used.as_str()), (end, way), "{url}, pieces of {size}");
        }
    };
    check("", None, plain, "Ready", "SCRAM-SHA-256 n");
    check("", bound(), both, "Ready", "SCRAM-SHA-256-PLUS p=tls-server-end-point");
    check("", bound(), plain, "Ready", "SCRAM-SHA-256 y");
    check("", facts(None), both, "Ready", "SCRAM-SHA-256 n");
    check("&channel_binding=disable", bound(), both, "Ready", "SCRAM-SHA-256 n");
    check("&channel_binding=require", bound(), both, "Ready", "SCRAM-SHA-256-PLUS p=tls-server-end-point");
    let refused = "failed, client: channel_binding=require, but the server does not offer it or TLS is not in use (no code), Never";
    check("&channel_binding=require", bound(), plain, refused, "");
    check("&channel_binding=require", None, plain, refused, "");
}

#[test]
fn channel_binding_require_accepts_no_weaker_login() {
    let url = format!("{URL}&channel_binding=require");
    for request in [auth(0, b""), auth(3, b""), auth(5, b"salt")] {
        let expected =
            "failed, client: channel_binding=require, but the server does not use channel binding (no code), Never";
        check(&url, &prepared_on(), &[(Ask::Connect, request)], &[STARTUP, expected]);
    }
}

#[test]
fn tls_is_asked_for_and_refused_as_sslmode_says() {
    let mode = |mode: &str| format!("postgres://me:secret@h/db?sslmode={mode}");
    let denied = || refusal("FATAL", "28000", "no entry", "x");
    let check = |name: &str, turns: &[(Ask<'_>, Vec<u8>)], expected: &[&str]| {
        check(&mode(name), &prepared_on(), turns, expected)
    };
    let (yes, no) = (|| b"S".to_vec(), || b"N".to_vec());
    let nothing = Vec::new;
    let encrypted = [SSL_REQUEST, "StartTls", STARTUP, "Ready"];
    for name in ["prefer", "require", "verify-ca", "verify-full"] {
        check(name, &[(Ask::Connect, yes()), (Ask::Secured, greeting())], &encrypted);
    }
    // A server without TLS.
    let joined = format!("{SSL_REQUEST}{}", &STARTUP[2..]);
    check("prefer", &[(Ask::Connect, no()), (Ask::Listen, greeting())], &[&joined, "Ready"]);
    let refused = "failed, client: the server does not offer TLS (no code), Never";
    check("require", &[(Ask::Connect, no())], &[SSL_REQUEST, refused]);
    // The handshake fails.
    let turns = [(Ask::Connect, yes()), (Ask::Closed, nothing()), (Ask::Connect, greeting())];
    check("prefer", &turns, &[SSL_REQUEST, "StartTls", "Reconnect", STARTUP, "Ready"]);
    check("require", &turns[..2], &[SSL_REQUEST, "StartTls"]);
    // The server lets nobody in this way, then not at all.
    let turns = [(Ask::Connect, yes()), (Ask::Secured, denied()), (Ask::Closed, nothing()), (Ask::Connect, greeting())];
    check("prefer", &turns, &[SSL_REQUEST, "StartTls", STARTUP, "Reconnect", "Reconnect", STARTUP, "Ready"]);
    let turns = [(Ask::Connect, denied()), (Ask::Connect, yes()), (Ask::Secured, greeting())];
    check("allow", &turns, &[STARTUP, "Reconnect", SSL_REQUEST, "StartTls", STARTUP, "Ready"]);
    let turns = [(Ask::Connect, denied()), (Ask::Connect, yes()), (Ask::Secured, denied()), (Ask::Closed, nothing())];
    let failed = "failed, server: no entry (28000), Never";
    check("allow", &turns, &[STARTUP, "Reconnect", SSL_REQUEST, "StartTls", STARTUP, failed]);
    check("allow", &[(Ask::Connect, greeting())], &[STARTUP, "Ready"]);
    // Other errors do not depend on the encryption.
    let full = refusal("FATAL", "53300", "too many", "x");
    let failed = "failed, server: too many (53300), Reconnect";
    check("prefer", &[(Ask::Connect, yes()), (Ask::Secured, full)], &[SSL_REQUEST, "StartTls", STARTUP, failed]);
}

#[test]
fn words_in_the_clear_around_the_handshake_are_refused() {
    let url = "postgres://me@h/db?sslmode=require";
    let end = |pieces: &[&[u8]]| {
        let (mut connection, mut out, mut pool) = (connection(url, &prepared_on()), Vec::new(), RowsPool::default());
        let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
        connection.on_connected(&mut exchange);
        let all: Vec<_> = pieces.iter().map(|piece| show(&connection.on_bytes(piece, &mut exchange))).collect();
        all.join("; ")
    };
    let injected = "failed, client: data in the clear followed the answer to the request for TLS (no code), Never";
    assert_eq!(end(&[&[b"S", greeting().as_slice()].concat()]), injected);
    assert_eq!(end(&[b"Nx"]), injected);
    let late = "failed, client: data arrived in the clear where TLS begins (no code), Never";
    assert_eq!(end(&[b"S", b"R"]), format!("StartTls; {late}"));
    let stranger = "failed, client: the peer did not answer the request for TLS as PostgreSQL does (no code), Never";
    assert_eq!(end(&[b"HTTP/1.1 400"]), stranger);
    assert_eq!(end(&[b"E\0\0\0\x08boo\0"]), stranger);
}

#[test]
fn session_statements_run_before_the_first_operation() {
    let options = ConnectOptions { session_sql: vec!["SET a = 1".into(), "SELECT 2".into()], ..prepared_on() };
    let first = [notice(), complete("SET"), ready(b'I')].concat();
    let second = [described(&["a"]), row(&[Some("2")]), complete("SELECT 1"), ready(b'I')].concat();
    let joined = format!(r"{STARTUP}Q\x00\x00\x00\x0eSET a = 1\x00Q\x00\x00\x00\rSELECT 2\x00");
    let turns = |second| [(Ask::Connect, greeting()), (Ask::Listen, first.clone()), (Ask::Listen, second)];
    check(URL, &options, &turns(second), &[&joined, "Ready"]);
    let refused = [refusal("ERROR", "42601", "what?", "x"), ready(b'I')].concat();
    let failed = "failed, server: what? (in the session statement `SELECT 2`) (42601), Never";
    check(URL, &options, &turns(refused), &[&joined, failed]);
}

// Operations.

const ID: StatementId = StatementId(0x2a);
const SELECT: Ask<'_> = Ask::Do(Operation::Query { text: b"SELECT 1", rows: RowsWanted::Keep });
const SENT_SELECT: &str = r"> Q\x00\x00\x00\rSELECT 1\x00";
const PREPARE: Ask<'_> = Ask::Do(Operation::Prepare { statement: ID, text: b"SELECT a FROM t WHERE b = ?" });
const SENT_CLOSE: &str = r"C\x00\x00\x00%Sassay_00000009abcdef01_0000002a\x00";
const SENT_PREPARE: &str = r"P\x00\x00\x00Cassay_00000009abcdef01_0000002a\x00SELECT a FROM t WHERE b = $1\x00\x00\x00D\x00\x00\x00%Sassay_00000009abcdef01_0000002a\x00";
const EXECUTE: Ask<'_> =
    Ask::Do(Operation::Execute { statement: ID, parameters: &[Value::Int(-7)], rows: RowsWanted::Keep });
const SENT_EXECUTE: &str = r"B\x00\x00\x001\x00assay_00000009abcdef01_0000002a\x00\x00\x00\x00\x01\x00\x00\x00\x02-7\x00\x00E\x00\x00\x00\t\x00\x00\x00\x00\x00";
const SYNC: &str = r"S\x00\x00\x00\x04";

fn executed() -> Vec<u8> {
    [message(b'2', b""), row(&[Some("x")]), complete("SELECT 1"), ready(b'I')].concat()
}

fn sent(pieces: &[&str]) -> String {
    format!("> {}", pieces.concat())
}

#[test]
fn rows_that_nobody_wants_are_counted() {
    let count = Ask::Do(Operation::Query { text: b"SELECT 1", rows: RowsWanted::Count });
    let rows = [row(&[Some("1"), None]), row(&[Some("x"), Some("two")])].concat();
    let answer = [described(&["a", "b"]), rows, complete("SELECT 2"), ready(b'I')].concat();
    // Two rows without cells; the next operation gets its rows.
    let expected = [SENT_SELECT, "[ ], 0 affected", SENT_SELECT, "[1,- x,two], 0 affected"];
    check_operations(&prepared_on(), &[(count, answer.clone()), (SELECT, answer)], &expected);
}

#[test]
fn a_text_may_return_several_result_sets() {
    let answer = [
        described(&["a", "b"]),
        row(&[Some("1"), None]),
        status("TimeZone", "UTC"),
        row(&[Some(""), Some("two")]),
        complete("SELECT 2"),
        notice(),
        complete("INSERT 0 3"),
        described(&["c"]),
        complete("SELECT 0"),
        complete("UPDATE 4"),
        message(b'I', b""),
        message(b'A', b"\0\0\0\x01channel\0payload\0"),
        ready(b'T'),
        notice(),
    ];
    check_operations(&prepared_on(), &[(SELECT, answer.concat())], &[SENT_SELECT, "[1,- ,two][], 7 affected"]);
}

fn notified(payload: &str) -> Vec<u8> {
    message(b'A', format!("\0\0\0\x01channel\0{payload}\0").as_bytes())
}

#[test]
fn notifications_are_kept_until_somebody_asks_for_them() {
    let answer = [complete("SELECT 0"), notified("1"), ready(b'I'), notified("2")].concat();
    let turns = [
        (SELECT, answer),
        (Ask::Notification, Vec::new()),
        (Ask::Notification, Vec::new()),
        // One that is waited for; others may follow at once.
        (Ask::Notification, [notice(), notified("3"), notified("4")].concat()),
        (Ask::Notification, Vec::new()),
        (Ask::Notification, Vec::new()),
        (Ask::Timeout, Vec::new()),
        // A timer that was forgotten.
        (Ask::Timeout, Vec::new()),
        (Ask::Notification, refusal("FATAL", "57P01", "terminating connection", "ProcessInterrupts")),
    ];
    let expected = [
        SENT_SELECT,
        "no rows, 0 affected",
        "[channel,1], 0 affected",
        "[channel,2], 0 affected",
        "Wait(Nanos(1000000000))",
        "[channel,3], 0 affected",
        "[channel,4], 0 affected",
        "Wait(Nanos(1000000000))",
        "no rows, 0 affected",
        "Wait(Nanos(1000000000))",
        "failed, server: terminating connection (57P01), Reconnect",
    ];
    check_operations(&prepared_on(), &turns, &expected);
}

#[test]
fn more_notifications_than_can_be_kept_are_an_error() {
    let many = notified("x").repeat(1002);
    let first = [complete("SELECT 0"), ready(b'I'), many].concat();
    let turns = [(SELECT, first), (Ask::Notification, Vec::new()), (Ask::Notification, Vec::new())];
    let connection = connection(URL, &prepared_on());
    let lines = play(connection, &[&[(Ask::Connect, greeting())], &turns[..]].concat(), |_| false);
    let dropped = "no rows, 0 affected, client: 2 notifications were dropped: 1000 were waiting for con:notification \
                   already (no code)";
    assert_eq!(lines[lines.len() - 2..], [dropped, "[channel,x], 0 affected"]);
}

#[test]
fn no_result_set_is_not_an_empty_one() {
    let turns = [
        (SELECT, [message(b'I', b""), ready(b'I')].concat()),
        (SELECT, [described(&[]), row(&[]), complete("SELECT 1"), ready(b'I')].concat()),
        (SELECT, [complete("BEGIN"), ready(b'T')].concat()),
    ];
    let expected =
        [SENT_SELECT, "no rows, 0 affected", SENT_SELECT, "[], 0 affected", SENT_SELECT, "no rows, 0 affected"];
    check_operations(&prepared_on(), &turns, &expected);
}

#[test]
fn an_error_in_the_middle_keeps_what_came_before_and_the_connection() {
    let turns = [
        (
            SELECT,
            [
                described(&["a"]),
                row(&[Some("1")]),
                complete("SELECT 1"),
                refusal("ERROR", "22012", "division by zero", "int4div"),
                ready(b'E'),
            ]
            .concat(),
        ),
        (SELECT, [complete("ROLLBACK"), ready(b'I')].concat()),
    ];
    let failed = "[1], 0 affected, server: division by zero (22012)";
    check_operations(&prepared_on(), &turns, &[SENT_SELECT, failed, SENT_SELECT, "no rows, 0 affected"]);
}

#[test]
fn a_prepared_statement_is_described_once() {
    let close = Ask::Do(Operation::Close { statement: ID });
    let turns = [
        (PREPARE, [prepared(1, &["a"]), ready(b'I')].concat()),
        (EXECUTE, executed()),
        (EXECUTE, [message(b'2', b""), complete("SELECT 0"), ready(b'I')].concat()),
        (EXECUTE, [message(b'2', b""), row(&[None]), refusal("ERROR", "40P01", "deadlock", "x"), ready(b'E')].concat()),
        (close, [message(b'3', b""), ready(b'I')].concat()),
        (close, Vec::new()),
        (EXECUTE, Vec::new()),
    ];
    let execute = sent(&[SENT_EXECUTE, SYNC]);
    let expected = [
        &sent(&[SENT_CLOSE, SENT_PREPARE, SYNC]),
        "no rows, 0 affected",
        &execute,
        "[x], 0 affected",
        &execute,
        "[], 0 affected",
        &execute,
        "no rows, 0 affected, server: deadlock (40P01)",
        &sent(&[SENT_CLOSE, SYNC]),
        "no rows, 0 affected",
        "no rows, 0 affected",
        "no rows, 0 affected, client: there is no prepared statement 42 (no code)",
    ];
    check_operations(&prepared_on(), &turns, &expected);
}

const UPDATE: StatementId = StatementId(1);
const DEFER_BEGIN: Ask<'_> =
    Ask::Defer(Operation::Execute { statement: StatementId(0), parameters: &[], rows: RowsWanted::Keep });
const DEFER_UPDATE: Ask<'_> =
    Ask::Defer(Operation::Execute { statement: UPDATE, parameters: &[Value::Int(5)], rows: RowsWanted::Keep });
const DEFER_SELECT: Ask<'_> =
    Ask::Defer(Operation::Execute { statement: ID, parameters: &[Value::Int(5)], rows: RowsWanted::Keep });

/// Prepares BEGIN, an UPDATE and a SELECT; then come `turns`. `expected` omits the preparation.
fn check_deferred(turns: &[(Ask<'_>, Vec<u8>)], expected: &[&str]) {
    let begin = Ask::Do(Operation::Prepare { statement: StatementId(0), text: b"BEGIN" });
    let update = Ask::Do(Operation::Prepare { statement: UPDATE, text: b"UPDATE t SET a = ?" });
    let preparations = [
        (Ask::Connect, greeting()),
        (begin, [prepared(0, &[]), ready(b'I')].concat()),
        (update, [prepared(1, &[]), ready(b'I')].concat()),
        (PREPARE, [prepared(1, &["a"]), ready(b'I')].concat()),
    ];
    let turns = [&preparations, turns].concat();
    let lines = |cut: &dyn Fn(usize) -> bool| play(connection(URL, &prepared_on()), &turns, cut)[8..].to_vec();
    assert_eq!(lines(&|_| false), expected);
    for at in 0..turns.iter().map(|(_, answer)| answer.len() + 1).sum() {
        assert_eq!(lines(&|total| total == at), expected, "cut at {at}");
    }
}

const BOUND_BEGIN: &str =
    r"B\x00\x00\x00+\x00assay_00000009abcdef01_00000000\x00\x00\x00\x00\x00\x00\x00E\x00\x00\x00\t\x00\x00\x00\x00\x00";
const BOUND_UPDATE: &str = r"B\x00\x00\x000\x00assay_00000009abcdef01_00000001\x00\x00\x00\x00\x01\x00\x00\x00\x015\x00\x00E\x00\x00\x00\t\x00\x00\x00\x00\x00";

fn done(tag: &str) -> Vec<u8> {
    [message(b'2', b""), complete(tag)].concat()
}

#[test]
fn deferred_statements_travel_in_front_of_the_next_and_are_answered_with_it() {
    let rows = [message(b'2', b""), row(&[Some("x")]), complete("SELECT 1"), ready(b'T')].concat();
    check_deferred(
        &[
            // Outside a transaction, only the statement that starts one waits.
            (DEFER_UPDATE, Vec::new()),
            (DEFER_BEGIN, Vec::new()),
            (DEFER_UPDATE, Vec::new()),
            (DEFER_SELECT, Vec::new()),
            (EXECUTE, [done("BEGIN"), done("UPDATE 3"), rows].concat()),
            (DEFER_UPDATE, Vec::new()),
            (Ask::Flush, [done("UPDATE 1"), ready(b'T')].concat()),
            (Ask::Flush, Vec::new()),
            // Held statements are dropped if something else comes.
            (DEFER_UPDATE, Vec::new()),
            (SELECT, [complete("ROLLBACK"), ready(b'I')].concat()),
        ],
        &[
            "Ready",
            "Ready",
            &sent(&[BOUND_BEGIN, BOUND_UPDATE, SENT_EXECUTE, SYNC]),
            "[x], 0 affected",
            &sent(&[BOUND_UPDATE, SYNC]),
            "no rows, 0 affected",
            "no rows, 0 affected",
            SENT_SELECT,
            "no rows, 0 affected",
        ],
    );
}

#[test]
fn a_refused_deferred_statement_is_the_answer_of_the_one_waited_for() {
    let refused = refusal("ERROR", "40P01", "deadlock", "x");
    let all = sent(&[BOUND_BEGIN, BOUND_UPDATE, SENT_EXECUTE, SYNC]);
    let asked = [(DEFER_BEGIN, Vec::new()), (DEFER_UPDATE, Vec::new())];
    let answer = [done("BEGIN"), refused, ready(b'E')].concat();
    check_deferred(
        &[&asked[..], &[(EXECUTE, answer)]].concat(),
        &[&all, "no rows, 0 affected, server: deadlock (40P01)"],
    );
    // One without any answer does not count as executed.
    check_deferred(
        &[&asked[..], &[(EXECUTE, [done("BEGIN"), ready(b'T')].concat())]].concat(),
        &[&all, "failed, client: fewer statements were answered than were sent (no code), Never"],
    );
}

#[test]
fn executed_deferred_statements_are_counted_by_what_they_did() {
    let mut connection = connection(URL, &prepared_on());
    let (mut out, mut pool) = (Vec::new(), RowsPool::default());
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    connection.on_connected(&mut exchange);
    connection.on_bytes(&greeting(), &mut exchange);
    for (number, sql, parameters) in [(0, &b"BEGIN"[..], 0), (1, b"UPDATE t SET a = ?", 1)] {
        connection.execute(&Operation::Prepare { statement: StatementId(number), text: sql }, &mut exchange);
        connection.on_bytes(&[prepared(parameters, &[]), ready(b'I')].concat(), &mut exchange);
    }
    let update = Operation::Execute { statement: UPDATE, parameters: &[Value::Int(5)], rows: RowsWanted::Keep };
    assert!(connection.defer(&Operation::Execute {
        statement: StatementId(0),
        parameters: &[],
        rows: RowsWanted::Keep
    }));
    assert!(connection.defer(&update) && connection.defer(&update) && connection.defer(&update));
    connection.flush(&mut exchange);
    let refused = refusal("ERROR", "23505", "duplicate", "x");
    let answer = [done("BEGIN"), done("UPDATE 2"), done("UPDATE 0"), refused, ready(b'E')].concat();
    connection.on_bytes(&answer, &mut exchange);
    assert_eq!(connection.take_executed(), Executed { writes: 1, others: 2, ..Executed::default() });
    assert_eq!(connection.take_executed(), Executed::default());
}

#[test]
fn a_pipeline_is_sent_as_one_whatever_its_statements_mean() {
    let mut connection = connection(URL, &prepared_on());
    let (mut out, mut pool) = (Vec::new(), RowsPool::default());
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    connection.on_connected(&mut exchange);
    connection.on_bytes(&greeting(), &mut exchange);
    for (number, sql, columns) in [(0, &b"BEGIN"[..], &[][..]), (1, b"SELECT a FROM t", &["a"][..])] {
        connection.execute(&Operation::Prepare { statement: StatementId(number), text: sql }, &mut exchange);
        connection.on_bytes(&[prepared(0, columns), ready(b'I')].concat(), &mut exchange);
    }
    exchange.out.clear();
    let statement =
        |number| Operation::Execute { statement: StatementId(number), parameters: &[], rows: RowsWanted::Keep };
    let answer = |rest: &[u8]| [&done("BEGIN")[..], rest].concat();
    let selected = [message(b'2', b""), row(&[Some("x")]), complete("SELECT 1")].concat();

    // Begin and select, synchronized, and another select: two units, one send.
    connection.synchronize();
    assert!(connection.pipe(&statement(0)) && connection.pipe(&statement(1)));
    connection.synchronize();
    assert!(connection.pipe(&statement(1)));
    assert!(matches!(connection.flush(&mut exchange), Progress::Pending));
    assert_eq!(exchange.out.windows(5).filter(|bytes| bytes == b"S\0\0\0\x04").count(), 2);
    let first = answer(&[&selected[..], &ready(b'T')].concat());
    assert!(matches!(connection.on_bytes(&first, &mut exchange), Progress::Pending));
    let second = [selected.clone(), ready(b'T')].concat();
    let Progress::Reply(reply) = connection.on_bytes(&second, &mut exchange) else { panic!("it is over") };
    assert!(reply.rows.is_none() && reply.error.is_none());
    assert_eq!(connection.take_executed(), Executed { reads: 2, writes: 0, others: 1 });

    // An error in the first unit is the answer of all, once the second is over.
    assert!(connection.pipe(&statement(1)) && connection.pipe(&statement(1)));
    connection.synchronize();
    assert!(connection.pipe(&statement(1)));
    connection.flush(&mut exchange);
    let refused = [refusal("ERROR", "22012", "division by zero", "x"), ready(b'I')].concat();
    assert!(matches!(connection.on_bytes(&refused, &mut exchange), Progress::Pending));
    let Progress::Reply(reply) = connection.on_bytes(&second, &mut exchange) else { panic!("it is over") };
    assert_eq!(reply.error.unwrap().message, "division by zero");
}

#[test]
fn parameters_go_as_text() {
    let values =
        [Value::Null, Value::Int(i64::MIN), Value::Double(0.1), Value::Double(f64::INFINITY), Value::Text(b"")];
    let execute = Ask::Do(Operation::Execute { statement: ID, parameters: &values, rows: RowsWanted::Keep });
    let turns = [
        (
            Ask::Do(Operation::Prepare { statement: ID, text: b"f(?,?,?,?,?)" }),
            [prepared(5, &[]), ready(b'I')].concat(),
        ),
        (execute, [message(b'2', b""), complete("DELETE 2"), ready(b'I')].concat()),
        (EXECUTE, Vec::new()),
    ];
    let turns = [&[(Ask::Connect, greeting())], turns.as_slice()].concat();
    let lines = play(connection(URL, &prepared_on()), &turns, |_| false);
    let bound = r"\x00\x00\x00\x05\xff\xff\xff\xff\x00\x00\x00\x14-9223372036854775808\x00\x00\x00\x030.1\x00\x00\x00\x08Infinity\x00\x00\x00\x00\x00\x00E";
    assert!(lines[4].contains(bound), "{}", lines[4]);
    let miscounted = "no rows, 0 affected, client: the statement has 5 placeholders, 1 parameters were given (no code)";
    assert_eq!(lines[5..], ["no rows, 2 affected", miscounted]);
}

#[test]
fn statements_outlive_the_socket() {
    let turns = [
        (PREPARE, [prepared(1, &["a"]), ready(b'I')].concat()),
        (EXECUTE, refusal("FATAL", "57P01", "terminating connection due to administrator command", "x")),
        (Ask::Closed, Vec::new()),
        (Ask::Connect, greeting()),
        (
            EXECUTE,
            [prepared(1, &["a", "b"]), message(b'2', b""), row(&[None, None]), complete(""), ready(b'I')].concat(),
        ),
        (EXECUTE, [message(b'2', b""), row(&[None, Some("1")]), complete("SELECT 1"), ready(b'I')].concat()),
    ];
    let execute = sent(&[SENT_EXECUTE, SYNC]);
    let expected = [
        &sent(&[SENT_CLOSE, SENT_PREPARE, SYNC]),
        "no rows, 0 affected",
        &execute,
        "failed, server: terminating connection due to administrator command (57P01), Reconnect",
        STARTUP,
        "Ready",
        &sent(&[SENT_CLOSE, SENT_PREPARE, SENT_EXECUTE, SYNC]),
        "[-,-], 0 affected",
        &execute,
        "[-,1], 0 affected",
    ];
    check_operations(&prepared_on(), &turns, &expected);
}

#[test]
fn what_the_server_forgot_is_prepared_again() {
    for (state, routine) in [("26000", "FetchPreparedStatement"), ("0A000", "RevalidateCachedQuery")] {
        let turns = [
            (PREPARE, [prepared(1, &["a"]), ready(b'I')].concat()),
            (EXECUTE, [refusal("ERROR", state, "gone", routine), ready(b'I')].concat()),
            (EXECUTE, [prepared(1, &["a"]), executed()].concat()),
            (EXECUTE, executed()),
        ];
        let turns = [&[(Ask::Connect, greeting())], turns.as_slice()].concat();
        let lines = play(connection(URL, &prepared_on()), &turns, |_| false);
        assert_eq!(lines[5], format!("no rows, 0 affected, server: gone ({state})"));
        assert_eq!(lines[6], sent(&[SENT_CLOSE, SENT_PREPARE, SENT_EXECUTE, SYNC]));
        assert_eq!(lines[7..], ["[x], 0 affected", &sent(&[SENT_EXECUTE, SYNC]), "[x], 0 affected"]);
    }
}

#[test]
fn a_statement_that_cannot_be_prepared_is_refused_or_substituted() {
    let refuse = |state, routine, transaction| [refusal("ERROR", state, "no", routine), ready(transaction)].concat();
    let preparing = sent(&[SENT_CLOSE, SENT_PREPARE, SYNC]);
    let unknown = "no rows, 0 affected, client: there is no prepared statement 42 (no code)";
    // A real mistake, which has aborted the transaction.
    for (answer, error) in
        [(refuse("42601", "scanner_yyerror", b'I'), "42601"), (refuse("42P18", "exec_parse_message", b'E'), "42P18")]
    {
        let failed = format!("no rows, 0 affected, server: no ({error})");
        check_operations(&prepared_on(), &[(PREPARE, answer), (EXECUTE, Vec::new())], &[&preparing, &failed, unknown]);
    }
    let substituted = r"> Q\x00\x00\x00#SELECT a FROM t WHERE b = \'-7\'\x00";
    let simple = [described(&["a"]), row(&[Some("x")]), complete("SELECT 1"), ready(b'I')].concat();
    for answer in [refuse("42601", "exec_parse_message", b'I'), refuse("42P18", "exec_parse_message", b'I')] {
        let turns = [(PREPARE, answer), (EXECUTE, simple.clone())];
        check_operations(&prepared_on(), &turns, &[&preparing, "no rows, 0 affected", substituted, "[x], 0 affected"]);
    }
    // Switched off: the server gets only the text.
    let options = ConnectOptions { prepared: false, ..ConnectOptions::default() };
    let close = Ask::Do(Operation::Close { statement: ID });
    let turns = [(PREPARE, Vec::new()), (EXECUTE, simple), (close, Vec::new())];
    let nothing = "no rows, 0 affected";
    check_operations(&options, &turns, &[nothing, substituted, "[x], 0 affected", nothing]);
}

#[test]
fn rows_are_loaded_by_copy() {
    let mut rows = Rows::default();
    rows.begin_set(4);
    rows.push_int(-1);
    rows.push_double(1e300);
    rows.push_null();
    rows.push_text(b"\\.\ta\nb\rc").unwrap();
    for _ in 0..3 {
        rows.push_null();
    }
    rows.push_text(b"").unwrap();
    let load = Ask::Do(Operation::Load { table: b"t", columns: b"a, b,c,d", rows: &rows, frozen: false });
    let (mut none, mut two) = (Rows::default(), Rows::default());
    none.begin_set(1);
    two.begin_set(1);
    two.begin_set(1);
    let load_none = Ask::Do(Operation::Load { table: b"t", columns: b"a", rows: &none, frozen: false });
    let load_two = Ask::Do(Operation::Load { table: b"t", columns: b"a", rows: &two, frozen: false });
    let copy_in = message(b'G', &[0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    let turns = [
        (load, [copy_in.clone(), complete("COPY 2"), ready(b'I')].concat()),
        (load, [copy_in.clone(), refusal("ERROR", "23505", "duplicate key", "x"), ready(b'I')].concat()),
        (load, [refusal("ERROR", "42P01", "no table", "x"), ready(b'I')].concat()),
        (load_none, [copy_in, complete("COPY 0"), ready(b'T')].concat()),
        (load_two, Vec::new()),
    ];
    let copied = r"> Q\x00\x00\x00!COPY t (a, b,c,d) FROM STDIN\x00d\x00\x00\x00\'-1\t1e300\t\\N\t\\\\.\\ta\\nb\\rc\n\\N\t\\N\t\\N\t\nc\x00\x00\x00\x04";
    let expected = [
        copied,
        "no rows, 2 affected",
        copied,
        "no rows, 0 affected, server: duplicate key (23505)",
        copied,
        "no rows, 0 affected, server: no table (42P01)",
        r"> Q\x00\x00\x00\x1aCOPY t (a) FROM STDIN\x00c\x00\x00\x00\x04",
        "no rows, 0 affected",
        "no rows, 0 affected, client: rows to load come as one set, not 2 (no code)",
    ];
    check_operations(&prepared_on(), &turns, &expected);
}

#[test]
fn large_batches_are_binary_once_the_types_are_known() {
    let mut rows = Rows::default();
    rows.begin_set(2);
    rows.push_int(7);
    rows.push_text(&[b'x'; 65_536]).unwrap();
    let load = Operation::Load { table: b"t", columns: b"a,b", rows: &rows, frozen: false };
    let mut connection = connection(URL, &prepared_on());
    let mut pool = RowsPool::default();
    let mut exchange = Exchange { out: &mut Vec::new(), pool: &mut pool, now: Nanos::ZERO };
    connection.on_connected(&mut exchange);
    connection.on_bytes(&greeting(), &mut exchange);
    // What is sent for an operation, and how the server's answer is interpreted.
    let mut turn = |operation: &Operation<'_>, answer: &[u8]| {
        let mut out = Vec::new();
        let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
        connection.execute(operation, &mut exchange);
        let Progress::Reply(reply) = connection.on_bytes(answer, &mut exchange) else { panic!("no reply") };
        (String::from_utf8_lossy(&out[..out.len().min(80)]).into_owned(), reply.affected, reply.error)
    };
    let described = [
        message(b'1', b""),
        message(b't', &[0, 2, 0, 0, 0, 23, 0, 0, 4, 18]),
        message(b'n', b""),
        ready(b'I'),
        message(b'G', &[0, 0, 2, 0, 0, 0, 0]),
        complete("COPY 1"),
        ready(b'I'),
    ];
    let copied = [message(b'G', &[1, 0, 2, 0, 1, 0, 1]), complete("COPY 1"), ready(b'I')].concat();
    let asked =
        "P\0\0\0*\0INSERT INTO t (a,b) VALUES ($1,$2)\0\0\0D\0\0\0\u{6}S\0S\0\0\0\u{4}Q\0\0\0\u{1c}COPY t (a,b) FROM";
    let (sent, affected, error) = turn(&load, &described.concat());
    assert!(sent.starts_with(asked), "{sent:?}");
    assert_eq!((affected, error), (1, None));
    let (sent, affected, error) = turn(&load, &copied);
    assert!(sent.contains("Q\0\0\0,COPY t (a,b) FROM STDIN (FORMAT binary)\0d"), "{sent:?}");
    assert_eq!((affected, error), (1, None));
    // Any other statement may have changed the table; and a query that is refused does no harm.
    turn(
        &Operation::Query { text: b"ALTER", rows: RowsWanted::Keep },
        &[complete("ALTER TABLE"), ready(b'I')].concat(),
    );
    let refused = [
        refusal("ERROR", "428C9", "cannot insert into column a", "x"),
        ready(b'I'),
        message(b'G', &[0, 0, 2, 0, 0, 0, 0]),
        complete("COPY 1"),
        ready(b'I'),
    ];
    for asks in [true, false] {
        let (sent, affected, error) = turn(&load, &if asks { refused.concat() } else { copied.clone() });
        assert_eq!(sent.starts_with(asked), asks, "{sent:?}");
        assert!(!sent.contains("binary"), "{sent:?}");
        assert_eq!((affected, error), (1, None));
    }
}

#[test]
fn a_second_load_is_held_until_the_first_is_answered_and_dropped_if_that_failed() {
    let mut rows = Rows::default();
    rows.begin_set(1);
    rows.push_text(&[b'x'; 65_536]).unwrap();
    let load = Operation::Load { table: b"t", columns: b"a", rows: &rows, frozen: true };
    let mut connection = connection(URL, &prepared_on());
    let (mut pool, mut out) = (RowsPool::default(), Vec::new());
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    connection.on_connected(&mut exchange);
    connection.on_bytes(&greeting(), &mut exchange);
    assert!(!connection.load_ahead(&load), "nothing is in flight");
    connection.execute(&load, &mut exchange);
    assert!(!connection.load_ahead(&load), "the types are not known yet");
    let described = [message(b'1', b""), message(b't', &[0, 1, 0, 0, 0, 25]), message(b'n', b""), ready(b'T')].concat();
    connection.on_bytes(&described, &mut exchange);
    assert!(connection.load_ahead(&load) && !connection.load_ahead(&load), "one is held");
    let copied = [message(b'G', &[0, 0, 1, 0, 0]), complete("COPY 1"), ready(b'T')].concat();
    exchange.out.clear();
    for holds in [true, false] {
        let Progress::Reply(reply) = connection.on_bytes(&copied, &mut exchange) else { panic!("no reply") };
        assert_eq!((reply.affected, reply.error), (1, None));
        let sent = String::from_utf8_lossy(exchange.out);
        assert_eq!(sent.contains("COPY t (a) FROM STDIN (FORMAT binary, FREEZE)"), holds, "{sent}");
        assert_eq!(connection.has_sent_rows(), holds);
        exchange.out.clear();
    }
    connection.execute(&load, &mut exchange);
    assert!(connection.load_ahead(&load));
    exchange.out.clear();
    let refused =
        [message(b'G', &[0, 0, 1, 0, 0]), refusal("ERROR", "23505", "duplicate key", "x"), ready(b'E')].concat();
    let Progress::Reply(reply) = connection.on_bytes(&refused, &mut exchange) else { panic!("no reply") };
    assert!(reply.error.is_some() && exchange.out.is_empty() && !connection.has_sent_rows());
    let rolled_back = [complete("ROLLBACK"), ready(b'I')].concat();
    connection.execute(&Operation::Query { text: b"ROLLBACK", rows: RowsWanted::Keep }, &mut exchange);
    let Progress::Reply(reply) = connection.on_bytes(&rolled_back, &mut exchange) else { panic!("no reply") };
    assert_eq!(reply.error, None);
}

#[test]
fn a_copy_of_the_scripts_own_is_refused_and_over() {
    let simple = Ask::Do(Operation::Query { text: b"COPY t TO STDOUT", rows: RowsWanted::Keep });
    let sent_simple = r"> Q\x00\x00\x00\x15COPY t TO STDOUT\x00";
    let copy_out =
        [message(b'H', &[0, 0, 0]), message(b'd', b"1\n"), message(b'd', b"2\n"), message(b'c', b"")].concat();
    let failed = "f\\x00\\x00\\x00 not supported by the client\\x00";
    let cancelled = refusal("ERROR", "57014", "COPY from stdin failed", "x");
    let turns = [
        (simple, [copy_out.clone(), complete("COPY 2"), ready(b'I')].concat()),
        (SELECT, [message(b'G', &[0, 0, 0]), cancelled.clone(), ready(b'I')].concat()),
        (PREPARE, [prepared(1, &[]), ready(b'I')].concat()),
        (EXECUTE, [message(b'2', b""), message(b'G', &[0, 0, 0]), cancelled, ready(b'I')].concat()),
        (SELECT, [message(b'W', &[0, 0, 0]), message(b'c', b""), complete("x"), ready(b'I')].concat()),
    ];
    let refused = |what| format!("no rows, 0 affected, client: {what} cannot be run from a script (no code)");
    let expected = [
        sent_simple,
        &refused("COPY … TO STDOUT"),
        &format!("{SENT_SELECT}{failed}"),
        &refused("COPY … FROM STDIN"),
        &sent(&[SENT_CLOSE, SENT_PREPARE, SYNC]),
        "no rows, 0 affected",
        &sent(&[SENT_EXECUTE, SYNC, failed, SYNC]),
        &refused("COPY … FROM STDIN"),
        &format!(r"{SENT_SELECT}c\x00\x00\x00\x04"),
        &refused("replication"),
    ];
    check_operations(&prepared_on(), &turns, &expected);
}

#[test]
fn a_goodbye_behind_a_reply_meets_the_next_operation() {
    let goodbye = refusal("FATAL", "57P01", "shutting down", "x");
    let turns = [(SELECT, [complete("SET"), ready(b'I'), goodbye.clone()].concat()), (SELECT, Vec::new())];
    let whole =
        play(connection(URL, &prepared_on()), &[&[(Ask::Connect, greeting())], turns.as_slice()].concat(), |_| false);
    assert_eq!(whole[2..], [SENT_SELECT, "no rows, 0 affected", "failed, server: shutting down (57P01), Reconnect"]);
    // While nothing is in flight.
    let turns = [(Ask::Listen, goodbye), (SELECT, Vec::new())];
    let gone = "failed, network: the connection to the server is closed (no code), Reconnect";
    check_operations(&prepared_on(), &turns, &["failed, server: shutting down (57P01), Reconnect", gone]);
}

#[test]
fn broken_messages_end_the_connection() {
    for (answer, expected) in [
        (row(&[]), "a row came without its description"),
        ([described(&["a"]), row(&[None, None])].concat(), "a row has another number of columns than was announced"),
        ([described(&["a"]), message(b'D', b"\0\x01\0\0\0\x05abc")].concat(), "a message ended too early"),
        (message(b'Z', b""), "a message ended too early"),
        (message(b'C', b"SELECT"), "a text in a message has no end"),
        (message(b'E', b"SERROR\0"), "a message ended too early"),
        (message(b'V', b""), "a message of type `V` came in a result"),
        (b"D\0\0\0\x02".to_vec(), "a message of type `D` announced 2 bytes"),
        (b"D\x7f\0\0\0".to_vec(), "a message of type `D` announced 2130706432 bytes"),
        // Rows can be that long, but nobody waits for so much of what no server sends.
        (b"6\0\x02\0\0".to_vec(), "a message of type `6` announced 131072 bytes"),
        (b"\0\xff\xff\xff\xff".to_vec(), "a message of type 0x00 announced 4294967295 bytes"),
    ] {
        let failed = format!("failed, client: {expected} (no code), Never");
        check_operations(&prepared_on(), &[(SELECT, answer)], &[SENT_SELECT, &failed]);
    }
    let unasked = "failed, client: a message of type `C` came unasked (no code), Never";
    check_operations(&prepared_on(), &[(Ask::Listen, complete("SELECT 1"))], &[unasked]);
}

#[test]
fn an_open_transaction_is_known_by_the_servers_word() {
    let mut connection = connection(URL, &prepared_on());
    let mut out = Vec::new();
    let mut pool = RowsPool::default();
    connection.on_connected(&mut Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO });
    feed(&mut connection, &mut out, &greeting(), 9999);
    assert_eq!((connection.server().product.as_str(), connection.server().version.as_str()), ("PostgreSQL", "15.14"));
    for (status, open) in [(b'T', true), (b'E', true), (b'I', false)] {
        let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
        connection.execute(&Operation::Query { text: b"BEGIN", rows: RowsWanted::Keep }, &mut exchange);
        feed(&mut connection, &mut out, &[complete("x"), ready(status)].concat(), 9999);
        assert_eq!(connection.in_transaction(), open);
    }
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    exchange.out.clear();
    connection.close(&mut exchange);
    assert_eq!(out, b"X\0\0\0\x04");
}

#[test]
fn texts_with_a_nul_never_reach_the_server() {
    let turns = [
        (Ask::Do(Operation::Query { text: b"SELECT 1\0; DROP", rows: RowsWanted::Keep }), Vec::new()),
        (Ask::Do(Operation::Prepare { statement: ID, text: b"\0" }), Vec::new()),
    ];
    let refused = "no rows, 0 affected, client: the statement's text holds a NUL byte (no code)";
    check_operations(&prepared_on(), &turns, &[refused, refused]);
}

#[test]
fn standard_conforming_strings_decide_where_a_string_ends() {
    let options = ConnectOptions { prepared: false, ..ConnectOptions::default() };
    let prepare = Ask::Do(Operation::Prepare { statement: ID, text: br"SELECT '\' ? '?'" });
    let execute = Ask::Do(Operation::Execute { statement: ID, parameters: &[Value::Int(1)], rows: RowsWanted::Keep });
    let off = status("standard_conforming_strings", "off");
    let turns = [(prepare, off.clone()), (execute, Vec::new()), (prepare, Vec::new()), (execute, Vec::new())];
    let nothing = "no rows, 0 affected";
    let before = r"> Q\x00\x00\x00\x17SELECT \'\\\' \'1\' \'?\'\x00";
    let turns: Vec<_> = [(Ask::Connect, greeting())].into_iter().chain(turns).collect();
    let answered = [turns[0].clone(), turns[1].clone(), (turns[2].0, [complete("x"), ready(b'I')].concat())];
    let lines = play(connection(URL, &options), &answered, |_| false);
    assert_eq!(lines[2..], [nothing, before, nothing]);
    let later = [(Ask::Connect, [greeting(), off].concat()), turns[1].clone(), (turns[4].0, Vec::new())];
    let lines = play(connection(URL, &options), &later, |_| false);
    // `'\' ? '` is one string now, then a placeholder stands next to an unfinished one.
    assert!(lines[3].contains(r"SELECT \'\\\' ? \' \'1\' \'"), "{}", lines[3]);
}

#[test]
fn an_idle_connection_is_small() {
    assert!(size_of::<PostgresConnection>() <= 320, "{} bytes", size_of::<PostgresConnection>());
    let mut connection = connection(URL, &prepared_on());
    let mut out = Vec::new();
    let mut pool = RowsPool::default();
    connection.on_connected(&mut Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO });
    feed(&mut connection, &mut out, &greeting(), 9999);
    connection.execute(
        &Operation::Query { text: b"x", rows: RowsWanted::Keep },
        &mut Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO },
    );
    let large = "x".repeat(100_000);
    let answer = [described(&["a"]), row(&[Some(&large)]), complete("SELECT 1"), ready(b'I')].concat();
    assert!(matches!(feed(&mut connection, &mut out, &answer, 1000), Progress::Reply(_)));
    assert!(connection.tail_capacity() <= 4096, "{} bytes", connection.tail_capacity());
}

#[test]
fn announced_lengths_reserve_nothing() {
    let mut connection = connection(URL, &prepared_on());
    let mut out = Vec::new();
    let mut pool = RowsPool::default();
    connection.on_connected(&mut Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO });
    feed(&mut connection, &mut out, &greeting(), 9999);
    connection.execute(
        &Operation::Query { text: b"x", rows: RowsWanted::Keep },
        &mut Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO },
    );
    let progress = feed(&mut connection, &mut out, b"D\x40\0\0\0\0\x01", 1);
    assert!(matches!(progress, Progress::Pending) && connection.tail_capacity() < 100);
}

// Arbitrary bytes.

fn transcript() -> Vec<u8> {
    let parts = [
        auth(10, b"SCRAM-SHA-256\0\0"),
        greeting(),
        prepared(1, &["a"]),
        executed(),
        described(&["a", "b"]),
        row(&[Some("1"), None]),
        complete("SELECT 1"),
        refusal("ERROR", "22012", "division by zero", "int4div"),
        ready(b'E'),
        message(b'G', &[0, 0, 0]),
        notice(),
        complete("COPY 2"),
        ready(b'I'),
        message(b'H', &[0, 0, 0]),
        refusal("FATAL", "57P01", "bye", "x"),
    ];
    parts.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz_postgres(&data);
    }

    #[test]
    fn damaged_conversations_never_panic(
        size in any::<u8>(),
        start in 0..300_usize,
        damage in proptest::collection::vec((0..600_usize, any::<u8>()), 0..6),
    ) {
        let mut data = transcript();
        for (at, byte) in damage {
            if let Some(place) = data.get_mut(at) {
                *place = byte;
            }
        }
        data.drain(..start.min(data.len()));
        data.insert(0, size);
        fuzz_postgres(&data);
    }
}

// Servers.

fn around(variables: &[(&'static str, &'static str)], files: &[(&'static str, u32, &'static str)]) -> Around {
    Around {
        variables: variables.iter().copied().collect(),
        files: files.iter().map(|&(path, mode, content)| (path, (mode, content))).collect(),
    }
}

fn check_target(url: &str, around: &Around, display: &str, endpoints: &[&str], password: Option<&str>) {
    let database = (DRIVER.open)(url, &prepared_on(), around).unwrap_or_else(|error| panic!("{url}: {error}"));
    assert_eq!(database.display(), display, "{url}");
    let found = database.endpoints().into_iter().map(|endpoint| match endpoint {
        Endpoint::Tcp { host, port } => format!("{host} {port}"),
        Endpoint::Unix(path) => path.display().to_string(),
        Endpoint::Embedded => "embedded".into(),
    });
    assert_eq!(found.collect::<Vec<_>>(), endpoints, "{url}");
    let read = server::read(url, &prepared_on(), around).unwrap();
    assert_eq!(read.credentials.password.as_deref(), password.map(str::as_bytes), "{url}");
    let again = (DRIVER.open)(&database.display(), &prepared_on(), &Around::default()).unwrap();
    assert_eq!(again.endpoints(), database.endpoints(), "what is shown opens the same server");
}

#[test]
fn a_target_is_completed_as_libpq_does() {
    let none = Around::default();
    let socket = ["/var/run/postgresql/.s.PGSQL.5432"];
    check_target("postgres://", &none, "postgres://me@/me?host=/var/run/postgresql", &socket, None);
    check_target("postgresql:///db", &none, "postgres://me@/db?host=/var/run/postgresql", &socket, None);
    let tmp = around(&[], &[("/tmp/.s.PGSQL.5432", 0o777, "")]);
    check_target("postgres://", &tmp, "postgres://me@/me?host=/tmp", &["/tmp/.s.PGSQL.5432"], None);
    check_target("postgres://you:pw@h/db", &none, "postgres://you@h:5432/db", &["h 5432"], Some("pw"));
    let several = "postgres://h1:1,h2,[::1]:3/db?user=u&dbname=x&sslmode=disable";
    check_target(
        several,
        &none,
        "postgres://u@h1:1,h2:5432,[::1]:3/x?sslmode=disable",
        &["h1 1", "h2 5432", "::1 3"],
        None,
    );
    let options = "postgres:///?host=/s&port=7&options=-c%20work_mem%3D1MB&application_name=a&password=pw";
    let shown = "postgres://me@/me?options=-c%20work%5Fmem%3D1MB&application_name=a&host=/s&port=7";
    check_target(options, &none, &shown.replace("%5F", "_"), &["/s/.s.PGSQL.7"], Some("pw"));
    check_target("postgres://%2Fs:7", &none, "postgres://me@/me?host=/s&port=7", &["/s/.s.PGSQL.7"], None);
    let variables = around(
        &[
            ("PGHOST", "vh"),
            ("PGPORT", "77"),
            ("PGUSER", "vu"),
            ("PGPASSWORD", "vp"),
            ("PGDATABASE", "vd"),
            ("PGSSLMODE", "require"),
        ],
        &[],
    );
    check_target("postgres://", &variables, "postgres://vu@vh:77/vd?sslmode=require", &["vh 77"], Some("vp"));
    check_target("postgres://u:p@h:1/d?sslmode=prefer", &variables, "postgres://u@h:1/d", &["h 1"], Some("p"));
}

#[test]
fn passwords_come_from_a_passfile_only_we_can_read() {
    let line = "h:5432:db:me:filed\nlocalhost:*:*:*:local\n*:1:*:*:one\n";
    let private = around(&[], &[("/home/me/.pgpass", 0o600, line)]);
    check_target("postgres://h/db", &private, "postgres://me@h:5432/db", &["h 5432"], Some("filed"));
    check_target("postgres://h/other", &private, "postgres://me@h:5432/other", &["h 5432"], None);
    check_target(
        "postgres:///db?host=/tmp",
        &private,
        "postgres://me@/db?host=/tmp",
        &["/tmp/.s.PGSQL.5432"],
        Some("local"),
    );
    check_target("postgres://me:own@h/db", &private, "postgres://me@h:5432/db", &["h 5432"], Some("own"));
    let elsewhere = around(&[("PGPASSFILE", "/p")], &[("/p", 0o400, line), ("/home/me/.pgpass", 0o600, "")]);
    check_target("postgres://h/db", &elsewhere, "postgres://me@h:5432/db", &["h 5432"], Some("filed"));
    let open = around(&[], &[("/home/me/.pgpass", 0o644, line)]);
    check_target("postgres://h/db", &open, "postgres://me@h:5432/db", &["h 5432"], None);
    let server = server::read("postgres://h/db", &prepared_on(), &open).unwrap();
    let hint = "/home/me/.pgpass was ignored because others may read it: chmod 0600 /home/me/.pgpass";
    assert_eq!(server.credentials.password_hint.as_deref(), Some(hint));
    let differing = server::read("postgres://h,x:1/db", &prepared_on(), &private).err().unwrap();
    assert_eq!(differing.message, "/home/me/.pgpass has different passwords for the hosts of the same URL");
}

#[test]
fn tls_settings_follow_sslmode_and_the_files_in_home() {
    let check = |parameters: &str,
                 files: &[(&'static str, u32, &'static str)],
                 mode: TlsMode,
                 root: Option<&str>,
                 client: &str| {
        let server = server::read(&format!("postgres://h/?{parameters}"), &prepared_on(), &around(&[], files)).unwrap();
        let found = server.tls.client.map(|(a, b)| format!("{} {}", a.display(), b.display())).unwrap_or_default();
        assert_eq!((server.tls.mode, server.tls.root.as_deref()), (mode, root.map(Path::new)), "{parameters}");
        assert_eq!((found.as_str(), server.tls.server_name.as_str()), (client, "h"), "{parameters}");
    };
    let root = [("/home/me/.postgresql/root.crt", 0o644, "")];
    let pair = [("/home/me/.postgresql/postgresql.crt", 0o644, ""), ("/home/me/.postgresql/postgresql.key", 0o600, "")];
    check("", &[], TlsMode::Prefer, None, "");
    check("ssl=true", &[], TlsMode::Require, None, "");
    check("sslmode=require", &root, TlsMode::VerifyCa, Some("/home/me/.postgresql/root.crt"), "");
    check("sslmode=require&sslrootcert=/r", &[], TlsMode::VerifyCa, Some("/r"), "");
    check("sslrootcert=system", &root, TlsMode::VerifyFull, None, "");
    check("sslmode=verify-full&sslcert=/c&sslkey=/k", &pair, TlsMode::VerifyFull, None, "/c /k");
    let home = "/home/me/.postgresql/postgresql.crt /home/me/.postgresql/postgresql.key";
    check("sslmode=allow", &pair, TlsMode::Allow, None, home);
    let socket = server::read("postgres:///?sslmode=require", &prepared_on(), &Around::default()).unwrap();
    assert_eq!(socket.tls.mode, TlsMode::Disable, "unix sockets are never encrypted");
}

#[test]
fn targets_we_cannot_honor_are_refused() {
    for (url, message) in [
        ("postgres://h/?sslmode=maybe", "sslmode cannot be `maybe` for PostgreSQL"),
        ("postgres://h/?sslmode=require&sslrootcert=system", "sslmode cannot be `require` for PostgreSQL"),
        ("postgres://h/?channel_binding=x", "channel_binding cannot be `x` for PostgreSQL"),
        ("postgres://h/?connect_timeout=soon", "connect_timeout cannot be `soon` for PostgreSQL"),
        ("postgres://h/?port=0", "port cannot be `0` for PostgreSQL"),
        ("postgres://h/?target_session_attrs=read-write", "target_session_attrs cannot be `read-write` for PostgreSQL"),
        ("postgres://h/?keepalives=1", "the connection parameter keepalives of PostgreSQL is not supported"),
        ("postgres://h/?sslcert=", "the parameter sslcert in the PostgreSQL URL has no value"),
        ("postgres://h/?sslcrl=/c", "sslcrl is not supported for PostgreSQL"),
        ("postgres://h,i/?hostaddr=1.2.3.4", "there are not as many addresses (hostaddr) as hosts"),
        ("postgres://h/?service=none", "definition of service \"none\" not found"),
        ("postgres://?host=a,b,c&port=1,2", "there are not as many ports as hosts"),
        ("postgres://?host=a,/b", "socket directories and hosts are mixed in one PostgreSQL URL"),
        ("postgres://a,b/?sslmode=verify-full", "sslmode=verify-full works with a single host name only"),
    ] {
        let error = server::read(url, &prepared_on(), &Around::default()).err().unwrap();
        assert_eq!(error.message, message);
        assert!(error.hint.is_some());
    }
}

#[test]
fn what_variables_ask_for_is_done_or_refused() {
    let read = |variables: &[(&'static str, &'static str)]| {
        server::read("postgres://h/db?sslmode=disable", &prepared_on(), &around(variables, &[]))
    };
    for (variable, value, message) in [
        ("PGREQUIREAUTH", "scram-sha-256", "require_auth is not supported for PostgreSQL"),
        ("PGREQUIREPEER", "postgres", "requirepeer is not supported for PostgreSQL"),
        ("PGGSSENCMODE", "require", "gssencmode cannot be `require` for PostgreSQL"),
        ("PGSSLMINPROTOCOLVERSION", "TLSv1.3", "ssl_min_protocol_version cannot be `TLSv1.3` for PostgreSQL"),
        ("PGSSLCRL", "/crl", "sslcrl is not supported for PostgreSQL"),
        ("PGTARGETSESSIONATTRS", "primary", "target_session_attrs cannot be `primary` for PostgreSQL"),
    ] {
        assert_eq!(read(&[(variable, value)]).err().unwrap().message, message);
    }
    let all = [
        ("PGSSLMINPROTOCOLVERSION", "tlsv1.2"),
        ("PGTZ", "UTC"),
        ("PGDATESTYLE", "default"),
        ("PGCLIENTENCODING", "LATIN1"),
        ("PGHOSTADDR", "10.0.0.1"),
    ];
    let server = read(&all).unwrap();
    assert_eq!(server.session, [("timezone", "UTC".to_owned())]);
    assert_eq!(server.client_encoding, "LATIN1");
    let database = (DRIVER.open)("postgres://h/db", &prepared_on(), &around(&all, &[])).unwrap();
    assert_eq!(database.endpoints(), [Endpoint::Tcp { host: "10.0.0.1".into(), port: 5432 }]);
    assert_eq!(database.tls().server_name, "h", "certificates are for names");
    let server = server::read("postgres://h/db", &prepared_on(), &around(&[("PGREQUIRESSL", "1")], &[])).unwrap();
    assert_eq!(server.tls.mode, TlsMode::Require);
}

#[test]
fn a_service_completes_the_url_before_variables_do() {
    let file = "[one]\nhost=sh\nport=9\nuser=su\npassword=sp\nsslmode=require\n[two]\nnonsense=1\n";
    let own = [("/home/me/.pg_service.conf", 0o600, file)];
    let all = around(&[("PGSERVICE", "one"), ("PGPORT", "8"), ("PGSSLMODE", "disable")], &own);
    check_target("postgres://", &all, "postgres://su@sh:9/su?sslmode=require", &["sh 9"], Some("sp"));
    check_target("postgres://u@h:1/d?sslmode=prefer", &all, "postgres://u@h:1/d", &["h 1"], Some("sp"));
    let system = around(&[], &[("/etc/postgresql-common/pg_service.conf", 0o644, file)]);
    check_target("postgres://h/d?service=one", &system, "postgres://su@h:9/d?sslmode=require", &["h 9"], Some("sp"));
    let refused = |variables: &[(&'static str, &'static str)]| {
        server::read("postgres://", &prepared_on(), &around(variables, &own)).err().unwrap().message
    };
    assert_eq!(refused(&[("PGSERVICE", "two")]), "the connection parameter nonsense of PostgreSQL is not supported");
    let elsewhere = [("PGSERVICE", "one"), ("PGSERVICEFILE", "/none")];
    assert_eq!(refused(&elsewhere), "service file \"/none\" not found");
}

#[test]
fn a_server_that_can_start_no_process_is_understood() {
    let error = |sent: &[u8]| {
        let mut connection = connection(URL, &prepared_on());
        let (mut out, mut pool) = (Vec::new(), RowsPool::default());
        connection.on_connected(&mut Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO });
        let Progress::Failed(error) = feed(&mut connection, &mut out, sent, sent.len()) else { panic!("refused") };
        error
    };
    let refused = error(b"Ecould not fork new process for connection: Resource temporarily unavailable\n\0");
    assert_eq!(refused.message, "could not fork new process for connection: Resource temporarily unavailable");
    assert_eq!((refused.origin, refused.class), (Origin::Server, Class::Limit));
    assert!(refused.hint.unwrap().contains("ulimit -u"));
    assert_eq!(error(b"E\x01\x02\x03\x04\x05").class, Class::Protocol);
}

#[test]
fn a_connection_limit_is_explained_with_the_number_of_sessions() {
    let database = (DRIVER.open)(URL, &prepared_on(), &Around::default()).unwrap();
    let full = refusal("FATAL", "53300", "sorry, too many clients already", "InitProcess");
    let mut connection = connection(URL, &prepared_on());
    let mut out = Vec::new();
    let mut pool = RowsPool::default();
    connection.on_connected(&mut Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO });
    let Progress::Failed(error) = feed(&mut connection, &mut out, &full, 9) else { panic!("refused") };
    let advice = database.advice(&error, 500).unwrap();
    assert!(advice.starts_with("500 sessions were asked for; the server allows max_connections clients"), "{advice}");
    assert_eq!(database.connect_timeout(), None);
    let timed = (DRIVER.open)("postgres://h/?connect_timeout=3", &prepared_on(), &Around::default()).unwrap();
    assert_eq!(timed.connect_timeout(), Some(Nanos::from_secs(3)));
}
