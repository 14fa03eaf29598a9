//! The parsers with arbitrary input.

use std::sync::Arc;

use assay_seam::{
    ConnectOptions, Connection, Endpoint, Exchange, Nanos, Operation, Progress, Rows, RowsPool, RowsWanted,
    StatementId, TlsFacts, TlsMode, Value,
};

use super::connection::MySqlConnection;
use super::server::MySqlServer;

/// Plays a server that sends `data`, and requests one operation after the other whenever the connection is ready. The
/// first byte chooses the server, the second how the rest is split. Must neither panic nor hold more memory than was
/// sent.
pub fn fuzz_mysql(data: &[u8]) {
    let [choice, piece, data @ ..] = data else { return };
    let options = ConnectOptions { prepared: choice & 1 == 0, ..ConnectOptions::default() };
    let endpoint = match choice & 2 {
        0 => Endpoint::Tcp { host: "h".into(), port: 1 },
        _ => Endpoint::Unix("/s".into()),
    };
    let mode = if choice & 4 == 0 { TlsMode::Disable } else { TlsMode::Prefer };
    let mut connection = MySqlConnection::new(Arc::new(MySqlServer::bare(endpoint, mode, options)));
    let mut pool = RowsPool::default();
    let mut rows = Rows::default();
    rows.begin_set(1);
    rows.push_int(1);
    if choice & 8 != 0 {
        rows.push_text(&vec![b'x'; 1 << 17]).expect("far less than 4 GiB");
    }
    let statement = StatementId(7);
    let parameters = [Value::Int(1), Value::Text(b"a")];
    let operations = [
        Operation::Query { text: b"SELECT 1", rows: RowsWanted::Keep },
        Operation::Prepare { statement, text: b"UPDATE t SET a = ?, b = ?" },
        Operation::Execute { statement, parameters: &parameters, rows: RowsWanted::Keep },
        Operation::Load { table: b"t", columns: b"a", rows: &rows, frozen: false },
        Operation::Execute { statement, parameters: &parameters, rows: RowsWanted::Keep },
        Operation::Close { statement },
    ];
    let mut next = operations.iter().cycle();
    let mut out = Vec::new();
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    connection.on_connected(&mut exchange);
    for bytes in data.chunks(usize::from(*piece).max(1)) {
        let mut progress = connection.on_bytes(bytes, &mut exchange);
        loop {
            exchange.out.clear();
            match progress {
                Progress::StartTls => progress = connection.on_secured(&TlsFacts::default(), &mut exchange),
                Progress::Ready | Progress::Reply(_) => {
                    if let Progress::Reply(reply) = progress
                        && let Some(rows) = reply.rows
                    {
                        exchange.pool.put(rows);
                    }
                    let operation = next.next().expect("a cycle has no end");
                    connection.defer(operation);
                    progress = connection.execute(operation, &mut exchange);
                }
                Progress::Failed(_) => {
                    connection.on_closed();
                    connection.on_connected(&mut exchange);
                    break;
                }
                _ => break,
            }
        }
    }
}
