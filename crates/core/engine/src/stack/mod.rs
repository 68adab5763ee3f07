//! Levels above one another and the devices below them: completions, notifications upwards, and which level acts.
//! `messages` handles what goes down between levels.
//!
//! Cost: constant for a single level; logarithmic in the levels and in the requests in flight for several.

mod down;
mod link;
mod messages;
mod spread;
mod wake_queue;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstart_policy::coordinator::{Coordinator, SentUp, Uncoordinated};
use headstart_policy::BlockMap;
use headstart_types::{Block, Disk, Nanos, Spread};

pub use link::Link;
pub use spread::Share;

use crate::devices::{Devices, Ended, From, What};
use crate::journal::Happening;
use crate::level::Level;
use down::{Down, Upper};
use messages::{Delivery, Message, Sent};
use spread::LevelSpace;
use wake_queue::WakeQueue;

/// A level and its connections.
pub struct Tier {
    /// The level.
    pub level: Level,
    /// The level below, or the first of several; `None`: the devices.
    pub below: Option<usize>,
    /// How blocks are distributed over several levels below; this level sees all of them.
    pub spread: Option<Spread>,
    /// The share of the blocks that it sees; `None`: all.
    pub share: Option<Share>,
    /// Whether it has frames. A level without frames forwards everything.
    pub stores: bool,
    /// The disk of a spill: a level that holds what the level above has evicted, and nothing else, on a disk of its own.
    pub spill: Option<Disk>,
    /// Decides how requests from above are served.
    pub coordinator: Box<dyn Coordinator>,
    /// The link to the level above.
    pub link: Link,
    /// Total time of the link's transfers.
    pub link_time: Nanos,
}

impl Tier {
    /// A level above the devices, without coordination or link costs.
    #[must_use]
    pub fn new(level: Level, stores: bool) -> Self {
        let (coordinator, link) = (Box::new(Uncoordinated), Link::default());
        let (below, spread, share, spill) = (None, None, None, None);
        Self { level, below, spread, share, stores, spill, coordinator, link, link_time: Nanos::ZERO }
    }

    /// The level below that owns `block`.
    fn below_of<S: BlockMap>(&self, block: Block, space: &S) -> Option<usize> {
        let first = self.below?;
        let Some(spread) = &self.spread else { return Some(first) };
        let (file, index) = space.place(block);
        Some(first + spread.local(file, index).0 as usize)
    }
}

/// Notifications from the levels to the system above them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notification {
    /// A request of the host has finished.
    Done(u64),
    /// A block of a level has been written to its disk.
    Written(usize, Block),
    /// A request of a client of the host has finished.
    Replied(u64),
}

/// A completed order, and the number of its blocks delivered so far.
struct Coming {
    ended: Ended,
    blocks: Vec<Block>,
    at: usize,
}

/// All levels, and the devices below them.
pub struct Stack<D, S> {
    /// First levels, then the levels below them.
    pub tiers: Vec<Tier>,
    /// Number of first levels, which processes use.
    pub first: usize,
    /// The devices.
    pub devices: D,
    /// The places of blocks.
    pub space: S,
    block_bytes: u64,
    /// The process for which orders are currently issued.
    pub(crate) process: Option<u32>,
    /// Orders on their way down.
    outbox: VecDeque<Sent>,
    messages: Vec<Message>,
    free_messages: Vec<usize>,
    deliveries: BinaryHeap<Reverse<(Nanos, u64, Delivery)>>,
    sequence: u64,
    /// Service time of the block that has just come from a device.
    service: Option<Nanos>,
    told: VecDeque<Notification>,
    coming: Coming,
    /// Which levels have pending work.
    wake_queue: WakeQueue,
    done: Vec<u64>,
    evicted: Vec<Block>,
    /// Evicted blocks, for a host that wants to know.
    left: Option<Vec<Block>>,
    /// Link crossings, for a host that wants to know.
    pub(crate) journal: Option<Vec<Happening>>,
}

impl<D: Devices<S>, S: BlockMap> Stack<D, S> {
    /// `tiers` above `devices`; processes use the `first` ones. Links carry blocks of `block_bytes`.
    #[must_use]
    pub fn new(tiers: Vec<Tier>, first: usize, devices: D, space: S, block_bytes: u64) -> Self {
        let wake_queue = WakeQueue::new(tiers.len());
        let mut all = Self {
            wake_queue,
            tiers,
            first,
            devices,
            space,
            block_bytes,
            process: None,
            outbox: VecDeque::new(),
            messages: Vec::new(),
            free_messages: Vec::new(),
            deliveries: BinaryHeap::new(),
            sequence: 0,
            service: None,
            told: VecDeque::new(),
            coming: Coming { ended: Ended { level: 0, what: What::Allocated }, blocks: Vec::new(), at: 0 },
            done: Vec::new(),
            evicted: Vec::new(),
            left: None,
            journal: None,
        };
        for index in 0..all.tiers.len() {
            if all.tiers[index].below.is_some() {
                all.tiers[index].level.order_by_files();
            }
            if all.gives_down(index) {
                all.tiers[index].level.note_evictions();
            }
        }
        all
    }

