//! Adapts the read-ahead to the seeks of the arm: request positions in, read-ahead sizes out.
//!
//! Source: Li, Shen and Papathanasiou, EuroSys 2007, section 5: the seek distances of past requests pass through the
//! drive's seek curve into a moving average; adding half a revolution and multiplying by the rate at the place gives
//! the depth. The averages are the code of the policy `competitive`. The kernel has one read-ahead for all streams,
//! where the paper has one per stream; therefore the rate is averaged over the places of the switches, like their
//! times.
//!
//! If faults of mapped files dominate and do not use what is read around them, the read-ahead is lowered, as the
//! policy's `fault_watch` decides.
//!
//! A new value is written only if it differs by an eighth, and at most once a second: a moving average of random seeks
//! varies by some 5 % of the depth (standard deviation; weight 1/16, seeks of 7.5 +- 3 ms), which is not worth
//! following. Cost: constant per request.

use std::ops::Range;

use headstart_policy::readahead::{CompetitiveDepth, FaultWatch, SeekWatch, Seeks, FLOOR_BYTES, PART_BYTES};
use headstart_types::{Disk, DriveFacts, Nanos, SECTOR_BYTES};
use schemars::JsonSchema;
use serde::Serialize;

use super::events::FaultEvent;
use super::faults::Taken;

/// When to adapt. The values are our choice: the paper prints none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Weight of the latest seek in the moving averages: the default of the policy `competitive`.
    pub weight: f64,
    /// Minimum relative change that is written.
    pub least_share: f64,
    /// Minimum time between two writes.
    pub least_time: Nanos,
}

impl Default for Pace {
    fn default() -> Self {
        Self { weight: 0.0625, least_share: 0.125, least_time: Nanos::from_millis(1_000) }
    }
}

/// Statistics of a watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Seen {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests that did not start where the previous one ended.
    pub switches: u64,
    /// Number of events that the kernel overwrote before they were read.
    pub lost: u64,
    /// Moving average of the seek times.
    pub seek_ns: u64,
    /// Moving average of the transfer rates at the places that the arm moved to.
    pub bytes_per_second: f64,
    /// The resulting depth in bytes, not rounded.
    pub bytes: f64,
    /// Number of values written to `read_ahead_kb`.
    pub writes: u64,
    /// Number of page faults for which the kernel read the surrounding pages.
    pub read_arounds: u64,
    /// Bytes read around faults, beyond the 64 KiB part that holds the fault.
    pub around_bytes: u64,
    /// The part of `around_bytes` that was mapped later.
    pub around_used_bytes: u64,
    /// Number of fault events that the kernel overwrote before they were read.
    pub lost_faults: u64,
    /// Number of times that the tracing of faults was paused because there were too many.
    pub fault_pauses: u64,
    /// Whether the read-ahead was reduced because of faults.
    pub low_for_faults: bool,
}

/// The averages and the current value.
#[derive(Debug)]
pub(super) struct Adapter {
    pace: Pace,
    facts: DriveFacts,
    watch: SeekWatch,
    depth: CompetitiveDepth,
    rate: f64,
    page_bytes: u64,
    faults: FaultWatch,
    /// Whether faults are traced.
    sees_faults: bool,
    /// Maximum read-around of a fault: files keep the value that was set when they were opened.
    window_bytes: u64,
    /// The current value in pages, and its time.
    pages: u64,
    since: Option<Nanos>,
    seen: Seen,
}

impl Adapter {
    /// Starts without a current value, for a drive with these facts and the mean rate `rate`.
    pub fn new(facts: &DriveFacts, rate: f64, page_bytes: u64, pace: Pace) -> Self {
        Self {
            pace,
            facts: facts.clone(),
            watch: SeekWatch::new(facts.clone(), Seeks::Switches),
            depth: CompetitiveDepth::new(facts.mean_seek, facts.half_turn, pace.weight),
            rate,
            page_bytes,
            faults: FaultWatch::new(),
            sees_faults: false,
            window_bytes: FLOOR_BYTES,
            pages: 0,
            since: None,
            seen: Seen::default(),
        }
    }

