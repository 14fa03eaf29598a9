//! MongoDB's protocol: whole commands against FerretDB and mongo-java-server, which speak it.

use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use insta::assert_snapshot;
use testkit::{FerretDb, FerretSetup, JavaMongo};

use crate::common::{Folder, Ran};

#[path = "../common/mongo_wire.rs"]
mod wire;

use wire::{answer, closed, element, elements, greeting_with, receive, text};

/// Runs the command `go` of a script on `url`, in a folder.
fn go(folder: &Folder, script: &str, url: &str) -> Ran {
    let head = "local con = sysbench.sql.driver():connect()";
    folder.write("it.lua", &format!("sysbench.cmdline.commands = {{go = {{function()\n{head}\n{script}\nend}}}}\n"));
    folder.run(&format!("exec ./it.lua go --db '{url}'"))
}

#[test]
fn ycsb_keeps_its_audit_on_documents() {
    if FerretDb::present() {
        // FerretDB loses some of the updates that several clients make to one document at once, and the audit finds
        // that; the number of records is in such a document.
        ycsb_keeps_its_audit(&FerretDb::shared().url("ycsb"), 1);
    }
    if JavaMongo::present() {
        ycsb_keeps_its_audit(&JavaMongo::shared().url("ycsb"), 4);
    }
}

/// `changing`: sessions of the mixes that update or insert.
fn ycsb_keeps_its_audit(url: &str, changing: u32) {
    let folder = Folder::new();
    let common = format!("--db {url} --audit-updates on --recordcount 150");
    folder.expect(&format!("prepare ycsb {common} --sessions 2 --no-record"), 0);
    for (mix, rules) in [
        (format!("--core-workload a --sessions {changing}"), 3),
        (format!("--core-workload b --sessions {changing}"), 3),
        ("--core-workload c --sessions 4".to_owned(), 3),
        (format!("--core-workload d --sessions {changing}"), 3),
        (format!("--core-workload e --sessions {changing}"), 2),
        (format!("--core-workload f --sessions {changing} --readallfields false --writeallfields true"), 3),
    ] {
        let load = "--transactions 300 --no-record --telemetry off --quiet";
        let ran = folder.expect(&format!("run ycsb {common} {mix} {load} --check --format json"), 0);
        let findings = ran.findings();
        let audit = findings["stages"][0]["audit"].as_array().cloned().unwrap_or_default();
        assert_eq!(audit.len(), rules, "{mix}: {audit:?}");
        assert!(audit.iter().all(|rule| rule["verdict"] != "failed"), "{mix}: {audit:?}");
        assert_eq!(findings["stages"][0]["total"]["transactions"], 300, "{mix}");
    }
    folder.expect(&format!("cleanup ycsb --db {url}"), 0);
    folder.expect(&format!("cleanup ycsb --db {url}"), 0);
}

#[test]
fn oltp_runs_on_documents() {
    if FerretDb::present() {
        oltp_runs(&FerretDb::shared().url("oltp"), true);
    }
    if JavaMongo::present() {
        oltp_runs(&JavaMongo::shared().url("oltp"), false);
    }
}

