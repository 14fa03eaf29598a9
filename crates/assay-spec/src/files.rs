//! What `assay io` is asked to do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use assay_seam::Nanos;
use serde::{Deserialize, Serialize};

use crate::option::{OptionForm, SpecOption, of, set, words_of};
use crate::spec::tags;
use crate::{Wrong, read};

/// Files that are read and written as a database engine does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IoSpec {
    /// Existing folder for the files.
    pub folder: PathBuf,
    /// Keep the files for the next run.
    #[serde(deserialize_with = "read::switch")]
    pub keep: bool,
    /// Bytes of all data files.
    #[serde(deserialize_with = "read::size")]
    pub size: u64,
    /// Number of data files.
    #[serde(deserialize_with = "read::at_least_one")]
    pub files: u64,
    /// Threads that read random blocks, for each step of the ladder.
    #[serde(deserialize_with = "read::counts")]
    pub readers: Vec<u64>,
    /// Threads that write random blocks.
    #[serde(deserialize_with = "read::count")]
    pub writers: u64,
    /// Number of writes in flight per writer.
    #[serde(deserialize_with = "read::at_least_one")]
    pub write_depth: u64,
    /// Threads that append to their own log.
    #[serde(deserialize_with = "read::count")]
    pub loggers: u64,
    /// Bytes of a read or write.
    #[serde(deserialize_with = "read::size")]
    pub block: u64,
    /// Bytes of an append.
    #[serde(deserialize_with = "read::size")]
    pub log_block: u64,
    /// Bytes at which a log starts over.
    #[serde(deserialize_with = "read::size")]
    pub log_size: u64,
    /// Bypass the page cache.
    #[serde(deserialize_with = "read::switch")]
    pub direct: bool,
    /// Writes are done when they are on the drive.
    #[serde(deserialize_with = "read::switch")]
    pub dsync: bool,
    /// Duration of each step.
    #[serde(serialize_with = "read::write_duration", deserialize_with = "read::duration")]
    pub time: Nanos,
    /// Seed of the random blocks; `None`: a random one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::count")]
    pub seed: Option<u64>,
    /// Labels of the record.
    #[serde(deserialize_with = "tags")]
    pub tags: BTreeMap<String, String>,
}

/// Options of `assay io` that set its values.
const OPTIONS: [SpecOption; 15] = [
    of("folder", "folder", OptionForm::Value),
    of("keep", "keep", OptionForm::Switch),
    of("size", "size", OptionForm::Value),
    of("files", "files", OptionForm::Value),
    of("readers", "readers", OptionForm::Joined),
    of("writers", "writers", OptionForm::Value),
    of("write-depth", "write_depth", OptionForm::Value),
    of("loggers", "loggers", OptionForm::Value),
    of("block", "block", OptionForm::Value),
    of("log-block", "log_block", OptionForm::Value),
    of("log-size", "log_size", OptionForm::Value),
    of("direct", "direct", OptionForm::Switch),
    of("dsync", "dsync", OptionForm::Switch),
    of("time", "time", OptionForm::Value),
    of("tag", "tags", OptionForm::Each),
];

impl Default for IoSpec {
    fn default() -> IoSpec {
        IoSpec {
            folder: PathBuf::from("."),
            keep: false,
            size: 1 << 30,
            files: 4,
            readers: vec![4],
            writers: 1,
            write_depth: 16,
            loggers: 1,
            block: 16 << 10,
            log_block: 8 << 10,
            log_size: 64 << 20,
            direct: false,
            dsync: false,
            time: Nanos::from_secs(10),
            seed: None,
            tags: BTreeMap::new(),
        }
    }
}

impl IoSpec {
    /// The options that set its values.
    pub fn options() -> &'static [SpecOption] {
        &OPTIONS
    }

    /// With one value set, as text, by the name of its option; `-` and `_` mean the same. Does not check whether the
    /// values fit together.
    pub fn with(&self, name: &str, text: &str) -> Result<IoSpec, Wrong> {
        let value = serde_json::to_value(self).expect("a spec is plain data");
        set(value, &OPTIONS, name, text)
    }

    /// Checks that the values fit together. The first that does not is reported.
    pub fn check(&self) -> Result<(), Wrong> {
        for (path, bytes) in [("block", self.block), ("log_block", self.log_block)] {
            if bytes == 0 {
                return Err(Wrong::new(path, "{block} and {log_block} must be at least 1"));
            }
        }
        let blocks = [("size", self.size / self.files, self.block), ("log_size", self.log_size, self.log_block)];
        if let Some((path, ..)) = blocks.iter().find(|(_, file, block)| file < block) {
            return Err(
                Wrong::new(*path, "every file must hold at least one block").hint("raise {size}, or lower {files}")
            );
        }
        if self.direct && !self.block.is_multiple_of(512) {
            return Err(Wrong::new("block", "{direct} needs a {block} that is a multiple of 512 bytes"));
        }
        if self.readers.iter().any(|readers| readers + self.writers + self.loggers == 0) {
            return Err(Wrong::new("readers", "there is nothing to do: no readers, writers or loggers"));
        }
        Ok(())
    }

    /// The command line that has this spec, without the program's name: `io --size=4096`.
    pub fn words(&self) -> Vec<String> {
        let value = |spec: &IoSpec| serde_json::to_value(spec).expect("a spec is plain data");
        let options = words_of(&value(self), &value(&IoSpec::default()), &OPTIONS);
        ["io".to_owned()].into_iter().chain(options).collect()
    }
}
