//! Causes planted on MariaDB and MySQL, and what `assay explain` makes of them.
//!
//! As the lists of sessions tell it: most servers run without the performance schema's waits. Baseline and candidate
//! take turns, four trials each, so that a busy machine disturbs both alike.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testkit::{Fault, Kind, Proxy, Server, ServerSetup};

use crate::common::Folder;
use crate::kinds;

/// A cause, and what counts as naming it: a setting, or a mechanism as in JSON.
struct Planted {
    name: &'static str,
    /// Statement of the workload; `%d` is a row.
    statement: &'static str,
    /// SQL before each trial of the baseline, and of the candidate.
    before: [&'static str; 2],
    /// What happens beside the trials of the candidate, until the flag is set.
    beside: Option<fn(&Server, &AtomicBool)>,
    expected: &'static [&'static str],
    /// Whether its effect is so large that no busy machine hides it.
    is_large: bool,
}

const SETUP: &str = "
    CREATE TABLE t (id INT PRIMARY KEY, k INT, n INT, pad CHAR(100), KEY by_k (k)) ENGINE = InnoDB;
    INSERT INTO t SELECT a.n + 100 * b.n, (a.n + 100 * b.n) % 1000, 0, REPEAT('x', 100)
        FROM (SELECT x.n + 10 * y.n AS n FROM digit x, digit y) a, (SELECT x.n + 10 * y.n AS n FROM digit x, digit y) b;
    ANALYZE TABLE t;
";
const DIGITS: &str = "CREATE TABLE digit (n INT); INSERT INTO digit VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);";
const READ: &str = "SELECT pad FROM t WHERE id = %d";
const UPDATE: &str = "UPDATE t SET n = n + 1 WHERE id = %d";

const NOTHING: Planted =
    Planted { name: "", statement: READ, before: ["", ""], beside: None, expected: &[], is_large: false };

const PLANTED: [Planted; 7] = [
    Planted {
        name: "a trigger that sleeps",
        statement: UPDATE,
        before: [
            "DROP TRIGGER IF EXISTS nap",
            "CREATE TRIGGER nap BEFORE UPDATE ON t FOR EACH ROW SET @napped = SLEEP(0.01)",
        ],
        expected: &["sleeps"],
        is_large: true,
        ..NOTHING
    },
    Planted {
        name: "a locked table",
        statement: UPDATE,
        beside: Some(locks),
        expected: &["locks"],
        is_large: true,
        ..NOTHING
    },
    Planted {
        name: "a dropped index",
        statement: "SELECT COUNT(pad) FROM t WHERE k = %d % 1000",
        expected: &["pages_per_transaction"],
        is_large: true,
        ..NOTHING
    },
    Planted { name: DELAY, expected: &["outside"], is_large: true, ..NOTHING },
    Planted {
        name: "a log that syncs",
        statement: UPDATE,
        before: ["SET GLOBAL innodb_flush_log_at_trx_commit = 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 1"],
        expected: &["innodb_flush_log_at_trx_commit", "log_waits"],
        ..NOTHING
    },
    Planted {
        name: "rows that others hold",
        statement: "UPDATE t SET n = n + 1 WHERE id = 1 + 0 * %d",
        beside: Some(rows),
        expected: &["locks"],
        is_large: true,
        ..NOTHING
    },
    Planted { name: "a noisy neighbor", beside: Some(neighbor), expected: &["other_processes"], ..NOTHING },
];

/// It is the only one whose runs connect through a proxy.
const DELAY: &str = "a network that delays";

fn locks(server: &Server, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        server.sql("app", &"LOCK TABLES t WRITE; SELECT SLEEP(0.1); UNLOCK TABLES;".repeat(5)).unwrap();
    }
}

fn rows(server: &Server, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let held = "BEGIN; UPDATE t SET n = n + 1 WHERE id = 1; SELECT SLEEP(0.05); COMMIT;";
        server.sql("app", &held.repeat(5)).unwrap();
    }
}

fn neighbor(_: &Server, is_over: &AtomicBool) {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
    });
}

