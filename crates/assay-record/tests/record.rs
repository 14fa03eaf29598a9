//! Records on disk, as other programs and later versions meet them.

mod example;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assay_record::*;
use example::{example, example_of_a_fleet, example_of_cases, example_of_isolation, example_with_telemetry};
use serde_json::{Value, json};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// The message for a file with these bytes, without its folder.
fn refusal(bytes: &[u8]) -> String {
    let folder = folder();
    let path = folder.path().join("x.json.zst");
    fs::write(&path, bytes).unwrap();
    let error = Record::read(&path).unwrap_err();
    let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
    format!("{error}{source}").replace(&format!("{}/", folder.path().display()), "")
}

fn json_of(record: &Record) -> Value {
    serde_json::to_value(record).unwrap()
}

fn written(record: &Record) -> Vec<u8> {
    let folder = folder();
    let path = folder.path().join("x.json.zst");
    record.write(&path).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn a_record_is_read_back_as_it_was_written_compressed_or_not() {
    let folder = folder();
    for name in ["x.json.zst", "x.json", "x"] {
        let path = folder.path().join(name);
        example().write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap(), example());
        assert_eq!(fs::read(&path).unwrap().starts_with(b"{"), name.ends_with(".json"));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no temporary file is left behind");
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    assert_eq!(written(&example()), written(&example()));
}

#[test]
fn a_written_record_satisfies_the_schema_which_knows_every_field() {
    let mut schema: Value = serde_json::from_str(include_str!("../../../docs/record.schema.json")).unwrap();
    let as_published = jsonschema::validator_for(&schema).unwrap();
    forbid_unknown_fields(&mut schema);
    let strict = jsonschema::validator_for(&schema).unwrap();
    let mut closed = example();
    closed.manifest.load = Load::Closed;
    closed.manifest.terminals = Some(Terminals { number: 640, think_scale: 0.5 });
    let mut varied = example();
    varied.manifest.profile = vec![RatePoint { at_ns: 0, per_s: 100.0 }, RatePoint { at_ns: 60, per_s: 0.0 }];
    varied.manifest.trace = Some(Trace { file: "arrivals.txt".into(), arrivals: 7 });
    varied.manifest.search = Some(Search::Rate { promises: vec!["p99 < 10ms".into()] });
    varied.stages[0].rate_per_s = Some(400.0);
    varied.manifest.asked = BTreeMap::from([("items".into(), OptionValue::Int(5))]);
    let mut sessions = example();
    sessions.manifest.search = Some(Search::Sessions { max: 64 });
    let mut queries = example_of_cases();
    let tables = BTreeMap::from([("ontime".to_owned(), 1000)]);
    let query = StreamQuery { name: "a".into(), elapsed_ns: 7, failure: Some("no memory".into()), timed_out: true };
    let streams = vec![QueryStream { start_ns: 1, end_ns: 8, queries: vec![query] }];
    let suite = Suite { random_order: true, runs: 3, timeout_ns: Some(1), tables, scale: Some(0.5), streams };
    queries.cases.as_mut().unwrap().suite = Some(suite);
    let refused = &mut queries.cases.as_mut().unwrap().cases[2];
    (refused.timed_out, refused.large_result, refused.pushed_down) = (true, true, Some(false));
    for record in [
        example(),
        queries,
        closed,
        example_with_telemetry(),
        example_of_cases(),
        example_of_a_fleet(),
        example_of_isolation(),
        varied,
        sessions,
    ]
    .map(|record| json_of(&record))
    {
        if let Err(error) = strict.validate(&record) {
            panic!("{error} at {}", error.instance_path());
        }
        let mut newer = record.clone();
        newer["manifest"]["added_later"] = json!(1);
        assert!(as_published.is_valid(&newer) && !strict.is_valid(&newer));
        let mut wrong = record;
        wrong["stages"][0]["total"]["lag"]["count"] = json!(-1);
        assert!(!as_published.is_valid(&wrong));
    }
}

fn forbid_unknown_fields(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") {
                members.insert("additionalProperties".into(), json!(false));
            }
            members.values_mut().for_each(forbid_unknown_fields);
        }
        Value::Array(items) => items.iter_mut().for_each(forbid_unknown_fields),
        _ => (),
    }
}

