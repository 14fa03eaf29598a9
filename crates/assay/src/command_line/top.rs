//! Options of `assay top` and `assay note`.

use assay_process::diagnostics::Trouble;
use assay_seam::Nanos;
use assay_spec::values;
use clap::Args;

use crate::command_line::shared::{pooler_url, process_number};

/// Options of `top`.
#[derive(Args, Clone)]
pub struct TopOptions {
    /// Record to replay or to follow, or folder of an experiment [default: the run in progress on this machine]
    #[arg(value_name = "RECORD|FOLDER", conflicts_with = "run")]
    pub record: Option<std::path::PathBuf>,
    /// Process of the run to watch, if there are several
    #[arg(long, value_name = "PID", value_parser = process_number)]
    pub run: Option<u32>,
    /// Server to ask for its sessions and statements; without a record or a run: the server to watch. A name, or a URL
    #[arg(long, value_name = "NAME|URL", help_heading = "Server")]
    pub db: Option<String>,
    /// Admin console of the PgBouncer in front of the server, such as postgres://stats@HOST:6432/pgbouncer
    #[arg(long, value_name = "URL", requires = "db", value_parser = pooler_url, help_heading = "Server")]
    pub pooler: Option<String>,
    /// Node exporter on the server's machine, such as http://db1:9100#nvme0n1
    #[arg(long, value_name = "URL[#DEVICE]", requires = "db", help_heading = "Server")]
    pub host_metrics: Option<String>,
    /// Speed of a replay, such as 10
    #[arg(long, value_name = "FACTOR", value_parser = speed, help_heading = "Replay")]
    pub speed: Option<f64>,
    /// Time in the record at which a replay starts
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = "Replay")]
    pub from: Option<Nanos>,
    /// Draw without colors
    #[arg(long)]
    pub no_color: bool,
}

/// Options of `note`.
#[derive(Args, Clone)]
pub struct NoteOptions {
    /// What happens, in a few words
    #[arg(value_name = "TEXT", required = true)]
    pub text: Vec<String>,
    /// Process of the run, if there are several
    #[arg(long, value_name = "PID", value_parser = process_number)]
    pub run: Option<u32>,
}

impl NoteOptions {
    /// The note.
    pub fn text(&self) -> Result<String, Trouble> {
        let text = self.text.join(" ");
        match text.trim() {
            "" => Err(Trouble::usage("the note is empty").hint("such as: assay note 'dropped the index'")),
            text => Ok(text.to_owned()),
        }
    }
}

fn speed(text: &str) -> Result<f64, String> {
    match text.trim_start_matches(['x', '×']).parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("expected a factor above 0, such as 10".to_owned()),
    }
}