    /// The drive served these sectors by `now`. The caller guarantees that `sectors` is not empty and the order of
    /// service.
    pub fn served(&mut self, now: Nanos, sectors: Range<u64>) {
        self.seen.requests += 1;
        if self.sees_faults {
            self.faults.served((sectors.end - sectors.start).saturating_mul(SECTOR_BYTES));
        }
        let first = sectors.start;
        if let Some(seek) = self.watch.served(now, Disk(0), sectors) {
            self.seen.switches += 1;
            self.depth.seen(seek);
            self.rate += (self.facts.rate_at(first) - self.rate) * self.pace.weight;
        }
    }

    /// Requests were lost, so the position of the arm is unknown.
    pub fn lost(&mut self, events: u64) {
        self.seen.lost += events;
        self.watch = SeekWatch::new(self.facts.clone(), Seeks::Switches);
    }

    /// Processes an event of a fault.
    pub fn fault(&mut self, event: FaultEvent) {
        match event {
            FaultEvent::Fault { file, offset } => self.faults.fault(file, offset),
            FaultEvent::Filled { file, offset } => self.faults.filled(file, offset, self.window_bytes),
            FaultEvent::Mapped { file, first, last } => self.faults.mapped(file, first, last),
        }
    }

    /// Processes the result of a look at the faults: whether they are traced from now on.
    pub fn took_faults(&mut self, taken: Taken, pauses: u64) {
        if taken.lost > 0 || taken.blind {
            self.faults.lost();
        }
        self.sees_faults = !taken.blind;
        self.seen.lost_faults += taken.lost;
        self.seen.fault_pauses = pauses;
    }

    /// The value in pages to write at `now`; `None` if nothing is to be written.
    pub fn wants(&mut self, now: Nanos) -> Option<u64> {
        let competitive = self.depth.blocks(self.rate, self.page_bytes);
        let least = (self.faults.depth_bytes(self.depth.bytes(self.rate)) / self.page_bytes as f64).round() as u64;
        let wanted = competitive.min(least.max(1));
        let Some(since) = self.since else { return Some(wanted) };
        let far = wanted.abs_diff(self.pages) as f64 >= (self.pages as f64 * self.pace.least_share).max(1.0);
        (far && now >= since + self.pace.least_time).then_some(wanted)
    }

    /// `pages` were written at `now`.
    pub fn wrote(&mut self, now: Nanos, pages: u64) {
        self.seen.writes += 1;
        self.found(pages * self.page_bytes);
        (self.pages, self.since) = (pages, Some(now));
    }

    /// The read-ahead in bytes of files that are already open.
    pub fn found(&mut self, bytes: u64) {
        self.window_bytes = self.window_bytes.max(bytes);
    }

