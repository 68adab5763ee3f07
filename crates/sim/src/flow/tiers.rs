//! Levels above and below one another: what one asks of the next, and what comes back.
//!
//! An order of a level that stands on another one is a *message*: its blocks are asked for below as one request, the
//! coordinator between the two decides how, and the reply goes up over the link when all of them are there.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstart_engine::{Ask, Backend, Kind, Level, Order};
use headstart_policy::coordinator::{Coordinator, Plan, SentUp};
use headstart_policy::readahead::{Asked, Cached};
use headstart_policy::Space;
use headstart_types::{Block, Disk, Nanos};

use crate::storage::{Ended, Storage, What};
use crate::workload::Places;

/// Bytes of the page that a link's cost counts in.
const PAGE_BYTES: u64 = 4096;

/// What a transfer to the level above takes: `alpha` once, and `beta` for each page of 4 KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// For each request.
    pub alpha: Nanos,
    /// For each page.
    pub beta: Nanos,
}

impl Link {
    /// The cost of `blocks` blocks of `block_bytes`.
    fn cost(&self, blocks: usize, block_bytes: u64) -> Nanos {
        self.alpha + self.beta * (blocks as u64 * block_bytes).div_ceil(PAGE_BYTES)
    }
}

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

/// What is under way between two levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Delivery {
    /// The blocks of a message go up.
    Reply(usize),
    /// A level's block needs no fetch.
    Allocated(usize, Block),
    /// A level's block is on its disk.
    Written(usize, Block),
}

/// An order of a level that stands on another one.
#[derive(Debug, Default)]
struct Message {
    upper: usize,
    blocks: Vec<Block>,
    /// Requests below that it consists of and that are not done.
    parts: u32,
}

/// An order on its way down.
#[derive(Debug)]
struct Sent {
    upper: usize,
    blocks: Vec<Block>,
    kind: Kind,
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
    space: std::rc::Rc<Places>,
    block_bytes: u64,
    outbox: Outbox,
    messages: Vec<Message>,
    free_messages: Vec<usize>,
    deliveries: BinaryHeap<Reverse<(Nanos, u64, Delivery)>>,
    sequence: u64,
    /// What the disk worked on the block that has just come from it.
    service: Option<Nanos>,
    told: VecDeque<Told>,
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
        let mut all = Self {
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
    #[must_use]
    pub fn next_wish(&self, now: Nanos) -> Option<Nanos> {
        let wakes = self.tiers.iter().filter_map(|tier| tier.level.wake_at()).filter(|at| *at > now);
        wakes.chain(self.tiers.iter().filter_map(|tier| tier.level.flush_at())).min()
    }

    /// What the levels have to say without anything having come from below.
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
            if let Some(ended) = self.storage.complete(now) {
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
    fn cross(&mut self, index: usize, blocks: usize) -> Nanos {
        let tier = &mut self.tiers[index];
        let cost = tier.link.cost(blocks, self.block_bytes);
        tier.link_time += cost;
        cost
    }

    fn schedule(&mut self, at: Nanos, delivery: Delivery) {
        self.deliveries.push(Reverse((at, self.sequence, delivery)));
        self.sequence += 1;
    }

    fn arrived(&mut self, now: Nanos, tier: usize, block: Block, disk: Disk, service: Option<Nanos>) {
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
                self.tiers[tier].level.written(self.space.disk(block));
                if tier < self.first {
                    self.told.push_back(Told::Written(tier, block));
                }
            }
        }
    }

    /// The blocks of a message arrive above.
    fn reply(&mut self, now: Nanos, message: usize, service: Option<Nanos>) {
        let Message { upper, blocks, .. } = std::mem::take(&mut self.messages[message]);
        self.free_messages.push(message);
        for block in blocks {
            let disk = self.space.disk(block);
            self.arrived(now, upper, block, disk, service);
        }
    }

