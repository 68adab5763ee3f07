//! Limits of memory, large pages, and returning freed memory.

#![allow(unsafe_code)]

use std::fs;
use std::path::Path;

use headstart_types::{Bytes, KeyError};

/// The memory available to this process, and what limits it: the machine, a control group (version 2), or the address
/// space (`ulimit -v`). `None` if unknown.
#[must_use]
pub fn room() -> Option<(u64, &'static str)> {
    let machine = number_of("/proc/meminfo", "MemTotal:").map(|kib| (kib << 10, "the machine's RAM"));
    let addresses = number_of("/proc/self/limits", "Max address space").map(|bytes| (bytes, "the limit of addresses"));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let groups = Path::new("/sys/fs/cgroup").join(group);
    let groups = groups.ancestors().take_while(|group| group.starts_with("/sys/fs/cgroup"));
    let group = groups.filter_map(|group| fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()).min();
    [machine, addresses, group.map(|bytes| (bytes, "the control group's memory"))].into_iter().flatten().min()
}

/// The number after `words` at the start of a line of a file in procfs.
fn number_of(path: &str, words: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(words))?.split_whitespace().next()?.parse().ok()
}

/// Checks that there is enough memory. Otherwise an allocation would kill the process without a message, possibly only
/// when the memory is used.
///
/// # Errors
/// `what`, requested by `key`, takes more `bytes` than this process may have.
pub fn check_room(key: &str, what: &str, bytes: u64) -> Result<(), KeyError> {
    match room() {
        Some((room, whose)) if bytes > room => {
            let problem = format!("{} for {what} is more than {whose}", Bytes(bytes).rounded());
            Err(KeyError::new(key, problem, format!("what fits into {}", Bytes(room).rounded())))
        }
        _ => Ok(()),
    }
}

/// Asks the kernel to use large pages for `bytes`, as far as possible: a device accepts a read as one request only if
/// its memory is in few segments (a virtual disk takes 254), and pages of 4 KiB are scattered.
pub fn prefer_large_pages(bytes: &[u8]) {
    // SAFETY: the advice changes only the placement of the bytes, neither content nor ownership. The kernel refuses
    // what it cannot do (a range that begins within a page, no large pages).
    unsafe { libc::madvise(bytes.as_ptr().cast_mut().cast(), bytes.len(), libc::MADV_HUGEPAGE) };
}

/// Returns memory that the allocator keeps after it was freed. No effect with other allocators than glibc's.
pub fn give_back() {
    // SAFETY: it only touches free memory, under the allocator's own locks.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_memory_for_is_refused_in_a_line() {
        let (bytes, _) = room().expect("a procfs");
        assert!(bytes > 1 << 20);
        assert_eq!(check_room("size", "caches", bytes), Ok(()));
        let text = check_room("size", "caches", u64::MAX).expect_err("more than any machine has").to_string();
        assert!(
            text.starts_with("size: 16777216 TiB for caches is more than ") && text.contains("; allowed: "),
            "{text}"
        );
        assert_eq!(number_of("/proc/self/limits", "No such limit"), None);
    }
}
