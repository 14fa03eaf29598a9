//! What the kernel reports about the load generator's process and machine.
//!
//! Read between statements of a run, not during one: every call is at least one system call. A run works without any of
//! this, so what the kernel does not report is `None` or empty.

use std::fs::{self, File};
use std::io;
use std::ops::Sub;
use std::os::unix::fs::FileExt;

use assay_seam::Nanos;

/// What a process or thread has used since its start. The difference of two values is what was used in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in our own code. Resolution: 1 µs; the kernel estimates how user and system share the sum.
    pub user: Nanos,
    /// CPU time in the kernel on our behalf.
    pub system: Nanos,
    /// Times it gave up the CPU to wait for something.
    pub switches_voluntary: u64,
    /// Times the CPU was taken from it: somebody else wanted it.
    pub switches_involuntary: u64,
    /// The most memory the process ever had resident, in bytes (of the process even for a thread). Unchanged in
    /// differences.
    pub resident_bytes_max: u64,
}

impl Usage {
    /// Usage of all threads of this process, including ended ones.
    pub fn of_process() -> Usage {
        Usage::of(libc::RUSAGE_SELF)
    }

    /// Usage of the calling thread.
    pub fn of_thread() -> Usage {
        Usage::of(libc::RUSAGE_THREAD)
    }

    /// User and system.
    pub fn cpu(&self) -> Nanos {
        self.user + self.system
    }

    fn of(who: libc::c_int) -> Usage {
        // SAFETY: rusage is a plain C struct of integers, for which zeroes are a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is writable for the whole call.
        let result = unsafe { libc::getrusage(who, &mut usage) };
        assert_eq!(result, 0, "getrusage fails only for wrong arguments");
        let time = |time: libc::timeval| Nanos::from_secs(time.tv_sec as u64) + Nanos::from_micros(time.tv_usec as u64);
        Usage {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            switches_voluntary: usage.ru_nvcsw as u64,
            switches_involuntary: usage.ru_nivcsw as u64,
            resident_bytes_max: usage.ru_maxrss as u64 * 1024,
        }
    }
}

impl Sub for Usage {
    type Output = Usage;
    fn sub(self, earlier: Usage) -> Usage {
        Usage {
            user: self.user - earlier.user,
            system: self.system - earlier.system,
            switches_voluntary: self.switches_voluntary.saturating_sub(earlier.switches_voluntary),
            switches_involuntary: self.switches_involuntary.saturating_sub(earlier.switches_involuntary),
            resident_bytes_max: self.resident_bytes_max,
        }
    }
}

/// What the scheduler has counted for one thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// On a CPU. For a running thread it may be a timer tick old.
    pub ran: Nanos,
    /// Ready to run, while others had the CPUs.
    pub waited: Nanos,
}

impl Sub for Turns {
    type Output = Turns;
    fn sub(self, earlier: Turns) -> Turns {
        Turns { ran: self.ran - earlier.ran, waited: self.waited - earlier.waited }
    }
}

/// The scheduler's account of one thread, which any thread can read while the thread lives. Holds a file open.
#[derive(Debug)]
pub struct Scheduler(File);

impl Scheduler {
    /// For the calling thread; `None` if the kernel keeps none (no `CONFIG_SCHED_INFO`, no /proc).
    pub fn of_thread() -> Option<Scheduler> {
        let scheduler = Scheduler(File::open("/proc/thread-self/schedstat").ok()?);
        scheduler.turns().map(|_| scheduler)
    }

    /// Until now; `None` once the thread has ended.
    pub fn turns(&self) -> Option<Turns> {
        let mut text = [0; 64];
        let length = self.0.read_at(&mut text, 0).ok()?;
        turns_of(std::str::from_utf8(&text[..length]).ok()?)
    }
}

/// `454104845 730936852 144`: nanoseconds on a CPU, nanoseconds waited for one, turns. A kernel that counts nothing
/// returns zeroes, but a live thread has had at least one turn.
fn turns_of(schedstat: &str) -> Option<Turns> {
    let mut fields = schedstat.split_whitespace().map_while(|field| field.parse().ok());
    let (ran, waited, turns) = (fields.next()?, fields.next()?, fields.next()?);
    (turns > 0).then_some(Turns { ran: Nanos(ran), waited: Nanos(waited) })
}

/// Keeps up to 64 MiB of freed memory for the next use instead of returning it to the kernel: a run frees and needs
/// some MiB again in each interval, and a page returned costs a page fault and its zeroing. musl has no such setting.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets two thresholds of the allocator; no pointers are passed.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
        // Setting one of them ends glibc's own adjustment of both.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
    }
}

/// How many files and sockets this process may have open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesLimit {
    /// The current limit.
    pub soft: u64,
    /// How far `raise` can go.
    pub hard: u64,
}

impl FilesLimit {
    /// The current limits.
    pub fn get() -> io::Result<FilesLimit> {
        let limit = get_limit()?;
        Ok(FilesLimit { soft: limit.rlim_cur, hard: limit.rlim_max })
    }

    /// Raises the soft limit to the hard one, and returns the result. Needs no privilege.
    pub fn raise() -> io::Result<FilesLimit> {
        let mut limit = get_limit()?;
        if limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            // SAFETY: `limit` is readable for the whole call.
            if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        FilesLimit::get()
    }
}

fn get_limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable for the whole call.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

/// First and last local port that the kernel uses for outgoing TCP connections: limits how many can be open to one
/// address and port.
pub fn local_ports() -> Option<(u16, u16)> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ports = text.split_whitespace().map_while(|port| port.parse().ok());
    Some((ports.next()?, ports.next()?))
}

