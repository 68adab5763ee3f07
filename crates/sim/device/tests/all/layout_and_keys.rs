//! Layouts place every block once; errors in scenarios and profiles name their file and key.

use std::collections::BTreeSet;

use headstart_device::{
    build_device, build_layout, build_scheduler, DeviceError, Explicit, Layout, Stripe, ARRAYS, MODELS, SCHEDULERS,
};
use headstart_types::{Bytes, Disk};
use proptest::prelude::*;
use toml::Table;

const BLOCK: Bytes = Bytes(8192);

#[test]
fn stripes_by_hand() {
    // One block a unit on 3 disks, 16 sectors a block.
    let stripe = Stripe::try_new(3, BLOCK, BLOCK).unwrap();
    let places: Vec<_> = (0..7).map(|block| stripe.place(block)).map(|(disk, sector)| (disk.0, sector / 16)).collect();
    assert_eq!(places, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2)]);
    // Two blocks a unit on 2 disks.
    let stripe = Stripe::try_new(2, Bytes(16384), BLOCK).unwrap();
    let places: Vec<_> = (0..7).map(|block| stripe.place(block)).map(|(disk, sector)| (disk.0, sector / 16)).collect();
    assert_eq!(places, [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2)]);
}

#[test]
fn concatenation_by_hand() {
    // 3 disks of 50 sectors: 3 blocks of 16 sectors on each, 2 sectors left over.
    let layout = build_layout("concat", 3, BLOCK, BLOCK, Some(50)).unwrap();
    let places: Vec<_> = (0..9).map(|block| layout.place(block).unwrap()).collect();
    let places: Vec<_> = places.into_iter().map(|(disk, sector)| (disk.0, sector / 16)).collect();
    assert_eq!(places, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]);
    assert!(layout.check_capacity(8, Some(50)).is_ok());
    let error = layout.check_capacity(9, Some(50)).unwrap_err();
    assert_eq!((error.block, error.disk, error.sector), (9, 2, 48));
    for (disks, block, capacity, key, problem) in [
        (2, 8192, None, "array", "\"concat\" needs disks with a capacity"),
        (2, 8192, Some(15), "array", "no block of 8KiB fits on a disk"),
        (0, 8192, Some(50), "count", "no disk"),
        (2, 0, Some(50), "block_size", "must be above zero"),
    ] {
        let error = build_layout("concat", disks, BLOCK, Bytes(block), capacity).unwrap_err();
        assert_eq!((error.key.as_str(), error.problem.as_str()), (key, problem));
    }
    let error = build_layout("raid0", 2, BLOCK, BLOCK, Some(50)).unwrap_err().to_string();
    assert_eq!(error, "array: \"raid0\" is one device, not independent disks; allowed: stripe, concat");
}

#[test]
fn explicit_layout_by_hand() {
    // Figure 1: A C E F on one disk, b d on the other.
    let layout = Layout::Explicit(Explicit::try_new(&[vec![0, 2, 4, 5], vec![1, 3]], BLOCK).unwrap());
    assert_eq!(layout.place(4), Some((Disk(0), 32)));
    assert_eq!(layout.place(3), Some((Disk(1), 16)));
    assert_eq!(layout.place(6), None);
    assert!(layout.check_capacity(5, Some(64)).is_ok());
    let error = layout.check_capacity(5, Some(63)).unwrap_err();
    assert_eq!((error.block, error.disk, error.sector), (5, 0, 48));
    let twice = Explicit::try_new(&[vec![0, 2], vec![1, 2]], BLOCK).unwrap_err();
    assert_eq!(twice.key, "layout[1][1]");
    assert_eq!(Explicit::try_new(&[], BLOCK).unwrap_err().key, "layout");
}

#[test]
fn stripes_that_cannot_be() {
    assert_eq!(Stripe::try_new(0, BLOCK, BLOCK).unwrap_err().key, "count");
    assert_eq!(Stripe::try_new(1, BLOCK, Bytes(0)).unwrap_err().key, "block_size");
    for unit in [0, 4096, 12288] {
        assert_eq!(Stripe::try_new(1, Bytes(unit), BLOCK).unwrap_err().key, "stripe_unit");
    }
}

