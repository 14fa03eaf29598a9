//! The process of a local server, its data directory, and the drive it is on.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use assay_record::without_secrets;
use assay_seam::Nanos;
use assay_telemetry::facts::{cgroup_path, chosen, command_line, field, limit};
use assay_telemetry::procfs::{self, Mount, Sum};
use assay_telemetry::question::{NamedAnswer, ProcessQuestion};

use super::hardware::Hardware;
use super::sampler::{self, Readings};
use crate::client::{Client, text};

const PATIENCE: Nanos = Nanos::from_secs(1);
/// What is read from a process.
pub(super) const METRICS: [&str; 3] = ["cpu_us", "cpu_wait_us", "processes"];

/// The block device under a local server's data directory, or why it is unknown, once the server was queried.
pub(super) type Device = Arc<Mutex<Option<Result<(u32, u32), String>>>>;

/// A server's process, and what is known about it.
pub(super) struct Found {
    pub(super) tree: Tree,
    /// The block device under its data directory, or why it is unknown.
    pub(super) device: Result<(u32, u32), String>,
    /// Its data directory, if it is known.
    pub(super) folder: Option<PathBuf>,
    /// Facts of it and its drive.
    pub(super) facts: BTreeMap<String, String>,
    /// The process or thread that serves our own connection, if it is known.
    pub(super) own: Option<Own>,
}

/// What the server spends on our own connection.
pub(super) struct Own {
    schedstat: String,
    ran_ns: u64,
}

/// A process with its children and threads.
pub(super) struct Tree {
    root: u32,
    waited: Sum,
    cgroup: Option<Cgroup>,
    /// The processor events, if wanted.
    pub(super) hardware: Option<Hardware>,
}

impl Tree {
    /// The id of the process at its root.
    pub(super) fn root(&self) -> u32 {
        self.root
    }
}

/// The files of a control group.
enum Cgroup {
    Two(String),
    One { cpuacct: String, cpu: String, memory: String },
}

/// Finds the process of the server behind this connection, or the reason why it cannot be identified.
pub(super) fn find(client: &mut Client, how: &ProcessQuestion) -> Result<Found, String> {
    let by_names = !how.pid.sql.is_empty();
    let named = [how.pid, how.folder].map(|of| named(client, of));
    let mut answer = |sql: &str| {
        if sql.is_empty() { None } else { client.ask(sql, PATIENCE).ok().and_then(|rows| text(&rows, 0, 0)) }
    };
    let [pid, folder] = named;
    let folder = folder.or_else(|| answer(how.folder_sql));
    let is_server = |pid: &u32| program(*pid).is_some_and(|program| how.programs.contains(&program.as_str()));
    let own: Option<u32> = answer(how.own_sql).and_then(|own| own.parse().ok());
    let root = if how.listens {
        match client.address().and_then(listener) {
            Some(pid) if is_server(&pid) => Some(pid),
            // In front of a container; the server listens in there.
            Some(pid) if program(pid).as_deref() != Some("docker-proxy") => None,
            // Whose sockets they are is known to root and to their owner only.
            _ => only_one(how.programs, folder.as_deref()),
        }
    } else if by_names {
        // In a container the process ids differ.
        pid.and_then(|pid| pid.parse().ok()).filter(is_server).or_else(|| only_one(how.programs, folder.as_deref()))
    } else if how.file_sql.is_empty() {
        // In a container the process ids differ: our child must be a server's, and so must its parent.
        own.filter(is_server).and_then(|child| Some(stat(child)?.parent)).filter(is_server)
    } else {
        let file = answer(how.file_sql);
        let number = file.and_then(|file| {
            let path =
                folder.as_deref().map_or_else(|| Path::new(&file).to_owned(), |folder| Path::new(folder).join(&file));
            fs::read_to_string(path).ok()?.trim().parse().ok()
        });
        number.filter(is_server).or_else(|| only_one(how.programs, folder.as_deref()))
    };
    let root = root.ok_or("the server's process was not found on this machine")?;
    let folder = folder.filter(|folder| Path::new(folder).is_dir()).or_else(|| {
        // The servers of SQL work in their data directory.
        let works_there = (!by_names).then(|| fs::read_link(format!("/proc/{root}/cwd")).ok()).flatten();
        works_there.map(|folder| folder.display().to_string())
    });
    let (device, mut facts) = drive(folder.as_deref());
    facts.extend(facts_of(root));
    // Through a pooler, the load may be served by the same process.
    let told = client.server().process;
    let own = own.filter(|own| told.is_none_or(|told| told == *own)).and_then(|own| Own::of(root, own));
    let tree = Tree { root, waited: Sum::default(), cgroup: Cgroup::of(root), hardware: None };
    Ok(Found { tree, device, folder: folder.map(PathBuf::from), facts, own })
}

