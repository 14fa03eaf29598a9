//! Conversations with a scripted server, each played whole and split at every byte.

use std::fmt::Write;
use std::sync::Arc;

use assay_seam::{
    Cell, Connection, Exchange, Nanos, Operation, Progress, Reply, Rows, RowsPool, RowsWanted, StatementId, TlsFacts,
    Value,
};

use super::connection::MySqlConnection;
use super::packet::{FRAME_MAX, write_packet};
use super::server::tests::server;

/// One step of a conversation.
enum Do<'a> {
    /// The server sends this.
    Server(Vec<u8>),
    /// The engine asks for this.
    Run(Operation<'a>),
    /// The engine asks to hold this back.
    Defer(Operation<'a>),
    /// The engine asks to send what waits.
    Flush,
    /// The TLS handshake succeeds.
    Secure,
    /// The socket closes, and another is connected.
    Reconnect,
}

use Do::{Defer, Flush, Reconnect, Run, Secure, Server};

/// How the server's bytes are split.
#[derive(Clone, Copy)]
enum Cut {
    Whole,
    /// Two pieces, split at this offset of everything the server sends.
    At(usize),
    Pieces(usize),
}

/// Plays the steps; the log has what was sent and what was returned.
fn play(url: &str, prepared: bool, steps: &[Do<'_>], cut: Cut) -> String {
    let mut connection = MySqlConnection::new(Arc::new(server(url, prepared)));
    let mut pool = RowsPool::default();
    let (mut log, mut out, mut sent) = (String::new(), Vec::new(), 0);
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    connection.on_connected(&mut exchange);
    for step in steps {
        match step {
            Server(bytes) => {
                let pieces: Vec<&[u8]> = match cut {
                    Cut::At(at) if (sent + 1..sent + bytes.len()).contains(&at) => {
                        vec![&bytes[..at - sent], &bytes[at - sent..]]
                    }
                    Cut::Pieces(size) => bytes.chunks(size).collect(),
                    _ => vec![bytes],
                };
                sent += bytes.len();
                for piece in pieces {
                    let progress = connection.on_bytes(piece, &mut exchange);
                    note(&mut log, exchange.out, progress, exchange.pool);
                }
            }
            Run(operation) => {
                let progress = connection.execute(operation, &mut exchange);
                note(&mut log, exchange.out, progress, exchange.pool);
            }
            Defer(operation) => {
                let waits = connection.defer(operation);
                writeln!(log, "waits {waits}").unwrap();
            }
            Flush => {
                let progress = connection.flush(&mut exchange);
                note(&mut log, exchange.out, progress, exchange.pool);
            }
            Secure => {
                let tls = TlsFacts { server_end_point: None, cipher: "TLS".into() };
                let progress = connection.on_secured(&tls, &mut exchange);
                note(&mut log, exchange.out, progress, exchange.pool);
            }
            Reconnect => {
                writeln!(log, "closed {}", connection.on_closed()).unwrap();
                connection.on_connected(&mut exchange);
            }
        }
    }
    writeln!(log, "transaction {}", connection.in_transaction()).unwrap();
    log
}

fn note(log: &mut String, out: &mut Vec<u8>, progress: Progress, pool: &mut RowsPool) {
    let mut rest = &out[..];
    while let [a, b, c, sequence, after @ ..] = rest {
        let (payload, after) = after.split_at(u32::from_le_bytes([*a, *b, *c, 0]) as usize);
        rest = after;
        match payload.len() {
            128 => writeln!(log, "> {sequence} (encrypted)").unwrap(),
            length @ 1000.. => writeln!(log, "> {sequence} ({length} bytes)").unwrap(),
            // Without the reserved bytes of a handshake response.
            _ => writeln!(log, "> {sequence} {}", payload.escape_ascii().to_string().replace(&r"\x00".repeat(23), "…"))
                .unwrap(),
        }
    }
    assert!(rest.is_empty(), "whole packets are sent");
    out.clear();
    match progress {
        Progress::Pending => {}
        Progress::Reply(reply) => {
            writeln!(log, "{}", show(&reply)).unwrap();
            reply.rows.into_iter().for_each(|rows| pool.put(rows));
        }
        Progress::Failed(error) => writeln!(log, "failed: {error} {}", error.class).unwrap(),
        other => writeln!(log, "{other:?}").unwrap(),
    }
}

fn show(reply: &Reply) -> String {
    let mut text = format!("affected {}", reply.affected);
    if let Some(rows) = &reply.rows {
        for set in 0..rows.sets() {
            text.push_str(" set");
            for row in 0..rows.len(set) {
                let cells = (0..rows.columns(set)).map(|column| match rows.cell(set, row, column).unwrap() {
                    Cell::Null => "NULL".to_string(),
                    Cell::Text(text) if text.len() > 100 => format!("{} bytes", text.len()),
                    Cell::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
                    Cell::Int(value) => value.to_string(),
                    Cell::Double(value) => format!("{value:?}"),
                });
                write!(text, " ({})", cells.collect::<Vec<_>>().join(",")).unwrap();
            }
        }
    }
    if let Some(error) = &reply.error {
        write!(text, " error {error} {} {:?}", error.class, error.retry).unwrap();
    }
    text
}

/// The log must be as expected, however the server's bytes are split.
fn check(url: &str, steps: &[Do<'_>], expected: &str) {
    check_prepared(url, true, steps, expected);
}

fn check_prepared(url: &str, prepared: bool, steps: &[Do<'_>], expected: &str) {
    let whole = play(url, prepared, steps, Cut::Whole);
    assert!(whole == expected, "found:\n{whole}\nexpected:\n{expected}");
    let total: usize = steps.iter().map(|step| if let Server(bytes) = step { bytes.len() } else { 0 }).sum();
    for at in 1..total {
        assert_eq!(play(url, prepared, steps, Cut::At(at)), whole, "split at {at} of {total}");
    }
    assert_eq!(play(url, prepared, steps, Cut::Pieces(1)), whole, "byte by byte");
}

/// Packets numbered from `sequence` on.
fn packets(mut sequence: u8, payloads: &[&[u8]]) -> Do<'static> {
    let mut out = Vec::new();
    for payload in payloads {
        write_packet(&mut out, &mut sequence, |out| out.extend_from_slice(payload));
    }
    Server(out)
}

const SSL: u32 = 1 << 11;
const DEPRECATE_EOF: u32 = 1 << 24;
/// Capabilities of all servers in the tests: everything up to PLUGIN_AUTH_LENENC but TLS.
const BASE: u32 = 0x003F_FFFF & !SSL;

fn greeting(version: &str, capabilities: u32, plugin: &str) -> Do<'static> {
    extended_greeting(version, capabilities, 0, plugin)
}

fn extended_greeting(version: &str, capabilities: u32, extended: u32, plugin: &str) -> Do<'static> {
    let low = (capabilities as u16).to_le_bytes();
    let high = ((capabilities >> 16) as u16).to_le_bytes();
    packets(
        0,
        &[&[
            &[10][..],
            version.as_bytes(),
            &[0, 9, 0, 0, 0],
            b"abcdefgh\0",
            &low,
            &[45, 2, 0],
            &high,
            &[21],
            &[0; 6],
            &extended.to_le_bytes(),
            b"ijklmnopqrst\0",
            plugin.as_bytes(),
            &[0],
        ]
        .concat()],
    )
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const OK_IN_TRANSACTION: &[u8] = &[0, 0, 0, 3, 0, 0, 0];
const EOF: &[u8] = &[0xFE, 0, 0, 2, 0];
/// An OK packet in the place of an EOF.
const END: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];
/// The server asks for the file of a load.
const ASKED: &[u8] = b"\xFBassay";
const END_MORE: &[u8] = &[0xFE, 0, 0, 10, 0, 0, 0];

fn column(kind: u8, flags: u16) -> Vec<u8> {
    let fixed = [&[0x0C, 45, 0, 11, 0, 0, 0, kind][..], &flags.to_le_bytes(), &[0, 0, 0]].concat();
    [&b"\x03def\x00\x01t\x01t\x01a\x01a"[..], &fixed].concat()
}

const URL: &str = "mysql://app@db/shop";
const NATIVE: &str = "mysql_native_password";
const ID: StatementId = StatementId(3);

/// A login without a password.
fn login(capabilities: u32) -> Vec<Do<'static>> {
    vec![greeting("5.5.5-10.11.6-MariaDB", BASE | capabilities, NATIVE), packets(2, &[OK])]
}

