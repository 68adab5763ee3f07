//! A reader that computes between its steps, in front of a source with latency and a rate, in simulated time: bytes beside
//! the optimum, and stall.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstart_types::Nanos;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::optimum::Reads;

const MS: u64 = 1_000_000;
const STEP_BYTES: u64 = 2 << 20;
const COMPUTE: u64 = 125 * MS;
/// The first steps fill the cache.
const COLD: usize = 64;

/// What is read in each step, and the size of an item.
struct Workload {
    steps: Vec<Vec<u32>>,
    item_bytes: u64,
}

/// The source: the share of a step's bytes that it delivers within the time of a step, and its first bytes' times.
#[derive(Clone, Copy)]
struct Supply {
    share: f64,
    median: u64,
    tail: u64,
}

const AMPLE: Supply = Supply { share: 1.1, median: 100 * MS, tail: 400 * MS };
const THREE_QUARTERS: Supply = Supply { share: 0.75, median: 30 * MS, tail: 120 * MS };

struct Timed {
    shelf: Shelf,
    random: ChaCha8Rng,
    supply: Supply,
    now: u64,
    link_free: u64,
    /// First bytes and last bytes to come: time, number.
    events: BinaryHeap<Reverse<(u64, usize, bool)>>,
    requests: Vec<(Vec<SegmentId>, bool)>,
    recent: Vec<u64>,
}

impl Timed {
    /// One of 50 answers takes the long time.
    fn first_byte(&mut self) -> u64 {
        let factor: f64 = self.random.random_range(0.7..1.3);
        let is_late = self.random.random_range(0..50) == 0;
        let of = if is_late { self.supply.tail } else { self.supply.median };
        (of as f64 * factor) as u64
    }

    fn act(&mut self) {
        self.shelf.act();
        for action in self.shelf.take_actions() {
            if let Action::Fetch { segments, demand } = action {
                let took = self.first_byte();
                self.recent.push(took);
                if self.recent.len() == 64 {
                    self.recent.sort_unstable();
                    self.shelf.set_response(Nanos(self.recent[62]));
                    self.recent.clear();
                }
                self.events.push(Reverse((self.now + took, self.requests.len(), false)));
                self.requests.push((segments, demand));
            }
        }
    }

    /// Lets time pass until `until`, or until the next answer is complete.
    fn pass(&mut self, until: u64) {
        while let Some(Reverse((at, number, is_whole))) = self.events.peek().copied().filter(|each| each.0 .0 <= until)
        {
            self.events.pop();
            self.now = at;
            let (segments, demand) = self.requests[number].clone();
            if !is_whole {
                let bytes: u64 = segments.iter().map(|id| self.shelf.span(*id).bytes()).sum();
                let rate = STEP_BYTES as f64 * self.supply.share / COMPUTE as f64;
                self.link_free = self.link_free.max(at) + (bytes as f64 / rate) as u64;
                self.events.push(Reverse((self.link_free, number, true)));
                continue;
            }
            segments.iter().for_each(|id| self.shelf.arrived(*id, true, false));
            self.shelf.request_ended(demand);
            self.act();
            return;
        }
        self.now = until;
    }
}

/// Bytes by the optimum, the share of the time after the cold steps that the reader computes.
fn run(workload: &Workload, memory_bytes: u64, supply: Supply) -> (f64, f64) {
    let limits = Limits { memory_bytes, spill_bytes: 0, requests: 64 };
    let mut world = Timed {
        shelf: Shelf::new(limits),
        random: ChaCha8Rng::seed_from_u64(1),
        supply,
        now: 0,
        link_free: 0,
        events: BinaryHeap::new(),
        requests: Vec::new(),
        recent: Vec::new(),
    };
    let of = |item: &u32| Span { object: *item, start: 0, end: workload.item_bytes };
    let all: Vec<Span> = workload.steps.iter().flatten().map(of).collect();
    world.shelf.disclose(0, &all);
    world.act();
    let mut reads = Reads::default();
    let (mut begun, count) = (0, workload.steps.len() * 3 / 5);
    for (number, step) in workload.steps[..count].iter().enumerate() {
        begun = if number == COLD { world.now } else { begun };
        let mut parts = Vec::new();
        for item in step {
            reads.note(of(item));
            parts.extend(world.shelf.request(of(item), Nanos(world.now)).expect("it fits"));
        }
        world.act();
        while parts.iter().any(|part| world.shelf.of(part.segment).state != State::Here) {
            world.pass(u64::MAX - 1);
        }
        let end = world.now + COMPUTE;
        while world.now < end {
            world.pass(end);
        }
        parts.iter().for_each(|part| world.shelf.release(part.segment));
        world.act();
    }
    let least = reads.optimum(memory_bytes).expect("few reads");
    let computed = (count - COLD) as u64 * COMPUTE;
    (world.shelf.totals.fetched_bytes as f64 / least as f64, computed as f64 / (world.now - begun) as f64)
}

fn batches(order: Vec<u32>, count: usize) -> Vec<Vec<u32>> {
    order.chunks_exact(count).map(<[u32]>::to_vec).collect()
}

fn shuffled(count: u32, random: &mut ChaCha8Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    order.shuffle(random);
    order
}

#[test]
fn a_reader_rarely_waits_and_little_is_fetched_twice() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let images = (0..5).flat_map(|_| shuffled(1024, &mut random)).collect();
    let nodes = (0..5).flat_map(|_| shuffled(4096, &mut random).into_iter().step_by(4).collect::<Vec<_>>()).collect();
    let groups = shuffled(50 * 1024, &mut random).into_iter().map(|sample| sample / 50).take(16 * 320).collect();
    let starts = (0..2).flat_map(|_| shuffled(1021, &mut random));
    let windows = starts.flat_map(|start| start..start + 4).take(16 * 320).collect();
    let scan = (0..5).flat_map(|_| 0..195).collect();
    let of = |order, count| Workload { steps: batches(order, count), item_bytes: STEP_BYTES / count as u64 };
    let third = Supply { share: 1.0 / 3.0, ..THREE_QUARTERS };
    for (name, workload, share, least) in [
        ("one node", of(images, 16), 0.3, [0.99, 0.98, 0.69]),
        ("four nodes", of(nodes, 16), 0.5, [0.99, 0.98, 0.51]),
        ("row groups", of(groups, 16), 0.3, [0.99, 0.99, 0.98]),
        ("windows", of(windows, 16), 0.3, [0.99, 0.99, 0.96]),
        ("a scan", of(scan, 3), 0.3, [0.99, 0.98, 0.55]),
    ] {
        // And the bytes of 16 steps.
        let memory_bytes = (share * 64.0 * STEP_BYTES as f64) as u64 + 16 * STEP_BYTES;
        for (supply, least) in [AMPLE, THREE_QUARTERS, third].into_iter().zip(least) {
            let (times, busy) = run(&workload, memory_bytes, supply);
            assert!(times < 1.04, "{name}: {times:.3} of the optimum, at {}", supply.share);
            assert!(busy > least, "{name}: computes {busy:.4} of the time, at {}", supply.share);
        }
    }
}
