//! How long the application waits for its fetches, when it computes in between. Ours, not the paper's, which has no
//! think times in its equations.
//!
//! With prefetching the file system has one prefetch under way while the application consumes what it has: coming to the
//! first block of a fetch, it asks for the next. Without prefetching it asks for a fetch when it needs it. A fetch ends when
//! the disk has served it, and not before it has been round all streams since the last one; the application waits for
//! what is left of that when it comes to the fetch's first block. With one stream that is max(0, S - C) of a prefetch that
//! takes S while the application spends C on the fetch before it.
//!
//! n streams go in step: exact where the disk never rests, and where everything is hidden; in between it errs on the side
//! of waiting. What thinking does to the length of the queue, and so to seeks, is left out.

use super::parameters::{FileSystem, Prefetch, Work};
use super::requests::Run;

/// Adds up the waits of one file's fetches, in order.
pub(super) struct Overlap {
    request_bytes: u64,
    think: f64,
    prefetching: bool,
    /// Where the next fetch begins in the file.
    next: u64,
    /// When the application came to the last fetch, and when that ended.
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

    /// `run.count` fetches of `run.bytes`, each of which takes `contended` when all streams ask, `alone` by itself.
    #[inline]
    pub(super) fn fetch(&mut self, run: Run, contended: f64, alone: f64) {
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

    /// Sum of what is waited for.
    pub(super) fn waits(&self) -> f64 {
        self.waits
    }
}
