//! A solid-state drive, simplified: parallel channels, one link to the host, a write buffer.
//!
//! A *channel* is a unit that does one thing at a time, such as a die behind its bus. Page p of the address space lies
//! on channel p mod `channels`, so a long request uses many channels concurrently. A read waits for the channels of its
//! pages, then its data crosses the link; a page that is still in its channel's register is not read again
//! (`flash_channels.rs`), nor one that the drive has read ahead (`flash/streams.rs`). A write crosses the link into the buffer and is done; from the buffer, whole
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
//! allocation after building, integers only. Memory: 16 bytes per channel, 8 per page of the buffer.

mod streams;
mod writes;

use std::ops::Range;

use headstart_types::{KeyError, Nanos};

use self::streams::Streams;
use self::writes::WriteBuffer;
use super::at_rate;
use super::flash_blocks::Blocks;
use super::flash_channels::{Channels, Passage};
use super::flash_keys::FlashKeys;
use crate::{Device, Request, Service, Wanted, SECTOR_BYTES};

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
    read_ahead_sectors: u64,
}

#[derive(Debug, Clone)]
pub struct Flash {
    parameters: Parameters,
    /// Time of a full page on the link.
    page_span: Nanos,
    channels: Channels,
    streams: Streams,
    /// When the link becomes free for reads and for writes; without duplex the first is for both.
    link: [Nanos; 2],
    buffer: WriteBuffer,
    /// The location of data if blocks are managed, and the units of the page that is being filled.
    blocks: Option<Blocks>,
    units: Vec<u64>,
    head_sector: u64,
}

