//! Schedulers that only order by position: by hand, and compared with models that look at everything that waits.

use headstart_device::{build_scheduler, Device, Drive, Next, Queued, Request, Scheduler, Stroke};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

use crate::queueing;
use crate::queueing::{ms, pop, queued, run, scheduler, scheduler_with, uniform, us, Arm};

fn fill(queue: &mut dyn Scheduler, sectors: &[u64]) {
    for (sequence, &sector) in sectors.iter().enumerate() {
        queue.push(queued(Nanos::ZERO, Request::read(sector, 8, sequence as u64)));
    }
}

/// The sectors of a queue in the order in which it gives them up; the head stays where it is.
fn drain(queue: &mut dyn Scheduler, device: &dyn Device) -> Vec<u64> {
    std::iter::from_fn(|| pop(queue, device)).map(|queued| queued.request.sector).collect()
}

#[test]
fn fcfs_keeps_the_order_of_arrival() {
    let mut queue = scheduler("fcfs");
    fill(&mut *queue, &[50, 10, 90, 50, 30]);
    assert_eq!(drain(&mut *queue, &*uniform(1)), [50, 10, 90, 50, 30]);
}

#[test]
fn cscan_and_clook_sweep_upward_and_start_again() {
    for name in ["cscan", "clook"] {
        let mut queue = scheduler(name);
        fill(&mut *queue, &[50, 10, 90, 50, 30]);
        assert_eq!(drain(&mut *queue, &*uniform(1)), [10, 30, 50, 50, 90]);
        // The sweep is at 90: 95 is above it, the others are in the next sweep.
        fill(&mut *queue, &[40, 95, 20]);
        assert_eq!(drain(&mut *queue, &*uniform(1)), [95, 20, 40]);
    }
}

#[test]
fn look_turns_at_the_last_request() {
    let mut queue = scheduler("look");
    fill(&mut *queue, &[50, 10, 90, 30]);
    assert_eq!(drain(&mut *queue, &*uniform(1)), [10, 30, 50, 90]);
    // At 90, going up: 95 is ahead, then downward.
    fill(&mut *queue, &[40, 95, 20, 60]);
    assert_eq!(drain(&mut *queue, &*uniform(1)), [95, 60, 40, 20]);
    // At 20, going down: 20 again and 10, then upward.
    fill(&mut *queue, &[30, 10, 20]);
    assert_eq!(drain(&mut *queue, &*uniform(1)), [20, 10, 30]);
}

/// Serves what waits at 0 on the tests' arm (a microsecond per sector); returns (sector, end in us, seek sum in us).
fn serve_all(queue: Box<dyn Scheduler>, sectors: &[u64]) -> (Vec<(u64, u64)>, u64) {
    let arrivals: Vec<(Nanos, Request)> =
        (0..).zip(sectors).map(|(tag, &sector)| (Nanos::ZERO, Request::read(sector, 10, tag))).collect();
    let mut drive = Drive::new(Box::new(Arm::default()), queue);
    let outcome = run(&mut drive, &arrivals);
    let order = outcome.done.iter().map(|(at, each)| (each.request.sector, at.0 / 1000)).collect();
    (order, drive.statistics(outcome.end).seek.0 / 1000)
}

#[test]
fn full_strokes_go_to_the_edges() {
    // The first is served at once: 500 us there, 10 to read; the head is at 510. Then the queue is sorted.
    // look: 990 to 1500 and 10 to read (end 1510); turn; 1410 back to 100, 10 to read: end 2930.
    let sectors = [500, 1500, 100];
    assert_eq!(serve_all(scheduler("look"), &sectors), (vec![(500, 510), (1500, 1510), (100, 2930)], 2900));
    // scan: from 1510 to the last sector, 119,999, and back to 100: 118,489 + 119,899 more than nothing.
    let end = 1510 + 118_489 + 119_899 + 10;
    assert_eq!(serve_all(scheduler("scan"), &sectors), (vec![(500, 510), (1500, 1510), (100, end)], end - 30));
    assert_eq!(
        serve_all(scheduler_with("scan", "full_stroke = false"), &sectors),
        serve_all(scheduler("look"), &sectors)
    );
    // cscan with full strokes: to the last sector, to the first, to 100.
    let end = 1510 + 118_489 + 119_999 + 100 + 10;
    let full = scheduler_with("cscan", "full_stroke = true");
    assert_eq!(serve_all(full, &sectors), (vec![(500, 510), (1500, 1510), (100, end)], end - 30));
    assert_eq!(serve_all(scheduler("cscan"), &sectors), serve_all(scheduler("clook"), &sectors));
    // A device without a capacity and an arm ignores it.
    let mut drive = Drive::new(uniform(2), scheduler("scan"));
    let arrivals = [500, 100].map(|sector| (Nanos::ZERO, Request::read(sector, 8, sector)));
    assert_eq!(run(&mut drive, &arrivals).end, ms(4));
}

