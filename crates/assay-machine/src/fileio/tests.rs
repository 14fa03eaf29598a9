//! Whole runs on real files: every test mode with every I/O mode, with checksums.

use std::env::set_current_dir;
use std::sync::Arc;

use super::*;
use crate::{MachineOutcome, MachinePlan, run};

const FILES: Files = Files {
    number: 3,
    size: 40_000,
    block: 4096,
    flags: Flags { sync: false, dsync: false, direct: false },
    validate: true,
    seed: 5,
};

const OPTIONS: FileOptions = FileOptions {
    mode: AccessPattern::RandomReadWrite,
    way: RequestWay::Sync,
    safety: Safety::Fsync,
    sync_every: 10,
    sync_all: false,
    sync_end: true,
    merged: 0,
    ratio: 1.5,
};

const WAYS: [RequestWay; 3] = [RequestWay::Sync, RequestWay::Async(4), RequestWay::Mmap];

fn trial(files: Files, options: FileOptions, threads: u32, events: u64) -> Result<MachineOutcome, MachineFault> {
    let plan = MachinePlan { events: Some(events), ..MachinePlan::new(threads) };
    run(&Arc::new(FileIo::new(files, options, |_| ())?), &plan, |_| ())
}

/// Names of files are relative to the current directory, which a process has one of: one test for all of it.
#[test]
fn files_are_prepared_used_checked_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    set_current_dir(folder.path()).unwrap();
    preparing_keeps_and_extends_what_is_there();
    every_mode_reads_what_was_written_by_every_way();
    files_are_made_safe_as_told();
    a_damaged_block_is_found_by_every_way();
    missing_and_short_files_are_told();
    FILES.cleanup();
    assert_eq!(std::fs::read_dir(".").unwrap().count(), 0);
}

fn preparing_keeps_and_extends_what_is_there() {
    std::fs::write(name(1), [0; 5000]).unwrap();
    std::fs::write(name(2), [0; 50_000]).unwrap();
    let mut told = Vec::new();
    let written = FILES.prepare(|preparing, name| told.push((preparing, name.to_owned()))).unwrap();
    let names = [(Preparing::Creating, name(0)), (Preparing::Extending, name(1)), (Preparing::Reusing, name(2))];
    assert_eq!(told, names);
    // 10 blocks for the first; 35,000 bytes are 9 more for the second.
    assert_eq!(written, 19 * 4096);
    assert_eq!(std::fs::metadata(name(1)).unwrap().len(), 5000 + 9 * 4096);
    FILES.cleanup();
}

fn every_mode_reads_what_was_written_by_every_way() {
    // All blocks are whole: what is cut at the end of a file would overlap with others.
    let files = Files { size: 40_960, ..FILES };
    for way in WAYS {
        files.cleanup();
        let new = FileOptions { mode: AccessPattern::SequentialWrite, way, ..OPTIONS };
        assert_eq!(trial(files, new, 1, 36).unwrap().snapshot.writes, 30);
        for mode in [
            AccessPattern::SequentialRead,
            AccessPattern::SequentialRewrite,
            AccessPattern::RandomReadWrite,
            AccessPattern::RandomRead,
        ] {
            for threads in [1, 3] {
                // The kernel lets a block be read while it is written: half of each would be no fault of ours.
                if threads > 1 && matches!(mode, AccessPattern::RandomReadWrite) {
                    continue;
                }
                let snapshot = trial(files, FileOptions { mode, way, ..OPTIONS }, threads, 60).unwrap().snapshot;
                let transfers = snapshot.reads + snapshot.writes;
                assert_eq!(snapshot.bytes_read + snapshot.bytes_written, transfers * 4096, "{mode:?} {way:?}");
                assert_eq!(snapshot.events, 60);
            }
        }
    }
    let direct = Files { flags: Flags { direct: true, dsync: true, sync: false }, ..files };
    match trial(direct, OPTIONS, 1, 20) {
        Ok(outcome) => assert_eq!(outcome.snapshot.events, 20),
        Err(fault) => assert!(fault.lines[0].contains("errno = 22"), "not every file system can: {fault}"),
    }
    assert_eq!(
        trial(files, FileOptions { mode: AccessPattern::SequentialRead, merged: 1, ..OPTIONS }, 1, 30)
            .unwrap()
            .snapshot
            .reads,
        30
    );
}

fn files_are_made_safe_as_told() {
    let files = Files { size: 40_960, ..FILES };
    for way in WAYS {
        let count = |options, events| trial(files, FileOptions { way, ..options }, 1, events).unwrap().snapshot;
        let rewrite = FileOptions { mode: AccessPattern::SequentialRewrite, ..OPTIONS };
        // 10 writes, 3 files, 10 writes, 3 files, 4 writes; 3 files at the end.
        let snapshot = count(rewrite, 30);
        assert_eq!((snapshot.writes, snapshot.syncs, snapshot.events), (24, 9, 30), "{way:?}");
        assert_eq!(count(FileOptions { sync_every: 0, sync_end: false, ..rewrite }, 30).syncs, 0);
        assert_eq!(count(FileOptions { sync_all: true, safety: Safety::Fdatasync, ..rewrite }, 30).syncs, 30);
        assert_eq!(count(FileOptions { mode: AccessPattern::SequentialRead, ..OPTIONS }, 30).syncs, 0);
    }
}

fn a_damaged_block_is_found_by_every_way() {
    let files = Files { size: 40_960, ..FILES };
    let file = OpenOptions::new().write(true).open(name(1)).unwrap();
    file.write_at(b"damage", 9000).unwrap();
    for way in WAYS {
        let fault =
            trial(files, FileOptions { mode: AccessPattern::SequentialRead, way, ..OPTIONS }, 2, 60).unwrap_err();
        assert_eq!(fault.lines[0], "Checksum mismatch in block with offset: 8192", "{way:?}");
        assert_eq!(fault.lines[2], "Validation failed on file 1, block offset 8192, exiting...");
    }
    let unchecked = Files { validate: false, ..files };
    trial(unchecked, FileOptions { mode: AccessPattern::SequentialRead, ..OPTIONS }, 2, 60).unwrap();
}

fn missing_and_short_files_are_told() {
    let fault = trial(Files { size: 1 << 20, ..FILES }, OPTIONS, 1, 1).unwrap_err();
    assert_eq!(fault.lines, ["Size of file 'test_file.0' is 40KiB, but at least 1MiB is expected."]);
    remove_file(name(2)).unwrap();
    let fault = trial(FILES, OPTIONS, 1, 1).unwrap_err();
    assert_eq!(fault.lines, ["Cannot open file 'test_file.2' errno = 2 (No such file or directory)"]);
    assert_eq!(fault.advice.as_deref(), Some("Did you forget to run the prepare step?"));
}

#[test]
fn sizes_are_told_with_five_digits() {
    let texts = [0, 99, 1000, 1024, 349_866, 1_049_598, 1 << 24, 1_572_864_000, 35_791_394_133, 183_251_937_962_666];
    let expected =
        ["0B", "99B", "1000B", "1KiB", "341.67KiB", "1.001MiB", "16MiB", "1.4648GiB", "33.333GiB", "166.67TiB"];
    assert_eq!(texts.map(size_text), expected);
}
