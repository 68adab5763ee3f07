//! The file-system model beyond the paper's tables: schedulers, read-ahead, flash, think times, advice, refusals.

use headstart_analytic::file_system::{
    advise, response, Advice, Disk, FileSystem, Form, Parameters, Prefetch, Response, Scheduler, SeekCurve, Seeks, Work,
};
use proptest::prelude::*;

const MS: f64 = 1e6;
const KIB: u64 = 1024;

fn doubling(first: u64, limit: u64) -> Prefetch {
    Prefetch::Doubling { first_bytes: first * KIB, limit_bytes: limit * KIB }
}

/// The paper's slow platform with costs per request.
fn platform(streams: u32, file_kib: u64, request_kib: u64) -> Parameters {
    Parameters {
        file_system: FileSystem {
            block_bytes: 8 * KIB,
            direct_blocks: 12,
            cluster_bytes: 64 * KIB,
            fragment_bytes: KIB,
            prefetch: doubling(8, 64),
            first_alone: true,
            system_call_ns: 0.01 * MS,
            copy_ns_per_kib: 0.01 * MS,
            form: Form::Tables,
        },
        disk: Disk {
            miss_overhead_ns: 1.2 * MS,
            hit_overhead_ns: 1.2 * MS,
            revolution_ns: 6.0 * MS,
            disk_bytes_per_second: 18.0e3 * KIB as f64,
            track_bytes_per_second: 18.0e3 * KIB as f64,
            rate_spread: 0.0,
            bus_bytes_per_second: 9.3e3 * KIB as f64,
            cache_segments: 3,
            read_ahead: true,
            read_ahead_on_sequence: false,
            read_during_overhead: true,
            scheduler: Scheduler::Clook,
            parallel: false,
        },
        work: Work {
            streams,
            file_bytes: file_kib * KIB,
            request_bytes: request_kib * KIB,
            think_ns: 0.0,
            lone_seek: 0.0,
        },
    }
}

/// Seek time = distance in cylinders, in microseconds, so that means are known.
fn line() -> SeekCurve {
    SeekCurve::Roots { a: 0.0, b: 0.0, c: 0.0, d: 1000.0, e: 0.0, cylinders: 6000 }
}

fn on(curve: SeekCurve, parameters: &Parameters) -> Response {
    response(parameters, &mut Seeks::new(curve)).expect("within range")
}

fn near(ours: f64, expected: f64) {
    assert!((ours - expected).abs() < 1e-6 * expected.abs().max(1.0), "{ours} is not {expected}");
}

#[test]
fn seeks_by_scheduler() {
    // 8 streams, 4 requests each: over a third for the first, over a tenth for the others; in order of arrival all over
    // a third.
    let mut parameters = platform(8, 64, 64);
    near(on(line(), &parameters).seek_ns, 8.0 * (2.0 + 3.0 * 0.6) * MS);
    parameters.disk.scheduler = Scheduler::Fcfs;
    near(on(line(), &parameters).seek_ns, 8.0 * 4.0 * 2.0 * MS);
    // 3 streams, cached: the first seek, and a way back for each of 4 rounds: 2/5 of the cylinders, a full stroke,
    // none.
    for (scheduler, back) in [(Scheduler::Clook, 2.4), (Scheduler::Cscan, 5.999), (Scheduler::Fcfs, 0.0)] {
        let mut parameters = platform(3, 64, 64);
        parameters.disk.scheduler = scheduler;
        near(on(line(), &parameters).seek_ns, (3.0 * 2.0 + 4.0 * back) * MS);
    }
}

