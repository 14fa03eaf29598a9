//! A load that was killed is detected and resumed.

use nix::sys::signal::Signal;
use testkit::Kind;

use super::Place;
use super::seed::checksums;

/// Large enough to be killed in the middle.
const LOAD: &str = "--warehouses 10 --customers 200 --items 4000 --sessions 2";

#[test]
fn a_killed_load_is_refused_by_run_and_finished_by_prepare() {
    for kind in [Kind::Postgres, Kind::MariaDb] {
        if !kind.present() {
            continue;
        }
        let place = Place::on(kind);
        let server = kind.shared();
        let count = || -> u32 {
            let pieces = "SELECT COUNT(*) FROM tpcc_load1 WHERE what LIKE 'piece%'";
            server.sql(&place.database, pieces).map_or(0, |count| count.trim().parse().unwrap())
        };
        let loading = place.folder.start(&format!("prepare tpcc --db {} {LOAD} --seed 7", place.url));
        while count() < 20 {
            std::thread::yield_now();
        }
        loading.signal(Signal::SIGKILL);
        loading.finish();
        let left = count();
        assert!((20..210).contains(&left), "{left} of 210 pieces were loaded when the kill came");

        let ran = place.expect("check", "", 1);
        assert!(ran.stderr.contains("set 1: its load was interrupted; `prepare` resumes it"), "{}", ran.shown());
        let ran = place.expect("run", "--no-record", 3);
        assert!(
            ran.stderr.contains("the tables of set 1 are incomplete because their load was interrupted"),
            "{}",
            ran.shown()
        );
        let ran = place.expect("prepare", &format!("{LOAD} --seed 8"), 0);
        let told = ran.stderr.split_once("resuming an interrupted prepare: ").expect(&ran.stderr).1;
        let there: u32 = told.split(' ').next().unwrap().parse().unwrap();
        // Transactions of the killed program may have ended after we looked.
        assert!((left..left + 3).contains(&there), "{there}, {left}");
        place.expect("check", "", 0);
        let rows = |table: &str| {
            server.sql(&place.database, &format!("SELECT COUNT(*) FROM {table}1")).unwrap().trim().to_owned()
        };
        let tables = ["warehouse", "district", "customer", "history", "orders", "new_orders", "item", "stock"];
        assert_eq!(tables.map(rows), ["10", "100", "20000", "20000", "20000", "6000", "4000", "40000"]);
        // It resumes with the seed of the load.
        let resumed = checksums(&place);
        place.expect("cleanup", "", 0);
        place.expect("prepare", &format!("{LOAD} --seed 7"), 0);
        assert_eq!(checksums(&place), resumed, "{}", place.url);
        place.expect("cleanup", "", 0);
    }
}
