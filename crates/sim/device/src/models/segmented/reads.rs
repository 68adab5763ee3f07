//! Reads of a drive with a segmented buffer: hits, misses and read-ahead.

use headstart_types::Nanos;

use super::{holds, Command, Reading, Segmented};
use crate::models::arm::{Passage, Piece};
use crate::models::geometry::Access;
use crate::models::parameters::Parameters;
use crate::models::segments::Buffer;
use crate::models::stream::{Progress, Stream};
use crate::{Request, Service};

/// The use of the rotation before the first sector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around {
    /// When the last sector of the request has passed.
    pub(super) done: Nanos,
    /// The first sector of the part of the track that passed before the request.
    kept: Option<u64>,
}

impl Segmented {
    pub(super) fn read_hit(
        &mut self,
        parameters: &Parameters,
        command: &Command,
        request: &Request,
        segment: usize,
        progress: Option<Progress>,
    ) -> Service {
        let Parameters { overheads, bus_sector, .. } = parameters;
        let &Command { at, before, miss, leaves, .. } = command;
        let held = self.segments.end(segment);
        let part = held < request.end();
        let taken = self.taken(command, part);
        let overhead = taken + overheads.data_preparation;
        let ready = at + overhead;
        let back = overheads.first_reselect + overheads.data_preparation;
        let bus = parameters.bus.time(request.sectors, false);
        let (mut end, mut rotation) = (ready + bus, Nanos::ZERO);
        let streams = self.reading.as_ref().is_some_and(|reading| reading.segment == segment);
        let mut free = at.max(self.written);
        if streams {
            self.read_on(parameters, request);
        } else if self.reading.is_some() {
            // Only a request that needs the arm waits until it can move.
            let leaves = if part { leaves } else { at };
            let progress = if leaves > at { self.settle(parameters, leaves) } else { progress };
            free = self.break_off(parameters, leaves, progress).at;
        }
        if part {
            let (done, bus_end) = if streams {
                if request.sector > held {
                    let (begins, passed) = self.passes(parameters, request.sector);
                    rotation = begins.saturating_sub(at + taken);
                    end = end.max(passed + back + bus);
                }
                self.follow(parameters, at, request)
            } else {
                let from = (at + miss).max(free);
                let passage = self.fetch(parameters, from, segment, (held, request));
                let rest = parameters.bus.time((request.end() - held) as u32, false);
                (passage.done, passage.bus_end.max(passage.first + rest))
            };
            let back = if done > ready { back } else { Nanos::ZERO };
            end = end.max(done + back + bus_sector[0]).max(bus_end);
        } else if self.reading.is_none() && self.buffer.read_ahead_on_hit {
            self.read_ahead_again(parameters, (at + miss).max(free), segment, request);
        }
        self.segments.touch(segment);
        self.segments.set_asked(segment, request.end());
        if self.buffer.drop_requested {
            self.segments.drop_before(segment, request.end());
        }
        let overhead = overhead + overheads.read_completion;
        let end = end + overheads.read_completion;
        let transfer = end - at - overhead - rotation;
        let overhead = before + overhead;
        let [seek, wait] = [Nanos::ZERO; 2];
        Service { end, seek, rotation, transfer, overhead, wait, buffer_hit: true }
    }

    /// Extends the stream as far as a hit by `request` allows.
    fn read_on(&mut self, parameters: &Parameters, request: &Request) {
        let Some(reading) = &mut self.reading else { return };
        let zone = &parameters.arm.zones[reading.stream.zone];
        let (limit, minimum) =
            ahead(&self.buffer, self.goes_on, parameters, request, self.segments.start(reading.segment));
        let limit = self.segments.raise_limit(reading.segment, limit).min(zone.run_end(reading.stream.first()));
        reading.stream.raise(limit);
        reading.at_least = reading.at_least.max((request.end() + minimum).min(limit));
    }

    /// When the stream has read all of `request`, and when the bus has moved the sectors that were read late. If the
    /// stream must end earlier, the head continues elsewhere.
    fn follow(&mut self, parameters: &Parameters, now: Nanos, request: &Request) -> (Nanos, Nanos) {
        let Some(reading) = &mut self.reading else { return (now, Nanos::ZERO) };
        let zone = &parameters.arm.zones[reading.stream.zone];
        let reached = request.end().min(reading.stream.stop());
        let segment = reading.segment;
        let run = (request.sector, reached, request.end());
        let (done, bus_end) = reading.stream.read_to_bus(zone, run, (u64::MAX, Nanos::ZERO), &parameters.bus);
        let done = done.max(now);
        self.segments.read_to(segment, reached);
        if reached == request.end() {
            return (done, bus_end);
        }
        self.rest = zone.locate(reached - 1, Access::Read).1;
        let passage = self.fetch(parameters, done, segment, (reached, request));
        let rest = parameters.bus.time((request.end() - reached) as u32, false);
        (passage.done, bus_end.max(passage.bus_end).max(passage.first + rest))
    }

