//! Arm, heads and platters: how long a movement takes and when a run of sectors has passed.

use headstart_types::Nanos;

use super::geometry::{Access, Place, Zone};
use super::rotation::Tick;
use super::seek::SeekTable;

/// What moves and turns.
#[derive(Debug, Clone)]
pub(crate) struct Arm {
    pub zones: Vec<Zone>,
    /// Addressable sectors: at most what the zones hold.
    pub sectors: u64,
    pub seek: SeekTable,
    pub rpm: u32,
    pub surfaces: u32,
    pub head_switch: Nanos,
    /// What a movement takes longer, or less long, for a write: nanoseconds.
    pub write_settle: i64,
}

/// What moving to a place and passing over a run took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage {
    /// When the first sector had passed.
    pub first: Nanos,
    pub seek: Nanos,
    pub rotation: Nanos,
    /// When the last had.
    pub done: Nanos,
    /// Where the head is then.
    pub head: Place,
    pub last: Piece,
}

/// The last part of a passage: a run within one zone without a break.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub zone: usize,
    /// First sector.
    pub from: u64,
    /// The tick at which it began.
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

    /// Time to bring the head from one track to another: arm and head switch run at once.
    #[inline]
    pub fn movement(&self, from: Place, to: Place, access: Access) -> Nanos {
        let arm = self.seek.time(from.cylinder.abs_diff(to.cylinder));
        let time = if from.surface == to.surface { arm } else { arm.max(self.head_switch) };
        match access {
            Access::Write if time > Nanos::ZERO => Nanos(time.0.saturating_add_signed(self.write_settle)),
            _ => time,
        }
    }

    /// Moves from `head` at `time` to `from..end` and passes over it, piece by piece; the first sector is not taken
    /// before `not_before`. The caller guarantees that the run is not empty and lies within the drive.
    #[inline]
    pub fn pass(
        &self,
        (time, not_before): (Nanos, Nanos),
        head: Place,
        (from, end): (u64, u64),
        access: Access,
    ) -> Passage {
        let zone = self.zone_of(from);
        let (mut passage, mut piece_end) = self.piece(zone, (time, not_before), head, (from, end), access);
        while piece_end < end {
            let zone = self.zone_of(piece_end);
            let (next, next_end) =
                self.piece(zone, (passage.done, Nanos::ZERO), passage.head, (piece_end, end), access);
            passage = Passage { done: next.done, head: next.head, last: next.last, ..passage };
            piece_end = next_end;
        }
        passage
    }

    /// The part of a run that lies in one zone and breaks nowhere.
    #[inline]
    fn piece(
        &self,
        index: usize,
        (time, not_before): (Nanos, Nanos),
        head: Place,
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
            last: Piece { zone: index, from, begun, end, path: last_path + 1, tick },
        };
        (passage, end)
    }
}
