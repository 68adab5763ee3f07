//! The contract of a device: (now, request) in, the time and its parts out.
//!
//! A device never queues. Its caller sends a request when fewer than [`Device::concurrency`] are in
//! progress and learns at once when that request will end; a simulator puts the end on its event heap.

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
    /// How many sectors; at least 1.
    pub sectors: u32,
    /// Write rather than read.
    pub write: bool,
    /// Nobody waits for it. Devices never look at it, schedulers may.
    pub prefetch: bool,
    /// Who asks, where that is known. Devices never look at it, schedulers may.
    pub process: Option<u32>,
    /// The host's own: a block number, an index. Devices and schedulers never look at it.
    pub tag: u64,
}

impl Request {
    /// A read of `sectors` sectors from `sector`, of no particular process.
    #[must_use]
    pub const fn read(sector: u64, sectors: u32, tag: u64) -> Self {
        Self { sector, sectors, write: false, prefetch: false, process: None, tag }
    }

    /// A write of `sectors` sectors from `sector`, of no particular process.
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

/// What serving one request took. The five parts sum to `end` less the start of service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Service {
    /// The instant at which the request is done.
    pub end: Nanos,
    /// Moving the arm and switching heads before the first sector.
    pub seek: Nanos,
    /// Waiting for the first sector to come round, or for a stream that reads on to it.
    pub rotation: Nanos,
    /// Reading or writing the media, waiting for a stream that is under way, and moving data over the bus. A drive with
    /// a segmented buffer counts here only what the media take, where they are needed, as DiskSim does.
    pub transfer: Nanos,
    /// Controller time that nothing else hides; with a segmented buffer, bus time after the media too.
    pub overhead: Nanos,
    /// Waiting within the device before it began: for buffered writes, a busy channel, a busy member of an array.
    pub wait: Nanos,
    /// The first sector was in the device's buffer, or lay ahead of the head, which read on to it.
    pub buffer_hit: bool,
}

/// A run of sectors that pass the head at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// First sector.
    pub first: u64,
    /// How many.
    pub sectors: u64,
    /// First cylinder.
    pub first_cylinder: u32,
    /// How many.
    pub cylinders: u32,
    /// Sectors of a track.
    pub sectors_per_track: u32,
    /// Rate of a long sequential read, switches of heads and cylinders included, in bytes a second.
    pub bytes_per_second: f64,
}

/// What a drive with an arm is made of, to be shown, plotted or computed with.
#[derive(Debug, Clone, PartialEq)]
pub struct Mechanics {
    /// Turns a minute.
    pub rpm: u32,
    /// Tracks of a cylinder.
    pub surfaces: u32,
    /// Time of a switch between heads of one cylinder.
    pub head_switch: Nanos,
    /// What a write's movement takes longer than a read's.
    pub write_settle: Nanos,
    /// By distance in cylinders from 0: time of a read's seek.
    pub seek: Vec<Nanos>,
    /// The zones, outermost first.
    pub bands: Vec<Band>,
    /// What a read after a read takes beside the bus, if the buffer has it.
    pub hit_overhead: Nanos,
    /// What a read after a read takes beside arm, media and bus, if it needs the arm and the media hide nothing of it.
    pub miss_overhead: Nanos,
    /// Time in which a sector that is read crosses the bus, in nanoseconds.
    pub bus_sector_ns: f64,
    /// Streams of reads that the buffer can hold at once: its segments that reads may take, 1 if it is one stream, 0
    /// where nothing is read from it.
    pub segments: u32,
    /// Sectors of each.
    pub segment_sectors: u64,
    /// The head goes on reading into the buffer behind a read.
    pub reads_ahead: bool,
    /// It does so only behind a read that begins where an earlier one ended.
    pub reads_ahead_on_sequence: bool,
    /// It does so while the controller takes in the next read.
    pub reads_during_overhead: bool,
}

impl Mechanics {
    /// One turn, rounded to nanoseconds.
    #[must_use]
    pub fn revolution(&self) -> Nanos {
        Nanos((60_000_000_000 + u64::from(self.rpm) / 2) / u64::from(self.rpm))
    }

