//! What to read, write or sync next: pure, one sequence for all workers.

use crate::random::WorkerRandom;

/// The pattern of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPattern {
    /// New files are written from begin to end.
    SequentialWrite,
    /// Existing files are written from begin to end.
    SequentialRewrite,
    /// Files are read from begin to end.
    SequentialRead,
    /// Blocks chosen by chance are read.
    RandomRead,
    /// Blocks chosen by chance are written.
    RandomWrite,
    /// Blocks chosen by chance are read and written, in a ratio.
    RandomReadWrite,
}

impl AccessPattern {
    /// Whether blocks are chosen by chance.
    pub fn is_random(self) -> bool {
        matches!(self, AccessPattern::RandomRead | AccessPattern::RandomWrite | AccessPattern::RandomReadWrite)
    }
}

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePiece {
    pub(crate) file: usize,
    pub(crate) position: u64,
    /// 1 <= size <= the largest request.
    pub(crate) size: usize,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRequest {
    /// Read a piece.
    #[expect(private_interfaces, reason = "requests are made and done in here")]
    Read(FilePiece),
    /// Write a piece.
    #[expect(private_interfaces, reason = "requests are made and done in here")]
    Write(FilePiece),
    /// Make a file safe.
    Sync(usize),
}

/// What the sequence depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SequenceShape {
    pub(crate) mode: AccessPattern,
    pub(crate) files: usize,
    pub(crate) file_size: u64,
    pub(crate) block: usize,
    /// The largest sequential request.
    pub(crate) merged: usize,
    /// All files are synced after this many reads and writes, if anything was written; 0: never.
    pub(crate) sync_every: u32,
    /// Reads per write.
    pub(crate) ratio: f64,
}

/// The sequence.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    shape: SequenceShape,
    file: usize,
    position: u64,
    /// Reads and writes since the files' last turn to be made safe.
    since_sync: u32,
    /// The next file to be made safe, while it is the files' turn.
    to_sync: Option<usize>,
    written: bool,
    random: WorkerRandom,
}

impl Requests {
    pub(crate) fn new(shape: SequenceShape, seed: u64) -> Requests {
        let random = WorkerRandom::new(seed, 0);
        Requests { shape, file: 0, position: 0, since_sync: 0, to_sync: None, written: false, random }
    }

    /// The next request, after this many reads and writes.
    pub(crate) fn next(&mut self, reads: u64, writes: u64) -> FileRequest {
        if let Some(file) = self.to_sync {
            self.to_sync = (file + 1 < self.shape.files).then_some(file + 1);
            return FileRequest::Sync(file);
        }
        let is_write = match self.shape.mode {
            AccessPattern::SequentialWrite | AccessPattern::SequentialRewrite | AccessPattern::RandomWrite => true,
            AccessPattern::SequentialRead | AccessPattern::RandomRead => false,
            AccessPattern::RandomReadWrite => (reads + 1) as f64 / (writes + 1) as f64 >= self.shape.ratio,
        };
        let piece = if self.shape.mode.is_random() { self.random_piece() } else { self.next_piece() };
        self.written |= is_write;
        self.since_sync = self.since_sync.wrapping_add(1);
        if self.since_sync == self.shape.sync_every {
            self.since_sync = 0;
            self.to_sync = self.written.then_some(0);
            self.written = false;
        }
        if is_write { FileRequest::Write(piece) } else { FileRequest::Read(piece) }
    }

    fn next_piece(&mut self) -> FilePiece {
        let SequenceShape { files, file_size, merged, .. } = self.shape;
        let size = (file_size - self.position).min(merged as u64);
        let piece = FilePiece { file: self.file, position: self.position, size: size as usize };
        self.position += size;
        if self.position == file_size {
            (self.file, self.position) = ((self.file + 1) % files, 0);
        }
        piece
    }