/// `knows_missing`: the server tells a missing collection from an empty one.
fn oltp_runs(url: &str, knows_missing: bool) {
    let folder = Folder::new();
    let tables = format!("--db {url} --tables 2 --table-size 100 --sessions 2");
    folder.expect(&format!("prepare oltp_point_select {tables} --no-record"), 0);
    let again = folder.run(&format!("prepare oltp_point_select {tables} --no-record")).shown();
    assert!(again.contains("table sbtest1 already exists and nothing was changed"), "{again}");
    let run = "--transactions 20 --seed 7 --no-record --telemetry off --quiet --format json";
    for (workload, statements) in [
        ("oltp_point_select", 20),
        ("oltp_read_only --skip-trx on", 20 * 14),
        ("oltp_read_write --skip-trx on --sessions 1", 20 * 18),
        ("oltp_write_only --skip-trx on --sessions 1", 20 * 4),
        ("oltp_update_index --sessions 1", 20),
        ("oltp_update_non_index --sessions 1", 20),
        ("select_random_points --tables 1", 20),
        ("select_random_ranges --tables 1", 20),
    ] {
        let ran = folder.expect(&format!("run {workload} {} {run} --check", overridden(&tables, workload)), 0);
        let total = &ran.findings()["stages"][0]["total"];
        let found = ["statements", "transactions", "errors"].map(|name| total[name].as_u64());
        assert_eq!(found, [Some(statements), Some(20), Some(0)], "{workload}: {total}");
    }
    folder.expect(&format!("run oltp_insert {tables} {run}"), 0);
    let larger = folder.run(&format!("check oltp_insert {tables}")).shown();
    assert!(larger.starts_with("exit 0"), "{larger}");
    // More than were inserted.
    folder.expect(&format!("run oltp_delete {tables} {}", run.replace(" 20 ", " 100 ")), 0);
    let fewer = folder.run(&format!("check oltp_point_select {tables}")).shown();
    assert!(fewer.starts_with("exit 1") && fewer.contains("rows: expected 100, found"), "{fewer}");
    let transactions = folder.run(&format!("run oltp_read_write {tables} {run}")).shown();
    assert!(transactions.contains("this server has no transactions"), "{transactions}");
    assert!(transactions.contains("--skip-trx"), "{transactions}");
    let refused = folder.run(&format!("run oltp_microbenchmark {tables} --no-record")).shown();
    assert!(refused.starts_with("exit 3") && refused.contains("oltp_microbenchmark is for SQL"), "{refused}");
    let removed = folder.run(&format!("cleanup oltp_point_select {tables}")).shown();
    assert!(removed.contains("removed 2 of 2 tables"), "{removed}");
    let gone = folder.run(&format!("run oltp_point_select {tables} {run}")).shown();
    let told = match knows_missing {
        true => gone.starts_with("exit 4") && gone.contains("assay prepare oltp_point_select"),
        false => gone.contains("sbtest1 does not exist; `assay prepare` makes it"),
    };
    assert!(told, "{gone}");
    // mongo-java-server makes a collection of one that was only read, as another session may have done.
    folder.expect(&format!("cleanup oltp_point_select {tables}"), 0);
    let bulk = folder.run(&format!("run bulk_insert --prepare --db {url} --no-record --quiet")).shown();
    assert!(bulk.contains("bulk_insert joins rows into statements of SQL"), "{bulk}");
    let refused = folder.run(&format!("prepare oltp_point_select --secondary on {tables} --no-record")).shown();
    assert!(refused.starts_with("exit 2") && refused.contains("--secondary is for SQL"), "{refused}");
}

/// The options without those that the command has of its own.
fn overridden(options: &str, command: &str) -> String {
    let mut words: Vec<&str> = options.split(' ').collect();
    for name in command.split(' ').filter(|word| word.starts_with("--")) {
        if let Some(at) = words.iter().position(|word| *word == name) {
            words.drain(at..at + 2);
        }
    }
    words.join(" ")
}

#[test]
fn a_run_on_collections_that_do_not_exist_says_what_to_do() {
    if !FerretDb::present() {
        return;
    }
    let (folder, server) = (Folder::new(), FerretDb::shared());
    let ran = folder.run(&format!("run ycsb --db {} --no-record --quiet", server.url("absent")));
    let shown = ran.shown().replace(&server.port().to_string(), "[PORT]");
    assert!(shown.starts_with("exit 4"), "{shown}");
    assert!(shown.contains("are the tables prepared? assay prepare ycsb"), "{shown}");
    let prepared =
        folder.run(&format!("run ycsb --db {} --prepare --transactions 10 --no-record", server.url("absent")));
    assert!(prepared.shown().starts_with("exit 0"), "{}", prepared.shown());
    let layout = folder.run(&format!("run ycsb --db {} --layout json --no-record --quiet", server.url("absent")));
    assert!(layout.shown().contains("--layout json is for SQL"), "{}", layout.shown());
}

