//! Arrays: by hand, and compared with explicit tables of every sector's place.

use std::collections::{BTreeMap, BTreeSet};

use headstart_device::{build_array, build_device, Device, Request, ARRAYS};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

use crate::common;
use crate::common::{every_model, Log, Spy};

fn uniform() -> Box<dyn Device> {
    build_device("uniform", "fetch_time = '2ms'".parse().unwrap()).unwrap()
}

fn hp97560() -> Box<dyn Device> {
    build_device("hp97560", Table::new()).unwrap()
}

/// An array of spies on `member`, and their log.
fn spied(kind: &str, count: u32, member: Box<dyn Device>, unit: u64, keys: &str) -> (Box<dyn Device>, Log) {
    let spy = Spy::new(member);
    let log = spy.log.clone();
    let mut array = build_array(kind, count, Box::new(spy), unit, keys.parse().unwrap()).unwrap();
    array.reseed(0);
    (array, log)
}

/// The requests to members since the last call: disk, start in ms, first sector, sector after the last, write.
fn given(log: &Log) -> Vec<(usize, u64, u64, u64, bool)> {
    let line = |(disk, begin, _, request): (usize, Nanos, Nanos, Request)| {
        (disk, begin.0 / 1_000_000, request.sector, request.end(), request.write)
    };
    let mut all: Vec<_> = log.lock().unwrap().drain(..).map(line).collect();
    all.sort_unstable();
    all
}

fn ms(time: Nanos) -> u64 {
    assert_eq!(time.0 % 1_000_000, 0);
    time.0 / 1_000_000
}

#[test]
fn raid0_by_hand() {
    // Two disks of 2 ms per request, units of 8 sectors: units 0 and 2 on disk 0, 1 and 3 on disk 1.
    let (mut array, log) = spied("raid0", 2, uniform(), 8, "");
    assert_eq!(array.concurrency(), 2);
    // Units 0 to 2 without the first 2 and the last 3 sectors: one piece per disk.
    assert_eq!(ms(array.serve(Nanos(0), &Request::read(2, 19, 0)).end), 2);
    assert_eq!(given(&log), [(0, 0, 2, 13, false), (1, 0, 0, 8, false)]);
    // Unit 3 at once: disk 1 is busy for 2 ms.
    assert_eq!(ms(array.positioning(Nanos(0), &Request::read(24, 1, 0))), 2);
    let service = array.serve(Nanos(0), &Request::read(24, 8, 0));
    assert_eq!((ms(service.end), ms(service.wait), ms(service.transfer)), (4, 2, 2));
    // At 3 ms units 4 and 5: disk 0 is free, disk 1 from 4 ms on.
    let service = array.serve(Nanos::from_millis(3), &Request::read(32, 16, 0));
    assert_eq!((ms(service.end), ms(service.wait)), (6, 1));
    assert_eq!(given(&log), [(0, 3, 16, 24, false), (1, 2, 8, 16, false), (1, 4, 16, 24, false)]);
}

#[test]
fn raid5_by_hand() {
    // Three disks. Row 0: data, data, parity; row 1: data (unit 3), parity, data (unit 2); row 2: parity, 4, 5.
    let (mut array, log) = spied("raid5", 3, uniform(), 8, "");
    assert_eq!(ms(array.serve(Nanos(0), &Request::read(0, 48, 0)).end), 4);
    // Disk 1 has units 1 and 4, with a unit of parity between them: two pieces. Disk 0 has 0 and 3, disk 2 has 2 and 5.
    let expected = [(0, 0, 0, 16, false), (1, 0, 0, 8, false), (1, 2, 16, 24, false), (2, 0, 8, 24, false)];
    assert_eq!(given(&log), expected);
    // A small write, sectors 2 to 5 of unit 3: data on disk 0, parity on disk 1, read and then written.
    let service = array.serve(Nanos::from_millis(10), &Request::write(26, 3, 0));
    assert_eq!((ms(service.end), ms(service.transfer), ms(service.wait)), (14, 4, 0));
    let expected = [(0, 10, 10, 13, false), (0, 12, 10, 13, true), (1, 10, 10, 13, false), (1, 12, 10, 13, true)];
    assert_eq!(given(&log), expected);
    // A whole row, units 4 and 5: nothing is read.
    assert_eq!(ms(array.serve(Nanos::from_millis(20), &Request::write(32, 16, 0)).end), 22);
    assert_eq!(given(&log), [(0, 20, 16, 24, true), (1, 20, 16, 24, true), (2, 20, 16, 24, true)]);
    // Another request while a small write reads: its disk is reserved until that has been written, at 34 ms.
    array.serve(Nanos::from_millis(30), &Request::write(0, 8, 0));
    let service = array.serve(Nanos::from_millis(31), &Request::read(24, 8, 0));
    assert_eq!((ms(service.end), ms(service.wait), ms(service.transfer)), (36, 3, 2));
}

