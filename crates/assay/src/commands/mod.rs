//! One file per subcommand, each with one `run`.

mod trials;

pub mod agent;
pub mod bisect;
pub mod child;
pub mod compare;
pub mod completions;
pub mod db;
pub mod duel;
pub mod explain;
pub mod fleet;
pub mod history;
pub mod io;
pub mod lab;
pub mod library;
pub mod list;
pub mod lua;
pub mod manual;
pub mod new;
pub mod note;
pub mod olap;
pub mod pgbench;
pub mod report;
pub mod run;
pub mod schema;
pub mod serve;
pub mod server;
pub mod show;
pub mod sql;
pub mod sysbench;
pub mod tag;
pub mod top;
