//! Files: an event reads or writes a block, or syncs a file.
//!
//! `Files` are made by `prepare` and removed by `cleanup`. A run takes its requests from one sequence (`requests`) and
//! does them by system call, by many system calls at a time (`queue`) or in memory (`mapping`). Files are called
//! `test_file.N` and lie in the current directory, as sysbench's do: files of one can be used by the other, with
//! checksums too.

mod block;
pub mod jobs;
mod mapping;
mod queue;
mod requests;

use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::random::WorkerRandom;
use crate::{Counts, MachineFault, MachineTest, TestThread};
use block::AlignedBlock;
use mapping::Mapping;
use queue::{Completed, Queue, Transfer};
pub use requests::{AccessPattern, FileRequest};
use requests::{FilePiece, Requests, SequenceShape};

/// The most requests in flight.
pub const BACKLOG_MAX: usize = queue::BACKLOG_MAX;
/// The smallest block that can be validated.
pub const VALIDATED_MIN: usize = block::SMALLEST;

/// The files and how they are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Files {
    /// How many. 1 <= number.
    pub number: usize,
    /// Bytes of each. 1 <= size.
    pub size: u64,
    /// Bytes of a request. 1 <= block.
    pub block: usize,
    /// How they are opened.
    pub flags: Flags,
    /// Blocks carry checksums. `VALIDATED_MIN` <= block.
    pub validate: bool,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// What files are opened with beside the usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// O_SYNC
    pub sync: bool,
    /// O_DSYNC
    pub dsync: bool,
    /// O_DIRECT
    pub direct: bool,
}

impl Flags {
    fn bits(self) -> i32 {
        let bit = |on, bit| if on { bit } else { 0 };
        bit(self.sync, libc::O_SYNC) | bit(self.dsync, libc::O_DSYNC) | bit(self.direct, DIRECT)
    }
}

#[cfg(target_os = "linux")]
const DIRECT: i32 = libc::O_DIRECT;
#[cfg(not(target_os = "linux"))]
const DIRECT: i32 = 0;

/// How requests are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestWay {
    /// By a system call that returns when the request is done.
    Sync,
    /// Asynchronous system calls; this many (1 to `BACKLOG_MAX`) may be in flight per worker.
    Async(usize),
    /// By copying from and to memory that the files are mapped to.
    Mmap,
}

/// How files are made safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Data and everything known about the file.
    Fsync,
    /// Data, and what is needed to find it.
    Fdatasync,
}

/// What a run does with the files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileOptions {
    /// The pattern of requests.
    pub mode: AccessPattern,
    /// How requests are done.
    pub way: RequestWay,
    /// How files are made safe.
    pub safety: Safety,
    /// All files are synced after this many requests; 0: never.
    pub sync_every: u32,
    /// A file is made safe after each write, and `sync_every` and `sync_end` do not count.
    pub sync_all: bool,
    /// Each worker makes all files safe at its end.
    pub sync_end: bool,
    /// Blocks that one sequential request takes at most; 0 or 1: one.
    pub merged: usize,
    /// Reads per write.
    pub ratio: f64,
}

/// Name of a file.
pub fn name(number: usize) -> String {
    format!("test_file.{number}")
}

/// A number of bytes as people say it: five digits and a unit.
pub fn size_text(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, 0);
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    while value >= 1024.0 {
        value /= 1024.0;
        unit += 1;
    }
    // 0.. has one digit before the point, 10.. two, and so on.
    let before = format!("{value:.0}").len();
    let text = format!("{value:.0$}", 5_usize.saturating_sub(before));
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{}", units[unit])
}

/// What `prepare` is about to do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparing {
    /// It is not there, or empty.
    Creating,
    /// It is too short.
    Extending,
    /// It is long enough.
    Reusing,
}

