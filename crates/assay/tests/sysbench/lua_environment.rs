//! The environment of a script: globals, libraries, the `sysbench` table, modules; and how often its top level runs.

use crate::bench::Bench;

/// Runs `script` as the command `go`, with both programs.
#[track_caller]
fn same(script: &str) {
    let text = format!("sysbench.cmdline.commands = {{go = {{function()\n{script}\nend}}}}\n");
    Bench::new(&[("it.lua", &text)]).same("it.lua go --mysql-dry-run");
}

#[test]
fn the_search_path_of_modules_is_tried_in_order() {
    let bench = Bench::new(&[
        (
            "it.lua",
            "print(require('sibling'), require('src_only'), require('folder.inner'), require('package') == package)
             print(pcall(require, 'nosuch') == false, package.path:sub(1, 40))",
        ),
        ("sibling.lua", "return 'sibling'"),
        ("src/lua/sibling.lua", "return 'the wrong one'"),
        ("src/lua/src_only.lua", "return 'src'"),
        ("folder/inner.lua", "return 'inner'"),
    ]);
    bench.same("it.lua");
    bench.same("it");
    let found = Bench::new(&[
        ("it.lua", "print(require('only'), package.path:match('^./mine/%?.lua;./%?.lua') ~= nil)"),
        ("mine/only.lua", "return 'mine'"),
    ])
    .with("LUA_PATH", "./mine/?.lua;;");
    found.same("it.lua");
}