    /// The statistics.
    pub fn seen(&self) -> Seen {
        let seek = self.depth.switch().saturating_sub(self.facts.half_turn);
        let totals = self.faults.totals();
        Seen {
            seek_ns: seek.0,
            bytes_per_second: self.rate,
            bytes: self.depth.bytes(self.rate),
            read_arounds: totals.around,
            around_bytes: totals.brought * PART_BYTES,
            around_used_bytes: totals.used * PART_BYTES,
            low_for_faults: self.faults.is_low(),
            ..self.seen
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_types::RateBand;
    use proptest::prelude::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// Two bands of 50 cylinders of 10 sectors, at 40 and 20 MB/s; d cylinders take d / 10 ms; mean 6 ms, half a
    /// revolution 4 ms.
    fn facts() -> DriveFacts {
        let band = |first, first_cylinder, bytes_per_second| RateBand {
            first,
            sectors: 500,
            first_cylinder,
            cylinders: 50,
            bytes_per_second,
        };
        DriveFacts {
            seek: (0..100).map(|distance| Nanos(distance * 100_000)).collect(),
            mean_seek: MS(6),
            half_turn: MS(4),
            bands: [band(0, 0, 40e6), band(500, 50, 20e6)].into(),
            media_factor: 1.0,
        }
    }

    fn adapter(weight: f64) -> Adapter {
        Adapter::new(&facts(), 30e6, 4000, Pace { weight, ..Pace::default() })
    }

    #[test]
    fn by_hand() {
        let mut adapter = adapter(0.5);
        // (6 + 4) ms at 30 MB/s: 300,000 bytes, 75 pages of 4000.
        assert_eq!(adapter.wants(MS(0)), Some(75));
        adapter.wrote(MS(0), 75);
        assert_eq!(adapter.wants(MS(5000)), None);
        // From cylinder 1 to 90: 8.9 ms; (6 + 8.9) / 2 = 7.45 ms; rate (30 + 20) / 2 = 25: 11.45 ms are 286,250 bytes.
        adapter.served(MS(1), 0..8);
        adapter.served(MS(2), 8..16);
        adapter.served(MS(3), 900..910);
        let seen = adapter.seen();
        assert_eq!((seen.requests, seen.switches, seen.seek_ns), (3, 1, 7_450_000));
        assert_eq!((seen.bytes_per_second, seen.bytes), (25e6, 286_250.0));
        // 72 pages: the difference of 3 to 75 is not written.
        assert_eq!(adapter.wants(MS(5000)), None);
        // Repeatedly between cylinders 91 and 90: 0.1 ms at 20 MB/s are 82,000 bytes, 21 pages (20.5).
        for _ in 0..40 {
            adapter.served(MS(4), 915..920);
            adapter.served(MS(4), 900..910);
        }
        assert_eq!((adapter.wants(MS(999)), adapter.wants(MS(1000))), (None, Some(21)));
        adapter.wrote(MS(1000), 21);
        assert_eq!((adapter.wants(MS(9000)), adapter.seen().writes), (None, 2));
    }

    #[test]
    fn after_a_loss_the_arm_is_anywhere() {
        let mut adapter = adapter(0.5);
        adapter.served(MS(1), 0..8);
        adapter.lost(5);
        adapter.served(MS(2), 900..910);
        adapter.served(MS(3), 910..920);
        let seen = adapter.seen();
        assert_eq!((seen.requests, seen.switches, seen.lost, seen.seek_ns), (3, 0, 5, 6_000_000));
    }

    proptest! {
        /// Compared with the paper's formulas, computed separately: the depth is that of the averages, values are
        /// written at most as often as allowed, and only if they differ.
        #[test]
        fn any_ios(places in prop::collection::vec((0u64..990, 1u64..10, 0u64..700), 1..200)) {
            let (facts, mut adapter) = (facts(), adapter(0.25));
            let (mut seek, mut rate, mut now) = (6e6, 30e6, MS(0));
            let mut end = None;
            let mut written: Vec<(Nanos, u64)> = Vec::new();
            for (first, sectors, wait) in places {
                now += MS(wait);
                adapter.served(now, first..first + sectors);
                if let Some(end) = end.filter(|end| *end != first) {
                    seek += (facts.seek_between(end - 1, first).0 as f64 - seek) * 0.25;
                    rate += (facts.rate_at(first) - rate) * 0.25;
                }
                end = Some(first + sectors);
                if let Some(pages) = adapter.wants(now) {
                    prop_assert_eq!(pages, ((seek + 4e6) * rate / 1e9 / 4000.0).round().max(1.0) as u64);
                    adapter.wrote(now, pages);
                    written.push((now, pages));
                }
            }
            for pair in written.windows(2) {
                prop_assert!(pair[1].0 >= pair[0].0 + MS(1000));
                prop_assert!(pair[1].1.abs_diff(pair[0].1) * 8 >= pair[0].1);
            }
            prop_assert!((adapter.seen().bytes - (seek + 4e6) * rate / 1e9).abs() < 1.0);
        }
    }
}
