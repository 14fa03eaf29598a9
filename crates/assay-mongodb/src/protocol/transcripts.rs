//! Conversations with a scripted server, each played whole and split at every byte.
//!
//! What real servers send is tested on FerretDB by whole commands; here are the answers that it does not give.

use std::fmt::Write;
use std::sync::Arc;

use assay_seam::{
    Cell, Class, ConnectOptions, Connection, Effect, Endpoint, Exchange, Nanos, Operation, Progress, Reply, Retry,
    Rows, RowsPool, RowsWanted, StatementId, TlsFacts, Value,
};

use super::additions::Additions;
use super::bson::{Bson, Document};
use super::compression::{self, Compressor};
use super::connection::MongoConnection;
use super::message;
use super::scram::{self, Mechanism, peer};
use super::server;
use super::shown;
use super::template::Template;

/// A connection, and the server's side of it.
struct Play {
    connection: MongoConnection,
    out: Vec<u8>,
    pool: RowsPool,
    /// Where everything that the server sends is split in two.
    cut: usize,
    sent: usize,
    /// How the server compresses what it sends.
    compressor: Option<Compressor>,
}

const HELLO: &str = r#"{"isWritablePrimary": true, "maxWireVersion": 21, "ok": 1}"#;
const BUILD: &str = r#"{"version": "7.0.1", "ok": 1}"#;

