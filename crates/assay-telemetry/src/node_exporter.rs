//! A remote machine, as reported by Prometheus' node exporter.
//!
//! Names and units are those of node_exporter 1.x: seconds as decimals, and one series per CPU, device or interface.

use std::collections::BTreeMap;

/// A series of the exporter, the label that it must have, its metric, and a factor.
type Exported = (&'static str, Option<(&'static str, &'static str)>, &'static str, f64);

/// All that is read of it.
const SERIES: [Exported; 28] = [
    ("node_cpu_seconds_total", Some(("mode", "user")), "cpu_user_us", 1e6),
    ("node_cpu_seconds_total", Some(("mode", "nice")), "cpu_user_us", 1e6),
    ("node_cpu_seconds_total", Some(("mode", "system")), "cpu_system_us", 1e6),
    ("node_cpu_seconds_total", Some(("mode", "irq")), "cpu_system_us", 1e6),
    ("node_cpu_seconds_total", Some(("mode", "softirq")), "cpu_system_us", 1e6),
    ("node_cpu_seconds_total", Some(("mode", "iowait")), "cpu_iowait_us", 1e6),
    ("node_cpu_seconds_total", Some(("mode", "steal")), "cpu_steal_us", 1e6),
    ("node_cpu_seconds_total", Some(("mode", "idle")), "cpu_idle_us", 1e6),
    ("node_context_switches_total", None, "context_switches", 1.0),
    ("node_disk_reads_completed_total", None, "device_reads", 1.0),
    ("node_disk_read_bytes_total", None, "device_read_bytes", 1.0),
    ("node_disk_writes_completed_total", None, "device_writes", 1.0),
    ("node_disk_written_bytes_total", None, "device_written_bytes", 1.0),
    ("node_disk_flush_requests_total", None, "device_flushes", 1.0),
    ("node_disk_io_time_seconds_total", None, "device_busy_us", 1e6),
    ("node_disk_io_time_weighted_seconds_total", None, "device_queue_us", 1e6),
    ("node_memory_MemFree_bytes", None, "memory_free_bytes", 1.0),
    ("node_memory_Cached_bytes", None, "memory_cached_bytes", 1.0),
    ("node_memory_Dirty_bytes", None, "memory_dirty_bytes", 1.0),
    ("node_memory_Writeback_bytes", None, "memory_writeback_bytes", 1.0),
    ("node_memory_AnonHugePages_bytes", None, "huge_page_bytes", 1.0),
    ("node_vmstat_pgmajfault", None, "major_faults", 1.0),
    ("node_pressure_cpu_waiting_seconds_total", None, "pressure_cpu_us", 1e6),
    ("node_pressure_io_waiting_seconds_total", None, "pressure_io_us", 1e6),
    ("node_pressure_memory_waiting_seconds_total", None, "pressure_memory_us", 1e6),
    ("node_network_receive_bytes_total", None, "network_received_bytes", 1.0),
    ("node_network_transmit_bytes_total", None, "network_sent_bytes", 1.0),
    ("node_netstat_Tcp_RetransSegs", None, "tcp_retransmits", 1.0),
];

/// Devices that consist of others, where their bytes are already counted.
const MADE_OF_OTHERS: [&str; 4] = ["dm-", "md", "loop", "ram"];

