//! `assay schema FORMAT`: the JSON Schemas of files and results.

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;

use crate::command_line::{SchemaFormat, SchemaOptions};

/// Prints one.
pub fn run(options: &SchemaOptions) -> Result<Exit, Trouble> {
    let text = match options.format {
        SchemaFormat::Recipe => format!("{:#}\n", assay_recipe::schema()),
        SchemaFormat::Record => include_str!("../../../../docs/record.schema.json").to_owned(),
        SchemaFormat::Findings => include_str!("../../../../docs/findings.schema.json").to_owned(),
    };
    terminal::result(&text)?;
    Ok(Exit::Success)
}
