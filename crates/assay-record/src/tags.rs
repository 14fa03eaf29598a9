//! Adds tags to a finished record.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::file::{ReadError, WriteError, json_of};
use crate::trial::Record;

/// A record could not be tagged.
#[derive(Debug, thiserror::Error)]
pub enum TagError {
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It contains fields that this version does not know and would lose.
    #[error("record {path} was written by {tool} and has the field {field}, which this version of assay would lose")]
    Newer {
        /// The file.
        path: std::path::PathBuf,
        /// Who wrote it.
        tool: String,
        /// The unknown field.
        field: String,
    },
}

/// Sets these tags of the record at `path`, replacing those with the same keys; everything else is unchanged.
pub fn tag(path: &Path, tags: &BTreeMap<String, String>) -> Result<(), TagError> {
    let mut record = Record::read(path)?;
    let known = serde_json::to_value(&record).expect("records become JSON");
    if let Some(field) = unknown(&json_of(path)?, &known) {
        let tool = format!("{} {}", record.tool.name, record.tool.version);
        return Err(TagError::Newer { path: path.to_owned(), tool, field });
    }
    record.tags.extend(tags.clone());
    Ok(record.write(path)?)
}

/// The first field of `found` that `known` does not have.
fn unknown(found: &Value, known: &Value) -> Option<String> {
    match (found, known) {
        (Value::Object(found), Value::Object(known)) => found.iter().find_map(|(name, value)| match known.get(name) {
            Some(known) => unknown(value, known),
            None => Some(name.clone()),
        }),
        (Value::Array(found), Value::Array(known)) => {
            found.iter().zip(known).find_map(|(found, known)| unknown(found, known))
        }
        _ => None,
    }
}
