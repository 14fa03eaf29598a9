//! Has the program export LuaJIT's interface, as sysbench does: Lua modules written in C (cjson, luasocket) are
//! libraries that find `lua_pushnumber` and the others in whoever loads them.
//!
//! Only these names, and only of the program: what the linker exports it also keeps.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for names in ["lua_*", "luaL_*", "luaopen_*", "luaJIT_*"] {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol={names}");
    }
}
