//! Timers, one per owner: setting a new one cancels the previous one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use assay_seam::Nanos;

/// See the module. Owners are numbers; each keeps the serial of the alarm that counts.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<TimerEntry>>,
    serials: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TimerEntry {
    at: Nanos,
    /// Order of setting: equal instants fire in this order.
    serial: u64,
    owner: usize,
}

impl Timers {
    /// When the next alarm fires; `MAX` without one.
    pub(super) fn next(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |Reverse(timer)| timer.at)
    }

    /// Sets an alarm and returns its serial, never 0.
    pub(super) fn set(&mut self, at: Nanos, owner: usize) -> u64 {
        self.serials += 1;
        self.heap.push(Reverse(TimerEntry { at, serial: self.serials, owner }));
        self.serials
    }

    /// Takes an alarm that is due: its owner and serial.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<(usize, u64)> {
        let Reverse(timer) = self.heap.peek().filter(|Reverse(timer)| timer.at <= now)?;
        let due = (timer.owner, timer.serial);
        self.heap.pop();
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_fire_in_the_order_of_their_instants_then_of_their_setting() {
        let mut timers = Timers::default();
        let late = timers.set(Nanos(20), 1);
        let first = timers.set(Nanos(10), 2);
        let second = timers.set(Nanos(10), 3);
        assert_eq!(timers.next(), Nanos(10));
        assert_eq!(timers.take_due(Nanos(9)), None);
        assert_eq!(timers.take_due(Nanos(15)), Some((2, first)));
        assert_eq!(timers.take_due(Nanos(15)), Some((3, second)));
        assert_eq!((timers.take_due(Nanos(15)), timers.next()), (None, Nanos(20)));
        assert_eq!(timers.take_due(Nanos(20)), Some((1, late)));
        assert_eq!(timers.next(), Nanos::MAX);
    }
}
