//! How long the application waits for its fetches, if it computes in between. Our addition; the paper's equations have
//! no think times.
//!
//! With prefetching, the file system has one prefetch outstanding while the application uses the previous data: when
//! the application reaches the first block of a fetch, it issues the next. Without prefetching, it issues a fetch on
//! demand. A fetch ends when the disk has served it, and not before the disk has served all streams once since the last
//! one; the application waits for the rest when it reaches the fetch's first block. With one stream that is max(0, S -
//! C) for a prefetch that takes S while the application spends C on the fetch before it.
//!
//! n streams run in step: exact if the disk is always busy, and if everything overlaps; in between it overestimates the
//! waits. The effect of think times on the queue length, and so on seeks, is ignored.

use super::parameters::{FileSystem, Prefetch, Work};
use super::requests::RequestRun;

/// Adds up the waits of one file's fetches, in order.
pub(super) struct Overlap {
    request_bytes: u64,
    think: f64,
    prefetching: bool,
    /// Where the next fetch begins in the file.
    next: u64,
    /// When the application reached the last fetch, and when that ended.
    came: f64,
    ended: f64,
    waits: f64,
}

impl Overlap {
    pub(super) fn new(file_system: &FileSystem, work: &Work) -> Self {
        Self {
            request_bytes: work.request_bytes,
            think: work.think_ns,
            prefetching: file_system.prefetch != Prefetch::Off,
            next: 0,
            came: 0.0,
            ended: 0.0,
            waits: 0.0,
        }
    }

    /// `run.count` fetches of `run.bytes`, each of which takes `contended` if all streams request, `alone` otherwise.
    #[inline]
    pub(super) fn fetch(&mut self, run: RequestRun, contended: f64, alone: f64) {
        if self.think == 0.0 {
            self.waits += contended * run.count as f64;
            return;
        }
        for _ in 0..run.count {
            // Requests that end before this fetch's first block is requested.
            let comes = (self.next / self.request_bytes) as f64 * self.think + self.waits;
            let asked = if self.prefetching { self.came } else { comes };
            self.ended = (asked + alone).max(self.ended + contended);
            self.waits += (self.ended - comes).max(0.0);
            self.came = self.ended.max(comes);
            self.next += run.bytes;
        }
    }

    /// Sum of the waits.
    pub(super) fn waits(&self) -> f64 {
        self.waits
    }
}
