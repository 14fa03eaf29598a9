//! Several `--db`: sessions are spread over MariaDB and MySQL, which are reported separately and together.

use crate::common::Folder;
use crate::kinds;

#[test]
fn sessions_are_spread_over_two_servers_that_are_shown_apart_and_together() {
    let servers: Vec<_> = kinds().map(|kind| (kind.shared(), kind.shared().fresh_database().unwrap())).collect();
    if kinds().count() < 2 {
        return;
    }
    let folder = Folder::new();
    let databases: String = servers.iter().map(|(server, name)| format!(" --db {}", server.url(name))).collect();
    let common = format!("oltp_update_index{databases} --table-size 500");
    folder.expect(&format!("prepare {common}"), 0);
    folder.expect(&format!("check {common}"), 0);
    for (server, name) in &servers {
        let see = "CREATE TABLE seen(pid INT, row_id INT);
            CREATE TRIGGER see AFTER UPDATE ON sbtest1 FOR EACH ROW INSERT INTO seen VALUES (CONNECTION_ID(), NEW.id);";
        server.sql(name, see).unwrap();
    }
    let line = format!("run {common} --sessions 5 --transactions 300 --format json --record r.json.zst");
    let findings = folder.expect(&line, 0).findings();
    let stage = &findings["stages"][0];
    let transactions = |tally: &serde_json::Value| tally["transactions"].as_u64().unwrap();
    assert_eq!(transactions(&stage["total"]), 300);
    for (i, (server, name)) in servers.iter().enumerate() {
        let seen = server.sql(name, "SELECT COUNT(*), COUNT(DISTINCT pid) FROM seen").unwrap();
        // Five sessions, round-robin: three for the first, two for the second. The report agrees with the servers'
        // counters.
        let expected = format!("{}\t{}", transactions(&stage["targets"][i]), 3 - i);
        assert_eq!(seen.trim(), expected, "{stage}");
        let version = findings["targets"][i]["version"].as_str().unwrap();
        assert!(version.starts_with(server.version()), "{version}");
        assert_eq!(findings["targets"][i]["url"], format!("mysql://app@127.0.0.1:{}/{name}", server.port()));
    }
    let shown = folder.expect("show r.json.zst", 0).stdout;
    for (server, name) in &servers {
        assert!(shown.contains(&format!("127.0.0.1:{}/{name}", server.port())), "{shown}");
    }
}
