//! Mirrored disks (RAID level 1, of any number): every disk holds all data.
//!
//! A read goes to the disk that can begin first, which is any free one; among those to the one with the shortest time
//! until the first sector passes, then to the lowest index. The arms thus divide the disk among themselves. A write
//! goes to all disks and completes with the last. After Bitton and Gray, "Disk shadowing", VLDB 1988 (nearest arm);
//! here distance is time, including rotation if the disk's model gives it.
//!
//! Cost: one look at each disk per request.

use headstart_types::{read_keys, KeyTable, Nanos};

use super::controller::{Controller, JoinedKeys, Scheme};
use super::members::{Members, Pieces};
use crate::row::{ArrayKind, ArrayRow};
use crate::{Request, Service};

pub const ROW: ArrayRow = ArrayRow {
    name: "mirror",
    summary: "one queue; every disk holds all data: a read goes to the nearest free disk, a write to all",
    source: "Patterson, Gibson and Katz, RAID, SIGMOD 1988 (level 1)",
    keys: KeyTable::of::<JoinedKeys>(),
    kind: ArrayKind::Joined(|count, member, _, keys| {
        let keys: JoinedKeys = read_keys(keys)?;
        Ok(Box::new(Controller::try_new(Mirror, count, member, keys.queue_depth)?))
    }),
};

#[derive(Debug, Clone)]
pub struct Mirror;

/// The disk for a read, and its time to the first sector.
fn nearest(members: &Members, now: Nanos, request: &Request) -> (usize, Nanos) {
    let first = (0..members.len()).map(|index| members.start(index, now)).min().unwrap_or(now);
    let at_once = (0..members.len()).filter(|&index| members.start(index, now) == first);
    let near = at_once.map(|index| (members.positioning(index, now, request), index)).min();
    near.map_or((0, Nanos::ZERO), |(time, index)| (index, time))
}

impl Scheme for Mirror {
    fn serve(&self, members: &mut Members, now: Nanos, request: &Request) -> Service {
        if !request.write {
            let (index, _) = nearest(members, now, request);
            return members.serve(index, now, request);
        }
        let count = members.len();
        let mut pieces = Pieces::new(members, now, request, true);
        for member in 1..count {
            pieces.gather(member, (request.sector, request.end()));
        }
        pieces.serve(0, (request.sector, request.end()));
        pieces.finish().expect("the first disk has served it")
    }

    fn capacity_sectors(&self, member: u64) -> u64 {
        member
    }

    fn place(&self, sector: u64) -> (usize, u64) {
        (0, sector)
    }

    fn largest_piece(&self, sectors: u32) -> u32 {
        sectors
    }

    /// A read uses one disk.
    fn data_disks(&self) -> u64 {
        1
    }

    /// A write waits for its slowest disk.
    fn positioning(&self, members: &Members, now: Nanos, request: &Request) -> Nanos {
        if !request.write {
            return nearest(members, now, request).1;
        }
        let each = (0..members.len()).map(|index| members.positioning(index, now, request));
        each.max().unwrap_or(Nanos::ZERO)
    }
}
