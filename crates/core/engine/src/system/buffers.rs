//! The cost of reading blocks whose buffers are on other nodes.

use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos};

use super::{Supply, System};
use crate::devices::Devices;

impl<D: Devices<S>, S: BlockMap + Send, R: Supply<S>> System<D, S, R> {
    /// Prepares the lookup of `count` blocks: allocates buffers for absent ones, and charges the process for remote
    /// ones.
    #[inline]
    pub(super) fn find_buffers(&mut self, index: usize, count: u32) {
        let Some(buffers) = self.parallel.as_mut().and_then(|parallel| parallel.buffers.as_mut()) else { return };
        let client = &mut self.clients[index];
        let level = &self.stack.tiers[client.tier].level;
        let (mut cost, mut remote) = (Nanos::ZERO, 0);
        for block in client.blocks(count) {
            if !level.is_cached(*block) || !buffers.has(*block) {
                buffers.fetched(*block, self.stack.space.disk(*block), index as u32);
            }
            let of_block = buffers.cost(*block, index as u32);
            remote += u64::from(of_block > Nanos::ZERO);
            cost += of_block;
        }
        client.process.reads_remotely(remote, cost);
    }

    /// Allocates a buffer for a block that a processor prefetches.
    pub(super) fn take_buffer(&mut self, index: usize, block: Block) {
        let Some(buffers) = self.parallel.as_mut().and_then(|parallel| parallel.buffers.as_mut()) else { return };
        buffers.fetched(block, self.stack.space.disk(block), index as u32);
    }
}
