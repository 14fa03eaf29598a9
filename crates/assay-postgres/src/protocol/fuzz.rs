//! Arbitrary bytes against the connection, in all its states.

use crate::protocol::connection::PostgresConnection;
use crate::protocol::server;
use assay_seam::{
    ConnectOptions, Connection, Exchange, Nanos, NoSurroundings, Operation, Progress, Rows, RowsPool, RowsWanted,
    StatementId, TlsFacts, Value,
};

/// A server's greeting up to ReadyForQuery.
const GREETING: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x01\0\0\0\x02Z\0\0\0\x05I";
/// The answer to a Prepare: one parameter, one column.
const PREPARED: &[u8] =
    b"3\0\0\0\x041\0\0\0\x04t\0\0\0\x0a\0\x01\0\0\0\x17T\0\0\0\x1a\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\0\0\0\0\0\0Z\0\0\0\x05I";

/// The same without columns, in an open transaction: one that can be deferred.
const UPDATE_PREPARED: &[u8] = b"3\0\0\0\x041\0\0\0\x04t\0\0\0\x0a\0\x01\0\0\0\x17n\0\0\0\x04Z\0\0\0\x05T";

/// Feeds `data` to a connection in every state: while it logs in (with and without TLS, with and without a server's own
/// proof), while it is idle, and during each kind of operation. A bug in assay panics.
///
/// The first byte of `data` determines how the rest is split.
pub fn fuzz_postgres(data: &[u8]) {
    let Some((&size, data)) = data.split_first() else { return };
    let size = usize::from(size) + 1;
    let mut load = Rows::default();
    load.begin_set(2);
    load.push_null();
    load.push_text(b"a\tb").expect("three bytes fit");
    let (id, unknown) = (StatementId(7), StatementId(8));
    let operations = [
        Operation::Query { text: b"SELECT 1", rows: RowsWanted::Keep },
        Operation::Execute { statement: id, parameters: &[Value::Int(1)], rows: RowsWanted::Keep },
        Operation::Prepare { statement: id, text: b"SELECT ?" },
        Operation::Load { table: b"t", columns: b"a,b", rows: &load, frozen: false },
        Operation::Close { statement: id },
        Operation::Execute { statement: unknown, parameters: &[], rows: RowsWanted::Keep },
    ];
    for mode in ["disable", "prefer", "allow", "require"] {
        // Login, then whatever the bytes lead to.
        run(mode, size, &[data], &operations);
        run(mode, size, &[b"S", data], &operations);
        run(mode, size, &[b"N", data], &operations);
    }
    run("disable", size, &[GREETING, data], &[]);
    for skipped in 0..operations.len() {
        run("disable", size, &[GREETING, data], &operations[skipped..]);
        let after_prepare: Vec<_> = [operations[2]].into_iter().chain(operations[skipped..].iter().copied()).collect();
        run("disable", size, &[GREETING, PREPARED, data], &after_prepare);
    }
    let update = Operation::Prepare { statement: id, text: b"UPDATE t SET a = ?" };
    run("disable", size, &[GREETING, UPDATE_PREPARED, data], &[update, operations[1], operations[1], operations[0]]);
}

fn run(mode: &str, size: usize, parts: &[&[u8]], operations: &[Operation<'_>]) {
    let url = format!("postgres://user:secret@localhost/db?sslmode={mode}");
    let options = ConnectOptions::default();
    let server = server::read(&url, &options, &NoSurroundings).expect("the URL is right");
    let mut connection = PostgresConnection::new(server.into());
    let mut operations = operations.iter();
    let (mut out, mut pool) = (Vec::new(), RowsPool::default());
    let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
    let tls = TlsFacts { server_end_point: Some(vec![1; 32]), cipher: "TLSv1.3".into() };
    connection.on_connected(&mut exchange);
    for part in parts {
        for bytes in part.chunks(size) {
            let mut progress = connection.on_bytes(bytes, &mut exchange);
            loop {
                progress = match progress {
                    Progress::Pending | Progress::Wait(_) => break,
                    Progress::StartTls => connection.on_secured(&tls, &mut exchange),
                    Progress::Ready | Progress::Reply(_) => match operations.next() {
                        Some(operation) => {
                            connection.defer(operation);
                            connection.execute(operation, &mut exchange)
                        }
                        None => break,
                    },
                    Progress::Reconnect | Progress::Failed(_) => {
                        connection.on_closed();
                        connection.on_connected(&mut exchange)
                    }
                };
            }
            let received: usize = parts.iter().map(|part| part.len()).sum();
            assert!(connection.tail_capacity() <= 2 * received + 64, "more was kept than arrived");
            exchange.out.clear();
        }
    }
    connection.close(&mut exchange);
}
