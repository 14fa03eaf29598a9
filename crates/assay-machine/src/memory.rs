//! Memory: an event reads or writes each word of a block, or the same number of randomly chosen words.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::mem::size_of;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::barrier::opaque;
use crate::random::WorkerRandom;
use crate::{Counts, MachineFault, MachineTest, TestThread};

/// What is done to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOperation {
    /// It is loaded.
    Read,
    /// A number is stored in it.
    Write,
    /// Nothing: what remains is the cost of going through the block.
    None,
}

/// In which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// One after the other.
    Sequential,
    /// By chance; words may come twice or never.
    Random,
}

/// What an event does, and for how many of them there is memory to go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Bytes per event: a power of two, at least a word.
    pub block: usize,
    /// Bytes over all workers; 0: no limit.
    pub total: u64,
    /// Workers.
    pub threads: u32,
    /// Each worker has a block of its own.
    pub local: bool,
    /// From the pool of huge pages.
    pub huge: bool,
    /// What is done to a word.
    pub operation: MemoryOperation,
    /// In which order.
    pub access: Access,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// The smallest block.
pub const WORD: usize = size_of::<usize>();
/// Words per round of the sequential loops.
const ROUND: usize = 8;
const PAGE: usize = 4096;
/// What is asked for beyond the block, so that it can begin at the boundary of a huge page of any usual size.
const HUGE_SLACK: usize = (4 << 20) - 1;

/// Zeroed memory that is really there.
#[derive(Debug)]
struct ZeroedMemory {
    start: *mut AtomicUsize,
    words: usize,
    /// Bytes mapped from the pool of huge pages; 0: from the heap.
    mapped: usize,
}

// SAFETY: plain memory, reached through atomics only.
unsafe impl Send for ZeroedMemory {}
// SAFETY: as above.
unsafe impl Sync for ZeroedMemory {}

impl ZeroedMemory {
    fn new(bytes: usize, huge: bool) -> Result<ZeroedMemory, MachineFault> {
        let failed = || MachineFault::new("Failed to allocate buffer!");
        let (start, mapped) = if huge { (map_huge(bytes)?, bytes + HUGE_SLACK) } else { (null_mut(), 0) };
        if huge {
            return Ok(ZeroedMemory { start: start.cast(), words: bytes / WORD, mapped });
        }
        let layout = Layout::from_size_align(bytes, PAGE).map_err(|_| failed())?;
        // SAFETY: bytes >= WORD > 0.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return Err(failed());
        }
        let block = ZeroedMemory { start: start.cast(), words: bytes / WORD, mapped: 0 };
        // Zeroed memory may be one page shared by all: the first write makes it ours.
        for word in (0..block.words).step_by(PAGE / WORD) {
            block.at(block.start as usize + word * WORD).store(opaque(0), Relaxed);
        }
        Ok(block)
    }

    /// The word at an address in the block.
    #[inline(always)]
    fn at(&self, address: usize) -> &AtomicUsize {
        debug_assert!((address - self.start as usize) / WORD < self.words);
        // SAFETY: the address is that of a word of the block, which lives as long as `self`.
        unsafe { &*(address as *const AtomicUsize) }
    }
}

