//! Buffers of one page each: taken for a fetch, kept while the block is resident, and reused.
//!
//! Buffers move to the reading thread, back, and into the frame, so nothing is copied. Replies share them: the buffer
//! of an evicted page is free once the last reply with it has been sent ([`Buffers::give_back`]). They are pieces of
//! larger allocations in large pages, aligned for direct I/O, and are allocated when first needed.

use std::sync::Arc;

use bytes::BytesMut;
use headstart_host::memory::prefer_large_pages;
use headstart_types::Block;

use crate::work::Page;

/// Alignment of large pages; also suits direct I/O.
const ALIGNMENT: usize = 2 << 20;
/// Bytes of an allocation, a whole number of large pages. Memory is used when first touched.
const SLAB_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub struct Buffers {
    page_bytes: usize,
    free: Vec<BytesMut>,
    /// Number of buffers.
    made: usize,
    /// Addresses of the allocations, sorted.
    slabs: Vec<usize>,
    /// Minimum number of free buffers since [`Buffers::shrink`].
    free_min: usize,
    /// By block.
    kept: Vec<Option<Page>>,
}

impl Buffers {
    #[must_use]
    pub fn new(page_bytes: usize) -> Self {
        Self { page_bytes, free: Vec::new(), made: 0, slabs: Vec::new(), free_min: 0, kept: Vec::new() }
    }

    /// Like [`Buffers::new`], with the first page in memory already: the kernel takes up to half a millisecond to clear
    /// a large page, and the first request would wait for that.
    #[must_use]
    pub fn prepared(page_bytes: usize) -> Self {
        let mut buffers = Self::new(page_bytes);
        let mut first = buffers.take();
        first[0] = 0;
        buffers.put_back(first);
        buffers
    }

