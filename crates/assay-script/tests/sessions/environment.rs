//! What belongs to one session, and what all sessions of a state share.

use std::sync::Arc;

use assay_options::*;
use assay_script::*;
use assay_seam::RowsPool;

use crate::driver::*;

/// The requests of sessions that advance one step at a time, in turn, with two transactions each.
fn interleaved(program: &Program, sessions: u32) -> Vec<Vec<String>> {
    let mut state = LuaState::new(program, &setup()).unwrap();
    let slots: Vec<Slot> = (0..sessions).map(|number| state.add_session(number).unwrap()).collect();
    let mut driver = Driver::default();
    let mut running: Vec<(Slot, Option<Answer>, u32)> =
        slots.iter().map(|slot| (*slot, Some(Answer::Done), 2)).collect();
    let mut said = vec![Vec::new(); slots.len()];
    while running.iter().any(|(_, answer, _)| answer.is_some()) {
        for (slot, answer, left) in &mut running {
            if let Some(given) = answer.take() {
                let (line, next) = driver.answer(&mut state, *slot, given, left);
                said[slot.0 as usize].push(line);
                *answer = next;
            }
        }
    }
    said
}

#[test]
fn a_shared_module_runs_once_and_works_on_the_globals_of_the_session_that_calls_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("teller.lua"),
        "loaded = (loaded or 0) + 1
        function add(n) total = (total or 0) + n return total end
        function add_twice(n) add(n) return add(n) end
        function fail() error('no more') end
        local own_add = add
        function is_replaced() return add ~= own_add end
        return { name = 'teller' }",
    )
    .unwrap();
    std::fs::write(folder.path().join("rare.lua"), "function seldom() return total end").unwrap();
    let script = r#"
        -- Some sessions have a function of their own in its place, and the first one has it before the module is run.
        if sysbench.tid % 2 == 0 then
          function add(n) total = (total or 0) - n return total end
        end
        local teller = assay.share("teller")
        assay.later("rare", { "seldom" })
        function event(tid)
          local _, failure = pcall(fail)
          local listed = 0
          for name in pairs(_G) do
            if name == "add_twice" or name == "seldom" or name == "total" then listed = listed + 1 end
          end
          print(add_twice(tid), total, seldom(), loaded, teller.name, assay.share("teller") == teller, rawget(_G, "add_twice"),
            is_replaced(), listed, failure)
        end"#;
    let library = Arc::new(Library { path: Some(format!("{}/?.lua", folder.path().display())), ..Library::default() });
    let program = Program::from_text(&library, "test.lua", script, &TopLevel::default()).unwrap();
    let at = folder.path().join("teller.lua");
    for (tid, lines) in interleaved(&program, 4).iter().enumerate() {
        let row = |event: i64| {
            let replaced = tid % 2 == 0;
            let total = event * 2 * tid as i64 * if replaced { -1 } else { 1 };
            let listed = event + 1;
            let failure = format!("{}:4: no more", at.display());
            format!("log {total}\t{total}\t{total}\t1\tteller\ttrue\tnil\t{replaced}\t{listed}\t{failure}")
        };
        assert_eq!(lines[2], row(1), "session {tid}");
        assert_eq!(lines[4], row(2), "session {tid}");
    }
}

