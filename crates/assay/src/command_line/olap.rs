//! Options of `assay olap`.

use assay_seam::Nanos;
use assay_spec::values;
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::command_line::shared::{ResultOptions, at_least_one};

/// Each stream is a thread with a connection.
const STREAMS_MAX: u64 = 1000;

/// Options of `olap`.
#[derive(Args, Clone)]
pub struct OlapOptions {
    /// Analytical workload: flights, tpch_like, or a Lua file that declares queries
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    /// Database: postgres://…, mysql://…, mariadb://…, sqlite:FILE, or a name (see `assay db`); may be repeated: one
    /// after the other, and compared [default: ASSAY_DB]
    #[arg(long, value_name = "URL")]
    pub db: Vec<String>,
    /// Executions of each query, one after the other; the first is shown separately
    #[arg(long, value_name = "N", default_value = "3", value_parser = at_least_one)]
    pub runs: u64,
    /// Order of the queries; random: drawn from the seed
    #[arg(long, value_name = "fixed|random", hide_possible_values = true, default_value = "fixed",
          value_parser = PossibleValuesParser::new(["fixed", "random"]))]
    pub order: String,
    /// Queries to execute, such as Q1,Q5 [default: all]
    #[arg(long = "query", value_name = "NAME,…", value_delimiter = ',')]
    pub queries: Vec<String>,
    /// Time limit of an execution; a query that takes longer is given up, which is its result [default: none]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub timeout: Option<Nanos>,
    /// Afterwards execute the queries in N parallel streams, each on a connection and in an order of its own; tpch_like
    /// then has figures of throughput
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true,
          value_parser = clap::value_parser!(u64).range(0..=STREAMS_MAX))]
    pub streams: u64,
    /// Restart the server before the first execution of each query, and as root also drop the page cache; needs a
    /// server started by `assay server`
    #[arg(long)]
    pub cold: bool,
    /// Get the plan of each query after its executions
    #[arg(long)]
    pub explain: bool,
    /// Afterwards read the server's counters before and after one more execution of each query
    #[arg(long)]
    pub counters: bool,
    /// Statement to run on every new connection; may be repeated
    #[arg(long, value_name = "SQL")]
    pub session_sql: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub result: ResultOptions,
}
