//! What a run tells the experiment that started it, while it goes on: one line per event, in a file.
//!
//! `assay lab` shows it, and starts the steps beside the run by it. Both are processes of one machine, so instants are
//! those of its wall clock.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::diagnostics::Trouble;

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told {
    /// A stage is measured from this instant on, which may be still to come: nanoseconds since 1970.
    MeasuredFrom(u64),
    /// An interval of the run is over.
    Interval {
        /// Transactions per second.
        tps: f64,
        /// Of response times; `None`: no transaction ended.
        p99_ns: Option<u64>,
        /// In this interval.
        errors: u64,
    },
}

impl Told {
    fn line(self) -> String {
        match self {
            Told::MeasuredFrom(unix_ns) => format!("measured_from {unix_ns}\n"),
            Told::Interval { tps, p99_ns, errors } => {
                let p99 = p99_ns.map_or("-".to_owned(), |ns| ns.to_string());
                format!("interval {tps} {p99} {errors}\n")
            }
        }
    }

    fn of_line(line: &str) -> Option<Told> {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["measured_from", unix_ns] => Some(Told::MeasuredFrom(unix_ns.parse().ok()?)),
            ["interval", tps, p99, errors] => {
                Some(Told::Interval { tps: tps.parse().ok()?, p99_ns: p99.parse().ok(), errors: errors.parse().ok()? })
            }
            _ => None,
        }
    }
}

/// The end of the run.
pub struct Relay(File);

impl Relay {
    /// Makes the file.
    pub fn create(path: &Path) -> Result<Relay, Trouble> {
        let made = File::create(path);
        made.map(Relay).map_err(|error| Trouble::environment(format!("cannot write {}: {error}", path.display())))
    }

    /// Tells it. What cannot be written is lost: the run is worth more.
    pub fn tell(&mut self, told: Told) {
        let _ = self.0.write_all(told.line().as_bytes());
    }

    /// A stage is measured from now on, or from `ahead` of now on.
    pub fn measures(&mut self, ahead: Duration) {
        self.tell(Told::MeasuredFrom(nanos(since_1970() + ahead)));
    }
}

/// The end of the experiment.
pub struct Listener {
    path: PathBuf,
    read: u64,
}

impl Listener {
    /// Of a file that the run is still to make.
    pub fn new(path: &Path) -> Listener {
        Listener { path: path.to_owned(), read: 0 }
    }

    /// What was told since the last time.
    pub fn news(&mut self) -> Vec<Told> {
        let mut text = String::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_string(&mut text)
        });
        // The last line may be on its way.
        let Some(whole) = read.ok().and_then(|_| text.rfind('\n')) else { return Vec::new() };
        self.read += whole as u64 + 1;
        text[..whole].lines().filter_map(Told::of_line).collect()
    }
}

/// The same instant on the clock of this process.
pub fn instant(unix_ns: u64) -> Instant {
    let (now, at) = (since_1970(), Duration::from_nanos(unix_ns));
    match at.checked_sub(now) {
        Some(ahead) => Instant::now() + ahead,
        None => Instant::now().checked_sub(now - at).unwrap_or_else(Instant::now),
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("relay");
        let mut listener = Listener::new(&path);
        assert_eq!(listener.news(), []);
        let mut relay = Relay::create(&path).unwrap();
        relay.tell(Told::MeasuredFrom(5));
        let interval = Told::Interval { tps: 2.5, p99_ns: None, errors: 1 };
        let line = interval.line();
        relay.0.write_all(&line.as_bytes()[..7]).unwrap();
        assert_eq!(listener.news(), [Told::MeasuredFrom(5)]);
        assert_eq!(listener.news(), []);
        relay.0.write_all(&line.as_bytes()[7..]).unwrap();
        assert_eq!(listener.news(), [interval]);
    }
}
