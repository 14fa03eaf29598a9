//! Options that name the databases, and how to talk to them.

use assay_seam::Nanos;
use assay_spec::values;
use clap::{ArgAction, Args};

use crate::command_line::shared::at_least_one;

/// Which servers, and how to talk to them.
#[derive(Args, Clone)]
#[command(next_help_heading = "Database")]
pub struct TargetOptions {
    /// Database to use: postgres://…, mysql://…, mariadb://…, mongodb://…, duckdb:FILE, sqlite:FILE, or a name (see
    /// `assay db`); may be repeated: sessions are spread evenly [default: ASSAY_DB]
    #[arg(long, value_name = "URL")]
    pub db: Vec<String>,
    /// Use protocol-level prepared statements; off for connection poolers that do not support them
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = values::switch, action = ArgAction::Set)]
    pub prepared: bool,
    /// Statement to run on every new connection; may be repeated
    #[arg(long, value_name = "SQL")]
    pub session_sql: Vec<String>,
    /// Connections opened per second [default: unlimited]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::positive)]
    pub connect_rate: Option<f64>,
    /// Maximum number of connections being opened at the same time
    #[arg(long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    pub connect_pending: u64,
    /// Treat a connection as lost if the server's host acknowledges nothing for this long (2s to 9h; 0: no limit); slow
    /// statements do not trigger it
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::network_timeout)]
    pub network_timeout: Nanos,
}
