//! The disk under a recorded program: equations (1) to (3) for one request after another. Our addition; the paper's
//! readers read whole files.
//!
//! Section 4.4 of the paper says that positioning "depends on the current location of the disk head, which is
//! determined by the previous request", and Table 2 lists the position of a file among the parameters of a workload.
//! Here each request has its position: its seek is equation (1) of the distance from the head, not of a mean distance.
//! A request that needs the media waits half a revolution, as in equation (2); one that the disk's cache holds follows
//! equation (3).
//!
//! The cache is that of one stream in `equations.rs`, with a state per segment: its content and its last use. The head
//! reads ahead after a request until the next one for another position interrupts it. A program that leaves a file for
//! another and returns to it therefore finds in its segment what was read ahead in the meantime, unless as many other
//! positions as there are segments have been read since. A hit in a segment that the head is not reading does not
//! restart its read-ahead.
//!
//! A write needs the media as a read does, equation (2), without read-ahead after it. If the drive buffers writes, the
//! host only waits for the bus, and for the previous write if the buffer still holds it; the head writes in the
//! background, and the next request that needs it waits. A write that continues the previous one before that has been
//! written follows it without rotational latency.
//!
//! Requests are served in order of arrival: a program that waits has few of them outstanding. Cost: a look at each
//! segment and zone per request.
//!
//! A request counts once it has ended: one prefetched for a program that ends earlier does not
//! ([`TracedDisk::count_until`]).

use std::collections::VecDeque;

use super::disk_costs::Cost;
use super::parameters::Disk;
use super::seeks::SeekCurve;

/// The positions of sectors. [`Default`]: none; no request needs an arm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Geometry {
    /// From the first byte on.
    pub zones: Vec<Zone>,
    /// Bytes of a segment of the disk's cache, which is also the read-ahead limit.
    pub segment_bytes: f64,
    /// Whether a write ends for the host once it is in the cache.
    pub writes_behind: bool,
}

/// Bytes with one media rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zone {
    pub first: f64,
    /// Number of bytes.
    pub bytes: f64,
    pub first_cylinder: f64,
    /// Number of cylinders.
    pub cylinders: f64,
    /// Nanoseconds per byte, including head and cylinder switches.
    pub surface: f64,
    /// The same along a track.
    pub track: f64,
}

/// A segment of the disk's cache, in bytes of the disk.
#[derive(Debug, Clone, Copy, Default)]
struct Segment {
    start: f64,
    end: f64,
    /// Where the last request that it served ended.
    asked: f64,
    /// Sequence number of its last use in requests; 0: it is empty.
    used: u64,
}

/// A read-ahead in progress.
#[derive(Debug, Clone, Copy)]
struct Reading {
    segment: usize,
    /// Its first byte, and its start time.
    from: f64,
    since: f64,
    /// The byte before which it stops.
    stop: f64,
    /// Nanoseconds per byte along the track, and over tracks.
    track: f64,
    surface: f64,
}

impl Reading {
    fn reached(&self, time: f64) -> f64 {
        if self.track <= 0.0 {
            return self.stop;
        }
        (self.from + (time - self.since).max(0.0) / self.track).min(self.stop)
    }
}

/// The end of a request.
#[derive(Debug, Clone, Copy)]
struct Ending {
    at: f64,
    cost: Cost,
    hit: bool,
    write: bool,
}

/// A disk that serves a trace.
#[derive(Debug)]
pub struct TracedDisk {
    disk: Disk,
    curve: SeekCurve,
    geometry: Geometry,
    segments: Vec<Segment>,
    reading: Option<Reading>,
    /// The byte after the last that has passed the head, and when it had; `None`: no byte has.
    head: f64,
    passed: Option<f64>,
    /// When the last request ends.
    free: f64,
    /// Until when the head writes the cache's data, and the bytes of the run being written.
    writing: f64,
    run: (f64, f64),
    /// Number of requests so far.
    asked: u64,
    /// Requests that have not been counted, by their ends.
    under_way: VecDeque<Ending>,
    /// The total times of all counted requests; their number; and the number whose first byte was in the cache.
    pub total: Cost,
    /// See `total`.
    pub requests: u64,
    /// See `total`.
    pub hits: u64,
    /// Writes among `requests`.
    pub writes: u64,
}

