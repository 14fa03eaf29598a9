//! Telemetry of a load whose true counts are known, at a rate at which the sampler's own work would show.

use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::Server;

use super::Folder;

/// Two loads, with prepared statements or without: a SELECT with autocommit, and a transaction of five statements.
const KNOWN: &str = r#"--- Statements whose number is known.

sysbench.cmdline.options = { transactional = {"Whether to use transactions", false} }

function prepare()
  local con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE known(id INT PRIMARY KEY, v INT)")
  for id = 1, 100 do con:query("INSERT INTO known VALUES (" .. id .. ", 0)") end
end

function thread_init()
  con = sysbench.sql.driver():connect()
  select = con:prepare("SELECT v FROM known WHERE id = ?")
  update = con:prepare("UPDATE known SET v = v + 1 WHERE id = ?")
  id = select:bind_create(sysbench.sql.type.INT)
  select:bind_param(id)
  id_of_update = update:bind_create(sysbench.sql.type.INT)
  update:bind_param(id_of_update)
end

function event()
  id:set(sysbench.rand.uniform(1, 100))
  id_of_update:set(sysbench.rand.uniform(1, 100))
  if sysbench.opt.transactional then
    con:query("BEGIN")
    select:execute()
    select:execute()
    update:execute()
    con:query("COMMIT")
  else
    select:execute()
  end
end
"#;

/// Transactions at five per second, beside which telemetry sends about four times as many statements.
const WATCHED: u64 = 75;
/// Log bytes per transaction that a server may write on its own at this rate.
const OWN_LOG: f64 = 400.0;

/// One of the two loads.
#[derive(Clone, Copy)]
struct Load {
    transactional: bool,
    prepared: bool,
}

/// Compares what telemetry says with what is true of each load, and returns a row per metric. Panics with all
/// differences. A server may do work of its own during a run, and on a busy machine the statistics of an old PostgreSQL
/// arrive seconds late, in the next run's counts. So one of several must agree: a wrong figure never does.
pub(crate) fn check_counts(wanted: &str, server: &Server) -> String {
    const RUNS: usize = 6;
    let (folder, url) = (Folder::new(), server.url("app"));
    folder.write("known.lua", KNOWN);
    folder.expect(&format!("prepare ./known.lua --db {url} --no-record --quiet"), 0);
    if is_postgres(server) {
        // Otherwise autovacuum does it in the middle, and plans change.
        server.sql("app", "ANALYZE known").unwrap();
    }
    let (mut table, mut wrong) = (String::new(), String::new());
    for load in [(false, false), (false, true), (true, false), (true, true)] {
        let load = Load { transactional: load.0, prepared: load.1 };
        let mut differing = String::new();
        for _ in 0..RUNS {
            let (rows, differ) = watch(wanted, server, &folder, load);
            if differ.is_empty() {
                table += &rows;
                differing.clear();
                break;
            }
            differing += &differ;
        }
        wrong += &differing;
    }
    assert!(wrong.is_empty(), "differs from the truth:\n{wrong}");
    table
}

