//! Options that several commands share.

use clap::ValueEnum;

use crate::values;

/// Format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "a doc comment would become help text")]
pub enum Format {
    Text,
    Json,
    Csv,
}

pub(super) fn any_count(text: &str) -> Result<u64, String> {
    // A seed may use all 64 bits.
    text.parse().or_else(|_| values::count(text, 0))
}

pub(super) fn at_least_one(text: &str) -> Result<u64, String> {
    values::count(text, 1)
}

/// Keys are column names and labels too.
pub fn tag(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as disk=nvme")?;
    let is_name = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match is_name && key.len() <= TAG_LENGTH_MAX && value.len() <= TAG_LENGTH_MAX {
        true => Ok((key.to_owned(), value.to_owned())),
        false => Err(format!(
            "a key starts with a letter or _ and contains only letters, digits and _; key and value are at most {TAG_LENGTH_MAX} bytes long"
        )),
    }
}

const TAG_LENGTH_MAX: usize = 100;
