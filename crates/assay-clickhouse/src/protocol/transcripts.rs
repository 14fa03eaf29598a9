//! Conversations with a scripted server, each played whole and split at every byte.

use std::fmt::Write;
use std::sync::Arc;

use assay_seam::{
    Cell, Connection, Exchange, Nanos, Operation, Progress, Reply, Rows, RowsPool, RowsWanted, StatementId, Value,
};

use super::connection::ClickHouseConnection;
use super::packet::{write_number, write_string};
use super::server::tests::server;

/// One step of a conversation.
enum Do<'a> {
    /// The server sends this.
    Server(Vec<u8>),
    /// The engine asks for this.
    Run(Operation<'a>),
}

use Do::{Run, Server};

/// A packet: numbers and texts.
fn packet(parts: &[&dyn Part]) -> Vec<u8> {
    let mut out = Vec::new();
    parts.iter().for_each(|part| part.write(&mut out));
    out
}

trait Part {
    fn write(&self, out: &mut Vec<u8>);
}

impl Part for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        write_number(*self, out);
    }
}

impl Part for &str {
    fn write(&self, out: &mut Vec<u8>) {
        write_string(self.as_bytes(), out);
    }
}

impl Part for Vec<u8> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

fn hello(zone: &str) -> Vec<u8> {
    packet(&[&0u64, &"ClickHouse", &18u64, &16u64, &54412u64, &zone, &"here", &1u64])
}

/// A block of columns, each with its name, type and content.
fn block(rows: u64, columns: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let info = vec![1, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0];
    let mut out = packet(&[&1u64, &"", &info, &(columns.len() as u64), &rows]);
    for (name, kind, content) in columns {
        out.extend(packet(&[name, kind, &content.to_vec()]));
    }
    out
}

fn end() -> Vec<u8> {
    vec![5]
}

fn pong() -> Vec<u8> {
    vec![4]
}

fn exception(code: i32, message: &str) -> Vec<u8> {
    packet(&[&2u64, &code.to_le_bytes().to_vec(), &"DB::Exception", &message, &"stack", &vec![0]])
}

fn query(text: &str, rows: RowsWanted) -> Do<'_> {
    Run(Operation::Query { text: text.as_bytes(), rows })
}

