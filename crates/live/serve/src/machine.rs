//! The machine of one export: the level in memory with its coordinator, and that of a spill file below it, over a
//! mailbox (`headstart_engine`).

use headstart_engine::{Counts, IssueMode, Level, NoSupply, Stack, System, Tier, What};
use headstart_host::mailbox::{Mailbox, Request};
use headstart_policy::coordinator::SentUp;
use headstart_policy::readahead::Asked;
use headstart_policy::BlockMap;
use headstart_types::{Block, Disk, Nanos};

use crate::pages::Pages;

/// The levels.
const MEMORY: usize = 0;
const SPILL: usize = 1;
/// The disk of the pages in a spill file.
pub const SPILL_DISK: Disk = Disk(1);

pub struct Machine {
    system: System<Mailbox, Pages, NoSupply>,
    /// The coordinator removes blocks that were sent up.
    pub removes_sent: bool,
}

impl Machine {
    #[must_use]
    pub fn new(mut tier: Tier, spill: Option<Tier>, pages: Pages, page_bytes: u64) -> Self {
        let removes_sent = tier.coordinator.sent_up() == SentUp::Remove;
        tier.below = spill.as_ref().map(|_| SPILL);
        let mailbox = tier.below.map_or_else(Mailbox::default, |spill| Mailbox::with_spill(spill as u32));
        let tiers = [tier].into_iter().chain(spill.map(|spill| Tier { spill: Some(SPILL_DISK), ..spill })).collect();
        let stack = Stack::new(tiers, 0, mailbox, pages, page_bytes);
        let mode = IssueMode { whole: true, open: true, write_delay: None };
        let Ok(mut system) = System::try_new(stack, Vec::new(), mode, None);
        system.use_external_schedule();
        Self { system, removes_sent }
    }

    #[must_use]
    pub fn pages(&self) -> &Pages {
        &self.system.stack.space
    }

    #[must_use]
    pub fn level(&self) -> &Level {
        &self.system.stack.tiers[MEMORY].level
    }

    /// The level of the spill file, if there is one.
    #[must_use]
    pub fn spill(&self) -> Option<&Level> {
        self.system.stack.tiers.get(SPILL).map(|tier| &tier.level)
    }

    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.level().counts()
    }

    /// Whether no level keeps anything about `block`; see [`Level::is_unknown`].
    #[must_use]
    pub fn is_unknown(&self, block: Block) -> bool {
        self.system.stack.tiers.iter().all(|tier| tier.level.is_unknown(block))
    }

    /// Checks the level's invariants between two instants.
    ///
    /// # Errors
    /// The first violated invariant.
    pub fn check(&self) -> Result<(), String> {
        self.system.check()
    }

    /// [`Pages::number_at_most`].
    pub fn number_at_most(&mut self, pages: usize) {
        self.system.stack.space.number_at_most(pages);
    }

    /// When the policy wants to act next, even if nothing happens until then.
    #[must_use]
    pub fn next_timer(&mut self) -> Option<Nanos> {
        self.system.next_timer()
    }

    /// `block` was fetched in `service`; it arrives at the next turn.
    pub fn fetched(&mut self, block: Block, service: Nanos) {
        self.system.stack.devices.end(MEMORY as u32, What::Fetched(service), block);
    }

    /// `block` was stored in the spill file, or could not be; it arrives there at the next turn.
    pub fn stored(&mut self, block: Block) {
        self.system.stack.devices.end(SPILL as u32, What::Allocated, block);
    }

    /// Begins the instant `now`: fetched blocks arrive, and the policy decides.
    pub fn turn(&mut self, now: Nanos) {
        let Ok(()) = self.system.turn(now, &[]);
    }

    /// A client requests `blocks`, at the place given by `asked`.
    pub fn request(&mut self, now: Nanos, id: u64, asked: Asked, blocks: &[Block]) {
        self.system.request(now, MEMORY, id, asked, blocks);
    }

    /// Prefetches the absent ones of `blocks`, which are expected to be requested, as far as frames are available.
    pub fn expect(&mut self, now: Nanos, blocks: &[Block]) {
        self.system.expect(now, MEMORY, blocks);
    }

    /// Removes `block` from memory.
    pub fn take_out(&mut self, block: Block) {
        self.system.take_out(MEMORY, block);
    }

    /// Removes `block` from the spill file.
    pub fn take_out_spilled(&mut self, block: Block) {
        self.system.take_out(SPILL, block);
    }

    /// Returns evicted blocks, completed requests and fetches wanted since the last call. Evictions precede the fetches
    /// that they make room for.
    pub fn take(&mut self, evicted: &mut Vec<Block>, replied: &mut Vec<u64>, orders: &mut Vec<Request>) {
        self.system.stack.take_left(evicted);
        self.system.take_replied(replied);
        orders.append(&mut self.system.stack.devices.requests);
    }

    #[must_use]
    pub fn page(&self, block: Block) -> u64 {
        self.pages().place(block).1
    }
}
