//! A backing behind a spill file (`spill/`).

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use headstart_nbd::Extent;

use super::{About, Backing, NonBlockingRead, StartedRead};
use crate::spill::Spill;
use crate::work::Change;

pub struct SpilledBacking {
    inner: Box<dyn Backing>,
    spill: Arc<Spill>,
    page_bytes: u64,
}

impl SpilledBacking {
    /// Places `spill` before `inner`; both use pages of `page_bytes`.
    #[must_use]
    pub fn new(inner: Box<dyn Backing>, spill: Arc<Spill>, page_bytes: u64) -> Self {
        Self { inner, spill, page_bytes }
    }

    fn pages(&self, bytes: Range<u64>) -> Range<u64> {
        bytes.start / self.page_bytes..bytes.end.div_ceil(self.page_bytes)
    }

    /// Whether the spill file has any of these pages.
    fn has_any(&self, offset: u64, buffers: &[BytesMut]) -> bool {
        self.spill.has_any(self.pages(offset..offset + buffers.len() as u64 * self.page_bytes))
    }
}

impl Backing for SpilledBacking {
    fn about(&self) -> About {
        self.inner.about()
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let page_of = |at: usize| offset / self.page_bytes + at as u64;
        // First of the current run of missing pages.
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

    fn try_read(&self, offset: u64, buffers: &mut [BytesMut], has_ring: bool) -> NonBlockingRead {
        if self.has_any(offset, buffers) {
            return NonBlockingRead::Waits;
        }
        self.inner.try_read(offset, buffers, has_ring)
    }

    fn start_reads(&self, reads: Vec<StartedRead>) -> Vec<StartedRead> {
        let (mut back, others): (Vec<_>, Vec<_>) =
            reads.into_iter().partition(|read| self.has_any(read.offset, &read.buffers));
        back.extend(self.inner.start_reads(others));
        back
    }

    /// Removes the affected pages from the spill file before changing the backing.
    fn change(&self, change: &Change) -> io::Result<()> {
        match change.bytes() {
            Some(bytes) => self.spill.forget(self.pages(bytes))?,
            None if matches!(change, Change::Renew) => self.spill.forget_all(),
            None => {}
        }
        self.inner.change(change)
    }

    fn extents(&self, offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        self.inner.extents(offset, length)
    }
}
