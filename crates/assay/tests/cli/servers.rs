//! Real servers: the whole life of a workload, servers that are down, and servers that refuse.

use insta::assert_snapshot;
use testkit::{Kind, Server, ServerSetup};

use crate::common::{Folder, ONE_TABLE};

const KINDS: [Kind; 3] = [Kind::Postgres, Kind::MariaDb, Kind::MySql];

/// The message of a run that was refused, without port, database, and the number of sessions that were faster than the
/// refusal.
fn refusal(server: &Server, user: &str, database: &str, options: &str) -> String {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let url = server.url_as(user, database);
    let ran = folder.run(&format!("run ./one_table.lua --no-record --connect-pending 1 --db {url} {options}"));
    let known = [(&*server.port().to_string(), "[PORT]"), (database, "[DATABASE]")];
    let shown = testkit::redact::replace(&ran.complaint(), &known);
    match (shown.find(" for more than "), shown.find(" of 50 sessions")) {
        (Some(from), Some(to)) => shown[..from].to_owned() + &shown[to + " of 50 sessions".len()..],
        _ => shown,
    }
}

/// All bundled workloads with their commands, but for tpcc, whose tests do the same.
fn workloads(folder: &Folder) -> Vec<(String, Vec<String>)> {
    let list = folder.expect("list", 0).stdout;
    let (_, usual) = list.split_once("Commands, unless listed: ").unwrap();
    let (usual, _) = usual.split_once(".\n").unwrap();
    let mut all: Vec<(String, &str)> = Vec::new();
    for line in list.lines().take_while(|line| !line.is_empty()) {
        match line.trim().strip_prefix("commands: ") {
            Some(commands) => all.last_mut().unwrap().1 = commands,
            None if !line.starts_with(' ') => all.push((line.to_owned(), usual)),
            None => {}
        }
    }
    let commands = |(name, all): (String, &str)| (name, all.split(", ").map(str::to_owned).collect());
    all.into_iter().filter(|(name, _)| name != "tpcc").map(commands).collect()
}

#[test]
fn every_workload_lives_on_every_server() {
    std::thread::scope(|scope| {
        for kind in KINDS.into_iter().filter(|kind| kind.present()) {
            scope.spawn(move || every_workload_lives_on(kind));
        }
    });
}

fn every_workload_lives_on(kind: Kind) {
    let (folder, server) = (Folder::new(), kind.shared());
    let all = workloads(&folder);
    assert!(all.len() > 10, "{all:?}");
    for (name, commands) in all {
        let url = server.url(&server.fresh_database().unwrap());
        let options = match name.as_str() {
            name if name.starts_with("oltp") => "--tables 2 --table-size 300",
            name if name.starts_with("select") => "--table-size 300",
            "insert_benchmark" => "--rows 300",
            "ycsb" => "--recordcount 300",
            "flights" => "--flights 300",
            "tpch_like" => "--scale 0.001",
            _ => "",
        };
        for command in ["prepare", "check", "run", "check", "cleanup"] {
            if !commands.iter().any(|known| known == command) {
                continue;
            }
            let more = match (command, name.as_str()) {
                // It writes on one server and reads on another.
                ("run", "read_after_write") => &format!("--transactions 50 --sessions 2 --db {url}"),
                ("run", _) => "--transactions 50 --sessions 2",
                // A table for each session.
                (_, "bulk_insert") => "--sessions 2",
                _ => "",
            };
            let no_record = if command == "cleanup" { "" } else { "--no-record" };
            let ran = folder.run(&format!("{command} {name} --db {url} {options} {more} {no_record}"));
            assert_eq!(ran.code, Some(0), "{}: {command} {name}: {}", kind.name(), ran.shown());
        }
    }
}

