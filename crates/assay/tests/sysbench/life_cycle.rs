//! Commands, the functions of a script and when they are called, the effect of failures, and when a run ends.

use testkit::Kind;

use crate::bench::Bench;

#[test]
fn functions_are_called_in_the_same_order_in_the_same_states() {
    let bench = Bench::new(&[(
        "it.lua",
        "local calls = 0
         local function tell(name) calls = calls + 1 print(name, calls, sysbench.tid, own) end
         print('top level', sysbench.tid, sysbench.cmdline.command, sysbench.opt)
         function init() own = 'main' tell('init') end
         function thread_init(tid) own = 'thread' tell('thread_init') end
         function event(tid) tell('event') end
         function thread_done(tid) tell('thread_done') end
         function done() tell('done') end
         function prepare() tell('prepare') end
         function cleanup() tell('cleanup') end
         function help() tell('help') end",
    )]);
    for line in ["it.lua run --events=2", "it.lua prepare", "it.lua cleanup", "it.lua help", "it.lua"] {
        bench.same(line);
    }
}

#[test]
fn commands_of_a_script_run_once_or_in_every_session() {
    let bench = Bench::new(&[(
        "it.lua",
        "local function one() print('one', sysbench.tid) end
         local function all() if sysbench.tid == 0 then print('all') end end
         local function no() return false end
         local function zero() return 0 end
         function prepare() print('the function is shadowed') end
         sysbench.cmdline.commands = { one = { one }, all = { all, sysbench.cmdline.PARALLEL_COMMAND }, no = { no },
           zero = { zero }, prepare = { one }, later = { nil } }",
    )]);
    for line in
        ["it.lua one --threads=3", "it.lua all --threads=3", "it.lua all", "it.lua no", "it.lua zero", "it.lua prepare"]
    {
        bench.same(line);
    }
    bench.same("it.lua later");
}

#[test]
fn failures_are_told_and_end_with_the_same_exit_code() {
    let bench = Bench::new(&[
        ("init.lua", "function init() error('no') end function event() end function done() print('done') end"),
        ("thread_init.lua", "function thread_init() error('no') end function event() end"),
        (
            "event.lua",
            "function event() error('no') end function thread_done() print('thread') end function done() print('done') end",
        ),
        ("table.lua", "function event() error({}) end"),
        ("thread_done.lua", "function event() end function thread_done() error('no') end"),
        ("done.lua", "function event() end function done() error('no') end"),
        ("prepare.lua", "function prepare() error('no') end"),
        ("top.lua", "error('no')"),
    ]);
    for line in [
        "init.lua run",
        "thread_init.lua run",
        "event.lua run",
        "table.lua run",
        "thread_done.lua run --events=1",
        "done.lua run --events=1",
        "prepare.lua prepare",
        "top.lua run",
        "top.lua",
    ] {
        bench.same(line);
    }
}

#[test]
fn a_parallel_command_that_fails_does_not_exit_with_zero() {
    // The original crashes, after the same message.
    let bench = Bench::new(&[(
        "it.lua",
        "sysbench.cmdline.commands = { go = { function() error('no', 0) end, sysbench.cmdline.PARALLEL_COMMAND } }",
    )]);
    let (oracle, ours) = (bench.oracle("it.lua go --threads=2"), bench.ours("it.lua go --threads=2"));
    assert_eq!((oracle.code, ours.code), (Some(0), Some(1)));
    assert_eq!(ours.lines(), oracle.lines());
    // The others run to their end.
    let bench = Bench::new(&[(
        "it.lua",
        "ffi.cdef('int usleep(unsigned int);')
         sysbench.cmdline.commands = { go = { function()
           if sysbench.tid == 1 then error('no', 0) end ffi.C.usleep(300000) io.write('done\\n')
         end, sysbench.cmdline.PARALLEL_COMMAND } }",
    )]);
    let (oracle, ours) = (bench.oracle("it.lua go --threads=3"), bench.ours("it.lua go --threads=3"));
    assert_eq!((ours.code, ours.lines()), (Some(1), oracle.lines()));
    assert_eq!(ours.stdout.matches("done\n").count(), 2, "{}", ours.shown());
}

