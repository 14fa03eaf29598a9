//! One file per subcommand, each with one `run`.

pub mod agent;
pub mod child;
pub mod compare;
pub mod completions;
pub mod duel;
pub mod fleet;
pub mod io;
pub mod lab;
pub mod list;
pub mod manual;
pub mod pgbench;
pub mod report;
pub mod run;
pub mod server;
pub mod show;
pub mod sql;
pub mod sysbench;
pub mod tag;
mod trials;
