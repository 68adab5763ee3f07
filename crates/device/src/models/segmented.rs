//! A drive whose buffer is divided into segments, each with a run of sectors that were read or written.
//!
//! A read whose first sector lies in a segment is served from there, and from the media for what is not in yet. Any
//! other read takes the segment that was used longest ago, and the head goes on reading into it afterwards, as far
//! as the profile lets it, or until the next request for another place breaks it off at the end of a sector. A write
//! may be done as soon as it is in the buffer; the head then writes it out behind the host's back, and what needs the
//! media meanwhile waits. All of that is a function of time: the state is the segments' ends, one stream, and the
//! instants at which writes will be out.
//!
//! After DiskSim 4's disk module (Bucy, Schindler, Schlosser, Ganger and others, CMU-PDL-08-101, section 3.6). What
//! differs: see `mechanical.rs`; a hit never waits for a write that is under way elsewhere.
//!
//! Cost: a hit a scan of the segments and some divisions; a miss about thirty divisions. 40 bytes a segment.

mod reads;
mod writes;

use headstart_types::Nanos;

use super::geometry::{Access, Place};
use super::mechanical::Parameters;
use super::segments::{Buffer, Reporting, Segments};
use super::stream::{Progress, Stream};
use crate::{Request, Service};

/// A read-ahead that is under way, or was when last looked at.
#[derive(Debug, Clone)]
struct Reading {
    segment: usize,
    stream: Stream,
    /// It is not broken off before it has read up to here.
    at_least: u64,
}

/// Written data on their way to the media.
#[derive(Debug, Clone, Copy)]
struct Pending {
    segment: usize,
    done: Nanos,
}

/// The state of such a drive.
#[derive(Debug, Clone)]
pub(crate) struct Segmented {
    buffer: Buffer,
    segments: Segments,
    reading: Option<Reading>,
    /// Writes that are not out yet, in their order.
    pending: Vec<Pending>,
    /// When the media is free of them.
    written: Nanos,
    /// Where the head is without a stream.
    rest: Place,
    /// The last request was a write, and where it ended.
    after_write: bool,
    write_end: u64,
}

/// Where and from when on the head can move for another request.
#[derive(Debug, Clone, Copy)]
struct Free {
    at: Nanos,
    head: Place,
    /// What the broken-off stream has read by then.
    read: Option<u64>,
}

/// What the stream has come to: how far it is while it reads, where the head rests otherwise, and how far its
/// segment is.
#[derive(Debug, Clone, Copy)]
struct Look {
    progress: Option<Progress>,
    rest: Place,
    read: Option<(usize, u64)>,
}

impl Segmented {
    /// An empty buffer.
    pub fn new(buffer: Buffer) -> Self {
        Self {
            segments: Segments::new(&buffer),
            reading: None,
            pending: Vec::with_capacity(buffer.write_segments),
            written: Nanos::ZERO,
            rest: Place { cylinder: 0, surface: 0 },
            after_write: false,
            write_end: 0,
            buffer,
        }
    }

    /// See [`crate::Device::serve`].
    #[inline]
    pub fn serve(&mut self, parameters: &Parameters, now: Nanos, request: &Request) -> Service {
        let progress = self.settle(parameters, now);
        self.pending.retain(|pending| pending.done > now);
        let service = if request.write {
            self.write(parameters, now, request, progress)
        } else {
            match self.hit(request, progress, None) {
                Some(segment) => self.read_hit(parameters, now, request, segment, progress),
                None => self.read_miss(parameters, now, request, progress),
            }
        };
        self.after_write = request.write;
        service
    }

    /// What the stream has come to at `now`.
    #[inline]
    fn look(&self, parameters: &Parameters, now: Nanos) -> Look {
        let Some(reading) = &self.reading else { return Look { progress: None, rest: self.rest, read: None } };
        let zone = &parameters.arm.zones[reading.stream.zone];
        if reading.stream.has_stopped(zone, now) {
            let read = Some((reading.segment, reading.stream.stop()));
            return Look { progress: None, rest: reading.stream.stopped_at(zone), read };
        }
        let progress = reading.stream.progress(zone, now);
        Look { progress: Some(progress), rest: self.rest, read: Some((reading.segment, progress.end)) }
    }