    /// Mean seek time between two cylinders drawn evenly and apart from each other, in nanoseconds: each distance
    /// d weighs as the number of pairs that far apart, C for 0 and 2 (C - d) beyond.
    #[must_use]
    pub fn mean_seek_ns(&self) -> f64 {
        let cylinders = self.seek.len() as f64;
        let weigh = |(distance, time): (usize, &Nanos)| 2.0 * (cylinders - distance as f64) * time.0 as f64;
        self.seek.iter().enumerate().skip(1).map(weigh).sum::<f64>() / (cylinders * cylinders)
    }

    /// What decides how much is worth reading at once. The rate is the media's, or the bus's where that is lower.
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

/// What has to be read of a device at least.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Runs of sectors, each from its first one until before its end: ascending, with gaps between them. Not empty.
    pub runs: &'a [(u64, u64)],
    /// So many requests are made for them, at least.
    pub requests: u64,
    /// So many requests are under way at most; at least 1.
    pub at_once: u32,
}

impl Wanted<'_> {
    /// How many sectors these are.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.runs.iter().map(|(first, end)| end - first).sum()
    }

    /// The sectors between one run and the next.
    pub fn gaps(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.windows(2).map(|pair| pair[1].0 - pair[0].1)
    }
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

    /// No reads that cover `sectors` different sectors end earlier than this after a new device gets the first of them,
    /// whatever their lengths and their order: the rate of the media or the link. Zero where time does not depend on the
    /// amount of data. `sectors` is above zero.
    fn least_transfer(&self, _sectors: u64) -> Nanos {
        Nanos::ZERO
    }

    /// No reads that cover `wanted` end earlier than this after this device, as new as it is, gets the first of them. What else
    /// they read, and in which order, is left open.
    fn least_reads(&self, wanted: &Wanted<'_>) -> Nanos {
        self.least_transfer(wanted.sectors())
    }

    /// A typical service time, for defaults such as a fetch ratio.
    fn nominal_service(&self) -> Nanos;

    /// How many requests the device serves at once; at least 1.
    fn concurrency(&self) -> u32 {
        1
    }

    /// Where the last request ended, for schedulers that look at the head; 0 before the first.
    fn head_sector(&self) -> u64;

    /// How long the device would take, if it took `request` at `now`, until the first sector passes: seek, rotation
    /// and what is waited for before. Zero where place does not matter. For schedulers: it changes nothing.
    fn positioning(&self, _now: Nanos, _request: &Request) -> Nanos {
        Nanos::ZERO
    }

    /// Moves the arm to `sector`'s cylinder, from `now` on, and says when it is there: at once where there is no
    /// arm. The caller guarantees that nothing is in service, and serves nothing before that instant.
    fn travel(&mut self, now: Nanos, _sector: u64) -> Nanos {
        now
    }

    /// What the drive is made of; `None` where nothing moves.
    fn mechanics(&self) -> Option<Mechanics> {
        None
    }

    /// What decides how much is worth reading at once; of an array, at its rate. `None` where nothing moves.
    fn drive_facts(&self) -> Option<DriveFacts> {
        self.mechanics().map(|mechanics| mechanics.facts())
    }

    /// Divides the sectors of all segments of the buffer evenly among `segments`, rounded down; what is read ahead and
    /// the segments that writes may take are cut to what there is then. The buffer is empty afterwards.
    ///
    /// # Errors
    /// At no key: the buffer has no segments, or cannot have as many.
    fn divide_buffer(&mut self, _segments: u64) -> Result<(), KeyError> {
        Err(KeyError::new("", "the device has no buffer with segments", "a drive whose profile has buffer.segments"))
    }

    /// [`Device::divide_buffer`] of a device that is in use and serves nothing at `now`: what the buffer holds is given up,
    /// the head stays where it is. Returns `false`, and changes nothing, where written data are still on their way to the
    /// media, and where the buffer cannot be divided so.
    fn redivide_buffer(&mut self, _now: Nanos, _segments: u64) -> bool {
        false
    }

    /// The same device in the same state. Building from a profile costs a parse, this does not.
    fn clone_box(&self) -> Box<dyn Device>;

    /// Gives a device that draws random numbers a seed of its own. Others have nothing to do.
    fn reseed(&mut self, _seed: u64) {}
}

impl Clone for Box<dyn Device> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}
