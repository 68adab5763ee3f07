//! The machine's memory, memory that devices write to, and memory that is no longer needed.

#![allow(unsafe_code)]

/// All memory of the machine, of Linux's count; `None` where that is not known.
#[must_use]
pub fn machine_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(kib.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// Asks the kernel to lay `bytes` in large pages, as far as they fill such pages and there are any: a device takes a read into memory
/// as one request only where it is in few pieces (a virtual disk takes 254), and 4 KiB pages lie apart.
pub fn prefer_large_pages(bytes: &[u8]) {
    // SAFETY: the advice changes where the bytes are kept, neither what they are nor who has them. What the kernel does not take
    // (a range that begins within a page, no large pages) it refuses.
    unsafe { libc::madvise(bytes.as_ptr().cast_mut().cast(), bytes.len(), libc::MADV_HUGEPAGE) };
}

/// Gives back to the system what the allocator keeps of freed memory. Does nothing where the allocator is not glibc's.
pub fn give_back() {
    // SAFETY: it touches only what is free, under the allocator's own locks.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}
