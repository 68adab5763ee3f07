//! A solid-state drive with block management compared with a second implementation that keeps every slot of the flash
//! in a list and recounts the valid ones for each choice.

use headstart_device::{build_device, Request};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

/// A superblock that is being collected.
struct Victim {
    superblock: usize,
    /// Units that were valid when it was chosen.
    valid: usize,
    /// Units that the host has written since, and those moved.
    written: usize,
    moved: usize,
    /// The next slot to inspect, and the page read last.
    cursor: usize,
    page: Option<usize>,
}

#[derive(Default)]
struct Naive {
    unit: u64,
    page_units: usize,
    channels: usize,
    superblock: usize,
    read: u64,
    program: u64,
    erase: u64,
    rate: u64,
    buffer: usize,
    /// The slot of each unit; the unit last written to each slot.
    slot_of: Vec<Option<usize>>,
    written: Vec<Option<usize>>,
    /// Superblocks in the order of their use, and the slot that is written next.
    erased: Vec<usize>,
    head: usize,
    victim: Option<Victim>,
    free: Vec<u64>,
    /// The page in the register of each channel.
    held: Vec<Option<usize>>,
    link: u64,
    /// When each page that left the buffer, and all before it, had been programmed.
    left: Vec<u64>,
    gathered: Vec<usize>,
}

impl Naive {
    fn on_link(&self, sectors: u64) -> u64 {
        (sectors * 512_000_000_000).div_ceil(self.rate)
    }

    /// The location of a unit; if it was never written, that on a full drive.
    fn page_of(&self, unit: usize) -> usize {
        self.slot_of[unit].unwrap_or(unit) / self.page_units
    }

    fn valid(&self, superblock: usize) -> usize {
        self.slot_of.iter().flatten().filter(|slot| **slot / self.superblock == superblock).count()
    }

    fn work(&mut self, channel: usize, from: u64, time: u64) -> u64 {
        self.held[channel] = None;
        self.free[channel] = from.max(self.free[channel]) + time;
        self.free[channel]
    }

    /// Reads a page for the host: only the first time, while it stays in the register.
    fn sense(&mut self, page: usize, from: u64) -> u64 {
        let channel = page % self.channels;
        if self.held[channel] == Some(page) {
            return from.max(self.free[channel]);
        }
        let done = self.work(channel, from, self.read);
        self.held[channel] = Some(page);
        done
    }

    /// Puts a unit into the log, for a page of the host that was full at `full`.
    fn append(&mut self, unit: usize, full: u64) {
        self.slot_of[unit] = Some(self.head);
        self.written[self.head] = Some(unit);
        self.head += 1;
        if self.head.is_multiple_of(self.page_units) {
            let channel = (self.head / self.page_units - 1) % self.channels;
            let done = self.work(channel, full, self.program);
            let last = self.left.pop().expect("the page that is being written").max(done);
            self.left.push(last);
        }
        if self.head.is_multiple_of(self.superblock) {
            self.head = self.erased.remove(0) * self.superblock;
        }
    }

    fn collect(&mut self, full: u64) {
        if self.victim.is_none() && self.erased.len() < 2 {
            let open = self.head / self.superblock;
            let may = |superblock: &usize| *superblock != open && !self.erased.contains(superblock);
            let written = (0..self.written.len() / self.superblock).filter(may);
            let superblock = written.min_by_key(|superblock| self.valid(*superblock)).expect("several");
            let (valid, cursor) = (self.valid(superblock), superblock * self.superblock);
            self.victim = Some(Victim { superblock, valid, written: 0, moved: 0, cursor, page: None });
        }
        let Some(mut victim) = self.victim.take() else { return };
        victim.written += 1;
        let end = (victim.superblock + 1) * self.superblock;
        // Of N units, v are moved while the host writes N - v.
        while victim.cursor < end && victim.moved * (self.superblock - victim.valid) <= victim.written * victim.valid {
            let slot = victim.cursor;
            victim.cursor += 1;
            let Some(unit) = self.written[slot].filter(|unit| self.slot_of[*unit] == Some(slot)) else { continue };
            let page = slot / self.page_units;
            if victim.page.replace(page) != Some(page) {
                self.work(page % self.channels, full, self.read);
            }
            victim.moved += 1;
            self.append(unit, full);
        }
        if victim.cursor < end {
            self.victim = Some(victim);
            return;
        }
        self.erased.push(victim.superblock);
        for channel in 0..self.channels {
            self.work(channel, full, self.erase);
        }
    }

