//! Requests of several blocks at once: from the level above, or to the first level by a process that issues whole
//! requests.
//!
//! A request is looked up as a whole. Resident blocks are delivered at once, others when they arrive. The request is
//! done when all of its blocks have been delivered ([`Level::take_done`]). Fetches of consecutive blocks of a file
//! leave as one order. Part of a request may bypass the policy: such blocks are served from the cache without the
//! policy's knowledge, or fetched and not stored. For the policy such a block in flight is absent; if it requests the
//! block too, the block is stored on arrival and not fetched twice.
//!
//! Cost: constant per block, besides that of the policy. Memory: proportional to the blocks that are waited for.

use headstart_policy::readahead::{Asked, Found, NO_CLIENT};
use headstart_policy::{BlockMap, Event};
use headstart_types::{Block, Disk, Nanos, Outcome, Position, NEVER};

use super::ledger::Step;
use super::waiting::{Waiter, Waiting};
use super::{Level, LookupCounts};
use crate::backend::{Backend, IoRequest, Kind};

/// One request to a level.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The host's id for it.
    pub id: u64,
    /// The place of its blocks; not used if the policy does not ask.
    pub asked: Asked,
    /// Its first blocks: those that are waited for, at least one unless a coordinator adds blocks. Blocks that a
    /// coordinator adds follow them, and may have no number yet.
    pub blocks: &'a [Block],
    /// Whether the blocks will be overwritten as a whole.
    pub write: bool,
    /// Whether the request is hidden from the level's read-ahead, as decided by a coordinator.
    pub quiet: bool,
    /// Position of its first block in the reference string; `NEVER` at lower levels.
    pub position: Position,
    /// The think time before it, without driver work and stalls; zero at lower levels.
    pub compute: Nanos,
}

/// A request with blocks that are waited for.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    id: u64,
    left: u32,
}

/// The unfinished requests of a level, and the order under construction.
#[derive(Default)]
pub(super) struct Requests {
    /// The blocks of the request being looked up.
    pub asked: Vec<Block>,
    /// How each block of the request being looked up was found.
    pub found: Vec<Found>,
    pub waiting: Waiting,
    open: Vec<Open>,
    free_slots: Vec<usize>,
    /// Requests that had to wait and have finished.
    pub done: Vec<u64>,
    order: Vec<Block>,
    /// Whether the blocks of an order must be contiguous on a disk; otherwise in a file.
    pub by_disk: bool,
    /// Maximum number of blocks in an order.
    pub order_max: usize,
    order_kind: Option<Kind>,
    /// Whether demands and prefetches leave in separate orders.
    pub separate: bool,
    /// Blocks evicted since the host last took them; `None` if it does not want them.
    pub evicted: Option<Vec<Block>>,
}

impl Requests {
    /// Whether no request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a request that the policy has seen waits for `block`.
    #[inline]
    pub fn is_waited_for(&self, block: Block) -> bool {
        self.waiting.of(block).any(|waiter| !waiter.silent)
    }

    /// Whether `block`, which is in flight, is waited for by processes of this level, but not by `process`.
    fn is_fetched_for_another(&self, block: Block, process: u32) -> bool {
        let mut waiters = self.waiting.of(block).peekable();
        waiters.peek().is_some() && waiters.all(|waiter| waiter.process != process && waiter.position != NEVER)
    }

    #[inline]
    pub fn note_evicted(&mut self, block: Block) {
        if let Some(evicted) = &mut self.evicted {
            evicted.push(block);
        }
    }

