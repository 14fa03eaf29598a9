//! The machine that a local server and the generator share.

use std::collections::BTreeMap;

use assay_telemetry::facts::{chosen, field};
use assay_telemetry::procfs;

use super::process::{Device, contents, facts_of, line};
use super::sampler::{Moment, Readings, SampleSource};

/// A machine to sample.
pub(super) struct Machine {
    local: Device,
}

impl Machine {
    /// `local`: where the server's own sampler reports its device.
    pub(super) fn new(local: Device) -> Machine {
        Machine { local }
    }
}

/// What is read from a device.
const OF_DEVICE: [&str; 7] = [
    "device_reads",
    "device_read_bytes",
    "device_writes",
    "device_written_bytes",
    "device_flushes",
    "device_busy_us",
    "device_queue_us",
];

type Read = fn(&str) -> Vec<procfs::Value>;

/// Files with one reader each, and the metrics that are absent without them.
const FILES: [(&str, Read, &[&str]); 8] = [
    ("/proc/stat", procfs::cpu, &["cpu_user_us", "cpu_system_us", "context_switches"]),
    ("/proc/meminfo", procfs::memory, &["memory_dirty_bytes"]),
    ("/proc/vmstat", procfs::faults, &["major_faults"]),
    ("/proc/pressure/cpu", |text| procfs::pressure("pressure_cpu_us", text), &["pressure_cpu_us"]),
    ("/proc/pressure/io", |text| procfs::pressure("pressure_io_us", text), &["pressure_io_us"]),
    ("/proc/pressure/memory", |text| procfs::pressure("pressure_memory_us", text), &["pressure_memory_us"]),
    ("/proc/net/dev", procfs::network, &["network_received_bytes"]),
    ("/proc/net/snmp", procfs::retransmits, &["tcp_retransmits"]),
];

impl SampleSource for Machine {
    fn open(&mut self, _: &mut Readings) {}

    fn sample(&mut self, _: Moment, readings: &mut Readings) {
        for (path, read, metrics) in FILES {
            match contents(path) {
                Ok(text) => read(&text).into_iter().for_each(|(metric, value)| readings.put(metric, path, value)),
                Err(error) => metrics.iter().for_each(|metric| readings.lack(metric, &format!("{path}: {error}"))),
            }
        }
        let device = self.local.lock().expect("samplers do not panic").clone();
        let lack = |readings: &mut Readings, reason: &str| {
            OF_DEVICE.iter().for_each(|metric| readings.lack(metric, reason));
        };
        match device {
            None => {}
            Some(Err(reason)) => lack(readings, &reason),
            Some(Ok(device)) => {
                let stats = line("/proc/diskstats");
                let source = procfs::device_name(&stats, device).map(|name| format!("/proc/diskstats {name}"));
                let values = procfs::device(&stats, device);
                if values.is_empty() {
                    lack(readings, &format!("/proc/diskstats has no device {}:{}", device.0, device.1));
                }
                let source = source.unwrap_or_default();
                values.into_iter().for_each(|(metric, value)| readings.put(metric, &source, value));
            }
        }
    }
}

/// Facts about this machine, and about the limits of this process.
pub fn facts() -> BTreeMap<String, String> {
    let read = |path: &str| chosen(&line(path));
    let cpuinfo = line("/proc/cpuinfo");
    let machine = [
        ("transparent huge pages", read("/sys/kernel/mm/transparent_hugepage/enabled")),
        ("CPU governor", read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ("turbo off", read("/sys/devices/system/cpu/intel_pstate/no_turbo")),
        ("SMT", read("/sys/devices/system/cpu/smt/control")),
        ("clock source", read("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("NUMA nodes", read("/sys/devices/system/node/online")),
        ("swappiness", read("/proc/sys/vm/swappiness")),
        ("dirty ratio", read("/proc/sys/vm/dirty_ratio")),
        ("dirty bytes", read("/proc/sys/vm/dirty_bytes")),
        ("dirty background ratio", read("/proc/sys/vm/dirty_background_ratio")),
        ("dirty background bytes", read("/proc/sys/vm/dirty_background_bytes")),
        ("overcommit", read("/proc/sys/vm/overcommit_memory")),
        ("kernel command line", Some(line("/proc/cmdline")).filter(|words| !words.is_empty())),
        ("CPU flags", field(&cpuinfo, "flags").or_else(|| field(&cpuinfo, "Features"))),
    ];
    let mut facts: BTreeMap<String, String> =
        machine.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    let mut own = facts_of(std::process::id());
    // The manifest has one of them, and we raise the other ourselves as needed.
    own.remove("command line");
    own.remove("open files limit");
    facts.extend(own);
    // musl resolves names and allocates memory differently from glibc.
    let linked = if cfg!(target_env = "musl") { "static, musl" } else { "dynamic, glibc" };
    facts.insert("program".to_owned(), linked.to_owned());
    facts
}
