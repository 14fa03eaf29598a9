//! Processor events of a server's threads.
//!
//! One counter per thread and event, opened when the thread is first seen. Groups of events that share the hardware are
//! extrapolated, step by step, from the time in which each was counted.

use std::collections::HashMap;
use std::io;

use assay_io::perf::{Counted, CountedEvent, EventGroup};

use super::sampler::Readings;

/// Events that are divided by each other are counted together. A group fits the counters of any processor.
const GROUPS: [&[(CountedEvent, &str)]; 3] = [
    &[(CountedEvent::Cycles, "cycles"), (CountedEvent::Instructions, "instructions")],
    &[(CountedEvent::DtlbLoadMisses, "dtlb_load_misses")],
    &[(CountedEvent::LlcLoadMisses, "llc_load_misses")],
];
const SOURCE: &str = "perf_event_open";
/// Each thread takes four open files.
const THREADS_MAX: usize = 128;

/// The counters of a server.
#[derive(Default)]
pub(super) struct Hardware {
    threads: HashMap<u32, Vec<Option<(EventGroup, Counted)>>>,
    sums: HashMap<&'static str, f64>,
    enabled_us: u64,
    running_us: u64,
    /// Why a group is not counted.
    refused: [Option<String>; 3],
}

impl Hardware {
    /// Reads the counters of these threads; new threads count from now on.
    pub(super) fn read(&mut self, threads: &[u32], readings: &mut Readings) {
        let lack = |group: &[(CountedEvent, &str)], readings: &mut Readings, reason: &str| {
            group.iter().for_each(|(_, metric)| readings.lack(metric, reason));
        };
        if threads.len() > THREADS_MAX {
            let reason = format!("the server has more than {THREADS_MAX} threads");
            return GROUPS.iter().for_each(|group| lack(group, readings, &reason));
        }
        // One last time for threads that have ended.
        let all: Vec<u32> = self.threads.keys().copied().collect();
        all.into_iter().for_each(|thread| self.advance(thread));
        self.threads.retain(|thread, _| threads.contains(thread));
        for thread in threads {
            if !self.threads.contains_key(thread) {
                let groups = (0..GROUPS.len()).map(|number| self.open(*thread, number)).collect();
                self.threads.insert(*thread, groups);
            }
        }
        for (number, group) in GROUPS.iter().enumerate() {
            match &self.refused[number] {
                Some(reason) => lack(group, readings, reason),
                None => {
                    for (_, metric) in *group {
                        readings.put(metric, SOURCE, self.sums.get(metric).copied().unwrap_or(0.0) as u64);
                    }
                }
            }
        }
        if self.refused.iter().any(Option::is_none) {
            readings.put("hardware_enabled_us", SOURCE, self.enabled_us);
            readings.put("hardware_running_us", SOURCE, self.running_us);
        }
    }

    fn open(&mut self, thread: u32, number: usize) -> Option<(EventGroup, Counted)> {
        if self.refused[number].is_some() {
            return None;
        }
        let events: Vec<CountedEvent> = GROUPS[number].iter().map(|(event, _)| *event).collect();
        match EventGroup::open(thread, &events) {
            Ok(group) => Some((group, Counted::default())),
            // It has just ended.
            Err(error) if error.raw_os_error() == Some(NO_SUCH_THREAD) => None,
            Err(error) => {
                self.refused[number] = Some(reason(&error));
                None
            }
        }
    }

    /// Adds what a thread's counters have counted since they were last read.
    fn advance(&mut self, thread: u32) {
        let groups = self.threads.get_mut(&thread).into_iter().flatten().enumerate();
        for (number, (group, before)) in groups.filter_map(|(number, group)| Some((number, group.as_mut()?))) {
            let Ok(now) = group.read() else { continue };
            let since = |now: u64, before: u64| now.saturating_sub(before);
            let enabled = since(now.enabled_ns, before.enabled_ns);
            let running = since(now.running_ns, before.running_ns);
            self.enabled_us += enabled / 1000;
            self.running_us += running / 1000;
            if running > 0 {
                let share = running as f64 / enabled as f64;
                for (at, (_, metric)) in GROUPS[number].iter().enumerate() {
                    let value = |of: &Counted| of.values.get(at).copied().unwrap_or(0);
                    *self.sums.entry(metric).or_default() += since(value(&now), value(before)) as f64 / share;
                }
                *before = now;
            }
        }
    }
}

/// ESRCH.
const NO_SUCH_THREAD: i32 = 3;

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "this event is not available, as often in virtual machines".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "perf_event_open is not permitted: /proc/sys/kernel/perf_event_paranoid, or the container's rules"
                .to_owned()
        }
        _ => format!("perf_event_open: {error}"),
    }
}