    pub fn open(&mut self, id: u64) -> usize {
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.open.push(Open::default());
            self.open.len() - 1
        });
        self.open[slot] = Open { id, left: 0 };
        slot
    }

    pub fn wait(&mut self, block: Block, waiter: Waiter) {
        self.open[waiter.slot].left += 1;
        self.waiting.push(block, waiter);
    }

    /// Records the delivery of one block of the request in `slot`.
    fn handed_over(&mut self, slot: usize) {
        self.open[slot].left -= 1;
        if self.open[slot].left == 0 {
            self.done.push(self.open[slot].id);
            self.free_slots.push(slot);
        }
    }

    /// Called after the request in `slot` has been looked up: if it does not wait, it is done and needs no
    /// notification.
    pub fn close_if_served(&mut self, slot: usize) {
        if self.open[slot].left == 0 {
            self.free_slots.push(slot);
        }
    }

    /// Adds a fetch to the order under construction. That order leaves first if it is full, if the block does not
    /// follow its last one, or (with separate prefetches) if it is of another kind. A demand makes the whole order a
    /// demand. Returns the number of driver requests that have left.
    pub fn add_to_order(
        &mut self,
        now: Nanos,
        block: Block,
        kind: Kind,
        space: &dyn BlockMap,
        disk_of: &[Disk],
        backend: &mut impl Backend,
    ) -> u32 {
        let follows = self.order.last().is_some_and(|last| {
            let joins = !self.separate || self.order_kind == Some(kind);
            joins && self.order.len() < self.order_max && self.comes_next(*last, block, space)
        });
        let left = if follows { 0 } else { self.close_order(now, disk_of, backend) };
        self.order.push(block);
        self.order_kind = match (self.order_kind, kind) {
            (None, kind) => Some(kind),
            (Some(Kind::Prefetch), Kind::Prefetch) => Some(Kind::Prefetch),
            _ => Some(Kind::Demand),
        };
        left
    }

    fn comes_next(&self, last: Block, block: Block, space: &dyn BlockMap) -> bool {
        if self.by_disk {
            return space.adjoins(last, block);
        }
        let (file, index) = space.place(last);
        space.place(block) == (file, index + 1)
    }

    /// Issues the order under construction, if there is one. Returns the number of driver requests.
    pub fn close_order(&mut self, now: Nanos, disk_of: &[Disk], backend: &mut impl Backend) -> u32 {
        let Some(kind) = self.order_kind.take() else { return 0 };
        let disk = disk_of[self.order[0].index()];
        let issued = backend.issue(now, IoRequest { blocks: &self.order, disk, kind });
        self.order.clear();
        issued
    }
}

impl Level {
    /// Step (3): a request at `now`. Its resident blocks have been delivered when this returns. If it has to wait,
    /// [`Level::take_done`] reports its end, and the host calls [`Level::take`] when its process continues. A write
    /// looks its blocks up like a read, but absent ones need no fetch; once they are served the host calls
    /// [`Level::write`]. Returns how its blocks were found.
    ///
    /// Under a policy that does not ask, a request is one block of the only process.
    #[inline(always)]
    pub fn request(
        &mut self,
        now: Nanos,
        ask: &Ask<'_>,
        space: &dyn BlockMap,
        backend: &mut impl Backend,
    ) -> LookupCounts {
        if self.takes_requests {
            // Copied so that the other branch needs no copy in memory.
            let ask = *ask;
            self.request_all(now, &ask, space, backend)
        } else {
            self.request_one(now, ask, space, backend)
        }
    }

