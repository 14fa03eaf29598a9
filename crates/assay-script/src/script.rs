//! A script's text and name.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::failure::ScriptError;
use crate::library::{Library, ScriptSource, distance};

/// Functions of a script that are called by their names.
const CALLED: [&str; 13] = [
    "init",
    "done",
    "event",
    "thread_init",
    "thread_done",
    "thread_run",
    "terminal_init",
    "prepare",
    "cleanup",
    "check",
    "verify",
    "queries",
    "help",
];

/// What a state needs to run a script.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) library: Arc<Library>,
    pub(crate) source: ScriptSource,
    /// As the user named it: `sysbench.cmdline.script_path`.
    pub(crate) given: String,
    pub(crate) name: String,
}

impl Script {
    /// The folder of the script's file.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.source.path.as_ref()?.parent().map(PathBuf::from)
    }

    /// An error of its declarations with a place in it: that of the first call, or of what the message names.
    pub(crate) fn placed(&self, mut error: ScriptError) -> ScriptError {
        if error.file.is_some() {
            return error;
        }
        let call = ScriptError::from_message(error.traceback.lines().next().unwrap_or_default(), "");
        error.file = Some(call.file.unwrap_or_else(|| self.source.display.clone()));
        error.line = call.line.or_else(|| {
            let named = error.message.split_once(':')?.0;
            let name = named.rsplit([' ', '.']).next()?;
            self.line_of(name)
        });
        error
    }

    /// The first line in which this name is assigned to.
    fn line_of(&self, name: &str) -> Option<u32> {
        let text = String::from_utf8_lossy(&self.source.text);
        let is_assigned = |line: &str| {
            names(line).any(|(at, found)| {
                let after = line[at + found.len()..].trim_start_matches(['"', '\'', ']', ' ', '\t']);
                found == name && after.starts_with('=') && !after.starts_with("==")
            })
        };
        text.lines().position(is_assigned).map(|line| line as u32 + 1)
    }

    /// Refuses a global function whose name is almost one of those that are called, and that the script itself does not
    /// call, either.
    pub(crate) fn check_names(&self, globals: &BTreeSet<String>) -> Result<(), ScriptError> {
        if self.source.path.is_none() && self.library.find(&self.given).is_ok() {
            return Ok(());
        }
        let near = |name: &str| {
            let lower = name.to_lowercase();
            let is_near = |known: &&&str| distance(&lower, known) <= (known.len() / 5).max(1);
            CALLED.iter().find(is_near).filter(|known| **known != name && !globals.contains(**known)).copied()
        };
        let mut meant = globals.iter().filter_map(|name| Some((name, near(name)?))).peekable();
        if meant.peek().is_none() {
            return Ok(());
        }
        let texts = self.library.files(&self.given).unwrap_or_else(|_| vec![self.source.text.clone()]);
        let texts: Vec<_> = texts.iter().map(|text| String::from_utf8_lossy(text)).collect();
        let times = |name: &str| texts.iter().flat_map(|text| names(text)).filter(|(_, found)| *found == name).count();
        let Some((name, meant)) = meant.find(|(name, _)| times(name) == 1) else { return Ok(()) };
        let own = String::from_utf8_lossy(&self.source.text);
        let line = own.lines().position(|line| names(line).any(|(_, found)| found == name));
        Err(ScriptError {
            message: format!("nothing calls {name}(): did you mean {meant}()?"),
            file: Some(self.source.display.clone()),
            line: line.map(|line| line as u32 + 1),
            ..ScriptError::default()
        })
    }

    /// Its name as a module, if it is built in.
    pub(crate) fn built_in(&self) -> Option<&str> {
        let name = self.source.display.strip_suffix(".lua")?;
        self.library.module(name).filter(|text| text.as_bytes() == self.source.text).map(|_| name)
    }
}

/// The names in a text of Lua, each with its place; those in comments and strings, too.
fn names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].find(is_part)?;
        let start = at;
        at += text[at..].find(|c| !is_part(c)).unwrap_or(text.len() - at);
        Some((start, &text[start..at]))
    })
}