#[test]
fn the_whole_life_of_a_workload_on_every_server() {
    for kind in KINDS.into_iter().filter(|kind| kind.present()) {
        let (folder, server) = (Folder::new(), kind.shared());
        let url = server.url(&server.fresh_database().unwrap());
        let expect = |words: &str, code: i32| {
            let ran = folder.run(&format!("{words} --db {url} --tables 2"));
            assert_eq!(ran.code, Some(code), "{}: {words}: {}", kind.name(), ran.shown());
            ran
        };
        assert!(expect("prepare oltp_read_write --table-size 1000", 0).stderr.contains("2,000 rows"));
        expect("check oltp_read_write --table-size 1000", 0);
        for options in ["", "--prepared off", "--rate 50 --arrival poisson"] {
            let common = "--table-size 1000 --time 500ms --sessions 4 --format json --no-record";
            let ran = expect(&format!("run oltp_read_write {common} {options}"), 0);
            let findings: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            let total = &findings["stages"][0]["total"];
            let by_class = &total["statements_by_class"];
            let [transactions, reads] = [&total["transactions"], &by_class["read"]].map(|n| n.as_u64().unwrap());
            assert!(transactions > 0 && reads >= 14 * transactions, "{}", ran.stdout);
        }
        expect("check oltp_read_write --table-size 999", 1);
        expect("cleanup oltp_read_write", 0);
        expect("run oltp_read_write --no-record", 4);
    }
}