    /// Brings the segment of the stream up to `now`; how far the stream is, while it reads.
    #[inline]
    fn settle(&mut self, parameters: &Parameters, now: Nanos) -> Option<Progress> {
        let Look { progress, rest, read } = self.look(parameters, now);
        if let Some((segment, end)) = read {
            self.segments.read_to(segment, end);
        }
        if progress.is_none() {
            self.reading = None;
            self.rest = rest;
        }
        progress
    }

    /// When the head is free for something else than its stream, and where, if it would rest at `rest` by itself.
    #[inline]
    fn free(&self, parameters: &Parameters, now: Nanos, progress: Option<Progress>, rest: Place) -> Free {
        let waiting = now.max(self.written);
        let (Some(reading), Some(progress)) = (&self.reading, progress) else {
            return Free { at: waiting, head: rest, read: None };
        };
        let arm = &parameters.arm;
        let leave = if progress.end < reading.at_least {
            let mut stream = reading.stream.clone();
            let until = stream.read_to(&arm.zones[stream.zone], reading.at_least, (u64::MAX, Nanos::ZERO));
            let head = arm.zones[stream.zone].locate(reading.at_least - 1, Access::Read).1;
            Free { at: until.max(now), head, read: Some(reading.at_least) }
        } else {
            let leave = reading.stream.leave(arm, &progress, now, self.buffer.stop_within_sector);
            Free { at: leave.free, head: leave.head, read: Some(leave.end) }
        };
        Free { at: leave.at.max(waiting), ..leave }
    }

    /// Breaks the stream off.
    fn break_off(&mut self, parameters: &Parameters, now: Nanos, progress: Option<Progress>) -> Free {
        let free = self.free(parameters, now, progress, self.rest);
        if let (Some(reading), Some(read)) = (self.reading.take(), free.read) {
            self.segments.read_to(reading.segment, read);
        }
        self.rest = free.head;
        free
    }

    /// The segment that serves `request`, if its first sector is there; `read` says how far the stream's segment is.
    #[inline]
    fn hit(&self, request: &Request, progress: Option<Progress>, read: Option<(usize, u64)>) -> Option<usize> {
        if !self.buffer.caching {
            return None;
        }
        if let Some(segment) = self.segments.find(request.sector, request.end(), self.buffer.hit_on_written, read) {
            return Some(segment);
        }
        let (reading, progress) = (self.reading.as_ref()?, progress?);
        (self.buffer.hit_under_way && progress.end == request.sector).then_some(reading.segment)
    }

    /// See [`crate::Device::positioning`].
    pub fn positioning(&self, parameters: &Parameters, now: Nanos, request: &Request) -> Nanos {
        let Look { progress, rest, read } = self.look(parameters, now);
        let after = usize::from(self.after_write);
        if !request.write {
            if self.hit(request, progress, read).is_some() {
                return Nanos::ZERO;
            }
            let free = self.free(parameters, now, progress, rest);
            let ready = now + parameters.overheads.read_miss[after];
            let start = ready.max(free.at);
            let run = (request.sector, request.sector + 1);
            let passage = parameters.arm.pass((start, Nanos::ZERO), free.head, run, Access::Read);
            return start - ready + passage.seek + passage.rotation;
        }
        if self.buffer.reporting != Reporting::Media {
            let overheads = &parameters.overheads;
            let ready = now + overheads.write_hit[after] + overheads.data_preparation;
            let room = if self.appends(now, request).is_some() { now } else { self.room(now) };
            return room.saturating_sub(ready);
        }
        let free = self.free(parameters, now, progress, rest);
        let service = self.through(parameters, now, request, &free).0;
        service.wait + service.seek + service.rotation
    }

    /// See [`crate::Device::travel`].
    pub fn travel(&mut self, parameters: &Parameters, now: Nanos, sector: u64) -> Nanos {
        let progress = self.settle(parameters, now);
        let free = self.break_off(parameters, now, progress);
        let arm = &parameters.arm;
        let zone = &arm.zones[arm.zone_of(sector)];
        let to = Place { surface: free.head.surface, ..zone.locate(sector, Access::Read).1 };
        self.rest = to;
        free.at + arm.movement(free.head, to, Access::Read)
    }
}

/// Whether data that are not out yet lie in `segment`.
fn holds(pending: &[Pending], segment: usize) -> bool {
    pending.iter().any(|pending| pending.segment == segment)
}