#[test]
fn a_record_of_every_released_format_still_loads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/0.1.0.json.zst");
    let record = Record::read(&path).unwrap();
    assert_eq!((record.format, record.status, record.types.len()), (1, Status::Interrupted, 2));
    assert_eq!(record.manifest.options["items"], OptionValue::Int(100_000));
    assert_eq!(record.manifest.seed, u64::MAX);
    let last = &record.stages[1];
    assert_eq!((last.sessions, last.intervals.len(), last.targets.len()), (64, 2, 2));
    let response = &last.total.transactions[0].response;
    assert_eq!((response.count, response.min_ns, response.max_ns), (4000, 1_000_000, 5_000_000));
    assert_eq!(response.histogram().unwrap().len(), 4000);
    assert_eq!(last.total.errors[0].state, "40P01");
}

#[test]
fn the_identity_of_a_server_in_an_earlier_record_comes_from_its_fields() {
    let mut stored = json_of(&example());
    stored["environment"]["started"] = serde_json::json!({
        "product": "postgres", "version": "15.14", "program": "postgres", "configuration": {},
        "settings": [{ "name": "work_mem", "asked": "8MB", "in_effect": "4MB", "same": false }],
        "cpus": "0-3", "memory_bytes": 4_u64 << 30, "fronts": ["pgbouncer"], "restored_by": "reflink",
        "settled": [{ "step": "settle", "reached": ["12 dirty pages"], "complete": false }],
    });
    let path = folder();
    let path = path.path().join("early.json");
    fs::write(&path, stored.to_string()).unwrap();
    let started = Record::read(&path).unwrap().environment.started.unwrap();
    let shown = |one: &Attribute| format!("{:?} {} {}", one.scope, one.name, one.in_effect.as_deref().unwrap_or("-"));
    let identity: Vec<String> = started.identity.iter().map(shown).collect();
    assert_eq!(
        identity,
        [
            "Server work_mem 4MB",
            "Placement pinned CPUs 0-3",
            "Placement memory limit 4 GiB",
            "Front front pgbouncer",
            "Image image reflink",
            "Step settle not complete",
            "Step settle: reached 12 dirty pages",
        ]
    );
    let matter: Vec<bool> = started.identity.iter().map(|one| one.matters).collect();
    assert_eq!((started.identity[0].as_asked, matter), (false, vec![true, true, true, true, true, true, false]));
}

