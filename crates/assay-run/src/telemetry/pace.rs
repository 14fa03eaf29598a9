//! How often to read what costs more, the larger a server is.

use assay_io::process::Usage;
use assay_seam::Nanos;

/// Keeps readings to a part of the time, by the CPU time that each takes: a busy machine makes them wait, not rarer.
pub(super) struct Pace {
    share: u64,
    due: Nanos,
}

impl Pace {
    /// At most one part in `share` of a CPU.
    pub(super) fn new(share: u64) -> Pace {
        Pace { share, due: Nanos::ZERO }
    }

    /// Reads if it is due at `now`.
    pub(super) fn keep<T>(&mut self, now: Nanos, read: impl FnOnce() -> T) -> Option<T> {
        if now < self.due {
            return None;
        }
        let before = Usage::of_thread().cpu();
        let found = read();
        let took = Usage::of_thread().cpu() - before;
        self.due = now + Nanos(took.0.saturating_mul(self.share));
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_read_rarely() {
        let mut pace = Pace::new(100);
        let work = || {
            let before = Usage::of_thread().cpu();
            while Usage::of_thread().cpu() - before < Nanos::from_millis(1) {}
        };
        assert!(pace.keep(Nanos(1), work).is_some());
        assert!(pace.keep(Nanos::from_millis(99), work).is_none());
        // A minute is enough for 100 times what that took on any machine.
        assert!(pace.keep(Nanos::from_secs(60), || ()).is_some());
    }
}
