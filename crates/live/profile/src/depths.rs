//! Queue depth: random reads by size, one at a time, and by the number outstanding.

use headstart_types::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

use super::lab::{align, Lab, Phase};
use super::probe::ALIGNMENT;
use super::{Error, Read};

/// Share of the best throughput from which on a device counts as saturated. Drives with an arm vary more.
const SATURATED: f64 = 0.95;
const SATURATED_ARM: f64 = 0.9;
/// Sizes of random reads in sectors, as powers of two: 4 KiB to 16 MiB.
const SIZES: std::ops::RangeInclusive<u32> = 3..=15;
/// Numbers of outstanding reads, as powers of two: for drives with an arm, for devices without.
const DEPTHS_ARM: std::ops::RangeInclusive<u32> = 0..=5;
const DEPTHS_FLAT: std::ops::RangeInclusive<u32> = 0..=8;
/// Minimum and maximum number of reads of a point, and of a size one at a time.
const READS: (usize, usize) = (16, 5_000);
const TIMED: (usize, usize) = (16, 2_000);
/// Devices without an arm: sectors of the longer reads, 256 KiB, and how many of them are outstanding.
const LONG: u32 = 512;
const DEPTHS_LONG: std::ops::RangeInclusive<u32> = 0..=5;

/// Amount of reading on a device without an arm.
pub(super) struct Effort {
    /// Each size is this many powers of two above the previous one.
    step: usize,
    /// Minimum number of reads per size.
    timed: usize,
    /// Sectors of a longer read.
    long: u32,
}

pub(super) const DEVICE: Effort = Effort { step: 1, timed: TIMED.0, long: LONG };
/// For object stores: reads are slow and may cost money, and a connection's rate shows only in longer reads.
pub(super) const OBJECT_STORE: Effort = Effort { step: 2, timed: 6, long: 2048 };

/// Random reads of one size with a constant number of outstanding reads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Size of a read in bytes.
    pub request_bytes: u64,
    /// Number of outstanding reads.
    pub depth: usize,
    /// Number of reads.
    pub reads: usize,
    /// Reads per second.
    pub requests_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
}

/// Random reads of one size, one at a time.
#[derive(Debug, Clone)]
pub(super) struct Timed {
    pub sectors: u32,
    /// Time of each read.
    pub times_ns: Vec<f64>,
}

impl Timed {
    pub fn mean_ns(&self) -> f64 {
        self.times_ns.iter().sum::<f64>() / self.times_ns.len().max(1) as f64
    }

    pub fn point(&self) -> Point {
        Point::new(self.sectors, 1, self.times_ns.len(), self.times_ns.iter().sum())
    }
}

impl Point {
    fn new(sectors: u32, depth: usize, reads: usize, took_ns: f64) -> Self {
        let requests_per_s = reads as f64 * 1e9 / took_ns.max(1.0);
        let request_bytes = u64::from(sectors) * headstart_device::SECTOR_BYTES;
        Self { request_bytes, depth, reads, requests_per_s, bytes_per_s: requests_per_s * request_bytes as f64 }
    }

    pub(super) fn sectors(&self) -> u32 {
        (self.request_bytes / headstart_device::SECTOR_BYTES) as u32
    }
}

/// Random reads of 4 KiB by the number outstanding.
pub(super) fn depths(lab: &mut Lab<'_>, arm: bool) -> Result<Vec<Point>, Error> {
    lab.begin(if arm { Phase::Depths } else { Phase::FlatDepths });
    let depths: Vec<usize> = if arm { DEPTHS_ARM } else { DEPTHS_FLAT }.map(|power| 1 << power).collect();
    points(lab, &depths, ALIGNMENT)
}

/// Longer random reads by the number outstanding.
pub(super) fn long_depths(lab: &mut Lab<'_>, effort: &Effort) -> Result<Vec<Point>, Error> {
    lab.begin(Phase::LongDepths);
    let depths: Vec<usize> = DEPTHS_LONG.map(|power| 1 << power).collect();
    points(lab, &depths, effort.long.min(u32::try_from(lab.sectors() / 4).unwrap_or(u32::MAX)))
}