impl Play {
    fn new(url: &str, session_sql: &[&str], cut: usize) -> Play {
        let session_sql = session_sql.iter().map(|text| (*text).to_owned()).collect();
        let options = ConnectOptions { session_sql, ..ConnectOptions::default() };
        let connection = MongoConnection::new(Arc::new(server::read(url, &options).unwrap()));
        Play { connection, out: Vec::new(), pool: RowsPool::default(), cut, sent: 0, compressor: None }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut MongoConnection, &mut Exchange<'_>) -> T) -> T {
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now: Nanos::ZERO };
        act(&mut self.connection, &mut exchange)
    }

    /// The message that the client sent: request number and command. It must be the only one.
    fn asked(&mut self) -> (u32, String) {
        let message = std::mem::take(&mut self.out);
        let word = |at: usize| u32::from_le_bytes(message[at..at + 4].try_into().unwrap());
        assert_eq!((word(0) as usize, word(12), word(16), message[20]), (message.len(), 2013, 0, 0));
        let (command, mut rest) = Document::read(&message[21..]).unwrap();
        let mut text = Vec::new();
        shown::document(command, &mut text).unwrap();
        if let [1, section @ ..] = rest {
            let length = u32::from_le_bytes(section[..4].try_into().unwrap()) as usize;
            assert_eq!(length, section.len());
            let end = section[4..].iter().position(|byte| *byte == 0).unwrap();
            text.push(b' ');
            text.extend_from_slice(&section[4..4 + end]);
            rest = &section[5 + end..];
            while !rest.is_empty() {
                let (document, after) = Document::read(rest).unwrap();
                text.push(b' ');
                shown::document(document, &mut text).unwrap();
                rest = after;
            }
        }
        assert!(rest.is_empty());
        (word(4), String::from_utf8(text).unwrap())
    }

    /// The server answers this request with a document in extended JSON.
    fn answer_to(&mut self, request: u32, reply: &str) -> Progress {
        let mut bytes = Vec::new();
        message::write(0, &mut bytes, |out| out.extend_from_slice(&bson(reply)));
        bytes[8..12].copy_from_slice(&request.to_le_bytes());
        if let Some(compressor) = self.compressor {
            compression::compress(compressor, 0, &mut bytes);
        }
        let at = self.cut.checked_sub(self.sent).filter(|at| (1..bytes.len()).contains(at));
        self.sent += bytes.len();
        match at {
            None => self.with(|connection, exchange| connection.on_bytes(&bytes, exchange)),
            Some(at) => {
                let progress = self.with(|connection, exchange| connection.on_bytes(&bytes[..at], exchange));
                assert!(matches!(progress, Progress::Pending), "half a message is no answer");
                self.with(|connection, exchange| connection.on_bytes(&bytes[at..], exchange))
            }
        }
    }

    /// The client sent this command, which is answered.
    fn answer(&mut self, command: &str, reply: &str) -> Progress {
        let (request, asked) = self.asked();
        assert_eq!(asked, command);
        self.answer_to(request, reply)
    }

    /// Without a user.
    fn log_in(&mut self) {
        self.with(|connection, exchange| connection.on_connected(exchange));
        let (request, hello) = self.asked();
        assert!(hello.starts_with(r#"{"hello":1,"helloOk":true,"client":{"application":{"name":"assay"}"#), "{hello}");
        assert!(matches!(self.answer_to(request, HELLO), Progress::Pending));
        assert!(matches!(self.answer(r#"{"buildInfo":1,"$db":"admin"}"#, BUILD), Progress::Ready));
    }

    fn query(&mut self, text: &str) -> Progress {
        let operation = Operation::Query { text: text.as_bytes(), rows: RowsWanted::Keep };
        self.with(|connection, exchange| connection.execute(&operation, exchange))
    }
}

fn bson(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    // `$db` at its end does no harm.
    let template = Template::new(text.as_bytes(), &Additions::default()).unwrap();
    template.write(&[], &mut Vec::new(), &mut out).unwrap();
    out
}

fn show(progress: Progress) -> String {
    match progress {
        Progress::Reply(reply) => show_reply(&reply),
        Progress::Failed(error) => format!("failed: {error} {} {:?}", error.class, error.retry),
        other => format!("{other:?}"),
    }
}

fn show_reply(reply: &Reply) -> String {
    let mut text = format!("affected {}", reply.affected);
    if let Some(rows) = &reply.rows {
        write!(text, " rows {}", rows.len(0)).unwrap();
        for row in 0..rows.len(0).min(9) {
            let cells = (0..rows.columns(0)).map(|column| match rows.cell(0, row, column).unwrap() {
                Cell::Null => "NULL".to_string(),
                Cell::Text(text) => String::from_utf8_lossy(text).into_owned(),
                Cell::Int(value) => value.to_string(),
                Cell::Double(value) => format!("{value:?}"),
            });
            write!(text, " ({})", cells.collect::<Vec<_>>().join(",")).unwrap();
        }
    }
    if let Some(error) = &reply.error {
        write!(text, " error {error} {} {:?}", error.class, error.retry).unwrap();
    }
    text
}

/// Plays a conversation whole, and split at each byte that the server sends.
fn at_every_byte(play: impl Fn(usize) -> usize) {
    let sent = play(usize::MAX);
    assert!(sent > 0);
    (1..sent).for_each(|cut| assert_eq!(play(cut), sent));
}

#[test]
fn a_cursor_is_read_to_its_end() {
    at_every_byte(|cut| {
        let mut play = Play::new("mongodb://h/d", &[], cut);
        play.log_in();
        assert!(matches!(play.query(r#"{"find": "t", "projection": {"a": 1, "_id": 0}}"#), Progress::Pending));
        let first =
            r#"{"cursor": {"firstBatch": [{"a": 1}, {"b": 2}], "id": {"$numberLong": "77"}, "ns": "d.t.u"}, "ok": 1}"#;
        let find = r#"{"find":"t","projection":{"a":1,"_id":0},"$db":"d"}"#;
        assert!(matches!(play.answer(find, first), Progress::Pending));
        let next = r#"{"cursor": {"nextBatch": [{"a": "x"}], "id": {"$numberLong": "0"}, "ns": "d.t.u"}, "ok": 1}"#;
        let progress = play.answer(r#"{"getMore":77,"collection":"t.u","$db":"d"}"#, next);
        assert_eq!(show(progress), "affected 0 rows 3 (1) (NULL) (x)");
        play.sent
    });
}

#[test]
fn statements_are_prepared_here_and_survive_a_reconnect() {
    let mut play = Play::new("mongodb://h/d?w=majority&journal=true", &[], usize::MAX);
    play.log_in();
    let statement = StatementId(3);
    let text = br#"{"update": "t", "updates": [{"u": {"$set": {"a": ?}}, "q": {"_id": ?}}]}"#;
    let prepared = play.with(|it, exchange| it.execute(&Operation::Prepare { statement, text }, exchange));
    assert_eq!(show(prepared), "affected 0");
    for _ in 0..2 {
        let parameters = [Value::Text(b"x"), Value::Int(7)];
        let execute = Operation::Execute { statement, parameters: &parameters, rows: RowsWanted::Keep };
        assert!(matches!(play.with(|it, exchange| it.execute(&execute, exchange)), Progress::Pending));
        assert_eq!(play.connection.effect(), Effect::ChangesRows);
        let sent = r#"{"update":"t","updates":[{"u":{"$set":{"a":"x"}},"q":{"_id":7}}],"writeConcern":{"w":"majority","j":true},"$db":"d"}"#;
        assert_eq!(show(play.answer(sent, r#"{"n": 1, "nModified": 0, "ok": 1}"#)), "affected 1");
        play.connection.on_closed();
        // The version is known by now.
        play.with(|connection, exchange| connection.on_connected(exchange));
        let (request, _) = play.asked();
        assert!(matches!(play.answer_to(request, HELLO), Progress::Ready));
    }
    let few = Operation::Execute { statement, parameters: &[], rows: RowsWanted::Keep };
    assert!(show(play.with(|it, exchange| it.execute(&few, exchange))).contains("2 placeholders, 0 parameters"));
    play.with(|it, exchange| it.execute(&Operation::Close { statement }, exchange));
    assert!(show(play.with(|it, exchange| it.execute(&few, exchange))).contains("no prepared statement 3"));
    assert!(play.out.is_empty());
}

#[test]
fn each_kind_of_reply_becomes_rows_or_a_number() {
    let mut play = Play::new("mongodb://h/d", &[], usize::MAX);
    play.log_in();
    for (text, reply, expected) in [
        (r#"{"insert": "t", "documents": [{}]}"#, r#"{"n": 1, "ok": 1}"#, "affected 1"),
        (r#"{"count": "t"}"#, r#"{"n": 5, "ok": 1}"#, "affected 0 rows 1 (5)"),
        (r#"{"distinct": "t", "key": "a"}"#, r#"{"values": [1, "b"], "ok": 1}"#, "affected 0 rows 2 (1) (b)"),
        (
            r#"{"findAndModify": "t", "fields": {"a": 1}}"#,
            r#"{"value": {"a": 9}, "lastErrorObject": {"n": 1}, "ok": 1}"#,
            "affected 1 rows 1 (9)",
        ),
        (r#"{"findAndModify": "t"}"#, r#"{"value": null, "lastErrorObject": {"n": 0}, "ok": 1}"#, "affected 0 rows 0"),
        (
            r#"{"serverStatus": 1}"#,
            r#"{"opcounters": {"insert": 3}, "ok": 1}"#,
            "affected 0 rows 2 (opcounters.insert,3) ($db,)",
        ),
        (
            r#"{"find": "t"}"#,
            r#"{"cursor": {"firstBatch": [{"a": [1]}], "id": 0, "ns": "d.t"}, "ok": 1}"#,
            r#"affected 0 rows 1 ({"a":[1]})"#,
        ),
        (
            r#"{"insert": "t", "documents": [{}, {}]}"#,
            r#"{"n": 1, "writeErrors": [{"index": 1, "code": 11000, "errmsg": "E11000"}], "ok": 1}"#,
            "affected 1 error server: E11000 (11000) constraint Never",
        ),
    ] {
        assert!(matches!(play.query(text), Progress::Pending), "{text}");
        let (request, _) = play.asked();
        assert_eq!(show(play.answer_to(request, reply)), expected, "{text}");
    }
    let refused = show(play.query("SELECT 1"));
    assert!(refused.contains("a statement for MongoDB is a command in JSON"), "{refused}");
    assert!(show(play.query(r#"{"find": ?}"#)).contains("1 placeholders, and is executed without parameters"));
    assert!(play.out.is_empty());
}

#[test]
fn a_server_that_is_no_longer_the_primary_is_left() {
    for (code, effect) in [(10107, Effect::Reads), (189, Effect::ChangesRows)] {
        let mut play = Play::new("mongodb://a,b/d", &[], usize::MAX);
        play.log_in();
        play.query(r#"{"insert": "t", "documents": [{}]}"#);
        let (request, _) = play.asked();
        let progress = play.answer_to(request, &format!(r#"{{"ok": 0, "code": {code}, "errmsg": "x"}}"#));
        let Progress::Failed(error) = progress else { panic!("{progress:?}") };
        assert_eq!((error.class, error.retry), (Class::Connection, Retry::Reconnect));
        assert_eq!(play.connection.effect(), effect, "whether the write may have been done");
    }
}

#[test]
fn only_servers_that_suit_are_used() {
    let with = |url: &str, hello: &str| {
        let mut play = Play::new(url, &[], usize::MAX);
        play.with(|connection, exchange| connection.on_connected(exchange));
        let (request, _) = play.asked();
        show(play.answer_to(request, hello))
    };
    let secondary = r#"{"isWritablePrimary": false, "secondary": true, "setName": "rs", "primary": "b:1", "maxWireVersion": 21, "ok": 1}"#;
    assert_eq!(
        with("mongodb://a,b/d", secondary),
        "failed: server: the server is not the primary of its replica set; the primary is b:1 (no code) connection Reconnect"
    );
    assert_eq!(with("mongodb://a/d?readPreference=secondary", secondary), "Pending");
    assert_eq!(with("mongodb://a/d?directConnection=true", secondary), "Pending");
    assert_eq!(
        with("mongodb://a/d?readPreference=secondary", HELLO),
        "failed: server: the server is not a secondary of its replica set (no code) connection Reconnect"
    );
    assert_eq!(with("mongodb://a/d", r#"{"msg": "isdbgrid", "maxWireVersion": 21, "ok": 1}"#), "Pending");
    assert_eq!(
        with("mongodb://a/d?replicaSet=other", secondary),
        "failed: client: the server is in the replica set rs, and not in other (no code) other Never"
    );
    assert_eq!(
        with("mongodb://a/d", r#"{"isWritablePrimary": true, "maxWireVersion": 4, "ok": 1}"#),
        "failed: client: the server is too old: its protocol has version 4, and 6 is needed (no code) protocol Never"
    );
}

#[test]
fn a_scout_learns_of_all_members_from_any_of_them() {
    let members = |url: &str, hello: &str, cut| {
        let mut play = Play::new(url, &["{\"ping\": 1}"], cut);
        let server = Arc::new(server::read(url, &ConnectOptions::default()).unwrap());
        play.connection = MongoConnection::scout(server);
        play.with(|connection, exchange| connection.on_connected(exchange));
        let (request, asked) = play.asked();
        assert!(!asked.contains("speculativeAuthenticate"), "{asked}");
        assert!(matches!(play.answer_to(request, hello), Progress::Ready));
        assert!(play.out.is_empty(), "it does not log in");
        let names = play.connection.members().into_iter().map(|member| match member {
            Endpoint::Tcp { host, port } => format!("{host}:{port}"),
            other => panic!("{other:?}"),
        });
        (names.collect::<Vec<_>>(), play.sent)
    };
    let secondary = r#"{"isWritablePrimary": false, "secondary": true, "setName": "rs", "hosts": ["a:1", "b", 7, "/x"], "passives": ["[::1]:3"], "arbiters": ["c:4"], "maxWireVersion": 21, "ok": 1}"#;
    at_every_byte(|cut| {
        let (found, sent) = members("mongodb://me:secret@a/d", secondary, cut);
        assert_eq!(found, ["a:1", "b:27017", "::1:3"]);
        sent
    });
    assert_eq!(members("mongodb://a/d?replicaSet=other", secondary, usize::MAX).0, [""; 0]);
    assert_eq!(members("mongodb://a/d", HELLO, usize::MAX).0, [""; 0]);
}

/// The text of a binary field `payload` in a message that was sent.
fn payload(message: &[u8], within: Option<&str>) -> String {
    let (mut document, _) = Document::read(&message[21..]).unwrap();
    if let Some(name) = within {
        document = document.inner(name).unwrap();
    }
    match document.get("payload").unwrap() {
        Some(Bson::Binary { bytes, .. }) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn binary(text: &str) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(text);
    format!(r#"{{"$binary": {{"base64": "{text}", "subType": "00"}}}}"#)
}

/// How a login by SCRAM ends, at a server that knows this password by this mechanism. `speculates`: it answers the
/// proof in `hello`; `ends`: its proof is its last message.
fn scram(url: &str, mechanism: Mechanism, password: &str, speculates: bool, ends: bool, cut: usize) -> (String, usize) {
    let mut play = Play::new(url, &[], cut);
    play.with(|connection, exchange| connection.on_connected(exchange));
    let prepared = scram::prepared(mechanism, "user", password).unwrap();
    let mut hello = play.out.clone();
    let (mut request, _) = play.asked();
    let mechanisms = format!(r#""saslSupportedMechs": ["{}"]"#, mechanism.name());
    if !speculates {
        let reply = format!(r#"{{"isWritablePrimary": true, "maxWireVersion": 21, {mechanisms}, "ok": 1}}"#);
        assert!(matches!(play.answer_to(request, &reply), Progress::Pending));
        hello = play.out.clone();
        let asked;
        (request, asked) = play.asked();
        assert!(asked.starts_with(&format!(r#"{{"saslStart":1,"mechanism":"{}""#, mechanism.name())), "{asked}");
    }
    let client_first = payload(&hello, speculates.then_some("speculativeAuthenticate"));
    let server_first = peer::first(&client_first);
    let inner = format!(r#""conversationId": 5, "done": false, "payload": {}"#, binary(&server_first));
    let reply = match speculates {
        true => format!(
            r#"{{"isWritablePrimary": true, "maxWireVersion": 21, {mechanisms}, "speculativeAuthenticate": {{{inner}}}, "ok": 1}}"#
        ),
        false => format!(r#"{{{inner}, "ok": 1}}"#),
    };
    assert!(matches!(play.answer_to(request, &reply), Progress::Pending));
    let client_last = payload(&play.out, None);
    let (request, asked) = play.asked();
    assert!(asked.starts_with(r#"{"saslContinue":1,"conversationId":5,"#), "{asked}");
    let messages = [client_first.as_str(), &server_first, &client_last];
    let Some(proof) = peer::last(mechanism, &prepared, messages) else {
        let refused =
            r#"{"ok": 0, "code": 18, "codeName": "AuthenticationFailed", "errmsg": "Authentication failed."}"#;
        return (show(play.answer_to(request, refused)), play.sent);
    };
    let last = |done: bool, text: &str| {
        format!(r#"{{"conversationId": 5, "done": {done}, "payload": {}, "ok": 1}}"#, binary(text))
    };
    let mut progress = play.answer_to(request, &last(ends, &proof));
    if !ends {
        assert!(matches!(progress, Progress::Pending));
        let (request, _) = play.asked();
        progress = play.answer_to(request, &last(true, ""));
    }
    assert!(matches!(progress, Progress::Pending));
    (show(play.answer(r#"{"buildInfo":1,"$db":"admin"}"#, BUILD)), play.sent)
}

#[test]
fn users_log_in_by_scram() {
    let url = "mongodb://user:pencil@h/d?authSource=admin";
    for mechanism in [Mechanism::Sha1, Mechanism::Sha256] {
        for ends in [true, false] {
            let found = scram(url, mechanism, "pencil", false, ends, usize::MAX);
            assert_eq!(found.0, "Ready");
            let named = format!("{url}&authMechanism={}", mechanism.name());
            assert_eq!(scram(&named, mechanism, "pencil", true, ends, usize::MAX).0, "Ready");
        }
    }
    let refused = scram(url, Mechanism::Sha256, "other", true, true, usize::MAX).0;
    assert_eq!(refused, "failed: server: Authentication failed. (18) authentication Never");
    // Few cuts, because each costs two expensive hashes.
    let (_, sent) = scram(url, Mechanism::Sha256, "pencil", true, true, usize::MAX);
    for cut in (1..sent).step_by(7) {
        assert_eq!(scram(url, Mechanism::Sha256, "pencil", true, true, cut).0, "Ready", "{cut}");
    }
}

#[test]
fn a_server_that_does_not_prove_itself_is_refused() {
    let mut play = Play::new("mongodb://user:pencil@h/d", &[], usize::MAX);
    play.with(|connection, exchange| connection.on_connected(exchange));
    let hello = play.out.clone();
    let (request, _) = play.asked();
    let first = peer::first(&payload(&hello, Some("speculativeAuthenticate")));
    let reply = format!(
        r#"{{"isWritablePrimary": true, "maxWireVersion": 21, "speculativeAuthenticate": {{"conversationId": 1, "done": false, "payload": {}}}, "ok": 1}}"#,
        binary(&first)
    );
    play.answer_to(request, &reply);
    let (request, _) = play.asked();
    let proof = format!(r#"{{"conversationId": 1, "done": true, "payload": {}, "ok": 1}}"#, binary("v=AAAA"));
    assert_eq!(
        show(play.answer_to(request, &proof)),
        "failed: client: the server does not prove that it knows the password (no code) authentication Never"
    );
}

#[test]
fn plain_passwords_and_certificates_are_used_over_tls() {
    let log_in = |url: &str| {
        let mut play = Play::new(url, &[], usize::MAX);
        assert!(matches!(play.with(|it, exchange| it.on_connected(exchange)), Progress::StartTls));
        let tls = TlsFacts { server_end_point: None, cipher: "TLS".into() };
        play.with(|it, exchange| it.on_secured(&tls, exchange));
        let (request, _) = play.asked();
        play.answer_to(request, HELLO);
        let (request, asked) = play.asked();
        play.answer_to(request, r#"{"done": true, "ok": 1}"#);
        assert!(matches!(play.answer(r#"{"buildInfo":1,"$db":"admin"}"#, BUILD), Progress::Ready));
        assert_eq!(play.connection.server().tls.as_deref(), Some("TLS"));
        asked
    };
    assert_eq!(
        log_in("mongodb://user:secret@h/d?tls=true&authMechanism=PLAIN"),
        r#"{"saslStart":1,"mechanism":"PLAIN","payload":{"$binary":{"base64":"AHVzZXIAc2VjcmV0","subType":"00"}},"options":{"skipEmptyExchange":true},"$db":"$external"}"#
    );
    assert_eq!(
        log_in("mongodb://h/d?tls=true&authMechanism=MONGODB-X509&tlsCertificateKeyFile=/me.pem"),
        r#"{"authenticate":1,"mechanism":"MONGODB-X509","$db":"$external"}"#
    );
}

#[test]
fn rows_are_loaded_as_documents_in_as_many_messages_as_it_takes() {
    let mut play = Play::new("mongodb://h/d", &[], usize::MAX);
    play.with(|connection, exchange| connection.on_connected(exchange));
    let (request, _) = play.asked();
    play.answer_to(request, r#"{"isWritablePrimary": true, "maxWireVersion": 21, "maxWriteBatchSize": 2, "ok": 1}"#);
    play.answer(r#"{"buildInfo":1,"$db":"admin"}"#, BUILD);
    let mut rows = Rows::default();
    rows.begin_set(2);
    for n in 0..3 {
        rows.push_int(n);
        if n == 1 { rows.push_null() } else { rows.push_text(b"x").unwrap() }
    }
    let load = Operation::Load { table: b"t", columns: b"_id, a", rows: &rows, frozen: false };
    assert!(matches!(play.with(|it, exchange| it.execute(&load, exchange)), Progress::Pending));
    assert!(!play.connection.has_sent_rows());
    let first = r#"{"insert":"t","ordered":true,"$db":"d"} documents {"_id":0,"a":"x"} {"_id":1}"#;
    assert!(matches!(play.answer(first, r#"{"n": 2, "ok": 1}"#), Progress::Pending));
    assert!(play.connection.has_sent_rows());
    let second = r#"{"insert":"t","ordered":true,"$db":"d"} documents {"_id":2,"a":"x"}"#;
    assert_eq!(show(play.answer(second, r#"{"n": 1, "ok": 1}"#)), "affected 3");
    let narrow = Operation::Load { table: b"t", columns: b"a", rows: &rows, frozen: false };
    let refused = show(play.with(|it, exchange| it.execute(&narrow, exchange)));
    assert!(refused.contains("1 fields are named, and the rows have 2 values"), "{refused}");
}

#[test]
fn statements_of_the_session_run_before_it_is_ready() {
    let ping = r#"{"ping": 1}"#;
    let mut play = Play::new("mongodb://h/d", &[ping, ping], usize::MAX);
    play.with(|connection, exchange| connection.on_connected(exchange));
    let (request, _) = play.asked();
    play.answer_to(request, HELLO);
    assert!(matches!(play.answer(r#"{"buildInfo":1,"$db":"admin"}"#, BUILD), Progress::Pending));
    assert!(matches!(play.answer(r#"{"ping":1,"$db":"d"}"#, r#"{"ok": 1}"#), Progress::Pending));
    assert!(matches!(play.answer(r#"{"ping":1,"$db":"d"}"#, r#"{"ok": 1}"#), Progress::Ready));
    let mut play = Play::new("mongodb://h/d", &["SELECT 1"], usize::MAX);
    play.with(|connection, exchange| connection.on_connected(exchange));
    let (request, _) = play.asked();
    play.answer_to(request, HELLO);
    let (request, _) = play.asked();
    assert!(show(play.answer_to(request, BUILD)).starts_with("failed: client: a statement for MongoDB"));
}

#[test]
fn ferretdb_says_what_it_is() {
    let mut play = Play::new("mongodb://h/d", &[], usize::MAX);
    play.with(|connection, exchange| connection.on_connected(exchange));
    let (request, _) = play.asked();
    play.answer_to(request, HELLO);
    let (request, _) = play.asked();
    play.answer_to(request, r#"{"version": "7.0.42", "ferretdbVersion": "v1.24.2", "ok": 1}"#);
    let facts = play.connection.server();
    assert_eq!((&*facts.product, &*facts.version), ("FerretDB", "1.24.2 (as MongoDB 7.0.42)"));
}

#[test]
fn older_servers_are_greeted_by_the_name_that_they_know() {
    let mut play = Play::new("mongodb://h/d", &[], usize::MAX);
    play.with(|connection, exchange| connection.on_connected(exchange));
    let unknown = r#"{"ok": 0, "code": 59, "codeName": "CommandNotFound", "errmsg": "no such command: 'hello'"}"#;
    let (request, _) = play.asked();
    assert!(matches!(play.answer_to(request, unknown), Progress::Pending));
    let (request, asked) = play.asked();
    assert!(asked.starts_with(r#"{"isMaster":1,"helloOk":true,"client""#), "{asked}");
    play.answer_to(request, r#"{"ismaster": true, "maxWireVersion": 8, "ok": 1}"#);
    assert!(matches!(play.answer(r#"{"buildInfo":1,"$db":"admin"}"#, BUILD), Progress::Ready));
    // Neither is known.
    play.connection.on_closed();
    play.with(|connection, exchange| connection.on_connected(exchange));
    let (request, _) = play.asked();
    play.answer_to(request, unknown);
    let (request, _) = play.asked();
    assert!(show(play.answer_to(request, unknown)).starts_with("failed: server: no such command"));
}

#[test]
fn messages_are_compressed_once_that_was_agreed() {
    for (name, compressor) in
        [("snappy", Compressor::Snappy), ("zlib", Compressor::Zlib(6)), ("zstd", Compressor::Zstd)]
    {
        at_every_byte(|cut| {
            let mut play = Play::new(&format!("mongodb://h/d?compressors={name}"), &[], cut);
            play.with(|connection, exchange| connection.on_connected(exchange));
            let (request, hello) = play.asked();
            assert!(hello.contains(&format!(r#""compression":["{name}"]"#)), "{hello}");
            let offers = r#"{"isWritablePrimary": true, "maxWireVersion": 21, "compression": ["snappy", "zlib", "zstd"], "ok": 1}"#;
            play.answer_to(request, offers);
            assert!(matches!(play.answer(r#"{"buildInfo":1,"$db":"admin"}"#, BUILD), Progress::Ready));
            for _ in 0..2 {
                play.query(r#"{"find": "t", "projection": {"a": 1}}"#);
                let mut sent = Vec::new();
                compression::decompress(compressor, &play.out, &mut sent).unwrap();
                play.out = sent;
                let (request, asked) = play.asked();
                assert_eq!(asked, r#"{"find":"t","projection":{"a":1},"$db":"d"}"#);
                play.compressor = Some(compressor);
                let rows = r#"{"cursor": {"firstBatch": [{"a": 1}, {"a": "xxxxxxxxxxxxxxxx"}], "id": 0, "ns": "d.t"}, "ok": 1}"#;
                assert_eq!(show(play.answer_to(request, rows)), "affected 0 rows 2 (1) (xxxxxxxxxxxxxxxx)");
            }
            // Passwords are not compressed.
            play.query(r#"{"createUser": "u", "pwd": "p", "roles": []}"#);
            let (request, _) = play.asked();
            assert!(matches!(play.answer_to(request, r#"{"ok": 1}"#), Progress::Reply(_)));
            play.sent
        });
    }
}

#[test]
fn a_server_that_cannot_compress_is_refused() {
    let mut play = Play::new("mongodb://h/d?compressors=zstd,snappy", &[], usize::MAX);
    play.with(|connection, exchange| connection.on_connected(exchange));
    let (request, _) = play.asked();
    let refused = show(play.answer_to(request, HELLO));
    assert!(refused.contains("the server does not compress messages with zstd or snappy"), "{refused}");
}

#[test]
fn what_nobody_asked_for_ends_the_connection() {
    let mut play = Play::new("mongodb://h/d", &[], usize::MAX);
    play.log_in();
    assert!(show(play.answer_to(9, r#"{"ok": 1}"#)).contains("an answer that nobody asked for"));
    let mut play = Play::new("mongodb://h/d", &[], usize::MAX);
    play.log_in();
    play.query(r#"{"ping": 1}"#);
    let (request, _) = play.asked();
    assert!(show(play.answer_to(request + 1, r#"{"ok": 1}"#)).contains("another request"));
}

const MEMBER: &str = r#"{"isWritablePrimary": true, "setName": "rs", "logicalSessionTimeoutMinutes": 30, "maxWireVersion": 21, "ok": 1}"#;

impl Play {
    /// To a member of a replica set.
    fn log_in_to_a_member(&mut self) {
        self.with(|connection, exchange| connection.on_connected(exchange));
        let (request, _) = self.asked();
        assert!(matches!(self.answer_to(request, MEMBER), Progress::Pending));
        assert!(matches!(self.answer(r#"{"buildInfo":1,"$db":"admin"}"#, BUILD), Progress::Ready));
    }

    /// The client sent this command, with the elements of a transaction in place of `TX`, which is answered.
    fn answer_within(&mut self, command: &str, reply: &str) -> Progress {
        let (request, mut asked) = self.asked();
        let begin = r#""lsid":{"id":{"$binary":{"base64":""#;
        let at = asked.find(begin).expect("a session") + begin.len();
        asked.replace_range(at..at + 24, "*");
        let elements = r#""lsid":{"id":{"$binary":{"base64":"*","subType":"04"}}},"txnNumber""#;
        assert_eq!(asked.replace(elements, "TX").replace(r#","autocommit":false"#, ""), command);
        self.answer_to(request, reply)
    }

    fn is_open(&self) -> bool {
        self.connection.in_transaction()
    }
}

const START: &str = r#"{"startTransaction": 1}"#;
const COMMIT: &str = r#"{"commitTransaction": 1}"#;
const INSERT: &str = r#"{"insert": "t", "documents": [{"_id": 1}]}"#;
const INSERTED: &str = r#"{"n": 1, "ok": 1}"#;
/// An answer to a command of a transaction that the server has ended.
const GONE: &str = r#"{"ok": 0, "code": 251, "codeName": "NoSuchTransaction", "errmsg": "gone", "errorLabels": ["TransientTransactionError"]}"#;

#[test]
fn what_a_transaction_does_travels_with_its_number() {
    at_every_byte(|cut| {
        let mut play = Play::new("mongodb://h/d?w=majority&readConcernLevel=majority", &[], cut);
        play.log_in_to_a_member();
        for number in 1..=2 {
            assert_eq!(show(play.query(START)), "affected 0");
            assert!(play.is_open() && play.out.is_empty());
            play.query(r#"{"find": "t", "batchSize": 1}"#);
            let first = format!(
                r#"{{"find":"t","batchSize":1,"$db":"d",TX:{number},"startTransaction":true,"readConcern":{{"level":"majority"}}}}"#
            );
            let batch = r#"{"cursor": {"firstBatch": [{"a": 1}], "id": 7, "ns": "d.t"}, "ok": 1}"#;
            assert!(matches!(play.answer_within(&first, batch), Progress::Pending));
            let more = format!(r#"{{"getMore":7,"collection":"t","$db":"d",TX:{number}}}"#);
            play.answer_within(&more, r#"{"cursor": {"nextBatch": [], "id": 0, "ns": "d.t"}, "ok": 1}"#);
            play.query(INSERT);
            let insert = format!(r#"{{"insert":"t","documents":[{{"_id":1}}],"$db":"d",TX:{number}}}"#);
            assert_eq!(show(play.answer_within(&insert, INSERTED)), "affected 1");
            let mut rows = Rows::default();
            rows.begin_set(1);
            rows.push_int(5);
            let load = Operation::Load { table: b"t", columns: b"_id", rows: &rows, frozen: false };
            play.with(|it, exchange| it.execute(&load, exchange));
            let load = format!(r#"{{"insert":"t","ordered":true,"$db":"d",TX:{number}}} documents {{"_id":5}}"#);
            assert_eq!(show(play.answer_within(&load, INSERTED)), "affected 1");
            play.query(COMMIT);
            assert_eq!(play.connection.effect(), Effect::Commits);
            let commit =
                format!(r#"{{"commitTransaction":1,"$db":"admin",TX:{number},"writeConcern":{{"w":"majority"}}}}"#);
            assert_eq!(show(play.answer_within(&commit, r#"{"ok": 1}"#)), "affected 0");
            assert!(!play.is_open());
        }
        play.query(INSERT);
        let outside = r#"{"insert":"t","documents":[{"_id":1}],"writeConcern":{"w":"majority"},"$db":"d"}"#;
        assert_eq!(show(play.answer(outside, INSERTED)), "affected 1");
        play.sent
    });
}

#[test]
fn a_transaction_that_fails_is_open_until_it_is_rolled_back() {
    let mut play = Play::new("mongodb://h/d", &[], usize::MAX);
    play.log_in_to_a_member();
    play.query(START);
    play.query(INSERT);
    let conflict = r#"{"ok": 0, "code": 112, "errmsg": "WriteConflict", "errorLabels": ["TransientTransactionError"]}"#;
    let (request, _) = play.asked();
    assert_eq!(
        show(play.answer_to(request, conflict)),
        "affected 0 error server: WriteConflict (112) serialization AfterBackoff"
    );
    assert!(play.is_open());
    assert!(show(play.query(START)).contains("a transaction is open already"));
    assert!(matches!(play.with(|it, exchange| it.execute(&Operation::RollBack, exchange)), Progress::Pending));
    // The error has ended it.
    assert_eq!(show(play.answer_within(r#"{"abortTransaction":1,"$db":"admin",TX:1}"#, GONE)), "affected 0");
    assert!(!play.is_open());
    // One that the server has ended meanwhile.
    play.query(START);
    play.query(INSERT);
    let (request, _) = play.asked();
    play.answer_to(request, INSERTED);
    play.query(COMMIT);
    let (request, _) = play.asked();
    assert_eq!(show(play.answer_to(request, GONE)), "affected 0 error server: gone (251) serialization AfterBackoff");
    assert!(!play.is_open());
}

#[test]
fn a_transaction_without_commands_needs_no_message() {
    let mut play = Play::new("mongodb://h/d", &[], usize::MAX);
    play.log_in_to_a_member();
    for end in [COMMIT, r#"{"abortTransaction": 1}"#] {
        play.query(START);
        assert_eq!(show(play.query(end)), "affected 0");
        assert!(!play.is_open() && play.out.is_empty());
    }
    assert!(show(play.query(COMMIT)).contains("there is no transaction to commit"));
    play.query(START);
    assert_eq!(show(play.with(|it, exchange| it.execute(&Operation::RollBack, exchange))), "affected 0");
    assert!(!play.is_open() && play.out.is_empty());
}

#[test]
fn a_commit_may_be_in_doubt() {
    for (reply, in_doubt) in [
        (r#"{"ok": 0, "code": 50, "errmsg": "x"}"#, true),
        (r#"{"ok": 0, "code": 11602, "errmsg": "x", "errorLabels": ["UnknownTransactionCommitResult"]}"#, true),
        (r#"{"ok": 0, "code": 64, "errmsg": "x", "errorLabels": ["UnknownTransactionCommitResult"]}"#, true),
        (r#"{"ok": 0, "code": 8, "errmsg": "x"}"#, false),
        (r#"{"ok": 1, "writeConcernError": {"code": 64, "errmsg": "x"}}"#, false),
    ] {
        let mut play = Play::new("mongodb://h/d", &[], usize::MAX);
        play.log_in_to_a_member();
        play.query(START);
        play.query(INSERT);
        let (request, _) = play.asked();
        play.answer_to(request, INSERTED);
        play.query(COMMIT);
        let (request, _) = play.asked();
        match play.answer_to(request, reply) {
            Progress::Failed(error) if in_doubt => {
                assert!(error.message.starts_with("whether the transaction was committed is not known"), "{error}");
                assert_eq!((error.class, play.connection.effect()), (Class::Connection, Effect::Commits));
            }
            Progress::Reply(reply) if !in_doubt => {
                assert!(reply.error.is_some() && !play.is_open());
            }
            other => panic!("{reply}: {other:?}"),
        }
    }
}

#[test]
fn a_server_without_transactions_is_told_apart() {
    let mut play = Play::new("mongodb://h/d", &[], usize::MAX);
    play.log_in();
    assert!(show(play.query(START)).contains("this server has no transactions"));
    assert!(!play.is_open());
    let mut play = Play::new("mongodb://h/d?readPreference=secondary", &[], usize::MAX);
    play.with(|connection, exchange| connection.on_connected(exchange));
    let (request, _) = play.asked();
    play.answer_to(request, r#"{"secondary": true, "setName": "rs", "maxWireVersion": 21, "ok": 1}"#);
    play.answer(r#"{"buildInfo":1,"$db":"admin"}"#, BUILD);
    assert!(show(play.query(START)).contains("transactions are executed by the primary"));
}

#[test]
fn an_execution_allocates_nothing_once_warm() {
    let mut play = Play::new("mongodb://h/d?w=1", &[], usize::MAX);
    play.log_in();
    let statement = StatementId(1);
    let text = br#"{"find": "t", "filter": {"_id": ?}, "projection": {"a": 1, "b": 1}}"#;
    play.with(|it, exchange| it.execute(&Operation::Prepare { statement, text }, exchange));
    let reply = r#"{"cursor": {"firstBatch": [{"_id": 1, "a": "text", "b": 2.5}], "id": 0, "ns": "d.t"}, "ok": 1}"#;
    let mut bytes = Vec::new();
    message::write(0, &mut bytes, |out| out.extend_from_slice(&bson(reply)));
    let mut round = || {
        let parameters = [Value::Text(b"user123")];
        let execute = Operation::Execute { statement, parameters: &parameters, rows: RowsWanted::Keep };
        play.with(|it, exchange| it.execute(&execute, exchange));
        let request: [u8; 4] = play.out[4..8].try_into().unwrap();
        bytes[8..12].copy_from_slice(&request);
        play.out.clear();
        let Progress::Reply(reply) = play.with(|it, exchange| it.on_bytes(&bytes, exchange)) else {
            panic!("no reply")
        };
        play.pool.put(reply.rows.unwrap());
    };
    round();
    round();
    assert_eq!(allocation_counter::measure(round).count_total, 0);
}
