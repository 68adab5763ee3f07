//! The machine for one export: one level and its coordinator over a mailbox (`headstart_engine`).

use headstart_engine::{Counts, IssueMode, Level, NoSupply, Stack, System, Tier, What};
use headstart_host::mailbox::{Mailbox, Request};
use headstart_policy::coordinator::SentUp;
use headstart_policy::readahead::Asked;
use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos};

use crate::pages::Pages;

/// A level under a coordinator, asked by clients.
pub struct Machine {
    system: System<Mailbox, Pages, NoSupply>,
    /// The coordinator takes blocks out that have gone up.
    pub removes_sent: bool,
}

impl Machine {
    /// `tier` before `pages` of `page_bytes`.
    #[must_use]
    pub fn new(tier: Tier, pages: Pages, page_bytes: u64) -> Self {
        let removes_sent = tier.coordinator.sent_up() == SentUp::Remove;
        let stack = Stack::new(vec![tier], 0, Mailbox::default(), pages, page_bytes);
        let manner = IssueMode { whole: true, open: true, write_delay: None };
        let Ok(mut system) = System::try_new(stack, Vec::new(), manner, None);
        system.be_told();
        Self { system, removes_sent }
    }

    /// The pages.
    #[must_use]
    pub fn pages(&self) -> &Pages {
        &self.system.stack.space
    }

    /// The level.
    #[must_use]
    pub fn level(&self) -> &Level {
        &self.system.stack.tiers[0].level
    }

    /// What has been counted.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.level().counts()
    }

    /// Checks what must hold of the level between two instants.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self) -> Result<(), String> {
        self.system.check()
    }

    /// [`Pages::number_at_most`].
    pub fn number_at_most(&mut self, pages: usize) {
        self.system.stack.space.number_at_most(pages);
    }

    /// When the policy wants to act though nothing may happen.
    #[must_use]
    pub fn next_timer(&mut self) -> Option<Nanos> {
        self.system.next_timer()
    }

    /// `block` has been fetched, after `service`: at the next turn.
    pub fn fetched(&mut self, block: Block, service: Nanos) {
        self.system.stack.devices.end(0, What::Fetched(service), block);
    }

    /// Begins the instant `now`: what has ended arrives, and the policy decides.
    pub fn turn(&mut self, now: Nanos) {
        let Ok(()) = self.system.turn(now, &[]);
    }

    /// A client asks for `blocks`, which lie where `asked` says.
    pub fn request(&mut self, now: Nanos, id: u64, asked: Asked, blocks: &[Block]) {
        self.system.request(now, 0, id, asked, blocks);
    }

    /// Requests for `blocks` are expected: those that are absent are fetched ahead, as far as there are frames.
    pub fn expect(&mut self, now: Nanos, blocks: &[Block]) {
        self.system.expect(now, 0, blocks);
    }

    /// Takes `block` out of the cache.
    pub fn take_out(&mut self, block: Block) {
        self.system.stack.tiers[0].level.take_out(block);
    }

    /// Gives the blocks that have been evicted, the requests that are done, and the fetches that the policy wants, since it
    /// was last asked. Evictions come before the fetches that they make room for.
    pub fn take(&mut self, evicted: &mut Vec<Block>, replied: &mut Vec<u64>, orders: &mut Vec<Request>) {
        self.system.stack.take_left(evicted);
        self.system.take_replied(replied);
        orders.append(&mut self.system.stack.devices.requests);
    }

    /// The page that `block` stands for.
    #[must_use]
    pub fn page(&self, block: Block) -> u64 {
        self.pages().place(block).1
    }
}
