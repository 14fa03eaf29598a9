//! Values on Lua's stack between a session and Rust: answers, options and texts going in, parameters and failures
//! coming out.
//!
//! Each function documents what it expects there; nothing here runs a script, except `core.exact` in statement.lua for
//! a parameter that cannot be passed on unchanged.

use std::ffi::c_int;
use std::slice;

use assay_luajit as lua;
use assay_luajit::lua_State;
use assay_options::OptionValue;
use assay_seam::{Cell, Rows, RowsPool, StatementError, Value};

use crate::native::{Native, write_number};
use crate::request::{Answer, Decision, Failure, Footprint, Verdict};

/// Pushes the results of the session's `yield`; returns their number. `columns`: for a session that waits for a row,
/// what becomes of each of its columns, see lean.lua; else empty.
///
/// # Safety
/// The thread is suspended with an empty stack.
pub(crate) unsafe fn push_answer(
    thread: *mut lua_State,
    native: &mut Native,
    asked: u32,
    columns: &[u8],
    answer: Answer,
    pool: &mut RowsPool,
) -> c_int {
    // SAFETY: a coroutine's stack always has room for LUA_MINSTACK values.
    unsafe {
        match answer {
            Answer::Done => 0,
            Answer::Reply(reply, verdict) => {
                if let Some(error) = reply.error {
                    if let Some(rows) = reply.rows {
                        pool.put(rows);
                    }
                    let count = push_error(thread, &error, verdict);
                    lua::lua_pushnumber(thread, f64::from(error.position));
                    push_bytes(thread, error.hint.as_deref().unwrap_or_default().as_bytes());
                    push_bytes(thread, error.details.as_bytes());
                    return count + 3;
                }
                let Some(rows) = reply.rows else { return 0 };
                if rows.sets() == 0 {
                    pool.put(rows);
                    return 0;
                }
                if !columns.is_empty() && rows.sets() == 1 {
                    let count = push_row(thread, &rows, columns);
                    pool.put(rows);
                    return count;
                }
                let live = native.live(asked);
                for number in [1, live.serial as usize, rows.len(0), rows.columns(0), rows.sets()] {
                    lua::lua_pushnumber(thread, number as f64);
                }
                live.rows = Some(rows);
                5
            }
            Answer::Error(error, target) => {
                let count = push_error(thread, &error, Verdict::Fatal);
                lua::lua_pushnumber(thread, target as f64);
                push_bytes(thread, error.class.name().as_bytes());
                push_bytes(thread, error.details.as_bytes());
                count + 3
            }
            Answer::Executed(Footprint { statements, outside, begun }) => {
                for number in [statements, outside, begun] {
                    lua::lua_pushnumber(thread, f64::from(number));
                }
                3
            }
            Answer::Begin(late) => {
                lua::lua_pushboolean(thread, 1);
                lua::lua_pushnumber(thread, late.as_secs_f64());
                2
            }
            Answer::Proceed(proceed) => {
                lua::lua_pushboolean(thread, c_int::from(proceed));
                1
            }
            Answer::Number(number) => {
                lua::lua_pushnumber(thread, number as f64);
                1
            }
            Answer::Decision(decision) => {
                lua::lua_pushboolean(thread, c_int::from(decision == Decision::Retry));
                1
            }
            Answer::Report(report) => {
                push_bytes(thread, report.hook.as_bytes());
                lua::lua_createtable(thread, 0, report.stat.len() as c_int);
                for (name, value) in &report.stat {
                    push_bytes(thread, name.as_bytes());
                    lua::lua_pushnumber(thread, *value);
                    lua::lua_rawset(thread, -3);
                }
                2
            }
        }
    }
}

/// Pushes columns of the first row, if there is one, behind `COLUMNS`; returns how many values that are.
///
/// # Safety
/// As for `push_answer`.
unsafe fn push_row(thread: *mut lua_State, rows: &Rows, columns: &[u8]) -> c_int {
    if rows.len(0) == 0 {
        return 0;
    }
    let mut count = 1;
    // SAFETY: the caller's promise.
    unsafe {
        lua::lua_pushnumber(thread, COLUMNS);
        for (cell, wanted) in rows.cells_from(0, 0).take(rows.columns(0)).zip(columns) {
            push_cell(thread, &cell, *wanted);
            count += 1;
        }
    }
    count
}

