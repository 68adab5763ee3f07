//! Faults planted on purpose, which the cases must find: in the conductor (`Sabotage`), or around it.

#![allow(dead_code)] // The example plants none.

use std::io;

use bytes::BytesMut;
use headstart_nbd::Extent;
use headstart_serve::backing::{is_loss, Backing};
use headstart_serve::sabotage::Sabotage;
use headstart_serve::work::Place;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    Inside(Sabotage),
    /// A sync is answered although one before it has failed.
    ForgetsFailedSync,
    /// A connection that is lost with unflushed changes is made anew without a word.
    ForgetsLostConnection,
    /// What the cache has dropped stays in the spill file and in the system's page cache.
    KeepsLost,
    /// The thread that serves clients waits for a call that is stuck.
    ServesAndWaits,
}

impl Planted {
    pub fn all() -> Vec<Self> {
        let around = [Self::ForgetsFailedSync, Self::ForgetsLostConnection, Self::KeepsLost, Self::ServesAndWaits];
        Sabotage::ALL.into_iter().map(Self::Inside).chain(around).collect()
    }

    /// A backing with the fault, if it is one of a backing.
    pub fn around(self, backing: Box<dyn Backing>) -> Box<dyn Backing> {
        match self {
            Self::ForgetsLostConnection => Box::new(Faulty { backing, reconnects: true }),
            Self::KeepsLost => Box::new(Faulty { backing, reconnects: false }),
            Self::Inside(_) | Self::ForgetsFailedSync | Self::ServesAndWaits => backing,
        }
    }
}

/// A backing that reconnects, or does not forget.
struct Faulty {
    backing: Box<dyn Backing>,
    reconnects: bool,
}

impl Faulty {
    fn tries(&self, mut call: impl FnMut(&dyn Backing) -> io::Result<()>) -> io::Result<()> {
        let result = call(&*self.backing);
        if self.reconnects && result.as_ref().is_err_and(is_loss) {
            self.backing.renew();
            return call(&*self.backing);
        }
        result
    }
}

impl Backing for Faulty {
    fn size_bytes(&self) -> u64 {
        self.backing.size_bytes()
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        self.tries(|backing| backing.read(offset, buffers))
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        self.tries(|backing| backing.write(offset, data, fua))
    }

    fn trim(&self, offset: u64, length: u64, fua: bool) -> io::Result<()> {
        self.tries(|backing| backing.trim(offset, length, fua))
    }

    fn zero(&self, offset: u64, length: u64, no_hole: bool, fua: bool) -> io::Result<()> {
        self.tries(|backing| backing.zero(offset, length, no_hole, fua))
    }

    fn flush(&self) -> io::Result<()> {
        self.tries(|backing| backing.flush())
    }

    fn extents(&self, offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        let mut extents = Vec::new();
        self.tries(|backing| backing.extents(offset, length).map(|found| extents = found)).map(|()| extents)
    }

    fn store(&self, place: Place, bytes: &[u8]) {
        self.backing.store(place, bytes);
    }
}
