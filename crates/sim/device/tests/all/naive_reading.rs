//! The reads of a segmented buffer, with writes to the media in between, compared with a second implementation that
//! reads ahead sector by sector, with and without `read_during_overhead`, `hit_ahead`, `read_ahead_on_hit` and
//! `read_ahead_on_sequence`. One zone without spares, skews that cover the switches.

use headstart_device::{Device, Mechanical, Request};
use headstart_types::Nanos;
use proptest::prelude::*;

const MINUTE: u128 = 60_000_000_000;

#[derive(Debug, Clone)]
struct Drive {
    rpm: u64,
    surfaces: u64,
    cylinders: u64,
    track: u64,
    /// Between tracks, between cylinders.
    skews: [u64; 2],
    head_switch: u64,
    seek: u64,
    hit: u64,
    miss: u64,
    bus: u64,
    segments: usize,
    size: u64,
    ahead: bool,
    minimum: u64,
    maximum: Option<u64>,
    keep_requested: bool,
    partial_hit: bool,
    hit_under_way: bool,
    hit_ahead: bool,
    read_ahead_on_hit: bool,
    on_sequence: bool,
    stop_within_sector: bool,
    during_overhead: bool,
}

impl Drive {
    fn device(&self) -> Mechanical {
        let maximum = self.maximum.map_or(String::new(), |maximum| format!("read_ahead_maximum = {maximum}"));
        let profile = format!(
            "name = 'small'\nrpm = {}\nsurfaces = {}\nhead_switch = '{}ns'\nnominal_service = '8ms'
            zones = [{{cylinders = {}, sectors_per_track = {}, track_skew = {}, cylinder_skew = {}}}]
            seek = {{form = 'sum', constant = '200us', linear = '{}ns', root = '0s'}}\nbus = {{sector_time = '{}ns'}}
            [controller]\nread_hit_after_read = '{}ns'\nread_miss_after_read = '{}ns'
            read_hit_after_write = '{}ns'\nread_miss_after_write = '{}ns'\nwrite_hit_after_read = '0s'
            write_hit_after_write = '0s'\nwrite_miss_after_read = '0s'\nwrite_miss_after_write = '0s'
            [buffer]\nsegments = {}\nsegment_sectors = {}\nread_ahead = '{}'\nwrite_reporting = 'media'
            read_ahead_minimum = {}\n{maximum}\nkeep_requested = {}\npartial_hit = {}\nhit_under_way = {}
            hit_ahead = {}\nread_ahead_on_hit = {}\nread_ahead_on_sequence = {}\nstop_within_sector = {}\nread_during_overhead = {}",
            self.rpm,
            self.surfaces,
            self.head_switch,
            self.cylinders,
            self.track,
            self.skews[0],
            self.skews[1],
            self.seek,
            self.bus,
            self.hit,
            self.miss,
            self.hit,
            self.miss,
            self.segments,
            self.size,
            if self.ahead { "segment" } else { "none" },
            self.minimum,
            self.keep_requested,
            self.partial_hit,
            self.hit_under_way,
            self.hit_ahead,
            self.read_ahead_on_hit,
            self.on_sequence,
            self.stop_within_sector,
            self.during_overhead,
        );
        Mechanical::from_table(profile.parse().unwrap()).unwrap()
    }

    fn sectors(&self) -> u64 {
        self.track * self.surfaces * self.cylinders
    }

    /// The instant of a border between two sectors, numbered from the start.
    fn time(&self, border: u64) -> u64 {
        (u128::from(border) * MINUTE).div_ceil(u128::from(self.rpm * self.track)) as u64
    }

    /// (cylinder, surface), and the angle in sectors.
    fn place(&self, sector: u64) -> ((u64, u64), u64) {
        let track = sector / self.track;
        let turned: u64 = (1..=track).map(|track| self.skews[usize::from(track % self.surfaces == 0)]).sum();
        ((track / self.surfaces, track % self.surfaces), (sector + turned) % self.track)
    }

    fn movement(&self, from: (u64, u64), to: (u64, u64)) -> u64 {
        let arm = if from.0 == to.0 { 0 } else { 200_000 + self.seek * from.0.abs_diff(to.0) };
        if from.1 == to.1 {
            arm
        } else {
            arm.max(self.head_switch)
        }
    }