#[test]
fn a_module_that_cannot_be_shared_says_why() {
    for (text, expected) in [
        ("assay.share(7)", "test.lua:1: assay.share needs the name of a module"),
        ("assay.share('nowhere')", "test.lua:1: module 'nowhere' not found:"),
    ] {
        let error = load(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn globals_options_and_modules_of_300_sessions_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("shared_module.lua"),
        "local n = 0\nreturn {next = function() n = n + 1 return n end}",
    )
    .unwrap();
    let script = r#"
        local m = require("shared_module")
        mine = 0
        function event(tid)
          mine = mine + tid
          sysbench.opt.table_size = sysbench.opt.table_size + tid
          sysbench.hooks["h" .. tid] = true
          local hooks = 0
          for _ in pairs(sysbench.hooks) do hooks = hooks + 1 end
          m.next()
          print(tid == sysbench.tid, mine, sysbench.opt.table_size, hooks, _G.mine == mine, m.next(), loadstring("return mine")(),
            getfenv(0).mine, getfenv(1) == _G, package.loaded.shared_module == m)
        end"#;
    let library = Arc::new(Library { path: Some(format!("{}/?.lua", folder.path().display())), ..Library::default() });
    let program = Program::from_text(&library, "test.lua", script, &TopLevel::default()).unwrap();
    let said = interleaved(&program, 300);
    for (tid, lines) in said.iter().enumerate() {
        let row = |event: usize| {
            let mine = tid * event;
            let (size, n) = (100 + mine, 2 * event);
            format!("log true\t{mine}\t{size}\t1\ttrue\t{n}\t{mine}\t{mine}\ttrue\ttrue")
        };
        assert_eq!(
            lines[..],
            ["ready".into(), "next".into(), row(1), "next".into(), row(2), "next".into(), "finished true".to_owned()]
        );
    }
}

#[test]
fn what_a_session_writes_into_a_list_of_options_no_other_sees() {
    let program = program("function event() table.insert(sysbench.opt.names, 'x') print(#sysbench.opt.names) end");
    let names = OptionValue::List(vec!["a".into(), "b".into()]);
    let mut state = LuaState::new(&program, &Setup { options: vec![("names".into(), names)], ..setup() }).unwrap();
    for number in 0..2 {
        let mut driver = Driver { transactions: 1, ..Driver::default() };
        let slot = state.add_session(number).unwrap();
        driver.run(&mut state, slot);
        assert!(driver.asked.contains(&"log 3".to_owned()), "session {number}: {:?}", driver.asked);
    }
}

#[test]
fn a_removed_session_leaves_its_slot_and_its_memory() {
    let program = program("big = ('x'):rep(100000) .. sysbench.tid function event() end");
    let mut state = LuaState::new(&program, &setup()).unwrap();
    let mut pool = RowsPool::default();
    let slots = [0, 1].map(|number| {
        let slot = state.add_session(number).unwrap();
        state.resume(slot, Answer::Done, &mut pool);
        slot
    });
    state.collect_garbage();
    let with = state.memory();
    for slot in slots {
        state.remove(slot, &mut pool);
    }
    state.collect_garbage();
    // LuaJIT keeps the last coroutine that used the FFI, so one of the two strings may remain.
    assert!(state.memory() + 100_000 < with, "{} after, {with} before", state.memory());
    assert_eq!(state.add_session(2).unwrap(), slots[0]);
}

#[test]
fn a_session_of_an_oltp_like_script_costs_few_kilobytes() {
    let mut script = String::from(
        r#"
        sysbench.cmdline.options = {
          table_size = {"rows", 10000}, tables = {"tables", 1}, range_size = {"range", 100}, point_selects = {"n", 10},
          simple_ranges = {"n", 1}, sum_ranges = {"n", 1}, order_ranges = {"n", 1}, distinct_ranges = {"n", 1},
          index_updates = {"n", 1}, non_index_updates = {"n", 1}, delete_inserts = {"n", 1}, skip_trx = {"b", false},
        }
        function thread_init()
          drv = sysbench.sql.driver() con = drv:connect() stmt, param = {}, {}
          for i = 1, 10 do
            stmt[i] = con:prepare("SELECT c FROM sbtest1 WHERE id=? AND k=?")
            param[i] = {stmt[i]:bind_create(sysbench.sql.type.INT), stmt[i]:bind_create(sysbench.sql.type.CHAR, 120)}
            stmt[i]:bind_param(unpack(param[i]))
          end
        end
        function event()
          for i = 1, 10 do
            param[i][1]:set(sysbench.rand.default(1, 100)) param[i][2]:set("x") stmt[i]:execute()
          end
        end
        "#,
    );
    for i in 0..40 {
        script.push_str(&format!("function helper_{i}(a) if a then return helper_{}(a) end end\n", (i + 1) % 40));
    }
    let program = program(&script);
    let mut setup = setup();
    setup.options = (0..60).map(|i| (format!("option_{i}"), OptionValue::Number(1.0))).collect();
    let mut state = LuaState::new(&program, &setup).unwrap();
    let mut driver = Driver::default();
    let mut start = |state: &mut LuaState, number: u32| {
        let slot = state.add_session(number).unwrap();
        let (mut answer, mut left) = (Answer::Done, 2);
        while left > 0 {
            answer = driver.answer(state, slot, answer, &mut left).1.unwrap();
        }
    };
    start(&mut state, 0);
    state.collect_garbage();
    let one = state.memory();
    for number in 1..=200 {
        start(&mut state, number);
    }
    state.collect_garbage();
    let each = (state.memory() - one) / 200;
    println!("{each} bytes of Lua memory per session, {one} for the state with its first");
    assert!(each < 12_000, "{each} bytes per session");
}

#[test]
fn a_module_in_the_scripts_folder_or_the_path_comes_before_the_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let mut library = Library {
        modules: vec![("oltp_common", "function where() return 'built-in' end")],
        path: Some("/nowhere/?.lua".into()),
        ..Library::default()
    };
    let script = "require('oltp_common') function event() print(where()) end";
    let said = |library: &Library| {
        let program = Program::from_text(&Arc::new(library.clone()), "test.lua", script, &TopLevel::default()).unwrap();
        let mut state = LuaState::new(&program, &setup()).unwrap();
        let slot = state.add_session(0).unwrap();
        let mut driver = Driver::default();
        driver.run(&mut state, slot);
        driver.asked[2].clone()
    };
    assert_eq!(said(&library), "log built-in");
    std::fs::write(folder.path().join("oltp_common.lua"), "#!/shebang\nfunction where() return 'file' end").unwrap();
    library.path = Some(format!("{}/?.lua", folder.path().display()));
    assert_eq!(said(&library), "log file");
}

