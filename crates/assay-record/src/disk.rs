//! Files of records: their names, how they come to be, and what can go wrong.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::time::Time;
use crate::trial::{FORMAT, Record, Tool};

/// The default folder for records, below the working directory.
pub const DEFAULT_FOLDER: &str = "assay-records";
/// Largest file read; of a stream, its largest frame.
pub const COMPRESSED_BYTES_MAX: u64 = 256 << 20;
/// Largest JSON text read; of a stream, without the totals that later ones replace.
pub const DECOMPRESSED_BYTES_MAX: u64 = 1 << 30;

/// Largest file read that people write, such as a recipe: what it becomes needs some fifty times as much memory.
pub const WRITTEN_BYTES_MAX: u64 = 4 << 20;
/// Largest file read that programs write, such as a journal or the instants of a trace.
pub const LISTED_BYTES_MAX: u64 = 256 << 20;
/// Bytes of values that any record may become. Reports of them need some three times as much again.
const VALUES_MIN: u64 = 64 << 20;
/// For larger files, this many times their size. A long run's record becomes less than three times.
const VALUES_FACTOR: u64 = 5;

const NAME_LENGTH_MAX: usize = 80;

/// How much memory a record may need, by the size of its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Text that is in memory at once: a frame of a stream, or a whole JSON text.
    pub(crate) text: u64,
    /// Values.
    pub(crate) values: u64,
}

impl Limits {
    /// `bytes`: size of the file; of a pipe, 0.
    pub(crate) fn of(bytes: u64) -> Limits {
        let values = bytes.saturating_mul(VALUES_FACTOR).max(VALUES_MIN);
        Limits { text: values, values }
    }
}

/// Treatment of a file that already has the name of a new record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the new record is refused.
    Keep,
    /// The new record replaces it.
    Replace,
}

/// A record could not be written. Nothing is left behind, and an existing file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// `Existing::Keep`, and there is one.
    #[error("record {path} already exists")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The folder is missing.
    #[error("cannot write record {path}: there is no folder {folder}")]
    NoFolder {
        /// The record.
        path: PathBuf,
        /// The missing folder.
        folder: PathBuf,
    },
    /// The system refused: full disk, permissions, a folder of that name.
    #[error("cannot write record {path}")]
    Io {
        /// The record.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error("cannot read record {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Not a record.
    #[error("{path} is not a record: it is neither zstd nor JSON")]
    NotARecord {
        /// The file.
        path: PathBuf,
    },
    /// The end is missing.
    #[error("record {path} is truncated")]
    CutOff {
        /// The file.
        path: PathBuf,
    },
    /// The compressed data is damaged.
    #[error("record {path} is damaged")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// zstd's error.
        source: io::Error,
    },
    /// Larger than any record.
    #[error("{path} is larger than a record may be ({limit_bytes} bytes)")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// `COMPRESSED_BYTES_MAX` or `DECOMPRESSED_BYTES_MAX`.
        limit_bytes: u64,
    },
    /// It stands for much more than it contains, such as a list of a million empty objects.
    #[error("{path} would need more than {} MB of memory, and has {} KB", limit_bytes >> 20, bytes.div_ceil(1024))]
    TooMuch {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// What a record of this size may need.
        limit_bytes: u64,
    },
    /// Not JSON, or not the fields of a record.
    #[error("{path} is not a record of formats 1 to {FORMAT}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What, and where.
        source: serde_json::Error,
    },
    /// An event of a stream is not JSON, or does not have the fields of one.
    #[error("event {number} of record {path} cannot be read")]
    Event {
        /// The file.
        path: PathBuf,
        /// The line of the stream, from 1.
        number: u64,
        /// What, and where in this line.
        source: serde_json::Error,
    },
    /// Written by another version.
    #[error(
        "record {path} was written by {} {} in format {format}; this assay reads formats 1 to {FORMAT} (use the assay \
         that wrote it, or a later one)",
        tool.name,
        tool.version
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u64,
        /// Who wrote it.
        tool: Tool,
    },
}

/// Whether a new record may be written to `path`, before anything is done for it. Devices and pipes are always allowed.
pub fn may_create(path: &Path, existing: Existing) -> Result<(), WriteError> {
    match existing == Existing::Keep && !is_special(path) && fs::symlink_metadata(path).is_ok() {
        true => Err(WriteError::Exists { path: path.to_owned() }),
        false => Ok(()),
    }
}

