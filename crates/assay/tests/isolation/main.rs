//! `assay run isolation` and histories of scripts, by whole commands on every available database.
//!
//! Hermitage's cases are stepped by the script hermitage.lua, so that they happen always and not by luck. The workload
//! `isolation` then shows that nothing is found where nothing is.

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "shared with the other whole-command tests: each uses what it needs")]
mod common;

use nix::sys::signal::Signal;
use testkit::{Kind, ServerSetup};

use common::{Folder, Ran};

/// A database, and the folder that commands run in.
struct Place {
    folder: Folder,
    url: String,
}

impl Place {
    fn sqlite() -> Place {
        let folder = Folder::new();
        let url = format!("sqlite:{}?synchronous=off", folder.path().join("isolation.db").display());
        Place { folder, url }
    }

    fn on(kind: Kind) -> Place {
        let database = kind.shared().fresh_database().unwrap();
        Place { folder: Folder::new(), url: kind.shared().url(&database) }
    }

    /// With the tables of the cases.
    fn of_cases(self) -> Place {
        self.folder.write("hermitage.lua", include_str!("hermitage.lua"));
        self.folder.expect(&format!("prepare ./hermitage.lua --db {}", self.url), 0);
        self
    }

    /// Runs a case; the answer without its numbers of sessions and keys.
    #[track_caller]
    fn case(&self, case: &str, level: &str, expect: &str, more: &str) -> String {
        let url = &self.url;
        let options = format!("--case {case} --level {level} --expect {expect} --sessions 2 --transactions 2 {more}");
        let ran = self.folder.run(&format!("run ./hermitage.lua --db {url} --no-record {options}"));
        let answer = first_line(&ran);
        let is_violated = answer.contains(" violated in ");
        assert_eq!(ran.code, Some(i32::from(is_violated)), "{}", ran.shown());
        assert!(is_violated || answer.starts_with("no violation of "), "{}", ran.shown());
        // The numbers depend on whether the server ended a transaction.
        let found = answer.split_once("): ").map_or("nothing", |(_, found)| found);
        found.to_owned()
    }
}

