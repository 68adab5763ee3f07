//! The machine of one export: the level in memory with its coordinator, and that of a spill file below it, over a
//! mailbox (`headstart_engine`). With hints, the level that follows them comes first; it holds no bytes.

use headstart_engine::{Counts, Level, NoSupply, Stack, System, Tier, What};
use headstart_hints::{Follower, Prepared, MODE, WATCHED};
use headstart_host::mailbox::{Mailbox, Request};
use headstart_policy::coordinator::SentUp;
use headstart_policy::readahead::Asked;
use headstart_policy::BlockMap;
use headstart_types::{Block, Disk, Nanos};

use crate::pages::Pages;

/// The disk of the pages in a spill file.
pub const SPILL_DISK: Disk = Disk(1);

type Levels = System<Mailbox, Pages, NoSupply>;

pub struct Machine {
    levels: Owner,
    /// The level in memory; that of the spill file is the next one.
    memory: usize,
    /// The coordinator removes blocks that were sent up.
    pub removes_sent: bool,
}

/// Hints own the machine that they are followed in.
enum Owner {
    Nobody(Box<Levels>),
    Hints(Box<Follower<Pages>>),
}

impl Owner {
    fn get(&self) -> &Levels {
        match self {
            Self::Nobody(levels) => levels,
            Self::Hints(hints) => hints.system(),
        }
    }

    fn get_mut(&mut self) -> &mut Levels {
        match self {
            Self::Nobody(levels) => levels,
            Self::Hints(hints) => hints.system_mut(),
        }
    }
}

impl Machine {
    /// The machine of `tier`, a level below it and one above it, for blocks of `page_bytes`.
    #[must_use]
    pub fn new(tier: Tier, spill: Option<Tier>, hints: Option<Prepared>, pages: Pages, page_bytes: u64) -> Self {
        let removes_sent = tier.coordinator.sent_up() == SentUp::Remove;
        let memory = hints.as_ref().map_or(0, |_| WATCHED + 1);
        let below = spill.as_ref().map(|_| memory + 1);
        let mailbox = Mailbox::of_levels(hints.as_ref().map(|_| WATCHED as u32), below.map(|spill| spill as u32));
        let stored = [Tier { below, ..tier }].into_iter();
        let stored = stored.chain(spill.map(|spill| Tier { spill: Some(SPILL_DISK), ..spill }));
        let build = |watched: Option<Tier>| {
            let stack = Stack::new(watched.into_iter().chain(stored).collect(), memory, mailbox, pages, page_bytes);
            let Ok(mut levels) = System::try_new(stack, Vec::new(), MODE, None);
            levels.use_external_schedule();
            levels
        };
        let levels = match hints {
            Some(hints) => Owner::Hints(Box::new(hints.follow(|watched| build(Some(watched))))),
            None => Owner::Nobody(Box::new(build(None))),
        };
        Self { levels, memory, removes_sent }
    }

    /// The hints, if there are any.
    #[must_use]
    pub fn hints(&self) -> Option<&Follower<Pages>> {
        match &self.levels {
            Owner::Nobody(_) => None,
            Owner::Hints(hints) => Some(hints),
        }
    }

    /// The hints, to be told what happens.
    pub fn hints_mut(&mut self) -> Option<&mut Follower<Pages>> {
        match &mut self.levels {
            Owner::Nobody(_) => None,
            Owner::Hints(hints) => Some(hints),
        }
    }

    #[must_use]
    pub fn pages(&self) -> &Pages {
        &self.levels.get().stack.space
    }

    #[must_use]
    pub fn level(&self) -> &Level {
        &self.levels.get().stack.tiers[self.memory].level
    }

    /// The level of the spill file, if there is one.
    #[must_use]
    pub fn spill(&self) -> Option<&Level> {
        self.levels.get().stack.tiers.get(self.memory + 1).map(|tier| &tier.level)
    }

    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.level().counts()
    }

    /// Whether no level keeps anything about `block`; see [`Level::is_unknown`].
    #[must_use]
    pub fn is_unknown(&self, block: Block) -> bool {
        self.levels.get().stack.tiers.iter().all(|tier| tier.level.is_unknown(block))
    }

    /// Checks the level's invariants between two instants.
    ///
    /// # Errors
    /// The first violated invariant.
    pub fn check(&self) -> Result<(), String> {
        self.levels.get().check()
    }

    /// [`Pages::number_at_most`].
    pub fn number_at_most(&mut self, pages: usize) {
        self.levels.get_mut().stack.space.number_at_most(pages);
    }

    /// When the policy wants to act next, even if nothing happens until then.
    #[must_use]
    pub fn next_timer(&mut self) -> Option<Nanos> {
        self.levels.get_mut().next_timer()
    }

    /// `block` was fetched in `service`; it arrives at the next turn.
    pub fn fetched(&mut self, block: Block, service: Nanos) {
        self.levels.get_mut().stack.devices.end(self.memory as u32, What::Fetched(service), block);
    }

    /// `block` was stored in the spill file, or could not be; it arrives there at the next turn.
    pub fn stored(&mut self, block: Block) {
        self.levels.get_mut().stack.devices.end(self.memory as u32 + 1, What::Allocated, block);
    }

    /// Begins the instant `now`: fetched blocks arrive, and the policy decides.
    pub fn turn(&mut self, now: Nanos) {
        let Ok(()) = self.levels.get_mut().turn(now, &[]);
    }

    /// A client requests `blocks`, at the place given by `asked`.
    pub fn request(&mut self, now: Nanos, id: u64, asked: Asked, blocks: &[Block]) {
        self.levels.get_mut().request(now, self.memory, id, asked, blocks);
    }

    /// Prefetches the absent ones of `blocks`, which are expected to be requested, as far as frames are available.
    pub fn expect(&mut self, now: Nanos, blocks: &[Block]) {
        self.levels.get_mut().expect(now, self.memory, blocks);
    }

    /// Removes `block` from memory.
    pub fn take_out(&mut self, block: Block) {
        self.levels.get_mut().take_out(self.memory, block);
    }

    /// Removes `block` from the spill file.
    pub fn take_out_spilled(&mut self, block: Block) {
        self.levels.get_mut().take_out(self.memory + 1, block);
    }

    /// Returns evicted blocks, completed requests and fetches wanted since the last call. Evictions precede the fetches
    /// that they make room for.
    pub fn take(&mut self, evicted: &mut Vec<Block>, replied: &mut Vec<u64>, orders: &mut Vec<Request>) {
        let levels = self.levels.get_mut();
        levels.stack.take_left(evicted);
        levels.take_replied(replied);
        orders.append(&mut levels.stack.devices.requests);
    }

    #[must_use]
    pub fn page(&self, block: Block) -> u64 {
        self.pages().place(block).1
    }
}