/// Pushes a column's value as it is wanted: a text, `t`; a number, `n`, if it is one; or not at all, false.
///
/// # Safety
/// As for `push_answer`.
unsafe fn push_cell(thread: *mut lua_State, cell: &Cell<'_>, wanted: u8) {
    let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    // SAFETY: the caller's promise.
    unsafe {
        match (cell, wanted) {
            (_, b'-') => lua::lua_pushboolean(thread, 0),
            (Cell::Null, _) => lua::lua_pushnil(thread),
            (Cell::Int(value), b'n') => lua::lua_pushnumber(thread, *value as f64),
            (Cell::Double(value), b'n') => lua::lua_pushnumber(thread, *value),
            (Cell::Text(text), b'n') => match number(text) {
                Some(value) => lua::lua_pushnumber(thread, value),
                None => push_bytes(thread, text),
            },
            (Cell::Text(text), _) => push_bytes(thread, text),
            (value, _) => {
                let mut text = Vec::new();
                write_number(&mut text, value);
                push_bytes(thread, &text);
            }
        }
    }
}

/// # Safety
/// As for `push_answer`.
pub(crate) unsafe fn push_error(thread: *mut lua_State, error: &StatementError, verdict: Verdict) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        lua::lua_pushnumber(thread, 2.0);
        lua::lua_pushnumber(thread, f64::from(error.code.number));
        push_bytes(thread, error.code.state.as_bytes());
        push_bytes(thread, error.message.as_bytes());
        lua::lua_pushboolean(thread, c_int::from(verdict == Verdict::Restart));
    }
    5
}

/// # Safety
/// The stack has room for one more value.
pub(crate) unsafe fn push_bytes(lua: *mut lua_State, bytes: &[u8]) {
    // SAFETY: Lua copies the bytes; a slice's pointer is never null.
    unsafe { lua::lua_pushlstring_(lua, bytes.as_ptr().cast(), bytes.len()) }
}

/// # Safety
/// The stack has room for three more values.
pub(crate) unsafe fn push_option(lua: *mut lua_State, value: &OptionValue) {
    // SAFETY: the caller's promise.
    unsafe {
        match value {
            OptionValue::None => lua::lua_pushnil(lua),
            OptionValue::Bool(value) => lua::lua_pushboolean(lua, c_int::from(*value)),
            OptionValue::Number(value) => lua::lua_pushnumber(lua, *value),
            OptionValue::Text(value) => push_bytes(lua, value.as_bytes()),
            OptionValue::List(items) => {
                lua::lua_createtable(lua, items.len() as c_int, 0);
                for (i, item) in items.iter().enumerate() {
                    push_bytes(lua, item.as_bytes());
                    lua::lua_rawseti_(lua, -2, i as c_int + 1);
                }
            }
        }
    }
}

/// Pushes a value of a statement.
///
/// # Safety
/// There is room for one value on the stack.
pub(crate) unsafe fn push_value(lua: *mut lua_State, value: &Value<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match value {
            Value::Null => lua::lua_pushnil(lua),
            Value::Int(value) => lua::lua_pushnumber(lua, *value as f64),
            Value::Double(value) => lua::lua_pushnumber(lua, *value),
            Value::Text(value) | Value::Bytes(value) => push_bytes(lua, value),
        }
    }
}

/// The string (or number, which becomes one) at `index`; empty if it is neither.
///
/// # Safety
/// The value stays on the stack, and so alive, as long as the result is used.
pub(crate) unsafe fn text_at<'a>(lua: *mut lua_State, index: c_int) -> &'a [u8] {
    // SAFETY: Lua gives null or a pointer to `length` bytes.
    unsafe {
        let mut length = 0;
        let text = lua::lua_tolstring(lua, index, &mut length);
        if text.is_null() { &[] } else { slice::from_raw_parts(text.cast(), length) }
    }
}

