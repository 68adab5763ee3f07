//! Levels above and below one another, and the devices below them: what ends, what is told upward, who acts. What goes
//! down from level to level is in `messages`.
//!
//! Cost: constant for a single level; logarithmic in the levels and in what is under way for several.

mod down;
mod link;
mod messages;
mod spread;
mod wishes;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstart_policy::coordinator::{Coordinator, SentUp, Uncoordinated};
use headstart_policy::Space;
use headstart_types::{Block, Nanos, Spread};

pub use link::Link;
pub use spread::Share;

use crate::devices::{Devices, Ended, From, What};
use crate::journal::Happening;
use crate::level::Level;
use down::{Down, Upper};
use messages::{Delivery, Message, Sent};
use spread::Seen;
use wishes::Wishes;

/// A level and what it stands on.
pub struct Tier {
    /// The level.
    pub level: Level,
    /// The level below, or the first of several; `None`: the devices.
    pub below: Option<usize>,
    /// How blocks are dealt out to the levels below, where there are several: this one sees them all.
    pub spread: Option<Spread>,
    /// What it sees of the blocks; `None`: all of them.
    pub share: Option<Share>,
    /// Whether it has frames. One that has none passes everything on.
    pub stores: bool,
    /// What decides about requests from above.
    pub coordinator: Box<dyn Coordinator>,
    /// To the level above.
    pub link: Link,
    /// Sum of the link's costs.
    pub link_time: Nanos,
}

impl Tier {
    /// A level over the devices, with nothing between it and what is above.
    #[must_use]
    pub fn new(level: Level, stores: bool) -> Self {
        let (coordinator, link) = (Box::new(Uncoordinated), Link::default());
        let (below, spread, share) = (None, None, None);
        Self { level, below, spread, share, stores, coordinator, link, link_time: Nanos::ZERO }
    }

    /// The level below that `block` comes from.
    fn below_of<S: Space>(&self, block: Block, space: &S) -> Option<usize> {
        let first = self.below?;
        let Some(spread) = &self.spread else { return Some(first) };
        let (file, index) = space.place(block);
        Some(first + spread.local(file, index).0 as usize)
    }
}

/// What the levels tell those who stand on top of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// A request of the host is done.
    Done(u64),
    /// A block of a level is on its disk.
    Written(usize, Block),
    /// A request of a client of the host is done.
    Replied(u64),
}

/// An order that has been carried out, and how many of its blocks have arrived.
struct Coming {
    ended: Ended,
    blocks: Vec<Block>,
    at: usize,
}

/// All levels, and the devices below them.
pub struct Stack<D, S> {
    /// Those that processes ask first, then those below them.
    pub tiers: Vec<Tier>,
    /// How many of them processes ask.
    pub first: usize,
    /// The devices.
    pub devices: D,
    /// Where blocks lie.
    pub space: S,
    block_bytes: u64,
    /// The process for which orders are being given.
    pub(crate) process: Option<u32>,
    /// Orders on their way down.
    outbox: VecDeque<Sent>,
    messages: Vec<Message>,
    free_messages: Vec<usize>,
    deliveries: BinaryHeap<Reverse<(Nanos, u64, Delivery)>>,
    sequence: u64,
    /// What the device worked on the block that has just come from it.
    service: Option<Nanos>,
    told: VecDeque<Told>,
    coming: Coming,
    /// Which levels have something to do.
    wishes: Wishes,
    done: Vec<u64>,
    evicted: Vec<Block>,
    /// Blocks that have been evicted, for a host that wants to know.
    left: Option<Vec<Block>>,
    /// What has gone over links, for a host that wants to know.
    pub(crate) journal: Option<Vec<Happening>>,
}

