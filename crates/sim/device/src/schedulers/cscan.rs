//! CSCAN and CLOOK: sweep upward by sector number, then start again from the lowest.
//!
//! The sweep is at the first sector of the last request served. Next is the lowest queued request at or above it, in
//! order of arrival among equals; if none is left above, the sweep starts again at the lowest. The constant direction
//! suits a drive that reads ahead (kimbrel96 section 4.4 uses CSCAN for that reason). Both names are from Seltzer, Chen
//! and Ousterhout, "Disk Scheduling Revisited", USENIX Winter 1990: CSCAN continues to the end of the disk and starts
//! again from its first sector, CLOOK goes from the last request straight to the lowest. The order is the same; only
//! the arm's path differs.
//!
//! `full_stroke` moves the arm over the whole disk. It is off by default, also in `cscan`: it gains nothing, drivers
//! that call themselves CSCAN omit it, and our reproduction of kimbrel96 is measured without it. A full stroke is
//! decided when the device becomes free, and is not interrupted by arrivals.
//!
//! The sweep is at a request's first sector, not at the head (its end), so that two requests for one sector are
//! consecutive instead of a whole sweep apart.
//!
//! Stored as this sweep and the next: constant cost for sequential arrivals, O(log n) for others; no allocation after
//! warm-up. A request waits at most for the rest of this sweep and the next, except behind an endless run of requests
//! for one sector.

use std::mem;

use headstart_types::{keys, read_keys, KeyTable, Nanos};

use super::sweep::Sweep;
use super::{without_keys, Next, Promise, Queued, Scheduler, Stroke};
use crate::row::SchedulerRow;
use crate::{Device, Request};

pub const ROW: SchedulerRow = SchedulerRow {
    name: "cscan",
    summary: "upward by sector number, then again from the lowest; full_stroke = true goes over the whole disk",
    keys: KeyTable::of::<CscanKeys>(),
    build: |keys| Ok(Box::new(Cscan::new(read_keys::<CscanKeys>(keys)?.full_stroke))),
};

pub const CLOOK: SchedulerRow = SchedulerRow {
    name: "clook",
    summary: "as cscan, never beyond the last request",
    keys: KeyTable::NONE,
    build: |keys| without_keys(keys, Cscan::new(false)),
};

keys! {
    /// Keys of `cscan`.
    pub struct CscanKeys {
        /// Whether the arm moves to the end of the disk and to its first sector before the next sweep.
        // Not written into resolved scenarios: the golden results are older than the key.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        #[schemars(extend("default" = false))]
        pub full_stroke: bool = false,
    }
}

#[derive(Debug, Clone, Default)]
pub struct Cscan {
    /// Requests at or above `position`.
    this_sweep: Sweep<false>,
    /// Requests below it.
    next_sweep: Sweep<false>,
    /// First sector of the last request served.
    position: u64,
    full_stroke: bool,
}

impl Cscan {
    /// An empty queue; with `full_stroke` the arm moves to the end of the disk and to its first sector before it starts
    /// again.
    #[must_use]
    pub fn new(full_stroke: bool) -> Self {
        Self { full_stroke, ..Self::default() }
    }
}

impl Scheduler for Cscan {
    #[inline]
    fn push(&mut self, queued: Queued) {
        let sweep = if queued.request.sector >= self.position { &mut self.this_sweep } else { &mut self.next_sweep };
        sweep.push(queued);
    }

    #[inline]
    fn pop(&mut self, _now: Nanos, _device: &dyn Device, _parts: &mut Vec<Queued>) -> Next {
        let again = self.this_sweep.is_empty();
        if again {
            if self.next_sweep.is_empty() {
                return Next::Nothing;
            }
            mem::swap(&mut self.this_sweep, &mut self.next_sweep);
        }
        let Some(queued) = self.this_sweep.pop() else { return Next::Nothing };
        self.position = queued.request.sector;
        if again && self.full_stroke {
            Next::ServeAfter(Stroke::ToEndAndStart, queued)
        } else {
            Next::Serve(queued)
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.this_sweep.len() + self.next_sweep.len()
    }

    fn promise(&self, _request: &Request) -> Promise {
        Promise::NextSweep
    }
}
