//! Which records are copies of one trial.

use std::hash::{DefaultHasher, Hasher};
use std::io;

use crate::time::Time;
use crate::trial::Record;

/// A trial: records with the same one are copies of each other, whatever their files are called and however they are
/// compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrialId {
    started: Time,
    seed: u64,
    content: u64,
}

impl Record {
    /// Identifies the trial by everything in the record except its tags, which may be added to one of several copies,
    /// and its identity, which follows from the rest.
    pub fn trial(&self) -> TrialId {
        let mut content = ContentHasher(DefaultHasher::new());
        let mut own = self.clone();
        own.tags.clear();
        own.identity.clear();
        serde_json::to_writer(&mut content, &own).expect("records become JSON");
        TrialId { started: self.started, seed: self.manifest.seed, content: content.0.finish() }
    }
}

struct ContentHasher(DefaultHasher);

impl io::Write for ContentHasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