/// Index on the stack of the executing session from which a statement's parameters are; their kinds are below.
const PARAMETERS: c_int = 5;
/// The answer of `push_row`, before the columns: `COLUMNS` in lean.lua.
const COLUMNS: f64 = 4.0;
/// Index on the stack of a session that waits for a row of what becomes of its columns: behind nine values.
pub(crate) const WANTED: c_int = PARAMETERS + 9;
/// The answer to an execution with a value that cannot be passed on: see `UNSUITABLE` in sql.lua.
pub(crate) const UNSUITABLE: f64 = 3.0;

/// Reads the parameters of an execution. An error says which of them cannot be passed on unchanged, and why.
///
/// # Safety
/// `thread` is suspended in an execution, and the parameters are not used longer than that; `core` is at the bottom of
/// the stack of `main`.
pub(crate) unsafe fn read_parameters(
    main: *mut lua_State,
    thread: *mut lua_State,
    parameters: &mut Vec<Value<'static>>,
) -> Result<(), String> {
    parameters.clear();
    // SAFETY: the caller's promise.
    unsafe {
        for (i, kind) in text_at(thread, PARAMETERS - 1).iter().enumerate() {
            let index = PARAMETERS + i as c_int;
            let value = match parameter(thread, index, *kind) {
                Some(value) => value,
                None => {
                    make_exact(main, thread, index, *kind)
                        .map_err(|reason| format!("parameter {}: {reason}", i + 1))?;
                    parameter(thread, index, *kind).expect("core.exact gives what can be passed on")
                }
            };
            parameters.push(value);
        }
    }
    Ok(())
}

/// Lets `core.exact` in statement.lua replace a value that cannot be passed on unchanged by one with the same meaning.
///
/// # Safety
/// As for `read_parameters`.
#[cold]
unsafe fn make_exact(main: *mut lua_State, thread: *mut lua_State, index: c_int, kind: u8) -> Result<(), String> {
    // SAFETY: the caller's promise; a protected call lets no Lua error pass.
    unsafe {
        assert!(lua::lua_checkstack(thread, 1) != 0, "out of memory for a Lua stack");
        lua::lua_getfield_(main, 1, c"exact".as_ptr());
        push_bytes(main, &[kind]);
        lua::lua_pushvalue(thread, index);
        lua::lua_xmove(thread, main, 1);
        let failed = lua::lua_pcall(main, 2, 2, 0) != lua::LUA_OK || lua::lua_type(main, -2) == lua::LUA_TNIL;
        let outcome = if failed {
            Err(String::from_utf8_lossy(text_at(main, -1)).into_owned())
        } else {
            lua::lua_settop(main, -2);
            lua::lua_xmove(main, thread, 1);
            lua::lua_replace(thread, index);
            Ok(())
        };
        lua::lua_settop(main, 1);
        outcome
    }
}

