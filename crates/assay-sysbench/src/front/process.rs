//! The process behind the front. Output, files and signals go through here, so that only the program that provides it
//! knows streams, signals and databases.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use assay_engine::Control;
use assay_machine::{MachinePlan, Snapshot};
use assay_options::OptionValue;
use assay_script::Library;
use assay_seam::{ConnectOptions, Database, Dialect, Surroundings};

/// What a program provides to the front.
pub trait Process: Debug + Send + Sync {
    /// Writes to standard output, unbuffered. False if that failed; a reader that has gone away is not an error.
    fn print(&self, text: &[u8]) -> bool;

    /// Writes to standard error.
    fn complain(&self, text: &str);

    /// All of standard input.
    fn input(&self) -> io::Result<String>;

    /// Ends the process.
    fn exit(&self, code: i32) -> !;

    /// What stops a run early.
    fn control(&self) -> &'static Control;

    /// Whether `control` was stopped, for code that has only the process.
    fn stop_asked(&self) -> fn() -> bool;

    /// From now on Ctrl-C stops `control` (`yes`), or ends the process.
    fn hear_interrupts(&self, yes: bool);

    /// From now on, a reader of the output that goes away does not end the process.
    fn ignore_closed_pipes(&self);

    /// The exit code of a run that was interrupted.
    fn exit_code_interrupted(&self) -> u8;

    /// Environment, files and user.
    fn surroundings(&self) -> &'static dyn Surroundings;

    /// Parses a database's URL, completed from these surroundings; or why it cannot be used.
    fn open(
        &self,
        url: &str,
        options: &ConnectOptions,
        surroundings: &dyn Surroundings,
    ) -> Result<Box<dyn Database>, String>;

    /// The kind of database with this name; a plain one if there is none.
    fn dialect(&self, name: &'static str) -> Dialect;

    /// Built-in workloads and files, in sysbench's order.
    fn library(&self) -> &'static Arc<Library>;

    /// Whether it wants the measurements of machine tests.
    fn keeps_machine_reports(&self) -> bool {
        false
    }

    /// The measurements of a machine test.
    fn machine_report(&self, _: &MachineReport<'_>) {}
}

/// The measurements of a machine test.
#[derive(Debug)]
pub struct MachineReport<'a> {
    /// `cpu`, `fileio`, …
    pub test: &'static str,
    /// Its own options with the values in effect.
    pub options: Vec<(String, OptionValue)>,
    /// How it was run.
    pub plan: &'a MachinePlan,
    /// Once per second, or per report interval.
    pub intervals: &'a [Snapshot],
    /// Everything since the start, or since the last checkpoint.
    pub all: &'a Snapshot,
}
