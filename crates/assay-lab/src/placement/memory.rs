//! A memory limit by a control group: version 2 if it has the memory controller, otherwise version 1.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fault::{Fault, Result};
use crate::process::Identity;
use crate::wait;

/// The memory controller of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hierarchy {
    /// The memory controller's own tree.
    One(PathBuf),
    /// The unified tree.
    Two(PathBuf),
}

/// The kernel's files for setting and reading a limit.
const FILES: [(&str, &str); 2] =
    [("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), ("memory.max", "memory.swap.max")];

/// From the text of /proc/self/mounts. `controllers`: what `cgroup.controllers` of a unified tree holds.
fn hierarchy(mounts: &str, controllers: impl Fn(&Path) -> String) -> Option<Hierarchy> {
    let fields = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        (words.len() >= 4).then_some(words)
    };
    let mounts: Vec<Vec<String>> = mounts.lines().filter_map(fields).collect();
    let unified = mounts.iter().filter(|words| words[2] == "cgroup2").map(|words| PathBuf::from(&words[1]));
    let two =
        unified.filter(|path| controllers(path).split_whitespace().any(|name| name == "memory")).map(Hierarchy::Two);
    let is_memory = |words: &&Vec<String>| words[2] == "cgroup" && words[3].split(',').any(|option| option == "memory");
    let one = mounts.iter().filter(is_memory).map(|words| Hierarchy::One(PathBuf::from(&words[1])));
    two.chain(one).next()
}

fn here() -> Result<Hierarchy> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let controllers = |path: &Path| fs::read_to_string(path.join("cgroup.controllers")).unwrap_or_default();
    hierarchy(&mounts, controllers).ok_or_else(|| {
        Fault::environment("memory cannot be limited: no control group hierarchy with a memory controller is mounted")
            .hint("leave out the memory limit, or boot with cgroup_enable=memory")
    })
}

/// Makes a group of at most `bytes`.
pub(super) fn make(name: &str, bytes: u64) -> Result<PathBuf> {
    let hierarchy = here()?;
    let refused = |doing: &str, path: &Path, error: std::io::Error| {
        Fault::environment(format!("memory cannot be limited: cannot {doing} {}: {error}", path.display()))
            .hint("this needs root or a delegated control group: systemd-run --user --scope -p Delegate=yes assay …")
    };
    let (root, [limit, swap]) = match &hierarchy {
        Hierarchy::One(root) => (root.clone(), [FILES[0].0, FILES[0].1]),
        Hierarchy::Two(root) => {
            let control = root.join("cgroup.subtree_control");
            let on = fs::read_to_string(&control).unwrap_or_default();
            if !on.split_whitespace().any(|name| name == "memory") {
                fs::write(&control, "+memory").map_err(|error| refused("write", &control, error))?;
            }
            (root.clone(), [FILES[1].0, FILES[1].1])
        }
    };
    let group = root.join(format!("assay-{}-{name}", std::process::id()));
    // A group of the same name may be left from a killed process with the same id.
    let _ = fs::remove_dir(&group);
    fs::create_dir(&group).map_err(|error| refused("create", &group, error))?;
    let write = |name: &str, value: u64| {
        let path = group.join(name);
        fs::write(&path, value.to_string()).map_err(|error| refused("write", &path, error))
    };
    let written = write(limit, bytes).and_then(|()| match (&hierarchy, group.join(swap).exists()) {
        // Version 1 limits the sum, version 2 only the swap.
        (_, false) => Ok(()),
        (Hierarchy::One(_), true) => write(swap, bytes),
        (Hierarchy::Two(_), true) => write(swap, 0),
    });
    if let Err(fault) = written {
        remove(&group);
        return Err(fault);
    }
    Ok(group)
}

pub(super) fn join(group: &Path, process: &Identity) -> Result<()> {
    let path = group.join("cgroup.procs");
    fs::write(&path, process.pid.to_string())
        .map_err(|error| Fault::environment(format!("cannot put the server into {}: {error}", group.display())))
}

/// Removes a group once its last process is gone.
pub(super) fn remove(group: &Path) {
    let removed = || Ok::<_, ()>((!group.exists() || fs::remove_dir(group).is_ok()).then_some(()));
    let _ = wait::until(Duration::from_secs(10), removed);
}

/// The limit in effect for a process, in bytes, and how many processes the kernel has killed because of it.
pub fn limit_of(pid: u32) -> Option<(u64, u64)> {
    let group = group_of(pid)?;
    let [one, two] = FILES.map(|(limit, _)| fs::read_to_string(group.join(limit)).ok());
    let limit = one.or(two)?.trim().parse().ok()?;
    let kills = ["memory.oom_control", "memory.events"].iter().find_map(|name| {
        let text = fs::read_to_string(group.join(name)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    });
    Some((limit, kills.unwrap_or(0)))
}

/// How often the kernel has killed something in a group that we created.
pub(crate) fn kills(group: &Path) -> u64 {
    let read = |name: &str| fs::read_to_string(group.join(name)).unwrap_or_default();
    let texts = [read("memory.oom_control"), read("memory.events")];
    let count =
        texts.iter().flat_map(|text| text.lines()).find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
    count.unwrap_or(0)
}

/// The group that controls a process's memory.
fn group_of(pid: u32) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let of = |controller: &str| {
        text.lines().find_map(|line| {
            let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>()[..] else { return None };
            controllers.split(',').any(|name| name == controller).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    match here().ok()? {
        Hierarchy::One(root) => Some(root.join(of("memory")?)),
        Hierarchy::Two(root) => Some(root.join(of("")?)),
    }
}

pub(super) fn verify(process: &Identity, bytes: u64) -> Result<()> {
    // The kernel counts in pages.
    match limit_of(process.pid) {
        Some((limit, _)) if limit <= bytes && bytes - limit < 1 << 16 => Ok(()),
        limit => {
            let limit = limit.map_or_else(|| "no limit".to_owned(), |(limit, _)| format!("a limit of {limit} bytes"));
            Err(Fault::environment(format!("the server should have a memory limit of {bytes} bytes, but has {limit}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                       cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                       cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";

    #[test]
    fn the_hierarchy_that_controls_memory_is_found() {
        let check = |mounts: &str, controllers: &str, expected: Option<Hierarchy>| {
            assert_eq!(hierarchy(mounts, |_| controllers.to_owned()), expected);
        };
        check(ONE, "", Some(Hierarchy::One("/sys/fs/cgroup/memory".into())));
        check(ONE, "cpu io memory\n", Some(Hierarchy::Two("/sys/fs/cgroup/unified".into())));
        check("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "cpu memory", Some(Hierarchy::Two("/sys/fs/cgroup".into())));
        check("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "cpu", None);
        check("", "memory", None);
    }
}
