//! Scripts like those that people publish: modules beside the script, counters through the FFI, hooks that depend on
//! the environment, overridden functions, loops of their own.

use std::process::Command;

use crate::bench::Bench;

/// An order-entry workload in several files, as benchmark kits have it.
const KIT: &[(&str, &str)] = &[
    (
        "kit_common.lua",
        r#"
        ffi = require("ffi")
        ffi.cdef[[
        void sb_counter_inc(int thread_id, sb_counter_type type);
        typedef uint32_t useconds_t;
        int usleep(useconds_t microseconds);
        ]]
        sysbench.cmdline.options = {
          scale = {"Scale factor", 1}, tables = {"Sets of tables", 1}, use_fk = {"Foreign keys", 1}, force_pk = {"Keys", 1},
          trx_level = {"Isolation", "RR"}, report_csv = {"Report in CSV", "no"}, mysql_table_options = {"Options", " "},
          mysql_storage_engine = {"Engine", "innodb"},
        }
        function sleep(n) os.execute("sleep " .. tonumber(n)) end
        local function isolation()
          if drv:name() == "mysql" then return "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED" end
          return "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED"
        end
        function create_tables(drv, con, number)
          local id = drv:name() == "mysql" and "INT NOT NULL AUTO_INCREMENT" or "SERIAL"
          con:query(string.format("CREATE TABLE IF NOT EXISTS item%d (i_id %s, i_price DECIMAL(5,2), i_data VARCHAR(50), PRIMARY KEY (i_id))", number, id))
          con:query("CREATE TABLE IF NOT EXISTS stock" .. number .. " (s_i_id INT NOT NULL, s_quantity INT, PRIMARY KEY (s_i_id))")
          con:bulk_insert_init("INSERT INTO item" .. number .. " (i_price, i_data) VALUES")
          for _ = 1, 100 * sysbench.opt.scale do
            con:bulk_insert_next(string.format("(%.2f, '%s')", 1.5, sysbench.rand.string("@@@@#-@@")))
          end
          con:bulk_insert_done()
          con:query("INSERT INTO stock" .. number .. " SELECT i_id, 50 FROM item" .. number)
        end
        function prepare_kit()
          drv = sysbench.sql.driver()
          local con = drv:connect()
          con:query(isolation())
          for i = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
            if i > 0 then create_tables(drv, con, i) end
          end
        end
        sysbench.cmdline.commands = {prepare = {prepare_kit, sysbench.cmdline.PARALLEL_COMMAND},
          check = {function() drv = sysbench.sql.driver() local con = drv:connect()
            for i = 1, sysbench.opt.tables do print(i, con:query_row("SELECT COUNT(*), MIN(s_quantity) FROM stock" .. i)) end end}}
        function thread_init()
          drv = sysbench.sql.driver()
          con = drv:connect()
          con:query(isolation())
        end
        function thread_done() con:disconnect() end
        function cleanup()
          local con = sysbench.sql.driver():connect()
          for i = 1, sysbench.opt.tables do con:query("DROP TABLE IF EXISTS stock" .. i) con:query("DROP TABLE IF EXISTS item" .. i) end
        end"#,
    ),
    (
        "kit_run.lua",
        r#"
        require("kit_common")
        function new_order()
          local set = sysbench.rand.uniform(1, sysbench.opt.tables)
          con:query("BEGIN")
          for _ = 1, 3 do
            local item = ((count * 7) % 50) * 2 + 1
            local price, data = con:query_row(([[SELECT i_price, i_data FROM item%d WHERE i_id = %d]]):format(set, item))
            if price == nil then
              ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
              con:query("ROLLBACK")
              return
            end
            local quantity = con:query_row(([[SELECT s_quantity FROM stock%d WHERE s_i_id = %d FOR UPDATE]]):format(set, item))
            quantity = quantity > "10" and quantity - 1 or quantity + 91
            con:query(([[UPDATE stock%d SET s_quantity = %d WHERE s_i_id = %d]]):format(set, quantity, item))
          end
          con:query("COMMIT")
        end"#,
    ),
    (
        "kit.lua",
        "#!/usr/bin/env sysbench
        require('kit_common')
        require('kit_run')
        count = 0
        function thread_init()
          drv = sysbench.sql.driver()
          con = drv:connect()
        end
        function event()
          count = count + 1
          if count % 5 == 0 then con:query('BEGIN') ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR) con:query('ROLLBACK') return end
          new_order()
        end
        function sysbench.hooks.before_restart_event(err) con:query('ROLLBACK') end
        if os.getenv('REPORT') == 'csv' then sysbench.hooks.report_intermediate = sysbench.report_csv
        elseif os.getenv('REPORT') == 'json' then sysbench.hooks.report_cumulative = sysbench.report_json end",
    ),
];

#[test]
fn a_kit_of_several_files_prepares_runs_and_cleans_up() {
    let bench = Bench::new(KIT);
    bench.same_on_servers(&[
        "kit.lua prepare --tables=2 --threads=1",
        "./kit.lua check --tables=2",
        "kit run --tables=1 --events=23",
        "kit.lua run --tables=1 --events=5 --trx-level=RC --report_csv=yes --verbosity=4",
        "kit.lua cleanup --tables=2",
        "kit.lua run --nosuch=1",
        "kit.lua help",
    ]);
    Bench::new(KIT).with("REPORT", "csv").same_on_servers(&["kit.lua prepare --tables=1", "kit.lua run --events=11"]);
}

