//! Causes planted on real servers, and what `assay explain` makes of them.
//!
//! Baseline and candidate take turns, four trials each, so that a busy machine disturbs both alike.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testkit::{Fault, Kind, Proxy, Server, ServerSetup};

use crate::common::Folder;

/// A cause, and what counts as naming it: a setting, or a mechanism as in JSON.
struct Planted {
    name: &'static str,
    /// Statement of the workload; `%d` is a row.
    statement: &'static str,
    /// SQL before each trial of the baseline, and of the candidate.
    before: [&'static str; 2],
    /// Whether the server is restarted before each trial.
    restarts: bool,
    /// What happens beside the trials of the candidate, until the flag is set.
    beside: Option<fn(&Server, &AtomicBool)>,
    expected: &'static [&'static str],
    /// Whether its effect is so large that no busy machine hides it.
    is_large: bool,
}

const SETUP: &str = "
    CREATE TABLE t AS SELECT i AS id, i % 1000 AS k, 1 AS j, repeat('x', 100) AS pad FROM generate_series(1, 20000) i;
    CREATE INDEX t_id ON t (id);
    CREATE INDEX t_k ON t (k);
    CREATE TABLE u AS SELECT i AS id, 0 AS n, repeat('x', 400) AS pad FROM generate_series(1, 20000) i;
    CREATE INDEX u_id ON u (id);
    CREATE TABLE a AS SELECT i AS id, 1 AS x, 1 AS y, 1 AS z FROM generate_series(1, 3000) i;
    CREATE TABLE b AS SELECT i AS id, repeat('x', 100) AS pad FROM generate_series(1, 3000) i;
    CREATE INDEX b_id ON b (id);
    CREATE TABLE v AS SELECT i AS id, i % 100 AS k, 0 AS n, repeat('x', 100) AS pad FROM generate_series(1, 2000) i;
    CREATE TABLE w AS SELECT i AS id, 0 AS n FROM generate_series(1, 20000) i;
    CREATE INDEX w_id ON w (id);
    CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END$$;
    GRANT ALL ON ALL TABLES IN SCHEMA public TO app;
    VACUUM ANALYZE;
    CHECKPOINT;
";
const READ: &str = "SELECT pad FROM t WHERE id = %d";
const UPDATE: &str = "UPDATE u SET n = n + 1 WHERE id = %d";

const NOTHING: Planted = Planted {
    name: "",
    statement: READ,
    before: ["", ""],
    restarts: false,
    beside: None,
    expected: &[],
    is_large: false,
};

const PLANTED: [Planted; 13] = [
    Planted {
        name: "a dropped index",
        before: ["CREATE INDEX IF NOT EXISTS t_id ON t (id)", "DROP INDEX IF EXISTS t_id"],
        expected: &["plan", "pages_per_transaction"],
        is_large: true,
        ..NOTHING
    },
    Planted {
        name: "a smaller cache",
        statement: "SELECT count(pad) FROM t WHERE k = %d % 1000",
        before: ["ALTER SYSTEM SET shared_buffers = '128MB'", "ALTER SYSTEM SET shared_buffers = '512kB'"],
        restarts: true,
        expected: &["shared_buffers", "misses"],
        ..NOTHING
    },
    Planted {
        name: "full pages after checkpoints",
        statement: UPDATE,
        // Otherwise the drive decides, which does not care for the size of what it flushes.
        before: ["ALTER SYSTEM SET synchronous_commit = off; SELECT pg_reload_conf()", ""],
        beside: Some(checkpoints),
        expected: &["log_volume"],
        ..NOTHING
    },
    Planted {
        name: "a log that syncs",
        statement: UPDATE,
        before: [
            "ALTER SYSTEM SET synchronous_commit = off; SELECT pg_reload_conf()",
            "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf()",
        ],
        expected: &["synchronous_commit", "log_waits"],
        ..NOTHING
    },
    Planted {
        name: "a noisy neighbor",
        before: ["", ""],
        beside: Some(neighbor),
        expected: &["other_processes"],
        ..NOTHING
    },
    Planted {
        name: "a missing ANALYZE",
        statement: "SELECT count(b.pad) FROM a JOIN b ON a.id = b.id \
                    WHERE a.x = 1 AND a.y = 1 AND a.z = 1 AND a.id <> %d",
        before: ["ANALYZE a; ANALYZE b", "DELETE FROM pg_statistic WHERE starelid IN ('a'::regclass, 'b'::regclass)"],
        expected: &["plan", "pages_per_transaction"],
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
        name: "a drive that others use",
        statement: UPDATE,
        beside: Some(drive),
        expected: &["log_waits"],
        ..NOTHING
    },
    Planted {
        name: "another plan",
        statement: "SELECT count(pad) FROM t WHERE k = %d % 1000",
        before: [
            "ALTER ROLE app RESET ALL",
            "ALTER ROLE app SET enable_bitmapscan = off; ALTER ROLE app SET enable_indexscan = off",
        ],
        expected: &["enable_bitmapscan", "enable_indexscan", "plan", "pages_per_transaction"],
        is_large: true,
        ..NOTHING
    },
    Planted {
        name: "a trigger that sleeps",
        statement: "UPDATE w SET n = n + 1 WHERE id = %d",
        before: [
            "DROP TRIGGER IF EXISTS nap ON w",
            "CREATE TRIGGER nap BEFORE UPDATE ON w FOR EACH ROW EXECUTE PROCEDURE nap()",
        ],
        expected: &["sleeps"],
        ..NOTHING
    },
    Planted {
        name: "a bloated table",
        statement: "SELECT count(pad) FROM v WHERE k = %d % 100",
        before: ["VACUUM FULL v", "DO $$BEGIN FOR i IN 1..60 LOOP UPDATE v SET n = n + 1;END LOOP;END$$"],
        expected: &["bloat"],
        ..NOTHING
    },
    Planted { name: DELAY, expected: &["outside"], ..NOTHING },
    // Its servers are started by the runs.
    Planted {
        name: "a pooler",
        statement: "SELECT pg_sleep(0.002 + 0 * %d)",
        expected: &["default_pool_size", "pooler"],
        ..NOTHING
    },
];

