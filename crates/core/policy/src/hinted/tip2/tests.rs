//! Worked by hand: which buffer is taken, and what is prefetched in its place.

use std::sync::Arc;

use headstart_types::{Disk, Meetings, Outcome, Program};

use super::*;
use crate::registry::replacement;
use crate::row::Context;
use crate::{BlockState, Disclosure, Hints, NoSpace};
use headstart_types::NEVER;

/// A level without time; the test ends fetches explicitly.
struct Host {
    policy: Box<dyn Policy>,
    states: Vec<BlockState>,
    free: u32,
    cursor: Position,
}

impl Host {
    /// T_hit 0, T_driver 1, T_disk 4: P = 4, and the device serves any number at once. Process 0 gives hints, process 1
    /// does not.
    fn new(frames: u32, hinted: &[u32], keys: &str) -> Self {
        let blocks: Arc<[Block]> = hinted.iter().map(|block| Block(*block)).collect();
        let end = blocks.len() as Position;
        let program = Program {
            blocks: blocks.clone(),
            string_ends: [end].into(),
            portion_ends: [end].into(),
            string_of: vec![0; 2].into(),
            regular: true,
            meetings: Meetings::AtEnd,
        };
        let context = Context {
            hints: Some(Arc::new(Hints { blocks, disclosure: Disclosure::All })),
            program: Some(Arc::new(program)),
            disclosed_by: vec![(0..end).collect(), Vec::new()].into(),
            nominal_service: Nanos(4),
            driver: Nanos(1),
            concurrency: u32::MAX,
            ..Context::plain(replacement("lru").unwrap(), frames, Vec::new(), 64)
        };
        assert_eq!(context.disk_of[0], Disk(0));
        let mut policy = ROW.build(&ROW.keys.read(keys.parse().unwrap()).unwrap(), &context).unwrap();
        policy.grow(64);
        Self { policy, states: vec![BlockState::ABSENT; 64], free: frames, cursor: 0 }
    }

    fn tell(&mut self, event: Event, asked: &[Block], found: &[Found]) -> Vec<(u32, Option<u32>)> {
        let mut fetches = Vec::new();
        let view = View {
            cursor: self.cursor,
            free: self.free,
            blocks: &self.states,
            outstanding: &[0],
            disk_of: &[Disk(0); 64],
            space: &NoSpace,
            asked,
            found,
        };
        self.policy.on(Nanos::ZERO, event, &view, &mut fetches);
        for Fetch { block, victim } in &fetches {
            assert!(self.states[block.index()].is_absent());
            match victim {
                Some(victim) => {
                    assert!(self.states[victim.index()].is_evictable());
                    self.states[victim.index()] = BlockState::ABSENT;
                }
                None => self.free -= 1,
            }
            self.states[block.index()] = BlockState::in_flight(true);
        }
        fetches.iter().map(|fetch| (fetch.block.0, fetch.victim.map(|victim| victim.0))).collect()
    }

    fn decide(&mut self) -> Vec<(u32, Option<u32>)> {
        self.tell(Event::Decide, &[], &[])
    }

    fn arrive(&mut self, block: u32) {
        self.states[block as usize] = self.states[block as usize].arrived();
        self.tell(Event::Arrived { block: Block(block), disk: Disk(0), service: Some(Nanos(4)) }, &[], &[]);
    }

    fn serve(&mut self, position: Position, block: u32) {
        let process = u32::from(position == NEVER);
        self.cursor = if position == NEVER { self.cursor } else { position + 1 };
        let (block, outcome, compute) = (Block(block), Outcome::HitReady, Nanos::ZERO);
        self.tell(Event::Served { position, block, outcome, compute, process }, &[], &[]);
    }

    /// Process 1 reads `block` without a hint; returns the victim, if it was absent.
    fn read(&mut self, block: u32) -> Option<Option<u32>> {
        let mut victim = None;
        if self.states[block as usize].is_absent() {
            let asked =
                crate::readahead::Asked { file: 0, first: block.into(), count: 1, client: 1, ends_inside: false };
            let event = Event::Asked { asked, position: NEVER, write: false };
            let fetches = self.tell(event, &[Block(block)], &[Found::Absent]);
            assert_eq!(fetches.len(), 1);
            assert_eq!(fetches[0].0, block);
            victim = Some(fetches[0].1);
            self.arrive(block);
        }
        self.serve(NEVER, block);
        victim
    }
}