/// A row for each metric in a run, and those that are wrong.
fn watch(wanted: &str, server: &Server, folder: &Folder, load: Load) -> (String, String) {
    let command = format!(
        "run ./known.lua --db {} --sessions 1 --transactional {} --prepared {} --no-record --format json",
        server.url("app"),
        if load.transactional { "on" } else { "off" },
        if load.prepared { "on" } else { "off" },
    );
    let counted = |rate: &str, transactions: u64| {
        let before = Truth::read(server);
        folder.expect(&format!("{command} --telemetry off {rate} --transactions {transactions}"), 0);
        Truth::once_counted(server, &before, transactions).less(&before)
    };
    // What InnoDB does later for a transaction depends on the rate. PostgreSQL reads its catalogs for each new session:
    // the difference of two runs is without that.
    let alone = match is_postgres(server) {
        true => counted("", 500).less(&counted("", 100)).divided_by(400.0),
        false => counted("--rate 5", WATCHED).divided_by(WATCHED as f64),
    };
    // PostgreSQL publishes what a session has read up to a second later, and a first statement reads catalogs.
    let options = format!("--rate 5 --warmup 3s --transactions {WATCHED} --telemetry full");
    let stage = folder.expect(&format!("{command} {options}"), 0).findings()["stages"][0].clone();
    assert_eq!(stage["total"]["transactions"], WATCHED, "{stage}");
    let (mut rows, mut wrong) = (String::new(), String::new());
    for (metric, truth) in truths(server, load, &alone) {
        let found = value(&stage["telemetry"][0], metric);
        let said = match &found {
            Ok(value) => format!("{value:.2}"),
            Err(reason) => format!("absent: {reason}"),
        };
        let agrees = |of: f64, tolerance: f64| found.as_ref().is_ok_and(|value| (value - of).abs() <= tolerance);
        let (right, expected) = match truth {
            Is(of, tolerance) => (agrees(of, tolerance), format!("{of:.2} ± {tolerance:.2}")),
            Either(of, tolerance) => {
                (agrees(of, tolerance) || found.is_err(), format!("{of:.2} ± {tolerance:.2}, or absent"))
            }
            Absent(words) => (found.as_ref().is_err_and(|reason| reason.contains(words)), format!("absent: {words}")),
        };
        let kind = if load.transactional { "transaction" } else { "autocommit" };
        let prepared = if load.prepared { "prepared" } else { "text" };
        let row = format!("{wanted} | {kind} | {prepared} | {metric} | {expected} | {said}\n");
        if !right {
            wrong += &row;
        }
        rows += &row;
    }
    (rows, wrong)
}

fn is_postgres(server: &Server) -> bool {
    server.url("").starts_with("postgres")
}

