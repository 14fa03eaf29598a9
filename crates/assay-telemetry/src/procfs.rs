//! Parses the kernel's text files in /proc, /sys and /sys/fs/cgroup.
//!
//! Each function takes the whole text of a file and returns values by metric, without those that the kernel does not
//! report. Sources: proc(5), Documentation/admin-guide/iostats.rst, Documentation/accounting/psi.rst, cgroup-v2.rst.

use core::net::{IpAddr, SocketAddr};
use std::collections::HashMap;

/// A value of a metric.
pub type Value = (&'static str, u64);

/// For programs, ticks in /proc/stat are hundredths of a second, whatever the kernel's own are (`USER_HZ`).
const US_PER_TICK: u64 = 10_000;
/// Sectors in /proc/diskstats have 512 bytes, whatever the drive's have.
const SECTOR_BYTES: u64 = 512;

/// CPU time and context switches in /proc/stat.
pub fn cpu(stat: &str) -> Vec<Value> {
    let mut values = Vec::new();
    for line in stat.lines() {
        if let Some(rest) = line.strip_prefix("cpu ") {
            // user nice system idle iowait irq softirq steal; guest times are in user and nice.
            let ticks = numbers(rest);
            let sum = |columns: &[usize]| -> u64 {
                columns.iter().map(|at| ticks.get(*at).copied().unwrap_or(0) * US_PER_TICK).sum()
            };
            values.extend([
                ("cpu_user_us", sum(&[0, 1])),
                ("cpu_system_us", sum(&[2, 5, 6])),
                ("cpu_iowait_us", sum(&[4])),
                ("cpu_steal_us", sum(&[7])),
                ("cpu_idle_us", sum(&[3])),
            ]);
        } else if let Some(rest) = line.strip_prefix("ctxt ") {
            values.extend(numbers(rest).first().map(|switches| ("context_switches", *switches)));
        }
    }
    values
}

/// What one block device did, in /proc/diskstats; flushes from Linux 5.5 on.
pub fn device(diskstats: &str, (major, minor): (u32, u32)) -> Vec<Value> {
    let of_device = diskstats.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|fields| {
        let is = |at: usize, number: u32| fields.get(at).and_then(|field| field.parse().ok()) == Some(number);
        is(0, major) && is(1, minor)
    });
    let Some(fields) = of_device else { return Vec::new() };
    let field = |at: usize| fields.get(at + 2).and_then(|field| field.parse::<u64>().ok());
    // Numbered as in iostats.rst, from 1 after the name.
    let counters = [
        ("device_reads", 1, 1),
        ("device_read_bytes", 3, SECTOR_BYTES),
        ("device_writes", 5, 1),
        ("device_written_bytes", 7, SECTOR_BYTES),
        ("device_busy_us", 10, 1000),
        ("device_queue_us", 11, 1000),
        ("device_flushes", 16, 1),
    ];
    counters.into_iter().filter_map(|(metric, at, scale)| Some((metric, field(at)? * scale))).collect()
}

/// The name of a block device in /proc/diskstats.
pub fn device_name(diskstats: &str, (major, minor): (u32, u32)) -> Option<&str> {
    diskstats.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let is = fields.next()?.parse() == Ok(major) && fields.next()?.parse() == Ok(minor);
        fields.next().filter(|_| is)
    })
}

/// Memory in /proc/meminfo.
pub fn memory(meminfo: &str) -> Vec<Value> {
    let kib = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    let mut values: Vec<Value> = [
        ("memory_free_bytes", "MemFree"),
        ("memory_cached_bytes", "Cached"),
        ("memory_dirty_bytes", "Dirty"),
        ("memory_writeback_bytes", "Writeback"),
    ]
    .into_iter()
    .filter_map(|(metric, name)| Some((metric, kib(name)? * 1024)))
    .collect();
    // Transparent ones of processes and of files, and reserved ones in use.
    let transparent = ["AnonHugePages", "ShmemHugePages", "FileHugePages"].map(|name| kib(name).unwrap_or(0));
    let in_use = kib("HugePages_Total").unwrap_or(0).saturating_sub(kib("HugePages_Free").unwrap_or(0));
    let huge = transparent.iter().sum::<u64>() + in_use * kib("Hugepagesize").unwrap_or(0);
    values.push(("huge_page_bytes", huge * 1024));
    values
}

