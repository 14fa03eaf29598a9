//! What sessions request, in which order.

use crate::driver::*;
use assay_script::*;

#[test]
fn a_session_connects_works_and_ends_in_order() {
    let script = r#"
        function thread_init(tid)
          drv = sysbench.sql.driver()
          con = drv:connect()
          stmt = con:prepare("SELECT c FROM t WHERE id = ?")
          id = stmt:bind_create(sysbench.sql.type.INT)
          stmt:bind_param(id)
        end
        function event(tid)
          id:set(3.7)
          stmt:execute()
          local row = con:query("SELECT 1"):fetch_row()
          print(tid, row[1], row[2], sysbench.opt.table_size)
        end
        function thread_done() con:disconnect() end
    "#;
    check(
        script,
        Driver { transactions: 2, ..Driver::default() }.rows("SELECT 1", 2, &[Some("one"), None]).rows(
            "SELECT 1",
            2,
            &[Some("two"), Some("x")],
        ),
        "connect 0
         prepare 0.0: SELECT c FROM t WHERE id = ?
         ready
         next
         execute 0.0: [Int(3)]
         query 0: SELECT 1
         log 0\tone\tnil\t100
         next
         execute 0.0: [Int(3)]
         query 0: SELECT 1
         log 0\ttwo\tx\t100
         next
         disconnect 0
         finished true",
    );
}

/// A script that connects and runs `event`.
fn with_event(event: &str) -> String {
    format!("function thread_init() con = sysbench.sql.driver():connect() end\nfunction event() {event} end")
}

#[test]
fn a_restart_error_is_reported_and_retried_after_the_hook() {
    let script = with_event(r#"con:query("UPDATE")"#)
        + r#"
        function sysbench.hooks.before_restart_event(e)
          print(e.sql_errno, e.sql_state, e.sql_errmsg, e.query, e.errcode == sysbench.error.RESTART_EVENT)
          e.connection:query("ROLLBACK")
        end"#;
    check(
        &script,
        Driver::default().error("UPDATE", 1213, "40001", Verdict::Restart),
        "connect 0
         ready
         next
         query 0: UPDATE
         failed restart=true statement=true: SQL error, errno = 1213, state = '40001': no luck
         log 1213\t40001\tno luck\tUPDATE\ttrue
         query 0: ROLLBACK
         query 0: UPDATE
         next
         finished true",
    );
}

#[test]
fn a_transaction_given_up_is_followed_by_the_next() {
    check(
        &with_event(r#"con:query("UPDATE")"#),
        Driver { transactions: 2, decision: Decision::Skip, ..Driver::default() }.error(
            "UPDATE",
            1213,
            "40001",
            Verdict::Restart,
        ),
        "connect 0
         ready
         next
         query 0: UPDATE
         failed restart=true statement=true: SQL error, errno = 1213, state = '40001': no luck
         next
         query 0: UPDATE
         next
         finished true",
    );
}

#[test]
fn a_fatal_statement_error_is_a_string_with_the_scripts_line() {
    check(
        &with_event("\n  con:query('UPDATE')\n"),
        Driver { decision: Decision::Skip, ..Driver::default() }.error("UPDATE", 1064, "42000", Verdict::Fatal),
        "connect 0
         ready
         next
         query 0: UPDATE
         failed restart=false statement=true: test.lua:3: SQL error, errno = 1064, state = '42000': no luck
         next
         finished true",
    );
}

#[test]
fn the_hook_can_ignore_an_error_and_use_the_connection_to_do_so() {
    let script = with_event("con:query('UPDATE')")
        + "\nfunction sysbench.hooks.sql_error_ignorable(e) con:reconnect() con:query('SET x') return true end";
    check(
        &script,
        Driver::default().error("UPDATE", 9, "HY000", Verdict::Fatal),
        "connect 0
         ready
         next
         query 0: UPDATE
         reconnect 0
         query 0: SET x
         failed restart=true statement=true: SQL error, errno = 9, state = 'HY000': no luck
         query 0: UPDATE
         next
         finished true",
    );
}

#[test]
fn a_truthy_event_stops_the_session_uncounted() {
    check(
        "function event() return 1 end",
        Driver { transactions: 5, ..Driver::default() },
        "ready\nnext\nstop\nfinished true",
    );
}
