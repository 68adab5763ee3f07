//! A reader that computes between its steps, in front of a source with latency and a rate, in simulated time: bytes beside
//! the optimum, and stall. The same for the policy `headstart-store`, which differs in what the reader holds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use headstart_engine::{Ask, Backend, IoRequest, Level};
use headstart_policy::readahead::Asked;
use headstart_policy::registry::{policy, Context, REPLACEMENTS};
use headstart_policy::{Hints, NoSpace};
use headstart_types::{Block, Nanos, TypedKeys};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::optimum::Reads;

const MS: u64 = 1_000_000;
const REQUESTS: usize = 64;
const STEP_BYTES: u64 = 2 << 20;
const COMPUTE: u64 = 125 * MS;
/// The first steps fill the cache.
const COLD: usize = 64;

/// What is read in each step, and the size of an item.
struct Workload {
    steps: Vec<Vec<u32>>,
    item_bytes: u64,
}

impl Workload {
    fn span(&self, item: u32) -> Span {
        Span { object: item, start: 0, end: self.item_bytes }
    }
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

/// What stands between the reader and the source.
trait Cache {
    /// What happens next at `now`: returns the bytes of each request that leaves.
    fn act(&mut self, now: Nanos) -> Vec<u64>;
    /// The answer to a request, counted in the order in which they left, begins after `took`; later it is whole.
    fn begins(&mut self, request: usize, took: Nanos);
    fn arrived(&mut self, request: usize, now: Nanos);
    /// The reader asks for items at once; it reads on once it has them all, and then lets go of them.
    fn ask(&mut self, items: &[u32], now: Nanos);
    fn is_waiting(&mut self) -> bool;
    fn let_go(&mut self);
    fn fetched_bytes(&self) -> u64;
}

struct Own {
    shelf: Shelf,
    item_bytes: u64,
    requests: Vec<(Vec<SegmentId>, bool)>,
    parts: Vec<Part>,
}

impl Own {
    fn new(workload: &Workload, memory_bytes: u64) -> Self {
        let mut shelf = Shelf::new(Limits { memory_bytes, spill_bytes: 0, requests: REQUESTS });
        shelf.disclose(0, &workload.steps.iter().flatten().map(|item| workload.span(*item)).collect::<Vec<_>>());
        Self { shelf, item_bytes: workload.item_bytes, requests: Vec::new(), parts: Vec::new() }
    }
}

impl Cache for Own {
    fn act(&mut self, _now: Nanos) -> Vec<u64> {
        self.shelf.act();
        let mut bytes = Vec::new();
        for action in self.shelf.take_actions() {
            if let Action::Fetch { segments, demand } = action {
                bytes.push(segments.iter().map(|id| self.shelf.span(*id).bytes()).sum());
                self.requests.push((segments, demand));
            }
        }
        bytes
    }

    fn begins(&mut self, _request: usize, took: Nanos) {
        self.shelf.begins(took);
    }

    fn arrived(&mut self, request: usize, _now: Nanos) {
        let (segments, demand) = std::mem::take(&mut self.requests[request]);
        segments.iter().for_each(|id| self.shelf.arrived(*id, true, false));
        self.shelf.request_ended(demand);
    }

    fn ask(&mut self, items: &[u32], now: Nanos) {
        for item in items {
            let span = Span { object: *item, start: 0, end: self.item_bytes };
            self.parts.extend(self.shelf.request(span, now).expect("it fits"));
        }
    }

    fn is_waiting(&mut self) -> bool {
        self.parts.iter().any(|part| self.shelf.of(part.segment).state != State::Here)
    }

    fn let_go(&mut self) {
        self.parts.drain(..).for_each(|part| self.shelf.release(part.segment));
    }

    fn fetched_bytes(&self) -> u64 {
        self.shelf.totals.fetched_bytes
    }
}

/// The policy in the simulator: a block for each item, none beside another.
struct Simulated {
    level: Level,
    item_bytes: u64,
    orders: Orders,
    begun: Vec<Nanos>,
    read: u32,
    is_waiting: bool,
}

/// The blocks of each order.
#[derive(Default)]
struct Orders(Vec<Vec<Block>>);

impl Backend for Orders {
    fn issue(&mut self, _now: Nanos, order: IoRequest<'_>) -> u32 {
        self.0.push(order.blocks.to_vec());
        1
    }
}

fn block(item: u32) -> Block {
    Block(2 * item)
}

impl Simulated {
    fn new(workload: &Workload, memory_bytes: u64) -> Self {
        let blocks: Arc<[Block]> = workload.steps.iter().flatten().map(|item| block(*item)).collect();
        let count = blocks.iter().max().map_or(0, |last| last.index() + 1);
        let frames = (memory_bytes / Place::bytes_of(workload.item_bytes)) as u32;
        let context = Context {
            hints: Some(Arc::new(Hints::all(blocks))),
            whole: true,
            concurrency: REQUESTS as u32,
            block_transfer: Nanos::ZERO,
            ..Context::plain(REPLACEMENTS[0], frames, Vec::new(), count)
        };
        let row = policy("headstart-store").expect("its row");
        let policy = row.build(&TypedKeys::new(()), &context).expect("it has no keys");
        Self {
            level: Level::new(policy, frames, &[], &context.disk_of, 1),
            item_bytes: workload.item_bytes,
            orders: Orders::default(),
            begun: Vec::new(),
            read: 0,
            is_waiting: false,
        }
    }
}

impl Cache for Simulated {
    fn act(&mut self, now: Nanos) -> Vec<u64> {
        if self.level.wants_to_decide() {
            self.level.decide(now, None, &NoSpace, &mut self.orders);
        }
        let known = self.begun.len();
        self.begun.resize(self.orders.0.len(), Nanos::ZERO);
        self.orders.0[known..].iter().map(|blocks| blocks.len() as u64 * self.item_bytes).collect()
    }

