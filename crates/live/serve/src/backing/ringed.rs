//! Reads of one export's files that io_uring makes.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use bytes::BytesMut;
use headstart_host::ring::{Ring, RingEnded};
use nix::errno::Errno;
use rustc_hash::FxHashMap;

use super::joined::{join, Joints};

/// A read that has ended.
pub struct Ended {
    /// The conductor's name for it.
    pub id: u64,
    /// First byte.
    pub offset: u64,
    /// Its buffers.
    pub buffers: Vec<BytesMut>,
    /// `None`: it brought too little, or is one that io_uring cannot make here; a thread has to do it.
    pub result: Option<io::Result<()>>,
}

/// The reads.
pub struct Ringed {
    ring: Ring,
    under_way: FxHashMap<u64, (u64, Joints)>,
}

impl Ringed {
    /// For `reads_max` reads at a time; `None` where the system has no io_uring.
    pub fn try_new(reads_max: u32) -> Option<Self> {
        Some(Self { ring: Ring::try_new(reads_max).ok()?, under_way: FxHashMap::default() })
    }

    /// Queues a read; gives the buffers back if there is no room.
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

    /// Starts what is queued.
    pub fn submit(&mut self) {
        self.ring.submit();
    }

    /// The next that has ended.
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

/// Whether an error says something of the way in which a read was made, and nothing of the file.
fn needs_thread(error: &io::Error) -> bool {
    let kinds = [Errno::EINVAL, Errno::EAGAIN, Errno::EINTR, Errno::EOPNOTSUPP, Errno::ECANCELED];
    kinds.iter().any(|errno| error.raw_os_error() == Some(*errno as i32))
}
