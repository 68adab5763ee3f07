//! Every scheduler of the registry, alone and in pairs, and the drive around them, under random load and by hand.

use std::collections::BTreeMap;

use headstart_device::{
    CommandQueue, Drive, Finished, Next, Promise, Queued, Request, Scheduler, SchedulerRow, Started, Unfinished,
    SCHEDULERS,
};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

use crate::queueing::{arrivals, device, drive, ms, queued, run, scheduler, uniform, us, Arm, Outcome, Wide, KINDS};

/// A scheduler of the registry with its defaults.
fn build(row: &SchedulerRow) -> Box<dyn Scheduler> {
    (row.build)(Table::new()).unwrap()
}

/// Each request was completed once, and the drive's sums match its completions.
fn check(drive: &Drive, arrivals: &[(Nanos, Request)], outcome: &Outcome) -> Result<(), TestCaseError> {
    let Outcome { done, busy, end, .. } = outcome;
    let mut seen: BTreeMap<u64, (Nanos, Request)> = BTreeMap::new();
    for (at, each) in done {
        let again = seen.insert(each.request.tag, (each.arrived, each.request));
        prop_assert!(again.is_none(), "completed twice");
        prop_assert_eq!(each.response_time, *at - each.arrived);
        prop_assert!(each.service_time >= drive.device().least_service(each.request.sectors));
    }
    let asked: BTreeMap<_, _> = arrivals.iter().map(|(at, request)| (request.tag, (*at, *request))).collect();
    prop_assert_eq!(seen, asked);

    let sums = drive.statistics(*end);
    prop_assert_eq!(sums.parts, arrivals.len() as u64);
    prop_assert!(sums.requests <= sums.parts);
    prop_assert_eq!(sums.sectors, arrivals.iter().map(|(_, request)| u64::from(request.sectors)).sum::<u64>());
    prop_assert_eq!(sums.service, sums.seek + sums.rotation + sums.transfer + sums.overhead + sums.wait);
    let sum = |time: fn(&Finished) -> Nanos| done.iter().map(|(_, each)| u128::from(time(each).0)).sum::<u128>();
    prop_assert_eq!(sums.response_ns, sum(|each| each.response_time));
    prop_assert_eq!(sums.queue_ns, sum(|each| each.response_time - each.service_time));
    if sums.parts == sums.requests {
        prop_assert_eq!(sums.writes, arrivals.iter().filter(|(_, request)| request.write).count() as u64);
        prop_assert_eq!(sums.buffer_hits, done.iter().filter(|(_, each)| each.buffer_hit).count() as u64);
    }
    prop_assert_eq!(sums.busy, *busy);
    let alone = drive.device().concurrency() == 1;
    prop_assert!(*busy == sums.service || !alone && *busy < sums.service);
    prop_assert_eq!(sums.unfinished, Unfinished::default());
    prop_assert_eq!(u128::from(sums.areas.present_ns), sums.response_ns);
    Ok(())
}

/// How often a sweep turned, or restarted, between two requests that were served consecutively.
fn turns(circular: bool, sectors: &[u64]) -> usize {
    let mut way: Vec<bool> = sectors.windows(2).filter(|two| two[0] != two[1]).map(|two| two[1] < two[0]).collect();
    if circular {
        return way.iter().filter(|down| **down).count();
    }
    way.dedup();
    way.len().saturating_sub(1)
}

/// Each request got its scheduler's promise. `done` is in order of service, which is one at a time.
fn check_promises(row: &SchedulerRow, done: &[(Nanos, Finished)]) -> Result<(), TestCaseError> {
    let queue = build(row);
    let started = |each: &Finished| each.arrived + each.response_time - each.service_time;
    for (index, (_, each)) in done.iter().enumerate() {
        match queue.promise(&each.request) {
            Promise::Nothing => {}
            Promise::NextSweep => {
                // From the request that was in service on arrival.
                let first = done.iter().position(|(at, _)| *at > each.arrived).unwrap_or(index);
                let sectors: Vec<u64> = done[first..=index].iter().map(|(_, each)| each.request.sector).collect();
                let circular = matches!(row.name, "cscan" | "clook");
                prop_assert!(turns(circular, &sectors) <= 1, "{}: {:?}", row.name, sectors);
            }
            Promise::Overtaken { after, each: factor, more } => {
                let from = each.arrived + after;
                let waits_then = |other: &&(Nanos, Finished)| other.1.arrived <= from && started(&other.1) >= from;
                let waiting = done.iter().filter(waits_then).count() - usize::from(started(each) >= from);
                // Merged requests start together and count once.
                let mut before: Vec<Nanos> = done.iter().map(|(_, other)| started(other)).collect();
                before.retain(|start| *start > from && *start < started(each));
                before.dedup();
                prop_assert!(before.len() <= factor * waiting + more, "{}: {} of {waiting}", row.name, before.len());
            }
        }
    }
    Ok(())
}

