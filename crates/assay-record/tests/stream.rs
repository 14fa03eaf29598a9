//! Records that grow: what a reader finds of them at any moment, and what they cost.

mod example;

use std::fs;

use assay_record::*;
use example::{example, example_of_a_fleet, example_of_cases, example_with_telemetry, latencies};
use serde_json::Value;

/// The record as it was after `parts` of `of` equal parts of its intervals and samples, without its end.
fn so_far(record: &Record, parts: usize, of: usize) -> Record {
    let mut record = record.clone();
    (record.status, record.failure) = (Status::Running, None);
    let all: usize = record.stages.iter().map(|stage| stage.intervals.len()).sum();
    let mut left = all * parts / of;
    record.elapsed_ns = left as u64;
    record.stages.retain_mut(|stage| {
        let own = stage.intervals.len().min(left);
        let is_begun = left > 0;
        left -= own;
        stage.intervals.truncate(own);
        stage.measured_ns = stage.intervals.iter().map(|interval| interval.length_ns).sum();
        is_begun
    });
    record.types.truncate(if parts > 0 { usize::MAX } else { 0 });
    for scope in record.telemetry.iter_mut().flat_map(|telemetry| &mut telemetry.scopes) {
        let samples = scope.began_ns.len() * parts / of;
        scope.began_ns.truncate(samples);
        scope.ended_ns.truncate(samples);
        // A metric that is first read later.
        scope.series.truncate(scope.series.len().min(parts));
        for series in &mut scope.series {
            series.values.truncate(samples);
            series.own.truncate(samples);
            // As long as no part of a value is known to be our own, there is nothing.
            if series.own.iter().all(Option::is_none) {
                series.own.clear();
            }
            series.includes_own &= parts == of;
        }
        if let Some(waits) = &mut scope.waits {
            waits.looks.truncate(samples);
            waits.events.truncate(waits.events.len().min(parts));
            waits.events.iter_mut().for_each(|event| event.sessions.truncate(samples));
        }
    }
    record
}

/// As `so_far`, in a record that has this many times the intervals.
fn long(times: u64) -> Record {
    let mut record = example_with_telemetry();
    for stage in &mut record.stages {
        let intervals = stage.intervals.clone();
        stage.intervals = (0..times).flat_map(|_| intervals.clone()).collect();
    }
    let scope = &mut record.telemetry.as_mut().unwrap().scopes[0];
    for series in &mut scope.series {
        series.own = (0..series.values.len() as u64).map(|at| (at > 2).then_some(at)).collect();
        series.includes_own = true;
    }
    record
}

/// Everything that a reader sees as the same: partial records lack the types in tallies of stages that are over.
#[track_caller]
fn assert_same(found: &Record, expected: &Record, what: &str) {
    let (found, expected) = (serde_json::to_value(found).unwrap(), serde_json::to_value(expected).unwrap());
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&found[name], value, "{what}: {name}");
    }
}

#[test]
fn every_record_is_read_back_from_its_stream() {
    for record in [example(), example_with_telemetry(), example_of_cases(), example_of_a_fleet()] {
        for status in [Status::Running, Status::Complete, Status::Failed] {
            let mut record = record.clone();
            (record.status, record.failure) = (status, (status == Status::Failed).then(|| "why".to_owned()));
            assert_same(&Record::from_bytes(&record.to_bytes()).unwrap(), &record, &format!("{status:?}"));
        }
    }
}

#[test]
fn a_growing_record_is_whole_at_every_frame_and_a_follower_sees_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["r.json.zst", "r.json"] {
        let path = folder.path().join(name);
        let record = long(3);
        let parts = 6;
        let mut file = RecordFile::begin(&path, &so_far(&record, 0, parts), Existing::Keep).unwrap();
        let mut follow = Follow::open(&path).unwrap();
        let mut fold = Fold::default();
        for part in 0..parts {
            let so_far = so_far(&record, part, parts);
            file.append(&so_far, Moment::Underway).unwrap();
            assert_same(&Record::read(&path).unwrap(), &so_far, &format!("part {part}"));
            follow.news().unwrap().into_iter().for_each(|event| fold.take(event));
            assert_same(fold.record().unwrap(), &so_far, &format!("followed, part {part}"));
            let before = fs::metadata(&path).unwrap().len();
            file.append(&so_far, Moment::Underway).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().len(), before, "nothing new is nothing");
            assert!(follow.news().unwrap().is_empty());
        }
        assert_eq!(file.finish(&record).unwrap(), path);
        assert_same(&Record::read(&path).unwrap(), &record, name);
        assert_eq!(fs::read(&path).unwrap().starts_with(b"{\n"), name == "r.json");
        follow.news().unwrap().into_iter().for_each(|event| fold.take(event));
        assert_same(fold.record().unwrap(), &record, "followed to its end");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left behind");
}

