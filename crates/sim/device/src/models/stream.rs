//! The read-ahead stream: what the buffer holds and how far the head has read, computed without simulating it.
//!
//! After a read the head continues along the path into the buffer, while the drive serves from it or is idle. It stops
//! a buffer's length after the last request (delivered data may be overwritten, other data may not) and continues when
//! a later request frees space. All of this is a function of time: one known instant on the path, the *anchor*,
//! determines when any later sector has been read. Nothing happens between requests, so nothing is computed between
//! them.

use headstart_types::Nanos;

use super::arm::{Arm, Piece};
use super::bus::Bus;
use super::geometry::{Access, HeadPosition, Zone};
use super::rotation::Tick;

/// A stream within one zone.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Index of the zone.
    pub zone: usize,
    /// First sector ever read by this stream.
    first: u64,
    /// Sectors before this one have been read, or will have been at `tick`: see [`Stream::is_in`].
    anchor: u64,
    /// Path at `tick`.
    anchor_path: u64,
    tick: Tick,
    /// The head stops before this sector.
    stop: u64,
    /// A lower bound of the instant at which the head stops.
    stop_not_before: Nanos,
}

impl Stream {
    /// The stream of a head that has just read `piece` and continues until `stop`; `not_before` is a lower bound of the
    /// instant at which it stops.
    #[inline]
    #[must_use]
    pub(crate) fn new(piece: &Piece, stop: u64, not_before: Nanos) -> Self {
        Self {
            zone: piece.zone,
            first: piece.from,
            anchor: piece.end,
            anchor_path: piece.path,
            tick: piece.tick,
            stop,
            stop_not_before: not_before,
        }
    }

    /// Whether all sectors before `end` have been read at `now`. The caller guarantees `end <= self.stop`.
    #[inline]
    fn is_in(&self, zone: &Zone, end: u64, now: Nanos) -> bool {
        // Everything before the anchor has been read: no request is served before the one that set the anchor is done.
        end <= self.anchor || self.has_passed(zone, zone.path(end - 1) + 1, now)
    }

    /// Whether the head has reached `path` at `now`.
    #[inline]
    fn has_passed(&self, zone: &Zone, path: u64, now: Nanos) -> bool {
        zone.rotation.passed(self.tick, now) >= path - self.anchor_path
    }

    /// Whether a read of `sector` at `now` continues this stream: the sector is in the buffer or is the next to be
    /// read.
    ///
    /// A sector further ahead does not count, because the drive repositions for it. Nor does the next sector of a
    /// stream that has stopped.
    #[inline]
    #[must_use]
    pub fn holds(&self, zone: &Zone, sector: u64, buffer: u64, now: Nanos) -> bool {
        if sector < self.first || sector >= self.stop {
            return false;
        }
        if sector >= self.anchor {
            return self.is_in(zone, sector, now);
        }
        // Before the anchor: not yet overwritten while the head is at most a buffer's length ahead.
        let over = sector + buffer + 1;
        over > self.stop || !self.is_in(zone, over, now)
    }

    /// Whether the head has stopped by `time`.
    #[inline]
    #[must_use]
    pub fn has_stopped(&self, zone: &Zone, time: Nanos) -> bool {
        time >= self.stop_not_before && self.is_in(zone, self.stop, time)
    }

    /// Extends the stream to `stop`; if it has stopped by `time`, it continues from `time` on, after `reposition`,
    /// which gives the time of moving from one place to another.
    #[inline]
    pub fn extend(
        &mut self,
        zone: &Zone,
        stop: u64,
        time: Nanos,
        reposition: impl Fn(HeadPosition, HeadPosition) -> Nanos,
    ) {
        if stop <= self.stop {
            return;
        }
        if time >= self.stop_not_before {
            let (last, from) = zone.locate(self.stop - 1, Access::Read);
            if self.stop <= self.anchor || self.has_passed(zone, last + 1, time) {
                let (path, place) = zone.locate(self.stop, Access::Read);
                self.tick = zone.rotation.next(time + reposition(from, place), path);
                self.anchor = self.stop;
                self.anchor_path = path;
            }
        }
        self.stop = stop;
    }

