//! Waiting with a timeout, and measuring durations.
//!
//! The only clock of this crate. It is not on the measured path: servers are started before a trial and stopped after
//! it.

use std::time::{Duration, Instant, SystemTime};

/// How long something took so far.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Asks until there is an answer, with pauses from 2 ms to 100 ms, for at most `patience`; `None` if there is none by
/// then. Asks at least once. An error ends the wait.
pub fn until<T, E>(patience: Duration, mut question: impl FnMut() -> Result<Option<T>, E>) -> Result<Option<T>, E> {
    let watch = Stopwatch::start();
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(answer) = question()? {
            return Ok(Some(answer));
        }
        if watch.elapsed() >= patience {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

/// The current time of day.
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