    /// Reads `from..request.end()` into `segment`, from `time` on, and reads ahead from there.
    #[inline]
    fn fetch(
        &mut self,
        parameters: &Parameters,
        time: Nanos,
        segment: usize,
        (from, request): (u64, &Request),
    ) -> Passage {
        let passage = parameters.arm.pass_to_bus(time, self.rest, (from, request.end()), &parameters.bus);
        self.rest = passage.head;
        self.segments.read_to(segment, request.end());
        let piece = &passage.last;
        let (limit, minimum) = ahead(&self.buffer, self.goes_on, parameters, request, self.segments.start(segment));
        let limit = self.segments.raise_limit(segment, limit);
        let stop = limit.min(parameters.arm.zones[piece.zone].run_end(piece.from)).max(piece.end);
        let at_least = (piece.end + minimum).min(stop);
        self.reading = (stop > piece.end).then(|| {
            let stream = Stream::new(piece, stop, passage.done);
            Reading { segment, stream, at_least }
        });
        passage
    }

    /// Reads ahead from a stopped segment, from `time` on, as far as a hit by `request` or an earlier read allows: data
    /// that have not been requested yet stay. As in DiskSim 4.0, the arm moves no sooner than for a miss.
    fn read_ahead_again(&mut self, parameters: &Parameters, time: Nanos, segment: usize, request: &Request) {
        let arm = &parameters.arm;
        let held = self.segments.end(segment);
        let (limit, minimum) = ahead(&self.buffer, self.goes_on, parameters, request, self.segments.start(segment));
        let limit = self.segments.raise_limit(segment, limit);
        if held >= limit {
            return;
        }
        let index = arm.zone_of(held);
        let zone = &arm.zones[index];
        let (path, place) = zone.locate(held, Access::Read);
        let begun = zone.rotation.next(time + arm.movement(self.rest, place, Access::Read), path);
        let stop = limit.min(zone.run_end(held));
        // Nothing of it has been read: it may be interrupted before its first sector passes.
        let piece = Piece { zone: index, from: held, start: path, begun, end: held, path, tick: begun };
        let stream = Stream::new(&piece, stop, zone.rotation.time(begun));
        self.rest = place;
        self.reading = Some(Reading { segment, stream, at_least: (held + minimum).min(stop) });
    }

    pub(super) fn read_miss(
        &mut self,
        parameters: &Parameters,
        command: &Command,
        request: &Request,
        progress: Option<Progress>,
    ) -> Service {
        let Parameters { overheads, bus_sector, bus, .. } = parameters;
        let after = usize::from(self.after_write);
        let &Command { at, before, miss, leaves, .. } = command;
        let free = self.break_off(parameters, leaves, progress);
        let ready = at + miss;
        let start = ready.max(free.at);
        let segment = self.segment_for_read(request);
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
        // Each sector crosses the bus once it has been read: the first when the transfer starts, the others after it or
        // later.
        let end = (transfers + bus.time(request.sectors, false)).max(done + bus_sector[0]).max(passage.bus_end);
        let end = end + overheads.read_completion;
        self.segments.set_asked(segment, request.end());
        if self.buffer.drop_requested {
            self.segments.drop_before(segment, request.end());
        }
        let Passage { seek, rotation, .. } = passage;
        let transfer = done - start - seek - rotation;
        let overhead = before + miss + (end - done);
        Service { end, seek, rotation, transfer, overhead, wait: start - ready, buffer_hit: false }
    }

    /// The segment for a read that no segment serves: that of the sequence which it continues, else the least recently
    /// used.
    #[inline]
    fn segment_for_read(&mut self, request: &Request) -> usize {
        let (pending, among) = (&self.pending, self.buffer.read_segments());
        let followed = if self.buffer.on_sequence { self.segments.followed(request.sector) } else { None };
        match followed.filter(|index| among.contains(index) && !holds(pending, *index)) {
            Some(followed) => {
                self.segments.touch(followed);
                followed
            }
            None => self.segments.take(among, |index| holds(pending, index)),
        }
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

    /// What passes while the head waits for the first sector on its track: the sectors before the request are read too,
    /// and sectors of the request after the head's landing position need not be waited for again.
    #[inline]
    pub(super) fn around(
        &self,
        parameters: &Parameters,
        request: &Request,
        passage: &Passage,
        access: Access,
    ) -> Around {
        let zero_latency = match access {
            Access::Read => self.buffer.zero_latency_read,
            Access::Write => self.buffer.zero_latency_write,
        };
        if !zero_latency && !self.buffer.read_before {
            return Around { done: passage.done, kept: None };
        }
        let arm = &parameters.arm;
        let whole = passage.last.from == request.sector && passage.last.end == request.end();
        let zone = &arm.zones[if whole { passage.last.zone } else { arm.zone_of(request.sector) }];
        let waited = (zone.rotation.least(passage.rotation + Nanos(1)) - 1).min(zone.track_sectors - 1);
        let within = zone.within_track(request.sector);
        let kept = Some(zone.sector_within(request.sector, within.saturating_sub(waited)));
        // It landed this many sectors after the first.
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
}

/// The sector before which a read-ahead after `request` stops, in a segment that starts at `start`, and the number of
/// those sectors that are read in any case. Zero if the head may not read ahead.
#[inline]
fn ahead(buffer: &Buffer, goes_on: bool, parameters: &Parameters, request: &Request, start: u64) -> (u64, u64) {
    match goes_on {
        true => (buffer.limit(&parameters.arm, request, start), buffer.minimum),
        false => (request.end(), 0),
    }
}
