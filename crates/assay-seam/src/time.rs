//! Timestamps and durations of the measured path.
//!
//! `Nanos` is both: an instant is the time since the epoch of the run (chosen once by `assay-io`, the only
//! reader of a clock), a duration the difference of two instants.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Nanoseconds. Range: 0 … 584 years. Subtraction saturates at zero, addition at the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The epoch, or no time at all.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than every instant of a run.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// Whole microseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros.saturating_mul(1_000))
    }

    /// Whole milliseconds.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis.saturating_mul(1_000_000))
    }

    /// Whole seconds.
    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs.saturating_mul(1_000_000_000))
    }

    /// Seconds with a fraction; negative and not-a-number become zero.
    pub fn from_secs_f64(secs: f64) -> Nanos {
        Nanos((secs * 1e9) as u64)
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// In milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 1_000_000 => write!(f, "{} µs", n / 1_000),
            n if n < 1_000_000_000 => write!(f, "{} ms", n / 1_000_000),
            n => write!(f, "{} s", n as f64 / 1e9),
        }
    }
}
