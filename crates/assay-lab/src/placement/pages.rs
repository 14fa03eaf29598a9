//! Huge pages: reserved ones for a server, and the machine's transparent ones.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::fault::{Fault, Result};
use crate::process::Identity;

const COUNT: &str = "/proc/sys/vm/nr_hugepages";
const COMPACT: &str = "/proc/sys/vm/compact_memory";
/// How long to look for huge pages.
const ATTEMPTS: u32 = 3;
const GROUP: &str = "/proc/sys/vm/hugetlb_shm_group";
const TRANSPARENT: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// When the kernel uses transparent huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transparent {
    /// Wherever possible.
    Always,
    /// Where a program asks for them.
    Madvise,
    /// Never.
    Never,
}

impl fmt::Display for Transparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transparent::Always => "always",
            Transparent::Madvise => "madvise",
            Transparent::Never => "never",
        })
    }
}

impl FromStr for Transparent {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Transparent, String> {
        let all = [Transparent::Always, Transparent::Madvise, Transparent::Never];
        all.into_iter()
            .find(|one| one.to_string() == text)
            .ok_or_else(|| "expected always, madvise or never".to_owned())
    }
}

/// The word in brackets, or the whole text: `always [madvise] never`.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text.trim(), |(word, _)| word)
}

/// A kernel setting that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    path: PathBuf,
    before: String,
    ours: String,
}

impl Written {
    /// Restores the previous value, unless somebody else has changed it since.
    pub(super) fn undo(&self) {
        if chosen(&fs::read_to_string(&self.path).unwrap_or_default()) == self.ours {
            let _ = fs::write(&self.path, &self.before);
        }
    }
}

fn write(path: &str, value: &str, before: &str) -> Result<Written> {
    fs::write(path, value).map_err(|error| {
        Fault::environment(format!("cannot write {value} to {path}: {error}"))
            .hint("this changes the machine and needs root")
    })?;
    Ok(Written { path: PathBuf::from(path), before: before.to_owned(), ours: value.to_owned() })
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(|error| Fault::environment(format!("this kernel has no {path}: {error}")))
}

pub(super) fn set_transparent(wanted: Transparent) -> Result<Option<Written>> {
    let before = read(TRANSPARENT)?;
    let before = chosen(&before);
    if before == wanted.to_string() { Ok(None) } else { write(TRANSPARENT, &wanted.to_string(), before).map(Some) }
}

/// Reserves more pages of the usual huge size. Returns their number, and the list of who may use them.
pub(super) fn reserve(bytes: u64, account: &Account) -> Result<(u64, Written)> {
    let info = read("/proc/meminfo")?;
    let size = info.lines().find_map(|line| line.strip_prefix("Hugepagesize:"));
    let size = size.and_then(|text| text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    let size = size.ok_or_else(|| Fault::environment("this kernel has no huge pages"))? << 10;
    let wanted = bytes.div_ceil(size);
    let before = count()?;
    let mut got = 0;
    for _ in 0..ATTEMPTS {
        write(COUNT, &(before + wanted).to_string(), "")?;
        got = count()?.saturating_sub(before);
        if got == wanted {
            break;
        }
        // Compacts free memory; if that is not permitted, the next attempt may still succeed.
        let _ = fs::write(COMPACT, "1");
    }
    if got < wanted {
        give_back(got);
        return Err(Fault::environment(format!(
            "cannot reserve {wanted} huge pages of {} MiB: the kernel found room for {got}",
            size >> 20
        ))
        .hint("request fewer, or reserve them soon after boot (vm.nr_hugepages)"));
    }
    let group = read(GROUP)?;
    let allowed = write(GROUP, &account.group().to_string(), group.trim());
    allowed.map(|written| (got, written)).inspect_err(|_| give_back(got))
}

fn count() -> Result<u64> {
    read(COUNT)?.trim().parse().map_err(|_| Fault::environment(format!("{COUNT} does not contain a number")))
}

pub(super) fn give_back(pages: u64) {
    if let Ok(now) = count() {
        let _ = fs::write(COUNT, now.saturating_sub(pages).to_string());
    }
}

/// Whether any memory of the process is in huge pages.
pub(super) fn verify(process: &Identity) -> Result<()> {
    let path = format!("/proc/{}/smaps", process.pid);
    let maps = fs::read_to_string(Path::new(&path)).unwrap_or_default();
    let huge = |line: &str| {
        let size = line.strip_prefix("KernelPageSize:").and_then(|text| text.trim().strip_suffix(" kB"));
        size.and_then(|size| size.trim().parse::<u64>().ok()).is_some_and(|size| size >= 1024)
    };
    if maps.lines().any(huge) {
        return Ok(());
    }
    Err(Fault::server("huge pages were reserved, but the server does not use them")
        .hint("see its log; `--huge-pages` must reserve more than its shared memory needs"))
}
