//! `assay list`: the built-in workloads.

use std::sync::Arc;

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_run::library;
use assay_run::workload::Workload;

/// Prints name, description and commands of every built-in workload.
pub fn run(words: &[String]) -> Result<Exit, Trouble> {
    let mut text = String::new();
    for builtin in assay_workloads::builtin().iter().filter(|builtin| builtin.runnable) {
        let name = builtin.name;
        let program = library::load(name, "list", words, assay_products::EMBEDDED.dialect)?;
        let workload = Workload { name: name.to_owned(), program: Arc::new(program), given: Vec::new() };
        let description = workload.program.description().unwrap_or("no description");
        text.push_str(&format!("{name}\n    {description}\n    commands: {}\n", workload.commands().join(", ")));
    }
    text.push_str("\nSee assay run NAME --help for a workload's options.\n");
    terminal::result(&text)?;
    Ok(Exit::Success)
}