/// A parameter of kind `i` (integer), `w` (number, made whole), `d` (double), `t` (text), `b` (bytes) or `a` (whatever
/// the value is); `None` if the value must be examined more closely.
///
/// # Safety
/// As for `text_at`; the lifetime is chosen by the caller, who must not use the value longer than that.
#[inline]
unsafe fn parameter(thread: *mut lua_State, index: c_int, kind: u8) -> Option<Value<'static>> {
    // Above this Lua writes numbers with an exponent, and not all their digits.
    const LONG: f64 = 1e14;
    // SAFETY: the caller's promise.
    unsafe {
        Some(match (lua::lua_type(thread, index), kind) {
            (lua::LUA_TNUMBER, b'i') => Value::Int(exact_integer(lua::lua_tonumber(thread, index))?),
            (lua::LUA_TNUMBER, b'w') => Value::Int(whole_part(lua::lua_tonumber(thread, index))?),
            (lua::LUA_TNUMBER, b'a') => {
                let number = lua::lua_tonumber(thread, index);
                exact_integer(number).map_or(Value::Double(number), Value::Int)
            }
            (lua::LUA_TNUMBER, b'd') => Value::Double(lua::lua_tonumber(thread, index)),
            (lua::LUA_TNUMBER | lua::LUA_TBOOLEAN, b'b') => return None,
            (lua::LUA_TNUMBER, _) => {
                let number = lua::lua_tonumber(thread, index);
                if number.fract() != 0.0 || number.abs() >= LONG {
                    return None;
                }
                // Lua converts it to a text in place on the stack.
                Value::Text(text_at(thread, index))
            }
            // 64-bit integers are passed as digits: see `core.exact` and `integer` in statement.lua.
            (lua::LUA_TSTRING, b'i' | b'w') => {
                let text = text_at(thread, index);
                let digits = std::str::from_utf8(text).ok()?;
                // Of 64 bits without a sign, some are not of 64 bits with one.
                let is_whole = || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                match digits.parse::<i64>() {
                    Ok(integer) => Value::Int(integer),
                    Err(_) => Value::Text(is_whole().then_some(text)?),
                }
            }
            (lua::LUA_TSTRING, b'd') => {
                let text = text_at(thread, index);
                let is_number = std::str::from_utf8(text).is_ok_and(|text| text.trim().parse::<f64>().is_ok());
                Value::Text(is_number.then_some(text)?)
            }
            (lua::LUA_TSTRING, b'b') => Value::Bytes(text_at(thread, index)),
            (lua::LUA_TSTRING, _) => Value::Text(text_at(thread, index)),
            (lua::LUA_TBOOLEAN, _) => Value::Int(i64::from(lua::lua_toboolean(thread, index))),
            (lua::LUA_TNIL | lua::LUA_TNONE, _) => Value::Null,
            _ => return None,
        })
    }
}

/// The integer part of a number as a 64-bit integer. A conversion cuts off the rest; `trunc` would be a call.
fn whole_part(number: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    (-END..END).contains(&number).then_some(number as i64)
}

/// The 64-bit integer equal to a number.
fn exact_integer(number: f64) -> Option<i64> {
    let integer = number as i64;
    // 2⁶³ would become the integer below it, which as a number is 2⁶³ again.
    (integer as f64 == number && integer != i64::MAX).then_some(integer)
}

/// `restart, statement, message, traceback` from index 2.
///
/// # Safety
/// The thread is suspended.
pub(crate) unsafe fn failure(thread: *mut lua_State) -> Failure {
    // SAFETY: the caller's promise; texts are copied.
    unsafe {
        Failure {
            restart: lua::lua_toboolean(thread, 2) != 0,
            statement: lua::lua_toboolean(thread, 3) != 0,
            message: String::from_utf8_lossy(text_at(thread, 4)).into_owned(),
            traceback: String::from_utf8_lossy(text_at(thread, 5)).into_owned(),
        }
    }
}

/// The value on top of the stack.
///
/// # Safety
/// There is one.
pub(crate) unsafe fn read_option(thread: *mut lua_State) -> OptionValue {
    // SAFETY: the caller's promise; items are popped again.
    unsafe {
        match lua::lua_type(thread, -1) {
            lua::LUA_TBOOLEAN => OptionValue::Bool(lua::lua_toboolean(thread, -1) != 0),
            lua::LUA_TNUMBER => OptionValue::Number(lua::lua_tonumber(thread, -1)),
            lua::LUA_TSTRING => OptionValue::Text(String::from_utf8_lossy(text_at(thread, -1)).into_owned()),
            lua::LUA_TTABLE => OptionValue::List(
                (1..=lua::lua_objlen(thread, -1))
                    .map(|i| {
                        lua::lua_rawgeti_(thread, -1, i as c_int);
                        let item = String::from_utf8_lossy(text_at(thread, -1)).into_owned();
                        lua::lua_settop(thread, -2);
                        item
                    })
                    .collect(),
            ),
            _ => OptionValue::None,
        }
    }
}
