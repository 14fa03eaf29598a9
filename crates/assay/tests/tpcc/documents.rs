//! TPC-C on documents: on FerretDB and mongo-java-server, which have no transactions, and with transactions on a
//! scripted member of a replica set.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use testkit::{FerretDb, JavaMongo};

use super::Place;
use super::common::Folder;

#[path = "../common/mongo_wire.rs"]
mod wire;

use wire::{answer, closed, element, elements, greeting_with, length, receive, text};

fn on(url: String) -> Place {
    Place { folder: Folder::new(), url, kind: None, database: String::new() }
}

/// What `check` examines, one line each.
const CONDITIONS: usize = 64;

/// The smallest tables that there can be.
const TINY: &str = "--warehouses 1 --customers 20 --items 100";

/// What the audit says of every run without transactions, on small tables.
const WITHOUT_TRANSACTIONS: [&str; 3] =
    ["new-orders on full-size tables", "not in one database transaction", "order-status at read uncommitted"];

/// The rules that failed, sorted.
fn failed(stage: &serde_json::Value) -> Vec<&str> {
    let rules = stage["audit"].as_array().unwrap().iter().filter(|rule| rule["verdict"] == "failed");
    let mut names: Vec<&str> = rules.map(|rule| rule["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_workload_lives_on_ferretdb() {
    if FerretDb::present() {
        // Its queries read whole collections, and it loses updates of sessions beside each other. A check needs a
        // minute of CPU time.
        lives(&on(FerretDb::shared().url("tpcc")), TINY, "--sessions 1 --transactions 5 --mix 1,1,1,1,1", false);
    }
}

#[test]
fn the_workload_lives_on_mongo_java_server() {
    if JavaMongo::present() {
        let tables = "--warehouses 2 --customers 60 --items 200 --sessions 2";
        lives(&on(JavaMongo::shared().url("tpcc")), tables, "--sessions 4 --transactions 300", true);
    }
}

fn lives(place: &Place, tables: &str, load: &str, checks: bool) {
    place.expect("prepare", &format!("{tables} --seed 5 --no-record"), 0);
    let again = place.expect("prepare", &format!("{tables} --no-record"), 2);
    assert!(again.stderr.contains("the TPC-C tables already exist and are complete"), "{}", again.shown());
    let without = place.expect("run", "--no-record --quiet", 4);
    assert!(without.stderr.contains("this server has no transactions"), "{}", without.shown());
    let options = format!("--skip-trx on --seed 5 --telemetry off --format json --record r.json {load}");
    let ran =
        if checks { place.expect("run", &format!("--check {options}"), 1) } else { place.expect("run", &options, 0) };
    assert!(!ran.stderr.contains("VIOLATED"), "{}", ran.shown());
    assert_eq!(ran.stderr.matches(": holds").count(), if checks { 2 * CONDITIONS } else { 0 }, "{}", ran.shown());
    let findings = ran.findings();
    let stage = &findings["stages"][0];
    // A single Order-Status says nothing about a share of 99 %.
    assert_eq!(failed(stage), WITHOUT_TRANSACTIONS[..if checks { 3 } else { 2 }], "{}", stage["audit"]);
    let compared = stage["audit"].as_array().unwrap().iter().filter(|rule| rule["name"] == "orders in the tables");
    // On a busy machine, FerretDB needs longer to read the tables than a run waits for them.
    let verdicts: &[&str] = if checks { &["passed"] } else { &["passed", "not_read"] };
    assert!(
        compared.clone().count() == 1
            && compared.clone().all(|rule| verdicts.iter().any(|one| rule["verdict"] == *one)),
        "{}",
        stage["audit"]
    );
    assert!(stage["rates"].to_string().contains("NOPM"), "{}", stage["rates"]);
    assert_eq!(stage["total"]["errors"], 0, "{}", stage["total"]);
    let record = std::fs::read_to_string(place.folder.path().join("r.json")).unwrap();
    for part in [r#""schema": "order lines in their orders""#, r#""skip_trx": true"#] {
        assert!(record.contains(part), "{part}: {}", &record[..3000.min(record.len())]);
    }
    place.expect("cleanup", "", 0);
    let nothing = place.expect("cleanup", "", 0);
    assert!(nothing.stderr.contains("nothing to remove"), "{}", nothing.shown());
}

/// Changes to the transactions, by which work is reported that is not done, or done in part; and what notices.
const DEFECTS: &[(&str, &str, &str)] = &[
    // Every second order is invented.
    (
        "  session.begin:execute()\n  local discount",
        "  turn = (turn or 0) + 1\n  if turn % 2 == 0 then return turn, 1 end\n  session.begin:execute()\n  local discount",
        "orders in the tables",
    ),
    ("  session.begin:execute()\n  local w_name", "  do return end\n  local w_name", "cents paid in the tables"),
    ("  update_stock(stock_list, at, lines)\n", "", "s_ytd, s_order_cnt and s_remote_cnt count the order lines"),
    ("{\"$lt\": 10}}, \"u\"", "{\"$lt\": 0}}, \"u\"", "s_quantity from 10 to 100"),
    (
        "  set.set_carrier(carrier_list, count + 4, count)\n",
        "",
        "an order has no carrier if, and only if, it is a new order",
    ),
    ("\"sort\": {\"no_o_id\": 1}, \"remove\"", "\"sort\": {\"no_o_id\": -1}, \"remove\"", "deliveries in the tables"),
];

#[test]
fn work_that_is_not_done_on_documents_is_noticed() {
    if !JavaMongo::present() {
        return;
    }
    let original = include_str!("../../../../workloads/tpcc/tpcc_documents.lua");
    for (number, (text, instead, noticed)) in DEFECTS.iter().enumerate() {
        assert_eq!(original.matches(text).count(), 1, "{text}");
        let place = on(JavaMongo::shared().url(&format!("defect{number}")));
        place.expect("prepare", &format!("{TINY} --seed 3 --no-record"), 0);
        place.folder.write("tpcc_documents.lua", &original.replace(text, instead));
        let load = "--skip-trx on --seed 3 --sessions 1 --transactions 70 --telemetry off";
        let ran = place.expect("run", &format!("{load} --check --no-record --format json"), 1);
        let findings = ran.findings();
        let mut all = failed(&findings["stages"][0]).join("\n");
        all.extend(ran.stderr.lines().filter(|line| line.contains("VIOLATED")));
        assert!(all.contains(noticed), "{text}: {all}");
        place.expect("cleanup", "", 0);
    }
}

#[test]
fn documents_that_were_changed_are_found_by_the_check() {
    if !JavaMongo::present() {
        return;
    }
    let place = on(JavaMongo::shared().url("changed"));
    place.expect("prepare", &format!("{TINY} --seed 4 --no-record"), 0);
    for (change, back, noticed) in [
        (
            r#"{"update": "orders1", "updates": [{"q": {"o_w_id": 1, "o_d_id": 2, "o_id": 3}, "u": {"$set": {"order_line.0.ol_number": 9}}}]}"#,
            r#"{"update": "orders1", "updates": [{"q": {"o_w_id": 1, "o_d_id": 2, "o_id": 3}, "u": {"$set": {"order_line.0.ol_number": 1}}}]}"#,
            "3.3.2.6",
        ),
        (
            r#"{"update": "customer1", "updates": [{"q": {"c_w_id": 1, "c_d_id": 2, "c_id": 3}, "u": {"$inc": {"c_balance": 0.01}}}]}"#,
            r#"{"update": "customer1", "updates": [{"q": {"c_w_id": 1, "c_d_id": 2, "c_id": 3}, "u": {"$inc": {"c_balance": -0.01}}}]}"#,
            "3.3.2.10",
        ),
        (
            r#"{"insert": "stock1", "documents": [{"s_w_id": 2, "s_i_id": 1}]}"#,
            r#"{"delete": "stock1", "deletes": [{"q": {"s_w_id": 2}, "limit": 0}]}"#,
            "1.2.1",
        ),
        (r#"{"delete": "item1", "deletes": [{"q": {"i_id": 7}, "limit": 1}]}"#, r#"{"ping": 1}"#, "1.2.1"),
    ] {
        place.sql(change);
        let checked = place.expect("check", "--no-record", 1);
        let lines: Vec<&str> = checked.stderr.lines().filter(|line| line.contains("VIOLATED")).collect();
        assert!(lines.iter().any(|line| line.contains(&format!("clause {noticed}:"))), "{change}: {}", checked.shown());
        place.sql(back);
    }
    for (option, said) in [
        ("--procedures", "--procedures is for SQL"),
        ("--isolation serializable", "--isolation is for SQL"),
        ("--batch-statements", "--batch-statements is for SQL"),
    ] {
        let refused = place.expect("run", &format!("{option} --no-record --quiet"), 2);
        assert!(refused.stderr.contains(said), "{}", refused.shown());
    }
    let refused = place.folder.run(&format!("exec tpcc isolation --db {} --sessions 2", place.url));
    assert!(refused.stderr.contains("the isolation tests are for SQL"), "{}", refused.shown());
    let sqlite = Place::sqlite();
    let refused = sqlite.expect("prepare", &format!("{TINY} --skip-trx on --no-record"), 2);
    assert!(refused.stderr.contains("--skip-trx is for MongoDB"), "{}", refused.shown());
    place.expect("cleanup", "", 0);
}

#[test]
fn a_load_of_documents_that_was_interrupted_is_resumed() {
    if !JavaMongo::present() {
        return;
    }
    let place = on(JavaMongo::shared().url("resumed"));
    place.expect("prepare", &format!("{TINY} --seed 6 --no-record"), 0);
    // As if it had been killed within three pieces, and before the indexes.
    for kind in ["piece district", "piece stock", "piece item"] {
        place.sql(&format!(
            r#"{{"delete": "tpcc_load1", "deletes": [{{"q": {{"what": "{kind}", "n": 2}}, "limit": 1}}]}}"#
        ));
    }
    place.sql(r#"{"delete": "tpcc_load1", "deletes": [{"q": {"what": "complete"}, "limit": 1}]}"#);
    place.sql(r#"{"delete": "orders1", "deletes": [{"q": {"o_d_id": 2, "o_id": {"$gt": 9}}, "limit": 0}]}"#);
    let refused = place.expect("run", "--skip-trx on --no-record", 3);
    assert!(refused.stderr.contains("their load was interrupted"), "{}", refused.shown());
    let resumed = place.expect("prepare", &format!("{TINY} --seed 7 --no-record"), 0);
    assert!(resumed.stderr.contains("resuming an interrupted prepare: 27 of 30 pieces"), "{}", resumed.shown());
    place.expect("check", "--no-record", 0);
    place.expect("cleanup", "", 0);
}

// A member of a replica set -------------------------------------------------------------------------------------------

/// In front of mongo-java-server: it says that it is the primary of a set, takes the fields of transactions from the
/// commands, and answers their ends. It undoes nothing, so the first write of some transactions fails: nothing has been
/// written before. Returns its port; what it saw is in `seen`.
fn member(server: u16, seen: Arc<Mutex<Seen>>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || Member { client, server, seen, written: None }.serve());
        }
    });
    port
}

/// What was seen of transactions.
#[derive(Debug, Default)]
struct Seen {
    /// Session and number → its commands, in order.
    transactions: BTreeMap<(Vec<u8>, Vec<u8>), Vec<String>>,
    mistakes: Vec<String>,
    /// Writes outside of transactions, by command.
    outside: BTreeMap<String, u32>,
    first_writes: u32,
}

struct Member {
    client: TcpStream,
    server: TcpStream,
    seen: Arc<Mutex<Seen>>,
    /// The transaction that has written last.
    written: Option<Vec<u8>>,
}

/// Fields that a server without transactions does not get.
const OF_TRANSACTIONS: [&str; 4] = ["lsid", "txnNumber", "startTransaction", "autocommit"];
const WRITES: [&str; 4] = ["insert", "update", "delete", "findAndModify"];

impl Member {
    /// Until the client leaves.
    fn serve(&mut self) -> Option<()> {
        loop {
            let message = receive(&mut self.client)?;
            let opcode = i32::from_le_bytes(message[12..16].try_into().unwrap());
            let reply = if opcode == 2013 { self.on_command(&message)? } else { self.forward(&message)? };
            self.client.write_all(&reply).ok()?;
        }
    }

    fn forward(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        self.server.write_all(message).ok()?;
        receive(&mut self.server).map(as_member)
    }

    fn on_command(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let (document, rest) = message[21..].split_at(length(&message[21..]));
        let all = elements(document);
        let (command, field) = (all[0].0.clone(), |name: &str| all.iter().find(|one| one.0 == name).map(|one| one.1));
        let is_write = WRITES.contains(&&*command);
        let Some(number) = field("txnNumber") else {
            if is_write {
                *self.seen.lock().unwrap().outside.entry(command).or_default() += 1;
            }
            return self.forward(message);
        };
        let is_end = command == "commitTransaction" || command == "abortTransaction";
        {
            let mut seen = self.seen.lock().unwrap();
            let key = (field("lsid").unwrap_or_default().to_vec(), number.to_vec());
            let begins = !seen.transactions.contains_key(&key);
            let ended = seen
                .transactions
                .get(&key)
                .and_then(|all| all.last())
                .is_some_and(|last| last.ends_with("Transaction"));
            let says_so = field("startTransaction").is_some_and(|value| value.ends_with(&[1]));
            if begins != says_so || ended || field("autocommit").is_none_or(|value| value.ends_with(&[1])) {
                seen.mistakes.push(format!("{command}: begins {begins}, says {says_so}, after its end {ended}"));
            }
            seen.transactions.entry(key).or_default().push(command.clone());
            if is_end {
                return Some(answer(message, b"\x01ok\0\0\0\0\0\0\0\xF0\x3F"));
            }
            if is_write && self.written.as_deref() != Some(number) {
                self.written = Some(number.to_vec());
                seen.first_writes += 1;
                if seen.first_writes.is_multiple_of(25) {
                    let mut error = b"\x01ok\0\0\0\0\0\0\0\0\0\x10code\0\x70\0\0\0".to_vec();
                    error.extend_from_slice(b"\x02errmsg\0\x0E\0\0\0WriteConflict\0");
                    error.extend_from_slice(
                        b"\x04errorLabels\0\x26\0\0\0\x020\0\x1A\0\0\0TransientTransactionError\0\0",
                    );
                    return Some(answer(message, &error));
                }
            }
        }
        let mut fields = Vec::new();
        for (_, bytes) in all.iter().filter(|one| !OF_TRANSACTIONS.contains(&&*one.0)) {
            fields.extend_from_slice(bytes);
        }
        let mut plain = message[..21].to_vec();
        plain.extend_from_slice(&closed(&fields));
        plain.extend_from_slice(rest);
        let size = plain.len() as u32;
        plain[..4].copy_from_slice(&size.to_le_bytes());
        self.forward(&plain)
    }
}

/// The greeting of a server, as that of a member; other replies are left as they are.
fn as_member(reply: Vec<u8>) -> Vec<u8> {
    let minutes = element(0x10, "logicalSessionTimeoutMinutes", &30_i32.to_le_bytes());
    greeting_with(reply, &[text("setName", "rs"), minutes])
}

#[test]
fn each_transaction_is_one_of_the_database_where_it_has_transactions() {
    if !JavaMongo::present() {
        return;
    }
    let place = on(JavaMongo::shared().url("transactions"));
    let tables = "--warehouses 2 --customers 60 --items 200";
    place.expect("prepare", &format!("{tables} --seed 8 --no-record"), 0);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let port = member(JavaMongo::shared().port(), Arc::clone(&seen));
    let member = on(format!("mongodb://127.0.0.1:{port}/transactions?replicaSet=rs"));
    let load = "--seed 8 --sessions 2 --transactions 300 --telemetry off --record r.json";
    let ran = member.expect("run", &format!("{load} --check --format json"), 1);
    assert!(!ran.stderr.contains("VIOLATED"), "{}", ran.shown());
    let findings = ran.findings();
    let stage = &findings["stages"][0];
    assert_eq!(failed(stage), ["new-orders on full-size tables"], "{}", stage["audit"]);
    let total = &stage["total"];
    let done = ["transactions", "rolled_back"].map(|name| total[name].as_u64().unwrap()).iter().sum::<u64>();
    assert_eq!((total["failed"].as_u64(), done), (Some(0), 300), "{total}");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.mistakes, [""; 0]);
    let ended = |how: &str| seen.transactions.values().filter(|all| all.last().is_some_and(|last| last == how)).count();
    // Retried ones, and orders that are rolled back, end with an abort; an order that is rolled back counts as well.
    let (committed, aborted, retries) =
        (ended("commitTransaction"), ended("abortTransaction"), total["retries"].as_u64().unwrap());
    assert!(retries > 0 && retries == u64::from(seen.first_writes / 25), "{retries} {}", seen.first_writes);
    assert!(committed <= 300 && committed + aborted >= 300 + retries as usize, "{committed} {aborted} {retries}");
    assert_eq!(committed + aborted, seen.transactions.len(), "{committed} {aborted}");
    // The number of warehouses of the run is noted.
    assert_eq!(seen.outside.keys().collect::<Vec<_>>(), ["update"], "{:?}", seen.outside);
    place.expect("cleanup", "", 0);
}