/// The first two pieces of evidence from trials of this length, and the whole explanation.
fn evidence(planted: &Planted, server: &Server, length: &str) -> (Vec<String>, String) {
    let folder = Folder::new();
    let statement = planted.statement.replace("% 1000", "%% 1000");
    folder.write(
        "one.lua",
        &format!(
            "
        function event() con:query(string.format({statement:?}, sysbench.rand.uniform(1, 9999))) end
        function thread_init() drv = sysbench.sql.driver(); con = drv:connect() end
    "
        ),
    );
    let proxy = (planted.name == DELAY).then(|| Proxy::to(server.port()).unwrap());
    for trial in 1..=4 {
        for (side, before) in ["before", "after"].into_iter().zip(planted.before) {
            if planted.name == "a dropped index" {
                let has = "SELECT COUNT(*) FROM information_schema.STATISTICS WHERE INDEX_NAME = 'by_k'";
                let is_there = server.sql("app", has).unwrap().trim() == "1";
                match (side, is_there) {
                    ("before", false) => drop(server.sql("app", "ALTER TABLE t ADD KEY by_k (k)").unwrap()),
                    ("after", true) => drop(server.sql("app", "ALTER TABLE t DROP KEY by_k").unwrap()),
                    _ => {}
                }
            } else if !before.is_empty() {
                server.sql("app", before).unwrap();
            }
            match &proxy {
                Some(proxy) if side == "after" => proxy.inflict(Fault::Delay(Duration::from_millis(2))),
                Some(proxy) => proxy.heal(),
                None => {}
            }
            let port = proxy.as_ref().map_or_else(|| server.port(), Proxy::port);
            let url = server.url("app").replace(&format!(":{}/", server.port()), &format!(":{port}/"));
            let run =
                format!("run ./one.lua --db {url} --sessions 8 {length} --record {side}-{trial}.json.zst --quiet");
            let is_over = &AtomicBool::new(false);
            std::thread::scope(|scope| {
                if let Some(beside) = planted.beside.filter(|_| side == "after") {
                    scope.spawn(move || beside(server, is_over));
                }
                let ran = folder.run(&run);
                is_over.store(true, Ordering::Relaxed);
                assert_eq!(ran.code, Some(0), "{}: {}", planted.name, ran.shown());
            });
        }
    }
    let side = |name: &str| (1..=4).map(|trial| format!(" {name}-{trial}.json.zst")).collect::<String>();
    let explain = format!("explain --baseline{} --candidate{}", side("before"), side("after"));
    let found = folder.expect(&format!("{explain} --json"), 0).findings();
    let names = |list: &str, key: &str| -> Vec<String> {
        found[list].as_array().unwrap().iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    let mut all = names("settings", "what");
    all.extend(names("causes", "mechanism"));
    all.truncate(2);
    (all, folder.expect(&explain, 0).stdout)
}

fn server(kind: Kind) -> Server {
    let server = kind.start(&ServerSetup::default()).unwrap();
    server.sql("app", DIGITS).unwrap();
    server.sql("app", SETUP).unwrap();
    server
}

fn is_named(planted: &Planted, found: &[String]) -> bool {
    // A setting is named `server innodb_buffer_pool_size`.
    let is = |found: &String, name: &&str| found.as_str() == *name || found.ends_with(&format!(" {name}"));
    found.iter().any(|found| planted.expected.iter().any(|name| is(found, name)))
}

#[test]
fn a_large_planted_cause_is_among_the_first_two() {
    // A lock on MariaDB, a sleep on MySQL.
    for (kind, name) in kinds().zip(["a locked table", "a trigger that sleeps"]) {
        let server = server(kind);
        let planted = PLANTED.iter().find(|planted| planted.name == name).unwrap();
        let (found, text) = evidence(planted, &server, "--time 500ms");
        assert!(is_named(planted, &found), "{kind:?}, {name}: {found:?}\n{text}");
    }
}

/// The others need a machine that does little else.
#[test]
fn six_of_seven_planted_causes_are_among_the_first_two() {
    if !testkit::matrix() {
        return;
    }
    for kind in kinds() {
        let server = server(kind);
        let (mut table, mut named) = (String::new(), 0);
        for planted in &PLANTED {
            let length = if planted.is_large { "--time 1s" } else { "--time 3s" };
            let (found, text) = evidence(planted, &server, length);
            let is_named = is_named(planted, &found);
            named += u32::from(is_named);
            let mark = if is_named { "found" } else { "MISSED" };
            writeln!(table, "{:30} {mark:7} {}", planted.name, found.join(", ")).unwrap();
            println!("{}: {text}", planted.name);
        }
        println!("{kind:?}\n{table}");
        assert!(named >= 6, "{kind:?}\n{table}");
    }
}
