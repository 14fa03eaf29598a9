//! Options of `assay bisect`.

use std::path::PathBuf;

use clap::Args;

use crate::command_line::compare::margin;
use crate::command_line::shared::at_least_one;

/// Options of `bisect`.
#[derive(Args, Clone)]
pub struct BisectOptions {
    /// Arguments of `assay run` for a trial, in quotes; {} stands for the candidate: 'oltp_read_write --server {}
    /// --time 30s'
    #[arg(value_name = "RUN", allow_hyphen_values = true)]
    pub run: String,
    /// Candidates in order, from the last known good one to the first known bad one: versions, dates of images, values
    /// of a setting
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', required_unless_present_any = ["commits", "versions"])]
    pub values: Vec<String>,
    /// Versions that `assay server` can start, such as postgres:9.6..18; {} stands for product and version
    #[arg(long, value_name = "PRODUCT:FIRST..LAST", conflicts_with_all = ["values", "commits"])]
    pub versions: Option<String>,
    /// Commits of a git repository as candidates
    #[arg(long, value_name = "GOOD..BAD", conflicts_with = "values")]
    pub commits: Option<String>,
    /// Folder of the git repository
    #[arg(long, value_name = "FOLDER", default_value = ".", requires = "commits")]
    pub source: PathBuf,
    /// Shell command that builds a candidate, once, before its first trial; {} stands for the candidate. If it fails,
    /// the candidate is skipped
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// Folder with the programs of the server that a build makes, with {} for the candidate; below --source if
    /// relative. RUN needs --server PRODUCT
    #[arg(long, value_name = "PATH")]
    pub binaries: Option<PathBuf>,
    /// Figure that got worse, as in `assay compare`
    #[arg(long, value_name = "METRIC", default_value = "tps")]
    pub metric: String,
    /// Smallest difference between the ends to search for
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = margin)]
    pub margin: f64,
    /// Probability at which the search ends
    #[arg(long, value_name = "PERCENT", default_value = "95%", value_parser = probability)]
    pub sure: f64,
    /// Trials of each end before the ends count as equal
    #[arg(long, value_name = "N", default_value = "20", value_parser = at_least_one)]
    pub ends: u64,
    /// Most trials of candidates
    #[arg(long, value_name = "N", default_value = "200", value_parser = at_least_one)]
    pub trials: u64,
    /// Folder for the records; records of a search that was interrupted are used again [default:
    /// assay-records/bisect-TIME]
    #[arg(long, value_name = "FOLDER")]
    pub records: Option<PathBuf>,
    /// Print only errors and warnings on stderr
    #[arg(long)]
    pub quiet: bool,
}

fn probability(text: &str) -> Result<f64, String> {
    let share = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok()).map(|it| it / 100.0);
    share.filter(|share| (0.5..1.0).contains(share)).ok_or_else(|| "expected 50% to 99.9%, such as 95%".to_owned())
}
