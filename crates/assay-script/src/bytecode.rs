//! Lua, compiled. `build.rs` uses this file too.

use std::ffi::{CStr, c_int, c_void};
use std::slice;

use assay_luajit as lua;
use assay_luajit::lua_State;

/// The bytecode of a chunk, with what messages and the debug library need. The error is Lua's status, and its message
/// is left on the stack.
///
/// # Safety
/// The stack has room for two more values.
pub(crate) unsafe fn compile(lua: *mut lua_State, name: &CStr, text: &[u8]) -> Result<Vec<u8>, c_int> {
    let mut bytecode: Vec<u8> = Vec::new();
    // SAFETY: the caller's promise; the buffers live through the calls.
    unsafe {
        let status = lua::luaL_loadbuffer(lua, text.as_ptr().cast(), text.len(), name.as_ptr());
        if status != lua::LUA_OK {
            return Err(status);
        }
        lua::lua_dump_(lua, append, (&raw mut bytecode).cast());
        lua::lua_settop(lua, -2);
    }
    Ok(bytecode)
}

/// Takes a piece of bytecode.
unsafe extern "C-unwind" fn append(
    _: *mut lua_State,
    piece: *const c_void,
    length: usize,
    target: *mut c_void,
) -> c_int {
    // SAFETY: Lua gives `length` bytes, and the vector that `compile` gave it.
    let (piece, target) = unsafe { (slice::from_raw_parts(piece.cast(), length), &mut *target.cast::<Vec<u8>>()) };
    target.extend_from_slice(piece);
    0
}