    /// Number of buffers that are not free.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.made - self.free.len()
    }

    /// Number of blocks with bytes.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept.iter().flatten().count()
    }

    /// A buffer with undefined content.
    pub fn take(&mut self) -> BytesMut {
        self.take_run(1).pop().expect("one has been taken")
    }

    /// `count` buffers ordered by address, so that as many as possible are adjacent.
    pub fn take_run(&mut self, count: usize) -> Vec<BytesMut> {
        while self.free.len() < count {
            let pages = SLAB_BYTES / self.page_bytes;
            let mut slab = BytesMut::zeroed(SLAB_BYTES + ALIGNMENT);
            let _ = slab.split_to(slab.as_ptr().align_offset(ALIGNMENT));
            prefer_large_pages(&slab[..SLAB_BYTES]);
            self.made += pages;
            let start = slab.as_ptr().addr();
            self.slabs.insert(self.slabs.partition_point(|other| *other < start), start);
            self.free.extend((0..pages).map(|_| slab.split_to(self.page_bytes)));
        }
        let mut run = self.free.split_off(self.free.len() - count);
        self.free_min = self.free_min.min(self.free.len());
        run.sort_unstable_by_key(|buffer| buffer.as_ptr());
        run
    }

    /// Frees all but one of the allocations that were not needed since the last call; returns whether any were freed.
    ///
    /// Kept pages prevent that; if at least half of all buffers were not needed, such pages move to other allocations.
    pub fn shrink(&mut self) -> bool {
        let pages = SLAB_BYTES / self.page_bytes;
        let unneeded = std::mem::replace(&mut self.free_min, self.free.len()).min(self.free.len());
        let mut spare = unneeded / pages;
        if spare < 2 {
            return false;
        }
        let slab_of =
            |slabs: &[usize], buffer: &BytesMut| slabs.partition_point(|start| *start <= buffer.as_ptr().addr()) - 1;
        let mut free_of = vec![0; self.slabs.len()];
        self.free.iter().for_each(|buffer| free_of[slab_of(&self.slabs, buffer)] += 1);
        // Free those with the most free buffers first.
        let mut order: Vec<usize> = (0..self.slabs.len()).collect();
        order.sort_unstable_by_key(|slab| std::cmp::Reverse(free_of[*slab]));
        spare -= 1;
        let moves = unneeded * 2 >= self.made;
        order.retain(|slab| moves || free_of[*slab] == pages);
        order.truncate(spare);
        let mut goes = vec![false; self.slabs.len()];
        order.iter().for_each(|slab| goes[*slab] = true);
        let slabs = &self.slabs;
        let (dropped, mut stays): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.free).into_iter().partition(|buffer| goes[slab_of(slabs, buffer)]);
        let mut left: Vec<usize> =
            goes.iter().zip(&free_of).map(|(goes, free)| if *goes { pages - free } else { 0 }).collect();
        for page in self.kept.iter_mut().flatten().filter(|_| moves) {
            let slab = slab_of(slabs, page);
            if !goes[slab] || Arc::strong_count(page) > 1 {
                continue;
            }
            let Some(mut buffer) = stays.pop() else { break };
            buffer.copy_from_slice(page);
            *page = Arc::new(buffer);
            left[slab] -= 1;
        }
        // If an allocation is still needed, for example by a reply, its free buffers stay.
        let is_gone = |slab: usize| goes[slab] && left[slab] == 0;
        stays.extend(dropped.into_iter().filter(|buffer| !is_gone(slab_of(slabs, buffer))));
        self.free = stays;
        let gone = (0..self.slabs.len()).filter(|slab| is_gone(*slab)).count();
        self.made -= gone * pages;
        let mut at = 0..;
        self.slabs.retain(|_| at.next().is_some_and(|slab| !(goes[slab] && left[slab] == 0)));
        self.free_min = self.free.len();
        gone > 0
    }

    pub fn put_back(&mut self, buffer: BytesMut) {
        self.free.push(buffer);
    }

    /// Releases one use of a page; its buffer becomes free with the last one.
    pub fn give_back(&mut self, page: Page) {
        self.free.extend(Arc::into_inner(page));
    }

    /// Stores the bytes of `block`, which had none.
    pub fn keep(&mut self, block: Block, page: Page) {
        if block.index() >= self.kept.len() {
            self.kept.resize(block.index() + 1, None);
        }
        debug_assert!(self.kept[block.index()].is_none());
        self.kept[block.index()] = Some(page);
    }

    #[must_use]
    pub fn of(&self, block: Block) -> Option<&Page> {
        self.kept.get(block.index())?.as_ref()
    }

    /// Mutable bytes of `block`; replies keep the old ones.
    pub fn of_mut(&mut self, block: Block) -> Option<&mut [u8]> {
        let is_shared = Arc::strong_count(self.of(block)?) > 1;
        let own = is_shared.then(|| self.take());
        let page = self.kept[block.index()].as_mut()?;
        if let Some(mut own) = own {
            own.copy_from_slice(page);
            *page = Arc::new(own);
        }
        Arc::get_mut(page).map(|bytes| &mut bytes[..])
    }

    /// Drops the bytes of the evicted `block`.
    pub fn drop_of(&mut self, block: Block) {
        if let Some(page) = self.kept.get_mut(block.index()).and_then(Option::take) {
            self.give_back(page);
        }
    }

    /// Takes the bytes of the evicted `block`; the caller puts the buffer back.
    pub fn take_of(&mut self, block: Block) -> Option<BytesMut> {
        let page = self.kept.get_mut(block.index())?.take()?;
        Some(Arc::try_unwrap(page).unwrap_or_else(|shared| {
            let mut own = self.take();
            own.copy_from_slice(&shared);
            own
        }))
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
            buffers.keep(Block(u32::from(number) * 3), Arc::new(buffer));
        }
        assert_eq!(buffers.of(Block(9)).map(|bytes| bytes[8191]), Some(3));
        assert_eq!((buffers.of(Block(10)), buffers.of(Block(100_000))), (None, None));
        let free = buffers.free.len();
        buffers.drop_of(Block(9));
        buffers.drop_of(Block(9));
        assert_eq!((buffers.of(Block(9)), buffers.free.len()), (None, free + 1));
    }

    #[test]
    fn memory_goes_back_that_was_not_needed() {
        let mut buffers = Buffers::new(1 << 20);
        // Ten allocations of 16 buffers. One page of each allocation is kept; in the last one, a reply shares the page.
        let mut all: Vec<BytesMut> = (0..160).map(|_| buffers.take()).collect();
        all.sort_unstable_by_key(|buffer| buffer.as_ptr());
        for (number, mut buffer) in (0_u8..).zip(all) {
            if number % 16 == 3 {
                buffer.fill(number);
                buffers.keep(Block(number.into()), Arc::new(buffer));
            } else {
                buffers.put_back(buffer);
            }
        }
        let reply = buffers.of(Block(147)).expect("it is kept").clone();
        assert!(!buffers.shrink());
        assert_eq!((buffers.made, buffers.in_use()), (160, 10), "they have just been needed");
        assert!(buffers.shrink());
        // One allocation for kept pages, one for the reply's page, and at most one spare.
        assert!(buffers.made <= 48 && buffers.in_use() == 10, "{} of {}", buffers.in_use(), buffers.made);
        for number in (3..160).step_by(16) {
            let page = buffers.of(Block(number)).expect("it is kept");
            assert!(page.iter().all(|byte| u32::from(*byte) == number), "page {number} is what it was");
        }
        assert_eq!(reply[0], 147);
        buffers.give_back(reply);
        let all: Vec<BytesMut> = (0..100).map(|_| buffers.take()).collect();
        assert_eq!(all.iter().map(|buffer| buffer.len()).sum::<usize>(), 100 << 20);
    }

    #[test]
    fn what_is_prepared_is_free_and_taken_first() {
        let mut buffers = Buffers::prepared(4096);
        assert_eq!((buffers.in_use(), buffers.free.len()), (0, SLAB_BYTES / 4096));
        let prepared = buffers.free.last().map(|buffer| buffer.as_ptr());
        assert_eq!(Some(buffers.take().as_ptr()), prepared);
        assert!(
            buffers.free.iter().all(|buffer| Some(buffer.as_ptr()) < prepared),
            "the last of them, at the end of a large page"
        );
    }

    #[test]
    fn a_reply_keeps_what_it_has() {
        let mut buffers = Buffers::new(4096);
        let mut filled = |byte| {
            let mut buffer = buffers.take();
            buffer.fill(byte);
            Arc::new(buffer)
        };
        let (page, other) = (filled(1), filled(2));
        buffers.keep(Block(0), page);
        buffers.keep(Block(1), other);
        let free = buffers.free.len();
        let reply = [0, 1].map(|block| buffers.of(Block(block)).expect("it is kept").clone());
        // One block changes, the other is evicted: the reply sees neither, and returns both buffers.
        buffers.of_mut(Block(0)).expect("it is kept")[5] = 9;
        assert_eq!(buffers.of(Block(0)).map(|page| (page[4], page[5])), Some((1, 9)));
        assert_eq!(buffers.take_of(Block(1)).map(|bytes| bytes[0]), Some(2));
        assert_eq!((reply[0][5], reply[1][5], buffers.free.len()), (1, 2, free - 2));
        reply.into_iter().for_each(|page| buffers.give_back(page));
        assert_eq!(buffers.free.len(), free);
        buffers.of_mut(Block(0)).expect("it is kept")[5] = 8;
        assert_eq!(buffers.free.len(), free, "nothing shares it now");
    }
}
