//! sysbench's command line and text reports, in the form that existing scripts and parsers expect.
//!
//! Text in, text out: `options` reads words and configuration files, `settings` makes of them what a run needs,
//! `report` turns a `Stat` into the lines of sysbench 1.0.20 (or of its development branch), `log` knows levels and the
//! collapse of repeated messages. `front` is sysbench as a program on top of it: it makes plans for assay-engine and
//! assay-machine and tells what comes of them. It opens nothing but configuration files and prints nothing: it is lent
//! a `Process`.

#![forbid(unsafe_code)]

use std::ffi::CStr;

pub mod config_file;
pub mod conninfo;
pub mod front;
pub mod help;
pub mod histogram;
pub mod log;
pub mod options;
pub mod originals;
pub mod report;
pub mod servers;
pub mod settings;
pub mod stat;
pub mod value;

pub use histogram::Histogram;
pub use log::{Level, Log};
pub use options::{Arguments, Known, Options, UsageError};
pub use report::Style;
pub use settings::{CoreSettings, Layout, Shutdown};
pub use stat::{Share, Stat};
pub use value::ValueKind;

/// What scripts see that is sysbench's own, in Lua: for `assay_script::Front::overlay`. The first part knows sysbench,
/// the second its stock scripts.
pub const OVERLAY: &[(&CStr, &str)] =
    &[(c"=assay/sysbench", include_str!("lua/front.lua")), (c"=assay/stock", include_str!("lua/stock.lua"))];

/// The version whose interface this is: `sysbench.version`, the banner, `--version`.
pub const VERSION: &str = "1.0.20";
