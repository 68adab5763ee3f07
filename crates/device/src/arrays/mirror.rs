//! Mirrored disks (RAID level 1, of any number): all hold the same.
//!
//! A read goes to the disk that can begin first, which is any free one; among those to the one that takes least
//! until the first sector passes, then to the lowest index. So arms divide the disk among themselves. A write
//! goes to all and is done when the last has it. After Bitton and Gray, "Disk shadowing", VLDB 1988 (nearest arm);
//! here nearness is time, rotation included, where the disk's model says it.
//!
//! Cost: a look at each disk for each request.

use headstart_types::{read_keys, KeyTable, Nanos};

use super::controller::{Controller, JoinedKeys, Scheme};
use super::members::{Members, Pieces};
use crate::row::{ArrayKind, ArrayRow};
use crate::{Request, Service};

/// Its row in the registry.
pub const ROW: ArrayRow = ArrayRow {
    name: "mirror",
    summary: "one queue; every disk holds all: a read goes to the nearest free one, a write to all",
    source: "Patterson, Gibson and Katz, RAID, SIGMOD 1988 (level 1)",
    keys: KeyTable::of::<JoinedKeys>(),
    kind: ArrayKind::Joined(|count, member, _, keys| {
        let keys: JoinedKeys = read_keys(keys)?;
        Ok(Box::new(Controller::try_new(Mirror, count, member, keys.queue_depth)?))
    }),
};

/// The scheme.
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

    /// A read is one disk's.
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