/// Major faults in /proc/vmstat.
pub fn faults(vmstat: &str) -> Vec<Value> {
    let found = vmstat.lines().find_map(|line| line.strip_prefix("pgmajfault ")?.trim().parse().ok());
    found.map(|faults| ("major_faults", faults)).into_iter().collect()
}

/// Pages swapped in and out, in /proc/vmstat.
pub fn swapped(vmstat: &str) -> Option<u64> {
    let of = |name: &str| vmstat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(of("pswpin ")? + of("pswpout ")?)
}

/// Time in which some task waited, in /proc/pressure/*: the total, because averages hide it.
pub fn pressure(metric: &'static str, text: &str) -> Vec<Value> {
    let some = text.lines().find(|line| line.starts_with("some "));
    let total = some.and_then(|line| line.rsplit_once("total=")?.1.trim().parse().ok());
    total.map(|us| (metric, us)).into_iter().collect()
}

/// Bytes over all interfaces but loopback, in /proc/net/dev.
pub fn network(dev: &str) -> Vec<Value> {
    let (mut received, mut sent) = (0u64, 0u64);
    for line in dev.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let counters = numbers(rest);
        if name.trim() != "lo" && counters.len() > 8 {
            received = received.saturating_add(counters[0]);
            sent = sent.saturating_add(counters[8]);
        }
    }
    vec![("network_received_bytes", received), ("network_sent_bytes", sent)]
}

/// TCP segments retransmitted, in /proc/net/snmp.
pub fn retransmits(snmp: &str) -> Vec<Value> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return Vec::new() };
    let found = names.split_whitespace().zip(values.split_whitespace()).find(|(name, _)| *name == "RetransSegs");
    found.and_then(|(_, value)| value.parse().ok()).map(|value| ("tcp_retransmits", value)).into_iter().collect()
}

/// Version 2 of a control group: `cpu.stat`, `memory.stat`, `memory.current`.
pub fn cgroup(cpu_stat: &str, memory_stat: &str, memory_current: &str) -> Vec<Value> {
    let of = |text: &str, name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    let refaults = of(memory_stat, "workingset_refault_file").or_else(|| of(memory_stat, "workingset_refault"));
    let values = [
        ("cgroup_cpu_us", of(cpu_stat, "usage_usec")),
        ("cgroup_throttled_us", of(cpu_stat, "throttled_usec")),
        ("cgroup_memory_bytes", memory_current.trim().parse().ok()),
        ("cgroup_refaults", refaults),
    ];
    values.into_iter().filter_map(|(metric, value)| Some((metric, value?))).collect()
}

/// Version 1: `cpuacct.usage`, `cpu.stat`, `memory.usage_in_bytes`, `memory.stat`.
pub fn cgroup_1(usage: &str, cpu_stat: &str, memory_usage: &str, memory_stat: &str) -> Vec<Value> {
    let of = |text: &str, name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    let refaults = of(memory_stat, "workingset_refault_file").or_else(|| of(memory_stat, "workingset_refault"));
    let values = [
        ("cgroup_cpu_us", usage.trim().parse::<u64>().ok().map(|ns| ns / 1000)),
        ("cgroup_throttled_us", of(cpu_stat, "throttled_time").map(|ns| ns / 1000)),
        ("cgroup_memory_bytes", memory_usage.trim().parse().ok()),
        ("cgroup_refaults", refaults),
    ];
    values.into_iter().filter_map(|(metric, value)| Some((metric, value?))).collect()
}

/// A process in /proc/PID/stat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// Its program, cut to 15 bytes by the kernel.
    pub program: String,
    /// Its parent's number.
    pub parent: u32,
    /// CPU time of all its threads, ended ones included.
    pub cpu_us: u64,
    /// CPU time of ended children that it has waited for.
    pub children_us: u64,
}

