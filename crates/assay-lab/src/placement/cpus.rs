//! CPUs by number, socket or core: `0-3,8`, `socket:0`, `core:0-3`, each also with `,no-smt`.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::str::FromStr;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::fault::{Fault, Result};
use crate::process::Identity;

/// A set of CPUs, by the kernel's numbers. Not empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpus(BTreeSet<usize>);

/// A CPU and its position.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    number: usize,
    socket: usize,
    /// Counted over all sockets, ordered by the lowest CPU of each core.
    core: usize,
    /// Not the first thread of its core.
    sibling: bool,
}

impl Cpus {
    /// Parses a description of CPUs of this machine.
    pub fn of_this_machine(text: &str) -> Result<Cpus> {
        choose(text, &topology()).map_err(|reason| {
            Fault::usage(format!("CPUs {text}: {reason}")).hint("such as 0-3,8 or socket:0 or core:0-3,no-smt")
        })
    }

    /// The number of CPUs.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Pins this process, and processes it starts later, to these CPUs.
    pub fn pin_ourselves(&self) -> Result<()> {
        self.set(0)
    }

    /// Pins a process to them, with its future threads and children.
    pub(crate) fn pin(&self, process: &Identity) -> Result<()> {
        self.set(process.pid as i32)
    }

    fn set(&self, pid: i32) -> Result<()> {
        let mut set = CpuSet::new();
        for cpu in &self.0 {
            set.set(*cpu).map_err(|_| Fault::usage(format!("this machine has no CPU {cpu}")))?;
        }
        sched_setaffinity(Pid::from_raw(pid), &set)
            .map_err(|error| Fault::environment(format!("cannot use the CPUs {self}: {error}")))
    }

    /// Whether every thread of a process is pinned to them.
    pub(crate) fn verify(&self, process: &Identity) -> Result<()> {
        for (thread, allowed) in allowed(process.pid) {
            if &allowed != self {
                return Err(Fault::environment(format!(
                    "the server should run on CPUs {self}, but its thread {thread} may run on {allowed}"
                )));
            }
        }
        Ok(())
    }
}

/// The threads of a process, and the CPUs that each may run on.
pub fn allowed(pid: u32) -> Vec<(String, Cpus)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some((entry.file_name().to_string_lossy().into_owned(), Cpus(numbers(list.trim()).ok()?)))
    };
    threads.filter_map(of).collect()
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for cpu in &self.0 {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
                _ => ranges.push((*cpu, *cpu)),
            }
        }
        let text = |(first, last): &(usize, usize)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        f.write_str(&ranges.iter().map(text).collect::<Vec<_>>().join(","))
    }
}

/// `0-3,8` as numbers.
fn numbers(text: &str) -> std::result::Result<BTreeSet<usize>, String> {
    let mut all = BTreeSet::new();
    for part in text.split(',') {
        let number = |text: &str| usize::from_str(text).map_err(|_| format!("{text:?} is not a number"));
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > 100_000 {
            return Err(format!("{part} is not a range"));
        }
        all.extend(first..=last);
    }
    Ok(all)
}

fn choose(text: &str, topology: &[Cpu]) -> std::result::Result<Cpus, String> {
    let (list, no_siblings) = text.strip_suffix(",no-smt").map_or((text, false), |list| (list, true));
    let (what, list) = list.split_once(':').unwrap_or(("cpu", list));
    let wanted = numbers(list)?;
    let number = |cpu: &Cpu| match what {
        "socket" => cpu.socket,
        "core" => cpu.core,
        _ => cpu.number,
    };
    if !["cpu", "socket", "core"].contains(&what) {
        return Err(format!("{what:?} is neither cpu, socket nor core"));
    }
    if let Some(missing) = wanted.iter().find(|wanted| !topology.iter().any(|cpu| number(cpu) == **wanted)) {
        return Err(format!("this machine has no {what} {missing}"));
    }
    let chosen = topology.iter().filter(|cpu| wanted.contains(&number(cpu)) && !(no_siblings && cpu.sibling));
    let chosen: BTreeSet<usize> = chosen.map(|cpu| cpu.number).collect();
    if chosen.is_empty() { Err("none is left".to_owned()) } else { Ok(Cpus(chosen)) }
}

/// The CPUs that are online.
fn topology() -> Vec<Cpu> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let read = |cpu: usize, name: &str| {
        let text = fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}")).ok()?;
        text.trim().parse::<usize>().ok()
    };
    let all = numbers(online.trim()).unwrap_or_default();
    // If the kernel does not say, each CPU is a core of socket 0.
    let places = all.into_iter().map(|cpu| {
        let socket = read(cpu, "physical_package_id").unwrap_or(0);
        (cpu, socket, read(cpu, "core_id").unwrap_or(cpu))
    });
    arrange(places)
}

/// From CPU, socket and the kernel's core id, which is unique within a socket and may have gaps.
fn arrange(places: impl IntoIterator<Item = (usize, usize, usize)>) -> Vec<Cpu> {
    let mut cores: Vec<(usize, usize)> = Vec::new();
    let place = |(number, socket, id)| {
        let known = cores.iter().position(|core| *core == (socket, id));
        let core = known.unwrap_or(cores.len());
        if known.is_none() {
            cores.push((socket, id));
        }
        Cpu { number, socket, core, sibling: known.is_some() }
    };
    places.into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of two cores of two threads, numbered as Linux does: siblings in the upper half.
    fn machine() -> Vec<Cpu> {
        arrange([(0, 0, 0), (1, 0, 4), (2, 1, 0), (3, 1, 4), (4, 0, 0), (5, 0, 4), (6, 1, 0), (7, 1, 4)])
    }

    #[test]
    fn cpus_are_chosen_by_number_socket_and_core_with_and_without_siblings() {
        let check = |text: &str, expected: &str| {
            let chosen = choose(text, &machine()).map_or_else(|reason| reason, |cpus| cpus.to_string());
            assert_eq!(chosen, expected, "{text}");
        };
        check("0-2,7", "0-2,7");
        check("socket:1", "2-3,6-7");
        check("socket:1,no-smt", "2-3");
        check("core:0,3", "0,3-4,7");
        check("0-7,no-smt", "0-3");
        check("4,no-smt", "none is left");
        check("8", "this machine has no cpu 8");
        check("core:4", "this machine has no core 4");
        check("3-1", "3-1 is not a range");
        check("node:0", "\"node\" is neither cpu, socket nor core");
        check("", "\"\" is not a number");
    }
}