/// A value by its name.
fn named(client: &mut Client, of: NamedAnswer) -> Option<String> {
    if of.sql.is_empty() {
        return None;
    }
    let rows = client.ask(of.sql, PATIENCE).ok()?;
    let row = (0..rows.len(0)).find(|row| text(&rows, *row, 0).as_deref() == Some(of.name))?;
    text(&rows, row, 1)
}

impl Own {
    /// Counts from now on; `None` if this is not a child or thread of the server's process.
    fn of(root: u32, own: u32) -> Option<Own> {
        let thread = format!("/proc/{root}/task/{own}");
        let is_child = || stat(own).is_some_and(|process| process.parent == root);
        let place = if Path::new(&thread).is_dir() { thread } else { is_child().then(|| format!("/proc/{own}"))? };
        let mut own = Own { schedstat: format!("{place}/schedstat"), ran_ns: 0 };
        own.since_last()?;
        Some(own)
    }

    /// CPU time since this was last asked.
    pub(super) fn since_last(&mut self) -> Option<Nanos> {
        let now = scheduled(&self.schedstat)?.ran_ns;
        let before = std::mem::replace(&mut self.ran_ns, now);
        Some(Nanos(now.saturating_sub(before)))
    }
}

/// The process that accepts connections at this address of this machine, as far as this user may know.
fn listener(address: SocketAddr) -> Option<u32> {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let inodes = [read("/proc/net/tcp"), read("/proc/net/tcp6")].map(|text| procfs::listening(&text, address)).concat();
    let names: Vec<PathBuf> = inodes.iter().map(|inode| PathBuf::from(format!("socket:[{inode}]"))).collect();
    let has_it = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| names.contains(&file))
    };
    if names.is_empty() { None } else { numbers_in("/proc").into_iter().find(has_it) }
}

/// The only process with such a program; if there are several, the one whose command line names the data directory.
fn only_one(programs: &[&str], folder: Option<&str>) -> Option<u32> {
    let all = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let of_program = all.filter(|pid| program(*pid).is_some_and(|program| programs.contains(&program.as_str())));
    match of_program.collect::<Vec<_>>().as_slice() {
        [one] => Some(*one),
        several => {
            let folder = folder?.trim_end_matches('/');
            let names = |pid: &&u32| {
                let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                command_line(&words).is_some_and(|words| words.contains(folder))
            };
            let mut named = several.iter().filter(names);
            named.next().copied().filter(|_| named.next().is_none())
        }
    }
}

fn stat(pid: u32) -> Option<procfs::ProcessStat> {
    procfs::process(&contents(&format!("/proc/{pid}/stat")).ok()?)
}

fn scheduled(path: &str) -> Option<procfs::Scheduled> {
    procfs::scheduled(&contents(path).ok()?)
}

fn program(pid: u32) -> Option<String> {
    stat(pid).map(|process| process.program)
}