#[test]
fn commands_are_statements() {
    if !FerretDb::present() {
        return;
    }
    let (folder, url) = (Folder::new(), FerretDb::shared().url("commands"));
    let ran = go(
        &folder,
        r#"
        con:query('{"dropDatabase": 1}')
        local insert = con:prepare('{"insert": "t", "documents": [{"_id": ?, "a": ?, "b": {"c": ?}}]}', "iad")
        for id = 1, 300 do insert:perform(id, id % 7 == 0 and "seven" or id, id / 2) end
        insert:perform(301, nil, 0.5)
        local find = con:prepare('{"find": "t", "filter": {"_id": ?}, "projection": {"b.c": 1, "a": 1, "_id": 0}}', "i")
        print("row", find:row(14))
        print("null", find:row(301))
        print("none", find:row(302))
        local all = con:prepare('{"find": "t", "filter": {"_id": {"$gte": ?}}, "sort": {"_id": 1}}', "i")
        print("cursor", all:execute(1).nrows)
        print("batches", con:query('{"find": "t", "filter": {}, "batchSize": 50}').nrows)
        print("document", con:query_row('{"find": "t", "filter": {"_id": 2}}'))
        print("count", con:query_row('{"count": "t", "query": {"a": "seven"}}'))
        print("distinct", con:query('{"distinct": "t", "key": "a"}').nrows)
        print("sum", con:query_row('{"aggregate": "t", "pipeline": [{"$group": {"_id": null, "n": {"$sum": "$_id"}}}]}'))
        print("modified", con:query_row('{"findAndModify": "t", "query": {"_id": 1}, "update": {"$set": {"a": "x"}}, "new": true}'))
        print("deleted", con:query('{"delete": "t", "deletes": [{"q": {"a": "seven"}, "limit": 0}]}'))
        print("left", con:query_row('{"count": "t"}'))
        local loader = con:loader("many", "_id, name")
        for id = 1, 5000 do loader:row(id, "n" .. id) end
        loader:done()
        print("loaded", con:query_row('{"count": "many"}'))
        print("reply", con:query_row('{"ping": 1}'))
        "#,
        &url,
    );
    assert_snapshot!(ran.shown().replace('\t', " "), @r#"
    exit 0
    --- stderr
    row 7 seven
    null 0.5 nil
    none
    cursor 301
    batches 301
    document {"_id":2,"a":2,"b":{"c":1.0}}
    count 42
    distinct 260
    sum nil 45451
    modified {"_id":1,"a":"x","b":{"c":0.5}}
    deleted nil
    left 259
    loaded 5000
    reply nil
    "#);
}

#[test]
fn errors_have_the_server_s_words() {
    if !FerretDb::present() {
        return;
    }
    let (folder, url) = (Folder::new(), FerretDb::shared().url("errors"));
    let ran = go(
        &folder,
        r#"
        local function try(text)
          local _, failure = pcall(con.query, con, text)
          print((tostring(failure):match("[^\n]*"):gsub("^.-: ", "")))
        end
        con:query('{"dropDatabase": 1}')
        con:query('{"insert": "t", "documents": [{"_id": 1}]}')
        try('{"insert": "t", "documents": [{"_id": 1}]}')
        try('{"noSuchCommand": 1}')
        try('{"listIndexes": "nowhere"}')
        try('SELECT 1')
        try('{"find": "t", "filter": }')
        try('{"startTransaction": 1}')
        try('{"find": "t", "filter": {"_id": ?}}')
        print("still", con:query_row('{"count": "t"}'))
        "#,
        &url,
    );
    assert_snapshot!(ran.shown().replace('\t', " "), @r"
    exit 0
    --- stderr
    SQL error, errno = 11000, state = '': E11000 duplicate key error collection: errors.t
    SQL error, errno = 59, state = '': no such command: 'noSuchCommand'
    SQL error, errno = 26, state = '': ns does not exist: errors.nowhere
    SQL error, errno = 0, state = '': a statement for MongoDB is a command in JSON, and this begins with `SELECT 1`
    SQL error, errno = 0, state = '': the command is not extended JSON: expected a value at character 25, found `}`
    SQL error, errno = 0, state = '': this server has no transactions: only members of a replica set of MongoDB and mongos have them
    SQL error, errno = 0, state = '': the statement has 1 placeholders, and is executed without parameters
    still 1
    ");
}

#[test]
fn the_example_of_the_document_runs() {
    if !FerretDb::present() {
        return;
    }
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mongodb.md")).unwrap();
    let (_, block) = document.split_once("```lua\n").unwrap();
    let (folder, url) = (Folder::new(), FerretDb::shared().url("example"));
    folder.write("example.lua", block.split_once("```").unwrap().0);
    let users = (1..=1000).map(|id| format!(r#"{{"_id": {id}, "name": "n{id}", "city": "c"}}"#)).collect::<Vec<_>>();
    go(&folder, &format!("con:query([[{{\"insert\": \"users\", \"documents\": [{}]}}]])", users.join(", ")), &url);
    let findings =
        folder.expect(&format!("run ./example.lua --db {url} --transactions 50 --format json"), 0).findings();
    let total = &findings["stages"][0]["total"];
    assert_eq!((&total["transactions"], &total["errors"]), (&50.into(), &0.into()), "{total}");
}

#[test]
fn users_log_in_with_their_password_over_tls() {
    if !FerretDb::present() {
        return;
    }
    let folder = Folder::new();
    let login = Some(("jane", "se%cret"));
    let server = FerretDb::start(FerretSetup { login, tls: true, ..FerretSetup::default() }).unwrap();
    let ca = server.certificates().unwrap().ca.display().to_string();
    let stranger = server.certificates().unwrap().stranger.display().to_string();
    let at = format!("localhost:{}/d?tls=true&tlsCAFile={ca}&authSource=admin", server.port());
    let test = |url: &str| folder.run(&format!("db test '{url}'")).shown();
    let entered = test(&format!("mongodb://jane:se%25cret@{at}"));
    for part in ["exit 0", "FerretDB 1.24.2 (as MongoDB", "TLSv1.3", "telemetry   2 of 2 questions answered"] {
        assert!(entered.contains(part), "{part}: {entered}");
    }
    assert!(!entered.contains("cret"), "{entered}");
    // Each host has a name of its own in its certificate: the first one does not even answer.
    let (dead, port) = (testkit::free_port().unwrap(), server.port());
    for (hosts, part) in [
        (format!("127.0.0.1:{dead},localhost:{port}"), "exit 0"),
        (format!("localhost:{dead},127.0.0.1:{port}"), "certificate"),
    ] {
        let several = test(&format!("mongodb://jane:se%25cret@{hosts}/d?tls=true&tlsCAFile={ca}&authSource=admin"));
        assert!(several.contains(part), "{several}");
    }
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-1"] {
        let entered = test(&format!("mongodb://jane:se%25cret@{at}&authMechanism={mechanism}"));
        assert!(entered.contains("exit 0"), "{entered}");
    }
    for (url, part) in [
        (format!("mongodb://jane:wrong@{at}"), "uthentication"),
        (format!("mongodb://nobody:x@{at}"), "uthentication"),
        (
            format!("mongodb://jane:se%25cret@localhost:{}/d?tls=true&tlsCAFile={stranger}", server.port()),
            "certificate",
        ),
        (format!("mongodb://jane:se%25cret@localhost:{}/d", server.port()), "closed the connection"),
    ] {
        let refused = test(&url);
        assert!(refused.contains("exit 4") && refused.contains(part), "{part}: {refused}");
        assert!(!refused.contains("cret"), "{refused}");
    }
}

#[test]
fn a_set_s_name_is_checked_and_a_dead_member_is_passed() {
    if !FerretDb::present() {
        return;
    }
    let folder = Folder::new();
    let server = FerretDb::start(FerretSetup { replica_set: Some("rs"), ..FerretSetup::default() }).unwrap();
    let (port, dead) = (server.port(), testkit::free_port().unwrap());
    let found = folder.run(&format!("db test mongodb://127.0.0.1:{dead},127.0.0.1:{port}/d?replicaSet=rs"));
    assert!(found.shown().contains("exit 0"), "{}", found.shown());
    let other = folder.run(&format!("db test mongodb://127.0.0.1:{port}/d?replicaSet=other"));
    assert!(other.shown().contains("the server is in the replica set rs, and not in other"), "{}", other.shown());
    // It would ignore that this is a transaction.
    let begun = go(&folder, r#"con:query('{"startTransaction": 1}')"#, &server.url("d"));
    assert!(begun.shown().contains("this server has no transactions"), "{}", begun.shown());
}

#[test]
fn a_run_is_recorded_with_its_concerns_and_counters() {
    if !FerretDb::present() {
        return;
    }
    let folder = Folder::new();
    let server = FerretDb::shared();
    let url = format!("{}?w=1&journal=true&readConcernLevel=local", server.url("recorded"));
    folder.expect(&format!("prepare ycsb --db '{url}' --recordcount 100 --no-record"), 0);
    let run = format!("run ycsb --db '{url}' --recordcount 100 --transactions 500 --core-workload a --format json");
    let findings = folder.expect(&format!("{run} --record r.json --telemetry full"), 0).findings();
    let text = findings.to_string();
    assert!(text.contains("journal=true&readConcernLevel=local&w=1"), "{text}");
    assert!(text.contains("FerretDB"), "{text}");
    assert!(text.contains("find_commands"), "{text}");
    let record = assay_record::Record::read(&folder.path().join("r.json")).unwrap();
    let of_server = &record.telemetry.as_ref().unwrap().scopes[0];
    for (metric, least) in [("cpu_us", 1), ("processes", 1), ("data_bytes", 100_000)] {
        let series = of_server.series.iter().filter(|series| series.metric == metric);
        let most = series.flat_map(|series| series.values.iter().copied().flatten()).max();
        assert!(most.is_some_and(|most| most >= least), "{metric} {most:?}: {:?}", of_server.absent);
    }
    folder.expect(&format!("cleanup ycsb --db '{url}'"), 0);
}

#[test]
fn the_lab_starts_a_ferretdb_and_stops_it() {
    if !FerretDb::present() {
        return;
    }
    let (folder, lab) = (Folder::new(), testkit::lab_folder().unwrap());
    let path = format!("{}:/usr/bin:/bin", FerretDb::folder().display());
    let go =
        |line: &str, code| folder.expect_with(&[("ASSAY_LAB", lab.to_str().unwrap()), ("PATH", &path)], line, code);
    let name = format!("ferret-{}", std::process::id());
    let prepare = "--prepare 'ycsb --recordcount 100'";
    let started = go(&format!("server start ferretdb:1 --name {name} --set log-level=error {prepare}"), 0);
    let url = started.stdout.trim();
    assert!(url.starts_with("mongodb://127.0.0.1:") && url.ends_with("/app"), "{}", started.shown());
    let run = format!("run ycsb --db {url} --recordcount 100 --transactions 50 --no-record --format json");
    assert_eq!(go(&run, 0).findings()["stages"][0]["total"]["transactions"], 50);
    go(&format!("server kill {name}"), 0);
    go(&format!("server restart {name}"), 0);
    assert_eq!(go(&run, 0).findings()["stages"][0]["total"]["errors"], 0);
    let listed = go("server list", 0).stdout;
    assert!(listed.lines().any(|line| line.contains(&name) && line.contains("running")), "{listed}");
    let stopped = go(&format!("server stop {name} --remove"), 0).stderr;
    assert!(stopped.contains(&format!("stopped {name} (SIGTERM")) && stopped.contains("removed it"), "{stopped}");
    let own =
        go("run ycsb --server ferretdb --recordcount 100 --prepare --transactions 50 --no-record --format json", 0);
    assert_eq!(own.findings()["stages"][0]["total"]["transactions"], 50);
    for (line, code, part) in [
        (
            "ferretdb --set log-levels=info",
            2,
            "FerretDB 1.24.2 has no setting log-levels\n\nhint: did you mean log-level?",
        ),
        ("ferretdb --set listen-addr=127.0.0.1:1", 2, "setting listen-addr is assay's own"),
        ("ferretdb --set log-level=loud", 4, "loud"),
        ("ferretdb --replicas 1", 2, "FerretDB has no replicas"),
        ("ferretdb:2", 5, "available versions of ferretdb: 1.24.2"),
        ("ferretdb --binaries /usr/bin/env", 2, "give a folder, an archive, or the program itself: ferretdb"),
        ("mongodb", 5, "install it from MongoDB's own repository (mongodb-org-server)"),
        ("mongo", 2, "did you mean mongodb?"),
    ] {
        let refused = go(&format!("server start {line}"), code);
        assert!(refused.stderr.contains(part), "{line}: {}", refused.shown());
    }
}

/// A replica set of two members, in front of one FerretDB: they say who is primary, and list each other.
struct SetOfTwo {
    ports: [u16; 2],
    /// The place of the primary.
    primary: AtomicUsize,
    /// Updates until it steps down.
    patience: AtomicU32,
    connections: [AtomicU32; 2],
    writes: [AtomicU32; 2],
    /// Questions for operations in progress.
    looks: AtomicU32,
}

impl SetOfTwo {
    fn start(server: u16) -> Arc<SetOfTwo> {
        let listeners = [(); 2].map(|()| TcpListener::bind(("127.0.0.1", 0)).unwrap());
        let set = Arc::new(SetOfTwo {
            ports: listeners.each_ref().map(|listener| listener.local_addr().unwrap().port()),
            primary: AtomicUsize::new(0),
            patience: AtomicU32::new(u32::MAX),
            connections: Default::default(),
            writes: Default::default(),
            looks: AtomicU32::new(0),
        });
        for (place, listener) in listeners.into_iter().enumerate() {
            let set = Arc::clone(&set);
            std::thread::spawn(move || {
                for client in listener.incoming().flatten() {
                    let set = Arc::clone(&set);
                    std::thread::spawn(move || {
                        set.serve(place, client, TcpStream::connect(("127.0.0.1", server)).unwrap())
                    });
                }
            });
        }
        set
    }

    /// Until the client leaves.
    fn serve(&self, place: usize, mut client: TcpStream, mut server: TcpStream) -> Option<()> {
        self.connections[place].fetch_add(1, Ordering::SeqCst);
        loop {
            let message = receive(&mut client)?;
            let first = &elements(&message[21..])[0];
            // An aggregate of no collection.
            let looks = first.0 == "aggregate" && first.1[0] == 0x10;
            let command = first.0.clone();
            let writes = command == "insert" || command == "update";
            if writes && self.primary.load(Ordering::SeqCst) == place {
                let left = self.patience.fetch_sub(1, Ordering::SeqCst);
                if left == 0 {
                    self.patience.store(u32::MAX, Ordering::SeqCst);
                    self.primary.store(1 - place, Ordering::SeqCst);
                }
            }
            let is_primary = self.primary.load(Ordering::SeqCst) == place;
            let reply = if writes && !is_primary {
                let code = element(0x10, "code", &10107_i32.to_le_bytes());
                let ok = element(1, "ok", &0_f64.to_le_bytes());
                answer(&message, &[ok, code, text("errmsg", "not primary")].concat())
            } else {
                self.writes[place].fetch_add(u32::from(writes), Ordering::SeqCst);
                server.write_all(&message).ok()?;
                let reply = receive(&mut server)?;
                match looks {
                    // The server has counted it, and refused it.
                    true => {
                        self.looks.fetch_add(1, Ordering::SeqCst);
                        answer(&message, &operations())
                    }
                    false => greeting_with(reply, &self.greeting(is_primary)),
                }
            };
            client.write_all(&reply).ok()?;
        }
    }

    fn greeting(&self, is_primary: bool) -> Vec<Vec<u8>> {
        let hosts = self.ports.map(|port| format!("127.0.0.1:{port}"));
        let list: Vec<Vec<u8>> = hosts.iter().zip(["0", "1"]).map(|(host, number)| text(number, host)).collect();
        vec![
            element(8, "isWritablePrimary", &[u8::from(is_primary)]),
            element(8, "ismaster", &[u8::from(is_primary)]),
            element(8, "secondary", &[u8::from(!is_primary)]),
            text("setName", "rs"),
            element(4, "hosts", &closed(&list.concat())),
        ]
    }

    fn count(of: &AtomicU32) -> u32 {
        of.load(Ordering::SeqCst)
    }
}

/// What sessions do, as the answer of a cursor.
fn operations() -> Vec<u8> {
    let group = |number: &str, name: &str, sessions: i32| {
        let fields = [text("_id", name), element(0x10, "sessions", &sessions.to_le_bytes())].concat();
        element(3, number, &closed(&fields))
    };
    let batch = [group("0", "lock", 2), group("1", "CPU or I/O", 1)].concat();
    let cursor = [
        element(4, "firstBatch", &closed(&batch)),
        element(0x12, "id", &0_i64.to_le_bytes()),
        text("ns", "admin.$cmd.aggregate"),
    ];
    [element(3, "cursor", &closed(&cursor.concat())), element(1, "ok", &1_f64.to_le_bytes())].concat()
}

#[test]
fn what_sessions_wait_for_is_sampled_and_not_counted_as_load() {
    if !FerretDb::present() {
        return;
    }
    let server = FerretDb::start(FerretSetup::default()).unwrap();
    let (folder, set) = (Folder::new(), SetOfTwo::start(server.port()));
    let url = format!("mongodb://127.0.0.1:{}/waits", set.ports[0]);
    folder.expect(&format!("prepare ycsb --db {url} --recordcount 50 --no-record"), 0);
    let load = "--recordcount 50 --core-workload c --rate 50 --time 2s --quiet --no-record --format json";
    let findings = folder.expect(&format!("run ycsb --db {url} {load}"), 0).findings();
    let scopes = findings["stages"][0]["telemetry"].as_array().unwrap();
    let of_server = scopes.iter().find(|scope| scope["scope"] == "server").unwrap();
    let waits = of_server["waits"].as_array().unwrap();
    let sessions = |event: &str| waits.iter().find(|wait| wait["event"] == event).map(|wait| wait["sessions"].as_f64());
    assert_eq!((sessions("lock"), sessions("CPU or I/O")), (Some(Some(2.0)), Some(Some(1.0))), "{waits:?}");
    assert!(SetOfTwo::count(&set.looks) > 5, "{of_server}");
    let aggregates = of_server["metrics"].as_array().unwrap().iter().find(|one| one["metric"] == "aggregate_commands");
    let aggregates = aggregates.unwrap_or_else(|| panic!("{of_server}"));
    assert_eq!(aggregates["per_s"].as_f64(), Some(0.0), "{aggregates}");
    assert!(aggregates["own_per_s"].as_f64().is_some_and(|own| own > 3.0), "{aggregates}");
    // FerretDB itself does not know what its sessions do.
    let refused = folder.expect(&format!("run ycsb --db {} {load}", server.url("waits")), 0).findings();
    let scopes = refused["stages"][0]["telemetry"].as_array().unwrap();
    let of_server = scopes.iter().find(|scope| scope["scope"] == "server").unwrap();
    assert!(of_server["waits"].is_null(), "{of_server}");
}

#[test]
fn members_that_the_url_does_not_name_are_found_and_the_primary_is_followed() {
    if !FerretDb::present() {
        return;
    }
    let (folder, set) = (Folder::new(), SetOfTwo::start(FerretDb::shared().port()));
    let url = format!("mongodb://127.0.0.1:{}/members", set.ports[0]);
    set.primary.store(1, Ordering::SeqCst);
    folder.expect(&format!("prepare ycsb --db {url} --recordcount 50 --no-record"), 0);
    let [here, there] = set.writes.each_ref().map(SetOfTwo::count);
    assert!(here == 0 && there > 0, "{here} {there}");
    // A direct connection stays where it is.
    let before = SetOfTwo::count(&set.connections[1]);
    folder.expect(&format!("db test '{url}?directConnection=true'"), 0);
    assert_eq!(SetOfTwo::count(&set.connections[1]), before);
    // The primary steps down within a run, for a member that the URL does not name.
    set.primary.store(0, Ordering::SeqCst);
    set.patience.store(20, Ordering::SeqCst);
    let load = "--core-workload a --sessions 2 --transactions 200 --telemetry off --quiet --no-record --format json";
    let findings = folder.expect(&format!("run ycsb --db {url} --recordcount 50 {load}"), 0).findings();
    let total = &findings["stages"][0]["total"];
    assert_eq!((&total["transactions"], &total["failed"]), (&200.into(), &0.into()), "{total}");
    assert!(total["reconnects"].as_u64().is_some_and(|reconnects| reconnects >= 2), "{total}");
    assert!((1..=20).contains(&SetOfTwo::count(&set.writes[0])), "{total}");
    assert!(SetOfTwo::count(&set.writes[1]) > there, "{total}");
    folder.expect(&format!("cleanup ycsb --db {url}"), 0);
}

/// The address of a name server: whatever it is asked for is at 127.0.0.1 and this port, in the replica set `rs`.
fn name_server(port: u16) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, client)) = socket.recv_from(&mut buffer) {
            // The question ends with its type and its class, of two bytes each.
            let kind = buffer[length - 3];
            let data = match kind {
                33 => [&[0, 0, 0, 0][..], &port.to_be_bytes(), b"\x03127\x010\x010\x011\0"].concat(),
                _ => b"\x0DreplicaSet=rs".to_vec(),
            };
            let mut reply = buffer[..length].to_vec();
            (reply[2], reply[7]) = (0x81, 1);
            reply.extend_from_slice(&[0xC0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
            reply.extend_from_slice(&data);
            socket.send_to(&reply, client).unwrap();
        }
    });
    address
}

#[test]
fn a_name_in_dns_stands_for_servers_and_their_set() {
    if !FerretDb::present() {
        return;
    }
    let (folder, set) = (Folder::new(), SetOfTwo::start(FerretDb::shared().port()));
    let servers = name_server(set.ports[0]);
    let test = |url: &str, servers: &str, code| {
        folder.expect_with(&[("ASSAY_NAME_SERVER", servers)], &format!("db test '{url}'"), code).shown()
    };
    // An address can be looked up without a name server, and is in the domain of this name.
    let found = test("mongodb+srv://cluster.0.0.1/d?tls=false", &servers, 0);
    assert!(found.contains("mongodb+srv://cluster.0.0.1/d?tls=false"), "{found}");
    let other = test("mongodb+srv://cluster.0.0.1/d?tls=false&replicaSet=other", &servers, 4);
    assert!(other.contains("the server is in the replica set rs, and not in other"), "{other}");
    // Encryption is on unless the URL says otherwise.
    let setup = FerretSetup { tls: true, replica_set: Some("rs"), ..FerretSetup::default() };
    let secure = FerretDb::start(setup).unwrap();
    let ca = secure.certificates().unwrap().ca.display().to_string();
    let url = format!("mongodb+srv://cluster.0.0.1/d?tlsCAFile={ca}&tlsAllowInvalidHostnames=true");
    let encrypted = test(&url, &name_server(secure.port()), 0);
    assert!(encrypted.contains("TLSv1.3"), "{encrypted}");
    let stranger = test("mongodb+srv://cluster.example.com/d", &servers, 2);
    assert!(
        stranger.contains("names the server 127.0.0.1, which is not in the domain of cluster.example.com"),
        "{stranger}"
    );
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let silent = test("mongodb+srv://cluster.0.0.1/d", &nobody, 4);
    assert!(silent.contains(&format!("the name server {nobody} cannot be asked")), "{silent}");
    assert!(silent.contains("hint: check the name servers in /etc/resolv.conf"), "{silent}");
    let wrong = test("mongodb+srv://cluster.0.0.1/d", "nowhere", 2);
    assert!(wrong.contains("ASSAY_NAME_SERVER=nowhere is not an IP address"), "{wrong}");
}
