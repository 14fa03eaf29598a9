//! Options of `assay sql`.

use clap::Args;

use crate::command_line::shared::{ResultOptions, any_count, at_least_one};

/// Options of `sql`.
#[derive(Args, Clone)]
pub struct SqlOptions {
    /// Statements to time, one case each, or TOML files with named cases
    #[arg(value_name = "SQL|FILE", required = true)]
    pub statements: Vec<String>,
    /// Database: postgres://…, mysql://…, mariadb://…, mongodb://…, duckdb:FILE or sqlite:FILE; - reads the URL from
    /// stdin [default: an empty SQLite database]
    #[arg(long, value_name = "URL")]
    pub db: Option<String>,
    /// Timed runs of each case
    #[arg(long, value_name = "N", default_value = "10", value_parser = at_least_one)]
    pub runs: u64,
    /// Untimed warm-up runs of each case [default: 1; 0 with --cold]
    #[arg(long, value_name = "N", value_parser = any_count)]
    pub warmup: Option<u64>,
    /// Restart the server before every run, and as root also drop the page cache; needs a server started by `assay
    /// server`
    #[arg(long)]
    pub cold: bool,
    /// Case to which the others are compared, or fastest [default: the first]
    #[arg(long, value_name = "NAME|fastest")]
    pub base: Option<String>,
    /// Require all cases to return the same rows; exit with status 1 otherwise
    #[arg(long)]
    pub same_result: bool,
    /// Get the plan of each run, and report where it changed
    #[arg(long)]
    pub explain: bool,
    /// Read the server's counters before and after a run of each case
    #[arg(long)]
    pub counters: bool,
    /// Untimed statement before every run of every case; may be repeated
    #[arg(long, value_name = "SQL")]
    pub setup: Vec<String>,
    /// Untimed statement after every run of every case; may be repeated
    #[arg(long, value_name = "SQL")]
    pub teardown: Vec<String>,
    /// Statement to run on every new connection; may be repeated
    #[arg(long, value_name = "SQL")]
    pub session_sql: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub result: ResultOptions,
}
