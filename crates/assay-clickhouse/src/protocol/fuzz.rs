//! The parsers with arbitrary input.

use std::sync::Arc;

use assay_seam::{
    ConnectOptions, Connection, Exchange, Nanos, NoSurroundings, Operation, Progress, Rows, RowsPool, RowsWanted,
    StatementId, Value,
};

use super::connection::ClickHouseConnection;
use super::http::connection::HttpConnection;
use super::{server, values};

/// Plays a server that sends `data`, by the native protocol and over HTTP, and requests one operation after the other
/// whenever the connection is ready. The first byte says how the rest is split. Reads the same as the text of an
/// INSERT. Must neither panic nor hold more memory than was sent, decompressed.
pub fn fuzz_clickhouse(data: &[u8]) {
    let [piece, data @ ..] = data else { return };
    if let Some(start) = values::start(data) {
        let _ = values::read(data, start);
    }
    let options = ConnectOptions { session_sql: vec!["SET a = 1".to_owned()], ..ConnectOptions::default() };
    let server = |url: &str| Arc::new(server::read(url, &options, &NoSurroundings).expect("it is well written"));
    play(ClickHouseConnection::new(server("clickhouse://h")), *piece, data);
    play(HttpConnection::new(server("clickhouse+http://h?compression=gzip")), *piece, data);
}

fn play(mut connection: impl Connection, piece: u8, data: &[u8]) {
    let mut pool = RowsPool::default();
    let mut rows = Rows::default();
    rows.begin_set(2);
    rows.push_int(1);
    rows.push_text(b"a").expect("far less than 4 GiB");
    let statement = StatementId(7);
    let parameters = [Value::Int(1), Value::Text(b"a")];
    let operations = [
        Operation::Query { text: b"SELECT 1", rows: RowsWanted::Keep },
        Operation::Prepare { statement, text: b"INSERT INTO t VALUES (?, ?)" },
        Operation::Execute { statement, parameters: &parameters, rows: RowsWanted::Keep },
        Operation::Load { table: b"t", columns: b"a, b", rows: &rows, frozen: false },
        Operation::Query { text: b"SELECT a FROM t", rows: RowsWanted::Count },
        Operation::Close { statement },
    ];
    let mut next = operations.iter().cycle();
    let mut out = Vec::new();
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    connection.on_connected(&mut exchange);
    for bytes in data.chunks(usize::from(piece).max(1)) {
        let mut progress = connection.on_bytes(bytes, &mut exchange);
        loop {
            exchange.out.clear();
            match progress {
                Progress::Ready | Progress::Reply(_) => {
                    if let Progress::Reply(reply) = progress
                        && let Some(rows) = reply.rows
                    {
                        exchange.pool.put(rows);
                    }
                    progress = connection.execute(next.next().expect("a cycle has no end"), &mut exchange);
                }
                Progress::Failed(_) | Progress::Reconnect => {
                    connection.on_closed();
                    connection.on_connected(&mut exchange);
                    break;
                }
                _ => break,
            }
        }
    }
}
