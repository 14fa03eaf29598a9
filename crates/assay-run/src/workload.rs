//! A workload as given on the command line: its script and its options.

use std::sync::Arc;

use assay_options::{OptionDeclaration, OptionValue};
use assay_script::Program;

/// A workload with the options that the user gave it.
#[derive(Clone)]
pub struct Workload {
    /// As the user named it.
    pub name: String,
    /// The script.
    pub program: Arc<Program>,
    /// Options given on the command line, by `OptionDeclaration::key`; the others have their defaults.
    pub given: Vec<(String, OptionValue)>,
}

/// Commands that a script may define as plain global functions.
const BARE_COMMANDS: [&str; 3] = ["prepare", "check", "cleanup"];

impl Workload {
    /// Its commands, including `run`, sorted.
    pub fn commands(&self) -> Vec<String> {
        let mut names: Vec<String> = self.program.commands().iter().map(|command| command.name.clone()).collect();
        names.extend(BARE_COMMANDS.iter().filter(|name| self.program.defines(name)).map(|name| (*name).to_owned()));
        names.extend(self.program.defines("event").then(|| "run".to_owned()));
        names.sort();
        names.dedup();
        names
    }

    /// Whether it has a command with this name.
    pub fn has_command(&self, name: &str) -> bool {
        self.commands().iter().any(|command| command == name)
    }

    /// The defaults of its options.
    pub fn option_defaults(&self) -> Vec<(String, OptionValue)> {
        self.program.options().iter().map(|option| (option.key(), option.default.clone())).collect()
    }

    /// Its options: as given, or their defaults.
    pub fn options_in_effect(&self) -> Vec<(String, OptionValue)> {
        let given = |key: &str| self.given.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        let value = |option: &OptionDeclaration| given(&option.key()).unwrap_or_else(|| option.default.clone());
        self.program.options().iter().map(|option| (option.key(), value(option))).collect()
    }
}