#[test]
fn the_sysbench_table_and_the_globals_are_there() {
    same(
        r#"
        print(sysbench.tid, sysbench.version, sysbench.version_string, sysbench.error.NONE, sysbench.error.RESTART_EVENT)
        for _, name in ipairs{"cmdline", "rand", "sql", "hooks", "opt", "histogram", "db", "report_default", "report_csv",
            "report_json"} do
          print(name, type(sysbench[name]))
        end
        local known = {}
        for name in pairs(_G) do known[name] = true end
        for _, name in ipairs{"thread_run", "db_query", "sb_rand", "ffi", "bit", "jit", "test", "thread_id", "print",
            "sysbench", "package", "unpack", "setfenv", "newproxy", "DB_ERROR_NONE", "myisam_max_rows"} do
          print(name, known[name], type(_G[name]))
        end
        local names = {}
        for name in pairs(sysbench) do names[#names + 1] = name end
        table.sort(names)
        print(table.concat(names, " "))
        print(_VERSION, table.getn{1, 2}, string.format("%u %5.2f %d", 5, 1.234, "7"), bit.band(7, 3), loadstring("return 5")())
        print(getmetatable(_G), getmetatable(sysbench), package.loaded.ffi == ffi, package.loaded.string == string)
        "#,
    );
}

#[test]
fn options_are_a_table_that_scripts_walk_and_write() {
    let bench = Bench::new(&[(
        "it.lua",
        r#"
        sysbench.cmdline.options = {["a-b"] = {"A", 5}, list = {"L", {"x", "y"}}, text = {"T"}, flag = {"F", false},
          unset = {"U", nil, sysbench.cmdline.ARG_BOOL}, size = {"S", "16K", sysbench.cmdline.ARG_SIZE}}
        -- In one piece: threads print in between each other's pieces.
        io.write(tostring(sysbench.opt) .. " " .. tostring(sysbench.cmdline.command) .. "\n")
        local function show()
          local names = {}
          for name in pairs(sysbench.opt) do names[name] = true end
          for _, name in ipairs{"a_b", "list", "text", "flag", "unset", "size", "threads", "events", "time", "rate", "percentile",
              "mysql_host", "mysql_port", "mysql_ignore_errors", "mysql_user", "db_driver", "db_ps_mode", "rand_type",
              "rand_pareto_h", "report_checkpoints", "validate", "thread_stack_size", "forced_shutdown", "verbosity", "pgsql_db"} do
            local value = sysbench.opt[name]
            print(name, names[name], type(value), type(value) == "table" and table.concat(value, ",") or value)
          end
        end
        function prepare()
          show()
          sysbench.opt.a_b, sysbench.opt.new = 7, "n"
          print(sysbench.opt.a_b, sysbench.opt.new)
        end
        function thread_init() sysbench.opt.a_b = sysbench.opt.a_b + 1 end
        function event() io.write(sysbench.opt.a_b .. "\n") end
        "#,
    )]);
    bench.same(
        "it.lua prepare --a_b=12 --list= --text=x --unset=off --size=2k --events=3 --rand-type=pareto --mysql-port=1,2",
    );
    bench.same("it.lua prepare --a-b=9 --list=q --flag --mysql-ignore-errors= --threads=2");
    bench.same("it.lua run --events=3 --threads=3");
}

#[test]
fn each_thread_has_globals_of_its_own() {
    let bench = Bench::new(&[(
        "it.lua",
        r#"
        count = 0
        function init() main_only = true end
        function thread_init(id) local_to_thread = id end
        function event(id)
          count = count + 1
          package.loaded.shared = package.loaded.shared or id
          assert(local_to_thread == id and package.loaded.shared == id and main_only == nil and sysbench.tid == id)
        end
        function done() print(count, main_only, local_to_thread) end
        "#,
    )]);
    bench.same("it.lua run --events=500 --threads=4 --verbosity=0");
}

#[test]
fn the_top_level_runs_once_for_the_program_and_once_per_thread() {
    let bench = Bench::new(&[("it.lua", "print('top') function event() end function prepare() end")]);
    bench.same("it.lua run --events=2 --threads=1");
    for did in [bench.oracle("it.lua run --events=9 --threads=3"), bench.ours("it.lua run --events=9 --threads=3")] {
        assert_eq!(did.stdout.matches("top").count(), 4, "{}", did.shown());
    }
    bench.same("it.lua prepare");
    bench.same("it.lua");
    let parallel =
        "print('top') sysbench.cmdline.commands = {go = {function() end, sysbench.cmdline.PARALLEL_COMMAND}}";
    let bench = Bench::new(&[("it.lua", parallel)]);
    for did in [bench.oracle("it.lua go --threads=3"), bench.ours("it.lua go --threads=3")] {
        assert_eq!(did.stdout.matches("top").count(), 4, "{}", did.shown());
    }
    bench.same("it.lua go --threads=1");
}

#[test]
fn what_is_printed_comes_at_once_and_in_order() {
    same(
        r#"
        io.write("a") io.write("b\n")
        ffi.cdef "int printf(const char *format, ...);"
        io.write("1 ") ffi.C.printf("%d ", ffi.new("int", 2)) io.write("3\n")
        os.execute("echo shell") print("after")
        local pipe = io.popen("echo popen") print(pipe:read("*a")) pipe:close()
        io.stdout:write("c", 1, "\n")
        io.stderr:write("on stderr\n")
        print(os.execute("exit 3"), os.execute("true"), os.getenv("NOSUCH"))
        io.write("no line end")
        "#,
    );
}

#[test]
fn os_exit_ends_the_process_with_its_code() {
    let bench =
        Bench::new(&[("it.lua", "function event() os.exit(3) end function prepare() print('p') os.exit() end")]);
    bench.same("it.lua run");
    bench.same("it.lua prepare");
}

#[test]
fn scripts_have_coroutines_of_their_own() {
    let bench = Bench::new(&[(
        "it.lua",
        r#"
        function event()
          local con = con or sysbench.sql.driver():connect()
          local ids = coroutine.wrap(function()
            for i = 1, 3 do coroutine.yield((con:query_row("SELECT " .. i))) end
          end)
          print(ids(), ids(), ids())
          local co = coroutine.create(function() error("inside") end)
          print(coroutine.resume(co)) print(coroutine.status(co), coroutine.running())
          print(coroutine.wrap(function() return type(coroutine.running()) end)())
        end"#,
    )]);
    bench.same_on_servers(&["it.lua run --events=2"]);
}

#[test]
fn math_random_draws_the_same_in_every_thread_until_it_is_seeded() {
    same(
        "print(math.random(), math.random(10), math.random(5, 9)) math.randomseed(5) print(math.random(100), math.random())",
    );
    let bench = Bench::new(&[("it.lua", "function event() print(math.random(1000)) end")]);
    bench.same("it.lua run --events=2 --threads=1");
}