/// All bytes there are, through prepared statements and in texts; and a result of which nobody reads the rows.
const BYTES: &str = r#"
local BLOB = { pgsql = "BYTEA", mysql = "BLOB", sqlite = "BLOB" }
local HEX = { pgsql = "upper(encode(b, 'hex'))", mysql = "HEX(b)", sqlite = "HEX(b)" }
function event()
  local con, name = sysbench.sql.driver():connect(), sysbench.sql.driver():name()
  con:query("CREATE TABLE bytes (b " .. BLOB[name] .. ")")
  local all = {}
  for byte = 0, 255 do all[#all + 1] = string.char(byte) end
  local text = table.concat(all)
  con:prepare("INSERT INTO bytes VALUES (?)", "b"):perform(text)
  local found = con:query_row("SELECT " .. HEX[name] .. " FROM bytes")
  local wanted = text:gsub(".", function(byte) return ("%02X"):format(byte:byte()) end)
  if found ~= wanted then error("found " .. tostring(found), 0) end
  for _ = 1, 300 do con:prepare("INSERT INTO bytes VALUES (?)", "b"):perform(nil) end
  local all_rows = con:prepare("SELECT b FROM bytes", "")
  all_rows:perform()
  if all_rows:execute().nrows ~= 301 then error("rows are missing", 0) end
  local is_refused = not pcall(function() con:prepare("INSERT INTO bytes VALUES (?)", "b"):perform(7) end)
  if not is_refused then error("7 is not a string", 0) end
  con:query("DROP TABLE bytes")
end
"#;

#[test]
fn binary_values_arrive_as_they_are_on_every_server() {
    let folder = Folder::new();
    folder.write("bytes.lua", BYTES);
    let servers = KINDS.into_iter().filter(|kind| kind.present()).map(Kind::shared);
    let mut urls: Vec<String> = servers.map(|server| server.url(&server.fresh_database().unwrap())).collect();
    urls.push(format!("sqlite:{}", folder.path().join("bytes.db").display()));
    for url in urls {
        for prepared in ["on", "off"] {
            folder.expect(&format!("run ./bytes.lua --db {url} --prepared {prepared} --transactions 1 --no-record"), 0);
        }
    }
}

#[test]
fn a_record_holds_the_settings_of_the_server() {
    for kind in KINDS.into_iter().filter(|kind| kind.present()) {
        let (folder, server) = (Folder::new(), kind.shared());
        folder.write("one_table.lua", ONE_TABLE);
        let url = server.url(&server.fresh_database().unwrap());
        let ran = folder.run(&format!("run ./one_table.lua --prepare --db {url} --transactions 10 --record r.json"));
        assert_eq!(ran.code, Some(0), "{}", ran.shown());
        let record = std::fs::read_to_string(folder.path().join("r.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        let settings = &record["environment"]["servers"][0]["settings"];
        assert_eq!(settings["max_connections"], "300", "{}: {settings}", kind.name());
    }
}

#[test]
fn sessions_are_spread_over_several_servers_and_shown_apart() {
    if !Kind::Postgres.present() {
        return;
    }
    let (folder, server) = (Folder::new(), Kind::Postgres.shared());
    folder.write("one_table.lua", ONE_TABLE);
    let urls: Vec<String> = (0..2).map(|_| server.url(&server.fresh_database().unwrap())).collect();
    let databases = format!("--db {} --db {}", urls[0], urls[1]);
    let ran = folder
        .run(&format!("run ./one_table.lua {databases} --prepare --sessions 4 --time 300ms --format json --no-record"));
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    let findings: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let stage = &findings["stages"][0];
    let count = |tally: &serde_json::Value| tally["transactions"].as_u64().unwrap();
    let apart: Vec<u64> = stage["targets"].as_array().unwrap().iter().map(count).collect();
    assert_eq!(apart.len(), 2);
    assert!(apart.iter().all(|transactions| *transactions > 0), "{apart:?}");
    assert_eq!(apart.iter().sum::<u64>(), count(&stage["total"]));
}

#[test]
fn a_server_that_goes_away_and_comes_back_is_an_outage_and_no_end() {
    for kind in KINDS.into_iter().filter(|kind| kind.present()) {
        let (folder, server) = (Folder::new(), kind.start(&ServerSetup::default()).unwrap());
        folder.write("one_table.lua", ONE_TABLE);
        let url = server.url(&server.fresh_database().unwrap());
        assert_eq!(folder.run(&format!("prepare ./one_table.lua --db {url}")).code, Some(0));
        let line =
            format!("run ./one_table.lua --db {url} --sessions 2 --time 0 --interval 100ms --no-record --format json");
        let mut started = folder.start(&line);
        started.wait_for("   0.2   ");
        server.kill9().unwrap();
        started.wait_for("is unavailable");
        server.restart().unwrap();
        started.wait_for("is back");
        started.signal(nix::sys::signal::Signal::SIGINT);
        let ran = started.finish();
        assert_eq!(ran.code, Some(0), "{}: {}", kind.name(), ran.shown());
        let findings: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let reconnects = findings["stages"][0]["total"]["reconnects"].as_u64();
        assert!(reconnects >= Some(1), "{}: {}", kind.name(), ran.shown());
    }
}

#[test]
fn a_server_that_is_down_is_named_with_cause_and_advice() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let port = testkit::free_port().unwrap();
    let told = |scheme: &str| {
        let ran =
            folder.run(&format!("run ./one_table.lua --no-record --db {scheme}://app:secret@127.0.0.1:{port}/bench"));
        testkit::redact::replace(&ran.shown(), &[(&port.to_string(), "[PORT]")])
    };
    assert_snapshot!(told("postgres"), @r"
    exit 4
    --- stderr
    error: cannot connect to postgres://app@127.0.0.1:[PORT]/bench
      connecting to 127.0.0.1:[PORT]: connection refused

    hint: check that the server is running and listening on this address and port
    ");
    assert_snapshot!(told("mysql"), @r"
    exit 4
    --- stderr
    error: cannot connect to mysql://app@127.0.0.1:[PORT]/bench
      connecting to 127.0.0.1:[PORT]: connection refused

    hint: check that the server is running and listening on this address and port
    ");
}

#[test]
fn postgres_refusals_are_explained() {
    if !Kind::Postgres.present() {
        return;
    }
    let access = ["host all app 127.0.0.1/32 scram-sha-256", "host all guest 127.0.0.1/32 trust"].map(str::to_owned);
    let settings = ServerSetup { access: access.into(), max_connections: 10, ..ServerSetup::default() };
    let server = Kind::Postgres.start(&settings).unwrap();
    server.sql("", "ALTER ROLE app PASSWORD 'right'; CREATE ROLE guest LOGIN;").unwrap();
    let database = server.fresh_database().unwrap();
    let told = |user: &str, database: &str, options: &str| refusal(&server, user, database, options);
    assert_snapshot!(told("app:wrong", &database, ""), @r#"
    exit 4
    --- stderr
    error: postgres://app@127.0.0.1:[PORT]/[DATABASE] refused the connection
      password authentication failed for user "app" (28P01)

    hint: check user and password: the URL, PGUSER and PGPASSWORD, ~/.pgpass
    "#);
    assert_snapshot!(told("app:right", "absent", ""), @r#"
    exit 4
    --- stderr
    error: postgres://app@127.0.0.1:[PORT]/[DATABASE] refused the connection
      database "[DATABASE]" does not exist (3D000)

    hint: create the database first (createdb NAME), or use another one in the URL
    "#);
    assert_snapshot!(told("guest", &database, "--sessions 50"), @r"
    exit 4
    --- stderr
    error: postgres://guest@127.0.0.1:[PORT]/[DATABASE] refused the connection
      remaining connection slots are reserved for non-replication superuser connections (53300)

    hint: 50 sessions were asked for; the server allows max_connections clients, of which superuser_reserved_connections are reserved: use fewer sessions, or raise it (ALTER SYSTEM SET max_connections = n, then restart the server)
    ");
    assert_snapshot!(told("guest", &database, ""), @r#"
    exit 4
    --- stderr
    error: workload ./one_table.lua failed in `one_table`
      postgres://guest@127.0.0.1:[PORT]/[DATABASE]: relation "counter" does not exist (42P01, missing)
      ./one_table.lua:36: SQL error, errno = 0, state = '42P01': relation "counter" does not exist
      ./one_table.lua:36: in function 'event'

    hint: are the tables prepared? assay prepare ./one_table.lua --db postgres://guest@127.0.0.1:[PORT]/[DATABASE]
    hint: or add `--prepare` to prepare the tables before the run
    "#);
}

#[test]
fn mariadb_refusals_are_explained() {
    if !Kind::MariaDb.present() {
        return;
    }
    let settings = ServerSetup { max_connections: 10, ..ServerSetup::default() };
    let server = Kind::MariaDb.start(&settings).unwrap();
    server
        .sql("", "CREATE USER jane@'127.0.0.1' IDENTIFIED BY 'right'; GRANT ALL ON *.* TO jane@'127.0.0.1';")
        .unwrap();
    let database = server.fresh_database().unwrap();
    let told = |user: &str, database: &str, options: &str| refusal(&server, user, database, options);
    assert_snapshot!(told("jane:wrong", &database, ""), @r"
    exit 4
    --- stderr
    error: mysql://jane@127.0.0.1:[PORT]/[DATABASE] refused the connection
      Access denied for user 'jane'@'127.0.0.1' (using password: YES) (1045)

    hint: check user and password; an account is a user name and the host it connects from
    ");
    assert_snapshot!(told("jane:right", "absent", ""), @r"
    exit 4
    --- stderr
    error: mysql://jane@127.0.0.1:[PORT]/[DATABASE] refused the connection
      Unknown database '[DATABASE]' (1049)

    hint: create it: `CREATE DATABASE name`, or name another after the `/` of the URL
    ");
    assert_snapshot!(told("jane:right", &database, "--sessions 50"), @r"
    exit 4
    --- stderr
    error: mysql://jane@127.0.0.1:[PORT]/[DATABASE] refused the connection
      Too many connections (1040)

    hint: the server's max_connections (default 151) is too small for 50 sessions: `SET GLOBAL max_connections = 62` (and under [mysqld] in my.cnf, where a start lowers it to what open_files_limit has room for), or lower `--sessions`
    ");
    assert_snapshot!(told("jane:right", &database, ""), @r"
    exit 4
    --- stderr
    error: workload ./one_table.lua failed in `one_table`
      mysql://jane@127.0.0.1:[PORT]/[DATABASE]: Table '[DATABASE].counter' doesn't exist (1146, missing)
      ./one_table.lua:36: SQL error, errno = 1146, state = '42S02': Table '[DATABASE].counter' doesn't exist
      ./one_table.lua:36: in function 'event'

    hint: are the tables prepared? assay prepare ./one_table.lua --db 'mariadb://jane:***@127.0.0.1:[PORT]/[DATABASE]'
    hint: or add `--prepare` to prepare the tables before the run
    ");
}