/// The answer may be wrapped: everything before the first empty line.
fn first_line(ran: &Ran) -> String {
    ran.stdout.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

const LOST_UPDATE: &str = "1 × lost update (P4)";
const READ_SKEW: &str = "1 × read skew (G-single)";
const WRITE_SKEW: &str = "1 × write skew (G2-item)";

#[test]
fn postgres_shows_what_each_level_permits_and_nothing_else() {
    if !Kind::Postgres.present() {
        return;
    }
    let place = Place::on(Kind::Postgres).of_cases();
    let found = |case: &str, level: &str| place.case(case, level, "serializable", "");
    assert_eq!(found("lost_update", "read-committed"), LOST_UPDATE);
    assert_eq!(found("read_skew", "read-committed"), READ_SKEW);
    assert_eq!(found("write_skew", "read-committed"), WRITE_SKEW);
    for case in ["aborted_read", "intermediate_read", "dirty_write"] {
        assert_eq!(found(case, "read-uncommitted"), "nothing", "{case}");
    }
    // Neither sees the other's write: at READ COMMITTED that is write skew, and no circular information flow.
    assert_eq!(found("circular", "read-committed"), WRITE_SKEW);
    assert_eq!(found("lost_update", "repeatable-read"), "nothing");
    assert_eq!(found("read_skew", "repeatable-read"), "nothing");
    assert_eq!(found("write_skew", "repeatable-read"), WRITE_SKEW);
    for case in ["lost_update", "read_skew", "write_skew", "aborted_read", "intermediate_read", "circular"] {
        assert_eq!(found(case, "serializable"), "nothing", "{case}");
    }
    assert_eq!(place.case("write_skew", "repeatable-read", "snapshot-isolation", ""), "nothing");
    assert_eq!(place.case("lost_update", "read-committed", "read-committed", ""), "nothing");
}

#[test]
fn mysql_and_mariadb_lose_updates_at_repeatable_read() {
    for kind in [Kind::MySql, Kind::MariaDb].into_iter().filter(|kind| kind.present()) {
        let place = Place::on(kind).of_cases();
        let found = |case: &str, level: &str, more: &str| place.case(case, level, "serializable", more);
        let strictly = |on: &str| match kind {
            Kind::MariaDb => format!("--session-sql 'SET SESSION innodb_snapshot_isolation = {on}'"),
            _ => String::new(),
        };
        assert_eq!(found("lost_update", "repeatable-read", &strictly("OFF")), LOST_UPDATE, "{kind:?}");
        assert_eq!(found("read_skew", "repeatable-read", &strictly("OFF")), "nothing", "{kind:?}");
        assert_eq!(found("write_skew", "repeatable-read", &strictly("OFF")), WRITE_SKEW, "{kind:?}");
        assert_eq!(found("read_skew", "read-committed", ""), READ_SKEW, "{kind:?}");
        if kind == Kind::MariaDb {
            assert_eq!(found("lost_update", "repeatable-read", &strictly("ON")), "nothing");
        }
        // A writer waits for the other's end at every level.
        assert_eq!(found("dirty_write", "read-uncommitted", ""), "nothing", "{kind:?}");
        // What another one has not committed.
        assert_eq!(found("aborted_read", "read-uncommitted", ""), "1 × aborted read (G1a)", "{kind:?}");
        assert_eq!(
            found("intermediate_read", "read-uncommitted", ""),
            "1 × intermediate read (G1b), 1 × read skew (G-single)",
            "{kind:?}"
        );
        assert_eq!(found("circular", "read-uncommitted", ""), "1 × circular information flow (G1c)", "{kind:?}");
        assert_eq!(found("aborted_read", "read-committed", ""), "nothing", "{kind:?}");
    }
}

#[test]
fn sqlite_shows_nothing() {
    let place = Place::sqlite().of_cases();
    for case in ["lost_update", "write_skew", "aborted_read", "intermediate_read"] {
        assert_eq!(place.case(case, "serializable", "serializable", ""), "nothing", "{case}");
    }
}

/// Every product at its strictest, under load on few keys.
#[test]
fn no_violation_is_found_where_transactions_are_serializable() {
    let servers = [Kind::Postgres, Kind::MySql, Kind::MariaDb].into_iter().filter(|kind| kind.present());
    for place in servers.map(Place::on).chain([Place::sqlite()]) {
        let url = &place.url;
        place.folder.expect(&format!("prepare isolation --db {url} --keys 8"), 0);
        for model in ["append", "rows", "register", "bank"] {
            let load = "--sessions 4 --transactions 400 --keys 8 --operations 3 --retries 1000";
            let line = format!("run isolation --db {url} --model {model} --expect strict-serializable {load}");
            let ran = place.folder.expect(&line, 0);
            let answer = first_line(&ran);
            let right =
                if model == "bank" { "no wrong total in " } else { "no violation of strict serializability in " };
            assert!(answer.starts_with(right), "{}", ran.shown());
        }
    }
}

#[test]
fn a_run_at_a_weak_level_says_what_is_wrong_in_all_its_results() {
    if !Kind::Postgres.present() {
        return;
    }
    let place = Place::on(Kind::Postgres).of_cases();
    let line = format!(
        "run ./hermitage.lua --db {} --case lost_update --level read-committed --sessions 2 --transactions 2 \
         --record run.json.zst --history history.edn",
        place.url
    );
    let ran = place.folder.expect(&line, 1);
    let answer = first_line(&ran);
    let expected = "serializability violated in 2 transactions (2 sessions, 1 key): 1 × lost update (P4)";
    assert_eq!(answer, expected, "{}", ran.shown());
    assert!(ran.stderr.contains(&format!("error: {expected}")), "{}", ran.shown());
    let shown = place.folder.expect("show run.json.zst", 0);
    assert_eq!(first_line(&shown), answer);
    assert!(shown.stdout.contains("before T1: T1 wrote a later version of key 1\n"), "{}", shown.shown());
    let findings = place.folder.expect("show run.json.zst --format json", 0).findings();
    let anomalies = findings["isolation"]["anomalies"].as_array().unwrap();
    assert!(anomalies.iter().any(|anomaly| anomaly["phenomenon"] == "lost-update"), "{findings:#}");
    let history = std::fs::read_to_string(place.folder.path().join("history.edn")).unwrap();
    assert!(history.starts_with("{:index 0, :time "), "{history:.200}");
    assert_eq!(history.matches(":type :ok").count(), 2, "{history}");
}

/// With asynchronous commits, a crash loses what was acknowledged; otherwise, nothing is lost or seen too late.
#[test]
fn a_crash_that_loses_acknowledged_writes_is_found() {
    if !Kind::Postgres.present() {
        return;
    }
    for (commit, code) in [("off", 1), ("on", 0)] {
        // The log is written when the writer wakes up, and by nobody else at this low rate.
        let config = ["wal_writer_delay = '10s'", "wal_writer_flush_after = '1GB'", "bgwriter_lru_maxpages = 0"];
        let config = config.map(str::to_owned).to_vec();
        let server = Kind::Postgres.start(&ServerSetup { config, ..ServerSetup::default() }).unwrap();
        let database = server.fresh_database().unwrap();
        let (folder, url) = (Folder::new(), server.url(&database));
        folder.expect(&format!("prepare isolation --db {url} --keys 10"), 0);
        // Itself synchronous: what was prepared is kept.
        server.sql("", &format!("ALTER DATABASE {database} SET synchronous_commit = {commit};")).unwrap();
        let load = "--sessions 4 --keys 10 --rate 100 --time 60s --level read-committed --no-record";
        let mut run = folder.start(&format!("run isolation --db {url} --model register {load}"));
        run.wait_for_any_interval();
        server.kill9().unwrap();
        server.restart().unwrap();
        run.wait_for("is back");
        run.wait_for_any_interval();
        run.signal(Signal::SIGINT);
        let ran = run.finish();
        let answer = first_line(&ran);
        match code {
            1 => assert!(answer.contains(" × lost write"), "{}", ran.shown()),
            _ => assert!(answer.starts_with("no violation of read committed in "), "{}", ran.shown()),
        }
    }
}

#[test]
fn a_level_that_does_not_exist_is_refused_before_anything_is_prepared() {
    let place = Place::sqlite();
    let url = &place.url;
    for (option, error) in [
        ("--level serialisable", "error: --level serialisable: expected read-uncommitted, read-committed, "),
        ("--expect strict", "error: --expect strict: expected read-uncommitted, "),
        ("--model list", "error: --model list: expected append, rows, register or bank"),
    ] {
        let ran = place.folder.expect(&format!("run isolation --db {url} {option}"), 2);
        assert!(ran.stderr.contains(error), "{}", ran.shown());
    }
}

/// The history is written during the run, so that it can still be checked.
#[test]
fn the_history_of_a_run_that_was_killed_is_checked_when_its_record_is_shown() {
    let place = Place::sqlite();
    let url = &place.url;
    place.folder.expect(&format!("prepare isolation --db {url} --keys 8"), 0);
    let line =
        format!("run isolation --db {url} --model register --keys 8 --sessions 2 --time 60s --record run.json.zst");
    let mut run = place.folder.start(&line);
    run.wait_for_any_interval();
    run.wait_for_any_interval();
    run.signal(Signal::SIGKILL);
    run.finish();
    let shown = place.folder.expect("show run.json.zst", 0);
    let answer = first_line(&shown);
    assert!(answer.starts_with("no violation of serializability in "), "{}", shown.shown());
    // Nobody knows how it would have gone on.
    assert!(answer.contains("later ones not checked"), "{}", shown.shown());
    // Another run in its place has nothing to do with that history.
    let other = "run oltp_point_select --db sqlite:other.db --prepare --table-size 100 --transactions 5";
    place.folder.expect(&format!("{other} --record run.json.zst --force"), 0);
    assert!(!place.folder.path().join("run.json.zst.history").exists());
}

/// Each order's number comes from its district, and every New-Order counts it by one.
#[test]
fn the_numbers_of_orders_are_checked_while_tpcc_runs() {
    let servers = [Kind::Postgres, Kind::MySql, Kind::MariaDb].into_iter().filter(|kind| kind.present());
    for place in servers.map(Place::on).chain([Place::sqlite()]) {
        let url = &place.url;
        let small = "--warehouses 1 --customers 40 --items 100";
        place.folder.expect(&format!("prepare tpcc --db {url} {small}"), 0);
        let load = "--sessions 4 --transactions 200 --retries 1000 --no-record";
        let ran = place.folder.expect(&format!("run tpcc --db {url} --expect strict-serializable {load}"), 0);
        let answer = first_line(&ran);
        assert!(answer.starts_with("no violation of strict serializability in "), "{}", ran.shown());
        let ran = place.folder.expect(&format!("run tpcc --db {url} --expect serializable --procedures {load}"), 2);
        assert!(ran.stderr.contains("--expect: the numbers of orders are read inside"), "{}", ran.shown());
    }
}

/// A replica that applies changes seconds later, on purpose.
#[test]
fn reads_of_a_replica_are_stale_and_otherwise_isolated() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    let name = format!("isolation-{}", std::process::id());
    let options = "--replicas 1 --set recovery_min_apply_delay=2s";
    let started = folder.expect(&format!("server start postgres --name {name} {options}"), 0);
    let primary = started.stdout.trim();
    let replica = started.stderr.lines().find_map(|line| line.trim().strip_prefix("replica: ")).unwrap().to_owned();
    folder.expect(&format!("prepare isolation --db {primary} --keys 8"), 0);
    let line = format!(
        "run isolation --db {primary} --db {replica} --read-from 2 --model register --keys 8 --sessions 4 \
         --time 5s --level repeatable-read --expect read-committed --retries 1000 --record run.json.zst"
    );
    let ran = folder.expect(&line, 0);
    // Not snapshot isolation: on a primary, transactions become visible in another order than that of their commits in
    // the log, in which a replica shows them, so that a snapshot of each may see two of them the other way around.
    assert!(first_line(&ran).starts_with("no violation of read committed in "), "{}", ran.shown());
    assert!(ran.stdout.contains(" × stale read"), "{}", ran.shown());
    folder.expect(&format!("server stop {name} --remove"), 0);
}

