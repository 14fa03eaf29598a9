//! A script that blocks its worker is named and stopped.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use assay_script::*;
use assay_seam::RowsPool;

use crate::driver::*;

/// Runs `script` until its first request, while a second thread finds it busy, asks for its position and then ends it.
/// Returns the position and the session's last request.
fn interrupted(script: &str) -> (String, String) {
    let program = program(script);
    let mut state = LuaState::new(&program, &Setup { entry: Entry::Function("top".into()), ..setup() }).unwrap();
    let slot = state.add_session(0).unwrap();
    let guard = state.guard();
    let (told, places) = mpsc::channel();
    let watchdog = std::thread::spawn(move || {
        let deadline = Instant::now() + Duration::from_secs(20);
        let wait_for = |what: &dyn Fn() -> bool| {
            while !what() {
                assert!(Instant::now() < deadline, "the watched code did not react");
                std::thread::yield_now();
            }
        };
        wait_for(&|| guard.generation() % 2 == 1);
        let generation = guard.generation();
        // Long enough for the loop to be compiled.
        let seen = Instant::now();
        wait_for(&|| seen.elapsed() > Duration::from_millis(100));
        let place = std::cell::RefCell::new(None);
        wait_for(&|| {
            guard.inspect(generation);
            *place.borrow_mut() = guard.place(generation);
            place.borrow().is_some()
        });
        told.send(place.take().unwrap()).unwrap();
        wait_for(&|| {
            guard.interrupt(generation, "held its worker too long");
            guard.generation() != generation
        });
        // After the end of a resume nothing is requested.
        guard.inspect(generation);
        guard.interrupt(generation, "too late");
    });
    let request = match state.resume(slot, Answer::Done, &mut RowsPool::default()) {
        Request::Died(failure) => ScriptError::from(&failure).to_string(),
        other => format!("{other:?}"),
    };
    watchdog.join().unwrap();
    let place = places.recv().unwrap();
    // The state still works.
    let next = state.add_session(1).unwrap();
    assert!(matches!(state.resume(next, Answer::Done, &mut RowsPool::default()), Request::Log(b"fine")));
    (place, request)
}

#[test]
fn an_endless_compiled_loop_is_named_and_stopped() {
    let (place, request) = interrupted(
        "function top()
          if sysbench.tid == 1 then print(table.compiled and 'fine' or 'the loop was not compiled') end
          jit.attach(function(what) if what == 'stop' then table.compiled = true end end, 'trace')
          local n = 0
          while true do
            n = n + 1
          end
        end",
    );
    assert!(["test.lua:5: in", "test.lua:6: in"].iter().any(|line| place.starts_with(line)), "{place}");
    assert!(place.ends_with(" function <test.lua:1>"), "{place}");
    assert!(request.contains(": held its worker too long\n  test.lua:"), "{request}");
    assert!(request.contains("in function 'top'"), "{request}");
}

#[test]
fn a_loop_that_catches_errors_is_stopped_too() {
    let (place, request) = interrupted(
        "local function work() local s = 0 for i = 1, 1000 do s = s + i end error('again') end
        function top()
          if sysbench.tid == 1 then print('fine') end
          while true do
            pcall(work)
          end
        end",
    );
    assert!(place.starts_with("test.lua:"), "{place}");
    assert!(request.contains("held its worker too long"), "{request}");
}

#[test]
fn an_endless_loop_inside_our_own_functions_is_blamed_on_the_caller() {
    let (place, request) = interrupted(
        "function top()
          if sysbench.tid == 1 then print('fine') end
          while true do sysbench.rand.string('####') end
        end",
    );
    assert!(place.starts_with("test.lua:3"), "{place}");
    assert!(request.contains("test.lua:3: held its worker too long"), "{request}");
}

#[test]
fn the_generation_is_odd_only_while_lua_runs() {
    let program = program("function event() end");
    let mut state = LuaState::new(&program, &setup()).unwrap();
    let guard = state.guard();
    let slot = state.add_session(0).unwrap();
    let before = guard.generation();
    state.resume(slot, Answer::Done, &mut RowsPool::default());
    assert_eq!((guard.generation() - before, guard.generation() % 2), (2, 0));
    drop(state);
    guard.interrupt(guard.generation(), "nobody is there");
    guard.inspect(guard.generation());
}
