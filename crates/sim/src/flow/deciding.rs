//! Step (2): the levels decide, and somebody pays for the driver's work.

use headstart_types::{Block, Nanos};

use super::Flow;
use crate::process::Phase;

impl Flow {
    /// Step (2).
    pub(super) fn decide(&mut self, now: Nanos) {
        self.tiers.wishes_come(now);
        let mut from = 0;
        while let Some(index) = self.tiers.wishes.take_undecided(from) {
            from = index + 1;
            let level = &self.tiers.tiers[index].level;
            let due = level.flush_at().is_some_and(|at| at <= now);
            let woken = level.wake_at().is_some_and(|at| at <= now);
            if !due && !woken && !level.wants_to_decide() {
                continue;
            }
            let at_hand = self.at_hand(index);
            self.tiers.storage.process = self.only_client[index];
            let issued = self.tiers.act(index, |level, down| {
                let flushed = if due { level.flush(now, down) } else { 0 };
                flushed + if woken || level.wants_to_decide() { level.decide(now, at_hand, down) } else { 0 }
            });
            self.charge(now, index, issued);
            self.tiers.settle(now);
        }
        self.tiers.storage.start_issued(now);
    }

    /// The block that a process is about to ask level `index` for, or waits for: a fetch of it is a demand.
    fn at_hand(&self, index: usize) -> Option<Block> {
        if index >= self.tiers.first || self.asks[index] || self.whole {
            return None;
        }
        let client = &self.clients[self.first_client[index]? as usize];
        let process = &client.process;
        // One that has to meet the others, or to wait for the shared structures, asks later than now.
        let about_to_ask = client.is_due && !self.is_held_up(self.first_client[index]? as usize);
        let wants = (about_to_ask || process.due().is_none()) && process.wants_block();
        (wants && client.has_at_hand()).then(|| client.block())
    }

    /// Driver work is the acting process's; that of a level's own decisions its first process's.
    pub(super) fn charge(&mut self, now: Nanos, tier: usize, issued: u32) {
        if issued == 0 || self.open {
            return;
        }
        let Some(index) = self.acting.or(self.first_client[tier]).map(|index| index as usize) else { return };
        let process = &mut self.clients[index].process;
        if process.phase == Phase::Done && process.free_at < now {
            process.idle += now - process.free_at;
        }
        if let Some(parallel) = &self.parallel {
            process.free_at = process.free_at.max(parallel.acts_until(index));
        }
        process.charge_driver(now, issued);
        self.moved(now, index);
        if self.acting.is_none() {
            self.reschedule(index);
        }
    }
}
