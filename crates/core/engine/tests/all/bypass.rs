//! Requests that bypass a level's policy, worked by hand: the policy sees nothing of them, and the level counts them.

use std::sync::{Arc, Mutex};

use headstart_engine::{Ask, Backend, IoRequest, Kind, Level};
use headstart_policy::readahead::{Amp, Asked, Cached, Found, Obl, Run, When};
use headstart_policy::replacement::Lru;
use headstart_policy::{BlockMap, ReadAhead, RequestPolicy, SeparateReadAhead};
use headstart_types::{Block, Disk, Nanos};

/// One file of 100 blocks on one disk; a block's number is its index.
pub struct Line;

impl BlockMap for Line {
    fn block(&self, _: u32, index: u64) -> Option<Block> {
        (index < 100).then_some(Block(index as u32))
    }

    fn known(&self, file: u32, index: u64) -> Option<Block> {
        self.block(file, index)
    }

    fn place(&self, block: Block) -> (u32, u64) {
        (0, u64::from(block.0))
    }

    fn file_blocks(&self, _: u32) -> Option<u64> {
        Some(100)
    }

    fn disk(&self, _: Block) -> Disk {
        Disk(0)
    }

    fn blocks(&self) -> usize {
        100
    }
}

/// Orders as "demand 3..5".
#[derive(Default)]
struct Orders(Vec<String>);

impl Backend for Orders {
    fn issue(&mut self, _: Nanos, order: IoRequest<'_>) -> u32 {
        let kind = if order.kind == Kind::Demand { "demand" } else { "prefetch" };
        let first = order.blocks[0].0;
        self.0.push(format!("{kind} {first}..{}", first + order.blocks.len() as u32));
        1
    }
}

/// What a read-ahead was notified of: how blocks were found, and which were evicted unused.
type Told = Arc<Mutex<Vec<String>>>;

/// Reads one block ahead of every request; records its notifications.
struct Watch(Told);

impl ReadAhead for Watch {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        self.0.lock().unwrap().push(format!("{} {found:?}", asked.first));
        prefetch.push(Run::between(asked.file, asked.end(), asked.end() + 1));
    }

    fn evicted(&mut self, _: u32, index: u64, unused: bool) {
        self.0.lock().unwrap().push(format!("{index} leaves{}", if unused { " unused" } else { "" }));
    }
}

fn blocks(first: u64, count: u32) -> Vec<Block> {
    (first as u32..first as u32 + count).map(Block).collect()
}

struct Host {
    level: Level,
    orders: Orders,
    done: Vec<u64>,
    now: u64,
}

impl Host {
    fn new(frames: u32, read_ahead: impl ReadAhead + 'static) -> Self {
        let parts = SeparateReadAhead(Box::new(Lru::new(&[], 100)), Some(Box::new(read_ahead)));
        let policy = Box::new(RequestPolicy::new(Box::new(parts), frames));
        let level = Level::new(policy, frames, &[], &[Disk(0); 100], 1);
        Self { level, orders: Orders::default(), done: Vec::new(), now: 0 }
    }

    fn watched(frames: u32) -> (Self, Told) {
        let told = Told::default();
        (Self::new(frames, Watch(told.clone())), told)
    }

    /// A request that the policy sees; returns the orders that it causes. `id` is its first block.
    fn request(&mut self, first: u64, count: u32) -> Vec<String> {
        self.ask(first, count, false)
    }

    fn ask(&mut self, first: u64, count: u32, quiet: bool) -> Vec<String> {
        self.now += 1;
        let asked = Asked { file: 0, first, count, client: 0, ends_inside: false };
        let position = headstart_types::NEVER;
        let blocks = blocks(first, count);
        let ask = Ask { id: first, asked, blocks: &blocks, write: false, quiet, position, compute: Nanos::ZERO };
        let looked = self.level.request(Nanos(self.now), &ask, &Line, &mut self.orders);
        self.done.extend((!looked.waits()).then_some(first));
        self.level.take_done(&mut self.done);
        std::mem::take(&mut self.orders.0)
    }

