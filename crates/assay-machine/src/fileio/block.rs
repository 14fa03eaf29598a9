//! The buffers of requests, and the checksums of `--validate`.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use crate::MachineFault;
use crate::random::WorkerRandom;

/// What direct I/O needs at most.
const ALIGNMENT: usize = 4096;

/// Zeroed memory at a boundary that direct I/O accepts.
pub(crate) struct AlignedBlock {
    start: *mut u8,
    size: usize,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for AlignedBlock {}

impl AlignedBlock {
    /// 1 <= size.
    pub(crate) fn new(size: usize) -> AlignedBlock {
        let layout = AlignedBlock::layout(size);
        // SAFETY: the size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        AlignedBlock { start, size }
    }

    fn layout(size: usize) -> Layout {
        assert!(size > 0, "nothing to read or write");
        Layout::from_size_align(size, ALIGNMENT).expect("sizes of blocks were checked")
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start
    }

    /// The first `size` bytes.
    pub(crate) fn get(&self, size: usize) -> &[u8] {
        assert!(size <= self.size);
        // SAFETY: so many bytes are ours and initialized.
        unsafe { std::slice::from_raw_parts(self.start, size) }
    }

    /// The first `size` bytes.
    pub(crate) fn get_mut(&mut self, size: usize) -> &mut [u8] {
        assert!(size <= self.size);
        // SAFETY: so many bytes are ours and initialized, and nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(self.start, size) }
    }
}

impl Drop for AlignedBlock {
    fn drop(&mut self) {
        // SAFETY: what `new` was given, returned once.
        unsafe { dealloc(self.start, AlignedBlock::layout(self.size)) }
    }
}

/// A checksum and an offset at the end of a block.
const SUM: usize = 4;
const OFFSET: usize = 8;
/// The smallest block that can be validated.
pub(crate) const SMALLEST: usize = SUM + OFFSET + 1;

/// Fills a block with random bytes, their checksum (CRC-32, little endian) and where it will lie in its file.
pub(crate) fn seal(block: &mut [u8], position: u64, random: &mut WorkerRandom) {
    let data = block.len() - SUM - OFFSET;
    for bytes in block[..data].chunks_mut(8) {
        bytes.copy_from_slice(&random.next().to_le_bytes()[..bytes.len()]);
    }
    let sum = crc32fast::hash(&block[..data]);
    block[data..data + SUM].copy_from_slice(&sum.to_le_bytes());
    block[data + SUM..].copy_from_slice(&position.to_le_bytes());
}

/// Whether a block is as it was sealed for this place.
pub(crate) fn verify(block: &[u8], file: usize, position: u64) -> Result<(), MachineFault> {
    let (data, tail) = block.split_at(block.len() - SUM - OFFSET);
    let stored = u32::from_le_bytes(tail[..SUM].try_into().expect("four bytes"));
    let offset = u64::from_le_bytes(tail[SUM..].try_into().expect("eight bytes"));
    let sum = crc32fast::hash(data);
    let what = if sum != stored {
        [
            format!("Checksum mismatch in block with offset: {position}"),
            format!("    Calculated value: {sum:#x}    Stored value: {stored:#x}"),
        ]
    } else if offset != position {
        ["Offset mismatch in block:".to_owned(), format!("   Actual offset: {position}    Stored offset: {offset}")]
    } else {
        return Ok(());
    };
    let mut lines = Vec::from(what);
    lines.push(format!("Validation failed on file {file}, block offset {position}, exiting..."));
    Err(MachineFault { lines, advice: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_block_is_as_it_was_and_any_change_is_found() {
        let mut block = AlignedBlock::new(64);
        seal(block.get_mut(64), 4096, &mut WorkerRandom::new(1, 0));
        let good = block.get(64).to_vec();
        verify(&good, 3, 4096).unwrap();
        for byte in 0..64 {
            let mut bad = good.clone();
            bad[byte] ^= 1;
            let fault = verify(&bad, 3, 4096).unwrap_err();
            let what =
                if byte < 56 { "Checksum mismatch in block with offset: 4096" } else { "Offset mismatch in block:" };
            assert_eq!(fault.lines[0], what, "byte {byte}");
            assert_eq!(fault.lines[2], "Validation failed on file 3, block offset 4096, exiting...");
        }
    }

    /// Blocks of 16 bytes that Debian's sysbench 1.0.20 wrote with --validate.
    #[test]
    fn blocks_of_the_original_are_valid() {
        let first = [0xe7, 0x66, 0x84, 0xe2, 0x14, 0xcf, 0x5d, 0x37, 0, 0, 0, 0, 0, 0, 0, 0];
        verify(&first, 0, 0).unwrap();
        let second = [0xa4, 0xea, 0x60, 0xc9, 0x8b, 0x15, 0x7d, 0xc0, 0x10, 0, 0, 0, 0, 0, 0, 0];
        verify(&second, 0, 16).unwrap();
        let fault = verify(&[0; 16384], 1, 16384).unwrap_err();
        assert_eq!(fault.lines[1], "    Calculated value: 0x66337a37    Stored value: 0x0");
    }
}
