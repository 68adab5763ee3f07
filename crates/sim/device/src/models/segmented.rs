//! A drive whose buffer is divided into segments, each with a run of sectors that were read or written.
//!
//! A read whose first sector lies in a segment is served from it, and from the media for sectors that have not been
//! read yet. Any other read replaces the least recently used segment; afterwards the head reads ahead into it, as far
//! as the profile allows, or until the next request for another place interrupts it at the end of a sector. A write may
//! be done as soon as it is in the buffer; the head then writes it out in the background, and requests that need the
//! media wait in the meantime. All of this is a function of time: the state is the segments' ends, one stream, and the
//! completion times of pending writes.
//!
//! With `read_during_overhead` the head continues to read ahead while the controller processes the next read, because a
//! controller cannot move the arm for a command that it has not decoded. Shriver, Small and Smith (USENIX 1999, section
//! 2.2) state that the drive reads ahead; that it does so during the overhead is our interpretation. A read then looks
//! up the buffer when the overhead is over: `read_hit` after its arrival and, if it is not a hit by then, `read_miss`
//! after its arrival. Sectors read by that second instant are served from the buffer, with the overhead of a miss;
//! otherwise the stream is interrupted then. A full hit in a segment other than the stream's interrupts the stream as
//! it does without the key, but only once the command is decoded; a partial hit interrupts it when the arm can first
//! move, `read_miss` after its arrival. A write interrupts it on arrival. Without the key all of this happens on
//! arrival.
//!
//! With `hit_ahead` a read that starts ahead of the stream, before the sector at which the stream stops, is a hit if
//! reading on delivers its last sector no later than interrupting the stream and repositioning would. The head passes
//! these sectors anyway; repositioning costs a revolution whenever the read's first sector passes during the overhead.
//! IBM's and HGST's specifications describe this for a command on the current head and track: a minimum prefetch of
//! zero means that read-ahead ends "immediately after a new command arrives, except when the new command is on the
//! current head and track" (Ultrastar C15K600, mode page 8; the same sentence in IBM's OEM specification of the
//! DDRS-3xxxx). Beyond the track it is a guess. Such a hit starts to cross the bus when its first sector has been read.
//!
//! With `read_ahead_on_sequence` the head only reads ahead if it detects a sequence, as Shriver, Small and Smith say of
//! the Cheetah (section 2.2): after a read that begins where an earlier one ended, as far as the segments still record
//! that end. There is thus no read-ahead after the first read of a sequence, and the second read needs the media. It
//! uses the segment of the first: a sequence uses one segment, whatever its length. A hit elsewhere in a segment does
//! not change the segment's read-ahead.
//!
//! After DiskSim 4's disk module (Bucy, Schindler, Schlosser, Ganger and others, CMU-PDL-08-101, section 3.6).
//! Differences: see `mechanical.rs`; a hit never waits for a write in progress elsewhere.
//!
//! Cost: a scan of the segments and some divisions for a hit; about thirty divisions for a miss. 40 bytes per segment.

mod reads;
mod writes;

use headstart_types::{KeyError, Nanos};

use super::geometry::{Access, HeadPosition};
use super::parameters::{BufferShape, Parameters};
use super::segments::{Buffer, ReadAhead, Reporting, Segments};
use super::stream::{Progress, Stream};
use crate::{Request, Service};

/// A read-ahead that is in progress, or was when last updated.
#[derive(Debug, Clone)]
struct Reading {
    segment: usize,
    stream: Stream,
    /// It is not interrupted before it has read up to here.
    at_least: u64,
}

/// Written data that have not reached the media.
#[derive(Debug, Clone, Copy)]
struct Pending {
    segment: usize,
    done: Nanos,
}

#[derive(Debug, Clone)]
pub(crate) struct Segmented {
    buffer: Buffer,
    /// The buffer as the profile divides it.
    undivided: Buffer,
    segments: Segments,
    reading: Option<Reading>,
    /// Writes in progress, in order.
    pending: Vec<Pending>,
    /// When the media are free of them.
    written: Nanos,
    /// Where the head is without a stream.
    rest: HeadPosition,
    /// Whether the head may read ahead after the current read.
    goes_on: bool,
    /// Whether the last request was a write, and where it ended.
    after_write: bool,
    write_end: u64,
}

/// The timing of a read command.
#[derive(Debug, Clone, Copy)]
struct Command {
    /// When the buffer is looked up.
    at: Nanos,
    /// Controller time up to then.
    before: Nanos,
    /// Controller time from then on: until data can cross the bus, until the arm can move.
    hit: Nanos,
    miss: Nanos,
    /// When a stream is interrupted for it.
    leaves: Nanos,
}

/// Where and when the head can start moving for another request.
#[derive(Debug, Clone, Copy)]
struct Free {
    at: Nanos,
    head: HeadPosition,
    /// What the interrupted stream has read by then.
    read: Option<u64>,
}