enum Expected {
    /// This value, with this tolerance.
    Is(f64, f64),
    /// Not reported, for a reason with these words.
    Absent(&'static str),
    /// This value where the server has it.
    Either(f64, f64),
}
use Expected::{Absent, Either, Is};

/// What is true of one transaction.
fn truths(server: &Server, load: Load, alone: &Truth) -> Vec<(&'static str, Expected)> {
    let is_postgres = is_postgres(server);
    let statements = if load.transactional { 5.0 } else { 1.0 };
    let mut all = vec![
        ("rollbacks", Is(0.0, 0.05)),
        ("buffer_misses", Either(0.0, 0.5)),
        ("deadlocks", Is(0.0, 0.0)),
        ("temporary_bytes", Either(0.0, 0.0)),
        ("temporary_disk_tables", Either(0.0, 0.0)),
        ("lock_waits", Either(0.0, 0.0)),
        ("log_buffer_full", Either(0.0, 0.0)),
    ];
    all.push(match (is_postgres, load.transactional) {
        // PostgreSQL counts up to a second late.
        (true, _) => ("commits", Is(1.0, 0.15)),
        (false, true) => ("commits", Is(1.0, 0.03)),
        (false, false) => ("commits", Absent("autocommit")),
    });
    all.push(match is_postgres {
        // Where the extension can be loaded.
        true => ("statements", Either(statements, 0.1 * statements)),
        false => ("statements", Is(statements, 0.05 * statements)),
    });
    // Writing leaves work for later.
    let spread = 0.15 * alone.reads + if load.transactional { 3.0 } else { 0.3 };
    // docs/methodology.md: some sixty reads of a stage are not explained yet.
    let unexplained = if is_postgres && !load.prepared { 80.0 / WATCHED as f64 } else { 0.0 };
    all.push(("buffer_reads", Is(alone.reads, spread + unexplained)));
    all.push(("log_bytes", Is(alone.log, 0.3 * alone.log + OWN_LOG)));
    all
}

/// A metric per transaction, or why there is none.
fn value(scope: &Value, metric: &str) -> Result<f64, String> {
    let named = |list: &Value| list.as_array().and_then(|all| all.iter().find(|one| one["metric"] == metric).cloned());
    match (named(&scope["metrics"]), named(&scope["absent"])) {
        (Some(found), _) => found["per_transaction"].as_f64().ok_or_else(|| format!("no value: {found}")),
        (None, Some(absent)) => Err(absent["reason"].as_str().unwrap_or_default().to_owned()),
        (None, None) => Err("not read".to_owned()),
    }
}

/// The server's own counters, read beside it.
#[derive(Debug, Default)]
struct Truth {
    commits: f64,
    reads: f64,
    log: f64,
}

impl Truth {
    fn read(server: &Server) -> Truth {
        let wal = "pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')";
        let xlog = "pg_xlog_location_diff(pg_current_xlog_location(), '0/0')";
        let version = server.version();
        let text = if is_postgres(server) {
            let position = if version.starts_with("9.") { xlog } else { wal };
            server.sql(
                "postgres",
                &format!(
                    "SELECT xact_commit, blks_hit + blks_read, {position} FROM pg_stat_database WHERE datname = 'app'"
                ),
            )
        } else {
            let status = |name: &str| format!("(SELECT VARIABLE_VALUE FROM STATUS WHERE VARIABLE_NAME = '{name}')");
            let is_mariadb = server.url("").starts_with("mariadb");
            let log = match (is_mariadb, version) {
                (true, version) if !version.starts_with("10.2") => status("Innodb_lsn_current"),
                (false, "8.0.31") => status("Innodb_redo_log_current_lsn"),
                _ => status("Innodb_os_log_written"),
            };
            let reads = match version {
                "10.11.5" => "(SELECT SUM(NUMBER_PAGES_GET) FROM information_schema.INNODB_BUFFER_POOL_STATS)".into(),
                _ => status("Innodb_buffer_pool_read_requests"),
            };
            let of = if is_mariadb { "information_schema.GLOBAL_STATUS" } else { "performance_schema.global_status" };
            server.sql("", &format!("SELECT 0, {reads}, {log}").replace("STATUS WHERE", &format!("{of} WHERE")))
        };
        let text = text.unwrap();
        let mut values = text.split_whitespace().map(|value| value.parse::<f64>().unwrap());
        let mut next = || values.next().unwrap_or_else(|| panic!("{text:?}"));
        Truth { commits: next(), reads: next(), log: next() }
    }

    /// Waits until PostgreSQL has counted all transactions: its sessions publish their counters when they end.
    fn once_counted(server: &Server, before: &Truth, transactions: u64) -> Truth {
        let began = Instant::now();
        loop {
            let now = Truth::read(server);
            if !is_postgres(server) || now.commits - before.commits >= transactions as f64 {
                return now;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{before:?} {now:?}");
        }
    }

    fn less(&self, before: &Truth) -> Truth {
        let Truth { commits, reads, log } = before;
        Truth { commits: self.commits - commits, reads: self.reads - reads, log: self.log - log }
    }

    fn divided_by(&self, number: f64) -> Truth {
        Truth { commits: self.commits / number, reads: self.reads / number, log: self.log / number }
    }
}

/// The versions of these products that are tested, all at once: they mostly wait.
pub(crate) fn check_versions(products: &[&str], config: impl Fn(&str) -> Vec<&'static str> + Sync) {
    let versions = testkit::versions();
    let chosen = versions.iter().filter(|wanted| products.iter().any(|product| wanted.starts_with(product)));
    let tables: Vec<String> = std::thread::scope(|scope| {
        let check = |wanted: &'_ String| {
            let server = testkit::start_version(wanted, &config(wanted)).unwrap();
            check_counts(wanted, &server)
        };
        let all: Vec<_> = chosen.map(|wanted| (wanted, scope.spawn(move || check(wanted)))).collect();
        let joined = all.into_iter().map(|(wanted, thread)| match thread.join() {
            Ok(table) => table,
            Err(panic) => {
                let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                panic!("{wanted}: {said}")
            }
        });
        joined.collect()
    });
    println!("{}", tables.concat());
}