    /// A request that bypasses the policy, at the instant of the previous one if `at_once`; `id` is 1000 + its first
    /// block.
    fn bypass(&mut self, first: u64, count: u32) -> Vec<String> {
        self.now += 1;
        let (id, blocks) = (1000 + first, blocks(first, count));
        let looked = self.level.bypass(Nanos(self.now), (id, 0), &blocks, Kind::Demand, &Line, &mut self.orders);
        self.done.extend((!looked.waits()).then_some(id));
        self.level.take_done(&mut self.done);
        std::mem::take(&mut self.orders.0)
    }

    /// Blocks arrive; returns the requests that this finishes, and the orders that follow.
    fn arrive(&mut self, blocks: &[u32]) -> (Vec<u64>, Vec<String>) {
        self.now += 1;
        for block in blocks {
            self.level.arrived(Nanos(self.now), Block(*block), Some(Nanos(1)), &Line);
        }
        self.level.decide(Nanos(self.now), None, &Line, &mut self.orders);
        self.level.take_done(&mut self.done);
        (std::mem::take(&mut self.done), std::mem::take(&mut self.orders.0))
    }
}

const NONE: [String; 0] = [];

#[test]
fn of_a_quiet_request_the_read_ahead_hears_nothing_and_the_replacement_all() {
    let (mut host, told) = Host::watched(2);
    assert_eq!(host.ask(10, 1, true), ["demand 10..11"]);
    host.arrive(&[10]);
    assert_eq!(host.ask(20, 1, true), ["demand 20..21"]);
    host.arrive(&[20]);
    // A quiet hit makes 10 the most recently used, so that 20 is the victim.
    assert_eq!(host.ask(10, 1, true), NONE);
    assert_eq!(host.ask(30, 1, true), ["demand 30..31"]);
    host.arrive(&[30]);
    assert_eq!(*told.lock().unwrap(), ["20 leaves"]);
    assert_eq!(host.ask(10, 1, true), NONE);
}

#[test]
fn a_block_that_passes_makes_no_stream_sequential() {
    // PFC lets block 0 of a request for 0 and 1 bypass. AMP prefetches if the block before a miss is cached: 0 is not,
    // as it bypasses. Once 1 is cached, 2 is a sequential miss, and its request of one block prefetches one.
    let mut host = Host::new(10, Amp::new(10, 4, 256));
    assert_eq!(host.bypass(0, 1), ["demand 0..1"]);
    assert_eq!(host.request(1, 1), ["demand 1..2"]);
    assert_eq!(host.arrive(&[0, 1]), (vec![1000, 1], vec![]));
    assert_eq!(host.request(2, 1), ["demand 2..4"]);
}

#[test]
fn a_silent_hit_leaves_the_tag_of_a_prefetch() {
    // One block lookahead, tagged: 0 brings 1. A request for 1 bypasses: a silent hit, the prefetch has paid. The first
    // request for 1 that the policy sees is the first reference to a prefetched block: it brings 2. The next does not.
    let mut host = Host::new(10, Obl::new(When::Tagged));
    assert_eq!(host.request(0, 1), ["demand 0..2"]);
    host.arrive(&[0, 1]);
    assert_eq!(host.bypass(1, 1), NONE);
    let counts = host.level.counts().clone();
    assert_eq!((counts.silent_hits, counts.prefetches_used), (1, 1));
    assert_eq!(host.request(1, 1), ["prefetch 2..3"]);
    assert_eq!(host.request(1, 1), NONE);
    assert_eq!(host.level.counts().prefetches_used, 1);
}

#[test]
fn a_silent_wait_for_a_prefetch_tells_nothing_either() {
    // 0 brings 1, which a bypassing request needs while it is in flight: late, and used once.
    let (mut host, told) = Host::watched(10);
    host.request(0, 1);
    assert_eq!(host.bypass(1, 1), NONE);
    assert_eq!(host.arrive(&[0, 1]).0, [0, 1001]);
    host.request(1, 1);
    assert_eq!(*told.lock().unwrap(), ["0 [Absent]", "1 [ReadyPrefetched]"]);
    let counts = host.level.counts();
    assert_eq!((counts.hits_unready, counts.prefetches_used, counts.prefetches_late), (1, 1, 1));
}

