//! The queues of the simulated disks, which the conductor of [`crate`] orders from.

use headstart_types::Block;

use crate::conductor::Queues;
use crate::queue::Queue;

/// The queues of the disks that hints name.
pub(super) struct SimulatedQueues {
    /// By disk.
    pub queues: Vec<Queue>,
    /// Nothing is begun any more.
    pub stopped: bool,
    /// By hinted file: it is the device.
    is_device: Vec<bool>,
}

impl Queues for SimulatedQueues {
    fn disks(&self) -> usize {
        self.queues.len()
    }

    fn order(&mut self, disk: usize, blocks: &mut dyn Iterator<Item = (Block, u32, u64)>) {
        for (block, file, page) in blocks {
            self.queues[disk].add(block, file, page, self.is_device[file as usize]);
        }
    }

    fn cancel(&mut self, disk: usize, block: Block) -> bool {
        self.queues[disk].cancel(block)
    }

    fn allow_holes(&mut self, pages: u64) {
        self.queues.iter_mut().for_each(|queue| queue.allow_holes(pages));
    }

    fn slow(&mut self, halvings: u32) {
        self.queues.iter_mut().for_each(|queue| {
            queue.slow(halvings);
        });
    }

    fn limit(&mut self, reads: usize, pages: u64) {
        self.queues.iter_mut().for_each(|queue| {
            queue.limit(reads, pages);
        });
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}

impl SimulatedQueues {
    pub fn new(arms: &[bool], is_device: Vec<bool>) -> Self {
        Self { queues: arms.iter().map(|arm| Queue::new(*arm)).collect(), stopped: false, is_device }
    }
}