impl<D: Devices<S>, S: Space> Stack<D, S> {
    /// `tiers` over `devices`; the `first` ones are what processes ask. Links carry blocks of `block_bytes`.
    #[must_use]
    pub fn new(tiers: Vec<Tier>, first: usize, devices: D, space: S, block_bytes: u64) -> Self {
        let wishes = Wishes::new(tiers.len());
        let mut all = Self {
            wishes,
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

    /// Whether what a level evicts goes to the one below.
    fn gives_down(&self, index: usize) -> bool {
        let below = self.tiers[index].below.map(|below| &self.tiers[below]);
        below.is_some_and(|below| below.stores && below.coordinator.sent_up() == SentUp::Remove)
    }

    /// From now on [`Stack::take_left`] tells what has been evicted.
    pub(crate) fn note_what_leaves(&mut self) {
        self.tiers.iter_mut().for_each(|tier| tier.level.note_evictions());
        self.left = Some(Vec::new());
    }

    /// Gives the blocks that levels have evicted since it was last asked.
    pub fn take_left(&mut self, into: &mut Vec<Block>) {
        // What others evict goes by the way of `hand_down`, which gives it to the level below first.
        for tier in self.tiers.iter_mut().filter(|tier| tier.below.is_none()) {
            tier.level.take_evicted(into);
        }
        if let Some(left) = &mut self.left {
            into.append(left);
        }
    }

    /// The earliest instant at which something ends by itself.
    #[inline]
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        let event = self.devices.next_event();
        match self.deliveries.peek() {
            Some(Reverse((at, _, _))) => Some(event.map_or(*at, |event| event.min(*at))),
            None => event,
        }
    }

    /// The earliest instant at which a level has to flush or, after `now`, wants to act though nothing may happen.
    #[inline(always)]
    pub(crate) fn next_wish(&mut self, now: Nanos) -> Option<Nanos> {
        match &self.tiers[..] {
            [tier] => tier.level.next_wish(now),
            _ => self.next_wish_of_all(now),
        }
    }

    fn next_wish_of_all(&mut self, now: Nanos) -> Option<Nanos> {
        self.wishes.look(|index| &self.tiers[index].level);
        self.wishes.next(now)
    }

    /// At the start of step (2): the levels whose times have come are to be asked too.
    #[inline]
    pub(crate) fn wishes_come(&mut self, now: Nanos) {
        if self.tiers.len() > 1 {
            self.wishes.look(|index| &self.tiers[index].level);
            self.wishes.come(now);
        }
    }

    /// The next level from `from` on that could want to decide.
    #[inline]
    pub(crate) fn take_undecided(&mut self, from: usize) -> Option<usize> {
        match self.tiers.len() {
            1 => (from == 0).then_some(0),
            _ => self.wishes.take_undecided(from),
        }
    }

    /// What the levels have to say without anything having come from below.
    #[inline]
    pub(crate) fn take_told(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// Step (1): completions and deliveries at `now`. Tells what has come of them.
    pub(crate) fn complete(&mut self, now: Nanos) -> Option<Told> {
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

    /// Whether blocks of an order that has been carried out are to arrive: of the one under way, or of the next.
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

    /// Blocks of an order that has been carried out arrive, up to the first that ends a request: who hears of that may act
    /// before the next.
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
                level.take_back(block);
            }
            level.arrived(now, block, service, Seen::new(&self.space, *share).as_space());
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

    /// Notes a crossing of the link above level `index`, if a host wants to know.
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
                level.arrived(now, block, None, Seen::new(&self.space, *share).as_space());
            }
            Delivery::Written(tier, block) => {
                self.touch(tier);
                self.tiers[tier].level.written(block);
                if tier < self.first {
                    self.told.push_back(Told::Written(tier, block));
                }
            }
        }
    }

    /// Something happens to a level.
    #[inline]
    fn touch(&mut self, tier: usize) {
        if self.tiers.len() > 1 {
            self.wishes.touch(tier);
        }
    }

    /// Orders are given for `process` from now on.
    #[inline(always)]
    pub(crate) fn acts_for(&mut self, process: Option<u32>) {
        // A processor waits where it loads as one what has just been stored in two parts: it mostly is the same process.
        if self.process != process {
            self.process = process;
        }
    }

    /// A level that is going to act, and what it needs for that.
    #[inline(always)]
    pub(crate) fn at(&mut self, index: usize) -> (&mut Level, Seen<'_, S>, Down<'_, D, S>) {
        self.touch(index);
        let Self { tiers, devices, outbox, space, process, .. } = self;
        let space = &*space;
        let tier = &mut tiers[index];
        let down = match tier.below {
            None => Down::Devices(devices, From { level: index as u32, process: *process }, space),
            Some(below) => Down::Level(outbox, Upper { number: index, below, spread: tier.spread, space }),
        };
        (&mut tier.level, Seen::new(space, tier.share), down)
    }

    /// Carries what the levels have said to each other at this instant as far as it goes.
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
            match self.outbox.pop_front() {
                Some(sent) => self.deliver(now, sent),
                None => break,
            }
        }
    }

    /// Requests that are done: those of the host are told of, those of a level above are answered.
    #[inline]
    fn finish_requests(&mut self, now: Nanos) {
        if self.tiers.len() == 1 {
            if self.tiers[0].level.has_done() {
                self.finish_requests_of(now, 0);
            }
            return;
        }
        // One that ends because of an end below it is taken the next time round.
        let mut from = 0;
        while let Some(index) = self.wishes.take_unfinished(from).or_else(|| self.wishes.take_unfinished(0)) {
            from = index + 1;
            self.finish_requests_of(now, index);
        }
    }

    fn finish_requests_of(&mut self, now: Nanos, index: usize) {
        let mut done = std::mem::take(&mut self.done);
        self.tiers[index].level.take_done(&mut done);
        for id in done.drain(..) {
            if index < self.first {
                self.told.push_back(Told::Done(id));
            } else {
                self.part_done(now, index, id as usize);
            }
        }
        self.done = done;
    }

    /// Exclusive caching: what a level has evicted goes to the one below.
    fn hand_down(&mut self, now: Nanos) {
        let mut from = 0;
        while let Some(index) = self.wishes.take_unemptied(from) {
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