#[test]
fn what_distinguishes_a_run_is_written_down_with_what_only_the_writer_knows() {
    let shown = |record: &Record| -> Vec<String> {
        let all = record.attributes();
        let picked =
            all.iter().filter(|one| one.scope == AttributeScope::Option || one.name == "port" || one.name == "load");
        let words = |one: &Attribute| {
            let (value, default) = (one.in_effect.as_deref().unwrap_or("?"), one.default.as_deref().unwrap_or("?"));
            let matters = if one.matters { "" } else { ", does not matter" };
            format!("{:?} {} {value}, default {default}{matters}", one.scope, one.name)
        };
        let mut all: Vec<String> = picked.map(words).collect();
        all.sort();
        all
    };
    let mut record = example_with_telemetry();
    record.environment.servers[0].settings.insert("port".into(), "5433".into());
    record.environment.servers[1].settings.insert("port".into(), "5433".into());
    let before = shown(&record);
    insta::assert_snapshot!(before.join("\n"), @r"
    Option items 100000, default 10
    Option refund_share 0.25, default ?
    Option regions north,south, default ?
    Option secondary false, default ?
    Option table orders, default ?
    Run load poisson 2000 tx/s, backlog at most 1000, default ?
    Server port 5433, default 5433, does not matter
    Server port 5433, default ?
    ");
    record.identify();
    assert_eq!(shown(&record), before);
    let folder = folder();
    let path = folder.path().join("x.json.zst");
    record.write(&path).unwrap();
    let mut written = Record::read(&path).unwrap();
    assert_eq!(written, record);
    assert!(!written.identity.iter().any(|one| one.scope == AttributeScope::Tag || one.name == "pinned CPUs"));
    // Without fields for it, it still counts.
    written.environment.servers[0].settings.clear();
    assert_eq!(shown(&written), before);
}

#[test]
fn fields_added_later_are_passed_over_and_optional_ones_may_be_missing() {
    let folder = folder();
    let path = folder.path().join("x.json");
    let mut value = json_of(&example());
    value["stages"][0]["total"]["added_later"] = json!({"x": [1]});
    value["environment"]["servers"][0].as_object_mut().unwrap().remove("settings");
    fs::write(&path, value.to_string()).unwrap();
    let mut expected = example();
    expected.environment.servers[0].settings.clear();
    assert_eq!(Record::read(&path).unwrap(), expected);
}

#[test]
fn tags_are_added_and_nothing_else_is_touched() {
    let folder = folder();
    for name in ["x.json.zst", "x.json"] {
        let path = folder.path().join(name);
        example_with_telemetry().write(&path).unwrap();
        tag(&path, &[("disk".into(), "sata".into()), ("run".into(), "2".into())].into()).unwrap();
        let mut expected = example_with_telemetry();
        expected.tags = [("disk", "sata"), ("run", "2"), ("ticket", "PERF-7")]
            .map(|(key, value)| (key.into(), value.into()))
            .into();
        assert_eq!(Record::read(&path).unwrap(), expected);
    }
    let path = folder.path().join("newer.json");
    let mut newer = json_of(&example());
    newer["stages"][1]["total"]["added_later"] = json!(1);
    fs::write(&path, newer.to_string()).unwrap();
    let refused = tag(&path, &[("run".into(), "2".into())].into()).unwrap_err().to_string();
    assert!(refused.ends_with("has the field added_later, which this version of assay would lose"), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), newer.to_string());
}

#[test]
fn a_record_of_another_format_is_refused_with_who_wrote_it() {
    let newer = json!({"format": 7, "tool": {"name": "assay", "version": "3.0.0"}, "everything": "else"});
    insta::assert_snapshot!(refusal(newer.to_string().as_bytes()), @"record x.json.zst was written by assay 3.0.0 in format 7; this assay reads formats 1 to 2 (use the assay that wrote it, or a later one)");
}

#[test]
fn files_that_are_no_records_are_refused_and_say_why() {
    let text = json_of(&example()).to_string();
    // As format 1 was compressed.
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
    let whole = encoder.finish().unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0x55;
    let stream = example().to_bytes();
    let mut histogram = json_of(&example());
    histogram["stages"][0]["total"]["lag"]["histogram"] = json!("HISTFAAAAA==");
    let mut time = json_of(&example());
    time["started"] = json!("yesterday");
    let refusals: Vec<String> = [
        &b""[..],
        &whole[..3],
        &whole[..whole.len() - 1],
        &whole[..whole.len() / 2],
        &stream[..100],
        &text.as_bytes()[..text.len() - 1],
        b"#!/bin/sh\n",
        b"\x1f\x8b\x08",
        b"[1]",
        b"{\"format\": 1}",
        b"{\"format\": 1, \"tool\": {\"name\": \"assay\", \"version\": \"0.1.0\"}, nonsense",
        &zstd::encode_all(&b"hello"[..], 3).unwrap(),
        histogram.to_string().as_bytes(),
        time.to_string().as_bytes(),
    ]
    .into_iter()
    .map(refusal)
    .collect();
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    record x.json.zst is truncated
    record x.json.zst is truncated
    record x.json.zst is truncated
    record x.json.zst is truncated
    record x.json.zst is truncated
    record x.json.zst is truncated
    x.json.zst is not a record: it is neither zstd nor JSON
    x.json.zst is not a record: it is neither zstd nor JSON
    x.json.zst is not a record: it is neither zstd nor JSON
    x.json.zst is not a record of formats 1 to 2: missing field `tool` at line 1 column 13
    x.json.zst is not a record of formats 1 to 2: key must be a string at line 1 column 62
    x.json.zst is not a record of formats 1 to 2: expected value at line 1 column 1
    x.json.zst is not a record of formats 1 to 2: histogram is damaged: too short at line 1 column 12574
    x.json.zst is not a record of formats 1 to 2: "yesterday" is not a time such as 2026-03-14T15:09:26.535Z at line 1 column 27554
    "#);
    assert!(refusal(&damaged).starts_with("record x.json.zst is damaged"));
}

