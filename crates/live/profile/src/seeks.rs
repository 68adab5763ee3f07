//! Seek times by distance.
//!
//! The arm walks: from the place of the last read to a place at a given distance, repeatedly over all distances in
//! random order. The rotational position at arrival is random, so that the rotational wait is uniform between zero and
//! a revolution. The shortest of `n` reads at a distance has waited a revolution divided by `n + 1` on average, which
//! is subtracted together with overhead and transfer; the rest is the seek time. Its standard error is about the same,
//! reduced by the condition that a longer seek never takes less time than a shorter one.
//!
//! Distances are in tracks, because cylinders are not visible. Short distances are walked backward, because the drive
//! reads ahead.

use super::lab::{Lab, Phase};
use super::look::DriveTraits;
use super::map::Map;
use super::rotation::Turn;
use super::tracks::transfer_ns;
use super::{lab, Error};

/// Distances above this share of all tracks are evenly spaced; shorter ones are spaced by factors.
const PARTS: (u32, u32) = (10, 24);
/// Reads at each distance: minimum, even if time is short; and target, below which there are fewer distances.
const ROUNDS: (usize, usize) = (10, 50);

/// Seek time over a distance.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct SeekPoint {
    /// Distance in tracks.
    pub tracks: u64,
    /// Seek time in nanoseconds.
    pub ns: u64,
    /// Number of reads that the time was computed from.
    pub reads: u32,
}

/// Distances to measure on a disk with this many tracks: 1, 2, 3, 4, 6, 8, 12, ..., then evenly spaced by one of
/// `parts`.
fn distances(tracks: f64, parts: u32) -> Vec<u64> {
    let even = (tracks / f64::from(parts)).max(1.0);
    let mut distances = Vec::new();
    let mut power = 1.0;
    while power < even {
        distances.push(power as u64);
        if power > 1.0 && power * 1.5 < even {
            distances.push((power * 1.5) as u64);
        }
        power *= 2.0;
    }
    distances.extend((1..parts).map(|part| (even * f64::from(part)) as u64));
    distances.dedup();
    // Distances for which some place has room: see `Walk`.
    distances.retain(|distance| *distance as f64 <= tracks - 5.0);
    distances
}

/// Number of shortest reads that are kept per distance.
const KEPT: usize = 4;
/// A read that is this many mean gaps shorter than the next one was partly a buffer hit; by chance this happens once in
/// 3,000 reads.
const GAPS: f64 = 8.0;

/// The reads at one distance.
#[derive(Debug, Clone)]
struct Reads {
    distance: u64,
    count: u32,
    /// The shortest times without overhead and transfer, sorted.
    least_ns: Vec<f64>,
}

impl Reads {
    fn new(distance: u64) -> Self {
        Self { distance, count: 0, least_ns: Vec::with_capacity(KEPT + 1) }
    }

    fn add(&mut self, ns: f64) {
        self.count += 1;
        let at = self.least_ns.partition_point(|least| *least <= ns);
        self.least_ns.insert(at, ns);
        self.least_ns.truncate(KEPT);
    }

    /// The seek time, given that waits are uniform between zero and a revolution.
    fn seek_ns(&self, turn_ns: f64) -> f64 {
        let gap = turn_ns / f64::from(self.count + 1);
        let first = self.least_ns.windows(2).take_while(|pair| pair[1] - pair[0] > GAPS * gap).count();
        (self.least_ns[first] - gap).max(0.0)
    }
}