    fn begins(&mut self, request: usize, took: Nanos) {
        self.begun[request] = took;
    }

    fn arrived(&mut self, request: usize, now: Nanos) {
        for block in &self.orders.0[request] {
            self.level.arrived(now, *block, Some(self.begun[request]), &NoSpace);
        }
    }

    fn ask(&mut self, items: &[u32], now: Nanos) {
        let blocks: Vec<Block> = items.iter().map(|item| block(*item)).collect();
        let asked = Asked { file: 0, first: 0, count: items.len() as u32, client: 0, ends_inside: false };
        let (position, compute) = (self.read, Nanos(COMPUTE));
        let ask = Ask { id: 0, asked, blocks: &blocks, write: false, quiet: false, position, compute };
        self.read += items.len() as u32;
        self.is_waiting = self.level.request(now, &ask, &NoSpace, &mut self.orders).waits();
    }

    fn is_waiting(&mut self) -> bool {
        let mut done = Vec::new();
        self.level.take_done(&mut done);
        self.is_waiting &= done.is_empty();
        self.is_waiting
    }

    fn let_go(&mut self) {}

    fn fetched_bytes(&self) -> u64 {
        self.level.counts().fetches() * self.item_bytes
    }
}

struct Timed<C> {
    cache: C,
    random: ChaCha8Rng,
    supply: Supply,
    now: u64,
    link_free: u64,
    /// First bytes and last bytes to come: time, number.
    events: BinaryHeap<Reverse<(u64, usize, bool)>>,
    /// Bytes of the requests.
    requests: Vec<u64>,
}

impl<C: Cache> Timed<C> {
    /// One of 50 answers takes the long time.
    fn first_byte(&mut self) -> u64 {
        let factor: f64 = self.random.random_range(0.7..1.3);
        let is_late = self.random.random_range(0..50) == 0;
        let of = if is_late { self.supply.tail } else { self.supply.median };
        (of as f64 * factor) as u64
    }

    fn act(&mut self) {
        for bytes in self.cache.act(Nanos(self.now)) {
            let took = self.first_byte();
            self.cache.begins(self.requests.len(), Nanos(took));
            self.events.push(Reverse((self.now + took, self.requests.len(), false)));
            self.requests.push(bytes);
        }
    }

    /// Lets time pass until `until`, or until the next answer is complete.
    fn pass(&mut self, until: u64) {
        while let Some(Reverse((at, number, is_whole))) = self.events.peek().copied().filter(|each| each.0 .0 <= until)
        {
            self.events.pop();
            self.now = at;
            if !is_whole {
                let rate = STEP_BYTES as f64 * self.supply.share / COMPUTE as f64;
                self.link_free = self.link_free.max(at) + (self.requests[number] as f64 / rate) as u64;
                self.events.push(Reverse((self.link_free, number, true)));
                continue;
            }
            self.cache.arrived(number, Nanos(at));
            self.act();
            return;
        }
        self.now = until;
    }
}

/// Bytes by the optimum, the share of the time after the cold steps that the reader computes.
fn run(workload: &Workload, memory_bytes: u64, supply: Supply, cache: impl Cache) -> (f64, f64) {
    let mut world = Timed {
        cache,
        random: ChaCha8Rng::seed_from_u64(1),
        supply,
        now: 0,
        link_free: 0,
        events: BinaryHeap::new(),
        requests: Vec::new(),
    };
    world.act();
    let mut reads = Reads::default();
    let (mut begun, count) = (0, workload.steps.len() * 3 / 5);
    for (number, step) in workload.steps[..count].iter().enumerate() {
        begun = if number == COLD { world.now } else { begun };
        step.iter().for_each(|item| reads.note(workload.span(*item)));
        world.cache.ask(step, Nanos(world.now));
        world.act();
        while world.cache.is_waiting() {
            world.pass(u64::MAX - 1);
        }
        let end = world.now + COMPUTE;
        while world.now < end {
            world.pass(end);
        }
        world.cache.let_go();
        world.act();
    }
    let least = reads.optimum(memory_bytes).expect("few reads");
    let computed = (count - COLD) as u64 * COMPUTE;
    (world.cache.fetched_bytes() as f64 / least as f64, computed as f64 / (world.now - begun) as f64)
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
fn a_reader_rarely_waits_and_little_is_fetched_twice_by_the_store_and_by_its_policy() {
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
            let (times, busy) = run(&workload, memory_bytes, supply, Own::new(&workload, memory_bytes));
            assert!(times < 1.04, "{name}: {times:.3} of the optimum, at {}", supply.share);
            assert!(busy > least, "{name}: computes {busy:.4} of the time, at {}", supply.share);
            let policy = Simulated::new(&workload, memory_bytes);
            let (policy_times, policy_busy) = run(&workload, memory_bytes, supply, policy);
            let (more, longer) = (policy_times / times - 1.0, busy / policy_busy - 1.0);
            assert!(more.abs() < 0.015, "{name}: {more:+.4} of the bytes by the policy, at {}", supply.share);
            assert!(longer.abs() < 0.02, "{name}: {longer:+.4} of the time by the policy, at {}", supply.share);
        }
    }
}
