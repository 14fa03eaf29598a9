//! The index of real folders: what is found, what is not a record, and what happens beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use assay_library::{Filter, Found, INDEX_FILE, Library, LibraryError, Update, Updated};
use assay_record::{Existing, Record, Status, Time};

const NOW: u64 = 1_800_000_000_000;

fn record(workload: &str, started_ms: u64, tags: &[(&str, &str)]) -> Record {
    let mut record = Record::read(Path::new("../assay-record/tests/records/0.1.0.json.zst")).unwrap();
    record.manifest.workload = workload.to_owned();
    record.started = Time::from_unix_ms(started_ms);
    record.status = Status::Complete;
    record.tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>();
    record
}

/// Times of files are those of the test's machine, far from `now_ns`, so that files count as settled.
fn update_with(library: &mut Library, rebuild: bool, now_ns: i64) -> Updated {
    let (complete, progress) = (|_: &mut Record| (), |_, _| true);
    library.update(&Update { rebuild, now_ns, threads: 2, complete: &complete, progress: &progress }).unwrap()
}

fn update(library: &mut Library) -> Updated {
    update_with(library, false, i64::MAX / 2)
}

#[track_caller]
fn find(library: &Library, filters: &[&str]) -> Vec<String> {
    found(library, filters).entries.into_iter().map(|entry| entry.path).collect()
}

#[track_caller]
fn found(library: &Library, filters: &[&str]) -> Found {
    let filters: Vec<Filter> = filters.iter().map(|text| Filter::parse(text).unwrap()).collect();
    library.find(&filters, usize::MAX, Time::from_unix_ms(NOW)).unwrap().unwrap()
}

/// Three records in two folders.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("old")).unwrap();
    let day = 86_400_000;
    for (path, record) in [
        ("a.json.zst", record("oltp_read_only", NOW - 2 * day, &[("disk", "nvme")])),
        ("b.json", record("tpcc", NOW - day, &[("disk", "sata"), ("commit", "abc")])),
        ("old/c.json.zst", record("tpcc", NOW - 300 * day, &[])),
    ] {
        record.create(&folder.path().join(path), Existing::Keep).unwrap();
    }
    folder
}

#[test]
fn records_are_found_by_what_is_known_of_them() {
    let folder = folder();
    let mut library = Library::open(folder.path(), None).unwrap();
    let updated = update(&mut library);
    assert_eq!((updated.files, updated.read, updated.removed), (3, 3, 0));
    let all = ["old/c.json.zst", "a.json.zst", "b.json"];
    let server = found(&library, &[]).entries[0].clone();
    let major = server.version.split('.').next().unwrap().to_owned();
    for (filters, expected) in [
        (vec![], &all[..]),
        (vec!["workload=tpcc"], &["old/c.json.zst", "b.json"]),
        (vec!["workload=TPCC", "since=30d"], &["b.json"]),
        (vec!["workload=oltp_*"], &["a.json.zst"]),
        (vec!["workload!=tpcc"], &["a.json.zst"]),
        (vec!["disk=nvme"], &["a.json.zst"]),
        (vec!["tag.disk=*"], &["a.json.zst", "b.json"]),
        (vec!["disk!=nvme"], &["old/c.json.zst", "b.json"]),
        (vec!["until=30d"], &["old/c.json.zst"]),
        (vec!["path=old/*"], &["old/c.json.zst"]),
        (vec!["outcome=complete"], &all),
        (vec!["outcome=failed"], &[]),
        (vec!["tps>0", "p95<1000s", "qps>0"], &all),
        (vec!["tps<0"], &[]),
        (vec![&format!("product={}", server.product)], &all),
        (vec![&format!("version={major}")], &all),
        (vec!["version=99"], &[]),
        (vec![&format!("machine={}", server.machine)], &all),
    ] {
        assert_eq!(find(&library, &filters), expected, "{filters:?}");
    }
}

