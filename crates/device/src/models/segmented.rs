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

use headstart_types::Nanos;

use super::arm::Passage;
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

/// What came of the turn before the first sector.
#[derive(Debug, Clone, Copy)]
struct Around {
    /// When the last sector of the request had passed.
    done: Nanos,
    /// From where on the track has passed up to the request.
    kept: Option<u64>,
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

    fn read_hit(
        &mut self,
        parameters: &Parameters,
        now: Nanos,
        request: &Request,
        segment: usize,
        progress: Option<Progress>,
    ) -> Service {
        let Parameters { overheads, bus_sector, .. } = parameters;
        let after = usize::from(self.after_write);
        let held = self.segments.end(segment);
        let part = held < request.end();
        let overhead =
            if part && !self.buffer.partial_hit { overheads.read_miss[after] } else { overheads.read_hit[after] }
                + overheads.data_preparation;
        let ready = now + overhead;
        let mut end = ready + parameters.bus.time(request.sectors, false);
        let streams = self.reading.as_ref().is_some_and(|reading| reading.segment == segment);
        let mut free = now.max(self.written);
        if streams {
            self.read_on(parameters, request);
        } else if self.reading.is_some() {
            free = self.break_off(parameters, now, progress).at;
        }
        if part {
            let done = if streams {
                self.follow(parameters, now, request)
            } else {
                let from = (now + overheads.read_miss[after]).max(free);
                self.fetch(parameters, from, segment, (held, request)).done
            };
            let back = if done > ready { overheads.first_reselect + overheads.data_preparation } else { Nanos::ZERO };
            end = end.max(done + back + bus_sector[0]);
        } else if !streams && self.buffer.read_ahead_on_hit {
            self.read_ahead_again(parameters, ready.max(free), segment, request);
        }
        self.segments.touch(segment);
        if self.buffer.drop_requested {
            self.segments.drop_before(segment, request.end());
        }
        let overhead = overhead + overheads.read_completion;
        let end = end + overheads.read_completion;
        let [seek, rotation, wait] = [Nanos::ZERO; 3];
        Service { end, seek, rotation, transfer: end - now - overhead, overhead, wait, buffer_hit: true }
    }

    /// Lets the stream go on as far as a hit by `request` allows.
    fn read_on(&mut self, parameters: &Parameters, request: &Request) {
        let Some(reading) = &mut self.reading else { return };
        let zone = &parameters.arm.zones[reading.stream.zone];
        let start = self.segments.start(reading.segment);
        let limit = self.buffer.limit(&parameters.arm, request, start).min(zone.run_end(reading.stream.first()));
        reading.stream.raise(limit);
        reading.at_least = reading.at_least.max((request.end() + self.buffer.minimum).min(limit));
    }

    /// When the stream has read all of `request`; where it must end before that, the head goes on elsewhere.
    fn follow(&mut self, parameters: &Parameters, now: Nanos, request: &Request) -> Nanos {
        let Some(reading) = &mut self.reading else { return now };
        let zone = &parameters.arm.zones[reading.stream.zone];
        let reached = request.end().min(reading.stream.stop());
        let segment = reading.segment;
        let done = reading.stream.read_to(zone, reached, (u64::MAX, Nanos::ZERO)).max(now);
        self.segments.read_to(segment, reached);
        if reached == request.end() {
            return done;
        }
        self.rest = zone.locate(reached - 1, Access::Read).1;
        self.fetch(parameters, done, segment, (reached, request)).done
    }

    /// Reads `from..request.end()` into `segment`, from `time` on, and on from there.
    #[inline]
    fn fetch(
        &mut self,
        parameters: &Parameters,
        time: Nanos,
        segment: usize,
        (from, request): (u64, &Request),
    ) -> Passage {
        let passage = parameters.arm.pass((time, Nanos::ZERO), self.rest, (from, request.end()), Access::Read);
        self.rest = passage.head;
        self.segments.read_to(segment, request.end());
        let piece = &passage.last;
        let start = self.segments.start(segment);
        let limit = self.buffer.limit(&parameters.arm, request, start);
        let stop = limit.min(parameters.arm.zones[piece.zone].run_end(piece.from)).max(piece.end);
        let at_least = (piece.end + self.buffer.minimum).min(stop);
        self.reading = (stop > piece.end).then(|| {
            let stream = Stream::new(piece, stop, passage.done);
            Reading { segment, stream, at_least }
        });
        passage
    }

    /// Reads ahead from a stopped segment, from `time` on, until it is one sector further at least.
    fn read_ahead_again(&mut self, parameters: &Parameters, time: Nanos, segment: usize, request: &Request) {
        let held = self.segments.end(segment);
        let limit = self.buffer.limit(&parameters.arm, request, self.segments.start(segment));
        if held < limit {
            let next = Request::read(held, 1, 0);
            self.fetch(parameters, time, segment, (held, &next));
            self.segments.set_end(segment, held);
            if let Some(reading) = &mut self.reading {
                let zone = &parameters.arm.zones[reading.stream.zone];
                reading.stream.raise(limit.min(zone.run_end(held)));
            }
        }
    }

