//! The bytes of the segments in memory: a file without a name, of which other processes map parts (they get its
//! descriptor), and whose holes take no memory.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use memmap2::{Mmap, MmapOptions};
use nix::fcntl::{fallocate, FallocateFlags};
use nix::sys::memfd::{memfd_create, MFdFlags};

use crate::arena::{Place, ARENA_BYTES};

pub struct Memory {
    file: File,
    map: Mmap,
}

impl Memory {
    /// An arena without any place in it.
    ///
    /// # Errors
    /// The system has no such files, or limits the address space (`ulimit -v`).
    pub fn try_new() -> io::Result<Self> {
        let file = File::from(memfd_create("headstart-store", MFdFlags::MFD_CLOEXEC)?);
        file.set_len(ARENA_BYTES)?;
        // SAFETY: the file is never truncated. Bytes of a place change only while no lease of it exists: it is written
        // between being taken and arriving, and freed after its last lease (`Shelf`).
        let map = unsafe { MmapOptions::new().no_reserve_swap().map(&file)? };
        Ok(Self { file, map })
    }

    /// The file for another process, which cannot write through it.
    ///
    /// # Errors
    /// The system refuses to open it.
    pub fn for_readers(&self) -> io::Result<File> {
        OpenOptions::new().read(true).open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Writes bytes of a place.
    ///
    /// # Errors
    /// There is no memory.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Bytes of a place that has arrived.
    #[must_use]
    pub fn bytes(&self, offset: u64, length: u64) -> &[u8] {
        &self.map[offset as usize..(offset + length) as usize]
    }

    /// Gives the memory of a place back.
    pub fn free(&self, place: Place) {
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        // What cannot be given back is written again with the next use.
        let _ = fallocate(&self.file, hole, place.offset as i64, place.length as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_freed_takes_no_memory() {
        use std::os::unix::fs::MetadataExt;
        let memory = Memory::try_new().expect("a file in memory");
        let place = Place { offset: 1 << 39, length: 8192 };
        memory.write(place.offset + 1, b"bytes").expect("memory");
        assert_eq!(memory.bytes(place.offset, 7), b"\0bytes\0");
        assert!(memory.file.metadata().expect("its state").blocks() > 0);
        let mut readers = memory.for_readers().expect("it opens");
        assert!(io::Write::write(&mut readers, b"x").is_err());
        memory.free(place);
        assert_eq!(memory.file.metadata().expect("its state").blocks(), 0);
    }
}