/// A run of a day keeps the last minutes of its telemetry in memory, and its file all of it.
#[test]
fn a_file_is_whole_although_the_record_in_memory_lets_go_of_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    let (record, parts) = (long(3), 6);
    let mut file = RecordFile::begin(&path, &so_far(&record, 0, parts), Existing::Keep).unwrap();
    let mut gone = vec![0; record.telemetry.as_ref().unwrap().scopes.len()];
    for part in 0..parts {
        let whole = so_far(&record, part, parts);
        let mut kept = whole.clone();
        let scopes = kept.telemetry.iter_mut().flat_map(|telemetry| &mut telemetry.scopes);
        scopes.zip(&gone).for_each(|(scope, gone)| scope.forget(*gone));
        file.append(&kept, Moment::Underway).unwrap();
        assert_same(&Record::read(&path).unwrap(), &whole, &format!("part {part}"));
        for (number, scope) in kept.telemetry.iter().flat_map(|telemetry| &telemetry.scopes).enumerate() {
            let surplus = scope.began_ns.len().saturating_sub(1);
            if surplus > 0 && file.let_go(number, surplus) {
                gone[number] += surplus;
            }
        }
    }
    assert!(gone.iter().any(|gone| *gone > 0));
    assert!(!file.let_go(0, usize::MAX), "what the file does not have stays");
    file.take_back();
    file.finish(&record).unwrap();
    assert_same(&Record::read(&path).unwrap(), &record, "at the end");
}

/// The bytes of a record that grew, and what it was at the end of each frame.
fn grown() -> (Vec<u8>, Vec<(usize, Record)>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    let record = long(1);
    let mut file = RecordFile::begin(&path, &so_far(&record, 0, 4), Existing::Keep).unwrap();
    let mut borders = Vec::new();
    let mut note = || borders.push((fs::metadata(&path).unwrap().len() as usize, Record::read(&path).unwrap()));
    note();
    for part in 1..4 {
        file.append(&so_far(&record, part, 4), Moment::Underway).unwrap();
        note();
    }
    file.finish(&record).unwrap();
    note();
    (fs::read(&path).unwrap(), borders)
}

fn read(bytes: &[u8]) -> Result<Record, ReadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    fs::write(&path, bytes).unwrap();
    Record::read(&path)
}

#[test]
fn a_stream_cut_anywhere_has_everything_up_to_its_last_whole_frame() {
    let (bytes, borders) = grown();
    let near = |length: &usize| borders.iter().any(|(border, _)| length.abs_diff(*border) < 3);
    for length in (0..=bytes.len()).filter(|length| length % 97 == 0 || near(length)) {
        match (read(&bytes[..length]), borders.iter().rfind(|(border, _)| *border <= length)) {
            (Ok(found), Some((_, expected))) => assert_eq!(&found, expected, "{length}"),
            (Err(ReadError::CutOff { .. }), None) => {}
            (found, _) => panic!("{length}: {found:?}"),
        }
    }
    // Lines that another program decompressed are a record, too, cut or not.
    let text = zstd::decode_all(bytes.as_slice()).unwrap();
    assert_eq!(read(&text).unwrap(), borders.last().unwrap().1);
    assert_eq!(read(&text[..text.len() - 5]).unwrap().status, Status::Running);
}

#[test]
fn damage_costs_what_follows_it_and_is_reported() {
    let (bytes, borders) = grown();
    for pair in borders.windows(2) {
        let ((from, before), (to, _)) = (&pair[0], &pair[1]);
        for at in [*from, from + 1, from + 5, (from + to) / 2, to - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            let mut found = read(&damaged).unwrap();
            let failure = found.failure.take();
            assert_eq!(&found, before, "{at}");
            let expected = format!("the record is damaged after its first {from} bytes: what followed is lost");
            assert!(failure.is_none_or(|failure| failure == expected), "{at}");
        }
    }
    let mut damaged = bytes.clone();
    damaged[borders[1].0 + 40] ^= 0x55;
    assert!(read(&damaged).unwrap().failure.is_some());
}