/// The state of the stream: how far it has read while it reads, otherwise where the head rests, and the end of its
/// segment.
#[derive(Debug, Clone, Copy)]
struct Look {
    progress: Option<Progress>,
    rest: HeadPosition,
    read: Option<(usize, u64)>,
}

impl Segmented {
    pub fn new(buffer: Buffer) -> Self {
        Self {
            segments: Segments::new(&buffer),
            undivided: buffer.clone(),
            reading: None,
            pending: Vec::with_capacity(buffer.write_segments()),
            written: Nanos::ZERO,
            rest: HeadPosition { cylinder: 0, surface: 0 },
            goes_on: false,
            after_write: false,
            write_end: 0,
            buffer,
        }
    }

    /// See [`BufferShape`].
    pub fn buffer_shape(&self) -> BufferShape {
        let Buffer { size, caching, maximum, read_ahead, on_sequence, read_during_overhead, .. } = self.buffer;
        let reads_ahead = caching && read_ahead != ReadAhead::None && maximum != Some(0);
        let segments = if caching { self.buffer.read_segments().len() as u32 } else { 0 };
        let reads_during_overhead = reads_ahead && read_during_overhead;
        let sectors = if caching { size } else { 0 };
        BufferShape { segments, sectors, reads_ahead, reads_ahead_on_sequence: on_sequence, reads_during_overhead }
    }

    /// See [`crate::Device::divide_buffer`].
    pub fn divided(&self, segments: u64) -> Result<Self, KeyError> {
        self.buffer.divided(segments).map(Self::new)
    }

    /// See [`crate::Device::redivide_buffer`].
    pub fn redivide(&mut self, parameters: &Parameters, now: Nanos, segments: u64) -> bool {
        let Ok(buffer) = self.undivided.divided(segments) else { return false };
        let progress = self.settle(parameters, now);
        self.pending.retain(|pending| pending.done > now);
        if !self.pending.is_empty() {
            return false;
        }
        self.written = self.break_off(parameters, now, progress).at;
        self.segments = Segments::new(&buffer);
        self.buffer = buffer;
        true
    }

    /// See [`crate::Device::serve`].
    #[inline]
    pub fn serve(&mut self, parameters: &Parameters, now: Nanos, request: &Request) -> Service {
        let command = (!request.write).then(|| self.command(parameters, now, request));
        let at = command.map_or(now, |command| command.at);
        let progress = self.settle(parameters, at);
        self.pending.retain(|pending| pending.done > at);
        self.goes_on = !self.buffer.on_sequence || self.segments.followed(request.sector).is_some();
        let service = match command {
            None => self.write(parameters, now, request, progress),
            Some(command) => match self.serving(parameters, &command, request, (progress, None)) {
                Some(segment) => self.read_hit(parameters, &command, request, segment, progress),
                None => self.read_miss(parameters, &command, request, progress),
            },
        };
        self.after_write = request.write;
        service
    }

    /// The timing of a read that arrives at `now`.
    #[inline]
    fn command(&self, parameters: &Parameters, now: Nanos, request: &Request) -> Command {
        let after = usize::from(self.after_write);
        let (hit, miss) = (parameters.overheads.read_hit[after], parameters.overheads.read_miss[after]);
        if !self.buffer.read_during_overhead {
            return Command { at: now, before: Nanos::ZERO, hit, miss, leaves: now };
        }
        let early = now + hit;
        let leaves = early.max(now + miss);
        let command = Command { at: early, before: hit, hit: Nanos::ZERO, miss: leaves - early, leaves };
        let Look { progress, read, .. } = self.look(parameters, early);
        let held = |segment: usize| match read {
            Some((reading, end)) if reading == segment => end,
            _ => self.segments.end(segment),
        };
        let serves = |segment: &usize| self.buffer.partial_hit || held(*segment) >= request.end();
        match self.serving(parameters, &command, request, (progress, read)).filter(serves) {
            Some(_) => command,
            None => Command { at: now + miss, before: miss, hit: Nanos::ZERO, miss: Nanos::ZERO, leaves: now + miss },
        }
    }

    /// The state of the stream at `now`.
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

    /// Updates the segment of the stream to `now`; returns the stream's progress while it reads.
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