    fn read_miss(
        &mut self,
        parameters: &Parameters,
        now: Nanos,
        request: &Request,
        progress: Option<Progress>,
    ) -> Service {
        let Parameters { overheads, bus_sector, bus, .. } = parameters;
        let after = usize::from(self.after_write);
        let free = self.break_off(parameters, now, progress);
        let ready = now + overheads.read_miss[after];
        let start = ready.max(free.at);
        let pending = &self.pending;
        let segment = self.segments.take(self.buffer.read_segments(), |index| holds(pending, index));
        self.segments.set(segment, request.sector, request.sector, false);
        let passage = self.fetch(parameters, start, segment, (request.sector, request));
        let around = self.around(parameters, request, &passage, Access::Read);
        if let Some(kept) = around.kept.filter(|_| self.buffer.read_before) {
            self.segments.keep_from(segment, kept);
        }
        let done = around.done;
        let wanted = self.buffer.watermark(request.sectors);
        let marked = match wanted {
            0 | 1 => passage.first,
            _ if wanted >= u64::from(request.sectors) => done,
            _ => self.marked(parameters, request, &passage, wanted).min(done),
        };
        let back = overheads.first_reselect + overheads.data_preparation;
        let transfers = marked.max(ready + overheads.read_disconnect[after]) + back;
        let end = (transfers + bus.time(request.sectors, false)).max(done + bus_sector[0]) + overheads.read_completion;
        if self.buffer.drop_requested {
            self.segments.drop_before(segment, request.end());
        }
        let Passage { seek, rotation, .. } = passage;
        let transfer = done - start - seek - rotation;
        let overhead = overheads.read_miss[after] + (end - done);
        Service { end, seek, rotation, transfer, overhead, wait: start - ready, buffer_hit: false }
    }

    /// When the first `wanted` sectors of a passage have been read.
    fn marked(&self, parameters: &Parameters, request: &Request, passage: &Passage, wanted: u64) -> Nanos {
        let zone = &parameters.arm.zones[passage.last.zone];
        let sector = request.sector + wanted - 1;
        if sector < passage.last.from {
            return passage.first;
        }
        let ticks = zone.path(sector) + 1 - zone.path(passage.last.from);
        zone.rotation.time(zone.rotation.after(passage.last.begun, ticks))
    }

    /// What passed while the head waited for the first sector on its track: what lies before it is in, and what of
    /// the request lies behind the place where the head came down need not be waited for again.
    #[inline]
    fn around(&self, parameters: &Parameters, request: &Request, passage: &Passage, access: Access) -> Around {
        let zero_latency = self.buffer.zero_latency[access as usize];
        if !zero_latency && !self.buffer.read_before {
            return Around { done: passage.done, kept: None };
        }
        let arm = &parameters.arm;
        let whole = passage.last.from == request.sector && passage.last.end == request.end();
        let zone = &arm.zones[if whole { passage.last.zone } else { arm.zone_of(request.sector) }];
        let waited = (zone.rotation.least(passage.rotation + Nanos(1)) - 1).min(zone.track_sectors - 1);
        let within = zone.within_track(request.sector);
        let kept = Some(zone.sector_within(request.sector, within.saturating_sub(waited)));
        // It came down behind the first sector, by so many.
        let skipped = zone.track_sectors - waited;
        let length = zone.path(request.end().min(zone.end) - 1) + 1 - zone.path(request.sector);
        let on_track = whole && within + length <= zone.track_sectors;
        let done = if zero_latency && waited > within && on_track && skipped < length {
            zone.rotation.time(zone.rotation.after(passage.last.begun, skipped))
        } else {
            passage.done
        };
        Around { done, kept }
    }

    fn write(&mut self, parameters: &Parameters, now: Nanos, request: &Request, progress: Option<Progress>) -> Service {
        let free = self.break_off(parameters, now, progress);
        let service = match self.buffer.reporting {
            Reporting::Media => self.write_through(parameters, now, request, &free),
            Reporting::Append | Reporting::Buffer => self.write_behind(parameters, now, request, free.at),
        };
        self.write_end = request.end();
        service
    }

    /// A write that is done when it is in the buffer.
    fn write_behind(&mut self, parameters: &Parameters, now: Nanos, request: &Request, free: Nanos) -> Service {
        let overheads = &parameters.overheads;
        let overhead = overheads.write_hit[usize::from(self.after_write)] + overheads.data_preparation;
        let ready = now + overhead;
        let bus = parameters.bus.time(request.sectors, true);
        let append = self.appends(now, request);
        let begun = match append {
            Some(_) => ready,
            None => ready.max(self.room(now)),
        };
        let passage = self.pass_written(parameters, request, self.rest, begun.max(free), (begun, bus), Nanos::ZERO);
        self.pending.retain(|pending| pending.done > begun);
        let done = passage.done;
        let segment = match append {
            Some(segment) => segment,
            None => self.segment_for_write(request),
        };
        self.segments.written(segment, request.sector, request.end());
        self.segments.touch(segment);
        match self.pending.iter_mut().find(|pending| pending.segment == segment) {
            Some(pending) => pending.done = done,
            None => self.pending.push(Pending { segment, done }),
        }
        self.rest = passage.head;
        self.written = done;
        let overhead = overhead + overheads.write_completion;
        let end = begun + bus + overheads.write_completion;
        let [seek, rotation] = [Nanos::ZERO; 2];
        Service { end, seek, rotation, transfer: bus, overhead, wait: begun - ready, buffer_hit: true }
    }

