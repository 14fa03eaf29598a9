//! Several `--db`: sessions are spread over the servers, which are reported separately and together.

use crate::common::Folder;
use crate::{VERSIONS, on_every_version, versions};

#[test]
fn sessions_are_spread_over_servers_that_are_shown_apart_and_together() {
    if versions().count() < VERSIONS.len() {
        return;
    }
    let folder = Folder::new();
    let servers = VERSIONS.map(|kind| (kind.shared(), kind.shared().fresh_database().unwrap()));
    let databases = servers.each_ref().map(|(server, name)| format!("--db {}", server.url(name))).join(" ");
    let common = format!("oltp_update_index {databases} --table-size 500");
    folder.expect(&format!("prepare {common}"), 0);
    folder.expect(&format!("check {common}"), 0);
    for (server, name) in &servers {
        server
            .sql(
                name,
                "CREATE TABLE seen (pid int); CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN INSERT INTO seen VALUES (pg_backend_pid()); RETURN NULL; END $$;
                 CREATE TRIGGER see AFTER UPDATE ON sbtest1 FOR EACH STATEMENT EXECUTE FUNCTION see();",
            )
            .unwrap();
    }
    let record = "--record r.json.zst";
    let line = format!("run {common} --sessions 5 --transactions 300 --format json {record}");
    let findings = folder.expect(&line, 0).findings();
    let stage = &findings["stages"][0];
    let transactions = |tally: &serde_json::Value| tally["transactions"].as_u64().unwrap();
    assert_eq!(transactions(&stage["total"]), 300);
    for (i, (server, name)) in servers.iter().enumerate() {
        let seen = server.sql(name, "SELECT COUNT(*), COUNT(DISTINCT pid) FROM seen").unwrap();
        let apart = transactions(&stage["targets"][i]);
        // Five sessions, round-robin: three for the first, two for the second. The report agrees with the servers'
        // counters.
        assert_eq!(seen.trim(), format!("{apart}\t{}", 3 - i), "{stage}");
        let version = findings["targets"][i]["version"].as_str().unwrap();
        assert!(version.starts_with(server.version()), "{version}");
        assert_eq!(findings["targets"][i]["url"], format!("postgres://app@127.0.0.1:{}/{name}", server.port()));
    }
    let shown = folder.expect("show r.json.zst", 0).stdout;
    for (server, name) in &servers {
        assert!(shown.contains(&format!("127.0.0.1:{}/{name}", server.port())), "{shown}");
    }
}

#[test]
fn one_of_several_servers_that_refuses_is_named() {
    on_every_version(|kind| {
        let server = kind.shared();
        let folder = Folder::new();
        folder.write("one.lua", "function thread_init() con = sysbench.sql.driver():connect() end\nfunction event() con:query('SELECT 1') end");
        let line =
            format!("run ./one.lua --db {} --db {} --sessions 4 --no-record", server.url("app"), server.url("nowhere"));
        let ran = folder.expect(&line, 4);
        assert!(
            ran.stderr.contains(&format!("127.0.0.1:{}/nowhere refused the connection", server.port())),
            "{}",
            ran.stderr
        );
    });
    let mixed = Folder::new().expect("run oltp_read_only --db postgres://a@127.0.0.1/b --db sqlite:a.db", 2);
    assert!(mixed.stderr.contains("the databases are of different kinds: pgsql, sqlite"), "{}", mixed.stderr);
}