/// A scheduler returns what was put in, and merged requests are contiguous without a gap or an overlap.
fn check_given(whole: &Queued, parts: &[Queued], waiting: &mut BTreeMap<u64, Queued>) -> Result<(), TestCaseError> {
    if parts.is_empty() {
        prop_assert_eq!(waiting.remove(&whole.sequence), Some(*whole));
        return Ok(());
    }
    prop_assert!(parts.len() > 1);
    for part in parts {
        prop_assert_eq!(waiting.remove(&part.sequence), Some(*part));
        prop_assert_eq!(part.request.write, whole.request.write);
    }
    let mut by_place = parts.to_vec();
    by_place.sort_by_key(|part| part.request.sector);
    for two in by_place.windows(2) {
        prop_assert_eq!(two[0].request.end(), two[1].request.sector);
    }
    let first = parts.iter().min_by_key(|part| part.sequence).unwrap();
    let sectors = parts.iter().map(|part| part.request.sectors).sum();
    let prefetch = parts.iter().all(|part| part.request.prefetch);
    let request = Request { sector: by_place[0].request.sector, sectors, prefetch, ..first.request };
    prop_assert_eq!(whole, &Queued { request, ..*first });
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_completed_once_and_the_sums_agree(arrivals in arrivals(120)) {
        for row in SCHEDULERS {
            for kind in 0..KINDS {
                let mut drive = Drive::new(device(kind), build(row));
                let outcome = run(&mut drive, &arrivals);
                check(&drive, &arrivals, &outcome)?;
                let queue = build(row);
                prop_assert!(outcome.idle_max <= queue.idles_at_most(), "{}: idle for {}", row.name, outcome.idle_max);
                if drive.device().concurrency() == 1 {
                    check_promises(row, &outcome.done)?;
                }
            }
        }
    }

    #[test]
    fn every_pair_of_schedulers_completes_every_request_once(
        arrivals in arrivals(80), kind in 0..KINDS, depth in prop::sample::select(vec![1u32, 4, 32]),
    ) {
        for host in SCHEDULERS {
            for own in SCHEDULERS {
                let mut drive = drive(kind, host.name, own.name, depth);
                let outcome = run(&mut drive, &arrivals);
                check(&drive, &arrivals, &outcome)?;
                let limit = build(host).idles_at_most() + build(own).idles_at_most();
                prop_assert!(outcome.idle_max <= limit, "{} and {}: idle for {}", host.name, own.name, outcome.idle_max);
            }
        }
    }

    /// A command queue of one has no effect, whatever orders it: the host's scheduler is called when nothing is in
    /// service. A queue of any depth has none if both are FCFS.
    #[test]
    fn a_command_queue_of_one_changes_nothing(arrivals in arrivals(80), kind in 0..KINDS) {
        prop_assume!(device(kind).concurrency() == 1);
        for host in SCHEDULERS {
            let alone = run(&mut drive(kind, host.name, "fcfs", 0), &arrivals).done;
            for own in SCHEDULERS.iter().filter(|own| build(own).idles_at_most() == Nanos::ZERO) {
                let queued = run(&mut drive(kind, host.name, own.name, 1), &arrivals).done;
                prop_assert!(full_strokes(own) || queued == alone || full_strokes(host), "{} and {}", host.name, own.name);
            }
        }
        let by_fcfs = run(&mut drive(kind, "fcfs", "fcfs", 0), &arrivals).done;
        prop_assert_eq!(run(&mut drive(kind, "fcfs", "fcfs", 32), &arrivals).done, by_fcfs);
    }

    #[test]
    fn nothing_is_lost_and_only_the_contiguous_is_merged(
        steps in prop::collection::vec((0u8..3, 0u64..40, 1u32..9, 0u8..8, 0u64..200), 1..300),
    ) {
        for row in SCHEDULERS {
            let mut queue = build(row);
            let (mut waiting, mut now, mut parts) = (BTreeMap::new(), Nanos::ZERO, Vec::new());
            for (index, &(what, place, sectors, kind, pause)) in steps.iter().enumerate() {
                now += ms(pause);
                if what > 0 {
                    let (write, prefetch) = (kind % 4 == 0, kind % 4 == 1);
                    let process = (kind > 3).then_some(u32::from(kind));
                    let tag = index as u64;
                    let queued = queued(now, Request { sector: place * 4, sectors, write, prefetch, process, tag });
                    queue.push(queued);
                    waiting.insert(queued.sequence, queued);
                } else if let Next::Serve(whole) | Next::ServeAfter(_, whole) =
                    queue.pop(now, &Arm::default(), &mut parts)
                {
                    check_given(&whole, &parts, &mut waiting)?;
                    parts.clear();
                    queue.completed(now, &whole);
                }
                prop_assert_eq!(queue.len(), waiting.len());
            }
            // After an hour no request waits any more.
            for _ in 0..waiting.len() * 2 + 1 {
                now += ms(3_600_000);
                if let Next::Serve(whole) | Next::ServeAfter(_, whole) = queue.pop(now, &Arm::default(), &mut parts) {
                    check_given(&whole, &parts, &mut waiting)?;
                    parts.clear();
                    queue.completed(now, &whole);
                }
            }
            prop_assert!(waiting.is_empty() && queue.is_empty(), "{}: {} left", row.name, waiting.len());
        }
    }
}

