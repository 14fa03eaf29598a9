//! Options that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::values;

/// What a command that measures without a workload does with its result.
#[derive(Args, Clone)]
pub struct ResultOptions {
    /// Random seed [default: random, shown in the report]
    #[arg(long, value_name = "N", value_parser = any_count)]
    pub seed: Option<u64>,
    /// Output format of the result on stdout
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, value_enum, default_value = "text")]
    pub format: Format,
    /// Path of the record [default: assay-records/COMMAND-TIME.json.zst]
    #[arg(long, value_name = "PATH", conflicts_with = "no_record")]
    pub record: Option<PathBuf>,
    /// Replace an existing record
    #[arg(long, conflicts_with = "no_record")]
    pub force: bool,
    /// Write no record
    #[arg(long)]
    pub no_record: bool,
    /// Label for the record, such as disk=nvme; may be repeated
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = tag)]
    pub tags: Vec<(String, String)>,
    /// Print only errors and warnings on stderr
    #[arg(long)]
    pub quiet: bool,
}

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
