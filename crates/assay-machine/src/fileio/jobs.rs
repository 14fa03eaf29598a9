//! Files as a database engine uses them: several kinds of work at once on the same files.
//!
//! Readers read random blocks and wait for each, as backends do that miss a page. Writers keep many random writes in
//! flight, as flushing does. Loggers append to a log of their own and make every append safe, as commits do. Each kind
//! is counted by itself, so that what one does to another is seen.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::Flags;
use super::block::AlignedBlock;
use super::queue::{Queue, Transfer};
use super::requests::FilePiece;
use crate::random::WorkerRandom;

/// What is done, and with what.
#[derive(Clone, Debug)]
pub struct Jobs {
    /// Where the files lie.
    pub folder: PathBuf,
    /// Data files. 1 <= files
    pub files: usize,
    /// Bytes of all data files together; each has the same whole number of blocks. `block` × `files` <= size
    pub size: u64,
    /// Bytes of a read or write of data. 1 <= block
    pub block: usize,
    /// Bytes of an append to a log. 1 <= log_block
    pub log_block: usize,
    /// Bytes of a log, after which it begins anew. `log_block` <= log_size
    pub log_size: u64,
    /// Data files are opened with O_DIRECT. Logs are not: they are made safe by fdatasync.
    pub direct: bool,
    /// Data files are opened with O_DSYNC: a write is done when it is on the drive.
    pub dsync: bool,
    /// Threads that read.
    pub readers: usize,
    /// Threads that write.
    pub writers: usize,
    /// Writes in flight of each writer. 1 <= write_depth
    pub write_depth: usize,
    /// Threads that append.
    pub loggers: usize,
    /// Seed of the choice of blocks.
    pub seed: u64,
}

/// The kinds of work, in the order of `JobsOutcome::kinds`.
pub const KINDS: [&str; 3] = ["read", "write", "log"];

/// What came of it.
#[derive(Clone, Debug)]
pub struct JobsOutcome {
    /// How long it was measured.
    pub measured: Duration,
    /// One per kind of `KINDS`.
    pub kinds: [KindOutcome; 3],
    /// Operations of each kind that ended in each second; the last may be shorter.
    pub seconds: Vec<(Duration, [u64; 3])>,
}

/// One kind of work.
#[derive(Clone, Debug)]
pub struct KindOutcome {
    /// From the request to its end, in nanoseconds; of a log, until it is safe.
    pub latencies: Histogram<u64>,
    /// The sum of them.
    pub sum_ns: u128,
}

impl Default for KindOutcome {
    fn default() -> KindOutcome {
        KindOutcome { latencies: Histogram::new(3).expect("3 digits are allowed"), sum_ns: 0 }
    }
}

impl KindOutcome {
    fn add(&mut self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.latencies.record(ns.max(1)).expect("it grows as it needs");
        self.sum_ns += u128::from(ns);
    }

    fn merge(&mut self, other: &KindOutcome) {
        self.latencies.add(&other.latencies).expect("both grow as they need");
        self.sum_ns += other.sum_ns;
    }
}

/// Bytes written at a time while files are made.
const CHUNK: usize = 1 << 20;

impl Jobs {
    /// Bytes that `prepare` would still have to write.
    pub fn missing_bytes(&self) -> u64 {
        let there = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
        self.missing().map(|(path, size)| size - there(&path)).sum()
    }

    /// Paths of the files that `prepare` would write.
    pub fn missing_paths(&self) -> Vec<PathBuf> {
        self.missing().map(|(path, _)| path).collect()
    }

    /// Makes the files that are missing or too short, full of random bytes, and says which. Ends early, with
    /// `ErrorKind::Interrupted`, if `stopped` says so.
    pub fn prepare(&self, say: &dyn Fn(&str), stopped: &dyn Fn() -> bool) -> io::Result<()> {
        for (path, size) in self.missing() {
            say(&format!("creating {} ({} MB)", path.display(), size >> 20));
            let mut random = WorkerRandom::new(self.seed, size);
            let mut chunk = vec![0; CHUNK];
            chunk.chunks_exact_mut(8).for_each(|eight| eight.copy_from_slice(&random.next().to_le_bytes()));
            let file = OpenOptions::new().create(true).write(true).truncate(false).open(&path)?;
            let mut at = 0;
            while at < size {
                if stopped() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                let length = CHUNK.min((size - at) as usize);
                // No two chunks are the same: a drive may store those once.
                chunk[..8].copy_from_slice(&at.to_le_bytes());
                file.write_all_at(&chunk[..length], at)?;
                at += length as u64;
            }
            file.sync_all()?;
        }
        Ok(())
    }

