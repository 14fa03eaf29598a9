//! Telemetry of a server during a run.

use assay_record::ScopeKind;
use nix::sys::signal::Signal;
use testkit::{Kind, ServerSetup};

use crate::common::Folder;
use crate::common::counts::check_versions;
use crate::common::telemetry::{
    assert_log_agrees, assert_moved, scope, series, server_cpu_ns, wait_for_reading, watched,
};
use crate::kinds;

/// The log's position.
fn position(kind: Kind) -> &'static str {
    match kind {
        Kind::MySql => {
            "SELECT VARIABLE_VALUE FROM performance_schema.global_status \
             WHERE VARIABLE_NAME = 'Innodb_redo_log_current_lsn'"
        }
        _ => "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Innodb_lsn_current'",
    }
}

#[test]
fn counts_are_those_of_the_load_alone_on_every_version() {
    check_versions(&["mysql", "mariadb"], |_| vec!["performance_schema = ON"]);
}

/// Flushes all dirty pages as fast as the drive can.
const FLUSH: &str = "SET GLOBAL innodb_io_capacity_max = 20000; SET GLOBAL innodb_io_capacity = 20000; \
                     SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0; SET GLOBAL innodb_max_dirty_pages_pct = 0;";

#[test]
fn readings_agree_with_the_server_and_what_a_plain_user_may_not_see_is_absent_with_its_reason() {
    for kind in kinds() {
        let server = kind.start(&ServerSetup::default()).unwrap();
        let (folder, database) = (Folder::new(), server.fresh_database().unwrap());
        let position = || server.sql(&database, position(kind)).unwrap().trim().parse::<u64>().unwrap();
        let common = |url: &str| format!("oltp_insert --db {url} --table-size 5000");
        folder.expect(&format!("prepare {}", common(&server.url(&database))), 0);
        assert_log_agrees(&folder, &server.url(&database), position);
        // The session SQL is not run on the connection that reads telemetry.
        server.sql(&database, "CREATE TABLE opened (one INT)").unwrap();
        let sql = "--session-sql 'INSERT INTO opened VALUES (1)' --telemetry full";
        let found = watched(&folder, &format!("{} --sessions 2 {sql}", common(&server.url(&database))));
        // Two sessions, and the one that reads telemetry.
        assert_eq!(server.sql(&database, "SELECT COUNT(*) FROM opened").unwrap().trim(), "3");
        let telemetry = found.telemetry.as_ref().unwrap();
        assert!(!telemetry.interventions.is_empty(), "some counters are off by default");
        for one in &telemetry.interventions {
            assert!(one.statement.contains("innodb_monitor_enable") && one.undone.is_some(), "{one:?}");
        }
        let column = if kind == Kind::MySql { "STATUS = 'enabled'" } else { "ENABLED = 1" };
        let left_on = format!(
            "SELECT COUNT(*) FROM information_schema.INNODB_METRICS WHERE NAME LIKE 'buffer_flush_%_total_pages' AND {column}"
        );
        assert_eq!(server.sql(&database, &left_on).unwrap().trim(), "0");
        let (of_server, machine) = (scope(&found, ScopeKind::Server), scope(&found, ScopeKind::Machine));
        assert_moved(of_server, &["buffer_reads", "log_bytes", "log_fsyncs", "cpu_us"]);
        assert_moved(machine, &["cpu_user_us", "context_switches"]);
        for counter in ["flush_adaptive_pages", "flush_background_pages", "flush_sync_pages"] {
            series(of_server, counter);
        }
        assert_moved(of_server, &["statements"]);
        // The performance schema is off on these servers.
        let times = of_server.absent.iter().find(|one| one.metric == "statement_us").map(|one| one.reason.as_str());
        assert!(times.is_some_and(|reason| reason.contains("does not report performance_schema.events_statements")));
        assert!(series(of_server, "data_folder_bytes").values.iter().flatten().all(|bytes| *bytes > 1 << 20));
        for gauge in ["checkpoint_age_bytes", "checkpoint_age_limit_bytes", "dirty_pages", "purge_lag", "data_bytes"] {
            series(of_server, gauge);
        }
        let at = &found.environment.servers[0];
        assert!(at.origins.contains_key("port"), "{:?}", at.origins);
        assert!(at.facts.contains_key("filesystem"), "{:?}", at.facts);

        // Once all dirty pages are flushed, the server can make a checkpoint, and little log has been written since the
        // last one.
        let port = testkit::free_port().unwrap();
        let options = format!("--rate 40 --time 0 --interval 100ms --metrics-listen 127.0.0.1:{port} --no-record");
        let mut run = folder.start(&format!("run ./heavy.lua --db {} {options}", server.url(&database)));
        let age = "assay_server_checkpoint_age_bytes";
        let old = wait_for_reading(&mut run, port, age, |age| age >= Some(4 << 20));
        server.sql("", FLUSH).unwrap();
        wait_for_reading(&mut run, port, age, |age| age.is_some() && age < old);
        run.signal(Signal::SIGINT);
        assert_eq!(run.finish().code, Some(0));

        server.sql(&database, "CREATE USER plain").unwrap();
        server.sql(&database, &format!("GRANT SELECT, INSERT ON {database}.* TO plain")).unwrap();
        let found = watched(&folder, &common(&server.url_as("plain", &database)));
        let of_server = scope(&found, ScopeKind::Server);
        series(of_server, "log_bytes");
        let reason = of_server.absent.iter().find(|one| one.metric == "data_bytes").map(|one| one.reason.as_str());
        assert!(reason.is_some_and(|reason| reason.contains("PROCESS")), "{kind:?} {:?}", of_server.absent);
    }
}

#[test]
fn statements_and_waits_are_read_where_the_performance_schema_has_them() {
    for kind in kinds() {
        let config = ["schema = ON", "schema_instrument = 'wait/%=ON'", "schema_consumer_events_waits_current = ON"];
        let config = config.map(|line| format!("performance_{line}")).to_vec();
        let server = kind.start(&ServerSetup { config, ..ServerSetup::default() }).unwrap();
        let (folder, database) = (Folder::new(), server.fresh_database().unwrap());
        let common = format!("oltp_insert --db {} --table-size 1000", server.url(&database));
        folder.expect(&format!("prepare {common} --no-record"), 0);
        let found = watched(&folder, &format!("{common} --sessions 8"));
        let of_server = scope(&found, ScopeKind::Server);
        assert_moved(of_server, &["statements", "statement_us"]);
        assert!(server_cpu_ns(&found) > Some(0), "{kind:?}");
        let waits = of_server.waits.as_ref().unwrap_or_else(|| panic!("{kind:?}: {:?}", of_server.absent));
        assert!(waits.looks.iter().sum::<u32>() > 0, "{waits:?}");
        // The cause of waits that sampled sessions show: the CPU, or an instrument of the server.
        let known = |name: &str| name == "CPU" || name.starts_with("wait/") || name == "idle";
        let seen: Vec<&str> = waits.events.iter().map(|event| event.name.as_str()).collect();
        assert!(!seen.is_empty() && seen.iter().all(|name| known(name)), "{kind:?}: {seen:?}");
    }
}
