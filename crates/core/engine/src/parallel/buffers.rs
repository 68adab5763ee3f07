//! Placement of buffers: each processor has a part of the memory, and a block in another processor's part costs its
//! reader more.
//!
//! Source: kotz-ellis, section 3, which names three ways to allocate the buffer of a request and leaves their
//! evaluation open. "Any available buffer" of the first way is read as round robin over the nodes. If there are I/O
//! processors, the disks are attached to them.
//!
//! Cost: constant per block of a request, 4 bytes per block.

use headstart_types::{Block, Disk, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The node that holds a block's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferPlace {
    // The alternatives 1, 2 and 3 of the source.
    /// The nodes of all processors in turn.
    #[default]
    Shared,
    /// The node of the processor that fetches the block, whether on demand or ahead.
    Requester,
    /// The node of the processor that the block's disk is attached to: disk d is attached to processor d, or to I/O
    /// processor d if there are any, modulo their number.
    Disk,
}

/// The nodes of all buffers.
#[derive(Debug, Clone)]
pub struct Buffers {
    place: BufferPlace,
    /// Additional time of each read of a block on another node.
    cost: Nanos,
    processes: u32,
    io_processors: u32,
    /// The next node in the round robin.
    turn: u32,
    /// Indexed by block.
    node_of: Vec<u32>,
}

/// Marks a block without a buffer.
const NOWHERE: u32 = u32::MAX;

impl Buffers {
    /// Buffers of `processes` processors plus `io_processors`; `None` if remote reads cost nothing.
    #[must_use]
    pub fn new(place: BufferPlace, cost: Nanos, (processes, io_processors): (u32, u32)) -> Option<Self> {
        let buffers = Self { place, cost, processes, io_processors, turn: 0, node_of: Vec::new() };
        (cost > Nanos::ZERO).then_some(buffers)
    }

    /// Allocates a buffer for a block that processor `processor` fetches from `disk`.
    pub fn fetched(&mut self, block: Block, disk: Disk, processor: u32) {
        let node = match self.place {
            BufferPlace::Requester => processor,
            BufferPlace::Disk if self.io_processors > 0 => self.processes + disk.0 % self.io_processors,
            BufferPlace::Disk => disk.0 % self.processes,
            BufferPlace::Shared => {
                let node = self.turn;
                self.turn = (node + 1) % (self.processes + self.io_processors);
                node
            }
        };
        if block.index() >= self.node_of.len() {
            self.node_of.resize(block.index() + 1, NOWHERE);
        }
        self.node_of[block.index()] = node;
    }

    /// Whether the block has a buffer.
    #[must_use]
    pub fn has(&self, block: Block) -> bool {
        self.node_of.get(block.index()).is_some_and(|node| *node != NOWHERE)
    }

    /// The additional time for `process` to read the block from its node.
    #[must_use]
    pub fn cost(&self, block: Block, process: u32) -> Nanos {
        let is_local = self.node_of.get(block.index()) == Some(&process);
        if is_local {
            Nanos::ZERO
        } else {
            self.cost
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The node of each of blocks 0 to 3, of disks 5, 6, 5 and 8, fetched by processors 1, 1, 0 and 2.
    fn nodes(place: BufferPlace, io_processors: u32) -> Vec<u32> {
        let mut buffers = Buffers::new(place, Nanos(7), (3, io_processors)).expect("it costs something");
        for (block, disk, processor) in [(0, 5, 1), (1, 6, 1), (2, 5, 0), (3, 8, 2)] {
            assert!(!buffers.has(Block(block)));
            buffers.fetched(Block(block), Disk(disk), processor);
            assert!(buffers.has(Block(block)));
        }
        let local = |block| (0..5).find(|node| buffers.cost(Block(block), *node) == Nanos::ZERO);
        (0..4).map(|block| local(block).expect("one node has it")).collect()
    }

    #[test]
    fn the_three_places() {
        assert_eq!(nodes(BufferPlace::Shared, 0), [0, 1, 2, 0]);
        assert_eq!(nodes(BufferPlace::Shared, 2), [0, 1, 2, 3]);
        assert_eq!(nodes(BufferPlace::Requester, 0), [1, 1, 0, 2]);
        assert_eq!(nodes(BufferPlace::Disk, 0), [2, 0, 2, 2]);
        assert_eq!(nodes(BufferPlace::Disk, 2), [4, 3, 4, 3], "disks are at the I/O processors");
        assert!(Buffers::new(BufferPlace::Disk, Nanos::ZERO, (3, 0)).is_none());
    }
}
