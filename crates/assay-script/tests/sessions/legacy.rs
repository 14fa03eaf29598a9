//! The global functions scripts used before sysbench 1.0.

use assay_options::*;
use assay_script::*;

use crate::driver::*;

#[test]
fn an_old_script_runs_on_its_implicit_connection() {
    check(
        r#"
        function thread_init(id)
          db_connect()
          statement = db_prepare("SELECT c FROM t WHERE id = ? AND c = ?")
          values = {1, "a"}
          db_bind_param(statement, values)
        end
        function event(id)
          values[1], values[2] = 7, nil
          local rs = db_execute(statement)
          db_store_results(rs)
          db_free_results(rs)
          db_query("UPDATE")
          db_bulk_insert_init("INSERT INTO t VALUES") db_bulk_insert_next("(1)") db_bulk_insert_done()
          print(thread_id == id, db_driver, test, sysbench.db.query == db_query, sb_rand(5, 5), sb_rand_uniq(0, 4294967295) > 0)
        end
        function thread_done() db_close(statement) db_disconnect() end"#,
        Driver::default().rows("execute 0", 1, &[Some("x")]),
        "connect 0
         prepare 0.0: SELECT c FROM t WHERE id = ? AND c = ?
         ready
         next
         execute 0.0: [Int(7), Null]
         query 0: UPDATE
         query 0: INSERT INTO t VALUES (1)
         log true\tmysql\ttest.lua\ttrue\t5\ttrue
         next
         close 0.0
         disconnect 0
         finished true",
    );
}

#[test]
fn options_are_globals_where_a_script_declares_no_table() {
    let setup = Setup {
        options: vec![
            ("oltp_table_size".into(), OptionValue::Text("500".into())),
            ("print".into(), OptionValue::Number(1.0)),
        ],
        ..setup()
    };
    let event = "function event() print(oltp_table_size, type(print)) end";
    check_as(event, &setup, Driver::default(), "ready\nnext\nlog 500\tfunction\nnext\nfinished true");
    check_as(
        &format!("sysbench.cmdline.options = {{}} {event}"),
        &setup,
        Driver::default(),
        "ready\nnext\nlog nil\tfunction\nnext\nfinished true",
    );
}
