//! The cost of a disk request by the equations, by parts: see `equations.rs` for the terms.

use super::parameters::{Disk, Form, Scheduler, Work};
use super::seeks::Seeks;

/// The cost of one or several disk requests, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Fixed times.
    pub overhead: f64,
    /// Arm movement.
    pub seek: f64,
    /// Rotational latency.
    pub rotation: f64,
    /// Data transfer.
    pub transfer: f64,
}

impl Cost {
    #[must_use]
    pub fn sum(self) -> f64 {
        self.overhead + self.seek + self.rotation + self.transfer
    }

    pub(super) fn add(&mut self, other: Cost, times: f64) {
        self.overhead += other.overhead * times;
        self.seek += other.seek * times;
        self.rotation += other.rotation * times;
        self.transfer += other.transfer * times;
    }
}

/// The costs of single requests at a number of streams.
pub(super) struct DiskCosts {
    pub(super) miss_overhead: f64,
    pub(super) hit_overhead: f64,
    pub(super) rotation: f64,
    /// Nanoseconds per byte.
    pub(super) bus: f64,
    pub(super) surface: f64,
    pub(super) track: f64,
    pub(super) seeks: FileSeeks,
    /// Whether the disk's cache has read ahead.
    pub(super) cached: bool,
    /// Whether it has done so except after the first of contiguous requests.
    pub(super) on_sequence: bool,
    pub(super) read_during_overhead: bool,
    pub(super) rate_spread: f64,
    pub(super) streams: f64,
    pub(super) parallel: bool,
}

/// Mean seek times of one file's requests.
pub(super) struct FileSeeks {
    /// Of its first request.
    pub(super) first: f64,
    /// Of a later one that the disk's cache holds or would hold.
    pub(super) further: f64,
    /// Of a later one that the cache should hold but does not.
    pub(super) arm: f64,
    /// Of an indirect block.
    pub(super) indirect: f64,
}

impl FileSeeks {
    /// As in the paper's tables: the first request over a third of the cylinders, later ones from stream to stream; if
    /// the disk's cache serves these, the n files together pay for k ways back.
    fn as_tables(disk: &Disk, streams: u32, cached: bool, seeks: &mut Seeks) -> Self {
        let random = seeks.moments(1).next;
        let moments = seeks.moments(streams);
        let (next, back) = match disk.scheduler {
            Scheduler::Clook => (moments.next, moments.back),
            Scheduler::Cscan => (moments.next, seeks.full_stroke()),
            Scheduler::Fcfs => (random, 0.0),
        };
        let further = if cached { back / f64::from(streams) } else { next };
        Self { first: random + if cached { further } else { 0.0 }, further, arm: next, indirect: random }
    }

    /// By the queue's order: n requests per round, with each stream's next one behind the arm when it arrives. If the
    /// disk's cache serves later requests, the arm is not needed.
    fn in_rounds(disk: &Disk, streams: u32, cached: bool, seeks: &mut Seeks) -> Self {
        let random = seeks.moments(1).next;
        let moments = seeks.moments(streams);
        let many = f64::from(streams);
        let each = match disk.scheduler {
            Scheduler::Clook => ((many - 1.0) * moments.step + moments.turn) / many,
            // Also from the first cylinder to the lowest request and from the highest to the last cylinder.
            Scheduler::Cscan => ((many + 1.0) * moments.step + seeks.full_stroke()) / many,
            Scheduler::Fcfs => random,
        };
        Self { first: each, further: if cached { 0.0 } else { each }, arm: each, indirect: each }
    }
}

impl DiskCosts {
    #[inline]
    pub(super) fn new(form: Form, disk: &Disk, work: &Work, seeks: &mut Seeks) -> Self {
        let streams = work.streams;
        let cached = disk.read_ahead && streams <= disk.cache_segments;
        let seeks = match (streams, form) {
            (1, _) => {
                let random = seeks.moments(1).next;
                let near = if form == Form::Bsd { seeks.next_cylinder() } else { 0.0 };
                let first = work.lone_seek * random + (1.0 - work.lone_seek) * near;
                FileSeeks { first, further: 0.0, arm: near, indirect: random }
            }
            (_, Form::Tables) => FileSeeks::as_tables(disk, streams, cached, seeks),
            (_, Form::Bsd) => FileSeeks::in_rounds(disk, streams, cached, seeks),
        };
        Self {
            miss_overhead: disk.miss_overhead_ns,
            hit_overhead: disk.hit_overhead_ns,
            rotation: disk.revolution_ns / 2.0,
            bus: 1e9 / disk.bus_bytes_per_second,
            surface: 1e9 / disk.disk_bytes_per_second,
            track: 1e9 / disk.track_bytes_per_second,
            seeks,
            cached,
            on_sequence: cached && disk.read_ahead_on_sequence,
            read_during_overhead: disk.read_during_overhead,
            rate_spread: disk.rate_spread,
            streams: f64::from(streams),
            parallel: disk.parallel,
        }
    }

    /// Equation (2).
    pub(super) fn random(&self, bytes: u64, seek: f64) -> Cost {
        let transfer = bytes as f64 * self.bus.max(self.surface);
        Cost { overhead: self.miss_overhead, seek, rotation: self.rotation, transfer }
    }

    /// The first data request of a file.
    pub(super) fn first(&self, bytes: u64) -> Cost {
        self.random(bytes, self.seeks.first)
    }

    /// A request that continues the previous one, of a single stream whose head has read nothing since: the position
    /// has just passed, and comes round again. The request starts `late` after the last sector had passed.
    pub(super) fn just_gone_by(&self, bytes: u64, late: f64) -> Cost {
        let turn = 2.0 * self.rotation;
        let passed = if turn > 0.0 { (late + self.miss_overhead) % turn } else { 0.0 };
        Cost { rotation: turn - passed, ..self.random(bytes, 0.0) }
    }

    /// A later one: equation (3) if the disk's cache has read ahead. The paper's transfer only uses the bus; here it
    /// also waits for data not yet read from the media, which rotate on during the overhead.
    pub(super) fn further(&self, bytes: u64) -> Cost {
        if !self.cached {
            return self.random(bytes, self.seeks.further);
        }
        let bytes = bytes as f64;
        let transfer = (bytes * self.bus).max(bytes * self.surface - self.hit_overhead);
        Cost { overhead: self.hit_overhead, seek: self.seeks.further, rotation: 0.0, transfer }
    }

    /// An indirect block, in a separate cylinder group.
    pub(super) fn indirect(&self, bytes: u64) -> Cost {
        self.random(bytes, self.seeks.indirect)
    }

    /// The wait of each of n streams if all repeatedly request at once something that costs `each`: the sum over all,
    /// or, if fixed times overlap, until all transfers are done.
    #[inline]
    pub(super) fn of_all(&self, each: Cost) -> Cost {
        self.of_others(each, each)
    }

    /// The same for streams in step, from one stream's request to its next: on average half of the others are served
    /// before it at the current cost `each`, and half after it at the previous cost `before`. Nothing follows the
    /// first.
    #[inline]
    pub(super) fn of_others(&self, each: Cost, before: Cost) -> Cost {
        let others = (self.streams - 1.0) / 2.0;
        if self.parallel {
            let fixed = each.sum() - each.transfer;
            let crossing = (1.0 + others) * each.transfer + others * before.transfer;
            return Cost { transfer: each.transfer.max(crossing - fixed), ..each };
        }
        let mut all = each;
        all.add(each, others);
        all.add(before, others);
        all
    }
}
