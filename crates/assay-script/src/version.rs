//! Which LuaJIT this is.

use std::ffi::CStr;

use assay_luajit as lua;

/// LuaJIT's version, such as `2.1.1774896198`.
pub fn luajit_version() -> String {
    // SAFETY: a fresh state of our own, closed before we return; the text is copied before that.
    let name = unsafe {
        let state = lua::luaL_newstate();
        assert!(!state.is_null(), "out of memory for a Lua state");
        lua::luaL_openlibs(state);
        lua::lua_getglobal_(state, c"jit".as_ptr());
        lua::lua_getfield_(state, -1, c"version".as_ptr());
        let text = lua::lua_tolstring(state, -1, std::ptr::null_mut());
        let name = if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() };
        lua::lua_close(state);
        name
    };
    name.strip_prefix("LuaJIT ").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn luajit_says_which_version_it_is() {
        assert!(super::luajit_version().starts_with("2.1."), "{}", super::luajit_version());
    }
}
