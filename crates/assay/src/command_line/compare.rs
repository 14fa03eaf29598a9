//! Options of `assay compare` and `assay duel`.

use assay_spec::{Format, values};
use clap::Args;

use crate::command_line::shared::{at_least_one, one_of};

/// Options of `compare`.
#[derive(Args, Clone)]
pub struct CompareOptions {
    /// Records to compare; records with the same settings are grouped as trials, and each setting is compared with the
    /// first
    #[arg(value_name = "RECORD", required_unless_present = "baseline")]
    pub records: Vec<std::path::PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub sides: SideOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub judgment: JudgmentOptions,
    /// Output format
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, default_value = "text",
          value_parser = one_of::<Format>(&["text", "json", "csv"]))]
    pub format: Format,
    /// Show each agent of a fleet separately, below the comparison
    #[arg(long)]
    pub agents: bool,
}

/// The trials of two sides.
#[derive(Args, Clone)]
pub struct SideOptions {
    /// Records of the baseline's trials
    #[arg(long, value_name = "RECORD", num_args = 1.., requires = "candidate", conflicts_with = "records")]
    pub baseline: Vec<std::path::PathBuf>,
    /// Records of the candidate's trials
    #[arg(long, value_name = "RECORD", num_args = 1.., requires = "baseline")]
    pub candidate: Vec<std::path::PathBuf>,
}

/// What a comparison is to conclude.
#[derive(Args, Clone)]
pub struct JudgmentOptions {
    /// Smallest difference that matters; smaller ones count as no difference
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = margin)]
    pub margin: f64,
    /// Exit with status 1 if the condition holds and chance is ruled out, such as 'tps < -3%' or 'new_order.p99 >
    /// +10%'; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    pub fail_if: Vec<assay_report::Condition>,
    /// Exit with status 1 also if the condition may hold: too few trials for a confidence interval, an interval that
    /// includes no change, or a missing value
    #[arg(long, requires = "fail_if")]
    pub fail_if_unsure: bool,
}

/// Options of `explain`.
#[derive(Args, Clone)]
pub struct ExplainOptions {
    /// Two records, the baseline first
    #[arg(value_name = "RECORD", required_unless_present = "baseline")]
    pub records: Vec<std::path::PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub sides: SideOptions,
    /// Smallest difference in throughput to explain
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = margin)]
    pub margin: f64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `duel`.
#[derive(Args, Clone)]
pub struct DuelOptions {
    /// Arguments of `assay run` for the first side, in quotes: 'oltp_read_write --db URL --session-sql "SET
    /// synchronous_commit=on"'
    #[arg(value_name = "A", allow_hyphen_values = true)]
    pub a: String,
    /// Arguments for the second side
    #[arg(value_name = "B", allow_hyphen_values = true)]
    pub b: String,
    /// Arguments for both sides, placed before their own
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub common: String,
    /// Number of trials per side
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least_one)]
    pub trials: u64,
    /// Folder for the records [default: assay-records/duel-TIME]
    #[arg(long, value_name = "FOLDER")]
    pub records: Option<std::path::PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub judgment: JudgmentOptions,
    /// Output format
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, default_value = "text",
          value_parser = one_of::<Format>(&["text", "json", "csv"]))]
    pub format: Format,
    /// Print only errors and warnings on stderr
    #[arg(long)]
    pub quiet: bool,
}

pub(super) fn margin(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|number| values::number(number.trim()).ok());
    percent
        .filter(|percent| *percent > 0.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "expected a percentage above 0, such as 3%".to_owned())
}

fn condition(text: &str) -> Result<assay_report::Condition, String> {
    text.parse().map_err(|error: assay_report::BadCondition| error.to_string())
}
