//! From prepare to cleanup, on every database, with the options that change the tables.

use serde_json::Value::Null;
use testkit::Kind;

use super::{Place, RULES, SMALL, places};

/// Remaining tables with names that TPC-C uses.
fn tables_left(place: &Place) -> usize {
    let names = ["warehouse1", "order_line1", "tpcc_load1", "warehouse2", "stock2"];
    let is_there = |name: &&str| {
        place.folder.run(&format!("exec ./statement.lua go --db {} --sql 'SELECT 1 FROM {name}'", place.url)).code
            == Some(0)
    };
    names.iter().filter(|name| is_there(name)).count()
}

#[test]
fn tpcc_lives_on_every_database() {
    for place in places() {
        place.expect("prepare", &format!("{SMALL} --tables 2"), 0);
        let again = place.expect("prepare", &format!("{SMALL} --tables 2"), 2);
        assert!(again.stderr.contains("the TPC-C tables already exist and are complete"), "{}", again.shown());
        let ran = place.run_checked("--tables 2 --sessions 4 --transactions 1000 --seed 1 --format json");
        let total = &ran.findings()["stages"][0]["total"];
        let of = |what: &str| total[what].as_u64().unwrap();
        assert_eq!((of("transactions") + of("rolled_back"), of("failed")), (1000, 0), "{total}");
        // Two sets, before and after.
        assert_eq!(ran.stderr.matches(": holds").count(), 4 * RULES, "{}", ran.shown());
        place.sql("SELECT 1");
        assert_eq!(tables_left(&place), 5);
        place.expect("cleanup", "--tables 2", 0);
        assert_eq!(tables_left(&place), 0, "{}", place.url);
    }
}

#[test]
fn older_names_and_all_options_of_tables_work_together() {
    for (place, options) in [
        (Place::sqlite(), "--use_fk 1 --force_pk 1"),
        (Place::on(Kind::Postgres), "--use_fk 1 --force_pk 1 --trx_level RR --pg-fillfactor 80 --partitions 3"),
        (
            Place::on(Kind::MariaDb),
            "--use_fk=1 --force_pk=1 --trx_level=RC --mysql_storage_engine=InnoDB --mysql-table-options=ROW_FORMAT=DYNAMIC",
        ),
        (Place::on(Kind::MySql), "--force_pk 1 --trx_level SER --partitions 3"),
    ] {
        if place.kind.is_some_and(|kind| !kind.present()) {
            continue;
        }
        let options = format!("--scale 2 {options}");
        place.expect("prepare", &format!("{options} --customers 60 --items 200 --sessions 3"), 0);
        let ran = place.run_checked(&format!("{options} --sessions 2 --transactions 200 --on-error continue"));
        // Clause 3.4.1 requires more of Order-Status.
        assert_eq!(ran.stderr.contains("order-status at read committed"), options.contains("=RC"), "{}", ran.shown());
        if let Some(server) = place.server() {
            // A partition's keys are made from those of its table.
            let keys = match place.kind {
                Some(Kind::Postgres) => {
                    "SELECT COUNT(*) FROM pg_constraint WHERE contype = 'f' AND conparentid = 0".to_owned()
                }
                _ => format!(
                    "SELECT COUNT(*) FROM information_schema.table_constraints WHERE constraint_type = 'FOREIGN KEY' AND \
                     table_schema = '{}'",
                    place.database
                ),
            };
            let wanted = if options.contains("use_fk") { "10" } else { "0" };
            assert_eq!(server.sql(&place.database, &keys).unwrap().trim(), wanted, "{}", place.url);
        }
        place.expect("cleanup", &options, 0);
    }
}

#[test]
fn mistakes_are_told_before_anything_is_done() {
    let place = Place::sqlite();
    for (command, options, code, said) in [
        ("prepare", "--customers 50", 2, "--customers 50: expected a multiple of 20"),
        ("prepare", "--items 7", 2, "--items 7: expected a whole number from 100 to 100000"),
        ("prepare", "--use_fk maybe", 2, "--use_fk maybe: expected 0 or 1"),
        ("prepare", "--partitions 4", 2, "SQLite has no partitions"),
        ("prepare", "--enable_purge yes", 2, "violates the consistency conditions of clause 3.3.2"),
        ("prepare", "--isolation RC", 2, "SQLite supports serializable only"),
        ("prepare", "--warehouse 3", 2, "--warehouses"),
        ("run", "", 4, "no such table"),
        ("prepare", SMALL, 0, "prepared tpcc"),
        ("prepare", "--warehouses 3 --customers 60 --items 200", 3, "were prepared for 2 warehouses, not 3"),
        ("run", "--warehouses 3 --no-record", 2, "--warehouses 3: the tables have 2"),
        ("run", "--mix 1,2,3 --no-record", 2, "--mix 1,2,3: expected five card counts, such as 10,10,1,1,1"),
        ("run", "--journal deliveries.csv --no-record", 2, "only deferred deliveries have a result file (2.7.2)"),
        ("run", "--isolation dirty --no-record", 2, "--isolation dirty: expected read-committed"),
    ] {
        let ran = place.expect(command, options, code);
        assert!(ran.stderr.contains(said), "{command} {options}: {}", ran.shown());
    }
    place.sql("CREATE TABLE item2 (i_id INTEGER)");
    let ran = place.expect("prepare", &format!("{SMALL} --tables 2"), 2);
    assert!(ran.stderr.contains("table item2 already exists and was not created by this workload"), "{}", ran.shown());
}

