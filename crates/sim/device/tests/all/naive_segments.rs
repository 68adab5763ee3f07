//! Zones with spares, slips and serpentines, and the segmented buffer, compared with second implementations that walk
//! sector by sector and instant by instant; and their invariants. The drives are small, so that borders occur often.

use headstart_device::{Device, Mechanical, Request, Service};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

const MINUTE: u128 = 60_000_000_000;

#[derive(Debug, Clone)]
struct Zone {
    first_cylinder: u64,
    cylinders: u64,
    track: u64,
    skews: [u64; 2],
    offset: u64,
    reserved: u64,
    spares: u64,
    slips: Vec<u64>,
}

#[derive(Debug, Clone)]
struct Shape {
    rpm: u64,
    surfaces: u64,
    mapping: usize,
    sparing: usize,
    range: u64,
    zones: Vec<Zone>,
    head_switch: u64,
    settle: u64,
    seek: u64,
    bus: u64,
    overheads: [u64; 8],
    buffer: String,
}

const MAPPINGS: [&str; 3] = ["forward", "serpentine", "serpentine-cylinder"];
const SPARINGS: [&str; 8] =
    ["none", "tracks", "track", "cylinder", "cylinder-slip-to-end", "range", "zone", "zone-slip-to-end"];

impl Shape {
    fn profile(&self) -> Table {
        let mut text = format!(
            "name = 'random'\nrpm = {}\nsurfaces = {}\nhead_switch = '{}ns'\nwrite_settle = '{}ns'
            nominal_service = '10ms'\nmapping = '{}'\nsparing = '{}'\n",
            self.rpm, self.surfaces, self.head_switch, self.settle, MAPPINGS[self.mapping], SPARINGS[self.sparing]
        );
        if SPARINGS[self.sparing] == "range" {
            text += &format!("sparing_range = {}\n", self.range);
        }
        for zone in &self.zones {
            text += &format!(
                "[[zones]]\nfirst_cylinder = {}\ncylinders = {}\nsectors_per_track = {}\ntrack_skew = {}
                cylinder_skew = {}\noffset = {}\nreserved = {}\nspares = {}\nslips = {:?}\n",
                zone.first_cylinder,
                zone.cylinders,
                zone.track,
                zone.skews[0],
                zone.skews[1],
                zone.offset,
                zone.reserved,
                zone.spares,
                zone.slips
            );
        }
        text += &format!(
            "[seek]\nform = 'sum'\nconstant = '200us'\nlinear = '{}ns'\nroot = '0s'\n[bus]\nsector_time = '{}ns'\n",
            self.seek, self.bus
        );
        let names = ["read_hit", "read_miss", "write_hit", "write_miss"];
        text += "[controller]\n";
        for (index, overhead) in self.overheads.iter().enumerate() {
            let after = ["read", "write"][index % 2];
            text += &format!("{}_after_{after} = '{overhead}ns'\n", names[index / 2]);
        }
        text += &format!("[buffer]\n{}", self.buffer);
        text.parse().unwrap()
    }

    /// Every data sector in order: zone, physical sector within the zone.
    fn sectors(&self) -> Vec<(usize, u64)> {
        let each = |(index, zone): (usize, &Zone)| {
            let places = self.zone_sectors(zone);
            places.into_iter().map(move |physical| (index, physical)).collect::<Vec<_>>()
        };
        self.zones.iter().enumerate().flat_map(each).collect()
    }

    /// The physical sectors of a zone that hold data, laid out one after another.
    fn zone_sectors(&self, zone: &Zone) -> Vec<u64> {
        let cylinder = zone.track * self.surfaces;
        let all = cylinder * zone.cylinders;
        let scheme = SPARINGS[self.sparing];
        let region = match scheme {
            "track" => zone.track,
            "cylinder" | "cylinder-slip-to-end" => cylinder,
            "range" => cylinder * self.range,
            _ => all,
        };
        let unit = if scheme == "tracks" { zone.track } else { 1 };
        let to_end = matches!(scheme, "none" | "cylinder-slip-to-end" | "zone-slip-to-end");
        let slipped = |physical: u64| zone.slips.contains(&(physical / unit));
        let mut held = Vec::new();
        let mut start = 0;
        while start < all {
            let end = (start + region).min(all);
            // A last range that is not whole has no spares.
            let data = end - start - if end - start == region { zone.spares * unit } else { 0 };
            if to_end {
                held.extend((start..start + data).filter(|physical| !slipped(*physical)));
            } else {
                held.extend((start..end).filter(|physical| !slipped(*physical)).take(data as usize));
            }
            start = end;
        }
        held.split_off(zone.reserved as usize)
    }

