//! Changes what is known of a finished record: its tags, and the server that was started for it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::disk::{ReadError, WriteError};
use crate::file::json_of;
use crate::source::Source;
use crate::started::without_earlier_fields;
use crate::stream::{self, AmendError};
use crate::trial::Record;

/// A record could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
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
    /// Its run still goes on.
    #[error("record {path} is still being written: its run has not ended")]
    Busy {
        /// The file.
        path: std::path::PathBuf,
    },
    /// Nothing can be added after the damage.
    #[error("record {path} is damaged")]
    Damaged {
        /// The file.
        path: std::path::PathBuf,
    },
}

/// Sets these tags of the record at `path`, replacing those with the same keys; everything else is unchanged.
pub fn tag(path: &Path, tags: &BTreeMap<String, String>) -> Result<(), ChangeError> {
    change(path, |record| record.tags.extend(tags.clone()))
}

/// Applies `with` to what is known of the record at `path` apart from its measurements, which must stay as they are.
pub fn change(path: &Path, with: impl FnOnce(&mut Record)) -> Result<(), ChangeError> {
    if stream::is_stream(&mut Source::open(path)?)? {
        return stream::amend(path, with).map_err(|error| match error {
            AmendError::Read(error) => error.into(),
            AmendError::Write(error) => error.into(),
            AmendError::Busy => ChangeError::Busy { path: path.to_owned() },
            AmendError::Damaged => ChangeError::Damaged { path: path.to_owned() },
        });
    }
    let mut record = Record::read(path)?;
    let known = record.to_value().expect("records become JSON");
    let mut found = json_of(path)?;
    if let Some(started) = found.pointer_mut("/environment/started") {
        without_earlier_fields(started);
    }
    if let Some(field) = unknown(&found, &known) {
        let tool = format!("{} {}", record.tool.name, record.tool.version);
        return Err(ChangeError::Newer { path: path.to_owned(), tool, field });
    }
    with(&mut record);
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
