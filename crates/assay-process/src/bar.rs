//! The progress line on a terminal, updated ten times a second.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use assay_record::Interval;
use assay_report::Progress;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::terminal;

/// The line. It disappears when this is dropped.
pub struct Bar {
    bar: ProgressBar,
    shown: Arc<Mutex<Shown>>,
}

/// What is drawn: a progress at an instant.
struct Shown {
    progress: Progress,
    at: Instant,
}

impl Bar {
    /// Draws `progress` from now on; `None` if nobody would see it.
    pub fn begin(progress: Progress) -> Option<Bar> {
        if !terminal::stderr_is_terminal() {
            return None;
        }
        let shown = Arc::new(Mutex::new(Shown { progress, at: Instant::now() }));
        let drawn = Arc::clone(&shown);
        let line = move |_: &ProgressState, out: &mut dyn Write| {
            let shown = locked(&drawn);
            let gone = u64::try_from(shown.at.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let elapsed_ns = shown.progress.elapsed_ns.saturating_add(gone);
            let progress = Progress { elapsed_ns, ..shown.progress.clone() };
            let _ = out.write_str(&assay_report::progress_line(&progress, terminal::stderr_view()));
        };
        let style = ProgressStyle::with_template("{line}").expect("the template is a constant").with_key("line", line);
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.enable_steady_tick(Duration::from_millis(100));
        Some(Bar { bar, shown })
    }

    /// Changes what is drawn; elapsed time continues from the instant of the last update.
    pub fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut locked(&self.shown).progress);
    }

    /// An interval is over.
    pub fn add(&self, interval: &Interval) {
        let findings = assay_report::interval_findings(interval);
        let p99_ns = findings.response.p99_ns.or(findings.response.max_ns);
        self.change(|progress| progress.add(findings.tps, p99_ns, findings.errors));
    }

    /// The elapsed time at the last update.
    pub fn elapsed_ns(&self) -> u64 {
        locked(&self.shown).progress.elapsed_ns
    }

    /// Sets the elapsed time.
    pub fn set_elapsed(&self, elapsed_ns: u64) {
        let mut shown = locked(&self.shown);
        (shown.progress.elapsed_ns, shown.at) = (elapsed_ns, Instant::now());
    }

    /// Writes something above the line.
    pub fn above(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// No holder of the lock can leave it half changed.
fn locked(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
