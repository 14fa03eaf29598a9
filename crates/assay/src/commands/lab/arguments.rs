//! A recipe's lines of arguments and names of databases, read as this program's own.

use assay_experiment::{ArgumentParser, WorkloadArguments};
use assay_process::diagnostics::Trouble;
use assay_spec::{IoSpec, OutputSpec};

use crate::command_line::{Invocation, Subcommand, parse, read};
use crate::databases;

/// Reads a recipe's lines of arguments, and names of databases.
pub(super) struct RecipeArguments;

impl ArgumentParser for RecipeArguments {
    fn workload(&self, words: Vec<String>) -> Result<Option<WorkloadArguments>, Trouble> {
        let Some(Invocation { subcommand, assignment: Some(assignment), given, .. }) =
            read(words.into_iter().map(Into::into))?
        else {
            return Ok(None);
        };
        let (output, fleet) = match &subcommand {
            Subcommand::Run(options) => (options.output.output(), options.fleet.spec()),
            _ => (OutputSpec::default(), None),
        };
        Ok(Some(WorkloadArguments { assignment, given, output, fleet }))
    }

    fn files(&self, words: Vec<String>) -> Result<Option<(IoSpec, OutputSpec)>, Trouble> {
        match parse(words.into_iter().map(Into::into))? {
            Some(Invocation { subcommand: Subcommand::Io(options), .. }) => {
                Ok(Some((options.spec(), options.result.output())))
            }
            _ => Ok(None),
        }
    }

    fn database(&self, word: &str) -> Result<String, Trouble> {
        databases::with_password_of(&databases::resolve(word)?)
    }
}
