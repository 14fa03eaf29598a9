//! Facts about a machine and a process, from the kernel's text files.

/// The choice in brackets: `madvise` of `always [madvise] never`; without brackets, the whole text.
pub fn chosen(text: &str) -> Option<String> {
    let text = text.trim();
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(inside, _)| inside);
    Some(inside.unwrap_or(text)).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A field of /proc/PID/status or /proc/cpuinfo.
pub fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_owned())
    })
}

/// Soft limit of a line of /proc/PID/limits, such as `Max open files`.
pub fn limit(limits: &str, name: &str) -> Option<String> {
    let rest = limits.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// Words of /proc/PID/cmdline, which ends each with a zero.
pub fn command_line(cmdline: &[u8]) -> Option<String> {
    let words: Vec<String> = cmdline
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The control group of a process: of version 2, or of a controller of version 1; /proc/PID/cgroup.
pub fn cgroup_path(cgroup: &str, controller: &str) -> Option<String> {
    cgroup.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        controllers.split(',').any(|one| one == controller).then(|| path.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_the_kernel_writes_them() {
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(chosen("60\n").as_deref(), Some("60"));
        assert_eq!(chosen("\n"), None);
        assert_eq!(field("Name:\tx\nCpus_allowed_list:\t0-3\n", "Cpus_allowed_list").as_deref(), Some("0-3"));
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max open files            20000                20000                files\n";
        assert_eq!(limit(limits, "Max open files").as_deref(), Some("20000"));
        assert_eq!(command_line(b"postgres\0-D\0/data\0").as_deref(), Some("postgres -D /data"));
        let cgroup = "12:cpu,cpuacct:/a\n3:memory:/b\n0::/c\n";
        assert_eq!(cgroup_path(cgroup, "memory").as_deref(), Some("/b"));
        assert_eq!(cgroup_path(cgroup, "").as_deref(), Some("/c"));
    }
}
