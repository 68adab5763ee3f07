//! Arm, heads and platters: how long a movement takes and when a run of sectors has passed.

use headstart_types::Nanos;

use super::bus::Bus;
use super::geometry::{Access, HeadPosition, Zone};
use super::rotation::Tick;
use super::seek::SeekTable;

/// The moving parts.
#[derive(Debug, Clone)]
pub(crate) struct Arm {
    pub zones: Vec<Zone>,
    /// Addressable sectors: at most what the zones hold.
    pub sectors: u64,
    pub seek: SeekTable,
    pub rpm: u32,
    pub surfaces: u32,
    pub head_switch: Nanos,
    /// Additional time of a write's movement, possibly negative, in nanoseconds.
    pub write_settle: i64,
}

/// The times of moving to a place and passing over a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage {
    /// When the first sector has passed.
    pub first: Nanos,
    pub seek: Nanos,
    pub rotation: Nanos,
    /// When the last sector has passed.
    pub done: Nanos,
    /// Where the head is then.
    pub head: HeadPosition,
    pub last: Piece,
    /// See [`Arm::pass_to_bus`]; zero if the bus was not considered.
    pub bus_end: Nanos,
}

/// The last part of a passage: an unbroken run within one zone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub zone: usize,
    pub from: u64,
    /// The path and tick at which it begins.
    pub start: u64,
    pub begun: Tick,
    /// The sector after the last, its path and the tick that ends it.
    pub end: u64,
    pub path: u64,
    pub tick: Tick,
}

impl Arm {
    /// Index of the zone that holds `sector`.
    #[inline]
    pub fn zone_of(&self, sector: u64) -> usize {
        if self.zones.len() == 1 {
            0
        } else {
            self.zones.partition_point(|zone| zone.end <= sector)
        }
    }

    /// Time to move the head from one track to another: arm movement and head switch overlap.
    #[inline]
    pub fn movement(&self, from: HeadPosition, to: HeadPosition, access: Access) -> Nanos {
        let arm = self.seek.time(from.cylinder.abs_diff(to.cylinder));
        let time = if from.surface == to.surface { arm } else { arm.max(self.head_switch) };
        match access {
            Access::Write if time > Nanos::ZERO => Nanos(time.0.saturating_add_signed(self.write_settle)),
            _ => time,
        }
    }

    /// Moves from `head` at `time` to `from..end` and passes over it, piece by piece; the first sector is not read
    /// before `not_before`. The caller guarantees that the run is not empty and lies within the drive.
    #[inline]
    pub fn pass(&self, times: (Nanos, Nanos), head: HeadPosition, run: (u64, u64), access: Access) -> Passage {
        self.pass_each(times, head, run, access, |_| ())
    }

    /// A read's passage. Its `bus_end` is when a bus that moves each sector once it has been read has moved all,
    /// considering only the sectors after gaps: a bus slower than the media idles while the head changes tracks. The
    /// caller considers the first and the last sector.
    #[inline]
    pub fn pass_to_bus(&self, time: Nanos, head: HeadPosition, run: (u64, u64), bus: &Bus) -> Passage {
        let mut bus_end = Nanos::ZERO;
        let passage = self.pass_each((time, Nanos::ZERO), head, run, Access::Read, |piece| {
            bus_end = bus_end.max(self.piece_to_bus(piece, run, bus));
        });
        Passage { bus_end, ..passage }
    }

    /// [`Self::pass_to_bus`] for one piece.
    #[inline]
    fn piece_to_bus(&self, piece: &Piece, (from, end): (u64, u64), bus: &Bus) -> Nanos {
        let zone = &self.zones[piece.zone];
        let whole = piece.from == from && piece.end == end;
        let gapless = piece.path - piece.start == piece.end - piece.from;
        if whole && (gapless || !bus.is_slower(zone)) {
            return Nanos::ZERO;
        }
        let last = zone.rotation.time(piece.tick) + bus.time((end - piece.end + 1) as u32, false);
        last.max(bus.end_behind_gaps(zone, (piece.start, piece.begun), (piece.from, piece.end), end))
    }

    /// [`Self::pass`] with a callback per piece.
    #[inline]
    fn pass_each(
        &self,
        (time, not_before): (Nanos, Nanos),
        head: HeadPosition,
        (from, end): (u64, u64),
        access: Access,
        mut each: impl FnMut(&Piece),
    ) -> Passage {
        let zone = self.zone_of(from);
        let (mut passage, mut piece_end) = self.piece(zone, (time, not_before), head, (from, end), access);
        each(&passage.last);
        while piece_end < end {
            let zone = self.zone_of(piece_end);
            let (next, next_end) =
                self.piece(zone, (passage.done, Nanos::ZERO), passage.head, (piece_end, end), access);
            passage = Passage { done: next.done, head: next.head, last: next.last, ..passage };
            piece_end = next_end;
            each(&passage.last);
        }
        passage
    }

    /// The longest unbroken part of a run in one zone.
    #[inline]
    fn piece(
        &self,
        index: usize,
        (time, not_before): (Nanos, Nanos),
        head: HeadPosition,
        (from, end): (u64, u64),
        access: Access,
    ) -> (Passage, u64) {
        let zone = &self.zones[index];
        let end = end.min(zone.run_end(from));
        let (path, place) = zone.locate(from, access);
        let seek = self.movement(head, place, access);
        let arrived = time + seek;
        let begun = zone.rotation.next(arrived.max(not_before), path);
        let (last_path, head) = zone.locate(end - 1, access);
        let tick = zone.rotation.after(begun, last_path + 1 - path);
        let passage = Passage {
            first: zone.rotation.time(zone.rotation.after(begun, 1)),
            seek,
            rotation: zone.rotation.time(begun) - arrived,
            done: zone.rotation.time(tick),
            head,
            last: Piece { zone: index, from, start: path, begun, end, path: last_path + 1, tick },
            bus_end: Nanos::ZERO,
        };
        (passage, end)
    }

    /// For each run of sectors, the cylinders between it and the nearest other run. `None` if a run lies in several
    /// places.
    pub fn distances(&self, runs: &[(u64, u64)]) -> Option<Vec<u32>> {
        let cylinder = |sector| self.zones[self.zone_of(sector)].locate(sector, Access::Read).1.cylinder;
        let mut lie = Vec::with_capacity(runs.len());
        for (at, &(first, end)) in runs.iter().enumerate() {
            let mut from = first;
            while from < end {
                let zone = &self.zones[self.zone_of(from)];
                let until = end.min(zone.end);
                if zone.run_end(from) < until {
                    return None;
                }
                from = until;
            }
            let (one, other) = (cylinder(first), cylinder(end - 1));
            lie.push((one.min(other), one.max(other), at));
        }
        lie.sort_unstable();
        let mut distances = vec![u32::MAX; runs.len()];
        let mut furthest: Option<u32> = None;
        for (index, &(first, last, at)) in lie.iter().enumerate() {
            let before = furthest.map(|furthest| first.saturating_sub(furthest));
            let after = lie.get(index + 1).map(|(next, ..)| next.saturating_sub(last));
            distances[at] = before.into_iter().chain(after).min().unwrap_or(0);
            furthest = Some(furthest.map_or(last, |furthest| furthest.max(last)));
        }
        Some(distances)
    }
}
