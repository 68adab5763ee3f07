//! A solid-state drive, simplified: parallel channels, one link to the host, a write buffer.
//!
//! A *channel* is a unit that does one thing at a time, such as a die behind its bus. Page p of the address space lies
//! on channel p mod `channels`, so a long request uses many channels concurrently. A read waits for the channels of its
//! pages, then its data crosses the link. A write crosses the link into the buffer and is done; from the buffer, whole
//! pages are programmed to consecutive channels in order of arrival (as a log would be). A write waits while the buffer
//! is full, and reads wait while their channel programs. Without a buffer, a write goes to the channels of its pages
//! and is done when they are programmed; a partial page costs a whole one.
//!
//! The link is booked in the order of requests, each from the earliest instant at which its data could be ready: the
//! link's rate is respected, and a request that waits for its channel does not delay requests that do not. In exchange,
//! if two requests end their waits at the same time, their times on the link may overlap.
//!
//! With `over_provisioning`, blocks are managed: writes go to a log, flash is erased in blocks, and garbage is
//! collected (`flash_blocks.rs`). A write then covers whole units of `mapping_size`; a unit that is written in part is
//! read first. Reads go to the current location of units. Garbage collection uses channel time in addition to the
//! host's requests. A drive under random writes runs at full speed while its buffer and its erased blocks last, then
//! slows down by its write amplification: the write cliff.
//!
//! Not modelled: misses in the address table, the order of garbage collection beyond its channel time, suspended
//! programs, flash temporarily used at fewer bits per cell, reads served from the buffer, commands as a resource of the
//! controller, wear, heat. The model is good for the shape of such a drive, not for the third digit. After the
//! structure of Agrawal et al., "Design tradeoffs for SSD performance", USENIX 2008, section 3.
//!
//! Cost: a read within a page two or three divisions; others a step per page, reads at most one per channel. No
//! allocation after building, integers only. Memory: 8 bytes per channel and per page of the buffer.

use headstart_types::{KeyError, Nanos};

use super::flash_blocks::{Blocks, Work};
use super::flash_keys::FlashKeys;
use crate::{Device, Request, Service, SECTOR_BYTES};

/// The fixed numbers of a drive, checked by `flash_keys.rs`.
#[derive(Debug, Clone)]
struct Parameters {
    capacity_sectors: u64,
    page_sectors: u64,
    channels: u64,
    read_time: Nanos,
    program_time: Nanos,
    read_overhead: Nanos,
    write_overhead: Nanos,
    link_bytes_per_second: u64,
    /// Link time of a read and of a write command in addition to their data.
    link_command: [Nanos; 2],
    duplex: bool,
    queue_depth: u32,
    /// Pages of the write buffer; 0 for none.
    buffer_pages: u64,
    unit_sectors: u64,
    erase_time: Nanos,
}

#[derive(Debug, Clone)]
pub struct Flash {
    parameters: Parameters,
    /// Time of a full page on the link.
    page_span: Nanos,
    /// When each channel becomes free.
    free: Vec<Nanos>,
    /// When the link becomes free for reads and for writes; without duplex the first is for both.
    link: [Nanos; 2],
    buffer: WriteBuffer,
    /// The location of data if blocks are managed, and the units of the page that is being filled.
    blocks: Option<Blocks>,
    units: Vec<u64>,
    head_sector: u64,
}

/// Pages accepted and not yet programmed; the last one is being filled.
#[derive(Debug, Clone)]
struct WriteBuffer {
    /// For each slot, which pages use in turn: when the page that used it last, and all before it, have been
    /// programmed.
    leaves: Vec<Nanos>,
    /// The same for the last full page.
    left: Nanos,
    /// Slot and channel of the page that is being filled.
    slot: usize,
    channel: usize,
    /// Sectors in it.
    filled: u64,
}

/// The interval in which a request has the link to itself.
struct Booking {
    begin: Nanos,
    end: Nanos,
}