impl Drop for ZeroedMemory {
    fn drop(&mut self) {
        // SAFETY: what `new` was given, returned once.
        unsafe {
            match self.mapped {
                0 => dealloc(self.start.cast(), Layout::from_size_align_unchecked(self.words * WORD, PAGE)),
                bytes => drop(libc::munmap(self.start.cast(), bytes)),
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn map_huge(bytes: usize) -> Result<*mut u8, MachineFault> {
    let length = bytes.saturating_add(HUGE_SLACK);
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB);
    // SAFETY: a new mapping, which touches nothing that is there.
    let start = unsafe { libc::mmap(null_mut(), length, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        let what = format!("Failed to allocate {length} bytes from HugeTLB memory.");
        let mut fault = MachineFault::system(what, &io::Error::last_os_error());
        fault.lines.push("Failed to allocate buffer!".to_owned());
        return Err(fault);
    }
    Ok(start.cast())
}

#[cfg(not(target_os = "linux"))]
fn map_huge(_: usize) -> Result<*mut u8, MachineFault> {
    Err(MachineFault::new("this system has no pool of huge pages; leave out --memory-hugetlb"))
}

/// The test: its blocks are there.
#[derive(Debug)]
pub struct MemoryTest {
    options: MemoryOptions,
    blocks: Vec<ZeroedMemory>,
}

impl MemoryTest {
    /// Whether an event can have a block of this many bytes.
    pub fn is_block_size(bytes: u64) -> bool {
        bytes >= WORD as u64 && bytes.is_power_of_two() && usize::try_from(bytes).is_ok()
    }

    /// Allocates the blocks. Fails when there is not enough memory.
    pub fn new(options: MemoryOptions) -> Result<MemoryTest, MachineFault> {
        assert!(MemoryTest::is_block_size(options.block as u64), "checked by the caller");
        let blocks = if options.local { options.threads } else { 1 };
        let blocks = (0..blocks).map(|_| ZeroedMemory::new(options.block, options.huge)).collect::<Result<_, _>>()?;
        Ok(MemoryTest { options, blocks })
    }

    /// Events of each worker; `None`: no limit.
    fn quota(&self) -> Option<u64> {
        let MemoryOptions { total, block, threads, .. } = self.options;
        (total > 0).then(|| total / block as u64 / u64::from(threads))
    }
}

/// One of the threads.
#[derive(Debug)]
pub struct Toucher {
    test: Arc<MemoryTest>,
    block: usize,
    left: Option<u64>,
    random: WorkerRandom,
}

impl MachineTest for MemoryTest {
    type Worker = Toucher;

    fn worker(self: &Arc<Self>, id: u32) -> Result<Toucher, MachineFault> {
        let block = if self.options.local { id as usize } else { 0 };
        let random = WorkerRandom::new(self.options.seed, u64::from(id));
        Ok(Toucher { test: self.clone(), block, left: self.quota(), random })
    }
}

impl TestThread for Toucher {
    type Request = ();

    fn next(&mut self) -> Option<()> {
        let Some(left) = &mut self.left else { return Some(()) };
        *left = left.checked_sub(1)?;
        Some(())
    }

    fn execute(&mut self, (): (), _: &Counts) -> Result<(), MachineFault> {
        let block = &self.test.blocks[self.block];
        match (self.test.options.access, self.test.options.operation) {
            (Access::Sequential, MemoryOperation::Read) => read(block),
            (Access::Sequential, MemoryOperation::Write) => write(block),
            (Access::Sequential, MemoryOperation::None) => visit(block),
            (Access::Random, MemoryOperation::Read) => read_random(block, &mut self.random),
            (Access::Random, MemoryOperation::Write) => write_random(block, &mut self.random),
            (Access::Random, MemoryOperation::None) => visit_random(block, &mut self.random),
        }
        Ok(())
    }
}

/// Goes through a block in rounds of eight words, or in one round when it is smaller.
#[inline(always)]
fn rounds(block: &ZeroedMemory, mut round: impl FnMut(usize, usize)) {
    let mut at = block.start as usize;
    let end = at + block.words * WORD;
    if block.words < ROUND {
        return round(at, block.words);
    }
    while at != end {
        round(at, ROUND);
        at = opaque(at + ROUND * WORD);
    }
}

fn read(block: &ZeroedMemory) {
    rounds(block, |at, words| {
        for word in 0..words {
            opaque(block.at(at + word * WORD).load(Relaxed));
        }
    });
}

/// Each word gets the number of words from it to the end. The compiler must not make a countdown of that: computing it
/// from two addresses is part of the work of the test of this name.
fn write(block: &ZeroedMemory) {
    let end = block.start as usize + block.words * WORD;
    rounds(block, |mut at, words| {
        for _ in 0..words {
            at = opaque(at);
            block.at(at).store((end - at) / WORD, Relaxed);
            at += WORD;
        }
    });
}

fn visit(block: &ZeroedMemory) {
    rounds(block, |at, _| {
        opaque(at);
    });
}

/// Two random numbers per word, as in the test of this name: a place and a value.
#[inline(always)]
fn place_and_value(block: &ZeroedMemory, random: &mut WorkerRandom) -> (usize, usize) {
    let mut below = || random.below(block.words as u64) as usize;
    (block.start as usize + below() * WORD, below())
}

/// Calls `each` for as many words as a block has, with random numbers that stay in registers meanwhile: as far as the
/// compiler knows, a word may lie where they are kept.
#[inline(always)]
fn words(block: &ZeroedMemory, random: &mut WorkerRandom, mut each: impl FnMut(&mut WorkerRandom)) {
    let mut local = random.clone();
    for _ in 0..block.words {
        each(&mut local);
    }
    *random = local;
}

fn read_random(block: &ZeroedMemory, random: &mut WorkerRandom) {
    words(block, random, |random| {
        let (at, value) = place_and_value(block, random);
        opaque(value);
        opaque(block.at(at).load(Relaxed));
    });
}

fn write_random(block: &ZeroedMemory, random: &mut WorkerRandom) {
    words(block, random, |random| {
        let (at, value) = place_and_value(block, random);
        block.at(at).store(value, Relaxed);
    });
}

fn visit_random(block: &ZeroedMemory, random: &mut WorkerRandom) {
    words(block, random, |random| {
        opaque(random.next() as usize);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: MemoryOptions = MemoryOptions {
        block: 128,
        total: 1024,
        threads: 3,
        local: false,
        huge: false,
        operation: MemoryOperation::Write,
        access: Access::Sequential,
        seed: 1,
    };

    /// The words of the first block after one event.
    fn after_one_event(options: MemoryOptions) -> Vec<usize> {
        let test = Arc::new(MemoryTest::new(options).unwrap());
        test.worker(0).unwrap().execute((), &Counts::default()).unwrap();
        let block = &test.blocks[0];
        (0..block.words).map(|word| block.at(block.start as usize + word * WORD).load(Relaxed)).collect()
    }

    #[test]
    fn a_sequential_write_reaches_every_word() {
        for block in [8, 16, 32, 64, 128, 65536] {
            let words = after_one_event(MemoryOptions { block, ..OPTIONS });
            let expected: Vec<usize> = (1..=block / WORD).rev().collect();
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn a_random_write_reaches_two_thirds_of_the_words() {
        let words = after_one_event(MemoryOptions { block: 65536, access: Access::Random, ..OPTIONS });
        let reached = words.iter().filter(|word| **word != 0).count() as f64 / words.len() as f64;
        assert!((0.61..0.65).contains(&reached), "{reached}");
    }

    #[test]
    fn reading_and_visiting_change_nothing() {
        for operation in [MemoryOperation::Read, MemoryOperation::None] {
            for access in [Access::Sequential, Access::Random] {
                let words = after_one_event(MemoryOptions { operation, access, ..OPTIONS });
                assert!(words.iter().all(|word| *word == 0));
            }
        }
    }

    #[test]
    fn the_total_is_shared_by_the_workers() {
        let test = Arc::new(MemoryTest::new(OPTIONS).unwrap());
        let mut worker = test.worker(2).unwrap();
        // 1024 / 128 / 3
        assert_eq!(std::iter::from_fn(|| worker.next()).count(), 2);
        let endless = Arc::new(MemoryTest::new(MemoryOptions { total: 0, local: true, ..OPTIONS }).unwrap());
        assert_eq!(endless.blocks.len(), 3);
        assert_eq!(endless.quota(), None);
    }

    #[test]
    fn a_block_is_a_power_of_two_and_at_least_a_word() {
        let sizes: Vec<u64> = (0..40).filter(|size| MemoryTest::is_block_size(*size)).collect();
        assert_eq!(sizes, [8, 16, 32]);
    }
}