    /// All files are one space, of which a block is chosen; it ends where its file ends.
    fn random_piece(&mut self) -> FilePiece {
        let SequenceShape { files, file_size, block, .. } = self.shape;
        let place = self.random.below(file_size * files as u64);
        let place = place - place % block as u64;
        let position = place % file_size;
        let size = (file_size - position).min(block as u64);
        FilePiece { file: (place / file_size) as usize, position, size: size as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: SequenceShape = SequenceShape {
        mode: AccessPattern::SequentialRewrite,
        files: 2,
        file_size: 40,
        block: 16,
        merged: 16,
        sync_every: 0,
        ratio: 1.5,
    };

    /// `count` requests, each done at once: `W0:32+8` is a write to file 0 at 32 of 8 bytes.
    fn sequence(shape: SequenceShape, count: usize) -> String {
        let mut requests = Requests::new(shape, 1);
        let (mut reads, mut writes) = (0, 0);
        let mut show = |request| match request {
            FileRequest::Read(FilePiece { file, position, size }) => {
                reads += 1;
                (format!("R{file}:{position}+{size}"), reads, writes)
            }
            FileRequest::Write(FilePiece { file, position, size }) => {
                writes += 1;
                (format!("W{file}:{position}+{size}"), reads, writes)
            }
            FileRequest::Sync(file) => (format!("S{file}"), reads, writes),
        };
        let mut done = (0, 0);
        let mut shown = Vec::new();
        for _ in 0..count {
            let (text, reads, writes) = show(requests.next(done.0, done.1));
            done = (reads, writes);
            shown.push(text);
        }
        shown.join(" ")
    }

    fn letters(shape: SequenceShape, count: usize) -> String {
        sequence(shape, count).split(' ').map(|text| &text[..1]).collect()
    }

    #[test]
    fn sequential_requests_go_through_all_files_and_begin_again() {
        assert_eq!(sequence(SHAPE, 7), "W0:0+16 W0:16+16 W0:32+8 W1:0+16 W1:16+16 W1:32+8 W0:0+16");
        let read = SequenceShape { mode: AccessPattern::SequentialRead, merged: 32, ..SHAPE };
        assert_eq!(sequence(read, 5), "R0:0+32 R0:32+8 R1:0+32 R1:32+8 R0:0+32");
    }

    #[test]
    fn files_are_made_safe_after_so_many_requests() {
        let every = SequenceShape { sync_every: 3, ..SHAPE };
        assert_eq!(letters(every, 12), "WWWSSWWWSSWW");
        assert_eq!(letters(SequenceShape { mode: AccessPattern::SequentialRead, ..every }, 12), "RRRRRRRRRRRR");
        assert_eq!(
            letters(SequenceShape { mode: AccessPattern::RandomReadWrite, sync_every: 5, ..every }, 14),
            "RWRWRSSRWRWRSS"
        );
    }

    #[test]
    fn reads_and_writes_keep_their_ratio() {
        let mixed = |ratio| letters(SequenceShape { mode: AccessPattern::RandomReadWrite, ratio, ..SHAPE }, 20);
        assert_eq!(mixed(1.5), "RWRWRRWRWRRWRWRRWRWR");
        assert_eq!(mixed(0.5), "WWRWWRWWRWWRWWRWWRWW");
        assert_eq!(mixed(0.0), "W".repeat(20));
    }

    #[test]
    fn random_requests_lie_within_a_file_and_reach_every_block() {
        let mut requests = Requests::new(SequenceShape { mode: AccessPattern::RandomRead, ..SHAPE }, 1);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..10_000 {
            let FileRequest::Read(piece) = requests.next(0, 0) else { panic!("a write") };
            *seen.entry((piece.file, piece.position, piece.size)).or_insert(0) += 1;
        }
        // Blocks of the space of 80 bytes: the one at 32 is cut where file 0 ends.
        let pieces: Vec<_> = seen.keys().copied().collect();
        assert_eq!(pieces, [(0, 0, 16), (0, 16, 16), (0, 32, 8), (1, 8, 16), (1, 24, 16)]);
        assert!(seen.values().all(|count| (1_800..2_200).contains(count)), "{seen:?}");
    }
}