/// The times on the channel that ends last.
struct Passage {
    waited: Nanos,
    done: Nanos,
}

impl Flash {
    /// An idle drive.
    ///
    /// # Errors
    /// If blocks are managed and there are too few or too many.
    pub(crate) fn try_new(keys: &FlashKeys) -> Result<Self, KeyError> {
        let parameters = Parameters {
            capacity_sectors: keys.capacity.0 / SECTOR_BYTES,
            page_sectors: keys.page_size.0 / SECTOR_BYTES,
            channels: keys.channels,
            read_time: keys.read_time,
            program_time: keys.program_time,
            read_overhead: keys.read_overhead,
            write_overhead: keys.write_overhead,
            link_bytes_per_second: keys.link_bytes_per_second,
            link_command: [keys.link_command, keys.link_command + keys.write_command],
            duplex: keys.duplex,
            queue_depth: keys.queue_depth,
            buffer_pages: keys.write_buffer.0.div_ceil(keys.page_size.0),
            unit_sectors: keys.mapping_size.0 / SECTOR_BYTES,
            erase_time: keys.erase_time,
        };
        let buffer = WriteBuffer {
            leaves: vec![Nanos::ZERO; parameters.buffer_pages as usize],
            left: Nanos::ZERO,
            slot: 0,
            channel: 0,
            filled: 0,
        };
        let mut flash = Self {
            page_span: Nanos::ZERO,
            free: vec![Nanos::ZERO; parameters.channels as usize],
            link: [Nanos::ZERO; 2],
            buffer,
            blocks: Blocks::try_new(keys)?,
            units: Vec::new(),
            head_sector: 0,
            parameters,
        };
        flash.page_span = flash.span(flash.parameters.page_sectors);
        Ok(flash)
    }

    /// Time of `sectors` sectors on the link, rounded up, without the command.
    #[inline]
    fn span(&self, sectors: u64) -> Nanos {
        // At most 2^32 * 512e9, which needs 128 bits; below 2^24 sectors it fits in 64.
        const PER_SECTOR: u64 = SECTOR_BYTES * 1_000_000_000;
        let rate = self.parameters.link_bytes_per_second;
        if sectors < 1 << 24 {
            Nanos((sectors * PER_SECTOR).div_ceil(rate))
        } else {
            Nanos((u128::from(sectors) * u128::from(PER_SECTOR)).div_ceil(u128::from(rate)) as u64)
        }
    }

    /// First and last page of a request.
    #[inline]
    fn pages(&self, request: &Request) -> (u64, u64) {
        let first = request.sector / self.parameters.page_sectors;
        // Most requests lie within a page, which saves the second division.
        if request.end() <= (first + 1) * self.parameters.page_sectors {
            (first, first)
        } else {
            (first, (request.end() - 1) / self.parameters.page_sectors)
        }
    }

    #[inline]
    fn channel_of(&self, page: u64) -> usize {
        (page % self.parameters.channels) as usize
    }

    /// Books the link for `sectors` sectors, from `earliest` on.
    #[inline]
    fn book(&mut self, earliest: Nanos, sectors: u64, write: bool) -> Booking {
        let span = self.span(sectors) + self.parameters.link_command[usize::from(write)];
        let link = &mut self.link[usize::from(write && self.parameters.duplex)];
        let begin = earliest.max(*link);
        *link = begin + span;
        Booking { begin, end: begin + span }
    }

    /// Reads pages `first..=last` from `ready` on.
    #[inline]
    fn read_pages(&mut self, ready: Nanos, first: u64, last: u64) -> Passage {
        let channels = self.parameters.channels;
        let mut channel = self.channel_of(first);
        let mut latest = Passage { waited: Nanos::ZERO, done: Nanos::ZERO };
        for page in first..=last.min(first + channels - 1) {
            let pages = if last - first < channels { 1 } else { (last - page) / channels + 1 };
            let start = ready.max(self.free[channel]);
            let done = start + self.parameters.read_time * pages;
            self.free[channel] = done;
            if done > latest.done {
                latest = Passage { waited: start - ready, done };
            }
            channel = next(channel, self.free.len());
        }
        latest
    }

