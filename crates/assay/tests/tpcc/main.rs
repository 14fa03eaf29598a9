//! The TPC-C workload by whole commands, on every available database.
//!
//! Tables are small (`--customers`, `--items`), which the audit reports; the other rules do not depend on their size.
//! Each test has its own database; SQLite's is a file in the test's folder.

mod audit;
mod batching;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "shared with the other whole-command tests: each uses what it needs")]
mod common;
mod consistency;
mod counts;
mod defects;
mod defects_data;
mod defects_run;
mod deliveries;
mod documents;
mod further;
mod isolation;
mod life;
mod procedures;
mod random;
mod resume;
mod seed;
mod values;

use testkit::{Kind, Server};

use common::{Folder, Ran};

/// Two small warehouses.
const SMALL: &str = "--warehouses 2 --customers 60 --items 200";

/// What `check` examines in each table set, one line each.
const RULES: usize = 74;

/// A database to work on, and the folder that commands run in.
struct Place {
    folder: Folder,
    url: String,
    kind: Option<Kind>,
    database: String,
}

impl Place {
    fn sqlite() -> Place {
        let folder = Folder::new();
        let url = format!("sqlite:{}?synchronous=off", folder.path().join("tpcc.db").display());
        Place { folder, url, kind: None, database: String::new() }
    }

    fn on(kind: Kind) -> Place {
        let database = kind.shared().fresh_database().unwrap();
        Place { folder: Folder::new(), url: kind.shared().url(&database), kind: Some(kind), database }
    }

    fn server(&self) -> Option<&'static Server> {
        self.kind.map(|kind| kind.shared())
    }

    /// Runs `assay COMMAND tpcc` with these options, and fails unless it exits with `code`.
    #[track_caller]
    fn expect(&self, command: &str, options: &str, code: i32) -> Ran {
        self.folder.expect(&format!("{command} tpcc --db {} {options}", self.url), code)
    }

    /// Runs with `--check`, on tables that are too small for the audit: the audit fails, but the content of the tables
    /// is correct.
    #[track_caller]
    fn run_checked(&self, options: &str) -> Ran {
        let ran = self.expect("run", &format!("--check --no-record {options}"), 1);
        assert!(ran.stderr.contains("error: the audit of tpcc failed: "), "{}", ran.shown());
        assert!(ran.stderr.contains("new-orders on full-size tables"), "{}", ran.shown());
        assert!(!ran.stderr.contains("VIOLATED"), "{}", ran.shown());
        // Each condition of each table set, before and after.
        let holds = ran.stderr.matches(": holds").count();
        assert!(holds > 0 && holds.is_multiple_of(2 * RULES), "{}", ran.shown());
        ran
    }

    /// Runs a statement; texts in it are written between grave accents.
    #[track_caller]
    fn sql(&self, sql: &str) {
        self.folder.write(
            "statement.lua",
            r#"
sysbench.cmdline.options = { sql = {"Statement", ""} }
sysbench.cmdline.commands = { go = { function() sysbench.sql.driver():connect():query((sysbench.opt.sql:gsub("`", "'"))) end } }
"#,
        );
        // Single quotes are taken by the splitting of the command line.
        self.folder.expect(&format!("exec ./statement.lua go --db {} --sql '{sql}'", self.url), 0);
    }
}

/// SQLite, and each server that can be started here.
fn places() -> impl Iterator<Item = Place> {
    let servers = [Kind::Postgres, Kind::MariaDb, Kind::MySql].into_iter().filter(|kind| kind.present());
    std::iter::once_with(Place::sqlite).chain(servers.map(Place::on))
}
