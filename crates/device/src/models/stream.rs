//! The read-ahead stream: what the buffer holds and how far the head has read, without simulating it.
//!
//! After a read the head goes on along the path, into the buffer, while the drive serves from it or is idle. It
//! stops a buffer's length past the last request (what was delivered may be overwritten, what was not may not)
//! and goes on when a later request frees room. All of that is a function of time: one known instant on the
//! path, the *anchor*, gives when any later sector is in. Nothing happens between requests, so nothing is
//! computed between them.

use headstart_types::Nanos;

use super::geometry::{Place, Zone};
use super::rotation::Tick;

/// One stream within one zone.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Index of the zone.
    pub zone: usize,
    /// First sector ever read by this stream.
    first: u64,
    /// Sectors before this one are in, or will be at `tick`: see [`Stream::is_in`].
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
    /// A stream whose head meets the start of `sector`, at `path`, at `tick`, and stops before `stop`.
    #[must_use]
    pub fn new(zone: usize, sector: u64, path: u64, tick: Tick, stop: u64) -> Self {
        Self { zone, first: sector, anchor: sector, anchor_path: path, tick, stop, stop_not_before: Nanos::ZERO }
    }

    /// The tick that ends sector `end - 1`. The caller guarantees `end > self.anchor`.
    #[inline]
    fn tick_of_end(&self, zone: &Zone, end: u64) -> (u64, Tick) {
        let path = zone.path(end - 1) + 1;
        (path, zone.rotation.after(self.tick, path - self.anchor_path))
    }

    /// Whether all sectors before `end` have been read at `now`. The caller guarantees `end <= self.stop`.
    #[inline]
    fn is_in(&self, zone: &Zone, end: u64, now: Nanos) -> bool {
        // Up to the anchor all is in: no request is served before the one that set the anchor is done.
        end <= self.anchor || zone.rotation.time(self.tick_of_end(zone, end).1) <= now
    }

    /// Whether a read of `sector` at `now` goes on from this stream: it is in the buffer or the next to be read.
    ///
    /// A sector further ahead does not count: the drive repositions for it. Nor does the next sector of a stream
    /// that has stopped.
    #[inline]
    #[must_use]
    pub fn holds(&self, zone: &Zone, sector: u64, buffer: u64, now: Nanos) -> bool {
        if sector < self.first || sector >= self.stop {
            return false;
        }
        if sector >= self.anchor {
            return self.is_in(zone, sector, now);
        }
        // Behind the anchor: not yet overwritten while the head is at most a buffer's length past it.
        let over = sector + buffer + 1;
        over > self.stop || !self.is_in(zone, over, now)
    }

    /// Whether the head has stopped by `time`.
    #[inline]
    fn has_stopped(&self, zone: &Zone, time: Nanos) -> bool {
        time >= self.stop_not_before && self.is_in(zone, self.stop, time)
    }

    /// Lets the head read on to `stop`; where it has stopped by `time`, from `time` on, after `reposition` has
    /// said how long moving from one place to another takes.
    #[inline]
    pub fn extend(&mut self, zone: &Zone, stop: u64, time: Nanos, reposition: impl Fn(Place, Place) -> Nanos) {
        if stop <= self.stop {
            return;
        }
        if self.has_stopped(zone, time) {
            let (path, place) = zone.locate(self.stop);
            let from = zone.locate(self.stop - 1).1;
            self.tick = zone.rotation.next(time + reposition(from, place), path);
            self.anchor = self.stop;
            self.anchor_path = path;
        }
        self.stop = stop;
    }

    /// The instant at which all sectors before `end` have been read; zero where they were before. Reading
    /// `buffer` sectors takes at least `fill`. The caller guarantees `end <= self.stop`.
    #[inline]
    pub fn read_to(&mut self, zone: &Zone, end: u64, (buffer, fill): (u64, Nanos)) -> Nanos {
        if end <= self.anchor {
            self.stop_not_before = Nanos::ZERO;
            return Nanos::ZERO;
        }
        let (path, tick) = self.tick_of_end(zone, end);
        (self.anchor, self.anchor_path, self.tick) = (end, path, tick);
        let done = zone.rotation.time(tick);
        self.stop_not_before = if self.stop - end >= buffer { done + fill } else { done };
        done
    }

    /// Where the head is at `now`.
    #[must_use]
    pub fn head(&self, zone: &Zone, now: Nanos) -> Place {
        if self.has_stopped(zone, now) {
            return zone.locate(self.stop - 1).1;
        }
        zone.place_at(self.anchor_path + zone.rotation.passed(self.tick, now))
    }
}
