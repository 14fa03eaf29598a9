//! Why a script could not be loaded or run, with the place in it.

use crate::request::Failure;

/// A script's error.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.render())]
pub struct ScriptError {
    /// What went wrong, without the place.
    pub message: String,
    /// The script file, as named on the command line or by `require`.
    pub file: Option<String>,
    /// Counted from 1.
    pub line: Option<u32>,
    /// One frame per line, the script's own only, innermost first; may be empty.
    pub traceback: String,
    /// What to do about it, where we know.
    pub hint: Option<String>,
}

impl ScriptError {
    fn render(&self) -> String {
        todo!()
    }
}

impl From<&Failure> for ScriptError {
    fn from(_failure: &Failure) -> ScriptError {
        todo!()
    }
}