#[test]
fn without_read_ahead_every_request_goes_to_the_surface() {
    // Equation (2) for all: a single stream waits half a revolution for each, without a seek; with two, each seeks too.
    for (streams, seek) in [(1, 0.0), (2, 2.0 * (2.0 + 3.0 * 1.5))] {
        let mut parameters = platform(streams, 64, 64);
        parameters.disk.read_ahead = false;
        let response = on(line(), &parameters);
        near(response.rotation_ns, f64::from(streams) * 4.0 * 3.0 * MS);
        near(response.seek_ns, seek * MS);
        // Without segments there is no read-ahead either.
        let mut none = platform(streams, 64, 64);
        none.disk.cache_segments = 0;
        assert_eq!(on(line(), &none), response);
    }
}

#[test]
fn a_double_indirect_block_is_three_reads() {
    // 12 + 2048 blocks have one indirect block; one more needs the double one and a second.
    let whole = |blocks: u64| on(line(), &platform(1, 8 * blocks, 8));
    let (one, two) = (whole(12 + 2048), whole(12 + 2049));
    // Each is a random read; in addition, the last block is a separate request.
    let indirect = 1.2 + 2.0 + 3.0 + 8.0 / 9.3;
    let more = 2.0 * indirect + 1.2 + 8.0 / 9.3 + 3.0 * 2.0 * 0.01;
    assert!(((two.total_ns - one.total_ns) / MS - more).abs() < 1e-5);
    near(two.disk_requests - one.disk_requests, 3.0);
}

#[test]
fn a_uniform_device_is_overhead_alone() {
    let mut parameters = platform(2, 64, 8);
    parameters.file_system.form = Form::Bsd;
    parameters.file_system.system_call_ns = 0.0;
    parameters.file_system.copy_ns_per_kib = 0.0;
    parameters.disk = Disk {
        miss_overhead_ns: 2.0 * MS,
        hit_overhead_ns: 2.0 * MS,
        revolution_ns: 0.0,
        disk_bytes_per_second: f64::INFINITY,
        track_bytes_per_second: f64::INFINITY,
        bus_bytes_per_second: f64::INFINITY,
        ..parameters.disk
    };
    let response = on(SeekCurve::None, &parameters);
    // The first stream's requests are done at 2, 6, 10 and 14 ms, the second's at 4, 8, 12 and 16: 15 ms on average,
    // over 8 requests of the application.
    near(response.response_ns, 15.0 * MS / 8.0);
    near(response.overhead_ns, response.response_ns);
    near(response.disk_requests, 4.0);
}

#[test]
fn flash_serves_several_at_once_until_its_link_is_full() {
    let mut parameters = platform(1, 64, 8);
    parameters.file_system.prefetch = Prefetch::Off;
    parameters.file_system.form = Form::Bsd;
    parameters.disk = Disk {
        miss_overhead_ns: 50_000.0,
        hit_overhead_ns: 50_000.0,
        revolution_ns: 0.0,
        disk_bytes_per_second: f64::INFINITY,
        track_bytes_per_second: f64::INFINITY,
        bus_bytes_per_second: 8192.0e5,
        read_ahead: false,
        parallel: true,
        ..parameters.disk
    };
    parameters.file_system.system_call_ns = 0.0;
    parameters.file_system.copy_ns_per_kib = 0.0;
    // 8 KiB take 10 us on the link: six streams fit in addition to one's 60 us, twelve take twice as long; the first
    // time half of the others are served before, so that 65 us pass.
    for (streams, us) in [(1, 60.0), (6, 60.0), (12, (65.0 + 7.0 * 120.0) / 8.0)] {
        parameters.work.streams = streams;
        let response = on(SeekCurve::None, &parameters);
        near(response.response_ns, us * 1000.0);
        near(response.overhead_ns + response.transfer_ns, us * 1000.0);
    }
}

