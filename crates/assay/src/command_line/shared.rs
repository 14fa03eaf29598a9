//! Options that several commands share.

use std::net::SocketAddr;
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

/// Where this process listens: every option of that kind has the same form.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an IP address and a port up to 65535, such as 127.0.0.1:9200".to_owned())
}

/// The admin console of a pooler.
pub(super) fn pooler_url(text: &str) -> Result<String, String> {
    let is_url =
        text.split_once("://").is_some_and(|(scheme, place)| scheme.starts_with("postgres") && !place.is_empty());
    match is_url {
        true => Ok(text.to_owned()),
        false => Err("expected a URL such as postgres://stats@HOST:6432/pgbouncer".to_owned()),
    }
}

/// Number of threads.
pub(super) fn workers(text: &str) -> Result<u64, String> {
    const WORKERS_MAX: u64 = 4096;
    let workers = values::count(text, 1)?;
    if workers <= WORKERS_MAX { Ok(workers) } else { Err(format!("must be at most {WORKERS_MAX}")) }
}

/// Number of a process.
pub(super) fn process_number(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected the number of a process, such as 4711".to_owned())
}

/// A number of `u32`, at least 1: of agents.
pub(super) fn small_count(text: &str) -> Result<u32, String> {
    u32::try_from(values::count(text, 1)?).map_err(|_| "must be below 2^32".to_owned())
}

/// A number of `u32`, counted from 0.
pub(super) fn small_index(text: &str) -> Result<u32, String> {
    u32::try_from(values::count(text, 0)?).map_err(|_| "must be below 2^32".to_owned())
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