/// Logs in, then plays the steps. `expected` is the log from then on.
fn check_session(capabilities: u32, prepared: bool, steps: Vec<Do<'_>>, expected: &str) {
    let steps: Vec<Do<'_>> = login(capabilities).into_iter().chain(steps).collect();
    let high = if capabilities & DEPRECATE_EOF == 0 { r"\x00" } else { r"\x01" };
    let login = format!(r"> 1 \x8d\xa2/{high}\x00\x00\x00@-…app\x00\x00shop\x00mysql_native_password\x00");
    check_prepared(URL, prepared, &steps, &format!("{login}\nReady\n{expected}"));
}

#[test]
fn the_native_password_is_proved_in_the_first_answer() {
    check(
        "mysql://app:secret@db/shop?sslmode=disable",
        &[greeting("8.0.31", BASE | SSL | DEPRECATE_EOF, NATIVE), packets(2, &[OK])],
        r"> 1 \x8d\xa2/\x01\x00\x00\x00@-…app\x00\x14\x88\x17\xc5\x0f\xa7y\xda\xef\x01\x0e\xe7Wx%\xb0\x84}\xf9\x84.shop\x00mysql_native_password\x00
Ready
transaction false
",
    );
}

#[test]
fn a_password_in_the_servers_cache_takes_one_proof() {
    check(
        "mysql://app:secret@db",
        &[greeting("8.0.31", BASE, "caching_sha2_password"), packets(2, &[&[1, 3], OK])],
        r"> 1 \x85\xa2/\x00\x00\x00\x00@-…app\x00 \xc7n(\x98a*L\xf0B\xc7\x7f\xa8\xc4p,Ld\xc0\xc2\xc5W\xc5<MuYZ\xaaj\xba\xe8\tcaching_sha2_password\x00
Ready
transaction false
",
    );
}

#[test]
fn a_password_not_in_the_cache_travels_encrypted_with_the_servers_key() {
    let key = [&[1][..], include_bytes!("testdata/rsa_public.pem")].concat();
    check(
        "mysql://app:secret@db",
        &[
            greeting("8.0.31", BASE, "caching_sha2_password"),
            packets(2, &[&[1, 4]]),
            packets(4, &[&key]),
            packets(6, &[OK]),
        ],
        r"> 1 \x85\xa2/\x00\x00\x00\x00@-…app\x00 \xc7n(\x98a*L\xf0B\xc7\x7f\xa8\xc4p,Ld\xc0\xc2\xc5W\xc5<MuYZ\xaaj\xba\xe8\tcaching_sha2_password\x00
> 3 \x02
> 5 (encrypted)
Ready
transaction false
",
    );
}