#[test]
fn thinking_by_hand() {
    // Requests of 8 KB with Z between them; fetches of 8, 16, 32 and 8 KB take 5.06, 2.92, 4.64 and 2.06 ms.
    let mut parameters = platform(1, 64, 8);
    parameters.work.think_ns = 1.0 * MS;
    let services = [8.0, 16.0, 32.0, 8.0].map(|kib| 1.2 + kib / 9.3);
    // The first in full, after half a revolution; during the others the computing of 1, 2 and 4 requests.
    let waits = 3.0 + services[0] + (services[1] - 1.0) + (services[2] - 2.0) + (services[3] - 4.0_f64).max(0.0);
    let response = on(line(), &parameters);
    near(response.response_ns, (waits + 0.16) * MS / 8.0);
    near(response.hidden_ns, -(1.0 + 2.0 + services[3]) * MS / 8.0);
    near(response.elapsed_ns, (waits + 0.16 + 8.0) * MS);
    // Without prefetching a single stream overlaps nothing.
    parameters.file_system.prefetch = Prefetch::Off;
    near(on(line(), &parameters).hidden_ns, 0.0);
    // With four, each stream's computing lets the others' requests pass: all are waited for minus Z, except the first.
    parameters.work.streams = 4;
    near(on(line(), &parameters).hidden_ns, -7.0 * MS / 8.0);
}

#[test]
fn thinking_hides_at_most_all_but_the_first_fetch() {
    let mut parameters = platform(1, 64, 8);
    parameters.work.think_ns = 1000.0 * MS;
    let response = on(line(), &parameters);
    near(response.total_ns, (3.0 + 1.2 + 8.0 / 9.3 + 0.16) * MS);
}

#[test]
fn costs_of_each_request() {
    // Requests of 1, 2, 3 and 2 blocks for 64 KB by 10 KB: 7 calls, 64 KB copied. A disk that takes 2 ms for each.
    let mut parameters = platform(1, 64, 10);
    parameters.file_system.form = Form::Bsd;
    parameters.disk = Disk {
        miss_overhead_ns: 2.0 * MS,
        hit_overhead_ns: 2.0 * MS,
        revolution_ns: 0.0,
        disk_bytes_per_second: f64::INFINITY,
        bus_bytes_per_second: f64::INFINITY,
        ..parameters.disk
    };
    let response = on(SeekCurve::None, &parameters);
    near(response.requests, 7.0);
    near(response.file_system_ns, (7.0 * 0.01 + 0.64) * MS / 7.0);
    // 3 to 5 are fetched when block 2 is read, at 4.17 ms; the rest of it is copied and a call ends before block 3 is
    // asked for: 0.09 ms. 6 and 7 are fetched when block 4 is, at 6.26; 16 KB are copied and a call ends before block
    // 6: 0.17.
    near(response.hidden_ns, -(0.09 + 0.17) * MS / 7.0);
}

#[test]
fn the_papers_proposals_are_advised() {
    let mut parameters = platform(8, 64, 8);
    parameters.disk.scheduler = Scheduler::Fcfs;
    let before = on(line(), &parameters).total_ns;
    let advice = advise(&parameters, &mut Seeks::new(line()), &[]).expect("within range");
    let first_key = |index: usize| advice[index].set[0].0;
    // Reading the whole cluster at once saves three positionings of four, segments the same without the overhead.
    assert_eq!((first_key(0), first_key(1), first_key(2)), ("prefetch_first", "cache_segments", "scheduler"));
    assert_eq!(advice[0].set, [("prefetch_first", "64KiB".to_owned())]);
    assert_eq!(advice[1].set, [("cache_segments", "8".to_owned())]);
    for pair in advice.windows(2) {
        assert!(pair[0].gain >= pair[1].gain);
    }
    // The advice comes true when it is applied.
    parameters.disk.cache_segments = 8;
    let after = on(line(), &parameters).total_ns;
    near(advice[1].total_ns, after);
    near(advice[1].gain, 1.0 - after / before);
    // If whole clusters are read nothing more can be gained, and no combination is suggested.
    assert!(advice.iter().all(|advice| advice.set.len() == 1));
}

