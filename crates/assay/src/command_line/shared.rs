//! Options that several commands share.

use std::path::PathBuf;

use assay_spec::{Format, OutputSpec, tag, values};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

/// What a command that measures without a workload does with its result.
#[derive(Args, Clone)]
pub struct ResultOptions {
    /// Random seed [default: random, shown in the report]
    #[arg(long, value_name = "N", value_parser = any_count)]
    pub seed: Option<u64>,
    /// Output format of the result on stdout
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, default_value = "text",
          value_parser = one_of::<Format>(&["text", "json", "csv"]))]
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

impl ResultOptions {
    /// What becomes of the result.
    pub fn output(&self) -> OutputSpec {
        OutputSpec {
            format: self.format,
            record: self.record.clone(),
            force: self.force,
            no_record: self.no_record,
            quiet: self.quiet,
            ..OutputSpec::default()
        }
    }
}

pub(super) fn any_count(text: &str) -> Result<u64, String> {
    // A seed may use all 64 bits.
    text.parse().or_else(|_| values::count(text, 0))
}

pub(super) fn at_least_one(text: &str) -> Result<u64, String> {
    values::count(text, 1)
}

/// A value of an enumeration, by its name in a spec.
pub(super) fn one_of<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).map(|name| {
        let name: StrDeserializer<'_, Error> = name.as_str().into_deserializer();
        T::deserialize(name).expect("other names are refused")
    })
}