    /// (cylinder, surface) and angle of a physical sector, in sectors.
    fn place(&self, zone: &Zone, physical: u64) -> ((u64, u64), u64) {
        let track = physical / zone.track;
        let (cylinder, surface) = (track / self.surfaces, track % self.surfaces);
        let mut angle = zone.offset + physical;
        for switch in 1..=track {
            angle += zone.skews[usize::from(switch % self.surfaces == 0)];
        }
        if matches!(SPARINGS[self.sparing], "track" | "cylinder" | "cylinder-slip-to-end") {
            let unit = if SPARINGS[self.sparing] == "track" { zone.track } else { zone.track * self.surfaces };
            angle += zone.slips.iter().filter(|slip| **slip < physical / unit * unit).count() as u64;
        }
        let odd = match self.mapping {
            0 => false,
            1 => cylinder % 2 == 1,
            _ => (zone.first_cylinder + cylinder) % 2 == 1,
        };
        let surface = if odd { self.surfaces - 1 - surface } else { surface };
        ((zone.first_cylinder + cylinder, surface), angle % zone.track)
    }

    fn movement(&self, from: (u64, u64), to: (u64, u64), write: bool) -> u64 {
        let distance = from.0.abs_diff(to.0);
        let arm = if distance == 0 { 0 } else { 200_000 + self.seek * distance };
        let time = if from.1 == to.1 { arm } else { arm.max(self.head_switch) };
        if write && time > 0 {
            time + self.settle
        } else {
            time
        }
    }

    /// First border at or after `time` where the sector of `angle` begins: its number and instant.
    fn next(&self, zone: &Zone, time: u64, angle: u64) -> u128 {
        let per_minute = u128::from(self.rpm * zone.track);
        let mut border = u128::from(time) * per_minute / MINUTE;
        while border_time(border, per_minute) < time || border % u128::from(zone.track) != u128::from(angle) {
            border += 1;
        }
        border
    }
}

fn border_time(border: u128, per_minute: u128) -> u64 {
    (border * MINUTE).div_ceil(per_minute) as u64
}

/// A drive practically without a buffer, sector by sector: each sector is sought, waited for and passed.
struct Walker {
    shape: Shape,
    sectors: Vec<(usize, u64)>,
    head: (u64, u64),
    wrote: bool,
}

impl Walker {
    /// (end, seek, rotation) of a request that goes to the media.
    fn serve(&mut self, now: u64, request: &Request) -> (u64, u64, u64) {
        let after = usize::from(self.wrote);
        let overhead = self.shape.overheads[if request.write { 6 } else { 2 } + after];
        let ready = now + overhead;
        let bus = self.shape.bus * u64::from(request.sectors);
        let mut time = ready;
        let mut parts = None;
        let mut crossed = ready + bus;
        for sector in request.sector..request.end() {
            let (index, physical) = self.sectors[sector as usize];
            let zone = &self.shape.zones[index];
            let (place, angle) = self.shape.place(zone, physical);
            let movement = self.shape.movement(self.head, place, request.write);
            let mut from = time + movement;
            if parts.is_none() && request.write {
                // Neither the first nor the last sector may pass before it has crossed the bus.
                let per_minute = u128::from(self.shape.rpm * zone.track);
                let media = border_time(u128::from(request.sectors) - 1, per_minute);
                from = from.max(ready + self.shape.bus).max((ready + bus).saturating_sub(media));
            }
            let border = self.shape.next(zone, from, angle);
            let per_minute = u128::from(self.shape.rpm * zone.track);
            let begun = border_time(border, per_minute);
            time = border_time(border + 1, per_minute);
            if parts.is_none() {
                parts = Some((movement, begun - ready - movement));
            }
            self.head = place;
            if !request.write {
                // The bus moves each sector once it has been read.
                crossed = crossed.max(time + self.shape.bus * (request.end() - sector));
            }
        }
        self.wrote = request.write;
        let (seek, rotation) = parts.unwrap();
        (if request.write { time.max(crossed) } else { crossed }, seek, rotation)
    }
}

