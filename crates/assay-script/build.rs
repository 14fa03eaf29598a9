//! Compiles the prelude to LuaJIT's bytecode, which loads in a tenth of the time: every state of every process does
//! that.
//!
//! This program has a LuaJIT of its own, built for the machine that builds. All our targets read the same bytecode:
//! they have 64 bits, little-endian, and LuaJIT's layout of frames for those (`LJ_FR2`).

use std::error::Error;
use std::ffi::{CStr, CString, OsStr};
use std::path::Path;
use std::{env, fs};

use assay_luajit as lua;

#[path = "src/bytecode.rs"]
mod bytecode;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/lua");
    println!("cargo::rerun-if-changed=src/bytecode.rs");
    let folder = env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?;
    for entry in fs::read_dir("src/lua")? {
        let path = entry?.path();
        let name = path.file_stem().and_then(OsStr::to_str).ok_or("a part of the prelude has no name")?;
        let bytecode = compile(&CString::new(format!("=assay/{name}"))?, &fs::read(&path)?)?;
        fs::write(Path::new(&folder).join(name), bytecode)?;
    }
    Ok(())
}

/// The bytecode of a chunk, or what is wrong with it.
fn compile(name: &CStr, text: &[u8]) -> Result<Vec<u8>, String> {
    // SAFETY: a fresh state, used here only, whose stack has room for LUA_MINSTACK values.
    unsafe {
        let state = lua::luaL_newstate();
        assert!(!state.is_null(), "out of memory for a Lua state");
        let compiled = bytecode::compile(state, name, text).map_err(|_| {
            let message = lua::lua_tostring(state, -1);
            if message.is_null() { String::new() } else { CStr::from_ptr(message).to_string_lossy().into_owned() }
        });
        lua::lua_close(state);
        compiled
    }
}