    /// Programs pages `first..=last`, whose data arrives at the link's rate, the first of it by `head`, the last by
    /// `sent`.
    fn program_pages(&mut self, (head, sent): (Nanos, Nanos), first: u64, last: u64) -> Passage {
        let channels = self.parameters.channels;
        let mut channel = self.channel_of(first);
        let mut latest = Passage { waited: Nanos::ZERO, done: Nanos::ZERO };
        let arrival = |page: u64| sent.min(head + self.page_span * (page - first));
        for page in first..=last.min(first + channels - 1) {
            let start = arrival(page).max(self.free[channel]);
            let mut done = start + self.parameters.program_time;
            let mut later = page + channels;
            while later <= last {
                done = arrival(later).max(done) + self.parameters.program_time;
                later += channels;
            }
            self.free[channel] = done;
            if done > latest.done {
                latest = Passage { waited: start - arrival(page), done };
            }
            channel = next(channel, self.free.len());
        }
        latest
    }

    /// Reads a request's units from their current location, from `ready` on.
    fn read_units(&mut self, ready: Nanos, request: &Request) -> Passage {
        let blocks = self.blocks.as_ref().expect("blocks are managed");
        let unit_sectors = self.parameters.unit_sectors;
        let mut latest = Passage { waited: Nanos::ZERO, done: Nanos::ZERO };
        let mut before = None;
        for unit in request.sector / unit_sectors..request.end().div_ceil(unit_sectors) {
            let page = blocks.page_of(unit);
            if before.replace(page) == Some(page) {
                continue;
            }
            let free = &mut self.free[blocks.channel_of(page)];
            let start = ready.max(*free);
            *free = start + self.parameters.read_time;
            if *free > latest.done {
                latest = Passage { waited: start - ready, done: *free };
            }
        }
        latest
    }

    fn serve_read(&mut self, now: Nanos, request: &Request) -> Service {
        let Parameters { read_overhead: overhead, read_time, page_sectors, link_command: [command, _], .. } =
            self.parameters;
        let ready = now + overhead;
        let sectors = u64::from(request.sectors);
        let (first, last) = self.pages(request);
        let passage = match self.blocks.is_some() {
            true => self.read_units(ready, request),
            false => self.read_pages(ready, first, last),
        };
        let booking = self.book(ready + read_time, sectors, false);
        // The last page crosses the link once it has been read; the request completes no earlier than the link allows.
        let tail =
            if first == last { booking.end - booking.begin } else { command + self.span(sectors.min(page_sectors)) };
        let tail_end = passage.done + tail;
        let (end, wait) = if tail_end >= booking.end {
            (tail_end, passage.waited)
        } else {
            (booking.end, booking.begin - (ready + read_time))
        };
        parts(now, overhead, wait, end)
    }

