//! Options of `assay io`.

use std::path::PathBuf;

use assay_seam::Nanos;
use assay_spec::values;
use clap::Args;

use crate::command_line::shared::{ResultOptions, any_count, at_least_one};

/// Options of `io`.
#[derive(Args, Clone)]
pub struct IoOptions {
    /// Existing folder for the files; missing files are created, and removed at the end
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
    /// Keep the files for the next run
    #[arg(long)]
    pub keep: bool,
    /// Total size of the data files
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = values::size)]
    pub size: u64,
    /// Number of data files
    #[arg(long, value_name = "N", default_value = "4", value_parser = at_least_one)]
    pub files: u64,
    /// Threads that read random blocks, one at a time; a list such as 1,2,4 is a ladder
    #[arg(long, value_name = "N,…", default_value = "4", value_delimiter = ',', value_parser = any_count)]
    pub readers: Vec<u64>,
    /// Threads that write random blocks
    #[arg(long, value_name = "N", default_value = "1", value_parser = any_count)]
    pub writers: u64,
    /// Number of writes in flight per writer
    #[arg(long, value_name = "N", default_value = "16", value_parser = at_least_one)]
    pub write_depth: u64,
    /// Threads that append to their own log, with fdatasync after each append
    #[arg(long, value_name = "N", default_value = "1", value_parser = any_count)]
    pub loggers: u64,
    /// Size of a read or write
    #[arg(long, value_name = "BYTES", default_value = "16K", value_parser = values::size)]
    pub block: u64,
    /// Size of an append
    #[arg(long, value_name = "BYTES", default_value = "8K", value_parser = values::size)]
    pub log_block: u64,
    /// Size at which a log starts over
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = values::size)]
    pub log_size: u64,
    /// Open data files with O_DIRECT, bypassing the page cache
    #[arg(long)]
    pub direct: bool,
    /// Open data files with O_DSYNC: a write is done when it is on the drive
    #[arg(long)]
    pub dsync: bool,
    /// Duration of each step
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    pub time: Nanos,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub result: ResultOptions,
}