impl Tree {
    /// Reads it; false if it is gone. `own`: the CPU time of our own connections, in microseconds.
    pub(super) fn read(&mut self, own: sampler::Own, readings: &mut Readings) -> bool {
        let Some(root) = stat(self.root) else { return false };
        let (mut cpu, mut processes) = (root.cpu_us + root.children_us, 1);
        // A server is either one process with threads or many with one each.
        let threads = numbers_in(&format!("/proc/{}/task", self.root));
        let of_thread = |thread: &u32| scheduled(&format!("/proc/{}/task/{thread}/schedstat", self.root));
        let mut waited: Vec<(u32, u64)> =
            threads.iter().filter_map(|thread| Some((*thread, of_thread(thread)?.waited_ns))).collect();
        let children = children(self.root);
        for child in &children {
            let scheduled = scheduled(&format!("/proc/{child}/schedstat"));
            waited.extend(scheduled.map(|of_child| (*child, of_child.waited_ns)));
            // A kernel without CONFIG_SCHED_INFO has only the other file.
            let cpu_us = scheduled.map(|of_child| of_child.cpu_us()).or_else(|| Some(stat(*child)?.cpu_us));
            cpu += cpu_us.unwrap_or(0);
            processes += u64::from(cpu_us.is_some());
        }
        readings.put_with("cpu_us", "/proc/PID/stat of the server, /proc/PID/schedstat of its children", cpu, own);
        readings.put("processes", "/proc/PID/task/PID/children", processes);
        if waited.is_empty() {
            readings.lack("cpu_wait_us", "this kernel has no /proc/PID/schedstat");
        } else {
            readings.put("cpu_wait_us", "/proc/PID/schedstat", self.waited.add(waited) / 1000);
        }
        if let Some(hardware) = &mut self.hardware {
            let all: Vec<u32> = threads.into_iter().chain(children).collect();
            hardware.read(&all, readings);
        }
        if let Some(cgroup) = &self.cgroup {
            let source = cgroup.source();
            cgroup.read().into_iter().for_each(|(metric, value)| readings.put(metric, &source, value));
        }
        true
    }
}

fn children(pid: u32) -> Vec<u32> {
    let listed = contents(&format!("/proc/{pid}/task/{pid}/children"));
    match listed {
        Ok(listed) => listed.split_whitespace().filter_map(|child| child.parse().ok()).collect(),
        // A kernel without CONFIG_PROC_CHILDREN.
        Err(_) => numbers_in("/proc").into_iter().filter(|one| stat(*one).is_some_and(|it| it.parent == pid)).collect(),
    }
}

fn numbers_in(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// How long the control group of this process was out of its CPU limit so far, in microseconds.
pub fn throttled_us() -> Option<u64> {
    let found = Cgroup::of(std::process::id())?.read();
    found.into_iter().find(|(metric, _)| *metric == "cgroup_throttled_us").map(|(_, us)| us)
}

impl Cgroup {
    /// The group of a process; `None` for the root group, which contains everything.
    fn of(pid: u32) -> Option<Cgroup> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let own = |controller: &str| cgroup_path(&text, controller).filter(|path| path != "/");
        if let Some(path) = own("") {
            let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
            let folder = roots
                .iter()
                .map(|root| format!("{root}{path}"))
                .find(|it| Path::new(it).join("memory.current").is_file());
            if let Some(folder) = folder {
                return Some(Cgroup::Two(folder));
            }
        }
        let of = |controller: &str| Some(format!("/sys/fs/cgroup/{controller}{}", own(controller)?));
        let (cpuacct, cpu, memory) = (of("cpuacct"), of("cpu"), of("memory"));
        if cpuacct.is_none() && cpu.is_none() && memory.is_none() {
            return None;
        }
        Some(Cgroup::One {
            cpuacct: cpuacct.unwrap_or_default(),
            cpu: cpu.unwrap_or_default(),
            memory: memory.unwrap_or_default(),
        })
    }

    fn source(&self) -> String {
        match self {
            Cgroup::Two(folder) => folder.clone(),
            Cgroup::One { memory, cpuacct, .. } => {
                if memory.is_empty() {
                    cpuacct.clone()
                } else {
                    memory.clone()
                }
            }
        }
    }

    fn read(&self) -> Vec<procfs::Value> {
        match self {
            Cgroup::Two(folder) => {
                let [cpu, memory, current] =
                    ["cpu.stat", "memory.stat", "memory.current"].map(|file| line(&format!("{folder}/{file}")));
                procfs::cgroup(&cpu, &memory, &current)
            }
            Cgroup::One { cpuacct, cpu, memory } => procfs::cgroup_1(
                &line(&format!("{cpuacct}/cpuacct.usage")),
                &line(&format!("{cpu}/cpu.stat")),
                &line(&format!("{memory}/memory.usage_in_bytes")),
                &line(&format!("{memory}/memory.stat")),
            ),
        }
    }

    fn limits(&self) -> Vec<(&'static str, String)> {
        let limits = match self {
            Cgroup::Two(folder) => {
                [("CPU limit", format!("{folder}/cpu.max")), ("memory limit", format!("{folder}/memory.max"))]
            }
            Cgroup::One { cpu, memory, .. } => [
                ("CPU limit", format!("{cpu}/cpu.cfs_quota_us")),
                ("memory limit", format!("{memory}/memory.limit_in_bytes")),
            ],
        };
        let read = limits.into_iter().map(|(name, path)| (name, line(&path)));
        read.filter(|(_, value)| !is_unlimited(value)).collect()
    }
}

