use super::*;
use crate::file_system::tables;
use proptest::prelude::*;

/// A byte takes 1 ns on the media and 2 ns on the bus; a revolution is 6 ms, an overhead 1 ms, a seek 5 ms except
/// within the ten cylinders of a megabyte.
fn disk(segments: u32, during: bool) -> TracedDisk {
    let disk = Disk {
        miss_overhead_ns: 1e6,
        hit_overhead_ns: 1e6,
        revolution_ns: 6e6,
        disk_bytes_per_second: 1e9,
        track_bytes_per_second: 1e9,
        bus_bytes_per_second: 5e8,
        cache_segments: segments,
        read_during_overhead: during,
        ..tables::disk(1.0)
    };
    let curve = SeekCurve::Table([vec![0.0; 10], vec![5e6; 990]].concat());
    let zone = Zone { first: 0.0, bytes: 1e8, first_cylinder: 0.0, cylinders: 1000.0, surface: 1.0, track: 1.0 };
    TracedDisk::new(&disk, curve, Geometry { zones: vec![zone], segment_bytes: 4e6, writes_behind: false })
}

/// Reads at `first` when the last has ended; its duration in microseconds.
fn takes(disk: &mut TracedDisk, first: u64, bytes: u64) -> f64 {
    let before = disk.free;
    (disk.read(before, first, bytes) - before) / 1e3
}

#[test]
fn two_files_in_turn_by_hand() {
    // Each file's first request: 1 ms, a seek, half a revolution, 0.2 ms on the bus. The arm is at the first file.
    let mut disk = disk(3, true);
    let far = 50_000_000;
    assert_eq!(takes(&mut disk, 0, 100_000), 4200.0);
    assert_eq!(takes(&mut disk, far, 100_000), 9200.0);
    // While its last 100 us crossed the bus and during the overhead of the other's request, the head read on, 1.1 MB:
    // each file thus has ten more requests served from the cache.
    for nth in 1..=10 {
        for file in [0, far] {
            assert_eq!(takes(&mut disk, file + nth * 100_000, 100_000), 1200.0, "{nth} of {file}");
        }
    }
    // 0.1 MB of the first are left, and the rest is 5 ms away: as for a new request, and what is there has crossed.
    assert_eq!(takes(&mut disk, 1_100_000, 200_000), 9200.0);
}

#[test]
fn more_files_than_segments_find_nothing() {
    let mut two = disk(2, true);
    for nth in 0..5 {
        for file in [0, 30_000_000, 60_000_000] {
            let took = takes(&mut two, file + nth * 100_000, 100_000);
            let seek = if (file, nth) == (0, 0) { 0.0 } else { 5000.0 };
            assert_eq!(took, 4200.0 + seek, "{nth} of {file}");
        }
    }
    two.count_until(two.free);
    assert_eq!((two.requests, two.hits), (15, 0));
}

#[test]
fn a_request_counts_when_it_has_ended() {
    let mut disk = disk(3, true);
    let end = disk.read(0.0, 0, 100_000);
    let next = disk.read(0.0, 100_000, 100_000);
    let counted = [end - 1.0, end, next - 1.0, next].map(|time| {
        disk.count_until(time);
        (disk.requests, disk.hits, disk.total.sum())
    });
    assert_eq!(counted, [(0, 0, 0.0), (1, 0, end), (1, 0, end), (2, 1, next)]);
}

#[test]
fn what_has_just_gone_by_comes_round_again() {
    let mut off = disk(3, true);
    off.disk.read_ahead = false;
    assert_eq!(takes(&mut off, 0, 100_000), 4200.0);
    // 0.1 ms of the bus and 1 ms of overhead of 6 ms have passed.
    assert_eq!(takes(&mut off, 100_000, 100_000), 1000.0 + 4900.0 + 200.0);
}

#[test]
fn a_suspected_sequence_is_read_ahead() {
    let mut disk = disk(3, true);
    disk.disk.read_ahead_on_sequence = true;
    let took: Vec<f64> = (0..4).map(|nth| takes(&mut disk, nth * 100_000, 100_000)).collect();
    assert_eq!(took, [4200.0, 6100.0, 1200.0, 1200.0]);
}

