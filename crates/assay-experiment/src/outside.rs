//! Interference with a trial from outside: by anything but its servers and its load.
//!
//! The kernel is asked before and after the load. Servers and load are descendants of this process; what the other
//! processes used is what their own counters say, so that the kernel's work for the load is not taken for theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use assay_run::telemetry::throttled_us;
use assay_telemetry::procfs;
use nix::errno::Errno;
use nix::libc::O_NONBLOCK;

/// CPU time of other processes that disturbs, as a share of the machine's.
const OTHERS: f64 = 0.05;
/// CPU time that the hypervisor gives to other machines, as a share. Some is withheld from a virtual machine with busy
/// neighbors all the time: repeating its trials would not help.
const STOLEN: f64 = 0.2;
/// Time for which our control group had used up its CPU limit, as a share of the time.
const THROTTLED: f64 = 0.01;
/// Pages per second. A few are what nobody had needed for long.
const SWAPPED: f64 = 100.0;
/// Kernel messages of this level or a lower one are errors: KERN_ERR in linux/kern_levels.h.
const ERROR: u32 = 3;

/// What the counters were before the load.
pub(crate) struct Outside {
    begun: Instant,
    before: Readings,
    /// At its end; `None`: not readable.
    messages: Option<File>,
    servers_are_ours: bool,
}

/// Counters at one time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Readings {
    /// CPU time of the machine in ticks: all of it, idle or not.
    ticks: u64,
    /// What the hypervisor withheld of it.
    stolen: u64,
    /// Pages swapped in and out.
    swapped: u64,
    throttled_us: u64,
    /// Processes that are not ours, without the kernel's threads, by process id and start time.
    others: BTreeMap<(u32, u64), Other>,
}

/// A process.
#[derive(Clone, Debug, PartialEq)]
struct Other {
    name: String,
    parent: u32,
    /// CPU time with that of its children that have ended.
    ticks: u64,
}

/// A file /proc/PID/stat.
struct Stat {
    pid: u32,
    started: u64,
    process: Other,
}

impl Outside {
    /// Starts looking. `servers_are_ours`: the trial has started all of them; processes of others may serve the load.
    pub(crate) fn look(servers_are_ours: bool) -> Outside {
        let messages = File::options().read(true).custom_flags(O_NONBLOCK).open("/dev/kmsg").ok();
        let messages = messages.and_then(|mut file| file.seek(SeekFrom::End(0)).is_ok().then_some(file));
        Outside { begun: Instant::now(), before: Readings::now(std::process::id()), messages, servers_are_ours }
    }

    /// What has happened since, in words; nothing if nothing disturbed.
    pub(crate) fn since(self) -> Vec<String> {
        let mut after = Readings::now(std::process::id());
        if !self.servers_are_ours {
            after.others.clear();
        }
        let mut all = self.before.until(&after, self.begun.elapsed());
        all.extend(self.messages.and_then(error_in).map(|message| format!("the kernel reported: {message}")));
        all
    }
}

impl Readings {
    /// `own`: the process whose descendants are ours, and itself.
    fn now(own: u32) -> Readings {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let stat = read("/proc/stat");
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        // Guest times are in the first two.
        let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|ticks| ticks.parse().ok()).collect();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats = processes.filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            stat_of(&read(&format!("/proc/{pid}/stat")))
        });
        let stats: Vec<Stat> = stats.collect();
        let ours = stats.iter().map(|stat| stat.pid).filter(|pid| *pid == own || is_owned(*pid, own)).collect();
        Readings {
            ticks: ticks.iter().sum(),
            stolen: ticks.get(7).copied().unwrap_or(0),
            swapped: procfs::swapped(&read("/proc/vmstat")).unwrap_or(0),
            throttled_us: throttled_us().unwrap_or(0),
            others: others(stats, &ours),
        }
    }

    fn until(&self, after: &Readings, elapsed: Duration) -> Vec<String> {
        let mut words = Vec::new();
        let ticks = after.ticks.saturating_sub(self.ticks).max(1) as f64;
        let by_name = self.by_name(after);
        let used = (by_name.values().sum::<i64>() as f64 / ticks).min(1.0);
        if used >= OTHERS {
            let most = by_name.iter().max_by_key(|(_, ticks)| **ticks).map_or("", |(name, _)| name);
            words.push(format!("other processes used {} of the CPU time, most of it {most}", whole_percent(used)));
        }
        let stolen = after.stolen.saturating_sub(self.stolen) as f64 / ticks;
        if stolen >= STOLEN {
            words.push(format!("the hypervisor withheld {} of the CPU time", whole_percent(stolen)));
        }
        let seconds = elapsed.as_secs_f64();
        let throttled = after.throttled_us.saturating_sub(self.throttled_us) as f64 / 1e6 / seconds;
        if throttled >= THROTTLED {
            words.push(format!("the CPU limit of the control group held for {} of the time", whole_percent(throttled)));
        }
        let swapped = after.swapped.saturating_sub(self.swapped) as f64 / seconds;
        if swapped >= SWAPPED {
            words.push(format!("the machine swapped {swapped:.0} pages per second"));
        }
        words
    }

    /// The parent, its parent, and so on, as far as they are others.
    fn ancestors<'a>(&'a self, process: &'a Other) -> impl Iterator<Item = &'a (u32, u64)> {
        let parent = |process: &Other| self.others.iter().find(|((pid, _), _)| *pid == process.parent);
        // Bounded, should ids form a loop.
        let chain = std::iter::successors(parent(process), move |(_, process)| parent(process));
        chain.take(self.others.len()).map(|(key, _)| key)
    }

    /// CPU time of other processes in between.
    fn by_name<'a>(&'a self, after: &'a Readings) -> BTreeMap<&'a str, i64> {
        let mut all = BTreeMap::new();
        let mut add = |process: &'a Other, ticks: i64| *all.entry(process.name.as_str()).or_default() += ticks;
        for (key, process) in &after.others {
            let before = self.others.get(key).map_or(0, |before| before.ticks);
            add(process, process.ticks as i64 - before as i64);
        }
        // What a process had used before, its parent counts when it has ended, or the parent's parent.
        for (_, ended) in self.others.iter().filter(|(key, _)| !after.others.contains_key(key)) {
            let heir = self.ancestors(ended).find_map(|key| after.others.get(key));
            if let Some(heir) = heir {
                add(heir, -(ended.ticks as i64));
            }
        }
        all
    }
}

