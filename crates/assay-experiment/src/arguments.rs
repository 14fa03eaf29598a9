//! What recipes have in common with the command line: lines of arguments, and names of databases.

use assay_process::diagnostics::Trouble;
use assay_run::assignment::Assignment;
use assay_spec::{FleetSpec, IoSpec, OutputSpec};

/// Reads lines and names as the command line does. `words` start with the program's name and a command.
pub trait ArgumentParser: Sync {
    /// `assay run WORKLOAD …`, or another command of a workload; `None`: they are not. Does not check whether the
    /// values fit together.
    fn workload(&self, words: Vec<String>) -> Result<Option<WorkloadArguments>, Trouble>;

    /// `assay io …`; `None`: they are not.
    fn files(&self, words: Vec<String>) -> Result<Option<(IoSpec, OutputSpec)>, Trouble>;

    /// The URL of a database that is given by a name or a URL, with its password if it is known.
    fn database(&self, word: &str) -> Result<String, Trouble>;
}

/// A parsed line with a workload.
#[derive(Clone)]
pub struct WorkloadArguments {
    /// What it asks for.
    pub assignment: Assignment,
    /// Names of the options in it.
    pub given: Vec<String>,
    /// What becomes of the result.
    pub output: OutputSpec,
    /// Who shares the work.
    pub fleet: Option<FleetSpec>,
}
