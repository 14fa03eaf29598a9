//! `fileio`: files prepared, read, written and removed.

use crate::options::KnownOption;
use crate::{LogLevel, ReportLayout, ValueKind, help};
use assay_io::clock::Clock;
use assay_machine::fileio::{
    AccessPattern, BACKLOG_MAX, FileIo, FileOptions, Files, Flags, Preparing, RequestWay, Safety, VALIDATED_MIN,
    size_text,
};
use assay_machine::{MachineFault, Snapshot};

use super::{FAILED, Invocation, MIB, Manner, announce, fail, invalid, no_command, per_second, plan, run, say};

/// Its options.
pub(in crate::front) const OPTIONS: &[KnownOption] = &[
    KnownOption { name: "file-num", kind: ValueKind::Int, default: Some("128"), help: "number of files to create" },
    KnownOption {
        name: "file-block-size",
        kind: ValueKind::Bytes,
        default: Some("16384"),
        help: "block size to use in all IO operations",
    },
    KnownOption {
        name: "file-total-size",
        kind: ValueKind::Size,
        default: Some("2G"),
        help: "total size of files to create",
    },
    KnownOption {
        name: "file-test-mode",
        kind: ValueKind::Text,
        default: None,
        help: "test mode {seqwr, seqrewr, seqrd, rndrd, rndwr, rndrw}",
    },
    KnownOption {
        name: "file-io-mode",
        kind: ValueKind::Text,
        default: Some("sync"),
        help: "file operations mode {sync,async,mmap}",
    },
    KnownOption {
        name: "file-async-backlog",
        kind: ValueKind::Int,
        default: Some("128"),
        help: "number of asynchronous operatons to queue per thread",
    },
    KnownOption {
        name: "file-extra-flags",
        kind: ValueKind::List,
        default: Some(""),
        help: "list of additional flags to use to open files {sync,dsync,direct}",
    },
    KnownOption {
        name: "file-fsync-freq",
        kind: ValueKind::Int,
        default: Some("100"),
        help: "do fsync() after this number of requests (0 - don't use fsync())",
    },
    KnownOption {
        name: "file-fsync-all",
        kind: ValueKind::Bool,
        default: Some("off"),
        help: "do fsync() after each write operation",
    },
    KnownOption {
        name: "file-fsync-end",
        kind: ValueKind::Bool,
        default: Some("on"),
        help: "do fsync() at the end of test",
    },
    KnownOption {
        name: "file-fsync-mode",
        kind: ValueKind::Text,
        default: Some("fsync"),
        help: "which method to use for synchronization {fsync, fdatasync}",
    },
    KnownOption {
        name: "file-merged-requests",
        kind: ValueKind::Int,
        default: Some("0"),
        help: "merge at most this number of IO requests if possible (0 - don't merge)",
    },
    KnownOption {
        name: "file-rw-ratio",
        kind: ValueKind::Double,
        default: Some("1.5"),
        help: "reads/writes ratio for combined test",
    },
];

/// Names of modes, and their descriptions.
const MODES: [(&str, AccessPattern, &str); 6] = [
    ("seqwr", AccessPattern::SequentialWrite, "sequential write (creation)"),
    ("seqrewr", AccessPattern::SequentialRewrite, "sequential rewrite"),
    ("seqrd", AccessPattern::SequentialRead, "sequential read"),
    ("rndrd", AccessPattern::RandomRead, "random read"),
    ("rndwr", AccessPattern::RandomWrite, "random write"),
    ("rndrw", AccessPattern::RandomReadWrite, "random r/w"),
];

struct Throughput;