/// A process; `None` if the text is not that of /proc/PID/stat.
pub fn process(stat: &str) -> Option<ProcessStat> {
    // The name is in parentheses, and may contain some.
    let (head, rest) = stat.rsplit_once(')')?;
    let program = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // `rest` begins with field 3.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(ProcessStat {
        program,
        parent: field(4)? as u32,
        cpu_us: (field(14)? + field(15)?) * US_PER_TICK,
        children_us: (field(16)? + field(17)?) * US_PER_TICK,
    })
}

/// Inodes of the sockets that accept connections at this address, from /proc/net/tcp or tcp6: those of the address
/// itself, or else those of all addresses of the machine.
pub fn listening(net_tcp: &str, address: SocketAddr) -> Vec<u64> {
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (ip, port) = fields.get(1)?.split_once(':')?;
        let is_listening = *fields.get(3)? == "0A" && u16::from_str_radix(port, 16).ok()? == address.port();
        is_listening.then(|| Some((ip_of(ip)?, fields.get(9)?.parse::<u64>().ok()?)))?
    };
    let all: Vec<(IpAddr, u64)> = net_tcp.lines().filter_map(socket).collect();
    let of = |wanted: &dyn Fn(&IpAddr) -> bool| -> Vec<u64> {
        all.iter().filter(|(ip, _)| wanted(ip)).map(|(_, inode)| *inode).collect()
    };
    let exact = of(&|ip| ip.to_canonical() == address.ip().to_canonical());
    if exact.is_empty() { of(&|ip| ip.to_canonical().is_unspecified()) } else { exact }
}

/// Words of 32 bits in hexadecimal digits, each in the order of this machine.
fn ip_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(8 * at..8 * at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(IpAddr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, four) in bytes.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(at)?);
            }
            Some(IpAddr::from(bytes))
        }
        _ => None,
    }
}

/// A thread in /proc/PID/schedstat (Documentation/scheduler/sched-stats.rst).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Time on a CPU.
    pub ran_ns: u64,
    /// Time in which it was ready to run but waited for a CPU.
    pub waited_ns: u64,
}

impl Scheduled {
    /// Time on a CPU as [`ProcessStat::cpu_us`] counts it, in whole ticks: so the sum over a server's processes does
    /// not go down when one of them ends and its parent takes over its time.
    pub fn cpu_us(&self) -> u64 {
        self.ran_ns / 1000 / US_PER_TICK * US_PER_TICK
    }
}

/// A thread; `None` if the text is not that of /proc/PID/schedstat.
pub fn scheduled(schedstat: &str) -> Option<Scheduled> {
    match numbers(schedstat)[..] {
        [ran_ns, waited_ns, ..] => Some(Scheduled { ran_ns, waited_ns }),
        _ => None,
    }
}

/// Sums counters of threads or processes that come and go: the last value of one that has ended stays in the sum.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    seen: HashMap<u32, u64>,
    sum: u64,
}

impl Sum {
    /// The sum, given the current values by number.
    pub fn add(&mut self, now: impl IntoIterator<Item = (u32, u64)>) -> u64 {
        let mut seen = HashMap::with_capacity(self.seen.len());
        for (number, value) in now {
            let before = self.seen.get(&number).copied().unwrap_or(0);
            // A reused number counts from the start.
            self.sum += if value >= before { value - before } else { value };
            seen.insert(number, value);
        }
        self.seen = seen;
        self.sum
    }
}

/// The filesystem that contains a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Numbers of the block device; major 0: none, or not reported.
    pub device: (u32, u32),
    /// For example `ext4`.
    pub filesystem: String,
    /// The mounted device: `/dev/vda1`.
    pub source: String,
    /// Options of the mount and of the filesystem.
    pub options: String,
}

