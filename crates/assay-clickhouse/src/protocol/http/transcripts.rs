//! Conversations with a scripted server, each played whole and split at every byte.
//!
//! Answers of version 18.16 are as it sent them; those of later versions follow ClickHouse's documentation.

use std::fmt::Write;
use std::sync::Arc;

use assay_seam::{Connection, Exchange, Nanos, Operation, Progress, Reply, Rows, RowsPool, RowsWanted, TlsFacts};

use super::coding::Coding;
use super::connection::HttpConnection;
use crate::protocol::packet::{write_number, write_string};
use crate::protocol::server::tests::server;

/// One step of a conversation.
enum Do<'a> {
    /// The server sends this.
    Server(Vec<u8>),
    /// The engine asks for this.
    Run(Operation<'a>),
    /// The socket is closed.
    Closed,
    /// The engine has connected again.
    Connected,
    /// The TLS handshake is done.
    Secured,
    /// So many milliseconds pass.
    Pass(u64),
}

use Do::{Closed, Connected, Pass, Run, Secured, Server};

const URL: &str = "clickhouse+http://me:secret@h/bench";
const OLD: &str = "HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\nContent-Type: application/octet-stream\r\n\
                   Transfer-Encoding: chunked\r\nKeep-Alive: timeout=3\r\n";
const PLAIN: &str = "HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\nContent-Type: text/plain; charset=UTF-8\r\n\
                     Transfer-Encoding: chunked\r\nKeep-Alive: timeout=3\r\n";
const ERROR: &str = "HTTP/1.1 500 Internal Server Error\r\nConnection: Keep-Alive\r\n\
                     Content-Type: text/plain; charset=UTF-8\r\nTransfer-Encoding: chunked\r\nKeep-Alive: timeout=3\r\n";
const TABLE_IS_MISSING: &str =
    "Code: 60, e.displayText() = DB::Exception: Table bench.t doesn't exist., e.what() = DB::Exception\n";

/// A response in chunks.
fn chunked(head: &str, chunks: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("{head}\r\n").into_bytes();
    for chunk in chunks.iter().copied().chain([&b""[..]]) {
        out.extend(format!("{:X}\r\n", chunk.len()).bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// A block of the format Native.
fn block(rows: u64, columns: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    write_number(columns.len() as u64, &mut out);
    write_number(rows, &mut out);
    for (name, kind, content) in columns {
        write_string(name.as_bytes(), &mut out);
        write_string(kind.as_bytes(), &mut out);
        out.extend_from_slice(content);
    }
    out
}

fn hello() -> Do<'static> {
    let columns: [(&str, &str, &[u8]); 2] =
        [("version()", "String", b"\x0718.16.1"), ("timezone()", "String", b"\x03UTC")];
    Server(chunked(OLD, &[&block(1, &columns)]))
}

fn done() -> Do<'static> {
    Server(chunked(PLAIN, &[]))
}

fn number(number: u8) -> Vec<u8> {
    block(1, &[("n", "UInt8", &[number])])
}

fn query(text: &str) -> Do<'_> {
    Run(Operation::Query { text: text.as_bytes(), rows: RowsWanted::Keep })
}