    fn request_all(
        &mut self,
        now: Nanos,
        ask: &Ask<'_>,
        space: &dyn BlockMap,
        backend: &mut impl Backend,
    ) -> LookupCounts {
        let slot = self.requests.open(ask.id);
        let before = (self.ledger.counts.hits_ready, self.ledger.counts.hits_unready, self.ledger.counts.misses);
        let demanded = ask.blocks.len() as u32;
        self.ledger.counts.readmore_blocks += u64::from(ask.asked.count - demanded);
        for offset in 0..ask.asked.count {
            let block = match ask.blocks.get(offset as usize) {
                Some(block) => *block,
                None => {
                    let index = ask.asked.first + u64::from(offset);
                    space.block(ask.asked.file, index).expect("a coordinator adds blocks that exist")
                }
            };
            self.register_block(block, space);
            let position = ask.position.saturating_add(offset);
            let found = self.look_up(now, slot, block, offset < demanded, ask, position, space);
            self.requests.asked.push(block);
            self.requests.found.push(found);
        }
        let looked = LookupCounts {
            issued: 0,
            hits_ready: (self.ledger.counts.hits_ready - before.0) as u32,
            hits_unready: (self.ledger.counts.hits_unready - before.1) as u32,
            misses: (self.ledger.counts.misses - before.2) as u32,
        };
        self.tell(now, Event::Asked { asked: ask.asked, position: ask.position, write: ask.write || ask.quiet }, space);
        let issued = self.issue(now, None, space, backend);
        self.requests.asked.clear();
        self.requests.found.clear();
        self.changed = true;
        self.requests.close_if_served(slot);
        LookupCounts { issued, ..looked }
    }

    /// Looks up one block of a request, and delivers it or waits for it.
    #[allow(clippy::too_many_arguments)] // One block, as its request sees it.
    fn look_up(
        &mut self,
        now: Nanos,
        slot: usize,
        block: Block,
        demanded: bool,
        ask: &Ask<'_>,
        position: Position,
        space: &dyn BlockMap,
    ) -> Found {
        let (write, process) = (ask.write, ask.asked.client);
        if write {
            self.overwrite(now, block);
        }
        // Think time precedes only the first block.
        let compute = if position == ask.position { ask.compute } else { Nanos::ZERO };
        let state = self.blocks[block.index()];
        if demanded {
            self.ledger.counts.references += 1;
            self.ledger.counts.writes += u64::from(write);
        }
        if state.is_resident() {
            if demanded {
                self.ledger.counts.hits_ready += 1;
                self.first_use(now, block, state);
                self.blocks[block.index()] = state.used();
            }
            self.cursor = self.cursor.max(position.saturating_add(1));
            self.tell(now, served(position, block, Outcome::HitReady, process, compute), space);
            return if state.is_unseen_prefetch() { Found::ReadyPrefetched } else { Found::Ready };
        }
        let on_its_way = state.is_in_flight();
        if demanded {
            // Even at the instant of its fetch, if another process caused that.
            let others = on_its_way && self.requests.is_fetched_for_another(block, process);
            let outcome = self.count_wait(now, block, write, on_its_way, others);
            self.requests.wait(block, Waiter { slot, position, process, outcome, compute, since: now, silent: false });
            self.blocks[block.index()] = self.blocks[block.index()].used();
        }
        match (on_its_way, state.is_unseen_prefetch()) {
            (false, _) => Found::Absent,
            (true, true) => Found::UnreadyPrefetched,
            (true, false) => Found::Unready,
        }
    }

    /// Counts a demanded block that is not resident, and returns how it was found.
    pub(super) fn count_wait(
        &mut self,
        now: Nanos,
        block: Block,
        write: bool,
        on_its_way: bool,
        others: bool,
    ) -> Outcome {
        let state = self.blocks[block.index()];
        let unused = state.is_in_flight() && state.is_unused_prefetch();
        if on_its_way && (others || !self.is_fresh(now, block)) {
            self.ledger.counts.hits_unready += 1;
            if unused {
                self.ledger.add(now, block, Step::Used { late: true });
            }
            return Outcome::HitUnready;
        }
        self.ledger.counts.misses += 1;
        if !on_its_way {
            self.ledger.add(now, block, Step::Missed);
            if write {
                self.ledger.counts.write_misses += 1;
                self.allocating.push(block);
            }
        } else if unused {
            // Prefetched at this instant: counts as fetched on demand.
            self.ledger.add(now, block, Step::Demanded);
        }
        Outcome::Miss
    }