    fn serve(&mut self, now: u64, request: &Request) -> u64 {
        let sectors = u64::from(request.sectors);
        let units = request.sector / self.unit..request.end().div_ceil(self.unit);
        if !request.write {
            let ready = now + 3_000;
            let mut pages: Vec<usize> = units.map(|unit| self.page_of(unit as usize)).collect();
            pages.dedup();
            let done = pages.iter().map(|page| self.sense(*page, ready)).max().expect("one");
            self.link = done.min(ready + self.read).max(self.link) + self.on_link(sectors);
            let page_sectors = self.unit * self.page_units as u64;
            let within = request.sector / page_sectors == (request.end() - 1) / page_sectors;
            let tail = if within { sectors } else { sectors.min(page_sectors) };
            return (done + self.on_link(tail)).max(self.link);
        }
        let ready = now + 4_000;
        let begin = ready.max(self.link);
        let sent = begin + self.on_link(sectors);
        self.link = sent;
        let mut end = sent;
        for unit in units.clone() {
            // The parts of a unit that the host does not write are read first.
            let whole = request.sector <= unit * self.unit && (unit + 1) * self.unit <= request.end();
            if !whole {
                self.sense(self.page_of(unit as usize), ready);
            }
            let arrival = sent.min(begin + self.on_link((unit + 1 - units.start) * self.unit));
            let before = (self.left.len() + 1).saturating_sub(self.buffer);
            let place = self.left[..before].last().copied().unwrap_or(0);
            end = sent.max(place);
            self.gathered.push(unit as usize);
            if self.gathered.len() == self.page_units {
                self.left.push(self.left.last().copied().unwrap_or(0));
                for unit in std::mem::take(&mut self.gathered) {
                    self.append(unit, arrival.max(place));
                    self.collect(arrival.max(place));
                }
            }
        }
        end
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn agrees_with_the_naive_model(
        (unit, page_units, channels, block_pages) in (1u64..5, 1usize..5, 1usize..4, 1usize..4),
        (superblocks, spare, part, buffer) in (1usize..6, 4usize..8, 0usize..100, 1usize..6),
        (read, program, erase, rate) in (1u64..90_000, 1u64..300_000, 1u64..900_000, 3_000_000u64..900_000_000),
        filled in any::<bool>(),
        load in prop::collection::vec((0u64..400_000, any::<prop::sample::Index>(), 1u64..20, 0u8..4), 1..250),
    ) {
        let superblock = page_units * channels * block_pages;
        let units = superblock * superblocks - part % superblock;
        let all = superblock * (superblocks + spare);
        // Half a unit more than the superblocks have, so that rounding does not take one of them.
        let over_provisioning = (all as f64 + 0.5) / units as f64 - 1.0;
        prop_assume!(over_provisioning <= 100.0);
        let bytes = |units: usize| format!("'{}B'", units as u64 * unit * 512);
        let keys = format!(
            "capacity = {}\nchannels = {channels}\npage_size = {}\nmapping_size = {}\nblock_pages = {block_pages}\n\
             over_provisioning = {over_provisioning:?}\nread_time = '{read}ns'\nprogram_time = '{program}ns'\n\
             erase_time = '{erase}ns'\nread_overhead = '3us'\nwrite_overhead = '4us'\nlink_bytes_per_second = {rate}\n\
             link_command = '0s'\nwrite_command = '0s'\nduplex = false\nwrite_buffer = {}\nfilled = {filled}",
            bytes(units), bytes(page_units), bytes(1), bytes(buffer * page_units),
        );
        let mut drive = build_device("nvme", keys.parse::<Table>().unwrap()).unwrap();
        let lies = |unit: usize| (filled && unit < units).then_some(unit);
        let taken = if filled { superblocks } else { 0 };
        let mut naive = Naive {
            unit, page_units, channels, superblock, read, program, erase, rate, buffer,
            slot_of: (0..units).map(lies).collect(),
            written: (0..all).map(lies).collect(),
            erased: (taken + 1..superblocks + spare).collect(),
            head: taken * superblock,
            free: vec![0; channels],
            held: vec![None; channels],
            ..Naive::default()
        };
        let (mut now, sectors) = (0, units as u64 * unit);
        for (gap, place, length, kind) in load {
            now += gap;
            let length = length.min(sectors);
            let sector = place.index((sectors - length + 1) as usize) as u64;
            let request = Request { write: kind > 0, ..Request::read(sector, length as u32, 0) };
            let service = drive.serve(Nanos(now), &request);
            prop_assert_eq!(service.end.0, naive.serve(now, &request), "{:?} at {}", request, now);
        }
    }
}
