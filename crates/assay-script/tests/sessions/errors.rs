//! How scripts fail: messages, places, tracebacks.

use assay_script::*;

use crate::driver::*;

#[test]
fn an_error_shows_its_line_the_functions_and_nothing_of_ours() {
    let script = "\
local function deep(x)
  return x.y.z
end
function helper() local r = deep({}) return r end
function thread_init()
  helper()
end
function event() end";
    check(
        script,
        Driver::default(),
        "died: test.lua:2: attempt to index field 'y' (a nil value)
         test.lua:2: in function 'deep'
         test.lua:4: in function 'helper'
         test.lua:6: in function 'thread_init'",
    );
}

#[test]
fn an_error_at_top_level_or_in_a_module_is_found_when_loading() {
    let error = load("local x = 1\nerror('bad ' .. x)").unwrap_err();
    assert_eq!(error.to_string(), "test.lua:2: bad 1\n  test.lua:2: in main chunk");
    let error = load("x = = 1").unwrap_err();
    assert_eq!((error.file.as_deref(), error.line), (Some("test.lua"), Some(1)));
    assert_eq!(error.message, "unexpected symbol near '='");
    assert_eq!(load("x = 1 end x = 2").unwrap_err().message, "'<eof>' expected near 'end'");
}

#[test]
fn misuse_of_our_functions_is_blamed_on_the_scripts_line() {
    let error = load("\nsysbench.rand.uniform('1', 2)").unwrap_err();
    assert_eq!(error.line, Some(2), "{error}");
    assert!(error.message.contains("cannot convert 'string' to 'unsigned int'"), "{error}");
}

#[test]
fn a_restart_asked_for_by_the_script_is_no_statement_error() {
    check(
        r#"
        local tried = false
        function event()
          if not tried then tried = true error({errcode = sysbench.error.RESTART_EVENT}) end
        end"#,
        Driver::default(),
        "ready
         next
         failed restart=true statement=false: the script asked for a restart of the transaction
         next
         finished true",
    );
}

#[test]
fn a_transaction_that_is_run_again_knows_it() {
    check(
        r#"
        function event(_, attempt)
          print(attempt)
          if attempt < 2 then error({errcode = sysbench.error.RESTART_EVENT}) end
        end"#,
        Driver { transactions: 2, ..Driver::default() },
        "ready
         next
         log 0
         failed restart=true statement=false: the script asked for a restart of the transaction
         log 1
         failed restart=true statement=false: the script asked for a restart of the transaction
         log 2
         next
         log 0
         failed restart=true statement=false: the script asked for a restart of the transaction
         log 1
         failed restart=true statement=false: the script asked for a restart of the transaction
         log 2
         next
         finished true",
    );
}

#[test]
fn statement_errors_can_be_caught_and_carried_through_pcall_and_xpcall() {
    check(
        r#"
        function event()
          local con = sysbench.sql.driver():connect()
          local ok, e = pcall(function() con:query("a") end)
          print(ok, e.sql_errno, e.connection == con, con.sql_errno, con.error == sysbench.sql.error.IGNORABLE)
          ok, e = pcall(con.query, con, "b")
          print(ok, e)
          print(xpcall(function() con:query("c") end, function(e) return "handled " .. e.sql_errno end))
          con:query("d")
          print(con.error)
        end"#,
        Driver::default().error("a", 1, "S", Verdict::Restart).error("b", 2, "S", Verdict::Fatal).error(
            "c",
            3,
            "S",
            Verdict::Restart,
        ),
        "ready
         next
         connect 0
         query 0: a
         log false\t1\ttrue\t1\ttrue
         query 0: b
         log false\ttest.lua:6: SQL error, errno = 2, state = 'S': no luck
         query 0: c
         log false\thandled 3
         query 0: d
         log 0
         next
         finished true",
    );
}

#[test]
fn a_statement_inside_a_c_call_explains_what_is_not_possible() {
    check(
        r#"
        function event()
          local con = sysbench.sql.driver():connect()
          table.sort({2, 1}, function(a, b) con:query("x") return a < b end)
        end"#,
        Driver { decision: Decision::Skip, ..Driver::default() },
        "ready
         next
         connect 0
         failed restart=false statement=false: test.lua:4: a statement, sleep or wait is not possible inside a function that C code calls back (the comparison of table.sort, the replacement function of string.gsub, an FFI callback): collect what you need first, and call the database outside of it
         next
         finished true",
    );
}

#[test]
fn an_error_that_is_no_text_is_still_described() {
    let died = |raise: &str| conversation(&format!("function thread_init() {raise} end"), &setup(), Driver::default());
    assert!(died("error({})").starts_with("died: error raised with a table value instead of a message"));
    assert!(died("error(setmetatable({}, {__tostring = function() return 'my own' end}))").starts_with("died: my own"));
    assert!(died("error()").starts_with("died: error raised with a nil value"));
}

#[test]
fn endless_recursion_is_an_error_like_any_other() {
    let died =
        conversation("function f() return 1 + f() end function thread_init() f() end", &setup(), Driver::default());
    // Whether the place is known depends on how much stack was left to look for it.
    assert!(died.starts_with("died: ") && died.contains("stack overflow"), "{died}");
}

#[test]
fn a_refused_connection_is_an_error_of_the_database() {
    check(
        "function thread_init() con = sysbench.sql.driver():connect() end",
        Driver { refusal: Some(Box::new(error(1040, "08004"))), ..Driver::default() },
        "connect 0
         died: test.lua:1: cannot connect: no luck
         test.lua:1: in function 'thread_init'",
    );
}

#[test]
fn an_error_in_the_restart_hook_is_another_failure_of_the_same_transaction() {
    let script = r#"
        function thread_init() con = sysbench.sql.driver():connect() end
        function event() con:query("x") end
        function sysbench.hooks.before_restart_event() con:query("again") end"#;
    check(
        script,
        Driver::default().error("x", 2013, "", Verdict::Restart).error("again", 2006, "", Verdict::Restart),
        "connect 0
         ready
         next
         query 0: x
         failed restart=true statement=true: SQL error, errno = 2013, state = '': no luck
         query 0: again
         failed restart=true statement=true: SQL error, errno = 2006, state = '': no luck
         query 0: again
         query 0: x
         next
         finished true",
    );
}

#[test]
fn yielding_outside_of_a_coroutine_is_an_error() {
    check(
        "function thread_init() coroutine.yield(1) end",
        Driver::default(),
        "died: coroutine.yield was called outside of a coroutine of the script",
    );
}