    /// Lets a level act.
    pub fn act<R>(&mut self, index: usize, act: impl FnOnce(&mut Level, &mut Down<'_>) -> R) -> R {
        let Self { tiers, storage, outbox, .. } = self;
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
        for index in 0..self.tiers.len() {
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

    /// One of the requests that a message consists of is done at level `index`.
    fn part_done(&mut self, now: Nanos, index: usize, message: usize) {
        self.messages[message].parts -= 1;
        if self.messages[message].parts > 0 {
            return;
        }
        self.forget_sent(index, message);
        let cost = self.cross(index, self.messages[message].blocks.len());
        if cost == Nanos::ZERO {
            self.reply(now, message, self.service);
        } else {
            self.schedule(now + cost, Delivery::Reply(message));
        }
    }

    /// What becomes of blocks that go up.
    fn forget_sent(&mut self, index: usize, message: usize) {
        let tier = &mut self.tiers[index];
        let blocks = &self.messages[message].blocks;
        match tier.coordinator.sent_up() {
            SentUp::Keep => {}
            SentUp::FirstVictims => blocks.iter().for_each(|block| tier.level.make_first_victim(*block)),
            SentUp::Remove => blocks.iter().for_each(|block| tier.level.take_out(*block)),
        }
    }

    /// Exclusive caching: what a level has evicted goes to the one below.
    fn hand_down(&mut self, now: Nanos) {
        for index in 0..self.tiers.len() {
            let Some(below) = self.tiers[index].below else { continue };
            let mut evicted = std::mem::take(&mut self.evicted);
            self.tiers[index].level.take_evicted(&mut evicted);
            for block in evicted.drain(..) {
                self.act(below, |level, down| level.put(now, block, down));
            }
            self.evicted = evicted;
        }
    }

    /// An order reaches the level below.
    fn deliver(&mut self, now: Nanos, sent: Sent) {
        let Sent { upper, blocks, kind } = sent;
        match kind {
            Kind::Allocate => self.schedule(now, Delivery::Allocated(upper, blocks[0])),
            Kind::Write => {
                // Levels below keep what they have, which the write has made up to date, and take in nothing new.
                let disk = self.space.disk(blocks[0]);
                let order = Order { blocks: &blocks, disk, kind };
                self.storage.for_level(upper as u32).issue(now, order);
            }
            Kind::Demand | Kind::Prefetch => self.ask_below(now, upper, blocks, kind),
        }
    }

    fn ask_below(&mut self, now: Nanos, upper: usize, blocks: Vec<Block>, kind: Kind) {
        let below = self.tiers[upper].below.expect("it has sent something down");
        let (file, first) = self.space.place(blocks[0]);
        let asked = Asked { file, first, count: blocks.len() as u32, client: upper as u32 };
        let plan = self.plan(now, below, &asked);
        let slot = self.free_messages.pop().unwrap_or_else(|| {
            self.messages.push(Message::default());
            self.messages.len() - 1
        });
        let native = asked.count - plan.bypass;
        let native_asks = native > 0 || plan.readmore > 0;
        let parts = u32::from(plan.bypass > 0) + u32::from(native_asks);
        self.messages[slot] = Message { upper, blocks, parts };
        let id = slot as u64;
        if plan.bypass > 0 {
            let prefix = Asked { count: plan.bypass, ..asked };
            self.act(below, |level, down| level.bypass(now, id, &prefix, kind, down));
        }
        if native_asks {
            let first = asked.first + u64::from(plan.bypass);
            let ask = Ask {
                id,
                asked: Asked { first, count: native + plan.readmore, ..asked },
                demanded: native,
                write: false,
                position: headstart_types::NEVER,
            };
            self.act(below, |level, down| level.request(now, &ask, down));
        }
    }

    /// What the coordinator of level `index` wants done with a request from above, within what exists.
    fn plan(&mut self, now: Nanos, index: usize, asked: &Asked) -> Plan {
        let tier = &mut self.tiers[index];
        if !tier.stores {
            return Plan { bypass: asked.count, readmore: 0 };
        }
        let full = tier.level.free_frames() == 0;
        let cached = CachedAt { level: &tier.level, space: &self.space };
        let mut plan = tier.coordinator.plan(now, asked, &cached, full);
        plan.bypass = plan.bypass.min(asked.count);
        let end = asked.end();
        let exists = |more: &u64| self.space.block(asked.file, end + more).is_some();
        plan.readmore = (0..u64::from(plan.readmore)).take_while(exists).count() as u32;
        plan
    }
}

/// What a coordinator may see of the lower level.
struct CachedAt<'a> {
    level: &'a Level,
    space: &'a Places,
}

impl Cached for CachedAt<'_> {
    fn is_cached(&self, file: u32, index: u64) -> bool {
        self.space.known(file, index).is_some_and(|block| self.level.is_cached(block))
    }

    fn file_blocks(&self, file: u32) -> Option<u64> {
        self.space.file_blocks(file)
    }

    fn frames(&self) -> u32 {
        self.level.frames()
    }
}