#[test]
fn an_hour_costs_what_it_adds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    let mut record = so_far(&example(), 1, 1);
    record.stages.truncate(1);
    let interval = record.stages[0].intervals[0].clone();
    let mut file = RecordFile::begin(&path, &record, Existing::Keep).unwrap();
    let mut sizes = vec![fs::metadata(&path).unwrap().len()];
    for frame in 0..100 {
        for number in 0..50 {
            let start_ns = (frame * 50 + number) * 100_000_000;
            let values = (0..100).map(|value| 1_000_000 + (frame * 977 + number * 131 + value * 7919) % 5_000_000);
            let response = latencies(values.collect::<Vec<_>>());
            record.stages[0].intervals.push(Interval { start_ns, response, ..interval.clone() });
        }
        record.stages[0].measured_ns += 5_000_000_000;
        file.append(&record, Moment::Underway).unwrap();
        sizes.push(fs::metadata(&path).unwrap().len());
    }
    let added: Vec<u64> = sizes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (first, last) = (added[1], *added.last().unwrap());
    assert!(last < first * 11 / 10, "the last frame has {last} bytes, the second {first}");
    assert_eq!(Record::read(&path).unwrap().stages[0].intervals.len(), record.stages[0].intervals.len());
}

#[test]
fn a_file_that_was_moved_or_replaced_during_the_run_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    let begun = so_far(&example(), 0, 1);
    let file = RecordFile::begin(&path, &begun, Existing::Keep).unwrap();
    fs::remove_file(&path).unwrap();
    file.finish(&example()).unwrap();
    assert_same(&Record::read(&path).unwrap(), &example(), "written again");
    assert!(matches!(RecordFile::begin(&path, &begun, Existing::Keep), Err(WriteError::Exists { .. })));
    let file = RecordFile::begin(&path, &begun, Existing::Replace).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "somebody else's").unwrap();
    assert!(matches!(file.finish(&example()), Err(WriteError::Exists { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");
}

#[test]
fn a_record_gets_tags_when_its_run_is_over_even_if_it_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    let tags = [("disk".to_owned(), "nvme".to_owned())].into();
    let mut file = RecordFile::begin(&path, &so_far(&example(), 0, 2), Existing::Keep).unwrap();
    file.append(&so_far(&example(), 1, 2), Moment::Underway).unwrap();
    assert!(matches!(tag(&path, &tags), Err(ChangeError::Busy { .. })));
    drop(file);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let killed = Record::read(&path).unwrap();
    tag(&path, &tags).unwrap();
    let tagged = Record::read(&path).unwrap();
    assert_eq!(tagged.tags["disk"], "nvme");
    assert_eq!(Record { tags: killed.tags.clone(), ..tagged }, killed);
    change(&path, |record| record.environment.started = Some(StartedServer::default())).unwrap();
    assert!(Record::read(&path).unwrap().environment.started.is_some());
}

#[test]
fn every_event_satisfies_the_schema() {
    // The schema of a record is the whole file, that of an event a part of it.
    let text = include_str!("../../../docs/record.schema.json").replace("#/properties/", "#/$defs/record/properties/");
    let schema: Value = serde_json::from_str(&text).unwrap();
    let mut parts = schema["$defs"].clone();
    parts["record"] = serde_json::json!({ "properties": schema["properties"] });
    let of_event = serde_json::json!({ "$defs": parts, "$ref": "#/$defs/event" });
    let validator = jsonschema::validator_for(&of_event).unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    for record in [example_with_telemetry(), example_of_cases(), example_of_a_fleet()] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json.zst");
        let mut file = RecordFile::begin(&path, &so_far(&record, 0, 2), Existing::Keep).unwrap();
        file.append(&so_far(&record, 1, 2), Moment::Underway).unwrap();
        file.finish(&record).unwrap();
        tag(&path, &[("later".to_owned(), "yes".to_owned())].into()).unwrap();
        for line in String::from_utf8(zstd::decode_all(fs::read(&path).unwrap().as_slice()).unwrap()).unwrap().lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            kinds.extend(event.as_object().unwrap().keys().cloned());
            if let Err(error) = validator.validate(&event) {
                panic!("{error} at {}: {line}", error.instance_path());
            }
        }
    }
    assert_eq!(kinds.len(), 9, "{kinds:?}");
    assert!(validator.validate(&serde_json::json!({"interval": {"stage": 0}})).is_err());
}

#[test]
fn events_that_are_added_later_are_passed_over() {
    let mut text = zstd::decode_all(example().to_bytes().as_slice()).unwrap();
    text.extend(b"{\"added_later\": {\"x\": 1}}\n");
    assert_same(&read(&text).unwrap(), &example(), "the rest");
    let newer = "{\"started\": {\"format\": 7, \"tool\": {\"name\": \"assay\", \"version\": \"3.0.0\"}}}\n";
    let refused = read(newer.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("was written by assay 3.0.0 in format 7"), "{refused}");
}

