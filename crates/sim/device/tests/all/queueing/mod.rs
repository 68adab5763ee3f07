//! Devices and a host for tests of schedulers and drives.

#![allow(dead_code)] // Each test file uses its part.

use headstart_device::{
    build_device, build_scheduler, CommandQueue, Device, Drive, Finished, Next, Queued, Request, Scheduler, Service,
    Started,
};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

pub fn scheduler(name: &str) -> Box<dyn Scheduler> {
    scheduler_with(name, "")
}

pub fn scheduler_with(name: &str, keys: &str) -> Box<dyn Scheduler> {
    build_scheduler(name, keys.parse().unwrap()).unwrap()
}

pub fn uniform(ms: u64) -> Box<dyn Device> {
    build_device("uniform", format!("fetch_time = '{ms}ms'").parse().unwrap()).unwrap()
}

pub const fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

pub const fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

/// A request in a queue, numbered by its tag.
pub fn queued(at: Nanos, request: Request) -> Queued {
    Queued { request, arrived: at, sequence: request.tag }
}

/// The next request of a scheduler that never waits, merges or strokes.
pub fn pop(queue: &mut dyn Scheduler, device: &dyn Device) -> Option<Queued> {
    let mut parts = Vec::new();
    let next = queue.pop(Nanos::ZERO, device, &mut parts);
    assert!(parts.is_empty());
    match next {
        Next::Serve(queued) => Some(queued),
        Next::Nothing => None,
        other => panic!("{other:?}"),
    }
}

/// An arm over 120,000 sectors that takes a microsecond per sector to move and to read; one request at a time.
#[derive(Clone, Default)]
pub struct Arm {
    pub head: u64,
}

impl Arm {
    pub const SECTORS: u64 = 120_000;

    /// No positioning takes longer.
    pub const POSITIONING_MAX: Nanos = us(Self::SECTORS);
}

impl Device for Arm {
    fn serve(&mut self, now: Nanos, request: &Request) -> Service {
        assert!(request.end() <= Self::SECTORS);
        let seek = self.positioning(now, request);
        self.head = request.end();
        let transfer = us(request.sectors.into());
        let [rotation, overhead, wait] = [Nanos::ZERO; 3];
        Service { end: now + seek + transfer, seek, rotation, transfer, overhead, wait, buffer_hit: false }
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(Self::SECTORS)
    }

    fn least_service(&self, sectors: u32) -> Nanos {
        us(sectors.into())
    }

    fn nominal_service(&self) -> Nanos {
        us(40_000)
    }

    fn head_sector(&self) -> u64 {
        self.head
    }

    fn positioning(&self, _now: Nanos, request: &Request) -> Nanos {
        us(self.head.abs_diff(request.sector))
    }

    fn travel(&mut self, now: Nanos, sector: u64) -> Nanos {
        let there = now + us(self.head.abs_diff(sector));
        self.head = sector;
        there
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }
}

