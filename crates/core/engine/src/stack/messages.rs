//! Messages between levels. An order of an upper level becomes one request to the level below. The coordinator between
//! the two decides how it is served, and the reply crosses the link when all of it is there.

use headstart_policy::coordinator::{Plan, SentUp};
use headstart_policy::readahead::{Asked, Cached};
use headstart_policy::BlockMap;
use headstart_types::{Block, Disk, Nanos, NEVER};

use super::spread::LevelSpace;
use super::{Notification, Stack};
use crate::backend::{IoRequest, Kind};
use crate::devices::{Devices, From};
use crate::level::{Ask, Level};

/// An event on its way between two levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Delivery {
    /// The blocks of a message go up.
    Reply(usize),
    /// A level's block needs no fetch.
    Allocated(usize, Block),
    /// A level's block has been written to its disk.
    Written(usize, Block),
}

/// An order of an upper level.
#[derive(Debug, Default)]
pub(super) struct Message {
    upper: usize,
    /// The host's id, if the message comes from a client of the host instead of a level.
    client_id: Option<u64>,
    /// Its blocks; none for a client of the host, whose space may give the number of an evicted block to another one.
    pub(super) blocks: Vec<Block>,
    /// When the request was made below, and for what; passed to the coordinator when it is answered.
    asked: Option<(Nanos, Asked)>,
    /// Number of unfinished requests below that it consists of.
    parts: u32,
}

/// An order on its way down.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(super) upper: usize,
    pub(super) below: usize,
    pub(super) blocks: Vec<Block>,
    pub(super) kind: Kind,
}

impl<D: Devices<S>, S: BlockMap> Stack<D, S> {
    /// Delivers the blocks of a message to the level above.
    pub(super) fn reply(&mut self, now: Nanos, message: usize, service: Option<Nanos>) {
        let Message { upper, blocks, .. } = std::mem::take(&mut self.messages[message]);
        self.free_messages.push(message);
        self.touch(upper);
        let level = &mut self.tiers[upper].level;
        blocks.into_iter().for_each(|block| level.arrived(now, block, service, &self.space));
    }

    /// Handles the end, at level `index`, of one of the requests that a message consists of.
    pub(super) fn part_done(&mut self, now: Nanos, index: usize, message: usize) {
        self.messages[message].parts -= 1;
        if self.messages[message].parts > 0 {
            return;
        }
        if let Some((since, asked)) = self.messages[message].asked {
            self.tiers[index].coordinator.answered(now, since, &asked);
        }
        self.forget_sent(index, message);
        if let Some(id) = self.messages[message].client_id {
            self.messages[message] = Message::default();
            self.free_messages.push(message);
            self.told.push_back(Notification::Replied(id));
            return;
        }
        let blocks = self.messages[message].blocks.len();
        let cost = self.cross(index, blocks);
        self.note_crossing(now, index, cost, blocks);
        if cost == Nanos::ZERO && self.service.is_some() {
            // Directly from the disk: the level above sees the disk's service time.
            self.reply(now, message, self.service);
        } else {
            // A free link also schedules a delivery at this instant, after which the level above may decide.
            self.schedule(now + cost, Delivery::Reply(message));
        }
    }

    /// Treats blocks that go up as the coordinator decides.
    fn forget_sent(&mut self, index: usize, message: usize) {
        self.touch(index);
        let tier = &mut self.tiers[index];
        let Message { client_id, asked, blocks, .. } = &mut self.messages[message];
        if let (Some(_), Some((_, asked)), false) = (client_id, asked, tier.coordinator.sent_up() == SentUp::Keep) {
            blocks.extend((asked.first..asked.end()).filter_map(|at| self.space.known(asked.file, at)));
        }
        match tier.coordinator.sent_up() {
            SentUp::Keep => {}
            SentUp::FirstVictims => blocks.iter().for_each(|block| tier.level.make_first_victim(*block)),
            SentUp::Remove => blocks.iter().for_each(|block| tier.level.take_out(*block)),
        }
    }

    /// Delivers an order to the level below.
    pub(super) fn deliver(&mut self, now: Nanos, sent: Sent) {
        let Sent { upper, below, blocks, kind } = sent;
        match kind {
            Kind::Allocate => self.schedule(now, Delivery::Allocated(upper, blocks[0])),
            Kind::Write => {
                // Levels below keep their copies, which the write has made current, and insert nothing.
                let disk = self.space.disk(blocks[0]);
                let from = From { level: upper as u32, process: self.process };
                self.devices.submit(now, from, IoRequest { blocks: &blocks, disk, kind }, &self.space);
            }
            Kind::Demand | Kind::Prefetch => match self.tiers[below].spill {
                Some(disk) => self.order_past(now, (upper, below), disk, &blocks, kind),
                None => self.ask_below(now, (upper, below), blocks, kind),
            },
        }
    }

