//! Levels above and below one another, and the disks below them: what ends, what is told upward, who acts. What goes
//! down from level to level is in `messages`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstart_engine::{Backend, Level, Order};
use headstart_policy::coordinator::{Coordinator, SentUp};
use headstart_policy::Space;
use headstart_types::{Block, Disk, Nanos};

use super::messages::{Delivery, Message, Sent};
use super::wishes::Wishes;
use crate::link::Link;
use crate::storage::{Ended, Storage, What};
use crate::workload::Places;

/// A level and what it stands on.
pub struct Tier {
    /// The level.
    pub level: Level,
    /// The level below; `None`: the disks.
    pub below: Option<usize>,
    /// Whether it has frames. One that has none passes everything on.
    pub stores: bool,
    /// What decides about requests from above.
    pub coordinator: Box<dyn Coordinator>,
    /// To the level above.
    pub link: Link,
    /// Sum of the link's costs.
    pub link_time: Nanos,
}

/// Where a level's orders go.
pub enum Down<'a> {
    /// To the disks.
    Disks(&'a mut Storage),
    /// To the level below.
    Level(&'a mut Outbox, usize),
}

/// Orders on their way down.
#[derive(Debug, Default)]
pub struct Outbox(VecDeque<Sent>);

impl Backend for Down<'_> {
    fn issue(&mut self, now: Nanos, order: Order<'_>) {
        match self {
            Down::Disks(storage) => storage.issue(now, order),
            Down::Level(outbox, upper) => {
                outbox.0.push_back(Sent { upper: *upper, blocks: order.blocks.to_vec(), kind: order.kind });
            }
        }
    }
}

/// What the levels tell those who stand on top of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A request of the host is done.
    Done(u64),
    /// A block has arrived at a level.
    Arrived(usize, Block),
    /// A block of a level is on its disk.
    Written(usize, Block),
}

/// All levels, and the disks below them.
pub struct Tiers {
    /// Those that processes ask first, then those below them.
    pub tiers: Vec<Tier>,
    /// How many of them processes ask.
    pub first: usize,
    /// The disks.
    pub storage: Storage,
    pub(super) space: std::rc::Rc<Places>,
    pub(super) block_bytes: u64,
    outbox: Outbox,
    pub(super) messages: Vec<Message>,
    pub(super) free_messages: Vec<usize>,
    deliveries: BinaryHeap<Reverse<(Nanos, u64, Delivery)>>,
    sequence: u64,
    /// What the disk worked on the block that has just come from it.
    pub(super) service: Option<Nanos>,
    told: VecDeque<Told>,
    /// Which levels have something to do.
    pub(super) wishes: Wishes,
    done: Vec<u64>,
    evicted: Vec<Block>,
}

