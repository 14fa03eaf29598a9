//! The Lua that runs in every state before a script does, compiled when the program is built, and what a front adds,
//! compiled once in a process.
//!
//! Compiling takes most of the time in which a state is made, and a run makes several: one to learn what the script
//! declares, one or more for its sessions. Every state loads the same bytecode, the first one too, so that all of them
//! are alike.

use std::ffi::{CStr, c_int};
use std::sync::{Mutex, PoisonError};

use assay_luajit as lua;
use assay_luajit::lua_State;

use crate::bytecode;

/// A part: its name in Lua's form (`=assay/…`), and its text or bytecode.
pub(crate) type LuaChunk = (&'static CStr, &'static [u8]);

/// A part of ours, by the name of its file.
macro_rules! part {
    ($name:literal) => {
        (
            match CStr::from_bytes_with_nul(concat!("=assay/", $name, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            },
            include_bytes!(concat!(env!("OUT_DIR"), "/", $name)),
        )
    };
}

/// The parts that run first; what the front adds comes next.
const CORE: [LuaChunk; 2] = [part!("core"), part!("mark")];

/// The other parts, in the order they run.
const REST: [LuaChunk; 11] = [
    part!("foreign"),
    part!("rand"),
    part!("sql"),
    part!("statement"),
    part!("lean"),
    part!("load"),
    part!("plain"),
    part!("straight"),
    part!("legacy"),
    part!("report"),
    part!("session"),
];

/// All parts in the order they run, with those of a front, which are texts.
pub(crate) fn parts(overlay: &'static [(&'static CStr, &'static str)]) -> impl Iterator<Item = LuaChunk> {
    let overlay = overlay.iter().map(|(name, text)| (*name, text.as_bytes()));
    CORE.into_iter().chain(overlay).chain(REST)
}

/// What all bytecode begins with, and no text.
const SIGNATURE: u8 = 0x1b;

/// Texts by their address, and what they are as bytecode.
static COMPILED: Mutex<Vec<(usize, &[u8])>> = Mutex::new(Vec::new());

/// Leaves the function that a part is on the stack, or a message; Lua's status.
///
/// # Safety
/// The stack has room for two more values.
pub(crate) unsafe fn load(lua: *mut lua_State, (name, chunk): LuaChunk) -> c_int {
    let address = chunk.as_ptr() as usize;
    let known = |compiled: &[(usize, &'static [u8])]| {
        compiled.iter().find(|(known, _)| *known == address).map(|(_, bytecode)| *bytecode)
    };
    let bytecode = match chunk.first() {
        Some(&SIGNATURE) => Some(chunk),
        _ => known(&COMPILED.lock().unwrap_or_else(PoisonError::into_inner)),
    };
    // SAFETY: the caller's promise; the buffers live through the calls.
    unsafe {
        let bytecode = match bytecode {
            Some(bytecode) => bytecode,
            None => match bytecode::compile(lua, name, chunk) {
                Ok(bytecode) => {
                    let bytecode: &'static [u8] = bytecode.leak();
                    COMPILED.lock().unwrap_or_else(PoisonError::into_inner).push((address, bytecode));
                    bytecode
                }
                Err(status) => return status,
            },
        };
        lua::luaL_loadbuffer(lua, bytecode.as_ptr().cast(), bytecode.len(), name.as_ptr())
    }
}