    /// Every file, and its size.
    fn all(&self) -> impl Iterator<Item = (PathBuf, u64)> {
        let data = (0..self.files).map(|number| (self.data(number), self.file_size()));
        data.chain((0..self.loggers).map(|number| (self.log(number), self.log_size)))
    }

    /// Those that are not there, or too short.
    fn missing(&self) -> impl Iterator<Item = (PathBuf, u64)> {
        self.all().filter(|(path, size)| !std::fs::metadata(path).is_ok_and(|found| found.len() >= *size))
    }

    /// Paths of the files, whether they are there or not, and of those that earlier jobs with more files have left.
    pub fn paths(&self) -> Vec<PathBuf> {
        let more = |from: usize, path: &dyn Fn(usize) -> PathBuf| -> Vec<PathBuf> {
            (from..).map(path).take_while(|path| path.is_file()).collect()
        };
        let own = self.all().map(|(path, _)| path);
        own.chain(more(self.files, &|number| self.data(number)))
            .chain(more(self.loggers, &|number| self.log(number)))
            .collect()
    }

    /// Runs all jobs until `time` is over, or `stopped` says so. The first error ends all of them.
    pub fn run(&self, time: Duration, stopped: &dyn Fn() -> bool) -> io::Result<JobsOutcome> {
        let of_data = Flags { direct: self.direct, dsync: self.dsync, ..Flags::default() };
        let files = (0..self.files).map(|number| open(&self.data(number), of_data));
        let files = files.collect::<io::Result<Vec<File>>>()?;
        let logs = (0..self.loggers).map(|number| open(&self.log(number), Flags::default()));
        let logs = logs.collect::<io::Result<Vec<File>>>()?;
        let ended = AtomicBool::new(false);
        let counts: [AtomicU64; 3] = Default::default();
        let blocks = self.file_size() / self.block as u64;
        let begin = Instant::now();
        let mut seconds = Vec::new();
        let results = std::thread::scope(|scope| {
            let (files, ended, counts) = (&files, &ended, &counts);
            let work = SharedWork { block: self.block, blocks, files, ended };
            let mut threads = Vec::new();
            for number in 0..self.readers {
                let random = WorkerRandom::new(self.seed, number as u64 + 1);
                threads.push((0, scope.spawn(move || work.read(random, &counts[0]))));
            }
            for number in 0..self.writers {
                let random = WorkerRandom::new(self.seed, (1 << 32) + number as u64);
                threads.push((1, scope.spawn(move || work.write(random, self.write_depth, &counts[1]))));
            }
            for log in &logs {
                threads.push((2, scope.spawn(move || self.append(log, ended, &counts[2]))));
            }
            let mut before = [0; 3];
            let mut last = begin;
            while begin.elapsed() < time && !stopped() && !ended.load(Relaxed) {
                let next = (last + Duration::from_secs(1)).min(begin + time);
                std::thread::sleep(next.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
                let now = Instant::now();
                if now >= next {
                    let read = [0, 1, 2].map(|kind: usize| counts[kind].load(Relaxed));
                    let done: [u64; 3] = std::array::from_fn(|kind| read[kind] - before[kind]);
                    seconds.push((now - last, done));
                    (before, last) = (read, now);
                }
            }
            ended.store(true, Relaxed);
            let join = |(kind, thread): (usize, std::thread::ScopedJoinHandle<'_, _>)| (kind, thread.join());
            threads.into_iter().map(join).collect::<Vec<_>>()
        });
        let measured = begin.elapsed();
        let mut kinds: [KindOutcome; 3] = Default::default();
        for (kind, result) in results {
            let found: io::Result<KindOutcome> = result.expect("jobs do not panic");
            kinds[kind].merge(&found?);
        }
        Ok(JobsOutcome { measured, kinds, seconds })
    }

    /// Appends, and makes each append safe.
    fn append(&self, log: &File, ended: &AtomicBool, count: &AtomicU64) -> io::Result<KindOutcome> {
        let mut outcome = KindOutcome::default();
        let block = AlignedBlock::new(self.log_block);
        let mut at = 0;
        while !ended.load(Relaxed) {
            let begin = Instant::now();
            let done = log.write_all_at(block.get(self.log_block), at).and_then(|()| log.sync_data());
            ends(done, ended)?;
            outcome.add(begin.elapsed());
            count.fetch_add(1, Relaxed);
            at += self.log_block as u64;
            if at + self.log_block as u64 > self.log_size {
                at = 0;
            }
        }
        Ok(outcome)
    }

    fn file_size(&self) -> u64 {
        self.size / self.files as u64 / self.block as u64 * self.block as u64
    }

    fn data(&self, number: usize) -> PathBuf {
        self.folder.join(format!("assay-io-data.{number}"))
    }

    fn log(&self, number: usize) -> PathBuf {
        self.folder.join(format!("assay-io-log.{number}"))
    }
}

/// What readers and writers share.
#[derive(Clone, Copy)]
struct SharedWork<'a> {
    block: usize,
    /// Blocks per file.
    blocks: u64,
    files: &'a [File],
    ended: &'a AtomicBool,
}

impl SharedWork<'_> {
    fn choose(&self, random: &mut WorkerRandom) -> (&File, u64) {
        let file = &self.files[random.below(self.files.len() as u64) as usize];
        (file, random.below(self.blocks) * self.block as u64)
    }

