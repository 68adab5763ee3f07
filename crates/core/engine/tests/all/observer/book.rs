//! The observer's books. They are filled from the events between a level and its surroundings, and share no code with
//! the level: one record for each fetch, from which the counts are computed at the end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use headstart_engine::{Counts, Kind};
use headstart_policy::Fetch;
use headstart_types::Block;

/// Blocks of each file, which lies on one disk.
pub const FILE_BLOCKS: u32 = 16;

/// One stay of a block in the cache, from the decision to fetch it to its eviction.
#[derive(Debug, Clone, Copy, Default)]
struct Stay {
    at: u64,
    /// A process waited for it or had reached it when it was fetched; or it was not fetched but written, or there at
    /// the start.
    wanted: bool,
    allocated: bool,
    came: Option<u64>,
    service: u64,
    used: Option<u64>,
    /// It was on its way when it was first used.
    late: bool,
    /// Written before it was read.
    spoilt: bool,
    /// It was evicted, or overwritten, after a useless prefetch.
    in_vain: bool,
    left: bool,
}

impl Stay {
    fn is_unused_prefetch(&self) -> bool {
        !self.wanted && self.used.is_none() && !self.spoilt
    }
}

#[derive(Debug, Clone, Copy)]
struct Waiter {
    process: u32,
    /// When it came to a block on its way; `None` of a miss.
    hit_at: Option<u64>,
}

/// How many orders had how many blocks, by kind.
pub type Lengths = BTreeMap<(String, usize), u64>;

/// How a level that is watched makes orders.
#[derive(Debug, Clone, Copy)]
pub struct IssueMode {
    pub gathers: bool,
    pub order_max: usize,
    /// Blocks are handed over when they arrive; else when the process takes them.
    pub takes_requests: bool,
}

pub struct Book {
    what: String,
    mode: IssueMode,
    stays: Vec<Stay>,
    stay_of: BTreeMap<u32, usize>,
    waiting: BTreeMap<u32, Vec<Waiter>>,
    /// Absent blocks that are waited for in order to be written.
    unwritten: Vec<u32>,
    dirty: BTreeMap<u32, u64>,
    /// Evicted for a prefetch, and not requested since.
    made_way: BTreeSet<u32>,
    /// Decisions of the policy that the level has not carried out.
    pub decided: Vec<Fetch>,
    /// The level is about to carry that out.
    pub round: bool,
    pub at_hand: Option<u32>,
    expected: VecDeque<(Kind, Vec<u32>)>,
    pub orders_expected: Lengths,
    pub orders_seen: Lengths,
    /// Counted immediately; the rest follows from the stays.
    counts: Counts,
}

impl Book {
    pub fn new(what: &str, mode: IssueMode, initial: &[Block]) -> Self {
        let stay = Stay { wanted: true, allocated: true, came: Some(0), ..Stay::default() };
        Self {
            what: what.to_owned(),
            mode,
            stays: vec![stay; initial.len()],
            stay_of: initial.iter().enumerate().map(|(at, block)| (block.0, at)).collect(),
            waiting: BTreeMap::new(),
            unwritten: Vec::new(),
            dirty: BTreeMap::new(),
            made_way: BTreeSet::new(),
            decided: Vec::new(),
            round: false,
            at_hand: None,
            expected: VecDeque::new(),
            orders_expected: Lengths::new(),
            orders_seen: Lengths::new(),
            counts: Counts::default(),
        }
    }

    fn stay(&mut self, block: u32) -> Option<&mut Stay> {
        self.stay_of.get(&block).map(|at| &mut self.stays[*at]).filter(|stay| !stay.left)
    }

    /// A process is about to reference a block.
    pub fn referenced(&mut self, now: u64, process: u32, block: u32, write: bool) {
        self.counts.references += 1;
        self.counts.writes += u64::from(write);
        let waiters = self.waiting.get(&block).map_or(&[][..], Vec::as_slice);
        let for_others = !waiters.is_empty() && waiters.iter().all(|waiter| waiter.process != process);
        let hit_at = match self.stay(block) {
            None => {
                self.counts.misses += 1;
                self.counts.pollution += u64::from(self.made_way.remove(&block));
                if write {
                    self.counts.write_misses += 1;
                    self.unwritten.push(block);
                }
                None
            }
            Some(stay) if stay.came.is_some() => {
                if write && stay.is_unused_prefetch() {
                    (stay.spoilt, stay.in_vain) = (true, true);
                }
                if stay.is_unused_prefetch() {
                    stay.used = Some(now);
                }
                self.counts.hits_ready += 1;
                return;
            }
            Some(stay) => {
                let this_instant = stay.at == now && !stay.allocated;
                stay.spoilt |= write && stay.is_unused_prefetch() && !this_instant;
                let hit = for_others || !this_instant;
                if hit && stay.is_unused_prefetch() {
                    (stay.used, stay.late) = (Some(now), true);
                } else if !hit && stay.is_unused_prefetch() {
                    stay.wanted = true;
                }
                self.counts.hits_unready += u64::from(hit);
                self.counts.misses += u64::from(!hit);
                hit.then_some(now)
            }
        };
        self.waiting.entry(block).or_default().push(Waiter { process, hit_at });
    }

