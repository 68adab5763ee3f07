//! A buffer's sectors divided among other numbers of segments, as if the profile specified it.

use headstart_device::{build_array, build_device, Device, Request};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

fn device(name: &str, keys: &str) -> Box<dyn Device> {
    build_device(name, keys.parse().unwrap()).unwrap()
}

/// The Cheetah 4LP has three segments of 282 sectors, reads 282 ahead and has one segment for writes.
#[test]
fn divided_by_hand() {
    for (segments, sectors, ahead) in [(1, 846, 282), (2, 423, 282), (4, 211, 211), (16, 52, 52), (846, 1, 1)] {
        let mut divided = device("seagate-cheetah-4lp", "");
        divided.divide_buffer(segments).unwrap();
        let mechanics = divided.mechanics().unwrap();
        assert_eq!((u64::from(mechanics.segments), mechanics.segment_sectors), (segments, sectors));
        // The extent of the read-ahead after one sector, queried much later.
        let read = |device: &mut Box<dyn Device>, at, sector| {
            device.serve(Nanos::from_millis(at), &Request::read(sector, 1, 0)).buffer_hit
        };
        read(&mut divided, 0, 1_000);
        let there = |sector| read(&mut divided.clone(), 1_000, sector);
        assert_eq!((there(1_000 + ahead), there(1_001 + ahead)), (true, false), "{segments}");
    }
}

#[test]
fn what_cannot_be_divided() {
    let refused = |mut device: Box<dyn Device>, segments| {
        device.divide_buffer(segments).unwrap_err().within("device.cache_segments").to_string()
    };
    for (name, keys, segments, expected) in [
        ("hp97560", "", 2, "the buffer is one stream and has no segments; allowed: a drive whose profile has"),
        ("uniform", "fetch_time = '2ms'", 2, "the device has no buffer with segments; allowed: a drive whose"),
        ("nvme", "", 1, "the device has no buffer with segments"),
        ("seagate-cheetah-4lp", "", 0, "0 segments of a buffer of 846 sectors; allowed: a whole number from 1 to 846"),
        ("seagate-cheetah-4lp", "", 847, "847 segments of a buffer of 846 sectors; allowed: a whole number from 1 to"),
        (
            "seagate-cheetah-4lp",
            "buffer = {write_segment_apart = true}",
            1,
            "1 segments of a buffer of 846 sectors; allowed: a whole number from 2 to 846",
        ),
    ] {
        let error = refused(device(name, keys), segments);
        assert!(error.starts_with(&format!("device.cache_segments: {expected}")), "{name}: {error}");
    }
    let large = device("seagate-exos-x20", "");
    assert!(refused(large, 1_001).ends_with("allowed: a whole number from 1 to 1000"));
}

#[test]
fn the_disks_of_an_array_are_divided_each() {
    for (name, keys) in [("raid0", ""), ("mirror", ""), ("raid5", "")] {
        let array = |member: Box<dyn Device>| build_array(name, 4, member, 16, keys.parse().unwrap()).unwrap();
        let mut divided = array(device("seagate-cheetah-4lp", ""));
        divided.divide_buffer(9).unwrap();
        let mut member = device("seagate-cheetah-4lp", "");
        member.divide_buffer(9).unwrap();
        assert_eq!(divided.mechanics(), member.mechanics());
        let mut built = array(member);
        for (at, sector) in [(0, 5_000), (50, 9_000), (100, 5_016), (150, 9_016)] {
            let request = Request::read(sector, 16, 0);
            assert_eq!(divided.serve(Nanos::from_millis(at), &request), built.serve(Nanos::from_millis(at), &request));
        }
        assert!(array(device("hp97560", "")).divide_buffer(2).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Equals a profile with the resulting keys.
    #[test]
    fn dividing_is_to_lay_keys_over_the_profile(
        (had, size, segments) in (1u64..5, 1u64..100).prop_flat_map(|(had, size)| (Just(had), Just(size), 1..=had * size)),
        (minimum, maximum, writes) in (0u64..100, prop::option::of(0u64..100), 1u64..5),
        steps in prop::collection::vec((0u64..20_000_000, 0u64..3_000, 1u32..40, any::<bool>()), 1..40),
    ) {
        let keys = |segments: u64, size: u64, most: u64, minimum: u64, maximum: Option<u64>, writes: u64| {
            let maximum = maximum.map_or(String::new(), |maximum| format!("read_ahead_maximum = {}", maximum.min(most)));
            let text = format!(
                "[buffer]\nsegments = {segments}\nsegment_sectors = {size}\nwrite_segments = {}\nwrite_reporting = 'buffer'
                read_ahead_minimum = {}\n{maximum}",
                writes.min(segments),
                minimum.min(most),
            );
            let mut over: Table = text.parse().unwrap();
            if maximum.is_empty() {
                over["buffer"].as_table_mut().unwrap().insert("read_ahead_maximum".into(), (most as i64).into());
            }
            build_device("seagate-cheetah-4lp", over).unwrap()
        };
        let to = had * size / segments;
        let mut divided = keys(had, size, size, minimum, maximum, writes.min(had));
        divided.divide_buffer(segments).unwrap();
        // A limit that was reduced to the size stays reduced.
        let maximum = maximum.map_or(size, |maximum| maximum.min(size));
        let mut built = keys(segments, to, to, minimum.min(size), Some(maximum), writes.min(had));
        let mut now = Nanos::ZERO;
        for (pause, sector, sectors, write) in steps {
            let request = Request { write, ..Request::read(sector, sectors, 0) };
            now += Nanos(pause);
            let service = divided.serve(now, &request);
            prop_assert_eq!(service, built.serve(now, &request));
            now = service.end;
        }
    }
}