#[test]
fn what_may_not_be_touched_is_left_alone_and_the_rest_is_advised_together() {
    let mut parameters = platform(8, 128, 8);
    parameters.disk.scheduler = Scheduler::Fcfs;
    let advice = advise(&parameters, &mut Seeks::new(line()), &["prefetch_first", "cache_segments"]);
    let advice = advice.expect("within range");
    let keys = |advice: &Advice| advice.set.iter().map(|(key, _)| *key).collect::<Vec<_>>();
    assert!(advice.iter().flat_map(keys).all(|key| key != "prefetch_first" && key != "cache_segments"));
    let (together, alone) = advice.split_last().expect("advice");
    assert!(together.set.len() > 1 && alone.len() > 1, "{advice:?}");
    assert!(alone.iter().all(|advice| together.total_ns < advice.total_ns));
}

#[test]
fn nothing_is_advised_where_nothing_helps() {
    // One block.
    let advice = advise(&platform(1, 8, 8), &mut Seeks::new(line()), &[]).expect("within range");
    assert_eq!(advice, []);
}

/// One change to the parameters.
type Spoil = fn(&mut Parameters);

#[test]
fn refusals_name_the_parameter() {
    let cases: [(Spoil, &str); 10] = [
        (|p| p.work.streams = 0, "streams"),
        (|p| p.work.file_bytes = 0, "file_size"),
        (|p| p.work.request_bytes = 0, "request"),
        (|p| p.work.think_ns = -1.0, "think"),
        (|p| p.file_system.block_bytes = 0, "block_size"),
        (|p| p.file_system.cluster_bytes = 12 * KIB, "cluster"),
        (|p| p.file_system.fragment_bytes = 3000, "fragment"),
        (|p| p.file_system.prefetch = doubling(128, 64), "prefetch_first"),
        (|p| p.disk.miss_overhead_ns = f64::NAN, "overhead"),
        (|p| p.disk.bus_bytes_per_second = 0.0, "bus_rate"),
    ];
    for (spoil, key) in cases {
        let mut parameters = platform(1, 64, 8);
        spoil(&mut parameters);
        let error = response(&parameters, &mut Seeks::new(line())).expect_err(key);
        assert_eq!(error.key, key, "{error}");
    }
}

proptest! {
    #[test]
    fn terms_sum_and_nothing_is_negative(
        streams in 1_u32..40, file in 1_u64..3000, request in 1_u64..200, think in 0_u32..5, segments in 0_u32..20,
        off in any::<bool>(), tables in any::<bool>(), first in 0_u32..4, parallel in any::<bool>(),
    ) {
        let mut parameters = platform(streams, file, request);
        parameters.work.think_ns = f64::from(think) * MS;
        parameters.disk.cache_segments = segments;
        parameters.disk.parallel = parallel;
        parameters.file_system.prefetch = if off { Prefetch::Off } else { doubling(8 << first, 64) };
        parameters.file_system.form = if tables { Form::Tables } else { Form::Bsd };
        let response = on(line(), &parameters);
        let parts = [response.overhead_ns, response.seek_ns, response.rotation_ns, response.transfer_ns,
            response.file_system_ns];
        prop_assert!(parts.into_iter().all(|part| part >= 0.0), "{:?}", response);
        prop_assert!(response.hidden_ns <= 1e-6);
        let sum = parts.into_iter().sum::<f64>() + response.hidden_ns;
        prop_assert!((sum - response.response_ns).abs() <= 1e-9 * sum, "{:?}", response);
        prop_assert!((0.0..=1.0).contains(&response.busy));
        // Thinking never makes a request wait longer.
        parameters.work.think_ns += 1.0 * MS;
        prop_assert!(on(line(), &parameters).total_ns <= response.total_ns * (1.0 + 1e-12));
        // A longer file never takes less; if something overlaps, its additional block may come with a request that was
        // waited for anyway.
        parameters.work.think_ns = 0.0;
        parameters.file_system.form = Form::Tables;
        let before = on(line(), &parameters).total_ns;
        parameters.work.file_bytes += 8 * KIB;
        prop_assert!(on(line(), &parameters).total_ns >= before * (1.0 - 1e-12));
    }
}