#[test]
fn raid5_without_a_disk_by_hand() {
    let (mut array, log) = spied("raid5", 3, uniform(), 8, "failed = 0");
    // Unit 0 is lost: it follows from unit 1 and the parity of row 0. Unit 1 itself is read only once.
    assert_eq!(ms(array.serve(Nanos(0), &Request::read(2, 14, 0)).end), 2);
    assert_eq!(given(&log), [(1, 0, 0, 8, false), (2, 0, 2, 8, false)]);
    // A write to unit 0: the parity of row 0 is recomputed from unit 1.
    assert_eq!(ms(array.serve(Nanos::from_millis(10), &Request::write(2, 3, 0)).end), 14);
    assert_eq!(given(&log), [(1, 10, 2, 5, false), (2, 12, 2, 5, true)]);
    // A write to unit 4, whose parity is lost.
    assert_eq!(ms(array.serve(Nanos::from_millis(20), &Request::write(32, 8, 0)).end), 22);
    assert_eq!(given(&log), [(1, 20, 16, 24, true)]);
}

#[test]
fn a_mirror_by_hand() {
    let (mut array, log) = spied("mirror", 2, uniform(), 8, "");
    for (at, request, end, wait) in [
        (0, Request::read(0, 8, 0), 2, 0),   // disk 0, the lower of two equal ones
        (0, Request::read(0, 8, 0), 2, 0),   // disk 1
        (1, Request::read(90, 8, 0), 4, 1),  // both are busy until 2 ms: disk 0
        (3, Request::write(50, 8, 0), 6, 1), // disk 1 at once, disk 0 at 4 ms
        (5, Request::read(0, 8, 0), 7, 0),   // disk 1 is free
    ] {
        let service = array.serve(Nanos::from_millis(at), &request);
        assert_eq!((ms(service.end), ms(service.wait)), (end, wait), "{request:?}");
    }
    let expected = [
        (0, 0, 0, 8, false),
        (0, 2, 90, 98, false),
        (0, 4, 50, 58, true),
        (1, 0, 0, 8, false),
        (1, 3, 50, 58, true),
        (1, 5, 0, 8, false),
    ];
    assert_eq!(given(&log), expected);
}

#[test]
fn mirrored_arms_divide_the_disk() {
    let (mut array, log) = spied("mirror", 2, hp97560(), 8, "");
    let last = array.capacity_sectors().unwrap() - 100_000;
    let mut now = Nanos::ZERO;
    for index in 0..40 {
        let sector = if index % 2 == 0 { 1_000 } else { last } + index * 733 % 5_000;
        now = array.serve(now, &Request::read(sector, 8, 0)).end + Nanos::from_millis(50);
    }
    let mut disks: [BTreeSet<bool>; 2] = Default::default();
    // Both arms begin at the outer end: one is at the inner end after two requests.
    let lines = log.lock().unwrap();
    lines[2..].iter().for_each(|(disk, _, _, request)| _ = disks[*disk].insert(request.sector < 100_000));
    assert_eq!(disks[0].len() + disks[1].len(), 2, "each arm stays at its end: {disks:?}");
}

#[test]
fn arms_travel_together() {
    let mut array = build_array("raid0", 3, hp97560(), 16, Table::new()).unwrap();
    let mut alone = hp97560();
    // Unit 3001 is the second of row 1000: on disk 1, from sector 16,000.
    assert_eq!(array.travel(Nanos(5), 3001 * 16), alone.travel(Nanos(5), 16_000));
    assert_eq!(array.mechanics(), alone.mechanics());
}

#[test]
fn an_array_has_the_arm_of_a_disk_and_the_rate_of_those_with_data() {
    let alone = hp97560().drive_facts().unwrap();
    for (kind, disks, data) in [("raid0", 3, 3), ("raid5", 4, 3), ("mirror", 2, 1)] {
        let facts = build_array(kind, disks, hp97560(), 16, Table::new()).unwrap().drive_facts().unwrap();
        assert_eq!((facts.mean_seek, facts.half_turn), (alone.mean_seek, alone.half_turn), "{kind}");
        // The HP 97560 has one zone. Sector 1,000,000 of a disk lies on cylinder 1,000,000 / (19 * 72) = 730.
        let sector = 1_000_000 * data;
        assert_eq!(facts.cylinder(sector), 730, "{kind}");
        assert!((facts.rate_at(sector) / alone.rate_at(1_000_000) - data as f64).abs() < 1e-12, "{kind}");
    }
}

