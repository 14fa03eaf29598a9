//! A file that is read in parts: that of a run of days is larger than what should be in memory.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::disk::{COMPRESSED_BYTES_MAX, Limits, ReadError, open_file};

/// Read at once, at least.
const PART_BYTES: usize = 1 << 20;

/// A file, or bytes, on their way to a reader.
pub(crate) struct Source<'a, R> {
    path: &'a Path,
    /// Size of the file; 0 if that is unknown.
    bytes: u64,
    from: R,
    held: Vec<u8>,
    /// Begin of what was not passed. passed <= held.len()
    passed: usize,
}

impl<'a> Source<'a, File> {
    pub(crate) fn open(path: &'a Path) -> Result<Source<'a, File>, ReadError> {
        let from = open_file(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        let bytes = from.metadata().map_or(0, |found| found.len());
        Ok(Source::of(path, from, bytes))
    }
}

impl<'a, R: Read> Source<'a, R> {
    pub(crate) fn new(path: &'a Path, from: R) -> Source<'a, R> {
        Source { path, bytes: 0, from, held: Vec::new(), passed: 0 }
    }

    /// What its record may need.
    pub(crate) fn limits(&self) -> Limits {
        Limits::of(self.bytes)
    }

    /// Size of the file; 0 if that is unknown.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The error of a record that needs more.
    pub(crate) fn too_much(&self, limit_bytes: u64) -> ReadError {
        ReadError::TooMuch { path: self.path.to_owned(), bytes: self.bytes, limit_bytes }
    }

    /// From a reader of so many bytes.
    pub(crate) fn of(path: &'a Path, from: R, bytes: u64) -> Source<'a, R> {
        Source { bytes, ..Source::new(path, from) }
    }

    pub(crate) fn path(&self) -> &'a Path {
        self.path
    }

    /// What was read, and not passed.
    pub(crate) fn held(&self) -> &[u8] {
        &self.held[self.passed..]
    }

    /// The reader needs this many bytes no more.
    pub(crate) fn pass(&mut self, bytes: usize) {
        self.passed += bytes;
    }

    /// Reads at least as much again as is held; false at the end of the file. Fails if what is held grows too large.
    pub(crate) fn more(&mut self) -> Result<bool, ReadError> {
        self.held.drain(..self.passed);
        self.passed = 0;
        let wanted = self.held.len().max(PART_BYTES) as u64;
        let read = (&mut self.from).take(wanted).read_to_end(&mut self.held);
        let read = read.map_err(|source| ReadError::Io { path: self.path.to_owned(), source })?;
        match self.held.len() as u64 > COMPRESSED_BYTES_MAX {
            true => Err(ReadError::TooLarge { path: self.path.to_owned(), limit_bytes: COMPRESSED_BYTES_MAX }),
            false => Ok(read > 0),
        }
    }

    /// Everything that was not passed.
    pub(crate) fn rest(mut self) -> Result<Vec<u8>, ReadError> {
        while self.more()? {}
        Ok(self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_every_byte_once_and_no_more_is_held_than_it_needs() {
        let bytes: Vec<u8> = (0..7 * PART_BYTES / 2).map(|at| (at % 251) as u8).collect();
        let mut source = Source::new(Path::new("x"), &*bytes);
        let (mut read, mut most) = (Vec::new(), 0);
        while !source.held().is_empty() || source.more().unwrap() {
            let next = source.held().len().min(1000);
            read.extend_from_slice(&source.held()[..next]);
            source.pass(next);
            most = most.max(source.held.len());
        }
        assert!(read == bytes);
        assert_eq!(most, PART_BYTES);
        let mut source = Source::new(Path::new("x"), &*bytes);
        source.more().unwrap();
        source.pass(10);
        assert!(source.rest().unwrap() == bytes[10..]);
    }
}