/// Values by metric, with the name of each series. `device`: the drive that counts; `None`: all of them, except those
/// that consist of others.
pub fn values(text: &str, device: Option<&str>) -> Vec<(&'static str, &'static str, u64)> {
    let mut sums: BTreeMap<usize, (&'static str, &'static str, f64)> = BTreeMap::new();
    for (name, labels, value) in text.lines().filter_map(sample) {
        let label = |key: &str| {
            labels
                .split(',')
                .find_map(|pair| pair.trim().strip_prefix(key)?.strip_prefix('='))
                .map(|it| it.trim_matches('"'))
        };
        let is_counted = match (name.starts_with("node_disk_"), name.starts_with("node_network_")) {
            (true, _) => match device {
                Some(device) => label("device") == Some(device),
                None => !label("device").is_some_and(|it| MADE_OF_OTHERS.iter().any(|made| it.starts_with(made))),
            },
            (_, true) => label("device") != Some("lo"),
            _ => true,
        };
        for (place, (known, wanted, metric, scale)) in SERIES.iter().enumerate() {
            let fits = wanted.is_none_or(|(key, value)| label(key) == Some(value));
            if is_counted && *known == name && fits {
                // Series of the same metric are added up at the position of the first.
                let first = SERIES.iter().position(|(_, _, of, _)| of == metric).unwrap_or(place);
                sums.entry(first).or_insert((metric, known, 0.0)).2 += value * scale;
            }
        }
    }
    sums.into_values().map(|(metric, source, value)| (metric, source, value.max(0.0) as u64)).collect()
}

/// Every metric that a node exporter may report, to find missing ones.
pub fn metrics() -> impl Iterator<Item = &'static str> {
    SERIES.iter().map(|(_, _, metric, _)| *metric)
}

/// Facts of the machine.
pub fn facts(text: &str) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut cpus = 0;
    for (name, labels, value) in text.lines().filter_map(sample) {
        let label = |key: &str| {
            let found = labels.split(',').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
            found.map(|it| it.trim_matches('"').to_owned())
        };
        match name {
            "node_uname_info" => {
                let kernel = label("sysname").zip(label("release")).map(|(name, release)| format!("{name} {release}"));
                facts.extend(kernel.map(|kernel| ("host kernel".to_owned(), kernel)));
                facts.extend(label("nodename").map(|host| ("host name".to_owned(), host)));
            }
            "node_memory_MemTotal_bytes" => {
                facts.insert("host memory".to_owned(), format!("{} MiB", value as u64 >> 20));
            }
            "node_cpu_seconds_total" if label("mode").as_deref() == Some("idle") => cpus += 1,
            _ => {}
        }
    }
    if cpus > 0 {
        facts.insert("host CPUs".to_owned(), cpus.to_string());
    }
    facts
}

/// Name, labels and value of a line of the text format.
fn sample(line: &str) -> Option<(&str, &str, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let (series, value) = line.trim().rsplit_once(' ')?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}')?),
        None => (series, ""),
    };
    Some((name, labels, value.parse().ok().filter(|value: &f64| value.is_finite())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# HELP node_cpu_seconds_total x\n\
        node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 1.5\n\
        node_cpu_seconds_total{cpu=\"1\",mode=\"user\"} 2\n\
        node_cpu_seconds_total{cpu=\"0\",mode=\"nice\"} 0.25\n\
        node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 1e+03\n\
        node_disk_read_bytes_total{device=\"nvme0n1\"} 4096\n\
        node_disk_read_bytes_total{device=\"sda\"} 1\n\
        node_disk_read_bytes_total{device=\"dm-0\"} 4096\n\
        node_network_receive_bytes_total{device=\"lo\"} 9\n\
        node_network_receive_bytes_total{device=\"eth0\"} 7\n\
        node_memory_MemTotal_bytes 2.097152e+06\n\
        node_uname_info{domainname=\"x\",nodename=\"db1\",release=\"6.1\",sysname=\"Linux\"} 1\n";

    #[test]
    fn a_machine_elsewhere_has_the_same_metrics() {
        let of = |device| -> Vec<(&'static str, u64)> {
            values(TEXT, device).into_iter().map(|(metric, _, value)| (metric, value)).collect()
        };
        let all = [
            ("cpu_user_us", 3_750_000),
            ("cpu_idle_us", 1_000_000_000),
            ("device_read_bytes", 4097),
            ("network_received_bytes", 7),
        ];
        assert_eq!(of(None), all);
        assert_eq!(of(Some("sda"))[2], ("device_read_bytes", 1));
        assert!(metrics().all(|name| crate::metric(name).is_some()));
        let facts = facts(TEXT);
        assert_eq!((&*facts["host name"], &*facts["host CPUs"], &*facts["host memory"]), ("db1", "1", "2 MiB"));
    }
}