pub(super) fn seeks(
    lab: &mut Lab<'_>,
    traits: &DriveTraits,
    turn: &Turn,
    map: &Map,
    overhead_ns: f64,
) -> Result<Vec<SeekPoint>, Error> {
    lab.begin(Phase::Seeks);
    let bus_sector_ns = traits.buffer.map_or(0.0, |buffer| buffer.bus_sector_ns);
    let reads = lab.left().0 / traits.far.0.max(1);
    let parts = ((reads / ROUNDS.1 as u64 / 2) as u32).clamp(PARTS.0, PARTS.1);
    let mut all: Vec<Reads> = distances(map.tracks(), parts).into_iter().map(Reads::new).collect();
    let mut walk = Walk { at: 0, known: false, map };
    let mut rounds = 0;
    while rounds < ROUNDS.0 || lab.has_time() {
        let mut left: Vec<usize> = (0..all.len()).collect();
        lab.shuffle(&mut left);
        while let Some(first) = left.first() {
            let next = left.iter().position(|index| walk.fits(all[*index].distance));
            let Some(next) = next.filter(|_| walk.known) else {
                walk.at = walk.somewhere(lab, all[*first].distance);
                walk.known = lab.read_block(walk.at)?.took() > traits.hit_below();
                continue;
            };
            let reads = &mut all[left.remove(next)];
            walk.go(lab, reads.distance);
            let took = lab.read_block(walk.at)?.took();
            // A buffer hit does not move the arm.
            walk.known = took > traits.hit_below();
            if walk.known {
                let rest = overhead_ns + transfer_ns(turn, map.track_sectors(walk.at), bus_sector_ns);
                reads.add(took.0 as f64 - rest);
            }
        }
        rounds += 1;
    }
    let points = all.iter().filter(|reads| reads.count > 0);
    let times: Vec<_> = points.clone().map(|reads| (reads.seek_ns(turn.ns), f64::from(reads.count))).collect();
    let point = |(reads, ns): (&Reads, f64)| SeekPoint { tracks: reads.distance, ns: ns as u64, reads: reads.count };
    Ok(points.zip(rising(&times)).map(point).collect())
}

/// Position of the arm.
struct Walk<'a> {
    at: u64,
    known: bool,
    map: &'a Map,
}

impl Walk<'_> {
    /// Tracks below and above, less one for the random part and one to stay within the disk.
    fn room(&self) -> (f64, f64) {
        let track = self.map.track(self.at);
        (track - 2.0, self.map.tracks() - track - 3.0)
    }

    fn fits(&self, distance: u64) -> bool {
        let (below, above) = self.room();
        below >= distance as f64 || above >= distance as f64
    }

    /// A random place with room for `distance` tracks above it.
    fn somewhere(&self, lab: &mut Lab<'_>, distance: u64) -> u64 {
        let room = (self.map.tracks() - distance as f64 - 4.0).max(1.0);
        lab.place(0, self.map.sector(room))
    }

    /// Moves over `distance` tracks and a random part of one, so that the angle is random.
    fn go(&mut self, lab: &mut Lab<'_>, distance: u64) {
        let (below, above) = self.room();
        let away = distance as f64 + lab.share_below(1.0);
        let short = distance as f64 * f64::from(PARTS.1) < self.map.tracks();
        let down = below >= distance as f64 && (short || above < distance as f64 || lab.share_below(1.0) < 0.5);
        let track = self.map.track(self.at) + if down { -away } else { away };
        self.at = lab::align(self.map.sector(track));
    }
}

/// Isotonic regression: the non-decreasing sequence nearest to `values`, each with its weight.
fn rising(values: &[(f64, f64)]) -> Vec<f64> {
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for &(value, weight) in values {
        let mut block = (value, weight, 1);
        while let Some(&(before, others, count)) = blocks.last().filter(|last| last.0 > block.0) {
            let sum = block.1 + others;
            block = ((block.0 * block.1 + before * others) / sum, sum, block.2 + count);
            blocks.pop();
        }
        blocks.push(block);
    }
    blocks.iter().flat_map(|(value, _, count)| std::iter::repeat_n(*value, *count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_cover_the_disk() {
        let found = distances(2400.0, 24);
        assert_eq!(found[..13], [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96]);
        assert_eq!(found[13..], (1..24).map(|part| part * 100).collect::<Vec<u64>>());
        assert_eq!(distances(10.0, 24), [1, 2, 3, 4, 5]);
        assert!(distances(3.0, 24).is_empty());
    }

    #[test]
    fn the_shortest_read_less_what_chance_leaves() {
        // Nine reads, a turn of 10: they have waited 1, 2, ..., 9, and the shortest counts less one.
        let mut reads = Reads::new(7);
        for wait in [5.0, 3.0, 9.0, 1.0, 7.0, 8.0, 2.0, 6.0, 4.0] {
            reads.add(100.0 + wait);
        }
        assert_eq!((reads.count, reads.seek_ns(10.0)), (9, 100.0));
        // A much shorter one did not move the arm.
        reads.add(20.0);
        assert!((reads.seek_ns(11.0) - 100.0).abs() < 1e-9, "{reads:?}");
    }

    #[test]
    fn what_falls_is_put_together() {
        assert_eq!(rising(&[(1.0, 1.0), (3.0, 1.0), (2.0, 1.0), (4.0, 1.0)]), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(rising(&[(3.0, 1.0), (2.0, 1.0), (1.0, 2.0)]), [1.75; 3]);
        assert_eq!(rising(&[]), [0.0; 0]);
    }
}
