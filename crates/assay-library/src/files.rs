//! Files that may be records.

use std::fs::{self, FileType, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file that may be a record, as it was when the folder was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its path below the library's folder.
    pub path: String,
    /// Its size and times.
    pub stamp: Stamp,
}

/// What tells whether a file has changed. Times are compared for equality only, so clocks may run backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes.
    pub size: i64,
    /// Last change of its content, in nanoseconds since 1970.
    pub mtime_ns: i64,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            size: i64::try_from(metadata.len()).unwrap_or(i64::MAX),
            mtime_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
        }
    }
}

/// A path below the folder, and why it could not be used.
pub type Refused = (String, String);

/// All candidates below `folder`, by path, and what could not be listed, with the reason.
///
/// Candidates end in `.json.zst` or `.json`. Hidden files and folders are left out, and links to folders, which may
/// form a circle.
pub fn candidates(folder: &Path) -> io::Result<(Vec<Candidate>, Vec<Refused>)> {
    let (mut found, mut unlisted) = (Vec::new(), Vec::new());
    let mut folders: Vec<PathBuf> = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let entries = match fs::read_dir(folder.join(&below)) {
            Ok(entries) => entries,
            Err(error) if below.as_os_str().is_empty() => return Err(error),
            Err(error) => {
                unlisted.push((below.display().to_string(), error.to_string()));
                continue;
            }
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                unlisted.push((below.join(&name).display().to_string(), "its name is not UTF-8".to_owned()));
                continue;
            };
            if name.starts_with('.') {
                continue;
            }
            let path = below.join(name);
            let kind = entry.file_type();
            if kind.as_ref().is_ok_and(FileType::is_dir) {
                folders.push(path);
                continue;
            }
            if !name.ends_with(".json.zst") && !name.ends_with(".json") {
                continue;
            }
            // A file that was removed in the meantime is not there.
            let is_link = kind.is_ok_and(|kind| kind.is_symlink());
            match if is_link { fs::metadata(folder.join(&path)) } else { entry.metadata() } {
                Ok(metadata) if metadata.is_file() => {
                    let path = path.to_str().expect("its parts are UTF-8").to_owned();
                    found.push(Candidate { path, stamp: Stamp::of(&metadata) });
                }
                _ => {}
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((found, unlisted))
}