/// The machine, for the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Its name.
    pub name: String,
    /// For example `Linux 6.1.0-18-amd64`.
    pub kernel: String,
    /// Model of its CPUs, for example `AMD EPYC 7763 64-Core Processor`.
    pub cpu: String,
    /// CPUs that this process may use (affinity and cgroup quota count), at least 1.
    pub cpus: usize,
    /// Numbers of the CPUs that this process may run on, such as `0-3,6`.
    pub cpu_list: String,
    /// Main memory in bytes.
    pub memory_bytes: u64,
}

impl HostFacts {
    /// This one.
    pub fn get() -> HostFacts {
        let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let kernel = format!("{} {}", line("/proc/sys/kernel/ostype"), line("/proc/sys/kernel/osrelease"));
        HostFacts {
            name: line("/proc/sys/kernel/hostname"),
            kernel: kernel.trim().to_owned(),
            cpu: cpu_model(&line("/proc/cpuinfo")),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cpu_list: field(&line("/proc/self/status"), "Cpus_allowed_list").unwrap_or_default().to_owned(),
            memory_bytes: memory_bytes(&line("/proc/meminfo")),
        }
    }
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// x86 has a name. Arm has only numbers: `implementer 0x41 part 0xd0c`.
fn cpu_model(cpuinfo: &str) -> String {
    if let Some(name) = field(cpuinfo, "model name") {
        return name.to_owned();
    }
    match (field(cpuinfo, "CPU implementer"), field(cpuinfo, "CPU part")) {
        (Some(implementer), Some(part)) => format!("implementer {implementer} part {part}"),
        _ => field(cpuinfo, "cpu").unwrap_or_default().to_owned(),
    }
}

fn memory_bytes(meminfo: &str) -> u64 {
    let kilobytes = field(meminfo, "MemTotal").and_then(|value| value.strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the CPU busy until the calling thread has used that much of it.
    fn burn(time: Nanos) {
        let start = Usage::of_thread().cpu();
        while Usage::of_thread().cpu() - start < time {
            std::hint::black_box((0..1000).sum::<u64>());
        }
    }

    #[test]
    fn cpu_time_counts_for_the_thread_that_used_it_and_for_the_process() {
        let (process, thread) = (Usage::of_process(), Usage::of_thread());
        std::thread::spawn(|| burn(Nanos::from_millis(40))).join().unwrap();
        let (process, thread) = (Usage::of_process() - process, Usage::of_thread() - thread);
        assert!(process.cpu() >= Nanos::from_millis(40), "{process:?}");
        assert!(thread.cpu() < Nanos::from_millis(20), "{thread:?}");
        assert!(thread.switches_voluntary >= 1, "it waited for the other thread: {thread:?}");
        assert!(process.resident_bytes_max > 1 << 20, "{process:?}");
    }

    #[test]
    fn the_scheduler_tells_of_another_thread_that_it_ran_and_not_that_it_slept() {
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let scheduler = Scheduler::of_thread();
            burn(Nanos::from_millis(40));
            tell.send(scheduler).unwrap();
            let _ = stopped.recv();
        });
        let Some(scheduler) = told.recv().unwrap() else {
            assert!(fs::metadata("/proc/self/schedstat").is_err(), "the kernel would tell");
            drop(stop);
            return thread.join().unwrap();
        };
        let turns = || scheduler.turns().unwrap();
        // It goes to sleep a moment after sending.
        let mut before = turns();
        while turns() != before {
            before = turns();
        }
        assert!(before.ran >= Nanos::from_millis(30), "{before:?}");
        burn(Nanos::from_millis(10));
        assert!((turns() - before).ran < Nanos::from_millis(10), "{:?}", turns());
        drop(stop);
        thread.join().unwrap();
    }

    #[test]
    fn a_scheduler_that_counts_nothing_says_nothing() {
        let turns = Turns { ran: Nanos(454), waited: Nanos(730) };
        assert_eq!(turns_of("454 730 144\n"), Some(turns));
        assert_eq!(turns_of("0 0 0\n"), None);
        assert_eq!(turns_of("0 0 1\n"), Some(Turns::default()));
        assert_eq!(turns_of("454"), None);
        assert_eq!(turns_of(""), None);
        assert_eq!(turns - Turns { ran: Nanos(455), waited: Nanos(700) }, Turns { ran: Nanos(0), waited: Nanos(30) });
    }

    #[test]
    fn the_files_limit_can_be_raised_to_the_hard_one() {
        let before = FilesLimit::get().unwrap();
        let after = FilesLimit::raise().unwrap();
        assert_eq!((after.soft, after.hard), (before.hard, before.hard));
    }

    #[test]
    fn local_ports_are_a_range() {
        let (first, last) = local_ports().unwrap();
        assert!(first < last);
    }

    #[test]
    fn the_host_describes_itself() {
        let host = HostFacts::get();
        assert!(!host.name.is_empty() && host.kernel.starts_with("Linux ") && !host.cpu.is_empty(), "{host:?}");
        assert!(host.cpus >= 1 && host.memory_bytes > 1 << 28, "{host:?}");
    }

    #[test]
    fn processors_of_other_kinds_are_named_as_well_as_they_can_be() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"), "Some CPU @ 2 GHz");
        assert_eq!(cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"), "implementer 0x41 part 0xd0c");
        assert_eq!(cpu_model("cpu\t\t: POWER9\n"), "POWER9");
        assert_eq!(cpu_model(""), "");
        assert_eq!(memory_bytes("MemFree: 1 kB\nMemTotal:       2048 kB\n"), 2 << 20);
        assert_eq!(memory_bytes("nonsense"), 0);
    }
}
