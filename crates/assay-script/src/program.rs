//! A script loaded once: its text, and what its top level declared.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::declared::Declared;
use crate::failure::ScriptError;
use crate::host::Host;
use crate::library::{Library, Source};
use crate::state;
use assay_options::{CommandDeclaration, OptionDeclaration};

/// A script, known but not running. Shared by all workers.
#[derive(Debug)]
pub struct Program {
    pub(crate) script: Script,
    /// Empty until the top level has run to its end: see `is_declared`.
    pub(crate) declared: Arc<OnceLock<Declared>>,
    description: Option<String>,
}

/// What a state needs to run a script.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) library: Arc<Library>,
    pub(crate) source: Source,
    /// As the user named it: `sysbench.cmdline.script_path`.
    pub(crate) given: String,
    pub(crate) name: String,
}

impl Script {
    /// Where the script's file lies.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.source.path.as_ref()?.parent().map(PathBuf::from)
    }

    /// The name of the module that it is, when that lies inside the binary.
    pub(crate) fn built_in(&self) -> Option<&str> {
        let name = self.source.display.strip_suffix(".lua")?;
        self.library.module(name).filter(|text| text.as_bytes() == self.source.text).map(|_| name)
    }
}

/// What a script's top level may look at before options are known.
#[derive(Clone, Debug, Default)]
pub struct TopLevel {
    /// `sysbench.cmdline.command`.
    pub command: Option<String>,
    /// `sysbench.cmdline.argv`, the program's name first.
    pub argv: Vec<String>,
    /// The driver's name, for scripts that ask at top level: `pgsql`, `mysql`, `sqlite`.
    pub driver: &'static str,
    /// Where the top level prints. With a command it runs for the last time in what sysbench calls the main state; without
    /// one `Entry::TopLevel` runs it again, and says all of it again. See `Setup::host`.
    pub host: Option<Arc<dyn Host>>,
}

impl Program {
    /// Finds `name` and runs its top level once, in a state that is thrown away.
    pub fn load(library: &Arc<Library>, name: &str, top: &TopLevel) -> Result<Program, ScriptError> {
        Program::from_source(library, name, library.find(name)?, top)
    }

    /// The same for a text at hand (a script from standard input, a test). `display` names it in messages.
    pub fn from_text(
        library: &Arc<Library>,
        display: &str,
        text: &str,
        top: &TopLevel,
    ) -> Result<Program, ScriptError> {
        let source = Source { display: display.to_owned(), path: None, text: text.into() };
        Program::from_source(library, display, source, top)
    }

    /// The same for a source that was found already: a pipe can be read once only.
    pub fn from_source(
        library: &Arc<Library>,
        given: &str,
        source: Source,
        top: &TopLevel,
    ) -> Result<Program, ScriptError> {
        let file = given.rsplit('/').next().unwrap_or(given);
        let name = file.strip_suffix(".lua").unwrap_or(file).to_owned();
        let description = describe(&String::from_utf8_lossy(&source.text));
        let script = Script { library: Arc::clone(library), source, given: given.to_owned(), name };
        let declared = Arc::new(state::declare(&script, top)?.map(OnceLock::from).unwrap_or_default());
        Ok(Program { script, declared, description })
    }

    /// Whether it is known what the script declares. With a host, a top level that uses the database stops there, and a
    /// session of `Entry::Declare` has to run it.
    pub fn is_declared(&self) -> bool {
        self.declared.get().is_some()
    }

    fn declared(&self) -> &Declared {
        static NOTHING: Declared = Declared::nothing();
        self.declared.get().unwrap_or(&NOTHING)
    }

    /// Options in the order of their names.
    pub fn options(&self) -> &[OptionDeclaration] {
        &self.declared().options
    }

    /// Whether the script declared an option table at all (sysbench then refuses unknown options).
    pub fn declares_options(&self) -> bool {
        self.declared().has_options
    }

    /// Custom commands in the order of their names.
    pub fn commands(&self) -> &[CommandDeclaration] {
        &self.declared().commands
    }

    /// Whether the top level left a global function of this name (`event`, `prepare`, `thread_init`, …).
    pub fn defines(&self, global: &str) -> bool {
        self.declared().globals.contains(global)
    }

    /// Whether the top level left a function of this name in `sysbench.hooks`.
    pub fn hooks(&self, name: &str) -> bool {
        self.declared().hooks.contains(name)
    }

    /// The script's name, without folder and `.lua`.
    pub fn name(&self) -> &str {
        &self.script.name
    }

    /// The file's opening `---` comment: its first paragraph, on one line.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }
}

/// The first run of `---` lines, when only blank lines and a shebang come before it.
fn describe(text: &str) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    for line in text.lines().skip_while(|line| line.starts_with('#') || line.trim().is_empty()) {
        let Some(comment) = line.trim().strip_prefix("---").map(str::trim) else { break };
        if comment.is_empty() {
            break;
        }
        words.extend(comment.split_whitespace());
    }
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opening_comment_describes_a_script() {
        assert_eq!(
            describe("#!/usr/bin/env assay\n\n--- Reads rows\n--- by key.\n---\n--- More.\nlocal x").as_deref(),
            Some("Reads rows by key.")
        );
        assert_eq!(describe("-- a plain comment\nlocal x"), None);
    }
}
