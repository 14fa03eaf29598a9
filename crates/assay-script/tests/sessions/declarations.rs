//! Options, commands and entries.

use assay_options::*;
use assay_script::*;

use crate::driver::*;

#[test]
fn options_are_typed_by_their_defaults_or_by_their_declared_type() {
    let program = program(
        r#"
        -- not a description
        local c = sysbench.cmdline
        c.options = {
          ["table-size"] = {"rows", 10000}, secondary = {"use a secondary index", false}, engine = {"engine", "innodb"},
          ports = {"ports", {"1", "2"}}, name = {"no default"}, flag = {"a switch", nil, c.ARG_BOOL},
          depth = {"an integer", "16", c.ARG_INT}, room = {"bytes", "1K", c.ARG_SIZE},
        }
        c.commands = {
          warm = {function() end, c.PARALLEL_COMMAND}, one = {function() end},
        }
        function event() end"#,
    );
    let shown: Vec<String> =
        program.options().iter().map(|o| format!("{} {:?} {:?}", o.key(), o.kind, o.default)).collect();
    assert_eq!(
        shown,
        [
            "depth Int Number(16.0)",
            "engine Text Text(\"innodb\")",
            "flag Bool Bool(true)",
            "name Text Text(\"\")",
            "ports List List([\"1\", \"2\"])",
            "room Size Number(1024.0)",
            "secondary Bool Bool(false)",
            "table_size Double Number(10000.0)",
        ]
    );
    let commands: Vec<_> = program.commands().iter().map(|c| (c.name.as_str(), c.parallel)).collect();
    assert_eq!(commands, [("one", false), ("warm", true)]);
    assert!(program.defines("event") && !program.defines("prepare") && !program.defines("print"));
    assert_eq!((program.name(), program.description(), program.declares_options()), ("test", None, true));
}

#[test]
fn a_wrong_option_table_names_the_option() {
    let message = |text: &str| load(text).unwrap_err().to_string();
    let form = "{ \"description\", default }, such as { \"Number of rows\", 1000 }";
    assert_eq!(
        message("local x\nsysbench.cmdline.options = {b = 1, a =\n  {}}\nsysbench.cmdline.options.b = {'B'}"),
        format!("test.lua:2: option a: it has no description: expected {form}")
    );
    assert_eq!(
        message("sysbench.cmdline.options = {\n['a-b'] = 7}"),
        format!("test.lua: option a-b: expected {form}, not a number")
    );
    assert_eq!(
        message("sysbench.cmdline.options = {a = {'d', print}}"),
        "test.lua:1: option a: its default is a function: expected a number, a text, true, false or a list"
    );
    assert_eq!(
        message("sysbench.cmdline.options = {a = {'d', 1, 'int'}}"),
        "test.lua:1: option a: its type is not one of sysbench.cmdline.ARG_BOOL, ARG_INT, ARG_DOUBLE, ARG_SIZE, \
         ARG_STRING, ARG_LIST and ARG_FILE"
    );
    assert_eq!(
        message("sysbench.cmdline.options = {\n a = {'d', 'x', sysbench.cmdline.ARG_INT}}"),
        "test.lua:2: option a: its default: `x` is not a whole number of at most 32 bits"
    );
    assert_eq!(
        message("sysbench.cmdline.options = {'x'}"),
        "test.lua:1: sysbench.cmdline.options: expected a name for each option, not 1"
    );
}

#[test]
fn a_wrong_command_or_hook_is_named() {
    let message = |text: &str| load(text).unwrap_err().to_string();
    let form = "expected { function }, such as { load_rows }";
    assert_eq!(
        message("sysbench.cmdline.commands = { load = function() end }"),
        format!("test.lua:1: command load: {form}, not a function")
    );
    assert_eq!(
        message("local c = sysbench.cmdline\nc.commands = { load = { load_rows } }"),
        format!("test.lua:2: command load: {form}, not a table that begins with a nil")
    );
    assert_eq!(
        message("sysbench.hooks.report_intermediat = print"),
        "test.lua:1: sysbench.hooks.report_intermediat: there is no such hook: expected before_restart_event, \
         report_cumulative, report_intermediate or sql_error_ignorable"
    );
    assert_eq!(
        message("sysbench.hooks.report_cumulative = 1"),
        "test.lua:1: sysbench.hooks.report_cumulative: expected a function, not a number"
    );
}

#[test]
fn a_function_whose_name_is_almost_one_that_is_called_is_refused() {
    for (name, meant) in
        [("thread_initt", "thread_init"), ("ThreadInit", "thread_init"), ("clean_up", "cleanup"), ("evnt", "event")]
    {
        let error = load(&format!("local x\nfunction {name}() end")).unwrap_err().to_string();
        assert_eq!(error, format!("test.lua:2: nothing calls {name}(): did you mean {meant}()?"));
    }
    for text in [
        "function thread_init2() end function event() thread_init2() end",
        "function events() end function event() end",
        "function inits() end init = inits",
        "function thread() end function preparation() end",
    ] {
        load(text).unwrap();
    }
}

