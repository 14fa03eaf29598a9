//! Several requests in flight per worker: `--file-io-mode=async`.
//!
//! Through io_uring where the kernel allows it; where it does not (old kernels, containers that forbid the system
//! call), through threads that do one request each.

use std::io;
use std::os::fd::RawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use io_uring::{IoUring, opcode, types::Fd};

use super::block::AlignedBlock;
use super::requests::FilePiece;

/// Requests that a ring can hold: the kernel's limit.
pub(crate) const BACKLOG_MAX: usize = 32_768;
/// Threads in place of a ring, however many requests there are.
const THREADS_MAX: usize = 32;

/// What to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) fd: RawFd,
    pub(crate) piece: FilePiece,
    pub(crate) is_write: bool,
}

/// A transfer that came to its end, and the number of its buffer.
pub(crate) struct Completed {
    pub(crate) transfer: Transfer,
    pub(crate) slot: usize,
    /// Bytes.
    pub(crate) result: io::Result<usize>,
}

/// Requests in flight and their memory.
pub(crate) struct Queue {
    way: BufferUse,
    /// What is in flight, by slot.
    transfers: Vec<Option<Transfer>>,
    free: Vec<usize>,
    /// One for each slot, or one for all: data that nobody looks at need not be kept apart.
    buffers: Vec<AlignedBlock>,
}

enum BufferUse {
    Ring(Box<IoUring>),
    Pool(Pool),
}

impl Queue {
    /// For `backlog` requests (1 to `BACKLOG_MAX`) of at most `size` bytes. `apart`: each has a buffer of its own.
    pub(crate) fn new(backlog: usize, size: usize, apart: bool) -> Queue {
        let way = match IoUring::new(backlog as u32) {
            Ok(ring) => BufferUse::Ring(Box::new(ring)),
            Err(_) => BufferUse::Pool(Pool::new(backlog.min(THREADS_MAX))),
        };
        Queue::by(way, backlog, size, apart)
    }

    fn by(way: BufferUse, backlog: usize, size: usize, apart: bool) -> Queue {
        let buffers = (0..if apart { backlog } else { 1 }).map(|_| AlignedBlock::new(size)).collect();
        Queue { way, transfers: vec![None; backlog], free: (0..backlog).rev().collect(), buffers }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.transfers.len() - self.free.len()
    }

    /// The buffer that the next transfer will use. The queue is not full.
    pub(crate) fn next_buffer(&mut self, size: usize) -> &mut [u8] {
        let slot = *self.free.last().expect("a full queue is waited for");
        let buffer = slot % self.buffers.len();
        self.buffers[buffer].get_mut(size)
    }

    pub(crate) fn buffer(&self, slot: usize, size: usize) -> &[u8] {
        self.buffers[slot % self.buffers.len()].get(size)
    }

    /// The number of the next transfer's buffer. The queue is not full.
    pub(crate) fn next_slot(&self) -> usize {
        *self.free.last().expect("a full queue is waited for")
    }

    /// Hands a transfer to the system. The queue is not full.
    pub(crate) fn submit(&mut self, transfer: Transfer) -> io::Result<()> {
        let slot = *self.free.last().expect("a full queue is waited for");
        let buffer = slot % self.buffers.len();
        let memory = self.buffers[buffer].as_mut_ptr();
        let Transfer { fd, piece, is_write } = transfer;
        match &mut self.way {
            BufferUse::Ring(ring) => {
                let entry = match is_write {
                    true => opcode::Write::new(Fd(fd), memory, piece.size as u32).offset(piece.position).build(),
                    false => opcode::Read::new(Fd(fd), memory, piece.size as u32).offset(piece.position).build(),
                };
                // SAFETY: the memory is that of a buffer as large as the largest request; it lives until nothing is in
                // flight any more (`drop` waits), and what it holds then is bytes.
                unsafe { ring.submission().push(&entry.user_data(slot as u64)) }
                    .expect("every entry is submitted at once");
                ring.submit()?;
            }
            BufferUse::Pool(pool) => pool.begin(TransferJob { transfer, slot, memory: BufferMemory(memory) }),
        }
        self.free.pop();
        self.transfers[slot] = Some(transfer);
        Ok(())
    }

    /// Waits until `at_least` transfers are complete and takes all that are.
    pub(crate) fn wait(&mut self, at_least: usize) -> io::Result<Vec<Completed>> {
        let ended = match &mut self.way {
            BufferUse::Ring(ring) => {
                while let Err(error) = ring.submit_and_wait(at_least) {
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
                ring.completion().map(|entry| (entry.user_data() as usize, bytes(entry.result()))).collect()
            }
            BufferUse::Pool(pool) => pool.wait(at_least),
        };
        Ok(ended.into_iter().map(|(slot, result)| self.completed(slot, result)).collect())
    }

    fn completed(&mut self, slot: usize, result: io::Result<usize>) -> Completed {
        self.free.push(slot);
        let transfer = self.transfers[slot].take().expect("only what is in flight completes");
        Completed { transfer, slot, result }
    }
}

/// The system's answer: bytes, or minus the number of an error.
fn bytes(answer: i32) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::from_raw_os_error(-answer))
}

