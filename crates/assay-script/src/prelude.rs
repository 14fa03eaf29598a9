//! The Lua that runs in every state before a script does, compiled once in a process.
//!
//! Compiling takes most of the time in which a state is made, and a run makes several: one to learn what the script
//! declares, one or more for its sessions. Every state loads the same bytecode, the first one too, so that all of them
//! are alike.

use std::ffi::{CStr, c_int, c_void};
use std::slice;
use std::sync::{Mutex, PoisonError};

use assay_luajit as lua;
use assay_luajit::lua_State;

/// A part: its name in Lua's form (`=assay/…`), and its text.
pub(crate) type LuaChunk = (&'static CStr, &'static str);

/// The parts that run first; what the front adds comes next.
const CORE: [LuaChunk; 2] =
    [(c"=assay/core", include_str!("lua/core.lua")), (c"=assay/mark", include_str!("lua/mark.lua"))];

/// The other parts, in the order they run.
const REST: [LuaChunk; 11] = [
    (c"=assay/foreign", include_str!("lua/foreign.lua")),
    (c"=assay/rand", include_str!("lua/rand.lua")),
    (c"=assay/sql", include_str!("lua/sql.lua")),
    (c"=assay/statement", include_str!("lua/statement.lua")),
    (c"=assay/lean", include_str!("lua/lean.lua")),
    (c"=assay/load", include_str!("lua/load.lua")),
    (c"=assay/plain", include_str!("lua/plain.lua")),
    (c"=assay/straight", include_str!("lua/straight.lua")),
    (c"=assay/legacy", include_str!("lua/legacy.lua")),
    (c"=assay/report", include_str!("lua/report.lua")),
    (c"=assay/session", include_str!("lua/session.lua")),
];

/// All parts in the order they run, with those of a front.
pub(crate) fn parts(overlay: &'static [LuaChunk]) -> impl Iterator<Item = LuaChunk> {
    CORE.into_iter().chain(overlay.iter().copied()).chain(REST)
}

/// Parts by the address of their text, and what they are as bytecode.
static COMPILED: Mutex<Vec<(usize, &[u8])>> = Mutex::new(Vec::new());

/// Leaves the function that a part is on the stack, or a message; Lua's status.
///
/// # Safety
/// The stack has room for two more values.
pub(crate) unsafe fn load(lua: *mut lua_State, (name, text): LuaChunk) -> c_int {
    let address = text.as_ptr() as usize;
    let known = |compiled: &[(usize, &'static [u8])]| {
        compiled.iter().find(|(known, _)| *known == address).map(|(_, bytecode)| *bytecode)
    };
    let bytecode = known(&COMPILED.lock().unwrap_or_else(PoisonError::into_inner));
    // SAFETY: the caller's promise; the buffers live through the calls.
    unsafe {
        let bytecode = match bytecode {
            Some(bytecode) => bytecode,
            None => {
                let status = lua::luaL_loadbuffer(lua, text.as_ptr().cast(), text.len(), name.as_ptr());
                if status != lua::LUA_OK {
                    return status;
                }
                let mut bytecode: Vec<u8> = Vec::new();
                lua::lua_dump_(lua, append, (&raw mut bytecode).cast());
                lua::lua_settop(lua, -2);
                let bytecode: &'static [u8] = bytecode.leak();
                COMPILED.lock().unwrap_or_else(PoisonError::into_inner).push((address, bytecode));
                bytecode
            }
        };
        lua::luaL_loadbuffer(lua, bytecode.as_ptr().cast(), bytecode.len(), name.as_ptr())
    }
}

/// Takes a piece of bytecode.
unsafe extern "C-unwind" fn append(
    _: *mut lua_State,
    piece: *const c_void,
    length: usize,
    target: *mut c_void,
) -> c_int {
    // SAFETY: Lua gives `length` bytes, and the vector that `load` gave it.
    let (piece, target) = unsafe { (slice::from_raw_parts(piece.cast(), length), &mut *target.cast::<Vec<u8>>()) };
    target.extend_from_slice(piece);
    0
}