/// Plays the steps; the log has what was sent and what was returned. `cut`: where the server's bytes are split.
fn play(url: &str, session_sql: &[&str], steps: &[Do<'_>], cut: Option<usize>) -> String {
    let server = Arc::new(server(url, session_sql));
    let prefix = server.http.as_ref().unwrap().run.prefix.clone();
    let mut connection = HttpConnection::new(server);
    let mut pool = RowsPool::default();
    let (mut log, mut out, mut sent) = (String::new(), Vec::new(), 0);
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    let progress = connection.on_connected(&mut exchange);
    note(&mut log, progress, &mut exchange);
    for step in steps {
        let progress = match step {
            Server(bytes) => {
                let at = cut.map_or(0, |cut| cut.saturating_sub(sent).min(bytes.len()));
                sent += bytes.len();
                for piece in [&bytes[..at], &bytes[at..]].into_iter().filter(|piece| !piece.is_empty()) {
                    let progress = connection.on_bytes(piece, &mut exchange);
                    note(&mut log, progress, &mut exchange);
                }
                continue;
            }
            Run(operation) => connection.execute(operation, &mut exchange),
            Closed => {
                writeln!(log, "lives on: {}", connection.on_closed()).unwrap();
                continue;
            }
            Connected => connection.on_connected(&mut exchange),
            Secured => connection.on_secured(&TlsFacts { cipher: "TLS".into(), ..TlsFacts::default() }, &mut exchange),
            Pass(millis) => {
                exchange.now += Nanos::from_millis(*millis);
                continue;
            }
        };
        note(&mut log, progress, &mut exchange);
    }
    log.replace(&prefix, "P")
}

fn note(log: &mut String, progress: Progress, exchange: &mut Exchange<'_>) {
    if !exchange.out.is_empty() {
        let text = String::from_utf8_lossy(exchange.out);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let parameters = head.split_once('&').unwrap().1.split_once(' ').unwrap().0;
        let body: String = body.chars().filter(|letter| !letter.is_control() && *letter != '\u{FFFD}').collect();
        let coded = if head.contains("\r\nContent-Encoding: ") { "compressed " } else { "" };
        writeln!(log, "> {parameters} {coded}{body}").unwrap();
        exchange.out.clear();
    }
    match progress {
        Progress::Pending => {}
        Progress::Reply(Reply { rows, affected, error }) => {
            let rows = rows.map_or(String::new(), |rows| format!(", {}", shown(&rows)));
            let error = error.map_or(String::new(), |error| format!(", {:?}: {error}", error.class));
            writeln!(log, "reply {affected}{rows}{error}").unwrap();
        }
        Progress::Failed(error) => writeln!(log, "failed {:?}: {error}", error.class).unwrap(),
        other => writeln!(log, "{other:?}").unwrap(),
    }
}

fn shown(rows: &Rows) -> String {
    let row = |row| {
        let cells = (0..rows.columns(0)).map(|column| format!("{:?}", rows.cell(0, row, column).unwrap()));
        cells.collect::<Vec<_>>().join(" ")
    };
    let all = (0..rows.len(0)).map(row).collect::<Vec<_>>().join(", ");
    format!("{} rows: {all}", rows.len(0)).trim_end().to_owned()
}

/// Plays the steps whole, and then split at every byte of the server's: with the same result.
fn check_at(url: &str, session_sql: &[&str], steps: &[Do<'_>]) -> String {
    let whole = play(url, session_sql, steps, None);
    let bytes = |step: &Do<'_>| if let Server(bytes) = step { bytes.len() } else { 0 };
    for cut in 1..steps.iter().map(bytes).sum() {
        assert_eq!(play(url, session_sql, steps, Some(cut)), whole, "split at {cut}");
    }
    whole
}

fn check(session_sql: &[&str], steps: &[Do<'_>]) -> String {
    check_at(URL, session_sql, steps)
}

#[test]
fn the_login_is_in_headers_and_not_in_the_url() {
    let mut connection =
        HttpConnection::new(Arc::new(server("clickhouse+http://me:secret@h/a%26b?compression=zstd", &[])));
    let (mut pool, mut out) = (RowsPool::default(), Vec::new());
    connection.on_connected(&mut Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO });
    let text = String::from_utf8(out).unwrap();
    let (line, headers) = text.split_once("\r\n").unwrap();
    assert!(line.starts_with("POST /?database=a%26b&default_format=Native&session_id=assay-"), "{line}");
    assert!(line.ends_with("-0&session_timeout=600&query_id=") || line.contains("-0&session_timeout=600&"), "{line}");
    assert!(!line.contains("secret") && !line.contains("session_check"), "{line}");
    insta::assert_snapshot!(headers.replace('\r', ""), @r"
    Host: h:8123
    X-ClickHouse-User: me
    X-ClickHouse-Key: secret
    Accept-Encoding: zstd
    User-Agent: assay
    Content-Length: 28

    SELECT version(), timezone()
    ");
}

#[test]
fn rows_of_several_blocks_and_chunks_are_one_result() {
    let one = block(2, &[("n", "UInt16", &[1, 0, 2, 0]), ("t", "Nullable(String)", b"\x00\x01\x01a\x00")]);
    let two = block(1, &[("n", "UInt16", &[3, 1]), ("t", "Nullable(String)", b"\x00\x02xy")]);
    let all = [one, two].concat();
    let rows = || Server(chunked(OLD, &[&all[..7], &all[7..]]));
    let log = check(
        &["SET a = 1"],
        &[
            hello(),
            done(),
            query("SELECT n, t FROM x;"),
            rows(),
            Run(Operation::Query { text: b"SELECT n, t FROM x", rows: RowsWanted::Count }),
            rows(),
            query("SELECT n FROM x WHERE 0"),
            Server(chunked(OLD, &[])),
            query("DROP TABLE x"),
            done(),
        ],
    );
    insta::assert_snapshot!(log, @r"
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-0 SELECT version(), timezone()
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-1&session_check=1 SET a = 1
    Ready
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-2&session_check=1 SELECT n, t FROM x
    reply 0, 3 rows: Int(1) Text([97]), Int(2) Null, Int(259) Text([120, 121])
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-3&session_check=1 SELECT n, t FROM x
    reply 0, 3 rows: , ,
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-4&session_check=1 SELECT n FROM x WHERE 0
    reply 0, 0 rows:
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-5&session_check=1 DROP TABLE x
    reply 0
    ");
}

#[test]
fn rows_are_inserted_as_the_table_stores_them() {
    let mut rows = Rows::default();
    rows.begin_set(2);
    rows.push_int(258);
    rows.push_text(b"abc").unwrap();
    let load = || Run(Operation::Load { table: b"t", columns: b"n, t", rows: &rows, frozen: false });
    let described = |kind: &str| {
        let kinds = [&[kind.len() as u8][..], kind.as_bytes(), b"\x06String"].concat();
        let columns: [(&str, &str, &[u8]); 3] =
            [("name", "String", b"\x01n\x01t"), ("type", "String", &kinds), ("default_type", "String", b"\0\0")];
        Server(chunked(OLD, &[&block(2, &columns)]))
    };
    let summary = format!("{PLAIN}X-ClickHouse-Summary: {{\"read_rows\":\"1\",\"written_rows\":\"2\"}}\r\n");
    let log = check(
        &[],
        &[
            hello(),
            load(),
            described("Int16"),
            done(),
            load(),
            described("Int8"),
            load(),
            described("Array(Int8)"),
            load(),
            Server(chunked(ERROR, &[TABLE_IS_MISSING.as_bytes()])),
            load(),
            Server(chunked(OLD, &[&block(2, &[("name", "String", b"\x01n\x01t")])])),
            query("INSERT INTO t VALUES ('1', 'a'), (2, 'b')"),
            described("Int16"),
            done(),
            query("INSERT INTO t VALUES (1 + 1, 'a')"),
            Server(chunked(&summary, &[])),
        ],
    );
    insta::assert_snapshot!(log, @r"
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-0 SELECT version(), timezone()
    Ready
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-1&session_check=1 DESCRIBE TABLE (SELECT n, t FROM t)
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-2&session_check=1 INSERT INTO t (n, t) FORMAT NativenInt16tStringabc
    reply 1
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-3&session_check=1 DESCRIBE TABLE (SELECT n, t FROM t)
    reply 0, Constraint: client: column n of type Int8 cannot hold 258 (no code)
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-4&session_check=1 DESCRIBE TABLE (SELECT n, t FROM t)
    reply 0, Other: client: column n has a type that is not supported: Array(Int8) (no code)
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-5&session_check=1 DESCRIBE TABLE (SELECT n, t FROM t)
    reply 0, Missing: server: Table bench.t doesn't exist (60)
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-6&session_check=1 DESCRIBE TABLE (SELECT n, t FROM t)
    reply 0, Protocol: client: the server broke the ClickHouse protocol: it answered DESCRIBE TABLE in a form that assay does not know (rows: 2, columns: 1, texts: n, t) (no code)
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-7&session_check=1 DESCRIBE TABLE (SELECT * FROM t)
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-8&session_check=1 INSERT INTO t FORMAT NativenInt16tStringab
    reply 2
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-9&session_check=1 INSERT INTO t VALUES (1 + 1, 'a')
    reply 2
    ");
}

#[test]
fn errors_of_the_server_keep_the_connection() {
    let new = "HTTP/1.1 404 Not Found\r\nConnection: Keep-Alive\r\nContent-Type: text/plain\r\n\
               X-ClickHouse-Exception-Code: 60\r\nContent-Length: 94\r\nX-ClickHouse-Query-Id: q\r\n\r\n\
               Code: 60. DB::Exception: Table bench.t doesn't exist. (UNKNOWN_TABLE) (version 24.3.1 (build))";
    // The header alone, with the status of a success.
    let late = format!("{OLD}X-ClickHouse-Exception-Code: 241\r\n");
    let log = check(
        &[],
        &[
            hello(),
            query("SELECT n FROM t"),
            Server(chunked(ERROR, &[TABLE_IS_MISSING.as_bytes()])),
            query("SELECT n FROM t"),
            Server(new.into()),
            query("SELECT n FROM t"),
            Server(chunked(&late, &[b"Memory limit exceeded"])),
            query("SELECT 1 FORMAT CSV"),
            Server(chunked(&OLD.replace("application/octet-stream", "text/csv; charset=UTF-8"), &[b"1\n"])),
        ],
    );
    insta::assert_snapshot!(log, @r"
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-0 SELECT version(), timezone()
    Ready
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-1&session_check=1 SELECT n FROM t
    reply 0, Missing: server: Table bench.t doesn't exist (60)
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-2&session_check=1 SELECT n FROM t
    reply 0, Missing: server: Table bench.t doesn't exist (60)
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-3&session_check=1 SELECT n FROM t
    reply 0, Limit: server: Memory limit exceeded (241)
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-4&session_check=1 SELECT 1 FORMAT CSV
    reply 0, Syntax: client: the answer is text/csv, and not rows that can be read (no code)
    ");
}

#[test]
fn an_error_after_the_first_rows_is_no_result() {
    let text = "Code: 395, e.displayText() = DB::Exception: Value passed to 'throwIf' function is non zero, \
                e.what() = DB::Exception\n";
    let tagged = "\r\n__exception__\r\nabcdefghijklmnop\r\nCode: 395. DB::Exception: Value passed to 'throwIf' function \
                  is non-zero. (FUNCTION_THROW_IF_VALUE_IS_NON_ZERO) (version 25.11.1)\r\n99 abcdefghijklmnop\r\n__exception__\r\n";
    let whole = block(1, &[("t", "String", b"\xC8\x01abc")]);
    for (steps, last) in [
        // As 18.16 sends it.
        (
            vec![Server(chunked(OLD, &[&number(1), text.as_bytes()]))],
            "reply 0, 1 rows: Int(1), Other: server: Value passed",
        ),
        (
            vec![Server(chunked(OLD, &[&number(1), tagged.as_bytes()]))],
            "reply 0, 1 rows: Int(1), Other: server: Value passed",
        ),
        // Inside a block.
        (
            vec![Server(chunked(OLD, &[&[&whole[..], text.as_bytes()].concat()]))],
            "reply 0, Other: server: Value passed",
        ),
        (vec![Server(chunked(PLAIN, &[text.as_bytes()]))], "reply 0, Other: server: Value passed"),
        // Without an error, but also without the rest.
        (vec![Server(chunked(OLD, &[&number(1), &number(2)[..3]]))], "ended a result inside a block"),
        (
            vec![Server(chunked(OLD, &[&number(1), &block(1, &[("m", "UInt8", &[2])])]))],
            "changed the columns of a result between two blocks",
        ),
        (
            vec![Server(chunked(OLD, &[&number(1), &block(1, &[("n", "Int8", &[2])])]))],
            "changed the columns of a result between two blocks",
        ),
        (
            vec![Server(chunked(OLD, &[&number(1), &block(1, &[("n", "UInt8", &[2]), ("m", "UInt8", &[3])])]))],
            "changed the columns of a result between two blocks",
        ),
        // The server broke the connection off.
        (vec![Server(chunked(OLD, &[&number(1)])[..150].to_vec()), Closed], "lives on: false"),
    ] {
        let mut all = vec![hello(), query("SELECT n FROM t")];
        all.extend(steps);
        let log = check(&[], &all);
        assert!(log.lines().last().unwrap().contains(last), "{log}");
    }
}

#[test]
fn a_result_that_is_cut_off_anywhere_is_none() {
    let whole = chunked(OLD, &[&number(1), &number(2)]);
    for cut in 0..whole.len() {
        let log = play(URL, &[], &[hello(), query("SELECT n FROM t"), Server(whole[..cut].to_vec()), Closed], None);
        assert!(!log.contains("reply"), "{log}");
        // Without any answer the query is sent again.
        assert_eq!(log.contains("lives on: true"), cut == 0, "{log}");
    }
}

#[test]
fn sockets_that_the_server_closes_are_replaced_without_an_error() {
    let select = || query("SELECT 1");
    let answer = || Server(chunked(OLD, &[&number(1)]));
    let closing = || Server(chunked(&OLD.replace("Keep-Alive\r\n", "close\r\n"), &[&number(1)]));
    let log = check(
        &[],
        &[
            hello(),
            // Closed while idle.
            Closed,
            select(),
            Connected,
            answer(),
            // Idle for so long that the server may be closing it now.
            Pass(1900),
            select(),
            answer(),
            Pass(2100),
            select(),
            Closed,
            Connected,
            answer(),
            // Closed by the server just when the query was sent: it can be repeated.
            select(),
            Closed,
            Connected,
            closing(),
            // It said that it would close.
            query("INSERT INTO t SELECT 1"),
            Closed,
            Connected,
            done(),
            // The same as before: but this changes data, and may have been executed.
            query("INSERT INTO t SELECT 1"),
            Closed,
        ],
    );
    insta::assert_snapshot!(log, @r"
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-0 SELECT version(), timezone()
    Ready
    lives on: true
    Reconnect
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-1&session_check=1 SELECT 1
    reply 0, 1 rows: Int(1)
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-2&session_check=1 SELECT 1
    reply 0, 1 rows: Int(1)
    Reconnect
    lives on: true
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-3&session_check=1 SELECT 1
    reply 0, 1 rows: Int(1)
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-4&session_check=1 SELECT 1
    lives on: true
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-5&session_check=1 SELECT 1
    reply 0, 1 rows: Int(1)
    Reconnect
    lives on: true
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-6&session_check=1 INSERT INTO t SELECT 1
    reply 0
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-7&session_check=1 INSERT INTO t SELECT 1
    lives on: false
    ");
}

#[test]
fn a_new_socket_that_is_closed_at_once_is_an_error() {
    let log = check(&[], &[hello(), Closed, query("SELECT 1"), Connected, Closed]);
    assert!(log.ends_with("lives on: false\n"), "{log}");
    // It cannot be connected.
    let log = check(&[], &[hello(), Closed, query("SELECT 1"), Closed]);
    assert!(log.ends_with("Reconnect\nlives on: false\n"), "{log}");
    // The login is then executed again, in another session.
    let log = check(&[], &[hello(), Closed, query("SELECT 1"), Closed, Connected]);
    assert!(
        log.ends_with(
            "> default_format=Native&session_id=P-1&session_timeout=600&query_id=P-1-0 SELECT version(), timezone()\n"
        ),
        "{log}"
    );
}

#[test]
fn a_session_that_the_server_forgot_ends_the_connection() {
    let text = "Code: 372, e.displayText() = DB::Exception: Session not found., e.what() = DB::Exception\n";
    let log = check(&[], &[hello(), query("SELECT 1"), Server(chunked(ERROR, &[text.as_bytes()]))]);
    assert!(log.ends_with("failed Connection: server: Session not found (372)\n"), "{log}");
}

#[test]
fn who_is_not_clickhouse_is_shown() {
    let gateway = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 30\r\n\r\n<h1>\n  Nobody is there.\n </h1>";
    let native = "HTTP/1.0 400 Bad Request\r\n\r\nPort 9000 is for clickhouse-client program.\r\n";
    for (answer, wanted) in [
        (gateway, "failed Connection: server: HTTP status 502 Bad Gateway: <h1> Nobody is there. </h1> (no code)\n"),
        ("SSH-2.0-OpenSSH_9\r\n\r\n", "did not answer in HTTP: invalid HTTP version (no code)\n"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nOk.", "did not say which version it is (no code)\n"),
        (
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 66\r\n\r\nCode: 193, e.displayText() = DB::Exception: Wrong password for me.\n",
            "failed Authentication: server: Wrong password for me (193)\n",
        ),
    ] {
        let log = check(&[], &[Server(answer.into())]);
        assert!(log.ends_with(wanted), "{log}");
    }
    // Its length is not known: what has arrived so far is shown.
    let log = play(URL, &[], &[Server(native.into())], None);
    assert!(
        log.contains("HTTP status 400 Bad Request: Port 9000 is for clickhouse-client program. (no code)"),
        "{log}"
    );
}

#[test]
fn compressed_answers_are_read_and_rows_are_compressed() {
    let mut rows = Rows::default();
    rows.begin_set(1);
    (0..100).for_each(|number| rows.push_int(number % 10));
    let all: Vec<u8> = [number(1), number(2)].concat();
    let error = [number(1), TABLE_IS_MISSING.as_bytes().to_vec()].concat();
    for coding in [Coding::Gzip, Coding::Zstd] {
        let name = coding.name();
        let url = format!("{URL}?compression={name}");
        let head = format!("{OLD}Content-Encoding: {name}\r\n");
        let small = coding.encode(&all).unwrap();
        let described: [(&str, &str, &[u8]); 2] = [("name", "String", b"\x01n"), ("type", "String", b"\x05UInt8")];
        let log = check_at(
            &url,
            &[],
            &[
                hello(),
                query("SELECT n FROM t"),
                Server(chunked(&head, &[&small[..9], &small[9..]])),
                query("SELECT n FROM t"),
                Server(chunked(&head, &[&coding.encode(&error).unwrap()])),
                Run(Operation::Load { table: b"t", columns: b"n", rows: &rows, frozen: false }),
                Server(chunked(OLD, &[&block(1, &described)])),
                done(),
                query("SELECT n FROM t"),
                Server(chunked(&head, &[&small[..small.len() - 2]])),
            ],
        );
        let lines: Vec<&str> = log.lines().filter(|line| !line.starts_with('>')).collect();
        assert_eq!(
            lines[..4],
            [
                "Ready",
                "reply 0, 2 rows: Int(1), Int(2)",
                "reply 0, 1 rows: Int(1), Missing: server: Table bench.t doesn't exist (60)",
                "reply 100",
            ]
        );
        assert!(lines[4].starts_with("failed Protocol: ") && lines[4].contains("cut a compressed body off"), "{log}");
        assert_eq!(log.matches("=1 compressed ").count(), 1, "only rows are: {log}");
        // An error that is not compressed, as it would be if the server gave up compressing.
        let log =
            check_at(&url, &[], &[hello(), query("SELECT 1"), Server(chunked(&head, &[TABLE_IS_MISSING.as_bytes()]))]);
        assert!(log.contains("failed Protocol: ") && log.contains("that is not"), "{log}");
    }
}

#[test]
fn tls_begins_with_every_socket() {
    let url = "clickhouse+https://h";
    let steps = [Secured, hello(), Closed, query("SELECT 1"), Connected, Secured, Server(chunked(OLD, &[&number(1)]))];
    insta::assert_snapshot!(check_at(url, &[], &steps), @r"
    StartTls
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-0 SELECT version(), timezone()
    Ready
    lives on: true
    Reconnect
    StartTls
    > default_format=Native&session_id=P-0&session_timeout=600&query_id=P-0-1&session_check=1 SELECT 1
    reply 0, 1 rows: Int(1)
    ");
}

#[test]
fn queries_that_are_left_running_are_remembered() {
    let server = Arc::new(server(URL, &[]));
    let run = || &server.http.as_ref().unwrap().run;
    let (mut pool, mut out) = (RowsPool::default(), Vec::new());
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    let mut connection = HttpConnection::new(Arc::clone(&server));
    connection.on_connected(&mut exchange);
    let Server(hello) = hello() else { unreachable!() };
    connection.on_bytes(&hello, &mut exchange);
    connection.close(&mut exchange);
    assert!(run().left.lock().unwrap().is_empty(), "nothing was in flight");
    connection.on_connected(&mut exchange);
    connection.on_bytes(&hello, &mut exchange);
    connection.execute(&Operation::Query { text: b"SELECT 1", rows: RowsWanted::Keep }, &mut exchange);
    connection.close(&mut exchange);
    assert_eq!(*run().left.lock().unwrap(), [format!("{}-1-1", run().prefix)]);
}
