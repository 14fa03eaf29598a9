//! The copy at the end of a long record: who reads it sees what its events say, and one that does not fit is ignored.

mod example;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use assay_record::*;
use example::example_that_is_long;

/// A record with so many intervals that its file is long.
fn long() -> Record {
    static LONG: LazyLock<Record> = LazyLock::new(make_long);
    LONG.clone()
}

fn make_long() -> Record {
    let mut record = example_that_is_long();
    for stage in &mut record.stages {
        stage.intervals[7].response.sum_ns = u128::MAX;
        let response = &mut stage.intervals[8].response;
        (response.over, response.count) = (9, response.count + 9);
    }
    record
}

/// Where its copy begins; `None`: it has none.
fn copy_of(bytes: &[u8]) -> Option<usize> {
    let tail = bytes.len() - 28;
    let begin = u64::from_le_bytes(bytes[tail..tail + 8].try_into().unwrap());
    bytes.ends_with(b"assaycp2").then_some(begin as usize)
}

type Read = fn(&Path) -> Result<Record, ReadError>;

fn try_read_with(read: Read, bytes: &[u8]) -> Option<Record> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    fs::write(&path, bytes).unwrap();
    read(&path).ok()
}

fn read_with(read: Read, bytes: &[u8]) -> Record {
    try_read_with(read, bytes).unwrap()
}

/// The bytes that a run leaves which writes its record as it goes.
fn left_by_a_run(record: &Record) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    let mut before = record.clone();
    (before.status, before.failure) = (Status::Running, None);
    before.stages.iter_mut().for_each(|stage| stage.intervals.truncate(560));
    let mut file = RecordFile::begin(&path, &before, Existing::Keep).unwrap();
    let killed = fs::read(&path).unwrap();
    assert_eq!((killed.len() > 512 << 10, copy_of(&killed)), (true, None), "a run that is killed leaves no copy");
    file.append(record, Moment::Underway).unwrap();
    file.finish(record).unwrap();
    fs::read(&path).unwrap()
}

/// Of `thinned` everything is as in `record`, but its intervals have few buckets.
#[track_caller]
fn check_thinned(thinned: &Record, record: &Record) {
    let mut rest = thinned.clone();
    for (stage, of) in rest.stages.iter_mut().zip(&record.stages) {
        for (one, of) in stage.intervals.iter_mut().zip(&of.intervals) {
            let (few, all) = (one.response.values(), of.response.values());
            let sum = |values: &[(u64, u64)]| values.iter().map(|(_, count)| count).sum::<u64>();
            assert_eq!((sum(&few), few.last().map(|one| one.0)), (sum(&all), all.last().map(|one| one.0)));
            assert!(few.len() <= all.len() && few.len() < 80, "{} of {}", few.len(), all.len());
            for ppm in QUANTILES_PPM {
                let quantile = |of: &Latencies| of.quantile_ns(f64::from(ppm) / 1e6);
                assert_eq!(quantile(&one.response), quantile(&of.response));
            }
            one.response = of.response.clone();
        }
    }
    assert_eq!(&rest, record);
}

#[test]
fn a_long_record_ends_with_a_copy_of_its_figures() {
    let record = long();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    record.write(&path).unwrap();
    for bytes in [left_by_a_run(&record), fs::read(&path).unwrap()] {
        let begin = copy_of(&bytes).unwrap();
        assert!(bytes.len() - begin < begin / 3, "{} bytes are much beside {begin}", bytes.len() - begin);
        assert_eq!(zstd::decode_all(&*bytes).unwrap(), zstd::decode_all(&bytes[..begin]).unwrap());
        for read in [Record::read, Record::read_figures, Record::read_head] {
            assert_eq!(read_with(read, &bytes), read_with(read, &bytes[..begin]));
        }
        let thinned = read_with(Record::read_thinned, &bytes);
        assert_eq!(read_with(Record::read_thinned, &bytes[..begin]), record);
        check_thinned(&thinned, &record);
        let figures = read_with(Record::read_figures, &bytes);
        assert_eq!(figures.telemetry, record.telemetry);
        assert_eq!(figures.trial(), record.trial());
    }
    record.write(&folder.path().join("r.json")).unwrap();
    assert!(fs::read(folder.path().join("r.json")).unwrap().ends_with(b"}\n"));
    let mut short = record.clone();
    short.stages.iter_mut().for_each(|stage| stage.intervals.truncate(10));
    short.write(&path).unwrap();
    assert_eq!(copy_of(&fs::read(&path).unwrap()), None);
}

