//! A script loaded once: its text, and what its top level declared.

use std::sync::Arc;

use crate::declare::{CommandDeclaration, OptionDeclaration};
use crate::failure::ScriptError;
use crate::library::Library;

/// A script, known but not running. Shared by all workers.
#[derive(Debug)]
pub struct Program {}

/// What a script's top level may look at before options are known.
#[derive(Clone, Debug, Default)]
pub struct TopLevel {
    /// `sysbench.cmdline.command`.
    pub command: Option<String>,
    /// `sysbench.cmdline.argv`, the program's name first.
    pub argv: Vec<String>,
    /// The driver's name, for scripts that ask at top level: `pgsql`, `mysql`, `sqlite`.
    pub driver: &'static str,
}

impl Program {
    /// Finds `name` and runs its top level once, in a state that is thrown away.
    pub fn load(library: &Arc<Library>, name: &str, top: &TopLevel) -> Result<Program, ScriptError> {
        let _ = (library, name, top);
        todo!()
    }

    /// The same for a text at hand (a script from standard input, a test). `display` names it in messages.
    pub fn from_text(
        library: &Arc<Library>,
        display: &str,
        text: &str,
        top: &TopLevel,
    ) -> Result<Program, ScriptError> {
        let _ = (library, display, text, top);
        todo!()
    }

    /// Options in the order of their names.
    pub fn options(&self) -> &[OptionDeclaration] {
        todo!()
    }

    /// Whether the script declared an option table at all (sysbench then refuses unknown options).
    pub fn declares_options(&self) -> bool {
        todo!()
    }

    /// Custom commands in the order of their names.
    pub fn commands(&self) -> &[CommandDeclaration] {
        todo!()
    }

    /// Whether the top level left a global function of this name (`event`, `prepare`, `thread_init`, …).
    pub fn defines(&self, global: &str) -> bool {
        let _ = global;
        todo!()
    }

    /// The script's name, without folder and `.lua`.
    pub fn name(&self) -> &str {
        todo!()
    }

    /// The file's opening `---` comment: its first paragraph, on one line.
    pub fn description(&self) -> Option<&str> {
        todo!()
    }
}