/// Only the scheduler that feeds the device moves the arm: with a command queue the host's full stroke is not made.
fn full_strokes(row: &SchedulerRow) -> bool {
    row.keys.defaults().get("full_stroke").and_then(toml::Value::as_bool) == Some(true)
}

#[test]
fn a_drive_by_hand() {
    // 2 ms each. At 0: sectors 80 and 40; at 1 ms: 0. The 80 is started at once; CSCAN continues above it, then
    // restarts: 0, then 40.
    let mut drive = Drive::new(uniform(2), scheduler("cscan"));
    let arrivals =
        [(ms(0), Request::read(80, 8, 0)), (ms(0), Request::read(40, 8, 1)), (ms(1), Request::read(0, 8, 2))];
    let Outcome { done, busy, end, .. } = run(&mut drive, &arrivals);
    let order: Vec<(u64, Nanos, Nanos)> =
        done.iter().map(|(at, each)| (each.request.sector, *at, each.response_time)).collect();
    assert_eq!(order, [(80, ms(2), ms(2)), (0, ms(4), ms(3)), (40, ms(6), ms(6))]);
    assert_eq!((busy, end), (ms(6), ms(6)));
    let sums = drive.statistics(ms(10));
    assert_eq!((sums.queue_ns, sums.response_ns), (5_000_000, 11_000_000));
    assert_eq!((sums.service, sums.busy), (ms(6), ms(6)));
    // One request is present all the time, another one up to 4 ms and a third from 1 to 4 ms.
    assert_eq!((sums.areas.present_ns, sums.areas.serving_ns), (11_000_000, 6_000_000));
}

/// First come, first served, with an error.
struct Faulty {
    queue: Vec<Queued>,
    wrong: fn(&mut Vec<Queued>),
}

impl Scheduler for Faulty {
    fn push(&mut self, queued: Queued) {
        self.queue.insert(0, queued);
        (self.wrong)(&mut self.queue);
    }

