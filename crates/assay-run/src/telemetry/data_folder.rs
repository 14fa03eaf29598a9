//! Disk space used by the files of a server's data directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use assay_seam::Nanos;

use super::pace::Pace;
use super::sampler::Readings;

pub(super) const METRIC: &str = "data_folder_bytes";
/// Scanning this many takes a tenth of a second.
const FILES_MAX: usize = 50_000;
/// Scanning takes at most one part in this many of a CPU.
const SHARE: u64 = 1000;
/// Blocks of stat(2), whatever the filesystem's are.
const BLOCK_BYTES: u64 = 512;

/// A folder that is measured from time to time.
pub(super) struct DataFolder {
    path: PathBuf,
    pace: Pace,
    refused: Option<String>,
}

impl DataFolder {
    pub(super) fn new(path: PathBuf) -> DataFolder {
        DataFolder { path, pace: Pace::new(SHARE), refused: None }
    }

    /// Measures it if it is due.
    pub(super) fn read(&mut self, now: Nanos, readings: &mut Readings) {
        if let Some(reason) = &self.refused {
            return readings.lack(METRIC, reason);
        }
        match self.pace.keep(now, || size_of(&self.path)) {
            Some(Ok(bytes)) => readings.put(METRIC, &format!("blocks of {}", self.path.display()), bytes),
            Some(Err(reason)) => self.refused = Some(reason),
            None => {}
        }
    }
}

/// Bytes of the blocks of all files below. Links are not followed; files that disappear meanwhile do not count.
fn size_of(folder: &Path) -> Result<u64, String> {
    let entries = |folder: &Path| fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()));
    let (mut left, mut files, mut bytes) = (vec![entries(folder)?], 0usize, 0u64);
    while let Some(folder) = left.pop() {
        for entry in folder.flatten() {
            files += 1;
            if files > FILES_MAX {
                return Err(format!("the data directory has more than {FILES_MAX} files"));
            }
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                left.extend(entries(&entry.path()));
            } else {
                bytes = bytes.saturating_add(metadata.blocks().saturating_mul(BLOCK_BYTES));
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_folders_count_with_the_blocks_that_they_take() {
        let folder = tempfile::tempdir().unwrap();
        let empty = size_of(folder.path()).unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/file"), vec![1; 1 << 20]).unwrap();
        fs::File::open(folder.path().join("below/file")).unwrap().sync_all().unwrap();
        let full = size_of(folder.path()).unwrap();
        assert!(full >= empty + (1 << 20) && full < empty + (2 << 20), "{empty} {full}");
        assert!(size_of(&folder.path().join("missing")).unwrap_err().contains("missing"));
    }
}