/// P = 4: blocks 0 to 3 are at most 3 ahead, 4 is 4 ahead, 5 is not within the horizon.
#[test]
fn free_frames_are_prefetched_into_up_to_the_horizon() {
    let mut host = Host::new(20, &[0, 1, 2, 3, 4, 5, 6], "");
    assert_eq!(host.decide().iter().map(|fetch| fetch.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    (0..5).for_each(|block| host.arrive(block));
    assert!(host.decide().is_empty());
    host.serve(0, 0);
    assert_eq!(host.decide(), [(5, None)]);
}

#[test]
fn a_horizon_may_be_given() {
    let mut host = Host::new(20, &[0, 1, 2, 3, 4, 5, 6], "horizon = 1");
    assert_eq!(host.decide(), [(0, None), (1, None)]);
}

/// Blocks that have been used and will not be used again are evicted before all others.
#[test]
fn spent_blocks_go_first() {
    let mut host = Host::new(3, &[0, 1, 2, 9, 9, 9, 9], "");
    assert_eq!(host.decide(), [(0, None), (1, None), (2, None)]);
    (0..3).for_each(|block| host.arrive(block));
    host.serve(0, 0);
    assert_eq!(host.decide(), [(9, Some(0))]);
}

/// Process 1 reads 20 again and again, at depth 1: its buffer saves a miss of 5 for nearly each of its references. The
/// loop of the hints needs block 0 again in 8 references, which costs 1 / (8 - 4): that one goes.
#[test]
fn a_block_in_demand_is_kept_and_a_hinted_one_far_ahead_goes() {
    let mut host = Host::new(5, &[0, 1, 2, 3, 4, 5, 6, 7, 0], "");
    assert_eq!(host.read(20), Some(None));
    for _ in 0..20 {
        assert_eq!(host.read(20), None);
    }
    assert_eq!(host.decide(), [(0, None), (1, None), (2, None), (3, None)]);
    (0..4).for_each(|block| host.arrive(block));
    host.serve(0, 0);
    // 4 is 3 ahead and would gain 4/2 - 4/3 of the rate 2/23; block 0, 7 ahead then, costs 1 / (7 - 4) of it.
    assert_eq!(host.decide(), [(4, Some(0))]);
}

/// The same with a block that was read once and never again: evicting it is not known to cost anything.
#[test]
fn a_block_without_reuse_goes_before_a_hinted_one() {
    let mut host = Host::new(5, &[0, 1, 2, 3, 4, 5, 6, 7, 0], "");
    assert_eq!(host.read(20), Some(None));
    assert_eq!(host.decide(), [(0, None), (1, None), (2, None), (3, None), (4, Some(20))]);
}

/// Half of four frames: prefetching takes at most two from the LRU cache, and does not evict blocks that are needed
/// soon.
#[test]
fn fixed_partitions_keep_their_share() {
    let mut host = Host::new(4, &[0, 1, 2, 3, 4], "partition = 0.5");
    for block in [20, 21, 22, 23] {
        assert_eq!(host.read(block), Some(None));
    }
    assert_eq!(host.decide(), [(0, Some(20)), (1, Some(21))]);
    host.arrive(0);
    host.arrive(1);
    assert!(host.decide().is_empty());
    // A fifth unhinted block takes the place of an unhinted one.
    assert_eq!(host.read(24), Some(Some(22)));
}

/// Without hints, all references are handled by LRU.
#[test]
fn without_hints_it_is_lru() {
    let mut host = Host::new(3, &[], "");
    for (block, victim) in [(0, None), (1, None), (2, None), (3, Some(0)), (4, Some(1)), (2, None), (5, Some(3))] {
        let read = host.read(block);
        assert_eq!(read.flatten(), victim, "{block}");
    }
}