/// A device with three concurrent requests, each taking as many microseconds as it has sectors.
#[derive(Clone)]
pub struct Wide {
    pub head: u64,
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

/// How many kinds of devices there are.
pub const KINDS: usize = 6;

/// One device of each kind.
pub fn device(kind: usize) -> Box<dyn Device> {
    let named = |name: &str| build_device(name, Table::new()).unwrap();
    match kind {
        0 => named("hp97560"),
        4 => named("seagate-cheetah-9lp"),
        5 => named("nvme"),
        1 => uniform(3),
        2 => Box::new(Wide { head: 0 }),
        _ => Box::new(Arm::default()),
    }
}

/// A drive: a device kind, the host's scheduler, and a command queue where `depth` is not 0.
pub fn drive(kind: usize, host: &str, own: &str, depth: u32) -> Drive {
    let drive = Drive::new(device(kind), scheduler(host));
    match depth {
        0 => drive,
        depth => drive.with_commands(CommandQueue::new(scheduler(own), depth)),
    }
}

/// The outcome of a run.
pub struct Outcome {
    /// With their instants.
    pub done: Vec<(Nanos, Finished)>,
    /// Time with something in service.
    pub busy: Nanos,
    /// When the last ended.
    pub end: Nanos,
    /// The longest uninterrupted time in which requests waited and none was in service.
    pub idle_max: Nanos,
}

/// Runs arrivals (time, request) through a drive. Asserts at every event that time does not decrease, that the drive's
/// busy time equals ours, that the operational laws hold up to then, and that each waiting request is either served or
/// deliberately delayed.
pub fn run(drive: &mut Drive, arrivals: &[(Nanos, Request)]) -> Outcome {
    let (mut ends, mut next, mut wake): (Vec<Nanos>, usize, Option<Nanos>) = (Vec::new(), 0, None);
    let mut outcome = Outcome { done: Vec::new(), busy: Nanos::ZERO, end: Nanos::ZERO, idle_max: Nanos::ZERO };
    let mut idle_since = None;
    let concurrency = drive.device().concurrency();
    let mut present_ns = 0;
    loop {
        ends.sort_unstable_by(|a, b| b.cmp(a));
        let arrival = arrivals.get(next).map(|arrival| arrival.0);
        let Some(then) = ends.last().copied().into_iter().chain(arrival).chain(wake).min() else { break };
        outcome.busy += if ends.is_empty() { Nanos::ZERO } else { then - outcome.end };
        let sums = drive.statistics(then);
        assert_eq!(sums.busy, outcome.busy, "busy is clipped at the instant asked about");
        present_ns += (next - outcome.done.len()) as u64 * (then - outcome.end).0;
        assert_eq!(sums.areas.present_ns, present_ns, "what has come and not ended, integrated over time");
        assert_eq!(sums.check(then, concurrency), Ok(()));
        outcome.end = then;
        if ends.last() == Some(&then) {
            ends.pop();
            drive.finish(then, |finished| outcome.done.push((then, finished)));
        } else if arrival == Some(then) {
            drive.submit(then, arrivals[next].1);
            next += 1;
        }
        wake = loop {
            match drive.start(then) {
                Started::Ends(end) => {
                    assert!(end >= then);
                    ends.push(end);
                }
                Started::Wakes(at) => {
                    assert!(at > then);
                    break Some(at);
                }
                Started::Nothing => break None,
            }
        };
        assert_eq!(drive.outstanding() as usize, next - outcome.done.len());
        assert_eq!(drive.is_busy(), !ends.is_empty());
        assert!(drive.is_busy() || drive.outstanding() == 0 || wake.is_some(), "forgotten requests");
        let idle = !drive.is_busy() && drive.outstanding() > 0;
        idle_since = idle.then(|| idle_since.unwrap_or(then));
        outcome.idle_max = outcome.idle_max.max(idle_since.map_or(Nanos::ZERO, |since| then - since));
        if let (Some(since), Some(at)) = (idle_since, wake) {
            let until = ends.iter().copied().chain(arrivals.get(next).map(|arrival| arrival.0)).min();
            outcome.idle_max = outcome.idle_max.max(until.unwrap_or(at).min(at) - since);
        }
    }
    outcome
}

/// Up to `count` requests of several processes: bursts and pauses, some contiguous, some writes, some prefetches.
pub fn arrivals(count: usize) -> impl Strategy<Value = Vec<(Nanos, Request)>> {
    let one = (0u64..3, 0u64..30_000_000, 0u64..440, 1u32..40, 0u8..8, 0u32..4);
    prop::collection::vec(one, 0..count).prop_map(|list| {
        let (mut now, mut last) = (Nanos::ZERO, [0; 4]);
        let mut all = Vec::with_capacity(list.len());
        for (tag, (gap, pause, place, sectors, kind, process)) in list.into_iter().enumerate() {
            now += Nanos(if gap == 0 { pause } else { 0 });
            // Half of them continue where the process's last one ended.
            let place = if kind % 2 == 0 { place * 256 } else { last[process as usize] };
            let sector = place.min(Arm::SECTORS - 40);
            last[process as usize] = sector + u64::from(sectors);
            let process = (process < 3).then_some(process);
            let (write, prefetch) = (kind / 2 == 3, kind / 2 == 2);
            all.push((now, Request { sector, sectors, write, prefetch, process, tag: tag as u64 }));
        }
        all
    })
}
