//! Support for front ends whose scripts expect to be alone in their process.
//!
//! Without a front, a script's output goes to the engine as `Request::Log`, in whole lines, and only the program itself
//! ends the process. A front provides Lua (`ScriptFront::overlay`) that behaves in its own way: where output goes, what
//! `os.exit` does, error positions, messages of drivers, which errors are ignored. `core.front` in `lua/core.lua` lists
//! what it may decide; the functions here are only for its Lua.

use std::ffi::CStr;

/// A front end.
pub trait ScriptFront: std::fmt::Debug + Send + Sync {
    /// What a script printed: any bytes, not only whole lines.
    fn print(&self, text: &[u8]);
    /// A message of the API about the script, without prefix and line end.
    fn message(&self, severity: Severity, text: &str);
    /// The script asked for a database driver: `sysbench.sql.driver()`.
    fn database(&self);
    /// `os.exit(code)`. Does not return if the process ends.
    fn exit(&self, code: i32);
    /// Seconds since some instant, for the front's own measurements.
    fn now(&self) -> f64 {
        0.0
    }
    /// A message from the front's own Lua; the front defines what `what` means.
    fn figures(&self, what: u32, numbers: &[f64]) {
        let _ = (what, numbers);
    }
    /// Lua that runs in every state before the API is created: its chunk name (`=assay/…`, which keeps it out of
    /// positions and tracebacks), and text. It gets the prelude's table `core` and fills `core.front`.
    fn overlay(&self) -> &'static [(&'static CStr, &'static str)] {
        &[]
    }
}

/// Severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The session, or the program, cannot continue.
    Fatal,
    /// An error of the script.
    Alert,
    /// A warning.
    Warning,
    /// Part of the output.
    Notice,
    /// Progress.
    Info,
    /// For verbose output.
    Debug,
}

impl Severity {
    /// In the order of the prelude's numbers, from 0.
    pub(crate) const ALL: [Severity; 6] =
        [Severity::Fatal, Severity::Alert, Severity::Warning, Severity::Notice, Severity::Info, Severity::Debug];
}