#[test]
fn sstf_takes_the_nearest() {
    // Head at 500. Distances: 300 -> 200, 700 -> 200, 550 -> 50, 460 -> 40.
    let mut queue = scheduler("sstf");
    fill(&mut *queue, &[300, 700, 550, 460]);
    let mut device = Arm { head: 500 };
    let mut order = Vec::new();
    while let Some(next) = pop(&mut *queue, &device) {
        device.serve(Nanos::ZERO, &next.request);
        order.push(next.request.sector);
    }
    // 460 (head 468), 550 (82 away; head 558), then 700 (142) before 300 (258).
    assert_eq!(order, [460, 550, 700, 300]);
    // A tie, 40 below and 40 above, goes to the earlier; so do equal sectors on either side.
    fill(&mut *queue, &[540, 460, 460, 540]);
    let tags: Vec<u64> =
        std::iter::from_fn(|| pop(&mut *queue, &Arm { head: 500 })).map(|queued| queued.request.tag).collect();
    assert_eq!(tags, [0, 1, 2, 3]);
}

#[test]
fn sptf_takes_what_comes_under_the_head_first_and_age_counts() {
    let start = |keys: &str| {
        let mut queue = scheduler_with("sptf", keys);
        queue.push(queued(Nanos::ZERO, Request::read(5000, 8, 0)));
        queue.push(queued(ms(10), Request::read(1000, 8, 1)));
        queue
    };
    let first = |mut queue: Box<dyn Scheduler>, at: Nanos| match queue.pop(at, &Arm::default(), &mut Vec::new()) {
        Next::Serve(queued) => queued.request.sector,
        other => panic!("{other:?}"),
    };
    // From 0 the way to 5000 takes 5 ms, to 1000 1 ms, at any time.
    assert_eq!(first(start(""), ms(1000)), 1000);
    // 5 - w * 10 against 1 - w * 0 at 10 ms: equal at w = 0.4, and the earlier wins a tie.
    assert_eq!(first(start("age_weight = 0.399"), ms(10)), 1000);
    assert_eq!(first(start("age_weight = 0.4"), ms(10)), 5000);
    // The difference of their waits stays 10 ms.
    assert_eq!(first(start("age_weight = 0.399"), ms(1000)), 1000);
    assert_eq!(first(start("age_weight = 1"), ms(1000)), 5000);
}

#[test]
fn wrong_keys_are_refused() {
    for (name, keys, begins) in [
        ("sptf", "age_weight = -1", "age_weight: -1 is out of range; allowed: a number from 0 to 1000"),
        ("sptf", "age_weight = nan", "age_weight: nan is out of range"),
        ("sptf", "age_weight = '1ms'", "age_weight: \"1ms\" is a string; allowed: a number"),
        ("sptf", "weight = 1", "weight: unknown key; allowed: age_weight"),
        ("scan", "full_stroke = 1", "full_stroke: 1 is a number; allowed: true or false"),
        ("cscan", "merge = true", "merge: unknown key; allowed: full_stroke"),
        ("look", "full_stroke = true", "full_stroke: unknown key; allowed: no keys"),
        ("clook", "full_stroke = true", "full_stroke: unknown key; allowed: no keys"),
        ("sstf", "x = 1", "x: unknown key; allowed: no keys"),
    ] {
        let error = build_scheduler(name, keys.parse().unwrap()).err().unwrap().to_string();
        assert!(error.starts_with(begins), "{error:?} should begin with {begins:?}");
    }
}

/// The choice of a scheduler, found by looking at everything that waits.
#[derive(Default)]
struct Naive {
    /// First sector served last.
    position: u64,
    down: bool,
}

