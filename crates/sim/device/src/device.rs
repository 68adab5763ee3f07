//! The contract of a device: (now, request) in, the completion time and its parts out.
//!
//! A device never queues. Its caller submits a request when fewer than [`Device::concurrency`] are in progress and
//! learns at once when that request will end; a simulator puts the end on its event heap.

use headstart_types::{DriveFacts, KeyError, Nanos, RateBand};

pub use headstart_types::SECTOR_BYTES;

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
    /// Number of sectors; at least 1.
    pub sectors: u32,
    pub write: bool,
    /// A prefetch, for which no process waits. Devices ignore it, schedulers may use it.
    pub prefetch: bool,
    /// The requesting process, if known. Devices ignore it, schedulers may use it.
    pub process: Option<u32>,
    /// The host's tag: a block number, an index. Devices and schedulers ignore it.
    pub tag: u64,
}

impl Request {
    /// A read of `sectors` sectors from `sector`, without a process.
    #[must_use]
    pub const fn read(sector: u64, sectors: u32, tag: u64) -> Self {
        Self { sector, sectors, write: false, prefetch: false, process: None, tag }
    }

    /// A write of `sectors` sectors from `sector`, without a process.
    #[must_use]
    pub const fn write(sector: u64, sectors: u32, tag: u64) -> Self {
        Self { sector, sectors, write: true, prefetch: false, process: None, tag }
    }

    /// The sector after the last.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.sector + self.sectors as u64
    }
}

/// The service of one request. The five parts sum to `end` minus the start of service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Service {
    /// The instant of completion.
    pub end: Nanos,
    /// Moving the arm and switching heads before the first sector.
    pub seek: Nanos,
    /// Rotational latency of the first sector, or waiting for a stream to read up to it.
    pub rotation: Nanos,
    /// Reading or writing the media, waiting for an active stream, and moving data over the bus. For a segmented
    /// buffer, as in DiskSim, only the media time if the media are needed.
    pub transfer: Nanos,
    /// Controller time that is not overlapped; with a segmented buffer, also bus time after the media.
    pub overhead: Nanos,
    /// Waiting within the device before service: for buffered writes, a busy channel, a busy member of an array.
    pub wait: Nanos,
    /// The first sector was in the device's buffer, or lay ahead of the head, which read on to it.
    pub buffer_hit: bool,
}

/// A run of sectors with one media rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    pub first: u64,
    /// Number of sectors.
    pub sectors: u64,
    pub first_cylinder: u32,
    /// Number of cylinders.
    pub cylinders: u32,
    pub sectors_per_track: u32,
    /// Rate of a long sequential read in bytes per second, including head and cylinder switches.
    pub bytes_per_second: f64,
}

/// The mechanical parameters of a drive with an arm, for display, plots and calculations.
#[derive(Debug, Clone, PartialEq)]
pub struct Mechanics {
    /// Revolutions per minute.
    pub rpm: u32,
    /// Tracks per cylinder.
    pub surfaces: u32,
    /// Time of a switch between heads of one cylinder.
    pub head_switch: Nanos,
    /// Additional settling time of a write compared to a read.
    pub write_settle: Nanos,
    /// Seek time of a read by distance in cylinders, from 0.
    pub seek: Vec<Nanos>,
    /// The zones, outermost first.
    pub bands: Vec<Band>,
    /// Time of a read after a read, without the bus, if the buffer holds it.
    pub hit_overhead: Nanos,
    /// Time of a read after a read, without arm, media and bus, if it needs the arm and nothing overlaps.
    pub miss_overhead: Nanos,
    /// Bus time of one sector that is read, in nanoseconds.
    pub bus_sector_ns: f64,
    /// Number of streams of reads that the buffer can hold: the segments that reads may use, 1 for a buffer with one
    /// stream, 0 if reads are not served from it.
    pub segments: u32,
    /// Sectors per segment.
    pub segment_sectors: u64,
    /// Whether the head reads ahead into the buffer after a read.
    pub reads_ahead: bool,
    /// Whether it does so only after a read that begins where an earlier one ended.
    pub reads_ahead_on_sequence: bool,
    /// Whether it does so while the controller processes the next read.
    pub reads_during_overhead: bool,
}

impl Mechanics {
    /// One revolution, rounded to nanoseconds.
    #[must_use]
    pub fn revolution(&self) -> Nanos {
        Nanos((60_000_000_000 + u64::from(self.rpm) / 2) / u64::from(self.rpm))
    }

    /// Mean seek time in nanoseconds between two independently and uniformly drawn cylinders: distance d is weighted
    /// with the number of pairs at that distance, C for 0 and 2 (C - d) otherwise.
    #[must_use]
    pub fn mean_seek_ns(&self) -> f64 {
        let cylinders = self.seek.len() as f64;
        let weigh = |(distance, time): (usize, &Nanos)| 2.0 * (cylinders - distance as f64) * time.0 as f64;
        self.seek.iter().enumerate().skip(1).map(weigh).sum::<f64>() / (cylinders * cylinders)
    }

