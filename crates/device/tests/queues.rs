//! Every scheduler of the registry, and the drive around it, under random load and by hand.

use std::collections::BTreeMap;

use headstart_device::{
    build_device, build_scheduler, Device, Drive, Finished, Next, Queued, Request, Scheduler, Service, Started,
    SCHEDULERS,
};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

fn scheduler(name: &str) -> Box<dyn Scheduler> {
    build_scheduler(name, Table::new()).unwrap()
}

fn uniform(ms: u64) -> Box<dyn Device> {
    build_device("uniform", format!("fetch_time = '{ms}ms'").parse().unwrap()).unwrap()
}

/// What a scheduler gives up next, of those that never wait or merge.
fn pop(queue: &mut dyn Scheduler, device: &dyn Device) -> Option<Queued> {
    let mut parts = Vec::new();
    let next = queue.pop(Nanos::ZERO, device, &mut parts);
    assert!(parts.is_empty());
    match next {
        Next::Serve(queued) => Some(queued),
        Next::Nothing => None,
        other => panic!("{other:?}"),
    }
}

/// The sectors of a queue in the order in which it gives them up.
fn drain(queue: &mut dyn Scheduler) -> Vec<u64> {
    let device = uniform(1);
    std::iter::from_fn(|| pop(queue, &*device)).map(|queued| queued.request.sector).collect()
}

fn fill(queue: &mut dyn Scheduler, sectors: &[u64]) {
    for (sequence, &sector) in sectors.iter().enumerate() {
        queue.push(Queued {
            request: Request::read(sector, 8, sequence as u64),
            arrived: Nanos::ZERO,
            sequence: sequence as u64,
        });
    }
}

#[test]
fn cscan_sweeps_upward_and_starts_again() {
    let mut queue = scheduler("cscan");
    fill(&mut *queue, &[50, 10, 90, 50, 30]);
    assert_eq!(drain(&mut *queue), [10, 30, 50, 50, 90]);
    // The sweep stands at 90: 95 is above it, the others are for the next.
    fill(&mut *queue, &[40, 95, 20]);
    assert_eq!(drain(&mut *queue), [95, 20, 40]);
}

#[test]
fn fcfs_keeps_the_order_of_arrival() {
    let mut queue = scheduler("fcfs");
    fill(&mut *queue, &[50, 10, 90, 50, 30]);
    assert_eq!(drain(&mut *queue), [50, 10, 90, 50, 30]);
}

/// What a scheduler should choose, by looking at everything that waits. Position: first sector served last.
fn naive_choice(name: &str, waiting: &[Queued], position: u64) -> usize {
    let chosen = match name {
        "fcfs" => waiting.iter().enumerate().min_by_key(|(_, queued)| queued.sequence),
        "cscan" => waiting.iter().enumerate().min_by_key(|(_, queued)| {
            let sector = queued.request.sector;
            (sector < position, sector, queued.sequence)
        }),
        other => panic!("give {other} a naive model"),
    };
    chosen.unwrap().0
}

/// A device that serves three at once, each for as many microseconds as it has sectors.
#[derive(Clone)]
struct Wide {
    head: u64,
}

impl Device for Wide {
    fn serve(&mut self, now: Nanos, request: &Request) -> Service {
        self.head = request.end();
        let transfer = self.least_service(request.sectors);
        let [seek, rotation, overhead, wait] = [Nanos::ZERO; 4];
        Service { end: now + transfer, seek, rotation, transfer, overhead, wait, buffer_hit: false }
    }

    fn capacity_sectors(&self) -> Option<u64> {
        None
    }

    fn least_service(&self, sectors: u32) -> Nanos {
        Nanos::from_micros(sectors.into())
    }

    fn nominal_service(&self) -> Nanos {
        Nanos::from_micros(8)
    }

    fn concurrency(&self) -> u32 {
        3
    }

    fn head_sector(&self) -> u64 {
        self.head
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }
}

/// Runs arrivals (time, request) through a drive; gives the completions with their instants and the time spent
/// with something outstanding. Asserts at every event that no request waits while the device has room.
fn run(drive: &mut Drive, arrivals: &[(Nanos, Request)]) -> (Vec<(Nanos, Finished)>, Nanos, Nanos) {
    let concurrency = drive.device().concurrency();
    let (mut ends, mut next): (Vec<Nanos>, usize) = (Vec::new(), 0);
    let (mut done, mut busy, mut now) = (Vec::new(), Nanos::ZERO, Nanos::ZERO);
    loop {
        ends.sort_unstable_by(|a, b| b.cmp(a));
        let arrival = arrivals.get(next).map(|arrival| arrival.0);
        let Some(then) = ends.last().copied().into_iter().chain(arrival).min() else { break };
        busy += if ends.is_empty() { Nanos::ZERO } else { then - now };
        assert_eq!(drive.statistics(then).busy, busy, "busy is clipped at the instant asked about");
        now = then;
        if ends.last() == Some(&now) {
            ends.pop();
            drive.finish(now, |finished| done.push((now, finished)));
        } else {
            drive.submit(now, arrivals[next].1);
            next += 1;
        }
        while let Started::Ends(end) = drive.start(now) {
            assert!(end >= now);
            ends.push(end);
        }
        assert_eq!(drive.outstanding().min(concurrency), ends.len() as u32, "work conserving");
        assert_eq!(drive.is_busy(), !ends.is_empty());
    }
    (done, busy, now)
}

