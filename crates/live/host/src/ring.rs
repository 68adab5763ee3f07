//! Reads files through io_uring: reads are queued, submitted by one system call, and taken when they have completed. No
//! thread waits for them.
//!
//! A read owns its file and its buffers until it completes, so that the kernel never writes to reused memory. Buffers
//! of reads in flight when the ring is dropped are leaked.
//!
//! Cost: one system call per batch, and none to check for completions. The ring's descriptor is readable while there
//! are completions, which also wakes a thread that waits for it in a system call.

#![allow(unsafe_code)]

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use bytes::BytesMut;
use io_uring::types::Fd;
use io_uring::{opcode, squeue, IoUring};

#[derive(Debug)]
pub struct RingEnded {
    /// The caller's id.
    pub name: u64,
    pub buffers: Vec<BytesMut>,
    /// Number of bytes read; they fill the buffers in order.
    pub result: io::Result<usize>,
}

/// A read that is queued or in flight.
struct UnderWay {
    name: u64,
    /// Kept open.
    file: Arc<File>,
    buffers: Vec<BytesMut>,
    /// Addresses of the buffers, if there are several.
    parts: Box<[libc::iovec]>,
}

pub struct Ring {
    ring: IoUring,
    /// By user data of the entry.
    reads: Vec<Option<UnderWay>>,
    free: Vec<u32>,
}

// SAFETY: the pointers in `UnderWay::parts` point into the buffers beside them, which do not move in memory and are
// valid in any thread.
unsafe impl Send for Ring {}

impl fmt::Debug for Ring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ring").field("under_way", &self.under_way()).finish_non_exhaustive()
    }
}

impl Ring {
    /// Supports at most `reads_max` reads in flight.
    ///
    /// # Errors
    /// The kernel has no io_uring (before Linux 5.6), or denies it to this process.
    pub fn try_new(reads_max: u32) -> io::Result<Self> {
        let entries = reads_max.next_power_of_two();
        // Completions are checked after every system call, so no interrupt is needed. Supported since Linux 5.19.
        let ring = IoUring::builder().setup_coop_taskrun().build(entries).or_else(|_| IoUring::new(entries))?;
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self { ring, reads: (0..reads_max).map(|_| None).collect(), free: (0..reads_max).rev().collect() })
    }

    /// Number of reads that have not been taken yet.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.reads.len() - self.free.len()
    }

    /// Queues a read of `file` from `offset` on into `buffers`, of which there are at most 1024. Returns them if the
    /// maximum number of reads is in flight.
    ///
    /// # Errors
    /// There is no room.
    pub fn push(
        &mut self,
        name: u64,
        file: &Arc<File>,
        offset: u64,
        buffers: Vec<BytesMut>,
    ) -> Result<(), Vec<BytesMut>> {
        let Some(slot) = self.free.pop() else { return Err(buffers) };
        let mut read = UnderWay { name, file: file.clone(), buffers, parts: Box::default() };
        let entry = entry(&mut read, offset).user_data(slot.into());
        self.reads[slot as usize] = Some(read);
        // SAFETY: the file and the buffers are kept in `reads`, untouched, until the kernel reports completion. The
        // buffers' memory and the boxed `parts` do not move with the structure around them.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            // There is an entry for each read, so it is only full of entries that the kernel has not taken yet.
            self.free.push(slot);
            return Err(self.reads[slot as usize].take().map(|read| read.buffers).unwrap_or_default());
        }
        Ok(())
    }

    /// Submits the queued reads. Those that the kernel does not take now are submitted next time.
    pub fn submit(&mut self) {
        while !self.ring.submission().is_empty() {
            match self.ring.submit() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// The next completed read.
    pub fn take(&mut self) -> Option<RingEnded> {
        let entry = self.ring.completion().next()?;
        let slot = entry.user_data() as usize;
        let UnderWay { name, buffers, .. } = self.reads.get_mut(slot)?.take()?;
        self.free.push(slot as u32);
        let result = usize::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result()));
        Some(RingEnded { name, buffers, result })
    }
}

impl AsRawFd for Ring {
    fn as_raw_fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may still write there.
        self.reads.drain(..).flatten().for_each(std::mem::forget);
    }
}

fn entry(read: &mut UnderWay, offset: u64) -> squeue::Entry {
    let file = Fd(read.file.as_raw_fd());
    if let [buffer] = &mut read.buffers[..] {
        return opcode::Read::new(file, buffer.as_mut_ptr(), buffer.len() as u32).offset(offset).build();
    }
    let part = |buffer: &mut BytesMut| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    read.parts = read.buffers.iter_mut().map(part).collect();
    opcode::Readv::new(file, read.parts.as_ptr().cast(), read.parts.len() as u32).offset(offset).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_bring_what_the_file_holds() {
        let path = std::env::temp_dir().join(format!("headstart-ring-{}", std::process::id()));
        let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at / 3 % 251) as u8).collect();
        std::fs::write(&path, &bytes).expect("a temporary file");
        let file = Arc::new(File::open(&path).expect("it is there"));
        std::fs::remove_file(&path).expect("it is there");
        let Ok(mut ring) = Ring::try_new(3) else {
            eprintln!("SKIPPED: no io_uring here");
            return;
        };
        let buffers = |lengths: &[usize]| lengths.iter().map(|length| BytesMut::zeroed(*length)).collect::<Vec<_>>();
        for (name, offset, lengths) in [(7, 5, &[100][..]), (8, 4096, &[10, 4096, 1]), (9, 99_990, &[100])] {
            ring.push(name, &file, offset, buffers(lengths)).expect("there is room");
        }
        assert_eq!(ring.push(10, &file, 0, buffers(&[8])).map_err(|back| back.len()), Err(1));
        assert_eq!((ring.under_way(), ring.take().is_none()), (3, true));
        ring.submit();
        let mut ended = std::collections::BTreeMap::new();
        while ring.under_way() > 0 {
            if let Some(RingEnded { name, buffers, result }) = ring.take() {
                ended.insert(name, (buffers.concat(), result.expect("it can be read")));
            }
        }
        assert_eq!(ended[&7], (bytes[5..105].to_vec(), 100));
        assert_eq!(ended[&8], (bytes[4096..8203].to_vec(), 4107));
        assert_eq!((&ended[&9].0[..10], ended[&9].1), (&bytes[99_990..], 10));
        // An error belongs to its read; the buffers of reads in flight at the end are leaked.
        let write_only = std::fs::OpenOptions::new().write(true).open("/dev/null").expect("it is there");
        ring.push(1, &Arc::new(write_only), 0, buffers(&[8])).expect("there is room");
        ring.submit();
        let ended = std::iter::repeat_with(|| ring.take()).flatten().next().expect("it ends");
        assert_eq!((ended.name, ended.result.map_err(|error| error.raw_os_error())), (1, Err(Some(libc::EBADF))));
        ring.push(2, &file, 0, buffers(&[8])).expect("there is room");
    }
}
