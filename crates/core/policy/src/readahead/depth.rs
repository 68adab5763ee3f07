//! The depth of competitive prefetching, computed from the arm's past movements; used in simulations and on observed
//! machines alike.
//!
//! Source: C. Li, K. Shen and A. E. Papathanasiou, "Competitive Prefetching for Concurrent Sequential I/O", EuroSys
//! 2007, equation (8) and section 5: the depth is what is transferred within the average switch, which is half a
//! rotation plus an exponentially weighted moving average of past seek times, each computed from its distance by the
//! drive's seek curve.
//!
//! Cost: constant per I/O. Memory: a few words per disk.

use schemars::JsonSchema;
use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use headstart_types::{Disk, DriveFacts, Nanos};

/// The average switch time and the depth that follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct CompetitiveDepth {
    seek_ns: f64,
    half_turn: Nanos,
    weight: f64,
}

impl CompetitiveDepth {
    /// The average seek starts with `mean_seek`, the drive's own. `weight`, above 0 and at most 1, is the weight of the
    /// latest seek in the average.
    #[must_use]
    pub fn new(mean_seek: Nanos, half_turn: Nanos, weight: f64) -> Self {
        Self { seek_ns: mean_seek.0 as f64, half_turn, weight }
    }

    /// Adds an observed seek time.
    pub fn seen(&mut self, seek: Nanos) {
        self.seek_ns += (seek.0 as f64 - self.seek_ns) * self.weight;
    }

    /// The expected switch time: seek plus half a rotation.
    #[must_use]
    pub fn switch(&self) -> Nanos {
        Nanos(self.seek_ns.round() as u64) + self.half_turn
    }

    /// The depth in bytes at a transfer rate of `bytes_per_second`.
    #[must_use]
    pub fn bytes(&self, bytes_per_second: f64) -> f64 {
        (self.seek_ns + self.half_turn.0 as f64) * bytes_per_second / 1e9
    }

    /// The depth in whole blocks: the nearest number, at least one.
    #[must_use]
    pub fn blocks(&self, bytes_per_second: f64, block_bytes: u64) -> u64 {
        (self.bytes(bytes_per_second) / block_bytes.max(1) as f64).round().max(1.0) as u64
    }
}

/// Which I/Os count as a seek. The paper only says "the seek distances of past I/O operations".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Seeks {
    /// I/Os that do not continue the previous one: the average predicts the next *switch*, a movement that interrupts a
    /// sequential transfer (section 1).
    #[default]
    Switches,
    /// All I/Os, where one that continues the previous one counts as a seek of zero time: the more sequential the past,
    /// the smaller the depth, down to half a rotation.
    All,
}

/// Derives seek times from the places of I/Os in the order of service.
#[derive(Debug, Clone)]
pub struct SeekWatch {
    facts: DriveFacts,
    seeks: Seeks,
    /// For each disk: where and when its last I/O ended.
    last: BTreeMap<Disk, (u64, Nanos)>,
}

impl SeekWatch {
    /// A watch of disks with these facts.
    #[must_use]
    pub fn new(facts: DriveFacts, seeks: Seeks) -> Self {
        Self { facts, seeks, last: BTreeMap::new() }
    }

    /// The facts of the disks.
    #[must_use]
    pub fn facts(&self) -> &DriveFacts {
        &self.facts
    }

