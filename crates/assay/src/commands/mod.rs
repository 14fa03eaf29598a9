//! One file per subcommand, each with one `run`.

pub mod agent;
pub mod check;
pub mod child;
pub mod cleanup;
pub mod compare;
pub mod completions;
pub mod duel;
pub mod exec;
pub mod fleet;
pub mod io;
pub mod kill_check;
pub mod lab;
pub mod list;
pub mod manual;
mod next;
pub mod pgbench;
pub mod prepare;
pub mod report;
pub mod run;
pub mod server;
pub mod show;
pub mod sql;
pub mod sysbench;
pub mod tag;
mod trials;
