//! Statements that are sent together have the same effect as one by one, also if one of them fails.

use testkit::Kind;

use super::{Place, SMALL, places};

/// The content of the tables, except for the times of transactions.
fn digest(place: &Place) -> String {
    place.folder.write(
        "digest.lua",
        r#"
sysbench.cmdline.commands = { go = { function()
  local con = sysbench.sql.driver():connect()
  for _, what in ipairs {
    "SUM(w_ytd) FROM warehouse1", "SUM(d_ytd), SUM(d_id * d_next_o_id) FROM district1",
    "SUM(c_id * c_balance), SUM(c_id * c_ytd_payment), SUM(c_payment_cnt), SUM(c_delivery_cnt), SUM(LENGTH(c_data)) FROM customer1",
    "COUNT(*), SUM(h_c_id * h_amount), SUM(LENGTH(h_data)) FROM history1", "COUNT(*), SUM(no_o_id * no_d_id) FROM new_orders1",
    "COUNT(*), SUM(o_id * o_c_id), SUM(o_carrier_id), SUM(o_ol_cnt), SUM(o_all_local) FROM orders1",
    "COUNT(*), SUM(ol_number * ol_i_id), SUM(ol_supply_w_id), COUNT(ol_delivery_d), SUM(ol_amount), MAX(ol_dist_info) FROM order_line1",
    "SUM(s_i_id * s_quantity), SUM(s_ytd), SUM(s_order_cnt), SUM(s_remote_cnt) FROM stock1",
  } do
    print("holds", con:query_row("SELECT " .. what))
  end
end } }
"#,
    );
    let said = place.folder.expect(&format!("exec ./digest.lua go --db {}", place.url), 0).stderr;
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("holds")).collect();
    assert_eq!(lines.len(), 8, "{said}");
    lines.join("\n")
}

#[test]
fn batched_statements_leave_the_same_tables() {
    for place in places() {
        let [apart, together] = ["", "--batch-statements"].map(|option| {
            place.expect("prepare", &format!("{SMALL} --sessions 1 --seed 1"), 0);
            let line = format!("--sessions 1 --transactions 230 --seed 1 --format json {option}");
            let findings = place.run_checked(&line).findings();
            assert_eq!(findings["options"]["batch_statements"], !option.is_empty(), "{findings}");
            let held = digest(&place);
            if place.kind.is_some() && !option.is_empty() {
                let ran = place.expect("run", "--no-record --prepared off --batch-statements", 2);
                assert!(ran.stderr.contains("--batch-statements needs prepared statements"), "{}", ran.shown());
            }
            place.expect("cleanup", "", 0);
            // All statements are counted, however they were sent.
            (held, findings["stages"][0]["total"]["statements"].clone())
        });
        assert_eq!(apart, together, "{}", place.url);
    }
}

/// Each transaction adds one to two rows of `pair` and writes a row to `log`; half of the sessions take the rows in the
/// opposite order, and wait for an answer between the two: they deadlock while more statements are queued behind.
const CROSSWISE: &str = r#"
sysbench.cmdline.commands = {
  prepare = { function()
    local con = sysbench.sql.driver():connect()
    con:query("CREATE TABLE pair (id INTEGER PRIMARY KEY, v INTEGER)")
    con:query("INSERT INTO pair VALUES (1, 0), (2, 0)")
    con:query("CREATE TABLE log (session INTEGER)")
  end },
  check = { function()
    local con = sysbench.sql.driver():connect()
    local v = tonumber((con:query_row("SELECT SUM(v) FROM pair")))
    local n = tonumber((con:query_row("SELECT COUNT(*) FROM log")))
    print("rows of log: " .. n)
    return v == 2 * n
  end },
}

function thread_init()
  con = sysbench.sql.driver():connect()
  begin, commit = con:prepare("BEGIN", ""), con:prepare("COMMIT", "")
  add = con:prepare("UPDATE pair SET v = v + 1 WHERE id = ?", "i")
  log = con:prepare("INSERT INTO log VALUES (?)", "i")
  look = con:prepare("SELECT COUNT(*) FROM log WHERE session = ?", "i")
end

function event(session)
  local first = session % 2 + 1
  begin:defer()
  add:defer(first)
  look:row(session)
  add:defer(3 - first)
  log:defer(session)
  commit:execute()
end
"#;

#[test]
fn a_deadlock_among_deferred_statements_undoes_all_of_the_transaction() {
    for kind in [Kind::Postgres, Kind::MariaDb, Kind::MySql].into_iter().filter(|kind| kind.present()) {
        let place = Place::on(kind);
        place.folder.write("crosswise.lua", CROSSWISE);
        let command = |name: &str, options: &str| format!("{name} ./crosswise.lua --db {} {options}", place.url);
        place.folder.expect(&command("prepare", ""), 0);
        let session_sql = if kind == Kind::Postgres { "--session-sql 'SET deadlock_timeout = 10'" } else { "" };
        let run = format!("--sessions 4 --transactions 100 --retries 1000 --format json --no-record {session_sql}");
        let findings = place.folder.expect(&command("run", &run), 0).findings();
        let total = &findings["stages"][0]["total"];
        assert!(total["retries"].as_u64() > Some(0), "{total}");
        let ran = place.folder.expect(&command("check", ""), 0);
        assert!(ran.stderr.contains("rows of log: 100\n"), "{}", ran.shown());
    }
}

#[test]
fn deferred_statements_that_a_transaction_leaves_behind_are_a_mistake_of_the_script() {
    for kind in [Kind::Postgres, Kind::MariaDb].into_iter().filter(|kind| kind.present()) {
        let place = Place::on(kind);
        let forgetful = CROSSWISE.replace("  commit:execute()\n", "");
        place.folder.write("forgetful.lua", &forgetful);
        let command = |name: &str, options: &str| format!("{name} ./forgetful.lua --db {} {options}", place.url);
        place.folder.expect(&command("prepare", ""), 0);
        let ran = place.folder.expect(&command("run", "--transactions 5 --no-record"), 3);
        assert!(ran.stderr.contains("before its deferred statements were sent"), "{}", ran.shown());
        // None of its effects remain, and statements that are not executions are sent after the deferred ones.
        place.folder.write("flushing.lua", &CROSSWISE.replace("commit:execute()", "con:query('COMMIT')"));
        let line = format!("run ./flushing.lua --db {} --transactions 5 --no-record", place.url);
        place.folder.expect(&line, 0);
        let ran = place.folder.expect(&command("check", ""), 0);
        assert!(ran.stderr.contains("rows of log: 5\n"), "{}", ran.shown());
    }
}
