//! RAID level 5, left-symmetric: units of data with a unit of parity in each row, whose place moves on by row.
//!
//! Row r has its parity on disk d - 1 - r mod d; its d - 1 units of data follow from the next disk on, round the
//! end. So any d units that follow each other lie on d disks. Lee and Katz, "Performance consequences of parity
//! placement in disk arrays", ASPLOS 1991; Chen et al., ACM Computing Surveys 26(2), 1994.
//!
//! Reads go to the data. A write of a whole row writes data and parity. A write of less first reads what it will
//! overwrite and its parity, of all such rows of the request at once; when the last of this is in, all is
//! written. Parity is read and written from the first offset within a unit that the request touches in the row to
//! the last, in one piece. With a disk failed: what it held is read as the exclusive or of all others; a write to
//! it reads the others' data instead (and the parity, where it does not cover all that is touched), and writes
//! parity; parity that it held is left out.
//!
//! Not modelled: rows of which most is written (which real controllers complete by reading the rest), caches of the
//! controller, logs of parity, spares and reconstruction. From reading to writing back the disks are kept
//! for the request (`members.rs`).
//!
//! Cost: a step for each unit, of a degraded one for each disk; one for each disk at the end.

use headstart_types::{keys, read_keys, KeyError, KeyTable, Nanos};

use super::controller::{units_at_most, whole_unit, Controller, Scheme};
use super::members::{then, Members, Pieces};
use crate::row::{ArrayKind, ArrayRow};
use crate::{Request, Service};

/// Its row in the registry.
pub const ROW: ArrayRow = ArrayRow {
    name: "raid5",
    summary: "one queue; units and their parity in turn (left-symmetric), with one disk failed if need be",
    source: "Lee and Katz, parity placements, ASPLOS 1991; Chen et al., ACM Computing Surveys 26(2), 1994 (level 5)",
    keys: KeyTable::of::<Raid5Keys>(),
    kind: ArrayKind::Joined(|count, member, unit_sectors, keys| {
        let Raid5Keys { queue_depth, failed } = read_keys(keys)?;
        if let Some(disk) = failed.filter(|disk| *disk >= count) {
            let allowed = format!("a whole number from 0 to {}", count.max(1) - 1);
            return Err(KeyError::new("failed", format!("{disk} is out of range"), allowed));
        }
        let raid5 = Raid5::try_new(count, unit_sectors, failed.map(|disk| disk as usize))?;
        Ok(Box::new(Controller::try_new(raid5, count, member, queue_depth)?))
    }),
};

keys! {
    /// Keys of `raid5`.
    pub struct Raid5Keys {
        /// Commands that the controller has under way at once.
        #[schemars(range(min = 1, max = 65_536), extend("x-absent" = "as many commands as its disks serve at once"))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub queue_depth: Option<u32> = None,
        /// The disk that is missing, from 0.
        #[schemars(extend("x-absent" = "none: no disk is missing"))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub failed: Option<u32> = None,
    }
}

/// The scheme.
#[derive(Debug, Clone)]
pub struct Raid5 {
    disks: u64,
    unit: u64,
    failed: Option<usize>,
}

/// What a request touches of a row: its units of data, and offsets within the first and the last.
#[derive(Debug, Clone, Copy)]
struct Row {
    row: u64,
    /// Units of data, from 0; the last is included.
    first: u64,
    last: u64,
    /// From this offset of the first to that one of the last.
    start: u64,
    end: u64,
}

impl Raid5 {
    /// On `disks` disks in units of `unit_sectors`, one of which may have failed.
    ///
    /// # Errors
    /// `count` or `stripe_unit`. The caller guarantees `failed < disks`.
    pub fn try_new(disks: u32, unit_sectors: u64, failed: Option<usize>) -> Result<Self, KeyError> {
        if disks < 3 {
            return Err(KeyError::new("count", format!("{disks} disks for raid5"), "a whole number from 3"));
        }
        Ok(Self { disks: disks.into(), unit: whole_unit(unit_sectors)?, failed })
    }

    /// The disk that holds the parity of a row.
    fn parity(&self, row: u64) -> usize {
        (self.disks - 1 - row % self.disks) as usize
    }

    /// The disk that holds a unit of data of a row.
    fn data(&self, row: u64, unit: u64) -> usize {
        ((self.disks - row % self.disks + unit) % self.disks) as usize
    }

    /// What a request touches, row by row.
    fn rows<'a>(&'a self, request: &'a Request) -> impl Iterator<Item = Row> + 'a {
        let (unit, width) = (self.unit, self.disks - 1);
        let (first, last) = (request.sector / unit, (request.end() - 1) / unit);
        (first / width..=last / width).map(move |row| {
            let from = first.max(row * width);
            let to = last.min(row * width + width - 1);
            Row {
                row,
                first: from % width,
                last: to % width,
                start: if from == first { request.sector - first * unit } else { 0 },
                end: if to == last { request.end() - last * unit } else { unit },
            }
        })
    }