#[test]
fn a_password_not_in_the_cache_travels_in_clear_only_where_nobody_can_read_it() {
    let steps = |after| {
        [
            greeting("8.0.31", BASE | SSL, "caching_sha2_password"),
            Secure,
            packets(after, &[&[1, 4]]),
            packets(after + 2, &[OK]),
        ]
    };
    check(
        "mysql://app:secret@db",
        &steps(3),
        r"> 1 \x85\xaa/\x00\x00\x00\x00@-…
StartTls
> 2 \x85\xaa/\x00\x00\x00\x00@-…app\x00 \xc7n(\x98a*L\xf0B\xc7\x7f\xa8\xc4p,Ld\xc0\xc2\xc5W\xc5<MuYZ\xaaj\xba\xe8\tcaching_sha2_password\x00
> 4 secret\x00
Ready
transaction false
",
    );
    check(
        "mysql://app:secret@/?socket=/s",
        &[greeting("8.0.31", BASE | SSL, "caching_sha2_password"), packets(2, &[&[1, 4]]), packets(4, &[OK])],
        r"> 1 \x85\xa2/\x00\x00\x00\x00@-…app\x00 \xc7n(\x98a*L\xf0B\xc7\x7f\xa8\xc4p,Ld\xc0\xc2\xc5W\xc5<MuYZ\xaaj\xba\xe8\tcaching_sha2_password\x00
> 3 secret\x00
Ready
transaction false
",
    );
}

#[test]
fn an_account_may_ask_for_other_plugins() {
    let ed25519 = [&b"\xFEclient_ed25519\0"[..], &[7; 32]].concat();
    let native = b"\xFEmysql_native_password\0ABCDEFGHIJKLMNOPQRST\0";
    check(
        "mysql://app:secret@db",
        &[greeting("11.4", BASE, "unknown"), packets(2, &[&ed25519]), packets(4, &[native]), packets(6, &[OK])],
        r"> 1 \x85\xa2/\x00\x00\x00\x00@-…app\x00\x14\x88\x17\xc5\x0f\xa7y\xda\xef\x01\x0e\xe7Wx%\xb0\x84}\xf9\x84.mysql_native_password\x00
> 3 F\x11\xb5\x7f;uq+\xe9\x9e\xa3!X=\x93`\xd6\xae\x1a\x94\xb9\xc8\xb2^E\xd0dke\xb2)\xbf\xcf\xdd\xdd\x85\xe1\xeb\xba\xdc\xbf+\xc2\xeb_\xd6\xa1\x10\xbaW\xa6+\xae\xff(\x0e\xf1\x9d\x82\xd4\x826t\x00
> 5 (D\x15\x90gB\x85\xe7\xd0<\xaez\xf27PG\x97\xf7\x0e\x91
Ready
transaction false
",
    );
    let clear = b"\xFEmysql_clear_password\0";
    let greet = |capabilities| greeting("8.0.31", BASE | capabilities, NATIVE);
    check(
        "mysql://app:secret@db",
        &[greet(SSL), Secure, packets(3, &[clear]), packets(5, &[OK])],
        r"> 1 \x85\xaa/\x00\x00\x00\x00@-…
StartTls
> 2 \x85\xaa/\x00\x00\x00\x00@-…app\x00\x14\x88\x17\xc5\x0f\xa7y\xda\xef\x01\x0e\xe7Wx%\xb0\x84}\xf9\x84.mysql_native_password\x00
> 4 secret\x00
Ready
transaction false
",
    );
    check(
        "mysql://app:secret@db",
        &[greet(0), packets(2, &[clear])],
        r"> 1 \x85\xa2/\x00\x00\x00\x00@-…app\x00\x14\x88\x17\xc5\x0f\xa7y\xda\xef\x01\x0e\xe7Wx%\xb0\x84}\xf9\x84.mysql_native_password\x00
failed: client: the server wants the password in clear (mysql_clear_password) on a connection without TLS (no code) authentication
transaction false
",
    );
    check(
        "mysql://app:secret@db",
        &[greet(0), packets(2, &[b"\xFEdialog\0x"])],
        r"> 1 \x85\xa2/\x00\x00\x00\x00@-…app\x00\x14\x88\x17\xc5\x0f\xa7y\xda\xef\x01\x0e\xe7Wx%\xb0\x84}\xf9\x84.mysql_native_password\x00
failed: client: the account of user `app` logs in by `dialog`, which is not supported (no code) authentication
transaction false
",
    );
    check(
        "mysql://app:secret@db",
        &[greet(0), packets(2, &[b"\xFE"])],
        r"> 1 \x85\xa2/\x00\x00\x00\x00@-…app\x00\x14\x88\x17\xc5\x0f\xa7y\xda\xef\x01\x0e\xe7Wx%\xb0\x84}\xf9\x84.mysql_native_password\x00
failed: client: the account of user `app` logs in by `mysql_old_password`, which is not supported (no code) authentication
transaction false
",
    );
}

#[test]
fn a_refused_login_keeps_the_servers_words() {
    check(
        URL,
        &[packets(0, &[b"\xff\x10\x04Too many connections"])],
        r"failed: server: Too many connections (1040) limit
transaction false
",
    );
    check(
        URL,
        &[packets(0, &[b"\xff\x69\x04Host 'h' is blocked"])],
        r"failed: server: Host 'h' is blocked (1129) limit
transaction false
",
    );
    let denied = b"\xff\x15\x04#28000Access denied for user 'app'";
    check(
        URL,
        &[greeting("8.0.31", BASE, NATIVE), packets(2, &[denied])],
        r"> 1 \x8d\xa2/\x00\x00\x00\x00@-…app\x00\x00shop\x00mysql_native_password\x00
failed: server: Access denied for user 'app' (1045) authentication
transaction false
",
    );
    check(
        URL,
        &[greeting("4.0.1", 0, NATIVE)],
        r"failed: client: the server (4.0.1) is too old: it lacks the protocol of MySQL 4.1 (no code) protocol
transaction false
",
    );
    check(
        URL,
        &[packets(0, &[b"SSH-2.0-OpenSSH"])],
        r"failed: client: the server broke the MySQL protocol: it greeted with something other than protocol version 10 (no code) protocol
transaction false
",
    );
}

#[test]
fn tls_is_used_as_the_mode_says() {
    let plain = || greeting("8.0.31", BASE, NATIVE);
    let secure = || greeting("8.0.31", BASE | SSL, NATIVE);
    check(
        "mysql://app@db?sslmode=require",
        &[plain()],
        r"failed: client: the server (8.0.31) does not offer TLS (no code) encryption
transaction false
",
    );
    // The handshake fails: then without TLS, but only once.
    check(
        URL,
        &[secure(), Reconnect, secure(), packets(2, &[OK]), Reconnect, secure()],
        r"> 1 \x8d\xaa/\x00\x00\x00\x00@-…
StartTls
closed true
> 1 \x8d\xa2/\x00\x00\x00\x00@-…app\x00\x00shop\x00mysql_native_password\x00
Ready
closed false
> 1 \x8d\xaa/\x00\x00\x00\x00@-…
StartTls
transaction false
",
    );
    check(
        "mysql://app@db?sslmode=require",
        &[secure(), Reconnect, secure()],
        r"> 1 \x85\xaa/\x00\x00\x00\x00@-…
StartTls
closed false
> 1 \x85\xaa/\x00\x00\x00\x00@-…
StartTls
transaction false
",
    );
}

#[test]
fn bytes_before_tls_are_not_taken_for_the_servers() {
    let Server(mut bytes) = greeting("8.0.31", BASE | SSL, NATIVE) else { unreachable!() };
    bytes.push(7);
    let log = play(URL, true, &[Server(bytes)], Cut::Whole);
    assert!(log.contains("failed: client: the server broke the MySQL protocol: it sent unencrypted bytes before TLS"));
}

#[test]
fn several_statements_give_several_result_sets() {
    let (int, text) = (column(3, 0), column(253, 0));
    let sql = Operation::Query { text: b"SELECT 1, NULL; UPDATE t; SELECT a", rows: RowsWanted::Keep };
    check_session(
        DEPRECATE_EOF,
        true,
        vec![
            Run(sql),
            packets(
                1,
                &[
                    &[2],
                    &int,
                    &text,
                    b"\x011\xFB",
                    b"\x02-2\x00",
                    END_MORE,
                    &[0, 7, 0, 11, 0, 0, 0],
                    &[1],
                    &text,
                    &[0xFE, 0, 0, 3, 0, 0, 0],
                ],
            ),
        ],
        r#"> 0 \x03SELECT 1, NULL; UPDATE t; SELECT a
affected 7 set ("1",NULL) ("-2","") set
transaction true
"#,
    );
    check_session(
        0,
        true,
        vec![Run(sql), packets(1, &[&[1], &int, EOF, b"\x011", &[0xFE, 0, 0, 10, 0], &[1], &text, EOF, EOF])],
        r#"> 0 \x03SELECT 1, NULL; UPDATE t; SELECT a
affected 0 set ("1") set
transaction false
"#,
    );
}

#[test]
fn an_error_among_rows_keeps_the_rows_before_it() {
    check_session(
        DEPRECATE_EOF,
        true,
        vec![
            Run(Operation::Query { text: b"SELECT", rows: RowsWanted::Keep }),
            packets(1, &[&[1], &column(3, 0), b"\x011", b"\xff\xbd\x04#40001Deadlock found"]),
        ],
        r#"> 0 \x03SELECT
affected 0 set ("1") error server: Deadlock found (1213) deadlock AfterBackoff
transaction false
"#,
    );
}

#[test]
fn a_statement_is_prepared_once_and_again_when_it_got_lost() {
    let int = column(8, 0);
    let execute = |parameters| Run(Operation::Execute { statement: ID, parameters, rows: RowsWanted::Keep });
    let prepared = |number| packets(1, &[&[0, number, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0], &int, &int, &int]);
    let row = |value: u8| packets(1, &[&[1], &int, &[0, 0, value, 0, 0, 0, 0, 0, 0, 0], &[0, 4], END]);
    let steps = vec![
        execute(&[]),
        Run(Operation::Prepare { statement: ID, text: b"SELECT ? + ?" }),
        prepared(9),
        execute(&[Value::Int(1)]),
        execute(&[Value::Int(1), Value::Text(b"x")]),
        row(5),
        execute(&[Value::Int(2), Value::Null]),
        row(6),
        // A proxy moved us to another server.
        execute(&[Value::Int(3), Value::Text(b"y")]),
        packets(1, &[b"\xff\xdb\x04#HY000Unknown prepared statement handler"]),
        prepared(10),
        row(7),
        Reconnect,
    ];
    let again = vec![
        execute(&[Value::Int(4), Value::Null]),
        prepared(11),
        row(8),
        Run(Operation::Close { statement: ID }),
        execute(&[]),
    ];
    check_session(
        DEPRECATE_EOF,
        true,
        steps.into_iter().chain(login(DEPRECATE_EOF)).chain(again).collect(),
        r"affected 0 error client: there is no prepared statement 3 (no code) other Never
> 0 \x16SELECT ? + ?
affected 0
affected 0 error client: the statement has 2 placeholders, 1 parameters were given (no code) syntax Never
> 0 \x17\t\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x08\x00\xfd\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01x
affected 0 set (5) (NULL)
> 0 \x17\t\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x02\x00\x00\x00\x00\x00\x00\x00
affected 0 set (6) (NULL)
> 0 \x17\t\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01y
> 0 \x16SELECT ? + ?
> 0 \x17\n\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x08\x00\xfd\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01y
affected 0 set (7) (NULL)
closed false
> 1 \x8d\xa2/\x01\x00\x00\x00@-…app\x00\x00shop\x00mysql_native_password\x00
Ready
> 0 \x16SELECT ? + ?
> 0 \x17\x0b\x00\x00\x00\x00\x01\x00\x00\x00\x02\x01\x08\x00\x06\x00\x04\x00\x00\x00\x00\x00\x00\x00
affected 0 set (8) (NULL)
> 0 \x19\x0b\x00\x00\x00
affected 0
affected 0 error client: there is no prepared statement 3 (no code) other Never
transaction false
",
    );
}

/// A login at a MariaDB server that describes the columns of a statement's results once.
fn caching_login() -> Vec<Do<'static>> {
    let capabilities = (BASE | DEPRECATE_EOF) & !1;
    vec![extended_greeting("5.5.5-10.11.6-MariaDB", capabilities, 0x1D, NATIVE), packets(2, &[OK])]
}

#[test]
fn columns_that_are_not_described_again_are_those_that_were_last() {
    let (int, text) = (column(8, 0), column(253, 0));
    let execute = || Run(Operation::Execute { statement: ID, parameters: &[Value::Int(1)], rows: RowsWanted::Keep });
    let count = || Run(Operation::Execute { statement: ID, parameters: &[Value::Int(1)], rows: RowsWanted::Count });
    let prepared = |number| packets(1, &[&[0, number, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0], &text, &int]);
    let number = |value: u8| [0, 0, value, 0, 0, 0, 0, 0, 0, 0];
    let steps = vec![
        Run(Operation::Prepare { statement: ID, text: b"SELECT a FROM t WHERE b = ?" }),
        prepared(9),
        execute(),
        packets(1, &[&[1, 0], &number(5), END]),
        count(),
        packets(1, &[&[1, 0], &number(5), &number(6), END]),
        // ALTER TABLE.
        execute(),
        packets(1, &[&[1, 1], &text, &[0, 0, 1, b'x'], END]),
        execute(),
        packets(1, &[&[1, 0], &[0, 0, 1, b'y'], END]),
        Run(Operation::Query { text: b"SELECT a FROM t", rows: RowsWanted::Keep }),
        packets(1, &[&[1, 1], &int, b"\x017", END]),
        execute(),
        packets(1, &[&[1, 0], &[0, 0, 1, b'z'], END]),
        // A proxy moved us to another server, where nobody altered the table.
        execute(),
        packets(1, &[b"\xff\xdb\x04#HY000Unknown prepared statement handler"]),
        prepared(10),
        packets(1, &[&[1, 0], &number(7), END]),
        Reconnect,
    ];
    let again =
        vec![execute(), prepared(11), packets(1, &[&[1, 0], &number(8), END]), execute(), packets(1, &[&[2, 0]])];
    let all: Vec<Do<'_>> = caching_login().into_iter().chain(steps).chain(caching_login()).chain(again).collect();
    let reserved = r"\x00".repeat(19);
    let login = format!(
        r"> 1 \x8c\xa2/\x01\x00\x00\x00@-{reserved}\x14\x00\x00\x00app\x00\x00shop\x00mysql_native_password\x00"
    );
    let expected = r#"LOGIN
Ready
> 0 \x16SELECT a FROM t WHERE b = ?
affected 0
> 0 \x17\t\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x08\x00\x01\x00\x00\x00\x00\x00\x00\x00
affected 0 set (5)
> 0 \x17\t\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00
affected 0 set () ()
> 0 \x17\t\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00
affected 0 set ("x")
> 0 \x17\t\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00
affected 0 set ("y")
> 0 \x03SELECT a FROM t
affected 0 set ("7")
> 0 \x17\t\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00
affected 0 set ("z")
> 0 \x17\t\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00
> 0 \x16SELECT a FROM t WHERE b = ?
> 0 \x17\n\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x08\x00\x01\x00\x00\x00\x00\x00\x00\x00
affected 0 set (7)
closed false
LOGIN
Ready
> 0 \x16SELECT a FROM t WHERE b = ?
> 0 \x17\x0b\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x08\x00\x01\x00\x00\x00\x00\x00\x00\x00
affected 0 set (8)
> 0 \x17\x0b\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00
failed: client: the server broke the MySQL protocol: it left out columns that it never described (no code) protocol
transaction false
"#;
    check(URL, &all, &expected.replace("LOGIN", &login));
}

/// BEGIN, an UPDATE and a SELECT are prepared; then come the steps. `expected` is the log from then on.
fn check_deferred(steps: Vec<Do<'_>>, expected: &str) {
    let int = column(8, 0);
    let mut all = vec![
        Run(Operation::Prepare { statement: StatementId(0), text: b"BEGIN" }),
        packets(1, &[b"\xff\x0f\x05#HY000This command is not supported"]),
        Run(Operation::Prepare { statement: StatementId(1), text: b"UPDATE t SET a = ? -- all" }),
        packets(1, &[&[0, 8, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], &int]),
        Run(Operation::Prepare { statement: StatementId(2), text: b"SELECT a FROM t" }),
        packets(1, &[&[0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], &int]),
    ];
    all.extend(steps);
    let prepared = r"> 0 \x16BEGIN
affected 0
> 0 \x16UPDATE t SET a = ? -- all
affected 0
> 0 \x16SELECT a FROM t
affected 0
";
    check_session(DEPRECATE_EOF, true, all, &format!("{prepared}{expected}"));
}

/// OK for a statement that changed this many rows, followed by others.
fn ok_more(affected: u8) -> Vec<u8> {
    vec![0, affected, 0, 11, 0, 0, 0]
}

#[test]
fn deferred_statements_are_one_text_with_the_next() {
    let begin = || Defer(Operation::Execute { statement: StatementId(0), parameters: &[], rows: RowsWanted::Keep });
    let update = || {
        Defer(Operation::Execute {
            statement: StatementId(1),
            parameters: &[Value::Text(b"it's")],
            rows: RowsWanted::Keep,
        })
    };
    let select = Operation::Execute { statement: StatementId(2), parameters: &[], rows: RowsWanted::Keep };
    check_deferred(
        vec![
            update(),
            begin(),
            update(),
            Defer(select),
            Run(select),
            packets(1, &[&ok_more(0), &ok_more(3), &[1], &column(8, 0), b"\x017", &[0xFE, 0, 0, 3, 0, 0, 0]]),
            update(),
            update(),
            Flush,
            packets(1, &[&ok_more(1), OK_IN_TRANSACTION]),
            Flush,
            // Forgotten if something else comes first.
            update(),
            Run(Operation::Query { text: b"ROLLBACK", rows: RowsWanted::Keep }),
            packets(1, &[OK]),
            Run(select),
            packets(1, &[&[1], &column(8, 0), &[0, 0, 7, 0, 0, 0, 0, 0, 0, 0], END]),
        ],
        r#"waits false
waits true
waits true
waits false
> 0 \x03BEGIN\n;UPDATE t SET a = \'it\'\'s\' -- all\n;SELECT a FROM t
affected 0 set ("7")
waits true
waits true
> 0 \x03UPDATE t SET a = \'it\'\'s\' -- all\n;UPDATE t SET a = \'it\'\'s\' -- all
affected 0
affected 0
waits true
> 0 \x03ROLLBACK
affected 0
> 0 \x17\t\x00\x00\x00\x00\x01\x00\x00\x00
affected 0 set (7)
transaction false
"#,
    );
}

#[test]
fn a_refused_deferred_statement_is_the_answer_of_the_one_waited_for() {
    let begin = || Defer(Operation::Execute { statement: StatementId(0), parameters: &[], rows: RowsWanted::Keep });
    let update = || {
        Defer(Operation::Execute { statement: StatementId(1), parameters: &[Value::Int(5)], rows: RowsWanted::Keep })
    };
    let select = || Run(Operation::Execute { statement: StatementId(2), parameters: &[], rows: RowsWanted::Keep });
    let sent = r"waits true
waits true
> 0 \x03BEGIN\n;UPDATE t SET a = 5 -- all\n;SELECT a FROM t
";
    check_deferred(
        vec![begin(), update(), select(), packets(1, &[&ok_more(0), b"\xff\xbd\x04#40001Deadlock found"])],
        &format!("{sent}affected 0 error server: Deadlock found (1213) deadlock AfterBackoff\ntransaction false\n"),
    );
    check_deferred(
        vec![begin(), update(), select(), packets(1, &[&ok_more(0), OK_IN_TRANSACTION])],
        &format!(
            "{sent}failed: client: the server broke the MySQL protocol: it answered fewer statements than it was sent (no \
             code) protocol\ntransaction true\n"
        ),
    );
}

#[test]
fn parameters_are_substituted_where_the_server_cannot_prepare() {
    let prepare = || Run(Operation::Prepare { statement: ID, text: b"XA START ?" });
    let execute =
        || Run(Operation::Execute { statement: ID, parameters: &[Value::Text(b"it's \\")], rows: RowsWanted::Keep });
    let refused = packets(1, &[b"\xff\x0f\x05#HY000This command is not supported"]);
    check_session(
        0,
        true,
        vec![prepare(), refused, execute(), packets(1, &[OK_IN_TRANSACTION])],
        r"> 0 \x16XA START ?
affected 0
> 0 \x03XA START \'it\'\'s \\\\\'
affected 0
transaction true
",
    );
    // NO_BACKSLASH_ESCAPES.
    let plain = packets(1, &[&[0, 0, 0, 2, 2, 0, 0]]);
    let set = Run(Operation::Query { text: b"SET sql_mode", rows: RowsWanted::Keep });
    check_session(
        0,
        false,
        vec![prepare(), execute(), packets(1, &[OK]), set, plain, execute(), packets(1, &[OK])],
        r"affected 0
> 0 \x03XA START \'it\'\'s \\\\\'
affected 0
> 0 \x03SET sql_mode
affected 0
> 0 \x03XA START \'it\'\'s \\\'
affected 0
transaction false
",
    );
    let broken = packets(1, &[b"\xff\x28\x04#42000You have an error"]);
    check_session(
        0,
        true,
        vec![prepare(), broken, execute()],
        r"> 0 \x16XA START ?
affected 0 error server: You have an error (1064) syntax Never
affected 0 error client: there is no prepared statement 3 (no code) other Never
transaction false
",
    );
}

#[test]
fn a_server_gets_no_file_by_asking() {
    check_session(
        0,
        true,
        vec![
            Run(Operation::Query { text: b"SELECT 1", rows: RowsWanted::Keep }),
            packets(1, &[b"\xFB/etc/passwd"]),
            packets(3, &[OK]),
        ],
        r"> 0 \x03SELECT 1
> 2 
affected 0 error client: the server asked for the local file `/etc/passwd`, which it did not get (2068) permission Never
transaction false
",
    );
}

#[test]
fn a_server_that_gives_up_is_heard_whenever_it_speaks() {
    let killed: &[u8] = b"\xff\x87\x07#70100Connection was killed";
    let query = || Run(Operation::Query { text: b"DO 1", rows: RowsWanted::Keep });
    check_session(
        0,
        true,
        vec![packets(0, &[killed])],
        r"failed: server: Connection was killed (1927) connection
transaction false
",
    );
    check_session(
        0,
        true,
        vec![query(), packets(0, &[killed])],
        r"> 0 \x03DO 1
failed: server: Connection was killed (1927) connection
transaction false
",
    );
    let log = play(
        URL,
        true,
        &login(0).into_iter().chain([query(), packets(1, &[OK, killed]), query()]).collect::<Vec<_>>(),
        Cut::Whole,
    );
    let expected = "affected 0\nfailed: server: Connection was killed (1927) connection\ntransaction false\n";
    assert!(log.ends_with(expected), "{log}");
    check_session(
        0,
        true,
        vec![query(), packets(2, &[OK])],
        r"> 0 \x03DO 1
failed: client: the server broke the MySQL protocol: it numbered its packets wrongly (no code) protocol
transaction false
",
    );
    check_session(
        0,
        true,
        vec![packets(3, &[OK])],
        r"failed: client: the server broke the MySQL protocol: it sent something nobody asked for (no code) protocol
transaction false
",
    );
}

#[test]
fn rows_larger_than_a_frame_arrive_whole() {
    let text = column(253, 0);
    let large = |length: usize| {
        let mut row = Vec::new();
        super::packet::write_lenenc(length, &mut row);
        row.resize(row.len() + length, b'x');
        row
    };
    // The last one begins like an EOF and fills its frames exactly.
    let rows = [large(FRAME_MAX - 5), large(FRAME_MAX), large(2 * FRAME_MAX - 9)];
    let mut steps = login(DEPRECATE_EOF);
    steps.push(Run(Operation::Query { text: b"SELECT", rows: RowsWanted::Keep }));
    steps.push(packets(1, &[&[1], &text, &rows[0], &rows[1], &rows[2], END]));
    let whole = play(URL, true, &steps, Cut::Whole);
    let lengths = rows.map(|row| row.len() - if row.len() < FRAME_MAX { 4 } else { 9 });
    assert!(whole.contains("affected 0 set"), "{whole}{lengths:?}");
    for cut in [Cut::Pieces(65_536), Cut::Pieces(1_000_003), Cut::At(FRAME_MAX + 300), Cut::At(2 * FRAME_MAX + 301)] {
        assert_eq!(play(URL, true, &steps, cut), whole);
    }
}

#[test]
fn statements_larger_than_a_frame_leave_in_several() {
    let sql = vec![b' '; FRAME_MAX + 10];
    let mut steps = login(0);
    steps.extend([Run(Operation::Query { text: &sql, rows: RowsWanted::Keep }), packets(2, &[OK])]);
    let log = play(URL, true, &steps, Cut::Whole);
    assert!(log.contains("> 0 (16777215 bytes)\n> 1            \naffected 0"), "{log}");
}

/// Rows of 1,000 bytes. 1,400 bytes allow a file, and two INSERTs; 4,400 allow two packets of a bulk.
fn batch(length: i64) -> Rows {
    let mut rows = Rows::default();
    rows.begin_set(2);
    for i in 0..length {
        rows.push_int(i);
        rows.push_text(&[b'x' + (i % 2) as u8; 1000]).unwrap();
    }
    rows
}

/// The answer to a probe of a table with one column of this type.
fn probed(kind: u8) -> Vec<u8> {
    let Server(bytes) = packets(1, &[&[1], &column(kind, 0), END]) else { unreachable!() };
    bytes
}

fn one(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let Server(bytes) = packets(sequence, &[payload]) else { unreachable!() };
    bytes
}

/// Loads `batch` into a server that answers so.
fn check_load(before: Vec<Do<'_>>, answers: Vec<Vec<u8>>, expected: &str) {
    check_load_after(login(DEPRECATE_EOF), before, answers, expected);
}

fn check_load_after(login: Vec<Do<'static>>, before: Vec<Do<'_>>, answers: Vec<Vec<u8>>, expected: &str) {
    let rows = batch(1400);
    let mut steps: Vec<Do<'_>> = login.into_iter().collect();
    steps.extend(before);
    steps.push(Run(Operation::Load { table: b"t", columns: b"a,b", rows: &rows, frozen: false }));
    steps.extend(answers.into_iter().map(Server));
    let log = play(URL, true, &steps, Cut::Whole);
    let found = log.split_once("Ready\n").unwrap().1;
    let expected = spelled_out(expected);
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

#[test]
fn a_large_batch_goes_by_file_in_its_own_transaction() {
    let done = one(5, &[0, 0xFC, 0x78, 5, 0, 3, 0, 0, 0]);
    check_load(
        vec![],
        vec![probed(3), one(1, OK_IN_TRANSACTION), one(1, ASKED), done, one(1, OK)],
        r"> 0 \x03SELECT a,b FROM t LIMIT 0
> 0 \x03SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x03LOAD DATA LOCAL INFILE \'assay\' INTO TABLE t CHARACTER SET latin1 FIELDS TERMINATED BY 0x09 ESCAPED BY 0x5C LINES TERMINATED BY 0x0A (a,b)
> 2 (1049154 bytes)
> 3 (358136 bytes)
> 4 
> 0 \x03COMMIT
affected 1400
transaction false
",
    );
}

#[test]
fn a_server_that_does_not_know_files_gets_inserts() {
    let yes = || one(1, OK_IN_TRANSACTION);
    for refused in [&b"\xff\x28\x04#42000You have an error in your SQL syntax"[..], b"\xff\x51\x04#HY000syntax error"] {
        let answers = vec![probed(3), yes(), one(1, refused), one(1, OK), yes(), yes(), yes(), one(1, OK)];
        check_load(
            vec![],
            answers,
            r"> 0 \x03SELECT a,b FROM t LIMIT 0
> 0 \x03SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x03LOAD DATA LOCAL INFILE \'assay\' INTO TABLE t CHARACTER SET latin1 FIELDS TERMINATED BY 0x09 ESCAPED BY 0x5C LINES TERMINATED BY 0x0A (a,b)
> 0 \x03ROLLBACK
> 0 \x03START TRANSACTION
> 0 (1049316 bytes)
> 0 (363626 bytes)
> 0 \x03COMMIT
affected 1400
transaction false
",
        );
    }
}

#[test]
fn a_batch_that_a_file_would_bend_is_undone_and_inserted() {
    let yes = || one(1, OK_IN_TRANSACTION);
    // A warning; in the caller's transaction.
    let warned = one(5, &[0, 0xFC, 0x78, 5, 0, 3, 0, 1, 0]);
    let duplicate = one(1, b"\xff\x26\x04#23000Duplicate entry");
    let begin = vec![Run(Operation::Query { text: b"BEGIN", rows: RowsWanted::Keep }), Server(yes())];
    check_load(
        begin,
        vec![probed(3), yes(), one(1, ASKED), warned, yes(), yes(), duplicate, yes()],
        r"> 0 \x03BEGIN
affected 0
> 0 \x03SELECT a,b FROM t LIMIT 0
> 0 \x03SELECT @@max_allowed_packet;SAVEPOINT assay_load
> 0 \x03LOAD DATA LOCAL INFILE \'assay\' INTO TABLE t CHARACTER SET latin1 FIELDS TERMINATED BY 0x09 ESCAPED BY 0x5C LINES TERMINATED BY 0x0A (a,b)
> 2 (1049154 bytes)
> 3 (358136 bytes)
> 4 
> 0 \x03ROLLBACK TO SAVEPOINT assay_load
> 0 (1049316 bytes)
> 0 (363626 bytes)
> 0 \x03ROLLBACK TO SAVEPOINT assay_load
affected 0 error server: Duplicate entry (1062) constraint Never
transaction true
",
    );
    // A row too few; in a transaction of its own.
    let fewer = one(5, &[0, 0xFC, 0x77, 5, 0, 3, 0, 0, 0]);
    let answers = vec![probed(3), yes(), one(1, ASKED), fewer, one(1, OK), yes(), yes(), yes(), one(1, OK)];
    check_load(
        vec![],
        answers,
        r"> 0 \x03SELECT a,b FROM t LIMIT 0
> 0 \x03SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x03LOAD DATA LOCAL INFILE \'assay\' INTO TABLE t CHARACTER SET latin1 FIELDS TERMINATED BY 0x09 ESCAPED BY 0x5C LINES TERMINATED BY 0x0A (a,b)
> 2 (1049154 bytes)
> 3 (358136 bytes)
> 4 
> 0 \x03ROLLBACK
> 0 \x03START TRANSACTION
> 0 (1049316 bytes)
> 0 (363626 bytes)
> 0 \x03COMMIT
affected 1400
transaction false
",
    );
    // Neither did the table's engine undo it.
    let kept = one(1, &[0, 0, 0, 2, 0, 1, 0]);
    let fewer = one(5, &[0, 0xFC, 0x77, 5, 0, 3, 0, 0, 0]);
    check_load(
        vec![],
        vec![probed(3), yes(), one(1, ASKED), fewer, kept, one(1, OK)],
        r"> 0 \x03SELECT a,b FROM t LIMIT 0
> 0 \x03SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x03LOAD DATA LOCAL INFILE \'assay\' INTO TABLE t CHARACTER SET latin1 FIELDS TERMINATED BY 0x09 ESCAPED BY 0x5C LINES TERMINATED BY 0x0A (a,b)
> 2 (1049154 bytes)
> 3 (358136 bytes)
> 4 
> 0 \x03ROLLBACK
> 0 \x03ROLLBACK
affected 0 error client: rows were refused, and the table's storage engine could not undo the others (no code) other Never
transaction false
",
    );
}

/// A login at a MariaDB server that takes rows in bulk.
fn bulk_login() -> Vec<Do<'static>> {
    let capabilities = (BASE | DEPRECATE_EOF) & !1;
    vec![extended_greeting("5.5.5-10.5.9-MariaDB", capabilities, 0x0D, NATIVE), packets(2, &[OK])]
}

/// The text, with the beginning and the end that a bulk of ASCII has.
fn spelled_out(text: &str) -> String {
    let latin1 = "SET @assay_client=@@character_set_client,@assay_collation=@@collation_connection,collation_connection=\
        IF(COLLATION((SELECT b FROM t LIMIT 0))LIKE\\'latin1%\\',\\'latin1_bin\\',@@collation_connection);\
        SET character_set_client=IF(@@collation_connection=\\'latin1_bin\\',\\'latin1\\',@@character_set_client);";
    text.replace("LATIN1;", latin1)
        .replace("OF U;", &latin1.replace("FROM t", "FROM u"))
        .replace("BEFORE;", "SET character_set_client=@assay_client,collation_connection=@assay_collation;")
}

/// The answer to a Prepare of two placeholders.
fn prepared(statement: u8) -> Vec<u8> {
    let Server(bytes) = packets(1, &[&[0, statement, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0], &column(8, 0), &column(8, 0)])
    else {
        unreachable!()
    };
    bytes
}

#[test]
fn only_a_server_without_the_oldest_flag_has_extended_capabilities() {
    let log = play(URL, true, &bulk_login(), Cut::Whole);
    let reserved = r"\x00".repeat(19);
    assert!(log.starts_with(&format!(r"> 1 \x8c\xa2/\x01\x00\x00\x00@-{reserved}\x04\x00\x00\x00app")), "{log}");
    // In a MySQL server these bytes mean nothing.
    let log = play(URL, true, &[extended_greeting("8.0.31", BASE, 0x1D, NATIVE)], Cut::Whole);
    assert!(log.starts_with(r"> 1 \x8d\xa2/\x00\x00\x00\x00@-…app"), "{log}");
}

#[test]
fn a_large_batch_goes_in_bulk_where_the_server_takes_it() {
    let (rows, yes) = (batch(4400), || one(1, OK_IN_TRANSACTION));
    let again = || Run(Operation::Load { table: b"t", columns: b"a,b", rows: &rows, frozen: false });
    let other = Run(Operation::Load { table: b"u", columns: b"a,b", rows: &rows, frozen: false });
    let run = |answers: Vec<Vec<u8>>| answers.into_iter().map(Server);
    let mut steps = bulk_login();
    steps.push(again());
    steps.extend(run(vec![yes(), prepared(7), yes(), yes(), one(1, OK)]));
    // The statement is kept, until another table is loaded.
    steps.push(again());
    steps.extend(run(vec![yes(), yes(), yes(), one(1, OK)]));
    steps.push(other);
    steps.extend(run(vec![yes(), prepared(8), yes(), yes(), one(1, OK)]));
    let expected = r"> 0 \x03LATIN1;SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x16INSERT INTO t(a,b) VALUES (?,?)
> 0 (4194844 bytes)
> 0 (262378 bytes)
> 0 \x03BEFORE;COMMIT
affected 4400
> 0 \x03LATIN1;START TRANSACTION
> 0 (4194844 bytes)
> 0 (262378 bytes)
> 0 \x03BEFORE;COMMIT
affected 4400
> 0 \x03OF U;START TRANSACTION
> 0 \x19\x07\x00\x00\x00
> 0 \x16INSERT INTO u(a,b) VALUES (?,?)
> 0 (4194844 bytes)
> 0 (262378 bytes)
> 0 \x03BEFORE;COMMIT
affected 4400
transaction false
";
    let expected = spelled_out(expected);
    for cut in [Cut::Whole, Cut::Pieces(1), Cut::Pieces(7)] {
        let log = play(URL, true, &steps, cut);
        let found = log.split_once("Ready\n").unwrap().1;
        assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
    }
    // With prepared statements switched off, none is prepared.
    let log = play(URL, false, &bulk_login().into_iter().chain([again()]).collect::<Vec<_>>(), Cut::Whole);
    assert!(log.contains("> 0 \\x03SELECT a,b FROM t LIMIT 0"), "{log}");
}

#[test]
fn a_bulk_that_fails_is_undone() {
    let yes = || one(1, OK_IN_TRANSACTION);
    let duplicate = one(1, b"\xff\x26\x04#23000Duplicate entry");
    let begin = vec![Run(Operation::Query { text: b"BEGIN", rows: RowsWanted::Keep }), Server(yes())];
    check_load_after(
        bulk_login(),
        begin,
        vec![yes(), prepared(7), duplicate, yes()],
        r"> 0 \x03BEGIN
affected 0
> 0 \x03LATIN1;SELECT @@max_allowed_packet;SAVEPOINT assay_load
> 0 \x16INSERT INTO t(a,b) VALUES (?,?)
> 0 (1418211 bytes)
> 0 \x03BEFORE;ROLLBACK TO SAVEPOINT assay_load
affected 0 error server: Duplicate entry (1062) constraint Never
transaction true
",
    );
    // A user who may insert may not be allowed to query.
    let denied = one(1, b"\xff\x76\x04#42000SELECT command denied");
    check_load_after(
        bulk_login(),
        vec![],
        vec![denied, yes(), prepared(7), yes(), one(1, OK)],
        r"> 0 \x03LATIN1;SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x03SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x16INSERT INTO t(a,b) VALUES (?,?)
> 0 (1418211 bytes)
> 0 \x03COMMIT
affected 1400
transaction false
",
    );
    // A proxy that forwards the server's greeting, but not the command.
    let unknown = one(1, b"\xff\x17\x04#08S01Unknown command");
    check_load_after(
        bulk_login(),
        vec![],
        vec![yes(), prepared(7), unknown, one(1, OK), yes(), yes(), yes(), one(1, OK)],
        r"> 0 \x03LATIN1;SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x16INSERT INTO t(a,b) VALUES (?,?)
> 0 (1418211 bytes)
> 0 \x03BEFORE;ROLLBACK
> 0 \x03START TRANSACTION
> 0 (1049316 bytes)
> 0 (363626 bytes)
> 0 \x03COMMIT
affected 1400
transaction false
",
    );
    // A statement that cannot be prepared is executed as an INSERT, which reports why.
    let missing = || one(1, b"\xff\x7a\x04#42S02Table doesn't exist");
    check_load_after(
        bulk_login(),
        vec![],
        vec![missing(), yes(), missing(), one(1, OK), yes(), missing(), one(1, OK)],
        r"> 0 \x03LATIN1;SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x03SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x16INSERT INTO t(a,b) VALUES (?,?)
> 0 \x03ROLLBACK
> 0 \x03START TRANSACTION
> 0 (1049316 bytes)
> 0 \x03ROLLBACK
affected 0 error server: Table doesn\'t exist (1146) missing Never
transaction false
"
        .replace(r"\'", "'")
        .as_str(),
    );
}

#[test]
fn a_batch_the_server_takes_no_file_for_is_inserted() {
    let yes = || one(1, OK_IN_TRANSACTION);
    let refused = one(1, b"\xff\x6c\x0f#42000Loading local data is disabled");
    check_load(
        vec![],
        vec![probed(3), yes(), refused, yes(), yes(), one(1, OK)],
        r"> 0 \x03SELECT a,b FROM t LIMIT 0
> 0 \x03SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x03LOAD DATA LOCAL INFILE \'assay\' INTO TABLE t CHARACTER SET latin1 FIELDS TERMINATED BY 0x09 ESCAPED BY 0x5C LINES TERMINATED BY 0x0A (a,b)
> 0 (1049316 bytes)
> 0 (363626 bytes)
> 0 \x03COMMIT
affected 1400
transaction false
",
    );
    // A YEAR, whose numbers are not their text.
    check_load(
        vec![],
        vec![probed(13), yes(), yes(), yes(), one(1, OK)],
        r"> 0 \x03SELECT a,b FROM t LIMIT 0
> 0 \x03SELECT @@max_allowed_packet;START TRANSACTION
> 0 (1049316 bytes)
> 0 (363626 bytes)
> 0 \x03COMMIT
affected 1400
transaction false
",
    );
    // The user may not read the table.
    let denied = one(1, b"\xff\x76\x04#42000SELECT command denied");
    check_load(
        vec![],
        vec![denied, yes(), yes(), yes(), one(1, OK)],
        r"> 0 \x03SELECT a,b FROM t LIMIT 0
> 0 \x03SELECT @@max_allowed_packet;START TRANSACTION
> 0 (1049316 bytes)
> 0 (363626 bytes)
> 0 \x03COMMIT
affected 1400
transaction false
",
    );
}

#[test]
fn packets_end_at_what_the_server_allows() {
    let yes = || one(1, OK_IN_TRANSACTION);
    let begun = || {
        let max = b"\x06300000";
        let Server(bytes) = packets(1, &[&[1], &column(8, 32), max, END_MORE, OK_IN_TRANSACTION]) else {
            unreachable!()
        };
        bytes
    };
    check_load_after(
        bulk_login(),
        vec![],
        [vec![begun(), prepared(7)], vec![yes(); 5], vec![one(1, OK)]].concat(),
        r"> 0 \x03LATIN1;SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x16INSERT INTO t(a,b) VALUES (?,?)
> 0 (298846 bytes)
> 0 (298846 bytes)
> 0 (298846 bytes)
> 0 (298846 bytes)
> 0 (222871 bytes)
> 0 \x03BEFORE;COMMIT
affected 1400
transaction false
",
    );
    let refused = one(1, b"\xff\x6c\x0f#42000Loading local data is disabled");
    check_load(
        vec![],
        [vec![probed(3), begun(), refused], vec![yes(); 5], vec![one(1, OK)]].concat(),
        r"> 0 \x03SELECT a,b FROM t LIMIT 0
> 0 \x03SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x03LOAD DATA LOCAL INFILE \'assay\' INTO TABLE t CHARACTER SET latin1 FIELDS TERMINATED BY 0x09 ESCAPED BY 0x5C LINES TERMINATED BY 0x0A (a,b)
> 0 (299589 bytes)
> 0 (299699 bytes)
> 0 (299699 bytes)
> 0 (298877 bytes)
> 0 (215156 bytes)
> 0 \x03COMMIT
affected 1400
transaction false
",
    );
    // A proxy that does not know the variable.
    let unknown = one(1, b"\xff\xa9\x04#HY000Unknown system variable");
    check_load(
        vec![],
        vec![probed(13), unknown, yes(), yes(), yes(), one(1, OK)],
        r"> 0 \x03SELECT a,b FROM t LIMIT 0
> 0 \x03SELECT @@max_allowed_packet;START TRANSACTION
> 0 \x03START TRANSACTION
> 0 (1049316 bytes)
> 0 (363626 bytes)
> 0 \x03COMMIT
affected 1400
transaction false
",
    );
}

#[test]
fn a_small_batch_is_one_statement() {
    let mut rows = Rows::default();
    rows.begin_set(1);
    rows.push_int(1);
    rows.push_int(2);
    let load = Operation::Load { table: b"t", columns: b"a", rows: &rows, frozen: false };
    check_session(
        0,
        true,
        vec![Run(load), packets(1, &[&[0, 2, 0, 2, 0, 0, 0]])],
        r"> 0 \x03INSERT INTO t(a) VALUES (1),(2)
affected 2
transaction false
",
    );
}

#[test]
fn session_statements_run_before_the_connection_is_ready() {
    let mut server = server(URL, true);
    server.connect.session_sql = vec!["SET a".into(), "SELECT 1".into()];
    let mut connection = MySqlConnection::new(Arc::new(server));
    let (mut out, mut pool, mut log) = (Vec::new(), RowsPool::default(), String::new());
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    connection.on_connected(&mut exchange);
    let refused = packets(1, &[b"\xff\x28\x04#42000You have an error"]);
    for step in login(0).into_iter().chain([packets(1, &[OK]), refused]) {
        let Server(bytes) = step else { unreachable!() };
        let progress = connection.on_bytes(&bytes, &mut exchange);
        note(&mut log, exchange.out, progress, exchange.pool);
    }
    let (_, log) = log.split_once('\n').unwrap();
    assert_eq!(log, "> 0 \\x03SET a\n> 0 \\x03SELECT 1\nfailed: server: You have an error (1064) syntax\n");
}

#[test]
fn no_single_wrong_byte_of_a_server_does_harm() {
    let Server(greeting) = greeting("8.0.31", BASE | SSL | DEPRECATE_EOF, "caching_sha2_password") else {
        unreachable!()
    };
    let (int, date, text) = (column(8, 32), column(12, 0), column(253, 0));
    let row = [&[0, 0][..], &[1; 8], &[7, 0xEA, 7, 1, 2, 3, 4, 5], b"\x03abc"].concat();
    let rest = [
        packets(2, &[&[1, 4]]),
        packets(4, &[b"\xFEmysql_native_password\0ABCDEFGHIJKLMNOPQRST\0"]),
        packets(6, &[OK]),
        packets(1, &[&[2], &int, &text, b"\x011\xFB", END_MORE, &[0, 7, 0, 11, 0, 0, 0], &[1], &text, END]),
        packets(1, &[&[0, 9, 0, 0, 0, 3, 0, 2, 0, 0, 0, 0], &int, &int, &int, &date, &text]),
        packets(1, &[&[3], &int, &date, &text, &row, END]),
        packets(1, &[OK]),
        packets(1, &[b"\xff\xdb\x04#HY000Unknown prepared statement handler"]),
        packets(1, &[&[0, 10, 0, 0, 0, 3, 0, 2, 0, 0, 0, 0], &int, &int, &int, &date, &text]),
        packets(1, &[&[3], &int, &date, &text, &row, END]),
    ];
    // First byte: prepared, TCP, no TLS or TLS. Second: all at once, or in threes.
    for choice in [[0, 255], [2, 3], [4, 255]] {
        let mut data = [&choice[..], &greeting].concat();
        rest.iter().for_each(|step| {
            if let Server(bytes) = step {
                data.extend_from_slice(bytes)
            }
        });
        super::fuzz_mysql(&data);
        for at in 2..data.len() {
            let byte = data[at];
            for wrong in [0, 1, 0x7F, 0x80, 0xFB, 0xFE, 0xFF, byte ^ 1] {
                data[at] = wrong;
                super::fuzz_mysql(&data);
            }
            data[at] = byte;
            super::fuzz_mysql(&data[..at]);
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_of_a_server_do_harm(data in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        super::fuzz_mysql(&data);
    }
}