    /// The border at which `sector` begins to pass a head that leaves `head` at `time`.
    fn begins(&self, time: u64, head: (u64, u64), sector: u64) -> u64 {
        self.passes(time + self.movement(head, self.place(sector).0), sector)
    }

    /// The same for a head that is on its track at `there`.
    fn passes(&self, there: u64, sector: u64) -> u64 {
        let angle = self.place(sector).1;
        let mut border = (u128::from(there) * u128::from(self.rpm * self.track) / MINUTE) as u64;
        while self.time(border) < there || border % self.track != angle {
            border += 1;
        }
        border
    }

    /// Where a read-ahead after `sector..end` stops.
    fn limit(&self, sector: u64, end: u64) -> u64 {
        let full = match self.maximum {
            Some(maximum) => end + maximum,
            None if self.keep_requested => (sector + self.size).max(end + self.minimum),
            None => end + self.size,
        };
        if self.ahead { full.min(self.sectors()) } else { end }.max(end)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Segment {
    start: u64,
    end: u64,
    used: u64,
    /// The furthest stop of its reads' read-aheads.
    limit: u64,
    /// Where its last read ended.
    asked: u64,
    /// Whether it was written, not read.
    written: bool,
}

/// A read-ahead into a segment.
#[derive(Debug, Clone)]
struct Ahead {
    segment: usize,
    next: u64,
    stop: u64,
    at_least: u64,
}

#[derive(Debug, Clone)]
struct Naive {
    drive: Drive,
    segments: Vec<Segment>,
    uses: u64,
    ahead: Option<Ahead>,
    head: (u64, u64),
    /// The border at which the last sector had passed.
    passed: u64,
    /// The segment that the current read continues, the most recently used of several.
    follows: Option<usize>,
}

impl Naive {
    fn new(drive: Drive) -> Self {
        let segments = vec![Segment::default(); drive.segments];
        Self { drive, segments, uses: 0, ahead: None, head: (0, 0), passed: 0, follows: None }
    }

    fn touch(&mut self, segment: usize) {
        self.uses += 1;
        self.segments[segment].used = self.uses;
    }

    /// Passes over one sector, from `time` on, into a segment; returns when it begins and when it has been read.
    fn pass(&mut self, time: u64, segment: usize, sector: u64) -> (u64, u64) {
        let border = self.drive.begins(time, self.head, sector);
        self.head = self.drive.place(sector).0;
        self.passed = border + 1;
        let Segment { start, end, .. } = &mut self.segments[segment];
        *end = (*end).max(sector + 1);
        *start = (*start).max(end.saturating_sub(self.drive.size));
        (self.drive.time(border), self.drive.time(self.passed))
    }

    /// Reads the next sector of the stream; returns when it has been read.
    fn step(&mut self) -> u64 {
        let Ahead { segment, next, stop, .. } = self.ahead.clone().unwrap();
        let done = self.pass(self.drive.time(self.passed), segment, next).1;
        self.ahead.as_mut().unwrap().next += 1;
        if next + 1 == stop {
            self.ahead = None;
        }
        done
    }

    /// Reads what can be read by `time`.
    fn advance(&mut self, time: u64) {
        while let Some(ahead) = &self.ahead {
            let begins = self.drive.begins(self.drive.time(self.passed), self.head, ahead.next);
            if self.drive.time(begins + 1) > time {
                return;
            }
            self.step();
        }
    }

    /// The segment that holds `sector`: preferably all up to `end`, then the most recently used; or that of a stream
    /// that reaches it. Otherwise the stream is interrupted at `leave`, and the arm moves from `ready` on.
    fn find(&self, (sector, end): (u64, u64), leave: u64, ready: u64) -> Option<usize> {
        let holds = |segment: &usize| (self.segments[*segment].start..self.segments[*segment].end).contains(&sector);
        let merit = |segment: &usize| (self.segments[*segment].end >= end, self.segments[*segment].used);
        let found = (0..self.segments.len()).filter(holds).max_by_key(merit);
        let coming = self.ahead.as_ref().filter(|ahead| {
            (self.drive.hit_under_way && ahead.next == sector)
                || (self.drive.hit_ahead && (ahead.next..ahead.stop).contains(&sector) && {
                    let off = self.clone().reposition(leave, ready, (sector, end)).0;
                    self.clone().read_on(end) <= off
                })
        });
        found.or(coming.map(|ahead| ahead.segment))
    }

    /// Continues the stream to `end`, which has not been read completely; returns when it has.
    fn read_on(&mut self, end: u64) -> u64 {
        let ahead = self.ahead.as_mut().unwrap();
        ahead.stop = ahead.stop.max(end);
        for _ in ahead.next + 1..end {
            self.step();
        }
        self.step()
    }

    /// Interrupts the stream at `time`; returns when the arm can move.
    fn break_off(&mut self, time: u64) -> u64 {
        self.advance(time);
        let mut free = time;
        while self.ahead.as_ref().is_some_and(|ahead| ahead.next < ahead.at_least) {
            free = self.step().max(time);
        }
        let Some(Ahead { segment, next, .. }) = self.ahead.take().filter(|_| free == time) else { return free };
        let (place, last) = (self.drive.place(next).0, self.drive.time(self.passed));
        let begins = self.drive.begins(last, self.head, next);
        if self.drive.time(begins) < time {
            // It passes.
            if self.drive.stop_within_sector {
                self.head = place;
                return time;
            }
            return self.pass(last, segment, next).1;
        }
        let first = self.drive.time(self.passed + 1);
        if place == self.head || last >= time || (time < first && self.drive.stop_within_sector) {
            return time;
        }
        if time < first {
            // During the passage of one sector after its track the head is still there.
            return first;
        }
        let switched = last + self.drive.movement(self.head, place);
        self.head = place;
        switched.max(time)
    }

    /// Reads `from..end` for the request `sector..end`, and ahead from there; returns when all have been read, and when
    /// the bus has moved them, each once it has been read.
    fn fetch(&mut self, time: u64, segment: usize, (from, sector, end): (u64, u64, u64)) -> (u64, u64) {
        let (mut is_in, mut crossed) = (time, 0);
        for sector in from..end {
            is_in = self.pass(is_in, segment, sector).1;
            crossed = crossed.max(is_in + self.drive.bus * (end - sector));
        }
        let stop = self.limit(segment, (sector, end));
        let at_least = (end + self.minimum()).min(stop);
        self.ahead = (stop > end).then_some(Ahead { segment, next: end, stop, at_least });
        (is_in, crossed)
    }

    /// Serves a write at `now`, which goes to the media at once; returns when it is done. Neither its first sector nor,
    /// after all others, its last passes before it has crossed the bus.
    fn write(&mut self, now: u64, sector: u64, end: u64) -> u64 {
        self.advance(now);
        let mut time = self.break_off(now);
        let bus = self.drive.bus * (end - sector);
        let crossed = time + bus;
        let mut least = (time + self.drive.bus).max(crossed.saturating_sub(self.drive.time(end - sector - 1)));
        for each in sector..end {
            let place = self.drive.place(each).0;
            let there = (time + self.drive.movement(self.head, place)).max(std::mem::take(&mut least));
            self.passed = self.drive.passes(there, each) + 1;
            (self.head, time) = (place, self.drive.time(self.passed));
        }
        // Other segments' copies of it are stale; a segment takes it, and forgets earlier reads.
        for segment in self.segments.iter_mut().filter(|segment| segment.start < end && sector < segment.end) {
            segment.end = segment.start;
        }
        let segment = self.longest_ago();
        self.touch(segment);
        let goes_on = self.segments[segment].written && self.segments[segment].end == sector;
        let Segment { start, used, .. } = self.segments[segment];
        let start = if goes_on { start } else { sector };
        let held = Segment {
            start: start.max(end.saturating_sub(self.drive.size)),
            end,
            used,
            written: true,
            ..Segment::default()
        };
        self.segments[segment] = match goes_on {
            true => Segment { limit: self.segments[segment].limit, asked: self.segments[segment].asked, ..held },
            false => held,
        };
        time.max(crossed)
    }

    /// The segment to be replaced next: an empty one, else the least recently used.
    fn longest_ago(&self) -> usize {
        let merit = |index: &usize| match self.segments[*index] {
            segment if segment.start == segment.end => 0,
            segment => segment.used,
        };
        (0..self.segments.len()).min_by_key(merit).unwrap()
    }

    /// Serves a read at `now`: returns when it is done, and whether it was a hit.
    fn read(&mut self, now: u64, sector: u64, end: u64) -> (u64, bool) {
        let Drive { hit, miss, partial_hit, .. } = self.drive;
        let ended_here = |index: &usize| sector > 0 && self.segments[*index].asked == sector;
        self.follows = (0..self.segments.len()).filter(ended_here).max_by_key(|index| self.segments[*index].used);
        if self.drive.during_overhead {
            let mut then = self.clone();
            then.advance(now + hit);
            let arm = now + hit.max(miss);
            if let Some(segment) = then.find((sector, end), arm, arm) {
                if partial_hit || then.segments[segment].end >= end {
                    *self = then;
                    return (self.hit((now + hit, now + hit, arm, arm), segment, (sector, end)), true);
                }
            }
            let at = now + miss;
            self.advance(at);
            return match self.find((sector, end), at, at) {
                Some(segment) => (self.hit((at, at, at, at), segment, (sector, end)), true),
                None => (self.miss(at, at, (sector, end)), false),
            };
        }
        self.advance(now);
        match self.find((sector, end), now, now + miss) {
            Some(segment) => {
                let part = self.segments[segment].end < end;
                let ready = now + if part && !partial_hit { miss } else { hit };
                (self.hit((now, ready, now, now + miss), segment, (sector, end)), true)
            }
            None => (self.miss(now, now + miss, (sector, end)), false),
        }
    }

    /// Looked up at `at`; data can cross the bus from `ready` on, a stream elsewhere is interrupted at `leave` and the
    /// arm can move at `arm`.
    fn hit(&mut self, (at, ready, leave, arm): (u64, u64, u64, u64), segment: usize, (sector, end): (u64, u64)) -> u64 {
        let held = self.segments[segment].end;
        let crossed = ready + self.drive.bus * (end - sector);
        let mut done = 0;
        if self.ahead.as_ref().is_some_and(|ahead| ahead.segment == segment) {
            let (limit, minimum) = (self.limit(segment, (sector, end)), self.minimum());
            let ahead = self.ahead.as_mut().unwrap();
            ahead.stop = ahead.stop.max(limit);
            ahead.at_least = ahead.at_least.max((end + minimum).min(limit));
            for passing in held..end {
                let passed = self.step().max(at);
                // Sectors that the stream skips do not cross the bus.
                if passing >= sector {
                    done = done.max(passed + self.drive.bus * (end - passing));
                }
            }
        } else {
            let free = self.break_off(if held < end { leave } else { at });
            if held < end {
                done = self.fetch(arm.max(free), segment, (held, sector, end)).1;
            } else if self.drive.read_ahead_on_hit {
                let stop = self.limit(segment, (sector, end));
                self.restart(arm.max(free), segment, stop);
            }
        }
        self.touch(segment);
        self.segments[segment].asked = end;
        crossed.max(done)
    }

    /// Whether the head may read ahead after the current read.
    fn goes_on(&self) -> bool {
        !self.drive.on_sequence || self.follows.is_some()
    }

    fn minimum(&self) -> u64 {
        if self.goes_on() {
            self.drive.minimum
        } else {
            0
        }
    }

    /// Where a read-ahead into a segment after `sector..end` stops: no earlier than for the previous reads.
    fn limit(&mut self, segment: usize, (sector, end): (u64, u64)) -> u64 {
        let own = if self.goes_on() { self.drive.limit(sector, end) } else { end };
        let limit = &mut self.segments[segment].limit;
        *limit = (*limit).max(own);
        *limit
    }

    /// Reads ahead after a segment's content, from `time` on.
    fn restart(&mut self, time: u64, segment: usize, stop: u64) {
        let next = self.segments[segment].end;
        if next < stop {
            self.passed = self.drive.begins(time, self.head, next);
            self.head = self.drive.place(next).0;
            let at_least = (next + self.minimum()).min(stop);
            self.ahead = Some(Ahead { segment, next, stop, at_least });
        }
    }

    fn miss(&mut self, leave: u64, ready: u64, (sector, end): (u64, u64)) -> u64 {
        self.reposition(leave, ready, (sector, end)).1
    }

    /// Reads into the segment of the sequence, or the least recently used one; returns when all have been read, and
    /// when the bus has moved them.
    fn reposition(&mut self, leave: u64, ready: u64, (sector, end): (u64, u64)) -> (u64, u64) {
        let free = self.break_off(leave);
        let longest_ago = self.longest_ago();
        let segment = self.follows.filter(|_| self.drive.on_sequence).unwrap_or(longest_ago);
        self.touch(segment);
        let used = self.segments[segment].used;
        self.segments[segment] = Segment { start: sector, end: sector, used, limit: 0, asked: end, written: false };
        self.fetch(ready.max(free), segment, (sector, sector, end))
    }
}

fn drives() -> impl Strategy<Value = Drive> {
    let shape = (1_000u64..12_000, 1u64..4, 1u64..6, 20u64..40, 0u64..6);
    let times = (0u64..250_000, 0u64..50_000, 0u64..900_000, 0u64..900_000, 0u64..100_000);
    let buffer = (1usize..5, 4u64..60, prop::option::of(0u64..60), 0u64..4, prop::array::uniform8(any::<bool>()));
    (shape, times, buffer, 0u8..8).prop_map(|(shape, times, buffer, ahead)| {
        let (rpm, surfaces, cylinders, track, skew) = shape;
        let (head_switch, seek, hit, miss, bus) = times;
        let (segments, size, maximum, minimum, flags) = buffer;
        let cover = |time: u64| (u128::from(time * rpm * track).div_ceil(MINUTE) as u64 + 1 + skew).min(track - 1);
        Drive {
            rpm,
            surfaces,
            cylinders,
            track,
            skews: [cover(head_switch), cover((200_000 + seek).max(head_switch))],
            head_switch,
            seek,
            hit,
            miss,
            bus,
            segments,
            size,
            ahead: ahead > 0,
            minimum,
            maximum: maximum.map(|maximum| maximum.min(size)),
            keep_requested: flags[0],
            partial_hit: flags[1],
            hit_under_way: flags[2],
            stop_within_sector: flags[3],
            during_overhead: flags[4],
            hit_ahead: flags[5],
            read_ahead_on_hit: flags[6],
            on_sequence: flags[7],
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Reads of several streams that continue, skip some sectors, or are elsewhere, with pauses of a few sectors or
    /// several revolutions, and writes in between.
    #[test]
    fn reads_and_writes_against_a_walk(
        drive in drives(),
        steps in prop::collection::vec((0u64..2_000_000, 0usize..4, 0u64..1 << 40, 1u64..20, 0u8..10), 1..60),
    ) {
        let sectors = drive.sectors();
        let mut device: Box<dyn Device> = Box::new(drive.device());
        prop_assert_eq!(device.capacity_sectors(), Some(sectors));
        let mut naive = Naive::new(drive);
        let mut nexts = [0, sectors / 4, sectors / 2, sectors * 3 / 4];
        let mut now = 0;
        for (pause, stream, place, length, kind) in steps {
            let length = length.min(sectors);
            let skipped = if kind == 1 { place % 20 } else { 0 };
            let sector = if kind == 0 { place } else { nexts[stream] + skipped } % (sectors - length + 1);
            now += if kind < 3 { pause * 20 } else { pause / 10 };
            let write = kind >= 8;
            let service = device.serve(Nanos(now), &Request { write, ..Request::read(sector, length as u32, 0) });
            let (end, hit) = match write {
                true => (naive.write(now, sector, sector + length), false),
                false => naive.read(now, sector, sector + length),
            };
            prop_assert_eq!((service.end.0, service.buffer_hit), (end, hit), "{} for {} at {}, write {}", sector, length, now, write);
            (now, nexts[stream]) = (end, sector + length);
        }
    }
}
