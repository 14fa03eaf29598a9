//! Records on disk: written atomically, read within limits.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use assay_secret::json_without_secrets;
use serde::Deserialize;

use crate::budget::Budget;
use crate::disk::{
    COMPRESSED_BYTES_MAX, DECOMPRESSED_BYTES_MAX, Existing, ReadError, WriteError, aside, bytes_of, folder_of,
    is_plain, is_special, may_create, persist_new, persist_numbered, read_bounded, sync_folder,
};
use crate::source::Source;
use crate::stream::{self, Part};
use crate::trial::{FORMAT, Record, Tool};

/// RFC 8878, 3.1.1.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl Record {
    /// Writes a new record to `path`. With `Existing::Keep`, a file that appears there at the last moment is safe, too.
    pub fn create(&self, path: &Path, existing: Existing) -> Result<(), WriteError> {
        if existing == Existing::Replace || is_special(path) {
            return self.write(path);
        }
        may_create(path, existing)?;
        let file = persist_new(aside(path, path, &self.encoded(path)?)?, path)?;
        file.sync_all().map_err(|source| WriteError::Io { path: path.to_owned(), source })
    }

    /// Writes the record to `path`, atomically replacing a file of that name. Compressed, unless the name ends in
    /// `.json`. The same record gives the same bytes.
    pub fn write(&self, path: &Path) -> Result<(), WriteError> {
        let failed = |source| WriteError::Io { path: path.to_owned(), source };
        // A device or a pipe (`--record /dev/stdout`) must not be replaced by a file.
        if is_special(path) {
            let mut file = File::options().append(true).open(path).map_err(failed)?;
            return file.write_all(&self.encoded(path)?).map_err(failed);
        }
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let file = aside(path, &target, &self.encoded(&target)?)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&target).map_err(|error| failed(error.error))?;
        sync_folder(folder_of(&target)).map_err(failed)
    }

    /// Writes the record into `folder`, which is created if missing, as `WORKLOAD-TIME.json.zst`, or with `-2`, `-3`, …
    /// before the ending if that exists. Returns the path.
    pub fn write_new(&self, folder: &Path) -> Result<PathBuf, WriteError> {
        let (path, file) = persist_numbered(folder, self, |path| self.encoded(path))?;
        file.sync_all().map_err(|source| WriteError::Io { path: path.clone(), source })?;
        Ok(path)
    }

    /// Reads a record of this format or an earlier one, compressed or not. Unknown fields are ignored. A stream that
    /// was cut has everything until then, and the status `Running`.
    pub fn read(path: &Path) -> Result<Record, ReadError> {
        Record::read_part(path, Part::Whole)
    }

    /// As `read`, but without the histograms of intervals, unless the record is one JSON text: for those who ask for
    /// figures of whole stages. Several times faster.
    pub fn read_figures(path: &Path) -> Result<Record, ReadError> {
        Record::read_part(path, Part::Figures)
    }

    /// As `read`, but the histograms of intervals may have fewer buckets, which answer what pages ask as those of the
    /// run do: `Thinner`. Several times faster for a long record.
    pub fn read_thinned(path: &Path) -> Result<Record, ReadError> {
        Record::read_part(path, Part::Thinned)
    }

    /// As `read`, without intervals and telemetry, and with the distributions of response times alone: what was
    /// requested, where it ran, totals, how it ended. Several times faster.
    pub fn read_head(path: &Path) -> Result<Record, ReadError> {
        let mut record = Record::read_part(path, Part::Head)?;
        // A record of one JSON text has them nevertheless.
        record.stages.iter_mut().for_each(|stage| stage.intervals.clear());
        record.telemetry = None;
        Ok(record)
    }

    fn read_part(path: &Path, part: Part) -> Result<Record, ReadError> {
        if part != Part::Whole
            && let Some(record) = stream::read_copy(path, part)
        {
            return Ok(record);
        }
        let mut source = Source::open(path)?;
        if stream::is_stream(&mut source)? {
            return stream::read(&mut source, part).map(|found| found.record);
        }
        let (limits, bytes) = (source.limits(), source.bytes());
        let json = text_of(path, source.rest()?, limits.text.min(DECOMPRESSED_BYTES_MAX))?;
        let budget = Budget::new(limits.values);
        let refused = |source: serde_json::Error| match source.is_eof() {
            _ if budget.is_exceeded() => {
                ReadError::TooMuch { path: path.to_owned(), bytes, limit_bytes: limits.values }
            }
            true => ReadError::CutOff { path: path.to_owned() },
            false => ReadError::Content { path: path.to_owned(), source },
        };
        // Format and writer are readable even if the rest is not.
        let head: FileHead = serde_json::from_slice(&json).map_err(refused)?;
        if !(1..=u64::from(FORMAT)).contains(&head.format) {
            return Err(ReadError::Format { path: path.to_owned(), format: head.format, tool: head.tool });
        }
        budget.read(&json).map_err(refused)
    }

    /// The record as a compressed file holds it.
    pub fn to_bytes(&self) -> Vec<u8> {
        stream::whole(self).expect("writing to memory does not fail")
    }

    /// The record that `to_bytes` has written; `None`: it is damaged, or of another format.
    pub fn from_bytes(bytes: &[u8]) -> Option<Record> {
        let found = stream::read(&mut Source::of(Path::new("memory"), bytes, bytes.len() as u64), Part::Whole).ok()?;
        (found.whole_bytes == bytes.len() as u64).then_some(found.record)
    }

    /// The record as JSON. By its text: a second form of everything that a record can hold, from and to values, would
    /// take a quarter of the time in which this crate is compiled.
    pub(crate) fn to_value(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::from_slice(&serde_json::to_vec(self)?)
    }

    /// As the file of this name holds it.
    fn encoded(&self, path: &Path) -> Result<Vec<u8>, WriteError> {
        let failed = |source| WriteError::Io { path: path.to_owned(), source };
        if !is_plain(path) {
            return stream::whole_with_copy(self).map_err(failed);
        }
        let text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        let mut text = json_without_secrets(&text).into_owned();
        text.push(b'\n');
        Ok(text)
    }
}