#[test]
fn an_event_that_returns_a_value_stops_its_session_and_is_not_counted() {
    let bench = Bench::new(&[(
        "it.lua",
        "local n = 0 function event() n = n + 1 if n == 4 then return true end end function thread_done() print(n) end",
    )]);
    bench.same("it.lua run --events=10");
}

#[test]
fn events_in_flight_are_finished_or_given_up() {
    let sleeping = |seconds: u32| {
        format!(
            "ffi.cdef'unsigned int sleep(unsigned int);' function event() ffi.C.sleep({seconds}) end
             function done() print('done') end"
        )
    };
    // At least as long as the time limit, however busy the machine is; and long enough not to end before it.
    let bench = Bench::new(&[("slow.lua", &sleeping(2)), ("stuck.lua", &sleeping(600))]);
    bench.same("slow.lua run --time=1");
    let given_up = bench.same("stuck.lua run --time=1 --forced-shutdown=0");
    assert_eq!(given_up.code, Some(2));
    assert!(given_up.stdout.contains("Number of unfinished transactions on forced shutdown: 1"));
}

#[test]
fn sessions_that_are_not_ready_in_time_end_the_run() {
    let bench = Bench::new(&[(
        "it.lua",
        "ffi.cdef'int usleep(unsigned int);' function thread_init() ffi.C.usleep(3000000) end function event() end",
    )]);
    let ours = bench.ours("it.lua run --thread-init-timeout=1");
    assert_eq!(ours.code, Some(2));
    assert!(ours.stdout.ends_with("FATAL: Worker threads failed to initialize within 1 seconds!\n"), "{}", ours.stdout);
}

/// The original prints it before the last thread passes the barrier.
#[test]
fn no_event_prints_before_the_threads_have_started() {
    let bench = Bench::new(&[("it.lua", "function event() print('event') end")]);
    // A line for each thread, while all of them could run.
    let ours = bench.ours_text("it.lua run --threads=400 --events=400 --debug");
    let (before, after) = ours.split_once("\nThreads started!\n").unwrap();
    assert_eq!((before.matches("\nevent").count(), after.matches("event\n").count()), (0, 400), "{ours}");
}

#[test]
fn events_in_flight_at_the_end_of_the_warm_up_count_beyond_those_wanted() {
    let slow = "ffi.cdef'int usleep(unsigned int);' function event() ffi.C.usleep(1500000) end";
    let bench = Bench::new(&[("slow.lua", slow)]);
    let ours = bench.ours("slow.lua run --events=3 --threads=2 --warmup-time=1");
    assert!(ours.stdout.contains("total number of events:              5\n"), "{}", ours.stdout);
}

#[test]
fn events_of_the_warm_up_are_not_among_those_wanted() {
    let bench = Bench::new(&[(
        "it.lua",
        "ffi.cdef'int usleep(unsigned int);'
         local n = 0
         function event() n = n + 1 ffi.C.usleep(10000) end function thread_done() print('events', n) end",
    )]);
    for line in ["it.lua run", "it.lua run --rate=100", "cpu run --cpu-max-prime=100000"] {
        let ours = bench.ours(&format!("{line} --events=20 --warmup-time=1"));
        assert!(ours.stdout.contains("Threads started!\n\nWarming up for 1 seconds...\n\n"), "{}", ours.stdout);
        // One may be in flight at the end of the warm-up.
        let counted = ["20", "21"].map(|count| format!("total number of events:              {count}\n"));
        assert!(counted.iter().any(|line| ours.stdout.contains(line)), "{}", ours.stdout);
        let all = ours.stdout.lines().find_map(|line| line.strip_prefix("events\t")?.parse::<u32>().ok());
        assert!(all.is_none_or(|all| all > 20), "{}", ours.stdout);
    }
    let refused = bench.ours("it.lua run --warmup-time=-1");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stdout.ends_with("FATAL: Invalid value for --warmup-time: -1.\n"), "{}", refused.stdout);
}