    /// Delivers an arrived block to its waiters in FIFO order.
    pub(super) fn hand_over(&mut self, now: Nanos, block: Block, space: &dyn BlockMap) {
        while let Some(waiter) = self.requests.waiting.pop(block) {
            self.waited(now, &waiter);
            let state = self.blocks[block.index()];
            if waiter.silent {
                self.blocks[block.index()] = state.used_silently();
                continue;
            }
            self.blocks[block.index()] = state.used();
            self.cursor = self.cursor.max(waiter.position.saturating_add(1));
            self.tell(now, served(waiter.position, block, waiter.outcome, waiter.process, waiter.compute), space);
        }
    }

    pub(super) fn waited(&mut self, now: Nanos, waiter: &Waiter) {
        if waiter.outcome == Outcome::HitUnready {
            self.ledger.counts.hit_wait_ns += u128::from((now - waiter.since).0);
        }
        self.requests.handed_over(waiter.slot);
    }

    /// Whether [`Level::idle`] may lead to a fetch, for any process (`None`) or for one; see
    /// [`Policy::could_prefetch`](headstart_policy::Policy::could_prefetch).
    #[inline]
    #[must_use]
    pub fn could_prefetch(&self, process: Option<u32>) -> bool {
        self.policy.could_prefetch(process)
    }

    /// Lets the policy start one prefetch action for the idle processor of `process`. The order goes to `backend`,
    /// which carries it out when the action is done. Returns whether there is an action.
    ///
    /// # Panics
    /// The policy answers with more than one fetch.
    pub fn idle(&mut self, now: Nanos, process: u32, space: &dyn BlockMap, backend: &mut impl Backend) -> bool {
        self.tell(now, Event::Idle { process }, space);
        assert!(self.fetches.len() <= 1, "an action is one fetch");
        let fetch = self.fetches.first().copied();
        self.issue(now, None, space, backend);
        if let Some(fetch) = fetch {
            // An action takes time: a reference at this instant finds its block in flight.
            self.blocks[fetch.block.index()] = self.blocks[fetch.block.index()].fresh(false);
        }
        fetch.is_some()
    }

    /// The host expects requests for `blocks`: the absent ones are prefetched in that order as far as there are frames,
    /// as if a read-ahead had named them. Only for levels whose policy [asks](Level::takes_requests).
    pub fn expect(&mut self, now: Nanos, blocks: &[Block], space: &dyn BlockMap, backend: &mut impl Backend) -> u32 {
        for &block in blocks {
            self.register_block(block, space);
            let state = self.blocks[block.index()];
            if state.is_absent() && !state.is_passing() {
                self.requests.asked.push(block);
            }
        }
        self.tell(now, Event::Expected, space);
        let issued = self.issue(now, None, space, backend);
        self.requests.asked.clear();
        issued
    }

    /// Inserts a block evicted by the level above: it takes a frame and needs no fetch. No effect if it is resident or
    /// in flight. Returns the number of driver requests (for dirty victims).
    pub fn put(&mut self, now: Nanos, block: Block, space: &dyn BlockMap, backend: &mut impl Backend) -> u32 {
        self.register_block(block, space);
        let state = self.blocks[block.index()];
        if !state.is_absent() || state.is_passing() || self.is_allocating(block) {
            return 0;
        }
        self.allocating.push(block);
        let (file, first) = space.place(block);
        self.requests.asked.push(block);
        self.requests.found.push(Found::Absent);
        let asked = Asked { file, first, count: 1, client: NO_CLIENT, ends_inside: false };
        self.tell(now, Event::Asked { asked, position: NEVER, write: true }, space);
        self.requests.asked.clear();
        self.requests.found.clear();
        self.issue(now, None, space, backend)
    }

    fn is_allocating(&self, block: Block) -> bool {
        self.allocating.contains(&block)
    }
}

fn served(position: Position, block: Block, outcome: Outcome, process: u32, compute: Nanos) -> Event {
    Event::Served { position, block, outcome, compute, process }
}
