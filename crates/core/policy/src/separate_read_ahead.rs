//! A replacement and an independent read-ahead combined into one policy that handles whole requests.

use headstart_types::{Block, Disk, Nanos, Outcome, Position};

use crate::readahead::{Asked, Cached, Found, Integrated, Run};
use crate::{BlockMap, ReadAhead, Replacement, View};

/// A replacement and a read-ahead that do not know each other; the read-ahead is optional.
pub struct SeparateReadAhead<R: ?Sized>(pub Box<R>, pub Option<Box<dyn ReadAhead>>);

impl<R: Replacement + ?Sized> Replacement for SeparateReadAhead<R> {
    fn grow(&mut self, blocks: usize) {
        self.0.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.0.warm(blocks);
    }

    fn victim(&mut self, incoming: Block, view: &View<'_>) -> Option<Block> {
        self.0.victim(incoming, view)
    }

    fn inserted(&mut self, block: Block) {
        self.0.inserted(block);
    }

    fn removed(&mut self, block: Block) {
        self.0.removed(block);
    }

    fn referenced(&mut self, position: Position, block: Block, outcome: Outcome) {
        self.0.referenced(position, block, outcome);
    }

    fn referenced_by(&mut self, process: u32, position: Position, block: Block, outcome: Outcome) {
        self.0.referenced_by(process, position, block, outcome);
    }

    fn awaited_by(&mut self, process: u32, block: Block) {
        self.0.awaited_by(process, block);
    }
}

impl<R: Replacement + ?Sized> ReadAhead for SeparateReadAhead<R> {
    fn asked(&mut self, now: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        if let Some(read_ahead) = &mut self.1 {
            read_ahead.asked(now, asked, found, cached, prefetch);
        }
    }

    fn evicted(&mut self, file: u32, index: u64, unused: bool) {
        if let Some(read_ahead) = &mut self.1 {
            read_ahead.evicted(file, index, unused);
        }
    }

    fn spares(&mut self, file: u32, index: u64) -> bool {
        self.1.as_mut().is_some_and(|read_ahead| read_ahead.spares(file, index))
    }

    fn fetched(&mut self, now: Nanos, disk: Disk, block: Block, space: &dyn BlockMap) {
        if let Some(read_ahead) = &mut self.1 {
            read_ahead.fetched(now, disk, block, space);
        }
    }

    fn order_max(&self) -> u32 {
        self.1.as_ref().map_or(u32::MAX, |read_ahead| read_ahead.order_max())
    }

    fn one_by_one(&self) -> bool {
        self.1.as_ref().is_some_and(|read_ahead| read_ahead.one_by_one())
    }

    fn remembered(&self) -> usize {
        self.1.as_ref().map_or(0, |read_ahead| read_ahead.remembered())
    }
}

impl<R: Replacement + ?Sized> Integrated for SeparateReadAhead<R> {
    fn placed(&mut self, block: Block, _file: u32, _index: u64) {
        // The block may have been numbered just now.
        self.0.grow(block.index() + 1);
    }
}