#[test]
fn a_condition_that_cannot_be_answered_says_why() {
    let folder = folder();
    let mut library = Library::open(folder.path(), None).unwrap();
    update(&mut library);
    let refused = |text: &str| {
        let answer = Filter::parse(text).map(|filter| library.find(&[filter], 9, Time::from_unix_ms(NOW)).unwrap());
        answer.and_then(|found| found).unwrap_err().to_string()
    };
    let all = ["workload", "=x", "dsk=nvme", "since=yesterday", "tsp>3", "p95<10"].map(refused);
    insta::assert_snapshot!(all.join("\n"), @r"
    workload: expected KEY=VALUE, such as workload=tpcc
    =x: expected KEY=VALUE, such as workload=tpcc
    dsk=nvme: no record has a tag or setting dsk
    since=yesterday: expected a time, such as 2026-03-14 or 30d
    tsp>3: no record has a figure tsp
    p95<10: expected a number; for times with its unit, such as 10ms
    ");
}

#[test]
fn only_what_is_new_or_changed_is_read_again() {
    let folder = folder();
    let mut library = Library::open(folder.path(), None).unwrap();
    update(&mut library);
    assert_eq!(update(&mut library).read, 0);
    let tags = BTreeMap::from([("ticket".to_owned(), "PERF-7".to_owned())]);
    assay_record::tag(&folder.path().join("a.json.zst"), &tags).unwrap();
    fs::remove_file(folder.path().join("b.json")).unwrap();
    let updated = update(&mut library);
    assert_eq!((updated.files, updated.read, updated.removed), (2, 1, 1));
    assert_eq!(find(&library, &["ticket=PERF-7"]), ["a.json.zst"]);
    assert_eq!(find(&library, &["workload=tpcc"]), ["old/c.json.zst"]);
    assert_eq!(update_with(&mut library, true, i64::MAX / 2).read, 2);
}

#[test]
fn a_file_that_may_change_unnoticed_is_read_again() {
    let folder = folder();
    let mut library = Library::open(folder.path(), None).unwrap();
    let modified = fs::metadata(folder.path().join("a.json.zst")).unwrap().modified().unwrap();
    let now_ns = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    update_with(&mut library, false, now_ns);
    assert_eq!(update(&mut library).read, 3);
    assert_eq!(update(&mut library).read, 0);
}

#[test]
fn damaged_and_foreign_files_are_listed_and_stop_nothing() {
    let folder = folder();
    let whole = fs::read(folder.path().join("a.json.zst")).unwrap();
    for (name, content) in [
        ("cut.json.zst", &whole[..20]),
        ("empty.json", b""),
        ("foreign.json", br#"{"name": "left-pad", "version": "1.0.0"}"#),
        ("noise.json.zst", b"not zstd"),
        (".hidden.json", b"{}"),
        ("notes.txt", b"no record, and nobody says so"),
    ] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    std::os::unix::fs::symlink(folder.path(), folder.path().join("old/circle")).unwrap();
    std::os::unix::fs::symlink("nowhere.json", folder.path().join("dangling.json")).unwrap();
    let mut library = Library::open(folder.path(), None).unwrap();
    assert_eq!(update(&mut library).files, 7);
    let problems: Vec<String> =
        library.problems().unwrap().into_iter().map(|(path, reason)| format!("{path}: {reason}")).collect();
    insta::assert_snapshot!(problems.join("\n"), @r"
    cut.json.zst: incomplete: nothing of the run was written, or the file was cut off
    empty.json: incomplete: nothing of the run was written, or the file was cut off
    foreign.json: not a record of assay, or damaged: missing field `format` at line 1 column 40
    noise.json.zst: not a record of assay
    ");
    let found = found(&library, &[]);
    assert_eq!((found.records, found.problems), (3, 4));
    assert_eq!(update(&mut library).read, 0);
}

#[test]
fn indexers_at_once_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..60 {
        let record = record("tpcc", NOW + number, &[]);
        record.create(&folder.path().join(format!("{number}.json.zst")), Existing::Keep).unwrap();
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| update(&mut Library::open(folder.path(), None).unwrap()));
        }
    });
    let mut library = Library::open(folder.path(), None).unwrap();
    assert_eq!(update(&mut library).read, 0);
    assert_eq!(found(&library, &["workload=tpcc"]).matched, 60);
}

#[test]
fn an_index_is_made_anew_if_it_is_damaged_and_left_alone_if_it_is_not_ours() {
    let folder = folder();
    let index = folder.path().join(INDEX_FILE);
    fs::write(&index, "damaged, and long enough to be taken for a database header or something like it").unwrap();
    let mut library = Library::open(folder.path(), None).unwrap();
    update(&mut library);
    assert_eq!(found(&library, &[]).records, 3);
    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE precious (x)").unwrap();
    let before = fs::read(&other).unwrap();
    assert!(matches!(Library::open(folder.path(), Some(&other)), Err(LibraryError::Foreign { .. })));
    fs::write(folder.path().join("text"), "precious text that is much longer than the header of a database").unwrap();
    assert!(matches!(
        Library::open(folder.path(), Some(&folder.path().join("text"))),
        Err(LibraryError::Foreign { .. })
    ));
    assert_eq!(fs::read(&other).unwrap(), before);
}

#[test]
fn figures_of_a_head_are_those_of_the_whole_record() {
    for entry in fs::read_dir("../assay-record/tests/records").unwrap() {
        let path = entry.unwrap().path();
        let Ok(whole) = Record::read(&path) else { continue };
        let head = Record::read_head(&path).unwrap();
        let figures = |record: &Record| assay_report::library_figures(&assay_report::findings(record));
        let settings = |record: &Record| assay_report::settings_in_effect(&assay_report::findings(record));
        assert_eq!(figures(&head), figures(&whole), "{}", path.display());
        assert_eq!(settings(&head), settings(&whole), "{}", path.display());
    }
}
