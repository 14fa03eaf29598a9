//! The machine of a load generator.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A machine, as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its host name.
    #[serde(rename = "host")]
    pub name: String,
    /// Its kernel's name and release, such as `Linux 6.1.0-18-amd64`.
    pub kernel: String,
    /// Its CPU's name.
    pub cpu_model: String,
    /// CPUs that the process was allowed to use. 1 <= cpus
    pub cpus: u32,
    /// Numbers of the CPUs that the process may run on, in the kernel's form, such as `0-3,6`; empty: unknown. There
    /// may be more of them than `cpus`, which a quota limits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cpu_list: String,
    /// Its memory.
    pub memory_bytes: u64,
}

/// CPUs and memory of all machines of these processes: several may share one. Those that have name, kernel, CPU and
/// memory in common do.
pub(crate) fn of_all_machines(hosts: &[&Host]) -> (u32, u64) {
    let same = |one: &Host, other: &Host| {
        let of = |host: &Host| (host.kernel.clone(), host.cpu_model.clone(), host.memory_bytes);
        one.name == other.name && of(one) == of(other)
    };
    let (mut cpus, mut memory_bytes) = (0_u32, 0_u64);
    for (number, host) in hosts.iter().enumerate() {
        if hosts[..number].iter().any(|earlier| same(earlier, host)) {
            continue;
        }
        let processes: Vec<&Host> = hosts.iter().copied().filter(|other| same(host, other)).collect();
        cpus = cpus.saturating_add(cpus_of(&processes));
        memory_bytes = memory_bytes.saturating_add(host.memory_bytes);
    }
    (cpus, memory_bytes)
}

/// CPUs that processes of one machine may use together.
fn cpus_of(processes: &[&Host]) -> u32 {
    let most = processes.iter().map(|host| host.cpus).max().unwrap_or(0);
    let mut all = BTreeSet::new();
    for host in processes {
        match numbers(&host.cpu_list) {
            // Each may use all that it may run on.
            Some(own) if own.len() == host.cpus as usize => all.extend(own),
            // A quota, which they have in common: they are in one container, if it is that of a container.
            _ => return most,
        }
    }
    u32::try_from(all.len()).unwrap_or(u32::MAX)
}

/// The numbers in a list of the kernel's form.
fn numbers(list: &str) -> Option<BTreeSet<u32>> {
    let mut all = BTreeSet::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last >= MOST_CPUS {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// More than Linux supports: a list in a file may say anything.
const MOST_CPUS: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(processes: &[(&str, u32, &str)], wanted: (u32, u64)) {
        let host = |(name, cpus, cpu_list): &(&str, u32, &str)| Host {
            name: (*name).into(),
            cpus: *cpus,
            cpu_list: (*cpu_list).into(),
            memory_bytes: 8,
            ..Host::default()
        };
        let hosts: Vec<Host> = processes.iter().map(host).collect();
        assert_eq!(of_all_machines(&hosts.iter().collect::<Vec<_>>()), wanted);
    }

    #[test]
    fn processes_of_one_machine_share_its_cpus_and_its_memory() {
        check(&[], (0, 0));
        check(&[("a", 2, "0-1")], (2, 8));
        check(&[("a", 2, "0-1"), ("a", 2, "0-1"), ("a", 2, "0-1")], (2, 8));
        check(&[("a", 2, "0-1"), ("b", 2, "0-1"), ("a", 2, "0-1")], (4, 16));
        // Pinned to CPUs of their own, or partly.
        check(&[("a", 2, "0-1"), ("a", 2, "2,5")], (4, 8));
        check(&[("a", 3, "0-2"), ("a", 2, "2-3")], (4, 8));
        // A quota of two CPUs.
        check(&[("a", 2, "0-7"), ("a", 2, "0-7")], (2, 8));
        // Records of earlier versions, and files that say anything.
        check(&[("a", 2, ""), ("a", 2, "")], (2, 8));
        check(&[("a", 2, "0-4294967295"), ("a", 1, "x")], (2, 8));
    }
}
