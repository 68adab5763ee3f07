//! A drive with a caller's clock gives the same results as the simulated one, however late it is checked.

use std::collections::BTreeMap;

use headstart_device::{build_device, build_scheduler, Drive, Finished, Request, Started, MODELS, SCHEDULERS};
use headstart_emulate::ClockedDrive;
use headstart_sim::{simulate, Scenario, Source};
use headstart_types::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

fn drive(model: &str, scheduler: &str) -> Drive {
    let keys = if model == "uniform" { "fetch_time = \"2ms\"" } else { "" };
    let device = build_device(model, keys.parse().expect("TOML")).expect("it is there");
    Drive::new(device, build_scheduler(scheduler, Table::new()).expect("it is there"))
}

/// Random reads, some of them sequential, at times that alternately leave the drive idle and overload it.
fn arrivals(drive: &Drive, seed: u64, count: u64) -> Vec<(Nanos, Request)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let capacity = drive.device().capacity_sectors().unwrap_or(1 << 30);
    let nominal = drive.device().nominal_service().0 / u64::from(drive.device().concurrency());
    let (mut now, mut next) = (0, 0);
    let arrival = |tag: u64| {
        let sectors = random.random_range(1..=64);
        let jumps = random.random_bool(0.6) || next + u64::from(sectors) > capacity;
        let sector = if jumps { random.random_range(0..capacity - u64::from(sectors)) } else { next };
        now += 1 + random.random_range(0..nominal * if (tag / 40).is_multiple_of(2) { 8 } else { 1 });
        next = sector + u64::from(sectors);
        (Nanos(now), Request { process: Some(tag as u32 % 3), ..Request::read(sector, sectors, tag) })
    };
    (0..count).map(arrival).collect()
}

/// The simulator's procedure, knowing all arrivals: at each instant it ends requests, adds arrivals and starts what it
/// can.
fn simulated(mut drive: Drive, arrivals: &[(Nanos, Request)]) -> Vec<Finished> {
    let mut events: BTreeMap<Nanos, (u32, Vec<Request>)> = BTreeMap::new();
    for (at, request) in arrivals {
        events.entry(*at).or_default().1.push(*request);
    }
    let mut finished = Vec::new();
    while let Some((now, (ends, arrive))) = events.pop_first() {
        let mut start = |drive: &mut Drive| loop {
            match drive.start(now) {
                Started::Ends(end) => events.entry(end).or_default().0 += 1,
                Started::Wakes(at) => {
                    events.entry(at).or_default();
                    break;
                }
                Started::Nothing => break,
            }
        };
        for _ in 0..ends {
            drive.finish(now, |each| finished.push(each));
            start(&mut drive);
        }
        start(&mut drive);
        for request in arrive {
            drive.submit(now, request);
            start(&mut drive);
        }
    }
    finished
}

/// The same arrivals at a clocked drive, which is checked at arrivals and up to `late` after each event.
fn clocked(drive: Drive, arrivals: &[(Nanos, Request)], late: u64, seed: u64) -> Vec<Finished> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut drive = ClockedDrive::new(drive);
    let mut finished = Vec::new();
    let mut arrivals = arrivals.iter().peekable();
    loop {
        let looks = drive.next_event().map(|event| Nanos(event.0 + random.random_range(0..=late)));
        match (arrivals.peek(), looks) {
            (Some((at, request)), looks) if looks.is_none_or(|looks| *at <= looks) => {
                drive.submit(*at, *request, |each| finished.push(each));
                arrivals.next();
            }
            (_, Some(looks)) => drive.advance(looks, |each| finished.push(each)),
            (_, None) => return finished,
        }
    }
}

