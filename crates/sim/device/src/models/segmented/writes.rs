//! Writes of a drive with a segmented buffer: in the background, or through to the media.

use headstart_types::Nanos;

use super::{holds, Free, Pending, Segmented};
use crate::models::arm::Passage;
use crate::models::geometry::{Access, HeadPosition};
use crate::models::parameters::Parameters;
use crate::models::segments::Reporting;
use crate::models::stream::Progress;
use crate::{Request, Service};

/// How a write's data enter the buffer.
#[derive(Debug, Clone, Copy)]
struct Fill {
    /// When they begin to cross the bus, and how long they take.
    begun: Nanos,
    bus: Nanos,
    /// Sectors that must be in before the head writes the first.
    first: u32,
}

impl Segmented {
    pub(super) fn write(
        &mut self,
        parameters: &Parameters,
        now: Nanos,
        request: &Request,
        progress: Option<Progress>,
    ) -> Service {
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
        // A run that continues one being written has no minimum seek, and its segment is already filled.
        let fill = Fill { begun, bus, first: if append.is_some() { 1 } else { overheads.fill(request.sectors) } };
        let least_seek = if append.is_some() { Nanos::ZERO } else { overheads.minimum_seek };
        let passage = self.pass_written(parameters, request, self.rest, begun.max(free), fill, least_seek);
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

    /// The segment of the last write if it is still pending at `now` and `request` continues it and fits.
    pub(super) fn appends(&self, now: Nanos, request: &Request) -> Option<usize> {
        let last = self.pending.last().filter(|pending| pending.done > now)?.segment;
        let goes_on = self.buffer.combine && self.segments.end(last) == request.sector;
        let fits = || request.end() - self.segments.start(last) <= self.buffer.size;
        (goes_on && fits()).then_some(last)
    }

    /// When a write segment becomes free.
    pub(super) fn room(&self, now: Nanos) -> Nanos {
        let most = if self.buffer.reporting == Reporting::Append { 1 } else { self.buffer.write_segments() };
        // They complete in order: this many must complete before there is room for one more.
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

    /// Writes `request` to the media from `time` on, while its data cross the bus.
    fn pass_written(
        &self,
        parameters: &Parameters,
        request: &Request,
        head: HeadPosition,
        time: Nanos,
        Fill { begun, bus, first }: Fill,
        least_seek: Nanos,
    ) -> Passage {
        let arm = &parameters.arm;
        let zone = &arm.zones[arm.zone_of(request.sector)];
        // The head may not reach a sector that has not crossed the bus: neither the first nor, if it passed all others
        // without a gap between tracks, the last. The gap would give a slow bus time, but the drives do not rely on it:
        // of 34 measured writes of the HP C2247A and C2490A that distinguish the cases, 28 took the additional
        // revolution.
        let media = Nanos(zone.rotation.span(u64::from(request.sectors) - 1));
        let not_before = (begun + parameters.bus.time(first, true)).max((begun + bus).saturating_sub(media));
        let to = zone.locate(request.sector, Access::Write).1;
        let short = least_seek.saturating_sub(arm.movement(head, to, Access::Write));
        let run = (request.sector, request.end());
        let mut passage = arm.pass((time + short, not_before), head, run, Access::Write);
        passage.seek += short;
        // In any order, if everything has crossed the bus when the head lands.
        if time + passage.seek >= begun + bus {
            passage.done = self.around(parameters, request, &passage, Access::Write).done;
        }
        passage
    }

    /// A write that is done when it is on the media, with the head free at `free.head` from `free.at` on: its service,
    /// and where and when the head is free then.
    pub(super) fn through(
        &self,
        parameters: &Parameters,
        now: Nanos,
        request: &Request,
        free: &Free,
    ) -> (Service, Passage) {
        let overheads = &parameters.overheads;
        let bus = parameters.bus.time(request.sectors, true);
        let follows = self.after_write && self.write_end == request.sector;
        let extra = overheads.extra.as_ref().filter(|_| self.after_write && !follows);
        let (command, crossing, leaving, back) = match extra {
            Some(extra) => (
                extra.command.0 + extra.seek_delta.0,
                extra.command.0 + extra.disconnect.0 + extra.pause.0 + overheads.first_reselect,
                extra.second_disconnect.0,
                overheads.other_reselect,
            ),
            None => {
                let command = overheads.write_miss[usize::from(self.after_write)];
                (command, command, overheads.write_disconnect, overheads.first_reselect)
            }
        };
        let ready = now + command;
        let begun = (now + crossing + overheads.data_preparation).max(free.at);
        let start = ready.max(free.at);
        // The previous write is on the media: the arm does not continue from it, even if this write follows it.
        let fill = Fill { begun, bus, first: overheads.fill(request.sectors) };
        let passage = self.pass_written(parameters, request, free.head, start, fill, overheads.minimum_seek);
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
}