    /// Orders blocks that a spill holds from its own `disk`, and the others from theirs. Each arrives at the level above
    /// by itself.
    fn order_past(&mut self, now: Nanos, (upper, spill): (usize, usize), disk: Disk, blocks: &[Block], kind: Kind) {
        let from = From { level: upper as u32, process: self.process };
        let is_held = |block: &Block| self.tiers[spill].level.state(*block).is_resident();
        let runs: Vec<(bool, &[Block])> =
            blocks.chunk_by(|one, next| is_held(one) == is_held(next)).map(|run| (is_held(&run[0]), run)).collect();
        for (held, run) in runs {
            let (file, first) = self.space.place(run[0]);
            if held {
                let asked = Asked { file, first, count: run.len() as u32, client: upper as u32, ends_inside: false };
                let (position, compute) = (NEVER, Nanos::ZERO);
                let ask = Ask { id: 0, asked, blocks: run, write: false, quiet: false, position, compute };
                let (level, space, mut down) = self.at(spill);
                level.request(now, &ask, space.as_space(), &mut down);
            }
            let disk = if held { disk } else { self.space.disk(run[0]) };
            self.devices.submit(now, from, IoRequest { blocks: run, disk, kind }, &self.space);
        }
    }

    fn ask_below(&mut self, now: Nanos, (upper, below): (usize, usize), blocks: Vec<Block>, kind: Kind) {
        let (file, first) = LevelSpace::new(&self.space, self.tiers[below].share).as_space().place(blocks[0]);
        let asked = Asked { file, first, count: blocks.len() as u32, client: upper as u32, ends_inside: false };
        let plan = self.plan(now, below, &asked);
        let message = Message { upper, blocks, asked: Some((now, asked)), ..Message::default() };
        self.ask_as_planned(now, below, message, (asked, kind), plan);
    }

    /// Requests `blocks`, placed as in `asked`, from level `index` for a client of the host, as a level above would.
    /// [`Notification::Replied`] reports the end, at this instant if nothing has to be waited for.
    pub(crate) fn ask_for_client(&mut self, now: Nanos, index: usize, id: u64, asked: Asked, blocks: &[Block]) {
        let plan = self.plan(now, index, &asked);
        let blocks = blocks.to_vec();
        let message = Message { client_id: Some(id), blocks, asked: Some((now, asked)), ..Message::default() };
        self.ask_as_planned(now, index, message, (asked, Kind::Demand), plan);
    }

    fn ask_as_planned(
        &mut self,
        now: Nanos,
        below: usize,
        mut message: Message,
        (asked, kind): (Asked, Kind),
        plan: Plan,
    ) {
        let native = asked.count - plan.bypass;
        let native_asks = native > 0 || plan.readmore > 0;
        message.parts = u32::from(plan.bypass > 0) + u32::from(native_asks);
        let blocks = std::mem::take(&mut message.blocks);
        let slot = self.open_message(message);
        let (id, bypass) = (slot as u64, plan.bypass as usize);
        let mut served = 0;
        if bypass > 0 {
            let (client, passing) = ((id, asked.client), &blocks[..bypass]);
            let (level, space, mut down) = self.at(below);
            let looked = level.bypass(now, client, passing, kind, space.as_space(), &mut down);
            served += u32::from(!looked.waits());
        }
        if native_asks {
            let first = asked.first + u64::from(plan.bypass);
            let ask = Ask {
                id,
                asked: Asked { first, count: native + plan.readmore, ..asked },
                blocks: &blocks[bypass..],
                write: false,
                quiet: plan.quiet,
                position: NEVER,
                compute: Nanos::ZERO,
            };
            let (level, space, mut down) = self.at(below);
            let looked = level.request(now, &ask, space.as_space(), &mut down);
            served += u32::from(!looked.waits());
        }
        if self.messages[slot].client_id.is_none() {
            self.messages[slot].blocks = blocks;
        }
        (0..served).for_each(|_| self.part_done(now, below, slot));
    }

    fn open_message(&mut self, message: Message) -> usize {
        let slot = self.free_messages.pop().unwrap_or_else(|| {
            self.messages.push(Message::default());
            self.messages.len() - 1
        });
        self.messages[slot] = message;
        slot
    }

    /// The coordinator's plan for a request to level `index`, limited to blocks that exist.
    fn plan(&mut self, now: Nanos, index: usize, asked: &Asked) -> Plan {
        let tier = &mut self.tiers[index];
        if !tier.stores {
            return Plan { bypass: asked.count, ..Plan::default() };
        }
        let full = tier.level.free_frames() == 0;
        let seen = LevelSpace::new(&self.space, tier.share);
        let space = seen.as_space();
        let cached = CachedAt { level: &tier.level, space };
        let mut plan = tier.coordinator.plan(now, asked, &cached, full);
        plan.bypass = plan.bypass.min(asked.count);
        let end = asked.end();
        let exists = |more: &u64| space.block(asked.file, end + more).is_some();
        plan.readmore = (0..u64::from(plan.readmore)).take_while(exists).count() as u32;
        plan
    }
}

/// The part of the lower level's state that a coordinator may see.
struct CachedAt<'a> {
    level: &'a Level,
    space: &'a dyn BlockMap,
}

impl Cached for CachedAt<'_> {
    fn is_cached(&self, file: u32, index: u64) -> bool {
        self.space.known(file, index).is_some_and(|block| self.level.is_cached(block))
    }

    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.space.known(file, index).is_some_and(|block| self.level.state(block).is_resident())
    }

    fn file_blocks(&self, file: u32) -> Option<u64> {
        self.space.file_blocks(file)
    }

    fn frames(&self) -> u32 {
        self.level.frames()
    }

    fn contiguous(&self, file: u32, index: u64, most: u64) -> u64 {
        self.space.contiguous(file, index, most)
    }

    fn mapped_by(&self, file: u32, index: u64) -> Option<(u32, u64)> {
        self.space.mapped_by(file, index)
    }
}