impl Manner for Throughput {
    fn block(&self, invocation: &Invocation, snapshot: &Snapshot) {
        let rate = |number: u64| per_second(snapshot, number as f64);
        let mib = |bytes: u64| per_second(snapshot, bytes as f64 / MIB);
        if invocation.settings.layout == ReportLayout::Master {
            let mb = |bytes: u64| per_second(snapshot, bytes as f64 / 1e6);
            let speed = |bytes: u64| format!("{:4.2} MiB/s ({:4.2} MB/s)", mib(bytes), mb(bytes));
            say(invocation, "\nThroughput:");
            let (read, written) = (snapshot.bytes_read, snapshot.bytes_written);
            say(invocation, &format!("         read:  IOPS={:4.2} {}", rate(snapshot.reads), speed(read)));
            say(invocation, &format!("         write: IOPS={:4.2} {}", rate(snapshot.writes), speed(written)));
            say(invocation, &format!("         fsync: IOPS={:4.2}", rate(snapshot.syncs)));
            return;
        }
        say(invocation, "\nFile operations:");
        say(invocation, &format!("    reads/s:                      {:4.2}", rate(snapshot.reads)));
        say(invocation, &format!("    writes/s:                     {:4.2}", rate(snapshot.writes)));
        say(invocation, &format!("    fsyncs/s:                     {:4.2}", rate(snapshot.syncs)));
        say(invocation, "\nThroughput:");
        say(invocation, &format!("    read, MiB/s:                  {:4.2}", mib(snapshot.bytes_read)));
        say(invocation, &format!("    written, MiB/s:               {:4.2}", mib(snapshot.bytes_written)));
    }

    fn counts(&self) -> bool {
        true
    }

    fn line(&self, invocation: &Invocation, snapshot: &Snapshot) -> bool {
        let mib = |bytes: u64| per_second(snapshot, bytes as f64 / MIB);
        let stat = super::stat(invocation, snapshot);
        let line = format!(
            "reads: {:4.2} MiB/s writes: {:4.2} MiB/s fsyncs: {:4.2}/s latency (ms,{}%): {:4.3}",
            mib(snapshot.bytes_read),
            mib(snapshot.bytes_written),
            per_second(snapshot, snapshot.syncs as f64),
            invocation.settings.percentile,
            stat.latency_pct * 1000.0
        );
        invocation.console.with(|log| log.timestamp(stat.time_total, &line));
        true
    }
}

/// Runs a command.
pub(in crate::front) fn obey(invocation: &Invocation, command: &str) -> u8 {
    if !["prepare", "run", "cleanup"].contains(&command) {
        return no_command(invocation, "fileio", command);
    }
    let files = match files(invocation) {
        Ok(files) => files,
        Err(code) => return code,
    };
    // The mode may be missing or invalid if nothing is run.
    let mode = if command == "run" { mode(invocation) } else { Ok(AccessPattern::RandomRead) };
    let options = match mode.and_then(|mode| options(invocation, mode)) {
        Ok(options) => options,
        Err(code) => return code,
    };
    match command {
        "prepare" => prepare(invocation, files),
        "run" => match with_backlog(invocation, options) {
            Ok(options) => run_files(invocation, files, options),
            Err(code) => code,
        },
        _ => {
            say(invocation, "Removing test files...");
            files.cleanup();
            0
        }
    }
}

/// Options of the files, or the exit code if they were refused.
fn files(invocation: &Invocation) -> Result<Files, u8> {
    let given = &invocation.options;
    let num = given.int("file_num");
    let number = usize::try_from(num).ok().filter(|number| *number > 0);
    let number = number.ok_or_else(|| invalid(invocation, "file-num", num))?;
    let total = given.number("file_total_size") as u64;
    let size = Some(total / number as u64).filter(|size| *size > 0);
    let size = size.ok_or_else(|| invalid(invocation, "file-total-size", total))?;
    let validate = invocation.settings.validate;
    let block = given.number("file_block_size");
    // One request is one transfer of the kernel, which has 31 bits for its size.
    if !(1.0..=f64::from(i32::MAX)).contains(&block) {
        return Err(invalid(invocation, "file-block-size", format!("{block}.")));
    }
    if validate && (block as usize) < VALIDATED_MIN {
        let text = format!("{block} (--validate needs at least {VALIDATED_MIN}).");
        return Err(invalid(invocation, "file-block-size", text));
    }
    let mut flags = Flags::default();
    for flag in given.list("file_extra_flags") {
        match flag.as_str() {
            "sync" => flags.sync = true,
            "dsync" => flags.dsync = true,
            "direct" => flags.direct = true,
            other => return Err(invalid(invocation, "file-extra-flags", other)),
        }
    }
    Ok(Files { number, size, block: block as usize, flags, validate, seed: invocation.seed() })
}