impl TracedDisk {
    /// With the head at the first byte. The caller has checked the disk's parameters.
    #[must_use]
    pub fn new(disk: &Disk, curve: SeekCurve, geometry: Geometry) -> Self {
        let segments = vec![Segment::default(); disk.cache_segments as usize];
        Self {
            disk: *disk,
            curve,
            geometry,
            segments,
            reading: None,
            head: 0.0,
            passed: None,
            free: 0.0,
            writing: 0.0,
            run: (0.0, 0.0),
            asked: 0,
            under_way: VecDeque::new(),
            total: Cost::default(),
            requests: 0,
            hits: 0,
            writes: 0,
        }
    }

    /// Places the head at byte `first`, before the first request.
    pub fn stand_at(&mut self, first: u64) {
        self.head = first as f64;
    }

    /// A request at time `at`, no earlier than the previous one, for `bytes` from `first` on; returns when it ends.
    pub fn read(&mut self, at: f64, first: u64, bytes: u64) -> f64 {
        self.count_until(at);
        self.asked += 1;
        let (first, bytes) = (first as f64, bytes as f64);
        let (cost, hit) =
            if self.disk.parallel { self.beside_others(at, bytes) } else { self.one_by_one(at, (first, bytes)) };
        self.under_way.push_back(Ending { at: self.free, cost, hit, write: false });
        self.free
    }

    /// A write at time `at` of `bytes` from `first` on; returns when it ends. For a disk that serves one request at a
    /// time.
    pub fn write(&mut self, at: f64, first: u64, bytes: u64) -> f64 {
        self.count_until(at);
        self.asked += 1;
        let run = (first as f64, (first + bytes) as f64);
        let now = at.max(self.free);
        self.settle(now);
        self.break_off(now);
        let hit = self.geometry.writes_behind;
        let cost = if hit { self.write_behind(now, run) } else { self.write_through(now, run) };
        self.free = now + cost.sum();
        self.under_way.push_back(Ending { at: self.free, cost, hit, write: true });
        self.free
    }

    fn write_through(&mut self, now: f64, (first, end): (f64, f64)) -> Cost {
        let cost = self.surface(now, first, end);
        (self.head, self.passed) = (end, Some(now + cost.sum()));
        cost
    }

    /// Into the cache, which holds one run at a time; the head writes it later.
    fn write_behind(&mut self, now: f64, (first, end): (f64, f64)) -> Cost {
        let ready = now + self.disk.hit_overhead_ns;
        let fits = end - self.run.0 <= self.geometry.segment_bytes;
        let goes_on = self.writing > ready && self.run.1 == first && fits;
        let begun = if goes_on { ready } else { ready.max(self.writing) };
        let start = begun.max(self.writing);
        let (seek, rotation) = if goes_on { (0.0, 0.0) } else { self.position(start, first) };
        let transfer = (end - first) * self.bus();
        let surface = (end - first) * self.rates(first).0;
        self.writing = (start + seek + rotation + surface).max(begun + transfer);
        self.run = (if goes_on { self.run.0 } else { first }, end);
        (self.head, self.passed) = (end, Some(self.writing));
        Cost { overhead: begun - now, transfer, ..Cost::default() }
    }

    /// Counts the requests that have ended by `time`.
    pub fn count_until(&mut self, time: f64) {
        while let Some(ended) = self.under_way.front().filter(|request| request.at <= time).copied() {
            self.under_way.pop_front();
            self.total.add(ended.cost, 1.0);
            self.requests += 1;
            self.hits += u64::from(ended.hit);
            self.writes += u64::from(ended.write);
        }
    }

    /// The cost of a request that waits for those before it, and whether the cache holds its first byte.
    fn one_by_one(&mut self, at: f64, (first, bytes): (f64, f64)) -> (Cost, bool) {
        let now = at.max(self.free);
        let ahead = if self.disk.read_during_overhead { self.disk.hit_overhead_ns } else { 0.0 };
        self.settle(now + ahead);
        let held = self.holds(first, now + ahead);
        let cost = match held {
            Some((segment, held)) => self.hit(now, segment, held, (first, bytes)),
            None => self.miss(now, (first, bytes)),
        };
        self.free = now + cost.sum();
        (cost, held.is_some())
    }