/// Random reads, one at a time, by size.
pub(super) fn sizes(lab: &mut Lab<'_>, effort: &Effort) -> Result<Vec<Timed>, Error> {
    lab.begin(Phase::Sizes);
    let most = lab.sectors() / 4;
    let sizes: Vec<u32> =
        SIZES.step_by(effort.step).map(|power| 1 << power).filter(|size| u64::from(*size) <= most).collect();
    let mut all = Vec::with_capacity(sizes.len());
    for (index, sectors) in sizes.iter().copied().enumerate() {
        let until = lab.elapsed() + Nanos(lab.left().0 / (sizes.len() - index) as u64);
        let mut times_ns = Vec::new();
        while times_ns.len() < effort.timed || times_ns.len() < TIMED.1 && lab.elapsed() < until {
            let place = align(lab.anywhere(sectors));
            times_ns.push(lab.read(place, sectors)?.took().0 as f64);
        }
        all.push(Timed { sectors, times_ns });
    }
    Ok(all)
}

/// Measures one point for each of `depths`, with equal shares of the time.
fn points(lab: &mut Lab<'_>, depths: &[usize], sectors: u32) -> Result<Vec<Point>, Error> {
    let mut points = Vec::with_capacity(depths.len());
    for (index, depth) in depths.iter().enumerate() {
        let time = Nanos(lab.left().0 / (depths.len() - index) as u64);
        points.push(point(lab, sectors, *depth, time)?);
    }
    Ok(points)
}

/// Measures a point; a few reads first determine how many fit into the time.
fn point(lab: &mut Lab<'_>, sectors: u32, depth: usize, time: Nanos) -> Result<Point, Error> {
    let few = READS.0.max(2 * depth);
    let (mut reads, mut took) = (few, batch(lab, sectors, depth, few)?);
    let more = (few as f64 * time.0 as f64 / took.0.max(1) as f64) as usize;
    if more >= 2 * few {
        reads = more.min(READS.1);
        took = batch(lab, sectors, depth, reads)?;
    }
    Ok(Point::new(sectors, depth, reads, took.0 as f64))
}

/// Number of reads in a batch: all of them end before the next batch begins.
pub(super) fn piece(depth: usize) -> usize {
    READS.0.max(32 * depth)
}

fn batch(lab: &mut Lab<'_>, sectors: u32, depth: usize, count: usize) -> Result<Nanos, Error> {
    let reads: Vec<Read> = (0..count).map(|_| Read { sector: align(lab.anywhere(sectors)), sectors }).collect();
    // In batches, so that a stop does not wait for all reads.
    let mut took = Nanos::ZERO;
    for piece in reads.chunks(piece(depth)) {
        took += lab.read_together(piece, depth)?;
    }
    Ok(took)
}

/// The first of `points` whose throughput is close to the best.
pub(super) fn saturating(points: &[Point], arm: bool) -> Option<&Point> {
    let share = if arm { SATURATED_ARM } else { SATURATED };
    let best = points.iter().map(|point| point.bytes_per_s).fold(0.0, f64::max);
    points.iter().find(|point| point.bytes_per_s >= share * best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_next_to_the_best_saturates() {
        let point =
            |depth, bytes_per_s| Point { request_bytes: 4096, depth, reads: 1, requests_per_s: 1.0, bytes_per_s };
        let points = [point(1, 10.0), point(2, 20.0), point(4, 38.5), point(8, 40.0), point(16, 39.0)];
        assert_eq!(saturating(&points, false).map(|point| point.depth), Some(4));
        assert_eq!(saturating(&points[..3], true).map(|point| point.depth), Some(4));
        assert_eq!(saturating(&[], false), None);
    }
}
