//! Queries the kernel's page cache for a file, without reading it.

#![allow(unsafe_code)]

use std::fmt;
use std::fs::File;
use std::io;

use memmap2::{MmapOptions, MmapRaw};
use nix::unistd::{sysconf, SysconfVar};

/// Tells which pages of a file are in the page cache.
///
/// The file is mapped but never read through the mapping: no page is loaded, and truncation does no harm. The kernel
/// only answers for a file's owner or writers; others are told that all pages are there (since Linux 5.2).
pub struct PageCache {
    map: MmapRaw,
    page_bytes: usize,
}

impl PageCache {
    /// Covers the first `size_bytes` of `file`.
    ///
    /// # Errors
    /// It cannot be mapped.
    pub fn of(file: &File, size_bytes: u64) -> io::Result<Self> {
        let length = usize::try_from(size_bytes).map_err(io::Error::other)?;
        let map = MmapOptions::new().len(length).map_raw_read_only(file)?;
        let page_bytes = sysconf(SysconfVar::PAGE_SIZE)?.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(4096);
        Ok(Self { map, page_bytes })
    }

    /// Whether the page with the byte at `offset` is cached. False beyond the end.
    ///
    /// Cost: one system call, which does not block.
    #[must_use]
    pub fn has(&self, offset: u64) -> bool {
        let Ok(offset) = usize::try_from(offset) else { return false };
        if offset >= self.map.len() {
            return false;
        }
        let mut found = 0_u8;
        // SAFETY: the page lies within the mapping; the kernel does not read it, and writes one byte for it.
        let asked = unsafe {
            let page = self.map.as_mut_ptr().add(offset / self.page_bytes * self.page_bytes);
            libc::mincore(page.cast(), 1, (&raw mut found).cast())
        };
        asked == 0 && found & 1 == 1
    }
}

impl fmt::Debug for PageCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PageCache").field("bytes", &self.map.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use nix::fcntl::{posix_fadvise, PosixFadviseAdvice};

    use super::*;

    #[test]
    fn it_has_what_has_been_read_and_a_look_brings_nothing_in() {
        let path = std::env::temp_dir().join(format!("headstart-page-cache-{}", std::process::id()));
        std::fs::write(&path, vec![7; 100_001]).expect("a temporary file");
        let file = File::options().read(true).write(true).open(&path).expect("it is there");
        std::fs::remove_file(&path).expect("it is there");
        let cache = PageCache::of(&file, 100_001).expect("it can be mapped");
        assert!(cache.has(0) && cache.has(100_000), "what has just been written");
        assert!(!cache.has(100_001) && !cache.has(u64::MAX), "beyond the end");
        file.sync_all().expect("it can be written back");
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).expect("it can be forgotten");
        if cache.has(40_000) {
            eprintln!("SKIPPED: the file system keeps its files in memory");
            return;
        }
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM).expect("it is a file");
        assert!(!cache.has(40_000) && !cache.has(0), "a look is no read");
        file.read_exact_at(&mut [0], 40_000).expect("it can be read");
        assert!(cache.has(36_864) && cache.has(40_959) && !cache.has(36_863) && !cache.has(40_960));
        file.set_len(4096).expect("it can be made shorter");
        assert!(!cache.has(40_000), "what is gone");
        assert!(!PageCache::of(&file, 0).expect("it can be mapped").has(0), "nothing of nothing");
    }
}