#[test]
fn the_ends_are_the_simulators_whoever_orders_the_queue_and_however_late_one_looks() {
    let mut compared = 0;
    for (at, model) in MODELS.iter().enumerate() {
        for scheduler in SCHEDULERS {
            // Every scheduler on one drive with an arm and on one that serves several requests at once; every device
            // with one scheduler.
            if !["ibm-36gb-10k", "sata-ssd"].contains(&model.name) && scheduler.name != "fcfs" {
                continue;
            }
            let arrivals = arrivals(&drive(model.name, scheduler.name), at as u64, 400);
            let expected = simulated(drive(model.name, scheduler.name), &arrivals);
            assert_eq!(expected.len(), arrivals.len());
            for late in [0, 60_000, 20_000_000] {
                let found = clocked(drive(model.name, scheduler.name), &arrivals, late, 7);
                assert_eq!(found, expected, "{} behind {}, {late} ns late", model.name, scheduler.name);
                compared += found.len();
            }
            let waited = expected.iter().filter(|each| each.response_time > each.service_time).count();
            let queues = drive(model.name, "fcfs").device().concurrency() < 40;
            assert!(!queues || (waited > 20 && waited < 380), "{}: {waited} of 400 waited", model.name);
        }
    }
    assert!(compared > 400 * 3 * (MODELS.len() + 2 * (SCHEDULERS.len() - 1)) - 1);
}

#[test]
fn the_sums_are_those_of_the_whole_simulator() {
    // 300 reads of 8 KiB at a trace's times, each of another block, through an empty cache: all go to the disk.
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut now_us = 0;
    let reads: Vec<(u64, u64)> = (0..300)
        .map(|read: u64| {
            now_us += random.random_range(1..20_000) * u64::from(read > 0);
            (now_us, random.random_range(0..14_000) * 300 + read)
        })
        .collect();
    let rows = reads
        .iter()
        .map(|(us, block)| format!("{}.{:06},R,1,1,{},8192,0\n", us / 1_000_000, us % 1_000_000, block * 8192));
    let trace = std::env::temp_dir().join(format!("headstart-clocked-{}.csv", std::process::id()));
    std::fs::write(&trace, format!("time,op,pid,file,offset,size,dur_us\n{}", rows.collect::<String>())).expect("room");
    for scheduler in ["fcfs", "clook", "sptf", "anticipatory-blind"] {
        let scenario = serde_json::json!({
            "workload": {"trace": trace, "block_size": "8KiB", "arrival": "open", "placement": "address"},
            "cache": {"blocks": 1000},
            "policy": "demand",
            "device": {"model": "ibm-36gb-10k", "scheduler": scheduler},
            "host": {"driver_overhead": "0ms"},
        });
        let scenario = Scenario::read(&Source::Json(scenario.to_string()), &[]).expect("a scenario");
        let report = simulate(&scenario, &mut |_| true).expect("it runs");
        let mut drive = ClockedDrive::new(drive("ibm-36gb-10k", scheduler));
        let mut response = 0;
        let mut note = |finished: Finished| response += finished.response_time.0;
        for (us, block) in &reads {
            let request = Request { process: Some(0), ..Request::read(block * 16, 16, *block) };
            drive.submit(Nanos(us * 1_000), request, &mut note);
        }
        while let Some(event) = drive.next_event() {
            drive.advance(event, &mut note);
        }
        let [disk] = &report.devices[..] else { panic!("one disk") };
        let found = drive.statistics(Nanos::ZERO);
        let parts = [found.busy, found.seek, found.rotation, found.transfer, found.overhead];
        let expected = [disk.busy_ns, disk.seek_ns, disk.rotation_ns, disk.transfer_ns, disk.overhead_ns].map(Nanos);
        assert_eq!((found.requests, parts), (disk.requests, expected), "{scheduler}");
        assert_eq!(found.queue_ns, u128::from(disk.queue_ns), "{scheduler}");
        assert_eq!(response / 300, report.response_ns.mean, "{scheduler}");
        assert!(found.queue_ns > 100_000_000, "{scheduler}: some of them waited");
    }
    std::fs::remove_file(trace).expect("it is ours");
}
