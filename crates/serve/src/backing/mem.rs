//! Memory: zeroes at first, gone at the end.

use std::io;
use std::sync::{PoisonError, RwLock};

use bytes::BytesMut;

use super::{scatter, Backing};

/// Bytes in memory.
pub struct MemBacking {
    bytes: RwLock<Vec<u8>>,
    size_bytes: u64,
}

impl MemBacking {
    /// `size_bytes` zeroes.
    #[must_use]
    pub fn new(size_bytes: u64) -> Self {
        Self { bytes: RwLock::new(vec![0; size_bytes as usize]), size_bytes }
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
