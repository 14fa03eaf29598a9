//! The file of a run's history, beside its record: what its transactions read and wrote.
//!
//! Frames are appended and never rewritten, as in records (`stream`). The first has the head in JSON; each other one
//! has a `w` and words of `assay_isolation::log`, 8 bytes each and little-endian, or the end in JSON. A file cut
//! anywhere has everything up to its last whole frame.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use assay_isolation::History;
use serde::{Deserialize, Serialize};

use crate::disk::{COMPRESSED_BYTES_MAX, read_file};
use crate::stream::{Frames, put_frame};

/// Version of the format.
const FORMAT: u32 = 1;
/// Begins a frame of words.
const WORDS: u8 = b'w';
/// More than any run keeps: `--megabytes` limits its history.
const BYTES_MAX: u64 = 64 << 30;

/// The first frame.
#[derive(Serialize, Deserialize)]
struct Head {
    history: u32,
    level: String,
}

/// The last frame of a run that ended.
#[derive(Serialize, Deserialize)]
struct End {
    is_partial: bool,
}

/// A history that is being written.
#[derive(Debug)]
pub struct HistoryFile {
    path: PathBuf,
    file: File,
}

/// A history that was read.
#[derive(Debug)]
pub struct ReadHistory {
    /// The isolation level that was promised.
    pub level: String,
    /// What the file has. It is partial if the run did not write its end.
    pub history: History,
}

/// The file of the history that belongs to a record.
pub fn history_path(record: &Path) -> PathBuf {
    let mut name = record.as_os_str().to_owned();
    name.push(".history");
    name.into()
}

impl HistoryFile {
    /// Creates the file, which must not exist, with its head.
    pub fn begin(path: PathBuf, level: &str) -> io::Result<HistoryFile> {
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        let mut created = HistoryFile { path, file };
        created.frame(head(level)?)?;
        Ok(created)
    }

    /// Appends whole transactions.
    pub fn add(&mut self, words: &[u64]) -> io::Result<()> {
        self.frame(text_of(words))
    }

    /// Appends the end. `is_partial`: some transactions are missing.
    pub fn finish(mut self, is_partial: bool) -> io::Result<()> {
        self.frame(serde_json::to_vec(&End { is_partial })?)?;
        self.file.sync_all()
    }

    /// Removes the file.
    pub fn discard(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    fn frame(&mut self, mut text: Vec<u8>) -> io::Result<()> {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, &mut text)?;
        self.file.write_all(&bytes)
    }
}

impl ReadHistory {
    /// A file.
    pub fn read(path: &Path) -> io::Result<ReadHistory> {
        ReadHistory::from_bytes(&read_file(path, COMPRESSED_BYTES_MAX)?)
    }

    /// The bytes of a file.
    pub fn from_bytes(mut bytes: &[u8]) -> io::Result<ReadHistory> {
        let foreign = || io::Error::new(io::ErrorKind::InvalidData, "this is not the history of a run");
        let (mut frames, mut left) = (Frames::default(), BYTES_MAX);
        let (text, length) = frames.next(bytes, left).map_err(|_| foreign())?;
        let head: Head = serde_json::from_slice(text).map_err(|_| foreign())?;
        if head.history != FORMAT {
            return Err(foreign());
        }
        bytes = &bytes[length..];
        let (mut history, mut end) = (History::new(), None);
        let mut is_whole = true;
        while let Ok((text, length)) = frames.next(bytes, left) {
            left -= text.len() as u64;
            bytes = &bytes[length..];
            match text.split_first() {
                Some((&WORDS, words)) => {
                    let words =
                        words.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
                    is_whole &= history.extend(&words.collect::<Vec<u64>>());
                }
                _ => end = serde_json::from_slice::<End>(text).ok(),
            }
        }
        if !is_whole || end.is_none_or(|end| end.is_partial) {
            history.set_partial();
        }
        Ok(ReadHistory { level: head.level, history })
    }

    /// What a file of this history has.
    pub fn to_bytes(level: &str, history: &History) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let end = serde_json::to_vec(&End { is_partial: history.is_partial() })?;
        for mut text in [head(level)?, text_of(history.words()), end] {
            put_frame(&mut bytes, &mut text)?;
        }
        Ok(bytes)
    }
}

fn head(level: &str) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(&Head { history: FORMAT, level: level.to_owned() })?)
}

fn text_of(words: &[u64]) -> Vec<u8> {
    let mut text = Vec::with_capacity(1 + 8 * words.len());
    text.push(WORDS);
    words.iter().for_each(|word| text.extend(word.to_le_bytes()));
    text
}

#[cfg(test)]
mod tests {
    use assay_isolation::{Outcome, log};

    use super::*;

    fn history() -> History {
        let mut operations = Vec::new();
        log::append(&mut operations, 1, 7);
        let mut history = History::new();
        history.push(3, Outcome::Ok, (10, 20), &operations);
        history.push(123, Outcome::Unknown, (15, u64::MAX), &operations);
        history
    }

    #[test]
    fn what_was_written_is_read_and_a_file_without_its_end_is_partial() {
        let folder = tempfile::tempdir().unwrap();
        let path = history_path(&folder.path().join("a.json.zst"));
        let mut file = HistoryFile::begin(path.clone(), "serializable").unwrap();
        file.add(history().words()).unwrap();
        let cut = ReadHistory::read(&path).unwrap();
        assert!(cut.history.is_partial());
        assert_eq!(cut.history.words(), history().words());
        file.finish(false).unwrap();
        let whole = ReadHistory::read(&path).unwrap();
        assert_eq!((whole.level.as_str(), whole.history), ("serializable", history()));
        assert!(HistoryFile::begin(path, "serializable").is_err(), "an existing file is not replaced");
    }

    #[test]
    fn bytes_cut_anywhere_have_everything_before() {
        let bytes = ReadHistory::to_bytes("read-committed", &history()).unwrap();
        assert_eq!(ReadHistory::from_bytes(&bytes).unwrap().history, history());
        for length in 0..bytes.len() {
            match ReadHistory::from_bytes(&bytes[..length]) {
                Ok(read) => assert!(read.history.is_partial(), "{length} bytes"),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::InvalidData),
            }
        }
        assert!(ReadHistory::from_bytes(b"a record").is_err());
    }
}
