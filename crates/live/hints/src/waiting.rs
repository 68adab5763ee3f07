//! The reads that wait for a host that does its own reading: a forecast, or a block server. The conductor orders them.

use headstart_types::Block;

use super::conductor::Queues;
use super::queue::{Queue, Work};

/// The queues of the hinted disks.
pub struct Waiting {
    /// By disk.
    pub queues: Vec<Queue>,
    /// Nothing more is started.
    pub stopped: bool,
    /// By hinted file: whether it is the device.
    is_device: Vec<bool>,
    /// Unhinted pages may be read along with their neighbours.
    reads_holes: bool,
}

impl Waiting {
    /// `arms`: by disk, whether it has an arm; `is_device`: by hinted file, whether it is the device.
    #[must_use]
    pub fn new(arms: &[bool], is_device: Vec<bool>, reads_holes: bool) -> Self {
        Self { queues: arms.iter().map(|arm| Queue::new(*arm)).collect(), stopped: false, is_device, reads_holes }
    }

    /// The next piece of work of `disk`, if it may start now.
    pub fn choose(&mut self, disk: usize) -> Option<Work> {
        if self.stopped {
            return None;
        }
        self.queues[disk].choose()
    }
}

impl Queues for Waiting {
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
        self.queues.iter_mut().filter(|_| self.reads_holes).for_each(|queue| queue.allow_holes(pages));
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