#[test]
fn a_block_beyond_the_disks_is_named() {
    let layout = Layout::Stripe(Stripe::try_new(2, BLOCK, BLOCK).unwrap());
    assert!(layout.check_capacity(7, Some(64)).is_ok());
    assert!(layout.check_capacity(u64::MAX / 64, None).is_ok());
    let error = layout.check_capacity(8, Some(64)).unwrap_err();
    assert_eq!(error.to_string(), "block 8 of 8KiB lies at sector 64 of disk 0, which has 64 sectors");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Independent arrays: every block that fits has a distinct place within its disk, and no other fits.
    #[test]
    fn every_block_has_one_place(disks in 1u32..9, bytes in 1u64..5000, sectors in 10u64..300) {
        for row in ARRAYS.iter().filter(|row| row.is_independent()) {
            let layout = build_layout(row.name, disks, Bytes(bytes), Bytes(bytes), Some(sectors)).unwrap();
            let block_sectors = bytes.div_ceil(512);
            let count = sectors / block_sectors * u64::from(disks);
            prop_assert!(layout.check_capacity(count - 1, Some(sectors)).is_ok());
            prop_assert!(layout.check_capacity(count, Some(sectors)).is_err());
            let places: BTreeSet<_> = (0..count).map(|block| layout.place(block).unwrap()).collect();
            prop_assert_eq!(places.len() as u64, count);
            for (disk, sector) in places {
                prop_assert!(disk.0 < disks && sector % block_sectors == 0 && sector + block_sectors <= sectors);
            }
        }
    }

    /// The first `capacity_blocks` blocks fill every disk's whole stripes: distinct places, none beyond the end.
    #[test]
    fn striping_is_a_bijection(disks in 1u32..9, unit in 1u64..5, bytes in 1u64..5000, sectors in 0u64..300) {
        let stripe = Stripe::try_new(disks, Bytes(unit * bytes), Bytes(bytes)).unwrap();
        let block_sectors = bytes.div_ceil(512);
        let count = stripe.capacity_blocks(sectors);
        prop_assert_eq!(count, sectors / (unit * block_sectors) * unit * u64::from(disks));
        let places: BTreeSet<_> = (0..count).map(|block| stripe.place(block)).collect();
        prop_assert_eq!(places.len() as u64, count);
        for (disk, sector) in places {
            prop_assert!(disk.0 < disks && sector % block_sectors == 0 && sector + block_sectors <= sectors);
        }
        let layout = Layout::Stripe(stripe);
        prop_assert!(count == 0 || layout.check_capacity(count - 1, Some(sectors)).is_ok());
        prop_assert!(layout.check_capacity(count, Some(sectors)).is_err());
    }
}