    /// Whether a level hands its evicted blocks to the level below.
    fn gives_down(&self, index: usize) -> bool {
        let below = self.tiers[index].below.map(|below| &self.tiers[below]);
        below.is_some_and(|tier| tier.stores && (tier.spill.is_some() || tier.coordinator.sent_up() == SentUp::Remove))
    }

    /// Makes [`Stack::take_left`] report the evictions of levels that have frames from now on.
    pub(crate) fn note_what_leaves(&mut self) {
        self.tiers.iter_mut().filter(|tier| tier.stores).for_each(|tier| tier.level.note_evictions());
        self.left = Some(Vec::new());
    }

    /// Appends the blocks that levels have evicted since the last call.
    pub fn take_left(&mut self, into: &mut Vec<Block>) {
        // The other levels' evictions pass through `hand_down`, which gives them to the level below first.
        for tier in self.tiers.iter_mut().filter(|tier| tier.below.is_none()) {
            tier.level.take_evicted(into);
        }
        if let Some(left) = &mut self.left {
            into.append(left);
        }
    }

    /// The earliest instant at which a device or a delivery finishes.
    #[inline]
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        let event = self.devices.next_event();
        match self.deliveries.peek() {
            Some(Reverse((at, _, _))) => Some(event.map_or(*at, |event| event.min(*at))),
            None => event,
        }
    }

    /// The earliest instant at which a level has to flush, or wants to act after `now` even if nothing else happens.
    #[inline(always)]
    pub(crate) fn next_wake(&mut self, now: Nanos) -> Option<Nanos> {
        match &self.tiers[..] {
            [tier] => tier.level.next_wake(now),
            _ => self.next_wake_of_all(now),
        }
    }

    fn next_wake_of_all(&mut self, now: Nanos) -> Option<Nanos> {
        self.wake_queue.look(|index| &self.tiers[index].level);
        self.wake_queue.next(now)
    }

    /// At the start of step (2): marks levels whose times have come as undecided.
    #[inline]
    pub(crate) fn wishes_come(&mut self, now: Nanos) {
        if self.tiers.len() > 1 {
            self.wake_queue.look(|index| &self.tiers[index].level);
            self.wake_queue.come(now);
        }
    }

    /// The next level from `from` on that may want to decide.
    #[inline]
    pub(crate) fn take_undecided(&mut self, from: usize) -> Option<usize> {
        match self.tiers.len() {
            1 => (from == 0).then_some(0),
            _ => self.wake_queue.take_undecided(from),
        }
    }

    /// The next notification that is pending without a completion.
    #[inline]
    pub(crate) fn take_told(&mut self) -> Option<Notification> {
        self.told.pop_front()
    }

    /// Step (1): handles completions and deliveries at `now`. Returns the next notification.
    pub(crate) fn complete(&mut self, now: Nanos) -> Option<Notification> {
        loop {
            if let Some(told) = self.told.pop_front() {
                return Some(told);
            }
            if self.takes_order(now) {
                self.order_arrives(now);
            } else if self.deliveries.peek().is_some_and(|Reverse((at, _, _))| *at <= now) {
                let Some(Reverse((_, _, delivery))) = self.deliveries.pop() else { continue };
                self.delivered(now, delivery);
            } else {
                return None;
            }
            self.settle(now);
        }
    }

    /// Whether blocks of a completed order remain to be delivered, of the current order or a next one.
    #[inline]
    fn takes_order(&mut self, now: Nanos) -> bool {
        let Coming { ended, blocks, at } = &mut self.coming;
        if *at < blocks.len() {
            return true;
        }
        blocks.clear();
        *at = 0;
        let next = self.devices.ended(now, &self.space, blocks);
        *ended = next.unwrap_or(*ended);
        next.is_some()
    }

    /// Delivers blocks of a completed order, up to the first one that ends a request: the process notified of that may
    /// act before the next block is delivered.
    #[inline]
    fn order_arrives(&mut self, now: Nanos) {
        let Ended { level, what } = self.coming.ended;
        let tier = level as usize;
        if what != What::Written {
            self.touch(tier);
        }
        let service = if let What::Fetched(service) = what { Some(service) } else { None };
        while let Some(block) = self.coming.blocks.get(self.coming.at).copied() {
            self.coming.at += 1;
            if what == What::Written {
                self.written(now, tier, block);
                continue;
            }
            let Tier { level, share, .. } = &mut self.tiers[tier];
            if what == What::Unneeded {
                level.uncount_prefetch(block);
            }
            level.arrived(now, block, service, LevelSpace::new(&self.space, *share).as_space());
            if level.has_done() {
                self.service = service;
                self.finish_requests(now);
                self.service = None;
                return;
            }
        }
    }

    fn written(&mut self, now: Nanos, tier: usize, block: Block) {
        let mut cost = Nanos::ZERO;
        let below_of = |stack: &Self, index: usize| stack.tiers[index].below_of(block, &stack.space);
        let mut below = below_of(self, tier);
        while let Some(index) = below {
            let own = self.cross(index, 1);
            self.note_crossing(now + cost, index, own, 1);
            cost += own;
            below = below_of(self, index);
        }
        self.schedule(now + cost, Delivery::Written(tier, block));
    }

    /// The cost of sending `blocks` blocks up from level `index`.
    fn cross(&mut self, index: usize, blocks: usize) -> Nanos {
        let tier = &mut self.tiers[index];
        let cost = tier.link.cost(blocks, self.block_bytes);
        tier.link_time += cost;
        cost
    }

    /// Records a crossing of the link above level `index`, if the host wants to know.
    fn note_crossing(&mut self, now: Nanos, index: usize, cost: Nanos, blocks: usize) {
        if let Some(journal) = &mut self.journal {
            let (level, blocks) = (index as u32, blocks as u32);
            journal.push(Happening::Crossed { level, since: now, until: now + cost, blocks });
        }
    }

    fn schedule(&mut self, at: Nanos, delivery: Delivery) {
        self.deliveries.push(Reverse((at, self.sequence, delivery)));
        self.sequence += 1;
    }

    fn delivered(&mut self, now: Nanos, delivery: Delivery) {
        match delivery {
            Delivery::Reply(message) => self.reply(now, message, None),
            Delivery::Allocated(tier, block) => {
                self.touch(tier);
                let Tier { level, share, .. } = &mut self.tiers[tier];
                level.arrived(now, block, None, LevelSpace::new(&self.space, *share).as_space());
            }
            Delivery::Written(tier, block) => {
                self.touch(tier);
                self.tiers[tier].level.written(block);
                if tier < self.first {
                    self.told.push_back(Notification::Written(tier, block));
                }
            }
        }
    }

    /// Marks a level as changed.
    #[inline]
    fn touch(&mut self, tier: usize) {
        if self.tiers.len() > 1 {
            self.wake_queue.touch(tier);
        }
    }

    /// Sets the process for which orders are issued from now on.
    #[inline(always)]
    pub(crate) fn acts_for(&mut self, process: Option<u32>) {
        // The process is mostly the same one: writing it again in two parts and then loading it as one would stall the
        // processor.
        if self.process != process {
            self.process = process;
        }
    }

    /// A level that is about to act, with its space and its destination.
    #[inline(always)]
    pub(crate) fn at(&mut self, index: usize) -> (&mut Level, LevelSpace<'_, S>, Down<'_, D, S>) {
        self.touch(index);
        let Self { tiers, devices, outbox, space, process, .. } = self;
        let space = &*space;
        let tier = &mut tiers[index];
        let down = match tier.below {
            None => Down::Devices(devices, From { level: index as u32, process: *process }, space),
            Some(below) => Down::Level(outbox, Upper { number: index, below, spread: tier.spread, space }),
        };
        (&mut tier.level, LevelSpace::new(space, tier.share), down)
    }

    /// Processes the messages between the levels at this instant until none are left.
    #[inline(always)]
    pub(crate) fn settle(&mut self, now: Nanos) {
        if self.tiers.len() == 1 {
            self.finish_requests(now);
        } else {
            self.settle_all(now);
        }
    }

    fn settle_all(&mut self, now: Nanos) {
        loop {
            self.finish_requests(now);
            self.hand_down(now);
            let Some(sent) = self.outbox.pop_front() else { break };
            self.deliver(now, sent);
        }
    }

    /// Handles finished requests: notifies the host of its own, and answers those of a level above.
    #[inline]
    fn finish_requests(&mut self, now: Nanos) {
        if self.tiers.len() == 1 {
            if self.tiers[0].level.has_done() {
                self.finish_requests_of(now, 0);
            }
            return;
        }
        // A request that ends because of another one below it is handled in the next round.
        let mut from = 0;
        while let Some(index) = self.wake_queue.take_unfinished(from).or_else(|| self.wake_queue.take_unfinished(0)) {
            from = index + 1;
            self.finish_requests_of(now, index);
        }
    }

    fn finish_requests_of(&mut self, now: Nanos, index: usize) {
        let mut done = std::mem::take(&mut self.done);
        self.tiers[index].level.take_done(&mut done);
        for id in done.drain(..) {
            if index < self.first {
                self.told.push_back(Notification::Done(id));
            } else {
                self.part_done(now, index, id as usize);
            }
        }
        self.done = done;
    }

    /// Exclusive caching: hands a level's evicted blocks to the level below.
    fn hand_down(&mut self, now: Nanos) {
        let mut from = 0;
        while let Some(index) = self.wake_queue.take_unemptied(from) {
            from = index + 1;
            if self.tiers[index].below.is_none() {
                continue;
            }
            let mut evicted = std::mem::take(&mut self.evicted);
            self.tiers[index].level.take_evicted(&mut evicted);
            let given = self.gives_down(index);
            for block in evicted.drain(..) {
                let below = self.tiers[index].below_of(block, &self.space);
                if let (true, Some(below)) = (given, below) {
                    let (level, space, mut down) = self.at(below);
                    level.put(now, block, space.as_space(), &mut down);
                }
                if let Some(left) = &mut self.left {
                    left.push(block);
                }
            }
            self.evicted = evicted;
        }
    }
}