/// The interval in which a request has the link to itself.
struct Booking {
    begin: Nanos,
    end: Nanos,
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
            read_ahead_sectors: keys.read_ahead.0 / SECTOR_BYTES,
        };
        let mut flash = Self {
            page_span: Nanos::ZERO,
            channels: Channels::new(parameters.channels as usize),
            streams: Streams::new(parameters.read_ahead_sectors),
            link: [Nanos::ZERO; 2],
            buffer: WriteBuffer::new(parameters.buffer_pages),
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
        at_rate(sectors, self.parameters.link_bytes_per_second)
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

    /// The least time in which `requests` reads, from the first on, get `sectors` sectors of so many pages.
    fn least_time(&self, pages: u64, sectors: u64, requests: u64) -> Nanos {
        let Parameters { read_overhead, read_time, channels, link_command: [command, _], .. } = self.parameters;
        read_overhead + (read_time * pages.div_ceil(channels)).max(command * requests + self.span(sectors))
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

    /// Reads pages `first..=last` from `ready` on; returns the times of the channel that ends last.
    #[inline]
    fn read_pages(&mut self, ready: Nanos, first: u64, last: u64) -> Passage {
        let Parameters { channels, read_time, .. } = self.parameters;
        let mut channel = self.channel_of(first);
        let mut latest = Passage::NONE;
        for page in first..=last.min(first + channels - 1) {
            let count = if last - first < channels { 1 } else { (last - page) / channels + 1 };
            let pages = (page, page + (count - 1) * channels);
            latest = latest.later(self.channels.read(channel, ready, pages, count, read_time));
            channel = next(channel, self.channels.len());
        }
        latest
    }

    /// Reads units from their current location, from `ready` on.
    fn read_units(&mut self, ready: Nanos, units: Range<u64>) -> Passage {
        let blocks = self.blocks.as_ref().expect("blocks are managed");
        let mut latest = Passage::NONE;
        for unit in units {
            let page = blocks.page_of(unit);
            let (channel, pages) = (blocks.channel_of(page), (page.into(), page.into()));
            latest = latest.later(self.channels.read(channel, ready, pages, 1, self.parameters.read_time));
        }
        latest
    }

    /// Reads the sectors `first..end`, from `ready` on; returns the times of the channel that ends last.
    fn read_sectors(&mut self, ready: Nanos, first: u64, end: u64) -> Passage {
        let Parameters { unit_sectors, page_sectors, .. } = self.parameters;
        match self.blocks.is_some() {
            true => self.read_units(ready, first / unit_sectors..end.div_ceil(unit_sectors)),
            false => self.read_pages(ready, first / page_sectors, (end - 1) / page_sectors),
        }
    }

    /// Reads a request, from `ready` on, if the drive reads ahead: what it has read ahead need not be read, and it reads
    /// ahead of a read that continues a stream. Returns the times of the page that ends last.
    fn read_stream(&mut self, ready: Nanos, request: &Request) -> Passage {
        let Parameters { page_sectors, capacity_sectors, read_ahead_sectors, .. } = self.parameters;
        let stream = self.streams.continued(request.sector);
        let (first, last) = self.pages(request);
        let mut latest = Passage::NONE;
        for page in first..=last {
            let there = stream.and_then(|stream| self.streams.there(stream, page));
            latest = latest.later(match there {
                Some(there) => Passage { waited: there.saturating_sub(ready), done: there.max(ready) },
                None => {
                    let (begin, end) = (page * page_sectors, (page + 1) * page_sectors);
                    self.read_sectors(ready, begin.max(request.sector), end.min(request.end()))
                }
            });
        }
        let next = (request.end(), request.end() / page_sectors);
        if let Some((stream, mut page)) = self.streams.advance(stream, next).filter(|_| stream.is_some()) {
            let end = (request.end() + read_ahead_sectors).min(capacity_sectors);
            while (page + 1) * page_sectors <= end {
                let there = self.read_sectors(ready, page * page_sectors, (page + 1) * page_sectors).done;
                self.streams.push(stream, there);
                page += 1;
            }
        }
        latest
    }

    fn serve_read(&mut self, now: Nanos, request: &Request) -> Service {
        let Parameters { read_overhead: overhead, read_time, page_sectors, link_command: [command, _], .. } =
            self.parameters;
        let ready = now + overhead;
        let sectors = u64::from(request.sectors);
        let passage = match self.parameters.read_ahead_sectors > 0 {
            true => self.read_stream(ready, request),
            false => self.read_sectors(ready, request.sector, request.end()),
        };
        // Data may cross the link as soon as a page could have been read, or at once if all of them have been.
        let earliest = passage.done.min(ready + read_time);
        let booking = self.book(earliest, sectors, false);
        // The last page crosses the link once it has been read; the request completes no earlier than the link allows.
        let tail = match self.pages(request) {
            (first, last) if first == last => booking.end - booking.begin,
            _ => command + self.span(sectors.min(page_sectors)),
        };
        let tail_end = passage.done + tail;
        let (end, wait) =
            if tail_end >= booking.end { (tail_end, passage.waited) } else { (booking.end, booking.begin - earliest) };
        parts(now, overhead, wait, end)
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
            let (first, last) = self.pages(request);
            self.streams.forget(first, last);
            self.serve_write(now, request)
        } else {
            self.serve_read(now, request)
        }
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.parameters.capacity_sectors)
    }

    /// A page that is in its register is only sent.
    fn least_service(&self, sectors: u32) -> Nanos {
        let Parameters { read_overhead, write_overhead, program_time, link_command, .. } = self.parameters;
        let programmed = if self.parameters.buffer_pages > 0 { Nanos::ZERO } else { program_time };
        let [reads, writes] = link_command;
        let before = (read_overhead + reads).min(write_overhead + programmed + writes);
        before + self.span(sectors.into())
    }

    /// Every sector crosses the link, and every page is read by a channel.
    fn least_transfer(&self, sectors: u64) -> Nanos {
        self.least_time(sectors.div_ceil(self.parameters.page_sectors), sectors, 1)
    }

    /// The same for the pages that hold these sectors, if they stay where they are.
    fn least_reads(&self, wanted: &Wanted<'_>) -> Nanos {
        let Parameters { page_sectors, .. } = self.parameters;
        let mut counted = 0;
        let pages = wanted.runs.iter().map(|(first, end)| {
            let first = (first / page_sectors).max(counted);
            counted = end.div_ceil(page_sectors);
            counted - first
        });
        let sectors = wanted.sectors();
        let pages = if self.blocks.is_none() { pages.sum() } else { sectors.div_ceil(page_sectors) };
        self.least_time(pages, sectors, wanted.requests)
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

    /// The wait of the first page for its channel, or for the drive's read-ahead; for a write, for its slot in the buffer.
    fn positioning(&self, now: Nanos, request: &Request) -> Nanos {
        let page = request.sector / self.parameters.page_sectors;
        let channel = match &self.blocks {
            Some(blocks) => blocks.channel_of(blocks.page_of(request.sector / self.parameters.unit_sectors)),
            None => self.channel_of(page),
        };
        let channel = self.channels.free(channel);
        if !request.write {
            let stream = self.streams.continued(request.sector);
            let there = stream.and_then(|stream| self.streams.there(stream, page));
            return there.unwrap_or(channel).saturating_sub(now + self.parameters.read_overhead);
        }
        let place = self.buffer.leaves.get(self.buffer.slot).copied().unwrap_or(channel);
        place.saturating_sub(now + self.parameters.write_overhead)
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }
}
