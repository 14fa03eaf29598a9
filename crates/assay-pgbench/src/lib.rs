//! pgbench's command line, scripts and reports, in the form that existing wrappers and parsers expect.
//!
//! Text in, text out. `arguments` parses the command line; `script` splits a script into commands, `expression` parses
//! expressions of `\set`, and `program` generates Lua that does the same; `report` and `log` format numbers like
//! pgbench 15; `front` combines them. It prints, opens and reads nothing: the program that provides the
//! `front::Process` does.

#![forbid(unsafe_code)]

use std::ffi::CStr;

pub mod arguments;
pub mod builtin;
pub mod expression;
pub mod front;
mod fuzz;
pub mod help;
pub mod log;
pub mod program;
pub mod report;
pub mod script;

pub use arguments::{Arguments, Mode, RefusedArguments};
pub use fuzz::fuzz_script;
pub use program::{PgbenchFront, builtin_workloads, check_parameters, compile, workload};
pub use script::{Command, Script, ScriptError};

/// pgbench's own part of what sessions see, in Lua: for `assay_script::PgbenchFront::overlay`.
pub const OVERLAY: &[(&CStr, &str)] = &[(c"=assay/pgbench", include_str!("lua/front.lua"))];

/// Lua modules that compiled scripts need, by name: values and functions of expressions; clients; what happens before a
/// run, and initialization.
pub const MODULES: &[(&str, &str)] = &[
    ("pgbench_runtime", include_str!("lua/runtime.lua")),
    ("pgbench_client", include_str!("lua/client.lua")),
    ("pgbench_setup", include_str!("lua/setup.lua")),
];

/// The version whose interface this implements: the banner, `--version`.
pub const VERSION: &str = "15.18";
