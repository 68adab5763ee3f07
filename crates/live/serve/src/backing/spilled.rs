//! A backing with a spill file before it (`spill/`).

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use headstart_nbd::Extent;

use super::{Backing, RingRead, StartedRead};
use crate::spill::Spill;
use crate::work::Place;

/// A backing whose pages may be in a spill file.
pub struct SpilledBacking {
    inner: Box<dyn Backing>,
    spill: Arc<Spill>,
    page_bytes: u64,
}

impl SpilledBacking {
    /// `spill` before `inner`, both in pages of `page_bytes`.
    #[must_use]
    pub fn new(inner: Box<dyn Backing>, spill: Arc<Spill>, page_bytes: u64) -> Self {
        Self { inner, spill, page_bytes }
    }

    /// The pages that a range touches.
    fn pages(&self, offset: u64, length: u64) -> std::ops::Range<u64> {
        offset / self.page_bytes..(offset + length).div_ceil(self.page_bytes)
    }

    /// Whether the spill file has any of the pages that are to be read.
    fn has_any(&self, offset: u64, buffers: &[BytesMut]) -> bool {
        self.spill.has_any(self.pages(offset, buffers.len() as u64 * self.page_bytes))
    }

    /// Takes what is going to change out of the file.
    fn forget(&self, offset: u64, length: u64) -> io::Result<()> {
        self.spill.forget(self.pages(offset, length))
    }
}

impl Backing for SpilledBacking {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let page_of = |at: usize| offset / self.page_bytes + at as u64;
        // Where pages that are not there begin.
        let mut missing = 0;
        for at in 0..=buffers.len() {
            if at < buffers.len() && !self.spill.read(page_of(at), &mut buffers[at]) {
                continue;
            }
            if missing < at {
                self.inner.read(page_of(missing) * self.page_bytes, &mut buffers[missing..at])?;
            }
            missing = at + 1;
        }
        Ok(())
    }

    fn reads_at_once(&self) -> bool {
        self.inner.reads_at_once()
    }

    fn read_at_once(&self, offset: u64, buffers: &mut [BytesMut]) -> bool {
        !self.has_any(offset, buffers) && self.inner.read_at_once(offset, buffers)
    }

    fn ring_read(&self, offset: u64, buffers: &[BytesMut]) -> Option<RingRead> {
        if self.has_any(offset, buffers) {
            return None;
        }
        self.inner.ring_read(offset, buffers)
    }

    fn starts_reads(&self) -> bool {
        self.inner.starts_reads()
    }

    fn start_reads(&self, reads: Vec<StartedRead>) -> Vec<StartedRead> {
        let (mut back, others): (Vec<_>, Vec<_>) =
            reads.into_iter().partition(|read| self.has_any(read.offset, &read.buffers));
        back.extend(self.inner.start_reads(others));
        back
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        self.forget(offset, data.len() as u64)?;
        self.inner.write(offset, data, fua)
    }

    fn trim(&self, offset: u64, length: u64, fua: bool) -> io::Result<()> {
        self.forget(offset, length)?;
        self.inner.trim(offset, length, fua)
    }

    fn zero(&self, offset: u64, length: u64, no_hole: bool, fua: bool) -> io::Result<()> {
        self.forget(offset, length)?;
        self.inner.zero(offset, length, no_hole, fua)
    }

    fn flush(&self) -> io::Result<()> {
        self.inner.flush()
    }

    fn renew(&self) {
        self.spill.forget_all();
        self.inner.renew();
    }

    fn extents(&self, offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        self.inner.extents(offset, length)
    }

    fn store(&self, place: Place, bytes: &[u8]) {
        self.spill.store(place, bytes);
    }

    fn identity(&self) -> Option<String> {
        self.inner.identity()
    }

    fn parallelism(&self) -> u32 {
        self.inner.parallelism()
    }

    fn read_bytes_max(&self) -> u64 {
        self.inner.read_bytes_max()
    }

    fn read_ahead_bytes(&self) -> Option<u64> {
        self.inner.read_ahead_bytes()
    }

    fn device_read_ahead_bytes(&self) -> Option<u64> {
        self.inner.device_read_ahead_bytes()
    }

    fn device(&self) -> Option<serde_json::Value> {
        self.inner.device()
    }

    fn fails_in_parts(&self) -> bool {
        self.inner.fails_in_parts()
    }
}
