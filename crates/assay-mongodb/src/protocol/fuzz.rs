//! The parsers with arbitrary input.

use std::sync::Arc;

use assay_seam::{
    ConnectOptions, Connection, Exchange, Nanos, Operation, Progress, Rows, RowsPool, RowsWanted, StatementId,
    TlsFacts, Value,
};

use super::additions::Additions;
use super::connection::MongoConnection;
use super::server;
use super::template::Template;

/// Plays a server that sends `data`, and requests one operation after the other whenever the connection is ready. The
/// first byte chooses the server, the second how the rest is split. Must neither panic nor hold more memory than was
/// sent.
pub fn fuzz_mongodb(data: &[u8]) {
    let [choice, piece, data @ ..] = data else { return };
    let url = match choice & 7 {
        0 => "mongodb://h/d",
        1 => "mongodb://user:secret@h/d",
        2 => "mongodb://user:secret@h/d?authMechanism=SCRAM-SHA-1&readPreference=secondary",
        4 => "mongodb://h/d?compressors=snappy",
        5 => "mongodb://h/d?compressors=zlib",
        6 => "mongodb://h/d?compressors=zstd",
        _ => "mongodb://user:secret@h/d?tls=true&authMechanism=PLAIN",
    };
    let server = server::read(url, &ConnectOptions::default()).expect("these are well written");
    let mut connection = match choice & 8 {
        0 => MongoConnection::new(Arc::new(server)),
        _ => MongoConnection::scout(Arc::new(server)),
    };
    let (mut pool, mut rows) = (RowsPool::default(), Rows::default());
    rows.begin_set(1);
    rows.push_int(1);
    let statement = StatementId(7);
    let operations = [
        Operation::Query { text: br#"{"find": "t"}"#, rows: RowsWanted::Keep },
        Operation::Prepare {
            statement,
            text: br#"{"find": "t", "filter": {"a": ?}, "projection": {"a": 1, "b.c": 1}}"#,
        },
        Operation::Execute { statement, parameters: &[Value::Int(1)], rows: RowsWanted::Keep },
        Operation::Execute { statement, parameters: &[Value::Text(b"a")], rows: RowsWanted::Count },
        Operation::Query { text: br#"{"serverStatus": 1}"#, rows: RowsWanted::Keep },
        Operation::Query { text: br#"{"distinct": "t", "key": "a"}"#, rows: RowsWanted::Keep },
        Operation::Query { text: br#"{"findAndModify": "t"}"#, rows: RowsWanted::Keep },
        Operation::Load { table: b"t", columns: b"a", rows: &rows, frozen: false },
        Operation::Close { statement },
    ];
    let mut next = operations.iter().cycle();
    let mut out = Vec::new();
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    connect(&mut connection, &mut exchange);
    for bytes in data.chunks(usize::from(*piece).max(1)) {
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
                Progress::Failed(_) => {
                    connection.on_closed();
                    connect(&mut connection, &mut exchange);
                    break;
                }
                _ => break,
            }
        }
    }
}

fn connect(connection: &mut MongoConnection, exchange: &mut Exchange<'_>) {
    if let Progress::StartTls = connection.on_connected(exchange) {
        connection.on_secured(&TlsFacts::default(), exchange);
    }
}

/// As a statement: nothing may panic, and what is compiled can be written.
pub fn fuzz_statement(data: &[u8]) {
    let additions = Additions { database: "d".to_owned(), ..Additions::default() };
    if let Ok(template) = Template::new(data, &additions) {
        let parameters = vec![Value::Int(1); template.gaps()];
        // A parameter may have the wrong type.
        let _ = template.write(&parameters, &mut Vec::new(), &mut Vec::new());
    }
}
