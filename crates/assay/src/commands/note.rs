//! `assay note`: a note in the record of a run in progress, at this moment.

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_run::top::leave_note;

use crate::command_line::NoteOptions;
use crate::commands::top::chosen;

/// Leaves the note, and waits until the run has taken it.
pub fn run(options: &NoteOptions) -> Result<Exit, Trouble> {
    let text = options.text()?;
    let run = chosen(options.run)?;
    leave_note(&run, &text, || terminal::say("waiting for the end of the run's interval\n"))?;
    terminal::say(&format!("noted in the run of process {} ({})\n", run.process, run.workload));
    Ok(Exit::Success)
}