#[test]
fn the_compiler_of_lua_can_be_switched_off() {
    let script = "local function tell() print((jit.status())) end
                  tell() init, thread_init, event, done, prepare = tell, tell, tell, tell, tell";
    let bench = Bench::new(&[("it.lua", script)]);
    for (line, calls) in [("it.lua run --events=1", 6), ("it.lua prepare", 2), ("it.lua", 1)] {
        assert_eq!(bench.same(line).stdout.matches("true\n").count(), calls, "{line}");
        let ours = bench.ours(&format!("{line} --luajit-cmd=off")).stdout;
        assert_eq!((ours.matches("true\n").count(), ours.matches("false\n").count()), (0, calls), "{line}\n{ours}");
    }
    assert_eq!(bench.ours("it.lua run --events=1 --luajit-cmd=v").code, Some(1));
}

#[test]
fn a_rate_is_announced_and_kept() {
    let bench = Bench::new(&[("it.lua", "function event() end")]);
    let ours = bench.ours("it.lua run --rate=200 --events=50 --threads=2");
    assert!(ours.stdout.contains("Target transaction rate: 200/sec\n"), "{}", ours.stdout);
    assert!(ours.stdout.contains("total number of events:              50\n"), "{}", ours.stdout);
    // The original gives up once its queue is full.
    let busy = Bench::new(&[("it.lua", "function event() local x = 0 for i = 1, 100000 do x = x + i % 7 end end")]);
    let ours = busy.ours("it.lua run --rate=1000000 --time=1");
    assert_eq!(ours.code, Some(0), "{}", ours.stdout);
}

#[test]
fn statements_that_fail_end_the_run_in_the_same_words() {
    let bench = Bench::new(&[
        (
            "query.lua",
            "function thread_init() con = sysbench.sql.driver():connect() end
             function event() con:query('SELECT * FROM nosuch') end
             function done() print('done') end",
        ),
        (
            "prepare.lua",
            "function prepare() con = sysbench.sql.driver():connect() con:query('CREATE TABLE t(a INT)')
               con:query('INSERT INTO t VALUES (1)') con:query('NONSENSE') end",
        ),
    ]);
    for kind in [Kind::MariaDb, Kind::Postgres] {
        bench.same_on(kind, &["prepare.lua prepare"]);
    }
}

#[test]
fn a_connection_that_is_refused_is_told_with_its_place() {
    let bench = Bench::new(&[(
        "it.lua",
        "function thread_init() con = sysbench.sql.driver():connect() end function event() end",
    )]);
    for line in [
        "it.lua run --mysql-host=127.0.0.1 --mysql-port=1",
        "it.lua run --mysql-socket=/nowhere/s",
        "it.lua run --db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port=1",
        "it.lua run --db-driver=pgsql --pgsql-host=/nowhere",
    ] {
        bench.same(line);
    }
}

#[test]
fn every_session_tells_why_it_is_not_ready() {
    let bench = Bench::new(&[
        ("it.lua", "function thread_init() error('no') end function event() end"),
        (
            "one.lua",
            "ffi.cdef('int usleep(unsigned int);')
             function thread_init(id) if id == 1 then error('no') end ffi.C.usleep(300000) io.write('ready\\n') end
             function event() end function thread_done() print('never') end",
        ),
    ]);
    bench.same("it.lua run --threads=4");
    let (oracle, ours) = (bench.oracle("one.lua run --threads=3"), bench.ours("one.lua run --threads=3"));
    assert_eq!((oracle.code, oracle.lines()), (ours.code, ours.lines()));
    assert_eq!(ours.stdout.matches("ready\n").count(), 2, "{}", ours.shown());
    assert!(bench.same("it.lua run --threads=1").stdout.ends_with("no\nFATAL: Thread initialization failed!\n"));
}

