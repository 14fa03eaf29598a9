//! Executes what the process that started this one asks for, on stdin (`child.rs` of assay-experiment is the other
//! end).

use assay_process::diagnostics::{Exit, Trouble};
use assay_run::assignment::Assignment;
use assay_run::execute;
use assay_spec::{ChildSpec, ChildWork};

use crate::commands::{io, sql};

/// Executes it.
pub fn run() -> Result<Exit, Trouble> {
    let text = std::io::read_to_string(std::io::stdin())
        .map_err(|error| Trouble::environment(format!("cannot read stdin: {error}")))?;
    let ChildSpec { work, output, fleet } = ChildSpec::from_json(&text)?;
    let line = |words: Vec<String>| ["assay".to_owned()].into_iter().chain(words).collect::<Vec<_>>();
    match work {
        ChildWork::Run(spec) => execute(&Assignment::load(*spec)?, &output, fleet.as_ref()),
        ChildWork::Sql(spec) => sql::run(&spec, &output, &line(spec.words())),
        ChildWork::Io(spec) => io::run(&spec, &output, &line(spec.words())),
    }
}