fn arrivals() -> impl Strategy<Value = Vec<(Nanos, Request)>> {
    let one = (0u64..3, 0u64..30_000_000, 0u64..400, 1u32..40);
    prop::collection::vec(one, 0..120).prop_map(|list| {
        let mut now = Nanos::ZERO;
        let arrive = |(index, (gap, pause, place, sectors)): (usize, (u64, u64, u64, u32))| {
            now += Nanos(if gap == 0 { pause } else { 0 });
            (now, Request::read(place * 256, sectors, index as u64))
        };
        list.into_iter().enumerate().map(arrive).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_scheduler_orders_as_its_naive_model(steps in prop::collection::vec((any::<bool>(), 0u64..60), 1..300)) {
        let device = uniform(1);
        for row in SCHEDULERS {
            let mut queue = (row.build)(Table::new()).unwrap();
            let (mut waiting, mut position): (Vec<Queued>, u64) = (Vec::new(), 0);
            for (index, &(push, sector)) in steps.iter().enumerate() {
                if push {
                    let sequence = index as u64;
                    let queued = Queued { request: Request::read(sector, 8, 0), arrived: Nanos::ZERO, sequence };
                    queue.push(queued);
                    waiting.push(queued);
                } else {
                    let expected =
                        (!waiting.is_empty()).then(|| waiting.remove(naive_choice(row.name, &waiting, position)));
                    prop_assert_eq!(pop(&mut *queue, &*device), expected);
                    position = expected.map_or(position, |queued| queued.request.sector);
                }
                prop_assert_eq!(queue.len(), waiting.len());
                prop_assert_eq!(queue.is_empty(), waiting.is_empty());
            }
        }
    }

    #[test]
    fn a_drive_completes_every_request_once_and_its_sums_agree(arrivals in arrivals()) {
        for row in SCHEDULERS {
            let devices: [Box<dyn Device>; 3] =
                [build_device("hp97560", Table::new()).unwrap(), uniform(3), Box::new(Wide { head: 0 })];
            for device in devices {
                let alone = device.concurrency() == 1;
                let mut drive = Drive::new(device, (row.build)(Table::new()).unwrap());
                let (done, busy, now) = run(&mut drive, &arrivals);
                let mut seen: BTreeMap<u64, Nanos> = BTreeMap::new();
                for (_, each) in &done {
                    prop_assert!(seen.insert(each.request.tag, each.arrived).is_none(), "completed twice");
                }
                let asked: BTreeMap<u64, Nanos> = arrivals.iter().map(|(at, request)| (request.tag, *at)).collect();
                prop_assert_eq!(seen, asked);

                let sums = drive.statistics(now);
                prop_assert_eq!(sums.requests, arrivals.len() as u64);
                prop_assert_eq!(sums.sectors, arrivals.iter().map(|(_, request)| u64::from(request.sectors)).sum::<u64>());
                prop_assert_eq!(sums.service, sums.seek + sums.rotation + sums.transfer + sums.overhead + sums.wait);
                prop_assert_eq!(sums.parts, sums.requests);
                prop_assert_eq!(sums.response, sums.queue + sums.service);
                prop_assert_eq!(sums.service, done.iter().map(|(_, each)| each.service_time).sum());
                prop_assert_eq!(sums.response, done.iter().map(|(at, each)| *at - each.arrived).sum());
                prop_assert_eq!(sums.buffer_hits, done.iter().filter(|(_, each)| each.buffer_hit).count() as u64);
                prop_assert_eq!(sums.busy, busy);
                prop_assert!(busy == sums.service || !alone && busy < sums.service);
            }
        }
    }
}

#[test]
fn a_drive_by_hand() {
    // 2 ms each. At 0: sectors 80 and 40; at 1 ms: 0. CSCAN serves 40, then 80, then 0.
    let ms = Nanos::from_millis;
    let mut drive = Drive::new(uniform(2), scheduler("cscan"));
    let arrivals =
        [(ms(0), Request::read(40, 8, 0)), (ms(0), Request::read(80, 8, 1)), (ms(1), Request::read(0, 8, 2))];
    let (done, busy, now) = run(&mut drive, &arrivals);
    let order: Vec<(u64, Nanos, Nanos)> =
        done.iter().map(|(at, each)| (each.request.sector, *at, each.response_time)).collect();
    assert_eq!(order, [(40, ms(2), ms(2)), (80, ms(4), ms(4)), (0, ms(6), ms(5))]);
    assert_eq!((busy, now), (ms(6), ms(6)));
    let sums = drive.statistics(ms(10));
    assert_eq!((sums.queue, sums.service, sums.response, sums.busy), (ms(5), ms(6), ms(11), ms(6)));
}

#[test]
#[should_panic(expected = "finish is called at the end that start returned")]
fn finishing_too_early_is_a_bug_of_the_host() {
    let mut drive = Drive::new(uniform(2), scheduler("fcfs"));
    drive.submit(Nanos::ZERO, Request::read(0, 8, 0));
    drive.start(Nanos::ZERO);
    drive.finish(Nanos::from_millis(1), |_| {});
}
