//! `assay pgbench …`: pgbench's command line, reports, log files and exit codes. Also what the binary does when it is
//! called `pgbench`.
//!
//! Everything specific to pgbench is in assay-pgbench; this file provides the process.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use assay_engine::Control;
use assay_pgbench::front::{self, Process};
use assay_process::diagnostics::Trouble;
use assay_process::interrupt;
use assay_process::terminal;
use assay_run::{library, plan, registry};
use assay_script::Library;
use assay_seam::{ConnectOptions, Database, Dialect};

use crate::signals;

/// Runs a command line, starting with the program's name.
pub fn run(words: Vec<String>) -> Result<ExitCode, Trouble> {
    signals::stop_listening()?;
    // Leaked on purpose.
    let process: &'static ThisProcess = Box::leak(Box::new(ThisProcess { started: Instant::now() }));
    Ok(front::run(process, &words).into())
}

/// What the front gets.
#[derive(Debug)]
struct ThisProcess {
    started: Instant,
}

impl Process for ThisProcess {
    fn print(&self, text: &str) -> bool {
        terminal::result(text).is_ok()
    }

    fn complain(&self, text: &str) {
        terminal::say(text);
    }

    fn complainer(&self) -> fn(&str) {
        terminal::say
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        if path != "-" {
            return assay_record::read_file(path.as_ref(), assay_record::LISTED_BYTES_MAX);
        }
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn Write>> {
        Ok(Box::new(BufWriter::new(File::create(path)?)))
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn id(&self) -> u32 {
        process::id()
    }

    fn exit(&self, code: i32) -> ! {
        process::exit(code)
    }

    fn control(&self) -> &'static Control {
        interrupt::control()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn unix_time(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn seed(&self) -> u64 {
        plan::random_seed()
    }

    fn open(&self, url: &str, options: &ConnectOptions) -> Result<Box<dyn Database>, String> {
        registry::open(url, options).map_err(|trouble| trouble.cause)
    }

    fn dialect(&self, name: &'static str) -> Dialect {
        assay_products::dialect(name)
    }

    fn library(&self) -> &'static Arc<Library> {
        library::library()
    }
}
