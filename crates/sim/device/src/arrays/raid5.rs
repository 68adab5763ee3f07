//! RAID level 5, left-symmetric: each row has units of data and a unit of parity, whose disk changes from row to row.
//!
//! Row r has its parity on disk d - 1 - r mod d; its d - 1 units of data follow from the next disk on, wrapping around.
//! Any d consecutive units therefore lie on d disks. Lee and Katz, "Performance consequences of parity placement in
//! disk arrays", ASPLOS 1991; Chen et al., ACM Computing Surveys 26(2), 1994.
//!
//! Reads go to the data. A write of a whole row writes data and parity. A smaller write first reads what it will
//! overwrite and the parity, for all such rows of the request concurrently; when the last of these reads is done,
//! everything is written. Parity is read and written in one piece, from the first to the last offset within a unit that
//! the request touches in the row. With a failed disk, its data is read as the exclusive or of all others. A write to
//! the failed disk reads the other disks' data instead (and the parity, if the write does not cover all touched
//! offsets) and writes parity. Parity on the failed disk is skipped.
//!
//! Not modelled: rows of which most is written (which real controllers complete by reading the rest), controller
//! caches, parity logs, spares and reconstruction. The disks are reserved for the request from reading to writing back
//! (`members.rs`).
//!
//! Cost: a step per unit, or per disk for each degraded unit; a step per disk at the end.

use headstart_types::{keys, read_keys, KeyError, KeyTable, Nanos};

use super::controller::{units_at_most, whole_unit, Controller, Scheme};
use super::members::{then, Members, Pieces};
use crate::row::{ArrayKind, ArrayRow};
use crate::{Request, Service};

pub const ROW: ArrayRow = ArrayRow {
    name: "raid5",
    summary: "one queue; rotating parity (left-symmetric), optionally with one failed disk",
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
        /// Maximum number of outstanding commands at the controller.
        #[schemars(range(min = 1, max = 65_536), extend("x-absent" = "as many commands as its disks serve \
        concurrently"))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub queue_depth: Option<u32> = None,
        /// Number of the missing disk, from 0.
        #[schemars(extend("x-absent" = "none: no disk is missing"))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub failed: Option<u32> = None,
    }
}

#[derive(Debug, Clone)]
pub struct Raid5 {
    disks: u64,
    unit: u64,
    failed: Option<usize>,
}

/// The part of a row that a request touches: its units of data, and offsets within the first and the last.
#[derive(Debug, Clone, Copy)]
struct Row {
    row: u64,
    /// Units of data, from 0; the last is included.
    first: u64,
    last: u64,
    /// From this offset of the first unit to that offset of the last.
    start: u64,
    end: u64,
}

impl Raid5 {
    /// On `disks` disks in units of `unit_sectors`, one of which may have failed.
    ///
    /// # Errors
    /// At `count` or `stripe_unit`. The caller guarantees `failed < disks`.
    pub fn try_new(disks: u32, unit_sectors: u64, failed: Option<usize>) -> Result<Self, KeyError> {
        if disks < 3 {
            return Err(KeyError::new("count", format!("{disks} disks for raid5"), "a whole number from 3"));
        }
        Ok(Self { disks: disks.into(), unit: whole_unit(unit_sectors)?, failed })
    }

    /// The disk that holds a row's parity.
    fn parity(&self, row: u64) -> usize {
        (self.disks - 1 - row % self.disks) as usize
    }

    /// The disk that holds a unit of data of a row.
    fn data(&self, row: u64, unit: u64) -> usize {
        ((self.disks - row % self.disks + unit) % self.disks) as usize
    }

    /// The touched part of each row.
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

    /// The touched offsets within the unit `index` of a row.
    fn touched(&self, row: &Row, index: u64) -> (u64, u64) {
        let start = if index == row.first { row.start } else { 0 };
        (start, if index == row.last { row.end } else { self.unit })
    }

    /// The first to the last offset touched within any unit of a row.
    fn hull(&self, row: &Row) -> (u64, u64) {
        if row.first == row.last {
            (row.start, row.end)
        } else {
            // The end of one unit and the start of the next: the range between them is included.
            (0, self.unit)
        }
    }

    /// The sectors on a disk for a row's offsets.
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

    /// Adds the reads that must precede a write.
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
                    // Parity recomputed from all data: data that is not overwritten must be read, and all of it if the
                    // lost unit is only overwritten in part.
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
            // Most reads: one piece, nothing to combine.
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

    /// Counts whole rows only.
    fn capacity_sectors(&self, member: u64) -> u64 {
        member / self.unit * self.unit * (self.disks - 1)
    }

    /// For sectors of a failed disk, the disk after it.
    fn place(&self, sector: u64) -> (usize, u64) {
        let (unit, offset) = (sector / self.unit, sector % self.unit);
        let (row, index) = (unit / (self.disks - 1), unit % (self.disks - 1));
        let disk = self.data(row, index);
        let disk = if self.failed == Some(disk) { (disk + 1) % self.disks as usize } else { disk };
        (disk, row * self.unit + offset)
    }

    /// A piece is not split within a unit, but a disk may get several; with a failed disk, parity is read instead of
    /// data.
    fn largest_piece(&self, sectors: u32) -> u32 {
        u64::from(sectors).div_ceil(units_at_most(sectors, self.unit)) as u32
    }

    fn data_disks(&self) -> u64 {
        self.disks - 1
    }
}