    /// Fixed times overlap, transfers take turns.
    fn beside_others(&mut self, at: f64, bytes: f64) -> (Cost, bool) {
        let (overhead, transfer) = (self.disk.miss_overhead_ns, bytes * self.bus());
        self.free = (at + overhead).max(self.free) + transfer;
        (Cost { overhead, transfer, ..Cost::default() }, false)
    }

    fn bus(&self) -> f64 {
        1e9 / self.disk.bus_bytes_per_second
    }

    /// Ends a stream that has reached its stop by `time`.
    fn settle(&mut self, time: f64) {
        let Some(reading) = self.reading.filter(|reading| reading.reached(time) >= reading.stop) else { return };
        self.fill(reading.segment, reading.stop);
        self.head = reading.stop;
        self.passed = Some(reading.since + (reading.stop - reading.from) * reading.track);
        self.reading = None;
    }

    /// The segment that holds the byte `first` at `time`, and up to where it has been read; of several, the most
    /// recently used.
    fn holds(&self, first: f64, time: f64) -> Option<(usize, f64)> {
        let held = |(index, segment): (usize, &Segment)| {
            let reading = self.reading.filter(|reading| reading.segment == index);
            let end = reading.map_or(segment.end, |reading| reading.reached(time));
            let start = segment.start.max(end - self.geometry.segment_bytes);
            (segment.used > 0 && (start..end).contains(&first)).then_some((segment.used, index, end))
        };
        let found = self.segments.iter().enumerate().filter_map(held).max_by_key(|(used, ..)| *used);
        found.map(|(_, index, end)| (index, end))
    }

    fn hit(&mut self, now: f64, index: usize, held: f64, (first, bytes): (f64, f64)) -> Cost {
        let (overhead, end) = (self.disk.hit_overhead_ns, first + bytes);
        let crossing = bytes * self.bus();
        let goes_on = self.reading_goes_on(first);
        self.touch(index, end);
        let cost = match &mut self.reading {
            Some(reading) if reading.segment == index => {
                // The paper's transfer only uses the bus; here it also waits for data not yet read from the media.
                let missing = (end - reading.from).max(0.0) * reading.surface - (now + overhead - reading.since);
                let ahead = if goes_on { self.geometry.segment_bytes } else { 0.0 };
                reading.stop = reading.stop.max(end + ahead);
                let late = if end > held { missing.max(0.0) } else { 0.0 };
                return Cost { overhead, transfer: crossing.max(late), ..Cost::default() };
            }
            _ if end <= held => Cost { overhead, transfer: crossing, ..Cost::default() },
            _ => {
                self.break_off(now + self.disk.miss_overhead_ns);
                return self.rest(now, index, held, (first, bytes));
            }
        };
        let leaves = if self.disk.read_during_overhead { now + overhead } else { now };
        self.break_off(leaves);
        cost
    }

    /// The first bytes, up to `held`, cross the bus while the arm moves for the others.
    fn rest(&mut self, now: f64, index: usize, held: f64, (first, bytes): (f64, f64)) -> Cost {
        let end = first + bytes;
        let goes_on = self.reading_goes_on(first);
        let cost = self.surface(now, held, end);
        let positioned = cost.overhead + cost.seek + cost.rotation;
        let crossed = self.disk.hit_overhead_ns + bytes * self.bus() - positioned;
        self.read_on(index, now + positioned, (held, end), goes_on);
        Cost { transfer: cost.transfer.max(crossed), ..cost }
    }

    fn miss(&mut self, now: f64, (first, bytes): (f64, f64)) -> Cost {
        let leaves = if self.disk.read_during_overhead { now + self.disk.miss_overhead_ns } else { now };
        self.break_off(leaves);
        let end = first + bytes;
        let cost = self.surface(now, first, end);
        let goes_on = self.reading_goes_on(first);
        if let Some(index) = self.segment_for(first) {
            self.segments[index] = Segment { start: first, end: first, ..Segment::default() };
            self.touch(index, end);
            self.read_on(index, now + cost.overhead + cost.seek + cost.rotation, (first, end), goes_on);
        } else {
            self.head = end;
            self.passed = Some(now + cost.sum());
        }
        cost
    }

