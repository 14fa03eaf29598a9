//! LuaJIT: the library, and its C interface as declared by `mlua-sys`.
//!
//! Apart for its heavy build, which `build.rs` does without `make`, always optimised and with the options we rely on:
//! compiled loops look at debug hooks, so that a script that loops can be stopped, and tables are walked in the same
//! order in every state (`assay-script` tests both). Nothing here is a safe interface; `assay-script` makes one.
//! Whoever takes the declarations from here, not from `mlua-sys`, is also linked with the library.

#![forbid(unsafe_code)]

pub use mlua_sys::*;