    /// When and where the head is free for something other than its stream; `rest` is its position without a stream.
    #[inline]
    fn free(&self, parameters: &Parameters, now: Nanos, progress: Option<Progress>, rest: HeadPosition) -> Free {
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

    /// Interrupts the stream.
    fn break_off(&mut self, parameters: &Parameters, now: Nanos, progress: Option<Progress>) -> Free {
        let free = self.free(parameters, now, progress, self.rest);
        if let (Some(reading), Some(read)) = (self.reading.take(), free.read) {
            self.segments.read_to(reading.segment, read);
        }
        self.rest = free.head;
        free
    }

    /// The segment that serves `request`: its first sector is there or will be read by the stream; `read` gives the
    /// current end of the stream's segment.
    #[inline]
    fn serving(
        &self,
        parameters: &Parameters,
        command: &Command,
        request: &Request,
        (progress, read): (Option<Progress>, Option<(usize, u64)>),
    ) -> Option<usize> {
        if !self.buffer.caching {
            return None;
        }
        if let Some(segment) = self.segments.find(request.sector, request.end(), self.buffer.hit_on_written, read) {
            return Some(segment);
        }
        let (reading, next) = (self.reading.as_ref()?, progress?.end);
        let coming = (self.buffer.hit_under_way && next == request.sector)
            || (self.buffer.hit_ahead
                && (next..reading.stream.stop()).contains(&request.sector)
                && self.reads_on_sooner(parameters, command, request, reading));
        coming.then_some(reading.segment)
    }

    /// Whether the stream `reading`, if continued, has read all of `request` no later than if the head repositioned.
    fn reads_on_sooner(
        &self,
        parameters: &Parameters,
        command: &Command,
        request: &Request,
        reading: &Reading,
    ) -> bool {
        let arm = &parameters.arm;
        let mut stream = reading.stream.clone();
        let zone = &arm.zones[stream.zone];
        let reached = request.end().min(zone.run_end(stream.first()));
        stream.raise(reached);
        let mut on = stream.read_to(zone, reached, (u64::MAX, Nanos::ZERO));
        if reached < request.end() {
            let head = zone.locate(reached - 1, Access::Read).1;
            on = arm.pass((on, Nanos::ZERO), head, (reached, request.end()), Access::Read).done;
        }
        let Look { progress, rest, .. } = self.look(parameters, command.leaves);
        let free = self.free(parameters, command.leaves, progress, rest);
        let start = (command.at + command.miss).max(free.at);
        let run = (request.sector, request.end());
        let passage = arm.pass((start, Nanos::ZERO), free.head, run, Access::Read);
        on <= self.around(parameters, request, &passage, Access::Read).done
    }

    /// See [`crate::Device::positioning`].
    pub fn positioning(&self, parameters: &Parameters, now: Nanos, request: &Request) -> Nanos {
        if !request.write {
            let command = self.command(parameters, now, request);
            let Look { progress, rest, read } = self.look(parameters, command.at);
            if let Some(segment) = self.serving(parameters, &command, request, (progress, read)) {
                let ahead = read.is_some_and(|(reading, end)| reading == segment && request.sector > end);
                let begins = if ahead { self.passes(parameters, request.sector).0 } else { Nanos::ZERO };
                return begins.saturating_sub(command.at + self.taken(&command, true));
            }
            let free = self.free(parameters, command.leaves, progress, rest);
            let ready = command.at + command.miss;
            let start = ready.max(free.at);
            let run = (request.sector, request.sector + 1);
            let passage = parameters.arm.pass((start, Nanos::ZERO), free.head, run, Access::Read);
            return start - ready + passage.seek + passage.rotation;
        }
        if self.buffer.reporting != Reporting::Media {
            let overheads = &parameters.overheads;
            let ready = now + overheads.write_hit[usize::from(self.after_write)] + overheads.data_preparation;
            let room = if self.appends(now, request).is_some() { now } else { self.room(now) };
            return room.saturating_sub(ready);
        }
        let Look { progress, rest, .. } = self.look(parameters, now);
        let free = self.free(parameters, now, progress, rest);
        let service = self.through(parameters, now, request, &free).0;
        service.wait + service.seek + service.rotation
    }

    /// Controller time from `command.at` on for a hit; `part`: a partial one.
    #[inline]
    fn taken(&self, command: &Command, part: bool) -> Nanos {
        if part && !self.buffer.partial_hit {
            command.miss
        } else {
            command.hit
        }
    }

    /// When a sector that the stream has not reached begins to pass, and when it has been read; zero without a stream.
    fn passes(&self, parameters: &Parameters, sector: u64) -> (Nanos, Nanos) {
        let passes = |reading: &Reading| reading.stream.passes(&parameters.arm.zones[reading.stream.zone], sector);
        self.reading.as_ref().map_or((Nanos::ZERO, Nanos::ZERO), passes)
    }

    /// See [`crate::Device::travel`].
    pub fn travel(&mut self, parameters: &Parameters, now: Nanos, sector: u64) -> Nanos {
        let progress = self.settle(parameters, now);
        let free = self.break_off(parameters, now, progress);
        let arm = &parameters.arm;
        let zone = &arm.zones[arm.zone_of(sector)];
        let to = HeadPosition { surface: free.head.surface, ..zone.locate(sector, Access::Read).1 };
        self.rest = to;
        free.at + arm.movement(free.head, to, Access::Read)
    }
}

/// Whether `segment` holds data that have not reached the media.
fn holds(pending: &[Pending], segment: usize) -> bool {
    pending.iter().any(|pending| pending.segment == segment)
}