/// The mount that contains `path`, which is absolute and without links, in /proc/self/mountinfo.
pub fn mount_of(mountinfo: &str, path: &str) -> Option<Mount> {
    let holds = |point: &str| {
        point == "/" || path == point || path.strip_prefix(point).is_some_and(|rest| rest.starts_with('/'))
    };
    let mut best: Option<(usize, Mount)> = None;
    for line in mountinfo.lines() {
        let Some((head, tail)) = line.split_once(" - ") else { continue };
        let (head, tail): (Vec<&str>, Vec<&str>) = (head.split(' ').collect(), tail.split(' ').collect());
        let ([_, _, device, _, point, options, ..], [filesystem, source, more, ..]) = (&head[..], &tail[..]) else {
            continue;
        };
        let point = point.replace("\\040", " ");
        let numbers =
            device.split_once(':').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let (Some(device), true) = (numbers, holds(&point)) else { continue };
        // If several are mounted at one place, the last hides the others.
        if best.as_ref().is_none_or(|(length, _)| point.len() >= *length) {
            let options = format!("{options},{more}");
            let mut parts: Vec<&str> = options.split(',').collect();
            parts.dedup();
            let mut unique: Vec<&str> = Vec::new();
            parts.into_iter().for_each(|part| {
                if !unique.contains(&part) {
                    unique.push(part)
                }
            });
            let mount = Mount {
                device,
                filesystem: (*filesystem).to_owned(),
                source: (*source).to_owned(),
                options: unique.join(","),
            };
            best = Some((point.len(), mount));
        }
    }
    best.map(|(_, mount)| mount)
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map_while(|field| field.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_socket_is_found_by_its_address() {
        let line = |local: &str, state: &str, inode: u64| {
            format!(
                "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1\n"
            )
        };
        let text = [
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
                .to_owned(),
            line("0100007F:2328", "0A", 11),
            line("0200007F:2328", "0A", 12),
            line("0100007F:2328", "01", 13),
            line("0100007F:2329", "0A", 14),
            line("00000000:2329", "0A", 15),
            line("00000000:232A", "0A", 16),
        ];
        let find = |address: &str| listening(&text.concat(), address.parse().unwrap());
        assert_eq!(find("127.0.0.1:9000"), [11]);
        assert_eq!(find("127.0.0.2:9000"), [12]);
        assert_eq!(
            (find("127.0.0.1:9001"), find("127.0.0.2:9001"), find("127.0.0.1:9002")),
            (vec![14], vec![15], vec![16])
        );
        assert!(find("127.0.0.1:9003").is_empty());
        let text = line("00000000000000000000000000000000:2328", "0A", 21)
            + &line("00000000000000000000000001000000:2329", "0A", 22);
        assert_eq!(listening(&text, "127.0.0.1:9000".parse().unwrap()), [21]);
        assert_eq!(listening(&text, "[::1]:9001".parse().unwrap()), [22]);
    }

    #[test]
    fn cpu_time_is_in_microseconds_by_what_it_was_spent_on() {
        let stat = "cpu  100 20 30 4000 50 6 7 8 90 0\ncpu0 1 2 3 4\nintr 5 6\nctxt 12345\n";
        let expected = [
            ("cpu_user_us", 1_200_000),
            ("cpu_system_us", 430_000),
            ("cpu_iowait_us", 500_000),
            ("cpu_steal_us", 80_000),
            ("cpu_idle_us", 40_000_000),
            ("context_switches", 12345),
        ];
        assert_eq!(cpu(stat), expected);
        assert_eq!(cpu("nonsense"), []);
    }

    #[test]
    fn a_device_is_found_by_its_numbers() {
        let stats = " 254  0 vda 10 1 20 3 40 5 60 7 0 8 9 0 0 0 0 11 12\n 7 1 loop1 1 0 2 0 3 0 4 0 0 5 6\n";
        let found = device(stats, (254, 0));
        assert_eq!(
            found[..4],
            [
                ("device_reads", 10),
                ("device_read_bytes", 20 * 512),
                ("device_writes", 40),
                ("device_written_bytes", 60 * 512),
            ]
        );
        assert_eq!(found[4..], [("device_busy_us", 8000), ("device_queue_us", 9000), ("device_flushes", 11)]);
        assert_eq!(device(stats, (7, 1)).len(), 6, "older kernels count no flushes");
        assert_eq!(device(stats, (8, 0)), []);
        assert_eq!(device_name(stats, (7, 1)), Some("loop1"));
    }

    #[test]
    fn memory_network_and_pressure_are_read() {
        let meminfo = "MemFree: 1 kB\nCached:   2 kB\nDirty: 3 kB\nWriteback: 0 kB\nAnonHugePages: 4 kB\n\
                       HugePages_Total: 5\nHugePages_Free: 3\nHugepagesize: 2048 kB\n";
        assert_eq!(memory(meminfo)[4], ("huge_page_bytes", (4 + 2 * 2048) * 1024));
        assert_eq!(faults("pgfault 5\npgmajfault 7\n"), [("major_faults", 7)]);
        assert_eq!(swapped("pswpin 5\npswpout 7\n"), Some(12));
        assert_eq!(swapped("pgfault 5\n"), None);
        let text =
            "some avg10=1.00 avg60=0.50 avg300=0.10 total=4711\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n";
        assert_eq!(pressure("pressure_io_us", text), [("pressure_io_us", 4711)]);
        let dev = "Inter-| Receive\n face |bytes\n lo: 9 0 0 0 0 0 0 0 9 0\n eth0: 5 1 0 0 0 0 0 0 7 1\n eth1:1 1 0 0 0 0 0 0 2 1\n";
        assert_eq!(network(dev), [("network_received_bytes", 6), ("network_sent_bytes", 9)]);
        assert_eq!(retransmits("Tcp: InSegs RetransSegs\nTcp: 5 6\n"), [("tcp_retransmits", 6)]);
    }

    #[test]
    fn both_versions_of_control_groups_say_the_same() {
        let two = cgroup("usage_usec 12\nthrottled_usec 3\n", "workingset_refault_file 4\n", "5\n");
        let one = cgroup_1("12000\n", "throttled_time 3000\n", "5\n", "workingset_refault 4\n");
        assert_eq!(one, two);
        assert_eq!(two.len(), 4);
    }

    #[test]
    fn a_process_may_have_any_name() {
        let stat = "42 (a) b (c)) S 7 42 42 0 -1 4194560 1 2 3 4 11 12 13 14 20 0 1 0 100 0 0";
        let expected = ProcessStat { program: "a) b (c)".into(), parent: 7, cpu_us: 230_000, children_us: 270_000 };
        assert_eq!(process(stat), Some(expected));
        assert_eq!(process("42"), None);
        let thread = Scheduled { ran_ns: 454_104_845, waited_ns: 730_936_852 };
        assert_eq!((scheduled("454104845 730936852 144\n"), thread.cpu_us()), (Some(thread), 450_000));
        assert_eq!(scheduled("454104845"), None);
    }

    #[test]
    fn what_a_process_had_counted_when_it_ended_stays_in_the_sum() {
        let mut sum = Sum::default();
        assert_eq!(sum.add([(1, 10), (2, 5)]), 15);
        assert_eq!(sum.add([(1, 12)]), 17);
        assert_eq!(sum.add([(1, 12), (2, 3)]), 20);
        assert_eq!(sum.add([(1, 2), (2, 3)]), 22);
    }

    #[test]
    fn a_path_belongs_to_the_longest_mount_that_holds_it() {
        let mounts = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
                      28 27 0:25 / /data rw - tmpfs tmpfs rw,size=4k\n\
                      29 27 8:1 / /data/my\\040db rw,noatime shared:1 - xfs /dev/sda1 rw,noquota\n";
        let of = |path: &str| mount_of(mounts, path).unwrap();
        assert_eq!(of("/database").device, (254, 0));
        assert_eq!((of("/data").filesystem, of("/data").options), ("tmpfs".into(), "rw,size=4k".into()));
        assert_eq!(of("/data/my db/base/1").source, "/dev/sda1");
        assert_eq!(of("/data/my db").options, "rw,noatime,noquota");
    }
}
