//! The disks of a run with their threads, which start with the first order, as many commands end before. There are as
//! many threads as reads in flight are allowed.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc::Sender;
use std::sync::Arc;
use std::thread;

use headstart_types::Block;

use super::conductor::Queues;
use super::disk::{Disk, Done};

/// Minimum threads of a disk that may have only one read in flight: files are placed in parallel.
const THREADS_MIN: usize = 4;
/// A thread reads 1 MiB and has shallow calls.
const STACK_BYTES: usize = 128 * 1024;

pub(super) struct Disks {
    disks: Vec<Arc<Disk>>,
    done: Sender<Done>,
    pub wake: Arc<File>,
    /// By disk: the number of threads, none before the first order.
    threads: Vec<usize>,
    /// The limits of reads in flight.
    halvings: u32,
    reads_max: usize,
}

impl Disks {
    /// Without threads yet; `wake` becomes readable when a thread has sent something to `done`.
    pub fn new(disks: Vec<Arc<Disk>>, done: Sender<Done>, wake: Arc<File>) -> Self {
        Self { threads: vec![0; disks.len()], disks, done, wake, halvings: 0, reads_max: usize::MAX }
    }

    /// Whether nothing is in flight or waiting on any disk.
    #[must_use]
    pub fn have_nothing_to_do(&self) -> bool {
        self.disks.iter().all(|disk| disk.has_nothing_to_do())
    }

    /// Whether nothing is in flight on any disk.
    pub fn are_idle(&self) -> bool {
        self.disks.iter().all(|disk| disk.is_idle())
    }

    /// Starts threads that are missing for the allowed reads in flight. They end by themselves when the disks are
    /// stopped, or with this process. Fewer suffice if there is no room for more.
    fn begin(&mut self, disk: usize) {
        let wanted = (self.disks[disk].depth() >> self.halvings).min(self.reads_max.max(THREADS_MIN));
        for _ in self.threads[disk]..wanted {
            let (disk, done, wake) = (self.disks[disk].clone(), self.done.clone(), self.wake.clone());
            let _ = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
                disk.serve(&done, &|| {
                    let _ = (&*wake).write_all(&1u64.to_ne_bytes());
                });
            });
        }
        self.threads[disk] = self.threads[disk].max(wanted);
    }

    /// The same for all disks that have started.
    fn begin_more(&mut self) {
        for disk in 0..self.disks.len() {
            if self.threads[disk] > 0 {
                self.begin(disk);
            }
        }
    }
}

impl Queues for Disks {
    fn disks(&self) -> usize {
        self.disks.len()
    }

    fn order(&mut self, disk: usize, blocks: &mut dyn Iterator<Item = (Block, u32, u64)>) {
        self.begin(disk);
        self.disks[disk].order(blocks);
    }

    fn cancel(&mut self, disk: usize, block: Block) -> bool {
        self.disks[disk].cancel(block)
    }

    fn allow_holes(&mut self, pages: u64) {
        self.disks.iter().for_each(|disk| disk.allow_holes(pages));
    }

    fn slow(&mut self, halvings: u32) {
        self.halvings = halvings;
        self.begin_more();
        self.disks.iter().for_each(|disk| disk.slow(halvings));
    }

    fn limit(&mut self, reads: usize, pages: u64) {
        self.reads_max = reads;
        self.begin_more();
        self.disks.iter().for_each(|disk| disk.limit(reads, pages));
    }

    fn stop(&mut self) {
        self.disks.iter().for_each(|disk| disk.stop());
    }
}