/// By sector of the volume: disk and sector there; and by row the disk of the parity. Rows have `unit` sectors per
/// disk.
fn table(kind: &str, disks: usize, unit: u64, rows: u64) -> (Vec<(usize, u64)>, Vec<Option<usize>>) {
    let (mut places, mut parities) = (Vec::new(), Vec::new());
    let mut parity = disks - 1;
    for row in 0..rows {
        let mut disk = if kind == "raid5" { (parity + 1) % disks } else { 0 };
        for _ in 0..if kind == "raid5" { disks - 1 } else { disks } {
            (row * unit..(row + 1) * unit).for_each(|sector| places.push((disk, sector)));
            disk = (disk + 1) % disks;
        }
        parities.push((kind == "raid5").then_some(parity));
        parity = if parity == 0 { disks - 1 } else { parity - 1 };
    }
    (places, parities)
}

/// Sectors that were read or written, by disk.
fn sectors(log: &[(usize, Nanos, Nanos, Request)], write: bool) -> BTreeSet<(usize, u64)> {
    let of_kind = log.iter().filter(|line| line.3.write == write);
    of_kind.flat_map(|line| (line.3.sector..line.3.end()).map(|sector| (line.0, sector))).collect()
}

fn covered(places: &[(usize, u64)], request: &Request) -> BTreeSet<(usize, u64)> {
    places[request.sector as usize..request.end() as usize].iter().copied().collect()
}

/// Runs of a set of sectors, by disk and position.
fn runs(sectors: &BTreeSet<(usize, u64)>) -> Vec<(usize, u64, u64)> {
    let mut runs: Vec<(usize, u64, u64)> = Vec::new();
    for &(disk, sector) in sectors {
        match runs.last_mut() {
            Some(run) if run.0 == disk && run.2 == sector => run.2 += 1,
            _ => runs.push((disk, sector, sector + 1)),
        }
    }
    runs
}

