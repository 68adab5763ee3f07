//! A disk drive with an arm, turning platters and a read-ahead buffer, from a profile's numbers.
//!
//! A read costs controller overhead, then arm or head movement, then the wait for its first sector, then the
//! media (with the gaps of the skews), then the bus for the last sector. A read that starts in the buffer, or at
//! the very sector that the read-ahead is about to read, costs the overhead and the bus, or waits for the media
//! where that is later: sequential reads run at the speed of the media. A read beyond that repositions.
//!
//! After Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994, and Kotz, Toh
//! and Radhakrishnan, Dartmouth PCS-TR94-220, 1994. Differences: one stream's data is kept, not several; a
//! write ends the stream and empties the buffer, and is done when it is on the media (no immediate report);
//! the bus is never contended for. Reading ahead ends with its zone.
//!
//! Cost: a sequential read about a division or three, a reposition about ten; no allocation, no floating point.
//! Memory: 8 bytes a cylinder for the seek table.

use headstart_types::Nanos;

use super::geometry::{Place, Zone};
use super::seek::SeekTable;
use super::stream::Stream;
use crate::{Device, Request, Service, SECTOR_BYTES};

/// The fixed numbers of a drive.
#[derive(Debug, Clone)]
pub(crate) struct Parameters {
    pub zones: Vec<Zone>,
    pub seek: SeekTable,
    pub head_switch: Nanos,
    pub overhead: Nanos,
    pub bus_bytes_per_second: u64,
    /// Sectors of the buffer; 0 for none.
    pub buffer: u64,
    pub read_ahead: bool,
    pub nominal_service: Nanos,
}

impl Parameters {
    /// How far the head may read after a request that ends at `end`.
    #[inline]
    fn stop(&self, zone: &Zone, end: u64) -> u64 {
        let ahead = if self.read_ahead { self.buffer } else { 0 };
        (end + ahead).min(zone.end)
    }
}

/// A mechanical drive.
#[derive(Debug, Clone)]
pub struct Mechanical {
    parameters: Parameters,
    /// Sectors of the buffer and the shortest time in which they can be read.
    fill: (u64, Nanos),
    /// Bus time of one sector.
    bus_sector: Nanos,
    /// The stream that the head follows, if the last request was a read.
    stream: Option<Stream>,
    /// Where the head rests without a stream.
    rest: Place,
    head_sector: u64,
}

impl Mechanical {
    pub(crate) fn new(parameters: Parameters) -> Self {
        let fastest = |zone: &Zone| zone.rotation.span(parameters.buffer);
        let fill = Nanos(parameters.zones.iter().map(fastest).min().unwrap_or(0).saturating_sub(1));
        let fill = (parameters.buffer, fill);
        let bus_sector = bus_time(1, parameters.bus_bytes_per_second);
        let rest = Place { cylinder: 0, surface: 0 };
        Self { parameters, fill, bus_sector, stream: None, rest, head_sector: 0 }
    }

    /// Index of the zone that holds `sector`.
    #[inline]
    fn zone_of(&self, sector: u64) -> usize {
        let zones = &self.parameters.zones;
        if zones.len() == 1 {
            0
        } else {
            zones.partition_point(|zone| zone.end <= sector)
        }
    }

    /// Continues the stream, where the request starts in it: when its part within the zone is read.
    #[inline]
    fn follow(&mut self, now: Nanos, ready: Nanos, request: &Request) -> Option<Nanos> {
        let Parameters { zones, buffer, seek, head_switch, .. } = &self.parameters;
        let stream = self.stream.as_mut()?;
        let zone = &zones[stream.zone];
        if *buffer == 0 || !stream.holds(zone, request.sector, *buffer, now) {
            return None;
        }
        let end = request.end().min(zone.end);
        let stop = self.parameters.stop(zone, end);
        stream.extend(zone, stop, ready, |from, to| movement(seek, *head_switch, from, to));
        Some(stream.read_to(zone, end, self.fill))
    }

