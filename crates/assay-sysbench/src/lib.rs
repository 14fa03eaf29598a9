//! sysbench's command line and text reports, in the form that existing scripts and parsers expect.
//!
//! Text in, text out: `options` parses arguments and configuration files, `settings` turns them into what a run needs,
//! `report` formats a `PeriodStat` like sysbench 1.0.20 (or its development branch), `log` handles levels and repeated
//! messages. `front` is sysbench as a program on top of that: it makes plans for assay-engine and assay-machine and
//! prints their results. It opens only configuration files; output goes through the `Process` that the binary provides.

#![forbid(unsafe_code)]

use std::ffi::CStr;

pub mod config_file;
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
pub use log::{Log, LogLevel};
pub use options::{Arguments, KnownOption, Options, UsageError};
pub use report::Style;
pub use settings::{CoreSettings, ReportLayout, Shutdown};
pub use stat::{PeriodStat, SessionStat};
pub use value::ValueKind;

/// A chunk of Lua, with its name.
type LuaChunk = (&'static CStr, &'static str);

const FRONT: LuaChunk = (c"=assay/sysbench", include_str!("lua/front.lua"));
const STOCK: LuaChunk = (c"=assay/stock", include_str!("lua/stock.lua"));

/// sysbench's own part of what scripts see, in Lua: for `assay_script::ScriptFront::overlay`. The first part knows
/// sysbench, the second its stock scripts. `luajit_cmd`: `--luajit-cmd`, which holds for every state.
pub fn overlay(luajit_cmd: &str) -> &'static [LuaChunk] {
    match luajit_cmd {
        "off" => &[FRONT, STOCK, (c"=assay/luajit", "jit.off()")],
        // `on` is the default, and there is nothing to flush in a new state.
        _ => &[FRONT, STOCK],
    }
}

/// The version whose interface this implements: `sysbench.version`, the banner, `--version`.
pub const VERSION: &str = "1.0.20";
