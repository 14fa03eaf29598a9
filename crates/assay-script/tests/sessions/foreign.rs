//! `ffi`, with many sessions in one state.

use assay_script::*;

use crate::driver::*;

#[test]
fn every_session_may_declare_the_same_c_types_again() {
    let program = program(
        r#"
        local ffi = require("ffi")
        ffi.cdef[[
          /* a comment; with a semicolon */
          struct point { int x; int y; };   // and another
          typedef struct { double d[4]; } quad;
          int printf(const char *fmt, ...);
        ]]
        local point = ffi.metatype("struct point", {__index = {sum = function(p) return p.x + p.y end}})
        function event()
          print(point(1, 2):sum(), ffi.sizeof("quad"), ffi.C.SB_CNT_ERROR, tonumber(ffi.new("sb_counter_type", 3)))
        end"#,
    );
    let mut state = LuaState::new(&program, &setup()).unwrap();
    for number in 0..50 {
        let slot = state.add_session(number).unwrap();
        let mut driver = Driver::default();
        driver.run(&mut state, slot);
        assert_eq!(driver.asked[2], "log 3\t32\t4\t3");
    }
}

#[test]
fn a_wrong_declaration_is_blamed_on_the_script() {
    let error = load("\nffi.cdef('int int;')").unwrap_err();
    assert_eq!(error.line, Some(2), "{error}");
    assert!(error.message.starts_with("ffi.cdef: "), "{error}");
}

#[test]
fn scripts_count_their_own_statements() {
    let program = program(
        r#"
        ffi.cdef("void sb_counter_inc(int, sb_counter_type); void sb_counter_add(int, int, uint64_t);")
        function event(tid)
          ffi.C.sb_counter_inc(tid, ffi.C.SB_CNT_READ)
          ffi.C.sb_counter_inc(tid, ffi.C.SB_CNT_READ)
          ffi.C.sb_counter_add(tid, ffi.C.SB_CNT_ERROR, 5)
          ffi.C.sb_counter_add(tid, 99, 5)
        end"#,
    );
    let mut state = LuaState::new(&program, &setup()).unwrap();
    let slot = state.add_session(0).unwrap();
    Driver::default().run(&mut state, slot);
    assert_eq!(state.counters(slot), [0, 2, 0, 0, 5, 0, 0, 0]);
}

#[test]
fn libc_is_still_there() {
    check(
        "ffi.cdef('size_t strlen(const char *);') function event() print(tonumber(ffi.C.strlen('four'))) end",
        Driver::default(),
        "ready\nnext\nlog 4\nnext\nfinished true",
    );
}