#[test]
fn terminals_share_connections_and_keep_their_own_decks() {
    for place in places() {
        place.expect("prepare", SMALL, 0);
        // 40 terminals of two warehouses, ten decks of 23 cards each on average.
        let line = "--warehouses 2 --terminals 20/warehouse --connections 4 --think-scale 0 --transactions 2300 --seed 1 \
                    --format json --deferred-delivery";
        let findings = place.run_checked(line).findings();
        let stage = &findings["stages"][0];
        let types = stage["total"]["types"].as_array().unwrap();
        let of = |name: &str| -> u64 {
            let one = types.iter().find(|one| one["name"] == name).unwrap();
            one["transactions"].as_u64().unwrap() + one["rolled_back"].as_u64().unwrap()
        };
        assert_eq!(
            ["new_order", "payment", "order_status", "delivery", "stock_level"].map(of).iter().sum::<u64>(),
            2300
        );
        // 40 terminals hold a partial deck each.
        assert!(of("new_order").abs_diff(of("payment")) < 120 && of("delivery") >= 60, "{stage}");
        let executed = stage["audit"].as_array().unwrap().iter().find(|rule| rule["name"] == "p90 of delivery");
        assert_eq!(executed.unwrap()["verdict"], "passed", "{stage}");
        // Without think times there is no tpmC.
        let nopm = &stage["rates"][0];
        assert_eq!((&nopm["name"], &nopm["nominal"], &nopm["efficiency"]), (&"NOPM".into(), &Null, &Null), "{nopm}");
    }
}

#[test]
fn a_run_records_the_size_of_its_tables_and_comparisons_see_it() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    for (options, warehouses) in [("", 2), ("--scale 2", 2), ("--warehouses 1", 1)] {
        let line = format!("{options} --transactions 100 --record {warehouses}.json.zst --force --format json");
        let findings = place.expect("run", &line, 0).findings();
        let options = &findings["options"];
        let found = ["warehouses", "customers", "items"].map(|name| options[name].as_u64());
        assert_eq!(found, [Some(warehouses), Some(60), Some(200)]);
    }
    let ran = place.folder.expect("show -v 2.json.zst", 0);
    assert!(ran.stdout.contains("warehouses=2") && !ran.stdout.contains("warehouses=0"), "{}", ran.shown());
    let ran = place.folder.expect("compare --baseline 1.json.zst --candidate 2.json.zst", 0);
    assert!(ran.stdout.contains("option warehouses"), "{}", ran.shown());
}

#[test]
fn terminals_and_times_that_are_no_tpcc_are_pointed_out_before_the_run() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    let many = "warning: 50 terminals on 2 warehouses: TPC-C has ten per warehouse (4.2.1)";
    let short = "warning: 1 s, including warm-up, is shorter than the 30 s of keying and think time for one New-Order";
    for (options, is_many, is_short) in [
        ("--terminals 50 --time 1s", true, true),
        ("--terminals 20 --time 1s --think-scale 0.01", false, false),
        ("--terminals 50 --transactions 100 --think-scale 0", true, false),
        ("--sessions 3 --time 1s", false, false),
    ] {
        let ran = place.expect("run", &format!("{options} --no-record"), 0);
        assert_eq!(ran.stderr.matches(many).count(), usize::from(is_many), "{}", ran.shown());
        assert_eq!(ran.stderr.matches(short).count(), usize::from(is_short), "{}", ran.shown());
        let before = ran.stderr.split("time s").next().unwrap();
        assert!(before.contains(many) == is_many && before.contains(short) == is_short, "{}", ran.shown());
    }
}

#[test]
fn terminals_that_think_as_they_should_have_an_efficiency() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    let line = "--terminals 20/warehouse --warehouses 2 --time 3s --format json --no-record";
    let findings = place.expect("run", line, 0).findings();
    let tpmc = &findings["stages"][0]["rates"][0];
    assert_eq!(tpmc["nominal"], 25.72, "{tpmc}");
    assert!(tpmc["efficiency"].is_number(), "{tpmc}");
}