#[test]
fn modules_may_use_the_database_and_are_loaded_once_per_session() {
    let library = Arc::new(Library {
        modules: vec![("m", "con = con or sysbench.sql.driver():connect() con:query('in m') return 7")],
        path: Some("/nowhere/?.lua".into()),
        ..Library::default()
    });
    let script = "function thread_init() print(require('m'), require('m')) end function event() end";
    let program = Program::from_text(&library, "test.lua", script, &TopLevel::default()).unwrap();
    let mut state = LuaState::new(&program, &setup()).unwrap();
    let slot = state.add_session(0).unwrap();
    let mut driver = Driver { transactions: 0, ..Driver::default() };
    driver.run(&mut state, slot);
    assert_eq!(driver.asked, ["connect 0", "query 0: in m", "log 7\t7", "ready", "next", "finished true"]);
}

#[test]
fn a_missing_module_says_where_it_was_looked_for() {
    let error = load("\nrequire('not_there')").unwrap_err();
    assert_eq!((error.file.as_deref(), error.line), (Some("test.lua"), Some(2)));
    let begin = "module 'not_there' not found:\n\tno field package.preload['not_there']\n\tno file './not_there.lua'";
    assert!(error.message.starts_with(begin), "{}", error.message);
    assert!(error.message.contains("no built-in module 'not_there'"), "{}", error.message);
}

#[test]
fn a_metatable_on_the_globals_leaves_what_is_built_in_reachable() {
    check(
        r#"
        setmetatable(_G, {
          __newindex = function(t, k, v) rawset(t, k, v) if k ~= "event" then seen = (rawget(t, "seen") or "") .. k end end,
          __index = function(_, k) error("undefined variable " .. k, 2) end,
        })
        function event()
          local ok, message = pcall(function() return nonsense end)
          print(tostring(ok), message)
        end"#,
        Driver::default(),
        "ready
         next
         log false\ttest.lua:7: undefined variable nonsense
         next
         finished true",
    );
}