    /// The instant at which all sectors before `end` have been read; zero if they already were. Reading `buffer`
    /// sectors takes at least `fill`. The caller guarantees `end <= self.stop`.
    #[inline]
    pub fn read_to(&mut self, zone: &Zone, end: u64, (buffer, fill): (u64, Nanos)) -> Nanos {
        if end <= self.anchor {
            self.stop_not_before = Nanos::ZERO;
            return Nanos::ZERO;
        }
        let path = zone.path(end - 1) + 1;
        let tick = zone.rotation.after(self.tick, path - self.anchor_path);
        (self.anchor, self.anchor_path, self.tick) = (end, path, tick);
        let done = zone.rotation.time(tick);
        self.stop_not_before = if self.stop - end >= buffer { done + fill } else { done };
        done
    }

    /// When `sector` begins to pass, and when it has been read. The caller guarantees that it lies between the anchor
    /// and the stop.
    #[must_use]
    pub fn passes(&self, zone: &Zone, sector: u64) -> (Nanos, Nanos) {
        let ticks = zone.path(sector) - self.anchor_path;
        let at = |ticks: u64| zone.rotation.time(zone.rotation.after(self.tick, ticks));
        (at(ticks), at(ticks + 1))
    }

    /// [`Self::read_to`] for a read of `from..end` over `bus`, and when the bus has moved everything read up to `to`,
    /// considering only the sectors that have not been read yet: see [`Bus::end_behind_gaps`].
    #[inline]
    pub(crate) fn read_to_bus(
        &mut self,
        zone: &Zone,
        (from, to, end): (u64, u64, u64),
        fill: (u64, Nanos),
        bus: &Bus,
    ) -> (Nanos, Nanos) {
        let (from, known) = (from.max(self.anchor), (self.anchor_path, self.tick));
        let done = self.read_to(zone, to, fill);
        let slower = from < to && bus.is_slower(zone);
        let bus_end = if slower { bus.end_behind_gaps(zone, known, (from, to), end) } else { Nanos::ZERO };
        (done, bus_end)
    }

    /// The sector before which the head stops.
    #[must_use]
    pub fn stop(&self) -> u64 {
        self.stop
    }

    /// The first sector that it read.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Where the head rests once it has stopped.
    #[must_use]
    pub fn stopped_at(&self, zone: &Zone) -> HeadPosition {
        zone.locate(self.stop - 1, Access::Read).1
    }

    /// Where the head is at `now`.
    #[must_use]
    pub fn head(&self, zone: &Zone, now: Nanos) -> HeadPosition {
        if self.has_stopped(zone, now) {
            return self.stopped_at(zone);
        }
        zone.place_at(self.anchor_path + zone.rotation.passed(self.tick, now))
    }

    /// Extends the stream to `stop`. The caller guarantees that it has not stopped.
    #[inline]
    pub fn raise(&mut self, stop: u64) {
        self.stop = self.stop.max(stop);
    }

    /// How far the head has read at `now`. The caller guarantees that it has not stopped.
    #[must_use]
    pub fn progress(&self, zone: &Zone, now: Nanos) -> Progress {
        let passed = zone.rotation.passed(self.tick, now);
        let (end, beyond) = zone.passed_at(self.anchor_path + passed);
        Progress { passed, end: end.clamp(self.anchor, self.stop), beyond }
    }

    /// When and where the head can leave the stream: at the end of the passing sector, or after a head switch in
    /// progress; and what has been read by then.
    #[must_use]
    pub(crate) fn leave(&self, arm: &Arm, progress: &Progress, now: Nanos, within_sector: bool) -> Leave {
        let zone = &arm.zones[self.zone];
        let &Progress { passed, end, beyond } = progress;
        let at = |ticks: u64| zone.rotation.time(zone.rotation.after(self.tick, ticks));
        let on_track = zone.place_at(self.anchor_path + passed);
        if beyond > 0 && end < self.stop {
            let next = zone.locate(end, Access::Read).1;
            let switched = at(passed - beyond) + arm.movement(on_track, next, Access::Read);
            return Leave { free: now.max(switched), head: next, end };
        }
        if within_sector || at(passed) >= now {
            return Leave { free: now, head: on_track, end };
        }
        let end = zone.passed_at(self.anchor_path + passed + 1).0.clamp(end, self.stop);
        Leave { free: at(passed + 1), head: on_track, end }
    }
}

/// The progress of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Ticks since the anchor.
    passed: u64,
    /// The sector after the last that was read.
    pub end: u64,
    /// Ticks since the end of the head's track.
    beyond: u64,
}

/// The interruption of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Leave {
    /// When the head is free.
    pub free: Nanos,
    /// Where it is then.
    pub head: HeadPosition,
    /// The sector after the last that was read by then.
    pub end: u64,
}
