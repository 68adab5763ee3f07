//! SCAN and LOOK, the elevator: sweep upward by sector number, turn, sweep downward, turn.
//!
//! The sweep is at the first sector of the last request served. Next is the nearest queued request at that sector or in
//! the sweep's direction, in order of arrival among equals; if none is left, the sweep turns. The first sweep goes up.
//! SCAN is from P. J. Denning, "Effects of scheduling on file memory operations", AFIPS SJCC 1967.
//!
//! SCAN continues to the edge of the disk before it turns, LOOK turns at the last request. `full_stroke` makes this
//! difference: it is on in `scan`, which would otherwise equal `look`. The order is the same. The movement to the edge
//! is decided when the device becomes free, and is not interrupted by arrivals.
//!
//! Tracks at the edges are visited twice in quick succession, then not for two sweeps: response times vary more than
//! with CSCAN. A request is served in this sweep or the next, except behind an endless run of requests for one sector.
//! Constant cost for arrivals in the sweep's order, O(log n) for others; no allocation after warm-up.

use headstart_types::{keys, read_keys, KeyTable, Nanos};

use super::sweep::Sweep;
use super::{without_keys, Next, Promise, Queued, Scheduler, Stroke};
use crate::row::SchedulerRow;
use crate::{Device, Request};

pub const ROW: SchedulerRow = SchedulerRow {
    name: "scan",
    summary: "the elevator: up and down by sector number, to the edges of the disk",
    keys: KeyTable::of::<ScanKeys>(),
    build: |keys| Ok(Box::new(Scan::new(read_keys::<ScanKeys>(keys)?.full_stroke))),
};

pub const LOOK: SchedulerRow = SchedulerRow {
    name: "look",
    summary: "the elevator that turns at the last request",
    keys: KeyTable::NONE,
    build: |keys| without_keys(keys, Scan::new(false)),
};

keys! {
    /// Keys of `scan`.
    pub struct ScanKeys {
        /// Whether the arm continues to the edge of the disk before it turns.
        pub full_stroke: bool = true,
    }
}

#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// Requests above `position`, and those at it while the sweep goes up.
    above: Sweep<false>,
    /// Requests below it, and those at it while the sweep goes down.
    below: Sweep<true>,
    /// First sector of the last request served.
    position: u64,
    down: bool,
    full_stroke: bool,
}

impl Scan {
    /// An empty queue, about to sweep up; with `full_stroke` the arm moves to the edge of the disk before it turns.
    #[must_use]
    pub fn new(full_stroke: bool) -> Self {
        Self { full_stroke, ..Self::default() }
    }

    #[inline]
    fn ahead(&mut self) -> Option<Queued> {
        if self.down {
            self.below.pop()
        } else {
            self.above.pop()
        }
    }
}

impl Scheduler for Scan {
    #[inline]
    fn push(&mut self, queued: Queued) {
        let sector = queued.request.sector;
        if sector > self.position || sector == self.position && !self.down {
            self.above.push(queued);
        } else {
            self.below.push(queued);
        }
    }

    #[inline]
    fn pop(&mut self, _now: Nanos, _device: &dyn Device, _parts: &mut Vec<Queued>) -> Next {
        if let Some(queued) = self.ahead() {
            self.position = queued.request.sector;
            return Next::Serve(queued);
        }
        if self.len() == 0 {
            return Next::Nothing;
        }
        let stroke = if self.down { Stroke::ToStart } else { Stroke::ToEnd };
        self.down = !self.down;
        let Some(queued) = self.ahead() else { return Next::Nothing };
        self.position = queued.request.sector;
        if self.full_stroke {
            Next::ServeAfter(stroke, queued)
        } else {
            Next::Serve(queued)
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.above.len() + self.below.len()
    }

    fn promise(&self, _request: &Request) -> Promise {
        Promise::NextSweep
    }
}