/// Nothing that happens between transactions can be found where none meet.
#[test]
fn one_session_tests_no_level_and_the_default_has_several() {
    let place = Place::sqlite();
    let url = &place.url;
    let load = "--keys 8 --transactions 200 --no-record";
    place.folder.expect(&format!("prepare isolation --db {url} --keys 8"), 0);
    let alone = place.folder.expect(&format!("run isolation --db {url} {load} --sessions 1"), 0);
    let answer = first_line(&alone);
    assert!(answer.starts_with("serializability was not tested: of 200 transactions (1 session, "), "{answer}");
    assert!(answer.ends_with("no two ran at the same time"), "{answer}");
    assert!(!alone.stdout.contains("not violated"), "{}", alone.shown());
    let findings = place.folder.expect(&format!("run isolation --db {url} {load} --sessions 1 --format json"), 0);
    assert_eq!(findings.findings()["isolation"]["not_violated"].as_array().map(Vec::len), Some(0));
    let default = place.folder.expect(&format!("run isolation --db {url} {load}"), 0);
    assert!(first_line(&default).contains("(8 sessions, "), "{}", default.shown());
    // Sums are all that the bank leaves.
    let bank = place.folder.expect(&format!("run isolation --db {url} {load} --model bank"), 0);
    let answer = first_line(&bank);
    assert!(answer.starts_with("no wrong total in "), "{answer}");
    assert!(answer.ends_with("; nothing else of serializability was checked"), "{answer}");
    assert!(!bank.stdout.contains("not violated"), "{}", bank.shown());
}