impl Tiers {
    /// Levels over disks that know where blocks lie from `space`.
    #[must_use]
    pub fn new(
        tiers: Vec<Tier>,
        first: usize,
        mut storage: Storage,
        space: std::rc::Rc<Places>,
        block_bytes: u64,
    ) -> Self {
        storage.look_up(space.clone());
        let wishes = Wishes::new(tiers.len());
        let mut all = Self {
            wishes,
            tiers,
            first,
            storage,
            space,
            block_bytes,
            outbox: Outbox::default(),
            messages: Vec::new(),
            free_messages: Vec::new(),
            deliveries: BinaryHeap::new(),
            sequence: 0,
            service: None,
            told: VecDeque::new(),
            done: Vec::new(),
            evicted: Vec::new(),
        };
        for index in 0..all.tiers.len() {
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

    /// The earliest instant at which something ends by itself.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        let delivery = self.deliveries.peek().map(|Reverse((at, _, _))| *at);
        delivery.into_iter().chain(self.storage.next_event()).min()
    }

    /// The earliest instant after `now` at which a level wants to act though nothing may happen.
    #[inline]
    pub fn next_wish(&mut self, now: Nanos) -> Option<Nanos> {
        self.wishes.look(|index| &self.tiers[index].level);
        self.wishes.next(now)
    }

    /// At the start of step (2): the levels whose times have come are to be asked too.
    #[inline]
    pub fn wishes_come(&mut self, now: Nanos) {
        self.wishes.look(|index| &self.tiers[index].level);
        self.wishes.come(now);
    }

    /// What the levels have to say without anything having come from below.
    #[inline]
    pub fn take_told(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// What was taken and is somebody else's business.
    pub fn put_back(&mut self, told: Vec<Told>) {
        self.told.extend(told);
    }

    /// Step (1): completions and deliveries at `now`. Tells what has come of them.
    pub fn complete(&mut self, now: Nanos) -> Option<Told> {
        loop {
            if let Some(told) = self.told.pop_front() {
                return Some(told);
            }
            if let Some(ended) = self.storage.complete_one(now) {
                self.ended(now, &ended);
            } else if self.deliveries.peek().is_some_and(|Reverse((at, _, _))| *at <= now) {
                let Some(Reverse((_, _, delivery))) = self.deliveries.pop() else { continue };
                self.delivered(now, delivery);
            } else {
                return None;
            }
            self.settle(now);
        }
    }

    fn ended(&mut self, now: Nanos, ended: &Ended) {
        let tier = ended.owner as usize;
        match ended.what {
            What::Fetched(service) => {
                self.service = Some(service);
                self.arrived(now, tier, ended.block, ended.disk, Some(service));
                self.finish_requests(now);
                self.service = None;
            }
            What::Allocated => self.arrived(now, tier, ended.block, ended.disk, None),
            What::Written => {
                let mut cost = Nanos::ZERO;
                let mut below = self.tiers[tier].below;
                while let Some(index) = below {
                    cost += self.cross(index, 1);
                    below = self.tiers[index].below;
                }
                self.schedule(now + cost, Delivery::Written(tier, ended.block));
            }
        }
    }

    /// The cost of sending `blocks` blocks up from level `index`.
    pub(super) fn cross(&mut self, index: usize, blocks: usize) -> Nanos {
        let tier = &mut self.tiers[index];
        let cost = tier.link.cost(blocks, self.block_bytes);
        tier.link_time += cost;
        cost
    }

    pub(super) fn schedule(&mut self, at: Nanos, delivery: Delivery) {
        self.deliveries.push(Reverse((at, self.sequence, delivery)));
        self.sequence += 1;
    }

    pub(super) fn arrived(&mut self, now: Nanos, tier: usize, block: Block, disk: Disk, service: Option<Nanos>) {
        self.wishes.touch(tier);
        self.tiers[tier].level.arrived(now, block, disk, service);
        if tier < self.first {
            self.told.push_back(Told::Arrived(tier, block));
        }
    }

    fn delivered(&mut self, now: Nanos, delivery: Delivery) {
        match delivery {
            Delivery::Reply(message) => self.reply(now, message, None),
            Delivery::Allocated(tier, block) => {
                let disk = self.space.disk(block);
                self.arrived(now, tier, block, disk, None);
            }
            Delivery::Written(tier, block) => {
                self.wishes.touch(tier);
                self.tiers[tier].level.written(self.space.disk(block));
                if tier < self.first {
                    self.told.push_back(Told::Written(tier, block));
                }
            }
        }
    }

    /// Lets a level act.
    pub fn act<R>(&mut self, index: usize, act: impl FnOnce(&mut Level, &mut Down<'_>) -> R) -> R {
        let Self { tiers, storage, outbox, wishes, .. } = self;
        wishes.touch(index);
        let tier = &mut tiers[index];
        let mut down = match tier.below {
            None => Down::Disks(storage.for_level(index as u32)),
            Some(_) => Down::Level(outbox, index),
        };
        act(&mut tier.level, &mut down)
    }

    /// Carries what the levels have said to each other at this instant as far as it goes.
    pub fn settle(&mut self, now: Nanos) {
        loop {
            self.finish_requests(now);
            self.hand_down(now);
            match self.outbox.0.pop_front() {
                Some(sent) => self.deliver(now, sent),
                None => break,
            }
        }
    }

    /// Requests that are done: those of the host are told of, those of a level above are answered.
    fn finish_requests(&mut self, now: Nanos) {
        // One that ends because of an end below it is taken the next time round.
        let mut from = 0;
        while let Some(index) = self.wishes.take_unfinished(from).or_else(|| self.wishes.take_unfinished(0)) {
            from = index + 1;
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
    }

    /// Exclusive caching: what a level has evicted goes to the one below.
    fn hand_down(&mut self, now: Nanos) {
        let mut from = 0;
        while let Some(index) = self.wishes.take_unemptied(from) {
            from = index + 1;
            let Some(below) = self.tiers[index].below else { continue };
            let mut evicted = std::mem::take(&mut self.evicted);
            self.tiers[index].level.take_evicted(&mut evicted);
            for block in evicted.drain(..) {
                self.act(below, |level, down| level.put(now, block, down));
            }
            self.evicted = evicted;
        }
    }
}