impl Files {
    /// Creates the files, or makes them as long as they have to be. Returns how many bytes were written.
    pub fn prepare(&self, mut tell: impl FnMut(Preparing, &str)) -> Result<u64, MachineFault> {
        let (mut buffer, mut random) = (AlignedBlock::new(self.block), WorkerRandom::new(self.seed, 0));
        let mut written = 0;
        for number in 0..self.number {
            let name = name(number);
            let cannot_open = |error| MachineFault::system("Can't open file", &error);
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600).custom_flags(self.flags.bits());
            let mut file = options.open(&name).map_err(cannot_open)?;
            let mut position = io::Seek::seek(&mut file, io::SeekFrom::End(0)).map_err(cannot_open)?;
            let preparing = match position {
                0 => Preparing::Creating,
                there if there < self.size => Preparing::Extending,
                _ => Preparing::Reusing,
            };
            tell(preparing, &name);
            while position < self.size {
                let block = buffer.get_mut(self.block);
                if self.validate {
                    block::seal(block, position, &mut random);
                }
                file.write_all(block).map_err(|error| MachineFault::system("Failed to write file!", &error))?;
                position += self.block as u64;
                written += self.block as u64;
            }
            file.sync_all().map_err(|error| MachineFault::system("Failed to fsync file!", &error))?;
        }
        Ok(written)
    }

    /// Removes the files; those that are not there are none of its business.
    pub fn cleanup(&self) {
        for number in 0..self.number {
            drop(remove_file(name(number)));
        }
    }

    /// Opens what a run needs.
    fn open(&self, mode: AccessPattern, mut opening: impl FnMut(&str)) -> Result<Vec<File>, MachineFault> {
        (0..self.number)
            .map(name)
            .map(|name| {
                opening(&name);
                self.open_one(mode, &name)
            })
            .collect()
    }

    fn open_one(&self, mode: AccessPattern, name: &str) -> Result<File, MachineFault> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(self.flags.bits());
        if mode == AccessPattern::SequentialWrite {
            drop(remove_file(name));
            let create = options.create_new(true).mode(0o600).open(name);
            return create.map_err(|error| MachineFault::system(format!("Cannot create file '{name}'"), &error));
        }
        let cannot_open = |error| {
            MachineFault::system(format!("Cannot open file '{name}'"), &error)
                .advise("Did you forget to run the prepare step?")
        };
        let file = options.open(name).map_err(cannot_open)?;
        let there = file.metadata().map_err(cannot_open)?.len();
        if there < self.size {
            let (there, expected) = (size_text(there), size_text(self.size));
            return Err(MachineFault::new(format!(
                "Size of file '{name}' is {there}, but at least {expected} is expected."
            ))
            .advise("Did you run 'prepare' with different --file-total-size or --file-num values?"));
        }
        Ok(file)
    }
}

/// The test: its files are open.
pub struct FileIo {
    files: Files,
    options: FileOptions,
    open: Vec<File>,
    mappings: Vec<Mapping>,
    requests: Mutex<Requests>,
    reads: AtomicU64,
    writes: AtomicU64,
    trace: Option<Box<TransferTrace>>,
}

/// Told of each transfer before it is done: whether it is a write, the file, the position, the size.
pub type TransferTrace = dyn Fn(bool, usize, u64, usize) + Send + Sync;

impl FileIo {
    /// Opens the files, and maps them if wanted; `opening` is called with the name of each. Fails when one is missing
    /// or too short.
    pub fn new(files: Files, options: FileOptions, opening: impl FnMut(&str)) -> Result<FileIo, MachineFault> {
        let open = files.open(options.mode, opening)?;
        let mut mappings = Vec::new();
        if options.way == RequestWay::Mmap {
            if options.mode == AccessPattern::SequentialWrite {
                for (number, file) in open.iter().enumerate() {
                    let failed = |error| MachineFault::system(format!("ftruncate() failed on file {number}"), &error);
                    file.set_len(files.size).map_err(failed)?;
                }
            }
            for (number, file) in open.iter().enumerate() {
                let failed = |error| MachineFault::system(format!("mmap() failed on file {number}"), &error);
                mappings.push(Mapping::new(file, files.size).map_err(failed)?);
            }
        }
        let shape = SequenceShape {
            mode: options.mode,
            files: files.number,
            file_size: files.size,
            block: files.block,
            merged: files.block * options.merged.max(1),
            sync_every: if options.sync_all { 0 } else { options.sync_every },
            ratio: options.ratio,
        };
        let requests = Mutex::new(Requests::new(shape, files.seed));
        let (reads, writes) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(FileIo { files, options, open, mappings, requests, reads, writes, trace: None })
    }

    /// Adds an observer of each transfer.
    pub fn traced(mut self, trace: Box<TransferTrace>) -> FileIo {
        self.trace = Some(trace);
        self
    }

    /// The largest request.
    fn request_max(&self) -> usize {
        self.files.block * self.options.merged.max(1)
    }

    fn validates(&self, piece: FilePiece) -> bool {
        self.files.validate && piece.size >= VALIDATED_MIN
    }

    /// Makes a file safe.
    fn sync(&self, file: usize, counts: &Counts) -> Result<(), MachineFault> {
        let result = match (self.mappings.get(file), self.options.safety) {
            (Some(mapping), _) => mapping.sync(),
            (None, Safety::Fsync) => self.open[file].sync_all(),
            (None, Safety::Fdatasync) => self.open[file].sync_data(),
        };
        let failed = |error| MachineFault::system(format!("Failed to fsync file! file: {}", self.fd(file)), &error);
        result.map_err(failed)?;
        counts.synced();
        Ok(())
    }

    fn fd(&self, file: usize) -> i32 {
        self.open[file].as_raw_fd()
    }