    fn serve_write(&mut self, now: Nanos, request: &Request) -> Service {
        let Parameters { write_overhead: overhead, page_sectors, link_command: [_, command], .. } = self.parameters;
        let ready = now + overhead;
        let sectors = u64::from(request.sectors);
        let Booking { begin, end: sent } = self.book(ready, sectors, true);
        if self.blocks.is_some() {
            let end = self.fill_units(ready, (begin + command, sent), request);
            return parts(now, overhead, (begin - ready) + (end - sent), end);
        }
        if self.parameters.buffer_pages > 0 {
            let end = self.fill_buffer(begin + command, sent, sectors);
            return parts(now, overhead, (begin - ready) + (end - sent), end);
        }
        let head = begin + command + self.span(sectors.min(page_sectors));
        let (first, last) = self.pages(request);
        let passage = self.program_pages((head, sent), first, last);
        parts(now, overhead, (begin - ready) + passage.waited, passage.done)
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
            let free = &mut self.free[buffer.channel];
            *free = full.max(*free) + program_time;
            buffer.left = buffer.left.max(*free);
            buffer.leaves[buffer.slot] = buffer.left;
            buffer.slot = next(buffer.slot, buffer.leaves.len());
            buffer.channel = next(buffer.channel, self.free.len());
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
                let free = &mut self.free[blocks.channel_of(blocks.page_of(unit))];
                *free = ready.max(*free) + self.parameters.read_time;
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
                Work::Erase => (0..self.free.len(), erase_time),
            };
            for free in &mut self.free[channels] {
                *free = full.max(*free) + time;
            }
            if let Work::Program(channel) = *work {
                self.buffer.left = self.buffer.left.max(self.free[channel]);
            }
        }
        self.units.clear();
        let buffer = &mut self.buffer;
        buffer.leaves[buffer.slot] = buffer.left;
        buffer.slot = next(buffer.slot, buffer.leaves.len());
    }
}

/// The index after `index` on a ring of `length`.
#[inline]
fn next(index: usize, length: usize) -> usize {
    if index + 1 == length {
        0
    } else {
        index + 1
    }
}

/// A service whose transfer is the rest between `now` and `end`.
#[inline]
fn parts(now: Nanos, overhead: Nanos, wait: Nanos, end: Nanos) -> Service {
    let [seek, rotation] = [Nanos::ZERO; 2];
    Service { end, seek, rotation, transfer: end - now - overhead - wait, overhead, wait, buffer_hit: false }
}

impl Device for Flash {
    #[inline]
    fn serve(&mut self, now: Nanos, request: &Request) -> Service {
        self.head_sector = request.end();
        if request.write {
            self.serve_write(now, request)
        } else {
            self.serve_read(now, request)
        }
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.parameters.capacity_sectors)
    }

    fn least_service(&self, sectors: u32) -> Nanos {
        let Parameters { read_overhead, read_time, write_overhead, program_time, link_command, .. } = self.parameters;
        let programmed = if self.parameters.buffer_pages > 0 { Nanos::ZERO } else { program_time };
        let [reads, writes] = link_command;
        let before = (read_overhead + read_time + reads).min(write_overhead + programmed + writes);
        before + self.span(sectors.into())
    }

    /// Every sector crosses the link, and every page is read by a channel.
    fn least_transfer(&self, sectors: u64) -> Nanos {
        let Parameters { read_overhead, read_time, page_sectors, channels, .. } = self.parameters;
        let page_reads = sectors.div_ceil(page_sectors).div_ceil(channels);
        read_overhead + (read_time * page_reads).max(self.span(sectors))
    }

    /// A read of one page from an idle drive.
    fn nominal_service(&self) -> Nanos {
        let Parameters { read_overhead, read_time, link_command: [command, _], .. } = self.parameters;
        read_overhead + read_time + command + self.page_span
    }

    fn concurrency(&self) -> u32 {
        self.parameters.queue_depth
    }

    fn head_sector(&self) -> u64 {
        self.head_sector
    }

    /// The wait of the first page for its channel; for a write, for its slot in the buffer.
    fn positioning(&self, now: Nanos, request: &Request) -> Nanos {
        let channel = match &self.blocks {
            Some(blocks) => blocks.channel_of(blocks.page_of(request.sector / self.parameters.unit_sectors)),
            None => self.channel_of(request.sector / self.parameters.page_sectors),
        };
        let channel = self.free[channel];
        if !request.write {
            return channel.saturating_sub(now + self.parameters.read_overhead);
        }
        let place = self.buffer.leaves.get(self.buffer.slot).copied().unwrap_or(channel);
        place.saturating_sub(now + self.parameters.write_overhead)
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }
}
