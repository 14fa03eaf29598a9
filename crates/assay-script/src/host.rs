//! What a front end lends to scripts that expect to be alone in their process.
//!
//! Without one, a script's words go to the engine as `Request::Log`, whole lines, and only the program itself ends the
//! process. With one (the sysbench front), they go out at once and as they are, and what is asked at the end of the process is
//! done. That includes errors that end a session: with a host, the prelude itself says "`thread_run' function failed: …" and
//! the like, for each session, before the engine hears of it. What else the front says or does in its own way, it brings
//! along in Lua (`Host::overlay`): places, messages of drivers, which errors are to be ignored.

use std::ffi::CStr;

/// Where scripts print.
pub trait Host: std::fmt::Debug + Send + Sync {
    /// What a script printed: any bytes, not only whole lines.
    fn print(&self, text: &[u8]);
    /// What the API has to say about a script's doing, without prefix and line end.
    fn message(&self, severity: Severity, text: &str);
    /// The script asked for a database driver: `sysbench.sql.driver()`.
    fn database(&self);
    /// `os.exit(code)`. Does not return where the process ends.
    fn exit(&self, code: i32);
    /// Lua that runs in every state before the API is made: its name in Lua's form (`=assay/…`, which keeps it out of places
    /// and tracebacks), and text. It gets the prelude's table `core` and fills `core.front`.
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
    /// For whoever asked for details.
    Debug,
}

impl Severity {
    /// In the order of the numbers that the prelude uses, from 0.
    pub(crate) const ALL: [Severity; 6] =
        [Severity::Fatal, Severity::Alert, Severity::Warning, Severity::Notice, Severity::Info, Severity::Debug];
}