#[test]
fn a_write_is_equation_2_and_ends_what_is_read_ahead() {
    let mut disk = disk(3, true);
    assert_eq!(takes(&mut disk, 0, 100_000), 4200.0);
    let writes = |disk: &mut TracedDisk, first: u64| {
        let before = disk.free;
        (disk.write(before, first, 100_000) - before) / 1e3
    };
    assert_eq!(writes(&mut disk, 50_000_000), 9200.0);
    // The position after it has just passed.
    assert_eq!(writes(&mut disk, 50_100_000), 1000.0 + 5000.0 + 200.0);
    // The head has read on for the 100 us in which its first request crossed the bus, and no further.
    assert_eq!(takes(&mut disk, 100_000, 100_000), 1200.0);
    assert_eq!(takes(&mut disk, 200_000, 100_000), 9200.0);
    disk.count_until(disk.free);
    assert_eq!((disk.requests, disk.writes, disk.hits), (5, 2, 1));
}

#[test]
fn a_drive_that_writes_behind() {
    let mut disk = disk(3, true);
    disk.geometry.writes_behind = true;
    // 1 ms, and 0.2 ms on the bus. The head is there 1 ms + 5 ms + 3 ms after the request, and done 0.1 ms later.
    assert_eq!(disk.write(0.0, 50_000_000, 100_000), 1.2e6);
    // The next one continues it: it crosses the bus at once, and is on the media 0.1 ms after the first.
    assert_eq!(disk.write(1.2e6, 50_100_000, 100_000), 2.4e6);
    // Another position waits until both are: at 9.2 ms.
    assert_eq!(disk.write(2.4e6, 0, 100_000), 9.4e6);
    // A read waits for that, at 9.2 ms + 5 ms + 3 ms + 0.1 ms, and seeks back for 5 ms.
    assert_eq!(disk.read(9.4e6, 50_200_000, 100_000), 17.3e6 + 5e6 + 3e6 + 0.2e6);
    disk.count_until(1e9);
    assert_eq!((disk.requests, disk.writes, disk.hits), (4, 3, 3));
}

proptest! {
    /// A file read alone: after its first request equation (3), for any requests, as long as the segment lasts. The bus
    /// is the slower part.
    #[test]
    fn a_lone_stream_is_equation_3(sizes in prop::collection::vec(1u64..90_000, 2..40), during in any::<bool>()) {
        let mut disk = disk(3, during);
        let mut first = 20_000_000;
        for (nth, bytes) in sizes.iter().enumerate() {
            let took = takes(&mut disk, first, *bytes);
            let bus = *bytes as f64 * 2.0 / 1e3;
            let expected = if nth == 0 { 9000.0 + bus } else { 1000.0 + bus };
            prop_assert!((took - expected).abs() < 1e-3, "{nth}: {took} is not {expected}");
            first += bytes;
        }
    }

    /// No request takes longer than a full seek, a revolution and its transfer, and none ends before its bus transfer.
    #[test]
    fn within_bounds(
        requests in prop::collection::vec((0u64..90_000_000, 1u64..500_000, 0u64..3_000_000), 1..100),
        segments in 0u32..5, during in any::<bool>(), on_sequence in any::<bool>(),
    ) {
        let mut disk = disk(segments, during);
        disk.disk.read_ahead_on_sequence = on_sequence;
        let (mut at, mut before) = (0.0, 0.0f64);
        for (first, bytes, pause) in requests {
            let end = disk.read(at, first, bytes);
            let took = end - before.max(at);
            let bus = bytes as f64 * 2.0;
            prop_assert!(took >= 1e6 + bus - 1e-3 && took <= 1e6 + 5e6 + 6e6 + 2.0 * bus + 1e-3, "{took}");
            (before, at) = (end, end + pause as f64);
        }
        disk.count_until(before);
        let total = disk.total.sum();
        prop_assert!(total <= before + 1e-3, "{total} in {before}");
    }
}