#[test]
fn the_copy_is_read_instead_of_the_events() {
    let bytes = left_by_a_run(&long());
    let begin = copy_of(&bytes).unwrap();
    // The same copy behind other events: nobody would notice but for the checksum.
    let checksum = |bytes: &[u8]| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(bytes);
        hasher.finalize().to_le_bytes()
    };
    assert_eq!(bytes[bytes.len() - 12..bytes.len() - 8], checksum(&bytes[..begin]));
    let mut forged = bytes.clone();
    forged[begin / 2] ^= 0x55;
    let at = forged.len() - 12;
    let of_forged = checksum(&forged[..begin]);
    forged[at..at + 4].copy_from_slice(&of_forged);
    assert_eq!(read_with(Record::read_figures, &forged), read_with(Record::read_figures, &bytes));
    // Where the damage is the first of all, nothing is left to read.
    assert_ne!(try_read_with(Record::read, &forged), try_read_with(Record::read, &bytes));
}

#[test]
fn a_copy_that_was_cut_or_changed_or_is_of_another_record_is_ignored() {
    let record = long();
    let bytes = left_by_a_run(&record);
    let begin = copy_of(&bytes).unwrap();
    let expected = read_with(Record::read_figures, &bytes[..begin]);
    #[track_caller]
    fn check(bytes: &[u8], expected: &Record, what: &str) {
        assert!(&read_with(Record::read_figures, bytes) == expected, "{what}");
    }
    for end in [1, 3, 4, 7, 8, 9, 500]
        .map(|length| begin + length)
        .into_iter()
        .chain([1, 7, 8, 9, 27, 28, 29].map(|length| bytes.len() - length))
    {
        check(&bytes[..end], &expected, &format!("cut at {end}"));
    }
    let inside = (begin..bytes.len()).step_by((bytes.len() - begin) / 10);
    for at in inside.chain(begin..begin + 12).chain((bytes.len() - 30..bytes.len()).step_by(3)) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x21;
        check(&changed, &expected, &format!("changed at {at}"));
    }
    // Of another record, and of this one before it got longer or shorter.
    let mut other = record.clone();
    other.stages[0].intervals[3].errors += 1;
    let other = other.to_bytes();
    check(&[&other, &bytes[begin..]].concat(), &read_with(Record::read_figures, &other), "of another record");
    let note = Event::Noted(Note { at: record.started, text: "later".into() }).line() + "\n";
    let note = zstd::encode_all(note.as_bytes(), 3).unwrap();
    let longer = [&bytes[..begin], &note].concat();
    let expected_longer = read_with(Record::read_figures, &longer);
    assert_eq!(expected_longer.notes.len(), record.notes.len() + 1);
    check(&[&bytes, &note[..]].concat(), &expected_longer, "something follows the copy");
    check(&[&longer, &bytes[begin..]].concat(), &expected_longer, "something precedes the copy");
    let shorter = &bytes[..begin * 3 / 4];
    check(&[shorter, &bytes[begin..]].concat(), &read_with(Record::read_figures, shorter), "a part is missing");
}

#[test]
fn damage_before_a_copy_is_found_as_without_one() {
    let bytes = left_by_a_run(&long());
    let begin = copy_of(&bytes).unwrap();
    for at in [begin / 3, begin * 2 / 3, begin - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        for read in [Record::read, Record::read_figures, Record::read_head] {
            assert!(try_read_with(read, &damaged) == try_read_with(read, &damaged[..begin]), "{at}");
        }
    }
}

#[test]
fn a_tag_that_is_added_later_is_in_the_copy_too() {
    let bytes = left_by_a_run(&long());
    let begin = copy_of(&bytes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    fs::write(&path, &bytes).unwrap();
    let mut follow = Follow::open(&path).unwrap();
    assert!(!follow.news().unwrap().is_empty());
    assert!(follow.news().unwrap().is_empty());
    tag(&path, &[("rack".to_owned(), "a".to_owned())].into()).unwrap();
    let tagged = fs::read(&path).unwrap();
    assert_eq!(tagged[..begin], bytes[..begin]);
    assert!(copy_of(&tagged).unwrap() > begin);
    assert_eq!(Record::read_figures(&path).unwrap().tags["rack"], "a");
    assert_eq!(Record::read_head(&path).unwrap().tags["rack"], "a");
    assert!(matches!(follow.news().unwrap()[..], [Event::Tagged(_)]));
    // Copies are not collected.
    let size = tagged.len();
    tag(&path, &[("rack".to_owned(), "b".to_owned())].into()).unwrap();
    assert!(fs::metadata(&path).unwrap().len() < size as u64 + 1000);
}

#[test]
fn no_copy_makes_a_reader_panic() {
    let bytes = left_by_a_run(&long());
    let frame = &bytes[copy_of(&bytes).unwrap() + 8..bytes.len() - 28];
    let text = zstd::decode_all(frame).unwrap();
    fuzz_record(&text);
    // Columns and histograms follow the events, and are more than half of it.
    for at in (text.len() / 2..text.len()).step_by(text.len() / 60) {
        let mut changed = text.clone();
        changed[at] = changed[at].wrapping_add(0x81);
        fuzz_record(&changed);
        fuzz_record(&text[..at]);
    }
}