#[test]
fn errors_restart_their_event_and_are_counted() {
    let bench = Bench::new(&[
        ("prepare.lua", "function prepare() local con = sysbench.sql.driver():connect() con:query('CREATE TABLE t(a INT PRIMARY KEY)')
               con:query('INSERT INTO t VALUES (1)') end"),
        (
            "ignored.lua",
            "local n = 0
             function thread_init() con = sysbench.sql.driver():connect() end
             function event() n = n + 1 if n % 3 == 0 then con:query('INSERT INTO t VALUES (1)') else con:query('SELECT 1') end end",
        ),
        (
            "caught.lua",
            "function thread_init() con = sysbench.sql.driver():connect() end
             function event() con:query('SELECT 1') print(pcall(con.query, con, sysbench.opt.db_driver == 'pgsql'
               and 'SELECT * FROM nosuch' or 'INSERT INTO t VALUES (1)')) end",
        ),
        (
            "hook.lua",
            "local n = 0
             function thread_init() con = sysbench.sql.driver():connect() end
             function event() n = n + 1 con:query('SELECT 1') if n < 4 then con:query('INSERT INTO t VALUES (1)') end end
             function sysbench.hooks.sql_error_ignorable(e) print('hook', e.sql_errno, e.sql_state, e.query) return true end
             function sysbench.hooks.before_restart_event(e) print('restart', e.sql_errno) end",
        ),
    ]);
    bench.same_on(
        Kind::MariaDb,
        &[
            "prepare.lua prepare",
            "ignored.lua run --events=8 --mysql-ignore-errors=1062",
            "caught.lua run --events=3",
            "hook.lua run --events=3",
        ],
    );
    bench.same_on(Kind::Postgres, &["prepare.lua prepare", "ignored.lua run --events=8", "caught.lua run --events=3"]);
}

#[test]
fn a_lost_connection_is_told_as_the_client_library_tells_it() {
    let bench = Bench::new(&[(
        "it.lua",
        "local n = 0
         function thread_init() con, other = sysbench.sql.driver():connect(), sysbench.sql.driver():connect() end
         function event()
           n = n + 1
           if n == 2 then other:query('KILL ' .. con:query_row('SELECT connection_id()')) end
           con:query('SELECT 1')
         end
         function sysbench.hooks.before_restart_event(e) print('restart', e.sql_errno) end",
    )]);
    bench.same_on(Kind::MariaDb, &["it.lua run --events=4"]);
    // If the error is to be ignored, sysbench 1.0.20 crashes.
    let server = Kind::MariaDb.shared();
    let database = server.fresh_database().unwrap();
    let ours = bench.ours(&format!(
        "it.lua run --events=4 --mysql-ignore-errors=2013 --mysql-host=127.0.0.1 --mysql-port={} --mysql-user=app \
         --mysql-db={database}",
        server.port()
    ));
    assert_eq!(ours.code, Some(0), "{}", ours.stdout);
    assert!(ours.stdout.contains("restart\t2013\n"), "{}", ours.stdout);
    assert!(ours.stdout.contains("    ignored errors:                      0 "), "{}", ours.stdout);
    assert!(ours.stdout.contains("    reconnects:                          1 "), "{}", ours.stdout);
}

#[test]
fn connections_are_dealt_to_servers_in_turn() {
    let bench = Bench::new(&[(
        "it.lua",
        "function thread_init() local drv = sysbench.sql.driver() for i = 1, 5 do print(pcall(drv.connect, drv)) end end
         function event() end",
    )]);
    for line in [
        "it.lua run --events=1 --mysql-port=1,2 --mysql-host=127.0.0.1,127.0.0.2",
        "it.lua run --events=1 --mysql-socket=/nowhere/a,/nowhere/b",
    ] {
        bench.same(line);
    }
}

#[test]
fn a_top_level_may_use_the_database_whatever_the_command() {
    let bench = Bench::new(&[
        (
            "it.lua",
            "print('before', sysbench.opt)
             sysbench.cmdline.options = { rows = {'Rows', 3} }
             con = sysbench.sql.driver():connect()
             con:query('TOP LEVEL')
             print('after', sysbench.cmdline.command)
             sysbench.cmdline.commands = { go = { function() print('go', con:query('GO') == nil) end } }
             function prepare() print('prepare', sysbench.opt.rows) con:query('PREPARE') end
             function event() con:query('EVENT') end",
        ),
        (
            "framed.lua",
            "con = sysbench.sql.driver():connect() con:query('TOP LEVEL')
                        function init() con:query('INIT') end function event() con:query('EVENT') end
                        function done() con:query('DONE') print('done') end",
        ),
        ("fails.lua", "print('before') con = sysbench.sql.driver():connect() error('no') function event() end"),
    ]);
    for line in [
        "it.lua prepare",
        "it.lua prepare --rows=4",
        "it.lua go",
        "it.lua help",
        "it.lua run --events=2",
        "it.lua run --nosuch=1",
        "it.lua nosuch",
        "framed.lua run --events=2",
        "fails.lua run",
        "fails.lua prepare",
    ] {
        bench.same(&format!("{line} --mysql-dry-run"));
    }
    bench.same("it.lua run --mysql-host=127.0.0.1 --mysql-port=1");
}

/// Each event blocks its thread until all have started.
const MEETING: &str = r#"
    function event(id)
      io.open("here" .. id, "w"):close()
      local all
      repeat
        all = true
        for other = 0, sysbench.opt.threads - 1 do
          local file = io.open("here" .. other)
          if file then file:close() else all = false end
        end
      until all
      return true
    end"#;

#[test]
fn events_that_wait_without_letting_others_run_overlap_where_each_has_a_thread() {
    let bench = Bench::new(&[("it.lua", MEETING)]).with("ASSAY_WORKERS", "5");
    let line = "it.lua run --threads=5 --events=5 --time=0";
    let oracle = bench.oracle(line);
    for thread in 0..5 {
        std::fs::remove_file(bench.path(&format!("here{thread}"))).unwrap();
    }
    let ours = bench.ours(line);
    assert!(oracle == ours, "{}{}", oracle.shown(), ours.shown());
    let wrong = Bench::new(&[("it.lua", MEETING)]).with("ASSAY_WORKERS", "many").ours(line);
    assert_eq!(
        (wrong.code, wrong.stderr.as_str()),
        (Some(1), "ASSAY_WORKERS=many: not a number of threads from 1 on\n")
    );
}

#[test]
fn a_script_that_holds_the_thread_of_others_is_named() {
    // It continues until it has been named.
    let script = r#"
        function event()
          repeat until io.open("said"):read("*a"):find("ASSAY_WORKERS=2", 1, true)
          return true
        end"#;
    let bench = Bench::new(&[("it.lua", script)]).with("ASSAY_WORKERS", "1");
    let said = bench.ours_saying_to("said", "it.lua run --threads=2 --time=0");
    assert!(said.contains("at it.lua:3: in function"), "{said}");
}

/// The second thread waits for what the first one does at its end.
#[test]
fn a_thread_whose_loop_is_over_ends_though_another_still_works() {
    let waits = r#"
        ffi.cdef("int usleep(unsigned int);")
        local function is_there()
          local file = io.open("done")
          if file then file:close() end
          return file
        end
        function event(id)
          ffi.C.usleep(1000)
          while id == 1 and not is_there() do ffi.C.usleep(1000) end
        end
        function thread_done(id) if id == 0 then io.open("done", "w"):close() end end
        function done() os.remove("done") end"#;
    for workers in ["1", "2"] {
        let bench = Bench::new(&[("waits.lua", waits)]).with("ASSAY_WORKERS", workers);
        for line in [
            "waits.lua run --threads=2 --time=1",
            "waits.lua run --threads=2 --time=1 --rate=100",
            "waits.lua run --threads=2 --time=0 --events=20",
            "waits.lua run --threads=2 --time=0 --events=20 --rate=100",
        ] {
            let did = bench.ours(line);
            assert!(did.code == Some(0) && did.stdout.contains("total number of events:"), "{line}: {}", did.shown());
        }
    }
}