#[test]
fn the_default_name_never_overwrites() {
    let folder = folder();
    let records = folder.path().join("a/records");
    let names: Vec<PathBuf> = (0..3).map(|_| example().write_new(&records).unwrap()).collect();
    let shown: Vec<_> = names.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(
        shown,
        ["shop-20260314T150926Z.json.zst", "shop-20260314T150926Z-2.json.zst", "shop-20260314T150926Z-3.json.zst"]
    );
    assert_eq!(fs::read_dir(&records).unwrap().count(), 3);
}

#[test]
fn a_workload_name_cannot_leave_the_folder() {
    let folder = folder();
    for (workload, name) in [
        ("../../etc/passwd", "passwd"),
        ("..", "run"),
        ("", "run"),
        ("-rf ~;.lua", "rf___"),
        (&"ü".repeat(300), &*"_".repeat(80)),
    ] {
        let mut record = example();
        record.manifest.workload = workload.into();
        let path = record.write_new(folder.path()).unwrap();
        assert_eq!(path.parent(), Some(folder.path()));
        assert!(path.file_name().unwrap().to_str().unwrap().starts_with(&format!("{name}-2026")), "{path:?}");
    }
}

#[test]
fn writing_replaces_whole_files_and_follows_links() {
    let folder = folder();
    let (path, link) = (folder.path().join("x.json"), folder.path().join("link.json"));
    fs::write(&path, "old").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    example().write(&link).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(Record::read(&path).unwrap(), example());
    example().write(Path::new("/dev/null")).unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let in_memory = tempfile::tempdir_in("/dev/shm").unwrap();
    for name in ["x.json", "x.json.zst"] {
        let path = in_memory.path().join(name);
        example().write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap(), example());
    }
}

#[test]
fn a_record_that_cannot_be_written_says_why_and_leaves_nothing() {
    let folder = folder();
    let missing = example().write(&folder.path().join("missing/x.json.zst")).unwrap_err();
    assert!(missing.to_string().ends_with("missing"), "{missing}");
    assert!(matches!(missing, WriteError::NoFolder { .. }));
    assert!(matches!(example().write(folder.path()).unwrap_err(), WriteError::Io { .. }));
    let full = example().write(Path::new("/dev/full")).unwrap_err();
    let WriteError::Io { source, .. } = &full else { panic!("{full}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    fs::write(folder.path().join("file"), "").unwrap();
    example().write_new(&folder.path().join("file")).unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_option_that_is_not_a_finite_number_is_kept_as_text() {
    let text = serde_json::to_string(&OptionValue::Number(f64::INFINITY)).unwrap();
    assert_eq!(text, "\"inf\"");
    assert_eq!(serde_json::to_string(&OptionValue::Number(2.0)).unwrap(), "2.0");
    assert_eq!(serde_json::from_str::<OptionValue>("2.0").unwrap(), OptionValue::Number(2.0));
}

#[test]
fn a_copy_for_everybody_names_no_place_in_its_telemetry() {
    let mut record = example_with_telemetry();
    let scope = &mut record.telemetry.as_mut().unwrap().scopes[0];
    scope.series[0].source = "blocks of /srv/secret/data".into();
    let public = serde_json::to_string(&record.public().unwrap()).unwrap();
    assert!(public.contains("blocks of …") && !public.contains("/srv/secret"), "{public}");
}
