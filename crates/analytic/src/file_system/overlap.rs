//! How long the application waits for its fetches, when it computes in between. Ours, not the paper's, which has no
//! think times in its equations.
//!
//! With prefetching the file system has one prefetch under way while the application consumes what it has: coming to the
//! first block of a fetch, it triggers the next. Fetch i + 1, which takes S, is therefore waited for as long as
//! max(0, S - C), C being what the application spends on the blocks of fetch i. The first is waited for in full. Without
//! prefetching a stream hides nothing of its own fetches, but while it computes the disk serves the others.
//!
//! n streams go in step: each asks for a fetch while the others ask for theirs, so S is the time of all n. That is exact
//! where the disk never rests, and where everything is hidden; in between it errs on the side of waiting. What thinking
//! does to the length of the queue, and so to seeks, is left out.

use super::parameters::{Costs, FileSystem, Prefetch, Work};
use super::requests::Run;

/// Adds up the waits of one file's fetches, in order.
pub(super) struct Overlap {
    request_bytes: u64,
    /// What the application spends after or within each of its requests that can pass during a fetch.
    per_request: f64,
    per_byte: f64,
    prefetching: bool,
    /// Where the next fetch begins in the file, and where the last one began.
    next: u64,
    last: u64,
    waits: f64,
    contended: f64,
}

impl Overlap {
    pub(super) fn new(file_system: &FileSystem, work: &Work) -> Self {
        let (per_call, per_byte) = match file_system.costs {
            Costs::Tables => (0.0, 0.0),
            Costs::EachRequest => (file_system.system_call_ns, file_system.copy_ns_per_kib / 1024.0),
        };
        Self {
            request_bytes: work.request_bytes,
            per_request: work.think_ns + per_call,
            per_byte,
            prefetching: file_system.prefetch != Prefetch::Off,
            next: 0,
            last: 0,
            waits: 0.0,
            contended: 0.0,
        }
    }

    /// `run.count` fetches of `run.bytes`, each of which takes `contended` when all streams ask, `alone` by itself.
    #[inline]
    pub(super) fn fetch(&mut self, run: Run, contended: f64, alone: f64) {
        self.contended += contended * run.count as f64;
        if self.per_request == 0.0 && self.per_byte == 0.0 {
            self.waits += contended * run.count as f64;
            return;
        }
        for _ in 0..run.count {
            self.waits += match self.spent() {
                spent if self.prefetching => (contended - spent).max(0.0),
                spent => (contended - spent).max(alone),
            };
            self.last = self.next;
            self.next += run.bytes;
        }
    }

    /// What the application spends from the first block of the last fetch to that of the next.
    fn spent(&self) -> f64 {
        let begun = |offset: u64| offset / self.request_bytes;
        (begun(self.next) - begun(self.last)) as f64 * self.per_request + (self.next - self.last) as f64 * self.per_byte
    }

    /// Sum of what is waited for.
    pub(super) fn waits(&self) -> f64 {
        self.waits
    }

    /// The same if nothing were hidden.
    pub(super) fn contended(&self) -> f64 {
        self.contended
    }
}