    /// Moves to `from..end` at `time`, zone by zone, and reads or writes it; leaves the stream there.
    fn reposition(&mut self, time: Nanos, head: Place, (mut from, end): (u64, u64), write: bool) -> Passage {
        let mut passage = Passage { first: None, seek: Nanos::ZERO, rotation: Nanos::ZERO, done: time };
        let mut head = head;
        while from < end {
            let index = self.zone_of(from);
            let zone = &self.parameters.zones[index];
            let piece_end = end.min(zone.end);
            let (path, place) = zone.locate(from);
            let seek = movement(&self.parameters.seek, self.parameters.head_switch, head, place);
            let tick = zone.rotation.next(passage.done + seek, path);
            if passage.first.is_none() {
                passage.seek = seek;
                passage.rotation = zone.rotation.time(tick) - (passage.done + seek);
                passage.first = Some(zone.rotation.time(zone.rotation.after(tick, 1)));
            }
            let mut stream = Stream::new(index, from, path, tick, self.parameters.stop(zone, piece_end));
            passage.done = stream.read_to(zone, piece_end, self.fill);
            head = zone.locate(piece_end - 1).1;
            self.stream = Some(stream);
            from = piece_end;
        }
        self.rest = head;
        if write {
            self.stream = None;
        }
        passage
    }

    /// Where the head is at `now`.
    fn head(&self, now: Nanos) -> Place {
        match &self.stream {
            Some(stream) => stream.head(&self.parameters.zones[stream.zone], now),
            None => self.rest,
        }
    }

    #[inline]
    fn bus_time(&self, sectors: u32) -> Nanos {
        bus_time(sectors, self.parameters.bus_bytes_per_second)
    }
}

/// What moving to a place and passing over a request took.
struct Passage {
    /// When the first sector had passed.
    first: Option<Nanos>,
    seek: Nanos,
    rotation: Nanos,
    done: Nanos,
}

/// Time to bring the head from one track to another: arm and head switch run at once.
#[inline]
fn movement(seek: &SeekTable, head_switch: Nanos, from: Place, to: Place) -> Nanos {
    let arm = seek.time(from.cylinder.abs_diff(to.cylinder));
    if from.surface == to.surface {
        arm
    } else {
        arm.max(head_switch)
    }
}

/// Time of `sectors` sectors on the bus, rounded up.
#[inline]
fn bus_time(sectors: u32, bytes_per_second: u64) -> Nanos {
    // At most 2^32 * 512e9, which needs 128 bits; below 2^24 sectors it fits 64.
    const PER_SECTOR: u64 = SECTOR_BYTES * 1_000_000_000;
    if sectors < 1 << 24 {
        Nanos((u64::from(sectors) * PER_SECTOR).div_ceil(bytes_per_second))
    } else {
        Nanos((u128::from(sectors) * u128::from(PER_SECTOR)).div_ceil(u128::from(bytes_per_second)) as u64)
    }
}

impl Device for Mechanical {
    fn serve(&mut self, now: Nanos, request: &Request) -> Service {
        let overhead = self.parameters.overhead;
        let ready = now + overhead;
        let bus = self.bus_time(request.sectors);
        self.head_sector = request.end();
        if !request.write {
            if let Some(mut done) = self.follow(now, ready, request) {
                let zone_end = self.stream.as_ref().map_or(0, |stream| self.parameters.zones[stream.zone].end);
                if request.end() > zone_end {
                    let from = done.max(ready);
                    done = self.reposition(from, self.head(from), (zone_end, request.end()), false).done;
                }
                let end = (ready + bus).max(done + self.bus_sector);
                let transfer = end - ready;
                let [seek, rotation, wait] = [Nanos::ZERO; 3];
                return Service { end, seek, rotation, transfer, overhead, wait, buffer_hit: true };
            }
        }
        let head = self.head(now);
        let passage = self.reposition(ready, head, (request.sector, request.end()), request.write);
        let (seek, rotation) = (passage.seek, passage.rotation);
        let end = if request.write {
            // The data crosses the bus while the arm moves.
            passage.done.max(ready + bus)
        } else {
            // Sectors cross the bus as they are read; the slower of media and bus sets the pace.
            (passage.done + self.bus_sector).max(passage.first.unwrap_or(ready) + bus)
        };
        // A write whose data takes longer over the bus than all else: the excess is transfer.
        let transfer = end - ready - seek - rotation;
        Service { end, seek, rotation, transfer, overhead, wait: Nanos::ZERO, buffer_hit: false }
    }

    fn capacity_sectors(&self) -> Option<u64> {
        self.parameters.zones.last().map(|zone| zone.end)
    }

    fn least_service(&self, sectors: u32) -> Nanos {
        self.parameters.overhead + self.bus_time(sectors)
    }

    fn nominal_service(&self) -> Nanos {
        self.parameters.nominal_service
    }

    fn head_sector(&self) -> u64 {
        self.head_sector
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }
}
