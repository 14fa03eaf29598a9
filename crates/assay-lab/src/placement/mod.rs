//! Where a server may run and what it may use: CPUs, memory, huge pages. Each is verified, and undone at the end.
//!
//! A placement that cannot be applied is a fault with its reason; nothing is silently skipped.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::fault::Result;
use crate::process::Identity;

pub mod cpus;
pub mod memory;
pub mod pages;

pub use cpus::Cpus;
pub use pages::Transparent;

/// The requested placement; `None` everywhere: no restriction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The CPUs that it may run on.
    pub cpus: Option<Cpus>,
    /// Memory limit in bytes, including the page cache.
    pub memory_bytes: Option<u64>,
    /// Huge pages reserved for it, in bytes.
    pub huge_pages_bytes: Option<u64>,
    /// Transparent huge pages, of the whole machine.
    pub transparent: Option<Transparent>,
}

/// What to undo when a server has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Undo {
    /// A control group, to remove.
    Group(PathBuf),
    /// Huge pages, to release.
    HugePages(u64),
    /// A kernel setting, to restore.
    File(pages::Written),
}

impl Placement {
    /// Preparations before the process exists. `name`: the server's.
    pub(crate) fn prepare(&self, name: &str, account: &Account) -> Result<Vec<Undo>> {
        let mut undo = Vec::new();
        match self.prepare_all(name, account, &mut undo) {
            Ok(()) => Ok(undo),
            Err(fault) => {
                undo.iter().rev().for_each(Undo::apply);
                Err(fault)
            }
        }
    }

    fn prepare_all(&self, name: &str, account: &Account, undo: &mut Vec<Undo>) -> Result<()> {
        if let Some(bytes) = self.memory_bytes {
            undo.push(Undo::Group(memory::make(name, bytes)?));
        }
        if let Some(transparent) = self.transparent {
            undo.extend(pages::set_transparent(transparent)?.map(Undo::File));
        }
        if let Some(bytes) = self.huge_pages_bytes {
            let (count, allowed) = pages::reserve(bytes, account)?;
            undo.extend([Undo::HugePages(count), Undo::File(allowed)]);
        }
        Ok(())
    }

    /// What is done to the process before its program runs.
    pub(crate) fn apply(&self, process: &Identity, undo: &[Undo]) -> Result<()> {
        if let Some(cpus) = &self.cpus {
            cpus.pin(process)?;
        }
        for group in undo.iter().filter_map(|undo| if let Undo::Group(path) = undo { Some(path) } else { None }) {
            memory::join(group, process)?;
        }
        Ok(())
    }

    /// Whether everything is in effect, verified with the kernel once the server answers.
    pub(crate) fn verify(&self, process: &Identity) -> Result<()> {
        if let Some(cpus) = &self.cpus {
            cpus.verify(process)?;
        }
        if let Some(bytes) = self.memory_bytes {
            memory::verify(process, bytes)?;
        }
        if self.huge_pages_bytes.is_some() {
            pages::verify(process)?;
        }
        Ok(())
    }
}

impl Undo {
    /// Undoes it. What is already gone is fine.
    pub(crate) fn apply(&self) {
        match self {
            Undo::Group(path) => memory::remove(path),
            Undo::HugePages(count) => pages::give_back(*count),
            Undo::File(written) => written.undo(),
        }
    }
}