    fn pop(&mut self, _now: Nanos, _device: &dyn headstart_device::Device, _parts: &mut Vec<Queued>) -> Next {
        self.queue.pop().map_or(Next::Nothing, Next::Serve)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}

/// The laws detect what nothing else does: a request that ends with another one's times.
#[test]
fn a_faulty_scheduler_breaks_a_law() {
    let laws = |wrong: fn(&mut Vec<Queued>)| {
        let mut drive = Drive::new(uniform(2), Box::new(Faulty { queue: Vec::new(), wrong }));
        let mut now = ms(0);
        for tag in 0..6 {
            drive.submit(ms(tag), Request::read(0, 8, tag));
        }
        now += ms(6);
        while let Started::Ends(end) = drive.start(now) {
            now = end;
            drive.finish(now, |_| {});
        }
        drive.statistics(now).check(now, 1)
    };
    assert_eq!(laws(|_| {}), Ok(()));
    // Each gets the arrival time of the first.
    let alike = laws(|queue| {
        let first = queue.last().map_or(ms(0), |queued| queued.arrived);
        queue[0].arrived = first;
    });
    assert!(alike.unwrap_err().starts_with("Little's law of the drive"));
}

/// 3000 random reads of 4 KiB over a whole Cheetah 9LP, 32 outstanding at any time: mean service and seek times.
fn saturated(host: &str, commands: Option<(&str, u32)>) -> (Nanos, Nanos) {
    let mut drive = Drive::new(device(4), scheduler(host));
    if let Some((own, depth)) = commands {
        drive = drive.with_commands(CommandQueue::new(scheduler(own), depth));
    }
    let blocks = drive.device().capacity_sectors().unwrap() / 8;
    let (mut state, mut now) = (1u64, Nanos::ZERO);
    for tag in 0..3000 {
        // Knuth's MMIX generator.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        drive.submit(now, Request::read((state >> 33) % blocks * 8, 8, tag));
        if drive.outstanding() == 32 {
            let Started::Ends(end) = drive.start(now) else { panic!("one at a time, always") };
            now = end;
            drive.finish(now, |_| {});
        }
    }
    let sums = drive.statistics(now);
    (Nanos(sums.service.0 / sums.requests), Nanos(sums.seek.0 / sums.requests))
}

/// What the literature agrees on (Seltzer, Chen and Ousterhout 1990; Worthington, Ganger and Patt 1994): with a
/// deep queue SPTF beats what orders by seek, that beats FCFS; and where the queue is does not matter to FCFS.
#[test]
fn the_order_of_schedulers_on_a_cheetah() {
    let service = |host: &str| saturated(host, None).0 .0 as f64 / 1e6;
    let (fcfs, sstf, sptf) = (service("fcfs"), service("sstf"), service("sptf"));
    for by_place in ["sstf", "scan", "look", "cscan", "clook", "deadline"] {
        assert!(service(by_place) < 0.9 * fcfs, "{by_place}: {} and {fcfs} ms", service(by_place));
    }
    assert!(sptf < 0.9 * sstf, "{sptf} and {sstf} ms");
    // The arm of SCAN goes to the edges and LOOK's does not.
    let (scan, look) = (saturated("scan", None), saturated("look", None));
    assert!(scan.1 > look.1 && scan.0 > look.0, "{scan:?} and {look:?}");
    // SPTF in the drive behind FCFS: the deeper the better, and 32 deep as good as in the host.
    let depth = |depth: u32| saturated("fcfs", Some(("sptf", depth))).0 .0 as f64 / 1e6;
    assert!(depth(32) < depth(4) && depth(4) < depth(1));
    assert!((depth(1) - fcfs).abs() < 1e-9 && (depth(32) - sptf).abs() < 0.01 * sptf, "{} and {sptf}", depth(32));
}

#[test]
fn a_command_queue_by_hand() {
    // The arm of the tests: a microsecond a sector to move, ten to read. Host FCFS, drive SSTF, four commands.
    // All come at 0: 9000 is started at once (end 9010); in the drive then 100, 8000, 200; 9500 waits in the host.
    // At 9010 there is room for 9500 (490 away), which beats 8000 (1010): end 9510. Room for nothing more.
    // Then 8000 (1510 back): end 11,030; 200 (7810): end 18,850; 100 (110): 18,970.
    let mut drive = drive(3, "fcfs", "sstf", 4);
    let arrivals = [9000, 100, 8000, 200, 9500].map(|sector| (Nanos::ZERO, Request::read(sector, 10, sector)));
    let Outcome { done, .. } = run(&mut drive, &arrivals);
    let order: Vec<(u64, Nanos)> = done.iter().map(|(at, each)| (each.request.sector, *at)).collect();
    let expected = [(9000, 9010), (9500, 9510), (8000, 11_030), (200, 18_850), (100, 18_970)];
    assert_eq!(order, expected.map(|(sector, end)| (sector, us(end))));
}

#[test]
fn commands_are_handed_over_as_soon_as_there_is_room() {
    // Host SSTF, drive FCFS, two commands. 5000 is started; 4000 comes and is handed over at once, although 5100,
    // which comes later, is nearer when 5000 has ended: FCFS keeps it. Without a command queue 5100 goes first.
    let arrivals = [(us(0), 5000), (us(1), 4000), (us(2), 5100)].map(|(at, to)| (at, Request::read(to, 10, to)));
    let order = |depth: u32| -> Vec<u64> {
        let outcome = run(&mut drive(3, "sstf", "fcfs", depth), &arrivals);
        outcome.done.iter().map(|(_, each)| each.request.sector).collect()
    };
    assert_eq!(order(2), [5000, 4000, 5100]);
    assert_eq!(order(0), [5000, 5100, 4000]);
}

#[test]
fn a_command_queue_bounds_what_a_wide_device_serves() {
    // Three channels, 100 us each. With two commands: 0 and 1 end at 100 us, 2 and 3 at 200.
    let arrivals = [0, 1, 2, 3].map(|tag| (Nanos::ZERO, Request::read(tag * 200, 100, tag)));
    let ends = |depth: u32| -> Vec<Nanos> {
        let drive = Drive::new(Box::new(Wide { head: 0 }), scheduler("fcfs"));
        let outcome = run(&mut drive.with_commands(CommandQueue::new(scheduler("fcfs"), depth)), &arrivals);
        outcome.done.iter().map(|(at, _)| *at).collect()
    };
    assert_eq!(ends(2), [us(100), us(100), us(200), us(200)]);
    assert_eq!(ends(1), [us(100), us(200), us(300), us(400)]);
    assert_eq!(ends(32), [us(100), us(100), us(100), us(200)]);
}

#[test]
#[should_panic(expected = "finish is called at the end that start returned")]
fn finishing_too_early_is_a_bug_of_the_host() {
    let mut drive = Drive::new(uniform(2), scheduler("fcfs"));
    drive.submit(Nanos::ZERO, Request::read(0, 8, 0));
    drive.start(Nanos::ZERO);
    drive.finish(Nanos::from_millis(1), |_| {});
}
