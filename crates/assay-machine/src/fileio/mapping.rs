//! Memory-mapped files: `--file-io-mode=mmap`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{copy_nonoverlapping, null_mut};

/// A whole file, shared with everybody who has it open.
///
/// Other threads may read and write the same bytes at the same time, which is what is measured; nothing here is ever
/// seen as a Rust reference. A file that somebody else makes shorter kills the process, as it would kill any program.
pub(crate) struct Mapping {
    start: *mut u8,
    size: usize,
}

// SAFETY: only copied from and to, through pointers.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first `size` bytes of a file that has them.
    pub(crate) fn new(file: &File, size: u64) -> io::Result<Mapping> {
        let size = usize::try_from(size).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which touches nothing that is there.
        let start = unsafe { libc::mmap(null_mut(), size, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start: start.cast(), size })
    }

    fn at(&self, position: u64, size: usize) -> *mut u8 {
        let position = usize::try_from(position).expect("positions lie in the mapping");
        assert!(position + size <= self.size, "requests lie in the mapping");
        // SAFETY: just checked.
        unsafe { self.start.add(position) }
    }

    pub(crate) fn read(&self, position: u64, to: &mut [u8]) {
        // SAFETY: so many bytes are mapped, and `to` is memory of ours, apart from the mapping.
        unsafe { copy_nonoverlapping(self.at(position, to.len()), to.as_mut_ptr(), to.len()) }
        std::hint::black_box(to);
    }

    pub(crate) fn write(&self, position: u64, from: &[u8]) {
        // SAFETY: as above.
        unsafe { copy_nonoverlapping(from.as_ptr(), self.at(position, from.len()), from.len()) }
    }

    /// Writes what was changed to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        // SAFETY: exactly what is mapped.
        let result = unsafe { libc::msync(self.start.cast(), self.size, libc::MS_SYNC | libc::MS_INVALIDATE) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what is mapped, once.
        unsafe { libc::munmap(self.start.cast(), self.size) };
    }
}