    /// What follows a transfer: its result is looked at, checked and counted.
    fn after(
        &self,
        transfer: Transfer,
        result: io::Result<usize>,
        data: &[u8],
        counts: &Counts,
    ) -> Result<(), MachineFault> {
        let Transfer { fd, piece, is_write } = transfer;
        let size = result.and_then(|size| match size == piece.size {
            true => Ok(size as u64),
            false => Err(io::Error::from_raw_os_error(0)),
        });
        let size = size.map_err(|error| {
            let what = if is_write { "write" } else { "read" };
            MachineFault::system(format!("Failed to {what} file! file: {fd} pos: {}", piece.position), &error)
        })?;
        if is_write {
            self.writes.fetch_add(1, Relaxed);
            counts.written(size);
            return if self.options.sync_all { self.sync(piece.file, counts) } else { Ok(()) };
        }
        if self.validates(piece) {
            block::verify(data, piece.file, piece.position)?;
        }
        self.reads.fetch_add(1, Relaxed);
        counts.read(size);
        Ok(())
    }
}

/// One of the threads.
pub struct FileMover {
    test: Arc<FileIo>,
    buffer: AlignedBlock,
    /// For `RequestWay::Async`.
    queue: Option<Queue>,
    random: WorkerRandom,
}

impl MachineTest for FileIo {
    type Worker = FileMover;

    fn worker(self: &Arc<Self>, id: u32) -> Result<FileMover, MachineFault> {
        let size = self.request_max();
        let queue = match self.options.way {
            RequestWay::Async(backlog) => Some(Queue::new(backlog, size, self.files.validate)),
            RequestWay::Sync | RequestWay::Mmap => None,
        };
        let random = WorkerRandom::new(self.files.seed, u64::from(id) + 1);
        Ok(FileMover { test: self.clone(), buffer: AlignedBlock::new(size), queue, random })
    }
}

impl TestThread for FileMover {
    type Request = FileRequest;

    fn next(&mut self) -> Option<FileRequest> {
        let (reads, writes) = (self.test.reads.load(Relaxed), self.test.writes.load(Relaxed));
        Some(self.test.requests.lock().unwrap_or_else(PoisonError::into_inner).next(reads, writes))
    }

    fn execute(&mut self, request: FileRequest, counts: &Counts) -> Result<(), MachineFault> {
        let (piece, is_write) = match request {
            FileRequest::Sync(file) => return self.test.sync(file, counts),
            FileRequest::Read(piece) => (piece, false),
            FileRequest::Write(piece) => (piece, true),
        };
        let transfer = Transfer { fd: self.test.fd(piece.file), piece, is_write };
        if let Some(trace) = &self.test.trace {
            trace(is_write, piece.file, piece.position, piece.size);
        }
        if self.queue.is_some() { self.begin(transfer, counts) } else { self.transfer(transfer, counts) }
    }

    fn finish(&mut self, counts: &Counts) -> Result<(), MachineFault> {
        if let Some(queue) = &self.queue {
            self.complete(queue.in_flight(), counts)?;
        }
        let FileOptions { mode, sync_all, sync_end, .. } = self.test.options;
        let writes = !matches!(mode, AccessPattern::SequentialRead | AccessPattern::RandomRead);
        if writes && sync_end && !sync_all {
            for file in 0..self.test.open.len() {
                self.test.sync(file, counts)?;
            }
        }
        Ok(())
    }
}

impl FileMover {
    /// A request from begin to end.
    fn transfer(&mut self, transfer: Transfer, counts: &Counts) -> Result<(), MachineFault> {
        let Transfer { piece, is_write, .. } = transfer;
        let data = self.buffer.get_mut(piece.size);
        if is_write && self.test.validates(piece) {
            block::seal(data, piece.position, &mut self.random);
        }
        let result = match (self.test.mappings.get(piece.file), is_write) {
            (Some(mapping), true) => {
                mapping.write(piece.position, data);
                Ok(piece.size)
            }
            (Some(mapping), false) => {
                mapping.read(piece.position, data);
                Ok(piece.size)
            }
            (None, true) => self.test.open[piece.file].write_at(data, piece.position),
            (None, false) => self.test.open[piece.file].read_at(data, piece.position),
        };
        self.test.after(transfer, result, data, counts)
    }

    /// Begins a request; waits for one to be complete when there are as many as there may be.
    fn begin(&mut self, transfer: Transfer, counts: &Counts) -> Result<(), MachineFault> {
        let Transfer { piece, is_write, .. } = transfer;
        let queue = self.queue.as_mut().expect("only called with a queue");
        if is_write && self.test.validates(piece) {
            block::seal(queue.next_buffer(piece.size), piece.position, &mut self.random);
        }
        queue.submit(transfer).map_err(|error| MachineFault::system("Failed to submit a request!", &error))?;
        if queue.is_full() { self.complete(1, counts) } else { Ok(()) }
    }

    fn complete(&mut self, at_least: usize, counts: &Counts) -> Result<(), MachineFault> {
        let queue = self.queue.as_mut().expect("only called with a queue");
        let completed = queue.wait(at_least).map_err(|error| MachineFault::system("Failed to get events!", &error))?;
        for Completed { transfer, slot, result } in completed {
            let data = queue.buffer(slot, transfer.piece.size);
            self.test.after(transfer, result, data, counts)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