/// The variable by which what a step has left running is known: the process of the experiment.
pub(crate) const OWNER: &str = "ASSAY_EXPERIMENT_PID";

/// Whether a step of ours has started it, such as an agent, whose parent has ended.
fn is_owned(pid: u32, own: u32) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let wanted = format!("{OWNER}={own}");
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

/// Those that are neither `own` and their descendants, nor process 1, which counts what orphans of ours have used.
fn others(stats: Vec<Stat>, own: &BTreeSet<u32>) -> BTreeMap<(u32, u64), Other> {
    let parents: BTreeMap<u32, u32> = stats.iter().map(|stat| (stat.pid, stat.process.parent)).collect();
    let is_ours = |pid: u32| {
        // Bounded: ids may be reused while they are read, and then form a loop.
        let mut chain = std::iter::successors(Some(pid), |pid| parents.get(pid).copied()).take(parents.len() + 1);
        chain.any(|pid| own.contains(&pid))
    };
    let is_other = |stat: &Stat| stat.pid != 1 && !is_ours(stat.pid);
    stats.into_iter().filter(is_other).map(|stat| ((stat.pid, stat.started), stat.process)).collect()
}

/// The flag of the kernel's own threads: PF_KTHREAD in linux/sched.h.
const KERNEL: u64 = 0x0020_0000;