fn mode(invocation: &Invocation) -> Result<AccessPattern, u8> {
    let name = invocation.options.text("file_test_mode");
    if name.is_empty() {
        let code = fail(invocation, &MachineFault::new("Missing required argument: --file-test-mode\n"));
        let list = format!("fileio options:\n{}\n", help::list(OPTIONS));
        // A write error does not change the result.
        invocation.process.print(list.as_bytes());
        return Err(code);
    }
    let found = MODES.iter().find(|(one, ..)| *one == name);
    found
        .map(|(_, mode, _)| *mode)
        .ok_or_else(|| fail(invocation, &MachineFault::new(format!("Invalid IO operations mode: {name}."))))
}

/// Options of a run.
fn options(invocation: &Invocation, mode: AccessPattern) -> Result<FileOptions, u8> {
    let given = &invocation.options;
    let refuse = |text: String| Err(fail(invocation, &MachineFault::new(text)));
    let way = match given.text("file_io_mode") {
        "sync" | "" => RequestWay::Sync,
        "async" => RequestWay::Async(0),
        "mmap" => RequestWay::Mmap,
        other => return refuse(format!("unknown I/O mode: {other}")),
    };
    let merged = given.int("file_merged_requests");
    let Some(blocks) = usize::try_from(merged)
        .ok()
        .filter(|merged| merged.saturating_mul(given.number("file_block_size") as usize) <= i32::MAX as usize)
    else {
        return refuse(format!("Invalid value for file-merged-requests: {merged}."));
    };
    let every = given.int("file_fsync_freq");
    let Ok(sync_every) = u32::try_from(every) else {
        return refuse(format!("Invalid value for file-fsync-freq: {every}."));
    };
    let safety = match given.text("file_fsync_mode") {
        "fsync" => Safety::Fsync,
        "fdatasync" => Safety::Fdatasync,
        other => return refuse(format!("Invalid fsync mode: {other}.")),
    };
    let ratio = given.number("file_rw_ratio");
    if ratio.is_nan() || ratio < 0.0 {
        return refuse(format!("Invalid value for --file-rw-ratio: {ratio:.6}."));
    }
    let (sync_all, sync_end) = (given.is_on("file_fsync_all"), given.is_on("file_fsync_end"));
    Ok(FileOptions { mode, way, safety, sync_every, sync_all, sync_end, merged: blocks, ratio })
}

/// The options with the number of requests in flight, which only a run uses.
fn with_backlog(invocation: &Invocation, options: FileOptions) -> Result<FileOptions, u8> {
    let backlog = invocation.options.int("file_async_backlog");
    let way = match (options.way, usize::try_from(backlog)) {
        (RequestWay::Async(_), Ok(backlog @ 1..=BACKLOG_MAX)) => RequestWay::Async(backlog),
        (RequestWay::Async(_), _) => {
            let text = format!("Invalid value of file-async-backlog: {backlog}");
            return Err(fail(invocation, &MachineFault::new(text)));
        }
        (way, _) => way,
    };
    Ok(FileOptions { way, ..options })
}