impl Naive {
    fn choose(&mut self, name: &str, now: Nanos, device: &Arm, waiting: &[Queued]) -> Option<(usize, Option<Stroke>)> {
        let least = |cost: &dyn Fn(&Queued) -> f64| {
            let cost = |index: &usize| (cost(&waiting[*index]), waiting[*index].sequence);
            (0..waiting.len()).min_by(|a, b| cost(a).partial_cmp(&cost(b)).unwrap())
        };
        let place = |queued: &Queued| queued.request.sector as f64;
        let at = self.position as f64;
        let again = 1e9;
        let mut stroke = None;
        let index = match name {
            "fcfs" => least(&|queued| queued.sequence as f64),
            "sstf" => least(&|queued| (place(queued) - device.head as f64).abs()),
            "sptf" => least(&|queued| device.positioning(now, &queued.request).0 as f64),
            "sptf aged" => least(&|queued| {
                let age = (now - queued.arrived).0 as f64;
                device.positioning(now, &queued.request).0 as f64 - age / 2.0
            }),
            "cscan" | "clook" | "cscan full" => {
                let index = least(&|queued| if place(queued) < at { again + place(queued) } else { place(queued) })?;
                if name == "cscan full" && waiting[index].request.sector < self.position {
                    stroke = Some(Stroke::ToEndAndStart);
                }
                Some(index)
            }
            "scan" | "look" => {
                let ahead = |queued: &Queued, down: bool| (place(queued) - at) * if down { -1.0 } else { 1.0 };
                if !waiting.is_empty() && waiting.iter().all(|queued| ahead(queued, self.down) < 0.0) {
                    let edge = if self.down { Stroke::ToStart } else { Stroke::ToEnd };
                    stroke = (name == "scan").then_some(edge);
                    self.down = !self.down;
                }
                let down = self.down;
                least(&|queued| if ahead(queued, down) < 0.0 { again } else { ahead(queued, down) })
            }
            other => panic!("give {other} a naive model"),
        }?;
        self.position = waiting[index].request.sector;
        Some((index, stroke))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_orders_as_its_naive_model(
        steps in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..60), 1..300),
    ) {
        for (name, row, keys) in [
            ("fcfs", "fcfs", ""),
            ("sstf", "sstf", ""),
            ("sptf", "sptf", ""),
            ("sptf aged", "sptf", "age_weight = 0.5"),
            ("scan", "scan", ""),
            ("look", "look", ""),
            ("cscan", "cscan", ""),
            ("cscan full", "cscan", "full_stroke = true"),
            ("clook", "clook", ""),
        ] {
            let mut queue = scheduler_with(row, keys);
            let (mut device, mut naive) = (Arm::default(), Naive::default());
            let (mut waiting, mut now): (Vec<Queued>, Nanos) = (Vec::new(), Nanos::ZERO);
            for (index, &(push, sector, pause)) in steps.iter().enumerate() {
                now += us(pause);
                if push {
                    let queued = queued(now, Request::read(sector, 8, index as u64));
                    queue.push(queued);
                    waiting.push(queued);
                } else {
                    let expected = match naive.choose(name, now, &device, &waiting) {
                        None => Next::Nothing,
                        Some((index, stroke)) => {
                            let queued = waiting.remove(index);
                            stroke.map_or(Next::Serve(queued), |stroke| Next::ServeAfter(stroke, queued))
                        }
                    };
                    let next = queue.pop(now, &device, &mut Vec::new());
                    prop_assert_eq!(next, expected, "{}", name);
                    if let Next::Serve(queued) | Next::ServeAfter(_, queued) = next {
                        device.serve(now, &queued.request);
                    }
                }
                prop_assert_eq!(queue.len(), waiting.len());
                prop_assert_eq!(queue.is_empty(), waiting.is_empty());
            }
        }
    }

    /// With weight w no request is overtaken by one that arrived later by more than the longest positioning time / w.
    #[test]
    fn the_weight_of_age_bounds_sptf(arrivals in queueing::arrivals(150), tenths in 1u64..30) {
        let weight = scheduler_with("sptf", &format!("age_weight = {}", tenths as f64 / 10.0));
        let mut drive = Drive::new(Box::new(Arm::default()), weight);
        let outcome = run(&mut drive, &arrivals);
        let bound = Nanos(Arm::POSITIONING_MAX.0 * 10 / tenths);
        for (index, (_, later)) in outcome.done.iter().enumerate() {
            for (_, sooner) in &outcome.done[..index] {
                prop_assert!(sooner.arrived <= later.arrived + bound);
            }
        }
    }
}

#[test]
fn every_key_of_the_registry_has_a_default_that_builds() {
    for row in headstart_device::SCHEDULERS {
        let defaults = row.keys.defaults();
        assert!((row.build)(defaults.clone()).unwrap().is_empty(), "{}", row.name);
        for (key, value) in &defaults {
            let alone = Table::from_iter([(key.clone(), value.clone())]);
            assert!((row.build)(alone).is_ok(), "{}: {key} alone", row.name);
        }
    }
}
