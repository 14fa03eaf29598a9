//! What a front end lends to scripts that expect to be alone in their process.
//!
//! Without one, a script's words go to the engine as `Request::Log`, whole lines, and only the program itself ends the
//! process. With one (the sysbench front), they go out at once and as they are, the messages that sysbench's own drivers and
//! API print are made, and what is asked at the end of the process is done. That includes errors that end a session: with a
//! host, the prelude itself says "`thread_run' function failed: …" and the like, for each session, before the engine hears of
//! it. Statement errors are then judged here too, by `--mysql-ignore-errors` or PostgreSQL's states, inside of
//! transactions and out of them.

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
    /// For whoever asked for details.
    Debug,
}

impl Severity {
    /// In the order of the numbers that the prelude uses, from 0.
    pub(crate) const ALL: [Severity; 5] =
        [Severity::Fatal, Severity::Alert, Severity::Warning, Severity::Notice, Severity::Debug];
}
