//! The contract of a device: (now, request) in, the time and its parts out.
//!
//! A device never queues. Whoever drives it sends a request when fewer than [`Device::concurrency`] are in
//! progress and is told at once when that request will end; a simulator puts the end on its event heap.

use headstart_types::Nanos;

/// Bytes of one sector, the unit of every address in this crate.
pub const SECTOR_BYTES: u64 = 512;

/// The sectors that `bytes` occupy: whole sectors, rounded up.
#[must_use]
pub const fn sectors_of(bytes: u64) -> u64 {
    bytes.div_ceil(SECTOR_BYTES)
}

/// One request to one disk: `sector..sector + sectors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// First sector, from 0.
    pub sector: u64,
    /// How many sectors; at least 1.
    pub sectors: u32,
    /// Write rather than read.
    pub write: bool,
    /// The host's own: a block number, an index. Devices and schedulers never look at it.
    pub tag: u64,
}

impl Request {
    /// A read of `sectors` sectors from `sector`.
    #[must_use]
    pub const fn read(sector: u64, sectors: u32, tag: u64) -> Self {
        Self { sector, sectors, write: false, tag }
    }

    /// The sector after the last.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.sector + self.sectors as u64
    }
}

/// What serving one request took. The four parts sum to `end` less the start of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// The instant at which the request is done.
    pub end: Nanos,
    /// Moving the arm and switching heads before the first sector.
    pub seek: Nanos,
    /// Waiting for the first sector to come round.
    pub rotation: Nanos,
    /// Reading or writing the media, waiting for a stream that is under way, and moving data over the bus.
    pub transfer: Nanos,
    /// Controller time that nothing else hides.
    pub overhead: Nanos,
    /// The first sector was in the device's buffer, or was the very next that the head was about to read.
    pub buffer_hit: bool,
}

/// Something that serves requests.
pub trait Device: Send {
    /// Serves `request` from `now` on and says when it ends.
    ///
    /// The caller guarantees that `now` never decreases between calls, that fewer than `concurrency()` requests
    /// are in progress at `now`, and that the request has at least one sector and lies within the capacity.
    fn serve(&mut self, now: Nanos, request: &Request) -> Service;

    /// Size in sectors; `None` where there is no limit.
    fn capacity_sectors(&self) -> Option<u64>;

    /// No request of `sectors` sectors is ever served faster than this, in whatever state the device is.
    fn least_service(&self, sectors: u32) -> Nanos;

    /// A typical service time, for defaults such as a fetch ratio.
    fn nominal_service(&self) -> Nanos;

    /// How many requests the device serves at once; at least 1.
    fn concurrency(&self) -> u32 {
        1
    }

    /// Where the last request ended, for schedulers that look at the head; 0 before the first.
    fn head_sector(&self) -> u64;
}