fn error_of(model: &str, keys: &str) -> String {
    match build_device(model, keys.parse().unwrap()) {
        Ok(_) => panic!("{model} with {keys} should be refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn rows_build_from_their_defaults_and_have_unlike_names() {
    for row in MODELS {
        let mut keys = row.keys.defaults();
        if row.name == "uniform" {
            keys.insert("fetch_time".into(), "2ms".into());
        }
        let device = row.build(keys).unwrap();
        assert!(device.least_service(16) <= device.nominal_service());
        assert!(!row.summary.is_empty() && !row.source.is_empty());
    }
    for row in SCHEDULERS {
        assert!((row.build)(row.keys.defaults()).unwrap().is_empty());
    }
    let names: BTreeSet<_> = MODELS.iter().map(|row| row.name).chain(SCHEDULERS.iter().map(|row| row.name)).collect();
    assert_eq!(names.len(), MODELS.len() + SCHEDULERS.len());
}

#[test]
fn mistakes_in_a_scenario_name_their_key() {
    for (model, keys, begins) in [
        ("hp97561", "", "model: unknown model \"hp97561\" (did you mean \"hp97560\"?); allowed: uniform, hp97560"),
        ("uniform", "", "fetch_time: is missing; allowed: a time from 1ns to 1h"),
        ("uniform", "fetch_time = '0ms'", "fetch_time: 0s is out of range; allowed: a time from 1ns to 1h"),
        ("uniform", "fetch_time = '-1ms'", "fetch_time: \"-1ms\" is negative"),
        ("uniform", "fetch_time = 2", "fetch_time: 2 is a number; allowed: a time with a unit"),
        ("uniform", "fetch_time = '2h'", "fetch_time: 7200s is too long; allowed: a time from 1ns to 1h"),
        ("uniform", "fetch_time = '2ms'\nrpm = 4", "rpm: unknown key; allowed: fetch_time"),
        ("hp97560", "fetch_time = '2ms'", "fetch_time: unknown key; allowed: name, rpm"),
        ("hp97560", "rpm = 0", "rpm: 0 is out of range; allowed: a whole number from 1 to 1000000"),
        ("hp97560", "rpm = 1.5", "rpm: 1.5 is a number; allowed: a whole number"),
        ("hp97560", "zones = []", "zones: is empty"),
        (
            "hp97560",
            "zones = [{cylinders = 1, sectors_per_track = 4, track_skew = 4, cylinder_skew = 0}]",
            "zones[0].track_skew: 4 is",
        ),
        (
            "hp97560",
            "seek = {form = 'spline'}",
            "seek.form: \"spline\" is unknown (did you mean \"line\"?); allowed: \"root-linear\", \"table\"",
        ),
        ("hp97560", "seek = {root = ['1ms', 'x']}", "seek.root[1]: \"x\" has an unknown unit"),
        ("hp97560", "buffer = {size = '128X'}", "buffer.size: \"128X\" has an unknown unit"),
        ("hp97560", "buffer = {segments = 2}", "buffer.segment_sectors: is missing; allowed: a whole number from 1 to"),
        ("hp97560", "buffer = {streams = 2}", "buffer.streams: unknown key; allowed: size, read_ahead"),
        ("hp97560", "bus = {sector_time = '1us', bytes_per_second = 9}", "bus.bytes_per_second: beside sector_time"),
        (
            "seagate-cheetah-9lp",
            "controller = {overhead = '1ms', read_hit_after_read = '1ms'}",
            "controller.overhead: given together with overheads of each kind; allowed: one of the two",
        ),
        ("hp97560", "bus = {write_sector_time = '1us'}", "bus.write_sector_time: there is no sector_time"),
        ("seagate-cheetah-9lp", "buffer = {size = '1MiB'}", "buffer.read_ahead: is missing; allowed: true or false"),
        ("hp97560", "controller = {overheads = '1ms'}", "controller.overheads: unknown key"),
        ("hp97560", "controller = {read_hit_after_read = '1ms'}", "controller.read_hit_after_write: is missing"),
        ("hp97560", "sparing = 'range'", "sparing_range: is missing"),
        ("hp97560", "write_settle = '-x'", "write_settle: \"x\" has"),
        ("seagate-cheetah-9lp", "seek = {times_ms = [1.0]}", "seek.times_ms: 1 times for 106 distances"),
        ("seagate-cheetah-9lp", "buffer = {segments = 0}", "buffer.segments: 0 is out of range"),
        (
            "seagate-cheetah-9lp",
            "buffer = {read_ahead = 'far'}",
            "buffer.read_ahead: \"far\" is unknown; allowed: \"none\"",
        ),
        ("hp97560", "controller = {overhead = '1'}", "controller.overhead: \"1\" has no unit"),
        ("hp97560", "bus = {bytes_per_second = 0}", "bus.bytes_per_second: 0 is out of range"),
    ] {
        let error = error_of(model, keys);
        assert!(error.starts_with(begins), "{error:?} should begin with {begins:?}");
        assert!(!error.contains('\n'));
    }
    let error = build_scheduler("elevator", Table::new()).err().unwrap().within("scheduler");
    let names: Vec<&str> = SCHEDULERS.iter().map(|row| row.name).collect();
    let expected = format!("scheduler: unknown scheduler \"elevator\"; allowed: {}", names.join(", "));
    assert_eq!(error.to_string(), expected);
    let error = build_scheduler("cscan", "merge = true".parse().unwrap()).err().unwrap();
    assert_eq!(error.to_string(), "merge: unknown key; allowed: full_stroke");
}

/// Of mutually exclusive keys, the overriding ones win over the profile's; other keys stay.
#[test]
fn keys_of_another_form_replace_the_table() {
    let shipped = |name| headstart_device::model(name).map(|row| row.keys.defaults()).unwrap();
    let over = |name, keys: &str| headstart_device::overlay(shipped(name), keys.parse().unwrap());
    for (name, keys, table) in [
        ("seagate-cheetah-4lp", "overhead = '1.2ms'", "controller"),
        ("seagate-cheetah-4lp", "bytes_per_second = 9300000", "bus"),
        ("hp97560", "sector_time = '0.1ms'\nwrite_sector_time = '0.2ms'", "bus"),
        ("seagate-cheetah-4lp", "size = '128KiB'\nread_ahead = true", "buffer"),
        ("hp97560", "segments = 2\nsegment_sectors = 64\nread_ahead = 'segment'\nwrite_reporting = 'media'", "buffer"),
    ] {
        let both = over(name, &format!("[{table}]\n{keys}"));
        assert_eq!(both[table], toml::Value::Table(keys.parse().unwrap()), "{name}");
        assert_eq!(both.len(), shipped(name).len());
        assert!(headstart_device::Mechanical::from_table(both).is_ok(), "{name}: {keys}");
    }
    // No key below is excluded: merged.
    let both = over("seagate-cheetah-4lp", "bus = {write_sector_time = '1us'}\nbuffer = {segments = 5}");
    assert_eq!((both["bus"].as_table().unwrap().len(), both["buffer"]["segments"].as_integer()), (4, Some(5)));
    assert_eq!(both["buffer"]["segment_sectors"], shipped("seagate-cheetah-4lp")["buffer"]["segment_sectors"]);
    // 1.2 ms and 16 sectors at 512 / 9.3e6 s, rounded up.
    let keys = "controller = {overhead = '1.2ms'}\nbus = {bytes_per_second = 9300000}";
    let device = build_device("seagate-cheetah-4lp", keys.parse().unwrap()).unwrap();
    assert_eq!(device.least_service(16).0, 1_200_000 + 880_861);
}

#[test]
fn mistakes_in_a_profile_name_its_file() {
    let folder = std::env::temp_dir().join(format!("headstart-profiles-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("mine.toml");
    let shown = path.display().to_string();
    let shipped = include_str!("../../profiles/hp97560.toml");

    std::fs::write(&path, shipped).unwrap();
    let keys = || "controller = {overhead = '1ms'}".parse().unwrap();
    let (mine, named) = (build_device(&shown, keys()).unwrap(), build_device("hp97560", keys()).unwrap());
    assert_eq!(mine.least_service(16), named.least_service(16));

    std::fs::write(&path, shipped.replace("rpm = 4002", "rpm = 'fast'")).unwrap();
    let error = error_of(&shown, "");
    assert!(error.starts_with(&format!("{shown}: rpm: \"fast\" is a string")), "{error}");

    std::fs::write(&path, shipped.replace("surfaces = 19", "surfaces = = 19")).unwrap();
    let line = 1 + shipped.lines().position(|line| line.starts_with("surfaces")).unwrap();
    let error = build_device(&shown, Table::new()).err().unwrap();
    assert!(matches!(&error, DeviceError::Syntax { line: at, .. } if *at == line), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");

    std::fs::remove_dir_all(&folder).unwrap();
    let error = build_device(&shown, Table::new()).err().unwrap();
    assert!(matches!(error, DeviceError::Read { .. }) && error.to_string().starts_with(&shown));
}

/// Dotted paths of all values of a table, and the tables themselves.
fn paths(table: &Table, prefix: &[String]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (key, value) in table {
        let path = [prefix, std::slice::from_ref(key)].concat();
        match value {
            toml::Value::Table(inner) => all.extend(paths(inner, &path)),
            toml::Value::Array(list) if list[0].is_table() => {
                all.extend(paths(list[0].as_table().unwrap(), &[&path[..], &["0".into()]].concat()));
            }
            _ => {}
        }
        all.push(path);
    }
    all
}

fn replace(value: &mut toml::Value, path: &[String], new: Option<toml::Value>) {
    match (value, path) {
        (toml::Value::Table(table), [last]) => match new {
            Some(new) => _ = table.insert(last.clone(), new),
            None => _ = table.remove(last),
        },
        (toml::Value::Table(table), [first, rest @ ..]) => replace(table.get_mut(first).unwrap(), rest, new),
        (toml::Value::Array(list), [_, rest @ ..]) => replace(&mut list[0], rest, new),
        _ => unreachable!("paths() gives paths that exist"),
    }
}

/// Every value of a profile, removed or replaced by unusual ones: an error that names the key or its table, or else a
/// drive that works from the first sector to the last.
#[test]
fn odd_profiles_are_refused_or_work() {
    let shipped: Table = include_str!("../../profiles/hp97560.toml").parse().unwrap();
    let odd: Table =
        "v = [-1, 0, 1, 100_000, 9223372036854775807, 1.5, true, '', '0s', '1ns', '1h', '9999h', '0B', '1B',
        '1TiB', '2TiB', [], {}, [1], ['1h', '1h'], [{}], 1979-05-27]"
            .parse()
            .unwrap();
    let odd: Vec<Option<toml::Value>> = odd["v"].as_array().unwrap().iter().cloned().map(Some).chain([None]).collect();
    let (mut refused, mut worked) = (0, 0);
    for path in paths(&shipped, &[]) {
        for new in &odd {
            let mut profile = toml::Value::Table(shipped.clone());
            replace(&mut profile, &path, new.clone());
            let toml::Value::Table(profile) = profile else { unreachable!() };
            match headstart_device::Mechanical::from_table(profile) {
                Err(error) => {
                    assert!(error.key.starts_with(&path[0]), "{path:?} = {new:?}: {error}");
                    refused += 1;
                }
                Ok(mut drive) => {
                    use headstart_device::{Device, Request};
                    let capacity = drive.capacity_sectors().unwrap();
                    let mut now = headstart_types::Nanos::ZERO;
                    for sector in [0, 1, capacity - 1, capacity - 1, 1, 2] {
                        let service = drive.serve(now, &Request::read(sector, 1, 0));
                        assert!(service.end >= now + drive.least_service(1), "{path:?} = {new:?}");
                        now = service.end;
                    }
                    worked += 1;
                }
            }
        }
    }
    assert!(refused > 300 && worked > 30, "{refused} refused, {worked} worked");
}
