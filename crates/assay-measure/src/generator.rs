//! The load generator's own use of resources.

use serde::{Deserialize, Serialize};

use crate::add_to;

/// The load generator's own use of resources during a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generator {
    /// CPU time of the process outside the kernel.
    pub cpu_user_ns: u64,
    /// CPU time of the process in the kernel.
    pub cpu_system_ns: u64,
    /// Involuntary context switches: the kernel took the CPU away.
    pub switches_involuntary: u64,
    /// Voluntary ones: we waited.
    pub switches_voluntary: u64,
    /// Turns of the workers' event loops.
    pub turns: u64,
    /// Events handled in them.
    pub events: u64,
    /// How long the workers were ready to run but waited for a CPU, in total; `None`: not known.
    #[serde(default)]
    pub cpu_wait_ns: Option<u64>,
    /// Share of the measured time, in millionths, that the worker with the longest wait waited for a CPU. <= 1,000,000
    #[serde(default)]
    pub longest_wait_ppm: Option<u32>,
    /// Share of the measured time, in millionths, that the busiest worker was neither asleep nor polling in vain. <=
    /// 1,000,000
    pub busiest_worker_ppm: u32,
    /// Worker threads.
    pub workers: u32,
    /// Largest resident set of the process so far.
    pub memory_max_bytes: u64,
}

impl Generator {
    /// All of `parts`, which are processes that share a run; the busiest worker is the busiest of all.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a Generator>) -> Generator {
        let mut sum = Generator { cpu_wait_ns: Some(0), ..Generator::default() };
        for part in parts {
            add_to(&mut sum.cpu_user_ns, part.cpu_user_ns);
            add_to(&mut sum.cpu_system_ns, part.cpu_system_ns);
            add_to(&mut sum.switches_involuntary, part.switches_involuntary);
            add_to(&mut sum.switches_voluntary, part.switches_voluntary);
            add_to(&mut sum.turns, part.turns);
            add_to(&mut sum.events, part.events);
            sum.cpu_wait_ns = sum.cpu_wait_ns.zip(part.cpu_wait_ns).map(|(ours, theirs)| ours.saturating_add(theirs));
            sum.longest_wait_ppm = sum.longest_wait_ppm.max(part.longest_wait_ppm);
            sum.busiest_worker_ppm = sum.busiest_worker_ppm.max(part.busiest_worker_ppm);
            sum.workers = sum.workers.saturating_add(part.workers);
            add_to(&mut sum.memory_max_bytes, part.memory_max_bytes);
        }
        sum
    }
}