    /// Equation (2), for a request that arrives at `now` and needs `first` to `end` from the media.
    fn surface(&self, now: f64, first: f64, end: f64) -> Cost {
        let start = (now + self.disk.miss_overhead_ns).max(self.writing);
        let (seek, rotation) = self.position(start, first);
        let transfer = (end - first) * self.bus().max(self.rates(first).0);
        Cost { overhead: start - now, seek, rotation, transfer }
    }

    /// How long the arm takes from time `start` on to reach the byte `first`, and how long the byte then takes to pass.
    fn position(&self, start: f64, first: f64) -> (f64, f64) {
        let turn = self.disk.revolution_ns;
        let distance = (self.cylinder(first) - self.cylinder(self.head)).abs();
        let rotation = match self.passed.filter(|_| first == self.head && turn > 0.0) {
            // The position has just passed, and comes round again.
            Some(passed) => turn - (start - passed).max(0.0) % turn,
            None => turn / 2.0,
        };
        (self.curve.time(distance as u32), rotation)
    }

    /// From `begun` on the head has read `first` to `end` into a segment, and reads ahead from there.
    fn read_on(&mut self, index: usize, begun: f64, (first, end): (f64, f64), goes_on: bool) {
        let (surface, track) = self.rates(first);
        let since = begun + (end - first) * surface;
        self.fill(index, end);
        self.head = end;
        self.passed = Some(since);
        if self.disk.read_ahead && goes_on {
            let stop = end + self.geometry.segment_bytes;
            self.reading = Some(Reading { segment: index, from: end, since, stop, track, surface });
        }
    }

    /// Whether the head may read ahead after a request for `first`.
    fn reading_goes_on(&self, first: f64) -> bool {
        !self.disk.read_ahead_on_sequence || self.followed(first).is_some()
    }

    /// The segment whose last request ended at `first`.
    fn followed(&self, first: f64) -> Option<usize> {
        self.segments.iter().position(|segment| segment.used > 0 && segment.asked == first)
    }

    /// The segment for a request that none serves: that of the sequence if the disk detects sequences, else the least
    /// recently used.
    fn segment_for(&self, first: f64) -> Option<usize> {
        let followed = self.followed(first).filter(|_| self.disk.read_ahead_on_sequence);
        followed.or_else(|| (0..self.segments.len()).min_by_key(|index| self.segments[*index].used))
    }

    fn touch(&mut self, index: usize, asked: f64) {
        let segment = &mut self.segments[index];
        (segment.used, segment.asked) = (self.asked, asked);
    }

    /// Extends a segment to `end`; the oldest data that no longer fit are overwritten.
    fn fill(&mut self, index: usize, end: f64) {
        let segment = &mut self.segments[index];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end - self.geometry.segment_bytes);
    }

    /// Interrupts the stream at `time`.
    fn break_off(&mut self, time: f64) {
        let Some(reading) = self.reading.take() else { return };
        let reached = reading.reached(time);
        self.fill(reading.segment, reached);
        (self.head, self.passed) = (reached, Some(time));
    }

    fn zone(&self, byte: f64) -> Option<&Zone> {
        let zones = &self.geometry.zones;
        zones.iter().rev().find(|zone| zone.first <= byte).or(zones.first())
    }

    fn cylinder(&self, byte: f64) -> f64 {
        let Some(zone) = self.zone(byte) else { return 0.0 };
        let within = ((byte - zone.first) / zone.bytes).clamp(0.0, 1.0) * zone.cylinders;
        zone.first_cylinder + within.min(zone.cylinders - 1.0).floor()
    }

    /// Nanoseconds per byte at `byte`: over tracks, and along one.
    fn rates(&self, byte: f64) -> (f64, f64) {
        let disk = (1e9 / self.disk.disk_bytes_per_second, 1e9 / self.disk.track_bytes_per_second);
        self.zone(byte).map_or(disk, |zone| (zone.surface, zone.track))
    }
}

#[cfg(test)]
mod tests;