fn zone() -> impl Strategy<Value = Zone> {
    let numbers = (0u64..2, 1u64..5, 24u64..40, 0u64..8, 0u64..8, 0u64..8);
    (numbers, 0u64..3, 0u64..3, prop::collection::btree_set(0u64..150, 0..5)).prop_map(
        |((gap, cylinders, track, track_skew, cylinder_skew, offset), reserved, spares, slips)| Zone {
            first_cylinder: gap,
            cylinders,
            track,
            skews: [track_skew, cylinder_skew],
            offset,
            reserved,
            spares,
            slips: slips.into_iter().collect(),
        },
    )
}

/// Corrects what no profile can be: cylinders in order, slips within the zone, never more than its spares.
fn mended(mut shape: Shape) -> Shape {
    let mut next = 0;
    let scheme = SPARINGS[shape.sparing];
    for zone in &mut shape.zones {
        zone.first_cylinder += next;
        next = zone.first_cylinder + zone.cylinders;
        let all = zone.track * zone.cylinders * shape.surfaces;
        let (region, unit) = match scheme {
            "track" => (zone.track, 1),
            "cylinder" | "cylinder-slip-to-end" => (zone.track * shape.surfaces, 1),
            "range" => (zone.track * shape.surfaces * shape.range, 1),
            "tracks" => (all, zone.track),
            _ => (all, 1),
        };
        let free = matches!(scheme, "none" | "cylinder-slip-to-end" | "zone-slip-to-end");
        zone.slips.retain(|slip| slip * unit < all);
        if scheme == "none" {
            zone.spares = 0;
        } else {
            zone.spares = zone.spares.min(region / unit - 1);
            if scheme != "tracks" {
                zone.spares = zone.spares.min(zone.track - 1);
            }
        }
        let mut kept: Vec<u64> = Vec::new();
        for slip in &zone.slips {
            let region_of = |slip: u64| slip * unit / region;
            let beside = kept.iter().filter(|other| region_of(**other) == region_of(*slip)).count() as u64;
            let whole = (region_of(*slip) + 1) * region <= all;
            if free || (whole && beside < zone.spares) {
                kept.push(*slip);
            }
        }
        zone.slips = kept;
    }
    // Skews cover the switches, as on real drives; naive_drive.rs covers other skews.
    let cover = |time: u64, track: u64| (u128::from(time * shape.rpm * track)).div_ceil(MINUTE) as u64 + 1;
    let arm = 200_000 + shape.seek;
    for zone in &mut shape.zones {
        let needed = [shape.head_switch, arm.max(shape.head_switch)].map(|time| cover(time + shape.settle, zone.track));
        for (skew, needed) in zone.skews.iter_mut().zip(needed) {
            *skew = (*skew).max(needed).min(zone.track - 1);
        }
    }
    for index in 0..shape.zones.len() {
        let bare = Zone { reserved: 0, ..shape.zones[index].clone() };
        let held = shape.zone_sectors(&bare).len() as u64;
        let zone = &mut shape.zones[index];
        zone.reserved = zone.reserved.min(held.saturating_sub(1));
    }
    shape
}

fn shapes(buffer: impl Strategy<Value = String>) -> impl Strategy<Value = Shape> {
    let numbers = (1_000u64..12_000, 1u64..4, 0usize..3, 0usize..8, 1u64..3);
    let overheads = prop::array::uniform8(0u64..900_000);
    let times = (0u64..250_000, 0u64..100_000, 0u64..50_000, 0u64..200_000, overheads);
    (numbers, prop::collection::vec(zone(), 1..4), times, buffer).prop_map(
        |((rpm, surfaces, mapping, sparing, range), zones, (switch, settle, seek, bus, overheads), buffer)| {
            let head_switch = switch;
            mended(Shape {
                rpm,
                surfaces,
                mapping,
                sparing,
                range,
                zones,
                head_switch,
                settle,
                seek,
                bus,
                overheads,
                buffer,
            })
        },
    )
}

fn bare() -> impl Strategy<Value = String> {
    Just(
        "segments = 1\nsegment_sectors = 4\nread_ahead = 'none'\nwrite_reporting = 'media'\ncaching = false".to_owned(),
    )
}

/// A step: a pause, a place, a length, an operation.
type Step = (u64, u64, u64, u8);

fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0u64..40_000_000, 0u64..1 << 40, 1u64..60, 0u8..=255), 1..count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every sector of every layout, through requests that go to the media.
    #[test]
    fn every_layout_against_a_walk(shape in shapes(bare()), steps in steps(30)) {
        let sectors = shape.sectors();
        let device = Mechanical::from_table(shape.profile()).unwrap();
        prop_assert_eq!(device.capacity_sectors().unwrap(), sectors.len() as u64);
        let mut device: Box<dyn Device> = Box::new(device);
        let mut walker = Walker { shape, sectors, head: (0, 0), wrote: false };
        let (mut now, mut next) = (0, 0);
        for (pause, place, length, kind) in steps {
            let capacity = walker.sectors.len() as u64;
            let length = length.min(capacity);
            let sector = if kind % 3 == 0 { next } else { place } % (capacity - length + 1);
            let request = Request { write: kind >= 128, ..Request::read(sector, length as u32, 0) };
            now += pause;
            let positioning = device.positioning(Nanos(now), &request);
            let service = device.serve(Nanos(now), &request);
            let (end, seek, rotation) = walker.serve(now, &request);
            prop_assert_eq!((service.end.0, service.seek.0, service.rotation.0), (end, seek, rotation), "{:?}", request);
            prop_assert_eq!(positioning, service.wait + service.seek + service.rotation);
            (now, next) = (end, request.end());
        }
    }
}

