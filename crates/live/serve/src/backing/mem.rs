//! Memory: initially zero, lost when the server ends.

use std::io;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use bytes::BytesMut;
use headstart_host::memory::room;
use headstart_types::{system_says, Bytes};
use memmap2::MmapMut;

use super::{scatter, About, Backing, Kind};
use crate::change::Change;

pub(super) const KIND: Kind = Kind {
    schemes: &[("mem:", "mem:SIZE, such as mem:1GiB")],
    forms: &[("mem:SIZE", "memory: zeroes at first, not kept")],
    can_write: true,
    can_bypass: false,
    open: |opening| {
        let size: Bytes = opening.rest.parse().map_err(|error: String| opening.refused(error, opening.form))?;
        let memory = MemBacking::try_new(size.0);
        Ok(Box::new(memory.map_err(|error| opening.refused(system_says(&error), "a smaller one"))?))
    },
};

pub struct MemBacking {
    bytes: RwLock<MmapMut>,
    size_bytes: u64,
}

impl MemBacking {
    /// Allocates `size_bytes` zeroes; memory is used when they are written.
    ///
    /// # Errors
    /// The machine has less memory, or a limit allows less.
    pub fn try_new(size_bytes: u64) -> io::Result<Self> {
        if let Some((room, whose)) = room().filter(|(room, _)| size_bytes > *room) {
            return Err(io::Error::other(format!("is more than {whose}, {}", Bytes(room).rounded())));
        }
        let bytes = usize::try_from(size_bytes).map_err(io::Error::other).and_then(MmapMut::map_anon)?;
        Ok(Self { bytes: RwLock::new(bytes), size_bytes })
    }
}

impl Backing for MemBacking {
    fn about(&self) -> About {
        About { parallelism: 2, ..About::of(self.size_bytes) }
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let bytes = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        scatter(&bytes[offset as usize..], buffers);
        Ok(())
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        let Some(Range { start, end }) = change.bytes() else { return Ok(()) };
        let mut bytes = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let bytes = &mut bytes[start as usize..end as usize];
        match change {
            Change::Write { data, .. } => bytes.copy_from_slice(data),
            _ => bytes.fill(0),
        }
        Ok(())
    }
}
