//! Step (2): the levels decide, and a process is charged for the driver work.

use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos};

use super::{Phase, Supply, System};
use crate::devices::Devices;

impl<D: Devices<S>, S: BlockMap + Send, R: Supply<S>> System<D, S, R> {
    /// Step (2). With `ALONE`, the caller has already determined whether the level `wants` to decide.
    // A single copy for all callers: the code between two references has to fit the processor's instruction cache.
    #[inline(never)]
    pub(super) fn decide<const ALONE: bool>(&mut self, now: Nanos, wants: bool) {
        if ALONE {
            self.decide_at::<true>(now, 0, wants);
        } else {
            self.stack.wishes_come(now);
            let mut from = 0;
            while let Some(index) = self.stack.take_undecided(from) {
                from = index + 1;
                let wants = self.stack.tiers[index].level.wants_to_decide();
                self.decide_at::<false>(now, index, wants);
            }
        }
        self.stack.devices.start(now);
    }

    /// Lets level `index` write blocks that are due, and decide if it `wants` to or its time has come.
    #[inline(always)]
    fn decide_at<const ALONE: bool>(&mut self, now: Nanos, index: usize, wants: bool) {
        let level = &self.stack.tiers[index].level;
        let due = level.flush_at().is_some_and(|at| at <= now);
        let woken = level.wake_at().is_some_and(|at| at <= now);
        if !due && !woken && !wants {
            return;
        }
        let at_hand = self.at_hand(index);
        self.stack.acts_for(if ALONE { Some(0) } else { self.only_client[index] });
        let (level, space, mut down) = self.stack.at(index);
        let mut issued = if due { level.flush(now, &mut down) } else { 0 };
        if woken || wants {
            issued += level.decide(now, at_hand, space.as_space(), &mut down);
        }
        self.charge::<ALONE>(now, index, issued);
        if !ALONE {
            self.stack.settle(now);
        }
    }

    /// The block that a process is about to request from level `index`: its fetch is a demand fetch.
    #[inline(always)]
    fn at_hand(&self, index: usize) -> Option<Block> {
        let first = self.first_client[index]? as usize;
        let client = &self.clients[first];
        if client.takes_requests {
            return None;
        }
        // A process that has to synchronise, or to wait for the shared structures, makes its request later.
        let asks = client.is_due && client.process.wants_block() && !self.is_held_up(first);
        (asks && client.has_at_hand()).then(|| client.block())
    }

    /// Charges driver work to the acting process, or for a level's own decisions to its first process.
    #[inline(always)]
    pub(super) fn charge<const ALONE: bool>(&mut self, now: Nanos, tier: usize, issued: u32) {
        if ALONE {
            self.clients[0].process.charge_driver(now, issued);
        } else if issued > 0 && !self.mode.open {
            self.charge_all(now, tier, issued);
        }
    }

    fn charge_all(&mut self, now: Nanos, tier: usize, issued: u32) {
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
