//! Reads of an export's files through io_uring.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use bytes::BytesMut;
use headstart_host::ring::{Ring, RingEnded};
use nix::errno::Errno;
use rustc_hash::FxHashMap;

use super::joined::{join, Joints};

pub struct Ended {
    /// The conductor's id.
    pub id: u64,
    pub offset: u64,
    pub buffers: Vec<BytesMut>,
    /// `None`: a short read, or one that io_uring cannot do here; a thread has to do it.
    pub result: Option<io::Result<()>>,
}

pub struct Ringed {
    ring: Ring,
    under_way: FxHashMap<u64, (u64, Joints)>,
}

impl Ringed {
    /// Supports `reads_max` reads in flight; `None` if the system has no io_uring.
    pub fn try_new(reads_max: u32) -> Option<Self> {
        Some(Self { ring: Ring::try_new(reads_max).ok()?, under_way: FxHashMap::default() })
    }

    /// Queues a read; returns the buffers if there is no room.
    pub fn push(
        &mut self,
        id: u64,
        file: &Arc<File>,
        offset: u64,
        buffers: Vec<BytesMut>,
    ) -> Result<(), Vec<BytesMut>> {
        let (joined, joints) = join(buffers);
        match self.ring.push(id, file, offset, joined) {
            Ok(()) => {
                self.under_way.insert(id, (offset, joints));
                Ok(())
            }
            Err(joined) => Err(joints.part(joined)),
        }
    }

    /// Submits the queued reads.
    pub fn submit(&mut self) {
        self.ring.submit();
    }

    /// The next completed read.
    pub fn take(&mut self) -> Option<Ended> {
        let RingEnded { name: id, buffers, result } = self.ring.take()?;
        let (offset, joints) = self.under_way.remove(&id)?;
        let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let result = match result {
            Ok(read) => (read == wanted).then_some(Ok(())),
            Err(error) => (!needs_thread(&error)).then_some(Err(error)),
        };
        Some(Ended { id, offset, buffers: joints.part(buffers), result })
    }
}

impl AsRawFd for Ringed {
    fn as_raw_fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }
}

/// Whether the error concerns this way of reading and says nothing about the file.
fn needs_thread(error: &io::Error) -> bool {
    let kinds = [Errno::EINVAL, Errno::EAGAIN, Errno::EINTR, Errno::EOPNOTSUPP, Errno::ECANCELED];
    kinds.iter().any(|errno| error.raw_os_error() == Some(*errno as i32))
}
