//! `assay lua`: help for authors of workloads.

mod stubs;

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::{files, terminal};

use crate::command_line::{LuaAction, LuaOptions};

/// Does what is asked for.
pub fn run(options: &LuaOptions) -> Result<Exit, Trouble> {
    let LuaAction::Stubs { file } = &options.action;
    let text = stubs::text();
    match file {
        None => terminal::result(&text)?,
        Some(path) => files::write(path, text)
            .map_err(|error| Trouble::environment(format!("cannot write {}: {error}", path.display())))?,
    }
    Ok(Exit::Success)
}