    /// Records that `disk` served `sectors` by `now`. Returns the time of its seek if it counts: a disk's first I/O
    /// does not, nor does one that continues an I/O of the same instant, because both are one I/O.
    ///
    /// The caller guarantees that `sectors` is not empty, and that I/Os of a disk are reported in the order of service.
    pub fn served(&mut self, now: Nanos, disk: Disk, sectors: Range<u64>) -> Option<Nanos> {
        let (end, at) = self.last.insert(disk, (sectors.end, now))?;
        match (sectors.start == end, self.seeks) {
            (false, _) => Some(self.facts.seek_between(end.saturating_sub(1), sectors.start)),
            (true, Seeks::All) if at != now => Some(Nanos::ZERO),
            (true, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_types::RateBand;
    use proptest::prelude::*;

    fn ms(ms: f64) -> Nanos {
        Nanos::from_millis_f64(ms)
    }

    /// d cylinders of 10 sectors take d ms.
    fn facts() -> DriveFacts {
        let band = RateBand { first: 0, sectors: 1000, first_cylinder: 0, cylinders: 100, bytes_per_second: 40e6 };
        let seek = (0..100).map(|distance| ms(f64::from(distance))).collect();
        DriveFacts { seek, mean_seek: ms(33.3), half_turn: ms(3.0), bands: [band].into(), media_factor: 1.0 }
    }

    #[test]
    fn the_paper_s_depths() {
        // Section 5: (7.53 + 3.00) ms at 37.3 MB/s are 392,769 bytes, "393 KB"; in pages 95.89. 7.98 ms, half a turn
        // included, at 55.8 and 80.9 MB/s are 445,284 and 645,582, "446 KB" and "646 KB".
        let ibm = CompetitiveDepth::new(ms(7.53), ms(3.0), 0.1);
        assert_eq!((ibm.bytes(37.3e6).round() as u64, ibm.blocks(37.3e6, 4096)), (392_769, 96));
        assert_eq!(ibm.switch(), ms(10.53));
        let seagate = CompetitiveDepth::new(ms(4.98), ms(3.0), 0.1);
        assert_eq!([55.8e6, 80.9e6].map(|rate| seagate.bytes(rate).round() as u64), [445_284, 645_582]);
        assert_eq!((seagate.blocks(1.0, 4096), seagate.blocks(55.8e6, 0)), (1, 445_284));
    }

    #[test]
    fn seeks_move_the_average_by_their_weight() {
        // 8 ms; 4 ms at a quarter: 8 - 1 = 7; 3 ms: 7 - 1 = 6. 6 + 3 ms at 10 MB/s: 90,000 bytes.
        let mut depth = CompetitiveDepth::new(ms(8.0), ms(3.0), 0.25);
        depth.seen(ms(4.0));
        depth.seen(ms(3.0));
        assert_eq!((depth.switch(), depth.bytes(10e6)), (ms(9.0), 90_000.0));
        // With a weight of 1 only the last one counts.
        let mut last = CompetitiveDepth::new(ms(8.0), ms(3.0), 1.0);
        last.seen(ms(2.0));
        assert_eq!(last.switch(), ms(5.0));
    }

    #[test]
    fn only_switches_count_by_default() {
        let mut watch = SeekWatch::new(facts(), Seeks::Switches);
        let (one, other) = (Disk(0), Disk(1));
        // The arm's previous position is unknown.
        assert_eq!(watch.served(Nanos(1), one, 100..108), None);
        // The same I/O, block by block; the next one behind it.
        assert_eq!(watch.served(Nanos(1), one, 108..116), None);
        assert_eq!(watch.served(Nanos(5), one, 116..124), None);
        // From cylinder 12 (sector 123) to 50; back within 50 to an earlier sector: no distance, but a switch.
        assert_eq!(watch.served(Nanos(6), one, 500..508), Some(ms(38.0)));
        assert_eq!(watch.served(Nanos(7), one, 500..508), Some(Nanos::ZERO));
        // Each disk has an arm of its own.
        assert_eq!(watch.served(Nanos(7), other, 900..908), None);
        assert_eq!(watch.served(Nanos(8), one, 400..410), Some(ms(10.0)));
        assert_eq!(watch.served(Nanos(9), other, 0..8), Some(ms(90.0)));
    }

    proptest! {
        #[test]
        fn the_average_is_a_sum_over_all_that_has_been(
            served in prop::collection::vec((0u32..2, 0u64..990, 1u64..9, any::<bool>(), any::<bool>()), 0..60),
            weight in 0.01f64..1.0, all: bool,
        ) {
            let seeks = if all { Seeks::All } else { Seeks::Switches };
            let (mut depth, mut watch) = (CompetitiveDepth::new(ms(33.3), ms(3.0), weight), SeekWatch::new(facts(), seeks));
            // The whole past, examined again for each I/O.
            let mut past: Vec<(u32, Range<u64>, u64)> = Vec::new();
            let (mut counted, mut now) = (Vec::new(), 0);
            for (disk, place, length, goes_on, at_once) in served {
                now += u64::from(!at_once);
                let before = past.iter().rev().find(|(other, ..)| *other == disk).cloned();
                let start = before.as_ref().filter(|(_, sectors, _)| goes_on && sectors.end < 990);
                let start = start.map_or(place, |(_, sectors, _)| sectors.end);
                if let Some((_, sectors, at)) = before {
                    let distance = (start / 10).abs_diff((sectors.end - 1) / 10);
                    let same = start == sectors.end;
                    counted.extend((!same || all && at != now).then_some(if same { 0.0 } else { distance as f64 * 1e6 }));
                }
                if let Some(seek) = watch.served(Nanos(now), Disk(disk), start..start + length) {
                    depth.seen(seek);
                }
                past.push((disk, start..start + length, now));
                let kept = |newer: usize| (1.0 - weight).powi(newer as i32);
                let sum: f64 = counted.iter().rev().zip(0..).map(|(seek, newer)| weight * kept(newer) * seek).sum();
                let bytes = (33.3e6 * kept(counted.len()) + sum + 3e6) * 10e6 / 1e9;
                prop_assert!((depth.bytes(10e6) - bytes).abs() < 1e-3, "{} and {bytes}", depth.bytes(10e6));
            }
        }
    }

    #[test]
    fn all_can_count() {
        let mut watch = SeekWatch::new(facts(), Seeks::All);
        assert_eq!(watch.served(Nanos(1), Disk(0), 100..108), None);
        assert_eq!(watch.served(Nanos(1), Disk(0), 108..116), None);
        assert_eq!(watch.served(Nanos(5), Disk(0), 116..124), Some(Nanos::ZERO));
        assert_eq!(watch.served(Nanos(6), Disk(0), 500..508), Some(ms(38.0)));
    }
}
