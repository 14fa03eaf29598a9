//! `assay completions SHELL`: completions of commands and options for a shell.
//!
//! Without workload options, which are declared in the workload's file.

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use clap_complete::aot::{self, generate};

use crate::command_line::{CompletionsOptions, Shell, definition};

/// Prints them.
pub fn run(options: &CompletionsOptions) -> Result<Exit, Trouble> {
    let mut text = Vec::new();
    let shell = match options.shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    generate(shell, &mut definition(), "assay", &mut text);
    terminal::result_bytes(&text)?;
    Ok(Exit::Success)
}
