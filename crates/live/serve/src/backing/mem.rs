//! Memory: zeroes at first, gone at the end.

use std::io;
use std::sync::{PoisonError, RwLock};

use bytes::BytesMut;
use headstart_host::memory::machine_bytes;
use headstart_types::Bytes;
use memmap2::MmapMut;

use super::{scatter, Backing};

/// Bytes in memory.
pub struct MemBacking {
    bytes: RwLock<MmapMut>,
    size_bytes: u64,
}

impl MemBacking {
    /// `size_bytes` zeroes, which take memory when they are written.
    ///
    /// # Errors
    /// The machine has less memory, or gives less.
    pub fn try_new(size_bytes: u64) -> io::Result<Self> {
        let machine = machine_bytes().unwrap_or(u64::MAX);
        if size_bytes > machine {
            return Err(io::Error::other(format!("is more than the machine's RAM, {}", Bytes(machine))));
        }
        let bytes = usize::try_from(size_bytes).map_err(io::Error::other).and_then(MmapMut::map_anon)?;
        Ok(Self { bytes: RwLock::new(bytes), size_bytes })
    }

    fn fill(&self, offset: u64, length: u64, with: impl Fn(&mut [u8])) {
        let mut bytes = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        with(&mut bytes[offset as usize..(offset + length) as usize]);
    }
}

impl Backing for MemBacking {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let bytes = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        scatter(&bytes[offset as usize..], buffers);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8], _fua: bool) -> io::Result<()> {
        self.fill(offset, data.len() as u64, |bytes| bytes.copy_from_slice(data));
        Ok(())
    }

    fn trim(&self, offset: u64, length: u64, _fua: bool) -> io::Result<()> {
        self.fill(offset, length, |bytes| bytes.fill(0));
        Ok(())
    }

    fn zero(&self, offset: u64, length: u64, _no_hole: bool, _fua: bool) -> io::Result<()> {
        self.fill(offset, length, |bytes| bytes.fill(0));
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn parallelism(&self) -> u32 {
        2
    }
}
