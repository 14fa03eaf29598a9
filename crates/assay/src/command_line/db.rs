//! Options of `assay db`.

use clap::Args;

/// Options of `db`.
#[derive(Args, Clone)]
pub struct DbOptions {
    /// What to do
    #[command(subcommand)]
    pub action: DbAction,
}

/// What can be done with databases by name.
#[derive(clap::Subcommand, Clone)]
pub enum DbAction {
    /// Give a database a name, for `--db NAME` and the variable ASSAY_DB
    Add(DbAddOptions),
    /// List the names and their URLs
    List,
    /// Forget a name
    Remove {
        /// Name, as shown by `assay db list`
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Connect, and report version, latency, encryption, rights for telemetry, and limits
    Test {
        /// Name, as shown by `assay db list`, or URL
        #[arg(value_name = "NAME|URL")]
        database: String,
    },
}

/// Options of `db add`.
#[derive(Args, Clone)]
pub struct DbAddOptions {
    /// Name to use in place of the URL
    #[arg(value_name = "NAME")]
    pub name: String,
    /// postgres://…, mysql://…, mariadb://…, mongodb://…, duckdb:FILE or sqlite:FILE, without a password
    #[arg(value_name = "URL")]
    pub url: String,
    /// Shell command that prints the password, such as 'pass show db/prod'; runs whenever the name is used
    #[arg(long, value_name = "CMD")]
    pub password_command: Option<String>,
    /// File whose first line is the password; nobody else may be able to read it
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<std::path::PathBuf>,
    /// Replace an existing entry
    #[arg(long)]
    pub force: bool,
}
