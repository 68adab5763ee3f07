//! Writes of a solid-state drive: the buffer, programming, and the log.

use headstart_types::Nanos;

use super::{next, parts, Booking, Flash, Parameters};
use crate::models::flash_blocks::Work;
use crate::models::flash_channels::Passage;
use crate::{Request, Service};

/// Pages accepted and not yet programmed; the last one is being filled.
#[derive(Debug, Clone)]
pub(super) struct WriteBuffer {
    /// For each slot, which pages use in turn: when the page that used it last, and all before it, have been
    /// programmed.
    pub(super) leaves: Vec<Nanos>,
    /// The same for the last full page.
    left: Nanos,
    /// Slot and channel of the page that is being filled.
    pub(super) slot: usize,
    channel: usize,
    /// Sectors in it.
    filled: u64,
}

impl WriteBuffer {
    pub(super) fn new(pages: u64) -> Self {
        Self { leaves: vec![Nanos::ZERO; pages as usize], left: Nanos::ZERO, slot: 0, channel: 0, filled: 0 }
    }
}

impl Flash {
    pub(super) fn serve_write(&mut self, now: Nanos, request: &Request) -> Service {
        let Parameters { write_overhead: overhead, page_sectors, link_command: [_, command], .. } = self.parameters;
        let ready = now + overhead;
        let sectors = u64::from(request.sectors);
        let Booking { begin, end: sent } = self.book(ready, sectors, true);
        if self.blocks.is_some() {
            let end = self.fill_units(ready, (begin + command, sent), request);
            return parts(now, overhead, (begin - ready) + (end - sent), end);
        }
        let (first, last) = self.pages(request);
        self.forget_pages(first, last);
        if self.parameters.buffer_pages > 0 {
            let end = self.fill_buffer(begin + command, sent, sectors);
            return parts(now, overhead, (begin - ready) + (end - sent), end);
        }
        let head = begin + command + self.span(sectors.min(page_sectors));
        let passage = self.program_pages((head, sent), first, last);
        parts(now, overhead, (begin - ready) + passage.waited, passage.done)
    }

    /// Drops pages `first..=last`, which are about to be written, from the registers.
    fn forget_pages(&mut self, first: u64, last: u64) {
        for page in first..=last.min(first + self.parameters.channels - 1) {
            self.channels.forget(self.channel_of(page), (first, last));
        }
    }

    /// Puts `sectors` sectors, which arrive over the link from `begin` to `sent`, into the buffer; returns when the
    /// last is in.
    fn fill_buffer(&mut self, begin: Nanos, sent: Nanos, mut sectors: u64) -> Nanos {
        let Parameters { page_sectors, program_time, .. } = self.parameters;
        let room = page_sectors - self.buffer.filled;
        let mut arrival = begin + self.span(room.min(sectors));
        loop {
            let buffer = &mut self.buffer;
            // A page can use its slot once the slot's previous page has been programmed.
            let place = buffer.leaves[buffer.slot];
            let room = page_sectors - buffer.filled;
            if sectors < room {
                buffer.filled += sectors;
                return place.max(sent);
            }
            sectors -= room;
            let full = place.max(if sectors == 0 { sent } else { arrival });
            buffer.left = buffer.left.max(self.channels.occupy(buffer.channel, full, program_time));
            buffer.leaves[buffer.slot] = buffer.left;
            buffer.slot = next(buffer.slot, buffer.leaves.len());
            buffer.channel = next(buffer.channel, self.channels.len());
            buffer.filled = 0;
            if sectors == 0 {
                return full;
            }
            arrival = sent.min(arrival + self.page_span);
        }
    }

    /// Puts a request, which arrives over the link from `begin` to `sent`, into the buffer as whole units; returns when
    /// the last is in.
    fn fill_units(&mut self, ready: Nanos, (begin, sent): (Nanos, Nanos), request: &Request) -> Nanos {
        let unit_sectors = self.parameters.unit_sectors;
        let page_units = (self.parameters.page_sectors / unit_sectors) as usize;
        let units = request.sector / unit_sectors..request.end().div_ceil(unit_sectors);
        let mut end = sent;
        for unit in units.clone() {
            if request.sector > unit * unit_sectors || request.end() < (unit + 1) * unit_sectors {
                let blocks = self.blocks.as_ref().expect("blocks are managed");
                let page = blocks.page_of(unit);
                let pages = (page.into(), page.into());
                self.channels.read(blocks.channel_of(page), ready, pages, 1, self.parameters.read_time);
            }
            // A page can use its slot once the slot's previous page has been programmed.
            let arrival = sent.min(begin + self.span((unit + 1 - units.start) * unit_sectors));
            end = sent.max(self.buffer.leaves[self.buffer.slot]);
            self.units.push(unit);
            if self.units.len() == page_units {
                self.program_units(arrival.max(self.buffer.leaves[self.buffer.slot]));
            }
        }
        end
    }

    /// Writes the units of a full page to the log, from `full` on.
    fn program_units(&mut self, full: Nanos) {
        let Parameters { read_time, program_time, erase_time, .. } = self.parameters;
        let blocks = self.blocks.as_mut().expect("blocks are managed");
        for work in blocks.write(&self.units) {
            let (channels, time) = match *work {
                Work::Read(channel) => (channel..channel + 1, read_time),
                Work::Program(channel) => (channel..channel + 1, program_time),
                Work::Erase => (0..self.channels.len(), erase_time),
            };
            for channel in channels {
                self.channels.occupy(channel, full, time);
            }
            if let Work::Program(channel) = *work {
                self.buffer.left = self.buffer.left.max(self.channels.free(channel));
            }
        }
        self.units.clear();
        let buffer = &mut self.buffer;
        buffer.leaves[buffer.slot] = buffer.left;
        buffer.slot = next(buffer.slot, buffer.leaves.len());
    }

    /// Programs pages `first..=last`, whose data arrives at the link's rate, the first of it by `head`, the last by
    /// `sent`.
    fn program_pages(&mut self, (head, sent): (Nanos, Nanos), first: u64, last: u64) -> Passage {
        let Parameters { channels, program_time, .. } = self.parameters;
        let mut channel = self.channel_of(first);
        let mut latest = Passage::NONE;
        let arrival = |page: u64| sent.min(head + self.page_span * (page - first));
        for page in first..=last.min(first + channels - 1) {
            let waited = self.channels.free(channel).saturating_sub(arrival(page));
            let mut done = self.channels.occupy(channel, arrival(page), program_time);
            let mut later = page + channels;
            while later <= last {
                done = self.channels.occupy(channel, arrival(later), program_time);
                later += channels;
            }
            latest = latest.later(Passage { waited, done });
            channel = next(channel, self.channels.len());
        }
        latest
    }
}