    fn read(self, mut random: WorkerRandom, count: &AtomicU64) -> io::Result<KindOutcome> {
        let mut outcome = KindOutcome::default();
        let mut block = AlignedBlock::new(self.block);
        while !self.ended.load(Relaxed) {
            let (file, at) = self.choose(&mut random);
            let begin = Instant::now();
            ends(file.read_exact_at(block.get_mut(self.block), at), self.ended)?;
            outcome.add(begin.elapsed());
            count.fetch_add(1, Relaxed);
        }
        Ok(outcome)
    }

    fn write(self, mut random: WorkerRandom, depth: usize, count: &AtomicU64) -> io::Result<KindOutcome> {
        let mut outcome = KindOutcome::default();
        let mut queue = Queue::new(depth, self.block, false);
        let mut begun = vec![Instant::now(); depth];
        loop {
            let stops = self.ended.load(Relaxed);
            while !stops && !queue.is_full() {
                let (file, position) = self.choose(&mut random);
                let piece = FilePiece { file: 0, position, size: self.block };
                begun[queue.next_slot()] = Instant::now();
                ends(queue.submit(Transfer { fd: file.as_raw_fd(), piece, is_write: true }), self.ended)?;
            }
            if queue.in_flight() == 0 {
                return Ok(outcome);
            }
            for completed in ends(queue.wait(1), self.ended)? {
                let written = ends(completed.result, self.ended)?;
                if written != self.block {
                    return ends(Err(io::Error::from(io::ErrorKind::WriteZero)), self.ended);
                }
                outcome.add(begun[completed.slot].elapsed());
                count.fetch_add(1, Relaxed);
            }
        }
    }
}

/// An error ends all jobs.
fn ends<T>(done: io::Result<T>, ended: &AtomicBool) -> io::Result<T> {
    if done.is_err() {
        ended.store(true, Relaxed);
    }
    done
}

fn open(path: &Path, flags: Flags) -> io::Result<File> {
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags.bits()).open(path);
    opened.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_counted_by_itself_and_its_seconds_sum_to_nearly_all() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = Jobs {
            folder: folder.path().to_owned(),
            files: 2,
            size: 2 << 20,
            block: 16 << 10,
            log_block: 8 << 10,
            log_size: 64 << 10,
            direct: false,
            dsync: false,
            readers: 2,
            writers: 1,
            write_depth: 4,
            loggers: 1,
            seed: 1,
        };
        jobs.prepare(&|_| {}, &|| false).unwrap();
        let outcome = jobs.run(Duration::from_millis(200), &|| false).unwrap();
        for (kind, name) in outcome.kinds.iter().zip(KINDS) {
            assert!(!kind.latencies.is_empty() && kind.sum_ns > 0, "{name}");
        }
        for kind in 0..3 {
            let counted: u64 = outcome.seconds.iter().map(|(_, done)| done[kind]).sum();
            assert!(counted <= outcome.kinds[kind].latencies.len(), "what is under way at the end is in no second");
        }
        // Files of the right length are kept as they are.
        let made = std::sync::Mutex::new(0);
        jobs.prepare(&|_| *made.lock().unwrap() += 1, &|| false).unwrap();
        assert_eq!(*made.lock().unwrap(), 0);
        let there = || std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!((there(), jobs.missing_bytes()), (jobs.paths().len(), 0));
        jobs.paths().into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
        assert_eq!((there(), jobs.missing_bytes()), (0, (2 << 20) + (64 << 10)));
        let stopped = jobs.prepare(&|_| {}, &|| true).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
        jobs.paths().into_iter().for_each(|path| drop(std::fs::remove_file(path)));
        assert!(jobs.run(Duration::from_millis(1), &|| false).is_err(), "there are no files");
    }
}
