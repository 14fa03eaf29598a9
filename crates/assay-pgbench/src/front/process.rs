//! The process behind the front. Output, files, clocks and signals go through here, so that only the program that
//! provides it knows them.

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use assay_engine::Control;
use assay_script::Library;
use assay_seam::{ConnectOptions, Database, Dialect};

/// What a program provides to the front.
pub trait Process: Debug + Send + Sync {
    /// Writes to standard output. False if that failed.
    fn print(&self, text: &str) -> bool;

    /// Writes to standard error.
    fn complain(&self, text: &str);

    /// The same, as a function of its own.
    fn complainer(&self) -> fn(&str);

    /// The content of a file; `-` is standard input.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Creates a file that grows during a run.
    fn create(&self, path: &str) -> io::Result<Box<dyn Write>>;

    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// The number of the process.
    fn id(&self) -> u32;

    /// Ends the process.
    fn exit(&self, code: i32) -> !;

    /// What stops a run early.
    fn control(&self) -> &'static Control;

    /// Time since some instant before the front was called.
    fn elapsed(&self) -> Duration;

    /// Unix time.
    fn unix_time(&self) -> Duration;

    /// A seed that is different each time.
    fn seed(&self) -> u64;

    /// Parses a database's URL, completed from the environment; or why it cannot be used.
    fn open(&self, url: &str, options: &ConnectOptions) -> Result<Box<dyn Database>, String>;

    /// The kind of database with this name.
    fn dialect(&self, name: &'static str) -> Dialect;

    /// Built-in modules and files.
    fn library(&self) -> &'static Arc<Library>;
}