/// Version 1 represents it by -1, and by the largest multiple of a page.
fn is_unlimited(limit: &str) -> bool {
    limit.is_empty()
        || limit.starts_with("max")
        || limit.parse::<i64>().is_ok_and(|limit| !(0..1 << 60).contains(&limit))
}

/// A file's text without its line end; empty if it cannot be read.
pub(super) fn line(path: &str) -> String {
    contents(path).unwrap_or_default().trim().to_owned()
}

/// A file's text. The kernel's own files say nothing of their length, so `fs::read_to_string` begins with 32 bytes and
/// needs twice as many system calls.
pub(super) fn contents(path: &str) -> io::Result<String> {
    let mut text = String::with_capacity(8192);
    // `take`, because reading a file to its end asks for its length.
    fs::File::open(path)?.take(u64::MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Facts that every process has: CPUs and limits.
pub(super) fn facts_of(pid: u32) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| {
        facts.extend(value.filter(|value| !value.is_empty()).map(|value| (name.to_owned(), value)));
    };
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = command_line(&words).map(|words| without_secrets(words.split(' ').map(str::to_owned)).join(" "));
    put("command line", words);
    let status = line(&format!("/proc/{pid}/status"));
    put("affinity", field(&status, "Cpus_allowed_list"));
    put("memory nodes", field(&status, "Mems_allowed_list"));
    let limits = line(&format!("/proc/{pid}/limits"));
    put("open files limit", limit(&limits, "Max open files"));
    put("locked memory limit", limit(&limits, "Max locked memory"));
    for (name, value) in Cgroup::of(pid).iter().flat_map(Cgroup::limits) {
        put(name, Some(value));
    }
    facts
}

/// The block device under a folder, and facts of the filesystem and the drive.
fn drive(folder: Option<&str>) -> (Result<(u32, u32), String>, BTreeMap<String, String>) {
    let mut facts = BTreeMap::new();
    let Some(folder) = folder else { return (Err("the data directory is not known".to_owned()), facts) };
    facts.insert("data directory".to_owned(), folder.to_owned());
    let Ok(path) = fs::canonicalize(folder) else {
        return (Err(format!("the data directory {folder} is not accessible")), facts);
    };
    let listed = procfs::mount_of(&line("/proc/self/mountinfo"), &path.display().to_string());
    let Some(mount) = listed.or_else(|| unlisted_mount(&path)) else {
        return (Err(format!("the filesystem of {folder} is not known")), facts);
    };
    facts.insert("filesystem".to_owned(), mount.filesystem.clone());
    if !mount.options.is_empty() {
        facts.insert("mount options".to_owned(), mount.options.clone());
    }
    // Filesystems on several devices have device numbers of their own.
    let device = match mount.device {
        (0, _) => fs::metadata(&mount.source).ok().map(|metadata| numbers_of(metadata.rdev())).filter(|it| it.0 > 0),
        device => Some(device),
    };
    let Some(device) = device else {
        return (Err(format!("{} ({}) has no block device of its own", mount.filesystem, mount.source)), facts);
    };
    facts.extend(drive_facts(device));
    (Ok(device), facts)
}

/// The filesystem of a file by its device number, without mount options. In a chroot whose root is not a mount point,
/// mountinfo lacks the mount that holds most files.
fn unlisted_mount(path: &Path) -> Option<Mount> {
    let device = numbers_of(fs::metadata(path).ok()?.dev());
    let disks = line("/proc/diskstats");
    let name = procfs::device_name(&disks, device)?;
    // `/sys/fs/ext4/sda1` is a folder.
    let mut kinds = fs::read_dir("/sys/fs").ok()?.flatten();
    let filesystem = kinds.find(|kind| kind.path().join(name).is_dir())?.file_name().into_string().ok()?;
    Some(Mount { device, filesystem, source: format!("/dev/{name}"), options: String::new() })
}

/// As Linux packs them.
fn numbers_of(device: u64) -> (u32, u32) {
    let major = ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff);
    let minor = (device & 0xff) | ((device >> 12) & !0xff);
    (major as u32, minor as u32)
}