    /// The facts that determine how much is worth reading at once. The rate is the lower of the media's and the bus's.
    #[must_use]
    pub fn facts(&self) -> DriveFacts {
        let bus = if self.bus_sector_ns > 0.0 { SECTOR_BYTES as f64 * 1e9 / self.bus_sector_ns } else { f64::INFINITY };
        let band = |band: &Band| RateBand {
            first: band.first,
            sectors: band.sectors,
            first_cylinder: band.first_cylinder,
            cylinders: band.cylinders,
            bytes_per_second: band.bytes_per_second.min(bus),
        };
        let factor = |band: &Band| band.bytes_per_second / band.bytes_per_second.min(bus);
        DriveFacts {
            seek: self.seek.as_slice().into(),
            mean_seek: Nanos(self.mean_seek_ns().round() as u64),
            half_turn: Nanos(self.revolution().0 / 2),
            bands: self.bands.iter().map(band).collect(),
            media_factor: self.bands.iter().map(factor).fold(1.0, f64::max),
        }
    }
}

/// The reads that a device must at least perform.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Runs of sectors (first, end exclusive): ascending, with gaps between them. Not empty.
    pub runs: &'a [(u64, u64)],
    /// Minimum number of requests made for them.
    pub requests: u64,
    /// Maximum number of outstanding requests; at least 1.
    pub at_once: u32,
}

impl Wanted<'_> {
    /// Total number of sectors.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.runs.iter().map(|(first, end)| end - first).sum()
    }

    /// The number of sectors between consecutive runs.
    pub fn gaps(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.windows(2).map(|pair| pair[1].0 - pair[0].1)
    }
}

pub trait Device: Send {
    /// Serves `request` from `now` on and returns when it ends.
    ///
    /// The caller guarantees that `now` never decreases between calls, that fewer than `concurrency()` requests are in
    /// progress at `now`, and that the request has at least one sector and lies within the capacity.
    fn serve(&mut self, now: Nanos, request: &Request) -> Service;

    /// Whether requests in progress share a rate. Then [`Device::serve`] says when a request ends if no other comes,
    /// and a [`crate::Drive`] follows [`Device::first_end`].
    fn shares(&self) -> bool {
        false
    }

    /// Of a device that shares: which of the requests in progress ends first if no other comes, counted from 0 in the
    /// order in which they were served, and when.
    fn first_end(&self) -> Option<(u64, Nanos)> {
        None
    }

    /// Of a device that shares: the request that [`Device::first_end`] named has ended at `now`.
    fn ended(&mut self, _now: Nanos) {}

    /// Whether files are objects of their own, so that no request reads two.
    fn holds_objects(&self) -> bool {
        false
    }

    /// Size in sectors; `None` if there is no limit.
    fn capacity_sectors(&self) -> Option<u64>;

    /// A lower bound of the service time of a request of `sectors` sectors in any state of the device.
    fn least_service(&self, sectors: u32) -> Nanos;

    /// A lower bound of the time in which reads can cover `sectors` distinct sectors, from the arrival of the first at
    /// a new device, for any lengths and order: the rate of the media or the link. Zero if time does not depend on the
    /// amount of data. `sectors` is above zero.
    fn least_transfer(&self, _sectors: u64) -> Nanos {
        Nanos::ZERO
    }

    /// A lower bound of the time in which reads can cover `wanted`, from the arrival of the first at this device, which
    /// must be new. The reads may cover more, in any order.
    fn least_reads(&self, wanted: &Wanted<'_>) -> Nanos {
        self.least_transfer(wanted.sectors())
    }

    /// A typical service time, for defaults such as a fetch ratio.
    fn nominal_service(&self) -> Nanos;

    /// Number of requests that the device serves concurrently; at least 1.
    fn concurrency(&self) -> u32 {
        1
    }

    /// Where the last request ended, for schedulers that use the head position; 0 before the first.
    fn head_sector(&self) -> u64;

    /// The time until the first sector passes if the device started `request` at `now`: seek, rotation and preceding
    /// waits. Zero if position does not matter. For schedulers; it has no side effect.
    fn positioning(&self, _now: Nanos, _request: &Request) -> Nanos {
        Nanos::ZERO
    }

    /// Moves the arm to `sector`'s cylinder from `now` on and returns when it arrives: at once if there is no arm. The
    /// caller guarantees that nothing is in service, and serves nothing before that instant.
    fn travel(&mut self, now: Nanos, _sector: u64) -> Nanos {
        now
    }

    /// The mechanical parameters; `None` if there are no moving parts.
    fn mechanics(&self) -> Option<Mechanics> {
        None
    }

    /// The facts that determine how much is worth reading at once; for an array, at its combined rate. `None` if there
    /// are no moving parts.
    fn drive_facts(&self) -> Option<DriveFacts> {
        self.mechanics().map(|mechanics| mechanics.facts())
    }

    /// Divides the sectors of all segments of the buffer evenly among `segments`, rounded down; the read-ahead and the
    /// number of write segments are reduced to the new limits. The buffer is empty afterwards.
    ///
    /// # Errors
    /// Without a key, if the buffer has no segments, or cannot have as many.
    fn divide_buffer(&mut self, _segments: u64) -> Result<(), KeyError> {
        Err(KeyError::new("", "the device has no buffer with segments", "a drive whose profile has buffer.segments"))
    }

    /// [`Device::divide_buffer`] for a device in use that serves nothing at `now`: the buffer's contents are dropped,
    /// the head does not move. Returns `false`, and changes nothing, if written data have not reached the media yet or
    /// if the buffer cannot be divided so.
    fn redivide_buffer(&mut self, _now: Nanos, _segments: u64) -> bool {
        false
    }

    /// A copy of the device in the same state. Building from a profile needs parsing, copying does not.
    fn clone_box(&self) -> Box<dyn Device>;

    /// Seeds the random numbers of a device that uses them; otherwise without effect.
    fn reseed(&mut self, _seed: u64) {}
}

impl Clone for Box<dyn Device> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}
