//! Scripts that use LuaJIT's FFI.

use crate::bench::Bench;

#[track_caller]
fn same(script: &str, lines: &[&str]) {
    let bench = Bench::new(&[("it.lua", script)]);
    for line in lines {
        bench.same(line);
    }
}

#[test]
fn counters_of_the_script_reach_the_report() {
    let script = r#"
        local ffi = require("ffi")
        ffi.cdef "void sb_counter_inc(int, sb_counter_type);"
        function thread_init() sysbench.sql.driver() end
        function event(id)
          ffi.C.sb_counter_inc(id, ffi.C.SB_CNT_READ)
          ffi.C.sb_counter_inc(id, "SB_CNT_READ")
          ffi.C.sb_counter_inc(id, ffi.C.SB_CNT_WRITE)
          ffi.C.sb_counter_inc(id, 0)
          ffi.C.sb_counter_inc(id, ffi.C.SB_CNT_ERROR)
          ffi.C.sb_counter_inc(id, ffi.C.SB_CNT_RECONNECT)
        end"#;
    same(script, &["it.lua run --events=5"]);
    let several = Bench::new(&[("it.lua", script)]);
    let counters = |did: crate::bench::Did| -> Vec<String> {
        let labels = ["read:", "write:", "other:", "errors:", "reconnects:", "number of events:"];
        did.stdout.lines().filter(|line| labels.iter().any(|label| line.contains(label))).map(str::to_owned).collect()
    };
    let line = "it.lua run --events=9 --threads=3";
    assert_eq!(counters(several.oracle(line)), counters(several.ours(line)));
}

#[test]
fn constants_types_and_functions_are_declared() {
    let script = r#"
        function prepare()
          for _, name in ipairs{"OTHER", "READ", "WRITE", "TRX", "ERROR", "RECONNECT"} do
            print(name, tonumber(ffi.C["SB_CNT_" .. name]))
          end
          for _, name in ipairs{"sb_event_start", "sb_event_stop", "sb_more_events", "sb_rand_default", "sb_rand_uniform",
              "sb_rand_gaussian", "sb_rand_pareto", "sb_rand_special", "sb_rand_unique", "sb_rand_str", "sb_rand_uniform_uint64",
              "sb_rand_uniform_double", "sb_histogram_new", "sb_histogram_update", "sb_histogram_print", "nosuch"} do
            print(name, (pcall(function() return ffi.C[name] end)))
          end
          for _, name in ipairs{"sql_driver", "sql_connection", "sql_statement", "sql_result", "sql_row", "sql_value", "sql_bind",
              "sql_error_t", "sql_bind_type_t", "sb_arg_t", "sb_counter_type", "sb_histogram_t", "nosuch"} do
            print(name, (pcall(ffi.typeof, name)))
          end
          print(ffi.C.sb_rand_uniform(7, 7), ffi.C.sb_rand_default(8, 8), package.loaded.ffi == ffi)
        end"#;
    same(script, &["it.lua prepare"]);
}

#[test]
fn libc_and_structs_of_the_script_work_in_every_thread() {
    let script = r#"
        ffi.cdef[[
          typedef uint32_t useconds_t;
          int usleep(useconds_t);
          unsigned int sleep(unsigned int seconds);
          struct timeval { long tv_sec; long tv_usec; };
          int gettimeofday(struct timeval *tv, void *tz);
          typedef struct { int a; double b; } pair_t;
          int getpid(void);
        ]]
        ffi.cdef "int usleep(useconds_t);"
        local pair = ffi.metatype("pair_t", {__index = {sum = function(self) return self.a + self.b end}})
        local tv = ffi.new("struct timeval")
        function event()
          print(ffi.C.usleep(1000), ffi.C.gettimeofday(tv, nil), tonumber(tv.tv_sec) > 1e9, ffi.C.getpid() > 1)
          print(pair(1, 2):sum(), ffi.sizeof("pair_t"), ffi.C.sleep(0))
          print(os.execute("sleep 0.01"))
        end"#;
    same(script, &["it.lua run --events=2"]);
    let ours = Bench::new(&[("it.lua", script)]).ours("it.lua run --events=6 --threads=3");
    assert_eq!((ours.code, ours.stdout.matches("3\t16\t0\n").count()), (Some(0), 6), "{}", ours.shown());
}

#[test]
fn wrong_declarations_are_errors() {
    let script = r#"
        function prepare()
          print(pcall(ffi.cdef, "foo bar"))
          ffi.cdef "struct one { int a; };"
          print(pcall(function() return ffi.C.nosuch() end) == false)
          print(pcall(ffi.new, "nosuch_t"))
        end"#;
    same(script, &["it.lua prepare"]);
}

#[test]
fn sleeping_sessions_do_not_hold_each_other() {
    // Eight sessions on a few workers. None wakes up for good before all eight have gone to sleep.
    let script = r#"
        ffi.cdef "int usleep(unsigned int);"
        local function there(id)
          local file = io.open("asleep" .. id)
          return file and file:close()
        end
        function event(id)
          io.open("asleep" .. id, "w"):close()
          for other = 0, 7 do
            while not there(other) do ffi.C.usleep(1000) end
          end
        end"#;
    let did = Bench::new(&[("it.lua", script)]).ours("it.lua run --threads=8 --events=8");
    assert!(did.stdout.contains("total number of events:              8\n"), "{}", did.shown());
}