/// Small disks, so that whole volumes can be written: the sectors, and a device with that many.
fn small_disk(sectors: u64) -> Box<dyn Device> {
    build_device("sata-ssd", format!("capacity = '{}B'\nqueue_depth = 1", sectors * 512).parse().unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Each sector of a volume has one distinct place, never that of the parity, and the capacity is that of the whole
    /// rows.
    #[test]
    fn every_sector_has_one_place(disks in 1u32..8, unit in 1u64..9, capacity in 1u64..90, raid5 in any::<bool>()) {
        let kind = if raid5 { "raid5" } else { "raid0" };
        prop_assume!(disks >= 3 || !raid5);
        let (places, parities) = table(kind, disks as usize, unit, capacity / unit);
        let (mut array, log) = spied(kind, disks, small_disk(capacity), unit, "");
        prop_assert_eq!(array.capacity_sectors(), Some(places.len() as u64));
        let mut seen = BTreeSet::new();
        for (sector, &place) in places.iter().enumerate() {
            array.serve(Nanos(0), &Request::read(sector as u64, 1, 0));
            let (disk, _, _, request) = log.lock().unwrap().pop().unwrap();
            prop_assert_eq!((disk, request.sector, request.sectors), (place.0, place.1, 1));
            prop_assert!(seen.insert(place), "{:?} twice", place);
            prop_assert!(place.1 < capacity && parities[(place.1 / unit) as usize] != Some(disk));
        }
        // Any d consecutive units lie on d disks.
        for window in places.chunks(unit as usize).collect::<Vec<_>>().windows(disks as usize) {
            prop_assert_eq!(window.iter().map(|unit| unit[0].0).collect::<BTreeSet<_>>().len(), disks as usize);
        }
    }

    /// A read reads each disk's sectors of the request in as few pieces as there are runs, and ends when the slowest
    /// disk, serving them in order of arrival, has the last.
    #[test]
    fn reads_fetch_what_they_must(
        disks in 3u32..7, unit in 1u64..20, raid5 in any::<bool>(),
        load in prop::collection::vec((0u64..40_000_000, any::<u64>(), 1u64..150), 1..30),
    ) {
        let kind = if raid5 { "raid5" } else { "raid0" };
        let (places, _) = table(kind, disks as usize, unit, 200);
        let (mut array, log) = spied(kind, disks, hp97560(), unit, "");
        let mut alone: Vec<(Box<dyn Device>, Nanos)> = vec![(hp97560(), Nanos::ZERO); disks as usize];
        let mut now = Nanos::ZERO;
        for (gap, place, sectors) in load {
            now += Nanos(gap);
            let sectors = sectors.min(places.len() as u64);
            let request = Request::read(place % (places.len() as u64 - sectors + 1), sectors as u32, 0);
            let service = array.serve(now, &request);
            let expected = runs(&covered(&places, &request));
            let mut end = Nanos::ZERO;
            for &(disk, from, to) in &expected {
                let (device, free) = &mut alone[disk];
                *free = device.serve(now.max(*free), &Request::read(from, (to - from) as u32, 0)).end;
                end = end.max(*free);
            }
            let mut pieces: Vec<_> = log.lock().unwrap().drain(..).map(|l| (l.0, l.3.sector, l.3.end())).collect();
            pieces.sort_unstable();
            prop_assert_eq!(pieces, expected);
            prop_assert_eq!(service.end, end);
        }
    }

    /// RAID-5, whole or with any disk failed: reads return all requested data, writes write everything that has a
    /// place, and what they read before suffices to compute the parity that they write.
    #[test]
    fn parity_can_be_worked_out(
        disks in 3u32..7, unit in 1u64..8, failed in 0usize..8,
        load in prop::collection::vec((any::<u64>(), 1u64..80, any::<bool>()), 1..20),
    ) {
        let failed = (failed < disks as usize).then_some(failed);
        let keys = failed.map_or(String::new(), |disk| format!("failed = {disk}"));
        let (places, parities) = table("raid5", disks as usize, unit, 40);
        let (mut array, log) = spied("raid5", disks, uniform(), unit, &keys);
        let mut now = Nanos::ZERO;
        for (place, count, write) in load {
            let count = count.min(places.len() as u64);
            let first = place % (places.len() as u64 - count + 1);
            let request = Request { write, ..Request::read(first, count as u32, 0) };
            let end = array.serve(now, &request).end;
            let lines = std::mem::take(&mut *log.lock().unwrap());
            prop_assert!(lines.iter().all(|line| Some(line.0) != failed), "the failed disk is left alone");
            let pieces: u64 = lines.iter().map(|line| u64::from(line.3.sectors)).sum();
            let (read, written) = (sectors(&lines, false), sectors(&lines, true));
            prop_assert_eq!(pieces as usize, read.len() + written.len(), "nothing is read or written twice");
            let asked = covered(&places, &request);
            let all = |row_sector: u64| (0..disks as usize).map(move |disk| (disk, row_sector));
            if !write {
                prop_assert!(written.is_empty());
                for place in &asked {
                    let rebuilt = all(place.1).filter(|other| other.0 != place.0).all(|other| read.contains(&other));
                    prop_assert!(read.contains(place) || (Some(place.0) == failed && rebuilt));
                }
                now = end;
                continue;
            }
            let last_read = lines.iter().filter(|line| !line.3.write).map(|line| line.2).max().unwrap_or(now);
            prop_assert!(lines.iter().all(|line| !line.3.write || line.1 >= last_read), "first all reads");
            let is_parity = |place: &(usize, u64)| parities[(place.1 / unit) as usize] == Some(place.0);
            let data: BTreeSet<_> = written.iter().copied().filter(|place| !is_parity(place)).collect();
            let alive: BTreeSet<_> = asked.iter().copied().filter(|place| Some(place.0) != failed).collect();
            prop_assert_eq!(data, alive, "what is asked for is written, and no other data");
            let mut rows: BTreeMap<u64, usize> = BTreeMap::new();
            asked.iter().for_each(|place| _ = rows.insert(place.1, parities[(place.1 / unit) as usize].unwrap()));
            for (&sector, &parity) in rows.iter().filter(|row| Some(*row.1) != failed) {
                prop_assert!(written.contains(&(parity, sector)), "parity of sector {}", sector);
            }
            for &(parity, sector) in written.iter().filter(|place| is_parity(place)) {
                let data = || all(sector).filter(|place| place.0 != parity);
                let anew = data().all(|place| asked.contains(&place) || read.contains(&place));
                let mut changed = data().filter(|place| asked.contains(place));
                let from_old = read.contains(&(parity, sector)) && changed.all(|place| read.contains(&place));
                prop_assert!(anew || from_old, "sector {} of disk {}: {:?}", sector, parity, lines);
            }
            now = end;
        }
    }

    /// A single disk behind a controller behaves as without it.
    #[test]
    fn one_disk_is_an_array_of_one(load in common::load(80), unit in 1u64..300) {
        for (name, device) in every_model() {
            for kind in ["raid0", "mirror"] {
                let mut array = build_array(kind, 1, device.clone(), unit, Table::new()).unwrap();
                prop_assert_eq!(array.concurrency(), device.concurrency());
                let within = array.capacity_sectors();
                let mut single = device.clone();
                for (now, request, service) in common::drive(&mut *array, &load) {
                    prop_assert!(within.is_none_or(|capacity| request.end() <= capacity));
                    prop_assert_eq!(single.serve(now, &request), service, "{} of {}", kind, name);
                    prop_assert_eq!(single.least_service(request.sectors), array.least_service(request.sectors));
                }
                prop_assert_eq!(array.head_sector(), single.head_sector());
            }
        }
    }

    /// A mirror reads from a disk such that no other begins earlier or, beginning at the same time, is nearer.
    #[test]
    fn mirrors_choose_the_nearest(
        load in prop::collection::vec((0u64..30_000_000, 0u64..2_600_000, any::<bool>()), 1..40), count in 1u32..5,
    ) {
        let (mut array, log) = spied("mirror", count, hp97560(), 1, "");
        let mut alone: Vec<(Box<dyn Device>, Nanos)> = vec![(hp97560(), Nanos::ZERO); count as usize];
        let mut now = Nanos::ZERO;
        for (gap, sector, write) in load {
            now += Nanos(gap);
            let request = Request { write, ..Request::read(sector, 16, 0) };
            let near = alone.iter().map(|(device, free)| {
                let start = now.max(*free);
                (start, device.positioning(start, &request))
            });
            let best = near.enumerate().min_by_key(|(index, near)| (*near, *index)).unwrap().0;
            let service = array.serve(now, &request);
            let disks: BTreeSet<_> = log.lock().unwrap().drain(..).map(|line| line.0).collect();
            let expected: BTreeSet<_> = if write { (0..count as usize).collect() } else { [best].into() };
            prop_assert_eq!(&disks, &expected);
            let mut end = Nanos::ZERO;
            for disk in disks {
                let (device, free) = &mut alone[disk];
                *free = device.serve(now.max(*free), &request).end;
                end = end.max(*free);
            }
            prop_assert_eq!(service.end, end);
        }
    }
}

#[test]
fn rows_say_what_they_are() {
    let names: BTreeSet<_> = ARRAYS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), ARRAYS.len());
    assert!(ARRAYS.iter().all(|row| !row.summary.is_empty() && !row.source.is_empty()));
}

