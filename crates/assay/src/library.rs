//! The scripts this program can run: the built-in workloads, and files.

use std::sync::{Arc, LazyLock};

use assay_script::{Library, Program, ScriptError, TopLevel};
use assay_seam::Dialect;

use crate::diagnostics::{Exit, Trouble};

/// Built-in workloads and the search path for files.
pub fn library() -> &'static Arc<Library> {
    static LIBRARY: LazyLock<Arc<Library>> = LazyLock::new(|| {
        let all = assay_workloads::builtin();
        let modules = all.iter().map(|workload| (workload.name, workload.text)).collect();
        let parts = all.iter().filter(|workload| !workload.runnable).map(|workload| workload.name).collect();
        Arc::new(Library { modules, parts, ..Library::default() })
    });
    &LIBRARY
}

/// Loads a workload's script: runs its top level once, to learn its options and commands.
pub fn load(name: &str, command: &str, words: &[String], driver: Dialect) -> Result<Program, Trouble> {
    let top = TopLevel {
        command: Some(command.to_owned()),
        argv: words.to_vec(),
        driver,
        front: None,
        may_use_database: false,
    };
    Program::load(library(), name, &top).map_err(|error| match error.file {
        // Without a file there was nothing to load: the name is wrong, not the script.
        None => not_found(error),
        Some(_) => script_trouble(format!("workload {name} cannot be loaded"), &error),
    })
}

fn not_found(error: ScriptError) -> Trouble {
    let trouble = Trouble::usage(error.message);
    match error.hint {
        Some(hint) => trouble.hint(hint),
        None => trouble.hint("see the built-in workloads with `assay list`, or name a file: ./my.lua"),
    }
}

/// A script's error: `file:line: message`, then the script's own frames.
pub fn script_trouble(cause: String, error: &ScriptError) -> Trouble {
    let place = match (&error.file, error.line) {
        (Some(file), Some(line)) => format!("{file}:{line}: "),
        (Some(file), None) => format!("{file}: "),
        _ => String::new(),
    };
    let trouble =
        Trouble::new(Exit::Workload, cause).detail(format!("{place}{}", error.message)).detail(&error.traceback);
    match &error.hint {
        Some(hint) => trouble.hint(hint),
        None => trouble,
    }
}