fn drive_facts((major, minor): (u32, u32)) -> BTreeMap<String, String> {
    let mut folder = format!("/sys/dev/block/{major}:{minor}");
    let name = procfs::device_name(&line("/proc/diskstats"), (major, minor)).map(str::to_owned);
    if !Path::new(&folder).join("queue").is_dir() {
        // A partition: the drive is its parent.
        folder.push_str("/..");
    }
    let below: Vec<String> = fs::read_dir(format!("{folder}/slaves"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let kind = match line(&format!("{folder}/queue/rotational")).as_str() {
        "0" => Some("not rotating".to_owned()),
        "1" => Some("rotating".to_owned()),
        _ => None,
    };
    let facts = [
        ("device", name),
        ("drive", chosen(&line(&format!("{folder}/device/model")))),
        ("drive kind", kind),
        ("drive scheduler", chosen(&line(&format!("{folder}/queue/scheduler")))),
        ("read-ahead KiB", chosen(&line(&format!("{folder}/queue/read_ahead_kb")))),
        ("write cache", chosen(&line(&format!("{folder}/queue/write_cache")))),
        ("device made of", (!below.is_empty()).then(|| below.join(", "))),
        ("device backed by", chosen(&line(&format!("{folder}/loop/backing_file")))),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn device_numbers_are_unpacked_as_linux_packs_them() {
        assert_eq!(numbers_of(0xfe00), (254, 0));
        assert_eq!(numbers_of(0x801), (8, 1));
        assert_eq!(numbers_of((1 << 20) | (8 << 8) | 2), (8, 258));
    }

    #[test]
    fn a_filesystem_that_is_not_listed_is_found_by_its_device() {
        let path = std::env::current_exe().unwrap();
        let found = unlisted_mount(&path).map(|mount| (mount.device, mount.filesystem));
        match procfs::mount_of(&line("/proc/self/mountinfo"), &path.display().to_string()) {
            // A chroot.
            None => assert!(found.is_some()),
            Some(known) => {
                // Filesystems on several devices, or on none, are not found.
                let disks = line("/proc/diskstats");
                let expected = procfs::device_name(&disks, known.device)
                    .filter(|name| Path::new("/sys/fs").join(&known.filesystem).join(name).is_dir())
                    .map(|_| (known.device, known.filesystem));
                assert_eq!(found, expected);
            }
        }
        assert_eq!(unlisted_mount(Path::new("/proc/self")), None);
    }

    #[test]
    fn this_process_has_facts_and_can_be_read() {
        let facts = facts_of(std::process::id());
        assert!(facts.contains_key("affinity") && facts.contains_key("open files limit"), "{facts:?}");
        let tree = |root: u32| Tree { root, waited: Sum::default(), cgroup: None, hardware: Some(Hardware::default()) };
        let mut this = tree(std::process::id());
        let own = sampler::Own::Nothing;
        assert!(this.read(own, &mut Readings::default()) && this.read(own, &mut Readings::default()));
        let mut gone = tree(u32::MAX);
        assert!(!gone.read(own, &mut Readings::default()));
        let mut own = Own::of(std::process::id(), std::process::id()).unwrap();
        let began = Instant::now();
        while own.since_last().unwrap() == Nanos::ZERO {
            assert!(began.elapsed() < Duration::from_secs(60), "this thread runs");
        }
        assert!(Own::of(std::process::id(), 1).is_none());
    }
}