    /// Carries out the policy's decisions: determines the orders that follow from them.
    fn settle(&mut self, now: u64) {
        self.round = false;
        let mut order: Option<(Kind, Vec<u32>)> = None;
        for Fetch { block, victim } in std::mem::take(&mut self.decided) {
            let block = block.0;
            assert!(self.stay(block).is_none(), "{block} is fetched while it is there");
            let to_write = self.unwritten.iter().position(|other| *other == block);
            to_write.map(|at| self.unwritten.remove(at));
            let allocated = to_write.is_some();
            let is_waited_for = self.waiting.get(&block).is_some_and(|waiters| !waiters.is_empty());
            let wanted = allocated || is_waited_for || self.at_hand == Some(block);
            if let Some(victim) = victim {
                self.counts.evictions += 1;
                let stay = self.stay(victim.0).expect("a victim is there");
                stay.in_vain |= stay.is_unused_prefetch();
                stay.left = true;
                if wanted {
                    self.made_way.remove(&victim.0);
                } else {
                    self.made_way.insert(victim.0);
                }
                if self.dirty.remove(&victim.0).is_some() {
                    self.expect(Kind::Write, vec![victim.0]);
                }
            }
            self.stay_of.insert(block, self.stays.len());
            self.stays.push(Stay { at: now, wanted, allocated, ..Stay::default() });
            if allocated {
                self.expect(Kind::Allocate, vec![block]);
                continue;
            }
            let kind = if wanted { Kind::Demand } else { Kind::Prefetch };
            if !self.mode.gathers {
                self.expect(kind, vec![block]);
                continue;
            }
            let order_max = self.mode.order_max;
            let joins = |blocks: &Vec<u32>| {
                blocks.len() < order_max && blocks.last() == Some(&(block.wrapping_sub(1))) && block % FILE_BLOCKS != 0
            };
            match &mut order {
                Some((whole, blocks)) if joins(blocks) => {
                    blocks.push(block);
                    *whole = if kind == Kind::Demand { kind } else { *whole };
                }
                _ => {
                    order.replace((kind, vec![block])).into_iter().for_each(|(kind, blocks)| self.expect(kind, blocks));
                }
            }
        }
        order.into_iter().for_each(|(kind, blocks)| self.expect(kind, blocks));
    }

    fn expect(&mut self, kind: Kind, blocks: Vec<u32>) {
        *self.orders_expected.entry((format!("{kind:?}"), blocks.len())).or_default() += 1;
        self.counts.blocks_written += if kind == Kind::Write { blocks.len() as u64 } else { 0 };
        self.expected.push_back((kind, blocks));
    }

    /// The level has given an order.
    pub fn ordered(&mut self, now: u64, kind: Kind, blocks: &[Block]) {
        if self.round {
            self.settle(now);
        }
        *self.orders_seen.entry((format!("{kind:?}"), blocks.len())).or_default() += 1;
        let expected = self.expected.pop_front();
        let given = Some((kind, blocks.iter().map(|block| block.0).collect()));
        assert_eq!(given, expected, "{}, at {now}, before {:?}", self.what, self.expected);
    }

    /// A call that carries out decisions is over.
    pub fn over(&mut self, now: u64) {
        if self.round {
            self.settle(now);
        }
        assert!(self.expected.is_empty(), "orders that were not given: {:?}", self.expected);
    }

    /// The block has come; `service`: its share of the service of an order of several, `None` if there was none.
    pub fn came(&mut self, now: u64, block: u32, service: Option<u64>) {
        let stay = self.stay(block).expect("what comes was fetched");
        assert!(stay.came.is_none(), "{block} has come twice");
        (stay.came, stay.service) = (Some(now), service.unwrap_or(0).min(u32::MAX.into()));
        if self.mode.takes_requests {
            self.handed_over(now, block);
        }
    }

    /// Every process that waits for the block has it.
    pub fn handed_over(&mut self, now: u64, block: u32) {
        for waiter in self.waiting.remove(&block).unwrap_or_default() {
            self.counts.hit_wait_ns += waiter.hit_at.map_or(0, |since| u128::from(now - since));
        }
    }

    /// A write has its blocks: they are dirty until `due`, or go to the disk.
    pub fn written(&mut self, blocks: &[u32], due: Option<u64>) {
        let mut leaving = Vec::new();
        for block in blocks {
            match due.filter(|_| self.stay(*block).is_some_and(|stay| stay.came.is_some())) {
                Some(due) => drop(self.dirty.entry(*block).or_insert(due)),
                None => leaving.push(*block),
            }
        }
        leaving.chunks(self.mode.order_max).for_each(|blocks| self.expect(Kind::Write, blocks.to_vec()));
    }

    /// Dirty blocks that are due will be written, one by one.
    pub fn flushed(&mut self, now: u64) {
        let mut due: Vec<(u64, u32)> =
            self.dirty.iter().filter(|(_, due)| **due <= now).map(|(block, due)| (*due, *block)).collect();
        due.sort_unstable();
        for (_, block) in due {
            self.dirty.remove(&block);
            self.expect(Kind::Write, vec![block]);
        }
    }

    /// All counts.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts.clone();
        for stay in self.stays.iter().filter(|stay| !stay.allocated) {
            if stay.wanted {
                counts.demand_fetches += 1;
                continue;
            }
            counts.prefetches += 1;
            counts.prefetches_used += u64::from(stay.used.is_some());
            counts.prefetches_late += u64::from(stay.late);
            if let (Some(used), Some(came), false) = (stay.used, stay.came, stay.late) {
                counts.lead_time_ns += u128::from(used - came);
            }
            counts.wasted_service_ns += if stay.in_vain { stay.service } else { 0 };
        }
        counts
    }
}