/// The content of a record that was read before, which is one JSON text.
pub(crate) fn json_of(path: &Path) -> Result<serde_json::Value, ReadError> {
    let json = text_of(path, bytes_of(path, COMPRESSED_BYTES_MAX)?, DECOMPRESSED_BYTES_MAX)?;
    serde_json::from_slice(&json).map_err(|source| ReadError::Content { path: path.to_owned(), source })
}

#[derive(Deserialize)]
struct FileHead {
    format: u64,
    tool: Tool,
}

/// The JSON text of a record that is not a stream.
fn text_of(path: &Path, bytes: Vec<u8>, decompressed_max: u64) -> Result<Vec<u8>, ReadError> {
    if bytes.starts_with(&ZSTD_MAGIC) {
        let text = zstd::Decoder::with_buffer(bytes.as_slice()).and_then(|text| read_bounded(text, decompressed_max));
        return match text {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(ReadError::TooLarge { path: path.to_owned(), limit_bytes: decompressed_max }),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(ReadError::CutOff { path: path.to_owned() })
            }
            Err(source) => Err(ReadError::Damaged { path: path.to_owned(), source }),
        };
    }
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Ok(bytes),
        None => Err(ReadError::CutOff { path: path.to_owned() }),
        Some(_) if ZSTD_MAGIC.starts_with(&bytes) => Err(ReadError::CutOff { path: path.to_owned() }),
        Some(_) => Err(ReadError::NotARecord { path: path.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::event::{Event, Moment, WrittenSoFar};

    #[test]
    fn a_small_file_cannot_fill_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb.json.zst");
        let bomb = zstd::encode_all(io::repeat(b' ').take(1 << 26), 1).unwrap();
        fs::write(&path, &bomb).unwrap();
        let compressed = bomb.len() as u64;
        for (compressed_max, decompressed_max, limit) in [
            (compressed - 1, 1 << 26, Some(compressed - 1)),
            (compressed, 1 << 20, Some(1 << 20)),
            (compressed, 1 << 26, None),
        ] {
            let text = bytes_of(&path, compressed_max).and_then(|bytes| text_of(&path, bytes, decompressed_max));
            let exceeded = match text {
                Err(ReadError::TooLarge { limit_bytes, .. }) => Some(limit_bytes),
                Err(other) => panic!("{other}"),
                Ok(_) => None,
            };
            assert_eq!(exceeded, limit);
        }
    }

    #[test]
    fn a_small_file_that_stands_for_gigabytes_is_refused_with_a_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let record = Record { format: FORMAT, ..Record::default() };
        let text = record.to_value().unwrap();
        let list = |key: &str, item: &str, count: usize| {
            let mut value = text.clone();
            value[key] = "HERE".into();
            value.to_string().replace("\"HERE\"", &format!("[{}]", vec![item; count].join(",")))
        };
        let note = r#"{"at":"2026-01-01T00:00:00.000Z","text":""}"#;
        let (small, large) = (list("notes", note, 10), list("notes", note, 1_400_000));
        let events = |record: &str| {
            let head = Event::line(
                &WrittenSoFar::begin(&Record { format: FORMAT, ..Record::default() }, Moment::Underway).0[0],
            );
            head + "\n" + &format!("{{\"noted\":{note}}}\n").repeat(record.len() / note.len())
        };
        for (name, text, is_refused) in [
            ("small", small.clone(), false),
            ("notes", large.clone(), true),
            ("types", list("types", "\"\"", 3_000_000), true),
            ("events", events(&large), true),
            ("few events", events(&small), false),
        ] {
            let path = folder.path().join(format!("{name}.json.zst"));
            let bytes = zstd::encode_all(text.as_bytes(), 3).unwrap();
            assert!(bytes.len() < 256 << 10, "{name}: {}", bytes.len());
            fs::write(&path, bytes).unwrap();
            match Record::read(&path) {
                Ok(_) => assert!(!is_refused, "{name}"),
                Err(error) => {
                    let words = error.to_string();
                    assert!(
                        is_refused && words.contains("would need more than 64 MB of memory, and has"),
                        "{name}: {words}"
                    );
                }
            }
        }
    }
}
