//! The log of a server on this machine, as far as it grows during a run.
//!
//! The file is the one that the server's process has open as its standard error: there PostgreSQL, MySQL and MariaDB
//! write their logs, unless a collector process takes them.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use super::sampler::Readings;

/// Read at most this much per sample: a server that logs every statement must not slow down the sampler.
const BYTES_MAX: u64 = 64 << 10;
/// Characters of a line.
const LINE_WIDTH: usize = 400;

/// A log that is read from where it ended when it was found.
pub(super) struct ServerLog {
    file: File,
    inode: u64,
    at: u64,
    /// The beginning of a line that was not complete yet.
    rest: String,
}

impl ServerLog {
    /// The log of this process; `before`: that of its predecessor, which goes on if it is the same file. `None`: it is
    /// no file that we may read.
    pub(super) fn of(process: u32, before: Option<ServerLog>) -> Option<ServerLog> {
        let file = File::open(format!("/proc/{process}/fd/2")).ok()?;
        let found = file.metadata().ok().filter(fs::Metadata::is_file)?;
        match before {
            Some(same) if same.inode == found.ino() => Some(same),
            // A restart began a new file: all of it is new.
            Some(_) => Some(ServerLog { file, inode: found.ino(), at: 0, rest: String::new() }),
            None => Some(ServerLog { file, inode: found.ino(), at: found.size(), rest: String::new() }),
        }
    }

    /// Lines that were added since the last call. Of very many, the last ones.
    pub(super) fn read(&mut self, readings: &mut Readings) {
        let Ok(end) = self.file.metadata().map(|found| found.size()) else { return };
        // It was emptied.
        self.at = self.at.min(end);
        if end - self.at > BYTES_MAX {
            readings.logged(format!("… {} bytes were left out here", end - self.at - BYTES_MAX));
            (self.at, self.rest) = (end - BYTES_MAX, String::new());
        }
        let mut bytes = Vec::new();
        let read = self
            .file
            .seek(SeekFrom::Start(self.at))
            .and_then(|_| Read::by_ref(&mut self.file).take(end - self.at).read_to_end(&mut bytes));
        if read.is_err() {
            return;
        }
        self.at = end;
        self.rest += &String::from_utf8_lossy(&bytes);
        while let Some((line, rest)) = self.rest.split_once('\n') {
            if !line.trim().is_empty() {
                let line: String = line.trim_end().chars().take(LINE_WIDTH).collect();
                readings.logged(assay_record::text_without_secrets(&line));
            }
            self.rest = rest.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_are_read_whole_once_and_without_passwords() {
        let mut written = tempfile::NamedTempFile::new().unwrap();
        writeln!(written, "before").unwrap();
        let mut log = ServerLog {
            file: File::open(written.path()).unwrap(),
            inode: written.as_file().metadata().unwrap().ino(),
            at: 7,
            rest: String::new(),
        };
        let mut lines = || {
            let mut readings = Readings::default();
            log.read(&mut readings);
            readings.lines()
        };
        assert_eq!(lines(), [""; 0]);
        write!(written, "one\n\nERROR: postgres://app:secret@host is ha").unwrap();
        assert_eq!(lines(), ["one"]);
        writeln!(written, "lf").unwrap();
        assert_eq!(lines(), ["ERROR: postgres://app:***@host is half"]);
        writeln!(written, "{}", "x".repeat(200_000)).unwrap();
        let long = lines();
        assert!(long[0].starts_with("… 13") && long[1].len() == LINE_WIDTH, "{long:?}");
        written.as_file().set_len(0).unwrap();
        assert_eq!(lines(), [""; 0]);
    }
}
