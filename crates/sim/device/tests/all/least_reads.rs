//! The lower bound for reads of scattered sectors: never above what any order takes, and close to a good one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstart_device::{build_device, Device, Request, Wanted, MODELS};
use headstart_types::Nanos;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

/// A number in `from..until`.
fn draw(rng: &mut ChaCha8Rng, from: u64, until: u64) -> u64 {
    from + rng.next_u64() % (until - from)
}

/// Serves requests in this order with `at_once` outstanding; returns when all of those before `needed` have ended.
fn serve(device: &mut dyn Device, requests: &[(u64, u64)], at_once: u32, needed: usize) -> Nanos {
    let at_once = at_once.min(device.concurrency()) as usize;
    let (mut under_way, mut now, mut end) = (BinaryHeap::new(), Nanos::ZERO, Nanos::ZERO);
    for (index, &(from, until)) in requests.iter().enumerate() {
        while under_way.len() >= at_once {
            let Reverse(next) = under_way.pop().expect("one is under way");
            now = now.max(next);
        }
        let done = device.serve(now, &Request::read(from, (until - from) as u32, 0)).end;
        under_way.push(Reverse(done));
        if index < needed {
            end = end.max(done);
        }
    }
    end
}

/// Separated runs of sectors: close together, or all over the first `span` sectors.
fn runs(rng: &mut ChaCha8Rng, span: u64) -> Vec<(u64, u64)> {
    let window = if draw(rng, 0, 2) == 0 { span } else { span.min(40_000) };
    let count = draw(rng, 1, 40);
    let mut firsts: Vec<u64> = (0..count).map(|_| draw(rng, 0, window - 100)).collect();
    firsts.sort_unstable();
    let mut found: Vec<(u64, u64)> = Vec::new();
    for first in firsts {
        let end = first + draw(rng, 1, 80);
        match found.last_mut() {
            Some(last) if first <= last.1 => last.1 = last.1.max(end),
            _ => found.push((first, end)),
        }
    }
    found
}

#[test]
fn no_order_and_no_reading_over_gaps_is_faster() {
    for row in MODELS {
        let keys = if row.name == "uniform" { "fetch_time = \"2ms\"" } else { "" };
        // A drive with an arm takes long to build, so it is copied.
        let original = row.build(keys.parse().expect("TOML")).expect("its defaults");
        let span = original.capacity_sectors().unwrap_or(1 << 30);
        for seed in 0..400 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let runs = runs(&mut rng, span);
            let at_once = draw(&mut rng, 1, 100) as u32;
            let mut device = original.clone_box();
            device.reseed(seed);
            let least = device.least_reads(&Wanted { runs: &runs, requests: 1, at_once });
            // Some requests read over a gap to the next run, and some unneeded ones are mixed in.
            let mut requests: Vec<(u64, u64)> = Vec::new();
            for &(first, end) in &runs {
                match requests.last_mut() {
                    Some(last) if end - last.0 < 4_000 && draw(&mut rng, 0, 10) < 3 => last.1 = end,
                    _ => requests.push((first, end)),
                }
            }
            if draw(&mut rng, 0, 2) == 0 {
                for at in 1..requests.len() {
                    requests.swap(at, draw(&mut rng, 0, at as u64 + 1) as usize);
                }
            }
            let needed = requests.len();
            for _ in 0..draw(&mut rng, 0, 20) {
                let first = draw(&mut rng, 0, span - 8);
                requests.push((first, first + 8));
            }
            let took = serve(&mut *device, &requests, at_once, needed);
            assert!(least <= took, "{}, seed {seed}: {took} is below {least}", row.name);
        }
    }
}

#[test]
fn by_hand_on_an_object_store() {
    // Always 40 ms to the first byte, 512 bytes per millisecond: a sector takes 1 ms.
    let keys = "latency = \"40ms\"\nlatency_p99 = \"40ms\"\nconnection_bytes_per_second = 512_000\nconnections = 8\n\
                reads_per_second = 0\nwrites_per_second = 0\n";
    let store = build_device("object-store", keys.parse().expect("TOML")).expect("an object store");
    let least = |runs: &[(u64, u64)], requests, at_once| store.least_reads(&Wanted { runs, requests, at_once });
    // One at a time: one sector each, 1,000 apart. Of three requests of 41 ms, one latency may be outstanding at the
    // end.
    assert_eq!(least(&[(0, 1), (1_000, 1_001), (2_000, 2_001)], 1, 1), Nanos::from_millis(83));
    // A request may read over a gap of 10 sectors, which saves the second one: 40 ms before the first byte, and 2
    // sectors that could be transferred in parallel.
    assert_eq!(least(&[(0, 1), (11, 12)], 1, 1), Nanos(40_250_000));
    // 24 requests on 8 connections: 16 latencies have passed, by eights, and 24 sectors: 83 ms.
    let many: Vec<(u64, u64)> = (0..24).map(|at| (at * 1_000, at * 1_000 + 1)).collect();
    assert_eq!(least(&many, 1, 100), Nanos::from_millis(83));
    assert_eq!(least(&many, 1, 4), Nanos::from_millis(206));
    // The same run is needed 24 times, as with a small cache.
    assert_eq!(least(&many[..1], 24, 8), Nanos(80_125_000));
}

#[test]
fn it_comes_near_to_what_a_good_order_takes() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for (name, reads, at_once, share) in [("object-store", 5_000, 64, 0.9), ("seagate-exos-x20", 500, 1, 0.15)] {
        let mut device = build_device(name, Table::new()).expect("a device");
        let span = device.capacity_sectors().unwrap_or(1 << 34) / 8;
        let mut runs: Vec<(u64, u64)> =
            (0..reads).map(|_| draw(&mut rng, 0, span) * 8).map(|at| (at, at + 8)).collect();
        runs.sort_unstable();
        runs.dedup();
        let least = device.least_reads(&Wanted { runs: &runs, requests: 1, at_once });
        let took = serve(&mut *device, &runs, at_once, runs.len());
        assert!(least.0 as f64 >= share * took.0 as f64, "{name}: {least} of {took}");
        assert!(least <= took, "{name}: {least} of {took}");
    }
}