#[test]
fn mistakes_name_their_key() {
    let fail = |kind: &str, count: u32, unit: u64, keys: &str| {
        build_array(kind, count, uniform(), unit, keys.parse().unwrap()).err().unwrap().to_string()
    };
    let unknown =
        "array: unknown array \"raid6\" (did you mean \"raid0\"?); allowed: stripe, concat, mirror, raid0, raid5";
    assert_eq!(fail("raid6", 3, 8, ""), unknown);
    let independent = "array: \"stripe\" has independent disks, not one device; allowed: mirror, raid0, raid5";
    assert_eq!(fail("stripe", 3, 8, ""), independent);
    assert_eq!(fail("raid0", 0, 8, ""), "count: no disk; allowed: a whole number from 1");
    assert_eq!(fail("mirror", 0, 8, ""), "count: no disk; allowed: a whole number from 1");
    assert_eq!(fail("raid5", 2, 8, ""), "count: 2 disks for raid5; allowed: a whole number from 3");
    assert_eq!(fail("raid0", 2, 0, ""), "stripe_unit: must be above zero; allowed: a size of at least a sector");
    assert_eq!(fail("raid5", 3, 8, "failed = 3"), "failed: 3 is out of range; allowed: a whole number from 0 to 2");
    assert_eq!(fail("raid0", 3, 8, "failed = 1"), "failed: unknown key; allowed: queue_depth");
    assert_eq!(
        fail("mirror", 3, 8, "queue_depth = 0"),
        "queue_depth: 0 is out of range; allowed: a whole number from 1 to 65536"
    );
}