    /// The segment of the last write that is not out at `now`, if `request` goes on where that ends and fits.
    fn appends(&self, now: Nanos, request: &Request) -> Option<usize> {
        let last = self.pending.last().filter(|pending| pending.done > now)?.segment;
        let goes_on = self.buffer.combine && self.segments.end(last) == request.sector;
        let fits = || request.end() - self.segments.start(last) <= self.buffer.size;
        (goes_on && fits()).then_some(last)
    }

    /// From when on a write segment is free.
    fn room(&self, now: Nanos) -> Nanos {
        let most = if self.buffer.reporting == Reporting::Append { 1 } else { self.buffer.write_segments };
        // They are out in their order: so many must be before there is room for one more.
        let over = (self.pending.iter().filter(|pending| pending.done > now).count() + 1).saturating_sub(most);
        match over {
            0 => now,
            _ => self.pending[self.pending.len() - most].done,
        }
    }

    fn segment_for_write(&mut self, request: &Request) -> usize {
        self.segments.forget(request.sector, request.end());
        let pending = &self.pending;
        self.segments.take(self.buffer.segments_for_writes(), |index| holds(pending, index))
    }

    /// Writes `request` to the media from `time` on, where its data cross the bus from `begun` on.
    fn pass_written(
        &self,
        parameters: &Parameters,
        request: &Request,
        head: Place,
        time: Nanos,
        (begun, bus): (Nanos, Nanos),
        least_seek: Nanos,
    ) -> Passage {
        let arm = &parameters.arm;
        let zone = &arm.zones[arm.zone_of(request.sector)];
        // The head may not come to a sector that has not crossed the bus: neither the first nor the last.
        let media = Nanos(zone.rotation.span(u64::from(request.sectors) - 1));
        let not_before = (begun + parameters.bus_sector[1]).max((begun + bus).saturating_sub(media));
        let to = zone.locate(request.sector, Access::Write).1;
        let short = least_seek.saturating_sub(arm.movement(head, to, Access::Write));
        let run = (request.sector, request.end());
        let mut passage = arm.pass((time + short, not_before), head, run, Access::Write);
        passage.seek += short;
        // In whatever order, if all has crossed the bus when the head comes down.
        if time + passage.seek >= begun + bus {
            passage.done = self.around(parameters, request, &passage, Access::Write).done;
        }
        passage
    }

    /// A write that is done when it is on the media, with the head free at `free.head` from `free.at` on: how it is
    /// served, where the head is then, and from when on.
    fn through(&self, parameters: &Parameters, now: Nanos, request: &Request, free: &Free) -> (Service, Passage) {
        let overheads = &parameters.overheads;
        let bus = parameters.bus.time(request.sectors, true);
        let follows = self.after_write && self.write_end == request.sector;
        let extra = overheads.extra.as_ref().filter(|_| self.after_write && !follows);
        let (command, crossing, leaving, back) = match extra {
            Some(extra) => (
                extra.command + extra.seek_delta,
                extra.command + extra.disconnect + extra.pause + overheads.first_reselect,
                extra.second_disconnect,
                overheads.other_reselect,
            ),
            None => {
                let command = overheads.write_miss[usize::from(self.after_write)];
                (command, command, overheads.write_disconnect, overheads.first_reselect)
            }
        };
        let ready = now + command;
        let begun = (now + crossing + overheads.data_preparation).max(free.at);
        let least_seek = if follows { Nanos::ZERO } else { overheads.minimum_seek };
        let start = ready.max(free.at);
        let passage = self.pass_written(parameters, request, free.head, start, (begun, bus), least_seek);
        let end = passage.done.max(begun + bus + leaving) + back + overheads.write_completion;
        let Passage { seek, rotation, done, .. } = passage;
        let transfer = done - start - seek - rotation;
        let overhead = command + (end - done);
        (Service { end, seek, rotation, transfer, overhead, wait: start - ready, buffer_hit: false }, passage)
    }

    fn write_through(&mut self, parameters: &Parameters, now: Nanos, request: &Request, free: &Free) -> Service {
        let (service, passage) = self.through(parameters, now, request, free);
        let segment = self.segment_for_write(request);
        self.segments.written(segment, request.sector, request.end());
        self.rest = passage.head;
        self.written = passage.done;
        service
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