/// Whether a file of this name holds one JSON text.
pub(crate) fn is_plain(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// A temporary file with these bytes beside `target`, which will be the record `path`.
pub(crate) fn aside(path: &Path, target: &Path, bytes: &[u8]) -> Result<NamedTempFile, WriteError> {
    let failed = |source| WriteError::Io { path: path.to_owned(), source };
    let folder = folder_of(target);
    if !folder.is_dir() {
        return Err(WriteError::NoFolder { path: path.to_owned(), folder: folder.to_owned() });
    }
    // The umask applies; tempfile's own default would hide records from the user's group.
    let permissions = fs::Permissions::from_mode(0o666);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".assay-").suffix(".tmp").permissions(permissions);
    let mut file = builder.tempfile_in(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    Ok(file)
}

/// Gives a temporary file its name, unless that is taken.
pub(crate) fn persist_new(file: NamedTempFile, path: &Path) -> Result<File, WriteError> {
    let file = file.persist_noclobber(path).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => WriteError::Exists { path: path.to_owned() },
        _ => WriteError::Io { path: path.to_owned(), source: error.error },
    })?;
    sync_folder(folder_of(path)).map_err(|source| WriteError::Io { path: path.to_owned(), source })?;
    Ok(file)
}

/// Creates the first file in `folder` that is free among the default names of `record`, with what `encoded` returns.
pub(crate) fn persist_numbered(
    folder: &Path,
    record: &Record,
    encoded: impl FnOnce(&Path) -> Result<Vec<u8>, WriteError>,
) -> Result<(PathBuf, File), WriteError> {
    let base = folder.join(file_stem(&record.manifest.workload, &record.manifest.task, record.started));
    let first = with_ending(&base, 1);
    let failed = |source| WriteError::Io { path: first.clone(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    let mut file = aside(&first, &first, &encoded(&first)?)?;
    for number in 1.. {
        let path = with_ending(&base, number);
        match file.persist_noclobber(&path) {
            Ok(file) => {
                sync_folder(folder).map_err(failed)?;
                return Ok((path, file));
            }
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => file = error.file,
            Err(error) => return Err(failed(error.error)),
        }
    }
    unreachable!("the numbers do not end")
}

/// The content of the file, if that is not too large.
pub(crate) fn bytes_of(path: &Path, compressed_max: u64) -> Result<Vec<u8>, ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    let bytes = read_bounded(open_file(path).map_err(failed)?, compressed_max).map_err(failed)?;
    bytes.ok_or_else(|| ReadError::TooLarge { path: path.to_owned(), limit_bytes: compressed_max })
}

/// Opens a file to read it. A named pipe is refused: without a writer, opening it would wait for ever.
pub fn open_file(path: &Path) -> io::Result<File> {
    if is_pipe(path) {
        let words = "it is a named pipe, which may have no writer: write it to a file first";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    }
    File::open(path)
}

/// Whether this is a named pipe, and not one that this process has open already, such as that of `<(…)`.
pub fn is_pipe(path: &Path) -> bool {
    let is_open = path == Path::new("/dev/stdin") || ["/dev/fd", "/proc"].iter().any(|folder| path.starts_with(folder));
    !is_open && fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// The content of a file of at most `max` bytes.
pub fn read_file(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {} MB", max >> 20));
    read_bounded(open_file(path)?, max)?.ok_or_else(too_large)
}

/// The same of a text.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    let text = String::from_utf8(read_file(path, max)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
}

/// The last bytes of a file: at most `max`.
pub fn read_end(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut file = open_file(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(max)))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The rest of `from`; `None` if that is more than `max` bytes.
pub(crate) fn read_bounded(from: impl Read, max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(max + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max).then_some(bytes))
}

/// Whether `path` is a device, a pipe, a folder or an open file, such as the one that stdout is redirected to. Files
/// below `/dev/shm` are like any other.
pub(crate) fn is_special(path: &Path) -> bool {
    path.parent() == Some(Path::new("/dev"))
        || ["/dev/fd", "/proc"].iter().any(|folder| path.starts_with(folder))
        || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A rename is durable only when its folder is.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// `oltp_read_write-20260314T150926Z`, and for tasks other than run `oltp_read_write-prepare-20260314T150926Z`. For a
/// workload with a path, its last part without the ending.
fn file_stem(workload: &str, task: &str, started: Time) -> String {
    let name = Path::new(workload).file_stem().map(|name| name.to_string_lossy()).unwrap_or_default();
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.trim_start_matches(['.', '-']).chars().map(safe).take(NAME_LENGTH_MAX).collect();
    let name = if name.is_empty() { "run" } else { &name };
    let task: String = task.chars().map(safe).take(NAME_LENGTH_MAX).collect();
    let task = if task.is_empty() { String::new() } else { format!("{task}-") };
    format!("{name}-{task}{}", started.compact())
}

fn with_ending(base: &Path, number: u32) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    if number > 1 {
        path.push(format!("-{number}"));
    }
    path.push(".json.zst");
    PathBuf::from(path)
}
