//! Processor events of a thread: perf_event_open(2).
//!
//! Events of a group are counted during the same time, so that they may be divided by each other. If more groups are
//! open than the processor has counters, the kernel rotates them and reports for how long each was counted.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An event to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedEvent {
    /// Cycles of the processor.
    Cycles,
    /// Retired instructions.
    Instructions,
    /// Loads that missed the TLB for data.
    DtlbLoadMisses,
    /// Loads that missed the last level of cache.
    LlcLoadMisses,
    /// Page faults, counted by the kernel: available on machines without counters, too.
    PageFaults,
}

/// Events of a thread that are counted together, from now on.
#[derive(Debug)]
pub struct EventGroup {
    /// In the order requested; the first leads.
    files: Vec<File>,
}

/// What a group has counted since it was created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Time for which it was enabled and the thread had a CPU.
    pub enabled_ns: u64,
    /// Time for which it was counted. `running_ns <= enabled_ns`
    pub running_ns: u64,
    /// In the order requested.
    pub values: Vec<u64>,
}

/// The first version of `struct perf_event_attr`, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// PERF_FORMAT_TOTAL_TIME_ENABLED, _RUNNING and _GROUP.
const READ_FORMAT: u64 = 1 | 2 | 8;
/// `exclude_kernel` and `exclude_hv`.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 8;

impl CountedEvent {
    /// Type and config, as in `linux/perf_event.h`.
    fn code(self) -> (u32, u64) {
        const MISSES_OF_LOADS: u64 = 1 << 16;
        match self {
            CountedEvent::Cycles => (0, 0),
            CountedEvent::Instructions => (0, 1),
            CountedEvent::DtlbLoadMisses => (3, 3 | MISSES_OF_LOADS),
            CountedEvent::LlcLoadMisses => (3, 2 | MISSES_OF_LOADS),
            CountedEvent::PageFaults => (1, 2),
        }
    }
}

impl EventGroup {
    /// Starts counting for a thread, in the kernel too if permitted. Fails if the processor, the hypervisor or the
    /// kernel does not allow it: `NotFound` means a machine without such counters.
    pub fn open(thread: u32, events: &[CountedEvent]) -> io::Result<EventGroup> {
        match EventGroup::open_with(thread, events, 0) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                EventGroup::open_with(thread, events, USER_ONLY)
            }
            result => result,
        }
    }

    fn open_with(thread: u32, events: &[CountedEvent], flags: u64) -> io::Result<EventGroup> {
        let mut files: Vec<File> = Vec::new();
        for event in events {
            let (kind, config) = event.code();
            let size = size_of::<Attributes>() as u32;
            let attributes =
                Attributes { kind, size, config, flags, read_format: READ_FORMAT, ..Attributes::default() };
            let leader = files.first().map_or(-1, |file| file.as_raw_fd());
            // SAFETY: `attributes` is readable for the whole call and contains its own size; the other arguments are
            // numbers.
            let file = unsafe {
                libc::syscall(
                    libc::SYS_perf_event_open,
                    &raw const attributes,
                    thread as libc::pid_t,
                    -1 as libc::c_int,
                    leader,
                    CLOSE_ON_EXEC,
                )
            };
            if file < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
            files.push(File::from(unsafe { OwnedFd::from_raw_fd(file as libc::c_int) }));
        }
        Ok(EventGroup { files })
    }

    /// Counts so far; also for a thread that has ended.
    pub fn read(&self) -> io::Result<Counted> {
        let mut bytes = vec![0; 8 * (3 + self.files.len())];
        let Some(mut leader) = self.files.first() else { return Ok(Counted::default()) };
        leader.read_exact(&mut bytes)?;
        let mut words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
        let mut word = || words.next().unwrap_or(0);
        let (count, enabled_ns, running_ns) = (word(), word(), word());
        Ok(Counted { enabled_ns, running_ns, values: (0..count).map(|_| word()).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Software events: a virtual machine often lacks those of the processor.
    #[test]
    fn what_the_kernel_counts_for_this_thread_grows() {
        // Only the leader's count is checked: kernels (Linux 6.18 for one) report zero for software events after it.
        let group = match EventGroup::open(0, &[CountedEvent::PageFaults, CountedEvent::PageFaults]) {
            Ok(group) => group,
            Err(error) => {
                testkit::refused(&format!("perf_event_open: {error}"));
                return;
            }
        };
        let before = group.read().unwrap();
        // Every page of it is new.
        let pages = vec![1u8; 1 << 22];
        assert_eq!(pages.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 1 << 22);
        let after = group.read().unwrap();
        assert_eq!(after.values.len(), 2);
        assert!(after.values[0] > before.values[0], "{before:?} {after:?}");
        assert!(after.enabled_ns > before.enabled_ns && after.running_ns <= after.enabled_ns, "{after:?}");
    }
}