impl Drop for Queue {
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            if self.wait(self.in_flight()).is_err() {
                // The kernel may still write to them.
                self.buffers.drain(..).for_each(std::mem::forget);
                return;
            }
        }
    }
}

/// Where a transfer's bytes are.
struct BufferMemory(*mut u8);

// SAFETY: the queue keeps the buffer until the job is done; only the kernel reads and writes it meanwhile.
unsafe impl Send for BufferMemory {}

struct TransferJob {
    transfer: Transfer,
    slot: usize,
    memory: BufferMemory,
}

impl TransferJob {
    fn run(&self) -> io::Result<usize> {
        let Transfer { fd, piece: FilePiece { position, size, .. }, is_write } = self.transfer;
        let (memory, position) = (self.memory.0.cast(), position as libc::off_t);
        // SAFETY: a buffer of at least so many bytes, which the queue keeps.
        let done = unsafe {
            match is_write {
                true => libc::pwrite(fd, memory, size, position),
                false => libc::pread(fd, memory, size, position),
            }
        };
        usize::try_from(done).map_err(|_| io::Error::last_os_error())
    }
}

type TransferEnd = (usize, io::Result<usize>);

/// Threads that do what a ring would do.
struct Pool {
    jobs: Option<Sender<TransferJob>>,
    ended: Receiver<TransferEnd>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    fn new(threads: usize) -> Pool {
        let (jobs, queue) = channel::<TransferJob>();
        let (sender, ended) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let threads = (0..threads)
            .map(|_| {
                let (queue, sender) = (queue.clone(), sender.clone());
                thread::spawn(move || {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                        let Ok(job) = next else { return };
                        drop(sender.send((job.slot, job.run())));
                    }
                })
            })
            .collect();
        Pool { jobs: Some(jobs), ended, threads }
    }

    fn begin(&self, job: TransferJob) {
        self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).expect("threads live as long as the pool");
    }

    fn wait(&self, at_least: usize) -> Vec<TransferEnd> {
        let next = || self.ended.recv().expect("threads live as long as the pool");
        let mut ended: Vec<TransferEnd> = (0..at_least).map(|_| next()).collect();
        ended.extend(self.ended.try_iter());
        ended
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};
    use std::os::fd::AsRawFd;

    use super::*;

    /// Writes and reads through a queue, more than it holds at once.
    fn check(mut queue: Queue) {
        let mut file = tempfile::tempfile().unwrap();
        let mut results = Vec::new();
        for is_write in [true, false] {
            for i in 0..10 {
                let piece = FilePiece { file: 0, position: i * 8, size: 8 };
                queue.next_buffer(8).copy_from_slice(&if is_write { i.to_le_bytes() } else { [0; 8] });
                queue.submit(Transfer { fd: file.as_raw_fd(), piece, is_write }).unwrap();
                if queue.is_full() {
                    results.extend(queue.wait(1).unwrap().iter().map(|one| read_back(&queue, one)));
                }
            }
            while queue.in_flight() > 0 {
                results.extend(queue.wait(queue.in_flight()).unwrap().iter().map(|one| read_back(&queue, one)));
            }
        }
        results.sort_unstable();
        let expected: Vec<_> = (0..10).flat_map(|i| [(i * 8, i); 2]).collect();
        assert_eq!(results, expected);

        // Beyond the end there is nothing to read; a descriptor that is not one is an error.
        file.rewind().unwrap();
        file.write_all(b"x").unwrap();
        let piece = FilePiece { file: 0, position: 1 << 20, size: 8 };
        queue.submit(Transfer { fd: file.as_raw_fd(), piece, is_write: false }).unwrap();
        assert_eq!(queue.wait(1).unwrap()[0].result.as_ref().unwrap(), &0);
        queue.submit(Transfer { fd: -1, piece, is_write: false }).unwrap();
        assert_eq!(queue.wait(1).unwrap()[0].result.as_ref().unwrap_err().raw_os_error(), Some(libc::EBADF));
    }

    /// Where a transfer was, and the number in its buffer.
    fn read_back(queue: &Queue, completed: &Completed) -> (u64, u64) {
        assert_eq!(completed.result.as_ref().unwrap(), &8);
        let number = u64::from_le_bytes(queue.buffer(completed.slot, 8).try_into().unwrap());
        (completed.transfer.piece.position, number)
    }

    #[test]
    fn a_ring_and_threads_transfer_the_same() {
        check(Queue::by(BufferUse::Pool(Pool::new(3)), 4, 64, true));
        if let Ok(ring) = IoUring::new(4) {
            check(Queue::by(BufferUse::Ring(Box::new(ring)), 4, 64, true));
        }
    }

    #[test]
    fn a_queue_left_with_requests_in_flight_waits_for_them() {
        let file = tempfile::tempfile().unwrap();
        let mut queue = Queue::new(8, 4096, false);
        for i in 0..7 {
            let piece = FilePiece { file: 0, position: i * 4096, size: 4096 };
            queue.submit(Transfer { fd: file.as_raw_fd(), piece, is_write: true }).unwrap();
        }
        drop(queue);
        assert_eq!(file.metadata().unwrap().len(), 7 * 4096);
    }
}