#[test]
fn what_only_bypassing_requests_have_used_leaves_unused_for_the_policy_and_as_the_oldest() {
    // Three frames: 10 and 11 arrive before 0. A silent hit on 11 and a silent wait change no recency: for 50 and 51 10
    // leaves, then 11, though 0 came after them. The policy believes that nothing has used 11; the level knows better.
    let (mut host, told) = Host::watched(3);
    host.request(10, 1);
    assert_eq!(host.bypass(11, 1), NONE);
    host.arrive(&[10, 11]);
    host.bypass(11, 1);
    host.request(98, 1);
    host.arrive(&[98]);
    host.request(97, 1);
    let told = told.lock().unwrap();
    assert_eq!(told[..3], ["10 [Absent]", "98 [Absent]", "10 leaves"]);
    assert!(told.contains(&"11 leaves unused".to_string()), "{told:?}");
    let counts = host.level.counts();
    assert_eq!((counts.prefetches_used, counts.silent_hits, counts.hits_unready), (1, 1, 1));
}

#[test]
fn a_passing_block_that_the_policy_asks_for_is_stored_and_not_fetched_twice() {
    let (mut host, told) = Host::watched(10);
    assert_eq!(host.bypass(7, 1), ["demand 7..8"]);
    assert!(host.level.is_cached(Block(7)), "a coordinator counts what is on its way");
    assert_eq!(host.request(7, 1), ["prefetch 8..9"]);
    assert_eq!(host.arrive(&[7, 8]).0, [1007, 7]);
    assert!(host.level.state(Block(7)).is_resident());
    assert_eq!(*told.lock().unwrap(), ["7 [Absent]"]);
    let counts = host.level.counts();
    assert_eq!((counts.misses, counts.demand_fetches, counts.bypass_fetches, counts.prefetches), (2, 1, 1, 1));
}

#[test]
fn a_prefetch_of_a_passing_block_stores_it_too() {
    let (mut host, told) = Host::watched(10);
    assert_eq!(host.bypass(8, 1), ["demand 8..9"]);
    assert_eq!(host.request(7, 1), ["demand 7..8"]);
    assert_eq!(host.arrive(&[7, 8]).0, [7, 1008]);
    // Fetched once, for the bypassing request; the policy sees a request for its own prefetch.
    host.request(8, 1);
    assert_eq!(*told.lock().unwrap(), ["7 [Absent]", "8 [ReadyPrefetched]"]);
    let counts = host.level.counts();
    assert_eq!((counts.demand_fetches, counts.prefetches, counts.prefetches_used), (2, 1, 0));
}

#[test]
fn a_request_that_waits_for_a_frame_goes_on_waiting_when_its_block_passes() {
    // One frame, for 0. 7 bypasses; the policy requests 7, too, and has no frame for it. When 7 comes, the bypassing
    // request is done; the other gets it from a fetch of its own, once 0 has come.
    let mut host = Host::new(1, Obl::new(When::Miss));
    host.request(0, 1);
    assert_eq!(host.bypass(7, 1), ["demand 7..8"]);
    assert_eq!(host.request(7, 1), NONE);
    assert_eq!(host.arrive(&[7]), (vec![1007], vec![]));
    assert_eq!(host.arrive(&[0]), (vec![0], vec!["demand 7..8".to_string()]));
    assert_eq!(host.arrive(&[7]).0, [7]);
    let counts = host.level.counts();
    assert_eq!((counts.misses, counts.demand_fetches, counts.bypass_fetches), (3, 3, 1));
}

#[test]
fn prefetches_may_leave_apart_from_demands() {
    // A request for 0 and 1 and what is read ahead of it, 2, are one order, or one for each kind.
    for (separate, orders) in [(false, vec!["demand 0..3"]), (true, vec!["demand 0..2", "prefetch 2..3"])] {
        let (mut host, _) = Host::watched(10);
        if separate {
            host.level.separate_prefetches();
        }
        assert_eq!(host.request(0, 2), orders);
    }
}
