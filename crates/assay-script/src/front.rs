//! Support for front ends whose scripts expect to be alone in their process.
//!
//! Without one, a script's words go to the engine as `Request::Log`, whole lines, and only the program itself ends the
//! process. A front brings Lua along (`Front::overlay`) that says and does things in its own way: where words go, what
//! `os.exit` does, places, messages of drivers, which errors are to be ignored. `core.front` in `lua/core.lua` lists
//! what it may decide; the functions here are for its Lua alone.

use std::ffi::CStr;

/// A front end.
pub trait Front: std::fmt::Debug + Send + Sync {
    /// What a script printed: any bytes, not only whole lines.
    fn print(&self, text: &[u8]);
    /// What the API has to say about a script's doing, without prefix and line end.
    fn message(&self, severity: Severity, text: &str);
    /// The script asked for a database driver: `sysbench.sql.driver()`.
    fn database(&self);
    /// `os.exit(code)`. Does not return where the process ends.
    fn exit(&self, code: i32);
    /// Seconds since some instant, for what a front measures on its own.
    fn now(&self) -> f64 {
        0.0
    }
    /// What the front's own Lua has to tell it; `what` is theirs to define.
    fn figures(&self, what: u32, numbers: &[f64]) {
        let _ = (what, numbers);
    }
    /// Lua that runs in every state before the API is made: its name in Lua's form (`=assay/…`, which keeps it out of
    /// places and tracebacks), and text. It gets the prelude's table `core` and fills `core.front`.
    fn overlay(&self) -> &'static [(&'static CStr, &'static str)] {
        &[]
    }
}

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The session, or the program, cannot go on.
    Fatal,
    /// A mistake of the script.
    Alert,
    /// Something to know.
    Warning,
    /// Part of the output.
    Notice,
    /// What happens.
    Info,
    /// For verbose output.
    Debug,
}

impl Severity {
    /// In the order of the numbers that the prelude uses, from 0.
    pub(crate) const ALL: [Severity; 6] =
        [Severity::Fatal, Severity::Alert, Severity::Warning, Severity::Notice, Severity::Info, Severity::Debug];
}