/// Plays the steps; the log has what was sent (its texts) and what was returned. `cut`: where the server's bytes are
/// split.
fn play(url: &str, session_sql: &[&str], steps: &[Do<'_>], cut: Option<usize>) -> String {
    let mut connection = ClickHouseConnection::new(Arc::new(server(url, session_sql)));
    let mut pool = RowsPool::default();
    let (mut log, mut out, mut sent) = (String::new(), Vec::new(), 0);
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    let progress = connection.on_connected(&mut exchange);
    note(&mut log, progress, &mut exchange);
    for step in steps {
        match step {
            Server(bytes) => {
                let at = cut.map_or(0, |cut| cut.saturating_sub(sent).min(bytes.len()));
                sent += bytes.len();
                for piece in [&bytes[..at], &bytes[at..]].into_iter().filter(|piece| !piece.is_empty()) {
                    let progress = connection.on_bytes(piece, &mut exchange);
                    note(&mut log, progress, &mut exchange);
                }
            }
            Run(operation) => {
                let progress = connection.execute(operation, &mut exchange);
                note(&mut log, progress, &mut exchange);
            }
        }
    }
    log
}

fn note(log: &mut String, progress: Progress, exchange: &mut Exchange<'_>) {
    if !exchange.out.is_empty() {
        let text = String::from_utf8_lossy(exchange.out);
        let words = text.split(|letter: char| letter.is_control() || letter == '\u{FFFD}');
        let words: Vec<&str> = words.filter(|word| word.len() > 1).collect();
        writeln!(log, "{}", format!("> {}", words.join(" ")).trim_end()).unwrap();
        exchange.out.clear();
    }
    match progress {
        Progress::Pending => {}
        Progress::Reply(Reply { rows, affected, error }) => {
            rows.iter().for_each(|rows| writeln!(log, "{}", shown(rows)).unwrap());
            let error = error.map_or(String::new(), |error| format!(" {:?}: {error}", error.class));
            writeln!(log, "reply {affected}{error}").unwrap();
        }
        Progress::Failed(error) => writeln!(log, "failed {:?}: {error}", error.class).unwrap(),
        other => writeln!(log, "{other:?}").unwrap(),
    }
}

fn shown(rows: &Rows) -> String {
    let label = |column| rows.label(0, column).map(|label| format!("{}=", String::from_utf8_lossy(label)));
    let cell = |row, column| match rows.cell(0, row, column).unwrap() {
        Cell::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Cell::Null => "NULL".to_owned(),
        Cell::Int(number) => number.to_string(),
        Cell::Double(number) => number.to_string(),
    };
    let row = |row| {
        let cells = (0..rows.columns(0)).map(|column| label(column).unwrap_or_default() + &cell(row, column));
        cells.collect::<Vec<_>>().join(" ")
    };
    let all = (0..rows.len(0)).map(row).collect::<Vec<_>>().join(", ");
    format!("{} rows: {}", rows.len(0), all.trim_end())
}

/// Plays the steps whole, and then split at every byte of the server's: with the same result.
fn check(session_sql: &[&str], steps: &[Do<'_>]) -> String {
    let url = "clickhouse://me:secret@h/bench";
    let whole = play(url, session_sql, steps, None);
    let bytes = |step: &Do<'_>| if let Server(bytes) = step { bytes.len() } else { 0 };
    for cut in 1..steps.iter().map(bytes).sum() {
        assert_eq!(play(url, session_sql, steps, Some(cut)), whole, "split at {cut}");
    }
    whole
}

#[test]
fn rows_of_several_blocks_are_one_result() {
    let one = block(2, &[("n", "UInt16", &[1, 0, 2, 0]), ("t", "Nullable(String)", b"\x00\x01\x01a\x00")]);
    let two = block(1, &[("n", "UInt16", &[3, 1]), ("t", "Nullable(String)", b"\x00\x02xy")]);
    let head = block(0, &[("n", "UInt16", b""), ("t", "Nullable(String)", b"")]);
    let answer = [
        head,
        packet(&[&3u64, &2u64, &20u64, &3u64]),
        one,
        two,
        packet(&[&6u64, &3u64, &2u64, &20u64, &vec![0], &0u64, &vec![0]]),
        // Totals are no rows.
        packet(&[&7u64]).into_iter().chain(block(1, &[("n", "UInt16", &[9, 9])]).into_iter().skip(1)).collect(),
        block(0, &[]),
        end(),
    ];
    let log = check(
        &["SET a = 1"],
        &[
            Server(hello("UTC")),
            Server(end()),
            query("SELECT n, t FROM x;", RowsWanted::Keep),
            Server(answer.concat()),
            query("SELECT n, t FROM x", RowsWanted::Count),
            Server(answer.concat()),
        ],
    );
    insta::assert_snapshot!(log, @r"
    > assay bench me secret
    > 0.0.0.0:0 assay SET a = 1
    Ready
    > 0.0.0.0:0 assay SELECT n, t FROM x
    3 rows: n=1 t=a, n=2 t=NULL, n=259 t=xy
    reply 0
    > 0.0.0.0:0 assay SELECT n, t FROM x
    3 rows: , ,
    reply 0
    ");
}

#[test]
fn rows_are_inserted_as_the_table_stores_them() {
    let mut rows = Rows::default();
    rows.begin_set(2);
    rows.push_int(258);
    rows.push_text(b"abc").unwrap();
    rows.push_text(b"7").unwrap();
    rows.push_null();
    let load = || Run(Operation::Load { table: b"t", columns: b"n, t", rows: &rows, frozen: false });
    let sample = block(0, &[("n", "Int16", b""), ("t", "Nullable(String)", b"")]);
    let narrow = block(0, &[("n", "Int8", b""), ("t", "String", b"")]);
    let statement = StatementId(1);
    let values = [Value::Int(5), Value::Text(b"it's")];
    let log = check(
        &[],
        &[
            Server(hello("UTC")),
            load(),
            Server(sample.clone()),
            Server(end()),
            load(),
            Server(narrow),
            Server(end()),
            Run(Operation::Prepare { statement, text: b"INSERT INTO t (n, t) VALUES (?, ?)" }),
            Run(Operation::Execute { statement, parameters: &values, rows: RowsWanted::Keep }),
            Server(sample.clone()),
            Server(end()),
            query("INSERT INTO t VALUES (now())", RowsWanted::Keep),
            query("INSERT INTO t FORMAT TSV", RowsWanted::Keep),
            Server(sample),
            Server(end()),
            load(),
            Server(exception(60, "DB::Exception: Table bench.t doesn't exist.")),
            Server(pong()),
            query("SELECT 1", RowsWanted::Keep),
        ],
    );
    insta::assert_snapshot!(log, @r"
    > assay bench me secret
    Ready
    > 0.0.0.0:0 assay INSERT INTO t (n, t) VALUES
    > Int16 Nullable(String) abc
    reply 2
    > 0.0.0.0:0 assay INSERT INTO t (n, t) VALUES
    >
    reply 0 Constraint: client: column n of type Int8 cannot hold 258 (no code)
    reply 0
    > 0.0.0.0:0 assay INSERT INTO t (n, t) VALUES
    > Int16 Nullable(String) it's
    reply 1
    reply 0 Syntax: client: the rows of an INSERT: a number, a text or NULL expected, and not an expression, at `now())` (no code)
    > 0.0.0.0:0 assay INSERT INTO t FORMAT TSV
    >
    reply 0 Syntax: client: an INSERT without rows: the server waits for them (no code)
    > 0.0.0.0:0 assay INSERT INTO t (n, t) VALUES
    >
    reply 0 Missing: server: Table bench.t doesn't exist (60)
    > 0.0.0.0:0 assay SELECT 1
    ");
}

#[test]
fn errors_keep_the_connection_unless_rows_are_on_their_way() {
    let sample = block(0, &[("n", "Int16", b"")]);
    let log = check(
        &[],
        &[
            Server(hello("UTC")),
            query("SELECT", RowsWanted::Keep),
            Server(exception(62, "DB::Exception: Syntax error")),
            Server(pong()),
            query("SELECT sleep(3)", RowsWanted::Keep),
            Server([exception(159, "DB::Exception: Timeout exceeded"), pong()].concat()),
            query("INSERT INTO t VALUES (1)", RowsWanted::Keep),
            Server(sample),
            Server(exception(252, "DB::Exception: Too many parts")),
        ],
    );
    insta::assert_snapshot!(log, @r"
    > assay bench me secret
    Ready
    > 0.0.0.0:0 assay SELECT
    >
    reply 0 Syntax: server: Syntax error (62)
    > 0.0.0.0:0 assay SELECT sleep(3)
    >
    reply 0 Timeout: server: Timeout exceeded (159)
    > 0.0.0.0:0 assay INSERT INTO t VALUES
    > Int16
    failed Limit: server: Too many parts (252)
    ");
}

/// As version 18.16 does: it has not read the end of the query.
#[test]
fn a_server_that_is_out_of_step_after_an_error_ends_the_connection_with_that_error() {
    let refusal = exception(62, "DB::Exception: Syntax error");
    let confused = exception(101, "DB::NetException: Unexpected packet Data received from client");
    let log = check(&[], &[Server(hello("UTC")), query("SELECT", RowsWanted::Keep), Server(refusal), Server(confused)]);
    assert!(log.ends_with("failed Syntax: server: Syntax error (62)\n"), "{log}");
}

#[test]
fn what_cannot_be_read_ends_the_connection_with_a_reason() {
    for (answer, reason) in [
        (block(1, &[("a", "Array(UInt8)", b"")]), "column a has a type that is not supported: Array(UInt8)"),
        (block(1, &[("d", "DateTime", b"")]), "DateTime, in the server's time zone Asia/Tokyo if it names none"),
        (vec![99], "sent packet 99 when none was expected"),
        (vec![0], "sent packet 0 when none was expected"),
        (packet(&[&1u64, &"", &vec![9]]), "described a block by an unknown field"),
        (packet(&[&3u64, &vec![0xFF; 11]]), "sent a number of more than 64 bits"),
    ] {
        let log = check(&[], &[Server(hello("Asia/Tokyo")), query("SELECT 1", RowsWanted::Keep), Server(answer)]);
        assert!(log.lines().last().unwrap().starts_with("failed ") && log.contains(reason), "{log}");
    }
    for (greeting, reason) in [
        (exception(193, "DB::Exception: Wrong password for user me"), "failed Authentication: "),
        (packet(&[&0u64, &"ClickHouse", &1u64, &1u64, &54000u64, &"UTC", &"", &1u64]), "ClickHouse 1.1 is too old"),
        (b"HTTP/1.0 400 Bad Request\r\n\r\n".to_vec(), "sent packet 72 when none was expected"),
    ] {
        let log = check(&[], &[Server(greeting)]);
        assert!(log.contains(reason), "{log}");
    }
}

#[test]
fn a_query_in_flight_is_cancelled_before_the_socket_is_closed() {
    let mut connection = ClickHouseConnection::new(Arc::new(server("clickhouse://h", &[])));
    let (mut pool, mut out) = (RowsPool::default(), Vec::new());
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    connection.on_connected(&mut exchange);
    connection.on_bytes(&hello("UTC"), &mut exchange);
    connection.execute(&Operation::Query { text: b"SELECT 1", rows: RowsWanted::Keep }, &mut exchange);
    exchange.out.clear();
    connection.close(&mut exchange);
    assert_eq!(*exchange.out, [3]);
    exchange.out.clear();
    connection.close(&mut exchange);
    assert!(exchange.out.is_empty());
}

#[test]
fn tls_begins_with_the_first_byte() {
    let log = play("clickhouse://h?sslmode=require", &[], &[], None);
    assert_eq!(log, "StartTls\n");
}
