//! The bytes of frames: buffers of one page, taken for a fetch, kept while their block is resident, and used again.
//!
//! Buffers move: into the thread that reads, back, and into the frame, so that nothing is copied and nothing is shared.
//! They are pieces of larger allocations, on boundaries that direct I/O takes, and are allocated as they are first needed.

use bytes::BytesMut;
use headstart_types::Block;

/// Where direct I/O wants buffers to begin.
const ALIGNMENT: usize = 4096;
/// Bytes of an allocation, or one page where that is more.
const SLAB_BYTES: usize = 1 << 20;

const NONE: u32 = u32::MAX;

/// Buffers of one page each.
#[derive(Debug)]
pub struct Buffers {
    page_bytes: usize,
    free: Vec<BytesMut>,
    /// By block: its index in `kept`.
    at: Vec<u32>,
    kept: Vec<BytesMut>,
    free_at: Vec<u32>,
}

impl Buffers {
    /// Of `page_bytes` each.
    #[must_use]
    pub fn new(page_bytes: usize) -> Self {
        Self { page_bytes, free: Vec::new(), at: Vec::new(), kept: Vec::new(), free_at: Vec::new() }
    }

    /// A buffer, with anything in it.
    pub fn take(&mut self) -> BytesMut {
        if self.free.is_empty() {
            let pages = (SLAB_BYTES / self.page_bytes).max(1);
            let mut slab = BytesMut::zeroed(pages * self.page_bytes + ALIGNMENT);
            let _ = slab.split_to(slab.as_ptr().align_offset(ALIGNMENT));
            self.free.extend((0..pages).map(|_| slab.split_to(self.page_bytes)));
        }
        self.free.pop().expect("some have just been made")
    }

    /// Takes back a buffer.
    pub fn put_back(&mut self, buffer: BytesMut) {
        self.free.push(buffer);
    }

    /// From now on `buffer` holds the bytes of `block`, which had none.
    pub fn keep(&mut self, block: Block, buffer: BytesMut) {
        if block.index() >= self.at.len() {
            self.at.resize(block.index() + 1, NONE);
        }
        let index = self.free_at.pop().unwrap_or_else(|| {
            self.kept.push(BytesMut::new());
            self.kept.len() as u32 - 1
        });
        debug_assert_eq!(self.at[block.index()], NONE);
        self.at[block.index()] = index;
        self.kept[index as usize] = buffer;
    }

    /// The bytes of `block`, if it has any.
    #[must_use]
    pub fn of(&self, block: Block) -> Option<&[u8]> {
        let index = self.at.get(block.index()).copied().filter(|index| *index != NONE)?;
        Some(&self.kept[index as usize])
    }

    /// The same, to be changed.
    pub fn of_mut(&mut self, block: Block) -> Option<&mut [u8]> {
        let index = self.at.get(block.index()).copied().filter(|index| *index != NONE)?;
        Some(&mut self.kept[index as usize])
    }

    /// `block` has left the cache: its buffer is free.
    pub fn drop_of(&mut self, block: Block) {
        let buffer = self.take_of(block);
        self.free.extend(buffer);
    }

    /// `block` has left the cache: its buffer with its bytes, to be put back.
    pub fn take_of(&mut self, block: Block) -> Option<BytesMut> {
        let at = self.at.get_mut(block.index()).filter(|at| **at != NONE)?;
        let index = std::mem::replace(at, NONE);
        self.free_at.push(index);
        Some(std::mem::take(&mut self.kept[index as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_apart_and_used_again() {
        let mut buffers = Buffers::new(8192);
        let mut all: Vec<BytesMut> = (0..200).map(|_| buffers.take()).collect();
        for (number, buffer) in (0u8..).zip(&mut all) {
            assert_eq!((buffer.len(), buffer.as_ptr().align_offset(4096)), (8192, 0));
            buffer.fill(number);
        }
        for (number, buffer) in (0u8..).zip(all) {
            assert!(buffer.iter().all(|byte| *byte == number));
            buffers.keep(Block(u32::from(number) * 3), buffer);
        }
        assert_eq!(buffers.of(Block(9)).map(|bytes| bytes[8191]), Some(3));
        assert_eq!((buffers.of(Block(10)), buffers.of(Block(100_000))), (None, None));
        let free = buffers.free.len();
        buffers.drop_of(Block(9));
        buffers.drop_of(Block(9));
        assert_eq!((buffers.of(Block(9)), buffers.free.len()), (None, free + 1));
    }
}
