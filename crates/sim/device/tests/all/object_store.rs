//! The object store by hand, its seeds, and its errors.

use headstart_device::{build_device, build_scheduler, Device, Drive, Request};
use headstart_types::Nanos;
use toml::Table;

fn store(keys: &str) -> Box<dyn Device> {
    build_device("object-store", keys.parse().unwrap()).unwrap()
}

const CONSTANT: &str = "latency = '30ms'\nlatency_p99 = '30ms'\nconnection_bytes_per_second = 51_200_000\n\
                        reads_per_second = 2\nwrites_per_second = 0\nconnections = 3\n";

#[test]
fn constant_latency_by_hand() {
    let mut store = store(CONSTANT);
    assert_eq!((store.concurrency(), store.capacity_sectors()), (3, None));
    // 30 ms, then 1,000 sectors of 512 bytes at 51.2 MB/s: 10 ms. Two per second: the third waits for half a second.
    assert_eq!(store.least_service(1_000), Nanos::from_millis(40));
    for (end, wait) in [(40, 0), (40, 0), (540, 500)] {
        let service = store.serve(Nanos(0), &Request::read(77, 1_000, 0));
        assert_eq!((service.end, service.wait), (Nanos::from_millis(end), Nanos::from_millis(wait)));
        assert_eq!((service.overhead, service.transfer), (Nanos::from_millis(30), Nanos::from_millis(10)));
    }
    // Writes have a separate limit, here none.
    assert!((0..9).all(|_| store.serve(Nanos(0), &Request::write(0, 100, 0)).end == Nanos::from_millis(31)));
}

#[test]
fn a_seed_gives_the_same_times_on_every_machine() {
    let draws = |store: &mut dyn Device| {
        [(); 4].map(|()| store.serve(Nanos::from_millis(5), &Request::read(0, 1, 0)).overhead.0)
    };
    let mut first = store("");
    first.reseed(1);
    let drawn = draws(&mut *first);
    assert_eq!(drawn, GOLDEN);
    first.reseed(2);
    assert_ne!(draws(&mut *first), drawn);
    // Also in the middle of a pair of numbers.
    first.serve(Nanos::from_millis(6), &Request::read(0, 1, 0));
    first.reseed(1);
    assert_eq!(draws(&mut *first), drawn);
    let mut copy = first.clone();
    assert_eq!(draws(&mut *copy), draws(&mut *first));
}

/// Overheads in nanoseconds of the first four requests with seed 1.
const GOLDEN: [u64; 4] = [142_161_539, 121_471_106, 105_972_670, 134_614_587];

#[test]
fn mistakes_name_their_key() {
    for (keys, begins) in [
        ("latency = '0s'", "latency: 0s is out of range; allowed: a time from 1ns to 1h"),
        ("latency_p99 = '99ms'", "latency_p99: 99ms is below the median; allowed: a time from 100ms"),
        ("latency = 30", "latency: 30 is a number"),
        ("connections = 0", "connections: 0 is out of range; allowed: a whole number from 1 to 65536"),
        ("reads_per_second = -1", "reads_per_second: -1 is out of range; allowed: a whole number from 0 to"),
        (
            "network_bytes_per_second = 999",
            "network_bytes_per_second: 999 is out of range; allowed: 0 for no limit, or",
        ),
        ("bandwidth = 3", "bandwidth: unknown key; allowed: latency, latency_p99"),
    ] {
        let error = build_device("object-store", keys.parse().unwrap()).err().unwrap().to_string();
        assert!(error.starts_with(begins), "{error:?} should begin with {begins:?}");
    }
}

#[test]
fn a_shared_network_is_divided_among_the_transfers() {
    // 100 ms to the first byte; 1,000 sectors take 0.1 s of the whole network.
    let device = store(
        "latency = '100ms'\nlatency_p99 = '100ms'\nconnections = 3\nreads_per_second = 0\n\
         connection_bytes_per_second = 1_000_000_000\nnetwork_bytes_per_second = 5_120_000",
    );
    assert_eq!(device.least_service(1_000), Nanos::from_millis(200));
    let mut drive = Drive::new(device, build_scheduler("fcfs", Table::new()).unwrap());
    // Two at once share it until 300 ms. The third is known at 250 ms, and its first byte comes at 350 ms.
    for (at, tag) in [(0, 0), (0, 1), (250, 2)] {
        drive.submit(Nanos::from_millis(at), Request::read(0, 1_000, tag));
        drive.start(Nanos::from_millis(at));
    }
    let mut ends = Vec::new();
    while let Some(end) = drive.next_end() {
        drive.finish(end, |done| ends.push((end.0 / 1_000_000, done.request.tag, done.announced.0 / 1_000_000)));
    }
    assert_eq!(ends, [(300, 0, 200), (300, 1, 200), (450, 2, 450)]);
    let sums = drive.statistics(Nanos::from_millis(450));
    assert_eq!(sums.service, sums.overhead + sums.transfer + sums.wait);
    assert_eq!((sums.overhead, sums.transfer), (Nanos::from_millis(300), Nanos::from_millis(300)));
}
