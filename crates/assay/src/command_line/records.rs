//! Options of `assay library`, `assay history` and `assay serve`.

use assay_library::Filter;
use assay_report::HistoryBy;
use clap::Args;

use crate::command_line::compare::margin;
use crate::command_line::shared::{at_least_one, listen_address};

/// Options of `library`.
#[derive(Args, Clone)]
pub struct LibraryOptions {
    /// Folder of the records, and conditions such as workload=tpcc, version=17, shared_buffers=8GB, disk!=nvme,
    /// since=30d, tps>1000: all must hold, and * in a value stands for any text
    #[arg(value_name = "FOLDER|CONDITION")]
    pub words: Vec<String>,
    /// Show at most this many of the latest [default: 50; with --paths or --json: all]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub limit: Option<u64>,
    /// Print only paths, for $(…) in another command
    #[arg(long, conflicts_with = "json")]
    pub paths: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub index: IndexOptions,
    /// Write a page over the matching records: series with their changes, and a table with filters
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "paths", "problems"])]
    pub html: Option<std::path::PathBuf>,
    /// Print the files that are not readable records, with the reasons
    #[arg(long, conflicts_with_all = ["json", "paths"])]
    pub problems: bool,
}

/// Options of `serve`.
#[derive(Args, Clone)]
pub struct ServeOptions {
    /// Folder of the records, and conditions as in `assay library`; or one record, also while its run goes on
    #[arg(value_name = "FOLDER|CONDITION|RECORD")]
    pub words: Vec<String>,
    /// Where to listen; beyond this machine, the URL has a token (that of ASSAY_TOKEN, or a random one)
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8642", value_parser = listen_address)]
    pub listen: std::net::SocketAddr,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub index: IndexOptions,
}

/// Options of `history`.
#[derive(Args, Clone)]
pub struct HistoryOptions {
    /// Folder of the records, and conditions as in `assay library`
    #[arg(value_name = "FOLDER|CONDITION")]
    pub words: Vec<String>,
    /// Figure to follow, as in `assay compare`: tps, p95, tpmC, new_order.p95, …
    #[arg(long, value_name = "METRIC", default_value = "tps")]
    pub metric: String,
    /// Points of the history: time (each record), day, version (of the server), or a tag such as commit
    #[arg(long, value_name = "time|day|version|TAG", default_value = "time", value_parser = history_by)]
    pub by: HistoryBy,
    /// Smallest change for the worse that matters
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = margin)]
    pub margin: f64,
    /// Exit with status 1 if the figure got worse by at least the margin, and nobody has acknowledged it
    #[arg(long)]
    pub fail_if_worse: bool,
    /// File with a line per acknowledged change and new baseline: acknowledged|baseline SERIES METRIC POINT REASON
    /// [default: assay-history.txt in the folder, if it exists]
    #[arg(long, value_name = "FILE")]
    pub notes: Option<std::path::PathBuf>,
    /// Output format; markdown is a comment that changes only when the answer does
    #[arg(long, value_name = "text|markdown|json", hide_possible_values = true, default_value = "text",
          value_parser = ["text", "markdown", "json"])]
    pub format: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub index: IndexOptions,
}

fn history_by(text: &str) -> Result<HistoryBy, String> {
    Ok(match text {
        "time" => HistoryBy::Time,
        "day" => HistoryBy::Day,
        "version" => HistoryBy::Version,
        "" => return Err("expected time, day, version or the name of a tag".to_owned()),
        tag => HistoryBy::Tag(tag.strip_prefix("tag.").unwrap_or(tag).to_owned()),
    })
}

/// How the index is used.
#[derive(Args, Clone)]
pub struct IndexOptions {
    /// File of the index [default: .assay-library.sqlite in the folder]
    #[arg(long, value_name = "FILE")]
    pub index: Option<std::path::PathBuf>,
    /// Read all records again
    #[arg(long, conflicts_with = "no_update")]
    pub rebuild: bool,
    /// Do not look for new or changed records
    #[arg(long)]
    pub no_update: bool,
    /// Print only errors and warnings on stderr
    #[arg(long)]
    pub quiet: bool,
}

/// What the words of a question are.
pub struct Question {
    /// The folder of the records.
    pub folder: std::path::PathBuf,
    /// The conditions.
    pub filters: Vec<Filter>,
}

impl Question {
    /// Words with `=`, `<` or `>` are conditions, unless a folder has that name; another one is the folder.
    pub fn of(words: &[String]) -> Result<Question, assay_process::diagnostics::Trouble> {
        use assay_process::diagnostics::Trouble;
        let (mut folder, mut filters) = (None, Vec::new());
        for word in words {
            let path = std::path::Path::new(word);
            if !word.contains(['=', '<', '>']) || path.is_dir() {
                if let Some(first) = folder.replace(path.to_owned()) {
                    let cause = format!("two folders: {} and {word}", first.display());
                    return Err(Trouble::usage(cause).hint("a condition is KEY=VALUE, such as workload=tpcc"));
                }
                continue;
            }
            filters.push(Filter::parse(word).map_err(|bad| Trouble::usage(bad.to_string()))?);
        }
        // A missing folder is a mistyped condition, unless it has the form of a path.
        let missing = folder.as_ref().filter(|path| !path.exists() && path.components().count() == 1);
        if let Some(word) = missing {
            return Err(Trouble::usage(format!("{}: neither a folder nor a condition", word.display()))
                .hint("conditions are KEY=VALUE, KEY!=VALUE, KEY>NUMBER or KEY<NUMBER, such as workload=tpcc"));
        }
        Ok(Question { folder: folder.unwrap_or_else(|| ".".into()), filters })
    }
}
