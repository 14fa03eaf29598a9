//! Has the program export LuaJIT's interface, as sysbench does: Lua modules written in C (cjson, luasocket) are
//! libraries that find `lua_pushnumber` and the others in whoever loads them.
//!
//! Only these names, and only of the program: what the linker exports it also keeps.
//!
//! And gives the static program a faster `memcpy` than its C library's: see `src/musl/copy.c`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for names in ["lua_*", "luaL_*", "luaopen_*", "luaJIT_*"] {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol={names}");
    }
    println!("cargo::rerun-if-changed=src/musl/copy.c");
    let is = |name: &str, value: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).as_deref() == Ok(value);
    if is("ENV", "musl") && is("ARCH", "x86_64") {
        let flags = ["-fno-builtin", "-fno-tree-loop-distribute-patterns"];
        let mut build = cc::Build::new();
        // Optimized in every profile, and linked whether or not somebody has asked for it by then.
        build.file("src/musl/copy.c").flags(flags).opt_level(2).link_lib_modifier("+whole-archive");
        build.compile("assay_copy");
    }
}
