//! ClickHouse over HTTP: a real server, of the version that the distribution has.

use nix::sys::signal::Signal;
use testkit::ClickHouse;

use crate::clickhouse::{ENDLESS, same_rows_as_on_sqlite, wait_for_queries};
use crate::common::Folder;

#[test]
fn workloads_return_the_same_rows_as_on_sqlite() {
    if !ClickHouse::present() {
        return;
    }
    let server = ClickHouse::start().unwrap();
    let folder = Folder::new();
    let url = server.http_url("app") + "?compression=gzip";
    same_rows_as_on_sqlite(&folder, &url, "flights", "--flights 5000", (15, &[]));
    // What one protocol has loaded, the other counts.
    folder.expect(&format!("check flights --flights 5000 --no-record --db {}", server.url("app")), 0);
    // Each session has an order of its own: of 30 queries one of them executes 15 or more, and so all.
    let ran = folder.expect(&format!("run flights --db {url} --transactions 30 --sessions 2 --no-record"), 0);
    assert!(ran.stdout.contains("Q14"), "{}", ran.shown());
    let folder = Folder::new();
    let url = server.http_url("app");
    same_rows_as_on_sqlite(&folder, &url, "tpch_like", "--scale 0.005", (22, &["Q11", "Q18"]));
}

/// Statements of a session hold for its connection, over several sockets.
const SESSION: &str = r#"
function event()
  local con = sysbench.sql.driver():connect()
  con:query("SET max_threads = 1")
  con:query("CREATE TEMPORARY TABLE mine (a UInt8)")
  con:query("INSERT INTO mine VALUES (1), (1 + 1)")
  -- The server closes idle connections after 3 seconds.
  for _, pause in ipairs({ 0, 2500, 3500 }) do
    assay.sleep(pause / 1000)
    local sum, threads = con:query_row("SELECT sum(a), (SELECT value FROM system.settings WHERE name = 'max_threads') FROM mine")
    if sum ~= "3" or threads ~= "1" then error(tostring(sum) .. " " .. tostring(threads), 0) end
  end
end
"#;

#[test]
fn a_session_outlives_the_sockets_that_the_server_closes() {
    if !ClickHouse::present() {
        return;
    }
    let server = ClickHouse::start().unwrap();
    let folder = Folder::new();
    folder.write("session.lua", SESSION);
    let line = format!("run ./session.lua --db {} --transactions 2 --sessions 2 --no-record", server.http_url("app"));
    let ran = folder.expect(&format!("{line} --format json"), 0).findings();
    let total = &ran["stages"][0]["total"];
    assert_eq!(
        ["transactions", "errors", "reconnects"].map(|name| total[name].as_u64()),
        [2, 0, 0].map(Some),
        "{total}"
    );
}

#[test]
fn what_the_server_refuses_has_a_cause() {
    if !ClickHouse::present() {
        return;
    }
    let server = ClickHouse::start().unwrap();
    let folder = Folder::new();
    let url = server.http_url("app");
    let slow = "function queries() assay.query { name = 'slow', text = 'SELECT max(number) FROM system.numbers' } end";
    folder.write("slow.lua", slow);
    let (jane, wrong) = (server.http_url("jane:secret"), server.http_url("jane:wrong"));
    folder.expect(&format!("sql 'SELECT 1' --db {jane} --runs 1 --no-record"), 0);
    // Its first rows have been sent when it fails.
    let late = "SELECT number, throwIf(number = 300000) FROM system.numbers LIMIT 400000";
    for (line, words) in [
        (format!("sql 'SELECT 1' --db {wrong} --runs 1 --no-record"), "(193)"),
        (format!("sql 'SELECT a FROM none' --db {url} --runs 1 --no-record"), "Table default.none doesn't exist."),
        (format!("sql 'SELECT [1]' --db {url} --runs 1 --no-record"), "a type that is not supported: Array(UInt8)"),
        (format!("sql 'SELECT 1 FORMAT CSV' --db {url} --runs 1 --no-record"), "must not end with a FORMAT of its own"),
        (format!("sql '{late}' --db {url} --runs 1 --no-record"), "Value passed to 'throwIf' function is non zero"),
        (
            format!("sql '{late}' --db {url}?compression=gzip --runs 1 --no-record"),
            "Value passed to 'throwIf' function",
        ),
        (format!("sql '{late}' --db {url}?wait_end_of_query=1 --runs 1 --no-record"), "Value passed to 'throwIf'"),
        // Not known to this version, which answers as if nobody had asked.
        (format!("sql 'SELECT none' --db {url}?compression=zstd --runs 1 --no-record"), "Unknown identifier: none"),
        // The native port.
        (
            format!("sql 'SELECT 1' --db {} --runs 1 --no-record", server.url("app").replace("house:", "house+http:")),
            "You must use port",
        ),
    ] {
        let ran = folder.run(&line);
        assert!(ran.code == Some(4) && ran.shown().contains(words), "{line}: {}", ran.shown());
        assert!(!ran.shown().contains("jane:wrong"), "{}", ran.shown());
    }
    let ran = folder.expect(&format!("olap ./slow.lua --db {url} --timeout 1s --no-record"), 0);
    assert!(ran.stdout.contains("slow took too long: "), "{}", ran.shown());
}

#[test]
fn certificates_are_verified_unless_the_url_says_otherwise() {
    if !ClickHouse::present() {
        return;
    }
    let server = ClickHouse::start().unwrap();
    let folder = Folder::new();
    let url = server.https_url("jane:secret");
    let [ca, stranger] = [&server.certificates().ca, &server.certificates().stranger].map(|path| path.display());
    for (options, code) in [
        ("".to_owned(), 4),
        (format!("?sslrootcert={ca}"), 0),
        (format!("?sslrootcert={ca}&compression=gzip"), 0),
        (format!("?sslrootcert={stranger}"), 4),
        ("?sslmode=require".to_owned(), 0),
    ] {
        let line =
            format!("sql 'SELECT number FROM system.numbers LIMIT 100000' --db '{url}{options}' --runs 2 --no-record");
        folder.expect(&line, code);
    }
}

#[test]
fn a_query_ends_with_its_run_and_a_run_with_its_server() {
    if !ClickHouse::present() {
        return;
    }
    let mut server = ClickHouse::start().unwrap();
    let folder = Folder::new();
    folder.write("endless.lua", ENDLESS);
    let (native, url) = (server.url("app"), server.http_url("app"));
    // Telemetry's own queries would be taken for those of the run.
    let run = format!("run ./endless.lua --db {url} --time 10m --no-record --telemetry off");
    let started = folder.start(&format!("{run} --sessions 3 --grace 100ms"));
    wait_for_queries(&folder, &native, 3);
    started.signal(Signal::SIGINT);
    assert_eq!(started.finish().code, Some(130));
    wait_for_queries(&folder, &native, 0);
    let started = folder.start(&format!("{run} --reconnect-time 1s"));
    wait_for_queries(&folder, &native, 1);
    server.kill().unwrap();
    let ran = started.finish();
    assert!(ran.code == Some(4) && ran.stderr.contains("connection"), "{}", ran.shown());
}
