//! Arbitrary bytes read as a record, and as the history beside it.

use std::io::Cursor;
use std::path::Path;

use crate::copy;
use crate::event::Event;
use crate::history::ReadHistory;
use crate::source::Source;
use crate::stream;
use crate::trial::Record;

/// As the bytes of a file, compressed or not, as a file with a copy at its end and as what is in one, as single events,
/// as a record of format 1, and as a history. Nothing may panic, and what was read can be written.
pub fn fuzz_record(data: &[u8]) {
    let _ = Record::from_bytes(data);
    let _ = ReadHistory::from_bytes(data);
    if let Ok(found) = stream::read(&mut Source::new(Path::new("fuzz"), data), stream::Part::Whole) {
        found.record.to_bytes();
    }
    let _ = copy::text_of(&mut Cursor::new(data), u64::MAX);
    if let Some(record) = stream::of_copy(Path::new("fuzz"), data, stream::Part::Thinned) {
        record.to_bytes();
    }
    let _ = serde_json::from_slice::<Record>(data);
    for line in String::from_utf8_lossy(data).lines() {
        let _ = Event::of_line(line);
    }
}