#[test]
fn scripts_override_what_the_bundled_module_defines() {
    let bench = Bench::new(&[
        (
            "custom.lua",
            r#"
            require("oltp_common")
            sysbench.cmdline.options.extra = {"Extra", "none"}
            sysbench.cmdline.commands.count = {function()
              local con = sysbench.sql.driver():connect()
              print("rows", con:query_row("SELECT COUNT(*), MIN(k), MAX(k) FROM sbtest1"))
            end}
            function create_table(drv, con, table_num)
              print("create_table", drv:name(), table_num, sysbench.opt.table_size)
              con:query("CREATE TABLE sbtest" .. table_num .. " (id INTEGER PRIMARY KEY, k INTEGER, c CHAR(120), pad CHAR(60))")
              con:bulk_insert_init("INSERT INTO sbtest" .. table_num .. " VALUES")
              for i = 1, sysbench.opt.table_size do
                con:bulk_insert_next(("(%d, %d, '%s', '%s')"):format(i, i, get_c_value(), get_pad_value()))
              end
              con:bulk_insert_done()
            end
            function prepare_statements()
              prepare_begin() prepare_commit() prepare_point_selects() prepare_index_updates()
            end
            function event()
              begin() execute_point_selects() execute_index_updates() commit()
              check_reconnect = check_reconnect or function() end
            end"#,
        ),
        (
            "replaced.lua",
            r#"
            require("oltp_common")
            sysbench.cmdline.options = {table_size = {"Rows", 50}, tables = {"Tables", 1}, range_size = {"Range", 10}}
            sysbench.opt = nil
            function thread_init()
              drv = sysbench.sql.driver() con = drv:connect() stmt, param = {}, {}
            end
            function thread_done() con:disconnect() print("closed") end
            function event()
              print(con:query_row("SELECT COUNT(*) FROM sbtest1 WHERE id <= " .. sysbench.opt.range_size))
            end"#,
        ),
    ]);
    bench.same_on_servers(&[
        "custom.lua prepare --table-size=100",
        "custom.lua count --table_size=100",
        "custom.lua run --table-size=100 --events=20 --point-selects=3 --index-updates=2",
        "replaced.lua run --events=2",
        "replaced.lua run --skip-trx --events=1",
    ]);
}

#[test]
fn scripts_have_loops_of_their_own() {
    let script = r#"
        ffi.cdef[[bool sb_more_events(int); void sb_event_start(int); void sb_event_stop(int);]]
        function thread_run(id)
          local n = 0
          while ffi.C.sb_more_events(id) do
            ffi.C.sb_event_start(id)
            n = n + 1
            ffi.C.sb_event_stop(id)
          end
          print("ran", id, n)
        end
        function event() print("never") end
        function thread_done(id) print("done", id) end"#;
    let bench = Bench::new(&[
        ("own.lua", script),
        ("once.lua", "function thread_run(id) print('once', id) end function event() end"),
    ]);
    bench.same("own.lua run --events=7");
    bench.same("once.lua run --time=1");
    let failing = Bench::new(&[("own.lua", "function thread_run(id) error('own') end function event() end")]);
    failing.same("own.lua run --events=1");
}

#[test]
fn scripts_catch_errors_in_loops_and_debug_their_options() {
    let script = r#"
        sysbench.cmdline.options = {alpha = {"A", 1}, beta = {"B", {"x", "y"}}}
        local function inspect(value, depth)
          if type(value) ~= "table" then return tostring(value) end
          local keys, parts = {}, {}
          for key in pairs(value) do keys[#keys + 1] = tostring(key) end
          table.sort(keys)
          for _, key in ipairs(keys) do parts[#parts + 1] = key .. "=" .. inspect(value[key] == nil and value[tonumber(key)] or value[key], depth + 1) end
          return "{" .. table.concat(parts, ", ") .. "}"
        end
        function thread_init()
          con = sysbench.sql.driver():connect()
          print(inspect({a = sysbench.opt.alpha, b = sysbench.opt.beta, h = sysbench.opt.mysql_ignore_errors}, 0))
          local info = debug.getinfo(1, "Sl")
          print(info.short_src, info.currentline, debug.traceback("trace"):match("^trace") ~= nil)
        end
        tries = 0
        local function transaction()
          tries = tries + 1
          con:query("BEGIN")
          if tries % 3 ~= 0 then error("try again") end
          con:query("SELECT " .. tries)
          con:query("COMMIT")
        end
        function event()
          while true do
            local ok, err = pcall(transaction)
            if ok then break end
            print(err)
            con:query("ROLLBACK")
          end
        end
        function thread_done() print(tries) end"#;
    Bench::new(&[("loop.lua", script)]).same_on_servers(&["loop.lua run --events=4 --alpha=3 --beta=q,r,s"]);
}

#[test]
fn a_script_may_come_from_stdin_or_have_a_shebang() {
    let text = "#!/usr/bin/env sysbench\nprint('from', sysbench.cmdline.command, sysbench.tid)\nfunction event() print('never') end";
    let bench = Bench::new(&[("it.lua", text)]).with_input(text);
    for line in ["", "-", "- run", "it.lua", "it.lua nosuch", "/dev/stdin", "/dev/stdin run --events=1"] {
        bench.same(line);
    }
    // A pipe can be read once, and its script runs in every session; sysbench finds it empty the second time.
    let line =
        "echo 'function event() print(sysbench.tid < 2) end' | \"$0\" sysbench /dev/stdin run --events=4 --threads=2";
    let did = Command::new("sh").args(["-c", line, env!("CARGO_BIN_EXE_assay")]).output().unwrap();
    assert_eq!((did.status.code(), String::from_utf8_lossy(&did.stdout).matches("true\n").count()), (Some(0), 4));
}
