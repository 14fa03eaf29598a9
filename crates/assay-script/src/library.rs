//! Where scripts come from: files, and the workloads inside the binary.
//!
//! A name is resolved in sysbench's order (exact file, module on the search path, built-in), with one difference: an
//! exact file counts only when the name looks like a file (it has a `/` or ends in `.lua`). A stray file called
//! `oltp_read_write` in the current directory is not run by accident; `sysbench_order` restores that.

use std::path::PathBuf;

use crate::failure::ScriptError;

/// The places scripts are looked for.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// Modules inside the binary: name as in `require(name)`, and text.
    pub modules: Vec<(&'static str, &'static str)>,
    /// The search path in Lua's form (`./?.lua;…`) in place of the default and of `LUA_PATH`.
    pub path: Option<String>,
    /// An exact file wins whatever its name looks like.
    pub sysbench_order: bool,
}

/// A script's text and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name to show: the path as given, or `NAME.lua` for a built-in.
    pub display: String,
    /// The file; `None` for a built-in.
    pub path: Option<PathBuf>,
    /// The text as it is, shebang line included.
    pub text: String,
}

impl Library {
    /// Finds a script by file path, module name or built-in name. The error lists near built-in names.
    pub fn find(&self, name: &str) -> Result<Source, ScriptError> {
        let _ = name;
        todo!()
    }
}
