//! This process and its surroundings: the only door to the terminal, and what every command does alike.
//!
//! Results go to stdout, everything else to stderr (`terminal`, `bar`, `screen`). An error is a `Trouble`: cause,
//! place, what to do, and the exit code; the errors of all libraries become one here. `interrupt` says whether the user
//! wants the work to end; only the binary handles signals and ends the process. `underway` lists the runs in progress.
//! Nothing here knows an option or a command.

#![forbid(unsafe_code)]

pub mod bar;
pub mod diagnostics;
pub mod events;
pub mod files;
pub mod interrupt;
pub mod scratch;
pub mod screen;
pub mod surroundings;
pub mod terminal;
pub mod title;
pub mod underway;
pub mod url_text;
pub mod web;