/// It is the only one whose runs connect through a proxy.
const DELAY: &str = "a network that delays";

fn checkpoints(server: &Server, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        server.sql("app", "CHECKPOINT").unwrap();
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

fn locks(server: &Server, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let held = "BEGIN; LOCK TABLE u IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(0.1); COMMIT;";
        server.sql("app", &held.repeat(5)).unwrap();
    }
}

fn drive(_: &Server, is_over: &AtomicBool) {
    let folder = testkit::lab_folder().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut file: File = tempfile::tempfile_in(&folder).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    file.write_all(&vec![7; 4 << 20]).unwrap();
                    file.sync_all().unwrap();
                    file.set_len(0).unwrap();
                    std::io::Seek::rewind(&mut file).unwrap();
                }
            });
        }
    });
}

/// The first two pieces of evidence from trials of this length, and the whole explanation.
fn evidence(planted: &Planted, server: &Server, length: &str) -> (Vec<String>, String) {
    let folder = Folder::new();
    folder.write(
        "one.lua",
        &format!(
            "
        function event() con:query(string.format({:?}, sysbench.rand.uniform(1, 20000))) end
        function thread_init() drv = sysbench.sql.driver(); con = drv:connect() end
    ",
            planted.statement.replace("% 1", "%% 1")
        ),
    );
    let is_pooler = planted.name == "a pooler";
    let proxy = (planted.name == DELAY).then(|| Proxy::to(server.port()).unwrap());
    for trial in 1..=4 {
        for (side, before) in ["before", "after"].into_iter().zip(planted.before) {
            if !before.is_empty() {
                before.split("; ").for_each(|one| drop(server.sql("app", one).unwrap()));
            }
            if planted.restarts {
                server.restart().unwrap();
            }
            match &proxy {
                Some(proxy) if side == "after" => proxy.inflict(Fault::Delay(Duration::from_millis(40))),
                Some(proxy) => proxy.heal(),
                None => {}
            }
            let port = proxy.as_ref().map_or_else(|| server.port(), Proxy::port);
            let url = server.url("app").replace(&format!(":{}/", server.port()), &format!(":{port}/"));
            let target = match is_pooler {
                false => format!("--db {url}"),
                true => format!(
                    "--server postgres:15 --front pgbouncer --front-set default_pool_size={} --prepared off",
                    if side == "before" { 20 } else { 1 }
                ),
            };
            let run = format!("run ./one.lua {target} --sessions 8 {length} --record {side}-{trial}.json.zst --quiet");
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
    all.extend(names("plans", "statement").iter().map(|_| "plan".to_owned()));
    all.extend(names("causes", "mechanism"));
    all.truncate(2);
    (all, folder.expect(&explain, 0).stdout)
}

fn server() -> Server {
    let config = ["fsync = on", "full_page_writes = on", "autovacuum = off", "checkpoint_timeout = 1h"];
    let config = config.map(String::from).to_vec();
    let server = Kind::Postgres.start(&ServerSetup { config, ..ServerSetup::default() }).unwrap();
    server.sql("app", SETUP).unwrap();
    server
}

fn is_named(planted: &Planted, found: &[String]) -> bool {
    // A setting is named `server shared_buffers`.
    let is = |found: &String, name: &&str| found.as_str() == *name || found.ends_with(&format!(" {name}"));
    found.iter().any(|found| planted.expected.iter().any(|name| is(found, name)))
}

#[test]
fn large_planted_causes_are_among_the_first_two() {
    if !Kind::Postgres.present() {
        return;
    }
    let server = server();
    for planted in PLANTED.iter().filter(|planted| planted.is_large) {
        // What sessions execute is sampled once per second, and what they wait for ten times.
        let needs_plans = planted.expected.contains(&"plan");
        let length = if needs_plans { "--warmup 200ms --time 1s" } else { "--time 500ms" };
        let (found, text) = evidence(planted, &server, length);
        assert!(is_named(planted, &found), "{}: {found:?}\n{text}", planted.name);
    }
}

/// The others need a machine that does little else.
#[test]
fn twelve_of_thirteen_planted_causes_are_among_the_first_two() {
    if !Kind::Postgres.present() || !Kind::PgBouncer.present() || !testkit::matrix() {
        return;
    }
    let server = server();
    let (mut table, mut named) = (String::new(), 0);
    for planted in &PLANTED {
        let (found, text) = evidence(planted, &server, "--warmup 500ms --time 3s");
        let is_named = is_named(planted, &found);
        named += u32::from(is_named);
        let mark = if is_named { "found" } else { "MISSED" };
        writeln!(table, "{:30} {mark:7} {}", planted.name, found.join(", ")).unwrap();
        println!("{}: {text}", planted.name);
    }
    println!("{table}");
    assert!(named >= 12, "{table}");
}

/// Pairs of runs between which nothing was changed.
#[test]
fn nothing_is_named_where_nothing_was_planted() {
    if !Kind::Postgres.present() || !testkit::matrix() {
        return;
    }
    let server = server();
    for pair in 1..=20 {
        let (found, text) = evidence(&NOTHING, &server, "--warmup 200ms --time 2s");
        assert!(found.is_empty(), "pair {pair}: {found:?}\n{text}");
    }
}