/// "Extra file open flags", with the original's blanks.
fn flags_text(flags: Flags) -> String {
    let names = [(flags.sync, "sync "), (flags.dsync, "dsync "), (flags.direct, "directio")];
    let given: String = names.into_iter().filter_map(|(on, name)| on.then_some(name)).collect();
    format!("Extra file open flags: {}", if given.is_empty() { "(none)" } else { &given })
}

fn prepare(invocation: &Invocation, files: Files) -> u8 {
    let total = files.size * files.number as u64;
    say(invocation, &format!("{} files, {}Kb each, {}Mb total", files.number, files.size / 1024, total / 1_048_576));
    say(invocation, "Creating files for the test...");
    say(invocation, &flags_text(files.flags));
    let begun = Clock::start();
    let written = files.prepare(|preparing, name| {
        let what = match preparing {
            Preparing::Creating => "Creating file",
            Preparing::Extending => "Extending existing file",
            Preparing::Reusing => "Reusing existing file",
        };
        say(invocation, &format!("{what} {name}"));
    });
    let seconds = begun.now().as_secs_f64();
    match written {
        Err(fault) => return fail(invocation, &fault),
        Ok(0) => say(invocation, "No bytes written."),
        Ok(bytes) => {
            let rate = bytes as f64 / MIB / seconds;
            say(invocation, &format!("{bytes} bytes written in {seconds:.2} seconds ({rate:.2} MiB/sec)."));
        }
    }
    0
}

fn run_files(invocation: &Invocation, files: Files, options: FileOptions) -> u8 {
    announce(invocation);
    announce_files(invocation, files, options);
    let test = FileIo::new(files, options, |name| {
        invocation.console.say(LogLevel::Debug, &format!("Opening file: {name}"));
    });
    let traced = |test: FileIo| {
        let console = invocation.console.clone();
        test.traced(Box::new(move |is_write, file, position, size| {
            let operation = if is_write { 2 } else { 1 };
            let text =
                format!("Executing request, operation: {operation}, file_id: {file}, pos: {position}, size: {size}");
            console.say(LogLevel::Debug, &text);
        }))
    };
    match test.map(|test| if invocation.settings.debug { traced(test) } else { test }) {
        Ok(test) => run(invocation, test, &Throughput, &plan(invocation, invocation.settings.events)),
        Err(fault) => fail(invocation, &fault).max(FAILED),
    }
}

fn announce_files(invocation: &Invocation, files: Files, options: FileOptions) {
    say(invocation, &flags_text(files.flags));
    say(invocation, &format!("{} files, {} each", files.number, size_text(files.size)));
    say(invocation, &format!("{} total file size", size_text(files.size * files.number as u64)));
    say(invocation, &format!("Block size {}", size_text(files.block as u64)));
    if options.merged > 0 {
        let most = size_text((files.block * options.merged) as u64);
        say(invocation, &format!("Merging requests up to {most} for sequential IO."));
    }
    if options.mode.is_random() {
        say(invocation, &format!("Number of IO requests: {}", invocation.settings.events.unwrap_or(0)));
        say(invocation, &format!("Read/Write ratio for combined random IO test: {:.2}", options.ratio));
    }
    if options.sync_all {
        say(invocation, "Calling fsync() after each write operation.");
    } else {
        if options.sync_every > 0 {
            let every = options.sync_every;
            say(invocation, &format!("Periodic FSYNC enabled, calling fsync() each {every} requests."));
        }
        if options.sync_end {
            say(invocation, "Calling fsync() at the end of test, Enabled.");
        }
    }
    let way = match options.way {
        RequestWay::Sync => "synchronous",
        RequestWay::Async(_) => "asynchronous",
        RequestWay::Mmap => "fast mmaped",
    };
    say(invocation, &format!("Using {way} I/O mode"));
    if files.validate {
        say(invocation, "Using checksums validation.");
    }
    let what = MODES.iter().find(|(_, mode, _)| *mode == options.mode).map_or("", |(.., what)| what);
    say(invocation, &format!("Doing {what} test"));
}