#[test]
fn a_broken_histogram_in_the_middle_is_reported_with_its_place_by_those_who_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    let whole = long(3);
    let text = String::from_utf8(zstd::decode_all(whole.to_bytes().as_slice()).unwrap()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let numbers = || (0..lines.len()).filter(|number| lines[*number].starts_with("{\"interval\":"));
    let number = numbers().nth(numbers().count() / 2).unwrap();
    lines[number] = lines[number].replace("\"histogram\":\"", "\"histogram\":\"no");
    let text = lines.join("\n") + "\n";
    for bytes in [text.clone().into_bytes(), zstd::encode_all(text.as_bytes(), 3).unwrap()] {
        fs::write(&path, bytes).unwrap();
        let error = Record::read(&path).unwrap_err();
        assert_eq!(error.to_string(), format!("event {} of record {} cannot be read", number + 1, path.display()));
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.starts_with("histogram is damaged: not base64 at line 1 column "), "{source}");
        // Who asks for figures and heads alone does not decode it.
        let figures = Record::read_figures(&path).unwrap();
        assert_eq!(figures.telemetry, whole.telemetry);
        let intervals = |record: &Record| {
            let all = record.stages.iter().flat_map(|stage| &stage.intervals);
            all.map(|one| (one.start_ns, one.transactions.clone(), one.response.count)).collect::<Vec<_>>()
        };
        assert_eq!(intervals(&figures), intervals(&whole));
        for (stage, of) in figures.stages.iter().zip(&whole.stages) {
            assert_eq!((&stage.total, &stage.targets), (&of.total, &of.targets));
            assert!(stage.intervals.iter().all(|one| one.response.histogram().is_none()));
        }
        assert!(Record::read_head(&path).unwrap().stages.iter().all(|stage| stage.intervals.is_empty()));
    }
}

#[test]
fn totals_that_are_replaced_are_not_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    let record = long(1);
    let totals = Totals::of(&record, 0).unwrap();
    let text = String::from_utf8(zstd::decode_all(record.to_bytes().as_slice()).unwrap()).unwrap();
    let broken = Event::SoFar(Box::new(totals)).line().replace("\"histogram\":\"", "\"histogram\":\"no");
    let (head, rest) = text.split_at(text.find("{\"stage_ended").unwrap());
    fs::write(&path, format!("{head}{broken}\n{rest}")).unwrap();
    assert_same(&Record::read(&path).unwrap(), &record, "followed by those of the end");
    fs::write(&path, format!("{head}{broken}\n")).unwrap();
    assert!(Record::read(&path).unwrap_err().to_string().contains("cannot be read"));
}

#[test]
fn figures_of_both_forms_of_a_record_are_of_one_trial() {
    let folder = tempfile::tempdir().unwrap();
    let record = long(3);
    let figures = ["r.json.zst", "r.json"].map(|name| {
        record.write(&folder.path().join(name)).unwrap();
        Record::read_figures(&folder.path().join(name)).unwrap()
    });
    assert_eq!(figures[0].trial(), figures[1].trial());
}

/// Of a file that another program has decompressed, any line may be damaged.
#[test]
fn lines_that_are_not_events_are_known_by_their_numbers_and_those_of_later_kinds_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.json");
    let record = example();
    let text = zstd::decode_all(record.to_bytes().as_slice()).unwrap();
    let lines: Vec<&str> = std::str::from_utf8(&text).unwrap().lines().collect();
    let place = lines.iter().position(|line| line.starts_with("{\"interval\"")).unwrap();
    let read = |line: &str| {
        let mut lines = lines.clone();
        lines[place] = line;
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        Record::read(&path)
    };
    let number = place as u64 + 1;
    for damaged in [
        "garbage".to_owned(),
        lines[place].replacen("interval", "intervXl", 1),
        lines[place].replacen("{\"interval\"", "{interval", 1),
        "{\"one\":1,\"two\":2}".to_owned(),
    ] {
        assert_eq!(read(&damaged).unwrap().damaged_lines, [number], "{damaged}");
    }
    assert!(read("{\"later_kind\":{\"a\":1}}").unwrap().damaged_lines.is_empty());
    assert!(matches!(read(&lines[place][..40]), Err(ReadError::Event { number: at, .. }) if at == number));
}
