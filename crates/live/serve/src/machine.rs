//! The machine of one export: one level and its coordinator over a mailbox (`headstart_engine`).

use headstart_engine::{Counts, IssueMode, Level, NoSupply, Stack, System, Tier, What};
use headstart_host::mailbox::{Mailbox, Request};
use headstart_policy::coordinator::SentUp;
use headstart_policy::readahead::Asked;
use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos};

use crate::pages::Pages;

pub struct Machine {
    system: System<Mailbox, Pages, NoSupply>,
    /// The coordinator removes blocks that were sent up.
    pub removes_sent: bool,
}

impl Machine {
    #[must_use]
    pub fn new(tier: Tier, pages: Pages, page_bytes: u64) -> Self {
        let removes_sent = tier.coordinator.sent_up() == SentUp::Remove;
        let stack = Stack::new(vec![tier], 0, Mailbox::default(), pages, page_bytes);
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
        &self.system.stack.tiers[0].level
    }

    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.level().counts()
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
        self.system.stack.devices.end(0, What::Fetched(service), block);
    }

    /// Begins the instant `now`: fetched blocks arrive, and the policy decides.
    pub fn turn(&mut self, now: Nanos) {
        let Ok(()) = self.system.turn(now, &[]);
    }

    /// A client requests `blocks`, at the place given by `asked`.
    pub fn request(&mut self, now: Nanos, id: u64, asked: Asked, blocks: &[Block]) {
        self.system.request(now, 0, id, asked, blocks);
    }

    /// Prefetches the absent ones of `blocks`, which are expected to be requested, as far as frames are available.
    pub fn expect(&mut self, now: Nanos, blocks: &[Block]) {
        self.system.expect(now, 0, blocks);
    }

    /// Removes `block` from the cache.
    pub fn take_out(&mut self, block: Block) {
        self.system.stack.tiers[0].level.take_out(block);
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