    /// Offsets within a unit that a row's part of a request touches, within the unit `index`.
    fn touched(&self, row: &Row, index: u64) -> (u64, u64) {
        let start = if index == row.first { row.start } else { 0 };
        (start, if index == row.last { row.end } else { self.unit })
    }

    /// The first to the last offset that a row's part of a request touches within any unit.
    fn hull(&self, row: &Row) -> (u64, u64) {
        if row.first == row.last {
            (row.start, row.end)
        } else {
            // The end of one unit and the start of the next: what is between them goes with them.
            (0, self.unit)
        }
    }

    /// Sectors on a disk of a row's offsets.
    fn on_disk(&self, row: &Row, (start, end): (u64, u64)) -> (u64, u64) {
        (row.row * self.unit + start, row.row * self.unit + end)
    }

    fn read(&self, pieces: &mut Pieces<'_>, request: &Request) {
        for row in self.rows(request) {
            for index in row.first..=row.last {
                let (disk, sectors) = (self.data(row.row, index), self.on_disk(&row, self.touched(&row, index)));
                if self.failed != Some(disk) {
                    pieces.gather(disk, sectors);
                    continue;
                }
                for other in (0..self.disks as usize).filter(|&other| other != disk) {
                    pieces.gather(other, sectors);
                }
            }
        }
    }

    /// What must be known before a write can be made: gathers it.
    fn read_before_write(&self, pieces: &mut Pieces<'_>, request: &Request) {
        for row in self.rows(request) {
            let (hull, parity) = (self.hull(&row), self.parity(row.row));
            let whole = row.last - row.first == self.disks - 2 && row.start == 0 && row.end == self.unit;
            if whole || self.failed == Some(parity) {
                continue;
            }
            let touched = |index: u64| (row.first..=row.last).contains(&index).then(|| self.touched(&row, index));
            let is_lost = |index: &u64| self.failed == Some(self.data(row.row, *index));
            let lost = (row.first..=row.last).find(is_lost).and_then(touched);
            for index in 0..self.disks - 1 {
                let offsets = match lost {
                    None => touched(index),
                    // Parity recomputed from all data: what is not overwritten must be known, and all of it where what is
                    // lost is only overwritten in part.
                    Some(lost) => (lost != hull || touched(index) != Some(hull)).then_some(hull),
                };
                if let Some(offsets) = offsets.filter(|_| !is_lost(&index)) {
                    pieces.gather(self.data(row.row, index), self.on_disk(&row, offsets));
                }
            }
            if lost != Some(hull) {
                pieces.gather(parity, self.on_disk(&row, hull));
            }
        }
    }

    fn write(&self, pieces: &mut Pieces<'_>, request: &Request) {
        for row in self.rows(request) {
            let data = (row.first..=row.last).map(|index| (self.data(row.row, index), self.touched(&row, index)));
            for (disk, offsets) in data.chain([(self.parity(row.row), self.hull(&row))]) {
                if self.failed != Some(disk) {
                    pieces.gather(disk, self.on_disk(&row, offsets));
                }
            }
        }
    }
}

impl Scheme for Raid5 {
    fn serve(&self, members: &mut Members, now: Nanos, request: &Request) -> Service {
        let offset = request.sector % self.unit;
        if !request.write && self.failed.is_none() && offset + u64::from(request.sectors) <= self.unit {
            // Most reads: one piece, nothing to join.
            let (disk, sector) = self.place(request.sector);
            return members.serve(disk, now, &Request { sector, ..*request });
        }
        let mut pieces = Pieces::new(members, now, request, false);
        if !request.write {
            self.read(&mut pieces, request);
            return pieces.finish().expect("a request has at least one piece");
        }
        self.read_before_write(&mut pieces, request);
        let before = pieces.finish();
        let from = before.map_or(now, |service| service.end);
        let mut pieces = Pieces::new(members, from, request, true);
        self.write(&mut pieces, request);
        let written = pieces.finish().expect("at most one disk has failed");
        before.map_or(written, |before| then(before, written))
    }

    /// Whole rows only.
    fn capacity_sectors(&self, member: u64) -> u64 {
        member / self.unit * self.unit * (self.disks - 1)
    }

    /// Of a failed disk's sectors, the disk after it.
    fn place(&self, sector: u64) -> (usize, u64) {
        let (unit, offset) = (sector / self.unit, sector % self.unit);
        let (row, index) = (unit / (self.disks - 1), unit % (self.disks - 1));
        let disk = self.data(row, index);
        let disk = if self.failed == Some(disk) { (disk + 1) % self.disks as usize } else { disk };
        (disk, row * self.unit + offset)
    }

    /// A piece is not cut within a unit, but a disk may get several; with a failed disk parity stands in for data.
    fn largest_piece(&self, sectors: u32) -> u32 {
        u64::from(sectors).div_ceil(units_at_most(sectors, self.unit)) as u32
    }

    fn data_disks(&self) -> u64 {
        self.disks - 1
    }
}