/// `None`: a thread of the kernel, or unreadable. Source: proc_pid_stat(5); fields are counted from 1.
fn stat_of(text: &str) -> Option<Stat> {
    // The name is in parentheses and may contain anything.
    let (pid, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    if field(9)? & KERNEL != 0 {
        return None;
    }
    // utime, stime, cutime, cstime.
    let ticks = [14, 15, 16, 17].into_iter().filter_map(field).sum();
    let process = Other { name: name.to_owned(), parent: field(4)? as u32, ticks };
    Some(Stat { pid: pid.parse().ok()?, started: field(22)?, process })
}

fn whole_percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// The first error among the messages; each read returns one. Source: Documentation/ABI/testing/dev-kmsg.
fn error_in(mut messages: File) -> Option<String> {
    let mut buffer = [0; 8192];
    loop {
        let length = match messages.read(&mut buffer) {
            // Overwritten before it was read: the next one follows.
            Err(error) if error.raw_os_error() == Some(Errno::EPIPE as i32) => continue,
            Err(_) | Ok(0) => return None,
            Ok(length) => length,
        };
        if let Some(message) = error_of(&String::from_utf8_lossy(&buffer[..length])) {
            return Some(message);
        }
    }
}

/// The text of `3,339,5140900,-;sda: write error`; `None`: not an error, or not from the kernel itself.
fn error_of(record: &str) -> Option<String> {
    let (head, text) = record.split_once(';')?;
    let priority: u32 = head.split(',').next()?.parse().ok()?;
    let (facility, level) = (priority >> 3, priority & 7);
    (facility == 0 && level <= ERROR).then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn stat(pid: u32, name: &str, parent: u32, ticks: u64) -> Stat {
        Stat { pid, started: 7, process: Other { name: name.to_owned(), parent, ticks } }
    }

    #[test]
    fn processes_are_read_as_the_kernel_writes_them() {
        let text = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 0 0 100 20 3 4 20 0 1 0 999 1 2\n";
        let found = stat_of(text).unwrap();
        assert_eq!((found.pid, found.started), (42, 999));
        assert_eq!(found.process, Other { name: "a) b (c".into(), parent: 7, ticks: 127 });
        assert!(stat_of("").is_none() && stat_of("42 (a) S 7").is_none());
        let kernel = "2 (kthreadd) S 0 0 0 0 -1 2129984 1 2 0 0 100 20 3 4 20 0 1 0 1 0 0\n";
        assert!(stat_of(kernel).is_none());
    }

    #[test]
    fn only_what_is_not_ours_is_other() {
        let all = || {
            vec![
                stat(1, "init", 0, 1),
                stat(40, "sh", 1, 1),
                stat(50, "assay", 40, 1),
                stat(51, "postgres", 50, 1),
                stat(52, "postgres", 51, 1),
                stat(60, "rustc", 40, 1),
            ]
        };
        let pids: Vec<u32> = others(all(), &[50].into()).into_keys().map(|(pid, _)| pid).collect();
        assert_eq!(pids, [40, 60]);
        // A loop, of ids that changed meanwhile, ends.
        assert_eq!(others(vec![stat(8, "a", 9, 1), stat(9, "b", 8, 1)], &[50].into()).len(), 2);
    }

    /// Its parent may have ended: only the variable tells.
    #[test]
    fn what_a_step_has_started_is_known_by_its_environment() {
        use std::io::{Read, Write};
        use std::process::{Command, Stdio};
        let is_known = |value: &str| {
            let mut cat = Command::new("cat");
            cat.env(OWNER, value).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut started = cat.spawn().unwrap();
            // Before its first answer it may still be on its way from the old program to the new one.
            started.stdin.as_mut().unwrap().write_all(b"x").unwrap();
            started.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            let known = is_owned(started.id(), 50);
            drop(started.stdin.take());
            started.wait().unwrap();
            known
        };
        assert!(is_known("50") && !is_known("501") && !is_known(""));
    }

    #[test]
    fn interference_is_what_used_the_machine_meanwhile() {
        let readings =
            |ticks, stats: Vec<Stat>| Readings { ticks, others: others(stats, &[50].into()), ..Readings::default() };
        let second = Duration::from_secs(1);
        let before = readings(1000, vec![stat(40, "make", 1, 10), stat(60, "rustc", 40, 500), stat(70, "cron", 1, 3)]);
        assert_eq!(before.until(&readings(1200, Vec::new()), second), [""; 0]);
        // The compiler's end gives 500 ticks of before and 4 new ones to its parent; another one is new.
        let few = vec![stat(40, "make", 1, 514), stat(70, "cron", 1, 3), stat(80, "cc1", 40, 5)];
        assert_eq!(before.until(&readings(1200, few), second), [""; 0]);
        let many = vec![stat(40, "make", 1, 514), stat(70, "cron", 1, 3), stat(80, "cc1", 40, 16)];
        let words = "other processes used 10% of the CPU time, most of it cc1";
        assert_eq!(before.until(&readings(1200, many), second), [words]);
        // The end of a whole family gives all it had used to the one that is left.
        let family = readings(1000, vec![stat(40, "make", 1, 10), stat(60, "sh", 40, 5), stat(61, "rustc", 60, 500)]);
        assert_eq!(family.until(&readings(1200, vec![stat(40, "make", 1, 517)]), second), [""; 0]);
        let quiet = readings(1000, Vec::new());
        let after = Readings { ticks: 1200, stolen: 50, swapped: 200, throttled_us: 20_000, ..Readings::default() };
        assert_eq!(
            quiet.until(&after, second),
            [
                "the hypervisor withheld 25% of the CPU time",
                "the CPU limit of the control group held for 2% of the time",
                "the machine swapped 200 pages per second"
            ]
        );
    }

    #[test]
    fn a_process_that_computes_beside_us_is_noticed() {
        // Its parent is not the process whose descendants are ours here.
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let mut own = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let (begun, before) = (Instant::now(), Readings::now(own.id()));
        loop {
            let words = before.until(&Readings::now(own.id()), begun.elapsed());
            if words.iter().any(|words| words.starts_with("other processes used ")) {
                break;
            }
        }
        for child in [&mut busy, &mut own] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn errors_of_the_kernel_are_told_from_its_other_messages() {
        assert_eq!(
            error_of("3,339,5140900,-;sda: write error\n SUBSYSTEM=block\n").as_deref(),
            Some("sda: write error")
        );
        assert_eq!(error_of("6,340,5140901,-;eth0: link up\n"), None);
        // Programs write here too.
        assert_eq!(error_of("11,341,5140902,-;a daemon's error\n"), None);
        assert_eq!(error_of("nonsense"), None);
    }
}
