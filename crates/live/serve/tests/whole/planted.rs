//! Deliberate faults that the cases must find. All are planted around the server: in a wrapper of the backing or of the
//! queue, in the host's handling of work and answers, and in what the server is told.

#![allow(dead_code)] // The example plants none.

use std::io;

use bytes::BytesMut;
use headstart_engine::Tier;
use headstart_nbd::Extent;
use headstart_serve::backing::{is_loss, About, Backing};
use headstart_serve::change::Change;
use headstart_serve::queue::{Piece, Queue, ReadQueue};
use headstart_types::Nanos;

/// A read in flight for this long is stuck.
const STUCK: Nanos = Nanos::from_millis(1_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    // Faults of the backing.
    /// Pages arrive with a wrong byte.
    WrongByte,
    /// A failed change is reported as successful.
    HidesFailure,
    /// Changes are answered but not made.
    LosesWrite,
    /// A flush is answered but not made.
    SkipsFlush,
    /// A write that must be stable is not.
    DropsFua,
    /// A connection lost with unflushed changes is silently replaced.
    ForgetsLostConnection,
    /// Lost pages stay in the spill file and in the system's page cache.
    KeepsLost,
    // Faults of the queue.
    /// Pages are read while they change.
    ReadsBesideChange,
    /// Pages change while they are read.
    ChangesBesideRead,
    /// Demand fetches wait behind prefetches.
    DemandBehindPrefetch,
    /// Prefetches leave no room for demand fetches.
    PrefetchesFillQueue,
    /// A stuck read delays the others.
    WaitsForStuck,
    // Faults of the host.
    /// Pages in the cache do not change with the backing.
    StaleCache,
    /// Pages stay in the cache although their change failed.
    KeepsFailed,
    /// Requests are answered twice.
    AnswersTwice,
    /// Requests are not answered.
    LosesAnswer,
    /// Buffers are not reused.
    LosesBuffer,
    /// The number of a page that requests wait for is given to another page.
    GivesNumbersAway,
    /// A sync succeeds although an earlier one failed.
    ForgetsFailedSync,
    /// The thread that serves clients waits for a stuck call.
    ServesAndWaits,
    // Faults of what the server is told.
    /// A bad page fails its neighbours.
    SpreadsError,
    /// A frame of the level is never free again.
    LosesFrame,
}

impl Planted {
    pub const ALL: [Self; 22] = [
        Self::WrongByte,
        Self::HidesFailure,
        Self::LosesWrite,
        Self::SkipsFlush,
        Self::DropsFua,
        Self::ForgetsLostConnection,
        Self::KeepsLost,
        Self::ReadsBesideChange,
        Self::ChangesBesideRead,
        Self::DemandBehindPrefetch,
        Self::PrefetchesFillQueue,
        Self::WaitsForStuck,
        Self::StaleCache,
        Self::KeepsFailed,
        Self::AnswersTwice,
        Self::LosesAnswer,
        Self::LosesBuffer,
        Self::GivesNumbersAway,
        Self::ForgetsFailedSync,
        Self::ServesAndWaits,
        Self::SpreadsError,
        Self::LosesFrame,
    ];

    /// The tier, with the fault if it is one of a tier.
    #[must_use]
    pub fn within(self, mut tier: Tier) -> Tier {
        if self == Self::LosesFrame {
            tier.level.plant(headstart_engine::Sabotage::LosesFrame);
        }
        tier
    }
}

/// A backing, with the fault if it is one of a backing.
pub struct FaultyBacking {
    pub backing: Box<dyn Backing>,
    pub fault: Planted,
}

impl FaultyBacking {
    fn tries<T>(&self, mut call: impl FnMut(&dyn Backing) -> io::Result<T>) -> io::Result<T> {
        let result = call(&*self.backing);
        if self.fault == Planted::ForgetsLostConnection && result.as_ref().is_err_and(is_loss) {
            self.backing.change(&Change::Renew)?;
            return call(&*self.backing);
        }
        result
    }
}

impl Backing for FaultyBacking {
    fn about(&self) -> About {
        self.backing.about()
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        self.tries(|backing| backing.read(offset, buffers))?;
        if self.fault == Planted::WrongByte {
            buffers.iter_mut().for_each(|buffer| buffer[0] ^= 1);
        }
        Ok(())
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        match (self.fault, change) {
            (Planted::SkipsFlush, Change::Flush) | (Planted::KeepsLost, Change::Renew) => Ok(()),
            (Planted::LosesWrite, _) if change.bytes().is_some() => Ok(()),
            (Planted::DropsFua, Change::Write { offset, data, .. }) => {
                self.backing.change(&Change::Write { offset: *offset, data: data.clone(), fua: false })
            }
            (Planted::HidesFailure, _) => self.backing.change(change).or(Ok(())),
            _ => self.tries(|backing| backing.change(change)),
        }
    }

    fn extents(&self, offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        self.tries(|backing| backing.extents(offset, length))
    }
}

/// A queue, with the fault if it is one of a queue.
pub struct FaultyQueue {
    pub queue: Queue,
    pub fault: Option<Planted>,
}

impl AsRef<Queue> for FaultyQueue {
    fn as_ref(&self) -> &Queue {
        &self.queue
    }
}

impl AsMut<Queue> for FaultyQueue {
    fn as_mut(&mut self) -> &mut Queue {
        &mut self.queue
    }
}

impl ReadQueue for FaultyQueue {
    fn push(&mut self, mut piece: Piece) {
        match self.fault {
            Some(Planted::DemandBehindPrefetch) => piece.demand = false,
            Some(Planted::PrefetchesFillQueue) => piece.demand = true,
            _ => {}
        }
        self.queue.push(piece);
    }

    fn start(&mut self, now: Nanos, is_free: impl Fn(&Piece) -> bool) -> Option<u32> {
        let is_stuck = |piece: &Piece| piece.since.is_some_and(|since| since + STUCK < now);
        match self.fault {
            Some(Planted::WaitsForStuck) if self.queue.pieces().any(is_stuck) => None,
            Some(Planted::ReadsBesideChange) => self.queue.start(now, |_| true),
            _ => self.queue.start(now, is_free),
        }
    }

    fn reads_any(&self, first: u64, end: u64) -> bool {
        self.fault != Some(Planted::ChangesBesideRead) && self.queue.reads_any(first, end)
    }
}