/// The tables are emptied under the first run, and then have the values of both.
#[test]
fn two_runs_on_the_same_tables_accuse_nobody() {
    let place = Place::sqlite();
    let url = &place.url;
    place.folder.expect(&format!("prepare isolation --db {url} --keys 8"), 0);
    for model in ["append", "register", "bank"] {
        let options = format!("run isolation --db {url} --keys 8 --model {model} --sessions 2 --no-record");
        let mut first = place.folder.start(&format!("{options} --time 300s"));
        first.wait_for_any_interval();
        let second = place.folder.run(&format!("{options} --transactions 2000"));
        first.signal(Signal::SIGINT);
        let first = first.finish();
        let answer = first_line(&first);
        assert!(answer.starts_with("serializability was not checked: "), "{model}: {}", first.shown());
        assert!(answer.contains(" found values that another run wrote; let one run at a time"), "{}", first.shown());
        assert_eq!(first.code, Some(1), "{}", first.shown());
        for ran in [first, second] {
            assert!(!ran.shown().contains("violated in"), "{model}: {}", ran.shown());
        }
    }
    // One after the other is as good as the first.
    let again = format!("run isolation --db {url} --keys 8 --transactions 400 --sessions 4 --no-record");
    let ran = place.folder.expect(&again, 0);
    assert!(first_line(&ran).starts_with("no violation of "), "{}", ran.shown());
}

/// Elle reads each process by itself: an invocation, its completion, the next invocation.
#[test]
fn attempts_that_fail_end_before_the_next_begin_in_the_exported_history() {
    if !Kind::Postgres.present() {
        return;
    }
    let place = Place::on(Kind::Postgres);
    let url = &place.url;
    place.folder.expect(&format!("prepare isolation --db {url} --keys 2"), 0);
    let load = "--keys 2 --sessions 8 --transactions 800 --retries 1000 --history h.edn --no-record";
    place.folder.expect(&format!("run isolation --db {url} {load}"), 0);
    let history = std::fs::read_to_string(place.folder.path().join("h.edn")).unwrap();
    let field = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!(":{name} ")).unwrap();
        rest.split(',').next().unwrap().trim_start_matches(':').to_owned()
    };
    let (mut is_open, mut failed, mut time) = (std::collections::BTreeMap::new(), 0, 0);
    for line in history.lines() {
        let (process, kind) = (field(line, "process"), field(line, "type"));
        let before = is_open.insert(process, kind == "invoke").unwrap_or(false);
        assert_ne!(before, kind == "invoke", "{line}");
        failed += usize::from(kind == "fail");
        let now: u64 = field(line, "time").parse().unwrap();
        assert!(now >= time, "{line}");
        time = now;
    }
    assert!(failed > 0, "8 sessions on 2 keys fail now and then");
}