/// All settings of a segmented buffer.
fn segmented() -> impl Strategy<Value = String> {
    let counts = (1u64..5, 4u64..90, 1u64..4, 0u64..3, 0u64..40);
    let choices = (0usize..5, 0usize..3, prop::array::uniform13(any::<bool>()), 0u32..3);
    (counts, choices).prop_map(|((segments, size, writes, minimum, maximum), (ahead, reporting, flags, mark))| {
        let ahead = ["none", "track", "cylinder", "segment", "next-track"][ahead];
        let reporting = ["media", "append", "buffer"][reporting];
        let mut text = format!(
            "segments = {segments}\nsegment_sectors = {size}\nwrite_segments = {}\nread_ahead = '{ahead}'
            write_reporting = '{reporting}'\nread_ahead_minimum = {}\nread_watermark = {}\n",
            writes.min(segments),
            minimum.min(size),
            f64::from(mark) / 2.0
        );
        if maximum > 0 {
            text += &format!("read_ahead_maximum = {}\n", maximum.min(size));
        }
        let names = [
            "keep_requested",
            "drop_requested",
            "read_ahead_on_hit",
            "read_before",
            "zero_latency_read",
            "zero_latency_write",
            "combine_writes",
            "hit_on_written",
            "hit_under_way",
            "hit_ahead",
            "stop_within_sector",
            "read_during_overhead",
            "read_ahead_on_sequence",
        ];
        for (name, flag) in names.iter().zip(flags) {
            text += &format!("{name} = {flag}\n");
        }
        text + &format!("write_segment_apart = {}\n", segments > 1 && flags[0] && flags[1])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any buffer: time advances, the parts sum, nothing is faster than the bound, positioning predicts the
    /// service, a copy behaves the same, what was just read or written is a hit, and what was never read is not.
    #[test]
    fn whatever_the_buffer_does(shape in shapes(segmented()), steps in steps(60)) {
        let mut device: Box<dyn Device> = Box::new(Mechanical::from_table(shape.profile()).unwrap());
        let capacity = device.capacity_sectors().unwrap();
        let turn = 60_000_000_000 / shape.rpm + 1;
        let mut touched = vec![false; capacity as usize];
        let (mut now, mut next) = (Nanos::ZERO, 0);
        for (pause, place, length, kind) in steps {
            let length = length.min(capacity);
            let sector = if kind % 3 == 0 { next } else { place } % (capacity - length + 1);
            let request = Request { write: kind >= 160, ..Request::read(sector, length as u32, 0) };
            now += Nanos(if kind % 2 == 0 { pause } else { pause / 100 });
            if kind % 16 == 5 {
                let there = device.travel(now, sector);
                prop_assert!(there >= now);
                now = there;
            }
            let positioning = device.positioning(now, &request);
            let mut twin = device.clone_box();
            let service = device.serve(now, &request);
            prop_assert_eq!(twin.serve(now, &request), service);
            let Service { end, seek, rotation, transfer, overhead, wait, .. } = service;
            prop_assert_eq!(now + wait + seek + rotation + transfer + overhead, end, "{:?} {:?}", request, service);
            prop_assert!(end >= now + device.least_service(length as u32));
            prop_assert_eq!(positioning, wait + seek + rotation, "{:?} {:?}", request, service);
            // A hit ahead of the stream waits for the sectors before it, possibly several tracks, if the arm would not
            // be faster.
            prop_assert!(rotation.0 <= turn || request.write || service.buffer_hit, "{:?}", service);
            // A hit on a sector that no request or read-ahead can have read would be wrong: the head never reads
            // further than a segment (or two tracks) past a request, nor before its track.
            if service.buffer_hit && !request.write {
                prop_assert!(touched[sector as usize], "{:?}", request);
            }
            let reach = 90 + 2 * 40;
            let from = sector.saturating_sub(40) as usize;
            let to = (request.end() + reach).min(capacity) as usize;
            touched[from..to].fill(true);
            (now, next) = (end, request.end());
        }
    }

    /// Reading during the overhead equals receiving each read that much later, if a hit costs the same as a miss and no
    /// segment but one could be hit while another is read.
    #[test]
    fn reading_during_the_overhead_is_to_get_it_later(shape in shapes(segmented()), steps in steps(60)) {
        let dropped = ["segments", "write_segments", "write_segment_apart", "read_during_overhead"];
        let kept = |line: &&str| dropped.iter().all(|key| !line.trim().starts_with(&format!("{key} =")));
        let buffer = shape.buffer.lines().filter(kept).fold("segments = 1\n".to_owned(), |all, line| all + line + "\n");
        let drive = |overheads, during| {
            let buffer = format!("{buffer}read_during_overhead = {during}\n");
            Mechanical::from_table(Shape { overheads, buffer, ..shape.clone() }.profile()).unwrap()
        };
        let [of_read, _, after_write, _, writes @ ..] = shape.overheads;
        let [first, second, third, fourth] = writes;
        let mut device = drive([of_read, after_write, of_read, after_write, first, second, third, fourth], true);
        let mut later = drive([0, 0, 0, 0, first, second, third, fourth], false);
        let capacity = device.capacity_sectors().unwrap();
        let (mut now, mut next, mut after) = (Nanos::ZERO, 0, of_read);
        for (pause, place, length, kind) in steps {
            let length = length.min(capacity);
            let sector = if kind % 3 == 0 { next } else { place } % (capacity - length + 1);
            let request = Request { write: kind >= 200, ..Request::read(sector, length as u32, 0) };
            now += Nanos(if kind % 2 == 0 { pause } else { pause / 100 });
            let overhead = Nanos(if request.write { 0 } else { after });
            let service = device.serve(now, &request);
            let shifted = later.serve(now + overhead, &request);
            prop_assert_eq!(service, Service { overhead: shifted.overhead + overhead, ..shifted }, "{:?}", request);
            (now, next, after) = (service.end, request.end(), if request.write { after_write } else { of_read });
        }
    }

    /// A read that was just served is served again from the buffer, if a segment holds all that is read ahead.
    #[test]
    fn what_was_read_is_there(
        shape in shapes(segmented()), place in 0u64..1 << 40, length in 1u64..4, pause in 0u64..40_000_000,
    ) {
        let roomy = |line: &str| if line.starts_with("segment_sectors") { "segment_sectors = 200\n" } else { line }.to_owned();
        let buffer: String = shape.buffer.split_inclusive('\n').map(roomy).collect();
        let buffer = buffer.replace("drop_requested = true", "drop_requested = false");
        let shape = Shape { buffer, ..shape };
        let mut device = Mechanical::from_table(shape.profile()).unwrap();
        let capacity = device.capacity_sectors().unwrap();
        let sector = place % (capacity - length + 1);
        let request = Request::read(sector, length as u32, 0);
        let first = device.serve(Nanos(pause), &request);
        prop_assert!(!first.buffer_hit);
        let again = device.serve(first.end, &request);
        prop_assert!(again.buffer_hit, "{:?}", again);
        // Overhead and bus, nothing else.
        let expected = shape.overheads[0] + shape.bus * length;
        prop_assert_eq!((again.end - first.end).0, expected);
    }
}
