//! sysbench's command line and text reports, as its users' scripts and parsers know them.
//!
//! Everything in here is text in, text out: `options` reads words and configuration files, `settings` makes of them
//! what a run needs, `report` turns a `Stat` into the lines of sysbench 1.0.20 (or of its development branch), `log`
//! knows levels and the collapse of repeated messages. It opens nothing but configuration files, starts nothing and
//! prints nothing: the binary does, in `commands/sysbench`.

#![forbid(unsafe_code)]

pub mod config_file;
pub mod help;
pub mod histogram;
pub mod log;
pub mod options;
pub mod report;
pub mod settings;
pub mod stat;
pub mod value;

pub use histogram::Histogram;
pub use log::{Level, Log};
pub use options::{Arguments, Known, Options, UsageError};
pub use report::{Layout, Style};
pub use settings::{Settings, Shutdown};
pub use stat::{Share, Stat};
pub use value::Kind;

/// The version whose interface this is: `sysbench.version`, the banner, `--version`.
pub const VERSION: &str = "1.0.20";