#[test]
fn an_error_of_the_top_level_without_a_place_has_that_of_the_call() {
    let error = load("local x\ndofile('./nothing/there.lua')").unwrap_err();
    assert_eq!((error.file.as_deref(), error.line), (Some("test.lua"), Some(2)), "{error}");
}

#[test]
fn a_type_declared_inside_event_is_an_error_and_not_a_transaction_that_does_nothing() {
    let run = conversation(
        "function event()\n  assay.transaction('pay', function() print('paid') end)\nend",
        &setup(),
        Driver { decision: Decision::Skip, ..Driver::default() },
    );
    assert!(run.contains("test.lua:2: assay.transaction(\"pay\", …) only declares a type"), "{run}");
}

#[test]
fn a_script_that_includes_another_may_change_its_options() {
    let program = program("sysbench.cmdline.options = {a = {'A', 1}} sysbench.cmdline.options.a = {'B', true}");
    assert_eq!(program.options()[0].default, OptionValue::Bool(true));
}

#[test]
fn the_top_level_sees_the_command_line_but_no_options() {
    load("assert(sysbench.cmdline.command == 'run' and sysbench.opt == nil and sysbench.cmdline.argv[0] == 'assay')")
        .unwrap();
    let error = load("con = sysbench.sql.driver():connect()").unwrap_err();
    assert!(error.message.contains("uses the database"), "{error}");
}

#[test]
fn options_are_a_table_that_can_be_walked() {
    let setup = Setup {
        options: vec![
            ("a".into(), OptionValue::Bool(true)),
            ("b".into(), OptionValue::Text("x".into())),
            ("c".into(), OptionValue::List(vec!["1".into(), "2".into()])),
            ("d".into(), OptionValue::None),
        ],
        ..setup()
    };
    check_as(
        r#"function event()
          local all = {}
          for k, v in pairs(sysbench.opt) do all[#all + 1] = k .. "=" .. (type(v) == "table" and table.concat(v, "+") or tostring(v)) end
          table.sort(all)
          print(table.concat(all, " "))
        end"#,
        &setup,
        Driver::default(),
        "ready\nnext\nlog a=true b=x c=1+2\nnext\nfinished true",
    );
}

#[test]
fn commands_are_found_in_the_table_or_among_the_globals() {
    let run = |script: &str, name: &str| {
        conversation(script, &Setup { entry: Entry::Function(name.into()), ..setup() }, Driver::default())
    };
    let script = "function prepare() print('global', sysbench.tid) end
        sysbench.cmdline.commands = {prepare2 = {function() return false end}, zero = {function() return 0 end}}";
    assert_eq!(run(script, "prepare"), "log global\t0\nfinished true");
    assert_eq!(run(script, "prepare2"), "finished false");
    assert_eq!(run(script, "zero"), "finished true");
    assert_eq!(run(script, "cleanup"), "died: the script defines no function cleanup()");
}

#[test]
fn init_and_done_frame_the_run_in_one_environment() {
    check_as(
        "function init() started = true end function done() print(started) end",
        &Setup { entry: Entry::Main, ..setup() },
        Driver::default(),
        "ready\nlog true\nfinished true",
    );
    check_as(
        "print('hello')",
        &Setup { entry: Entry::TopLevel, ..setup() },
        Driver::default(),
        "log hello\nfinished true",
    );
    let run = conversation("init = 3", &Setup { entry: Entry::Main, ..setup() }, Driver::default());
    assert_eq!(run, "died: global 'init' is not a function but a number");
}

#[test]
fn a_run_needs_an_event_function() {
    check("x = 1", Driver::default(), "ready\ndied: the script defines no function event()");
}

#[test]
fn thread_run_can_be_replaced() {
    check(
        r#"
        ffi.cdef("bool sb_more_events(int); void sb_event_start(int); void sb_event_stop(int);")
        function event(tid) print("event", tid) end
        function thread_run(tid)
          while ffi.C.sb_more_events(tid) do
            ffi.C.sb_event_start(tid)
            event(tid)
            ffi.C.sb_event_stop(tid)
          end
        end
        function thread_done(tid) print("done", tid) end"#,
        Driver { transactions: 2, ..Driver::default() },
        "ready\nnext\nlog event\t0\nnext\nlog event\t0\nnext\nlog done\t0\nfinished true",
    );
}

#[test]
fn the_option_table_is_printed_as_sysbench_does() {
    check_as(
        r#"sysbench.cmdline.options = {b_two = {"second", 5}, a = {"first", false}, c = {"third"}}
           function help() sysbench.cmdline.print_test_options() end"#,
        &Setup { entry: Entry::Function("help".into()), ..setup() },
        Driver::default(),
        "log   --a[=on|off] first [off]
         log   --b_two=N    second [5]
         log   --c=STRING   third
         log
         finished true",
    );
}
