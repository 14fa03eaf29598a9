//! What `assay top` shows: a run, its servers and their machine on a terminal, while they work or from a record.
//!
//! Three parts, each without clocks, files and sockets: `seen` takes what is visible at one instant out of a record,
//! `view` is what the user has chosen with keys, and `draw` puts both into a buffer of ratatui. Every number comes from
//! the findings of assay-report, so that the screen cannot contradict the report; what a record does not have is not
//! drawn, and the reason is shown in its place.

#![forbid(unsafe_code)]

mod charts;
mod draw;
mod grid;
mod seen;
mod server;
mod view;

pub use draw::{Scene, draw, plain};
pub use seen::{Seen, WIDTHS, length, stage_begin};
pub use server::{ServerNow, SessionRow, StatementRow, Statements};
pub use view::{Action, Key, Screen, View};
