//! Options of the load generator itself: threads, event loop, random numbers.

use assay_io::SESSIONS_FOR_URING;
use assay_seam::Nanos;
use assay_spec::{IoChoice, values};
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::command_line::shared::{any_count, at_least_one, one_of, workers};

/// The heading of options for the distribution of rows.
const ROWS: &str = "Distribution of rows";

/// The generator itself: threads and random numbers.
#[derive(Args, Clone)]
#[command(next_help_heading = "Generator")]
pub struct GeneratorOptions {
    /// Random seed; with the same seed, each session sends the same statements [default: random, shown in the report]
    #[arg(long, value_name = "N", value_parser = any_count)]
    pub seed: Option<u64>,
    /// Threads that drive the sessions [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = workers)]
    pub workers: Option<u64>,
    /// CPUs for the load generator, such as 0-3,8, socket:0 or core:0-3; add ,no-smt to use one thread per core
    /// [default: all]
    #[arg(long, value_name = "CPUS")]
    pub cpus: Option<String>,
    #[arg(long, value_name = "auto|epoll|uring", hide_possible_values = true, help = io_help(),
          value_parser = one_of::<IoChoice>(&["auto", "epoll", "uring"]))]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub io: Option<IoChoice>,
    /// Replies handled between two system calls: a larger batch saves CPU but raises the median latency [default: 32
    /// with io_uring, 64 with epoll]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub batch: Option<u64>,
    /// How long a worker looks for replies before it sleeps, such as 50us: latencies without the time that a CPU takes
    /// to wake up, for a load generator with CPUs of its own
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::duration)]
    pub poll: Nanos,
    /// Distribution of the rows that statements access
    #[arg(long, value_name = "NAME", default_value = "uniform", help_heading = ROWS,
          value_parser = PossibleValuesParser::new(["uniform", "gaussian", "special", "pareto", "zipfian"]))]
    pub rand_type: String,
    /// gaussian, special: number of uniform values averaged
    #[arg(long, value_name = "N", help_heading = ROWS, default_value = "12", value_parser = at_least_one)]
    pub rand_spec_iter: u64,
    /// special: size of the hot center, in percent of the rows
    #[arg(long, value_name = "N", help_heading = ROWS, default_value = "1", value_parser = values::number)]
    pub rand_spec_pct: f64,
    /// special: percentage of accesses that go to the hot center
    #[arg(long, value_name = "N", help_heading = ROWS, default_value = "75", value_parser = values::number)]
    pub rand_spec_res: f64,
    /// pareto: parameter h
    #[arg(long, value_name = "X", help_heading = ROWS, default_value = "0.2", value_parser = values::number)]
    pub rand_pareto_h: f64,
    /// zipfian: exponent
    #[arg(long, value_name = "X", help_heading = ROWS, default_value = "0.8", value_parser = values::number)]
    pub rand_zipfian_exp: f64,
}

/// The number of sessions is that of the code.
fn io_help() -> String {
    format!(
        "Event loop; auto: io_uring if the kernel allows it and each worker has at least {SESSIONS_FOR_URING} sessions, \
         otherwise epoll [default: auto, or ASSAY_IO]"
    )
}