#[test]
fn coroutines_of_the_script_pass_requests_through() {
    check(
        r#"
        function event()
          local con = sysbench.sql.driver():connect()
          local co = coroutine.create(function(a)
            con:query("in " .. a)
            local b = coroutine.yield("first")
            con:query("in " .. b)
            return "last"
          end)
          print(coroutine.resume(co, "A"))
          print(coroutine.resume(co, "B"))
          print(coroutine.resume(co))
          local each = coroutine.wrap(function() for i = 1, 2 do con:query("wrapped") coroutine.yield(i) end end)
          print(each(), each())
          print(select(2, pcall(coroutine.wrap(function() error("oops", 0) end))))
        end"#,
        Driver::default(),
        "ready
         next
         connect 0
         query 0: in A
         log true\tfirst
         query 0: in B
         log true\tlast
         log false\tcannot resume dead coroutine
         query 0: wrapped
         query 0: wrapped
         log 1\t2
         log oops
         next
         finished true",
    );
}

#[test]
fn the_handler_of_an_xpcall_may_ask_the_database_and_sees_the_stack_of_the_error() {
    check(
        r##"
        function event()
          local con = sysbench.sql.driver():connect()
          local function fails(a)
            con:query("BEGIN")
            error("oops " .. a, 0)
          end
          print(xpcall(fails, function(failure)
            con:query("ROLLBACK")
            con:query("after " .. failure)
            return failure:upper(), 2
          end, "x"))
          print(xpcall(function(...) return select("#", ...), con:query("fine") end, error, nil, nil))
          print(xpcall(error, function() con:query("first") error("again") end))
          print(xpcall(error, function() error("again") end))
          print(select("#", xpcall(error, function() end)))
          local trace = select(2, xpcall(fails, debug.traceback, "y"))
          print(trace:match("^oops y\nstack traceback:\n") .. trace:match("test.lua:6: in function"))
          print(xpcall(fails, function()
            local names, level = {}, 1
            while debug.getinfo(level, "S") do
              local info = debug.getinfo(level, "Sl")
              if info.short_src == "test.lua" then names[#names + 1] = info.currentline end
              level = level + 1
            end
            return table.concat(names, " ") .. tostring(coroutine.running())
          end, "z"))
          local function deep() return 1 + deep() end
          print(select(2, xpcall(deep, function(failure) con:query("deep") return failure:match("stack overflow") end)))
          local co = coroutine.wrap(function()
            print(xpcall(error, function(failure) return coroutine.yield(failure) .. "!" end, "to the script"))
          end)
          print(co())
          co("back")
        end"##,
        Driver::default(),
        "ready
         next
         connect 0
         query 0: BEGIN
         query 0: ROLLBACK
         query 0: after oops x
         log false\tOOPS X
         query 0: fine
         log true\t2\tnil
         query 0: first
         log false\terror in error handling
         log false\terror in error handling
         log 2
         query 0: BEGIN
         log oops y
         stack traceback:
         test.lua:6: in function
         query 0: BEGIN
         log false\t22 6 19nil
         query 0: deep
         log stack overflow
         log to the script
         log false\tback!
         next
         finished true",
    );
}

#[test]
fn sleeping_in_any_way_pauses_the_session_only() {
    check(
        r#"
        ffi.cdef("typedef uint32_t useconds_t; int usleep(useconds_t); unsigned int sleep(unsigned int);")
        function event()
          ffi.C.usleep(1500)
          ffi.C.sleep(2)
          os.execute("sleep 0.25")
          assay.sleep(0.5)
        end"#,
        Driver::default(),
        "ready\nnext\nsleep 1 ms\nsleep 2 s\nsleep 250 ms\nsleep 500 ms\nnext\nfinished true",
    );
}

#[test]
fn printing_is_told_line_by_line_even_from_inside_a_c_call() {
    check(
        r#"
        function event()
          io.write("a", 1)
          io.write("b\nc")
          io.stdout:write("d\n")
          string.gsub("xyz", ".", function(c) print("replacing") end)
        end"#,
        Driver::default(),
        &format!("ready\nnext\nlog a1b\nlog cd\n{}next\nfinished true", "log replacing\n".repeat(3)),
    );
}

#[test]
fn os_exit_ends_the_session_not_the_process() {
    check("function event() os.exit(0) end", Driver::default(), "ready\nnext\nfinished true");
    check(
        "function event() os.exit(3) end",
        Driver { decision: Decision::Skip, ..Driver::default() },
        "ready
         next
         failed restart=false statement=false: test.lua:1: os.exit(3)
         next
         finished true",
    );
}
