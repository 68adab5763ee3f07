//! Step (3) for one process: it meets the others, asks, waits, writes, and goes on.

use headstart_engine::{Access, Ask, Level, Looked};
use headstart_types::{Block, Nanos, Outcome};

use super::tiers::{Down, Told};
use super::{Flow, NOBODY};
use crate::process::{Awaited, Phase};
use crate::Error;

impl Flow {
    /// Lets a level act, which says how many orders it has given, and carries that as far as it goes.
    pub(super) fn ask_level<R>(
        &mut self,
        now: Nanos,
        tier: usize,
        act: impl FnOnce(&mut Level, &mut Down<'_>) -> (R, u32),
    ) -> R {
        let (result, issued) = self.tiers.act(tier, act);
        self.charge(now, tier, issued);
        self.tiers.settle(now);
        self.tiers.storage.start_issued(now);
        result
    }

    /// Step (3) for one process.
    pub(super) fn act(&mut self, now: Nanos, index: usize) -> Result<(), Error> {
        self.tiers.storage.process = Some(index as u32);
        if self.open {
            return self.arrive(now, index);
        }
        if self.parallel.is_some() && !self.has_processor(now, index) {
            return Ok(());
        }
        if let Phase::Granted(wait) = self.clients[index].process.phase {
            let client = &mut self.clients[index];
            client.process.end_wait(now, &wait, client.charged_before);
            self.resumes(now, index);
            match wait.what {
                Awaited::Others => {}
                Awaited::Write => return self.served(now, index),
                Awaited::Read(outcome) => {
                    if wait.block != NOBODY {
                        self.resume(now, index, (wait.block, outcome, wait.since));
                    }
                    return self.served_or_written(now, index);
                }
            }
        }
        if self.parallel.is_some() && !self.may_read(now, index)? {
            return Ok(());
        }
        self.read(now, index)
    }

    /// Asks for what comes next.
    fn read(&mut self, now: Nanos, index: usize) -> Result<(), Error> {
        let client = &mut self.clients[index];
        client.process.request_since.get_or_insert(now);
        let waits = if self.asks[client.tier] || self.whole {
            self.ask(now, index)
        } else {
            client.count = 1;
            self.refer(now, index)
        };
        if let Some((block, outcome)) = waits {
            self.wait(now, index, block, Awaited::Read(outcome));
            return Ok(());
        }
        self.served_or_written(now, index)
    }

    /// From now on the process waits.
    pub(super) fn wait(&mut self, now: Nanos, index: usize, block: Block, what: Awaited) {
        let client = &mut self.clients[index];
        client.process.wait(now, block, what, client.charged_before);
        self.rests(now, index, what);
    }

    /// Asks for a request, or for a block of it, as a whole. Gives what the process waits for.
    fn ask(&mut self, now: Nanos, index: usize) -> Option<(Block, Outcome)> {
        let client = &mut self.clients[index];
        let asked = client.asked(&self.places, self.whole, index as u32);
        client.count = asked.count;
        let (tier, position, write) = (client.tier, client.position(), client.writes());
        let compute = client.process.last_think;
        let ask = Ask { id: index as u64, asked, demanded: asked.count, write, position, compute };
        let (done, looked) = self.request(now, tier, &ask);
        self.clients[index].found.add(&looked);
        self.count(&looked);
        (!done).then_some((NOBODY, looked.outcome()))
    }

    /// Gives a request to a level. Returns whether it is done at once, and how its blocks were found.
    pub(super) fn request(&mut self, now: Nanos, tier: usize, ask: &Ask) -> (bool, Looked) {
        let looked = self.ask_level(now, tier, |level, down| {
            let looked = level.request(now, ask, down);
            (looked, looked.issued)
        });
        let mut done = false;
        let mut others = Vec::new();
        while let Some(told) = self.tiers.take_told() {
            match told {
                Told::Done(id) if id == ask.id => done = true,
                other => others.push(other),
            }
        }
        self.tiers.put_back(others);
        (done, looked)
    }

    /// One block, of a level whose policy goes block by block. Gives what the process waits for.
    fn refer(&mut self, now: Nanos, index: usize) -> Option<(Block, Outcome)> {
        let client = &self.clients[index];
        let (tier, block, write) = (client.tier, client.block(), client.writes());
        let (position, compute) = (client.process.position, client.process.last_think);
        let access = self.ask_level(now, tier, |level, down| {
            level.meet(block);
            level.reference(now, position, block, write, compute, down)
        });
        let (outcome, waits) = match access {
            Access::Served => (Outcome::HitReady, None),
            Access::Waits(outcome) => (outcome, Some((block, outcome))),
        };
        self.clients[index].found.count(outcome);
        waits
    }

    fn resume(&mut self, now: Nanos, index: usize, (block, outcome, since): (Block, Outcome, Nanos)) {
        let client = &self.clients[index];
        let (tier, position, compute) = (client.tier, client.process.position, client.process.last_think);
        self.ask_level(now, tier, |level, down| {
            ((), level.resume(now, position, block, outcome, since, compute, down))
        });
    }

    /// What was asked for is there: it is written, if it is a write, or served.
    fn served_or_written(&mut self, now: Nanos, index: usize) -> Result<(), Error> {
        let client = &self.clients[index];
        if !client.writes() {
            return self.served(now, index);
        }
        let tier = client.tier;
        let blocks = client.blocks(client.count).to_vec();
        self.write(now, tier, &blocks);
        if self.write_delay.is_some() {
            return self.served(now, index);
        }
        self.writers.wait(index as u64, tier, &blocks);
        self.wait(now, index, NOBODY, Awaited::Write);
        Ok(())
    }

    pub(super) fn write(&mut self, now: Nanos, tier: usize, blocks: &[Block]) {
        let delay = self.write_delay;
        self.ask_level(now, tier, |level, down| {
            ((), blocks.iter().map(|block| level.write(now, *block, delay, down)).sum())
        });
    }

    /// The process pays, thinks and goes on.
    fn served(&mut self, now: Nanos, index: usize) -> Result<(), Error> {
        let client = &mut self.clients[index];
        let count = client.count;
        if let Some(response) = client.served(now, count) {
            self.responses.record(response);
        }
        let has_more = client.has_more()?;
        self.has_read(index, count);
        if !has_more && !self.meets_others() {
            self.is_done(now, index);
        }
        Ok(())
    }
}
