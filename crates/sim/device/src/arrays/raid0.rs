//! RAID level 0: units of the volume on the disks in turn, behind one queue.
//!
//! A request is split at unit boundaries. Its part on one disk is contiguous there, because that disk's units are. Each
//! disk serves its pieces in order of arrival; the request completes with its last piece. Chen, Lee, Gibson, Katz and
//! Patterson, "RAID: high-performance, reliable secondary storage", ACM Computing Surveys 26(2), 1994.
//!
//! Cost: a step with three divisions per disk that a request touches.

use headstart_types::{read_keys, KeyError, KeyTable, Nanos};

use super::controller::{units_at_most, whole_unit, Controller, JoinedKeys, Scheme};
use super::members::{Members, Pieces};
use crate::row::{ArrayKind, ArrayRow};
use crate::{Request, Service};

pub const ROW: ArrayRow = ArrayRow {
    name: "raid0",
    summary: "one queue; requests are split at stripe units",
    source: "Chen et al., RAID, ACM Computing Surveys 26(2), 1994 (level 0)",
    keys: KeyTable::of::<JoinedKeys>(),
    kind: ArrayKind::Joined(|count, member, unit_sectors, keys| {
        let keys: JoinedKeys = read_keys(keys)?;
        Ok(Box::new(Controller::try_new(Raid0::try_new(count, unit_sectors)?, count, member, keys.queue_depth)?))
    }),
};

#[derive(Debug, Clone)]
pub struct Raid0 {
    disks: u64,
    unit: u64,
}

impl Raid0 {
    /// On `disks` disks in units of `unit_sectors`.
    ///
    /// # Errors
    /// At `stripe_unit`.
    pub fn try_new(disks: u32, unit_sectors: u64) -> Result<Self, KeyError> {
        Ok(Self { disks: disks.into(), unit: whole_unit(unit_sectors)? })
    }
}

impl Scheme for Raid0 {
    fn serve(&self, members: &mut Members, now: Nanos, request: &Request) -> Service {
        let Self { disks, unit } = *self;
        let (first, offset) = (request.sector / unit, request.sector % unit);
        if offset + u64::from(request.sectors) <= unit {
            let piece = Request { sector: first / disks * unit + offset, ..*request };
            return members.serve((first % disks) as usize, now, &piece);
        }
        let last = (request.end() - 1) / unit;
        let mut pieces = Pieces::new(members, now, request, request.write);
        for from in first..=last.min(first + disks - 1) {
            // The disk's first and last unit of the request; all units of the request except its own first and last are
            // whole.
            let to = last - (last - from) % disks;
            let start = from / disks * unit + if from == first { offset } else { 0 };
            let end = to / disks * unit + if to == last { request.end() - last * unit } else { unit };
            pieces.serve((from % disks) as usize, (start, end));
        }
        pieces.finish().expect("a request has at least one piece")
    }

    /// Counts whole stripes only.
    fn capacity_sectors(&self, member: u64) -> u64 {
        member / self.unit * self.unit * self.disks
    }

    fn place(&self, sector: u64) -> (usize, u64) {
        let (unit, offset) = (sector / self.unit, sector % self.unit);
        ((unit % self.disks) as usize, unit / self.disks * self.unit + offset)
    }

    fn largest_piece(&self, sectors: u32) -> u32 {
        u64::from(sectors).div_ceil(units_at_most(sectors, self.unit).min(self.disks)) as u32
    }

    fn data_disks(&self) -> u64 {
        self.disks
    }
}
