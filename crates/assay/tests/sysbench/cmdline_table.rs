//! `sysbench.cmdline`: arguments, declarations, commands.

use crate::bench::Bench;

#[track_caller]
fn same(script: &str, lines: &[&str]) {
    let bench = Bench::new(&[("it.lua", script)]);
    for line in lines {
        bench.same(line);
    }
}

#[test]
fn arguments_command_and_path_are_as_given() {
    let script = r#"
        for i = 0, #sysbench.cmdline.argv do print(i, sysbench.cmdline.argv[i]) end
        print(sysbench.cmdline.command, sysbench.cmdline.script_path, test)
        function prepare() print(sysbench.cmdline.command, #sysbench.cmdline.argv) end"#;
    same(script, &["it.lua", "--threads=2 it.lua prepare --x=1", "it prepare", "./it.lua cleanup"]);
}

#[test]
fn a_script_that_is_found_as_a_module_is_told_its_name() {
    let bench =
        Bench::new(&[("it.lua", "print(select('#', ...), ...)"), ("kit/of.lua", "print(select('#', ...), ...)")]);
    for line in ["it", "it.lua", "./it", "kit/of", "kit.of", "kit/of.lua", "./kit/of.lua"] {
        bench.same(line);
    }
}

#[test]
fn type_constants_are_numbers() {
    let script = r#"
        for _, name in ipairs{"NULL", "BOOL", "INT", "SIZE", "DOUBLE", "STRING", "LIST", "FILE", "MAX"} do
          print(name, sysbench.cmdline["ARG_" .. name])
        end
        print(sysbench.cmdline.PARALLEL_COMMAND)"#;
    same(script, &["it.lua"]);
}

#[test]
fn help_lists_the_declared_options_with_their_defaults() {
    let script = r#"
        sysbench.cmdline.options = {["a-b"] = {"Desc a", 1}, b = {"bool", true}, c = {"list", {"x", "y"}}, l2 = {"empty list", {}},
          d = {"text", "s"}, e = {"none"}, f = {"size", 1024, sysbench.cmdline.ARG_SIZE}, g = {"int", 3, sysbench.cmdline.ARG_INT},
          h = {"file", nil, sysbench.cmdline.ARG_FILE}, double = {"double", 1.5}, big = {"big", 10000000}, neg = {"n", -1},
          es = {"empty", ""}, bn = {"bool without", nil, sysbench.cmdline.ARG_BOOL}, li = {"list", nil, sysbench.cmdline.ARG_LIST},
          sz = {"size", "16K", sysbench.cmdline.ARG_SIZE}}
        function show() sysbench.cmdline.print_test_options() print("after") end
        sysbench.cmdline.commands = {show = {show}}"#;
    same(script, &["it.lua help", "it.lua show --a-b=9"]);
    same("function help() print('my help') end sysbench.cmdline.options = {a = {'x', 1}}", &["it.lua help"]);
    same("function event() end", &["it.lua help"]);
}

#[test]
fn declarations_that_are_wrong_are_refused() {
    for script in [
        "sysbench.cmdline.options = 5",
        "sysbench.cmdline.options = {a = 5}",
        "sysbench.cmdline.options = {'a'}",
        "sysbench.cmdline.options = {a = {}}",
        "sysbench.cmdline.options = {a = {5, 1}}",
        "sysbench.cmdline.options = {a = {print}}",
        "sysbench.cmdline.options = {a = {'d', print}}",
        "sysbench.cmdline.options = {[5] = {'d'}}",
    ] {
        same(script, &["it.lua run", "it.lua help"]);
    }
}

#[test]
fn commands_run_once_or_in_every_thread_and_may_refuse() {
    let script = r#"
        sysbench.cmdline.commands = {
          none = {function() end}, zero = {function() return 0 end}, refuse = {function() return false end},
          table = {function() error({}) end}, fail = {function() error("failed") end}, empty = {nil}, text = "x",
          tid = {function() print(sysbench.tid, sysbench.opt.threads) end},
          each = {function() assert(sysbench.tid < 3) io.write("each\n") end, sysbench.cmdline.PARALLEL_COMMAND},
          prepare = {function() print("shadows") end},
        }
        function prepare() print("not this") end
        function cleanup() return false end
        function show() end"#;
    for command in
        ["none", "zero", "refuse", "table", "fail", "empty", "text", "tid", "prepare", "cleanup", "show", "run"]
    {
        same(script, &[&format!("it.lua {command} --threads=2")]);
    }
    same(script, &["it.lua each --threads=3", "it.lua each"]);
}

#[test]
fn a_parallel_command_that_fails_exits_with_1_here() {
    // sysbench prints the same and exits with 0.
    let script = "sysbench.cmdline.commands = {go = {function() if sysbench.tid == 1 then error('x') end end, true}}";
    let bench = Bench::new(&[("it.lua", script)]);
    let (oracle, ours) = (bench.oracle("it.lua go --threads=2"), bench.ours("it.lua go --threads=2"));
    assert_eq!((oracle.code, ours.code), (Some(0), Some(1)));
    assert_eq!(oracle.stdout, ours.stdout);
}

#[test]
fn visible_internals_answer() {
    let script = r#"
        sysbench.cmdline.commands = {a = {function() return 5 end}, b = {function() return false end, true}, c = {}}
        function prepare()
          local c = sysbench.cmdline
          print(c.command_defined("a"), c.command_defined("c"), c.command_defined("nosuch"))
          print(c.command_parallel("b"))
          print(c.call_command("a"), c.call_command("b"))
        end"#;
    same(script, &["it.lua prepare"]);
}

#[test]
fn options_may_be_replaced_after_a_module_declared_them() {
    let bench = Bench::new(&[
        (
            "base.lua",
            "sysbench.cmdline.options = {x = {'X', 1}, y = {'Y', 'old'}} function event() print(sysbench.opt.x, sysbench.opt.y) end",
        ),
        ("it.lua", "require('base') sysbench.cmdline.options.y = {'Y', 'new'} sysbench.cmdline.options.z = {'Z', 3}"),
        ("other.lua", "require('base') sysbench.cmdline.options = {z = {'Z', 3}}"),
    ]);
    for line in [
        "it.lua help",
        "it.lua run --events=1 --x=2",
        "other.lua help",
        "other.lua run --events=1",
        "other.lua run --x=1",
    ] {
        bench.same(line);
    }
}

#[test]
fn items_of_a_list_keep_their_blanks() {
    same(
        "sysbench.cmdline.options = {l = {'list', {}}} function prepare() print(table.concat(sysbench.opt.l, '|')) end",
        &["it.lua prepare '--l=a b, c,,d '"],
    );
}

#[test]
fn values_are_read_as_c_reads_them_and_a_file_is_none() {
    let script = r#"
        sysbench.cmdline.options = {n = {"number", 5}, s = {"size", 1024, sysbench.cmdline.ARG_SIZE},
          f = {"file", nil, sysbench.cmdline.ARG_FILE}, t = {"text", nil, sysbench.cmdline.ARG_STRING}}
        function prepare()
          for _, name in ipairs{"n", "s", "f", "t", "mysql_ssl"} do print(name, type(sysbench.opt[name]), sysbench.opt[name]) end
        end"#;
    let lines =
        ["", "--n=0x1F", "--n=-0x10", "--n=inf", "--n=-infinity", "--n=1e3x", "--s=1KB", "--s=2mb", "--mysql-ssl"];
    same(script, &lines.map(|options| format!("it.lua prepare {options}")).each_ref().map(String::as_str));
}
